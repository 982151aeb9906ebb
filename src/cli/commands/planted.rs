//! `compeval show FIXTURE --planted`: the items planted in a session, what contexts say of them, and what was replied.

use super::cache::snapshot;
use super::cell::{ShowArgs, chosen_results};
use crate::cli::args::Common;
use crate::cli::failure::{Exit, Failure};
use crate::cli::project::{open_request, project_paths_of, read_project};
use crate::cli::terminal::{Console, page};
use crate::evaluation::recorded_context;
use crate::pipeline::{
    Chain, CompressCell, FixtureIx, MatrixSelection, MethodIx, OpenRequest, Pipeline, PointIx,
    VariantIx,
};
use crate::report::{Block, Section};
use crate::results::PlantedRow;
use base::locale::Locale;
use base::say;
use base::text::one_line;
use store::cache::CacheSnapshot;

/// Characters of a context around the object, on either side.
const AROUND: usize = 120;

pub(super) fn run(common: &Common, args: &ShowArgs, console: &Console) -> Result<Exit, Failure> {
    let paths = project_paths_of(common)?;
    let folder = chosen_results(common, &paths.results, args.label.as_deref(), console)?;
    let rows = folder
        .planted()
        .map_err(|error| Failure::error(error.to_string()))?;
    let rows: Vec<PlantedRow> = rows
        .into_iter()
        .filter(|row| args.admits(&row.fixture, &row.method, row.run, row.point))
        .collect();
    if rows.is_empty() {
        let message = format!(
            "nothing is planted in `{}` there, or no such fixture",
            args.fixture
        );
        return Err(Failure::error(message));
    }
    let request = OpenRequest {
        selection: MatrixSelection {
            fixtures: Some(vec![args.fixture.clone()]),
            ..MatrixSelection::default()
        },
        planted: true,
        ..open_request(common)?
    };
    let pipeline = read_project(&request).ok().map(|opened| opened.pipeline);
    let snapshot = snapshot(&paths.cache, console)?;
    console.report(&rows, || {
        let pipeline = pipeline.as_ref();
        let items = rows.iter().map(|row| {
            let context = pipeline.and_then(|pipeline| context_of(pipeline, &snapshot, row));
            item(row, pipeline, context.as_deref(), console.locale)
        });
        page(console, &console.document(&items.collect::<Vec<_>>()));
    });
    Ok(Exit::Done)
}

/// One item: what was said in the session, what the context has, what was replied.
fn item(
    row: &PlantedRow,
    pipeline: Option<&Pipeline>,
    context: Option<&str>,
    locale: Locale,
) -> Section {
    let mark = match row.is_right() {
        Some(false) => "✗ ",
        _ => "",
    };
    let title = say!(
        locale,
        "{mark}{} · {} · planted {} · point {} · {} ({})",
        "{mark}{} · {} · 植入 {} · 压缩点 {} · {}（{}）",
        row.item,
        row.object,
        row.variant,
        row.point,
        row.method,
        row.state
    );
    let variant = pipeline.and_then(|pipeline| {
        let variants = &pipeline.fixtures.first()?.variants;
        variants
            .iter()
            .find(|variant| variant.number == row.variant)
    });
    let planted = variant.into_iter().flat_map(|variant| &variant.inserted);
    let planted = planted.flat_map(|(_, messages)| messages);
    let said = planted.filter_map(|message| {
        let (role, said) = (message.role.name(), message.countable_text());
        let is_meant = said.contains(&row.object);
        is_meant.then(|| Block::plain(format!("  {role}: {}", said.trim())))
    });
    let around = match context {
        None => say!(
            locale,
            "(the context is not available)",
            "（上下文不在手边）"
        ),
        Some(context) => excerpt(context, &row.object, locale),
    };
    let around = format!("  {} {around}", locale.pick("context:", "上下文："));
    let done = match row.done {
        Some(true) => "do",
        Some(false) => "leave",
        None => "–",
    };
    let state = row.said.map_or("–", |said| said.name());
    let reply = say!(
        locale,
        "  reply: {done}; said: {state}",
        "  回复：{done}；所说状态：{state}"
    );
    let rest = [Block::plain(around), Block::dim(reply)];
    Section::plain(title, said.chain(rest))
}

/// The text around each occurrence of the object.
fn excerpt(context: &str, object: &str, locale: Locale) -> String {
    let parts: Vec<String> = context
        .match_indices(object)
        .map(|(at, _)| {
            let (before, after) = context.split_at(at);
            let start = before.char_indices().rev().nth(AROUND - 1);
            let end = after.char_indices().nth(AROUND);
            let before = start.and_then(|(at, _)| before.get(at..)).unwrap_or(before);
            let after = end.and_then(|(at, _)| after.get(..at)).unwrap_or(after);
            one_line(&format!("{before}{after}"))
        })
        .collect();
    match parts.is_empty() {
        true => locale.pick("(does not name it)", "（未提及）").to_owned(),
        false => parts.join(" … "),
    }
}

/// The context of a row as the project of today reads it; `None` where it has changed, or the cache lost the entry.
fn context_of(pipeline: &Pipeline, snapshot: &CacheSnapshot, row: &PlantedRow) -> Option<String> {
    let loaded = pipeline.fixtures.first()?;
    let mut variants = loaded.variants.iter();
    let variant = variants.position(|variant| variant.number == row.variant)?;
    let mut methods = pipeline.methods.iter();
    let method = methods.position(|method| *method.name.0 == *row.method)?;
    let chain = Chain {
        fixture: FixtureIx(0),
        variant: Some(VariantIx(variant)),
        method: MethodIx(method),
        run: row.run,
    };
    let point = PointIx(usize::try_from(row.point).ok()?.checked_sub(1)?);
    recorded_context(pipeline, CompressCell { chain, point }, &row.key, snapshot)?
}
