//! Whether ceiling and floor are far enough apart: if the whole transcript is graded hardly better than an empty
//! context, a figure between them means nothing.
//!
//! For each answerable probe that was graded for both `full` and `none` of one answerer, the difference of their
//! overall scores is taken. Probes that the transcript does not answer are left out, because an empty context is as
//! good for them as the whole. The scale is too narrow if the mean difference is under [`NEEDED`], or if its one-sided
//! 95% bound over probes is not above 0. If the mean is too small, literal fact matching, which needs no judge, names the
//! suspect: if `full` states facts that `none` does not, their grades should have differed. Where no probe has expected
//! facts, the suspect is unknown.
//!
//! The floor is always answered without a search, also where answers with a search are tested: a search without any
//! context finds nearly all, which shows nothing about judge, bank or answerer.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::pipeline::Book;
use crate::results::files::design::MethodInfo;
use crate::results::result_set::grade::Grade;
use crate::results::result_set::{MethodVariant, ResultSet};
use stats::{lower_bound, mean, mean_of};

/// How far, in points, `full` must lie above `none`.
pub(super) const NEEDED: f64 = stats::thresholds::SPAN_WARNING;
/// The fewest probes on which a gate refuses a scale that is too narrow.
pub(super) const PROBES_TO_REFUSE: usize = 8;

/// How far apart ceiling and floor are.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScaleCheck {
    /// Answerable probes that were graded for both; 0 if there are none, so that nothing was checked.
    pub probes: usize,
    /// The mean over probes of ceiling − floor.
    pub difference: Option<f64>,
    /// The lower end of its one-sided 95% interval; `None` with fewer than 2 probes.
    pub lower_bound: Option<f64>,
    /// What to suspect, if the scale is too narrow; `None` also where no probe has expected facts.
    pub cause: Option<NarrowScaleCause>,
}

/// Why ceiling and floor are too close together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NarrowScaleCause {
    /// The facts are in the answers of `full` and not in those of `none`: the judge does not see the difference.
    Judge,
    /// The facts are in both: the probes can be answered without the transcript.
    Bank,
    /// The facts are in neither: the answerer does not find them in the whole transcript.
    Answerer,
    /// The mean is large enough, and the probes are too few, or differ too much, to show that it is not chance.
    FewProbes,
}

impl ScaleCheck {
    /// Whether the scale is so narrow that figures on it mean little.
    pub fn is_narrow(&self) -> bool {
        is_narrow(self.difference, self.lower_bound)
    }

    /// Whether a gate must refuse: the mean is too small, on enough probes to say so.
    pub fn refuses_gate(&self) -> bool {
        self.probes >= PROBES_TO_REFUSE
            && self
                .difference
                .is_some_and(|difference| difference < NEEDED)
    }
}

fn is_narrow(difference: Option<f64>, lower_bound: Option<f64>) -> bool {
    difference.is_some_and(|difference| difference < NEEDED)
        || lower_bound.is_some_and(|bound| bound <= 0.0)
}

/// Checks the first answerer that both a ceiling and a floor were graded with.
pub(crate) fn scale_check(set: &ResultSet) -> ScaleCheck {
    let Some((full, none)) = ceiling_and_floor(set) else {
        return ScaleCheck {
            probes: 0,
            difference: None,
            lower_bound: None,
            cause: None,
        };
    };
    let differences = differences_by_probe(set, full, none, |grade| {
        mean_of(grade.dimensions.values().copied())
    });
    let (difference, bound) = (mean(&differences), lower_bound(&differences));
    let cause = if !is_narrow(difference, bound) {
        None
    } else if difference.is_some_and(|difference| difference >= NEEDED) {
        Some(NarrowScaleCause::FewProbes)
    } else {
        let stated = stated(set, full).zip(stated(without_search(set, none), none));
        stated.map(|(full, none)| cause(full, none))
    };
    ScaleCheck {
        probes: differences.len(),
        difference,
        lower_bound: bound,
        cause,
    }
}

/// The variants of ceiling and floor of the first answerer that has both.
pub(super) fn ceiling_and_floor(set: &ResultSet) -> Option<(usize, usize)> {
    set.variants
        .iter()
        .find_map(|MethodVariant { answerer, .. }| {
            Some((
                set.variant_of(answerer, MethodInfo::is_ceiling)?,
                set.variant_of(answerer, MethodInfo::is_floor)?,
            ))
        })
}

/// The set with the answers of a variant from the context alone.
fn without_search(set: &ResultSet, variant: usize) -> &ResultSet {
    match set.other_book.as_deref() {
        Some(other) if set.design().primary == Book::Open && !other.grades(variant).is_empty() => {
            other
        }
        _ => set,
    }
}

/// The differences between the scores of ceiling and floor, on each answerable probe that was graded for both.
pub(super) fn differences_by_probe(
    set: &ResultSet,
    high: usize,
    low: usize,
    score: impl Fn(&Grade) -> Option<f64>,
) -> Vec<f64> {
    let sides = [(set, high), (without_search(set, low), low)];
    let [high, low] = sides.map(|(set, variant)| means_by_probe(set, variant, &score));
    high.iter()
        .filter_map(|(probe, high)| Some(high - low.get(probe)?))
        .collect()
}

/// The mean of a score on each answerable probe of a variant.
fn means_by_probe(
    set: &ResultSet,
    variant: usize,
    score: impl Fn(&Grade) -> Option<f64>,
) -> BTreeMap<usize, f64> {
    let mut by_probe: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for grade in set
        .grades(variant)
        .iter()
        .filter(|grade| set.is_answerable(grade.at.probe))
    {
        by_probe
            .entry(grade.at.probe)
            .or_default()
            .extend(score(grade));
    }
    by_probe
        .into_iter()
        .filter_map(|(probe, values)| Some((probe, mean(&values)?)))
        .collect()
}

/// The share of expected facts that a variant's answers state; `None` where no facts are expected.
fn stated(set: &ResultSet, variant: usize) -> Option<f64> {
    let facts = set
        .answers(variant)
        .iter()
        .flat_map(|measured| &measured.facts);
    mean_of(facts.map(|fact| f64::from(u8::from(fact.answered))))
}

/// The cause, from the shares of facts that the answers of ceiling and floor state.
fn cause(full: f64, none: f64) -> NarrowScaleCause {
    const MOST: f64 = 0.5;
    match (full >= MOST, none >= MOST) {
        (true, false) => NarrowScaleCause::Judge,
        (true, true) => NarrowScaleCause::Bank,
        (false, _) => NarrowScaleCause::Answerer,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::Dimension;
    use crate::results::fakes::{design, row};
    use crate::results::{FolderError, Manifest, Row};

    #[test]
    fn a_large_mean_on_few_probes_is_the_fault_of_neither_judge_nor_bank() {
        let manifest = Manifest::begin(
            "l",
            "t",
            design(&[("full", "full"), ("none", "none")], &[("a", 2)], 1),
        );
        let scores = [
            ("full", "p1", 1.0),
            ("none", "p1", 0.0),
            ("full", "p2", 5.0),
            ("none", "p2", 0.0),
        ];
        let rows = scores.map(|(method, probe, score)| {
            Ok::<Row, FolderError>(Row {
                probe: probe.into(),
                ..row("a", method, 1, &[(Dimension::Accuracy, score)])
            })
        });
        let scale = scale_check(&ResultSet::gather(manifest, rows).expect("a set"));
        assert_eq!(
            (scale.difference, scale.cause),
            (Some(3.0), Some(NarrowScaleCause::FewProbes))
        );
        assert!(scale.is_narrow() && !scale.refuses_gate());
    }

    fn check(probes: usize, difference: f64, lower_bound: f64) -> ScaleCheck {
        ScaleCheck {
            probes,
            difference: Some(difference),
            lower_bound: Some(lower_bound),
            cause: None,
        }
    }

    #[test]
    fn a_scale_is_narrow_by_its_mean_or_by_its_bound() {
        assert!(!check(8, 1.0, 0.1).is_narrow());
        assert!(check(8, 0.99, 0.5).is_narrow());
        assert!(
            check(3, 2.0, 0.0).is_narrow(),
            "a mean that is not shown to be above 0"
        );
        let unchecked = ScaleCheck {
            probes: 0,
            difference: None,
            lower_bound: None,
            cause: None,
        };
        assert!(
            unchecked.difference.is_none() && !unchecked.is_narrow() && !unchecked.refuses_gate()
        );
    }

    #[test]
    fn a_gate_refuses_by_the_mean_alone_and_from_eight_probes_on() {
        assert!(check(8, 0.99, 0.5).refuses_gate());
        assert!(!check(7, 0.2, -0.5).refuses_gate());
        assert!(!check(20, 1.2, -0.1).refuses_gate());
    }

    #[test]
    fn the_cause_is_named_by_where_facts_stand() {
        assert_eq!(cause(0.9, 0.1), NarrowScaleCause::Judge);
        assert_eq!(cause(0.9, 0.8), NarrowScaleCause::Bank);
        assert_eq!(cause(0.2, 0.1), NarrowScaleCause::Answerer);
    }
}
