//! One compiled copy of a kernel for any machine, one for machines with AVX2 and FMA, chosen when it runs.
//!
//! Kernels are plain loops over slices that the compiler turns into vector instructions. `dispatch!` compiles
//! them twice. Those that multiply most of the time have a third copy for AVX-512, in other shapes: `dispatch_wide!`.

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

/// What LIKELY_SIMD in the environment may be: the fastest instructions that kernels take, of those that the machine has.
pub const LEVELS: [(&str, Level); 3] = [("none", Level::Any), ("avx2", Level::Avx2), ("avx512", Level::Avx512)];

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Any,
    Avx2,
    Avx512,
}

/// What the machine has, or less if the environment's LIKELY_SIMD says so. It is asked for once.
#[cfg(target_arch = "x86_64")]
#[inline]
fn level() -> Level {
    static FOUND: std::sync::OnceLock<Level> = std::sync::OnceLock::new();
    *FOUND.get_or_init(|| {
        let has_avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
        let has_avx512 = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl");
        let asked = std::env::var("LIKELY_SIMD");
        let most = LEVELS.into_iter().find(|(name, _)| asked.as_deref() == Ok(name));
        let found = match (has_avx2, has_avx512) {
            (false, _) => Level::Any,
            (true, false) => Level::Avx2,
            (true, true) => Level::Avx512,
        };
        most.map_or(found, |(_, most)| most.min(found))
    })
}

#[cfg(target_arch = "x86_64")]
#[inline]
pub fn has_avx2() -> bool {
    level() >= Level::Avx2
}

#[cfg(target_arch = "x86_64")]
#[inline]
pub fn has_avx512() -> bool {
    level() >= Level::Avx512
}

/// # Safety
/// The machine must have AVX-512 and FMA.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx2,fma")]
pub unsafe fn with_avx512<R>(f: impl FnOnce() -> R) -> R {
    f()
}

/// Asks for an address in memory that will be read soon.
#[inline(always)]
pub fn prefetch<T>(address: &T) {
    #[cfg(target_arch = "x86_64")]
    // Safe: a hint about an address that is borrowed, and every x86-64 machine has SSE.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(address).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// Asks for an address in memory that will be read a little later: it is brought near, but not into the first cache.
#[inline(always)]
pub fn prefetch_later<T>(address: *const T) {
    #[cfg(target_arch = "x86_64")]
    // Safe: a hint, which may name any address, and every x86-64 machine has SSE.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T1>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
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

/// Calls the first kernel on machines with AVX-512, and else the second as `dispatch!` does.
macro_rules! dispatch_wide {
    ($wide:ident $(::<$($generic:tt),*>)? ($($argument:expr),* $(,)?), $($other:tt)*) => {{
        #[cfg(target_arch = "x86_64")]
        {
            if $crate::simd::has_avx512() {
                // Safe: the line above asked the machine.
                unsafe { $crate::simd::with_avx512(|| $wide::<$($($generic,)*)? true>($($argument),*)) }
            } else {
                $crate::simd::dispatch!($($other)*)
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        {
            $crate::simd::dispatch!($($other)*)
        }
    }};
}
pub(crate) use dispatch_wide;
