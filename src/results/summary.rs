//! `summary.json`: levels, breakdowns, costs of forgetting.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Ordered;
use super::aggregates::contexts::{
    CompressionCost, CountedPoints, GuardSummary, IdenticalContexts, InventedSummary,
    compression_cost, identical_contexts,
};
use super::aggregates::judges::{
    JudgeQuality, average_components, components, judge_quality, variance_shares,
};
use super::aggregates::planted::{PlantedControl, PlantedSummary};
use super::aggregates::ranking::Ranking;
use super::aggregates::scale::{
    ExcludedDimension, NotCompressed, ScaleCheck, excluded, scale_check,
};
use super::aggregates::shares::{Economy, OpenBookSummary, answered_facts};
use super::aggregates::{
    Answers, CellCounts, GroupSelections, Groups, cell_counts, truncated_share,
};
use super::comparison::values::Comparison;
use super::files::design::MethodInfo;
use super::result_set::ResultSet;
use super::result_set::selection::{
    ScoreEstimate, ScoreEstimates, Selection, Subset, VariantRuns, dimension_levels, levels,
    overall_level,
};
use super::worst::WorstProbe;
use crate::action::BuiltInStrategy;
use crate::judge::Dimension;
use base::locale::Locale;
use base::threads::each;
use stats::{self, Components, Retention};

/// `headline` in JSON: the main result, and the sentence that states it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Headline {
    /// The result; `kind` and `values` are stable.
    #[serde(flatten)]
    pub result: MainResult,
    /// The language of `text`.
    pub locale: Locale,
    /// The sentence, on at most two lines of 80 columns; its wording may change between versions.
    pub text: String,
    /// What the sentence had no room for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub more: String,
}

/// The main result of a result set. Its figures are those of the summary.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "values", rename_all = "snake_case")]
pub enum MainResult {
    /// Too many cells are missing to say more; where nothing is answered, contexts.
    Incomplete {
        /// Cells with a grade, or contexts.
        judged: u64,
        /// Cells that failed, or compressions.
        failed: u64,
        /// Cells or contexts that the design asks for.
        expected: u64,
    },
    /// Ceiling and floor are too close together for a figure between them to mean anything.
    Unscaled {
        /// The score of the whole transcript minus that of an empty context, in points.
        difference: f64,
    },
    /// Built-in rules stood in for a model.
    DryRun,
    /// There are contexts, but no scores.
    Unscored,
    /// What methods keep of the score of the whole transcript, or their scores.
    Levels,
    /// What changed against a baseline.
    Change {
        /// Whether anything got better or worse.
        trend: Trend,
    },
}

/// Whether anything got better or worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trend {
    /// Something got better and nothing worse.
    Improved,
    /// Something got worse and nothing better, or a method is missing.
    Regressed,
    /// Some of both.
    Mixed,
    /// Something changed, and nothing was shown to be better or worse.
    NoEvidence,
    /// The same answers with the same grades; where nothing is answered, the same contexts.
    Unchanged,
}

/// `summary.json`: all figures of a result set that programs and reports show.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The format of the file.
    pub format: u32,
    /// The label of the result set.
    pub label: String,
    /// The main result in a sentence; null until it is worded.
    pub headline: Option<Headline>,
    /// The probes on which methods do worst.
    pub worst: Vec<WorstProbe>,
    /// How many compressions of each method and point the design asks for.
    pub runs: u32,
    /// Fixtures, in the order of the matrix.
    pub fixtures: Vec<String>,
    /// Whether the built-in rules replaced a model, which every table says.
    pub lexical: bool,
    /// The dimensions that `overall` is the mean of.
    pub overall_dimensions: Vec<Dimension>,
    /// How many probes all methods have; every figure is computed from these.
    pub probes: usize,
    /// How many probes some methods have and others lack: tables leave them out.
    pub uncommon_probes: usize,
    /// What the whole transcript shows of planted items; absent where nothing is wrong with them.
    #[serde(default, skip_serializing_if = "PlantedControl::is_clear")]
    pub planted_control: PlantedControl,
    /// The methods, in the order of the pipeline.
    pub methods: Ordered<MethodSummary>,
    /// Variance components by dimension, averaged over all methods except ceiling and floor.
    pub noise: Ordered<Components>,
    /// The share of each component in the variance of all dimensions.
    pub variance_shares: Ordered<f64>,
    /// Dimensions that `overall` leaves out, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub excluded: Vec<ExcludedDimension>,
    /// Whether ceiling and floor are far enough apart.
    pub scale: ScaleCheck,
    /// How well judges agree with one another and with themselves.
    pub judges: JudgeQuality,
    /// The methods by their score; null where none has one.
    pub ranking: Option<Ranking>,
    /// Methods whose contexts are the same in every compression.
    pub identical_contexts: Vec<IdenticalContexts>,
    /// Against a baseline, if one was named.
    #[serde(skip_deserializing)]
    pub comparison: Option<Comparison>,
}

/// One method (with one of its answerers).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MethodSummary {
    /// The strategy, as a pipeline writes it.
    pub strategy: String,
    /// What it keeps verbatim besides its summary, as in `20k`; absent where that is nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<String>,
    /// The name of the answerer; empty where nothing is answered.
    pub answerer: String,
    /// The mean of the dimensions that all fixtures have.
    pub overall: ScoreEstimate,
    /// The level of each dimension measured.
    pub dimensions: ScoreEstimates,
    /// By probe type: `overall` and dimensions.
    pub by_probe_type: Ordered<ScoreEstimates>,
    /// By fixture: `overall` and dimensions.
    pub by_fixture: Ordered<ScoreEstimates>,
    /// By fixture tag: `overall` and dimensions.
    pub by_tag: Ordered<ScoreEstimates>,
    /// By compression cycle: at the first point, at the second and so on.
    pub by_cycle: Vec<Cycle>,
    /// By length of the transcript, measured in the tokens that were replaced.
    pub by_length: Ordered<ScoreEstimates>,
    /// What contexts keep and cost.
    #[serde(flatten)]
    pub economy: Economy,
    /// References of its contexts that their transcripts do not have; null where no context can be read.
    pub invented: Option<InventedSummary>,
    /// What the guard finds in its contexts; absent where it looked at none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guard: Option<GuardSummary>,
    /// What one compression costs in tokens, time and money.
    pub compression: CompressionCost,
    /// What became of planted items; absent where none were planted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planted: Option<PlantedSummary>,
    /// (score − floor) / (ceiling − floor).
    pub retention: Retention,
    /// Variance components by dimension.
    pub noise: Ordered<Components>,
    /// How many runs did work of their own: the smallest number over fixtures; null where nothing was judged.
    pub real_runs: Option<f64>,
    /// What answers gain by a search in the replaced messages; null where the answerer cannot search.
    pub open_book: Option<OpenBookSummary>,
    /// Contexts in which the method replaced nothing, which no other figure includes; absent where there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_compressed: Option<NotCompressed>,
    /// How many of its cells were judged, failed or are missing.
    pub cells: CellCounts,
    /// The share of answers that the token limit cut off, whether they were graded or failed; null where nothing was
    /// answered.
    pub truncated_share: Option<f64>,
}

impl MethodSummary {
    /// Whether it is a ceiling or a floor: not a candidate, but an end of the scale for candidates.
    pub fn is_anchor(&self) -> bool {
        self.is(BuiltInStrategy::Full) || self.is(BuiltInStrategy::None)
    }

    /// Whether it has this strategy.
    pub fn is(&self, strategy: BuiltInStrategy) -> bool {
        self.strategy == strategy.name()
    }

    /// What all its distinct actions cost; `None` if one price is unknown.
    pub fn usd(&self) -> Option<f64> {
        let stages: Option<Vec<f64>> = self.economy.usd.values().copied().collect();
        stages
            .filter(|stages| !stages.is_empty())
            .map(|stages| stages.iter().sum())
    }
}

/// One compression cycle of one method. Later cycles ask other probes: descriptive only.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cycle {
    /// The number of the point, from 1.
    pub cycle: u32,
    /// The level of `overall` on its probes.
    pub overall: ScoreEstimate,
    /// Share of expected facts in the context.
    pub fact_survival: Option<f64>,
}

impl Summary {
    /// Whether too many cells are missing for its scores to mean anything. Known once its headline is.
    pub fn is_incomplete(&self) -> bool {
        let found = self.headline.as_ref().map(|headline| &headline.result);
        matches!(found, Some(MainResult::Incomplete { .. }))
    }
}

/// Summarizes a result set, with its comparison if one was made.
pub fn summarize(set: &ResultSet, comparison: Option<Comparison>) -> Summary {
    let (kept, due) = common_probes(set);
    let (probes, uncommon_probes) = (kept.len(), due.len() - kept.len());
    let excluded = excluded(set);
    let left_out = excluded.iter().map(|excluded| excluded.dimension).collect();
    let whole = Selection::new(&set.scores, kept, due, &left_out);
    let runs = each(set.variants.len(), |variant| whole.runs(variant));
    let (groups, points) = (Groups::new(set, &whole), CountedPoints::new(set));
    let builder = SummaryBuilder {
        set,
        groups,
        points,
        whole,
        runs,
        planted: PlantedControl::new(set),
    };
    let methods = each(set.variants.len(), |variant| {
        Some((
            set.variants.get(variant)?.key.clone(),
            builder.method(variant)?,
        ))
    });
    let methods: Ordered<MethodSummary> = methods.into_iter().flatten().collect();
    let noise: Vec<&Ordered<Components>> = methods
        .values()
        .filter(|method| !method.is_anchor())
        .map(|method| &method.noise)
        .collect();
    let noise = average_components(&noise);
    Summary {
        format: super::files::manifest::FORMAT,
        label: set.manifest.label.clone(),
        headline: None,
        worst: Vec::new(),
        runs: set.design().runs.compress,
        fixtures: set
            .design()
            .fixtures
            .iter()
            .map(|fixture| fixture.name.clone())
            .collect(),
        lexical: set.design().is_lexical(),
        overall_dimensions: builder.whole.overall.iter().copied().collect(),
        probes,
        uncommon_probes,
        planted_control: builder.planted,
        variance_shares: variance_shares(&noise),
        noise,
        methods,
        excluded,
        scale: scale_check(set),
        judges: judge_quality(set),
        ranking: Ranking::new(set, &builder.runs),
        identical_contexts: identical_contexts(set),
        comparison,
    }
}

/// The probes that were judged for every variant with judged probes, and those that were judged for some variant. Both
/// without the probes where one of these variants compressed nothing.
fn common_probes(set: &ResultSet) -> (Subset, Subset) {
    let variants = (0..set.variants.len()).map(|variant| (variant, set.scores.judged(variant)));
    let judged: Vec<(usize, Subset)> = variants.filter(|(_, probes)| !probes.is_empty()).collect();
    let apart: Subset = judged
        .iter()
        .flat_map(|(variant, _)| set.probes_apart(*variant))
        .collect();
    let some: Subset = judged
        .iter()
        .flat_map(|(_, probes)| probes)
        .copied()
        .collect();
    let all = judged
        .into_iter()
        .map(|(_, probes)| probes)
        .reduce(|common, probes| &common & &probes);
    (all.unwrap_or_default(), &some - &apart)
}

/// Makes the summaries of methods, from what they have in common.
struct SummaryBuilder<'s> {
    set: &'s ResultSet,
    whole: Selection<'s>,
    /// The runs of each variant, over all probes of `whole`.
    runs: Vec<VariantRuns>,
    groups: Groups<'s>,
    points: CountedPoints<'s>,
    planted: PlantedControl,
}

impl SummaryBuilder<'_> {
    fn method(&self, variant: usize) -> Option<MethodSummary> {
        let answerer = self.set.variants.get(variant)?.answerer.clone();
        let info = self.set.method(variant)?;
        let runs = self.runs.get(variant)?;
        let compression = compression_cost(&self.points, &info.name);
        let is_open_book = answerer.ends_with(crate::answer::OPEN_BOOK);
        let planted = (!is_open_book)
            .then(|| PlantedSummary::new(self.set, &info.name, &self.planted))
            .flatten();
        Some(MethodSummary {
            strategy: info.strategy.clone(),
            kept: info.kept().map(str::to_owned),
            answerer,
            overall: overall_level(runs),
            dimensions: dimension_levels(runs),
            by_probe_type: levels_by_group(&self.groups.by_probe_type, variant),
            by_fixture: levels_by_group(&self.groups.by_fixture, variant),
            by_tag: levels_by_group(&self.groups.by_tag, variant),
            by_cycle: self.by_cycle(variant),
            by_length: levels_by_group(&self.groups.by_length, variant),
            economy: self.economy(variant, &compression),
            guard: GuardSummary::new(self.set, &info.name),
            planted,
            invented: InventedSummary::new(self.set, &info.name),
            compression,
            retention: self.retention(variant),
            noise: components(
                &self.set.scores,
                variant,
                &self.whole.kept,
                runs.are_deterministic(),
            ),
            real_runs: runs
                .by_fixture
                .iter()
                .filter_map(|runs| runs.real_runs)
                .reduce(f64::min),
            open_book: OpenBookSummary::new(self.set, variant, &self.whole),
            not_compressed: NotCompressed::new(self.set, variant),
            cells: cell_counts(self.set, variant),
            truncated_share: truncated_share(self.set, variant),
        })
    }

    fn by_cycle(&self, variant: usize) -> Vec<Cycle> {
        let cycles = self.groups.by_cycle.iter().map(|(point, part)| Cycle {
            cycle: *point,
            overall: overall_level(&part.runs(variant)),
            fact_survival: Answers::new(self.set, variant, &part.kept).mean(|m| m.survival),
        });
        cycles.collect()
    }

    /// Where no answer was graded, sizes and facts kept are those of the contexts: they need no judge.
    fn economy(&self, variant: usize, contexts: &CompressionCost) -> Economy {
        let floor = self.reference_variant(variant, MethodInfo::is_floor);
        let guessable = floor.map(|floor| answered_facts(self.set, floor));
        let answers = Answers::new(self.set, variant, &self.whole.kept);
        let mut economy = Economy::new(&answers, guessable.as_ref());
        if economy.context_tokens.is_none() {
            economy.context_tokens = contexts.tokens;
            economy.context_tokens_ci95 = contexts.tokens_ci95;
        }
        economy.compression_ratio = economy.compression_ratio.or(contexts.compression_ratio);
        economy.fact_survival = economy.fact_survival.or(contexts.fact_survival);
        economy
    }

    /// The ceiling or the floor that the answerer of a variant reads.
    fn reference_variant(
        &self,
        variant: usize,
        is_reference: fn(&MethodInfo) -> bool,
    ) -> Option<usize> {
        self.set
            .variant_of(&self.set.variants.get(variant)?.answerer, is_reference)
    }

    fn retention(&self, variant: usize) -> Retention {
        let overall = self.overall_by_fixture(Some(variant));
        let full = self.overall_by_fixture(self.reference_variant(variant, MethodInfo::is_ceiling));
        let none = self.overall_by_fixture(self.reference_variant(variant, MethodInfo::is_floor));
        let clusters = overall.iter().filter_map(|(fixture, value)| {
            let floor = none.get(fixture)?;
            Some((value - floor, full.get(fixture)? - floor))
        });
        stats::retention(&clusters.collect::<Vec<_>>())
    }

    fn overall_by_fixture(&self, variant: Option<usize>) -> BTreeMap<usize, f64> {
        let runs = variant.and_then(|variant| self.runs.get(variant));
        runs.map(VariantRuns::overall_values).unwrap_or_default()
    }
}

fn levels_by_group(
    groups: &GroupSelections<'_, String>,
    variant: usize,
) -> Ordered<ScoreEstimates> {
    groups
        .iter()
        .map(|(name, part)| (name.clone(), levels(&part.runs(variant))))
        .collect()
}
