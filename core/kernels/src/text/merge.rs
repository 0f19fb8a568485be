//! Amounts of two sets of documents, whose units and classes are numbered in their own ways, added up or taken apart.

use super::by_unit::{Amount, ByUnit};
use super::vocabulary::Vocabulary;
use crate::sparse::rises;

/// What is left of a number when all of it was taken away, up to rounding.
const ROUNDING: f64 = 1e-9;

/// The amounts of some units: their texts, and the new number of each class.
pub struct Side<'a> {
    pub terms: &'a [&'a [u8]],
    pub starts: &'a [i64],
    pub classes: &'a [i32],
    pub amounts: &'a [Amount],
    pub numbers: &'a [i32],
}

impl Side<'_> {
    pub fn fits(&self) -> bool {
        let n = self.classes.len();
        self.amounts.len() == n
            && self.starts.len() == self.terms.len() + 1
            && rises(self.starts, n)
            && self.numbers.windows(2).all(|pair| pair[0] < pair[1])
            && self.classes.iter().all(|&class| class >= 0 && (class as usize) < self.numbers.len())
    }

    fn of(&self, unit: Option<usize>) -> impl Iterator<Item = (i32, Amount)> + '_ {
        let range = unit.map_or(0..0, |u| self.starts[u] as usize..self.starts[u + 1] as usize);
        range.map(|i| (self.numbers[self.classes[i] as usize], self.amounts[i]))
    }
}

/// More was taken away than there was.
#[derive(Debug, PartialEq)]
pub struct Lacking;

/// Adds `factor` × the amounts of the second to those of the first. Units of the first keep their numbers unless all of one
/// is gone; those that only the second has come after them. Returns the amounts and which units are left: numbers of the
/// first, and behind its last those of the second.
pub fn merge(one: &Side, two: &Side, factor: f64) -> Result<(ByUnit, Vec<i64>), Lacking> {
    let mut words = Vocabulary::growing(std::iter::empty());
    for term in one.terms {
        words.add(term);
    }
    let first = one.terms.len();
    let mut found = vec![None; first];
    let mut more = Vec::new();
    for (position, term) in two.terms.iter().enumerate() {
        let unit = words.add(term) as usize;
        if unit < first {
            found[unit] = Some(position);
        } else {
            more.push(position);
        }
    }
    let mut out = ByUnit { starts: vec![0], ..ByUnit::default() };
    let mut left = Vec::new();
    let pairs =
        (0..first).map(|unit| (Some(unit), found[unit])).chain(more.into_iter().map(|position| (None, Some(position))));
    for (unit, position) in pairs {
        let before = out.classes.len();
        let (mut a, mut b) = (one.of(unit).peekable(), two.of(position).peekable());
        while let Some(class) = a.peek().map(|x| x.0).into_iter().chain(b.peek().map(|x| x.0)).min() {
            let had = a.next_if(|x| x.0 == class).map_or(Amount::default(), |x| x.1);
            let mut sum = had;
            if let Some((_, amount)) = b.next_if(|x| x.0 == class) {
                sum.add(amount, factor);
            }
            if sum.documents < -ROUNDING * had.documents.max(1.0) {
                return Err(Lacking);
            }
            if sum.documents > ROUNDING * had.documents {
                out.classes.push(class);
                out.amounts.push(Amount { count: sum.count.max(0.0), share: sum.share.max(0.0), ..sum });
            }
        }
        if out.classes.len() > before {
            out.starts.push(out.classes.len() as i64);
            left.push(unit.map_or_else(|| (first + position.unwrap_or(0)) as i64, |unit| unit as i64));
        }
    }
    Ok((out, left))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn amount(n: f64) -> Amount {
        Amount { count: n, share: n / 2.0, documents: n }
    }

    #[test]
    fn adding_and_taking_away() {
        let (terms, more): ([&[u8]; 2], [&[u8]; 2]) = ([b"a", b"b"], [b"c d", b"a"]);
        let one = Side {
            terms: &terms,
            starts: &[0, 1, 2],
            classes: &[0, 0],
            amounts: &[amount(3.0), amount(1.0)],
            numbers: &[1],
        };
        let two = Side {
            terms: &more,
            starts: &[0, 1, 3],
            classes: &[0, 0, 1],
            amounts: &[amount(1.0), amount(2.0), amount(3.0)],
            numbers: &[0, 1],
        };
        assert!(one.fits() && two.fits());
        let (sum, left) = merge(&one, &two, 1.0).unwrap();
        assert_eq!(left, [0, 1, 2]);
        assert_eq!((sum.starts, sum.classes), (vec![0, 2, 3, 4], vec![0, 1, 1, 0]));
        assert_eq!(sum.amounts, [amount(2.0), amount(6.0), amount(1.0), amount(1.0)]);
        assert_eq!(merge(&one, &two, -1.0), Err(Lacking));
        let (rest, left) = merge(&one, &one, -1.0).unwrap();
        assert_eq!((rest.classes.len(), left.len()), (0, 0));
    }
}
