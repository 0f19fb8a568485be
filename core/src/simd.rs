//! One compiled copy of a kernel for any machine, one for machines with AVX2 and FMA, chosen when it runs.
//!
//! Kernels are plain loops over slices that the compiler turns into vector instructions. `dispatch!` compiles
//! them twice. (Kernels for AVX-512 would be a third line here.)

/// `a * b + c`, rounded once where the machine does that in one instruction.
#[inline(always)]
pub fn fma<const FUSED: bool>(a: f64, b: f64, c: f64) -> f64 {
    if FUSED { a.mul_add(b, c) } else { a * b + c }
}

/// # Safety
/// The machine must have AVX2 and FMA.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
pub unsafe fn with_avx2<R>(f: impl FnOnce() -> R) -> R {
    f()
}

#[cfg(target_arch = "x86_64")]
#[inline]
pub fn has_avx2() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")
}

/// Calls an `#[inline(always)]` kernel whose last const parameter says whether `fma` is one instruction.
macro_rules! dispatch {
    ($kernel:ident $(::<$($generic:tt),*>)? ($($argument:expr),* $(,)?)) => {{
        #[cfg(target_arch = "x86_64")]
        {
            if $crate::simd::has_avx2() {
                // Safe: the line above asked the machine.
                unsafe { $crate::simd::with_avx2(|| $kernel::<$($($generic,)*)? true>($($argument),*)) }
            } else {
                $kernel::<$($($generic,)*)? false>($($argument),*)
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        {
            $kernel::<$($($generic,)*)? { cfg!(target_arch = "aarch64") }>($($argument),*)
        }
    }};
}
pub(crate) use dispatch;
