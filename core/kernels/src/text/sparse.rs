//! What is done to counts once all texts are read: terms sorted, columns renumbered, rows made columns.

use super::sinks::{Rows, append};
use super::texts::{TextError, Texts};
use crate::sparse::rises;
use crate::threads;

/// Rows renumbered together.
const BLOCK: usize = 1024;

/// The order that sorts terms by their code points.
pub fn sorted(terms: &Texts) -> Result<Vec<i32>, TextError> {
    let start = |term: &[u8]| {
        let mut eight = [0; 8];
        let length = term.len().min(8);
        eight[..length].copy_from_slice(&term[..length]);
        u64::from_be_bytes(eight)
    };
    let read = |i: usize| terms.get(i).map(|term| (start(term), term, i as i32));
    let mut all = (0..terms.len()).map(read).collect::<Result<Vec<_>, _>>()?;
    all.sort_unstable(); // UTF-8 sorts as code points do
    Ok(all.into_iter().map(|(_, _, i)| i).collect())
}

/// The rows with other column numbers, each sorted by them. A column whose new number is negative is dropped.
pub fn renumbered(starts: &[i64], units: &[i32], counts: &[i32], numbers: &[i32]) -> Result<Rows, TextError> {
    let rows = starts.len().saturating_sub(1);
    let pieces = threads::map(rows.div_ceil(BLOCK), units.len() * 8, |piece| {
        let (mut out, mut row) = (Rows::default(), Vec::new());
        for i in piece * BLOCK..((piece + 1) * BLOCK).min(rows) {
            let range = starts[i] as usize..starts[i + 1] as usize;
            row.clear();
            let cells = units.get(range.clone()).zip(counts.get(range)).ok_or(TextError::Layout)?;
            for (&unit, &count) in cells.0.iter().zip(cells.1) {
                let number = *numbers.get(unit as usize).ok_or(TextError::Layout)?;
                if number >= 0 {
                    row.push((number as u64) << 32 | u64::from(count as u32));
                }
            }
            row.sort_unstable();
            out.units.extend(row.iter().map(|cell| (cell >> 32) as i32));
            out.counts.extend(row.iter().map(|&cell| cell as i32));
            out.starts.push(out.units.len() as i64);
        }
        Ok(out)
    });
    let mut all = Rows { starts: vec![0], ..Rows::default() };
    all.starts.reserve_exact(rows);
    for piece in pieces {
        append(&mut all, piece?);
    }
    Ok(all)
}

/// Rows of a matrix: where each begins, the columns of its cells, and the values beside them.
pub type Cells = (Vec<i64>, Vec<i32>, Vec<f32>);

/// The columns of a matrix of rows, each with its rows in rising order.
pub fn transposed(starts: &[i64], columns: &[i32], values: &[f32], width: usize) -> Result<Cells, TextError> {
    let inside = columns.iter().all(|&column| column >= 0 && (column as usize) < width);
    if !rises(starts, columns.len()) || !inside || columns.len() != values.len() || i32::try_from(starts.len()).is_err()
    {
        return Err(TextError::Layout);
    }
    let mut begins = vec![0; width + 1];
    for &column in columns {
        begins[column as usize + 1] += 1;
    }
    for column in 0..width {
        begins[column + 1] += begins[column];
    }
    let mut next = begins.clone();
    let (mut rows, mut cells) = (vec![0; columns.len()], vec![0.0; columns.len()]);
    for row in 0..starts.len() - 1 {
        for i in starts[row] as usize..starts[row + 1] as usize {
            let position = &mut next[columns[i] as usize];
            rows[*position as usize] = row as i32;
            cells[*position as usize] = values[i];
            *position += 1;
        }
    }
    Ok((begins, rows, cells))
}

#[cfg(test)]
mod tests {
    use super::super::{Arrow, Offsets};
    use super::*;

    #[test]
    fn terms_are_sorted_by_code_points() {
        let terms = ["b", "aé", "abcdefghi", "abcdefgh", "ab", "", "ab\0", "\u{10000}", "\u{ffff}"];
        let offsets: Vec<i64> = std::iter::once(0)
            .chain(terms.iter().scan(0, |end, term| {
                *end += term.len() as i64;
                Some(*end)
            }))
            .collect();
        let joined = terms.concat();
        let texts = Texts::Arrow(Arrow { offsets: Offsets::Wide(&offsets), bytes: joined.as_bytes(), validity: None });
        let order = sorted(&texts).unwrap();
        let mut expected = terms.to_vec();
        expected.sort_by_key(|term| term.chars().collect::<Vec<_>>());
        assert_eq!(order.iter().map(|&i| terms[i as usize]).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn columns_become_rows() {
        let (starts, rows, values) = transposed(&[0, 2, 2, 4], &[2, 0, 2, 1], &[1.0, 2.0, 3.0, 4.0], 3).unwrap();
        assert_eq!((starts, rows, values), (vec![0, 1, 2, 4], vec![0, 2, 0, 2], vec![2.0, 4.0, 1.0, 3.0]));
        for broken in [[-1], [3]] {
            assert_eq!(transposed(&[0, 1], &broken, &[1.0], 3), Err(TextError::Layout));
        }
        assert_eq!(transposed(&[], &[], &[], 3), Err(TextError::Layout));
    }

    #[test]
    fn columns_are_renumbered_dropped_and_sorted() {
        let rows = renumbered(&[0, 3, 3, 4], &[0, 1, 2, 2], &[7, 8, 9, 5], &[1, -1, 0]).unwrap();
        assert_eq!(rows, Rows { starts: vec![0, 2, 2, 3], units: vec![0, 1, 0], counts: vec![9, 7, 5] });
        assert_eq!(renumbered(&[0, 1], &[3], &[1], &[0]), Err(TextError::Layout));
        assert_eq!(renumbered(&[0, 2], &[0], &[1], &[0]), Err(TextError::Layout));
    }
}
