//! Whether two result sets may be compared: by digests, not by names.

use std::collections::BTreeSet;
use std::fmt;

use super::design::{FixtureInfo, ModelInfo};
use super::failure::FailedAction;
use super::manifest::ComparisonScope;
use super::set::{MethodVariant, ResultSet};
use crate::action::StageName;
use crate::answer::TruncatedReplies;
use crate::fault::suggestion;
use crate::provider::ErrorClass;

/// What differs between two result sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Incompatibility {
    /// The rubric, or which criteria grade which probes.
    Rubric,
    /// The judges: number, model, settings or prompt.
    Judges(String),
    /// What judges saw of the context.
    JudgeContext,
    /// What the answerer saw after the point.
    Tail,
    /// The answerer of a method.
    Answerer(String),
    /// What is done with answers that the token limit cut off.
    TruncatedReplies(String),
    /// The messages of a fixture.
    Transcript(String),
    /// The points of a fixture.
    Points(String),
    /// The bank of a fixture.
    Bank(String),
    /// The probes selected from one bank.
    Selection(String),
    /// A fixture that only one side has.
    Fixture(String),
    /// No method has the same name on both sides.
    NoMethodInCommon(Vec<String>),
    /// No such method on this side.
    NoSuchMethod(String),
    /// No cell was judged on both sides.
    NothingInCommon,
}

impl Incompatibility {
    /// Whether the comparison may leave out what differs.
    pub(super) fn is_allowed_by(&self, scope: ComparisonScope) -> bool {
        match self {
            Incompatibility::Fixture(_) | Incompatibility::Selection(_) => scope != ComparisonScope::All,
            Incompatibility::Points(_) | Incompatibility::Bank(_) | Incompatibility::Transcript(_) => {
                scope == ComparisonScope::Common
            }
            _ => false,
        }
    }

    /// The fixture of which no cell can be compared.
    pub(super) fn excluded_fixture(&self) -> Option<&str> {
        match self {
            Incompatibility::Transcript(fixture) => Some(fixture),
            _ => None,
        }
    }
}

impl fmt::Display for Incompatibility {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Incompatibility::Rubric => f.write_str("the rubric"),
            Incompatibility::Judges(how) => write!(f, "the judges ({how})"),
            Incompatibility::JudgeContext => f.write_str("whether judges see the context (`judge_context`)"),
            Incompatibility::Tail => f.write_str("what answerers see after the point (`tail`)"),
            Incompatibility::Answerer(how) => write!(f, "the answerer ({how})"),
            Incompatibility::TruncatedReplies(how) => {
                write!(f, "what is done with truncated answers (`truncated_replies`: {how})")
            }
            Incompatibility::Transcript(fixture) => write!(f, "the messages of fixture `{fixture}`"),
            Incompatibility::Points(fixture) => write!(f, "the compression points of fixture `{fixture}`"),
            Incompatibility::Bank(fixture) => write!(f, "the probes of fixture `{fixture}`"),
            Incompatibility::Selection(fixture) => write!(f, "the selection of probes of fixture `{fixture}`"),
            Incompatibility::Fixture(fixture) => write!(f, "fixture `{fixture}`, which only one side has"),
            Incompatibility::NoMethodInCommon(all) => {
                write!(f, "the methods: none has the same name ({})", all.join(", "))
            }
            Incompatibility::NoSuchMethod(what) => f.write_str(what),
            Incompatibility::NothingInCommon => f.write_str("no cell was judged on both sides"),
        }
    }
}

/// Two sides that cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incomparable {
    /// All that differs; at least one entry.
    pub differences: Vec<Incompatibility>,
    /// What the comparison was allowed to leave out.
    pub scope: ComparisonScope,
}

impl fmt::Display for Incomparable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the two results cannot be compared; what differs:")?;
        for difference in &self.differences {
            write!(f, "\n  - {difference}")?;
        }
        let is_all_common = self.differences.iter().all(|barrier| barrier.is_allowed_by(ComparisonScope::Common));
        if self.scope != ComparisonScope::Common && is_all_common {
            f.write_str("\n`--only-common` compares the cells that do match")?;
        }
        Ok(())
    }
}

impl std::error::Error for Incomparable {}

impl Incomparable {
    pub(super) fn no_such_method(label: &str, method: &str, variants: &[MethodVariant]) -> Incomparable {
        let known: Vec<&str> = variants.iter().map(|variant| variant.key.as_str()).collect();
        let what = format!("`{label}` has no method `{method}`; {}", suggestion(method, &known));
        Incomparable { differences: vec![Incompatibility::NoSuchMethod(what)], scope: ComparisonScope::All }
    }
}

pub(super) fn answerer_of(set: &ResultSet, variant: usize) -> Option<&ModelInfo> {
    let name = &set.variants.get(variant)?.answerer;
    set.design().answerers.iter().find(|asked| asked.name == *name)
}

/// Two variants that are compared. `explicit` if both were named by the user.
#[derive(Clone, Copy, Debug)]
pub(super) struct VariantPair {
    pub a: usize,
    pub b: usize,
    pub explicit: bool,
}

/// All that stands between two result sets.
pub(super) fn incompatibilities(a: &ResultSet, b: &ResultSet, pairs: &[VariantPair]) -> Vec<Incompatibility> {
    let (left, right) = (a.design(), b.design());
    let mut found = if has_answers(a) && has_answers(b) { barriers_of_grades(a, b, pairs) } else { Vec::new() };
    let both = left.fixtures.iter().filter_map(|own| Some((own, right.fixture(&own.name)?)));
    found.extend(both.filter_map(|(own, other)| fixture_barrier(own, other, has_answers(a) && has_answers(b))));
    let lone = |own: &[FixtureInfo], other: &[FixtureInfo]| -> Vec<Incompatibility> {
        let missing = own.iter().filter(|info| !other.iter().any(|known| known.name == info.name));
        missing.map(|info| Incompatibility::Fixture(info.name.clone())).collect()
    };
    found.extend(lone(&left.fixtures, &right.fixtures));
    found.extend(lone(&right.fixtures, &left.fixtures));
    found
}

/// Whether anything was answered and graded. Where a side has contexts alone, contexts are compared.
fn has_answers(set: &ResultSet) -> bool {
    !set.design().answerers.is_empty()
}

fn barriers_of_grades(a: &ResultSet, b: &ResultSet, pairs: &[VariantPair]) -> Vec<Incompatibility> {
    let (left, right) = (a.design(), b.design());
    let mut found = Vec::new();
    if (left.rubric.digest, left.rubric.scope) != (right.rubric.digest, right.rubric.scope) {
        found.push(Incompatibility::Rubric);
    }
    if left.judges.len() != right.judges.len() || left.judges.iter().zip(&right.judges).any(|(a, b)| !a.is_same(b)) {
        found.push(Incompatibility::Judges(versus(&all(&left.judges), &all(&right.judges))));
    }
    if left.judge_context != right.judge_context {
        found.push(Incompatibility::JudgeContext);
    }
    if left.tail != right.tail {
        found.push(Incompatibility::Tail);
    }
    found.extend(answerers(a, b, pairs));
    found.extend(truncated_replies(a, b, pairs));
    found
}

fn fixture_barrier(a: &FixtureInfo, b: &FixtureInfo, has_answers: bool) -> Option<Incompatibility> {
    let probes = |info: &FixtureInfo| info.probes.iter().map(|p| (p.point, p.id.clone(), p.digest)).collect::<Vec<_>>();
    let name = a.name.clone();
    if a.digests.transcript != b.digests.transcript {
        Some(Incompatibility::Transcript(name))
    } else if a.digests.points != b.digests.points {
        Some(Incompatibility::Points(name))
    } else if !has_answers {
        None
    } else if a.digests.bank != b.digests.bank {
        Some(Incompatibility::Bank(name))
    } else if probes(a) != probes(b) {
        Some(Incompatibility::Selection(name))
    } else {
        None
    }
}

/// Answerers that differ where the user did not ask for these very methods.
fn answerers(a: &ResultSet, b: &ResultSet, pairs: &[VariantPair]) -> Vec<Incompatibility> {
    let differs = |pair: &&VariantPair| {
        answerer_of(a, pair.a).zip(answerer_of(b, pair.b)).is_none_or(|(own, other)| !own.is_same(other))
    };
    let mut found: Vec<Incompatibility> = Vec::new();
    for pair in pairs.iter().filter(|pair| !pair.explicit).filter(differs) {
        let name = |asked: Option<&ModelInfo>| asked.map_or_else(String::new, |asked| asked.model.clone());
        let barrier = Incompatibility::Answerer(versus(&name(answerer_of(a, pair.a)), &name(answerer_of(b, pair.b))));
        if !found.contains(&barrier) {
            found.push(barrier);
        }
    }
    found
}

/// Answerers of which one fails what the other grades, also where the user asked for these very methods.
fn truncated_replies(a: &ResultSet, b: &ResultSet, pairs: &[VariantPair]) -> Option<Incompatibility> {
    let mut both = pairs.iter().filter_map(|pair| Some((rule(a, pair.a)?, rule(b, pair.b)?)));
    let (own, other) = both.find(|(own, other)| own != other)?;
    Some(Incompatibility::TruncatedReplies(format!("{} against {}", own.name(), other.name())))
}

/// What a variant's answerer does with truncated replies. Older results do not say: such replies failed, which makes a
/// difference only where there was one.
fn rule(set: &ResultSet, variant: usize) -> Option<TruncatedReplies> {
    let failed =
        |failure: &FailedAction| failure.stage == StageName::Answer && failure.class == Some(ErrorClass::Truncated);
    answerer_of(set, variant)?
        .truncated_replies
        .or_else(|| set.manifest.failures.iter().any(failed).then_some(TruncatedReplies::Fail))
}

fn all(asked: &[ModelInfo]) -> String {
    asked.iter().map(|asked| asked.model.as_str()).collect::<Vec<_>>().join(", ")
}

fn versus(a: &str, b: &str) -> String {
    if a == b { format!("{a}, with other settings or another prompt") } else { format!("{a} against {b}") }
}

/// What differs and bars nothing.
pub(super) fn warnings(a: &ResultSet, b: &ResultSet, pairs: &[VariantPair]) -> Vec<String> {
    let (left, right) = (a.design(), b.design());
    let mut found = Vec::new();
    if left.runs != right.runs {
        let of = |runs: &crate::pipeline::Runs| format!("{}/{}/{}", runs.compress, runs.answer, runs.judge);
        found.push(format!("repetitions differ: {} against {}", of(&left.runs), of(&right.runs)));
    }
    let mut endpoint = |own: &ModelInfo, other: &ModelInfo| {
        if own.endpoint != other.endpoint {
            let text = format!("`{}` was asked at {} and at {}", own.model, own.endpoint, other.endpoint);
            if !found.contains(&text) {
                found.push(text);
            }
        }
    };
    left.judges.iter().zip(&right.judges).for_each(|(own, other)| endpoint(own, other));
    for (own, other) in pairs.iter().filter_map(|pair| answerer_of(a, pair.a).zip(answerer_of(b, pair.b))) {
        endpoint(own, other);
    }
    found.extend(served_models(a, b));
    found
}

/// Models that were asked for by one name on both sides and answered by another one.
fn served_models(a: &ResultSet, b: &ResultSet) -> impl Iterator<Item = String> {
    let names =
        |served: &BTreeSet<String>| served.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let (now, before) = (&a.manifest.models, &b.manifest.models);
    let changed = now.iter().filter_map(|(asked, served)| Some((asked, served, before.get(asked)?)));
    changed.filter(|(_, served, earlier)| served != earlier).map(move |(asked, served, earlier)| {
        let (now, before) = (names(served), names(earlier));
        format!("`{asked}` was served by {now}, in the baseline by {before}: differences may come from the model")
    })
}
