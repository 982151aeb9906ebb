//! Rank correlation and straight lines.

/// Spearman's rank correlation of pairs; ties have their mean rank. `None` if one side does not vary.
pub(crate) fn spearman(pairs: &[(f64, f64)]) -> Option<f64> {
    let left = ranks(pairs.iter().map(|pair| pair.0));
    let right = ranks(pairs.iter().map(|pair| pair.1));
    let mean = (pairs.len() as f64 + 1.0) / 2.0;
    let product = |a: &[f64], b: &[f64]| {
        a.iter()
            .zip(b)
            .map(|(a, b)| (a - mean) * (b - mean))
            .sum::<f64>()
    };
    let scale = (product(&left, &left) * product(&right, &right)).sqrt();
    (scale > 0.0).then(|| product(&left, &right) / scale)
}

fn ranks(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let values: Vec<f64> = values.collect();
    let rank = |value: &f64| {
        let below = values.iter().filter(|other| *other < value).count() as f64;
        let equal = values.iter().filter(|other| *other == value).count() as f64;
        below + (equal + 1.0) / 2.0
    };
    values.iter().map(rank).collect()
}

/// The slope of the least squares line through points.
pub(crate) fn slope(points: &[(f64, f64)]) -> f64 {
    let n = points.len() as f64;
    let (x, y) = (
        points.iter().map(|p| p.0).sum::<f64>() / n,
        points.iter().map(|p| p.1).sum::<f64>() / n,
    );
    let spread: f64 = points.iter().map(|p| (p.0 - x).powi(2)).sum();
    points.iter().map(|p| (p.0 - x) * (p.1 - y)).sum::<f64>() / spread
}
