//! Centres in groups of neighbours, as they are multiplied, how far they lie apart, and how far they have moved.

use super::points::Points;
use super::real::Real;
use super::tile::{EVEN, Least, Packed, ROWS, run_length};
use crate::threads;

/// No centre: what fills a group up.
const NOBODY: u32 = u32::MAX;

/// Centres of a group, about. Larger groups need less memory for bounds and are passed over less often.
const GROUP: usize = 32;
/// Up to so many products for a row, to score all centres takes less time than to find out which ones need not be.
const CHEAP: usize = 8000;
/// Groups at most: for every row there is a bound on each.
const MOST_GROUPS: usize = 32;

/// Adds a little to a number so that rounding in float32 cannot have made it too small.
#[inline(always)]
pub fn upwards(x: f64) -> f32 {
    (x * (1.0 + 1e-6)) as f32
}

/// Takes a little from a number so that rounding in float32 cannot have made it too large.
#[inline(always)]
pub fn downwards(x: f64) -> f32 {
    (x * (1.0 - 1e-6)) as f32
}

pub struct Centres<T> {
    pub number: usize,
    columns: usize,
    missing: bool,
    transposed: bool,
    /// centres × columns, less the origin
    pub values: Vec<f64>,
    /// the centre at each position; the positions of a group follow each other
    centre_at: Vec<u32>,
    pub position_of: Vec<u32>,
    pub group_of: Vec<u32>,
    /// where each group's positions begin, and the last ends
    starts: Vec<usize>,
    weights: Vec<T>,
    begin: Vec<T>,
    /// their squared norms, and the largest norm
    pub norms: Vec<f64>,
    pub reach: f64,
    /// centres × groups: less than the distance to any other centre of the group; empty if cells may be missing
    pub between: Vec<f32>,
    /// half of the least of them; 0 if cells may be missing
    pub half: Vec<f32>,
    /// of each centre how far it has moved altogether, and of each group the farthest that one of it did every time
    pub moved: Vec<f32>,
    pub group_moved: Vec<f32>,
    moved_exactly: Vec<f64>,
    group_moved_exactly: Vec<f64>,
}

impl<T: Real> Centres<T> {
    /// `transposed`: weights are kept position by position for each column, for sparse rows.
    pub fn new(values: Vec<f64>, columns: usize, missing: bool, transposed: bool) -> Self {
        let number = values.len() / columns;
        let groups =
            if number <= GROUP || number * columns <= CHEAP { 1 } else { number.div_ceil(GROUP).min(MOST_GROUPS) };
        let mut centres = Self {
            number,
            columns,
            missing,
            transposed,
            values,
            centre_at: vec![],
            position_of: vec![0; number],
            group_of: vec![0; number],
            starts: vec![],
            weights: vec![],
            begin: vec![],
            norms: vec![],
            reach: 0.0,
            between: vec![],
            half: vec![0.0; number],
            moved: vec![0.0; number],
            group_moved: vec![0.0; groups],
            moved_exactly: vec![0.0; number],
            group_moved_exactly: vec![0.0; groups],
        };
        centres.regroup();
        centres
    }

    pub fn groups(&self) -> usize {
        self.group_moved.len()
    }

    pub fn value(&self, centre: usize) -> &[f64] {
        &self.values[centre * self.columns..(centre + 1) * self.columns]
    }

    /// The centre at a position, given as the number that a score carries.
    #[inline(always)]
    pub fn at(&self, position: T) -> usize {
        self.centre_at[position.index()] as usize
    }

    /// The centres of a group.
    pub fn members(&self, group: usize) -> impl Iterator<Item = usize> {
        let positions = self.starts[group]..self.starts[group + 1];
        self.centre_at[positions].iter().filter(|&&centre| centre != NOBODY).map(|&centre| centre as usize)
    }

    pub fn positions(&self, group: usize) -> std::ops::Range<usize> {
        self.starts[group]..self.starts[group + 1]
    }

    pub fn packed(&self, group: usize) -> Packed<'_, T> {
        let positions = self.positions(group);
        let features = self.columns * if self.missing { 2 } else { 1 };
        let weights = &self.weights[positions.start * features..positions.end * features];
        Packed { weights, begin: &self.begin[positions.clone()], position: positions.start }
    }

    /// The weights of every position for a column, and what the scores begin with.
    pub fn of_column(&self, column: usize) -> &[T] {
        let positions = self.centre_at.len();
        &self.weights[column * positions..(column + 1) * positions]
    }

    pub fn begin(&self) -> &[T] {
        &self.begin
    }

    /// Puts neighbours into groups: a few steps of k-means on the centres themselves. Bounds on groups that were made
    /// before mean nothing after it.
    pub fn regroup(&mut self) {
        let (number, columns, groups) = (self.number, self.columns, self.groups());
        if groups > 1 {
            // From centres that are spread over their order, which any start has mixed.
            let mut middle: Vec<f64> = (0..groups).flat_map(|g| self.value(g * number / groups).to_vec()).collect();
            for _ in 0..5 {
                let nearest = threads::map(number, number * groups * columns, |i| {
                    let apart = |g: usize| -> f64 {
                        let pairs = self.value(i).iter().zip(&middle[g * columns..(g + 1) * columns]);
                        pairs.map(|(a, b)| (a - b) * (a - b)).sum()
                    };
                    (0..groups).map(|g| (apart(g), g)).fold((f64::INFINITY, 0), |a, b| if b.0 < a.0 { b } else { a }).1
                });
                let mut sums = vec![0.0; groups * columns];
                let mut sizes = vec![0.0; groups];
                for (i, &g) in nearest.iter().enumerate() {
                    self.group_of[i] = g as u32;
                    sizes[g] += 1.0;
                    for (sum, x) in sums[g * columns..(g + 1) * columns].iter_mut().zip(self.value(i)) {
                        *sum += x;
                    }
                }
                let lines = middle.chunks_exact_mut(columns).zip(sums.chunks_exact(columns));
                for ((middle, sums), &size) in lines.zip(&sizes).filter(|(_, size)| **size > 0.0) {
                    for (middle, sum) in middle.iter_mut().zip(sums) {
                        *middle = sum / size;
                    }
                }
            }
        }
        (self.centre_at, self.starts) = (vec![], vec![]);
        for group in 0..groups {
            self.starts.push(self.centre_at.len());
            for centre in (0..number).filter(|&centre| self.group_of[centre] as usize == group) {
                self.position_of[centre] = self.centre_at.len() as u32;
                self.centre_at.push(centre as u32);
            }
            self.centre_at.resize(self.centre_at.len().next_multiple_of(EVEN), NOBODY);
        }
        self.starts.push(self.centre_at.len());
        self.pack();
    }

    fn pack(&mut self) {
        let (columns, positions) = (self.columns, self.centre_at.len());
        let features = columns * if self.missing { 2 } else { 1 };
        let mut weights = std::mem::take(&mut self.weights);
        weights.clear();
        weights.resize(features * positions, T::ZERO);
        let mut begin = vec![T::INFINITY; positions];
        let (mut reach, mut norms) = (0.0f64, vec![0.0; self.number]);
        let (mut group, mut run) = (0, 0..0);
        for (position, &centre) in self.centre_at.iter().enumerate() {
            while position >= self.starts[group + 1] {
                group += 1;
            }
            if position == run.end {
                run = position..position + run_length::<T>(features, self.starts[group + 1] - position);
            }
            if centre == NOBODY {
                continue;
            }
            let value = self.value(centre as usize);
            let norm: f64 = value.iter().map(|c| c * c).sum();
            norms[centre as usize] = norm;
            reach = reach.max(norm.sqrt());
            begin[position] = if self.missing { T::ZERO } else { T::of(norm) };
            let at = |feature: usize| {
                if self.transposed {
                    feature * positions + position
                } else {
                    run.start * features + feature * run.len() + (position - run.start)
                }
            };
            for (j, &c) in value.iter().enumerate() {
                weights[at(j)] = T::of(-2.0 * c);
                if self.missing {
                    weights[at(columns + j)] = T::of(c * c);
                }
            }
        }
        (self.weights, self.begin) = (weights, begin);
        (self.norms, self.reach) = (norms, reach * (1.0 + 1e-9));
    }

    /// What rounding may have cost the squared distance of a row of a squared norm: its score and the norm together.
    #[inline(always)]
    pub fn doubt(&self, features: usize) -> impl Fn(T) -> T + use<T> {
        // A term for each feature, and a few for what is rounded before and after they are added up.
        let share = T::of((features as f64 + 12.0) * (T::ROUNDING + f64::ROUNDING));
        let (reach, least) = (T::of(self.reach), T::of(f64::from(f32::MIN_POSITIVE)));
        move |norm| {
            let sum = norm.root() + reach;
            share * (sum * sum) + least
        }
    }

    /// What rounding may have cost the difference of two scores of a row. Its norm is in neither of them: only in the
    /// squared distances in float64, whose order counts.
    #[inline(always)]
    pub fn doubt_of_difference(&self, features: usize) -> impl Fn(T) -> T + use<T> {
        let terms = 2.0 * (features as f64 + 12.0);
        let (share, exact) = (T::of(terms * T::ROUNDING), T::of(terms * f64::ROUNDING));
        let (reach, least) = (T::of(self.reach), T::of(f64::from(f32::MIN_POSITIVE)));
        move |norm| {
            let root = norm.root();
            let sum = root + reach;
            share * ((root + sum) * reach) + exact * (sum * sum) + least
        }
    }

    /// Moves the centres, and returns the squared distance that they moved, added up.
    pub fn shift(&mut self, values: Vec<f64>) -> f64 {
        let mut total = 0.0;
        let mut farthest = vec![0.0f64; self.groups()];
        for centre in 0..self.number {
            let at = centre * self.columns..(centre + 1) * self.columns;
            let apart: f64 = self.values[at.clone()].iter().zip(&values[at]).map(|(a, b)| (a - b) * (a - b)).sum();
            total += apart;
            let distance = apart.sqrt() * (1.0 + 1e-9);
            self.moved_exactly[centre] += distance;
            let group = self.group_of[centre] as usize;
            farthest[group] = farthest[group].max(distance);
        }
        for (sum, far) in self.group_moved_exactly.iter_mut().zip(farthest) {
            *sum += far;
        }
        self.moved = self.moved_exactly.iter().map(|&x| upwards(x)).collect();
        self.group_moved = self.group_moved_exactly.iter().map(|&x| upwards(x)).collect();
        self.values = values;
        self.pack();
        total
    }

    /// What may be lost to rounding where movements are added to bounds and taken from them.
    pub fn slack(&self) -> f32 {
        let most = |all: &[f32]| all.iter().fold(0.0, |a: f32, &b| a.max(b));
        1e-6 * (most(&self.moved) + most(&self.group_moved))
    }

    /// Measures how far the centres lie apart: they are scored as if they were rows.
    pub fn measure<P: Points<Number = T>>(&mut self, as_points: &P) {
        let groups = self.groups();
        let doubt = self.doubt(as_points.features());
        let pieces =
            threads::map(self.number.div_ceil(ROWS), self.number * self.number * self.columns, |piece| -> Vec<f32> {
                let first = piece * ROWS;
                let rows: Vec<u32> = (first..(first + ROWS).min(self.number)).map(|row| row as u32).collect();
                let (mut panel, mut least) = (as_points.new_panel(), Least::NONE);
                as_points.load(&rows, &mut panel);
                let mut out = vec![0.0; rows.len() * groups];
                for group in 0..groups {
                    as_points.score(&panel, self, group, &mut least);
                    for (r, &row) in rows.iter().enumerate() {
                        let own = self.group_of[row as usize] as usize == group;
                        // Whoever is nearest in its own group is the centre itself, or one at the same position.
                        let score = if own { least.second[r] } else { least.first[r] };
                        let square = (score + panel.norms[r] - doubt(panel.norms[r])).wide();
                        out[r * groups + group] = downwards(square.max(0.0).sqrt());
                    }
                }
                out
            });
        self.between = pieces.concat();
        let nearest = |line: &[f32]| line.iter().fold(f32::INFINITY, |a, &b| a.min(b));
        self.half = self.between.chunks_exact(groups).map(|line| 0.5 * nearest(line)).collect();
    }
}
