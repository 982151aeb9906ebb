//! The gate: what got worse, a line each.

use super::compare::{Comparison, Judged, MethodComparison};
use super::level::OVERALL;
use crate::stats::Verdict;

/// One thing that got worse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Regression {
    /// The method.
    pub method: String,
    /// `overall`, a dimension, or `reliability`.
    pub what: String,
    /// One line why, with the smallest detectable difference.
    pub why: String,
}

/// All regressions of a comparison, in the order of tables.
pub fn regressions(comparison: &Comparison) -> Vec<Regression> {
    comparison.methods.iter().flat_map(|(method, compared)| of_method(comparison, method, compared)).collect()
}

fn of_method(comparison: &Comparison, method: &str, compared: &MethodComparison) -> Vec<Regression> {
    let overall = compared.overall.iter().map(|judged| (OVERALL, judged));
    let worse = overall.chain(compared.dimensions.iter()).filter(|(_, judged)| judged.verdict == Verdict::Regressed);
    let regression = |what: &str, why: String| Regression { method: method.to_owned(), what: what.to_owned(), why };
    let mut found: Vec<Regression> = worse
        .map(|(what, judged)| {
            regression(what, format!("{method}: {what} {} against {}", words(judged), comparison.baseline))
        })
        .collect();
    let reliability = &compared.reliability;
    if reliability.regressed {
        let why = format!(
            "{method}: the method itself failed {} of {} cells, in {} {} of {}",
            reliability.failed,
            reliability.cells,
            comparison.baseline,
            reliability.baseline_failed,
            reliability.baseline_cells
        );
        found.push(regression("reliability", why));
    }
    found
}

/// `−0.52 [−0.71, −0.33], p 0.003, 5 fixtures, detectable from 0.41`.
fn words(judged: &Judged) -> String {
    let interval = judged.ci95.map(|ci| format!(" [{:+.2}, {:+.2}]", ci.low(), ci.high())).unwrap_or_default();
    let p = judged.p_adjusted.map(|p| format!(", p {p:.3}")).unwrap_or_default();
    let mdd = judged.mdd.map(|mdd| format!(", detectable from {mdd:.2}")).unwrap_or_default();
    format!("{:+.2}{interval}{p}, {} fixtures{mdd}", judged.difference, judged.clusters)
}

/// Methods whose `overall` could lose over a point unseen, each with the smallest detectable difference where it is
/// known. A method that differs by the same on all fixtures says nothing about noise, and is not among them.
pub fn blind_spots(comparison: &Comparison) -> Vec<(&str, Option<f64>)> {
    let overall = comparison.methods.iter().filter_map(|(method, compared)| Some((method, compared.overall.as_ref()?)));
    let blind = overall.filter(|(_, judged)| judged.is_nearly_blind() && !judged.degenerate);
    blind.map(|(method, judged)| (method, judged.mdd)).collect()
}
