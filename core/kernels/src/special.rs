//! The few special functions that no dependency gives.

use crate::simd::fma;

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
