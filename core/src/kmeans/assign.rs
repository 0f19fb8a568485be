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
use super::tile::{Least, ROWS, Side};
use crate::threads;

/// No cluster yet.
pub const NONE: i32 = -1;

/// Rows of a piece at least; pieces at most, and numbers that their sums may take together.
const PIECE: usize = 2048;
const MOST_PIECES: usize = 128;
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

/// What a thread needs for a piece. All of it is inlined into one function that is compiled for the machine.
struct Worker<'a, P: Points> {
    points: &'a P,
    weights: Option<&'a [f64]>,
    centres: &'a Centres<P::Number>,
    slack: f32,
    panel: Panel<P::Number>,
    /// of each group, where scored
    least: Vec<Least<P::Number>>,
    all: Least<P::Number>,
    scored: Vec<bool>,
    needed: Vec<bool>,
    /// of each group and row of the panel
    lower: Vec<Side<f32>>,
    changes: Sums,
    moved: usize,
    pairs: usize,
}

/// # Safety
/// The machine must have AVX2 and FMA.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn work_fast<P: Points>(worker: &mut Worker<P>, piece: &mut Piece) {
    worker.work(piece);
}

impl<'a, P: Points> Worker<'a, P> {
    fn new(points: &'a P, weights: Option<&'a [f64]>, centres: &'a Centres<P::Number>) -> Self {
        let groups = centres.groups();
        Self {
            points,
            weights,
            centres,
            slack: centres.slack(),
            panel: points.new_panel(),
            least: vec![Least::NONE; groups],
            all: Least::NONE,
            scored: vec![false; groups],
            needed: vec![false; groups],
            lower: vec![[0.0; ROWS]; groups],
            changes: Sums::zero(centres.number, points.columns(), points.holes()),
            moved: 0,
            pairs: 0,
        }
    }

    fn run(mut self, piece: &mut Piece) {
        #[cfg(target_arch = "x86_64")]
        if crate::simd::has_avx2() {
            // Safe: the line above asked the machine.
            return unsafe { work_fast(&mut self, piece) };
        }
        self.work(piece);
    }

    #[inline(always)]
    fn work(&mut self, piece: &mut Piece) {
        let (rows, groups) = (self.doubtful(piece), self.centres.groups());
        let mut some = rows.chunks(ROWS).peekable();
        while let Some(now) = some.next() {
            self.load(piece, now);
            for &row in some.peek().copied().unwrap_or_default() {
                let row = row as usize;
                self.points.prefetch(piece.first + row);
                crate::simd::prefetch(&piece.lower[row * groups]);
                crate::simd::prefetch(&piece.labels[row]);
                crate::simd::prefetch(&piece.upper[row]);
            }
            self.score(piece, now);
        }
        let changes = std::mem::replace(&mut self.changes, Sums::zero(0, 0, false));
        piece.done = Some((changes, self.moved, rows.len(), self.pairs));
    }

    /// The rows whose centre may not be the nearest, in the order of their centres.
    #[inline(always)]
    fn doubtful(&self, piece: &Piece) -> Vec<u32> {
        let (centres, groups) = (self.centres, self.centres.groups());
        let mut rows: Vec<u32> = Vec::with_capacity(piece.labels.len());
        let known = |i: usize, label: i32, least: f32| {
            if label == NONE {
                return false;
            }
            let upper = (piece.upper[i] + centres.moved[label as usize]) * (1.0 + 1e-6) + self.slack;
            least > upper || centres.half[label as usize] > upper
        };
        if groups == 1 {
            let moved = centres.group_moved[0];
            for (i, (&label, lower)) in piece.labels.iter().zip(&*piece.lower).enumerate() {
                if !known(i, label, lower - moved) {
                    rows.push(i as u32);
                }
            }
            return rows;
        }
        for (i, (&label, lower)) in piece.labels.iter().zip(piece.lower.chunks_exact(groups)).enumerate() {
            let bounds = lower.iter().zip(&centres.group_moved).map(|(l, m)| l - m);
            // A bound that is not a number says nothing.
            let least = bounds.fold(f32::INFINITY, |least, b| if b > least { least } else { b });
            if !known(i, label, least) {
                rows.push(i as u32);
            }
        }
        self.sorted(piece, rows)
    }

    /// Puts rows in the order of their centres' places: a counting sort.
    fn sorted(&self, piece: &Piece, rows: Vec<u32>) -> Vec<u32> {
        let place = |row: u32| {
            let label = piece.labels[row as usize];
            if label == NONE { 0 } else { self.centres.place_of[label as usize] as usize }
        };
        let mut starts = vec![0usize; self.centres.begin().len() + 1];
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

    #[inline(always)]
    fn load(&mut self, piece: &Piece, rows: &[u32]) {
        let mut numbers = [0; ROWS];
        for (number, &row) in numbers.iter_mut().zip(rows) {
            *number = piece.first as u32 + row;
        }
        self.points.load(&numbers[..rows.len()], &mut self.panel);
    }

    #[inline(always)]
    fn score_group(&mut self, group: usize) {
        let least = &mut self.least[group];
        self.points.score(&self.panel, self.centres, group, least);
        self.all.merge(least);
        self.scored[group] = true;
        self.pairs += ROWS;
    }

    /// Scores the panel by the groups that may hold the nearest centres of its rows.
    #[inline(always)]
    fn score(&mut self, piece: &mut Piece, rows: &[u32]) {
        let (centres, groups) = (self.centres, self.centres.groups());
        let doubt = centres.doubt(self.points.features());
        let doubts = self.panel.norms.map(doubt);
        self.all = Least::NONE;
        self.scored.fill(false);
        if groups == 1 {
            self.score_group(0);
        } else {
            self.score_own_groups(piece, rows);
            if !self.scored.iter().all(|&scored| scored) {
                self.find_needed(piece, rows, &doubts);
                for group in 0..groups {
                    if self.needed[group] && !self.scored[group] {
                        self.score_group(group);
                    }
                }
            }
        }
        let differences = self.panel.norms.map(centres.doubt_of_difference(self.points.features()));
        let mut labels = [0; ROWS];
        let mut uppers = self.uppers(&doubts);
        for (r, &row) in rows.iter().enumerate() {
            if self.all.second[r] - self.all.first[r] > differences[r] {
                labels[r] = centres.at(self.all.place[r]);
            } else {
                let (label, square) = self.nearest(piece.first + row as usize);
                labels[r] = label;
                self.all.place[r] = P::Number::of(f64::from(centres.place_of[label]));
                uppers[r] = (square.sqrt() as f32) * (1.0 + 2e-6);
            }
        }
        self.bound(piece, rows, &labels, &uppers, &doubts);
        for (&row, label) in rows.iter().zip(labels) {
            self.change(piece, row as usize, label);
        }
    }

    #[inline(always)]
    fn score_own_groups(&mut self, piece: &Piece, rows: &[u32]) {
        let mut before = usize::MAX;
        for &row in rows {
            let label = piece.labels[row as usize];
            let own = if label == NONE { 0 } else { self.centres.group_of[label as usize] as usize };
            if own != before && !self.scored[own] {
                self.score_group(own);
            }
            before = own;
        }
    }

    /// How far each row is at most from the nearest centre that was scored.
    #[inline(always)]
    fn uppers(&self, doubts: &Side<P::Number>) -> Side<f32> {
        std::array::from_fn(|r| {
            let square = self.all.first[r] + self.panel.norms[r] + doubts[r];
            square.greater(P::Number::ZERO).root().narrow() * (1.0 + 2e-6)
        })
    }

    /// Marks the groups that some row needs, after its own group was scored.
    #[inline(always)]
    fn find_needed(&mut self, piece: &Piece, rows: &[u32], doubts: &Side<P::Number>) {
        let (centres, groups) = (self.centres, self.centres.groups());
        let uppers = self.uppers(doubts);
        self.needed.fill(false);
        for (r, &row) in rows.iter().enumerate() {
            let i = row as usize;
            let upper = uppers[r] * (1.0 + 1e-6) + self.slack;
            let lower = &piece.lower[i * groups..(i + 1) * groups];
            let bounds = lower.iter().zip(&centres.group_moved);
            if centres.between.is_empty() {
                for (needed, (l, m)) in self.needed.iter_mut().zip(bounds) {
                    *needed |= !(l - m > upper);
                }
            } else {
                let best = centres.at(self.all.place[r]);
                let between = &centres.between[best * groups..(best + 1) * groups];
                let twice = 2.0 * upper * (1.0 + 1e-6);
                for (needed, ((l, m), b)) in self.needed.iter_mut().zip(bounds.zip(between)) {
                    *needed |= !((l - m > upper) | (*b > twice));
                }
            }
        }
    }

    /// The nearest centre of a row and the squared distance, in float64; the first of those that are equally near.
    #[inline(never)]
    fn nearest(&self, row: usize) -> (usize, f64) {
        let mut best = (f64::INFINITY, usize::MAX);
        for group in (0..self.scored.len()).filter(|&group| self.scored[group]) {
            for centre in self.centres.members(group) {
                let square = self.points.distance(row, self.centres.value(centre), self.centres.norms[centre]);
                if square < best.0 || (square == best.0 && centre < best.1) {
                    best = (square, centre);
                }
            }
        }
        // Where squares are too large for float64 no centre is nearer than another.
        if best.1 == usize::MAX { (0, f64::INFINITY) } else { (best.1, best.0) }
    }

    /// Writes what is known of the rows now.
    #[inline(always)]
    fn bound(
        &mut self,
        piece: &mut Piece,
        rows: &[u32],
        labels: &Side<usize>,
        uppers: &Side<f32>,
        doubts: &Side<P::Number>,
    ) {
        let (centres, groups) = (self.centres, self.centres.groups());
        for group in (0..groups).filter(|&group| self.scored[group]) {
            let (least, moved) = (&self.least[group], centres.group_moved[group]);
            self.lower[group] = std::array::from_fn(|r| {
                let own = least.place[r] == self.all.place[r];
                let score = if own { least.second[r] } else { least.first[r] };
                let square = (score + self.panel.norms[r] - doubts[r]).greater(P::Number::ZERO);
                square.root().narrow() * (1.0 - 2e-6) + moved
            });
        }
        for (r, &row) in rows.iter().enumerate() {
            let row = row as usize;
            piece.upper[row] = uppers[r] - centres.moved[labels[r]];
            let bounds = &mut piece.lower[row * groups..(row + 1) * groups];
            for (group, bound) in bounds.iter_mut().enumerate() {
                if self.scored[group] {
                    *bound = self.lower[group][r];
                } else if !centres.between.is_empty() {
                    let apart = centres.between[labels[r] * groups + group];
                    let known = apart - uppers[r] * (1.0 + 1e-6) + centres.group_moved[group];
                    *bound = if known > *bound { known } else { *bound };
                }
            }
        }
    }

    /// Moves a row to another cluster.
    #[inline(always)]
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
