//! Which rows must be scored: those whose bounds do not prove that their centre is still the nearest.

use super::assign::{NONE, Piece};
use super::points::Points;
use super::worker::Worker;

/// From so many centres on, to look at a row's own first may save more than it takes.
const WORTH_A_LOOK: usize = 256;
/// So many rows of a piece are looked at in any case; further ones if it saved one of so many.
const TRIED: usize = 64;
const PAYS: usize = 16;

impl<P: Points> Worker<'_, P> {
    /// The rows whose centre may not be the nearest, in the order of their centres if there are groups of them.
    #[inline(always)]
    pub fn doubtful(&self, piece: &mut Piece) -> Vec<u32> {
        let (centres, groups) = (self.centres, self.centres.groups());
        if groups == 1 && centres.number < WORTH_A_LOOK {
            return self.doubtful_of_one_group(piece);
        }
        let mut rows: Vec<u32> = Vec::with_capacity(piece.labels.len());
        let (mut looked, mut proved_so) = (0, 0);
        for i in 0..piece.labels.len() {
            let label = piece.labels[i];
            if label == NONE {
                rows.push(i as u32);
                continue;
            }
            let label = label as usize;
            let least = if groups == 1 {
                piece.lower[i] - centres.group_moved[0]
            } else {
                let lower = &piece.lower[i * groups..(i + 1) * groups];
                let bounds = lower.iter().zip(&centres.group_moved).map(|(l, m)| l - m);
                // A bound that is not a number says nothing.
                bounds.fold(f32::INFINITY, |least, b| if b > least { least } else { b })
            };
            let moved = centres.moved[label];
            let proven = |upper: f32| {
                let upper = upper * (1.0 + 1e-6) + self.slack;
                least > upper || centres.half[label] > upper
            };
            if proven(piece.upper[i] + moved) {
                continue;
            }
            if centres.number >= WORTH_A_LOOK && (looked < TRIED || PAYS * proved_so > looked) {
                looked += 1;
                // The centre's own distance, which has only been bounded since the row was last scored.
                let square = self.points.distance(piece.first + i, centres.value(label), centres.norms[label]);
                let upper = (square.sqrt() as f32) * (1.0 + 2e-6);
                piece.upper[i] = upper - moved;
                if proven(upper) {
                    proved_so += 1;
                    continue;
                }
            }
            rows.push(i as u32);
        }
        if groups == 1 { rows } else { self.sorted(piece, rows) }
    }

    /// The same where one bound is all there is to look at; without branches, which nobody could foresee.
    #[inline(always)]
    #[allow(clippy::needless_bitwise_bool)]
    fn doubtful_of_one_group(&self, piece: &Piece) -> Vec<u32> {
        let (moved, slack) = (self.centres.group_moved[0], self.slack);
        // Of each centre how far it moved, and half of how far the next one is.
        let known: Vec<[f32; 2]> =
            self.centres.moved.iter().zip(&self.centres.half).map(|(&moved, &half)| [moved, half]).collect();
        let mut rows = vec![0; piece.labels.len()];
        let mut count = 0;
        let bounds = piece.labels.iter().zip(&*piece.upper).zip(&*piece.lower);
        for (i, ((&label, &upper), &lower)) in bounds.enumerate() {
            let [own, half] = known[label.max(0) as usize];
            let upper = (upper + own) * (1.0 + 1e-6) + slack;
            let proven = (label != NONE) & ((lower - moved > upper) | (half > upper));
            rows[count] = i as u32;
            count += usize::from(!proven);
        }
        rows.truncate(count);
        rows
    }

    /// Puts rows in the order of their centres' positions: a counting sort.
    fn sorted(&self, piece: &Piece, rows: Vec<u32>) -> Vec<u32> {
        let position = |row: u32| {
            let label = piece.labels[row as usize];
            if label == NONE { 0 } else { self.centres.position_of[label as usize] as usize }
        };
        let mut starts = vec![0usize; self.centres.begin().len() + 1];
        for &row in &rows {
            starts[position(row) + 1] += 1;
        }
        for p in 1..starts.len() {
            starts[p] += starts[p - 1];
        }
        let mut sorted = vec![0; rows.len()];
        for row in rows {
            let at = &mut starts[position(row)];
            sorted[*at] = row;
            *at += 1;
        }
        sorted
    }
}
