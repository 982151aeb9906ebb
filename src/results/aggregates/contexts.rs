//! Compressions by method: the points that count for all methods, what one compression costs, methods with the same
//! contexts, and what rules find in contexts: references that their transcripts do not have, and findings of the guard.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::action::Digest;
use crate::measure::compression_ratio;
use crate::results::Ordered;
use crate::results::files::edits::differing_settings;
use crate::results::files::row::ContextRow;
use crate::results::result_set::ResultSet;
use base::units::Tokens;
use guard::Verdict;
use stats::{self, Interval};

/// What one compression of a method costs and keeps, on average over the points that count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CompressionCost {
    /// How many compressions there are. The means are over those at points that all methods compressed.
    pub contexts: u64,
    /// How many there would be if none had failed.
    pub expected: u64,
    /// Tokens of a context, the geometric mean over fixtures.
    pub tokens: Option<f64>,
    /// The interval of these tokens for other sessions like these.
    pub tokens_ci95: Option<Interval>,
    /// 1 − tokens of a context / replaced tokens.
    pub compression_ratio: Option<f64>,
    /// The share of the expected facts that occur in a context.
    pub fact_survival: Option<f64>,
    /// The share of the replaced tokens that are user messages which a vendor keeps word for word; null for contexts
    /// that are not a vendor's.
    pub user_share: Option<f64>,
    /// How long it took when it was executed.
    pub seconds: Option<f64>,
    /// Requests to a model.
    pub calls: Option<f64>,
    /// Dollars; null where a price is unknown.
    pub usd: Option<f64>,
}

/// Two methods whose contexts are the same in every compression.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdenticalContexts {
    /// Their names.
    pub methods: [String; 2],
    /// Compressions that both have.
    pub contexts: u64,
    /// The settings in which the two differ, which therefore changed nothing; empty for different strategies.
    pub settings: Vec<String>,
}

pub(crate) fn contexts<'s>(set: &'s ResultSet, method: &str) -> Vec<&'s ContextRow> {
    set.contexts
        .iter()
        .filter(|context| context.method == method)
        .collect()
}

/// A point of a fixture.
pub(super) type PointAt<'s> = (&'s str, u32);

/// The points where all methods that compress anything compressed something; where there are none, all points, which
/// then only have a cost.
fn counted_points(set: &ResultSet) -> BTreeSet<PointAt<'_>> {
    let all: BTreeSet<PointAt<'_>> = set.contexts.iter().map(at).collect();
    let counted = &all - &idle_points(set);
    if counted.is_empty() { all } else { counted }
}

/// The points of a set that count for its figures. They are the same for all methods, so they are found once.
pub(crate) struct CountedPoints<'s> {
    set: &'s ResultSet,
    all: BTreeSet<PointAt<'s>>,
    /// Those that all methods compressed: a method that fails at the hard points would look better on the others. A method
    /// without any context is ignored.
    common: BTreeSet<PointAt<'s>>,
}

impl<'s> CountedPoints<'s> {
    pub(crate) fn new(set: &'s ResultSet) -> CountedPoints<'s> {
        let mut compressed: BTreeMap<&str, BTreeSet<PointAt<'_>>> = BTreeMap::new();
        for context in &set.contexts {
            let points = compressed.entry(context.method.as_str()).or_default();
            points.insert(at(context));
        }
        let all = counted_points(set);
        let mut common = all.clone();
        common.retain(|point| compressed.values().all(|own| own.contains(point)));
        CountedPoints { set, all, common }
    }
}

/// The points where a method compressed nothing, although it compresses elsewhere. No figure compares methods there.
fn idle_points(set: &ResultSet) -> BTreeSet<PointAt<'_>> {
    let compressing = set.contexts.iter();
    let compressing: BTreeSet<&str> = compressing.map(|context| &*context.method).collect();
    let idle = set.not_compressed.iter().flat_map(|idle| &idle.contexts);
    idle.filter(|context| compressing.contains(context.method.as_str()))
        .map(at)
        .collect()
}

pub(super) fn at(context: &ContextRow) -> PointAt<'_> {
    (&context.fixture, context.point)
}

/// The mean over fixtures of the mean within each; `None` where no context has a value.
pub(super) fn mean_by_fixture(
    contexts: &[&ContextRow],
    of: impl Fn(&ContextRow) -> Option<f64>,
) -> Option<f64> {
    stats::mean(&fixture_means(contexts, of))
}

/// The mean of each fixture whose contexts have a value.
fn fixture_means(contexts: &[&ContextRow], of: impl Fn(&ContextRow) -> Option<f64>) -> Vec<f64> {
    let mut fixtures: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for (context, value) in contexts
        .iter()
        .filter_map(|context| Some((context, of(context)?)))
    {
        fixtures.entry(&context.fixture).or_default().push(value);
    }
    fixtures
        .values()
        .filter_map(|values| stats::mean(values))
        .collect()
}

/// What a compression of a method costs, at the points that count and that all methods compressed; how many contexts
/// there are, at all points that count.
pub(crate) fn compression_cost(points: &CountedPoints<'_>, method: &str) -> CompressionCost {
    let counted = cost_at(points.set, method, &points.all);
    CompressionCost {
        contexts: counted.contexts,
        expected: counted.expected,
        ..cost_at(points.set, method, &points.common)
    }
}

/// What a compression costs on either side of a comparison, at the points that both sides compressed; of these at the
/// points that count on both, if there are any. The tokens have no interval.
pub(crate) fn paired_compression_costs<'s>(
    sides: [(&'s ResultSet, &'s str); 2],
) -> [CompressionCost; 2] {
    let [(own, _), (other, _)] = sides;
    let [a, b] = sides.map(|(set, method)| {
        contexts(set, method)
            .into_iter()
            .map(at)
            .collect::<BTreeSet<_>>()
    });
    let mut common = &a & &b;
    common.retain(|(fixture, _)| have_same_points(own, other, fixture));
    let counted = &(&counted_points(own) & &counted_points(other)) & &common;
    let points = if counted.is_empty() { common } else { counted };
    let [a, b] = sides.map(|(set, method)| sizes(&contexts_at(set, method, &points)));
    let mut costs = sides.map(|(set, method)| cost_at(set, method, &points));
    for (cost, tokens) in costs.iter_mut().zip(stats::paired_sizes([&a, &b])) {
        (cost.tokens, cost.tokens_ci95) = (tokens, None);
    }
    costs
}

/// The contexts of a method at these points.
fn contexts_at<'s>(
    set: &'s ResultSet,
    method: &str,
    points: &BTreeSet<PointAt<'_>>,
) -> Vec<&'s ContextRow> {
    let mut contexts = contexts(set, method);
    contexts.retain(|context| points.contains(&at(context)));
    contexts
}

/// The mean tokens of a context, by fixture.
fn sizes(contexts: &[&ContextRow]) -> Vec<f64> {
    fixture_means(contexts, |context| {
        context.tokens.map(|tokens| tokens as f64)
    })
}

/// What a compression of a method costs at these points.
fn cost_at(set: &ResultSet, method: &str, counted: &BTreeSet<PointAt<'_>>) -> CompressionCost {
    let compressed = contexts_at(set, method, counted);
    let uncompressed = set
        .not_compressed
        .iter()
        .flat_map(|set| contexts(set, method));
    let uncompressed = uncompressed
        .filter(|context| counted.contains(&at(context)))
        .count() as u64;
    let is_priced = compressed.iter().all(|context| context.usd.is_some());
    let tokens = stats::geometric_mean(&sizes(&compressed));
    CompressionCost {
        contexts: compressed.len() as u64,
        expected: (counted.len() as u64 * u64::from(set.design().runs.compress))
            .saturating_sub(uncompressed),
        tokens: tokens.map(|tokens| tokens.center),
        tokens_ci95: tokens.and_then(|tokens| tokens.ci95),
        compression_ratio: mean_by_fixture(&compressed, |context| {
            compression_ratio(Tokens(context.tokens?), Tokens(context.replaced_tokens))
        }),
        fact_survival: mean_by_fixture(&compressed, |context| context.fact_survival),
        user_share: mean_by_fixture(&compressed, user_share),
        seconds: mean_by_fixture(&compressed, |context| context.seconds),
        calls: mean_by_fixture(&compressed, |context| Some(f64::from(context.calls))),
        usd: mean_by_fixture(&compressed, |context| context.usd).filter(|_| is_priced),
    }
}

/// The share of the replaced tokens that are user messages which a vendor keeps word for word.
fn user_share(context: &ContextRow) -> Option<f64> {
    (context.replaced_tokens > 0)
        .then_some(context.user_tokens? as f64 / context.replaced_tokens as f64)
}

/// For each context that two methods both have in fixtures with the same messages and points, whether it is the same.
pub(crate) fn same_contexts(sides: [(&ResultSet, &str); 2]) -> Vec<bool> {
    let [(own, _), (other, _)] = sides;
    let [a, b] = sides.map(|(set, method)| digests(set, method));
    let comparable = a
        .iter()
        .filter(|(place, _)| have_same_points(own, other, place.0.0));
    comparable
        .filter_map(|(place, digest)| Some(b.get(place)? == digest))
        .collect()
}

/// Whether two sets have a fixture with the same messages and points.
pub(crate) fn have_same_points(own: &ResultSet, other: &ResultSet, fixture: &str) -> bool {
    let [own, other] = [own, other].map(|set| {
        let fixture = set.design().fixture(fixture);
        fixture.map(|info| (info.digests.transcript, info.digests.points))
    });
    own.is_some() && own == other
}

/// The contexts of a method by fixture, point and run.
fn digests<'s>(set: &'s ResultSet, method: &str) -> BTreeMap<(PointAt<'s>, u32), Digest> {
    contexts(set, method)
        .into_iter()
        .map(|context| ((at(context), context.run), context.context))
        .collect()
}

/// The pairs of methods whose contexts are the same everywhere.
pub(crate) fn identical_contexts(set: &ResultSet) -> Vec<IdenticalContexts> {
    let methods = set.design().methods.iter();
    let all: Vec<_> = methods
        .map(|info| (info, digests(set, &info.name)))
        .collect();
    let mut pairs = Vec::new();
    for (at, (info, own)) in all.iter().enumerate() {
        for (other_info, other) in all.iter().skip(at + 1) {
            if own.is_empty() || own != other {
                continue;
            }
            pairs.push(IdenticalContexts {
                methods: [info.name.clone(), other_info.name.clone()],
                contexts: own.len() as u64,
                settings: differing_settings(info, other_info),
            });
        }
    }
    pairs
}

#[cfg(test)]
pub(crate) mod fakes {
    use super::*;
    use crate::action::ActionKey;
    use crate::results::fakes::design;
    use crate::results::{FolderError, Manifest, Row};

    pub(crate) fn context(fixture: &str, point: u32, run: u32) -> ContextRow {
        ContextRow {
            fixture: fixture.into(),
            point,
            method: "m".into(),
            run,
            key: ActionKey(Digest::hash("k")),
            context: Digest::hash(format!("{fixture}{point}{run}")),
            tokens: Some(100),
            replaced_tokens: 1000,
            user_tokens: None,
            seconds: Some(2.0),
            usd: Some(0.5),
            calls: 1,
            compressed: true,
            fact_survival: None,
            guard: None,
            invented: None,
        }
    }

    pub(crate) fn set(contexts: Vec<ContextRow>) -> ResultSet {
        let design = design(&[("m", "extract")], &[("a", 0), ("b", 0), ("c", 0)], 2);
        let manifest = Manifest::begin("l", "2026-01-01T00:00:00Z", design);
        let none = Vec::<Result<Row, FolderError>>::new();
        ResultSet::gather(manifest, none)
            .expect("a set")
            .with_contexts(contexts)
    }
}

/// `invented` of a method in `summary.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InventedSummary {
    /// Invented references per 1,000 tokens of a context, the mean over fixtures; null where no context was measured.
    pub per_1000_tokens: Option<f64>,
    /// Contexts that were measured.
    pub contexts: u64,
    /// Readable contexts that were not measured, because their logs begin in the middle of a session.
    pub begun_midway: u64,
    /// How many invented references all measured contexts have.
    pub count: u64,
    /// The distinct invented references, at most [`MOST_NAMED`]; those in most contexts come first.
    pub references: Vec<String>,
}

/// The most references that a summary names.
const MOST_NAMED: usize = 20;

impl InventedSummary {
    /// Measures a method; `None` where no context can be read.
    pub(crate) fn new(set: &ResultSet, method: &str) -> Option<InventedSummary> {
        let own = contexts(set, method);
        let readable = own.iter().filter(|context| context.tokens.is_some());
        let (known, midway): (Vec<&ContextRow>, Vec<&ContextRow>) = readable
            .copied()
            .partition(|context| context.invented.is_some());
        if known.is_empty() && midway.is_empty() {
            return None;
        }
        let invented = known
            .iter()
            .filter_map(|context| context.invented.as_ref())
            .map(|found| &found.invented);
        Some(InventedSummary {
            per_1000_tokens: mean_by_fixture(&known, |context| {
                context
                    .invented
                    .as_ref()?
                    .per_1000_tokens(Tokens(context.tokens?))
            }),
            contexts: known.len() as u64,
            begun_midway: midway.len() as u64,
            count: invented
                .clone()
                .map(|references| references.len() as u64)
                .sum(),
            references: most_frequent(invented.flatten()),
        })
    }
}

fn most_frequent<'r>(references: impl Iterator<Item = &'r String>) -> Vec<String> {
    let mut counts: BTreeMap<&String, usize> = BTreeMap::new();
    references.for_each(|reference| *counts.entry(reference).or_default() += 1);
    let mut counts: Vec<(&String, usize)> = counts.into_iter().collect();
    // stable: equals stay in alphabetical order
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    counts
        .into_iter()
        .take(MOST_NAMED)
        .map(|(reference, _)| reference.clone())
        .collect()
}

/// The findings of the guard in the contexts of one method.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GuardSummary {
    /// How many contexts it looked at.
    pub contexts: u64,
    /// How many it would have rejected.
    pub rejected: u64,
    /// The share of these.
    pub rejected_share: f64,
    /// How many contexts have a finding of each rule, warnings among them.
    pub findings: Ordered<u64>,
}

impl GuardSummary {
    /// Of the contexts of `method`; `None` where the guard looked at none.
    pub(crate) fn new(set: &ResultSet, method: &str) -> Option<GuardSummary> {
        let guarded = contexts(set, method).into_iter();
        let guarded: Vec<_> = guarded.filter_map(|row| row.guard.as_ref()).collect();
        let rejected = guarded
            .iter()
            .filter(|found| found.values().any(|verdict| *verdict == Verdict::Reject))
            .count();
        let findings = guard::kinds().into_iter().filter_map(|kind| {
            let count = guarded
                .iter()
                .filter(|found| found.contains_key(kind))
                .count();
            (count > 0).then(|| (kind.to_owned(), count as u64))
        });
        (!guarded.is_empty()).then(|| GuardSummary {
            contexts: guarded.len() as u64,
            rejected: rejected as u64,
            rejected_share: rejected as f64 / guarded.len() as f64,
            findings: findings.collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::fakes::{context, set};
    use super::*;
    use lexical::InventedReferences;

    #[test]
    fn what_contexts_keep_needs_no_grade() {
        let kept = [("a", Some(0.5)), ("b", Some(1.0)), ("c", None)];
        let contexts = kept.map(|(name, kept)| ContextRow {
            fact_survival: kept,
            ..context(name, 1, 1)
        });
        let set = set(contexts.to_vec());
        let cost = compression_cost(&CountedPoints::new(&set), "m");
        assert_eq!(cost.fact_survival, Some(0.75));
        assert!(
            cost.compression_ratio
                .is_some_and(|ratio| (ratio - 0.9).abs() < 1e-12),
            "{cost:?}"
        );
    }

    /// A set with contexts of these sizes in two sessions.
    fn sized(tokens: [u64; 2]) -> ResultSet {
        let contexts = ["a", "b"].into_iter().zip(tokens);
        let contexts = contexts.map(|(name, tokens)| ContextRow {
            tokens: Some(tokens),
            ..context(name, 1, 1)
        });
        set(contexts.collect())
    }

    #[test]
    fn two_sides_have_the_same_kind_of_mean_where_a_context_is_empty() {
        let (before, after) = (sized([100, 900]), sized([0, 900]));
        let [own, other] =
            paired_compression_costs([(&before, "m"), (&after, "m")]).map(|cost| cost.tokens);
        assert_eq!((own, other), (Some(500.0), Some(450.0)));
        let [own, _] =
            paired_compression_costs([(&before, "m"), (&before, "m")]).map(|cost| cost.tokens);
        assert!(
            own.is_some_and(|tokens| (tokens - 300.0).abs() < 1e-9),
            "{own:?}"
        );
    }

    #[test]
    fn a_fixture_that_neither_set_has_is_not_the_same() {
        let set = set(Vec::new());
        assert!(have_same_points(&set, &set, "a") && !have_same_points(&set, &set, "elsewhere"));
    }

    fn with(fixture: &str, run: u32, tokens: u64, invented: Option<&[&str]>) -> ContextRow {
        let invented = invented.map(|names| InventedReferences {
            invented: names.iter().map(|name| (*name).to_owned()).collect(),
            ..InventedReferences::default()
        });
        ContextRow {
            tokens: Some(tokens),
            invented,
            ..context(fixture, 1, run)
        }
    }

    #[test]
    fn it_is_the_mean_over_sessions_and_leaves_out_those_that_begin_midway() {
        let contexts = vec![
            with("a", 1, 1000, Some(&["x.rs", "y.rs"])),
            with("a", 2, 1000, Some(&["y.rs", "a.rs"])),
            with("b", 1, 500, Some(&[])),
            with("c", 1, 500, None),
        ];
        let found = InventedSummary::new(&set(contexts), "m").expect("contexts");
        assert_eq!(
            (
                found.per_1000_tokens,
                found.contexts,
                found.begun_midway,
                found.count
            ),
            (Some(1.0), 3, 1, 4)
        );
        assert_eq!(found.references, ["y.rs", "a.rs", "x.rs"]);
    }

    #[test]
    fn nothing_is_known_where_all_sessions_begin_midway_or_no_context_can_be_read() {
        let midway = InventedSummary::new(&set(vec![with("a", 1, 100, None)]), "m")
            .expect("a readable context");
        assert_eq!(
            (midway.per_1000_tokens, midway.begun_midway),
            (None, 1),
            "unknown is not zero"
        );
        let opaque = ContextRow {
            tokens: None,
            invented: None,
            ..context("a", 1, 1)
        };
        assert_eq!(InventedSummary::new(&set(vec![opaque]), "m"), None);
    }
}
