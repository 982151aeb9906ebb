//! `compeval check`: validates everything without calling anyone.

use serde_json::{Value, json};

use crate::cli::args::{Common, SelectArgs};
use crate::cli::commands::fixture::audit::audit_all;
use crate::cli::failure::{Exit, Failure, render};
use crate::cli::project::{Opening, places_of, read_project};
use crate::cli::terminal::{Column, Console, Meaning, count, grid};
use crate::pipeline::{Opened, Pipeline, Problem, Problems, Severity};

/// What a project was found to be.
#[derive(Default)]
struct Found {
    problems: Problems,
    pipeline: Option<Pipeline>,
    /// Why there is nothing to run though nothing is wrong.
    is_empty: bool,
}

pub(crate) fn run(common: &Common, console: &Console) -> Result<Exit, Failure> {
    let found = examine(common)?;
    let errors = found.problems.errors();
    console.json(&found.json());
    if !console.is_json() {
        if !found.problems.is_empty() {
            console.tell(&found.shown(console));
        }
        if let Some(pipeline) = &found.pipeline {
            console.say(&contents(pipeline, console));
        }
        console.say(&found.summary(console));
    }
    Ok(match errors {
        0 => Exit::Done,
        _ if found.is_empty && errors == 1 => Exit::EmptySelection,
        _ => Exit::BadInput,
    })
}

/// Opens the project as strictly as there is, and looks into every fixture.
fn examine(common: &Common) -> Result<Found, Failure> {
    let places = match places_of(common) {
        Ok(places) => places,
        Err(Failure::Problems(problems)) => return Ok(Found { problems, ..Found::default() }),
        Err(other) => return Err(other),
    };
    let opening = Opening { strict: true, ..Opening::default() };
    let mut found = Found::default();
    match read_project(common, &SelectArgs::default(), opening) {
        Ok(Opened { pipeline, warnings, missing_keys }) => {
            found.pipeline = Some(pipeline);
            found.problems = warnings;
            found.problems.0.extend(missing_keys.0);
        }
        Err(Failure::Problems(problems)) => found.problems = problems,
        Err(Failure::Told { exit: Exit::EmptySelection, message, hint }) => {
            found.is_empty = true;
            found.problems.push(Problem::error(message).help(hint.unwrap_or_default()));
        }
        Err(other) => return Err(other),
    }
    found.problems.0.extend(audit_all(&places).0);
    Ok(found)
}

impl Found {
    fn of(&self, severity: Severity) -> impl Iterator<Item = &Problem> {
        self.problems.0.iter().filter(move |problem| problem.kind() == severity)
    }

    fn probes(&self) -> usize {
        self.pipeline.iter().flat_map(|pipeline| &pipeline.fixtures).map(|fixture| fixture.bank.probes.len()).sum()
    }

    fn fixtures(&self) -> usize {
        self.pipeline.as_ref().map_or(0, |pipeline| pipeline.fixtures.len())
    }

    /// The problems drawn at their places, errors first. Of very many the rest is counted, so that what matters is not
    /// scrolled away.
    fn shown(&self, console: &Console) -> String {
        const DRAWN: usize = 30;
        let of = |severity| self.of(severity).take(DRAWN).cloned();
        let drawn = Problems(of(Severity::Error).chain(of(Severity::Warning)).collect());
        let mut text = render(&drawn, console);
        for (severity, noun) in [(Severity::Error, "error"), (Severity::Warning, "warning")] {
            if let Some(rest @ 1..) = self.of(severity).count().checked_sub(DRAWN) {
                let plural = if rest == 1 { "" } else { "s" };
                text.push_str(&format!("\n\nand {rest} more {noun}{plural}; --json lists all"));
            }
        }
        text
    }

    fn json(&self) -> Value {
        let listed = |severity| self.of(severity).map(problem_json).collect::<Vec<_>>();
        // What could not be opened was not counted: null, not 0.
        json!({
            "ok": self.problems.errors() == 0,
            "fixtures": self.pipeline.as_ref().map(|_| self.fixtures()),
            "probes": self.pipeline.as_ref().map(|_| self.probes()),
            "errors": listed(Severity::Error),
            "warnings": listed(Severity::Warning),
        })
    }

    fn summary(&self, console: &Console) -> String {
        let errors = self.problems.errors();
        let warnings = count(self.of(Severity::Warning).count(), "warning");
        if errors > 0 {
            return format!("{}, {warnings}", console.paint(Meaning::Bad, &count(errors, "error")));
        }
        let sound = console.paint(Meaning::Good, "sound:");
        format!("{sound} {}, {}, {warnings}", count(self.fixtures(), "fixture"), count(self.probes(), "probe"))
    }
}

fn problem_json(problem: &Problem) -> Value {
    let position = problem.position();
    json!({
        "file": position.map(|(file, _, _)| file),
        "line": position.map(|(_, line, _)| line),
        "column": position.map(|(_, _, column)| column),
        "message": problem.message(),
        "help": problem.advice(),
    })
}

/// What there is: the names that `--fixtures` and `--methods` take.
fn contents(pipeline: &Pipeline, console: &Console) -> String {
    let columns = [
        Column::Left("fixture"),
        Column::Right("messages"),
        Column::Right("points"),
        Column::Right("probes"),
        Column::Right("KB"),
    ];
    let rows = pipeline.fixtures.iter().map(|loaded| {
        let size = std::fs::metadata(pipeline.folder.join(&loaded.path)).ok().map(|file| file.len());
        vec![
            loaded.name().to_owned(),
            loaded.fixture.messages.len().to_string(),
            loaded.points.len().to_string(),
            loaded.bank.probes.len().to_string(),
            size.map_or_else(|| "–".to_owned(), |bytes| bytes.div_ceil(1000).to_string()),
        ]
    });
    let methods: Vec<&str> = pipeline.methods.iter().map(|method| &*method.name.0).collect();
    format!("{}\n\nmethods: {}\n", grid(&columns, rows, console.width()), methods.join(", "))
}
