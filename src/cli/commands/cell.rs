//! Finds the cell that `show` and `why` print, or lists the candidates.

use std::collections::BTreeSet;
use std::path::Path;

use clap::Args;
use indexmap::IndexSet;
use serde_json::{Value, json};

use crate::action::CellCoordinate;
use crate::answer::OPEN_BOOK;
use crate::cli::args::Common;
use crate::cli::failure::{Exit, Failure, chain};
use crate::cli::format::{count, number};
use crate::cli::project::{folder as directory, given_results};
use crate::cli::terminal::{Console, TextStyle, paint};
use crate::pipeline::suggest;
use crate::plan::FailedAction;
use crate::report::{Block, Section, TextTable};
use crate::results::{
    FixtureInfo, FolderError, Manifest, Outcome, ResultsFolder, Row, incomplete_beside, newest,
    open_results,
};
use base::locale::Locale;
use base::say;
use base::text::shell_word;
use stats::mean_of;

#[derive(Debug, Clone, Args)]
pub(crate) struct ShowArgs {
    /// The fixture
    pub(crate) fixture: String,
    /// The method
    #[arg(long)]
    pub(crate) method: Option<String>,
    /// The run number, from 1
    #[arg(long)]
    pub(crate) run: Option<u32>,
    /// The number of the compression point, from 1
    #[arg(long)]
    pub(crate) point: Option<u32>,
    /// The id of the probe
    #[arg(long)]
    pub(crate) probe: Option<String>,
    /// The result set [default: the newest of a run that has ended]
    #[arg(long)]
    pub(crate) label: Option<String>,
    /// Show the answer that could search the replaced messages
    #[arg(long)]
    pub(crate) open: bool,
}

impl ShowArgs {
    /// Whether these are the fixture, method, run and point that were named.
    pub(super) fn admits(&self, fixture: &str, method: &str, run: u32, point: u32) -> bool {
        self.fixture == fixture
            && self.method.as_deref().is_none_or(|wanted| wanted == method)
            && self.run.is_none_or(|wanted| wanted == run)
            && self.point.is_none_or(|wanted| wanted == point)
    }

    /// Whether the named cell is at this place, or depends on what is there.
    fn may_depend_on(&self, cell: &CellCoordinate) -> bool {
        *cell.fixture == self.fixture
            && (self.method.as_deref()).is_none_or(|method| *method == *cell.method)
            && self.point.is_none_or(|point| cell.point.0 <= point)
            && (cell.answerer.as_ref())
                .is_none_or(|answerer| answerer.ends_with(OPEN_BOOK) == self.open)
            && (cell.probe.is_none()
                || self.probe.is_none()
                || cell.probe.as_deref() == self.probe.as_deref())
    }
}

/// The cell that the arguments name, with the result set it is in.
pub(crate) struct FoundCell {
    pub(crate) manifest: Manifest,
    /// `None` if it was not judged.
    row: Option<Row>,
    /// What failed there, or in a step that it depends on, if it was not judged.
    pub(crate) failure: Option<FailedAction>,
    /// Other rows of the same question to the same method: repetitions, and those of other answerers and judges.
    pub(crate) others: Vec<Row>,
}

/// Cells that match.
struct CellList {
    manifest: Manifest,
    rows: Vec<Row>,
    has_method: bool,
    has_probe: bool,
}

/// Finds the cell for `command`. Prints the candidates and returns `None` if there are several, because method or probe
/// was not named.
pub(crate) fn find_cell(
    common: &Common,
    results: &Path,
    args: &ShowArgs,
    command: &str,
    console: &Console,
) -> Result<Option<FoundCell>, Failure> {
    let folder = chosen_results(common, results, args.label.as_deref(), console)?;
    let manifest = folder.manifest()?;
    note_partial(common, &folder, &manifest, console);
    check_names(&manifest, args)?;
    let mut rows = Vec::new();
    for row in folder.rows()? {
        let row = row.map_err(|error| Failure::error(chain(&error)))?;
        let is_probe = args.probe.as_ref().is_none_or(|probe| *probe == row.probe);
        let is_book = row.open_book.is_some() == args.open;
        if is_probe && is_book && args.admits(&row.fixture, &row.method, row.run, row.point) {
            rows.push(row);
        }
    }
    let (has_method, has_probe) = (args.method.is_some(), args.probe.is_some());
    if !(has_method && has_probe) && rows.len() > 1 {
        CellList {
            manifest,
            rows,
            has_method,
            has_probe,
        }
        .print(command, console);
        return Ok(None);
    }
    let mut rows = rows.into_iter();
    let row = rows.next();
    let failure = failure_at(&manifest, args).filter(|_| row.is_none());
    Ok(Some(FoundCell {
        failure: failure.cloned(),
        manifest,
        row,
        others: rows.collect(),
    }))
}

/// Finds the results of a label, or the newest ones. Says so if these are not those of the last run.
pub(crate) fn chosen_results(
    common: &Common,
    results: &Path,
    label: Option<&str>,
    console: &Console,
) -> Result<ResultsFolder, FolderError> {
    if let Some(label) = label {
        return open_results(results, &given_results(common, label));
    }
    let (folder, unfinished) = newest(results)?;
    if let Some(last) = unfinished.filter(|last| last.as_str() != folder.label()) {
        let text = format!(
            "these are the results `{}`: a later run, `{last}`, is unfinished, and is read only if its label is given",
            folder.label()
        );
        console.note(&console.labelled_prose(TextStyle::Hint, "note:", text));
    }
    Ok(folder)
}

/// Says that results are incomplete, or that there are newer ones, which are incomplete.
pub(crate) fn note_partial(
    common: &Common,
    folder: &ResultsFolder,
    manifest: &Manifest,
    console: &Console,
) {
    let label = &manifest.label;
    let text = if manifest.outcome != Outcome::Complete {
        let cells = manifest.design.cells();
        // The label alone would select the whole project, which may cost much more than what is missing.
        format!(
            "`{label}` has {} of {cells} judged cells; a run of the same selection under this label continues it",
            folder.row_count().unwrap_or_default()
        )
    } else if let Some(beside) = incomplete_beside(folder) {
        let cells = count(beside.row_count().unwrap_or_default(), "judged cell");
        let path = beside.path();
        let path = path.strip_prefix(directory(common)).unwrap_or(path);
        let path = shell_word(&path.display().to_string());
        format!(
            "a later run of `{label}` is incomplete, with {cells}; to read them, give {path} instead of the label"
        )
    } else {
        return;
    };
    console.note(&console.labelled_prose(TextStyle::Warning, "incomplete:", text));
}

/// Each name must be one of the result set; else the nearest is suggested.
fn check_names(manifest: &Manifest, args: &ShowArgs) -> Result<(), Failure> {
    let design = &manifest.design;
    let Some(fixture) = design.fixture(&args.fixture) else {
        let known = design.fixtures.iter().map(|known| known.name.as_str());
        return Err(unknown_name(manifest, "fixture", &args.fixture, known));
    };
    let methods = design.methods.iter().map(|known| known.name.as_str());
    let probes = fixture.probes.iter().map(|known| known.id.as_str());
    let names: [(_, _, Vec<&str>); 2] = [
        ("method", &args.method, methods.collect()),
        ("probe", &args.probe, probes.collect()),
    ];
    for (what, name, known) in names {
        if let Some(name) = name.as_deref().filter(|name| !known.contains(name)) {
            return Err(unknown_name(manifest, what, name, known.into_iter()));
        }
    }
    if args.open
        && design
            .answerers
            .iter()
            .all(|asked| asked.recovery.is_none())
    {
        let label = &manifest.label;
        let message = format!("no answerer of the result set `{label}` may search");
        return Err(Failure::input(message).hinted(
            "leave out --open; [answer.recovery] in pipeline.toml lets an answerer search",
        ));
    }
    check_numbers(manifest, fixture, args)
}

fn unknown_name<'n>(
    manifest: &Manifest,
    what: &str,
    name: &str,
    known: impl Iterator<Item = &'n str>,
) -> Failure {
    let message = format!("the result set `{}` has no {what} `{name}`", manifest.label);
    Failure::input(message).hinted(suggest(name, known))
}

fn check_numbers(
    manifest: &Manifest,
    fixture: &FixtureInfo,
    args: &ShowArgs,
) -> Result<(), Failure> {
    let (label, runs) = (&manifest.label, manifest.design.runs.compress);
    if let Some(run) = args.run.filter(|run| !(1..=runs).contains(run)) {
        return Err(Failure::input(format!(
            "the result set `{label}` has no run {run}: runs are 1 to {runs}"
        )));
    }
    if manifest.design.answerers.is_empty() {
        return Ok(());
    }
    let points: BTreeSet<u32> = fixture.probes.iter().map(|probe| probe.point).collect();
    if let Some(point) = args.point.filter(|point| !points.contains(point)) {
        let known: Vec<String> = points.iter().map(ToString::to_string).collect();
        let message = format!(
            "the result set `{label}` has no probe at point {point} of `{}`",
            fixture.name
        );
        return Err(Failure::input(message).hinted(format!("its points are {}", known.join(", "))));
    }
    Ok(())
}

/// The failure at the cell, or in a step that it depends on; of several, the one nearest to what was named. A failure
/// that cells share is listed where it happened first.
fn failure_at<'m>(manifest: &'m Manifest, args: &ShowArgs) -> Option<&'m FailedAction> {
    let failures = manifest.failures.iter();
    let places = failures.filter_map(|failure| Some((failure, failure.place.recorded_cell()?)));
    let related = places.filter(|(_, cell)| args.may_depend_on(cell));
    let is_other = |wanted: Option<u32>, found| wanted.is_some_and(|wanted| wanted != found);
    let nearest = related
        .min_by_key(|(_, cell)| is_other(args.run, cell.run) || is_other(args.point, cell.point.0));
    nearest.map(|(failure, _)| failure)
}

impl FoundCell {
    /// The row of the cell.
    ///
    /// # Errors
    /// Why it was not judged.
    pub(crate) fn judged(&self) -> Result<&Row, Failure> {
        if let Some(row) = &self.row {
            return Ok(row);
        }
        let label = &self.manifest.label;
        let message = match &self.failure {
            Some(failure) => format!(
                "`{label}` has no such cell: {} failed at {}: {}",
                failure.stage.name(),
                failure.place,
                failure.message
            ),
            None => format!("`{label}` has no such judged cell"),
        };
        Err(Failure::input(message)
            .hinted("`compeval plan` shows what a run would add")
            .exiting(Exit::EmptySelection))
    }
}

/// The command that shows or explains a cell of these results, which need not be the newest.
pub(crate) fn command_for(command: &str, row: &Row, label: &str) -> String {
    let names = [&row.fixture, &row.method, &row.probe].map(|name| shell_word(name));
    let ([fixture, method, probe], label, run) = (names, shell_word(label), row.run);
    let open = if row.open_book.is_some() {
        " --open"
    } else {
        ""
    };
    format!(
        "compeval {command} {fixture} --method {method} --run {run} --probe {probe} --label {label}{open}"
    )
}

impl CellList {
    /// A short list with scores: probes or methods down, methods or runs across.
    fn print(&self, command: &str, console: &Console) {
        let cells: Vec<Value> = self.rows.iter().map(cell_json).collect();
        console.report(&cells, || self.print_table(command, console));
    }

    fn print_table(&self, command: &str, console: &Console) {
        let locale = console.locale;
        let fixture = self.rows.first().map_or("", |row| row.fixture.as_str());
        let rules = if self.manifest.design.is_lexical() {
            locale.pick(" (built-in rules, no model)", "（内置规则，未用模型）")
        } else {
            ""
        };
        let title = say!(
            locale,
            "{fixture} in {}: overall scores from 0 to 5{rules}",
            "{fixture}，{}：总分 0 至 5{rules}",
            self.manifest.label
        );
        console.print(&paint(TextStyle::Strong, &title));
        console.print(&console.table(&self.table(locale)));
        let scored = self.rows.iter().filter_map(|row| Some((row.overall?, row)));
        let Some((_, worst)) = scored.min_by(|(a, _), (b, _)| a.total_cmp(b)) else {
            return;
        };
        let next = command_for(command, worst, &self.manifest.label);
        console.note("");
        console.next(say!(
            locale,
            "{next}   (the lowest score of these)",
            "{next}   （其中得分最低）"
        ));
    }

    fn down<'r>(&self, row: &'r Row) -> (u32, &'r str) {
        if self.has_probe {
            (0, &row.method)
        } else {
            (row.point, &row.probe)
        }
    }

    fn across(&self, row: &Row, locale: Locale) -> String {
        if self.has_method || self.has_probe {
            say!(locale, "run {}", "第 {} 次", row.run)
        } else {
            row.method.clone()
        }
    }

    fn table(&self, locale: Locale) -> TextTable {
        let across: IndexSet<String> = (self.rows.iter())
            .map(|row| self.across(row, locale))
            .collect();
        let mut down: IndexSet<(u32, &str)> = self.rows.iter().map(|row| self.down(row)).collect();
        down.sort_by_key(|(point, _)| *point);
        let (mut rows, mut last) = (Vec::new(), 0);
        for (point, name) in down {
            if point != last {
                last = point;
                let point = say!(locale, "point {point}", "压缩点 {point}");
                rows.push(vec![vec![(TextStyle::Dim, point)]]);
            }
            let scores = across.iter().map(|column| {
                let rows = self.rows.iter();
                let here = rows.filter(|row| {
                    (self.down(row), &self.across(row, locale)) == ((point, name), column)
                });
                let score = mean_of(here.filter_map(|row| row.overall));
                vec![(score_style(score), number(score, 2))]
            });
            let name = vec![(TextStyle::Plain, name.to_owned())];
            rows.push(std::iter::once(name).chain(scores).collect());
        }
        TextTable::new(std::iter::once(String::new()).chain(across), rows)
    }
}

fn cell_json(row: &Row) -> Value {
    json!({
        "fixture": row.fixture, "point": row.point, "method": row.method, "run": row.run, "probe": row.probe,
        "type": row.kind.name(), "overall": row.overall, "fact_survival": row.fact_survival, "keys": row.keys,
    })
}

/// The head of what is printed of a cell: its place, its score and where it is from.
pub(crate) fn head(
    place: &CellCoordinate,
    overall: Option<f64>,
    origin: String,
    locale: Locale,
) -> Section {
    let CellCoordinate {
        fixture,
        point,
        method,
        run,
        probe,
        ..
    } = place;
    let probe = probe.iter().map(|probe| format!(" · {probe}"));
    let probe: String = probe.collect();
    let title = say!(
        locale,
        "{fixture} · point {} · {method} · run {run}{probe}",
        "{fixture} · 压缩点 {} · {method} · 第 {run} 次{probe}",
        point.0
    );
    let score = overall.map(|score| say!(locale, "{score:.2} of 5", "{score:.2}（满分 5）"));
    let score = Block::Sentence(score_style(overall), score.unwrap_or_default());
    Section::plain(title, [score, Block::dim(origin)])
}

/// The style of a score.
pub(crate) fn score_style(score: Option<f64>) -> TextStyle {
    match score {
        Some(score) if score >= 4.0 => TextStyle::Good,
        Some(score) if score >= 2.5 => TextStyle::Warning,
        Some(_) => TextStyle::Bad,
        None => TextStyle::Dim,
    }
}
