//! One pass over the rows: to each the nearest centre, looking only where bounds leave a doubt.
//!
//! Of every row the distance from its own centre is known to be at most `upper`, and from the other centres of each
//! group to be at least `lower`. Centres that move take from these what they moved, all movements added up, so that the
//! bounds of rows that are passed over are not even written (Hamerly 2010 with one group, Yinyang with several).
//! Rows that are left are put in the order of their centres: the rows of a panel then need nearly the same groups.

use super::centres::Centres;
use super::points::Points;
use super::sums::Sums;
use super::worker::Worker;
use crate::threads;
use std::sync::atomic::AtomicBool;

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
    /// rows of some weight that have another centre now
    pub moved: usize,
    /// whether the squares of all rows that were scored are finite
    pub finite: bool,
}

/// Some consecutive rows, which one thread takes.
pub struct Piece<'a> {
    pub first: usize,
    pub labels: &'a mut [i32],
    /// less what the row's own centre had moved when this was known
    pub upper: &'a mut [f32],
    /// rows × groups, and what the group had moved when this was known
    pub lower: &'a mut [f32],
    /// the change of sums, rows that moved, and whether all squares are finite
    pub done: Option<(Sums, usize, bool)>,
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

    /// Gives every row the nearest centre, unless told to stop. `follow`: whether the sums are wanted.
    pub fn assign<P: Points>(
        &mut self,
        points: &P,
        weights: Option<&[f64]>,
        centres: &Centres<P::Number>,
        follow: bool,
        stop: &AtomicBool,
    ) -> Done {
        let size = self.piece;
        let parts = self.labels.chunks_mut(size).zip(self.upper.chunks_mut(size));
        let parts = parts.zip(self.lower.chunks_mut(size * self.groups)).enumerate();
        let mut pieces: Vec<Piece> = parts
            .map(|(i, ((labels, upper), lower))| Piece { first: i * size, labels, upper, lower, done: None })
            .collect();
        let steps = points.rows() * points.columns() * centres.number;
        let result: Result<(), std::convert::Infallible> = threads::for_each(&mut pieces, 1, steps, |_, piece| {
            Worker::new(points, weights, centres, follow, stop).run(&mut piece[0]);
            Ok(())
        });
        let Ok(()) = result;
        let mut all = Done { changes: vec![], moved: 0, finite: true };
        for (changes, moved, finite) in pieces.into_iter().filter_map(|piece| piece.done) {
            all.changes.push(changes);
            all.moved += moved;
            all.finite &= finite;
        }
        all
    }
}
