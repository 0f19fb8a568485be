//! Which bytes of 64 at a time belong to words, and which are characters that stand for themselves: a bit for each.

use super::alphabet::Alphabet;

/// Bytes looked at together.
pub const BLOCK: usize = 64;

/// Bit i is byte i of a block.
#[derive(Clone, Copy)]
pub struct Marks {
    /// Bytes of word characters.
    pub words: u64,
    /// The first bytes of other characters that are no spaces.
    pub others: u64,
}

/// Marks the blocks of a folded text, one after another.
pub struct Marker<'a> {
    alphabet: &'a Alphabet<'a>,
    /// Bytes of the next block that belong to a word character of this one.
    begun: u64,
}

impl<'a> Marker<'a> {
    pub fn new(alphabet: &'a Alphabet<'a>) -> Self {
        Self { alphabet, begun: 0 }
    }

    /// Marks the block of the text that begins at `at`. What is beyond the text is a space.
    #[inline]
    pub fn block(&mut self, text: &[u8], at: usize) -> Marks {
        let mut marks;
        let beyond_ascii;
        if let Some(block) = text[at..].first_chunk::<BLOCK>() {
            (marks, beyond_ascii) = ascii(block);
        } else {
            let mut padded = [b' '; BLOCK];
            padded[..text.len() - at].copy_from_slice(&text[at..]);
            (marks, beyond_ascii) = ascii(&padded);
        }
        if beyond_ascii | self.begun != 0 {
            self.beyond_ascii(text, at, beyond_ascii, &mut marks);
        }
        marks
    }

    #[cold]
    fn beyond_ascii(&mut self, text: &[u8], at: usize, bytes: u64, marks: &mut Marks) {
        marks.words |= std::mem::take(&mut self.begun);
        let mut left = bytes;
        while left != 0 {
            let position = left.trailing_zeros();
            left &= left - 1;
            if text[at + position as usize] & 0xC0 != 0xC0 {
                continue; // not the first byte of a character
            }
            let (character, length) = Alphabet::decode(text, at + position as usize);
            if self.alphabet.is_word(character) {
                let run = (1_u64 << length) - 1;
                marks.words |= run << position;
                self.begun |= run.checked_shr(BLOCK as u32 - position).unwrap_or(0);
            } else if !self.alphabet.is_space(character) {
                marks.others |= 1 << position;
            }
        }
    }
}

/// The marks of ASCII characters, and which bytes are none.
#[inline]
fn ascii(block: &[u8; BLOCK]) -> (Marks, u64) {
    let word = |byte: u8| (byte | 32).wrapping_sub(b'a') < 26 || byte.wrapping_sub(b'0') < 10 || byte == b'_';
    // as Python's str.isspace: the separators 1C to 1F are spaces, too
    let space = |byte: u8| byte.wrapping_sub(9) < 5 || byte.wrapping_sub(28) < 5;
    let words = bits(block, word);
    let beyond_ascii = bits(block, |byte| byte >= 0x80);
    (Marks { words, others: !(words | bits(block, space) | beyond_ascii) }, beyond_ascii)
}

/// A bit for each byte.
#[inline]
fn bits(block: &[u8; BLOCK], holds: impl Fn(u8) -> bool) -> u64 {
    // Loops that the compiler turns into vector instructions; a product then moves eight bytes' lowest bits together.
    let mut flags = [0_u8; BLOCK];
    for (flag, &byte) in flags.iter_mut().zip(block) {
        *flag = u8::from(holds(byte));
    }
    let eights = flags.as_chunks::<8>().0.iter().enumerate();
    eights.fold(0, |bits, (i, eight)| {
        bits | (u64::from_le_bytes(*eight).wrapping_mul(0x0102_0408_1020_4080) >> 56) << (8 * i)
    })
}

#[cfg(test)]
mod tests {
    use super::super::Invalid;
    use super::*;

    #[test]
    fn every_byte_of_ascii() {
        let all: Vec<u8> = (0..128).collect();
        let alphabet = Alphabet::ascii(true, Invalid::Refuse);
        let mut marker = Marker::new(&alphabet);
        for at in [0, 64] {
            let marks = marker.block(&all, at);
            for i in 0..64 {
                let character = (at + i) as u32;
                assert_eq!(marks.words >> i & 1 == 1, alphabet.is_word(character));
                let other = !alphabet.is_word(character) && !alphabet.is_space(character);
                assert_eq!(marks.others >> i & 1 == 1, other);
            }
        }
    }

    #[test]
    fn characters_across_blocks() {
        let mut kinds = vec![0; 0x200];
        kinds[0xE9] = 1;
        let alphabet = Alphabet { kinds: &kinds, ..Alphabet::ascii(true, Invalid::Refuse) };
        for before in 60..66 {
            let text = format!("{}éa", " ".repeat(before));
            let mut marker = Marker::new(&alphabet);
            let words = [0, 64].map(|at| if at < text.len() { marker.block(text.as_bytes(), at).words } else { 0 });
            let all = u128::from(words[0]) | u128::from(words[1]) << 64;
            assert_eq!(all, 7 << before);
        }
    }
}
