//! The summary of a result set: levels, breakdowns, costs of forgetting (METHOD 8, STATISTICS 2 and 8).

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::facts::{FactSums, Guessable};
use super::row::Row;
use super::scores::{ProbeAt, Scores, method_key};
use crate::judge::{Dimension, Rubric};
use crate::probe::ProbeType;
use crate::stats::{self, Interval};

/// The names by which ceiling and floor are found: the methods of the strategies `full` and `none`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scale {
    /// Methods that keep everything.
    pub ceiling: Vec<String>,
    /// Methods that keep nothing.
    pub floor: Vec<String>,
}

/// A level: the mean of the fixture values, with the cluster t interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LevelJson {
    /// Mean over fixtures of the median over runs; null where nothing was measured.
    pub median: Option<f64>,
    /// 95% interval; null with one fixture.
    pub ci95: Option<[f64; 2]>,
}

/// `summary.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The format of this file.
    pub version: u32,
    /// The label.
    pub label: String,
    /// Runs.
    pub runs: usize,
    /// Fixtures, in the order of the matrix.
    pub fixtures: Vec<String>,
    /// Probes that not all methods have; tables leave them out.
    pub uncommon_probes: usize,
    /// Methods in the order of the pipeline.
    pub methods: OrderedMethods,
    /// Against a baseline, if one was named.
    pub comparison: Option<super::compare::ComparisonJson>,
}

/// Methods by name, in the order of the pipeline.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OrderedMethods(pub Vec<(String, MethodSummary)>);

/// One method.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MethodSummary {
    /// Over the dimensions that all fixtures have.
    pub overall: LevelJson,
    /// Each dimension measured.
    pub dimensions: BTreeMap<Dimension, LevelJson>,
    /// The same by probe type.
    pub by_probe_type: BTreeMap<ProbeType, BTreeMap<Dimension, LevelJson>>,
    /// The same by fixture; `overall` stands beside the dimensions.
    pub by_fixture: BTreeMap<String, FixtureJson>,
    /// By compression cycle, in order.
    pub by_cycle: Vec<CycleJson>,
    /// 1 − context tokens / replaced tokens, mean over contexts.
    pub compression_ratio: Option<f64>,
    /// Tokens of a context, mean over contexts.
    pub context_tokens: Option<f64>,
    /// Share of expected facts that stand in the context.
    pub fact_survival: Option<f64>,
    /// The same without the facts that the `none` method answers too.
    pub fact_survival_lift: Option<f64>,
    /// Facts by what became of them.
    pub facts: FactSums,
    /// Tokens of fetching again what a probe needs and the context lost, mean over probes.
    pub refetch_tokens: Option<f64>,
    /// Context tokens + k × refetch tokens, for k needs of each fact.
    pub tokens_per_task: BTreeMap<String, Option<f64>>,
    /// Needs of each fact from which the whole transcript would have been cheaper; null if never.
    pub break_even_k: Option<f64>,
    /// (score − floor) / (ceiling − floor).
    pub retention: RetentionJson,
    /// Share of answers to unanswerable probes that assert something.
    pub fabrication_rate: Option<f64>,
    /// Cells.
    pub cells: CellCounts,
}

/// One fixture of one method.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FixtureJson {
    /// The fixture value of `overall`.
    pub overall: Option<f64>,
    /// The fixture values of the dimensions.
    #[serde(flatten)]
    pub dimensions: BTreeMap<Dimension, f64>,
}

/// One compression cycle of one method.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CycleJson {
    /// The number of the point, from 1.
    pub cycle: u32,
    /// Level of `overall`.
    pub overall: LevelJson,
    /// Share of expected facts in the context.
    pub fact_survival: Option<f64>,
    /// Tokens of a context, mean.
    pub context_tokens: Option<f64>,
}

/// Retention with its interval, or why there is none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RetentionJson {
    /// Ratio of means; not clipped.
    pub value: Option<f64>,
    /// Fieller's interval.
    pub ci95: Option<[f64; 2]>,
    /// Why it is undefined.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Cells of a method.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellCounts {
    /// Judged.
    pub judged: u64,
    /// Without a grade.
    pub failed: u64,
    /// Of those, the method's own fault.
    pub failed_by_method: u64,
}

impl From<Option<stats::Estimate>> for LevelJson {
    fn from(estimate: Option<stats::Estimate>) -> LevelJson {
        match estimate {
            Some(estimate) => LevelJson { median: Some(estimate.center), ci95: pair(estimate.ci95) },
            None => LevelJson::default(),
        }
    }
}

/// An interval as JSON has it.
pub(super) fn pair(interval: Option<Interval>) -> Option<[f64; 2]> {
    interval.map(|interval| [interval.low(), interval.high()])
}
