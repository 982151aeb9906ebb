//! Student's t distribution with a whole number of degrees of freedom, and the normal one.
//!
//! Probabilities go through the regularised incomplete beta function I_x(df/2, 1/2) with x = df / (df + t²), by its
//! continued fraction (DLMF 8.17.22). Only halves of whole numbers occur as parameters, so the complete beta function
//! is an exact product and no gamma function is needed. Good to 1e-9 and better.

use std::cell::RefCell;
use std::collections::HashMap;
use std::f64::consts::PI;

/// More than the fraction needs at a million degrees of freedom.
const MAX_STEPS: u32 = 20_000;

/// Stands in for a denominator of 0 inside the fraction.
const NEARLY_ZERO: f64 = 1e-300;

/// The distribution for one number of degrees of freedom.
#[derive(Clone, Copy, Debug)]
pub(super) struct StudentT {
    df: f64,
    /// B(df/2, 1/2)
    beta: f64,
}

impl StudentT {
    /// `None` without a degree of freedom.
    pub(super) fn new(df: usize) -> Option<StudentT> {
        (df > 0).then(|| StudentT {
            df: df as f64,
            beta: beta_with_half(df),
        })
    }

    /// P(|T| ≥ |t|), from 0 to 1. A `t` that is not a number shows nothing: 1.
    pub(super) fn two_sided_p(&self, t: f64) -> f64 {
        if t.is_nan() {
            return 1.0;
        }
        let (a, square) = (self.df / 2.0, t * t);
        let x = 1.0 / (1.0 + square / self.df);
        // 1 - x, without the cancellation
        let rest = 1.0 / (1.0 + self.df / square);
        let front = (-a * (square / self.df).ln_1p()).exp() * rest.sqrt() / self.beta;
        let p = if x < (a + 1.0) / (a + 2.5) {
            front * fraction(a, 0.5, x) / a
        } else {
            1.0 - front * fraction(0.5, a, rest) / 0.5
        };
        p.clamp(0.0, 1.0)
    }

    /// The t with P(T ≤ t) = `p`; `None` unless `p` lies between 0 and 1.
    pub(super) fn quantile(&self, p: f64) -> Option<f64> {
        if !(p > 0.0 && p < 1.0) {
            return None;
        }
        if p < 0.5 {
            return Some(-self.upper_quantile(2.0 * p));
        }
        Some(self.upper_quantile(2.0 * (1.0 - p)))
    }

    /// The t ≥ 0 with P(|T| ≥ t) = `both_tails`. It is cached: a summary needs a few of them thousands of times.
    fn upper_quantile(&self, both_tails: f64) -> f64 {
        thread_local! {
            static KNOWN: RefCell<HashMap<(u64, u64), f64>> = RefCell::default();
        }
        let key = (self.df.to_bits(), both_tails.to_bits());
        KNOWN.with_borrow_mut(|known| {
            *known
                .entry(key)
                .or_insert_with(|| self.bisected(both_tails))
        })
    }

    /// The same by bisection, which is slow but sure to end.
    fn bisected(&self, both_tails: f64) -> f64 {
        let (mut low, mut high) = (0.0, 1.0);
        while self.two_sided_p(high) > both_tails && high < 1e150 {
            low = high;
            high *= 2.0;
        }
        loop {
            let middle = low + (high - low) / 2.0;
            if middle <= low || middle >= high || high - low < 1e-14 * high {
                return middle;
            }
            if self.two_sided_p(middle) > both_tails {
                low = middle
            } else {
                high = middle
            }
        }
    }
}

/// P(Z ≤ z) of a standard normal variable, good to 1e-7 (Abramowitz and Stegun 1964, 7.1.26).
pub(super) fn normal_cdf(z: f64) -> f64 {
    let x = z.abs() / std::f64::consts::SQRT_2;
    let t = 1.0 / (1.0 + 0.327_591_1 * x);
    let terms = [
        1.061_405_429,
        -1.453_152_027,
        1.421_413_741,
        -0.284_496_736,
        0.254_829_592,
    ];
    let tail = terms.iter().fold(0.0, |sum, term| (sum + term) * t) * (-x * x).exp() / 2.0;
    if z < 0.0 { tail } else { 1.0 - tail }
}

/// B(df/2, 1/2), from B(1/2, 1/2) = π or B(1, 1/2) = 2 by B(a+1, b) = B(a, b) · a / (a+b).
fn beta_with_half(df: usize) -> f64 {
    let (start, first) = if df % 2 == 1 { (0.5, PI) } else { (1.0, 2.0) };
    (0..(df - 1) / 2).fold(first, |beta, step| {
        let a = start + step as f64;
        beta * a / (a + 0.5)
    })
}

/// The continued fraction of the incomplete beta function, by Lentz' method as modified by Thompson and Barnett:
/// I_x(a, b) = x^a (1-x)^b / (a B(a, b)) · fraction. Converges fast for x < (a+1) / (a+b+2).
fn fraction(a: f64, b: f64, x: f64) -> f64 {
    let (mut value, mut c, mut d) = (1.0, 1.0, 0.0);
    for step in 1..=MAX_STEPS {
        let m = f64::from(step / 2);
        let term = if step % 2 == 0 {
            m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m))
        } else {
            -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0))
        };
        d = 1.0 / never_zero(1.0 + term * d);
        c = never_zero(1.0 + term / c);
        value = never_zero(value * c * d);
        if (c * d - 1.0_f64).abs() < 1e-15 {
            break;
        }
    }
    1.0 / value
}

fn never_zero(x: f64) -> f64 {
    if x.abs() < NEARLY_ZERO {
        NEARLY_ZERO
    } else {
        x
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn t(df: usize) -> StudentT {
        StudentT::new(df).expect("degrees of freedom")
    }

    #[test]
    fn quantiles_match_printed_tables() {
        let upper = [
            (1, 12.7062),
            (2, 4.3027),
            (3, 3.1824),
            (4, 2.7764),
            (7, 2.3646),
            (11, 2.2010),
            (19, 2.0930),
        ];
        for (df, expected) in upper.into_iter().chain([(29, 2.0452)]) {
            assert!(
                (t(df).quantile(0.975).unwrap() - expected).abs() < 5.1e-5,
                "df {df}"
            );
        }
        for (df, expected) in [
            (2, 1.0607),
            (3, 0.9785),
            (4, 0.9410),
            (7, 0.8960),
            (11, 0.8755),
            (19, 0.8610),
        ] {
            assert!(
                (t(df).quantile(0.8).unwrap() - expected).abs() < 5.1e-5,
                "df {df}"
            );
        }
    }

    #[test]
    fn two_sided_p_matches_known_values() {
        assert!((t(7).two_sided_p(3.0) - 0.019942).abs() < 5e-7);
        assert!((t(2).two_sided_p(4.0) - 0.057191).abs() < 5e-7);
    }

    #[test]
    fn one_and_two_degrees_agree_with_their_closed_forms() {
        for x in [1e-6, 0.01, 0.3, 1.0, 2.5, 12.0, 1e3, 1e6] {
            let cauchy = 2.0 / PI * (1.0_f64 / x).atan();
            assert!(
                (t(1).two_sided_p(x) - cauchy).abs() < 1e-12 * cauchy.max(1e-3),
                "t {x}"
            );
            let root = (2.0 + x * x).sqrt();
            // 1 - x / root, without the cancellation
            let two = 2.0 / (root * (root + x));
            assert!(
                (t(2).two_sided_p(x) - two).abs() < 1e-12 * two.max(1e-3),
                "t {x}"
            );
        }
    }

    #[test]
    fn many_degrees_approach_the_normal_distribution() {
        // z(.975) + (z³ + z) / (4 df), the first term of the expansion of Cornish and Fisher
        let z = 1.959963984540054_f64;
        let df = 1_000_000;
        assert!(
            (t(df).quantile(0.975).unwrap() - z - (z.powi(3) + z) / (4.0 * df as f64)).abs() < 1e-9
        );
    }

    #[test]
    fn quantile_undoes_the_probability_and_is_symmetric() {
        for df in [1, 2, 3, 5, 16, 40, 301] {
            for p in [0.5, 0.6, 0.8, 0.975, 0.9995, 1.0 - 1e-9] {
                let x = t(df).quantile(p).unwrap();
                assert!(
                    (t(df).two_sided_p(x) - 2.0 * (1.0 - p)).abs() < 1e-10,
                    "df {df} p {p}"
                );
            }
            let (low, high) = (
                t(df).quantile(0.025).unwrap(),
                t(df).quantile(0.975).unwrap(),
            );
            assert!((low + high).abs() < 1e-9, "df {df}");
        }
    }

    #[test]
    fn extremes_stay_probabilities() {
        for x in [
            0.0,
            -0.0,
            1e-200,
            1e200,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::NAN,
            f64::MAX,
        ] {
            for df in [1, 2, 30, 100_000] {
                let p = t(df).two_sided_p(x);
                assert!((0.0..=1.0).contains(&p), "t {x} df {df} gave {p}");
            }
        }
        assert!(StudentT::new(0).is_none());
        for p in [0.0, 1.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(t(3).quantile(p).is_none());
        }
    }
}
