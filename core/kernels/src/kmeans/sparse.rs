//! Rows of a sparse matrix. Their origin is 0, where most of their cells are.

use super::centres::Centres;
use super::panel::Panel;
use super::points::{Points, Squares};
use super::tile::{Least, ROWS};
use crate::source::Cell;
use crate::sparse::rises;

pub struct Sparse<'a, A> {
    starts: &'a [i64],
    indices: &'a [i32],
    values: &'a [A],
    columns: usize,
    longest: usize,
}

impl<'a, A: Cell> Sparse<'a, A> {
    /// None if the arrays do not fit together.
    pub fn new(starts: &'a [i64], indices: &'a [i32], values: &'a [A], columns: usize) -> Option<Self> {
        let inside = indices.iter().all(|&j| usize::try_from(j).is_ok_and(|j| j < columns));
        let longest = starts.windows(2).map(|pair| (pair[1] - pair[0]).max(0) as usize).max().unwrap_or(0);
        let fits = rises(starts, indices.len()) && indices.len() == values.len() && inside;
        fits.then_some(Self { starts, indices, values, columns, longest })
    }

    #[inline(always)]
    fn cells(&self, row: usize) -> impl Iterator<Item = (usize, f64)> {
        let at = self.starts[row] as usize..self.starts[row + 1] as usize;
        self.indices[at.clone()].iter().zip(&self.values[at]).map(|(&j, x)| (j as usize, x.number()))
    }
}

impl<A: Cell> Points for Sparse<'_, A> {
    type Number = f64;

    fn rows(&self) -> usize {
        self.starts.len() - 1
    }

    fn columns(&self) -> usize {
        self.columns
    }

    fn has_missing(&self) -> bool {
        false
    }

    fn features(&self) -> usize {
        self.longest
    }

    fn new_panel(&self) -> Panel<f64> {
        Panel::new(0, 0)
    }

    #[inline(always)]
    fn load(&self, rows: &[u32], panel: &mut Panel<f64>) {
        let last = rows.len() - 1;
        for r in 0..ROWS {
            let row = rows[r.min(last)];
            panel.rows[r] = row;
            panel.norms[r] = self.cells(row as usize).map(|(_, x)| x * x).sum();
        }
    }

    #[inline(always)]
    fn prefetch(&self, _row: usize) {}

    #[inline(always)]
    fn score(&self, panel: &Panel<f64>, centres: &Centres<f64>, group: usize, out: &mut Least<f64>) {
        let positions = centres.positions(group);
        let mut scores = vec![0.0; positions.len()];
        *out = Least::NONE;
        for (r, &row) in panel.rows.iter().enumerate() {
            scores.copy_from_slice(&centres.begin()[positions.clone()]);
            for (j, x) in self.cells(row as usize) {
                for (score, weight) in scores.iter_mut().zip(&centres.of_column(j)[positions.clone()]) {
                    *score += x * weight;
                }
            }
            for (p, &score) in scores.iter().enumerate() {
                out.take(r, score, positions.start + p);
            }
        }
    }

    fn distance(&self, row: usize, centre: &[f64], norm: f64) -> f64 {
        // Below this share of the centre's square, what is left of it has lost digits that count.
        const SHARE: f64 = 1e-3;
        let (mut square, mut elsewhere) = (0.0, norm);
        for (j, x) in self.cells(row) {
            let (t, c) = (x - centre[j], centre[j]);
            square += t * t;
            elsewhere -= c * c;
        }
        if square + elsewhere >= SHARE * norm {
            return square + elsewhere.max(0.0);
        }
        // Columns rise in a row: those between two of its cells are the ones where it has none.
        let between = |from: usize, to: usize| centre.get(from..to).map_or(0.0, |c| c.iter().map(|c| c * c).sum());
        let mut next = 0;
        for (j, _) in self.cells(row) {
            square += between(next, j);
            next = j + 1;
        }
        square + between(next, centre.len())
    }

    fn add(&self, row: usize, weight: f64, sum: &mut [f64], weights: &mut [f64], squares: &mut Squares) {
        weights[0] += weight;
        for (j, x) in self.cells(row) {
            sum[j] += weight * x;
            squares[0] += weight * x * x;
        }
    }

    fn as_centre(&self, row: usize, out: &mut [f64]) {
        out.fill(0.0);
        for (j, x) in self.cells(row) {
            out[j] += x;
        }
    }

    fn projection(&self, row: usize, direction: &[f64]) -> f64 {
        self.cells(row).map(|(j, x)| direction[j] * x).sum()
    }

    fn equal(&self, one: usize, two: usize) -> bool {
        let there = |row| self.cells(row).filter(|&(_, x)| x != 0.0);
        there(one).eq(there(two))
    }
}
