//! What is known of characters: which form words, which are spaces, and what folding makes of each.
//!
//! Folding is lower case and the loss of accents, as far as asked for. Of ASCII the core knows everything itself. Of other
//! characters it is told by tables, since versions of Unicode differ and the caller's must be met. Lower case depends on
//! a character alone, but for the Greek capital sigma, whose form depends on its neighbours.

use super::texts::{TextError, Texts};
use std::borrow::Cow;

const WORD: u8 = 1;
const SPACE: u8 = 2;
/// Folding makes something else of it.
const FOLDED: u8 = 4;
const CASED: u8 = 8;
const CASE_IGNORABLE: u8 = 16;
/// Folding makes nothing of it.
const DROPPED: u8 = 32;

const ASCII: [u8; 128] = {
    let mut kinds = [0; 128];
    let mut byte = 0;
    while byte < 128 {
        if (byte as u8).is_ascii_alphanumeric() || byte as u8 == b'_' {
            kinds[byte] |= WORD;
        }
        // as Python's str.isspace: the separators 1C to 1F are spaces, too
        if matches!(byte, 9..=13 | 28..=32) {
            kinds[byte] |= SPACE;
        }
        if (byte as u8).is_ascii_alphabetic() {
            kinds[byte] |= CASED;
        }
        if matches!(byte as u8, b'\'' | b'.' | b':' | b'^' | b'`') {
            kinds[byte] |= CASE_IGNORABLE;
        }
        byte += 1;
    }
    kinds
};

/// What to do with bytes that are not UTF-8.
#[derive(Clone, Copy, PartialEq)]
pub enum Invalid {
    Refuse,
    Drop,
    /// U+FFFD takes their place.
    Replace,
}

/// Tables of characters, borrowed. Without any, characters beyond ASCII are neither words nor spaces and stay as they are.
#[derive(Clone, Copy)]
pub struct Alphabet<'a> {
    pub lower: bool,
    pub invalid: Invalid,
    /// Flags of every code point.
    pub kinds: &'a [u8],
    /// The code points that folding changes, sorted.
    pub folded: &'a [u32],
    /// Where what they become begins in `becomes`, and where the last ends.
    pub starts: &'a [u32],
    pub becomes: &'a [u8],
}

impl<'a> Alphabet<'a> {
    pub fn ascii(lower: bool, invalid: Invalid) -> Self {
        Self { lower, invalid, kinds: &[], folded: &[], starts: &[0], becomes: &[] }
    }

    /// The character that begins at `text[at]`, and its length. `text` is UTF-8.
    #[inline]
    pub fn decode(text: &[u8], at: usize) -> (u32, usize) {
        let byte = |i: usize| u32::from(text.get(at + i).copied().unwrap_or(0));
        match text[at] {
            first @ 0..0x80 => (u32::from(first), 1),
            first @ 0..0xE0 => ((u32::from(first) & 0x1F) << 6 | byte(1) & 0x3F, 2),
            first @ 0..0xF0 => ((u32::from(first) & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | byte(2) & 0x3F, 3),
            first => {
                let high = (u32::from(first) & 0x07) << 18 | (byte(1) & 0x3F) << 12;
                (high | (byte(2) & 0x3F) << 6 | byte(3) & 0x3F, 4)
            }
        }
    }

    #[inline]
    fn kind(&self, character: u32) -> u8 {
        let position = character as usize;
        if position < 128 { ASCII[position] } else { self.kinds.get(position).copied().unwrap_or(0) }
    }

    #[inline]
    pub fn is_word(&self, character: u32) -> bool {
        self.kind(character) & WORD != 0
    }

    #[inline]
    pub fn is_space(&self, character: u32) -> bool {
        self.kind(character) & SPACE != 0
    }

    /// Writes the folded document into `out`, as UTF-8.
    pub fn fold(&self, document: usize, text: &[u8], out: &mut Vec<u8>) -> Result<(), TextError> {
        out.clear();
        let text = match std::str::from_utf8(text) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) if self.invalid == Invalid::Refuse => return Err(TextError::NotUtf8(document)),
            Err(_) => Cow::Owned(repaired(text, self.invalid)),
        };
        let bytes = text.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            let end = at + ascii_run(&bytes[at..]);
            let written = out.len();
            out.extend_from_slice(&bytes[at..end]);
            if self.lower {
                out[written..].make_ascii_lowercase();
            }
            at = end;
            while at < bytes.len() && bytes[at] >= 0x80 {
                let (mut character, length) = Self::decode(bytes, at);
                let mut unchanged = &bytes[at..at + length];
                if character == 'Σ' as u32 && self.lower && self.ends_a_word(&text, at) {
                    (character, unchanged) = ('ς' as u32, "ς".as_bytes());
                }
                let kind = self.kind(character);
                if kind & (FOLDED | DROPPED) == 0 {
                    out.extend_from_slice(unchanged);
                } else if kind & DROPPED == 0 {
                    out.extend_from_slice(self.becomes(character).unwrap_or(unchanged));
                }
                at += length;
            }
        }
        Ok(())
    }

    fn becomes(&self, character: u32) -> Option<&'a [u8]> {
        let position = self.folded.binary_search(&character).ok()?;
        self.becomes.get(*self.starts.get(position)? as usize..*self.starts.get(position + 1)? as usize)
    }

    /// Whether the sigma at `at` comes after a letter and before none, looking past characters such as apostrophes.
    fn ends_a_word(&self, text: &str, at: usize) -> bool {
        let cased = |c: Option<char>| c.is_some_and(|c| self.kind(c as u32) & CASED != 0);
        let ignorable = |c: &char| self.kind(*c as u32) & CASE_IGNORABLE != 0;
        cased(text[..at].chars().rev().find(|c| !ignorable(c)))
            && !cased(text[at + 'Σ'.len_utf8()..].chars().find(|c| !ignorable(c)))
    }
}

/// How many bytes before the first that is not ASCII.
fn ascii_run(bytes: &[u8]) -> usize {
    let blocks = bytes.chunks_exact(32).take_while(|block| block.is_ascii()).count() * 32;
    blocks + bytes[blocks..].iter().take_while(|byte| byte.is_ascii()).count()
}

fn repaired(text: &[u8], invalid: Invalid) -> String {
    let mut out = String::with_capacity(text.len());
    for chunk in text.utf8_chunks() {
        out.push_str(chunk.valid());
        if !chunk.invalid().is_empty() && invalid == Invalid::Replace {
            out.push('\u{FFFD}');
        }
    }
    out
}

/// Whether texts are ASCII throughout, and whether there is a capital sigma: they say which tables are needed.
pub fn survey(texts: &Texts) -> Result<(bool, bool), TextError> {
    let mut found = (true, false);
    for document in 0..texts.len() {
        let bytes = texts.get(document)?;
        let run = ascii_run(bytes);
        found.0 &= run == bytes.len();
        found.1 |= has_sigma(&bytes[run..]);
    }
    Ok(found)
}

fn has_sigma(bytes: &[u8]) -> bool {
    // few texts are Greek: in blocks without the first byte of a sigma there is nothing more to look for
    let sigma = |at: usize| bytes[at..].starts_with("Σ".as_bytes());
    let block = |at: usize| at..(at + 4096).min(bytes.len());
    let mut blocks = (0..bytes.len()).step_by(4096).map(block).filter(|block| bytes[block.clone()].contains(&0xCE));
    blocks.any(|mut block| block.any(sigma))
}

#[cfg(test)]
mod tests {
    use super::super::texts::{Arrow, Offsets};
    use super::*;

    fn folded(alphabet: Alphabet, text: &[u8]) -> Result<String, TextError> {
        let mut out = Vec::new();
        alphabet.fold(7, text, &mut out)?;
        Ok(String::from_utf8(out).unwrap())
    }

    /// Tables that know Greek capitals.
    fn greek() -> (Vec<u8>, Vec<u32>, Vec<u32>, Vec<u8>) {
        let mut kinds = vec![0; 0x500];
        let (mut from, mut starts, mut becomes) = (Vec::new(), vec![0], String::new());
        for c in 'Α'..='ω' {
            kinds[c as usize] = WORD | CASED;
            let lower: String = c.to_lowercase().collect();
            if lower != c.to_string() {
                kinds[c as usize] |= FOLDED;
                from.push(c as u32);
                becomes += &lower;
                starts.push(becomes.len() as u32);
            }
        }
        (kinds, from, starts, becomes.into_bytes())
    }

    #[test]
    fn sigma_depends_on_its_neighbours() {
        let (kinds, folds, starts, becomes) = greek();
        let alphabet = Alphabet {
            kinds: &kinds,
            folded: &folds,
            starts: &starts,
            becomes: &becomes,
            ..Alphabet::ascii(true, Invalid::Refuse)
        };
        for (text, expected) in
            [("ΟΣ ΟΣΟ Σ", "ος οσο σ"), ("ΣΣ", "σς"), ("A Σ", "a σ"), ("ΑΣ.", "ας."), ("AΣ'b", "aσ'b")]
        {
            assert_eq!(folded(alphabet, text.as_bytes()).unwrap(), expected);
        }
    }

    #[test]
    fn bytes_that_are_not_utf8() {
        let text = b"Ab\xffC\xe2\x82D";
        assert_eq!(folded(Alphabet::ascii(true, Invalid::Refuse), text), Err(TextError::NotUtf8(7)));
        assert_eq!(folded(Alphabet::ascii(true, Invalid::Drop), text).unwrap(), "abcd");
        assert_eq!(folded(Alphabet::ascii(false, Invalid::Replace), text).unwrap(), "Ab\u{FFFD}C\u{FFFD}D");
    }

    #[test]
    fn a_survey_finds_what_is_there() {
        let survey = |text: &str| {
            let offsets = [0, text.len() as i64];
            survey(&Texts::Arrow(Arrow { offsets: Offsets::Wide(&offsets), bytes: text.as_bytes(), validity: None }))
        };
        assert_eq!(survey("plain text that is longer than one block of bytes"), Ok((true, false)));
        assert_eq!(survey("é"), Ok((false, false)));
        assert_eq!(survey("a long text that ends with a sigma, as few texts do: Σ"), Ok((false, true)));
        assert_eq!(survey(&format!("é{}Σ", "x".repeat(4093))), Ok((false, true)));
    }
}
