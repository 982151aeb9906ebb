//! `labels trend`: scores of result sets over time and commits.

use std::path::{Path, PathBuf};

use clap::Args;
use indexmap::IndexMap;
use serde::Deserialize;

use crate::action::Digest;
use crate::cli::args::{Common, OUTPUT};
use crate::cli::failure::{Exit, Failure};
use crate::cli::project::{given, given_results};
use crate::cli::terminal::{Column, Console, render_table};
use crate::pipeline::Book;
use crate::report::{
    StyledText, TextStyle, TrendPoint, TrendScore, incomplete, score_text, short_commit,
    short_time, trend_dimension_name, trend_dimensions, trend_methods, trend_page,
};
use crate::results::{
    Design, Manifest, OVERALL, Outcome, ResultsFolder, labels, names, open_results,
};
use base::clock::moment;
use base::files::{FileError, read_text, write_whole};

#[derive(Debug, Args)]
pub(crate) struct TrendArgs {
    /// Labels, with `*` as a wildcard, or results folders; a label includes the results that it replaced [default: all]
    #[arg(value_name = "LABEL")]
    pub(crate) labels: Vec<String>,
    /// Show the dimensions of this method; by default the overall scores of all methods
    #[arg(long, value_name = "METHOD")]
    pub(crate) method: Option<String>,
    /// Write a page with charts of all methods and dimensions to FILE
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) html: Option<PathBuf>,
}

pub(super) fn run(
    common: &Common,
    results: &Path,
    args: &TrendArgs,
    console: &Console,
) -> Result<Exit, Failure> {
    let points = points(&folders(common, results, &args.labels)?, console);
    if points.is_empty() {
        let message = match args.labels.join(" ") {
            all if all.is_empty() => {
                "there are no results with scores; `compeval run` makes some".to_owned()
            }
            asked => {
                format!("no results with scores match {asked}; `compeval labels ls` lists them")
            }
        };
        return Err(Failure::input(message).exiting(Exit::EmptySelection));
    }
    if let Some(method) = &args.method
        && !trend_methods(&points).contains(&method.as_str())
    {
        let known = trend_methods(&points).join(", ");
        return Err(Failure::input(format!(
            "no result has a method `{method}`; there are {known}"
        )));
    }
    if let Some(path) = &args.html {
        let path = given(common, path);
        write_whole(&path, trend_page(&points))?;
        console.note(&format!("wrote {}", path.display()));
    }
    console.report(&points, || {
        console.print(&table(&points, args.method.as_deref(), console))
    });
    Ok(Exit::Done)
}

/// The requested result sets, each once.
fn folders(
    common: &Common,
    results: &Path,
    patterns: &[String],
) -> Result<Vec<ResultsFolder>, Failure> {
    let known = labels(results)?;
    let mut folders: Vec<ResultsFolder> = Vec::new();
    let patterns: Vec<&str> = if patterns.is_empty() {
        vec!["*"]
    } else {
        patterns.iter().map(String::as_str).collect()
    };
    for pattern in patterns {
        let matching = known.iter().filter(|label| {
            let mut names = [label.as_str()].into_iter().chain(label.successor());
            names.any(|name| name == pattern || matches(pattern, name))
        });
        let mut found: Vec<ResultsFolder> = matching
            .map(|label| ResultsFolder::new(results, label))
            .collect();
        if found.is_empty() && !pattern.contains('*') {
            found.push(open_results(results, &given_results(common, pattern))?);
        }
        for folder in found {
            if !folders.contains(&folder) {
                folders.push(folder);
            }
        }
    }
    Ok(folders)
}

/// Whether `text` is the pattern, in which `*` stands for any text.
fn matches(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((start, rest)) => text.strip_prefix(start).is_some_and(|text| {
            rest.is_empty()
                || (0..=text.len())
                    .filter_map(|at| text.get(at..))
                    .any(|tail| matches(rest, tail))
        }),
    }
}

/// The part of `summary.json` that is read.
#[derive(Deserialize)]
struct StoredSummary {
    methods: IndexMap<String, StoredMethod>,
}

impl StoredSummary {
    /// Whether anything was graded. A set of contexts alone has no answerer and no judge, so beside it every other set
    /// would look as if it had been measured in another way.
    fn has_scores(&self) -> bool {
        self.methods
            .values()
            .any(|method| !method.scores().is_empty())
    }
}

#[derive(Deserialize)]
struct StoredMethod {
    overall: StoredLevel,
    dimensions: IndexMap<String, StoredLevel>,
}

impl StoredMethod {
    fn scores(&self) -> Vec<(String, TrendScore)> {
        let overall = (OVERALL.to_owned(), self.overall);
        let dimensions = self
            .dimensions
            .iter()
            .map(|(name, level)| (name.clone(), *level));
        let levels = [overall].into_iter().chain(dimensions);
        levels
            .filter_map(|(name, level)| Some((name, level.score()?)))
            .collect()
    }
}

#[derive(Clone, Copy, Deserialize)]
struct StoredLevel {
    median: Option<f64>,
    ci95: Option<[f64; 2]>,
}

impl StoredLevel {
    fn score(self) -> Option<TrendScore> {
        Some(TrendScore {
            value: self.median?,
            ci95: self.ci95,
        })
    }
}

/// The points in the order of time. A set that cannot be read is skipped with a warning.
fn points(folders: &[ResultsFolder], console: &Console) -> Vec<TrendPoint> {
    let mut read: Vec<(Manifest, StoredSummary)> = Vec::new();
    for folder in folders {
        match read_set(folder) {
            Ok(Some(set)) => read.push(set),
            Ok(None) => {}
            Err(why) => console.warn("skipped:", why),
        }
    }
    read.sort_by(|(a, _), (b, _)| {
        (moment(&a.started), &a.label).cmp(&(moment(&b.started), &b.label))
    });
    let mut before: Option<Digest> = None;
    let points = read.into_iter().map(|(manifest, summary)| {
        let measured = measured_with(&manifest.design);
        let measured_otherwise = before
            .replace(measured)
            .is_some_and(|before| before != measured);
        point(manifest, &summary, measured_otherwise)
    });
    points.collect()
}

/// `None` for a set that is being made, and for one without scores.
fn read_set(folder: &ResultsFolder) -> Result<Option<(Manifest, StoredSummary)>, String> {
    let manifest = folder.manifest().map_err(|error| error.to_string())?;
    if manifest.outcome == Outcome::Running {
        return Ok(None);
    }
    let file = folder.file(names::SUMMARY);
    let text = read_text(&file).map_err(|error: FileError| error.to_string())?;
    let summary: StoredSummary =
        serde_json::from_str(&text).map_err(|error| format!("{}: {error}", file.display()))?;
    Ok(summary.has_scores().then_some((manifest, summary)))
}

/// A digest of what scores depend on besides the methods.
fn measured_with(design: &Design) -> Digest {
    let fixtures: Vec<_> = design
        .fixtures
        .iter()
        .map(|fixture| (&fixture.name, &fixture.digests, &fixture.probes))
        .collect();
    let [answerers, judges] = [&design.answerers, &design.judges].map(|asked| {
        asked
            .iter()
            .map(|asked| (&asked.model, &asked.settings, asked.prompt))
            .collect::<Vec<_>>()
    });
    // How an answerer may search decides its scores only where these are of the answers with a search.
    let searching = design.answerers.iter().map(|asked| asked.recovery.as_ref());
    let searches: Vec<_> = searching.filter(|_| design.primary == Book::Open).collect();
    let (tail, context, locale, primary) = (
        design.tail,
        design.judge_context,
        design.locale,
        design.primary,
    );
    let parts = (
        fixtures,
        &design.rubric,
        answerers,
        judges,
        searches,
        tail,
        context,
        locale,
        primary,
    );
    // Names, numbers and digests: serialising them cannot fail.
    let json = serde_json::to_string(&parts)
        .unwrap_or_else(|error| unreachable!("a design is plain data: {error}"));
    Digest::hash(json)
}

/// A result set as a point of the trend.
fn point(manifest: Manifest, summary: &StoredSummary, measured_otherwise: bool) -> TrendPoint {
    let anchors = summary.methods.keys().filter(|method| {
        manifest
            .design
            .method(method)
            .is_some_and(|method| method.is_anchor())
    });
    TrendPoint {
        anchors: anchors.cloned().collect(),
        methods: summary
            .methods
            .iter()
            .map(|(name, method)| (name.clone(), method.scores()))
            .collect(),
        complete: manifest.outcome == Outcome::Complete,
        label: manifest.label,
        started: manifest.started,
        commit: manifest.commit,
        measured_otherwise,
    }
}

fn table(points: &[TrendPoint], method: Option<&str>, console: &Console) -> String {
    let names: Vec<String> = points.iter().map(name).collect();
    let times = points.iter().map(|point| short_time(&point.started));
    let commits = points.iter().map(short_commit);
    let mut columns: Vec<Vec<String>> = vec![
        ["began (UTC)".to_owned()]
            .into_iter()
            .chain(times)
            .collect(),
        ["commit".to_owned()].into_iter().chain(commits).collect(),
    ];
    columns.extend(score_columns(points, method));
    let headings = columns
        .iter()
        .filter_map(|column| column.first())
        .map(|heading| Column::Right(heading));
    let headings: Vec<Column<'_>> = [Column::Left("label")]
        .into_iter()
        .chain(headings)
        .collect();
    let rows = names.iter().enumerate().map(|(row, name)| {
        let own = columns.iter().filter_map(|column| column.get(row + 1));
        [name].into_iter().chain(own).cloned().collect()
    });
    let mut text = render_table(&headings, rows, console.width());
    if points.iter().any(|point| point.measured_otherwise) {
        let mut note = StyledText::default();
        let sentence = "≠ the fixtures, the questions, the rubric, the answerer or the judge changed: scores from here on cannot be \
             compared with those above.";
        note.paragraph(TextStyle::Plain, sentence, console.width());
        text.push_str("\n\n");
        text.push_str(note.plain().trim_end());
    }
    text
}

/// The label, with marks.
fn name(point: &TrendPoint) -> String {
    let mark = if point.measured_otherwise { "≠ " } else { "" };
    format!("{mark}{}{}", point.label, incomplete(point))
}

/// Columns of scores under their headings: of all methods, or of the dimensions of one.
fn score_columns(points: &[TrendPoint], method: Option<&str>) -> Vec<Vec<String>> {
    match method {
        Some(method) => {
            let names = trend_dimensions(points).into_iter();
            names
                .map(|name| score_column(points, &trend_dimension_name(name), method, name))
                .collect()
        }
        None => {
            let methods = trend_methods(points).into_iter();
            methods
                .map(|method| score_column(points, method, method, OVERALL))
                .collect()
        }
    }
}

fn score_column(points: &[TrendPoint], heading: &str, method: &str, name: &str) -> Vec<String> {
    let scores = points
        .iter()
        .map(|point| score_text(point.score(method, name)));
    [heading.to_owned()].into_iter().chain(scores).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, text, is_match) in [
            ("nightly-*", "nightly-2026", true),
            ("nightly-*", "weekly-2026", false),
            ("*", "", true),
            ("*-v1", "a-v1-v1", true),
            ("a*b*c", "axxbyyc", true),
            ("a*b*c", "axxcyyb", false),
            ("提*", "提示词", true),
        ] {
            assert_eq!(matches(pattern, text), is_match, "{pattern} {text}");
        }
    }
}
