//! A few numbers that one instruction takes together. The loops of [`super::tile`] must stay in registers, which a
//! compiler that finds vectors by itself gets right for some shapes and wrong for others: so they are said here.

use super::real::Real;

/// # Safety
/// The machine must have the instructions of the implementation, and a pointer must be good for a whole vector.
pub trait Vector: Copy {
    type Number: Real;
    const LANES: usize;
    unsafe fn load(from: *const Self::Number) -> Self;
    unsafe fn store(self, to: *mut Self::Number);
    unsafe fn all(value: Self::Number) -> Self;
    /// `self * b + c`
    unsafe fn fused(self, b: Self, c: Self) -> Self;
    unsafe fn lesser(self, other: Self) -> Self;
    unsafe fn greater(self, other: Self) -> Self;
    /// `one` where `self` is less than `other`, else `two`.
    unsafe fn where_less(self, other: Self, one: Self, two: Self) -> Self;
}

/// Vectors that also turn rows into columns.
///
/// # Safety
/// As of [`Vector`].
pub trait Transpose: Vector {
    /// Reads a vector of each of [`Vector::LANES`] rows from a column on, takes `origin` from it, and writes them as columns `stride` apart.
    unsafe fn transpose(
        rows: &[*const Self::Number],
        column: usize,
        origin: *const Self::Number,
        to: *mut Self::Number,
        stride: usize,
    );
}

/// For machines without: `a * b + c` is rounded twice, which the bounds on rounding allow for.
impl<T: Real, const L: usize> Vector for [T; L] {
    type Number = T;
    const LANES: usize = L;

    #[inline(always)]
    unsafe fn load(from: *const T) -> Self {
        // Safe: the caller's promise.
        unsafe { *from.cast::<Self>() }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut T) {
        // Safe: the caller's promise.
        unsafe { *to.cast::<Self>() = self };
    }

    #[inline(always)]
    unsafe fn all(value: T) -> Self {
        [value; L]
    }

    #[inline(always)]
    unsafe fn fused(self, b: Self, c: Self) -> Self {
        std::array::from_fn(|i| self[i] * b[i] + c[i])
    }

    #[inline(always)]
    unsafe fn lesser(self, other: Self) -> Self {
        std::array::from_fn(|i| self[i].lesser(other[i]))
    }

    #[inline(always)]
    unsafe fn greater(self, other: Self) -> Self {
        std::array::from_fn(|i| self[i].greater(other[i]))
    }

    #[inline(always)]
    unsafe fn where_less(self, other: Self, one: Self, two: Self) -> Self {
        std::array::from_fn(|i| if self[i] < other[i] { one[i] } else { two[i] })
    }
}

impl<T: Real, const L: usize> Transpose for [T; L] {
    #[inline(always)]
    unsafe fn transpose(rows: &[*const T], column: usize, origin: *const T, to: *mut T, stride: usize) {
        for (r, row) in rows.iter().enumerate() {
            for j in 0..L {
                // Safe: the caller's promise.
                unsafe { *to.add(j * stride + r) = *row.add(column + j) - *origin.add(j) };
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{Transpose, Vector};
    #[allow(clippy::wildcard_imports)]
    use std::arch::x86_64::*;

    macro_rules! vector {
        ($kind:ty, $number:ty, $load:ident, $store:ident, $all:ident, $fma:ident, $min:ident, $max:ident, $where_less:ident) => {
            // Safe, all of them: the promise of whoever calls a method of the trait.
            impl Vector for $kind {
                type Number = $number;
                const LANES: usize = size_of::<$kind>() / size_of::<$number>();

                #[inline(always)]
                unsafe fn load(from: *const $number) -> Self {
                    unsafe { $load(from) }
                }

                #[inline(always)]
                unsafe fn store(self, to: *mut $number) {
                    unsafe { $store(to, self) }
                }

                #[inline(always)]
                unsafe fn all(value: $number) -> Self {
                    unsafe { $all(value) }
                }

                #[inline(always)]
                unsafe fn fused(self, b: Self, c: Self) -> Self {
                    unsafe { $fma(self, b, c) }
                }

                #[inline(always)]
                unsafe fn lesser(self, other: Self) -> Self {
                    unsafe { $min(self, other) }
                }

                #[inline(always)]
                unsafe fn greater(self, other: Self) -> Self {
                    unsafe { $max(self, other) }
                }

                #[inline(always)]
                unsafe fn where_less(self, other: Self, one: Self, two: Self) -> Self {
                    unsafe { $where_less(self, other, one, two) }
                }
            }
        };
    }

    macro_rules! where_less {
        ($name:ident, $kind:ty, |$a:ident, $b:ident, $one:ident, $two:ident| $chosen:expr) => {
            /// # Safety
            /// The machine must have the instructions.
            #[inline(always)]
            unsafe fn $name($a: $kind, $b: $kind, $one: $kind, $two: $kind) -> $kind {
                // Safe: the caller's promise.
                unsafe { $chosen }
            }
        };
    }
    where_less!(less_8, __m256, |a, b, one, two| _mm256_blendv_ps(two, one, _mm256_cmp_ps::<_CMP_LT_OQ>(a, b)));
    where_less!(less_4, __m256d, |a, b, one, two| _mm256_blendv_pd(two, one, _mm256_cmp_pd::<_CMP_LT_OQ>(a, b)));
    where_less!(less_wide_16, __m512, |a, b, one, two| _mm512_mask_blend_ps(
        _mm512_cmp_ps_mask::<_CMP_LT_OQ>(a, b),
        two,
        one
    ));
    where_less!(less_wide_8, __m512d, |a, b, one, two| _mm512_mask_blend_pd(
        _mm512_cmp_pd_mask::<_CMP_LT_OQ>(a, b),
        two,
        one
    ));

    macro_rules! transpose {
        ($kind:ty, $number:ty, $load:ident, $store:ident, $sub:ident, $turn:ident) => {
            impl Transpose for $kind {
                #[inline(always)]
                unsafe fn transpose(
                    rows: &[*const $number],
                    column: usize,
                    origin: *const $number,
                    to: *mut $number,
                    stride: usize,
                ) {
                    // Safe: the caller's promise.
                    unsafe {
                        let origin = $load(origin);
                        let columns = $turn(std::array::from_fn(|r| $sub($load(rows[r].add(column)), origin)));
                        for (j, column) in columns.iter().enumerate() {
                            $store(to.add(j * stride), *column);
                        }
                    }
                }
            }
        };
    }

    /// # Safety
    /// The machine must have AVX2.
    #[inline(always)]
    unsafe fn turn_singles(r: [__m256; 8]) -> [__m256; 8] {
        // Safe: the caller's promise.
        unsafe {
            let pair: [__m256; 8] = std::array::from_fn(|i| {
                let (a, b) = (r[i / 2 * 2], r[i / 2 * 2 + 1]);
                if i % 2 == 0 { _mm256_unpacklo_ps(a, b) } else { _mm256_unpackhi_ps(a, b) }
            });
            let four: [__m256; 8] = std::array::from_fn(|i| {
                let at = i / 4 * 4 + i % 4 / 2; // i % 4: the column within each half
                let (a, b) = (pair[at], pair[at + 2]);
                if i % 2 == 0 { _mm256_shuffle_ps::<0x44>(a, b) } else { _mm256_shuffle_ps::<0xEE>(a, b) }
            });
            std::array::from_fn(|i| {
                let (a, b) = (four[i % 4], four[i % 4 + 4]);
                if i < 4 { _mm256_permute2f128_ps::<0x20>(a, b) } else { _mm256_permute2f128_ps::<0x31>(a, b) }
            })
        }
    }

    /// # Safety
    /// The machine must have AVX2.
    #[inline(always)]
    unsafe fn turn_doubles(r: [__m256d; 4]) -> [__m256d; 4] {
        // Safe: the caller's promise.
        unsafe {
            let pair: [__m256d; 4] = std::array::from_fn(|i| {
                let (a, b) = (r[i / 2 * 2], r[i / 2 * 2 + 1]);
                if i % 2 == 0 { _mm256_unpacklo_pd(a, b) } else { _mm256_unpackhi_pd(a, b) }
            });
            std::array::from_fn(|i| {
                let (a, b) = (pair[i % 2], pair[i % 2 + 2]);
                if i < 2 { _mm256_permute2f128_pd::<0x20>(a, b) } else { _mm256_permute2f128_pd::<0x31>(a, b) }
            })
        }
    }

    vector!(
        __m256,
        f32,
        _mm256_loadu_ps,
        _mm256_storeu_ps,
        _mm256_set1_ps,
        _mm256_fmadd_ps,
        _mm256_min_ps,
        _mm256_max_ps,
        less_8
    );
    vector!(
        __m256d,
        f64,
        _mm256_loadu_pd,
        _mm256_storeu_pd,
        _mm256_set1_pd,
        _mm256_fmadd_pd,
        _mm256_min_pd,
        _mm256_max_pd,
        less_4
    );
    vector!(
        __m512,
        f32,
        _mm512_loadu_ps,
        _mm512_storeu_ps,
        _mm512_set1_ps,
        _mm512_fmadd_ps,
        _mm512_min_ps,
        _mm512_max_ps,
        less_wide_16
    );
    vector!(
        __m512d,
        f64,
        _mm512_loadu_pd,
        _mm512_storeu_pd,
        _mm512_set1_pd,
        _mm512_fmadd_pd,
        _mm512_min_pd,
        _mm512_max_pd,
        less_wide_8
    );
    transpose!(__m256, f32, _mm256_loadu_ps, _mm256_storeu_ps, _mm256_sub_ps, turn_singles);
    transpose!(__m256d, f64, _mm256_loadu_pd, _mm256_storeu_pd, _mm256_sub_pd, turn_doubles);
}
