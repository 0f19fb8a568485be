//! What a reader asks of a vocabulary.

use super::slots::{Gram, Name, Word};
use super::vocabulary::{Known, NONE, Vocabulary};

/// Words and n-grams. A vocabulary grows with what it is asked for; a known one only knows what it knows.
pub trait Lexicon {
    fn vocabulary(&self) -> &Vocabulary;

    /// The node of a word by its name and text, `NONE` if it is unknown.
    fn word(&mut self, name: &Name<Word>, text: &[u8]) -> u32;

    /// The node of an n-gram.
    fn gram(&mut self, name: &Name<Gram>) -> u32;

    /// The number of a node that is counted. While a vocabulary grows, that is the node itself.
    fn unit(&self, node: u32) -> u32;
}

impl Lexicon for Vocabulary {
    #[inline]
    fn vocabulary(&self) -> &Vocabulary {
        self
    }

    #[inline]
    fn word(&mut self, name: &Name<Word>, text: &[u8]) -> u32 {
        self.find_word(name, text).unwrap_or_else(|position| self.add_word(position, name, text))
    }

    #[inline]
    fn gram(&mut self, name: &Name<Gram>) -> u32 {
        self.grams.find(name, |_| true).unwrap_or_else(|position| self.add_gram(position, name))
    }

    #[inline]
    fn unit(&self, node: u32) -> u32 {
        node
    }
}

impl Lexicon for &Known {
    #[inline]
    fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    #[inline]
    fn word(&mut self, name: &Name<Word>, text: &[u8]) -> u32 {
        self.vocabulary.find_word(name, text).unwrap_or(NONE)
    }

    #[inline]
    fn gram(&mut self, name: &Name<Gram>) -> u32 {
        self.vocabulary.grams.find(name, |_| true).unwrap_or(NONE)
    }

    #[inline]
    fn unit(&self, node: u32) -> u32 {
        Known::unit(self, node)
    }
}
