//! Whether two result sets may be compared: by digests, not by names.

use std::collections::BTreeSet;
use std::fmt;

use crate::action::Digest;
use crate::results::files::design::{FixtureInfo, ModelInfo};
use crate::results::files::manifest::ComparisonScope;
use crate::results::result_set::{ResultSet, VariantRef};
use base::say;

/// What differs between two result sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incompatibility {
    /// The end of a sentence, as in "the rubric".
    what: String,
    /// The narrowest scope that leaves it out; `None` if no comparison may leave it out.
    allowed_from: Option<ComparisonScope>,
    /// The fixture whose cells cannot be compared at all.
    pub(super) excluded_fixture: Option<String>,
}

impl Incompatibility {
    /// A difference that no comparison may leave out.
    pub(crate) fn new(what: impl Into<String>) -> Incompatibility {
        Incompatibility {
            what: what.into(),
            allowed_from: None,
            excluded_fixture: None,
        }
    }

    fn allowed_from(scope: ComparisonScope, what: String) -> Incompatibility {
        Incompatibility {
            allowed_from: Some(scope),
            ..Incompatibility::new(what)
        }
    }

    /// Whether the comparison may leave out what differs.
    pub(super) fn is_allowed_by(&self, scope: ComparisonScope) -> bool {
        self.allowed_from.is_some_and(|from| scope >= from)
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
        f.write_str("the two sides cannot be compared; what differs:")?;
        for difference in &self.differences {
            write!(f, "\n  - {}", difference.what)?;
        }
        let mut differences = self.differences.iter();
        let is_all_common = differences.all(|one| one.is_allowed_by(ComparisonScope::Common));
        if self.scope != ComparisonScope::Common && is_all_common {
            f.write_str("\n`--only-common` compares the cells that do match")?;
        }
        Ok(())
    }
}

impl std::error::Error for Incomparable {}

impl Incomparable {
    /// By something that no comparison may leave out.
    pub(super) fn by(what: impl Into<String>) -> Incomparable {
        Incomparable {
            differences: vec![Incompatibility::new(what)],
            scope: ComparisonScope::All,
        }
    }
}

/// Everything that makes two result sets incomparable, unless a comparison may leave it out. `pairs` are the methods that
/// must have the same answerer.
pub(super) fn incompatibilities(
    a: &ResultSet,
    b: &ResultSet,
    pairs: &[[VariantRef<'_>; 2]],
) -> Vec<Incompatibility> {
    let (left, right) = (a.design(), b.design());
    // If a side has only contexts, contexts are compared.
    let has_answers = left.has_answers() && right.has_answers();
    let mut found = if has_answers {
        compare_grading(a, b, pairs)
    } else {
        Vec::new()
    };
    let both = left
        .fixtures
        .iter()
        .filter_map(|own| Some((own, right.fixture(&own.name)?)));
    if both
        .clone()
        .all(|(own, other)| own.digests.transcript != other.digests.transcript)
    {
        let what = "the fixtures: none has the same messages on both sides";
        found.push(Incompatibility::new(what));
    }
    found.extend(both.filter_map(|(own, other)| compare_fixtures(own, other, has_answers)));
    let planted = left.planted.as_ref().zip(right.planted.as_ref());
    if !has_answers && planted.is_none() {
        let what = "what was asked: a side has contexts alone";
        found.push(Incompatibility::new(what));
    }
    let planted = planted.map(|(own, other)| own.differences(other));
    let planted = planted.into_iter().flatten();
    found.extend(
        planted.map(|what| Incompatibility::allowed_from(ComparisonScope::Common, what.to_owned())),
    );
    for (own, other) in [(left, right), (right, left)] {
        let fixtures = own.fixtures.iter();
        let lone = fixtures.filter(|info| other.fixture(&info.name).is_none());
        found.extend(lone.map(|info| {
            let what = format!("fixture `{}`, which only one side has", info.name);
            Incompatibility::allowed_from(ComparisonScope::Selected, what)
        }));
    }
    found
}

fn compare_grading(
    a: &ResultSet,
    b: &ResultSet,
    pairs: &[[VariantRef<'_>; 2]],
) -> Vec<Incompatibility> {
    let (left, right) = (a.design(), b.design());
    let are_same_judges = left.judges.len() == right.judges.len()
        && (left.judges.iter().zip(&right.judges)).all(|(a, b)| a.is_same(b));
    let judges = match are_same_judges {
        false => {
            let how = versus(&model_names(&left.judges), &model_names(&right.judges));
            Some(format!("the judges ({how})"))
        }
        true => compare_panels(a, b).map(|how| format!("the judges that gave grades ({how})")),
    };
    let settings = [
        (
            (left.rubric.digest, left.rubric.scope) != (right.rubric.digest, right.rubric.scope),
            "the rubric",
        ),
        (
            left.judge_context != right.judge_context,
            "whether judges see the context (`judge_context`)",
        ),
        (
            left.tail != right.tail,
            "what answerers see after the point (`tail`)",
        ),
    ];
    let settings = settings.into_iter().filter(|(differs, _)| *differs);
    let all = settings.map(|(_, what)| what.to_owned()).chain(judges);
    let all = all.chain(compare_answerers(pairs));
    all.map(Incompatibility::new).collect()
}

/// How the panels of two sets with grades differ, if one lacks a judge that graded nothing there: a median over other
/// judges measures how strict they are.
fn compare_panels(a: &ResultSet, b: &ResultSet) -> Option<String> {
    let [own, other] = [a, b].map(|set| set.scores.judges());
    if own == other || own.is_empty() || other.is_empty() {
        return None;
    }
    let [own, other] = [(a, own), (b, other)].map(|(set, places)| {
        let judges = &set.design().judges;
        let judges = places.iter().filter_map(|place| judges.get(*place));
        let names: Vec<&str> = judges.map(|judge| judge.name.as_str()).collect();
        names.join(", ")
    });
    Some(versus(&own, &other))
}

fn compare_fixtures(
    a: &FixtureInfo,
    b: &FixtureInfo,
    has_answers: bool,
) -> Option<Incompatibility> {
    use ComparisonScope::{Common, Selected};
    let of_fixture = |scope, what: &str| {
        Incompatibility::allowed_from(scope, format!("{what} of fixture `{}`", a.name))
    };
    let (own, other) = (&a.digests, &b.digests);
    if own.transcript != other.transcript {
        return Some(Incompatibility {
            excluded_fixture: Some(a.name.clone()),
            ..of_fixture(Common, "the messages")
        });
    }
    if own.points != other.points {
        return Some(of_fixture(Common, "the compression points"));
    }
    if has_answers && own.bank != other.bank {
        return Some(of_fixture(Common, "the probes"));
    }
    let selected = |info: &FixtureInfo| -> Vec<(u32, String, Digest)> {
        let probes = info.probes.iter();
        let probes = probes.map(|probe| (probe.point, probe.id.clone(), probe.digest));
        probes.collect()
    };
    (has_answers && selected(a) != selected(b))
        .then(|| of_fixture(Selected, "the selection of probes"))
}

/// Answerers that differ.
fn compare_answerers(pairs: &[[VariantRef<'_>; 2]]) -> BTreeSet<String> {
    let differing = pairs
        .iter()
        .filter(|[own, other]| !own.has_same_answerer(other));
    let lines = differing.map(|pair| {
        let [own, other] =
            pair.map(|variant| variant.answerer.map_or("", |asked| asked.model.as_str()));
        format!("the answerer ({})", versus(own, other))
    });
    lines.collect()
}

fn model_names(asked: &[ModelInfo]) -> String {
    let names: Vec<&str> = asked.iter().map(|asked| asked.model.as_str()).collect();
    names.join(", ")
}

fn versus(a: &str, b: &str) -> String {
    if a == b {
        format!("{a}, with other settings or another prompt")
    } else {
        format!("{a} against {b}")
    }
}

/// Differences that do not prevent a comparison; `served` are those of the models that answered.
pub(super) fn warnings(
    a: &ResultSet,
    b: &ResultSet,
    pairs: &[[VariantRef<'_>; 2]],
    served: &[String],
) -> Vec<String> {
    let (left, right) = (a.design(), b.design());
    let mut warnings = Vec::new();
    if left.runs != right.runs {
        let [own, other] = [left.runs, right.runs]
            .map(|runs| format!("{}/{}/{}", runs.compress, runs.answer, runs.judge));
        warnings.push(say!(
            a.manifest.locale(),
            "repetitions differ: {own} against {other}",
            "重复次数不同：{own} 对比 {other}"
        ));
    }
    let answerers = pairs.iter();
    let answerers = answerers.filter_map(|[own, other]| own.answerer.zip(other.answerer));
    let both = left.judges.iter().zip(&right.judges).chain(answerers);
    for (own, other) in both.filter(|(own, other)| own.endpoint != other.endpoint) {
        let (model, now, before) = (&own.model, &own.endpoint, &other.endpoint);
        let text = say!(
            a.manifest.locale(),
            "`{model}` was asked at {now} and at {before}",
            "`{model}` 分别在 {now} 和 {before} 询问"
        );
        if !warnings.contains(&text) {
            warnings.push(text);
        }
    }
    warnings.extend(served.iter().cloned());
    warnings
}

/// Models with the same name on both sides for which the provider served different models.
pub(super) fn served_models(a: &ResultSet, b: &ResultSet) -> impl Iterator<Item = String> {
    let (now, before) = (&a.manifest.models, &b.manifest.models);
    let changed = now
        .iter()
        .filter_map(|(asked, served)| Some((asked, served, before.get(asked)?)));
    changed.filter(|(_, served, earlier)| served != earlier).map(move |(asked, served, earlier)| {
        let [now, before] =
            [served, earlier].map(|names| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "));
        say!(
            a.manifest.locale(), "`{asked}` was served by {now}, in the baseline by {before}: differences may come from the model",
            "`{asked}` 由 {now} 提供，基线中由 {before} 提供：差异可能来自模型"
        )
    })
}
