//! Words the events of an evaluation that are worth a line of their own.

use crate::cli::access::access_list;
use crate::cli::findings::render_some;
use crate::cli::format::{count, money};
use crate::cli::part::part_line;
use crate::cli::terminal::{Console, TextStyle};
use crate::evaluation::Event;
use crate::pipeline::Problems;
use crate::plan::CostEstimate;
use crate::remote::SharedSummary;

/// Prints what an event has to say, if that is anything.
pub(crate) fn print_notice(event: &Event<'_>, console: &Console) {
    match event {
        Event::Opened { warnings, .. } => print_warnings(console, warnings),
        Event::Part(part) => console.note(&part_line(part)),
        Event::RemoteIgnored => console.note(&console.labelled(
            TextStyle::Hint,
            "note:",
            "CI is set, so the remote of the pipeline is not used; COMPEVAL_REMOTE and COMPEVAL_TRUST name one",
        )),
        Event::RemoteUnavailable(error) => {
            console.warn("remote:", format_args!("{error}; this command continues without it"));
        }
        Event::RemoteLacks { url, estimate: CostEstimate { requests, usd, .. } } => {
            if *requests > 0 {
                let (asked, usd) = (count(*requests, "request"), money(*usd));
                console.note(&format!("{url} has not all of it: this run sends about {asked}, for about {usd}."));
            }
        }
        Event::RemoteWarning(warning) => console.warn("remote:", warning),
        Event::CacheNotice(notice) => console.warn("cache:", notice),
        Event::Untrusted(entries) => {
            let text =
                format!("{entries} pulled entries are of writers that are not in `trust`; they count as missing");
            console.warn("cache:", text);
        }
        Event::Access(access) => console.note(&access_list(access, console)),
        Event::Exchanged(summary) => transfers(summary).into_iter().for_each(|line| console.note(&line)),
        Event::OutputsChanged { label, keys } => {
            let keys: Vec<String> = keys.iter().map(|key| key.0.short()).collect();
            let text = format!(
                "pulled outputs differ from those that the earlier results of `{label}` were made from ({}, …); \
                 `compeval cache show KEY` says who wrote them",
                keys.join(", ")
            );
            console.warn("warning:", text);
        }
        Event::Started(_)
        | Event::Added { .. }
        | Event::Step(_)
        | Event::Progress(_)
        | Event::WorkIsOver
        | Event::Ended(_) => {}
    }
}

/// Prints warnings: one at its place, several by kind.
pub(crate) fn print_warnings(console: &Console, warnings: &Problems) {
    if !warnings.is_empty() {
        console.note(&render_some(warnings, console));
    }
}

/// What was pulled and uploaded, in a line; `None` if nothing was.
fn transfers(summary: &SharedSummary) -> Option<String> {
    let (pulled, pushed) = (summary.pulled.entries, summary.pushed.entries);
    let done: Vec<String> = [(pulled, "pulled"), (pushed, "uploaded")]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, verb)| format!("{count} {verb}"))
        .collect();
    (!done.is_empty()).then(|| format!("Remote {}: {}.", summary.url, done.join(", ")))
}
