//! What is left out: dimensions that count neither in `overall` nor in the gate, and contexts in which nothing was
//! compressed.
//!
//! A judge may be unqualified in a dimension, or a dimension may hardly distinguish the whole transcript from an empty
//! context ("I do not know" can follow every instruction). In a comparison, the baseline decides the latter for both
//! sides: otherwise a change could move the mean by changing which dimensions it includes.
//!
//! Contexts in which a method kept everything that it was asked to replace do not show how it compresses, so no other
//! figure includes them. The answers from them are averaged here.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::Answers;
use super::contexts::contexts;
use super::scale::{NEEDED, PROBES_TO_REFUSE, ceiling_and_floor, differences_by_probe};
use crate::judge::Dimension;
use crate::results::result_set::ResultSet;
use crate::results::result_set::selection::{ScoreEstimate, Selection, Subset, overall_level};
use stats::mean;

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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NotCompressed {
    /// Contexts in which nothing was compressed.
    pub contexts: u64,
    /// All contexts of the method.
    pub of: u64,
    /// `overall` of the answers from these contexts.
    pub overall: ScoreEstimate,
    /// The share of their expected facts that occur in the context.
    pub fact_survival: Option<f64>,
}

impl NotCompressed {
    /// Measures a variant; `None` if it compressed everywhere. `whole` is the selection of its other figures.
    pub(crate) fn new(
        set: &ResultSet,
        variant: usize,
        whole: &Selection<'_>,
    ) -> Option<NotCompressed> {
        let uncompressed = set.not_compressed.as_deref()?;
        let name = set.method(variant)?.name.as_str();
        let [contexts, others] = [uncompressed, set].map(|set| contexts(set, name).len() as u64);
        let probes: Subset = uncompressed.scores.judged(variant);
        let answers = Answers::new(uncompressed, variant, &probes);
        (contexts > 0).then(|| NotCompressed {
            contexts,
            of: contexts + others,
            overall: overall_level(
                &whole
                    .over(&uncompressed.scores, probes.clone())
                    .runs(variant),
            ),
            fact_survival: answers.fact_survival(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::ActionKey;
    use crate::pipeline::Book;
    use crate::results::aggregates::contexts::fakes::context;
    use crate::results::aggregates::scale::scale_check;
    use crate::results::fakes::{design, row};
    use crate::results::files::row::ContextRow;
    use crate::results::{
        FolderError, Manifest, OpenBook, Row, main_result, summarize, worst_rows,
    };

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
        assert_eq!(
            (apart.contexts, apart.of, apart.overall.median),
            (1, 3, Some(5.0))
        );
        assert_eq!(apart.fact_survival, Some(1.0));
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
        let ranked = serde_json::to_string(&main_result(&summary, &set.manifest)).expect("JSON");
        assert!(
            ranked.contains("busy") && !ranked.contains("idle"),
            "{ranked}"
        );
    }

    #[test]
    fn the_floor_is_answered_without_a_search() {
        let mut manifest = Manifest::begin(
            "l",
            "t",
            design(&[("full", "full"), ("none", "none")], &[("a", 8)], 1),
        );
        manifest.design.primary = Book::Open;
        manifest.design.answerers[0].recovery = Some(serde_json::json!({ "calls": 2 }));
        let at = |probe: u32, method: &str, score: f64| Row {
            probe: format!("p{probe}"),
            ..row("a", method, 1, &[(ACCURACY, score)])
        };
        let searched = |probe: u32| {
            let (closed, steps, searches) = ("agent".to_owned(), Vec::new(), Vec::new());
            let open = OpenBook {
                closed,
                steps,
                searches,
                tokens: 0,
                gold_found: None,
                own_archive: false,
            };
            Row {
                answerer: "agent+search".into(),
                open_book: Some(open),
                ..at(probe, "none", 4.9)
            }
        };
        let of_probe = |probe: u32| {
            [
                at(probe, "full", 5.0),
                at(probe, "none", 0.0),
                searched(probe),
            ]
        };
        let rows = (1..=8).flat_map(of_probe).map(Ok::<Row, FolderError>);
        let set = ResultSet::gather(manifest, rows).expect("a set");
        let scale = scale_check(&set);
        assert_eq!(
            (scale.probes, scale.difference, scale.cause),
            (8, Some(5.0), None)
        );
        assert!(excluded(&set).is_empty(), "no dimension is too narrow");
    }
}
