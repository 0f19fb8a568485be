//! The few special functions that no dependency gives.

use crate::simd::fma;
use crate::threads;

/// log a − ψ(a) and its derivative 1/a − ψ′(a), for a > 0: recurrence up to 12, then the asymptotic series, so that nearly
/// equal numbers are never subtracted.
pub fn log_minus_digamma(mut a: f64) -> (f64, f64) {
    let (mut value, mut slope) = (0.0, 0.0);
    while a < 12.0 {
        // log a − ψ(a) = [log(a+1) − ψ(a+1)] + 1/a − log(1 + 1/a), and the derivative of that
        value += excess(a + 1.0, a);
        slope -= 1.0 / (a * a * (a + 1.0));
        a += 1.0;
    }
    let y = 1.0 / (a * a);
    // Bernoulli numbers over 2n, and themselves
    let series = [1.0 / 12.0, -1.0 / 120.0, 1.0 / 252.0, -1.0 / 240.0, 1.0 / 132.0, -691.0 / 32760.0, 1.0 / 12.0];
    value += 0.5 / a + y * series.iter().rev().fold(0.0, |sum, b| sum * y + b);
    let series = [1.0 / 6.0, -1.0 / 30.0, 1.0 / 42.0, -1.0 / 30.0, 5.0 / 66.0, -691.0 / 2730.0, 7.0 / 6.0];
    slope -= 0.5 * y + y / a * series.iter().rev().fold(0.0, |sum, b| sum * y + b);
    (value, slope)
}

/// The shape a with log a − ψ(a) = gap > 0, where gap = log(mean x) − mean(log x): the maximum of the likelihood.
/// Newton's method on 1/a (Minka), which converges from its starting point for every gap.
pub fn gamma_shape(gap: f64) -> f64 {
    let mut a = (3.0 - gap + ((gap - 3.0).powi(2) + 24.0 * gap).sqrt()) / (12.0 * gap);
    for _ in 0..100 {
        let (value, slope) = log_minus_digamma(a);
        let next = 1.0 / (1.0 / a + (value - gap) / (slope * a * a));
        let next = if next.is_finite() && next > 0.0 { next } else { 0.5 * a };
        if (next - a).abs() <= 4.0 * f64::EPSILON * a {
            return next;
        }
        a = next;
    }
    a
}

/// exp x for x ≤ 0, to the last digit or two, and 0 below −708: without a branch or a table, so that loops of it are
/// vectorised. 2ⁿ eʳ with n whole and |r| ≤ ½ log 2, and for eʳ the series.
#[inline(always)]
pub fn exp_of_negative<const FUSED: bool>(x: f64) -> f64 {
    // Added to a number, it leaves the nearest whole one in the last bits.
    const WHOLE: f64 = 6_755_399_441_055_744.0;
    // The logarithm of 2 in two parts, the first with zeros at its end: n times it is exact.
    const LOG_2: [f64; 2] = [6.931_471_803_691_238e-1, 1.908_214_929_270_587_7e-10];
    // 1/13!, 1/12!, …, 1/0!
    const SERIES: [f64; 14] = {
        let mut series = [1.0; 14];
        let (mut factorial, mut i) = (1.0, 1);
        while i < 14 {
            factorial *= i as f64;
            series[13 - i] = 1.0 / factorial;
            i += 1;
        }
        series
    };
    let shifted = fma::<FUSED>(x, std::f64::consts::LOG2_E, WHOLE);
    let n = shifted - WHOLE;
    let r = fma::<FUSED>(n, -LOG_2[1], fma::<FUSED>(n, -LOG_2[0], x));
    let mut sum = SERIES[0];
    for term in &SERIES[1..] {
        sum = fma::<FUSED>(sum, r, *term);
    }
    let power = f64::from_bits(shifted.to_bits().wrapping_add(1023) << 52);
    if x < -708.0 { 0.0 } else { sum * power }
}

/// Φ(x), the distribution function of the normal distribution, to some digits of the last in both tails.
#[inline(always)]
pub fn normal_distribution<const FUSED: bool>(x: f64) -> f64 {
    normal_distributions::<FUSED, 1>([x])[0]
}

/// Φ of some numbers side by side: without a branch or a table, and in loops over them, so that it is vectorised.
///
/// For z ≥ 0, log(erfc(z) exp(z²) / t) with t = 2 / (2 + z) is a series of Chebyshev's polynomials of 2t − 1. Its
/// coefficients were found by interpolation in 40-digit arithmetic.
#[inline(always)]
pub fn normal_distributions<const FUSED: bool, const LANES: usize>(x: [f64; LANES]) -> [f64; LANES] {
    const SERIES: [f64; 26] = [
        -0.651_326_859_890_854_7,
        0.641_969_792_356_490_3,
        0.019_476_473_204_185_836,
        -0.009_561_514_786_808_632,
        -0.000_946_595_344_482_036_9,
        0.000_366_839_497_852_761_45,
        4.252_332_480_690_777e-5,
        -2.027_857_811_253_424e-5,
        -1.624_290_004_647_025_5e-6,
        1.303_655_835_580_523_2e-6,
        1.562_644_172_206_614_3e-8,
        -8.523_809_591_492_654e-8,
        6.529_054_439_098_851e-9,
        5.059_343_495_551_469e-9,
        -9.913_641_564_930_33e-10,
        -2.273_651_222_931_835_6e-10,
        9.646_791_102_015_526e-11,
        2.394_038_083_039_114_7e-12,
        -6.886_027_526_497_553e-12,
        8.944_879_273_090_726e-13,
        3.130_921_399_342_958e-13,
        -1.127_082_236_136_725_2e-13,
        3.810_905_255_189_232e-16,
        7.106_097_613_609_237e-15,
        -1.523_028_201_457_104_3e-15,
        -9.457_494_571_291_234e-17,
    ];
    let (mut z, mut t, mut twice) = ([0.0; LANES], [0.0; LANES], [0.0; LANES]);
    for i in 0..LANES {
        z[i] = x[i].abs() * std::f64::consts::FRAC_1_SQRT_2;
        t[i] = 2.0 / (2.0 + z[i]);
        twice[i] = 4.0 * t[i] - 2.0;
    }
    let (mut above, mut here) = ([0.0; LANES], [0.0; LANES]);
    for coefficient in SERIES[1..].iter().rev() {
        for i in 0..LANES {
            let next = fma::<FUSED>(twice[i], here[i], coefficient - above[i]);
            above[i] = here[i];
            here[i] = next;
        }
    }
    let mut out = [0.0; LANES];
    for i in 0..LANES {
        let series = fma::<FUSED>(0.5 * twice[i], here[i], SERIES[0] - above[i]);
        let tail = 0.5 * t[i] * exp_of_negative::<FUSED>(series - z[i] * z[i]);
        out[i] = if x[i] < 0.0 { tail } else { 1.0 - tail };
    }
    out
}

/// A function of every number, on all threads.
pub fn of_each(x: &[f64], f: impl Fn(f64) -> f64 + Sync + Send) -> Vec<f64> {
    const PIECE: usize = 8192;
    threads::map(x.len().div_ceil(PIECE), x.len() * 100, |piece| {
        x[piece * PIECE..x.len().min((piece + 1) * PIECE)].iter().map(|&x| f(x)).collect::<Vec<_>>()
    })
    .concat()
}

/// Φ⁻¹(p), to some digits of the last: ratios of polynomials, one about ½ and two of √(−log p) in the tail (Wichura, 1988,
/// Applied Statistics algorithm 241).
pub fn normal_quantile(p: f64) -> f64 {
    const MIDDLE: [[f64; 8]; 2] = [
        [
            2_509.080_928_730_122_7,
            33_430.575_583_588_13,
            67_265.770_927_008_7,
            45_921.953_931_549_87,
            13_731.693_765_509_46,
            1_971.590_950_306_551_3,
            133.141_667_891_784_38,
            3.387_132_872_796_366_5,
        ],
        [
            5_226.495_278_852_854,
            28_729.085_735_721_943,
            39_307.895_800_092_71,
            21_213.794_301_586_597,
            5_394.196_021_424_751,
            687.187_007_492_057_9,
            42.313_330_701_600_91,
            1.0,
        ],
    ];
    const NEAR: [[f64; 8]; 2] = [
        [
            7.745_450_142_783_414e-4,
            0.022_723_844_989_269_184,
            0.241_780_725_177_450_6,
            1.270_458_252_452_368_4,
            3.647_848_324_763_204_5,
            5.769_497_221_460_691,
            4.630_337_846_156_546,
            1.423_437_110_749_683_5,
        ],
        [
            1.050_750_071_644_416_9e-9,
            5.475_938_084_995_345e-4,
            0.015_198_666_563_616_457,
            0.148_103_976_427_480_08,
            0.689_767_334_985_1,
            1.676_384_830_183_803_8,
            2.053_191_626_637_759,
            1.0,
        ],
    ];
    const FAR: [[f64; 8]; 2] = [
        [
            2.010_334_399_292_288_1e-7,
            2.711_555_568_743_487_6e-5,
            1.242_660_947_388_078_4e-3,
            0.026_532_189_526_576_124,
            0.296_560_571_828_504_87,
            1.784_826_539_917_291_3,
            5.463_784_911_164_114,
            6.657_904_643_501_103,
        ],
        [
            2.044_263_103_389_939_8e-15,
            1.421_511_758_316_446e-7,
            1.846_318_317_510_054_8e-5,
            7.868_691_311_456_133e-4,
            0.014_875_361_290_850_615,
            0.136_929_880_922_735_8,
            0.599_832_206_555_888,
            1.0,
        ],
    ];
    let ratio = |[above, below]: &[[f64; 8]; 2], r: f64| {
        let of = |terms: &[f64; 8]| terms.iter().fold(0.0, |sum, term| sum * r + term);
        of(above) / of(below)
    };
    let away = p - 0.5;
    if away.abs() <= 0.425 {
        return away * ratio(&MIDDLE, 0.180_625 - away * away);
    }
    let tail = if away < 0.0 { p } else { 1.0 - p };
    if tail.is_nan() || tail <= 0.0 {
        return if tail == 0.0 { f64::INFINITY.copysign(away) } else { f64::NAN };
    }
    let r = (-tail.ln()).sqrt();
    let x = if r <= 5.0 { ratio(&NEAR, r - 1.6) } else { ratio(&FAR, r - 5.0) };
    x.copysign(away)
}

/// u − 1 − log u with u = x/m: how far x lies from m, 0 if they are equal. No digits are lost, near m or far from it.
pub fn excess(x: f64, m: f64) -> f64 {
    let t = (x - m) / m;
    if !(-0.2..0.3).contains(&t) {
        return t - (x / m).ln();
    }
    // log(1 + t) = 2 artanh r with r = t / (2 + t), and t − 2r = t r
    let r = t / (2.0 + t);
    let y = r * r;
    let series = (0..10).rev().fold(0.0, |sum, i| sum * y + 1.0 / f64::from(2 * i + 3));
    r * t - 2.0 * r * y * series
}

/// a log a − a − log Γ(a), the constant of a gamma density written about its mean; by Stirling's series for large a.
pub fn gamma_constant(a: f64) -> f64 {
    if a < 20.0 {
        return a * a.ln() - a - libm::lgamma(a);
    }
    let y = 1.0 / (a * a);
    let series = (1.0 / 12.0 - y * (1.0 / 360.0 - y * (1.0 / 1260.0 - y * (1.0 / 1680.0 - y / 1188.0)))) / a;
    0.5 * (a / std::f64::consts::TAU).ln() - series
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_the_inverse_of_the_distribution() {
        for i in 1..=2900 {
            let p = 10f64.powf(-f64::from(i) / 10.0);
            let x = normal_quantile(p);
            let back = 0.5 * libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2);
            assert!((back - p).abs() <= 4e-15 * p * (1.0 + x * x), "{p} {x} {back}");
        }
        assert_eq!(normal_quantile(0.0), f64::NEG_INFINITY);
        assert_eq!(normal_quantile(1.0), f64::INFINITY);
        // Φ is rounded at ½, and its slope there is less than that.
        assert!(normal_quantile(0.5).abs() < 1e-15 && normal_quantile(f64::NAN).is_nan());
        assert!((normal_quantile(0.975) - 1.959_963_984_540_054).abs() < 1e-15 * 10.0);
    }

    #[test]
    fn the_normal_distribution_in_both_tails() {
        for i in -3800..=900 {
            let x = f64::from(i) / 100.0;
            let want = 0.5 * libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2);
            let got = normal_distribution::<false>(x);
            // The square of the argument is rounded, which counts more the larger it is.
            assert!((got - want).abs() <= 4e-15 * want * (1.0 + 0.1 * x * x) + 1e-308, "{x} {got} {want}");
        }
    }

    #[test]
    fn exponentials_are_those_of_the_library() {
        for i in 0..400_000 {
            let x = -708.0 * (f64::from(i) / 4e5).powi(4);
            let (fused, plain, want) = (exp_of_negative::<true>(x), exp_of_negative::<false>(x), x.exp());
            assert!((fused / want - 1.0).abs() < 5e-16, "{x}: {fused} {want}");
            assert!((plain / want - 1.0).abs() < 5e-16, "{x}: {plain} {want}");
        }
        assert_eq!(exp_of_negative::<true>(0.0), 1.0);
        assert_eq!(exp_of_negative::<true>(f64::NEG_INFINITY), 0.0);
        assert!(exp_of_negative::<true>(f64::NAN).is_nan());
    }

    #[test]
    fn known_values() {
        let (value, slope) = log_minus_digamma(1.0);
        assert!((value - 0.577_215_664_901_532_9).abs() < 1e-15); // Euler's constant
        assert!((slope - (1.0 - std::f64::consts::PI.powi(2) / 6.0)).abs() < 1e-15);
    }

    #[test]
    fn an_excess_keeps_its_digits() {
        assert!((excess(1e9 + 1.0, 1e9) / (0.5e-18 - 1e-27 / 3.0) - 1.0).abs() < 1e-15);
        assert!((excess(1e-300, 1.0) - (-1.0 + 300.0 * 10f64.ln())).abs() < 1e-12);
        for u in [0.79f64, 0.81, 0.99, 1.01, 1.29, 1.31, 6.0] {
            assert!((excess(3.0 * u, 3.0) - (u - 1.0 - u.ln())).abs() < 1e-15 * (1.0 + u), "{u}");
        }
    }

    #[test]
    fn the_constant_is_one_function() {
        for a in [0.5f64, 19.999_999, 20.0, 20.000_001, 150.0] {
            let direct = a * a.ln() - a - libm::lgamma(a);
            assert!((gamma_constant(a) - direct).abs() < 1e-12, "{a}");
        }
    }

    #[test]
    fn the_shape_solves_its_equation() {
        for shape in [1e-3, 0.1, 1.0, 7.5, 300.0, 1e5, 1e8] {
            let got = gamma_shape(log_minus_digamma(shape).0);
            assert!((got / shape - 1.0).abs() < 1e-13, "{shape} {got}");
        }
    }
}
