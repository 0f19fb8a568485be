//! A sink that scores documents: the scores of their units, group by group, added up class by class.

use super::amounts::{log_count, norm};
use super::reader::{Pair, Reader};
use super::split::Analysis;
use super::texts::{TextError, Texts};
use super::vocabulary::Known;
use crate::sparse::rises;
use crate::threads;

/// Scores of units: in each group of units one number for each class, and for some pairs of a unit and a class how much
/// their score differs from that.
#[derive(Clone, Copy)]
pub struct Scores<'a> {
    /// groups × classes
    pub base: &'a [f64],
    pub groups: &'a [u8],
    pub starts: &'a [i64],
    pub classes: &'a [i32],
    pub differences: &'a [f64],
    /// What the count of each unit is multiplied with; none if with nothing.
    pub weights: &'a [f64],
    /// Units × classes: what else is added to the score of each unit. May be empty.
    pub refinement: &'a [f32],
    pub number: usize,
}

/// What a count becomes before it is multiplied with a score.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Count {
    AsItIs,
    Once,
    Log,
}

impl Count {
    #[inline]
    fn of(self, count: u32) -> f64 {
        match self {
            Self::AsItIs => f64::from(count),
            Self::Once => 1.0,
            Self::Log => log_count(count),
        }
    }
}

/// What else there is to a document's score: how counts are taken; the power of its length, the number of different
/// single words over the `usual` one, by which all is divided; and the norm that its counts are scaled to, 0 if they are not.
#[derive(Clone, Copy)]
pub struct Rule {
    pub count: Count,
    pub power: f64,
    pub usual: f64,
    pub norm: f64,
}

impl Rule {
    /// What the scores of a document's units are multiplied with.
    fn factor(self, pairs: &[Pair], orders: &[u8]) -> f64 {
        let mut factor = 1.0;
        if self.power != 0.0 {
            let length = pairs.iter().filter(|(unit, _)| orders[*unit as usize] == 0).count();
            factor = (length.max(1) as f64 / self.usual).powf(-self.power);
        }
        if self.norm != 0.0 && !pairs.is_empty() {
            factor *= self.norm / norm(pairs.iter().map(|&(_, count)| self.count.of(count)));
        }
        factor
    }
}

impl Scores<'_> {
    pub fn fits(&self) -> bool {
        let (n, k) = (self.classes.len(), self.number);
        k > 0
            && self.base.len().is_multiple_of(k)
            && self.differences.len() == n
            && (self.weights.is_empty() || self.weights.len() == self.groups.len())
            && (self.refinement.is_empty() || self.refinement.len() == self.groups.len() * k)
            && self.groups.len() + 1 == self.starts.len()
            && rises(self.starts, n)
            && self.groups.iter().all(|&group| usize::from(group) < self.base.len() / k)
            && self.classes.iter().all(|&class| class >= 0 && (class as usize) < k)
    }

    /// Adds the scores of units to `out`. `sums` is room for a sum of each group.
    fn add(&self, pairs: impl Iterator<Item = (usize, f64)>, sums: &mut Vec<f64>, out: &mut [f64]) {
        sums.clear();
        sums.resize(self.base.len() / self.number, 0.0);
        for (unit, count) in pairs {
            sums[usize::from(self.groups[unit])] += count;
            for i in self.starts[unit] as usize..self.starts[unit + 1] as usize {
                out[self.classes[i] as usize] += count * self.differences[i];
            }
            if !self.refinement.is_empty() {
                let more = &self.refinement[unit * self.number..(unit + 1) * self.number];
                out.iter_mut().zip(more).for_each(|(o, &m)| *o += count * f64::from(m));
            }
        }
        for (base, &sum) in self.base.chunks(self.number).zip(sums.iter()).filter(|(_, sum)| **sum != 0.0) {
            out.iter_mut().zip(base).for_each(|(o, &b)| *o += sum * b);
        }
    }
}

/// Adds the score of every document to `out` (documents × classes). `orders`: 0 for the units that make up its length.
pub fn score(
    texts: &Texts,
    analysis: &Analysis,
    known: &Known,
    orders: &[u8],
    scores: &Scores,
    rule: Rule,
    out: &mut [f64],
) -> Result<(), TextError> {
    let k = scores.number;
    let steps = texts.size() * 4;
    let piece = texts.len().div_ceil((steps >> 20).clamp(1, 64)).max(1);
    threads::for_each(out, piece * k, steps, |i, out| {
        let mut reader = Reader::new(*analysis, known);
        let (mut sums, mut own) = (Vec::new(), vec![0.0; k]);
        for (j, out) in out.chunks_mut(k).enumerate() {
            let document = i * piece + j;
            let pairs = reader.read(document, texts.get(document)?)?;
            let taken = pairs.iter().map(|&(unit, count)| (unit as usize, rule.count.of(count)));
            own.fill(0.0);
            match scores.weights {
                [] => scores.add(taken, &mut sums, &mut own),
                weights => {
                    scores.add(taken.map(|(unit, count)| (unit, count * weights[unit])), &mut sums, &mut own);
                }
            }
            let factor = rule.factor(pairs, orders);
            out.iter_mut().zip(&own).for_each(|(o, score)| *o += factor * score);
        }
        Ok(())
    })
}
