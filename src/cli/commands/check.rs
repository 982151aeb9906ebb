//! `compeval check`: validates everything; only `--ping` sends requests.

use clap::Args;
use serde_json::{Value, json};

use super::ping::{self, Ping, ping_models};
use crate::cli::args::{Common, SelectArgs};
use crate::cli::commands::fixture::audit::audit_all;
use crate::cli::commands::fixture::tokens_of;
use crate::cli::failure::{Exit, Failure};
use crate::cli::findings::{every_finding, render, render_kinds};
use crate::cli::format::{count, or_dash};
use crate::cli::project::{ProjectOptions, project_paths_of, read_project};
use crate::cli::screen::{access_line, access_list};
use crate::cli::terminal::{Console, TextStyle};
use crate::pipeline::{ExternalAccess, Opened, Pipeline, Problem, Problems, Severity};
use base::units::Tokens;
use sessions::import::{FixtureStats, stats};

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// List each finding with its place, and every fixture
    #[arg(long)]
    pub(crate) all: bool,
    /// Send one small request to each model of the pipeline: is its server, key and name right?
    #[arg(long)]
    pub(crate) ping: bool,
    /// With --ping: ask this model, as PROVIDER/MODEL, in place of those of the pipeline
    #[arg(long, value_name = "MODEL", requires = "ping")]
    pub(crate) model: Option<String>,
}

/// The problems of a project and, unless one is an error, its pipeline.
#[derive(Default)]
struct CheckResult {
    problems: Problems,
    pipeline: Option<Pipeline>,
    /// The hosts and programs that it uses; also known if only the strict rules of `check` reject the project.
    access: Option<ExternalAccess>,
    /// Whether nothing is selected, though nothing is wrong.
    is_empty: bool,
    /// The outcomes of `--ping`.
    pings: Option<Vec<Ping>>,
}

pub(crate) fn run(common: &Common, args: &CheckArgs, console: &Console) -> Result<Exit, Failure> {
    let mut result = check_project(common, args.model.clone())?;
    if let Some(pipeline) = result.pipeline.as_ref().filter(|_| args.ping) {
        result.pings = Some(ping_models(pipeline)?);
    }
    let errors = result.problems.errors();
    console.report(&result.json(), || {
        if args.all {
            result.print_all(console)
        } else {
            result.print(console)
        }
    });
    Ok(match errors {
        0 if result.has_failed_ping() => Exit::Error,
        0 => Exit::Done,
        _ if result.is_empty && errors == 1 => Exit::EmptySelection,
        _ => Exit::BadInput,
    })
}

/// Opens the project with the strictest rules, and audits every fixture.
fn check_project(common: &Common, model: Option<String>) -> Result<CheckResult, Failure> {
    let select = SelectArgs {
        model,
        ..SelectArgs::default()
    };
    let audited = match project_paths_of(common) {
        Ok(paths) => audit_all(&paths).0,
        // Reading the project reports these, and all others with them.
        Err(Failure::Problems(_)) => Vec::new(),
        Err(other) => return Err(other),
    };
    let opening = ProjectOptions {
        strict: true,
        ..ProjectOptions::default()
    };
    let mut result = CheckResult::default();
    match read_project(common, &select, opening) {
        Ok(Opened {
            pipeline,
            warnings,
            missing_keys,
        }) => {
            result.access =
                Some(ExternalAccess::from_pipeline(&pipeline).with_generators(&pipeline));
            result.pipeline = Some(pipeline);
            result.problems = warnings;
            result.problems.0.extend(missing_keys.0);
        }
        Err(Failure::Problems(problems)) => {
            result.problems = problems;
            let lenient = read_project(common, &select, ProjectOptions::default());
            result.access = lenient.ok().map(|Opened { pipeline, .. }| {
                ExternalAccess::from_pipeline(&pipeline).with_generators(&pipeline)
            });
        }
        Err(Failure::Message {
            exit: Exit::EmptySelection,
            message,
            hint,
            ..
        }) => {
            result.is_empty = true;
            result
                .problems
                .push(Problem::error(message).help(hint.unwrap_or_default()));
        }
        Err(other) => return Err(other),
    }
    result.problems.0.extend(audited);
    Ok(result)
}

impl CheckResult {
    fn problems_of(&self, severity: Severity) -> impl Iterator<Item = &Problem> {
        self.problems
            .0
            .iter()
            .filter(move |problem| problem.severity() == severity)
    }

    fn has_failed_ping(&self) -> bool {
        self.pings.iter().flatten().any(|ping| !ping.ok)
    }

    fn probes(&self) -> usize {
        self.pipeline
            .iter()
            .flat_map(|pipeline| &pipeline.fixtures)
            .map(|fixture| fixture.bank.probes.len())
            .sum()
    }

    fn fixtures(&self) -> usize {
        self.pipeline
            .as_ref()
            .map_or(0, |pipeline| pipeline.fixtures.len())
    }

    fn access(&self) -> Option<&ExternalAccess> {
        self.access.as_ref().filter(|access| !access.is_empty())
    }

    /// Prints whether the project is valid, the findings by kind, and what the project has, on eight lines; with `--quiet`
    /// only errors.
    fn print(&self, console: &Console) {
        if console.is_quiet {
            let errors = Problems(self.problems_of(Severity::Error).cloned().collect());
            if !errors.is_empty() {
                console.eprint(&render_kinds(&errors, console));
            }
            self.pings
                .iter()
                .for_each(|pings| ping::print_failed(pings, console));
            return;
        }
        console.print(&self.summary(console));
        if !self.problems.is_empty() {
            console.eprint(&render_kinds(&self.problems, console));
        }
        if let Some(access) = self.access() {
            console.print(&console.prose(&access_line(access, console)));
        }
        if let Some(pipeline) = self.pipeline.as_ref().filter(|_| self.problems.is_empty()) {
            let fixtures = pipeline.fixtures.iter().map(|loaded| loaded.name());
            console.print(&format!("fixtures: {}", names(fixtures)));
            console.print(&format!(
                "methods: {}",
                names(pipeline.methods.iter().map(|method| &*method.name.0))
            ));
        }
        self.print_pings(console);
        match self.problems.0.len() {
            0 if self.has_failed_ping() => {}
            0 => console.next("compeval plan"),
            1 => {}
            _ => console.note(every_finding()),
        }
    }

    /// Prints each finding at its place, and each fixture.
    fn print_all(&self, console: &Console) {
        console.print(&self.summary(console));
        if !self.problems.is_empty() {
            let sorted = self
                .problems_of(Severity::Error)
                .chain(self.problems_of(Severity::Warning));
            let sorted = Problems(sorted.cloned().collect());
            console.eprint(&render(&sorted, console));
        }
        if let Some(pipeline) = &self.pipeline {
            console.print(&contents(pipeline, console));
        }
        if let Some(access) = self.access() {
            console.print(&access_list(access, console));
        }
        self.print_pings(console);
    }

    fn print_pings(&self, console: &Console) {
        if let Some(pings) = &self.pings {
            ping::print(pings, console);
        }
    }

    fn json(&self) -> Value {
        // A project that cannot be opened was not counted: null, not 0.
        json!({
            "ok": self.problems.errors() == 0,
            "fixtures": self.pipeline.as_ref().map(|_| self.fixtures()),
            "probes": self.pipeline.as_ref().map(|_| self.probes()),
            "errors": self.problems_of(Severity::Error).map(problem_json).collect::<Vec<_>>(),
            "warnings": self.problems_of(Severity::Warning).map(problem_json).collect::<Vec<_>>(),
            "access": self.access,
            "ping": self.pings,
        })
    }

    fn summary(&self, console: &Console) -> String {
        let errors = self.problems.errors();
        let warnings = count(self.problems_of(Severity::Warning).count(), "warning");
        if errors > 0 {
            return format!(
                "{}{}{warnings}",
                console.paint(TextStyle::Bad, &count(errors, "error")),
                ", "
            );
        }
        let methods = self
            .pipeline
            .as_ref()
            .map_or(0, |pipeline| pipeline.methods.len());
        let [fixtures, probes, methods] = [
            (self.fixtures(), "fixture"),
            (self.probes(), "probe"),
            (methods, "method"),
        ]
        .map(|(n, noun)| count(n, noun));
        let contents = format!("{fixtures}, {probes}, {methods}, {warnings}");
        console.labelled(TextStyle::Good, "valid:", contents)
    }
}

/// The first of `names`, and how many others there are.
fn names<'n>(names: impl Iterator<Item = &'n str>) -> String {
    const SHOWN: usize = 10;
    let names: Vec<&str> = names.collect();
    let shown = names
        .iter()
        .take(SHOWN)
        .copied()
        .collect::<Vec<_>>()
        .join(", ");
    match names.len().checked_sub(SHOWN) {
        Some(rest @ 1..) => format!("{shown} and {rest} more"),
        _ => shown,
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

/// The names that `--fixtures` and `--methods` accept.
fn contents(pipeline: &Pipeline, console: &Console) -> String {
    let columns = [
        "fixture",
        "messages",
        "tokens",
        "points",
        "probes",
        "calls",
        "files",
        "KB",
        "languages",
    ];
    let rows = pipeline.fixtures.iter().map(|loaded| {
        let FixtureStats {
            messages,
            tokens: Tokens(tokens),
            tools,
            files,
            languages,
            ..
        } = stats(&loaded.fixture, &tokens_of);
        let size = std::fs::metadata(pipeline.folder.join(&loaded.path))
            .ok()
            .map(|file| file.len());
        vec![
            loaded.name().to_owned(),
            messages.to_string(),
            tokens.to_string(),
            loaded.points.len().to_string(),
            loaded.bank.probes.len().to_string(),
            tools.values().sum::<usize>().to_string(),
            files.len().to_string(),
            or_dash(size.map(|bytes| bytes.div_ceil(1000))),
            languages.join(" "),
        ]
    });
    let methods: Vec<&str> = pipeline
        .methods
        .iter()
        .map(|method| &*method.name.0)
        .collect();
    format!(
        "{}\n\nmethods: {}\n",
        console.table(&columns, &[8], rows),
        methods.join(", ")
    )
}
