//! `compeval check`: validates everything; only `--ping` sends requests: the smallest one to each model that the pipeline names,
//! which shows whether its server, key and name are right before a run is paid for.

use std::cell::Cell;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use serde::Serialize;
use serde_json::{Value, json};

use crate::cli::args::Common;
use crate::cli::commands::fixture::audit::audit_all;
use crate::cli::failure::{Exit, Failure, render, render_some};
use crate::cli::format::count;
use crate::cli::project::{open_request, project_paths_of, read_project};
use crate::cli::screen::access_line;
use crate::cli::terminal::{Console, TextStyle, labelled, paint};
use crate::evaluation::runtime;
use crate::pipeline::{
    ExternalAccess, OpenRequest, Opened, Overrides, Pipeline, Problem, Problems, Severity,
};
use base::message::Role;
use base::units::{Tokens, Usd};
use models::{
    AskFailure, Call, Client, ErrorClass, ModelUse, Operation, Prices, ProviderSpec, RawReply,
    RetryPolicy, Settings, Turn, Unlimited, estimate,
};

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// List each finding with its place
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
    console.report(&result.json(), || result.print(args.all, console));
    Ok(match errors {
        0 if result.has_failed_ping() => Exit::Error,
        0 => Exit::Done,
        _ if result.is_empty && errors == 1 => Exit::EmptySelection,
        _ => Exit::BadInput,
    })
}

/// Opens the project with the strictest rules, and audits every fixture.
fn check_project(common: &Common, model: Option<String>) -> Result<CheckResult, Failure> {
    let audited = match project_paths_of(common) {
        Ok(paths) => audit_all(&paths).0,
        // Reading the project reports these, and all others with them.
        Err(Failure {
            exit: Exit::BadInput,
            ..
        }) => Vec::new(),
        Err(other) => return Err(other),
    };
    let open = |strict, planted| {
        read_project(&OpenRequest {
            overrides: Overrides {
                model: model.clone(),
                ..Overrides::default()
            },
            strict,
            planted,
            ..open_request(common)?
        })
    };
    // Without any bank, items can still be planted into the fixtures.
    let opened = open(true, false).or_else(|failure| match failure.exit {
        Exit::EmptySelection => open(true, true)
            .map(|planted| without_probes(planted, &failure.problems))
            .map_err(|_| failure),
        _ => Err(failure),
    });
    let mut result = CheckResult::default();
    match opened {
        Ok(Opened {
            pipeline,
            warnings,
            missing_keys,
        }) => {
            result.access =
                Some(ExternalAccess::from_pipeline(&pipeline).with_generator(&pipeline));
            result.pipeline = Some(pipeline);
            result.problems = warnings;
            result.problems.0.extend(missing_keys.0);
        }
        Err(Failure {
            exit: exit @ (Exit::BadInput | Exit::EmptySelection),
            problems,
        }) => {
            result.is_empty = exit == Exit::EmptySelection;
            result.problems = problems;
            result.access = open(false, false).ok().map(|Opened { pipeline, .. }| {
                ExternalAccess::from_pipeline(&pipeline).with_generator(&pipeline)
            });
        }
        Err(other) => return Err(other),
    }
    result.problems.0.extend(audited);
    Ok(result)
}

/// A project that has only planted items to ask about: that it has no probes is a warning.
fn without_probes(mut opened: Opened, empty: &Problems) -> Opened {
    let empty = empty.0.iter().cloned();
    let warnings = empty.map(|problem| problem.with_severity(Severity::Warning));
    opened.warnings.0.extend(warnings);
    opened
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

    /// Its fixtures, probes and methods; `None` for a project that cannot be opened, which was not counted.
    fn counts(&self) -> Option<[usize; 3]> {
        let pipeline = self.pipeline.as_ref()?;
        let fixtures = &pipeline.fixtures;
        let probes = fixtures.iter().map(|one| one.bank.probes.len()).sum();
        Some([fixtures.len(), probes, pipeline.methods.len()])
    }

    fn access(&self) -> Option<&ExternalAccess> {
        self.access.as_ref().filter(|access| !access.is_empty())
    }

    /// Prints whether the project is valid, the findings, `all` of them at their places, and what the project has; with
    /// `--quiet` only errors.
    fn print(&self, all: bool, console: &Console) {
        let (mut sorted, warnings): (Vec<Problem>, Vec<Problem>) =
            (self.problems.0.iter().cloned())
                .partition(|problem| problem.severity() == Severity::Error);
        if !console.is_quiet {
            console.print(&self.summary());
            sorted.extend(warnings);
        }
        if !sorted.is_empty() {
            let draw = if all { render } else { render_some };
            console.eprint(&draw(&Problems(sorted), console));
        }
        if console.is_quiet {
            return self
                .pings
                .iter()
                .for_each(|pings| print_failed_pings(pings, console));
        }
        if let Some(access) = self.access() {
            console.print(&console.prose(&access_line(access)));
        }
        if let Some(pings) = &self.pings {
            print_pings(pings, console);
        }
        if self.problems.is_empty() && !self.has_failed_ping() {
            console.next("compeval plan");
        }
    }

    fn json(&self) -> Value {
        let counts = self.counts();
        json!({
            "ok": self.problems.errors() == 0,
            "fixtures": counts.map(|[fixtures, ..]| fixtures),
            "probes": counts.map(|[_, probes, _]| probes),
            "errors": self.problems_of(Severity::Error).map(problem_json).collect::<Vec<_>>(),
            "warnings": self.problems_of(Severity::Warning).map(problem_json).collect::<Vec<_>>(),
            "access": self.access,
            "ping": self.pings,
        })
    }

    fn summary(&self) -> String {
        let errors = self.problems.errors();
        let warnings = count(self.problems_of(Severity::Warning).count(), "warning");
        if errors > 0 {
            let errors = paint(TextStyle::Bad, &count(errors, "error"));
            return format!("{errors}, {warnings}");
        }
        let [fixtures, probes, methods] = self.counts().unwrap_or_default();
        let contents = format!(
            "{}, {}, {}, {warnings}",
            count(fixtures, "fixture"),
            count(probes, "probe"),
            count(methods, "method")
        );
        labelled(TextStyle::Good, "valid:", contents)
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

/// The limit of the reply, the lowest that every vendor accepts.
const REPLY: Tokens = Tokens(16);
/// How long a provider may let the one request wait.
const PATIENCE: Duration = Duration::from_secs(20);

/// The outcome of a request to a model.
#[derive(Debug, Serialize)]
struct Ping {
    /// `provider/model`.
    model: String,
    ok: bool,
    /// From sending to the last byte; null without a reply.
    seconds: Option<f64>,
    /// What it cost; null where the price is unknown.
    usd: Option<Usd>,
    /// Why there was no reply, and what to do.
    message: Option<String>,
}

/// Asks each model of the pipeline once, one after the other. The built-in rules are not asked.
fn ping_models(pipeline: &Pipeline) -> Result<Vec<Ping>, Failure> {
    let mut asked: Vec<&ModelUse> = Vec::new();
    for model in pipeline
        .stage_models()
        .chain([&pipeline.generator.model])
        .filter(|model| model.is_asked())
    {
        if !asked.iter().any(|known| known.reference == model.reference) {
            asked.push(model);
        }
    }
    let prices = Prices::new(pipeline.prices.clone());
    let runtime = runtime()?;
    Ok(asked
        .into_iter()
        .map(|model| runtime.block_on(ping(model, &prices)))
        .collect())
}

async fn ping(model: &ModelUse, prices: &Prices) -> Ping {
    let mut spec = ProviderSpec::clone(&model.provider);
    spec.limits.max_attempts = 1;
    spec.limits.timeout = spec.limits.timeout.min(PATIENCE);
    spec.limits.give_up_after = None;
    let policy = RetryPolicy {
        longest_wait: PATIENCE,
        wait_budget: PATIENCE,
        ..RetryPolicy::default()
    };
    let name = spec.name.clone();
    let client = Client::new([Arc::new(spec)]).with_retry_policy(policy);
    let call = smallest_call(model);
    let expected = estimate(&call);
    let replied = &Cell::new(None);
    let asked = client.ask(&name, &call, expected, &Unlimited, |reply: &RawReply| {
        let usd = prices.cost(&model.reference, &reply.usage);
        replied.set(Some((reply.latency.as_secs_f64(), usd, reply.usage.output)));
        async { Ok::<(), Infallible>(()) }
    });
    let asked = asked.await;
    let message = match (asked, replied.get()) {
        // A reply of so few tokens may be cut off before it says anything: it was a reply all the same.
        (Ok(_), _) | (Err(_), Some((_, _, Some(_)))) => None,
        (Err(AskFailure::Call(failure)), _) if failure.class == ErrorClass::Truncated => None,
        (Err(AskFailure::Call(failure)), _) => Some(match failure.hint {
            Some(hint) => format!("{} ({hint})", failure.message),
            None => failure.message,
        }),
        (Err(_), _) => Some("it was not asked".to_owned()),
    };
    let seconds = replied.get().map(|(seconds, ..)| seconds);
    Ping {
        model: model.reference.to_string(),
        ok: message.is_none(),
        seconds,
        usd: replied.get().and_then(|(_, usd, _)| usd),
        message,
    }
}

/// Asks for one word, with the settings of the stage, so that a setting which the model rejects is found, too.
fn smallest_call(model: &ModelUse) -> Call {
    Call {
        model: model.reference.model.clone(),
        operation: Operation::Generate,
        turns: vec![Turn::Text {
            role: Role::User,
            text: "Reply with the word: ok".into(),
        }],
        instructions: None,
        settings: Settings {
            max_output_tokens: Some(REPLY),
            ..model.settings.clone()
        },
        schema: None,
        tools: None,
        prefix_uses: 1,
    }
}

/// A line for each model.
fn print_pings(pings: &[Ping], console: &Console) {
    if pings.is_empty() {
        return console.note("No model to ask: the built-in rules answer.");
    }
    pings.iter().for_each(|ping| console.print(&ping.line()));
}

/// A line for each model that did not reply, also with `--quiet`.
fn print_failed_pings(pings: &[Ping], console: &Console) {
    let failed = pings.iter().filter(|ping| !ping.ok);
    failed.for_each(|ping| console.eprint(&ping.line()));
}

impl Ping {
    /// The model, and what came of it.
    fn line(&self) -> String {
        let model = &self.model;
        if !self.ok {
            let why = self.message.as_deref().unwrap_or("no reply");
            return format!("{model}  {}  {why}", paint(TextStyle::Bad, "failed"));
        }
        let price = self.usd.map(|usd| usd.to_string());
        let price = price.unwrap_or_else(|| "its price is unknown".to_owned());
        let time = self.seconds.map(|seconds| format!("{seconds:.1} s, "));
        let time = time.unwrap_or_default();
        format!("{model}  {}  {time}{price}", paint(TextStyle::Good, "ok"))
    }
}
