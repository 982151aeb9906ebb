//! Settings of the whole pipeline: repetitions, language, rubric, prices, and which items are planted into the sessions.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::file::rubric::read_rubric;
use super::file::tables::{
    CompressTable, GateTable, PipelineTable, PlantedTable, PriceTable, RunsByStage, RunsTable,
};
use super::file::{Located, Map, value};
use super::model::{LoadedFixture, PipelineSettings, PlantedDesign, Runs};
use super::problem::{Problem, Problems};
use super::validation::ValidationContext;
use crate::action::{BuiltInStrategy, Digest};
use crate::compress::StrategyKind;
use crate::judge::{Rubric, SelfTestDesign};
use crate::planted::{PlantedSet, Session, plant};
use models::{ModelRef, Price};

/// The settings, with the command line applied.
pub(super) fn settings(
    context: &mut ValidationContext<'_>,
    table: &PipelineTable,
    compress: &[Located<CompressTable>],
    transcripts: &[u64],
) -> PipelineSettings {
    PipelineSettings {
        runs: runs(context, table.runs.as_ref()),
        locale: value(&table.locale).unwrap_or_default(),
        tail: value(&table.tail).unwrap_or_default(),
        judge_context: value(&table.judge_context).unwrap_or(true),
        regrade: value(&table.regrade).unwrap_or(true),
        rubric_scope: value(&table.rubric_scope).unwrap_or_default(),
        focus_topic: context.overrides.topic().map(Into::into),
        selftest: SelfTestDesign {
            seed: value(&table.selftest_seed).unwrap_or(0),
            padding: SelfTestDesign::padding_for(long_context(compress, transcripts)),
        },
    }
}

/// The size that nine in ten contexts of the declared methods do not exceed, in tokens. It does not depend on what a run
/// selects, so a selection tests no judge anew.
fn long_context(compress: &[Located<CompressTable>], transcripts: &[u64]) -> u64 {
    const USUAL: u64 = 1500;
    let mut sizes: Vec<u64> = Vec::new();
    for table in compress {
        match value(&table.value.strategy) {
            Some(StrategyKind::Rule(BuiltInStrategy::Full)) => sizes.extend(transcripts),
            Some(StrategyKind::Rule(BuiltInStrategy::None)) => {
                sizes.extend(transcripts.iter().map(|_| 0));
            }
            _ => {
                let target = value(&table.value.target_tokens);
                let size = target.map_or(USUAL, |tokens| tokens.0);
                sizes.extend(transcripts.iter().map(|_| size));
            }
        }
    }
    sizes.sort_unstable();
    sizes.get(sizes.len() * 9 / 10).copied().unwrap_or(USUAL)
}

/// The most judgements of one cell: a thousand times as many would fill the memory with the matrix.
const MOST_TOGETHER: u64 = 10_000;

fn runs(context: &mut ValidationContext<'_>, table: Option<&Located<RunsTable>>) -> Runs {
    let usual = Runs::default();
    let stages = table.map(|table| &table.value.0);
    let declared = |stage: fn(&RunsByStage) -> &Option<Located<u32>>, usual| {
        stages
            .and_then(|table| value(stage(table)))
            .unwrap_or(usual)
    };
    let runs = Runs {
        compress: context
            .overrides
            .runs
            .unwrap_or(declared(|table| &table.compress, usual.compress)),
        answer: declared(|table| &table.answer, usual.answer),
        judge: declared(|table| &table.judge, usual.judge),
    };
    let together: u64 = [runs.compress, runs.answer, runs.judge]
        .into_iter()
        .map(u64::from)
        .product();
    if together > MOST_TOGETHER {
        let message =
            format!("a cell has {together} repetitions, and at most {MOST_TOGETHER} are allowed");
        let problem =
            Problem::error(message).help("`compress`, `answer` and `judge` of `runs` multiply");
        let place = table.map(|table| table.place.clone());
        context.problems.push(problem.at_known(context.file, place));
    }
    runs
}

/// The rubric: the user's own, or the built-in one of the locale.
pub(super) fn rubric(
    context: &mut ValidationContext<'_>,
    table: &PipelineTable,
) -> Option<(Arc<Rubric>, Option<String>)> {
    let Some(path) = &table.rubric else {
        return Some((Arc::new(Rubric::built_in(context.locale).clone()), None));
    };
    let source = context.text_file("rubric", path)?;
    let rubric = read_rubric(&source, &mut context.problems)?;
    Some((Arc::new(rubric), Some(source.path)))
}

/// The prices declared, by model.
pub(super) fn prices(
    context: &mut ValidationContext<'_>,
    tables: Option<&Located<Map<PriceTable>>>,
) -> BTreeMap<ModelRef, Price> {
    let mut prices = BTreeMap::new();
    for (name, table) in tables.into_iter().flat_map(|tables| &tables.value) {
        let Some(model) = ModelRef::parse(name) else {
            let message = format!("a price is for a model, and `{name}` names none");
            context.error(&table.key, message, "write [prices.\"PROVIDER/MODEL\"]");
            continue;
        };
        if let Err(Some(help)) = context.providers.find(&model.provider) {
            context.error(
                &table.key,
                format!("unknown provider `{}` in a price", model.provider),
                help,
            );
        }
        let price = price(context, name, table);
        prices.extend(price.map(|price| (model, price)));
    }
    prices
}

fn price(
    context: &mut ValidationContext<'_>,
    name: &str,
    table: &Located<PriceTable>,
) -> Option<Price> {
    let keys = &table.value;
    let is_required =
        |key: &Option<Located<f64>>, name| key.is_none() && !keys.faulty.contains(&name);
    if is_required(&keys.input, "input") || is_required(&keys.output, "output") {
        let help = "both in US dollars per million tokens; write 0 where a model is free";
        context.error(
            &table.key,
            format!("the price of `{name}` needs `input` and `output`"),
            help,
        );
    }
    Some(Price {
        input: value(&keys.input)?,
        cached_input: value(&keys.cached_input),
        cache_write: value(&keys.cache_write),
        output: value(&keys.output)?,
        batch: value(&keys.batch),
    })
}

/// Variants of a session where the pipeline does not say.
const VARIANTS: u32 = 4;

/// The items of the pipeline and the seed that they are drawn with.
pub(super) struct Items {
    set: PlantedSet,
    seed: u64,
    pub(super) design: PlantedDesign,
}

/// What is planted; `None` where nothing is, or if the set has an error. `is_all` says whether nothing else is run.
pub(super) fn planted_items(
    context: &mut ValidationContext<'_>,
    table: &PlantedTable,
    gate: &GateTable,
    seed: u64,
    [is_wanted, is_all]: [bool; 2],
) -> Option<Items> {
    let variants = value(&table.variants).unwrap_or(VARIANTS);
    let set = match &table.set {
        None => PlantedSet::built_in().clone(),
        Some(path) => {
            let source = context.text_file("set of planted items", path)?;
            match PlantedSet::read(&source.text) {
                Ok(set) => set,
                Err(fault) => {
                    let problems = Problems::from_faults([fault], &source);
                    context.problems.0.extend(problems.0);
                    return None;
                }
            }
        }
    };
    let design = PlantedDesign {
        path: table.set.as_ref().map(|path| path.value.clone()),
        digest: Digest::of_json(&(&set, PlantedSet::built_in(), seed, variants)),
        variants,
        is_all,
        is_tested: value(&gate.planted).unwrap_or(true),
    };
    is_wanted.then_some(Items { set, seed, design })
}

/// Plants the items into the fixtures, and reports what is left out.
pub(super) fn plant_all(items: &Items, fixtures: &mut [LoadedFixture], problems: &mut Problems) {
    for loaded in fixtures {
        let fixture = &loaded.fixture;
        let end = loaded.points.first().copied();
        let session = Session {
            name: &fixture.name,
            messages: &fixture.messages,
            span: (fixture.start(), end.unwrap_or(fixture.messages.len())),
        };
        let planting = plant(&items.set, session, items.design.variants, items.seed);
        if planting.variants.is_empty() {
            let message = format!("nothing can be planted in {}", fixture.name);
            problems.push(Problem::warning(message).help(planting.left_out.join("; ")));
        } else {
            let help =
                "longer sessions take more items; an own `set` in [planted] may have other objects";
            let warnings = planting.left_out.into_iter().map(Problem::warning);
            warnings.for_each(|warning| problems.push(warning.help(help)));
        }
        loaded.variants = planting.variants.into_iter().map(Arc::new).collect();
    }
}
