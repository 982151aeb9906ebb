//! The page of `observe`: the worst compactions, with what was read again and what the summary said. No script.

use std::fmt::Write as _;

use super::chunks::escape;
use super::economics::economics_sections;
use sessions::economics::Economics;
use sessions::observe::{ObservedCompaction, SessionObservation};

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}\
table{border-collapse:collapse;width:100%}td,th{padding:.25rem .6rem;text-align:right;border-bottom:1px solid #8884}\
td:first-child,th:first-child{text-align:left;overflow-wrap:anywhere}section{border-top:2px solid #8886;margin-top:2rem}\
pre,blockquote{white-space:pre-wrap;overflow-wrap:anywhere;background:#8881;padding:.6rem;margin:.5rem 0}\
:root{color-scheme:light dark}";

/// The page; `cases` are places in `observation.compactions`, the worst first.
pub fn observed_page(observation: &SessionObservation, cases: &[usize], economics: Option<&Economics>) -> String {
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n<meta http-equiv=\"Content-Security-Policy\" \
         content=\"default-src 'none'; style-src 'unsafe-inline'\">\n<meta name=\"viewport\" \
         content=\"width=device-width\">\n<title>compeval observe</title><style>{STYLE}</style></head><body>\n\
         <h1>After {} compactions</h1>\n<p>{} sessions; {} of {} counted compactions have a control on both sides. Worst first; counts are of the 20 turns after each \
         compaction.</p>\n",
        observation.compactions.len(),
        observation.sessions.len(),
        observation.coverage.with_controls,
        observation.coverage.counted,
    );
    let shown: Vec<&ObservedCompaction> = cases.iter().filter_map(|at| observation.compactions.get(*at)).collect();
    page.push_str(&overview(&shown));
    page.extend(economics.map(economics_sections));
    shown.iter().enumerate().for_each(|(number, case)| page.push_str(&section(number + 1, case)));
    page.push_str("</body></html>\n");
    page
}

fn number<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| "–".to_owned(), |value| value.to_string())
}

fn overview(cases: &[&ObservedCompaction]) -> String {
    let mut table = String::from(
        "<table><thead><tr><th>session</th><th>at</th><th>tokens before</th><th>after</th><th>turns</th><th>reads</th>\
         <th>re-reads</th><th>repeated failures</th><th>turns to edit</th><th>fetched again</th></tr></thead><tbody>\n",
    );
    for (at, case) in cases.iter().enumerate() {
        let figures = &case.figures;
        let share = case.fetched_again_share.map(|share| format!("{:.0}%", share * 100.0));
        let cells = [
            case.at.to_string(),
            number(case.tokens_before),
            number(case.tokens_after),
            figures.turns.to_string(),
            number(figures.reads),
            number(figures.re_reads),
            number(figures.repeated_failures),
            number(figures.turns_to_edit),
            number(share),
        ];
        // Writing to a string cannot fail.
        let _ = write!(table, "<tr><td><a href=\"#case-{}\">{}</a></td>", at + 1, escape(&case.session));
        cells.iter().for_each(|cell| table.push_str(&format!("<td>{cell}</td>")));
        table.push_str("</tr>\n");
    }
    table.push_str("</tbody></table>\n");
    table
}

fn section(number: usize, case: &ObservedCompaction) -> String {
    let time = case.time.as_ref().map(|time| format!(", {}", escape(time))).unwrap_or_default();
    let mut out = format!(
        "<section id=\"case-{number}\"><h2>{}</h2><p>{}, before message {}{time}</p>\n",
        escape(&case.session),
        escape(case.format),
        case.at
    );
    if let Some(reason) = case.not_counted {
        out.push_str(&format!("<p>Not counted: {}.</p>\n", escape(reason)));
    }
    let lines = |lines: Option<[u64; 2]>| lines.map(|[a, b]| format!(", lines {a} to {b}")).unwrap_or_default();
    let read = case.re_read.iter().map(|one| format!("{}{} (turn {})", one.path, lines(one.lines), one.turn));
    out.push_str(&list("Read again, unchanged", read));
    let failed = case.repeated.iter().map(|one| format!("{}: {} (turn {})", one.command, one.error, one.turn));
    out.push_str(&list("Failed again with the same error", failed));
    if !case.corrections.is_empty() {
        out.push_str("<h3>May be corrections by the user</h3>\n");
        case.corrections.iter().for_each(|text| out.push_str(&format!("<blockquote>{}</blockquote>\n", escape(text))));
    }
    out.push_str("<h3>What the summary said</h3>\n");
    match &case.summary {
        Some(summary) => out.push_str(&format!("<pre>{}</pre>\n", escape(summary))),
        None => out.push_str("<p>The log has no readable summary.</p>\n"),
    }
    out.push_str("</section>\n");
    out
}

fn list(heading: &str, items: impl Iterator<Item = String>) -> String {
    let items: String = items.map(|item| format!("<li>{}</li>\n", escape(&item))).collect();
    if items.is_empty() { String::new() } else { format!("<h3>{heading}</h3>\n<ul>{items}</ul>\n") }
}
