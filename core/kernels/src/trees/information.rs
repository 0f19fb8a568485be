//! Pairs of columns: how often levels come together, and the mutual information that says how much they depend on each other.

use super::UNKNOWN;
use crate::threads;

/// Columns of levels, column after column, and how many levels each has.
pub struct Columns<'a> {
    pub codes: &'a [i16],
    pub rows: usize,
    pub levels: &'a [i32],
}

impl Columns<'_> {
    fn column(&self, column: usize) -> &[i16] {
        &self.codes[column * self.rows..][..self.rows]
    }

    pub fn fit(&self) -> bool {
        self.codes.len() == self.rows * self.levels.len()
            && self.levels.iter().enumerate().all(|(column, &size)| {
                (1..=i32::from(i16::MAX)).contains(&size)
                    && self.column(column).iter().all(|&code| code >= UNKNOWN && i32::from(code) < size)
            })
    }

    /// Counts of a pair of columns in rows where both are there: one table for each column of weights (rows × k).
    fn counted(&self, (one, other): (usize, usize), weights: Option<&[f64]>, k: usize) -> Vec<f64> {
        let width = self.levels[other] as usize;
        let mut counts = vec![0.0; k * self.levels[one] as usize * width];
        let pairs = self.column(one).iter().zip(self.column(other)).enumerate();
        for (row, (&i, &j)) in pairs {
            if i >= 0 && j >= 0 {
                let at = (i as usize * width + j as usize) * k;
                match weights {
                    None => counts[at] += 1.0,
                    Some(weights) => {
                        counts[at..at + k].iter_mut().zip(&weights[row * k..]).for_each(|(count, w)| *count += w);
                    }
                }
            }
        }
        counts
    }
}

/// Σ w over rows with both levels, of every pair of columns, one table after the other.
pub fn pair_counts(columns: &Columns, pairs: &[(usize, usize)], weights: Option<&[f64]>) -> Vec<f64> {
    let tables =
        threads::map(pairs.len(), pairs.len() * columns.rows * 2, |pair| columns.counted(pairs[pair], weights, 1));
    tables.concat()
}

/// The mutual information of every pair of columns, pairs × k, and the weight of rows that it was found in: for every column
/// of weights (rows × k), or for rows that count once. It is less the bias of finite samples (Miller and Madow), and not below 0.
pub fn mutual_information(
    columns: &Columns,
    pairs: &[(usize, usize)],
    weights: Option<&[f64]>,
    k: usize,
) -> (Vec<f64>, Vec<f64>) {
    let found = threads::map(pairs.len(), pairs.len() * columns.rows * (k + 1), |pair| {
        let counts = columns.counted(pairs[pair], weights, k);
        let (rows, width) = (columns.levels[pairs[pair].0] as usize, columns.levels[pairs[pair].1] as usize);
        let each = (0..k).map(|component| {
            let one: Vec<f64> = counts.iter().skip(component).step_by(k).copied().collect();
            information(&one, rows, width)
        });
        each.collect::<Vec<_>>()
    });
    found.into_iter().flatten().unzip()
}

/// The mutual information of a table of counts, and their sum.
pub fn information(counts: &[f64], rows: usize, width: usize) -> (f64, f64) {
    let mut across = vec![0.0; width];
    let mut down = vec![0.0; rows];
    for (line, down) in counts.chunks_exact(width).zip(&mut down) {
        for (count, across) in line.iter().zip(&mut across) {
            *down += count;
            *across += count;
        }
    }
    let total: f64 = down.iter().sum();
    if total <= 0.0 {
        return (0.0, 0.0);
    }
    // Σ N log(N n / (N_i N_j)) / n
    let mut sum = 0.0;
    for (line, down) in counts.chunks_exact(width).zip(&down) {
        for (&count, across) in line.iter().zip(&across) {
            if count > 0.0 {
                sum += count * (count * total / (down * across)).ln();
            }
        }
    }
    let seen = |sums: &[f64]| sums.iter().filter(|&&sum| sum > 0.5).count().saturating_sub(1) as f64;
    let bias = seen(&down) * seen(&across) / (2.0 * total);
    ((sum / total - bias).max(0.0), total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn information_of_copies_and_of_independent_columns() {
        let codes: Vec<i16> =
            (0..400).map(|i| i % 4).chain((0..400).map(|i| i % 4)).chain((0..400).map(|i| i / 100)).collect();
        let columns = Columns { codes: &codes, rows: 400, levels: &[4, 4, 4] };
        assert!(columns.fit());
        let (found, weight) = mutual_information(&columns, &[(1, 0), (2, 0)], None, 1);
        let bias = 9.0 / 800.0;
        assert!((found[0] - (4f64.ln() - bias)).abs() < 1e-14);
        assert_eq!((found[1], &weight[..]), (0.0, &[400.0, 400.0][..]));
        let counts = pair_counts(&columns, &[(2, 0)], None);
        assert!(counts.iter().all(|&count| count == 25.0));
        let halves = vec![0.5; 800];
        let (weighted, weight) = mutual_information(&columns, &[(1, 0)], Some(&halves), 2);
        assert_eq!(weight, [200.0, 200.0]);
        assert!((weighted[1] - (4f64.ln() - 9.0 / 400.0)).abs() < 1e-14);
    }
}
