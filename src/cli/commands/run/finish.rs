//! How a run's end is told: why it stopped, what failed, and the last lines.

use std::collections::BTreeMap;

use super::publish::Published;
use crate::cli::engine::RunOptions;
use crate::cli::failure::Exit;
use crate::cli::format::{cost, count, duration, money, percent, short};
use crate::cli::terminal::{Console, Meaning, print_failures};
use crate::report::summary_table;
use crate::results::{Failure, Forecast, Manifest, Outcome, ResultsFolder, Unused, names};
use crate::scheduler::{RunOutcome, UntestedJudge};
use crate::units::Tokens;

/// Causes of failures told on the terminal; the manifest holds every failure.
const SHOWN_CAUSES: usize = 8;

/// Tells why a run ended before all was done, if it did; how it ended, as an exit. `weaknesses` are what judges failed
/// in, by judge.
pub(super) fn print_stop_reasons(
    ended: &RunOutcome,
    weaknesses: &BTreeMap<String, Vec<String>>,
    failures: &[Failure],
    options: &RunOptions,
    console: &Console,
) -> Exit {
    let mut exit = Exit::Done;
    let say = |what: &str| console.eprint(&format!("{} {what}", console.paint(Meaning::Warning, "stopped:")));
    for UntestedJudge { judge, why } in &ended.untested {
        let grades = if options.allow_weak_judge { "its grades may mean little" } else { "it grades nothing" };
        say(&format!("the self-test of judge {judge} could not be completed, so {grades}: {why}"));
        exit = exit.and(Exit::Incomplete);
    }
    if !ended.unaccounted.is_empty() {
        say(&format!("only {} were told of: a fault of compeval, please report it", ended.unaccounted.join(", ")));
        exit = exit.and(Exit::Incomplete);
    }
    if let Some(reached) = ended.budget {
        say(&format!("{reached}; run again with a larger budget to go on where this ended"));
        exit = exit.and(Exit::Budget);
    }
    if !ended.weak_judges.is_empty() {
        print_weak_judges(&ended.weak_judges, weaknesses, options.allow_weak_judge, console);
        exit = if options.allow_weak_judge { exit } else { exit.and(Exit::Error) };
    }
    if let Some(broken) = &ended.broken {
        say(broken);
        exit = exit.and(Exit::Error);
    }
    if ended.interrupted {
        say("interrupted; what was finished is kept, and running again goes on from there");
        exit = exit.and(Exit::Interrupted);
    }
    if !failures.is_empty() {
        exit = exit.and(Exit::Incomplete);
    } else if ended.skipped > 0 && exit == Exit::Done {
        exit = Exit::Pending;
    }
    exit
}

/// Which judges failed their self-test, and in what.
fn print_weak_judges(
    judges: &[String],
    weaknesses: &BTreeMap<String, Vec<String>>,
    is_allowed: bool,
    console: &Console,
) {
    let names = judges.join(", ");
    let told = format!("judge failed its self-test: {names} (`compeval judge selftest` shows how)");
    let (mark, then) = match is_allowed {
        true => ("warning:", "its grades may mean little"),
        false => ("stopped:", "--allow-weak-judge goes on all the same"),
    };
    console.eprint(&format!("{} {told}; {then}", console.paint(Meaning::Warning, mark)));
    for judge in judges {
        for weakness in weaknesses.get(judge).into_iter().flatten() {
            console.eprint(&format!("  {judge}: {weakness}"));
        }
    }
}

/// The end as the manifest keeps it.
pub(super) fn outcome_of(exit: Exit, ended: &RunOutcome, failures: &[Failure]) -> Outcome {
    match exit {
        Exit::Done | Exit::Regression => Outcome::Complete,
        Exit::Budget => Outcome::Budget,
        Exit::Pending => Outcome::Pending,
        Exit::Interrupted => Outcome::Interrupted,
        // A judge that was found weak when all it had to do was in the cache.
        Exit::Error if ended.skipped == 0 && failures.is_empty() && ended.broken.is_none() => Outcome::Complete,
        Exit::Incomplete | Exit::Error | Exit::BadInput | Exit::EmptySelection => Outcome::Incomplete,
    }
}

/// The table, and the last lines: label, cost, share from the cache, and what to type `next`.
pub(super) fn print_summary(published: &Published, folder: &ResultsFolder, next: &str, console: &Console) {
    let Published { summary, manifest, .. } = published;
    console.json(summary);
    let table = summary_table(summary, manifest, console.width());
    console.print(&console.styled(&table));
    match print_failures(&manifest.failures, SHOWN_CAUSES, console) {
        0 => {}
        other => console.eprint(&format!("… and {other} more in {}", folder.file(names::MANIFEST).display())),
    }
    let lines =
        [early_cutoff_line(manifest), prompt_cache_line(manifest), unused_line(manifest), forecast_line(manifest)];
    lines.into_iter().flatten().for_each(|line| console.print(&line));
    console.print(&format!(
        "{} · {} · {} from the cache · {} · {}",
        console.paint(Meaning::Strong, &manifest.label),
        cost(manifest.usd),
        percent(manifest.cached_share()),
        count(manifest.requests_sent, "request"),
        duration(manifest.wall_s),
    ));
    console.print(&format!("{} {}", console.paint(Meaning::Dim, "report:"), folder.file(names::HTML).display()));
    console.print(&format!("{} {next}", console.paint(Meaning::Hint, "next:")));
}

/// What early cutoff spared.
fn early_cutoff_line(manifest: &Manifest) -> Option<String> {
    let early_cutoff = manifest.stages.values().map(|stage| stage.early_cutoff).sum();
    let told = || format!("{} cut off: what they build on came out as it was.", count(early_cutoff, "action"));
    (early_cutoff > 0).then(told)
}

/// What the providers' prompt caches were worth; nothing if none was used.
fn prompt_cache_line(manifest: &Manifest) -> Option<String> {
    let (cached, input) = (manifest.usage.cached_input?.0, manifest.usage.input?.0);
    let share = (cached > 0 && input > 0).then(|| cached as f64 / input as f64);
    let saved = money(Some(manifest.saved_by_prompt_cache));
    Some(format!(
        "{} of the input tokens came from providers' prompt caches, which saved {saved}.",
        percent(Some(share?))
    ))
}

/// What was paid for nothing.
fn unused_line(manifest: &Manifest) -> Option<String> {
    let Unused { replies, usd, unanswered, .. } = manifest.unused;
    let lost = || match usd {
        Some(usd) => format!("{} gave no result and cost {}", of_replies(replies), money(Some(usd))),
        None => format!("{} gave no result, at a cost that is unknown", of_replies(replies)),
    };
    let replies = (replies > 0).then(lost);
    let unanswered = (unanswered > 0)
        .then(|| format!("{} never answered, and nobody knows whether they are billed", were(unanswered)));
    let told: Vec<String> = [replies, unanswered].into_iter().flatten().collect();
    (!told.is_empty()).then(|| format!("{}.", told.join("; ")))
}

fn of_replies(number: u64) -> String {
    if number == 1 { "1 reply".to_owned() } else { format!("{number} replies") }
}

fn were(requests: u64) -> String {
    format!("{} {}", count(requests, "request"), if requests == 1 { "was" } else { "were" })
}

/// How good the forecast was; nothing of a run that left something undone, for it was forecast too. Of money nothing
/// is said where neither amount is known.
fn forecast_line(manifest: &Manifest) -> Option<String> {
    let is_whole = !matches!(manifest.outcome, Outcome::Budget | Outcome::Pending | Outcome::Interrupted)
        && manifest.stages.values().all(|stage| stage.skipped == 0);
    let forecast = manifest.forecast.filter(|forecast| is_whole && forecast.requests > 0)?;
    let Forecast { requests, input_tokens, output_tokens, usd, .. } = forecast;
    let tokens = |tokens: Option<Tokens>| short(tokens.map(|tokens| tokens.0));
    let known = usd.or(manifest.usd).is_some();
    let money = known.then(|| format!(", {} and {}", money(usd), money(manifest.usd)));
    Some(format!(
        "Forecast and outcome: {requests} and {} requests, {} and {} tokens in, {} and {} out{}.",
        manifest.requests_sent,
        short(Some(input_tokens)),
        tokens(manifest.usage.input),
        short(Some(output_tokens)),
        tokens(manifest.usage.output),
        money.unwrap_or_default(),
    ))
}
