//! One pass over the rows: to each the nearest centre, looking only where bounds leave a doubt.
//!
//! Of every row the distance from its own centre is known to be at most `upper`, and from the other centres of each
//! group to be at least `lower`. Centres that move take from these what they moved, all movements added up, so that the
//! bounds of rows that are passed over are not even written (Hamerly 2010 with one group, Yinyang with several).
//! Rows that are left are put in the order of their centres: the rows of a panel then need nearly the same groups.

use super::centres::Centres;
use super::points::{Panel, Points};
use super::real::Real;
use super::sums::Sums;
use super::tile::Least;
use crate::threads;

/// No cluster yet.
pub const NONE: i32 = -1;

/// Rows of a piece at least; pieces at most, and numbers that their sums may take together.
const PIECE: usize = 2048;
const MOST_PIECES: usize = 64;
const ROOM: usize = 1 << 21;

/// What is known of some consecutive rows.
pub struct State {
    pub labels: Vec<i32>,
    upper: Vec<f32>,
    lower: Vec<f32>,
    groups: usize,
    piece: usize,
}

/// What a pass did: the change of each piece's sums, and how much there was to do.
pub struct Done {
    pub changes: Vec<Sums>,
    pub moved: usize,
    /// rows that were scored, and of these the groups
    pub scored: usize,
    pub pairs: usize,
}

struct Piece<'a> {
    first: usize,
    labels: &'a mut [i32],
    upper: &'a mut [f32],
    lower: &'a mut [f32],
    done: Option<(Sums, usize, usize, usize)>,
}

impl State {
    pub fn new(rows: usize, columns: usize, clusters: usize, groups: usize) -> Self {
        let pieces = (ROOM / (clusters * columns)).clamp(8, MOST_PIECES);
        Self {
            labels: vec![NONE; rows],
            upper: vec![f32::INFINITY; rows],
            lower: crate::memory::filled(f32::NEG_INFINITY, rows * groups),
            groups,
            piece: PIECE.max(rows.div_ceil(pieces)),
        }
    }

    /// Forgets all bounds on groups.
    pub fn forget_groups(&mut self) {
        self.lower.fill(f32::NEG_INFINITY);
    }

    /// Forgets what was known of a row, and puts it into a cluster.
    pub fn put(&mut self, row: usize, cluster: usize) {
        self.labels[row] = cluster as i32;
        self.upper[row] = f32::INFINITY;
        self.lower[row * self.groups..(row + 1) * self.groups].fill(f32::NEG_INFINITY);
    }

    /// Gives every row the nearest centre.
    pub fn assign<P: Points>(&mut self, points: &P, weights: Option<&[f64]>, centres: &Centres<P::Number>) -> Done {
        let size = self.piece;
        let parts = self.labels.chunks_mut(size).zip(self.upper.chunks_mut(size));
        let parts = parts.zip(self.lower.chunks_mut(size * self.groups)).enumerate();
        let mut pieces: Vec<Piece> = parts
            .map(|(i, ((labels, upper), lower))| Piece { first: i * size, labels, upper, lower, done: None })
            .collect();
        let steps = points.rows() * points.columns() * centres.number;
        let result: Result<(), std::convert::Infallible> = threads::for_each(&mut pieces, 1, steps, |_, piece| {
            Worker::new(points, weights, centres).run(&mut piece[0]);
            Ok(())
        });
        let Ok(()) = result;
        let mut all = Done { changes: vec![], moved: 0, scored: 0, pairs: 0 };
        for (changes, moved, scored, pairs) in pieces.into_iter().filter_map(|piece| piece.done) {
            all.changes.push(changes);
            all.moved += moved;
            all.scored += scored;
            all.pairs += pairs;
        }
        all
    }
}

/// What a thread needs for a piece.
struct Worker<'a, P: Points> {
    points: &'a P,
    weights: Option<&'a [f64]>,
    centres: &'a Centres<P::Number>,
    panel: Panel<P::Number>,
    /// of each group, where scored
    least: Vec<Least<P::Number>>,
    all: Least<P::Number>,
    scored: Vec<bool>,
    changes: Sums,
    moved: usize,
    pairs: usize,
}

impl<'a, P: Points> Worker<'a, P> {
    fn new(points: &'a P, weights: Option<&'a [f64]>, centres: &'a Centres<P::Number>) -> Self {
        Self {
            points,
            weights,
            centres,
            panel: points.new_panel(),
            least: vec![Least::none(); centres.groups()],
            all: Least::none(),
            scored: vec![false; centres.groups()],
            changes: Sums::zero(centres.number, points.columns(), points.holes()),
            moved: 0,
            pairs: 0,
        }
    }

    fn run(mut self, piece: &mut Piece) {
        let rows = self.doubtful(piece);
        let scored = rows.len();
        for some in rows.chunks(P::Number::PANEL) {
            self.score(piece, some);
        }
        piece.done = Some((self.changes, self.moved, scored, self.pairs));
    }

    /// The rows whose centre may not be the nearest, in the order of their centres.
    fn doubtful(&self, piece: &Piece) -> Vec<u32> {
        let (centres, groups) = (self.centres, self.centres.groups());
        let slack = centres.slack();
        let mut rows = Vec::with_capacity(piece.labels.len());
        for (i, &label) in piece.labels.iter().enumerate() {
            if label != NONE {
                let upper = (piece.upper[i] + centres.moved[label as usize]) * (1.0 + 1e-6) + slack;
                let line = &piece.lower[i * groups..(i + 1) * groups];
                let least =
                    line.iter().zip(&centres.group_moved).fold(f32::INFINITY, |least, (l, m)| least.min(l - m));
                if least > upper || centres.half[label as usize] > upper {
                    continue;
                }
            }
            rows.push(i as u32);
        }
        // A counting sort by place.
        let place = |row: u32| {
            let label = piece.labels[row as usize];
            if label == NONE { 0 } else { centres.place_of[label as usize] as usize }
        };
        if groups == 1 {
            return rows;
        }
        let mut starts = vec![0usize; centres.begin().len() + 1];
        for &row in &rows {
            starts[place(row) + 1] += 1;
        }
        for p in 1..starts.len() {
            starts[p] += starts[p - 1];
        }
        let mut sorted = vec![0; rows.len()];
        for row in rows {
            let at = &mut starts[place(row)];
            sorted[*at] = row;
            *at += 1;
        }
        sorted
    }

    fn score_group(&mut self, group: usize) {
        let least = &mut self.least[group];
        self.points.score(&self.panel, self.centres, group, least);
        self.all.merge(least);
        self.scored[group] = true;
        self.pairs += P::Number::PANEL;
    }

    /// Scores some rows of a piece by the groups that may hold their nearest centre.
    fn score(&mut self, piece: &mut Piece, rows: &[u32]) {
        let (centres, groups) = (self.centres, self.centres.groups());
        let numbers: Vec<u32> = rows.iter().map(|&row| piece.first as u32 + row).collect();
        self.points.load(&numbers, &mut self.panel);
        self.all.clear();
        self.scored.fill(false);
        if groups == 1 {
            self.score_group(0);
        } else {
            self.score_own_groups(piece, rows);
            let needed = self.needed(piece, rows);
            for group in 0..groups {
                if needed[group] && !self.scored[group] {
                    self.score_group(group);
                }
            }
        }
        let doubt = centres.doubt(self.points.features());
        let norms = self.panel.norms.iter();
        let doubts: Vec<P::Number> = norms.map(|&norm| doubt(norm)).collect();
        for (r, &row) in rows.iter().enumerate() {
            let (first, second) = (self.all.first[r], self.all.second[r]);
            let certain = second - first > doubts[r] + doubts[r];
            let (label, square) = if certain {
                (centres.at(self.all.place[r]), (first + self.panel.norms[r] + doubts[r]).wide())
            } else {
                self.nearest(piece.first + row as usize)
            };
            let upper = upper_root(square);
            self.bound(piece, r, row as usize, label, upper, doubts[r]);
            self.change(piece, row as usize, label);
        }
    }

    fn score_own_groups(&mut self, piece: &Piece, rows: &[u32]) {
        for &row in rows {
            let label = piece.labels[row as usize];
            let own = if label == NONE { 0 } else { self.centres.group_of[label as usize] as usize };
            if !self.scored[own] {
                self.score_group(own);
            }
        }
    }

    /// The groups that some row needs, after its own group was scored.
    fn needed(&self, piece: &Piece, rows: &[u32]) -> Vec<bool> {
        let (centres, groups) = (self.centres, self.centres.groups());
        let doubt = centres.doubt(self.points.features());
        let slack = centres.slack();
        let mut needed = vec![false; groups];
        for (r, &row) in rows.iter().enumerate() {
            let i = row as usize;
            let norm = self.panel.norms[r];
            let upper = upper_root((self.all.first[r] + norm + doubt(norm)).wide()) * (1.0 + 1e-6) + slack;
            let lower = &piece.lower[i * groups..(i + 1) * groups];
            if centres.between.is_empty() {
                for ((needed, l), m) in needed.iter_mut().zip(lower).zip(&centres.group_moved) {
                    *needed |= !(l - m > upper);
                }
            } else {
                let best = centres.at(self.all.place[r]);
                let between = &centres.between[best * groups..(best + 1) * groups];
                let twice = 2.0 * upper * (1.0 + 1e-6);
                let bounds = lower.iter().zip(&centres.group_moved).zip(between);
                for (needed, ((l, m), b)) in needed.iter_mut().zip(bounds) {
                    *needed |= !((l - m > upper) | (*b > twice));
                }
            }
        }
        needed
    }

    /// The nearest centre of a row and the squared distance, in float64; the first of those that are equally near.
    fn nearest(&self, row: usize) -> (usize, f64) {
        let mut best = (f64::INFINITY, usize::MAX);
        for group in (0..self.scored.len()).filter(|&group| self.scored[group]) {
            for centre in self.centres.members(group) {
                let square = self.points.distance(row, self.centres.value(centre));
                if square < best.0 || (square == best.0 && centre < best.1) {
                    best = (square, centre);
                }
            }
        }
        // Where squares are too large for float64 no centre is nearer than another.
        if best.1 == usize::MAX { (0, f64::INFINITY) } else { (best.1, best.0) }
    }

    /// Writes what is known of a row now.
    fn bound(&self, piece: &mut Piece, r: usize, row: usize, label: usize, upper: f32, doubt: P::Number) {
        let (centres, groups) = (self.centres, self.centres.groups());
        piece.upper[row] = upper - centres.moved[label];
        let place = P::Number::of(f64::from(centres.place_of[label]));
        let norm = self.panel.norms[r];
        let bounds = piece.lower[row * groups..(row + 1) * groups].iter_mut();
        for (group, (bound, moved)) in bounds.zip(&centres.group_moved).enumerate() {
            if self.scored[group] {
                let least = &self.least[group];
                let score = if least.place[r] == place { least.second[r] } else { least.first[r] };
                let square = (score + norm - doubt).greater(P::Number::ZERO);
                *bound = (square.root().wide() as f32) * (1.0 - 1e-6) + moved;
            } else if !centres.between.is_empty() {
                *bound = bound.max(centres.between[label * groups + group] - upper * (1.0 + 1e-6) + moved);
            }
        }
    }

    /// Moves a row to another cluster.
    fn change(&mut self, piece: &mut Piece, row: usize, label: usize) {
        let before = std::mem::replace(&mut piece.labels[row], label as i32);
        if before == label as i32 {
            return;
        }
        self.moved += 1;
        let number = piece.first + row;
        let weight = self.weights.map_or(1.0, |weights| weights[number]);
        if before != NONE {
            self.changes.add(self.points, number, -weight, before as usize);
        }
        self.changes.add(self.points, number, weight, label);
    }
}

#[inline(always)]
fn upper_root(square: f64) -> f32 {
    (square.max(0.0).sqrt() as f32) * (1.0 + 1e-6)
}
