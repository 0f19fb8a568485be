//! A sink of the pairs of each document: rows of a sparse matrix.

use super::lexicon::Lexicon;
use super::reader::{Pair, Reader};
use super::split::Analysis;
use super::texts::{TextError, Texts};
use super::units::read_pieces;
use super::vocabulary::{Known, Terms, Vocabulary};
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

impl Rows {
    /// Adds a row.
    pub fn push(&mut self, pairs: &[Pair]) {
        self.units.extend(pairs.iter().map(|pair| pair.0 as i32));
        self.counts.extend(pairs.iter().map(|pair| pair.1 as i32));
        self.starts.push(self.units.len() as i64);
    }
}

/// Consecutive runs of documents for all threads. What is made of them must not depend on how many there are.
pub fn runs(texts: &Texts) -> Vec<Range<usize>> {
    let most = if threads::threads() == 1 { 1 } else { threads::threads() * PIECES_PER_THREAD };
    texts.cut(texts.len(), |i| i, most.min(texts.size() / LEAST_PIECE).max(1))
}

/// Counts the units of every document. `vocabulary` makes an empty one.
pub fn count(
    texts: &Texts,
    analysis: &Analysis,
    vocabulary: impl Fn() -> Vocabulary + Sync + Send,
) -> Result<(Rows, Terms), TextError> {
    let runs = runs(texts);
    let read = |reader: &mut Reader<_>, (): &mut (), piece: usize| rows(texts, reader, runs[piece].clone());
    let (pieces, terms) = read_pieces(runs.len(), texts.size(), analysis, vocabulary, read)?;
    let mut all = Rows { starts: vec![0], ..Rows::default() };
    for mut piece in pieces {
        let mut rows = std::mem::take(&mut piece.read);
        rows.units.iter_mut().for_each(|unit| *unit = piece.number(*unit as u32) as i32);
        append(&mut all, rows);
    }
    Ok((all, terms))
}

/// Counts the units that are known in every document.
pub fn count_known(texts: &Texts, analysis: &Analysis, known: &Known) -> Result<Rows, TextError> {
    let runs = runs(texts);
    let pieces =
        threads::map(runs.len(), texts.size(), |i| rows(texts, &mut Reader::new(*analysis, known), runs[i].clone()));
    let mut all = Rows { starts: vec![0], ..Rows::default() };
    for piece in pieces {
        append(&mut all, piece?);
    }
    Ok(all)
}

fn rows<L: Lexicon>(texts: &Texts, reader: &mut Reader<L>, run: Range<usize>) -> Result<Rows, TextError> {
    let mut rows = Rows::default();
    for document in run {
        rows.push(reader.read(document, texts.get(document)?)?);
    }
    Ok(rows)
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
    use super::super::{Alphabet, Arrow, Invalid, Kind, Offsets};
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
        f(&Texts::Arrow(Arrow { offsets: Offsets::Wide(&offsets), bytes: &bytes, validity: None }), &analysis)
    }

    fn growing() -> Vocabulary {
        Vocabulary::growing(std::iter::empty())
    }

    #[test]
    fn pieces_do_not_matter() {
        with_texts(60_000, |texts, analysis| {
            assert!(texts.size() > 4 * LEAST_PIECE);
            let (all, terms) = count(texts, analysis, growing).unwrap();
            let mut reader = Reader::new(*analysis, growing());
            let whole = rows(texts, &mut reader, 0..texts.len()).unwrap();
            let nodes: Vec<u32> = (0..reader.lexicon.nodes() as u32).collect();
            assert_eq!(terms, reader.lexicon.terms(&nodes));
            assert_eq!((&all.units, &all.counts), (&whole.units, &whole.counts));
            assert_eq!(all.starts[1..], whole.starts);
        });
    }
}
