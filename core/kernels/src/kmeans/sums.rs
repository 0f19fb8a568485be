//! Sums of the rows of each cluster, of which rows are added and taken away, with what rounding took from them.

use super::points::{Points, Squares};

/// The sum of each cluster's rows less the origin, and their weights: one for each column if cells may be missing.
#[derive(Clone)]
pub struct Sums {
    pub sum: Vec<f64>,
    pub weight: Vec<f64>,
    /// how many rows each cluster has: no rounding can hide that it has none
    pub rows: Vec<i64>,
    /// of each cluster what its rows weigh, and weigh times how far they are from the origin
    mass: Vec<[f64; 2]>,
    /// the same of all rows that ever came or went, which is what rounding may have taken its share of
    gross: Vec<[f64; 2]>,
    /// of rows without missing cells the cells' squares about the origin, added up
    squares: Squares,
    columns: usize,
    weights: usize,
}

impl Sums {
    pub fn zero(clusters: usize, columns: usize, missing: bool) -> Self {
        let weights = if missing { columns } else { 1 };
        let (sum, weight) = (vec![0.0; clusters * columns], vec![0.0; clusters * weights]);
        let none = vec![[0.0; 2]; clusters];
        Self {
            sum,
            weight,
            rows: vec![0; clusters],
            mass: none.clone(),
            gross: none,
            squares: Squares::default(),
            columns,
            weights,
        }
    }

    /// Adds a row to a cluster; a negative weight takes it away. `far`: about how far the row is from the origin.
    #[inline(always)]
    pub fn add<P: Points>(&mut self, points: &P, row: usize, weight: f64, cluster: usize, far: f64) {
        let sum = &mut self.sum[cluster * self.columns..(cluster + 1) * self.columns];
        let weights = &mut self.weight[cluster * self.weights..(cluster + 1) * self.weights];
        if weight == 0.0 {
            return;
        }
        self.rows[cluster] += if weight > 0.0 { 1 } else { -1 };
        for (i, more) in [weight, weight * far].into_iter().enumerate() {
            self.mass[cluster][i] += more;
            self.gross[cluster][i] += more.abs();
        }
        points.add(row, weight, sum, weights, &mut self.squares);
    }

    /// The mean of each cluster's cells, or where there is none the coordinate that it had.
    pub fn means(&self, before: &[f64]) -> Vec<f64> {
        let weight = |i: usize| self.weight[if self.weights == 1 { i / self.columns } else { i }];
        let known = |i: usize| self.rows[i / self.columns] > 0 && weight(i) > 0.0;
        let mean = |(i, &sum): (usize, &f64)| if known(i) { sum / weight(i) } else { before[i] };
        self.sum.iter().enumerate().map(mean).collect()
    }
}

/// Sums to which others were added: rounding is kept aside, so that rows that come and go leave no trace.
pub struct Total {
    pub sums: Sums,
    lost: Sums,
}

impl Total {
    pub fn new(clusters: usize, columns: usize, missing: bool) -> Self {
        let sums = Sums::zero(clusters, columns, missing);
        Self { lost: sums.clone(), sums }
    }

    pub fn take(&mut self, part: &Sums) {
        add_exactly(&mut self.sums.sum, &mut self.lost.sum, &part.sum);
        add_exactly(&mut self.sums.weight, &mut self.lost.weight, &part.weight);
        for (rows, more) in self.sums.rows.iter_mut().zip(&part.rows) {
            *rows += more;
        }
        let both = self.sums.mass.iter_mut().chain(&mut self.sums.gross);
        for (all, more) in both.zip(part.mass.iter().chain(&part.gross)) {
            *all = [all[0] + more[0], all[1] + more[1]];
        }
        for (square, more) in self.sums.squares.iter_mut().zip(&part.squares) {
            *square += more;
        }
    }

    /// Whether so much has come and gone of some cluster that rounding may show in what is left: the rows are to be
    /// added up anew.
    pub fn worn(&self) -> bool {
        const MOST: f64 = 1e4;
        let all = self.sums.mass.iter().zip(&self.sums.gross).zip(&self.sums.rows);
        all.filter(|(_, rows)| **rows > 0).any(|((mass, gross), _)| (0..2).any(|i| gross[i] > MOST * mass[i]))
    }

    /// The squared distances of rows without missing cells from their centres, each times its weight, added up; none if they
    /// are so much less than the squares from which they are found that digits would be lacking.
    pub fn inertia(&self, centres: &[f64]) -> Option<f64> {
        const SHARE: f64 = 1.0 / 64.0;
        let whole = self.restored();
        let of = |(c, (centre, sum)): (usize, (&[f64], &[f64]))| -> f64 {
            centre.iter().zip(sum).map(|(x, s)| x * (whole.weight[c] * x - 2.0 * s)).sum()
        };
        let lines = centres.chunks_exact(whole.columns).zip(whole.sum.chunks_exact(whole.columns));
        let square: f64 = whole.squares.iter().sum();
        let inertia = square + lines.enumerate().map(of).sum::<f64>();
        (inertia > SHARE * square && inertia.is_finite()).then_some(inertia)
    }

    /// The sums with what rounding took.
    pub fn restored(&self) -> Sums {
        let mut whole = self.sums.clone();
        for (x, lost) in whole.sum.iter_mut().zip(&self.lost.sum) {
            *x += lost;
        }
        for (x, lost) in whole.weight.iter_mut().zip(&self.lost.weight) {
            *x += lost;
        }
        whole
    }
}

fn add_exactly(sums: &mut [f64], lost: &mut [f64], part: &[f64]) {
    for ((sum, lost), &b) in sums.iter_mut().zip(lost).zip(part) {
        let a = *sum;
        let total = a + b;
        let virtually = total - a;
        *lost += (a - (total - virtually)) + (b - virtually); // Knuth's two-sum: exact
        *sum = total;
    }
}
