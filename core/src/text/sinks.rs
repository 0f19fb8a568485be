//! A sink of the pairs of each document: rows of a sparse matrix.

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
}
