//! The text of `observe --economics`: the bill, the worst compactions, the back-test, and cost against threshold if that
//! holds.

use std::collections::BTreeMap;

use crate::cli::format::{amount, count, money, percent, short};
use crate::cli::terminal::{Column, Console, render_table};
use base::text::grouped;
use base::units::Usd;
use sessions::economics::{Economics, FlatRegion, FormatError, MOST_ERROR, MethodEconomics, Rewrite, SessionError};
use sessions::observe::SESSIONS_FOR_INTERVAL;

/// Compactions that are listed; `--json` has all.
const WORST: usize = 3;
/// Sessions that are named; `--json` has all.
const NAMED: usize = 3;

pub(super) fn text(economics: &Economics, others: usize, console: &Console) -> String {
    let mut paragraphs = vec![bill(economics, others)];
    paragraphs.extend(rewrites(economics, console));
    paragraphs.extend(back_test(economics));
    match &economics.withheld {
        Some(why) => paragraphs.push(format!("Nothing is said of other policies: {why}.")),
        None => {
            paragraphs.push(methods(economics, console));
            paragraphs.push(notes(economics));
        }
    }
    paragraphs.extend(left_out(economics));
    paragraphs.join("\n\n")
}

fn bill(economics: &Economics, others: usize) -> String {
    let bill = &economics.bill;
    let mut text = format!("{}, {}", count(economics.sessions, "session"), count(bill.requests, "request"));
    if economics.sessions > 0 {
        let total = bill.total_usd();
        let share = |usd: f64| percent((total > 0.0).then(|| usd / total));
        text.push_str(&format!(
            ": {} at list prices\nof it cache writes {}, cache reads {}, other input {}, output {}",
            money(Some(Usd(total))),
            share(bill.usd.cache_write),
            share(bill.usd.cache_read),
            share(bill.usd.input),
            share(bill.usd.output),
        ));
        text.push_str(&format!(
            "\ntokens: {} written, {} read, {} other input, {} output",
            short(Some(bill.cache_write)),
            short(Some(bill.cache_read)),
            short(Some(bill.input)),
            short(Some(bill.output)),
        ));
    }
    if others > 0 {
        text.push_str(&format!("\n{} of other formats not counted", count(others, "file")));
    }
    text
}

fn rewrites(economics: &Economics, console: &Console) -> Option<String> {
    let worst: Vec<&Rewrite> = economics.rewrites.iter().take(WORST).collect();
    let tokens: u64 = worst.iter().map(|one| one.tokens).sum();
    let usd: Option<f64> = worst.iter().map(|one| one.usd).sum();
    let head = match worst.len() {
        0 => return None,
        1 => "The one recorded compaction".to_owned(),
        number if number == economics.rewrites.len() => format!("The {number} recorded compactions"),
        number => format!("The worst {number} of {} recorded compactions", economics.rewrites.len()),
    };
    let cost = usd.map(|usd| format!(" ({})", money(Some(Usd(usd))))).unwrap_or_default();
    let columns = [
        Column::Left("session"),
        Column::Right("at"),
        Column::Left("time"),
        Column::Right("rewritten"),
        Column::Right("cost"),
    ];
    let row = |one: &&Rewrite| {
        vec![
            one.session.clone(),
            one.at.to_string(),
            one.time.as_deref().map_or("–", |time| time.get(..16).unwrap_or(time)).replace('T', " "),
            grouped(one.tokens),
            money(one.usd.map(Usd)),
        ]
    };
    let table = render_table(&columns, worst.iter().map(row), console.width());
    Some(format!("{head} made the provider process {} tokens anew{cost}:\n{table}", grouped(tokens)))
}

fn back_test(economics: &Economics) -> Option<String> {
    let test = &economics.back_test;
    let format = |one: &FormatError| {
        let use_of = if one.holds { "" } else { ", so nothing is said of these" };
        format!("  {}: {} in {}{use_of}", one.format, percent(Some(one.median_error)), count(one.sessions, "session"))
    };
    let formats: Vec<String> = test.formats.iter().map(format).collect();
    let off = |one: &SessionError| {
        let [logged, computed] = one.cache_read.map(|tokens| short(Some(tokens)));
        format!("{} {}, {logged} of {computed} read from the cache", one.session, percent(Some(one.error)))
    };
    let worst: Vec<String> = test.sessions.iter().filter(|one| one.error > MOST_ERROR).take(NAMED).map(off).collect();
    let worst = if worst.is_empty() { String::new() } else { format!("\n  worst: {}", worst.join("; ")) };
    (!formats.is_empty()).then(|| {
        format!(
            "Back-test: how far input computed from sizes, times and compactions is off the logged bill, as a median\n{}{worst}",
            formats.join("\n")
        )
    })
}

fn methods(economics: &Economics, console: &Console) -> String {
    let columns = [
        Column::Left("method"),
        Column::Right("flat from"),
        Column::Right("to"),
        Column::Right("cost"),
        Column::Right("compactions"),
        Column::Right("rewritten"),
        Column::Right("freed"),
        Column::Right("floor"),
        Column::Right("cycles"),
        Column::Right("difference"),
    ];
    let table = render_table(&columns, economics.methods.iter().map(row), console.width());
    let own: Vec<String> = economics.methods.iter().filter_map(at_trigger).collect();
    let own = if own.is_empty() { String::new() } else { format!("\n{}", own.join("\n")) };
    format!("Cost against threshold; flat is where it is within 2% of the least:\n{table}{own}")
}

fn row(one: &MethodEconomics) -> Vec<String> {
    let FlatRegion { from, to, least_usd, .. } = one.curve.flat;
    let middle = one.curve.middle().map(|point| point.cost);
    let number = |of: Option<f64>| short(of.map(|number| number as u64));
    let cycles = one.life.and_then(|life| life.cycles).map_or_else(|| "–".to_owned(), |cycles| cycles.to_string());
    let difference = one.difference.map_or_else(
        || "–".to_owned(),
        |found| {
            let ci95 = found.ci95.map(|ci| format!(" [{:+.0}, {:+.0}]", 100.0 * ci.low(), 100.0 * ci.high()));
            format!("{:+.0}%{}", 100.0 * found.center, ci95.unwrap_or_default())
        },
    );
    vec![
        one.method.clone(),
        short(Some(from)),
        to.map_or_else(|| "any".to_owned(), |to| short(Some(to))),
        money(Some(Usd(least_usd))),
        middle.map_or_else(|| "–".to_owned(), |cost| cost.compactions.to_string()),
        short(middle.map(|cost| cost.rewritten)),
        number(one.life.map(|life| life.freed)),
        number(one.life.map(|life| life.floor)),
        cycles,
        difference,
    ]
}

fn at_trigger(one: &MethodEconomics) -> Option<String> {
    let cost = one.at_trigger?;
    let above = cost.usd / one.curve.flat.least_usd - 1.0;
    Some(format!(
        "At your trigger {}: {}, {:+.1}% of the least, {}",
        one.method,
        money(Some(Usd(cost.usd))),
        100.0 * above,
        count(cost.compactions, "compaction"),
    ))
}

fn notes(economics: &Economics) -> String {
    let recorded = economics.as_recorded;
    let mut lines = vec![format!(
        "As recorded, with the requests of the compactions, which no log counts, {} cost {}.",
        count(economics.simulated, "session"),
        money(Some(Usd(recorded.usd)))
    )];
    if recorded.expiries > 0 {
        lines.push(format!(
            "The cache had expired before {}, with {} tokens: pauses, which no threshold changes.",
            count(recorded.expiries, "request"),
            short(Some(recorded.expired))
        ));
    }
    lines.push(match economics.refetch {
        Some(tokens) => format!(
            "Read again after each compaction: {} tokens, the mean excess of these logs over their controls.",
            amount(tokens)
        ),
        None => "What is read again after a compaction is not known, as none has controls: it is left out.".to_owned(),
    });
    if economics.methods.iter().all(|one| one.difference.is_none()) {
        lines.push(format!(
            "No difference from what was recorded: that needs {SESSIONS_FOR_INTERVAL} logs with their own costs."
        ));
    }
    let largest = economics.methods.iter().filter_map(|one| Some((one.largest_measured?, one)));
    for (tokens, one) in largest.filter(|(tokens, one)| one.curve.flat.from > *tokens) {
        lines.push(format!(
            "{}: measured on at most {} replaced tokens; its sizes here are extrapolated.",
            one.method,
            grouped(tokens)
        ));
    }
    let lowest = economics.methods.iter().filter(|one| one.curve.is_least_at_lowest()).map(|one| one.method.as_str());
    let lowest: Vec<&str> = lowest.collect();
    if !lowest.is_empty() {
        lines.push(format!(
            "Cheapest at the lowest threshold that was simulated: {}. What is lost with every compaction has no price here.",
            lowest.join(", ")
        ));
    }
    lines.push("Accounting only: an agent that is compacted elsewhere acts differently afterwards.".to_owned());
    if economics.partial_output {
        lines.push("Logs of Claude Code count output in part only, so it costs more than is shown.".to_owned());
    }
    lines.join("\n")
}

fn left_out(economics: &Economics) -> Option<String> {
    let mut by_reason: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for one in &economics.left_out {
        by_reason.entry(one.why.to_string()).or_default().push(&one.session);
    }
    let line = |(why, sessions): (&String, &Vec<&str>)| {
        let named = sessions.iter().take(NAMED).copied().collect::<Vec<&str>>().join(", ");
        let more = sessions.len().saturating_sub(NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("left out: {named}{more}: {why}")
    };
    let lines: Vec<String> = by_reason.iter().map(line).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}
