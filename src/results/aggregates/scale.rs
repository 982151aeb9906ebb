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
//! What is left out: dimensions that count neither in `overall` nor in the gate, and contexts in which nothing was
//! compressed.
//!
//! A judge may be unqualified in a dimension, or a dimension may hardly distinguish the whole transcript from an empty
//! context ("I do not know" can follow every instruction). In a comparison, the baseline decides the latter for both
//! sides: otherwise a change could move the mean by changing which dimensions it includes.
//!
//! Contexts in which a method kept everything that it was asked to replace do not show how it compresses, so no other
//! figure includes them. They are counted here.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::contexts::contexts;
use crate::judge::Dimension;
use crate::results::files::design::{MethodInfo, MethodVariant};
use crate::results::result_set::ResultSet;
use crate::results::result_set::scores::Grade;
use stats::{lower_bound, mean, mean_of};

/// How far, in points, `full` must lie above `none`.
pub(super) const NEEDED: f64 = stats::thresholds::SPAN_WARNING;
/// The fewest probes on which a gate refuses a scale that is too narrow.
pub(super) const PROBES_TO_REFUSE: usize = 8;

/// How far apart ceiling and floor are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
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
        return ScaleCheck::default();
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
        let stated = stated(set, full).zip(stated(set, none));
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

/// The differences between the scores of ceiling and floor, on each answerable probe that was graded for both.
pub(super) fn differences_by_probe(
    set: &ResultSet,
    high: usize,
    low: usize,
    score: impl Fn(&Grade) -> Option<f64>,
) -> Vec<f64> {
    let [high, low] = [high, low].map(|variant| means_by_probe(set, variant, &score));
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

/// A dimension that is left out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExcludedDimension {
    /// Which one.
    pub dimension: Dimension,
    /// Why.
    #[serde(flatten)]
    pub reason: ExclusionReason,
}

/// Why a dimension is left out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "reason")]
pub enum ExclusionReason {
    /// Judges failed its part of their self-test.
    Unqualified {
        /// Their names.
        judges: Vec<String>,
    },
    /// `full` is graded less than a point above `none`.
    NarrowScale {
        /// The mean difference over the probes that were graded for both.
        difference: f64,
        /// How many such probes there are.
        probes: usize,
    },
}

/// The dimensions that the figures of a set leave out, in the order of tables.
pub(crate) fn excluded(set: &ResultSet) -> Vec<ExcludedDimension> {
    excluded_of(&[set], set)
}

/// The dimensions that a comparison leaves out on both sides.
pub(crate) fn excluded_of(sets: &[&ResultSet], baseline: &ResultSet) -> Vec<ExcludedDimension> {
    let excluded = Dimension::ALL.into_iter().filter_map(|dimension| {
        let judges: BTreeSet<&String> = (sets
            .iter()
            .flat_map(|set| &set.manifest.caveats.unqualified))
        .filter(|unqualified| unqualified.dimensions.contains(&dimension))
        .map(|unqualified| &unqualified.judge)
        .collect();
        let reason = match judges.is_empty() {
            false => ExclusionReason::Unqualified {
                judges: judges.into_iter().cloned().collect(),
            },
            true => narrow_scale(baseline, dimension)?,
        };
        Some(ExcludedDimension { dimension, reason })
    });
    excluded.collect()
}

/// The reason to exclude a dimension if ceiling and floor are too close in it, on enough probes to know that.
fn narrow_scale(set: &ResultSet, dimension: Dimension) -> Option<ExclusionReason> {
    let (full, none) = ceiling_and_floor(set)?;
    let differences = differences_by_probe(set, full, none, |grade| {
        grade.dimensions.get(&dimension).copied()
    });
    let (difference, probes) = (
        mean(&differences).filter(|mean| *mean < NEEDED)?,
        differences.len(),
    );
    (probes >= PROBES_TO_REFUSE).then_some(ExclusionReason::NarrowScale { difference, probes })
}

/// `not_compressed` of a method in `summary.json`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotCompressed {
    /// Contexts in which nothing was compressed.
    pub contexts: u64,
    /// All contexts of the method.
    pub of: u64,
}

impl NotCompressed {
    /// Counts the contexts of a variant; `None` if it compressed everywhere.
    pub(crate) fn new(set: &ResultSet, variant: usize) -> Option<NotCompressed> {
        let uncompressed = set.not_compressed.as_deref()?;
        let name = set.method(variant)?.name.as_str();
        let [contexts, others] = [uncompressed, set].map(|set| contexts(set, name).len() as u64);
        let of = contexts + others;
        (contexts > 0).then_some(NotCompressed { contexts, of })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::ActionKey;
    use crate::judge::Dimension;
    use crate::results::aggregates::contexts::fakes::context;
    use crate::results::aggregates::scale::scale_check;
    use crate::results::fakes::{design, row};
    use crate::results::files::row::ContextRow;
    use crate::results::{FolderError, Manifest, Row, summarize, worst_rows};

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
        let unchecked = ScaleCheck::default();
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

    const ACCURACY: Dimension = Dimension::Accuracy;

    fn compression(fixture: &str, method: &str, compressed: bool) -> ContextRow {
        let key = ActionKey(crate::action::Digest::hash(format!("{fixture} {method}")));
        ContextRow {
            method: method.into(),
            compressed,
            key,
            ..context(fixture, 1, 1)
        }
    }

    /// Two methods on three sessions; `idle` compresses nothing in the sessions `not_compressed`.
    fn set(not_compressed: &[&str]) -> ResultSet {
        let names = ["a", "b", "c"];
        let design = design(
            &[("idle", "command"), ("busy", "extract")],
            &names.map(|name| (name, 1)),
            1,
        );
        let rows: Vec<Result<Row, FolderError>> = names
            .iter()
            .flat_map(|name| {
                let idle = if not_compressed.contains(name) {
                    5.0
                } else {
                    2.0
                };
                [
                    Ok(row(name, "idle", 1, &[(ACCURACY, idle)])),
                    Ok(row(name, "busy", 1, &[(ACCURACY, 3.0)])),
                ]
            })
            .collect();
        let contexts = names.iter().flat_map(|name| {
            [
                compression(name, "idle", !not_compressed.contains(name)),
                compression(name, "busy", true),
            ]
        });
        let manifest = Manifest::begin("l", "2026-01-01T00:00:00Z", design);
        ResultSet::gather(manifest, rows)
            .expect("a set")
            .with_contexts(contexts.collect())
    }

    #[test]
    fn what_was_not_compressed_is_in_no_figure_of_the_method_and_no_method_is_compared_on_it() {
        let set = set(&["b"]);
        let summary = summarize(&set, None);
        let (idle, busy) = (&summary.methods["idle"], &summary.methods["busy"]);
        assert_eq!(
            (idle.overall.median, idle.overall.fixtures),
            (Some(2.0), 2),
            "the 5.0 is not its work"
        );
        assert_eq!(
            (busy.overall.median, busy.overall.fixtures),
            (Some(3.0), 2),
            "on the same probes"
        );
        assert_eq!(
            (idle.overall.missing, summary.uncommon_probes),
            (Some(0.0), 0),
            "nothing is missing"
        );
        assert_eq!(
            (
                idle.cells.judged,
                idle.cells.missing,
                idle.cells.not_compressed
            ),
            (2, 0, 1)
        );
        assert_eq!(
            (idle.compression.contexts, idle.compression.expected),
            (2, 2)
        );
        let apart = idle
            .not_compressed
            .as_ref()
            .expect("it kept everything once");
        assert_eq!((apart.contexts, apart.of), (1, 3));
        assert_eq!(busy.not_compressed, None);
    }

    #[test]
    fn answers_from_what_was_not_compressed_are_no_worst_probes() {
        let rows = [
            row("b", "idle", 1, &[(ACCURACY, 0.0)]),
            row("a", "idle", 1, &[(ACCURACY, 2.0)]),
        ];
        let contexts = ["a", "b"].map(|name| compression(name, "idle", name == "a"));
        let set = ResultSet::gather(set(&[]).manifest, rows.iter().map(Ok::<&Row, FolderError>))
            .expect("a set")
            .with_contexts(contexts.to_vec());
        assert_eq!(worst_rows(&set, 5), [(1, 2.0)]);
    }

    #[test]
    fn a_method_that_never_compresses_is_not_ranked_and_costs_the_others_nothing() {
        let set = set(&["a", "b", "c"]);
        let summary = summarize(&set, None);
        assert_eq!(
            (
                summary.methods["idle"].overall.median,
                summary.methods["busy"].overall.fixtures
            ),
            (None, 3)
        );
        assert_eq!(
            summary.methods["idle"]
                .not_compressed
                .as_ref()
                .map(|apart| apart.contexts),
            Some(3)
        );
        let ranked = serde_json::to_string(&summary.ranking).expect("JSON");
        assert!(
            ranked.contains("busy") && !ranked.contains("idle"),
            "{ranked}"
        );
    }
}
