//! What becomes of the pairs of each document: rows of a sparse matrix, or sums of classes.

use super::lexicon::Lexicon;
use super::reader::Reader;
use super::split::Analysis;
use super::texts::{TextError, Texts};
use super::vocabulary::Vocabulary;
use crate::threads;
use std::ops::Range;

/// Pieces for each thread, so that those who finish early have more to do.
const PIECES_PER_THREAD: usize = 4;
/// Below so many bytes a piece costs more than it brings.
const LEAST_PIECE: usize = 1 << 18;

/// Rows of a sparse matrix: where each begins, and the columns and counts of all.
#[derive(Default, Debug, PartialEq)]
pub struct Rows {
    pub starts: Vec<i64>,
    pub units: Vec<i32>,
    pub counts: Vec<i32>,
}

/// For each class the units it has: how often they came, and in how many documents.
#[derive(Default, Debug, PartialEq)]
pub struct Classes {
    pub starts: Vec<i64>,
    pub units: Vec<i32>,
    pub counts: Vec<u64>,
    pub documents: Vec<u64>,
}

/// Runs `f` on consecutive runs of documents, and returns the results in their order. `order` says which document is at
/// each place. How many runs there are depends on the number of threads; what is made of the results must not.
pub fn each_piece<T: Send>(
    texts: &Texts,
    documents: usize,
    order: impl Fn(usize) -> usize + Sync,
    f: impl Fn(Range<usize>) -> Result<T, TextError> + Sync + Send,
) -> Result<Vec<T>, TextError> {
    let size = texts.size();
    let most = if threads::threads() == 1 { 1 } else { threads::threads() * PIECES_PER_THREAD };
    let runs = texts.cut(documents, order, most.min(size / LEAST_PIECE).max(1));
    threads::map(runs.len(), size, |i| f(runs[i].clone())).into_iter().collect()
}

/// Counts the units of every document. `vocabulary` makes an empty one.
pub fn count(
    texts: &Texts,
    analysis: &Analysis,
    vocabulary: impl Fn() -> Vocabulary + Sync,
) -> Result<(Rows, Vocabulary), TextError> {
    let pieces = each_piece(texts, texts.len(), |i| i, |run| rows(texts, Reader::new(*analysis, vocabulary()), run))?;
    let (mut all, mut whole): (Rows, Option<Vocabulary>) = (Rows { starts: vec![0], ..Rows::default() }, None);
    for (mut piece, vocabulary) in pieces {
        match &mut whole {
            None => whole = Some(vocabulary),
            Some(whole) => {
                let numbers = whole.absorb(&vocabulary);
                piece.units.iter_mut().for_each(|unit| *unit = numbers[*unit as usize] as i32);
            }
        }
        append(&mut all, piece);
    }
    Ok((all, whole.unwrap_or_else(vocabulary)))
}

/// Counts the units that a vocabulary knows in every document.
pub fn count_known(texts: &Texts, analysis: &Analysis, vocabulary: &Vocabulary) -> Result<Rows, TextError> {
    let pieces = each_piece(texts, texts.len(), |i| i, |run| rows(texts, Reader::new(*analysis, vocabulary), run))?;
    let mut all = Rows { starts: vec![0], ..Rows::default() };
    for (piece, _) in pieces {
        append(&mut all, piece);
    }
    Ok(all)
}

fn rows<L: Lexicon>(texts: &Texts, mut reader: Reader<L>, run: Range<usize>) -> Result<(Rows, L), TextError> {
    let mut rows = Rows::default();
    for document in run {
        for &(unit, count) in reader.read(document, texts.get(document)?)? {
            rows.units.push(unit as i32);
            rows.counts.push(count as i32);
        }
        rows.starts.push(rows.units.len() as i64);
    }
    Ok((rows, reader.vocabulary))
}

/// Puts the rows of a piece, whose `starts` lack the first, behind all.
pub fn append(all: &mut Rows, piece: Rows) {
    if all.units.is_empty() {
        all.units = piece.units;
        all.counts = piece.counts;
        all.starts.extend(piece.starts);
        return;
    }
    let before = all.units.len() as i64;
    all.starts.extend(piece.starts.iter().map(|start| before + start));
    all.units.extend(piece.units);
    all.counts.extend(piece.counts);
}

/// Sums the counts of the documents of every class, without ever holding a matrix of documents. Documents whose code is
/// negative are passed over. The vocabulary is in the order of first appearance if documents are read class by class.
pub fn count_classes(
    texts: &Texts,
    analysis: &Analysis,
    codes: &[i32],
    classes: usize,
    vocabulary: impl Fn() -> Vocabulary + Sync,
) -> Result<(Classes, Vocabulary), TextError> {
    // class by class, one sum for each unit is enough at any time, and no unit that a class lacks takes any room
    let mut order: Vec<usize> = (0..texts.len().min(codes.len())).filter(|&i| codes[i] >= 0).collect();
    order.sort_by_key(|&i| codes[i]);
    let sum = |run: Range<usize>| sums(texts, Reader::new(*analysis, vocabulary()), &order[run], codes);
    let pieces = each_piece(texts, order.len(), |i| order[i], sum)?;
    let mut whole = vocabulary();
    let mut all = Classes { starts: vec![0], ..Classes::default() };
    let mut sums = Sums::default();
    let mut class = 0;
    for (piece, vocabulary) in pieces {
        let numbers = whole.absorb(&vocabulary);
        for part in piece {
            while class < part.class {
                sums.flush(&mut all.units, &mut all.counts, &mut all.documents);
                all.starts.push(all.units.len() as i64);
                class += 1;
            }
            for ((unit, count), documents) in part.units.iter().zip(&part.counts).zip(&part.documents) {
                sums.add(numbers[*unit as usize], *count, *documents);
            }
        }
    }
    while class < classes {
        sums.flush(&mut all.units, &mut all.counts, &mut all.documents);
        all.starts.push(all.units.len() as i64);
        class += 1;
    }
    Ok((all, whole))
}

/// What a run of documents has of one class.
struct Part {
    class: usize,
    units: Vec<i32>,
    counts: Vec<u64>,
    documents: Vec<u64>,
}

fn sums(
    texts: &Texts,
    mut reader: Reader<Vocabulary>,
    order: &[usize],
    codes: &[i32],
) -> Result<(Vec<Part>, Vocabulary), TextError> {
    let (mut parts, mut sums) = (Vec::new(), Sums::default());
    for same in order.chunk_by(|&a, &b| codes[a] == codes[b]) {
        for &document in same {
            for &(unit, count) in reader.read(document, texts.get(document)?)? {
                sums.add(unit, u64::from(count), 1);
            }
        }
        let class = codes[same[0]] as usize;
        let mut part = Part { class, units: Vec::new(), counts: Vec::new(), documents: Vec::new() };
        sums.flush(&mut part.units, &mut part.counts, &mut part.documents);
        parts.push(part);
    }
    Ok((parts, reader.vocabulary))
}

/// Sums of one class: by unit, and which units there are.
#[derive(Default)]
struct Sums {
    sums: Vec<(u64, u64)>,
    met: Vec<u32>,
}

impl Sums {
    #[inline]
    fn add(&mut self, unit: u32, count: u64, documents: u64) {
        let place = unit as usize;
        if place >= self.sums.len() {
            self.sums.resize((place + 1).next_power_of_two(), (0, 0));
        }
        let sum = &mut self.sums[place];
        if sum.1 == 0 {
            self.met.push(unit);
        }
        sum.0 += count;
        sum.1 += documents;
    }

    /// Writes the sums in the order of units, and begins anew.
    fn flush(&mut self, units: &mut Vec<i32>, counts: &mut Vec<u64>, documents: &mut Vec<u64>) {
        self.met.sort_unstable();
        for &unit in &self.met {
            let (count, number) = std::mem::take(&mut self.sums[unit as usize]);
            units.push(unit as i32);
            counts.push(count);
            documents.push(number);
        }
        self.met.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Alphabet, Invalid, Kind, Offsets};
    use super::*;

    fn with_texts<T>(documents: usize, f: impl Fn(&Texts, &Analysis) -> T) -> T {
        let (mut bytes, mut offsets) = (Vec::new(), vec![0]);
        for i in 0..documents {
            for j in 0..i % 7 {
                bytes.extend_from_slice(format!("word{} and {} ", i * j % 101, i % 3).as_bytes());
            }
            offsets.push(bytes.len() as i64);
        }
        let alphabet = Alphabet::ascii(true, Invalid::Refuse);
        let analysis = Analysis { kind: Kind::Words { single: true }, shortest: 1, longest: 2, alphabet };
        f(&Texts { offsets: Offsets::Wide(&offsets), bytes: &bytes, validity: None }, &analysis)
    }

    fn growing() -> Vocabulary {
        Vocabulary::growing(std::iter::empty())
    }

    #[test]
    fn pieces_do_not_matter() {
        with_texts(60_000, |texts, analysis| {
            assert!(texts.size() > 4 * LEAST_PIECE);
            let (rows, vocabulary) = count(texts, analysis, growing).unwrap();
            let whole = super::rows(texts, Reader::new(*analysis, growing()), 0..texts.len()).unwrap();
            assert_eq!(vocabulary.terms(), whole.1.terms());
            assert_eq!((&rows.units, &rows.counts), (&whole.0.units, &whole.0.counts));
            assert_eq!(rows.starts[1..], whole.0.starts);
        });
    }

    #[test]
    fn classes_are_sums_of_rows() {
        with_texts(50_000, |texts, analysis| {
            let codes: Vec<i32> = (0..texts.len()).map(|i| (i * i % 5) as i32 - 1).collect();
            let (sums, vocabulary) = count_classes(texts, analysis, &codes, 5, growing).unwrap();
            let (offsets, bytes) = vocabulary.terms();
            let terms = offsets.windows(2).map(|pair| &bytes[pair[0] as usize..pair[1] as usize]);
            let known = Vocabulary::known(std::iter::empty(), terms, true);
            let rows = count_known(texts, analysis, &known).unwrap();
            let mut expected = vec![(0, 0); 5 * vocabulary.units()];
            for (i, &code) in codes.iter().enumerate().filter(|(_, code)| **code >= 0) {
                for at in rows.starts[i] as usize..rows.starts[i + 1] as usize {
                    let sum = &mut expected[code as usize * vocabulary.units() + rows.units[at] as usize];
                    *sum = (sum.0 + rows.counts[at] as u64, sum.1 + 1);
                }
            }
            let mut found = vec![(0, 0); expected.len()];
            assert_eq!(sums.starts.len(), 6);
            for class in 0..5 {
                for at in sums.starts[class] as usize..sums.starts[class + 1] as usize {
                    let place = class * vocabulary.units() + sums.units[at] as usize;
                    found[place] = (sums.counts[at], sums.documents[at]);
                }
            }
            assert_eq!(found, expected);
        });
    }
}
