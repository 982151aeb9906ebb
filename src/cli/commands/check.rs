//! `compeval check`: validates everything without calling anyone.

use serde_json::{Value, json};

use crate::cli::args::{Common, SelectArgs};
use crate::cli::commands::fixture::audit::audit_all;
use crate::cli::engine::access_list;
use crate::cli::failure::{Exit, Failure, render};
use crate::cli::format::count;
use crate::cli::project::{ProjectOptions, project_paths_of, read_project};
use crate::cli::terminal::{Column, Console, TextStyle, render_table};
use crate::pipeline::{ExternalAccess, Opened, Pipeline, Problem, Problems, Severity};

/// The problems of a project and, unless one is an error, its pipeline.
#[derive(Default)]
struct CheckResult {
    problems: Problems,
    pipeline: Option<Pipeline>,
    /// Whom it reaches; also where only the strictness of `check` finds fault with it.
    access: Option<ExternalAccess>,
    /// Why there is nothing to run though nothing is wrong.
    is_empty: bool,
}

pub(crate) fn run(common: &Common, console: &Console) -> Result<Exit, Failure> {
    let result = check_project(common)?;
    let errors = result.problems.errors();
    console.report(&result.json(), || {
        if !result.problems.is_empty() {
            console.eprint(&result.shown(console));
        }
        if let Some(pipeline) = &result.pipeline {
            console.print(&contents(pipeline, console));
        }
        if let Some(access) = result.access.as_ref().filter(|access| !access.is_empty()) {
            console.print(&format!("{}\n", access_list(access, console)));
        }
        console.print(&result.summary(console));
    });
    Ok(match errors {
        0 => Exit::Done,
        _ if result.is_empty && errors == 1 => Exit::EmptySelection,
        _ => Exit::BadInput,
    })
}

/// Opens the project as strictly as there is, and looks into every fixture.
fn check_project(common: &Common) -> Result<CheckResult, Failure> {
    let paths = match project_paths_of(common) {
        Ok(paths) => paths,
        Err(Failure::Problems(problems)) => return Ok(CheckResult { problems, ..CheckResult::default() }),
        Err(other) => return Err(other),
    };
    let opening = ProjectOptions { strict: true, ..ProjectOptions::default() };
    let mut result = CheckResult::default();
    match read_project(common, &SelectArgs::default(), opening) {
        Ok(Opened { pipeline, warnings, missing_keys }) => {
            result.access = Some(ExternalAccess::of(&pipeline));
            result.pipeline = Some(pipeline);
            result.problems = warnings;
            result.problems.0.extend(missing_keys.0);
        }
        Err(Failure::Problems(problems)) => {
            result.problems = problems;
            let lenient = read_project(common, &SelectArgs::default(), ProjectOptions::default());
            result.access = lenient.ok().map(|opened| ExternalAccess::of(&opened.pipeline));
        }
        Err(Failure::Message { exit: Exit::EmptySelection, message, hint }) => {
            result.is_empty = true;
            result.problems.push(Problem::error(message).help(hint.unwrap_or_default()));
        }
        Err(other) => return Err(other),
    }
    result.problems.0.extend(audit_all(&paths).0);
    Ok(result)
}

impl CheckResult {
    fn of(&self, severity: Severity) -> impl Iterator<Item = &Problem> {
        self.problems.0.iter().filter(move |problem| problem.kind() == severity)
    }

    fn probes(&self) -> usize {
        self.pipeline.iter().flat_map(|pipeline| &pipeline.fixtures).map(|fixture| fixture.bank.probes.len()).sum()
    }

    fn fixtures(&self) -> usize {
        self.pipeline.as_ref().map_or(0, |pipeline| pipeline.fixtures.len())
    }

    /// The problems rendered at their positions, errors first. Of very many the rest is counted, so that what matters is not
    /// scrolled away.
    fn shown(&self, console: &Console) -> String {
        const DRAWN: usize = 30;
        let of = |severity| self.of(severity).take(DRAWN).cloned();
        let drawn = Problems(of(Severity::Error).chain(of(Severity::Warning)).collect());
        let mut text = render(&drawn, console);
        for (severity, noun) in [(Severity::Error, "error"), (Severity::Warning, "warning")] {
            if let Some(rest @ 1..) = self.of(severity).count().checked_sub(DRAWN) {
                text.push_str(&format!("\n\nand {}; --json lists all", count(rest, &format!("more {noun}"))));
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
            "access": self.access,
        })
    }

    fn summary(&self, console: &Console) -> String {
        let errors = self.problems.errors();
        let warnings = count(self.of(Severity::Warning).count(), "warning");
        if errors > 0 {
            return format!("{}, {warnings}", console.paint(TextStyle::Bad, &count(errors, "error")));
        }
        let valid = console.paint(TextStyle::Good, "valid:");
        format!("{valid} {}, {}, {warnings}", count(self.fixtures(), "fixture"), count(self.probes(), "probe"))
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
    format!("{}\n\nmethods: {}\n", render_table(&columns, rows, console.width()), methods.join(", "))
}
