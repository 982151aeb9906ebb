//! `summary.json`: levels, breakdowns, costs of forgetting.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::cells::{CellCounts, cell_counts};
use super::compare::Comparison;
use super::design::MethodInfo;
use super::economy::{Economy, answered_facts, economy, with_break_even};
use super::level::{Level, Leveller, Levels};
use super::noise::{JudgeQuality, average_components, components, judge_quality};
use super::ordered::Ordered;
use super::scores::{Scores, Subset};
use super::set::ResultSet;
use crate::action::Rule;
use crate::judge::Dimension;
use crate::probe::ProbeType;
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

/// Lengths of transcripts: upper ends in tokens, and their names.
const LENGTHS: [(f64, &str); 4] =
    [(10_000.0, "under 10k"), (30_000.0, "10k to 30k"), (100_000.0, "30k to 100k"), (f64::INFINITY, "over 100k")];

/// Summarizes a result set, with its comparison if one was made.
pub fn summarize(set: &ResultSet, comparison: Option<Comparison>) -> Summary {
    let scores = Scores::of(set);
    let (kept, due) = common_probes(set, &scores);
    let uncommon_probes = due.len() - kept.len();
    let leveller = Leveller::new(&scores, kept, due);
    let desk = Desk { set, scores: &scores, leveller: &leveller };
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
        overall_dimensions: leveller.overall.iter().copied().collect(),
        uncommon_probes,
        noise: average_components(&noise),
        methods,
        judges: judge_quality(set),
        comparison,
    }
}

/// The probes judged in every method that has any, and those judged in some.
fn common_probes(set: &ResultSet, scores: &Scores) -> (Subset, Subset) {
    let judged: Vec<Subset> = (0..set.arms.len()).map(|arm| scores.judged(arm)).filter(|own| !own.is_empty()).collect();
    let some = judged.iter().flatten().copied().collect();
    let all = judged.into_iter().reduce(|common, own| &common & &own).unwrap_or_default();
    (all, some)
}

/// What all methods of a summary are made from.
struct Desk<'s> {
    set: &'s ResultSet,
    scores: &'s Scores,
    leveller: &'s Leveller<'s>,
}

impl Desk<'_> {
    fn method(&self, arm: usize) -> Option<MethodSummary> {
        let own = self.set.arms.get(arm)?;
        let info = self.set.design().methods.get(own.method)?;
        let real_runs = self.scores.fixtures(&self.leveller.kept).into_iter();
        let real_runs = real_runs.filter_map(|fixture| self.scores.real_runs(arm, fixture, &self.leveller.kept));
        Some(MethodSummary {
            strategy: info.strategy.clone(),
            answerer: own.reader.clone(),
            overall: self.leveller.overall_level(arm),
            dimensions: self.leveller.dimension_levels(arm),
            by_probe_type: self.by_probe_type(arm),
            by_fixture: self.by_fixture(arm),
            by_tag: self.by_tag(arm),
            by_cycle: self.by_cycle(arm),
            by_length: self.by_length(arm),
            economy: self.economy(arm),
            retention: self.retention(arm),
            noise: components(self.scores, arm, &self.leveller.kept),
            real_runs: real_runs.reduce(f64::min),
            cells: cell_counts(self.set, arm),
        })
    }

    /// Levels over the probes of each named group that has any.
    fn grouped(&self, arm: usize, groups: impl IntoIterator<Item = (String, Subset)>) -> Ordered<Levels> {
        let of = |(name, group): (String, Subset)| {
            let part = self.leveller.only(&group);
            (!part.kept.is_empty()).then(|| (name, part.levels(arm)))
        };
        groups.into_iter().filter_map(of).collect()
    }

    /// The probes that `keep` admits.
    fn probes(&self, keep: impl Fn(&super::set::ProbeAt) -> bool) -> Subset {
        self.set.probes.iter().enumerate().filter(|(_, probe)| keep(probe)).map(|(ix, _)| ix).collect()
    }

    fn by_probe_type(&self, arm: usize) -> Ordered<Levels> {
        let of = |kind: ProbeType| (kind.name().to_owned(), self.probes(|probe| probe.kind == kind));
        self.grouped(arm, ProbeType::ALL.into_iter().map(of))
    }

    fn by_fixture(&self, arm: usize) -> Ordered<Levels> {
        let fixtures = self.set.design().fixtures.iter().enumerate();
        self.grouped(arm, fixtures.map(|(ix, info)| (info.name.clone(), self.scores.span(ix).collect())))
    }

    fn by_tag(&self, arm: usize) -> Ordered<Levels> {
        let fixtures = &self.set.design().fixtures;
        let tags: BTreeSet<&String> = fixtures.iter().flat_map(|fixture| &fixture.tags).collect();
        let has = |tag: &String, fixture: usize| fixtures.get(fixture).is_some_and(|info| info.tags.contains(tag));
        self.grouped(arm, tags.into_iter().map(|tag| (tag.clone(), self.probes(|probe| has(tag, probe.fixture)))))
    }

    fn by_cycle(&self, arm: usize) -> Vec<Cycle> {
        let points: BTreeSet<u32> = self.set.probes.iter().map(|probe| probe.point).collect();
        let of = |point: u32| {
            let group = self.probes(|probe| probe.point == point);
            let part = self.leveller.only(&group);
            let economy = economy(self.set, arm, &part.kept, None);
            (!part.kept.is_empty()).then(|| Cycle {
                cycle: point,
                probes: part.kept.len(),
                overall: part.overall_level(arm),
                dimensions: part.dimension_levels(arm),
                fact_survival: economy.fact_survival,
                context_tokens: economy.context_tokens,
                compression_ratio: economy.compression_ratio,
            })
        };
        points.into_iter().filter_map(of).collect()
    }

    fn by_length(&self, arm: usize) -> Ordered<Levels> {
        let mut lengths: BTreeMap<usize, f64> = BTreeMap::new();
        for (at, measured) in &self.set.answers {
            let fixture = self.scores.fixture_of(at.probe);
            if let Some((fixture, tokens)) = fixture.zip(measured.replaced_tokens) {
                let longest = lengths.entry(fixture).or_insert(0.0);
                *longest = longest.max(tokens as f64);
            }
        }
        let bin = |fixture: usize| {
            let length = lengths.get(&fixture)?;
            LENGTHS.iter().find(|(end, _)| length < end).map(|(_, name)| *name)
        };
        let names = LENGTHS.iter().map(|(_, name)| *name);
        self.grouped(arm, names.map(|name| (name.to_owned(), self.probes(|probe| bin(probe.fixture) == Some(name)))))
    }

    fn economy(&self, arm: usize) -> Economy {
        let kept = &self.leveller.kept;
        let guessable = self.mate(arm, MethodInfo::is_floor).map(|floor| answered_facts(self.set, floor));
        let own = economy(self.set, arm, kept, guessable.as_ref());
        match self.mate(arm, MethodInfo::is_ceiling).filter(|full| *full != arm) {
            Some(full) => with_break_even(own, &economy(self.set, full, kept, None)),
            None => own,
        }
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
            let runs = arm.map(|arm| self.leveller.overall_runs(arm)).unwrap_or_default();
            runs.into_iter().filter_map(|(fixture, runs)| Some((fixture, runs.cluster_value()?))).collect()
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
