//! Forests on tiny data, against what can be counted by hand.

use super::counts::{Sparse, SparseView, at_leaves, at_nodes};
use super::grow::{Grown, Kind, grow};
use super::score::{Own, Scorer, probabilities};
use super::{Cells, Forest, LEAF, Labels, Layout, MISSING, NEVER, Nodes, Sampling, UNKNOWN, WORDS, holds, mix};
use crate::threads;
use std::sync::atomic::AtomicBool;

struct Data {
    codes: Vec<u8>,
    categories: Vec<bool>,
    classes: Vec<i32>,
    weights: Option<Vec<f64>>,
    hashes: Vec<u64>,
    k: usize,
}

impl Data {
    /// Rows at random: a column of few numbers, one of categories, both with missing cells, one without, and a constant one.
    fn new(rows: usize, k: usize, seed: u64) -> Self {
        let drawn = |row: usize, column: u64, below: u64| mix(seed ^ mix(row as u64 * 8 + column)) % below;
        let mut codes = Vec::new();
        for row in 0..rows {
            let class = drawn(row, 7, k as u64);
            codes.push((drawn(row, 0, 5) + if drawn(row, 4, 2) == 0 { class } else { 0 }) as u8);
            codes.push((drawn(row, 1, 6) * 50) as u8);
            codes.push(1 + (drawn(row, 2, 9) + class) as u8);
            codes.push(3);
        }
        Self {
            codes,
            categories: vec![false, true, false, false],
            classes: (0..rows).map(|row| drawn(row, 7, k as u64) as i32).collect(),
            weights: None,
            hashes: (0..rows).map(|row| mix(seed + row as u64)).collect(),
            k,
        }
    }

    fn cells(&self) -> Cells<'_> {
        Cells { codes: &self.codes, width: 4 }
    }

    fn labels(&self) -> Labels<'_> {
        Labels { classes: self.k, codes: &self.classes, weights: self.weights.as_deref() }
    }

    fn sampling(&self, rate: f64) -> Sampling<'_> {
        Sampling { hashes: &self.hashes, rate, seed: 5 }
    }

    fn grown(&self, rate: f64, kinds: &[Kind]) -> Grown {
        grow(self.cells(), &self.categories, &self.labels(), &self.sampling(rate), kinds, &AtomicBool::new(false))
    }

    fn row(&self, row: usize) -> &[u8] {
        &self.codes[row * 4..][..4]
    }

    /// These rows, some of them again and again, in another order.
    fn taken(&self, rows: &[usize]) -> Self {
        Self {
            codes: rows.iter().flat_map(|&row| self.row(row)).copied().collect(),
            categories: self.categories.clone(),
            classes: rows.iter().map(|&row| self.classes[row]).collect(),
            weights: self.weights.as_ref().map(|weights| rows.iter().map(|&row| weights[row]).collect()),
            hashes: rows.iter().map(|&row| self.hashes[row]).collect(),
            k: self.k,
        }
    }
}

fn nodes(grown: &Grown) -> Nodes<'_> {
    Nodes {
        starts: &grown.starts,
        features: &grown.features,
        cuts: &grown.cuts,
        missing: &grown.missing,
        masks: &grown.masks,
    }
}

fn same(one: &Grown, other: &Grown) -> bool {
    one.starts == other.starts
        && one.features == other.features
        && one.cuts == other.cuts
        && one.missing == other.missing
        && one.masks == other.masks
}

const BOTH: [Kind; 2] = [Kind { trees: 6, columns: 2, random: false }, Kind { trees: 6, columns: 2, random: true }];
const BEST: [Kind; 1] = [Kind { trees: 1, columns: 4, random: false }];

/// A smaller share of a row stays where it is.
const LEAST: f64 = 0.03;

/// −Σ n_k log (n_k / n) of some weights.
fn length(counts: &[f64]) -> f64 {
    let n: f64 = counts.iter().sum();
    counts.iter().filter(|&&count| count > 0.0).map(|&count| -count * (count / n).ln()).sum()
}

/// What is gained if these rows, of some, go to the left.
fn gain(data: &Data, rows: &[usize], left: impl Fn(usize) -> bool) -> f64 {
    let mut counts = [vec![0.0; data.k], vec![0.0; data.k], vec![0.0; data.k]];
    for &row in rows {
        let (class, weight) = (data.classes[row] as usize, data.labels().weight(row));
        counts[0][class] += weight;
        counts[1 + usize::from(left(row))][class] += weight;
    }
    length(&counts[0]) - length(&counts[1]) - length(&counts[2])
}

/// The largest gain of all cuts of numbers and all sets of categories, with missing cells on either side.
fn best_gain(data: &Data, rows: &[usize]) -> f64 {
    let mut best: f64 = 0.0;
    for column in 0..4 {
        let mut levels: Vec<u8> = rows.iter().map(|&row| data.row(row)[column]).filter(|&code| code > 0).collect();
        levels.sort_unstable();
        levels.dedup();
        let sets: Vec<u32> = if data.categories[column] {
            (0..1 << levels.len()).collect()
        } else {
            (0..=levels.len()).map(|cut| (1 << cut) - 1).collect()
        };
        for set in sets {
            for missing in [true, false] {
                let left = |row: usize| match levels.iter().position(|&code| code == data.row(row)[column]) {
                    Some(level) => set >> level & 1 == 1,
                    None => missing,
                };
                best = best.max(gain(data, rows, left));
            }
        }
    }
    best
}

/// Where a row goes at a split: to the left, to the right, or to both sides.
fn side(grown: &Grown, categories: &[bool], node: usize, row: &[u8]) -> Option<bool> {
    let column = usize::from(grown.features[node]);
    let code = row[column];
    if code == MISSING || code == UNKNOWN {
        let by_shares = code == UNKNOWN || grown.missing[node] & NEVER != 0;
        return (!by_shares).then_some(grown.missing[node] & 1 == 1);
    }
    if !categories[column] {
        return Some(code <= grown.cuts[node]);
    }
    let mask = (0..node).filter(|&v| grown.features[v] != LEAF && categories[usize::from(grown.features[v])]).count();
    Some(holds(&grown.masks[mask * WORDS..], code))
}

/// The children of a node among all: each split has the next two nodes of its tree.
fn children(grown: &Grown, node: usize) -> [usize; 2] {
    let first = *grown.starts.iter().rfind(|&&start| start as usize <= node).unwrap() as usize;
    let splits = (first..node).filter(|&v| grown.features[v] != LEAF).count();
    [first + 2 * splits + 1, first + 2 * splits + 2]
}

/// The rows counted at each node.
fn rows_of_nodes(data: &Data, grown: &Grown) -> Vec<Vec<usize>> {
    let mut found = vec![Vec::new(); grown.features.len()];
    for &start in &grown.starts[..grown.starts.len() - 1] {
        for row in 0..data.classes.len() {
            let mut node = start as usize;
            loop {
                found[node].push(row);
                if grown.features[node] == LEAF {
                    break;
                }
                let counted = side(grown, &data.categories, node, data.row(row));
                let left = counted.unwrap_or(grown.missing[node] & 1 == 1);
                node = children(grown, node)[usize::from(!left)];
            }
        }
    }
    found
}

fn layout(grown: &Grown, data: &Data) -> Layout {
    Layout::of(nodes(grown), &data.categories).unwrap()
}

fn forest<'a>(grown: &'a Grown, layout: &'a Layout) -> Forest<'a> {
    let Layout { splits, parents, numbers } = layout;
    Forest { starts: &grown.starts, splits, parents, numbers, masks: &grown.masks }
}

#[test]
fn splits_have_the_largest_gain() {
    for (k, seed) in [(2, 1), (2, 2), (3, 3), (4, 4)] {
        for weighted in [false, true] {
            let mut data = Data::new(60, k, seed);
            data.weights = weighted.then(|| (0..60).map(|row| 0.5 + f64::from(row % 3)).collect());
            if k > 2 {
                data.categories[1] = false; // ordered by class weights, not all sets of categories are tried
            }
            let grown = data.grown(1.0, &BEST);
            let mut splits = 0;
            for (node, rows) in rows_of_nodes(&data, &grown).iter().enumerate() {
                let best = best_gain(&data, rows);
                if grown.features[node] == LEAF {
                    assert!(best < 1e-6, "{best}");
                } else {
                    let [left, _] = children(&grown, node);
                    let of_left = &rows_of_nodes(&data, &grown)[left];
                    assert!((gain(&data, rows, |row| of_left.contains(&row)) - best).abs() < 1e-9);
                    splits += 1;
                }
            }
            assert!(splits > 10);
        }
    }
}

#[test]
fn a_random_cut_is_a_split_of_the_rows_that_gains() {
    let data = Data::new(80, 3, 9);
    let grown = data.grown(1.0, &[Kind { trees: 5, columns: 2, random: true }]);
    let of_nodes = rows_of_nodes(&data, &grown);
    for (node, rows) in of_nodes.iter().enumerate() {
        if grown.features[node] != LEAF {
            let [left, right] = children(&grown, node);
            assert!(!of_nodes[left].is_empty() && !of_nodes[right].is_empty());
            assert!(gain(&data, rows, |row| of_nodes[left].contains(&row)) > 0.0);
        }
    }
}

#[test]
fn neither_order_nor_copies_nor_threads_matter() {
    let data = Data::new(300, 3, 11);
    let counts: Vec<usize> = (0..300).map(|row| (mix(row as u64) % 4) as usize).collect();
    let rows: Vec<usize> = (0..300).flat_map(|row| std::iter::repeat_n(row, counts[row])).collect();
    let mut order = rows.clone();
    order.sort_by_key(|&row| mix(row as u64 + 77));
    let weighed = Data {
        weights: Some(counts.iter().map(|&count| count as f64).collect()),
        ..data.taken(&(0..300).collect::<Vec<_>>())
    };
    let expected = data.taken(&rows).grown(0.632, &BOTH);
    assert!(same(&expected, &data.taken(&order).grown(0.632, &BOTH)));
    assert!(same(&expected, &weighed.grown(0.632, &BOTH)));
    let mut thirds = weighed.taken(&(0..300).rev().collect::<Vec<_>>());
    thirds.weights.as_mut().unwrap().iter_mut().for_each(|weight| *weight /= 3.0);
    let of_thirds = thirds.grown(0.632, &BOTH);
    threads::set_threads(Some(3));
    assert!(same(&expected, &weighed.grown(0.632, &BOTH)));
    assert!(same(&of_thirds, &thirds.grown(0.632, &BOTH)));
    threads::set_threads(None);
}

fn counted(data: &Data, grown: &Grown) -> (Sparse<f64>, Sparse<f32>, Vec<f32>) {
    let layout = layout(grown, data);
    let forest = forest(grown, &layout);
    let leaves = at_leaves(&forest, data.cells(), &data.labels());
    let view = SparseView { starts: &leaves.starts, classes: &leaves.classes, values: &leaves.values };
    assert!(view.fits(forest.leaves(), data.k));
    let (of_nodes, totals) = at_nodes(&forest, view);
    (leaves, of_nodes, totals)
}

#[test]
fn counts_are_of_all_rows() {
    let mut data = Data::new(150, 4, 13);
    data.weights = Some((0..150).map(|row| f64::from(row % 4)).collect());
    let grown = data.grown(0.5, &BOTH);
    let (_, of_nodes, totals) = counted(&data, &grown);
    for (node, rows) in rows_of_nodes(&data, &grown).iter().enumerate() {
        let mut expected = vec![0.0; 4];
        for &row in rows {
            expected[data.classes[row] as usize] += data.labels().weight(row);
        }
        let own = of_nodes.starts[node] as usize..of_nodes.starts[node + 1] as usize;
        let mut found = vec![0.0; 4];
        for (&class, &value) in of_nodes.classes[own.clone()].iter().zip(&of_nodes.values[own]) {
            found[class as usize] += f64::from(value);
        }
        assert_eq!(found, expected);
        assert_eq!(f64::from(totals[node]), expected.iter().sum::<f64>());
    }
}

/// p(class) of a row by one tree, from rows at every node, some left out, and p of the node above.
fn expected(
    data: &Data,
    grown: &Grown,
    of_nodes: &[Vec<usize>],
    at: usize,
    row: &[u8],
    out: Option<usize>,
    above: &[f64],
    share: f64,
) -> Vec<f64> {
    let counts = |node: usize| {
        let mut counts = vec![0.0; data.k];
        for &each in of_nodes[node].iter().filter(|&&each| Some(each) != out) {
            counts[data.classes[each] as usize] += data.labels().weight(each);
        }
        counts
    };
    let own = counts(at);
    let n: f64 = own.iter().sum();
    let is_root = grown.starts.contains(&(at as i64));
    let p: Vec<f64> = if is_root {
        own.iter().map(|count| (count + 0.5) / (n + 0.5 * data.k as f64)).collect()
    } else {
        own.iter().zip(above).map(|(count, p)| (count + 0.25 * p) / (n + 0.25)).collect()
    };
    if grown.features[at] == LEAF {
        return p;
    }
    let [left, right] = children(grown, at);
    if let Some(to_left) = side(grown, &data.categories, at, row) {
        return expected(data, grown, of_nodes, if to_left { left } else { right }, row, out, &p, share);
    }
    let weights = [left, right].map(|child| counts(child).iter().sum::<f64>());
    if share < LEAST || weights[0] + weights[1] == 0.0 {
        return p;
    }
    let mut mixed = vec![0.0; data.k];
    for (child, weight) in [left, right].into_iter().zip(weights) {
        let part = weight / (weights[0] + weights[1]);
        if part > 0.0 {
            let found = expected(data, grown, of_nodes, child, row, out, &p, share * part);
            mixed.iter_mut().zip(found).for_each(|(mixed, p)| *mixed += part * p);
        }
    }
    mixed
}

#[test]
fn probabilities_are_means_of_smoothed_leaves() {
    let mut data = Data::new(120, 3, 17);
    data.weights = Some((0..120).map(|row| 1.0 + f64::from(row % 2)).collect());
    let grown = data.grown(0.632, &BOTH);
    let (_, counts, totals) = counted(&data, &grown);
    let layout = layout(&grown, &data);
    let forest = forest(&grown, &layout);
    let counts = SparseView { starts: &counts.starts, classes: &counts.classes, values: &counts.values };
    let scorer = Scorer { forest, counts, totals: &totals, classes: 3, alpha: 0.25, least_share: LEAST };
    let of_nodes = rows_of_nodes(&data, &grown);
    // rows as they are, and with cells that are missing where none was, or say nothing
    let mut hidden = data.codes.clone();
    hidden
        .iter_mut()
        .enumerate()
        .filter(|(i, _)| mix(*i as u64).is_multiple_of(3))
        .for_each(|(i, code)| *code = (i % 2) as u8 * UNKNOWN);
    let own = Own { cells: data.cells(), labels: data.labels(), sampling: data.sampling(0.632) };
    for codes in [&data.codes, &hidden] {
        let cells = Cells { codes, width: 4 };
        for out in [false, true] {
            let found = probabilities(&scorer, cells, out.then_some(&own));
            for row in 0..120 {
                let trees: Vec<usize> = (0..12)
                    .filter(|&tree| !out || !own.sampling.takes(data.hashes[row], own.sampling.of_tree(tree)))
                    .collect();
                let mut mean = vec![0.0; 3];
                for &tree in &trees {
                    let left_out = out.then_some(row);
                    let root = grown.starts[tree] as usize;
                    let p = expected(&data, &grown, &of_nodes, root, cells.row(row), left_out, &[], 1.0);
                    mean.iter_mut().zip(p).for_each(|(mean, p)| *mean += p / trees.len() as f64);
                }
                if trees.is_empty() {
                    continue;
                }
                for (found, mean) in found[row * 3..][..3].iter().zip(mean) {
                    assert!((found - mean).abs() < 1e-6, "{found} {mean}");
                }
            }
        }
    }
}

#[test]
fn no_rows_and_one_class_are_a_single_leaf() {
    for (rows, classes) in [(0, 2), (1, 2), (30, 1)] {
        let data = Data { k: classes, classes: vec![0; rows], ..Data::new(rows, classes, 3) };
        let grown = data.grown(0.632, &BOTH);
        assert_eq!(grown.features, [LEAF; 12]);
        let (_, counts, totals) = counted(&data, &grown);
        let layout = layout(&grown, &data);
        let forest = forest(&grown, &layout);
        let counts = SparseView { starts: &counts.starts, classes: &counts.classes, values: &counts.values };
        let scorer = Scorer { forest, counts, totals: &totals, classes, alpha: 0.25, least_share: LEAST };
        let found = probabilities(&scorer, Cells { codes: &[0, 1, 2, 3], width: 4 }, None);
        let n = rows as f64;
        assert!((found[0] - (n + 0.5) / (n + 0.5 * classes as f64)).abs() < 1e-12);
    }
}

#[test]
fn broken_trees_are_refused() {
    let data = Data::new(60, 3, 19);
    let whole = || data.grown(0.632, &BOTH);
    let fits = |grown: &Grown| Layout::of(nodes(grown), &data.categories).is_some();
    assert!(fits(&whole()));
    let broken: [fn(&mut Grown); 8] = [
        |grown| grown.features[0] = LEAF,
        |grown| grown.features[0] = 4,
        |grown| grown.starts[1] += 1,
        |grown| grown.starts.clear(),
        |grown| grown.missing[0] = 4,
        |grown| grown.masks.truncate(4),
        |grown| _ = grown.cuts.pop(),
        |grown| *grown.features.last_mut().unwrap() = 0,
    ];
    for change in broken {
        let mut grown = whole();
        change(&mut grown);
        assert!(!fits(&grown));
    }
    // a tree that is but a path
    let deep = |depth: usize| Grown {
        starts: vec![0, 2 * depth as i64 + 1],
        features: (0..=2 * depth).map(|node| if node % 2 == 0 && node < 2 * depth { 0 } else { LEAF }).collect(),
        cuts: vec![1; 2 * depth + 1],
        missing: vec![0; 2 * depth + 1],
        masks: Vec::new(),
    };
    assert!(fits(&deep(60)) && !fits(&deep(61)));
}
