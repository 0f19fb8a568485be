//! How much each row counts in each class: by its label, or by its responsibilities, p(class | row).

use crate::source::Source;
use std::ops::Range;

/// Which class each row belongs to (−1: none) and how much it counts.
#[derive(Clone, Copy)]
pub struct Assignment<'a> {
    pub classes: usize,
    pub codes: &'a [i32],
    pub weights: Option<&'a [f64]>,
}

impl Assignment<'_> {
    /// The class and weight of a row, if it counts at all.
    #[inline(always)]
    pub fn of(&self, row: usize) -> Option<(usize, f64)> {
        let class = usize::try_from(self.codes[row]).ok()?;
        let weight = self.weights.map_or(1.0, |weights| weights[row]);
        (weight > 0.0).then_some((class, weight))
    }

    /// The rows of each class, in their order.
    pub fn rows_by_class(&self) -> Vec<Vec<u32>> {
        let mut sizes = vec![0; self.classes];
        for row in 0..self.codes.len() {
            if let Some((class, _)) = self.of(row) {
                sizes[class] += 1;
            }
        }
        let mut rows: Vec<Vec<u32>> = sizes.into_iter().map(Vec::with_capacity).collect();
        for row in 0..self.codes.len() {
            if let Some((class, _)) = self.of(row) {
                rows[class].push(row as u32);
            }
        }
        rows
    }
}

/// How much each row counts in each class.
pub trait ClassWeights: Sync {
    fn classes(&self) -> usize;
    /// Calls `f` with each of some classes that a row counts in, and how much it counts there.
    fn each(&self, row: usize, classes: &Range<usize>, f: impl FnMut(usize, f64));
    /// Whether a row counts in one of some classes.
    fn counts(&self, row: usize, classes: &Range<usize>) -> bool;
}

impl ClassWeights for Assignment<'_> {
    fn classes(&self) -> usize {
        self.classes
    }

    #[inline(always)]
    fn each(&self, row: usize, classes: &Range<usize>, mut f: impl FnMut(usize, f64)) {
        if let Some((class, w)) = self.of(row)
            && classes.contains(&class)
        {
            f(class, w);
        }
    }

    #[inline(always)]
    fn counts(&self, row: usize, classes: &Range<usize>) -> bool {
        self.of(row).is_some_and(|(class, _)| classes.contains(&class))
    }
}

/// The responsibility of each class for each row, p(class | row) (rows × classes), and how much the row counts.
#[derive(Clone, Copy)]
pub struct Responsibilities<'a> {
    pub classes: usize,
    pub values: &'a [f64],
    pub weights: Option<&'a [f64]>,
}

/// Responsibilities that are smaller add nothing to a sum of 64 bits, however far the row lies from the class.
const NEGLIGIBLE: f64 = 1e-20;

impl Responsibilities<'_> {
    /// How much a row counts.
    #[inline(always)]
    pub fn weight(&self, row: usize) -> f64 {
        self.weights.map_or(1.0, |weights| weights[row])
    }

    /// The responsibility of each class for a row.
    #[inline(always)]
    pub fn of(&self, row: usize) -> &[f64] {
        &self.values[row * self.classes..(row + 1) * self.classes]
    }

    /// How much a row of some weight counts in a class, by the responsibility of the class.
    #[inline(always)]
    pub fn weighed(responsibility: f64, weight: f64) -> f64 {
        if responsibility > NEGLIGIBLE { weight * responsibility } else { 0.0 }
    }
}

impl ClassWeights for Responsibilities<'_> {
    fn classes(&self) -> usize {
        self.classes
    }

    #[inline(always)]
    fn each(&self, row: usize, classes: &Range<usize>, mut f: impl FnMut(usize, f64)) {
        let weight = self.weight(row);
        if weight > 0.0 {
            let line = &self.values[row * self.classes..][classes.clone()];
            for (i, &responsibility) in
                line.iter().enumerate().filter(|(_, responsibility)| **responsibility > NEGLIGIBLE)
            {
                f(classes.start + i, weight * responsibility);
            }
        }
    }

    #[inline(always)]
    fn counts(&self, row: usize, _: &Range<usize>) -> bool {
        self.weight(row) > 0.0
    }
}

/// How many cells of each class and column its origin is the mean of.
const ORIGIN_CELLS: u8 = 16;

/// A point near the middle of each class, column by column: sums about it lose no digits to a large offset.
/// Zero where a class has no cell in a column.
pub fn origins(source: &Source, assignment: &Assignment) -> Vec<f64> {
    let (rows, width) = (source.rows(), source.width());
    let mut first = vec![0.0; assignment.classes * width];
    let mut shift = vec![0.0; assignment.classes * width];
    let mut cells = vec![0u8; assignment.classes * width];
    let mut wanting = assignment.classes * width;
    // A class whose columns are all served is passed over at the cost of reading its label.
    let mut wanting_in = vec![width; assignment.classes];
    for row in 0..rows {
        if wanting == 0 {
            break;
        }
        let Some((class, _)) = assignment.of(row) else { continue };
        if wanting_in[class] == 0 {
            continue;
        }
        for j in 0..width {
            let at = class * width + j;
            let x = source.cell(row, j);
            if cells[at] == ORIGIN_CELLS || !x.is_finite() {
                continue;
            }
            if cells[at] == 0 {
                first[at] = x;
            }
            shift[at] += (x - first[at]) / f64::from(ORIGIN_CELLS);
            cells[at] += 1;
            if cells[at] == ORIGIN_CELLS {
                wanting -= 1;
                wanting_in[class] -= 1;
            }
        }
    }
    for ((origin, shift), &cells) in first.iter_mut().zip(shift).zip(&cells) {
        let moved = *origin + shift * f64::from(ORIGIN_CELLS) / f64::from(cells.max(1));
        if moved.is_finite() {
            *origin = moved;
        }
    }
    first
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::tests::source;
    use ndarray::array;

    #[test]
    fn an_origin_is_a_mean_of_what_is_there() {
        let x = array![[1e9, f64::NAN], [1e9 + 2.0, 5.0], [7.0, 7.0]];
        let assignment = Assignment { classes: 3, codes: &[0, 0, 1], weights: None };
        assert_eq!(origins(&source(&x), &assignment), [1e9 + 1.0, 5.0, 7.0, 7.0, 0.0, 0.0]);
    }
}
