//! What a reader asks of a vocabulary.

use super::slots::Name;
use super::vocabulary::{NONE, Vocabulary};

/// Units and their numbers. A vocabulary that is owned grows; one that is borrowed only knows what it knows.
pub trait Lexicon {
    fn all(&self) -> &Vocabulary;

    /// The node of a word by its name and text, `NONE` if it is unknown. `counted`: if it is new, it is a unit.
    fn word(&mut self, name: &Name, text: &[u8], counted: bool) -> u32;

    /// The node of an n-gram: of all its words but the last, and of the last.
    fn gram(&mut self, left: u32, last: u32, counted: bool) -> u32;
}

impl Lexicon for Vocabulary {
    #[inline]
    fn all(&self) -> &Vocabulary {
        self
    }

    #[inline]
    fn word(&mut self, name: &Name, text: &[u8], counted: bool) -> u32 {
        self.find_word(name, text).unwrap_or_else(|place| self.add_word(place, name, text, counted))
    }

    #[inline]
    fn gram(&mut self, left: u32, last: u32, counted: bool) -> u32 {
        let name = self.slots.gram(left, last);
        self.slots.find(&name, |_| true).unwrap_or_else(|place| self.add_gram(place, &name, counted))
    }
}

impl Lexicon for &Vocabulary {
    #[inline]
    fn all(&self) -> &Vocabulary {
        self
    }

    #[inline]
    fn word(&mut self, name: &Name, text: &[u8], _counted: bool) -> u32 {
        self.find_word(name, text).unwrap_or(NONE)
    }

    #[inline]
    fn gram(&mut self, left: u32, last: u32, _counted: bool) -> u32 {
        self.slots.find(&self.slots.gram(left, last), |_| true).unwrap_or(NONE)
    }
}
