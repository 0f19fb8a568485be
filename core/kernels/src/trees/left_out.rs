//! Every observed cell without itself: how likely the other cells of its row are, and its distribution given them.
//!
//! By messages up and down a tree, p(x_j, the other cells) is, as a function of x_j, what comes from above times what comes
//! from below. Its sum is p(the other cells), from which the responsibilities of components without the cell follow.

use super::messages::{Prepared, Scratch, dot, ratio};
use super::{Cells, Trees, UNKNOWN};
use crate::threads;
use std::ops::Range;

/// Rows that a thread takes at a time.
const PIECE: usize = 32;
/// A product of messages is divided by its largest number before that is smaller than this.
const SMALL: f64 = 1e-100;

/// Of every observed cell; 0 of others.
#[derive(Default)]
pub struct LeftOut {
    /// rows × columns: log Σ_k exp(others_k) p_k(the other cells)
    pub logs: Vec<f64>,
    /// rows × the levels of all columns, one after the other: the distribution of the cell given the others
    pub found: Vec<f64>,
    /// rows × columns × components: p(component | the other cells)
    pub shares: Vec<f64>,
    /// rows × columns × components: p_k(the column is at its last level | the other cells)
    pub last: Vec<f64>,
}

impl LeftOut {
    fn zeros(rows: usize, columns: usize, components: usize, levels: usize) -> Self {
        let each = rows * columns * components;
        Self {
            logs: vec![0.0; rows * columns],
            found: vec![0.0; rows * levels],
            shares: vec![0.0; each],
            last: vec![0.0; each],
        }
    }

    fn append(&mut self, mut other: Self) {
        self.logs.append(&mut other.logs);
        self.found.append(&mut other.found);
        self.shares.append(&mut other.shares);
        self.last.append(&mut other.last);
    }
}

/// Leaves every observed cell out of its row. `others`: rows × columns × components, logarithms that are added to those of each
/// component without the cell of a column: of its weight, and of whatever else is known.
pub fn left_out(trees: &Trees, cells: &Cells, others: &[f64]) -> LeftOut {
    let (d, k) = (trees.width(), trees.components());
    let rows = cells.codes.len() / d;
    let prepared = Prepared::new(trees, rows);
    let every = vec![true; d];
    let children: Vec<Vec<Vec<usize>>> = (0..k).map(|component| children(trees, component)).collect();
    let pieces = rows.div_ceil(PIECE);
    let found = threads::map(pieces, rows * d * k * 100, |piece| {
        let range = piece * PIECE..((piece + 1) * PIECE).min(rows);
        let one = OnePiece { prepared: &prepared, children: &children, every: &every, cells, others };
        one.left_out(range)
    });
    let mut total = LeftOut::default();
    for part in found {
        total.append(part);
    }
    total
}

fn children(trees: &Trees, component: usize) -> Vec<Vec<usize>> {
    let mut children = vec![vec![]; trees.width()];
    for column in trees.ordered(component) {
        if let Some(parent) = trees.parent(component, column) {
            children[parent].push(column);
        }
    }
    children
}

struct OnePiece<'a> {
    prepared: &'a Prepared<'a>,
    children: &'a [Vec<Vec<usize>>],
    every: &'a [bool],
    cells: &'a Cells<'a>,
    others: &'a [f64],
}

impl OnePiece<'_> {
    fn left_out(&self, range: Range<usize>) -> LeftOut {
        let trees = self.prepared.trees;
        let (d, k, offsets) = (trees.width(), trees.components(), &self.prepared.offsets);
        let all = offsets[d];
        let mut out = LeftOut::zeros(range.len(), d, k, all);
        let mut top = vec![f64::NEG_INFINITY; range.len() * d];
        let mut sums = vec![0.0; range.len() * d];
        let mut scratch = self.prepared.scratch();
        let mut own = vec![0.0; trees.levels.iter().copied().max().unwrap_or(0) as usize];
        for component in 0..k {
            for (i, number) in range.clone().enumerate() {
                let row = &self.cells.codes[number * d..][..d];
                let log = self.prepared.upward(component, row, self.cells.evidence, &mut scratch);
                if log > f64::NEG_INFINITY && row.iter().any(|&code| code < 0) {
                    self.prepared.downward(component, row, self.every, &mut scratch);
                }
                for column in (0..d).filter(|&column| row[column] >= 0) {
                    let own = &mut own[..trees.size(column)];
                    let without = if log > f64::NEG_INFINITY {
                        log + self.cell(component, column, row, &scratch, own)
                    } else {
                        self.hidden(component, column, row, own)
                    };
                    let (cell, at) = (i * d + column, (i * d + column) * k + component);
                    let log = without + self.others[(number * d + column) * k + component];
                    out.shares[at] = log;
                    out.last[at] = own[own.len() - 1];
                    if log == f64::NEG_INFINITY {
                        continue;
                    }
                    let found = &mut out.found[i * all + offsets[column]..][..own.len()];
                    let mut share = (log - top[cell]).exp();
                    if log > top[cell] {
                        let factor = (top[cell] - log).exp();
                        for found in found.iter_mut() {
                            *found *= factor;
                        }
                        (sums[cell], top[cell], share) = (sums[cell] * factor, log, 1.0);
                    }
                    sums[cell] += share;
                    found.iter_mut().zip(own).for_each(|(found, p)| *found += share * *p);
                }
            }
        }
        for (i, number) in range.enumerate() {
            for column in (0..d).filter(|&column| self.cells.codes[number * d + column] >= 0) {
                let cell = i * d + column;
                out.logs[cell] = top[cell] + sums[cell].ln();
                let found = &mut out.found[i * all + offsets[column]..][..trees.size(column)];
                for found in found.iter_mut() {
                    *found = ratio(*found, sums[cell]);
                }
                for share in &mut out.shares[cell * k..][..k] {
                    *share = if sums[cell] > 0.0 { (*share - out.logs[cell]).exp() } else { 1.0 / k as f64 };
                }
            }
        }
        out
    }

    /// The distribution of an observed cell given the others, into `own`, and log p(the others) − log p(all cells).
    fn cell(&self, component: usize, column: usize, row: &[i16], scratch: &Scratch, own: &mut [f64]) -> f64 {
        let (prepared, trees) = (self.prepared, self.prepared.trees);
        let (start, size, x) = (trees.start(component, column), own.len(), row[column] as usize);
        // What the factors are for the cell as it is, and what was divided out of the products.
        let (mut of_cell, mut taken_out) = (0.0, 0.0);
        match trees.parent(component, column).map(|parent| (parent, usize::try_from(row[parent]))) {
            None => {
                own.copy_from_slice(&trees.tables[start..][..size]);
                of_cell += prepared.log(start + x);
            }
            Some((_, Ok(p))) => {
                own.copy_from_slice(&trees.tables[start + p * size..][..size]);
                of_cell += prepared.log(start + p * size + x);
            }
            Some((parent, Err(_))) => {
                own.fill(0.0);
                let above = &scratch.posterior[prepared.offsets[parent]..][..trees.size(parent)];
                for (above, line) in above.iter().zip(trees.tables[start..].chunks_exact(size)) {
                    let without = ratio(*above, line[x]);
                    if without != 0.0 {
                        own.iter_mut().zip(line).for_each(|(own, t)| *own += without * t);
                    }
                }
                of_cell += own[x].ln();
            }
        }
        for &child in &self.children[component][column] {
            let (start, below) = (trees.start(component, child), trees.size(child));
            if let Ok(y) = usize::try_from(row[child]) {
                let message = prepared.message(start, y, size);
                own.iter_mut().zip(message).for_each(|(own, m)| *own *= m);
                of_cell += prepared.log(start + x * below + y);
            } else if let Some(belief) = scratch.belief_of(child, prepared.offsets[child], below) {
                for (level, (own, line)) in own.iter_mut().zip(trees.tables[start..].chunks_exact(below)).enumerate() {
                    let message = dot(line, belief);
                    *own *= message;
                    if level == x {
                        of_cell += message.ln();
                    }
                }
            } else {
                continue; // nothing is known there
            }
            let largest = own.iter().copied().fold(0.0, f64::max);
            if largest < SMALL && largest > 0.0 {
                for own in own.iter_mut() {
                    *own /= largest;
                }
                taken_out += largest.ln();
            }
        }
        let total: f64 = own.iter().sum();
        for own in own.iter_mut() {
            *own = ratio(*own, total);
        }
        total.ln() + taken_out - of_cell
    }

    /// The same of a row that is impossible as it is, where it says nothing of the row without the cell: the cell is hidden.
    /// Returns log p(the others).
    fn hidden(&self, component: usize, column: usize, row: &[i16], own: &mut [f64]) -> f64 {
        let mut row = row.to_vec();
        row[column] = UNKNOWN;
        let mut scratch = self.prepared.scratch();
        let log = self.prepared.upward(component, &row, self.cells.evidence, &mut scratch);
        own.fill(0.0);
        if log > f64::NEG_INFINITY {
            self.prepared.downward(component, &row, self.every, &mut scratch);
            own.copy_from_slice(&scratch.posterior[self.prepared.offsets[column]..][..own.len()]);
        }
        log
    }
}

#[cfg(test)]
mod tests {
    use super::super::messages::tests::{LEVELS, SOFT, rows, tables, tree};
    use super::super::messages::{log_densities, marginals};
    use super::*;

    /// Each cell hidden by itself, as it is asked for column by column.
    fn check(tables: &[f64]) {
        let trees = tree(tables);
        let codes = rows();
        let others = |cell: usize| (cell % 7) as f64 / 3.0;
        let given: Vec<f64> = (0..codes.len()).map(others).collect();
        let got = left_out(&trees, &Cells { codes: &codes, evidence: Some(&SOFT) }, &given);
        let mut at = 0;
        for (column, &size) in LEVELS.iter().enumerate() {
            let size = size as usize;
            let mut hidden = codes.clone();
            hidden.iter_mut().skip(column).step_by(4).for_each(|code| *code = if *code >= 0 { UNKNOWN } else { *code });
            let cells = Cells { codes: &hidden, evidence: Some(&SOFT) };
            let logs = log_densities(&trees, &cells);
            let want = marginals(&trees, &cells, &vec![1.0; logs.len()], &[column]);
            for (row, code) in codes.iter().skip(column).step_by(4).enumerate() {
                let found = &got.found[row * 11 + at..][..size];
                if *code < 0 {
                    assert!(found.iter().all(|&p| p == 0.0));
                    continue;
                }
                let (log, want_log) = (got.logs[row * 4 + column], logs[row] + others(row * 4 + column));
                assert!(log == want_log || (log - want_log).abs() < 1e-13, "{row} {column} {log} {want_log}");
                if want_log > f64::NEG_INFINITY {
                    for (got, want) in found.iter().zip(&want[row * size..][..size]) {
                        assert!((got - want).abs() < 1e-13, "{row} {column} {got} {want}");
                    }
                    assert_eq!(got.last[row * 4 + column], found[size - 1]);
                }
                assert_eq!(got.shares[row * 4 + column], 1.0);
            }
            at += size;
        }
    }

    #[test]
    fn a_cell_that_is_left_out_is_a_cell_that_is_hidden() {
        let mut tables = tables();
        check(&tables);
        // A level of the root that cannot be: rows that have it are impossible, but not without that cell.
        tables[..2].copy_from_slice(&[0.0, 1.0]);
        check(&tables);
    }
}
