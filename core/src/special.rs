//! The few special functions that no dependency gives: ψ, ψ′, and the shape of a gamma distribution.

/// ψ and ψ′ for x > 0: recurrence up to 12, then the asymptotic series.
pub fn digamma_trigamma(mut x: f64) -> (f64, f64) {
    let (mut digamma, mut trigamma) = (0.0, 0.0);
    while x < 12.0 {
        digamma -= 1.0 / x;
        trigamma += 1.0 / (x * x);
        x += 1.0;
    }
    let y = 1.0 / (x * x);
    // Bernoulli numbers over 2n, and themselves
    let tail = y
        * (1.0 / 12.0
            - y * (1.0 / 120.0
                - y * (1.0 / 252.0 - y * (1.0 / 240.0 - y * (1.0 / 132.0 - y * (691.0 / 32760.0 - y / 12.0))))));
    digamma += x.ln() - 0.5 / x - tail;
    let tail = y
        * (1.0 / 6.0
            - y * (1.0 / 30.0
                - y * (1.0 / 42.0 - y * (1.0 / 30.0 - y * (5.0 / 66.0 - y * (691.0 / 2730.0 - y * 7.0 / 6.0))))));
    trigamma += 1.0 / x + 0.5 * y + tail / x;
    (digamma, trigamma)
}

/// The shape a with log a − ψ(a) = gap > 0, where gap = log(mean x) − mean(log x): the maximum of the likelihood.
/// Newton's method on 1/a (Minka), which converges from its starting point for every gap.
pub fn gamma_shape(gap: f64) -> f64 {
    let mut a = (3.0 - gap + ((gap - 3.0).powi(2) + 24.0 * gap).sqrt()) / (12.0 * gap);
    for _ in 0..100 {
        let (digamma, trigamma) = digamma_trigamma(a);
        // For large a the two logarithms are nearly equal: their difference comes from the series instead.
        let value = if a < 1e4 { a.ln() - digamma } else { 0.5 / a + 1.0 / (12.0 * a * a) };
        let slope = if a < 1e4 { 1.0 / a - trigamma } else { -0.5 / (a * a) - 1.0 / (6.0 * a * a * a) };
        let next = 1.0 / (1.0 / a + (value - gap) / (slope * a * a));
        let next = if next.is_finite() && next > 0.0 { next } else { 0.5 * a };
        if (next - a).abs() <= 4.0 * f64::EPSILON * a {
            return next;
        }
        a = next;
    }
    a
}

/// x − log(1 + x), without the loss of digits that subtracting would bring for small x.
pub fn above_log(x: f64) -> f64 {
    if !(-0.2..0.3).contains(&x) {
        return x - x.ln_1p();
    }
    // log(1 + x) = 2 artanh r with r = x / (2 + x), and x − 2r = x r
    let r = x / (2.0 + x);
    let y = r * r;
    let series = (0..10).rev().fold(0.0, |sum, i| sum * y + 1.0 / f64::from(2 * i + 3));
    r * x - 2.0 * r * y * series
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
    fn known_values() {
        let (digamma, trigamma) = digamma_trigamma(1.0);
        assert!((digamma + 0.577_215_664_901_532_9).abs() < 1e-15); // Euler's constant
        assert!((trigamma - std::f64::consts::PI.powi(2) / 6.0).abs() < 3e-15);
    }

    #[test]
    fn above_log_keeps_its_digits() {
        assert!((above_log(1e-9) / (0.5e-18 - 1e-27 / 3.0) - 1.0).abs() < 1e-15);
        for x in [-0.21f64, -0.19, -0.01, 0.01, 0.29, 0.31, 5.0] {
            assert!((above_log(x) - (x - x.ln_1p())).abs() < 1e-15 * (1.0 + x.abs()), "{x}");
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
            let gap = if shape < 1e4 {
                f64::ln(shape) - digamma_trigamma(shape).0
            } else {
                0.5 / shape + 1.0 / (12.0 * shape * shape)
            };
            let got = gamma_shape(gap);
            assert!((got / shape - 1.0).abs() < 1e-9, "{shape} {got}");
        }
    }
}
