//! The two kinds of numbers that are scored: float32 for rows of float32, float64 for all others.

use super::vector::{Transpose, Vector};
use std::fmt::Debug;
use std::ops::{Add, Mul, Sub};

pub trait Real:
    Copy + Debug + Send + Sync + PartialOrd + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + 'static
{
    /// as many as one instruction takes on a machine with AVX2
    #[cfg(target_arch = "x86_64")]
    type Fast: Transpose<Number = Self>;
    /// as many as on a machine with AVX-512
    #[cfg(target_arch = "x86_64")]
    type Wide: Vector<Number = Self>;
    /// as many as with AVX2, on any machine
    type Plain: Transpose<Number = Self>;
    const ZERO: Self;
    const INFINITY: Self;
    /// Half the distance from 1 to the next number: what rounding once may cost, relatively.
    const ROUNDING: f64;
    fn of(x: f64) -> Self;
    fn wide(self) -> f64;
    fn root(self) -> Self;
    fn narrow(self) -> f32;
    /// A whole number from 0 on.
    fn index(self) -> usize;

    #[inline(always)]
    fn lesser(self, other: Self) -> Self {
        if self < other { self } else { other }
    }

    #[inline(always)]
    fn greater(self, other: Self) -> Self {
        if self > other { self } else { other }
    }
}

macro_rules! real {
    ($kind:ty, $lanes:literal, $fast:ident, $wide:ident) => {
        impl Real for $kind {
            #[cfg(target_arch = "x86_64")]
            type Fast = std::arch::x86_64::$fast;
            #[cfg(target_arch = "x86_64")]
            type Wide = std::arch::x86_64::$wide;
            type Plain = [$kind; $lanes];
            const ZERO: Self = 0.0;
            const INFINITY: Self = <$kind>::INFINITY;
            const ROUNDING: f64 = (<$kind>::EPSILON / 2.0) as f64;

            #[inline(always)]
            #[allow(clippy::cast_lossless)]
            fn of(x: f64) -> Self {
                x as $kind
            }

            #[inline(always)]
            #[allow(clippy::cast_lossless)]
            fn wide(self) -> f64 {
                self as f64
            }

            #[inline(always)]
            fn narrow(self) -> f32 {
                self as f32
            }

            #[inline(always)]
            fn index(self) -> usize {
                self as i32 as usize
            }

            #[inline(always)]
            fn root(self) -> Self {
                self.sqrt()
            }
        }
    };
}
real!(f32, 8, __m256, __m512);
real!(f64, 4, __m256d, __m512d);
