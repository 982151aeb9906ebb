//! Retention: what share of the span between a floor and a ceiling is kept.
//!
//! A ratio of means, since a mean of ratios explodes where a span is small, with Fieller's interval (1954, Journal of
//! the Royal Statistical Society B 16), which takes the noise of the span itself into account.

use serde::{Deserialize, Serialize};

use super::center::{mean, sample_variance};
use super::distribution::StudentT;
use super::interval::Interval;
use super::thresholds::{MIN_SPAN, TINY, UPPER_TAIL};
use base::named_enum;

/// A retention, or why there is none.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Retention {
    /// Mean gain over mean span. Not clipped: below 0 is worse than the floor, above 1 better than the ceiling.
    pub value: Option<f64>,
    /// 95% interval by Fieller; `None` with one cluster, where all clusters are equal, and without a value.
    pub ci95: Option<Interval>,
    /// Mean span between floor and ceiling, in points; `None` without a usable cluster.
    pub span: Option<f64>,
    /// Why `value` or `ci95` is missing.
    pub reason: Option<NoRetention>,
}

impl Retention {
    fn missing(reason: NoRetention, span: Option<f64>) -> Retention {
        Retention {
            value: None,
            ci95: None,
            span,
            reason: Some(reason),
        }
    }
}

named_enum! {
    /// Why a retention, or its interval, is undefined.
    pub enum NoRetention {
        /// No cluster has a floor, a ceiling and a value between them.
        MissingReference = "missing arm",
        /// A value is not a usable number.
        NotANumber = "not a number",
        /// The mean span is under 0.5 points.
        NarrowSpan = "narrow span",
        /// Ceiling and floor cannot be distinguished from noise.
        UncertainSpan = "uncertain span",
        /// One cluster: there is a value, but no interval.
        FewClusters = "few fixtures",
    }
}

/// The retention over clusters, each given as (gain, span): the value minus the floor, the ceiling minus the floor, all
/// three over the same items.
pub fn retention(clusters: &[(f64, f64)]) -> Retention {
    if clusters.is_empty() {
        return Retention::missing(NoRetention::MissingReference, None);
    }
    let (gains, spans): (Vec<f64>, Vec<f64>) = clusters.iter().copied().unzip();
    let (Some(gain), Some(span)) = (mean(&gains), mean(&spans)) else {
        return Retention::missing(NoRetention::NotANumber, None);
    };
    if span < MIN_SPAN {
        return Retention::missing(NoRetention::NarrowSpan, Some(span));
    }
    let (value, span) = (Some(gain / span), Some(span));
    match fieller(&gains, &spans) {
        Ok(ci95) => Retention {
            value,
            // Equal clusters do not show how others would vary.
            ci95: Some(ci95).filter(|ci| ci.width() >= TINY),
            span,
            reason: None,
        },
        Err(NoRetention::FewClusters) => Retention {
            value,
            ci95: None,
            span,
            reason: Some(NoRetention::FewClusters),
        },
        Err(reason) => Retention::missing(reason, span),
    }
}

/// Fieller's interval (l ± √(l² − qk)) / q for the ratio of the means x̄ / ȳ, where q = ȳ² − t²v_y, l = x̄ȳ − t²c,
/// k = x̄² − t²v_x, and v_x, v_y, c are variances and covariance of the means.
fn fieller(x: &[f64], y: &[f64]) -> Result<Interval, NoRetention> {
    let t = StudentT::new(x.len().saturating_sub(1)).and_then(|t| t.quantile(UPPER_TAIL));
    let square = t.ok_or(NoRetention::FewClusters)?.powi(2) / x.len() as f64;
    let (Some(mean_x), Some(mean_y)) = (mean(x), mean(y)) else {
        return Err(NoRetention::NotANumber);
    };
    let (Some(variance_x), Some(variance_y)) = (sample_variance(x), sample_variance(y)) else {
        return Err(NoRetention::NotANumber);
    };
    let products: f64 = x
        .iter()
        .zip(y)
        .map(|(x, y)| (x - mean_x) * (y - mean_y))
        .sum();
    let covariance = products / (x.len() - 1) as f64;
    let q = mean_y.powi(2) - square * variance_y;
    let l = mean_x * mean_y - square * covariance;
    let k = mean_x.powi(2) - square * variance_x;
    if q <= 0.0 {
        return Err(NoRetention::UncertainSpan);
    }
    // negative only by rounding, as long as q is positive
    let root = (l * l - q * k).max(0.0).sqrt();
    // a q of almost 0 gives ends that are not usable
    Interval::new((l - root) / q, (l + root) / q).ok_or(NoRetention::UncertainSpan)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_clusters_keep_four_fifths() {
        let retained = retention(&[(2.9, 3.4), (2.4, 3.2), (2.8, 3.2), (2.7, 3.3)]);
        assert!((retained.value.unwrap() - 0.8244).abs() < 5e-5);
        let ci95 = retained.ci95.unwrap();
        assert!((ci95.low() - 0.7375).abs() < 5e-5 && (ci95.high() - 0.9086).abs() < 5e-5);
        assert_eq!(retained.reason, None);
    }

    #[test]
    fn one_cluster_has_a_value_alone() {
        let retained = retention(&[(1.0, 2.0)]);
        assert_eq!(
            (retained.value, retained.ci95, retained.reason),
            (Some(0.5), None, Some(NoRetention::FewClusters))
        );
    }

    #[test]
    fn it_is_undefined_where_floor_and_ceiling_are_not_apart() {
        assert_eq!(retention(&[]).reason, Some(NoRetention::MissingReference));
        let narrow = retention(&[(0.2, 0.4), (0.3, 0.5)]);
        assert_eq!(
            (narrow.value, narrow.reason),
            (None, Some(NoRetention::NarrowSpan))
        );
        let uncertain = retention(&[(1.0, 4.0), (1.0, -1.0), (1.0, 2.0)]);
        assert_eq!(
            (uncertain.value, uncertain.ci95, uncertain.reason),
            (None, None, Some(NoRetention::UncertainSpan))
        );
        assert_eq!(
            retention(&[(f64::NAN, 2.0)]).reason,
            Some(NoRetention::NotANumber)
        );
    }

    #[test]
    fn it_is_not_clipped() {
        assert!(
            retention(&[(-0.5, 2.0), (-0.4, 2.1), (-0.6, 2.0)])
                .value
                .unwrap()
                < 0.0
        );
        assert!(
            retention(&[(2.5, 2.0), (2.4, 2.1), (2.6, 2.0)])
                .value
                .unwrap()
                > 1.0
        );
    }

    #[test]
    fn equal_clusters_have_a_value_without_an_interval() {
        let retained = retention(&[(1.0, 2.0), (1.0, 2.0), (1.0, 2.0)]);
        assert_eq!(
            (retained.value, retained.ci95, retained.reason),
            (Some(0.5), None, None)
        );
    }
}
