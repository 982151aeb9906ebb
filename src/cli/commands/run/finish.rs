//! Prints the end of a run: what failed, the summary.

use serde::Serialize;

use crate::cli::command_line::CommandLine;
use crate::cli::format::{cost, count, duration, money, percent, short};
use crate::cli::terminal::{Console, TextStyle, print_failures};
use crate::parts::PartRecord;
use crate::report::{comparison_table, note_count, screen, summary_table};
use crate::results::{ForecastTotals, Manifest, Outcome, ResultsFolder, StageCounts, Summary, Unused, names};
use base::units::{Tokens, Usd};

/// Number of failure causes that are printed; the manifest lists every failure.
const SHOWN_CAUSES: usize = 8;

/// Prints the summary table, failures, cost, and the `next` command. With `--quiet`, only the failures.
pub(super) fn print_summary(
    summary: &Summary,
    manifest: &Manifest,
    folder: &ResultsFolder,
    (next, all): (&str, bool),
    console: &Console,
) {
    console.json(summary);
    if !console.is_quiet {
        print_results(summary, manifest, all, console);
    }
    match print_failures(&manifest.failures, SHOWN_CAUSES, console) {
        0 => {}
        other => console.eprint(&format!("… and {other} more in {}", folder.file(names::MANIFEST).display())),
    }
    if console.is_quiet {
        return;
    }
    let details = [early_cutoff_line(manifest), prompt_cache_line(manifest)].into_iter().filter(|_| all);
    let lines = details.chain([unused_line(manifest), forecast_line(manifest)]).flatten();
    lines.for_each(|line| console.print(&line));
    let notes = note_count(summary, manifest);
    let notes = if all || notes == 0 { String::new() } else { format!(" · {} (--all)", count(notes, "note")) };
    let label = console.paint(TextStyle::Strong, &manifest.label);
    console.print(&format!("{label} · {}{notes}", totals(manifest)));
    print_report_path(folder, console);
    console.print(&console.labelled(TextStyle::Hint, "next:", next));
}

/// Lines that follow the results on a screen: failures, totals, the report, the next command.
const LINES_AFTER: usize = 4;
/// Lines of a screen.
const SCREEN: usize = 24;

/// Prints results on one screen, or in every table.
pub(crate) fn print_results(summary: &Summary, manifest: &Manifest, all: bool, console: &Console) {
    let width = console.width();
    console.print(&console.styled(&screen(summary, manifest, width, SCREEN - LINES_AFTER)));
    if !all {
        return;
    }
    let mut tables = summary_table(summary, manifest, width);
    if let Some(comparison) = &summary.comparison {
        tables.blank_line();
        tables.append(comparison_table(comparison, manifest.design.locale, width));
    }
    console.print(&console.styled(&tables));
}

/// Prints label, cost, requests and duration, and where the report is.
pub(super) fn print_totals(manifest: &Manifest, folder: &ResultsFolder, console: &Console) {
    console.print(&format!("{} · {}", console.paint(TextStyle::Strong, &manifest.label), totals(manifest)));
    print_report_path(folder, console);
}

fn print_report_path(folder: &ResultsFolder, console: &Console) {
    console.print(&format!("{} {}", console.paint(TextStyle::Dim, "report:"), folder.file(names::HTML).display()));
}

/// What a part did, as JSON.
#[derive(Serialize)]
struct PartRunJson<'m> {
    label: &'m str,
    #[serde(flatten)]
    part: Option<PartRecord>,
    folder: String,
    outcome: Outcome,
    requests_sent: u64,
    usd: Option<Usd>,
    wall_s: f64,
}

/// Prints failures, cost, and the command that merges.
pub(super) fn print_part(manifest: &Manifest, folder: &ResultsFolder, console: &Console) {
    let Manifest { label, part, outcome, requests_sent, usd, wall_s, .. } = manifest;
    let (part, outcome, requests_sent, usd, wall_s) = (*part, *outcome, *requests_sent, *usd, *wall_s);
    let path = folder.path().display().to_string();
    console.json(&PartRunJson { label, part, folder: path.clone(), outcome, requests_sent, usd, wall_s });
    print_failures(&manifest.failures, SHOWN_CAUSES, console);
    if console.is_quiet || console.is_json {
        return;
    }
    unused_line(manifest).into_iter().for_each(|line| console.print(&line));
    let (number, of) = part.map(|part| (part.number.to_string(), part.number.of().get())).unwrap_or_default();
    console.print(&format!(
        "{} · {}",
        console.paint(TextStyle::Strong, &format!("{label} {number}")),
        totals(manifest)
    ));
    console.print(&console.labelled(TextStyle::Dim, "part:", path));
    let typed = CommandLine::current();
    let merge = typed.clone().without("part").without("whole_limits").with("parts", &format!("--parts {of}"));
    let next = if outcome == Outcome::Complete { merge } else { typed };
    console.print(&console.labelled(TextStyle::Hint, "next:", next.command("run")));
}

/// Cost, cached share, requests and duration.
fn totals(manifest: &Manifest) -> String {
    format!(
        "{} · {} from the cache · {} · {}",
        cost(manifest.usd),
        percent(manifest.cached_share()),
        count(manifest.requests_sent, "request"),
        duration(manifest.wall_s),
    )
}

/// How many actions early cutoff skipped.
fn early_cutoff_line(manifest: &Manifest) -> Option<String> {
    let early_cutoff: u64 = manifest.stages.values().map(|stage| stage.early_cutoff).sum();
    let text =
        || format!("{} skipped by early cutoff: their inputs came out unchanged.", count(early_cutoff, "action"));
    (early_cutoff > 0).then(text)
}

/// The savings by providers' prompt caches, if any.
fn prompt_cache_line(manifest: &Manifest) -> Option<String> {
    let (cached, input) = (manifest.usage.cached_input?.0, manifest.usage.input?.0);
    let share = (cached > 0 && input > 0).then(|| cached as f64 / input as f64);
    let saved = money(Some(manifest.saved_by_prompt_cache));
    let of = |part: Tokens, all: Tokens| percent(Some(part.0 as f64 / all.0.max(1) as f64));
    let stages = manifest.stages.iter().filter(|(_, counts)| counts.prompt_cache.repeated.0 > 0);
    let stages: Vec<String> = stages
        .map(|(stage, StageCounts { prompt_cache: tokens, .. })| {
            let (served, repeated) = (of(tokens.served, tokens.input), of(tokens.repeated, tokens.input));
            format!("{} {served}, {repeated} were sent before", stage.name())
        })
        .collect();
    let stages = if stages.is_empty() { String::new() } else { format!(" ({})", stages.join("; ")) };
    Some(format!(
        "{} of the input tokens came from providers' prompt caches, which saved {saved}{stages}.",
        percent(Some(share?))
    ))
}

/// The cost of replies without a result.
fn unused_line(manifest: &Manifest) -> Option<String> {
    let Unused { replies, usd, unanswered, .. } = manifest.unused;
    let lost = || match usd {
        Some(usd) => format!("{} gave no result and cost {}", count(replies, "reply"), money(Some(usd))),
        None => format!("{} gave no result, at unknown cost", count(replies, "reply")),
    };
    let replies = (replies > 0).then(lost);
    let were = format!("{} {}", count(unanswered, "request"), if unanswered == 1 { "was" } else { "were" });
    let unanswered = (unanswered > 0).then(|| format!("{were} never answered; whether they are billed is unknown"));
    let text: Vec<String> = [replies, unanswered].into_iter().flatten().collect();
    (!text.is_empty()).then(|| format!("{}.", text.join("; ")))
}

/// Forecast beside outcome. None for an incomplete run, since the forecast covers all of it; without money if neither
/// amount is known.
fn forecast_line(manifest: &Manifest) -> Option<String> {
    let is_whole = !matches!(manifest.outcome, Outcome::Budget | Outcome::Pending | Outcome::Interrupted)
        && manifest.stages.values().all(|stage| stage.skipped == 0);
    let forecast = manifest.forecast.filter(|forecast| is_whole && forecast.requests > 0)?;
    let ForecastTotals { requests, input_tokens, output_tokens, usd, .. } = forecast;
    let tokens = |tokens: Option<Tokens>| short(tokens.map(|tokens| tokens.0));
    let known = usd.or(manifest.usd).is_some();
    let money = known.then(|| format!(", {} / {}", money(usd), money(manifest.usd)));
    Some(format!(
        "Forecast / actual: {requests} / {} requests, {} / {} tokens in, {} / {} out{}.",
        manifest.requests_sent,
        short(Some(input_tokens)),
        tokens(manifest.usage.input),
        short(Some(output_tokens)),
        tokens(manifest.usage.output),
        money.unwrap_or_default(),
    ))
}
