//! One document, folded, into its units.

use super::alphabet::Alphabet;
use super::marks::{BLOCK, Marker, Marks};
use super::texts::TextError;

/// Ends a token; no UTF-8 has it.
const END: u8 = 0xFF;

#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Kind {
    /// Runs of word characters; whether a single one is a word.
    Words { single: bool },
    /// Runs of word characters, and every other character that is not a space.
    WordsAndPunctuation,
    /// Runs of characters; several spaces in a row are one.
    Characters,
    /// Runs of characters within a word and the space on either side of it; words are what is between spaces.
    CharactersInWords,
    /// What the caller has found, each with the byte FF behind it; nothing is folded.
    Tokens,
}

impl Kind {
    pub fn is_words(self) -> bool {
        matches!(self, Self::Words { .. } | Self::WordsAndPunctuation | Self::Tokens)
    }
}

/// What the units of a document are.
#[derive(Clone, Copy)]
pub struct Analysis<'a> {
    pub kind: Kind,
    /// How many words, or characters, make a unit: from the first of these to the second.
    pub shortest: usize,
    pub longest: usize,
    pub alphabet: Alphabet<'a>,
}

impl Analysis<'_> {
    /// Writes the folded document into `out`.
    pub fn fold(&self, document: usize, text: &[u8], out: &mut Vec<u8>) -> Result<(), TextError> {
        if self.kind != Kind::Tokens {
            return self.alphabet.fold(document, text, out);
        }
        out.clear();
        out.extend_from_slice(text);
        Ok(())
    }

    /// Calls `word` with every word of a folded text: all text from its start on, and its length.
    #[inline]
    pub fn words(&self, text: &[u8], mut word: impl FnMut(&[u8], usize)) {
        let (single, punctuation) = match self.kind {
            Kind::Words { single } => (single, 0),
            Kind::Tokens => return tokens(text, word),
            _ => (true, u64::MAX),
        };
        let mut marker = Marker::new(&self.alphabet);
        // The word that is being read began at `start`, if it is one.
        let (mut within, mut start) = (false, 0);
        for block in (0..text.len()).step_by(BLOCK) {
            let Marks { words, others } = marker.block(text, block);
            let others = others & punctuation;
            // Where words begin, where they have ended, and other characters.
            let mut left = (words ^ (words << 1 | u64::from(within))) | others;
            while left != 0 {
                let position = left.trailing_zeros();
                left &= left - 1;
                let at = block + position as usize;
                if within {
                    within = false;
                    if single || at - start > width(text[start]) {
                        word(&text[start..], at - start);
                    }
                } else if words >> position & 1 == 1 {
                    (within, start) = (true, at);
                }
                if others >> position & 1 == 1 {
                    word(&text[at..], width(text[at]));
                }
            }
        }
        if within && (single || text.len() - start > width(text[start])) {
            word(&text[start..], text.len() - start);
        }
    }

    /// Calls `unit` with every run of characters of a folded text, which it changes.
    pub fn characters(
        &self,
        text: &mut Vec<u8>,
        padded: &mut Vec<u8>,
        window: &mut Vec<usize>,
        mut unit: impl FnMut(&[u8]),
    ) {
        if self.kind == Kind::Characters {
            self.join_spaces(text);
            runs(text, self.shortest, self.longest, window, unit);
            return;
        }
        let mut at = 0;
        while at < text.len() {
            let (character, length) = Alphabet::decode(text, at);
            at += length;
            if self.alphabet.is_space(character) {
                continue;
            }
            let start = at - length;
            at = self.next_space(text, at);
            padded.clear();
            padded.push(b' ');
            padded.extend_from_slice(&text[start..at]);
            padded.push(b' ');
            // a word not longer than a unit is one unit, once
            let characters = padded.iter().filter(|byte| is_first(**byte)).count();
            if characters <= self.shortest {
                unit(padded);
            } else {
                runs(padded, self.shortest, self.longest.min(characters), window, &mut unit);
            }
        }
    }

    fn next_space(&self, text: &[u8], mut at: usize) -> usize {
        while at < text.len() {
            let (character, length) = Alphabet::decode(text, at);
            if self.alphabet.is_space(character) {
                break;
            }
            at += length;
        }
        at
    }

    /// Puts one blank in the place of two or more spaces, of whatever kind.
    fn join_spaces(&self, text: &mut Vec<u8>) {
        let (mut at, mut end, mut spaces, mut before) = (0, 0, 0, 0);
        while at < text.len() {
            let (character, length) = Alphabet::decode(text, at);
            if !self.alphabet.is_space(character) {
                spaces = 0;
            } else {
                spaces += 1;
                if spaces == 1 {
                    before = end;
                } else {
                    text[before] = b' ';
                    end = before + 1;
                    at += length;
                    continue;
                }
            }
            text.copy_within(at..at + length, end);
            end += length;
            at += length;
        }
        text.truncate(end);
    }
}

/// Calls `word` with every token, as `words` does. What follows the last end is no token.
fn tokens(text: &[u8], mut word: impl FnMut(&[u8], usize)) {
    let mut start = 0;
    for (end, _) in text.iter().enumerate().filter(|(_, byte)| **byte == END) {
        word(&text[start..], end - start);
        start = end + 1;
    }
}

/// Calls `unit` with every run of `shortest` to `longest` characters.
fn runs(text: &[u8], shortest: usize, longest: usize, window: &mut Vec<usize>, mut unit: impl FnMut(&[u8])) {
    // the positions of the last `longest` characters; twice as long, so that it is seldom moved
    window.clear();
    let mut at = 0;
    while at < text.len() {
        if window.len() >= 2 * longest {
            window.drain(..window.len() + 1 - longest);
        }
        window.push(at);
        at += width(text[at]);
        for n in shortest..=longest.min(window.len()) {
            unit(&text[window[window.len() - n]..at]);
        }
    }
}

fn is_first(byte: u8) -> bool {
    byte & 0xC0 != 0x80
}

/// The bytes of the character that begins with this one.
#[inline]
fn width(first: u8) -> usize {
    match first {
        0..0x80 => 1,
        0x80..0xE0 => 2,
        0xE0..0xF0 => 3,
        0xF0.. => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::super::alphabet::Invalid;
    use super::*;

    fn units(kind: Kind, shortest: usize, longest: usize, text: &str) -> Vec<String> {
        let analysis = Analysis { kind, shortest, longest, alphabet: Alphabet::ascii(true, Invalid::Refuse) };
        let mut out = Vec::new();
        let mut keep = |unit: &[u8]| out.push(String::from_utf8(unit.to_vec()).unwrap());
        if kind.is_words() {
            analysis.words(text.as_bytes(), |tail, length| keep(&tail[..length]));
        } else {
            analysis.characters(&mut text.as_bytes().to_vec(), &mut Vec::new(), &mut Vec::new(), keep);
        }
        out
    }

    #[test]
    fn words() {
        assert_eq!(units(Kind::Words { single: false }, 1, 1, " a bc, d_e f1\0gh"), ["bc", "d_e", "f1", "gh"]);
        assert_eq!(units(Kind::Words { single: true }, 1, 1, "a b"), ["a", "b"]);
        assert_eq!(units(Kind::WordsAndPunctuation, 1, 1, "no! a…b\n"), ["no", "!", "a", "…", "b"]);
    }

    #[test]
    fn tokens_are_what_ends() {
        let mut out = Vec::new();
        tokens(b"New York\xFF\xFF\xC3\xA9\xFFrest", |tail, length| out.push(tail[..length].to_vec()));
        assert_eq!(out, [b"New York".to_vec(), b"".to_vec(), "\u{e9}".as_bytes().to_vec()]);
    }

    #[test]
    fn characters() {
        assert_eq!(units(Kind::Characters, 2, 2, "a \n b\nc"), ["a ", " b", "b\n", "\nc"]);
        assert_eq!(units(Kind::Characters, 1, 3, "a\u{e9}"), ["a", "\u{e9}", "a\u{e9}"]);
        assert!(units(Kind::Characters, 3, 3, "ab").is_empty());
        assert_eq!(units(Kind::Characters, 7, 7, "abcdefgh"), ["abcdefg", "bcdefgh"]);
    }

    #[test]
    fn characters_in_words() {
        assert_eq!(units(Kind::CharactersInWords, 3, 4, "ab  c"), [" ab", "ab ", " ab ", " c "]);
        assert_eq!(units(Kind::CharactersInWords, 5, 9, "a bcde"), [" a ", " bcde", "bcde ", " bcde "]);
    }
}
