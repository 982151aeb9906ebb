//! `compeval observe`: what sessions did after the compactions in their logs, and with `--economics` what they cost. Needs
//! no project, key or model.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::Args;
use guard::{Options, Report, Verdict, guard};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::json;

use crate::cli::args::{Common, OUTPUT, one_of};
use crate::cli::failure::{Exit, Failure, chain};
use crate::cli::project::{folder, given};
use crate::cli::terminal::{Console, TextStyle, labelled};
use crate::pipeline::find_pipeline;
use crate::report::{self, observed, observed_page, styled};
use base::files::write_private;
use base::locale::Locale;
use base::say;
use base::text::shell_word;
use base::threads::each;
use base::units::Tokens;
use models::{ModelRef, Prices};
use sessions::economics::{Economics, Rates, SessionSteps};
use sessions::import::{
    CompactionKind, Conversation, Format, ImportIssue, ImportedLog, Log, log_files, read_session,
};
use sessions::observe::{
    ObservedCompaction, SessionFindings, SessionObservation, combine, observe,
};

#[derive(Debug, Args)]
pub(crate) struct ObserveArgs {
    /// Log files or folders
    #[arg(required = true, value_name = "PATH", help = paths_help())]
    pub(crate) paths: Vec<PathBuf>,
    /// Read the logs as this format instead of detecting it
    #[arg(long, value_name = "FORMAT", value_parser = one_of(&Format::ALL, Format::name))]
    pub(crate) format: Option<Format>,
    /// Write the worst cases to FILE: what was read again, and what the summary said
    #[arg(long, value_name = "FILE", help_heading = OUTPUT)]
    pub(crate) html: Option<PathBuf>,
    /// Show what the sessions cost, and what the provider processed again after their compactions
    #[arg(long)]
    pub(crate) economics: bool,
    /// Price models that are not in the price list as this one, such as claude-opus-4-6
    #[arg(long, value_name = "MODEL", value_parser = priced_model, requires = "economics")]
    price_as: Option<ModelRef>,
}

/// Compactions on the page.
const CASES: usize = 20;
/// Compactions in the terminal; `--json` has all.
const LISTED: usize = 30;
/// Files in the command at the end.
const SUGGESTED: usize = 3;

pub(super) fn run(common: &Common, args: &ObserveArgs, console: &Console) -> Result<Exit, Failure> {
    let locale = console.locale;
    let files = files_of(common, args, console)?;
    let found = read_all(&files, args.format, console);
    found
        .problems
        .iter()
        .for_each(|problem| console.note(problem));
    let observation = combine(found.sessions);
    let worst = worst_first(&observation);
    let shown = |most: usize| worst.get(..most).unwrap_or(&worst);
    if let Some(path) = &args.html {
        let path = given(common, path);
        let page = observed_page(&observation, shown(CASES), found.others, locale);
        write_private(&path, page)?;
        console.note(&say!(locale, "wrote {}", "已写入 {}", path.display()));
    }
    if args.economics {
        let price_of = |model: &str, input| args.rates(model, input);
        let economics = sessions::economics::economics(found.steps, &price_of);
        return Ok(show_economics(&observation, &economics, console));
    }
    let has_project = find_pipeline(&folder(common), None).is_ok();
    console.report(&observation, || {
        let blocks = observed(&observation, shown(LISTED), found.others, locale);
        console.print(&styled(&blocks, console.whole_width()));
        if let Some(line) = rejections(&found.guarded, locale) {
            console.print(&format!("\n{line}"));
        }
        let project = has_project.then(|| folder(common));
        if let Some(next) = next(&observation, &worst, project.as_deref(), console) {
            console.print(&format!("\n{next}"));
        }
    });
    Ok(ended(observation.sessions.is_empty()))
}

/// How the command ends, which fails where it found nothing.
fn ended(is_empty: bool) -> Exit {
    match is_empty {
        true => Exit::EmptySelection,
        false => Exit::Done,
    }
}

impl ObserveArgs {
    /// What a model that a log names costs for a request with so much input.
    fn rates(&self, model: &str, input: Tokens) -> Option<Rates> {
        let listed = model_named(model).and_then(|model| rates_of(&model, input));
        listed.or_else(|| rates_of(self.price_as.as_ref()?, input))
    }
}

/// The price list knows models by their names alone.
fn model_named(text: &str) -> Option<ModelRef> {
    ModelRef::parse(text).or_else(|| ModelRef::parse(&format!("any/{text}")))
}

fn rates_of(model: &ModelRef, input: Tokens) -> Option<Rates> {
    let price = Prices::default().price(model, input)?;
    Some(Rates {
        input: price.input,
        read: price.cached_input.unwrap_or(price.input),
        write: price.cache_write.unwrap_or(price.input),
        write_hour: price.hour_write(),
        output: price.output,
    })
}

/// A model that has a price. Another one would price nothing, and the output would advise to name one.
fn priced_model(text: &str) -> Result<ModelRef, String> {
    model_named(text)
        .filter(|model| rates_of(model, Tokens(0)).is_some())
        .ok_or_else(|| "expected a model of the price list, such as claude-opus-4-6".to_owned())
}

/// Prints the costs; as JSON, beside what was observed.
fn show_economics(
    observation: &SessionObservation,
    economics: &Economics,
    console: &Console,
) -> Exit {
    let mut both = json!(observation);
    both["economics"] = json!(economics);
    console.report(&both, || {
        let sections = report::economics(economics, console.locale);
        console.print(&console.document(&sections));
    });
    ended(observation.sessions.is_empty() && economics.sessions == 0)
}

fn paths_help() -> String {
    format!(
        "Log files or folders of {}",
        Format::products(&Format::those(Format::is_observed), "or")
    )
}

/// Which logs are read, for `--help`.
pub(super) fn formats_help() -> String {
    format!(
        "Reads logs of {}. Needs no project, key or model",
        Format::products(&Format::those(Format::is_observed), "and")
    )
}

/// The hint where nothing is found: where the programs keep their sessions.
fn where_sessions_are() -> String {
    let folders = Format::those(Format::is_observed)
        .into_iter()
        .filter_map(|format| {
            let (product, folder) = (format.product(), format.session_folder()?);
            Some(format!("{folder} ({product})"))
        });
    let folders = folders.collect::<Vec<_>>().join(", ");
    format!(
        "sessions are kept in {folders}; `sqlite3 -json ~/.hermes/state.db \"SELECT * FROM messages WHERE session_id = \
         'ID' ORDER BY id\" > hermes.json` writes one of Hermes"
    )
}

/// The logs to look at, each once.
fn files_of(common: &Common, args: &ObserveArgs, console: &Console) -> Result<Vec<Log>, Failure> {
    let mut files: Vec<Log> = Vec::new();
    for path in &args.paths {
        let path = given(common, path);
        if !path.exists() {
            return Err(
                Failure::input(format!("there is no file or folder `{}`", path.display()))
                    .hinted(where_sessions_are()),
            );
        }
        let (logs, losses) = log_files(&path);
        // Every session of OpenHands has a file of state, which goes with its events.
        let told = losses
            .iter()
            .filter(|loss| !loss.file.ends_with("base_state.json"));
        told.for_each(|loss| console.note(&loss.to_string()));
        files.extend(logs);
    }
    files.sort_by(|a, b| a.path().cmp(b.path()));
    files.dedup();
    Ok(files)
}

/// The sessions of one file or of all.
#[derive(Default)]
struct ReadSessions {
    sessions: Vec<(String, SessionFindings)>,
    /// The requests of these sessions, and of those whose compactions are not analysed.
    steps: Vec<SessionSteps>,
    /// What the guard says of each recorded compaction.
    guarded: Vec<Report>,
    /// Files in none of the formats.
    others: usize,
    problems: Vec<String>,
}

/// Reads the files on all processors, one session at a time on each.
fn read_all(files: &[Log], given: Option<Format>, console: &Console) -> ReadSessions {
    let bar = bar(files.len() as u64, console);
    let read = each(files.len(), |at| {
        let findings = read_findings(&files[at], given);
        bar.inc(1);
        findings
    });
    bar.finish_and_clear();
    let mut found = ReadSessions::default();
    for read in read {
        found.others += read.others;
        found.problems.extend(read.problems);
        found.sessions.extend(read.sessions);
        found.steps.extend(read.steps);
        found.guarded.extend(read.guarded);
    }
    found
}

fn bar(files: u64, console: &Console) -> ProgressBar {
    let target = if console.draws_progress {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    };
    let bar = ProgressBar::with_draw_target(Some(files), target);
    let template = "reading {wide_bar} {pos}/{len} {eta}";
    ProgressStyle::with_template(template)
        .map(|style| bar.set_style(style))
        .ok();
    bar
}

/// What is in a log, and the places in it that could not be read.
fn findings(file: &Path, log: ImportedLog) -> ReadSessions {
    let name = file.display().to_string();
    let steps = log.conversations.iter();
    let steps = steps.map(|one| SessionSteps::new(&name, one, log.format));
    let steps = steps.collect();
    let mut analysed = log.conversations;
    analysed.retain(|_| log.format.is_observed());
    ReadSessions {
        sessions: analysed
            .iter()
            .map(|conversation| (name.clone(), observe(conversation, log.format)))
            .collect(),
        steps,
        guarded: analysed.iter().flat_map(guarded).collect(),
        others: 0,
        problems: log.losses.iter().map(ImportIssue::to_string).collect(),
    }
}

/// What the guard says of the recorded compactions of a conversation.
fn guarded(conversation: &Conversation) -> Vec<Report> {
    let numbered = conversation.recorded.iter().enumerate();
    let summaries = numbered.filter(|(_, one)| one.kind == CompactionKind::Summary);
    let reports = summaries.filter_map(|(nth, one)| {
        let (before, after) = conversation.histories_at(nth);
        let options = Options {
            begins_midway: conversation.begins_midway,
            is_opaque: one.summary.is_none(),
            ..Options::default()
        };
        guard(&before, &after, &options).ok()
    });
    reports.collect()
}

/// How many of the recorded compactions the guard would have rejected, and why.
fn rejections(reports: &[Report], locale: Locale) -> Option<String> {
    let rejected = reports.iter();
    let rejected = rejected.filter(|report| report.verdict == Verdict::Reject);
    let findings = rejected.clone().flat_map(|report| &report.findings);
    let grave = findings.filter(|finding| finding.severity == Verdict::Reject);
    let kinds: BTreeSet<String> = grave
        .map(|finding| finding.kind.replace('_', " "))
        .collect();
    let (count, all) = (rejected.count(), reports.len());
    let why = kinds
        .into_iter()
        .collect::<Vec<_>>()
        .join(locale.pick(", ", "、"));
    let colon = if why.is_empty() {
        ""
    } else {
        locale.pick(": ", "：")
    };
    (all > 0).then(|| {
        say!(
            locale,
            "{count} of {all} compactions would have been rejected by `compeval guard`{colon}{why}",
            "{all} 次压缩中有 {count} 次会被 `compeval guard` 拒绝{colon}{why}"
        )
    })
}

/// Reads a log.
fn read_findings(log: &Log, given: Option<Format>) -> ReadSessions {
    let read = match log {
        Log::File(file) => read_session(file, given),
        Log::Events { .. } => sessions::import::read(log, None).map(Some),
    };
    match read {
        Ok(None) => ReadSessions {
            others: 1,
            ..ReadSessions::default()
        },
        Err(error) => ReadSessions {
            problems: vec![chain(&error)],
            ..ReadSessions::default()
        },
        Ok(Some(found)) => findings(log.path(), found),
    }
}

/// The places of all compactions, the worst first: by re-reads, repeated failures and details fetched again.
fn worst_first(observation: &SessionObservation) -> Vec<usize> {
    let mut compactions: Vec<(usize, &ObservedCompaction)> =
        (0..).zip(&observation.compactions).collect();
    compactions.sort_by_key(|(_, one)| {
        let fetched = one.references.map_or(0, |uses| uses.fetched_again);
        let harm = (
            one.figures.re_reads.unwrap_or(0),
            one.figures.repeated_failures.unwrap_or(0),
            fetched,
        );
        std::cmp::Reverse(harm)
    });
    compactions.into_iter().map(|(at, _)| at).collect()
}

/// The command that makes fixtures of the worst sessions, and first a project where there is none.
fn next(
    observation: &SessionObservation,
    worst: &[usize],
    project: Option<&Path>,
    console: &Console,
) -> Option<String> {
    let locale = console.locale;
    let mut files: Vec<&String> = Vec::new();
    for file in worst.iter().filter_map(|at| observation.files.get(*at)) {
        if !files.contains(&file) && files.len() < SUGGESTED {
            files.push(file);
        }
    }
    if files.is_empty() {
        return None;
    }
    let files = files
        .into_iter()
        .map(|file| match (project, std::path::absolute(file)) {
            // A command names files as they are found from the project.
            (Some(project), _) => {
                let inside = Path::new(file).strip_prefix(project);
                shell_word(&inside.unwrap_or(Path::new(file)).display().to_string())
            }
            (None, Ok(path)) => shell_word(&path.display().to_string()),
            (None, Err(_)) => shell_word(file),
        });
    let files = files.collect::<Vec<_>>().join(" ");
    let next = if project.is_some() {
        console.next_line(
            locale,
            format_args!("compeval fixture import {files} --at-compactions"),
        )
    } else {
        let made = format!(
            "compeval init eval --empty && compeval -C eval fixture import {files} --at-compactions"
        );
        labelled(TextStyle::Hint, locale.pick("next:", "下一步："), made)
    };
    let has_summary = observation
        .compactions
        .iter()
        .any(|one| one.summary.is_some());
    let grade = locale.pick(
        "After the import, a method with strategy = \"recorded\" grades the summaries that the agent really wrote.\n",
        "导入后，用 strategy = \"recorded\" 的方法即可评分代理实际写下的摘要。\n",
    );
    Some(format!("{}{next}", if has_summary { grade } else { "" }))
}
