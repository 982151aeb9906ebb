//! `compeval show`: everything about one cell.

use std::fmt::Write as _;
use std::ops::Range;

use serde::Serialize;

use crate::cache::{CacheSnapshot, Lookup};
use crate::cli::args::{Common, SelectArgs};
use crate::cli::commands::cache::{output_of, snapshot};
use crate::cli::commands::cell::{CellMatch, SelectedCell, ShowArgs, command_for, find_cell, score_style};
use crate::cli::commands::needed::needed_of_cell;
use crate::cli::failure::{Exit, Failure};
use crate::cli::format::{count, percent};
use crate::cli::project::{ProjectOptions, project_paths_of, read_project};
use crate::cli::terminal::{Console, TextStyle, page};
use crate::evaluation::{compress_cell, read_context, reading_task};
use crate::judge::Dimension;
use crate::measure::FactClass;
use crate::pipeline::{Matrix, Pipeline};
use crate::plan::{Preparer, RawBody};
use crate::probe::Probe;
use crate::results::Row;
use lexical::facts::{Fact, FactFinder};

/// A cell in JSON, whole.
#[derive(Serialize)]
struct ShownCellJson<'a> {
    label: &'a str,
    question: Option<&'a str>,
    /// The context as it was answered from; null where it is not at hand.
    context: Option<&'a str>,
    #[serde(flatten)]
    row: &'a Row,
}

pub(crate) fn run(common: &Common, args: &ShowArgs, console: &Console) -> Result<Exit, Failure> {
    let paths = project_paths_of(common)?;
    let selected = match find_cell(&paths.results, args, "show", console)? {
        CellMatch::One(selected) => selected,
        CellMatch::Missing(missing) => return Err(missing.failure()),
        CellMatch::Listed => return Ok(Exit::Done),
    };
    let pipeline = pipeline_of(common, &selected.row.fixture, &selected.row.method);
    let snapshot = snapshot(&paths.cache, console)?;
    let context = context(&snapshot, pipeline.as_ref(), &selected);
    let label = &selected.manifest.label;
    let question = selected.probe().map(|probe| probe.question.as_str());
    let (context_text, row) = (context.as_ref().ok().map(String::as_str), &selected.row);
    console.report(&ShownCellJson { label, question, context: context_text, row }, || {
        let shown =
            Page { selected: &selected, probe: pipeline.as_ref().and_then(|p| probe_today(p, &selected.row)), console };
        page(console, &shown.text(context.as_deref()));
    });
    Ok(Exit::Done)
}

/// The part of today's project that a cell belongs to, if there still is one.
pub(super) fn pipeline_of(common: &Common, fixture: &str, method: &str) -> Option<Pipeline> {
    let select = SelectArgs {
        fixtures: vec![fixture.to_owned()],
        methods: vec![method.to_owned()],
        allow_unproven: true,
        ..SelectArgs::default()
    };
    read_project(common, &select, ProjectOptions::default()).ok().map(|opened| opened.pipeline)
}

fn probe_today<'p>(pipeline: &'p Pipeline, row: &Row) -> Option<&'p Probe> {
    pipeline.fixtures.first()?.bank.probes.iter().find(|probe| *probe.id.0 == *row.probe)
}

/// The context that the answer was given from; else why it cannot be shown.
fn context(snapshot: &CacheSnapshot, pipeline: Option<&Pipeline>, selected: &SelectedCell) -> Result<String, String> {
    let key = selected.row.keys.compress;
    let gone = || format!("the entry {} is no longer in the cache", key.0.short());
    let record = snapshot.find(&key).ok_or_else(gone)?;
    let body = snapshot.body(&record).map_err(|damage| damage.to_string())?;
    let read = |pipeline| as_read(pipeline, selected, RawBody { dialect: record.dialect, bytes: &body });
    if let Some(read) = pipeline.and_then(read) {
        return read.ok_or_else(|| "only its provider can read it".to_owned());
    }
    let meta = snapshot.meta(&record).map_err(|damage| damage.to_string())?;
    Ok(output_of(&record, &meta, &body).text())
}

/// The context as the pipeline reads it; `None` where method or fixture have changed.
fn as_read(pipeline: &Pipeline, selected: &SelectedCell, body: RawBody<'_>) -> Option<Option<String>> {
    let task = reading_task(pipeline, compress_cell(pipeline, &selected.manifest.design, &selected.row)?)?;
    let matrix = Matrix::new(pipeline);
    read_context(Preparer::new(pipeline, &matrix), task, body)
}

/// The page of a cell.
struct Page<'a> {
    selected: &'a SelectedCell,
    /// The probe as it is in the bank today, for other spellings of its facts.
    probe: Option<&'a Probe>,
    console: &'a Console,
}

impl Page<'_> {
    fn text(&self, context: Result<&str, &String>) -> String {
        let row = &self.selected.row;
        let mut text = self.head();
        self.section(&mut text, "Question", "");
        self.body(&mut text, self.selected.probe().map_or("(not recorded)", |probe| &probe.question));
        self.facts(&mut text);
        self.section(&mut text, "Context", &self.size());
        match context {
            Ok("") => self.note(&mut text, "empty"),
            Ok(context) => self.body(&mut text, &self.marked(context)),
            Err(why) => self.note(&mut text, &format!("not available: {why}")),
        }
        if let Some(context) = self.selected.context.as_ref().filter(|context| context.needed.is_some()) {
            text.push_str(&needed_of_cell(context, self.console));
        }
        self.searches(&mut text);
        self.section(&mut text, "Answer", &format!("by {}", row.answerer));
        self.body(&mut text, &self.marked(&row.answer));
        self.answer_notes(&mut text);
        self.grades(&mut text);
        self.write_footer(&mut text);
        text
    }

    fn paint(&self, style: TextStyle, text: &str) -> String {
        self.console.paint(style, text)
    }

    fn section(&self, text: &mut String, heading: &str, beside: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "\n{}  {}", self.paint(TextStyle::Strong, heading), self.paint(TextStyle::Dim, beside));
    }

    fn note(&self, text: &mut String, note: &str) {
        let _ = writeln!(text, "  {}", self.paint(TextStyle::Dim, &format!("({note})")));
    }

    /// Text wrapped to the width, its own lines kept.
    fn body(&self, text: &mut String, body: &str) {
        let options = textwrap::Options::new(self.console.width()).initial_indent("  ").subsequent_indent("  ");
        for line in body.trim_end().lines() {
            let _ = writeln!(text, "{}", textwrap::fill(line, &options).trim_end());
        }
    }

    fn head(&self) -> String {
        let row = &self.selected.row;
        let place = format!("{} · point {} · {} · run {} · {}", row.fixture, row.point, row.method, row.run, row.probe);
        let score = row.overall.map_or("–".to_owned(), |score| format!("{score:.2} of 5"));
        let (manifest, kind) = (&self.selected.manifest, row.kind.name());
        let (label, rules) =
            (&manifest.label, if manifest.design.is_lexical() { " · built-in rules, no model" } else { "" });
        format!(
            "{}   {}\n{}\n",
            self.paint(TextStyle::Strong, &place),
            self.paint(score_style(row.overall), &score),
            self.paint(TextStyle::Dim, &format!("{kind} probe · label {label} · graded by {}{rules}", row.judge))
        )
    }

    fn size(&self) -> String {
        let row = &self.selected.row;
        match (row.context_tokens, row.replaced_tokens) {
            (Some(kept), Some(replaced)) => format!(
                "{kept} tokens replace {replaced} ({} removed); it contains {} of the facts",
                percent(row.compression_ratio),
                percent(row.fact_survival)
            ),
            _ => "size unknown".to_owned(),
        }
    }

    fn facts(&self, text: &mut String) {
        let row = &self.selected.row;
        self.section(text, "Expected facts", "");
        if row.facts.is_empty() {
            self.note(text, "none: the transcript does not contain the answer, and a correct answer says so");
        }
        let width = row.facts.iter().map(|fact| fact.fact.chars().count()).max().unwrap_or(0).min(48);
        for fact in &row.facts {
            let (mark, style, what) = fate(fact.class, fact.answered);
            let _ = writeln!(text, "  {} {:width$}  {}", self.paint(style, mark), fact.fact, self.paint(style, what));
        }
    }

    /// The text with expected facts marked in green and superseded ones in yellow.
    fn marked(&self, text: &str) -> String {
        let named: Vec<Fact> =
            self.selected.row.facts.iter().map(|fate| Fact { spellings: vec![fate.fact.clone()] }).collect();
        let (expected, superseded) = match self.probe {
            Some(probe) => (probe.expected_facts.as_slice(), probe.superseded_facts.as_slice()),
            None => (named.as_slice(), &[][..]),
        };
        let mapped = sessions::transcript::MappedFold::new(text);
        let find = |facts: &[Fact], style| -> Vec<(Range<usize>, TextStyle)> {
            let ranges = FactFinder::all(facts).into_iter().flat_map(|finder| finder.find(&mapped));
            ranges.map(|range| (range, style)).collect()
        };
        let mut marks = find(expected, TextStyle::Good);
        marks.extend(find(superseded, TextStyle::Warning));
        marks.sort_by_key(|(range, _)| (range.start, std::cmp::Reverse(range.end)));
        let (mut marked, mut done) = (String::with_capacity(text.len()), 0);
        for (range, style) in marks {
            let (Some(before), Some(fact)) = (text.get(done..range.start), text.get(range.clone())) else { continue };
            marked.push_str(before);
            // each line by itself, so that no colour runs over an indent
            let lines: Vec<String> = fact.split('\n').map(|line| self.paint(style, line)).collect();
            marked.push_str(&lines.join("\n"));
            done = range.end;
        }
        marked.push_str(text.get(done..).unwrap_or(""));
        marked
    }

    /// What an open-book answer searched for, and what it got to read.
    fn searches(&self, text: &mut String) {
        let Some(open) = &self.selected.row.open_book else { return };
        for (number, search) in (1..).zip(&open.searches) {
            let query = if search.query.is_empty() { "(asked for wrongly)" } else { &search.query };
            self.section(text, &format!("Search {number}"), query);
            self.body(text, &self.marked(&search.returned));
        }
        if open.searches.is_empty() {
            self.section(text, "Searches", "none");
        }
    }

    /// The same question with a search, or without one.
    fn other_book(&self, text: &mut String) {
        let Some(other) = &self.selected.other_book else { return };
        let score = other.overall.map_or("–".to_owned(), |score| format!("{score:.2}"));
        let of = &self.selected.row;
        let command = command_for("show", [&of.fixture, &of.method, &of.probe], of.run);
        let line = match &other.open_book {
            Some(open) => format!("with a search: {score}, searches: {}   {command} --open", open.searches.len()),
            None => format!("without a search: {score}   {command}"),
        };
        let _ = writeln!(text, "\n{}", self.paint(TextStyle::Dim, &line));
    }

    fn answer_notes(&self, text: &mut String) {
        let row = &self.selected.row;
        let mut list = |what: &str, names: &[String]| {
            if !names.is_empty() {
                let _ = writeln!(text, "  {} {}", self.paint(TextStyle::Bad, what), names.join(", "));
            }
        };
        if row.truncated {
            list("truncated:", &["the token limit cut the answer off".to_owned()]);
        }
        list("superseded, but stated as current:", &row.stale_facts);
        list("not in the transcript:", &row.invented);
        if row.fabricated == Some(true) {
            list("fabricated:", &["the transcript does not contain this, and the answer asserts it".to_owned()]);
        }
    }

    fn grades(&self, text: &mut String) {
        let row = &self.selected.row;
        self.section(text, "Grades", &format!("by {}, from 0 to 5", row.judge));
        let options = textwrap::Options::new(self.console.width()).initial_indent("      ").subsequent_indent("      ");
        let weights = &self.selected.manifest.design.rubric.criteria;
        for (dimension, score) in &row.dimensions {
            let score_text = self.paint(score_style(Some(*score)), &format!("{score:.2}"));
            let _ = writeln!(text, "  {score_text}  {}", self.paint(TextStyle::Strong, dimension.name()));
            let of = |id: &crate::judge::CriterionId| -> Option<Dimension> {
                weights.iter().find(|criterion| criterion.id == *id).map(|criterion| criterion.dimension)
            };
            let mut last = "";
            for grade in row.criteria.iter().filter(|grade| of(&grade.criterion) == Some(*dimension)) {
                let points = f64::from(grade.points());
                let points = self.paint(score_style(Some(points)), &format!("{points}"));
                let _ = writeln!(text, "    {points}  {}", grade.criterion);
                // a judge that gives one reason for several criteria is quoted once
                if !grade.reasoning.is_empty() && grade.reasoning != last {
                    last = &grade.reasoning;
                    let reason = textwrap::fill(&grade.reasoning, &options);
                    let _ = writeln!(text, "{}", self.paint(TextStyle::Dim, &reason));
                }
            }
        }
    }

    fn write_footer(&self, text: &mut String) {
        let row = &self.selected.row;
        if let Some(tokens) = row.fetch_tokens.filter(|tokens| *tokens > 0) {
            let all = if row.refetch_unguided { ": nothing in the context says where they were" } else { "" };
            let _ = writeln!(text, "\nRecovering the lost facts costs {}{all}.", count(tokens, "token"));
        }
        self.other_book(text);
        if !self.selected.others.is_empty() {
            let other = |row: &Row| {
                let score = row.overall.map_or("–".to_owned(), |score| format!("{score:.2}"));
                format!("run {} {score}", row.run)
            };
            let others: Vec<String> = self.selected.others.iter().map(other).collect();
            let _ = writeln!(text, "\n{} {}", self.paint(TextStyle::Dim, "other repetitions:"), others.join(", "));
        }
        let keys = [("compress", row.keys.compress), ("answer", row.keys.answer), ("judge", row.keys.judge)];
        let keys: Vec<String> = keys.iter().map(|(stage, key)| format!("{stage} {}", key.0.short())).collect();
        let _ = writeln!(text, "\n{}", self.paint(TextStyle::Dim, &format!("keys: {}", keys.join(", "))));
        let next = command_for("why", [&row.fixture, &row.method, &row.probe], row.run);
        let _ = writeln!(text, "{} {next}", self.paint(TextStyle::Hint, "next:"));
    }
}

/// What became of a fact: a mark, what it means, in words.
fn fate(class: Option<FactClass>, answered: bool) -> (&'static str, TextStyle, &'static str) {
    match class {
        Some(FactClass::Answered) => ("✓", TextStyle::Good, "answered from the context"),
        Some(FactClass::Missed) => ("✗", TextStyle::Warning, "in the context, missed by the answerer"),
        Some(FactClass::Lost) => ("✗", TextStyle::Bad, "lost in compression"),
        Some(FactClass::AnsweredElsewhere) => ("✓", TextStyle::Warning, "answered, but not literally in the context"),
        None if answered => ("✓", TextStyle::Good, "answered"),
        None => ("✗", TextStyle::Bad, "not answered"),
    }
}
