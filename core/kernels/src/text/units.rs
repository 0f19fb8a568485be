//! Units of documents that threads read with vocabularies of their own: numbered as if one had read them all.

use super::reader::Reader;
use super::split::Analysis;
use super::texts::TextError;
use super::vocabulary::{NONE, Terms, Vocabulary};
use crate::threads;
use std::ops::Range;
use std::sync::Arc;

/// What was read of a piece, and the number of the unit of each node in it.
pub struct Piece<T> {
    pub read: T,
    numbers: Arc<Vec<u32>>,
}

impl<T> Piece<T> {
    #[inline]
    pub fn number(&self, node: u32) -> u32 {
        self.numbers[node as usize]
    }
}

/// Reads pieces, `steps` in all, on all threads. Returns what `read` made of each, in their order, and the units, in the order
/// of their first appearance. Every thread has a reader, and room for something else.
pub fn read_pieces<S: Default + Send, T: Send>(
    pieces: usize,
    steps: usize,
    analysis: &Analysis,
    vocabulary: impl Fn() -> Vocabulary + Sync + Send,
    read: impl Fn(&mut Reader<Vocabulary>, &mut S, usize) -> Result<T, TextError> + Sync + Send,
) -> Result<(Vec<Piece<T>>, Terms), TextError> {
    let begin = || (Reader::new(*analysis, vocabulary()), S::default());
    let taken = threads::map_with(pieces, steps, begin, |(reader, room), piece| {
        let made = read(reader, room, piece)?;
        Ok((made, reader.lexicon.nodes()))
    });
    let mut whole: Option<Vocabulary> = None;
    // Of each thread, the nodes of the whole that its own are; and of each piece, who read it, and which nodes were new then.
    let mut here: Vec<Vec<u32>> = Vec::new();
    let mut results: Vec<Option<(T, usize, Range<usize>)>> = (0..pieces).map(|_| None).collect();
    let (threads, mut failed) = (taken.len(), None);
    for (thread, own) in taken.into_iter().enumerate() {
        let mut before = 0;
        for (piece, made) in own.pieces {
            match made {
                Ok((made, nodes)) => {
                    results[piece] = Some((made, thread, before..nodes));
                    before = nodes;
                }
                Err(error) if failed.as_ref().is_none_or(|(first, _)| piece < *first) => failed = Some((piece, error)),
                Err(_) => {}
            }
        }
        let vocabulary = own.state.0.lexicon;
        here.push(match &mut whole {
            None => (0..vocabulary.nodes() as u32).collect(),
            Some(whole) => whole.absorb(&vocabulary, thread + 1 == threads),
        });
        whole.get_or_insert(vocabulary);
    }
    if let Some((_, error)) = failed {
        return Err(error);
    }
    let vocabulary = whole.unwrap_or_else(vocabulary);
    let shortest = if analysis.kind.is_words() { analysis.shortest } else { 1 };
    let (mut units, mut nodes) = (vec![NONE; vocabulary.nodes()], Vec::new());
    for (_, thread, new) in results.iter().flatten() {
        for &node in &here[*thread][new.clone()] {
            if units[node as usize] == NONE && vocabulary.is_unit(node, shortest) {
                units[node as usize] = nodes.len() as u32;
                nodes.push(node);
            }
        }
    }
    let numbered = |own: Vec<u32>| Arc::new(own.into_iter().map(|node| units[node as usize]).collect());
    let numbers: Vec<Arc<Vec<u32>>> = here.into_iter().map(numbered).collect();
    let piece = |(read, thread, _): (T, usize, _)| Piece { read, numbers: numbers[thread].clone() };
    Ok((results.into_iter().flatten().map(piece).collect(), vocabulary.terms(&nodes)))
}
