//! What a thread does with a piece of the rows in one pass.

use super::assign::{NONE, Piece};
use super::centres::Centres;
use super::panel::Panel;
use super::points::Points;
use super::real::Real;
use super::sums::Sums;
use super::tile::{Least, ROWS, Side};
use std::sync::atomic::{AtomicBool, Ordering};

/// What a thread needs for a piece. All of it is inlined into one function that is compiled for the machine.
pub struct Worker<'a, P: Points> {
    pub points: &'a P,
    weights: Option<&'a [f64]>,
    pub centres: &'a Centres<P::Number>,
    pub slack: f32,
    panel: Panel<P::Number>,
    /// of each group, where scored
    least: Vec<Least<P::Number>>,
    all: Least<P::Number>,
    scored: Vec<bool>,
    needed: Vec<bool>,
    /// of each group and row of the panel
    lower: Vec<Side<f32>>,
    changes: Sums,
    follow: bool,
    stop: &'a AtomicBool,
    moved: usize,
    /// 0 as long as the squares of all rows are finite, else NaN
    finite: Side<P::Number>,
}

/// # Safety
/// The machine must have AVX2 and FMA.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn work_fast<P: Points>(worker: &mut Worker<P>, piece: &mut Piece) {
    worker.work(piece);
}

impl<'a, P: Points> Worker<'a, P> {
    pub fn new(
        points: &'a P,
        weights: Option<&'a [f64]>,
        centres: &'a Centres<P::Number>,
        follow: bool,
        stop: &'a AtomicBool,
    ) -> Self {
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
            changes: Sums::zero(if follow { centres.number } else { 0 }, points.columns(), points.has_missing()),
            follow,
            stop,
            moved: 0,
            finite: [P::Number::ZERO; ROWS],
        }
    }

    pub fn run(mut self, piece: &mut Piece) {
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
            if self.stop.load(Ordering::Relaxed) {
                break;
            }
            self.load(piece, now);
            let next = some.peek().copied().unwrap_or_default();
            // What lies side by side the machine itself foresees, or the panel asks for it.
            if next.last().is_some_and(|last| last.wrapping_sub(next[0]) as usize >= next.len()) {
                for &row in next {
                    let row = row as usize;
                    self.points.prefetch(piece.first + row);
                    if groups > 1 {
                        crate::simd::prefetch(&piece.lower[row * groups]);
                        crate::simd::prefetch(&piece.labels[row]);
                        crate::simd::prefetch(&piece.upper[row]);
                    }
                }
            }
            self.score(piece, now);
        }
        let changes = std::mem::replace(&mut self.changes, Sums::zero(0, 0, false));
        let finite = self.finite.iter().all(|&zero| zero == P::Number::ZERO);
        piece.done = Some((changes, self.moved, finite));
    }

    #[inline(always)]
    fn load(&mut self, piece: &Piece, rows: &[u32]) {
        let mut numbers = [0; ROWS];
        for (number, &row) in numbers.iter_mut().zip(rows) {
            *number = piece.first as u32 + row;
        }
        self.points.load(&numbers[..rows.len()], &mut self.panel);
        self.finite = std::array::from_fn(|r| self.finite[r] + self.panel.norms[r] * P::Number::ZERO);
    }

    #[inline(always)]
    fn score_group(&mut self, group: usize) {
        let least = &mut self.least[group];
        self.points.score(&self.panel, self.centres, group, least);
        if self.lower.len() == 1 {
            self.all = *least;
        } else {
            self.all.merge(least);
        }
        self.scored[group] = true;
    }

    /// Scores the panel by the groups that may hold the nearest centres of its rows.
    #[inline(always)]
    fn score(&mut self, piece: &mut Piece, rows: &[u32]) {
        let (centres, groups) = (self.centres, self.centres.groups());
        let doubt = centres.doubt(self.points.features());
        let doubts: Side<P::Number> = std::array::from_fn(|r| doubt(self.panel.norms[r]));
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
        let doubt = centres.doubt_of_difference(self.points.features());
        let differences: Side<P::Number> = std::array::from_fn(|r| doubt(self.panel.norms[r]));
        let mut labels: Side<usize> = std::array::from_fn(|r| centres.at(self.all.position[r]));
        let mut uppers = self.uppers(&doubts);
        let sure: Side<bool> = std::array::from_fn(|r| self.all.second[r] - self.all.first[r] > differences[r]);
        for (r, &row) in rows.iter().enumerate() {
            if !sure[r] {
                let (label, square) = self.nearest(piece.first + row as usize);
                labels[r] = label;
                self.all.position[r] = P::Number::of(f64::from(centres.position_of[label]));
                uppers[r] = (square.sqrt() as f32) * (1.0 + 2e-6);
            }
        }
        self.bound(piece, rows, &labels, &uppers, &doubts);
        let far: Side<f64> = std::array::from_fn(|r| self.panel.norms[r].root().wide());
        for ((&row, label), far) in rows.iter().zip(labels).zip(far) {
            self.change(piece, row as usize, label, far);
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
    #[allow(clippy::needless_bitwise_bool, clippy::neg_cmp_op_on_partial_ord)] // no branches; NaN proves nothing
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
                let best = centres.at(self.all.position[r]);
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
                let own = least.position[r] == self.all.position[r];
                let score = if own { least.second[r] } else { least.first[r] };
                let square = (score + self.panel.norms[r] - doubts[r]).greater(P::Number::ZERO);
                square.root().narrow() * (1.0 - 2e-6) + moved
            });
        }
        if groups == 1 {
            let uppers: Side<f32> = std::array::from_fn(|r| uppers[r] - centres.moved[labels[r]]);
            for (r, &row) in rows.iter().enumerate() {
                (piece.upper[row as usize], piece.lower[row as usize]) = (uppers[r], self.lower[0][r]);
            }
            return;
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

    /// Moves a row to another cluster; `far`: how far it is from the origin.
    #[inline(always)]
    fn change(&mut self, piece: &mut Piece, row: usize, label: usize, far: f64) {
        let before = std::mem::replace(&mut piece.labels[row], label as i32);
        if before == label as i32 {
            return;
        }
        let number = piece.first + row;
        let weight = self.weights.map_or(1.0, |weights| weights[number]);
        if weight == 0.0 {
            return; // it moves no centre
        }
        self.moved += 1;
        if !self.follow {
            return;
        }
        if before != NONE {
            self.changes.add(self.points, number, -weight, before as usize, far);
        }
        self.changes.add(self.points, number, weight, label, far);
    }
}
