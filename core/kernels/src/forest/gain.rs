//! The gain of a split: how much shorter the classes of a node's rows can be told once it is known on which side each row is.
//!
//! With g(n) = n log n, Σ_k g(n_k) − g(n) is minus the length in nats. Rows go from right to left one after another, and each
//! changes two terms on either side.

use super::grow::Sampled;
use std::ops::{AddAssign, SubAssign};

/// n log n is looked up for whole numbers below this.
const TABLED: usize = 1 << 16;
/// Numbers from 1 to 2 whose logarithm is looked up, as a power of two.
const MANTISSA: u32 = 10;

/// How much rows count: whole numbers, for which n log n is looked up, or others.
pub trait Weight: Copy + Default + PartialEq + PartialOrd + AddAssign + SubAssign + Send + Sync {
    fn of(weight: f64) -> Self;
    fn number(self) -> f64;
    fn length(self, table: &Lengths) -> f64;
}

impl Weight for u32 {
    fn of(weight: f64) -> Self {
        weight as u32
    }
    #[inline]
    fn number(self) -> f64 {
        f64::from(self)
    }
    #[inline]
    fn length(self, table: &Lengths) -> f64 {
        table.whole.get(self as usize).copied().unwrap_or_else(|| table.length(f64::from(self)))
    }
}

impl Weight for f64 {
    fn of(weight: f64) -> Self {
        weight
    }
    #[inline]
    fn number(self) -> f64 {
        self
    }
    #[inline]
    fn length(self, table: &Lengths) -> f64 {
        table.length(self)
    }
}

/// n log n: of whole numbers as it is, of others by the logarithm of a number near by. The same on every machine.
pub struct Lengths {
    whole: Vec<f64>,
    /// in the middle of each of equal parts of 1 to 2, log x and 1 / x
    near: Vec<(f64, f64)>,
}

impl Lengths {
    pub fn up_to(total: f64) -> Self {
        let parts = f64::from(1 << MANTISSA);
        let near = (0..1 << MANTISSA).map(|part| 1.0 + (f64::from(part) + 0.5) / parts);
        let near = near.map(|x| (libm::log(x), 1.0 / x)).collect();
        let mut table = Self { whole: Vec::new(), near };
        table.whole = (0..=(total as usize).min(TABLED)).map(|n| table.length(n as f64)).collect();
        table
    }

    #[inline]
    fn length(&self, n: f64) -> f64 {
        if n < f64::MIN_POSITIVE {
            return 0.0;
        }
        let bits = n.to_bits();
        let exponent = (bits >> 52) as i64 - 1023;
        let (log, inverse) = self.near[(bits >> (52 - MANTISSA)) as usize & ((1 << MANTISSA) - 1)];
        // log (1 + r) = r − r²/2 + r³/3, with r of at most 2⁻¹¹
        let r = f64::from_bits(bits & ((1 << 52) - 1) | 1023 << 52) * inverse - 1.0;
        n * (exponent as f64 * std::f64::consts::LN_2 + (log + r * (1.0 - r * (0.5 - r * (1.0 / 3.0)))))
    }
}

/// The class weights on both sides of a cut that moves to the right.
pub struct Scan<W> {
    /// of each class, on both sides, and n log n of them
    counts: Vec<[(W, f64); 2]>,
    weights: [W; 2],
    lengths: [f64; 2],
}

impl<W: Weight> Scan<W> {
    pub fn new(classes: usize) -> Self {
        let none = [(W::default(), 0.0); 2];
        Self { counts: vec![none; classes], weights: [W::default(); 2], lengths: [0.0; 2] }
    }

    /// All rows of a node are on the right: those of its classes.
    pub fn begin(&mut self, node: &Node<W>) {
        for (&class, &length) in node.present.iter().zip(&node.lengths) {
            self.counts[class] = [(W::default(), 0.0), (node.counts[class], length)];
        }
        self.weights = [W::default(), node.weight];
        self.lengths = [0.0, node.length];
    }

    /// Moves some weight of a class to the left.
    #[inline]
    pub fn shift(&mut self, class: usize, weight: W, table: &Lengths) {
        let [left, right] = &mut self.counts[class];
        left.0 += weight;
        right.0 -= weight;
        let lengths = [left.0.length(table), right.0.length(table)];
        self.lengths[0] += lengths[0] - left.1;
        self.lengths[1] += lengths[1] - right.1;
        [left.1, right.1] = lengths;
        self.weights[0] += weight;
        self.weights[1] -= weight;
    }

    /// Minus the length of the classes on both sides.
    #[inline]
    pub fn value(&self, table: &Lengths) -> f64 {
        self.lengths[0] - self.weights[0].length(table) + (self.lengths[1] - self.weights[1].length(table))
    }
}

/// The class weights of a node's rows.
pub struct Node<W> {
    pub counts: Vec<W>,
    /// the classes that it has
    pub present: Vec<usize>,
    pub weight: W,
    /// g(n_k) of these
    lengths: Vec<f64>,
    /// Σ_k g(n_k)
    length: f64,
}

impl<W: Weight> Node<W> {
    pub fn new(classes: usize) -> Self {
        Self {
            counts: vec![W::default(); classes],
            present: Vec::new(),
            weight: W::default(),
            lengths: Vec::new(),
            length: 0.0,
        }
    }

    pub fn count(&mut self, rows: &[Sampled<W>], table: &Lengths) {
        for &class in &self.present {
            self.counts[class] = W::default();
        }
        self.present.clear();
        self.weight = W::default();
        for each in rows {
            let class = usize::from(each.class);
            if self.counts[class] == W::default() {
                self.present.push(class);
            }
            self.counts[class] += each.weight;
            self.weight += each.weight;
        }
        self.lengths.clear();
        self.lengths.extend(self.present.iter().map(|&class| self.counts[class].length(table)));
        self.length = self.lengths.iter().sum();
    }

    /// Minus the length of the classes on both sides if so much of each is on the left.
    pub fn value(&self, left: &[W], table: &Lengths) -> f64 {
        let (mut total, mut rest) = (W::default(), self.weight);
        let mut sum = 0.0;
        for &class in &self.present {
            let mut right = self.counts[class];
            right -= left[class];
            sum += left[class].length(table) + right.length(table);
            total += left[class];
        }
        rest -= total;
        sum - total.length(table) - rest.length(table)
    }

    /// What a split must exceed: minus the length of the classes, and no less than rounding might make.
    pub fn threshold(&self, table: &Lengths) -> f64 {
        self.length - self.weight.length(table) + 1e-9 * self.weight.number()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scanned<W: Weight>(moves: &[(u16, f64)]) -> Vec<f64> {
        let rows: Vec<Sampled<W>> =
            moves.iter().map(|&(class, weight)| Sampled { class, weight: W::of(weight), row: 0 }).collect();
        let table = Lengths::up_to(30.0);
        let mut node = Node::new(3);
        node.count(&rows[3..], &table); // what is counted before leaves nothing
        node.count(&rows, &table);
        let mut scan = Scan::new(3);
        scan.begin(&node);
        let mut left = vec![W::default(); 3];
        rows.iter()
            .map(|each| {
                scan.shift(usize::from(each.class), each.weight, &table);
                left[usize::from(each.class)] += each.weight;
                let (value, other) = (scan.value(&table), node.value(&left, &table));
                assert!((value - other).abs() < 1e-12);
                value
            })
            .collect()
    }

    #[test]
    fn lengths_are_those_of_the_logarithm() {
        let table = Lengths::up_to(100.0);
        for n in [1e-300, 1e-3, 0.5, 0.999_999, 1.0, 1.0 + 1e-9, 1.5, 2.0, 3.7, 99.0, 1e6 + 0.3, 1e200] {
            assert!((n.length(&table) - n * n.ln()).abs() <= 1e-13 * n * (1.0 + n.ln().abs()), "{n}");
        }
        assert!((0..=100u32).all(|n| n.length(&table) == f64::from(n).length(&table)));
        assert_eq!((0.0.length(&table), (-1e-9).length(&table)), (0.0, 0.0));
    }

    #[test]
    fn a_gain_is_the_entropy_that_goes() {
        let moves = [(0, 1.0), (0, 3.0), (1, 2.0), (2, 5.0), (1, 1.0)];
        let entropy = |side: &[(u16, f64)]| {
            let total: f64 = side.iter().map(|&(_, w)| w).sum();
            (0..3)
                .map(|class| side.iter().filter(|&&(own, _)| own == class).map(|&(_, w)| w).sum::<f64>())
                .filter(|&n| n > 0.0)
                .map(|n| n * (n / total).ln())
                .sum::<f64>()
        };
        for (i, (whole, other)) in scanned::<u32>(&moves).into_iter().zip(scanned::<f64>(&moves)).enumerate() {
            let expected = entropy(&moves[..=i]) + entropy(&moves[i + 1..]);
            assert!((whole - expected).abs() < 1e-12 && (other - expected).abs() < 1e-12);
        }
    }
}
