//! How deep the values of JSON text are nested, before something reads them that calls itself for every level.

const fn kinds() -> [u8; 256] {
    let mut kinds = [OTHER; 256];
    kinds[b'"' as usize] = QUOTE;
    kinds[b'{' as usize] = OPEN;
    kinds[b'[' as usize] = OPEN;
    kinds[b'}' as usize] = CLOSE;
    kinds[b']' as usize] = CLOSE;
    kinds
}

const OTHER: u8 = 0;
const QUOTE: u8 = 1;
const OPEN: u8 = 2;
const CLOSE: u8 = 3;
const PIECE: usize = 32;
static KINDS: [u8; 256] = kinds();

/// Whether objects and lists lie in each other deeper than `limit`. Of text that is no JSON, this is true of what
/// comes before the first fault; after it the answer may be either.
pub fn is_deeper(text: &[u8], limit: usize) -> bool {
    if most_opened(text) <= limit {
        return false;
    }
    let mut depth = 0_usize;
    let mut i = 0;
    while i < text.len() {
        match KINDS[text[i] as usize] {
            QUOTE => {
                i += 1;
                while i < text.len() && text[i] != b'"' {
                    i += 1 + usize::from(text[i] == b'\\');
                }
            }
            OPEN => {
                depth += 1;
                if depth > limit {
                    return true;
                }
            }
            CLOSE => depth = depth.saturating_sub(1),
            _ => {}
        }
        i += 1;
    }
    false
}

/// How many brackets are opened in one row at most, those in strings too; rows of plain values have one. A row begins
/// after `}` and the end of a line: no string has the end of a line in it, and within a value a comma would follow.
fn most_opened(text: &[u8]) -> usize {
    let opens = |b: u8| (b | 0x20) == b'{';
    let (mut count, mut most) = (0, 0);
    for (start, piece) in (0..).step_by(PIECE).zip(text.chunks(PIECE)) {
        // Without a branch, so that the bytes of a piece are looked at together.
        if !piece.iter().fold(false, |found, &b| found | opens(b)) {
            continue;
        }
        for i in (start..start + piece.len()).filter(|&i| opens(text[i])) {
            let row = text[..i].ends_with(b"}\n") || text[..i].ends_with(b"}\r\n");
            count = if row { 1 } else { count + 1 };
            most = most.max(count);
        }
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;

    fn depth(text: &str) -> usize {
        (0..=text.len()).find(|&limit| !is_deeper(text.as_bytes(), limit)).unwrap()
    }

    #[test]
    fn brackets_in_strings_do_not_count() {
        assert_eq!(depth(""), 0);
        assert_eq!(depth("1"), 0);
        assert_eq!(depth("[]"), 1);
        assert_eq!(depth("{\"a\": [1, {\"b\": []}]}"), 4);
        assert_eq!(depth("{\"a[[[[\": \"\\\"[[[[\\\\\"}"), 1);
        assert_eq!(depth("{\"a\\\\\": [[\"]\"]]}"), 3);
        assert_eq!(depth("{\"a\": 1}\n{\"b\": 2}\r\n{\"c\": {}}\n"), 2);
        assert_eq!(depth("\"no end ["), 0);
        assert_eq!(depth("]]]["), 1);
    }

    #[test]
    fn lines_within_a_value_make_no_difference() {
        assert_eq!(depth(&("[\n".repeat(70) + &"]\n".repeat(70))), 70);
        let objects = "{\"a\":\n".repeat(300) + "1" + &"}\n".repeat(300);
        assert_eq!(depth(&objects), 300);
        assert!(is_deeper(("{\"a\":1}\n".repeat(1000) + &objects).as_bytes(), 299));
    }

    #[test]
    fn rows_need_no_second_look() {
        assert_eq!(most_opened("{\"a\": 1}\n".repeat(10_000).as_bytes()), 1);
        assert_eq!(most_opened("{\"a\": \"[\"}\r\n".repeat(10_000).as_bytes()), 2);
        assert_eq!(most_opened(b"[{\"a\": []}]\n[1]\n}\n[\n{"), 4);
        assert_eq!(most_opened("[".repeat(100_000).as_bytes()), 100_000);
    }
}
