//! p(class) of rows: the mean over trees of what the leaf of a row says, smoothed along its path.
//!
//! With n the weight of a node's rows and n_k that of class k, p_k = (n_k + α p_k of the parent) / (n + α), and at the root
//! (n_k + ½) / (n + ½K). From the leaf up: a node's own counts have the factor 1 / (n + α), and all above it α / (n + α).

use super::counts::SparseView;
use super::{Cells, Forest, Labels, SPREAD, Sampling, Tree};
use crate::threads;
use std::convert::Infallible;

/// So many numbers are held while rows are sent down a tree, which is near meanwhile; and so many rows at most.
const NUMBERS: usize = 1 << 14;
const MOST_ROWS: usize = 2048;
/// What is above a node with a smaller factor is taken for the root.
const NEGLIGIBLE: f64 = 1e-7;

/// Trees with the class weights of rows at their nodes.
#[derive(Clone, Copy)]
pub struct Scorer<'a> {
    pub forest: Forest<'a>,
    pub counts: SparseView<'a, f32>,
    /// the weight of all classes at each node
    pub totals: &'a [f32],
    pub classes: usize,
    pub alpha: f64,
    /// a smaller share of a row stays where it is, in place of going to both sides
    pub least_share: f64,
}

/// What is to be left out of the counts, for each row that is scored: itself, as it was counted.
#[derive(Clone, Copy)]
pub struct Own<'a> {
    pub cells: Cells<'a>,
    pub labels: Labels<'a>,
    pub sampling: Sampling<'a>,
}

/// p(class), rows × classes. With `own`, only by trees that were grown without the row, less its own weight along its path.
pub fn probabilities(scorer: &Scorer, cells: Cells, own: Option<&Own>) -> Vec<f64> {
    let k = scorer.classes;
    let mut out = vec![0.0; cells.rows() * k];
    let piece = (NUMBERS / k).clamp(64, MOST_ROWS);
    let steps = cells.rows() * scorer.forest.trees() * 50;
    let Ok::<(), Infallible>(()) = threads::for_each(&mut out, piece * k, steps, |number, out| {
        scorer.score(cells, own, number * piece, out);
        Ok(())
    });
    out
}

/// What a row leaves out of the counts of nodes on the path to the leaf that it was counted in.
#[derive(Clone, Copy)]
struct LeftOut {
    leaf: usize,
    class: usize,
    weight: f64,
}

struct Walk<'a, 's> {
    scorer: &'a Scorer<'s>,
    tree: Tree<'a>,
    row: &'a [u8],
    own: Option<LeftOut>,
}

impl Scorer<'_> {
    fn score(&self, cells: Cells, own: Option<&Own>, first: usize, out: &mut [f64]) {
        let k = self.classes;
        let rows = out.len() / k;
        let (mut number, mut of_root) = (vec![0u32; rows], vec![0.0; rows]);
        let mut taken: Vec<u32> = (first as u32..(first + rows) as u32).collect();
        let (mut leaves, mut own_leaves) = (vec![0; rows], vec![0; rows]);
        for t in 0..self.forest.trees() {
            let tree = self.forest.tree(t);
            if let Some(own) = own {
                let seed = own.sampling.of_tree(t);
                taken.clear();
                taken.extend(
                    (first as u32..(first + rows) as u32)
                        .filter(|&row| !own.sampling.takes(own.sampling.hashes[row as usize], seed)),
                );
                tree.leaves(own.cells, &taken, &mut own_leaves);
            }
            tree.leaves(cells, &taken, &mut leaves);
            for (i, (&row, &leaf)) in taken.iter().zip(&leaves).enumerate() {
                let row = row as usize;
                let at = row - first;
                let out = &mut out[at * k..][..k];
                let own = own.map(|own| LeftOut {
                    leaf: (own_leaves[i] & !SPREAD) as usize,
                    class: own.labels.class(row),
                    weight: own.labels.weight(row),
                });
                let walk = Walk { scorer: self, tree, row: cells.row(row), own };
                number[at] += 1;
                of_root[at] +=
                    if leaf & SPREAD == 0 { walk.up(leaf as usize, 1.0, out) } else { walk.down(0, 1.0, out) };
            }
        }
        for (i, out) in out.chunks_exact_mut(k).enumerate() {
            let own = own.map(|own| (own.labels.class(first + i), own.labels.weight(first + i)));
            self.finish(f64::from(number[i]), of_root[i], own, out);
        }
    }

    /// Adds what the root says, and divides by the number of trees.
    fn finish(&self, trees: f64, of_root: f64, own: Option<(usize, f64)>, out: &mut [f64]) {
        let weight = own.map_or(0.0, |(_, weight)| weight);
        let n = if self.totals.is_empty() { 0.0 } else { (f64::from(self.totals[0]) - weight).max(0.0) };
        let of_root = if trees > 0.0 { of_root / trees } else { 1.0 };
        let factor = of_root / (n + 0.5 * out.len() as f64);
        for value in out.iter_mut() {
            *value = *value / trees.max(1.0) + 0.5 * factor;
        }
        if !self.totals.is_empty() {
            let (classes, counts) = self.counts.of(0);
            for (&class, &count) in classes.iter().zip(counts) {
                let class = class as usize;
                let own = own.map_or(0.0, |(own, weight)| if own == class { weight } else { 0.0 });
                out[class] += factor * (f64::from(count) - own).max(0.0);
            }
        }
    }
}

impl Walk<'_, '_> {
    /// The weight of all classes at a node, less the row's own.
    fn total(&self, node: usize) -> f64 {
        let mut own = 0.0;
        if let Some(mut left_out) = self.own
            && left_out.reaches(node, self.tree.parents)
        {
            own = left_out.weight;
        }
        (f64::from(self.scorer.totals[self.tree.first + node]) - own).max(0.0)
    }

    /// Sends a share of the row down from a node, and returns what is left to the root.
    fn down(&self, mut node: usize, share: f64, out: &mut [f64]) -> f64 {
        loop {
            let split = self.tree.split(node);
            let Some(feature) = split.feature() else { return self.up(node, share, out) };
            let code = self.row[feature];
            if split.both(code) {
                let children = [split.child(), split.child() + 1];
                let weights = children.map(|child| self.total(child));
                let total = weights[0] + weights[1];
                if share < self.scorer.least_share || total <= 0.0 {
                    return self.up(node, share, out);
                }
                let both = children.into_iter().zip(weights).filter(|&(_, weight)| weight > 0.0);
                return both.map(|(child, weight)| self.down(child, share * weight / total, out)).sum();
            }
            node = self.tree.counted(node, split, code);
        }
    }

    /// Adds what a node says, and all above it, and returns what is left to the root.
    #[inline]
    fn up(&self, mut node: usize, share: f64, out: &mut [f64]) -> f64 {
        let mut factor = share;
        let mut own = self.own;
        while node > 0 && factor >= NEGLIGIBLE {
            let reached = own.as_mut().is_some_and(|own| own.reaches(node, self.tree.parents));
            let left_out = own.filter(|_| reached);
            let total = f64::from(self.scorer.totals[self.tree.first + node]);
            let (classes, counts) = self.scorer.counts.of(self.tree.first + node);
            let total = (total - left_out.map_or(0.0, |own| own.weight)).max(0.0) + self.scorer.alpha;
            let scale = factor / total;
            if let Some(own) = left_out {
                for (&class, &count) in classes.iter().zip(counts) {
                    let class = class as usize;
                    let own = if class == own.class { own.weight } else { 0.0 };
                    out[class] += scale * (f64::from(count) - own).max(0.0);
                }
            } else {
                for (&class, &count) in classes.iter().zip(counts) {
                    out[class as usize] += scale * f64::from(count);
                }
            }
            factor = scale * self.scorer.alpha;
            node = self.tree.parents[node] as usize;
        }
        factor
    }
}

impl LeftOut {
    /// Whether a node is on the path from the root to the leaf. Nodes above others have lower numbers, and of those that were
    /// asked for before, none needs to be lower than those that come.
    #[inline]
    fn reaches(&mut self, node: usize, parents: &[u32]) -> bool {
        while self.leaf > node {
            self.leaf = parents[self.leaf] as usize;
        }
        self.leaf == node
    }
}
