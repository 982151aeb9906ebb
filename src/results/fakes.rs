//! Small result sets for the tests of this module and of the reports.

use std::collections::BTreeMap;

use super::files::design::{Design, FixtureInfo, MethodInfo, ModelInfo, ProbeInfo, RubricInfo};
use super::files::edits::TextEdit;
use super::files::row::{Row, RowCost, RowKeys};
use crate::action::{ActionKey, Digest};
use crate::judge::{CriterionScore, Dimension, Rubric, Scope};
use crate::measure::{FactClass, FactOutcome};
use crate::pipeline::{FixtureDigests, Runs, TailMode};
use crate::probe::ProbeType;
use base::locale::Locale;
use models::Settings;

/// Finds no texts, so an edit has no lines.
pub(crate) const NO_LINES: fn(&str, &Digest, &Digest) -> TextEdit =
    |path, _, _| TextEdit::unknown(path);

pub(crate) fn model_info(name: &str, model: &str) -> ModelInfo {
    ModelInfo {
        name: name.into(),
        model: model.into(),
        endpoint: "test".into(),
        settings: Settings::default(),
        prompt: Some(Digest::hash("prompt")),
        prompt_path: None,
        lexical: model == "lexical",
        recovery: None,
    }
}

pub(crate) fn method(name: &str, strategy: &str) -> MethodInfo {
    MethodInfo {
        name: name.into(),
        strategy: strategy.into(),
        model: None,
        settings: Default::default(),
        deterministic: true,
        readers: vec!["agent".into()],
    }
}

/// A design of these methods (name, strategy) on these fixtures (name, number of recall probes).
pub(crate) fn design(methods: &[(&str, &str)], fixtures: &[(&str, u32)], runs: u32) -> Design {
    let rubric = Rubric::built_in(Locale::En);
    Design {
        runs: Runs {
            compress: runs,
            answer: 1,
            judge: 1,
        },
        locale: Locale::En,
        tail: TailMode::None,
        judge_context: true,
        focus_topic: None,
        methods: methods
            .iter()
            .map(|(name, strategy)| method(name, strategy))
            .collect(),
        answerers: vec![model_info("agent", "test/agent-1")],
        judges: vec![model_info("judge", "test/judge-1")],
        rubric: RubricInfo {
            digest: rubric.digest(),
            scope: Scope::ByType,
            criteria: rubric.criteria().to_vec(),
        },
        fixtures: fixtures
            .iter()
            .map(|(name, probes)| fixture(name, *probes))
            .collect(),
        planted: None,
    }
}

fn fixture(name: &str, probes: u32) -> FixtureInfo {
    let digest = Digest::hash(name);
    let probes = (1..=probes).map(|n| ProbeInfo {
        point: 1,
        id: format!("p{n}"),
        kind: ProbeType::Recall,
        digest: Digest::hash(n.to_string()),
    });
    FixtureInfo {
        name: name.into(),
        tags: vec!["debugging".into()],
        digests: FixtureDigests {
            transcript: digest,
            points: digest,
            bank: digest,
        },
        probes: probes.collect(),
    }
}

/// A row of probe `p1` with these scores by dimension.
pub(crate) fn row(fixture: &str, method: &str, run: u32, scores: &[(Dimension, f64)]) -> Row {
    let [compress, answer, judge] = ["compress", "answer", "judge"]
        .map(|part| ActionKey(Digest::hash(format!("{fixture} {method} {run} {part}"))));
    let dimensions: BTreeMap<Dimension, f64> = scores.iter().copied().collect();
    let overall = dimensions.values().sum::<f64>() / dimensions.len() as f64;
    let points = (overall.round() as u8).min(5);
    Row {
        fixture: fixture.into(),
        point: 1,
        method: method.into(),
        run,
        probe: "p1".into(),
        kind: ProbeType::Recall,
        question: "Which port?".into(),
        answerer: "agent".into(),
        judge: "judge".into(),
        answer_n: 1,
        judge_n: 1,
        keys: RowKeys {
            compress,
            answer,
            judge,
        },
        criteria: CriterionScore::new("accuracy_factual".into(), points, "as far as it goes")
            .into_iter()
            .collect(),
        dimensions,
        overall: Some(overall),
        facts: vec![FactOutcome {
            fact: "8081".into(),
            answered: true,
            class: Some(FactClass::Answered),
            found: None,
        }],
        answer_when_lost: None,
        heading: None,
        stale_facts: Vec::new(),
        fact_survival: Some(1.0),
        summary_survival: None,
        context_facts: None,
        is_constraint: false,
        fabricated: None,
        invented: Vec::new(),
        context_tokens: Some(250),
        replaced_tokens: Some(1000),
        compression_ratio: Some(0.75),
        fetch_tokens: Some(0),
        refetch_unlocated: 0,
        refetch_unguided: false,
        usd: RowCost {
            compress: Some(0.01),
            answer: Some(0.002),
            judge: None,
        },
        truncated: false,
        open_book: None,
        answer: "It is 8081.".into(),
    }
}
