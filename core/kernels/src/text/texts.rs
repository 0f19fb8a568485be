//! Documents: as Arrow lays strings out, all bytes in a row, where each begins, and a bit for those that are there; or each on
//! its own.

use std::ops::Range;

/// Why texts cannot be read.
#[derive(Debug, PartialEq)]
pub enum TextError {
    /// The arrays do not fit together.
    Layout,
    /// This document is not UTF-8, and was to be.
    NotUtf8(usize),
}

/// Where texts begin, and where the last one ends.
#[derive(Clone, Copy)]
pub enum Offsets<'a> {
    Narrow(&'a [i32]),
    Wide(&'a [i64]),
}

impl Offsets<'_> {
    fn len(&self) -> usize {
        match self {
            Self::Narrow(offsets) => offsets.len(),
            Self::Wide(offsets) => offsets.len(),
        }
    }

    /// The offset at `i`; a negative one is beyond all bytes.
    fn get(&self, i: usize) -> Option<usize> {
        match self {
            Self::Narrow(offsets) => usize::try_from(*offsets.get(i)?).ok(),
            Self::Wide(offsets) => usize::try_from(*offsets.get(i)?).ok(),
        }
    }
}

/// Texts as Arrow lays them out. Nothing is trusted: offsets are checked as each document is read.
#[derive(Clone, Copy)]
pub struct Arrow<'a> {
    pub offsets: Offsets<'a>,
    pub bytes: &'a [u8],
    /// A bitmap, least significant bit first, and the position of the first document's bit.
    pub validity: Option<(&'a [u8], usize)>,
}

impl<'a> Arrow<'a> {
    fn get(&self, document: usize) -> Result<&'a [u8], TextError> {
        if !self.is_there(document)? {
            return Ok(&[]);
        }
        let (start, end) = (self.offsets.get(document), self.offsets.get(document + 1));
        let range = start.zip(end).map(|(start, end)| start..end).ok_or(TextError::Layout)?;
        self.bytes.get(range).ok_or(TextError::Layout)
    }

    fn is_there(&self, document: usize) -> Result<bool, TextError> {
        let Some((bits, first)) = self.validity else { return Ok(true) };
        let bit = first + document;
        bits.get(bit / 8).map(|byte| byte >> (bit % 8) & 1 == 1).ok_or(TextError::Layout)
    }
}

/// Texts that lie each on its own.
pub trait Listed: Sync {
    fn len(&self) -> usize;
    fn get(&self, document: usize) -> &[u8];
}

/// Borrowed texts: nothing is copied.
#[derive(Clone, Copy)]
pub enum Texts<'a> {
    Arrow(Arrow<'a>),
    Listed(&'a dyn Listed),
}

impl<'a> Texts<'a> {
    pub fn len(&self) -> usize {
        match self {
            Self::Arrow(arrow) => arrow.offsets.len().saturating_sub(1),
            Self::Listed(texts) => texts.len(),
        }
    }

    /// The bytes of a document. A missing document is an empty one.
    pub fn get(&self, document: usize) -> Result<&'a [u8], TextError> {
        match self {
            Self::Arrow(arrow) => arrow.get(document),
            Self::Listed(texts) if document < texts.len() => Ok(texts.get(document)),
            Self::Listed(_) => Err(TextError::Layout),
        }
    }

    /// How much there is to read, in bytes and documents.
    pub fn size(&self) -> usize {
        let bytes = match self {
            Self::Arrow(arrow) => {
                let ends = arrow.offsets.get(0).zip(arrow.offsets.get(self.len()));
                ends.map_or(0, |(start, end)| end.saturating_sub(start))
            }
            Self::Listed(texts) => (0..texts.len()).map(|i| texts.get(i).len()).sum(),
        };
        bytes + self.len()
    }

    /// Cuts `order`, a sequence of documents, into at most `pieces` consecutive runs of about the same number of bytes.
    pub fn cut(&self, documents: usize, order: impl Fn(usize) -> usize, pieces: usize) -> Vec<Range<usize>> {
        let share = self.size() / pieces.max(1) + 1;
        let (mut runs, mut start, mut size) = (Vec::new(), 0, 0);
        for i in 0..documents {
            size += self.get(order(i)).map_or(0, <[u8]>::len) + 1;
            if size >= share {
                runs.push(start..i + 1);
                (start, size) = (i + 1, 0);
            }
        }
        if start < documents {
            runs.push(start..documents);
        }
        runs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_are_not_trusted() {
        let at = |offsets: &[i32]| {
            let texts = Texts::Arrow(Arrow { offsets: Offsets::Narrow(offsets), bytes: b"abc", validity: None });
            texts.get(0).map(<[u8]>::to_vec)
        };
        assert_eq!(at(&[1, 3]), Ok(b"bc".to_vec()));
        for broken in [&[0, 4][..], &[2, 1], &[-1, 2], &[0]] {
            assert_eq!(at(broken), Err(TextError::Layout));
        }
    }

    #[test]
    fn missing_documents_are_empty() {
        let texts = Texts::Arrow(Arrow {
            offsets: Offsets::Wide(&[0, 1, 2, 3]),
            bytes: b"abc",
            validity: Some((&[0b0000_1010, 0], 1)),
        });
        assert_eq!((0..3).map(|i| texts.get(i).unwrap()).collect::<Vec<_>>(), [b"a" as &[u8], b"", b"c"]);
    }

    #[test]
    fn pieces_cover_all_documents() {
        let offsets: Vec<i64> = (0..=100).map(|i| i * i).collect();
        let bytes = vec![b'x'; 10_000];
        let texts = Texts::Arrow(Arrow { offsets: Offsets::Wide(&offsets), bytes: &bytes, validity: None });
        let runs = texts.cut(100, |i| i, 7);
        assert!(runs.len() <= 7);
        assert_eq!(runs.into_iter().flatten().collect::<Vec<_>>(), (0..100).collect::<Vec<_>>());
    }
}
