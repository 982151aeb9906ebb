//! `summary.json`: levels, breakdowns, costs of forgetting.

use std::collections::BTreeMap;

use serde::Serialize;

use super::cells::{CellCounts, cell_counts};
use super::compare::Comparison;
use super::design::MethodInfo;
use super::economy::{Answers, Economy, answered_facts};
use super::groups::{Groups, Parts};
use super::level::{Level, Levels};
use super::noise::{JudgeQuality, average_components, components, judge_quality};
use super::ordered::Ordered;
use super::selection::{ArmRuns, Selection, Subset};
use super::set::ResultSet;
use crate::action::Rule;
use crate::judge::Dimension;
use crate::stats::{self, Components, Retention};
use crate::threads::each;

/// `summary.json`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// The format of the file.
    pub format: u32,
    /// The label.
    pub label: String,
    /// Runs.
    pub runs: u32,
    /// Fixtures, in the order of the matrix.
    pub fixtures: Vec<String>,
    /// The built-in rules stood in for a model: every table says so.
    pub lexical: bool,
    /// The dimensions that `overall` is the mean of.
    pub overall_dimensions: Vec<Dimension>,
    /// Probes that some methods have and others lack: tables leave them out.
    pub uncommon_probes: usize,
    /// The methods, in the order of the pipeline.
    pub methods: Ordered<MethodSummary>,
    /// Variance components by dimension, averaged over the methods but ceiling and floor.
    pub noise: Ordered<Components>,
    /// How judges agree.
    pub judges: JudgeQuality,
    /// Against a baseline, if one was named.
    pub comparison: Option<Comparison>,
}

/// One method (with one of its answerers).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MethodSummary {
    /// Its strategy.
    pub strategy: String,
    /// Who answered.
    pub answerer: String,
    /// The mean of the dimensions that all fixtures have.
    pub overall: Level,
    /// Each dimension measured.
    pub dimensions: Levels,
    /// By probe type: `overall` and dimensions.
    pub by_probe_type: Ordered<Levels>,
    /// By fixture.
    pub by_fixture: Ordered<Levels>,
    /// By fixture tag.
    pub by_tag: Ordered<Levels>,
    /// By compression cycle.
    pub by_cycle: Vec<Cycle>,
    /// By length of the transcript, in tokens replaced.
    pub by_length: Ordered<Levels>,
    /// What contexts keep and cost.
    #[serde(flatten)]
    pub economy: Economy,
    /// (score − floor) / (ceiling − floor).
    pub retention: Retention,
    /// Variance components by dimension.
    pub noise: Ordered<Components>,
    /// Runs that did work of their own, the fewest over fixtures; null where nothing was judged.
    pub real_runs: Option<f64>,
    /// Cells.
    pub cells: CellCounts,
}

impl MethodSummary {
    /// Whether it is a ceiling or a floor: no candidate, but what candidates are measured by.
    pub fn is_scale(&self) -> bool {
        [Rule::Full, Rule::None].iter().any(|rule| rule.name() == self.strategy)
    }
}

/// One compression cycle of one method. Later cycles ask other probes: descriptive only.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cycle {
    /// The number of the point, from 1.
    pub cycle: u32,
    /// Probes asked there.
    pub probes: usize,
    /// Level of `overall`.
    pub overall: Level,
    /// Each dimension measured.
    pub dimensions: Levels,
    /// Share of expected facts in the context.
    pub fact_survival: Option<f64>,
    /// Tokens of a context.
    pub context_tokens: Option<f64>,
    /// 1 − context tokens / replaced tokens.
    pub compression_ratio: Option<f64>,
}

/// Summarizes a result set, with its comparison if one was made.
pub fn summarize(set: &ResultSet, comparison: Option<Comparison>) -> Summary {
    let (kept, due) = common_probes(set);
    let uncommon_probes = due.len() - kept.len();
    let whole = Selection::new(&set.scores, kept, due);
    let runs = each(set.arms.len(), |arm| whole.runs(arm));
    let desk = Desk { set, groups: Groups::of(set, &whole), whole, runs };
    let of = |arm: usize| Some((set.arms.get(arm)?.key.clone(), desk.method(arm)?));
    let methods: Ordered<MethodSummary> = each(set.arms.len(), of).into_iter().flatten().collect();
    let is_real = |method: &&MethodSummary| !method.is_scale();
    let noise: Vec<&Ordered<Components>> = methods.iter().map(|(_, m)| m).filter(is_real).map(|m| &m.noise).collect();
    Summary {
        format: super::manifest::FORMAT,
        label: set.manifest.label.clone(),
        runs: set.design().runs.compress,
        fixtures: set.design().fixtures.iter().map(|fixture| fixture.name.clone()).collect(),
        lexical: set.design().is_lexical(),
        overall_dimensions: desk.whole.overall.iter().copied().collect(),
        uncommon_probes,
        noise: average_components(&noise),
        methods,
        judges: judge_quality(set),
        comparison,
    }
}

/// The probes judged in every method that has any, and those judged in some.
fn common_probes(set: &ResultSet) -> (Subset, Subset) {
    let judged: Vec<Subset> =
        (0..set.arms.len()).map(|arm| set.scores.judged(arm)).filter(|own| !own.is_empty()).collect();
    let some = judged.iter().flatten().copied().collect();
    let all = judged.into_iter().reduce(|common, own| &common & &own).unwrap_or_default();
    (all, some)
}

/// What all methods of a summary are made from.
struct Desk<'s> {
    set: &'s ResultSet,
    whole: Selection<'s>,
    /// What the runs of each arm give on the whole.
    runs: Vec<ArmRuns>,
    groups: Groups<'s>,
}

impl Desk<'_> {
    fn method(&self, arm: usize) -> Option<MethodSummary> {
        let own = self.set.arms.get(arm)?;
        let info = self.set.design().methods.get(own.method)?;
        let runs = self.runs.get(arm)?;
        Some(MethodSummary {
            strategy: info.strategy.clone(),
            answerer: own.reader.clone(),
            overall: runs.overall_level(),
            dimensions: runs.dimension_levels(),
            by_probe_type: levels(&self.groups.by_probe_type, arm),
            by_fixture: levels(&self.groups.by_fixture, arm),
            by_tag: levels(&self.groups.by_tag, arm),
            by_cycle: self.by_cycle(arm),
            by_length: levels(&self.groups.by_length, arm),
            economy: self.economy(arm),
            retention: self.retention(arm),
            noise: components(&self.set.scores, arm, &self.whole.kept, runs.are_deterministic()),
            real_runs: runs.by_fixture.iter().filter_map(|on| on.real_runs).reduce(f64::min),
            cells: cell_counts(self.set, arm),
        })
    }

    fn by_cycle(&self, arm: usize) -> Vec<Cycle> {
        let of = |(point, part): &(u32, Selection<'_>)| {
            let (runs, answers) = (part.runs(arm), Answers::of(self.set, arm, &part.kept));
            Cycle {
                cycle: *point,
                probes: part.kept.len(),
                overall: runs.overall_level(),
                dimensions: runs.dimension_levels(),
                fact_survival: answers.fact_survival(),
                context_tokens: answers.context_tokens(),
                compression_ratio: answers.compression_ratio(),
            }
        };
        self.groups.by_cycle.iter().map(of).collect()
    }

    fn economy(&self, arm: usize) -> Economy {
        let answers = |arm: usize| Answers::of(self.set, arm, &self.whole.kept);
        let guessable = self.mate(arm, MethodInfo::is_floor).map(|floor| answered_facts(self.set, floor));
        let full = self.mate(arm, MethodInfo::is_ceiling).filter(|full| *full != arm).map(answers);
        answers(arm).economy(guessable.as_ref(), full.as_ref())
    }

    /// The first arm of such a method that the same answerer reads: scores across answerers do not compare.
    fn mate(&self, arm: usize, is_it: impl Fn(&MethodInfo) -> bool) -> Option<usize> {
        let reader = &self.set.arms.get(arm)?.reader;
        let methods = &self.set.design().methods;
        let fits = |mate: &super::set::Arm| methods.get(mate.method).is_some_and(&is_it) && mate.reader == *reader;
        self.set.arms.iter().position(fits)
    }

    fn retention(&self, arm: usize) -> Retention {
        let values = |arm: Option<usize>| -> BTreeMap<usize, f64> {
            let runs = arm.and_then(|arm| self.runs.get(arm)).into_iter().flat_map(ArmRuns::overall);
            runs.filter_map(|(fixture, runs)| Some((fixture, runs.cluster_value()?))).collect()
        };
        let (own, full) = (values(Some(arm)), values(self.mate(arm, MethodInfo::is_ceiling)));
        let none = values(self.mate(arm, MethodInfo::is_floor));
        let cluster = |(fixture, value): (&usize, &f64)| {
            let floor = none.get(fixture)?;
            Some((value - floor, full.get(fixture)? - floor))
        };
        stats::retention(&own.iter().filter_map(cluster).collect::<Vec<_>>())
    }
}

/// The levels of an arm in each group.
fn levels(groups: &Parts<'_, String>, arm: usize) -> Ordered<Levels> {
    groups.iter().map(|(name, part)| (name.clone(), part.runs(arm).levels())).collect()
}
