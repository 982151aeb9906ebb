//! Settings of the whole pipeline: repetitions, language, rubric, prices.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::file::tables::{CompressTable, GateTable, PipelineTable, PriceTable, RunsTable};
use super::file::{Located, Map};
use super::model::{Book, PipelineSettings, Runs, TailMode};
use super::problem::Problem;
use super::select::Overrides;
use super::validation::ValidationContext;
use crate::answer::Answerer;
use crate::judge::{Rubric, Scope, SelfTestDesign};
use base::locale::Locale;
use models::{ModelRef, Price};

/// The language that a pipeline declares, even if it has errors and cannot be opened.
pub fn declared_locale(pipeline: &str) -> Option<Locale> {
    let mut lines = pipeline.lines().map(str::trim_start);
    let value = lines.find_map(|line| {
        Some(
            line.strip_prefix("locale")?
                .trim_start()
                .strip_prefix('=')?
                .trim(),
        )
    })?;
    match value.trim_start_matches(['"', '\'']) {
        zh if zh.starts_with("zh") => Some(Locale::Zh),
        en if en.starts_with("en") => Some(Locale::En),
        _ => None,
    }
}

/// The settings, with the command line applied.
pub(super) fn settings(
    context: &mut ValidationContext<'_>,
    table: Option<&PipelineTable>,
    compress: &[Located<CompressTable>],
    overrides: &Overrides,
    transcripts: &[u64],
) -> PipelineSettings {
    let nothing = PipelineTable::default();
    let table = table.unwrap_or(&nothing);
    let locale = context.choice(
        "locale",
        table.locale.as_ref(),
        &[("en", Locale::En), ("zh", Locale::Zh)],
    );
    let tail = context.choice(
        "tail",
        table.tail.as_ref(),
        &[("none", TailMode::None), ("verbatim", TailMode::Verbatim)],
    );
    let scopes = [("by-type", Scope::ByType), ("all", Scope::All)];
    let rubric_scope = context.choice("rubric_scope", table.rubric_scope.as_ref(), &scopes);
    let focus_topic = overrides
        .focus_topic
        .as_deref()
        .map(str::trim)
        .filter(|topic| !topic.is_empty());
    PipelineSettings {
        runs: runs(context, table.runs.as_ref(), overrides),
        locale: locale.unwrap_or_default(),
        tail: tail.unwrap_or_default(),
        judge_context: table.judge_context.as_ref().is_none_or(|shown| shown.value),
        regrade: table.regrade.as_ref().is_none_or(|regrade| regrade.value),
        primary: Book::default(),
        rubric_scope: rubric_scope.unwrap_or_default(),
        focus_topic: focus_topic.map(Into::into),
        selftest: SelfTestDesign {
            seed: table.selftest_seed.as_ref().map_or(0, |seed| seed.value),
            padding: SelfTestDesign::padding_for(long_context(compress, transcripts)),
        },
        compress_rows: table.compress_rows.as_ref().map(|compress| compress.value),
    }
}

/// Which answers are tested.
pub(super) fn primary(
    context: &mut ValidationContext<'_>,
    table: Option<&Located<GateTable>>,
    answerers: &[Answerer],
) -> Book {
    let Some(written) = table.and_then(|table| table.value.primary.as_ref()) else {
        return Book::default();
    };
    let primary = context.choice(
        "primary",
        Some(written),
        &Book::ALL.map(|book| (book.name(), book)),
    );
    let can_search =
        answerers.is_empty() || answerers.iter().any(|answerer| answerer.recovery.is_some());
    if primary == Some(Book::Open) && !can_search {
        let help = "add [answer.recovery] below the [[answer]] that may search";
        context.error(
            &written.place,
            "primary = \"open\" needs an answerer that may search",
            help,
        );
    }
    primary.unwrap_or_default()
}

/// The size that nine in ten contexts of the declared methods do not exceed, in tokens. It does not depend on what a run
/// selects, so a selection tests no judge anew.
fn long_context(compress: &[Located<CompressTable>], transcripts: &[u64]) -> u64 {
    const USUAL: u64 = 1500;
    let mut sizes: Vec<u64> = Vec::new();
    for table in compress {
        let strategy = table.value.strategy.as_ref();
        let target = table.value.target_tokens.as_ref();
        match strategy.map(|strategy| strategy.value.as_str()) {
            Some("full") => sizes.extend(transcripts),
            Some("none") => sizes.extend(transcripts.iter().map(|_| 0)),
            _ => {
                let size = target.map_or(USUAL, |tokens| tokens.value);
                sizes.extend(transcripts.iter().map(|_| size));
            }
        }
    }
    sizes.sort_unstable();
    sizes.get(sizes.len() * 9 / 10).copied().unwrap_or(USUAL)
}

/// The most repetitions of one thing: far beyond use, and a matrix of them still fits in memory.
const MOST_REPETITIONS: u32 = 1000;

/// The most judgements of one cell: a thousand times as many would fill the memory with the matrix.
const MOST_TOGETHER: u64 = 10_000;

fn runs(
    context: &mut ValidationContext<'_>,
    table: Option<&Located<RunsTable>>,
    overrides: &Overrides,
) -> Runs {
    let mut runs = Runs::default();
    if let Some(Located {
        value: RunsTable(table),
        ..
    }) = table
    {
        runs.compress = repetitions(context, "a number of runs", table.compress.as_ref())
            .unwrap_or(runs.compress);
        runs.answer = repetitions(context, "a number of answers", table.answer.as_ref())
            .unwrap_or(runs.answer);
        runs.judge = repetitions(context, "a number of judgements", table.judge.as_ref())
            .unwrap_or(runs.judge);
    }
    match overrides.runs {
        Some(0) => context
            .problems
            .push(Problem::error("--runs: a number of runs is at least 1")),
        Some(number) if number > MOST_REPETITIONS => {
            context.problems.push(Problem::error(format!(
                "--runs: a number of runs is at most {MOST_REPETITIONS}"
            )));
        }
        Some(number) => runs.compress = number,
        None => {}
    }
    let together: u64 = [runs.compress, runs.answer, runs.judge]
        .into_iter()
        .map(u64::from)
        .product();
    if together > MOST_TOGETHER {
        let message =
            format!("a cell has {together} repetitions, and at most {MOST_TOGETHER} are allowed");
        let problem =
            Problem::error(message).help("`compress`, `answer` and `judge` of `runs` multiply");
        context.problems.push(match table {
            Some(table) => problem.at(context.file, table.place.clone()),
            None => problem,
        });
    }
    runs
}

fn repetitions(
    context: &mut ValidationContext<'_>,
    what: &str,
    number: Option<&Located<u32>>,
) -> Option<u32> {
    let value = context.at_least_one(what, number)?;
    if let Some(number) = number.filter(|_| value > MOST_REPETITIONS) {
        let help =
            "more repetitions narrow no interval that more sessions would not narrow further";
        context.error(
            &number.place,
            format!("{what} is at most {MOST_REPETITIONS}"),
            help,
        );
        return None;
    }
    Some(value)
}

/// The rubric: the user's own, or the built-in one of the locale.
pub(super) fn rubric(
    context: &mut ValidationContext<'_>,
    table: Option<&PipelineTable>,
) -> Option<(Arc<Rubric>, Option<String>)> {
    let Some(path) = table.and_then(|table| table.rubric.as_ref()) else {
        return Some((Arc::new(Rubric::built_in(context.locale).clone()), None));
    };
    let source = context.text_file("rubric", path)?;
    match Rubric::read(&source.text) {
        Ok(rubric) => Some((Arc::new(rubric), Some(source.path))),
        Err(faults) => {
            context.problems.0.extend(
                faults
                    .into_iter()
                    .map(|fault| Problem::from_fault(fault, &source)),
            );
            None
        }
    }
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
    let PriceTable {
        input,
        cached_input,
        cache_write,
        output,
        flex,
        batch,
    } = &table.value;
    let [input, cached_input, cache_write, output] = [input, cached_input, cache_write, output]
        .map(|price| {
            let price = price.as_ref()?;
            if price.value < 0.0 {
                context.error(
                    &price.place,
                    "a price is 0 or more",
                    "US dollars per million tokens",
                );
            }
            Some(price.value)
        });
    let [flex, batch] = [flex, batch].map(|part| {
        let part = part.as_ref()?;
        if !(0.0..=1.0).contains(&part.value) {
            context.error(
                &part.place,
                "this is a part of the live price, from 0 to 1",
                "0.5 is half of it",
            );
        }
        Some(part.value)
    });
    if input.is_none() || output.is_none() {
        let help = "both in US dollars per million tokens; write 0 where a model is free";
        context.error(
            &table.key,
            format!("the price of `{name}` needs `input` and `output`"),
            help,
        );
    }
    Some(Price {
        input: input?,
        cached_input,
        cache_write,
        output: output?,
        flex,
        batch,
    })
}
