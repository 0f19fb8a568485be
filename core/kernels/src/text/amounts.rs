//! A sink that sums what classes have of each unit: how often it came, what share of their documents it made up, and in how many
//! of them it was. What the share of a unit in a document is, a [`Measure`] says.

use super::by_unit::{Amount, ByUnit, Part, by_unit};
use super::reader::{Pair, Reader};
use super::sinks::Rows;
use super::split::Analysis;
use super::texts::{TextError, Texts};
use super::units::read_pieces;
use super::vocabulary::{Terms, Vocabulary};
use std::f64::consts::LN_2;
use std::sync::LazyLock;

/// Sums of fractions depend on the order of adding, so the pieces of the work follow from the texts, not from the number of
/// threads: of so many bytes, but no more than so many of them, as all their vocabularies are put together.
const PIECE: usize = 1 << 17;
const MOST_PIECES: usize = 16;

/// The share of a unit in a document: its count, or log(1 + count), divided by the size of the document.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Measure {
    pub log: bool,
    pub size: Size,
}

/// What the size of a document is, given what its units have before they are divided by it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Size {
    Sum,
    /// The root of the sum of squares.
    Norm,
    /// All documents are of size 1.
    One,
}

impl Measure {
    /// Writes what the units of a document have, not yet divided, and returns its size.
    fn take(self, pairs: &[Pair], taken: &mut Vec<f64>) -> f64 {
        taken.clear();
        if self.log {
            taken.extend(pairs.iter().map(|&(_, count)| log_count(count)));
        } else {
            taken.extend(pairs.iter().map(|&(_, count)| f64::from(count)));
        }
        match self.size {
            Size::Sum => taken.iter().sum(),
            Size::Norm => norm(taken.iter().copied()),
            Size::One => f64::from(u8::from(!pairs.is_empty())),
        }
    }
}

/// The root of the sum of squares.
pub fn norm(numbers: impl Iterator<Item = f64>) -> f64 {
    numbers.map(|x| x * x).sum::<f64>().sqrt()
}

/// Sums over the documents of each class: their weight, and the logarithm of what shares were divided by. And what that was
/// for each document, 0 if it has no unit or was passed over.
#[derive(Default, Debug, PartialEq)]
pub struct OfClasses {
    pub documents: Vec<f64>,
    pub log_sizes: Vec<f64>,
    pub sizes: Vec<f64>,
}

/// What there is to read: the class of each document, the weight, which documents' counts are wanted, and what is a share.
#[derive(Clone, Copy)]
pub struct Wanted<'a> {
    pub codes: &'a [i32],
    pub weights: Option<&'a [f64]>,
    pub classes: usize,
    /// For each document, its position among the rows that are wanted; negative if it is not.
    pub kept: &'a [i64],
    pub measure: Measure,
}

impl Wanted<'_> {
    fn weight(&self, document: usize) -> f64 {
        self.weights.map_or(1.0, |weights| weights[document])
    }
}

/// Sums the amounts of every class. Documents whose code is negative, or that have no weight, are passed over. Documents
/// that are kept come as rows, in the order of their positions.
pub fn collect(
    texts: &Texts,
    analysis: &Analysis,
    wanted: Wanted,
    vocabulary: impl Fn() -> Vocabulary + Sync + Send,
) -> Result<(ByUnit, OfClasses, Rows, Terms), TextError> {
    let Wanted { codes, classes, .. } = wanted;
    let mut order: Vec<usize> = (0..texts.len()).filter(|&i| codes[i] >= 0 && wanted.weight(i) > 0.0).collect();
    // Class by class, one sum for each unit is enough at any time.
    order.sort_by_key(|&i| codes[i]);
    let size = texts.size();
    let runs = texts.cut(order.len(), |i| order[i], (size / PIECE).clamp(1, MOST_PIECES));
    let read =
        |reader: &mut Reader<_>, sums: &mut Sums, i: usize| piece(texts, reader, sums, &order[runs[i].clone()], wanted);
    let (pieces, terms) = read_pieces(runs.len(), size * 4, analysis, vocabulary, read)?;
    let mut of_classes =
        OfClasses { documents: vec![0.0; classes], log_sizes: vec![0.0; classes], sizes: vec![0.0; texts.len()] };
    let mut parts = Vec::new();
    let mut kept = Vec::new();
    for (mut piece, run) in pieces.into_iter().zip(runs) {
        let mut documents = order[run].iter();
        let (own, rows) = std::mem::take(&mut piece.read);
        for (position, mut pairs) in rows {
            for pair in &mut pairs {
                pair.0 = piece.number(pair.0);
            }
            kept.push((position, pairs));
        }
        for mut part in own {
            part.units.iter_mut().for_each(|unit| *unit = piece.number(*unit));
            of_classes.documents[part.class] += part.documents;
            of_classes.log_sizes[part.class] += part.log_size;
            part.sizes.iter().zip(&mut documents).for_each(|(size, &i)| of_classes.sizes[i] = *size);
            parts.push(part);
        }
    }
    kept.sort_unstable_by_key(|row| row.0);
    let mut rows = Rows { starts: vec![0], ..Rows::default() };
    for (_, pairs) in &kept {
        rows.push(pairs);
    }
    Ok((by_unit(&parts, terms.len()), of_classes, rows, terms))
}

fn piece(
    texts: &Texts,
    reader: &mut Reader<Vocabulary>,
    sums: &mut Sums,
    order: &[usize],
    wanted: Wanted,
) -> Result<(Vec<Part>, Vec<(i64, Vec<Pair>)>), TextError> {
    let (mut parts, mut kept, mut taken) = (Vec::new(), Vec::new(), Vec::new());
    for same in order.chunk_by(|&a, &b| wanted.codes[a] == wanted.codes[b]) {
        let (mut documents, mut log_size, mut sizes) = (0.0, 0.0, Vec::with_capacity(same.len()));
        for &document in same {
            let weight = wanted.weight(document);
            let pairs = reader.read(document, texts.get(document)?)?;
            if wanted.kept[document] >= 0 {
                kept.push((wanted.kept[document], pairs.to_vec()));
            }
            let size = wanted.measure.take(pairs, &mut taken);
            sums.reserve(pairs.iter().map(|pair| pair.0 as usize + 1).max().unwrap_or(0));
            documents += weight;
            sizes.push(size);
            if size > 0.0 {
                log_size += weight * size.ln();
            }
            for (&(unit, count), amount) in pairs.iter().zip(&taken) {
                let amount = Amount { count: f64::from(count), share: amount / size, documents: 1.0 };
                sums.add(unit, amount, weight);
            }
        }
        let (units, amounts) = sums.taken();
        parts.push(Part { class: wanted.codes[same[0]] as usize, units, amounts, documents, log_size, sizes });
    }
    Ok((parts, kept))
}

/// log(1 + count).
#[inline]
pub fn log_count(count: u32) -> f64 {
    static LOGS: LazyLock<[f64; 64]> = LazyLock::new(|| std::array::from_fn(|count| (count as f64).ln_1p()));
    if count == 1 { LN_2 } else { LOGS.get(count as usize).copied().unwrap_or_else(|| f64::from(count).ln_1p()) }
}

/// Sums of one class: by unit, and which units there are.
#[derive(Default)]
struct Sums {
    sums: Vec<Amount>,
    met: Vec<u32>,
}

impl Sums {
    /// Makes room for so many units.
    fn reserve(&mut self, units: usize) {
        if units > self.sums.len() {
            self.sums.resize(units.next_power_of_two(), Amount::default());
        }
    }

    #[inline]
    fn add(&mut self, unit: u32, amount: Amount, weight: f64) {
        let sum = &mut self.sums[unit as usize];
        if sum.documents == 0.0 {
            self.met.push(unit);
        }
        sum.add(amount, weight);
    }

    fn taken(&mut self) -> (Vec<u32>, Vec<Amount>) {
        let units = self.met.clone(); // as long as it is, while `met` may have room for many more
        self.met.clear();
        let amounts = units.iter().map(|&unit| std::mem::take(&mut self.sums[unit as usize])).collect();
        (units, amounts)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Alphabet, Arrow, Invalid, Kind, Offsets};
    use super::*;

    const SHARES: Measure = Measure { log: true, size: Size::Sum };

    fn collected(documents: &[&str], codes: &[i32], weights: Option<&[f64]>) -> (ByUnit, OfClasses, Vec<String>) {
        measured(documents, codes, weights, SHARES)
    }

    fn measured(
        documents: &[&str],
        codes: &[i32],
        weights: Option<&[f64]>,
        measure: Measure,
    ) -> (ByUnit, OfClasses, Vec<String>) {
        let bytes = documents.concat().into_bytes();
        let ends = documents.iter().scan(0, |end, text| {
            *end += text.len() as i64;
            Some(*end)
        });
        let offsets: Vec<i64> = std::iter::once(0).chain(ends).collect();
        let texts = Texts::Arrow(Arrow { offsets: Offsets::Wide(&offsets), bytes: &bytes, validity: None });
        let alphabet = Alphabet::ascii(true, Invalid::Refuse);
        let analysis = Analysis { kind: Kind::Words { single: true }, shortest: 1, longest: 1, alphabet };
        let grow = || Vocabulary::growing(std::iter::empty());
        let kept: Vec<i64> = (0..documents.len() as i64).collect();
        let wanted = Wanted { codes, weights, classes: 2, kept: &kept, measure };
        let (amounts, classes, rows, terms) = collect(&texts, &analysis, wanted, grow).unwrap();
        let counted = codes.iter().enumerate().filter(|(i, code)| **code >= 0 && wanted.weight(*i) > 0.0);
        assert_eq!(rows.starts.len(), 1 + counted.count());
        (amounts, classes, terms.strings())
    }

    #[test]
    fn amounts_of_classes() {
        let (found, classes, terms) = collected(&["a b a", "b", "a", "c", ""], &[0, 1, 1, -1, 1], None);
        assert_eq!(terms, ["a", "b"]);
        assert_eq!((found.starts, found.classes), (vec![0, 2, 4], vec![0, 1, 0, 1]));
        let size = 3_f64.ln() + 2_f64.ln();
        let shares = [3_f64.ln() / size, 1.0, 2_f64.ln() / size, 1.0];
        for ((amount, share), count) in found.amounts.iter().zip(shares).zip([2.0, 1.0, 1.0, 1.0]) {
            assert_eq!((amount.count, amount.documents), (count, 1.0));
            assert!((amount.share - share).abs() < 1e-15);
        }
        assert_eq!(classes.documents, [1.0, 3.0]);
        assert!((classes.log_sizes[0] - size.ln()).abs() < 1e-15);
        assert!((classes.log_sizes[1] - 2.0 * 2_f64.ln().ln()).abs() < 1e-15);
        assert_eq!(classes.sizes[1..], [2_f64.ln(), 2_f64.ln(), 0.0, 0.0]);
    }

    #[test]
    fn shares_by_other_measures() {
        let shares = |log, size| {
            let (found, classes, _) = measured(&["a b a a", ""], &[0, 0], None, Measure { log, size });
            assert_eq!(classes.sizes[1], 0.0);
            [found.amounts[0].share, found.amounts[1].share]
        };
        assert_eq!(shares(true, Size::One), [4_f64.ln(), 2_f64.ln()]);
        assert_eq!(shares(false, Size::Norm), [3.0 / 10_f64.sqrt(), 1.0 / 10_f64.sqrt()]);
        assert_eq!(shares(false, Size::Sum), [0.75, 0.25]);
    }

    #[test]
    fn a_weight_of_two_is_a_document_twice() {
        let (twice, classes, terms) = collected(&["a b", "a b", "b", "a"], &[0, 0, 0, 1], None);
        let weighed = collected(&["a b", "b", "a", "z"], &[0, 0, 1, 1], Some(&[2.0, 1.0, 1.0, 0.0]));
        assert_eq!((twice, terms), (weighed.0, weighed.2));
        assert_eq!((classes.documents, classes.log_sizes), (weighed.1.documents, weighed.1.log_sizes));
    }
}
