//! Labels to codes: the sorted distinct labels, and for each row its position among them.

/// Ranges of labels up to this wide are counted in a table; wider ones are sorted.
const TABLE: usize = 1 << 20;

pub fn encode(labels: &[i64]) -> (Vec<i64>, Vec<i32>) {
    let (Some(&low), Some(&high)) = (labels.iter().min(), labels.iter().max()) else {
        return (vec![], vec![]);
    };
    let range = high.wrapping_sub(low) as u64;
    if range >= (TABLE.min(4 * labels.len() + 1024)) as u64 {
        let mut classes = labels.to_vec();
        classes.sort_unstable();
        classes.dedup();
        let position = |label| classes.binary_search(label).unwrap_or_default() as i32;
        let codes = labels.iter().map(position).collect();
        return (classes, codes);
    }
    let mut positions = vec![-1i32; range as usize + 1];
    for &label in labels {
        positions[(label - low) as usize] = 0;
    }
    let mut classes = vec![];
    for (i, position) in positions.iter_mut().enumerate() {
        if *position == 0 {
            *position = classes.len() as i32;
            classes.push(low + i as i64);
        }
    }
    let codes = labels.iter().map(|&label| positions[(label - low) as usize]).collect();
    (classes, codes)
}

#[cfg(test)]
mod tests {
    use super::encode;

    #[test]
    fn narrow_and_wide_labels() {
        assert_eq!(encode(&[5, -1, 5, 3]), (vec![-1, 3, 5], vec![2, 0, 2, 1]));
        assert_eq!(encode(&[i64::MAX, i64::MIN, 0]), (vec![i64::MIN, 0, i64::MAX], vec![2, 0, 1]));
        assert_eq!(encode(&[]), (vec![], vec![]));
    }
}
