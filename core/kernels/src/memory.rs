//! Memory for tables that are read here and there.

/// From so many bytes on, huge pages are worth asking for: NumPy's measure.
const LARGE: usize = 1 << 22;

/// A vector of `length` copies, in huge pages if it is large: far fewer addresses must be looked up then.
pub fn filled<T: Copy>(value: T, length: usize) -> Vec<T> {
    let mut values = Vec::with_capacity(length);
    if length * size_of::<T>() >= LARGE {
        ask_for_huge_pages(values.spare_capacity_mut());
    }
    values.resize(length, value);
    values
}

#[cfg(target_os = "linux")]
fn ask_for_huge_pages<T>(memory: &mut [std::mem::MaybeUninit<T>]) {
    const PAGE: usize = 4096;
    let bytes = size_of_val(memory);
    let start = memory.as_mut_ptr().cast::<u8>();
    let skipped = start.align_offset(PAGE);
    if skipped < bytes {
        // Safe: advice about pages within memory that is borrowed mutably; it changes no content, and may be refused.
        unsafe { libc::madvise(start.add(skipped).cast(), bytes - skipped, libc::MADV_HUGEPAGE) };
    }
}

#[cfg(not(target_os = "linux"))]
fn ask_for_huge_pages<T>(_memory: &mut [std::mem::MaybeUninit<T>]) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_and_large_vectors() {
        for length in [0, 1, LARGE / 8 - 1, LARGE / 8 + 1, LARGE] {
            let values = filled(7u64, length);
            assert!(values.len() == length && values.iter().all(|&value| value == 7));
        }
    }
}
