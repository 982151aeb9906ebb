//! The page of `observe`: the worst compactions, each with what was read again and with the summary. It has no script.

use std::fmt::Write as _;

use super::chunks::escape;
use super::document::document;
use crate::report::figures::{counted, short_time};
use base::locale::{Locale, localized};
use base::say;
use base::text::short;
use sessions::observe::{ObservedCompaction, SessionObservation};

/// The page in the printed language; `cases` are indices of `observation.compactions`, the worst first.
pub fn observed_page(observation: &SessionObservation, cases: &[usize]) -> String {
    let compactions = observation.compactions.len();
    let title = say!(
        "After {}",
        "{}之后",
        counted(compactions, ["compaction", "compactions"], "次压缩")
    );
    let sessions = counted(
        observation.sessions.len(),
        ["session", "sessions"],
        "个会话",
    );
    let coverage = observation.coverage;
    let of_known_files = counted(
        observation.reads_of_known_files(),
        ["read", "reads"],
        "次读取",
    );
    let lead = say!(
        "Re-reads of unchanged lines: {} of {of_known_files} of files read before. {sessions}; {} of {} counted compactions \
         have a control on both sides. Worst first; counts are of the 20 turns after each compaction.",
        "对已读文件的 {of_known_files}中，重读未变行的有 {} 次。{sessions}；计入的压缩中有 {}/{} 次两侧都有对照。最差的在前；\
         计数取自每次压缩之后的 20 轮。",
        observation.re_reads(),
        coverage.with_controls,
        coverage.counted,
    );
    let mut body = format!("<h1>{title}</h1>\n<p class=\"lead\">{lead}</p>\n");
    let shown: Vec<&ObservedCompaction> = cases
        .iter()
        .filter_map(|at| observation.compactions.get(*at))
        .collect();
    body.push_str(&overview(&shown));
    shown
        .iter()
        .enumerate()
        .for_each(|(number, case)| body.push_str(&section(number + 1, case)));
    document(Locale::printed(), "compeval observe", &body)
}

fn number<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| "–".to_owned(), |value| value.to_string())
}

/// The columns of the table of compactions.
pub fn compaction_columns() -> [&'static str; 10] {
    [
        localized("session", "会话"),
        localized("at", "位置"),
        localized("before", "之前"),
        localized("after", "之后"),
        localized("turns", "轮"),
        localized("reads", "读取"),
        localized("re-reads", "重读"),
        localized("fetched again", "重新取得"),
        localized("failed again", "再次失败"),
        localized("to edit", "至编辑"),
    ]
}

/// The row of a compaction in the table; a star stands where it is not counted.
pub fn compaction_row(case: &ObservedCompaction) -> Vec<String> {
    let figures = &case.figures;
    let mark = if case.not_counted.is_some() { " *" } else { "" };
    let share = case
        .fetched_again_share
        .map(|share| format!("{:.0}%", share * 100.0));
    vec![
        format!("{}{mark}", case.session),
        case.at.to_string(),
        short(case.tokens_before),
        short(case.tokens_after),
        figures.turns.to_string(),
        number(figures.reads),
        number(figures.re_reads),
        number(share),
        number(figures.repeated_failures),
        number(figures.turns_to_edit),
    ]
}

fn overview(cases: &[&ObservedCompaction]) -> String {
    let columns = compaction_columns().map(|column| format!("<th>{column}</th>"));
    let rows = cases.iter().enumerate().map(|(at, case)| {
        let cells = compaction_row(case).into_iter().enumerate();
        let cells = cells.map(|(column, text)| match column {
            0 => format!(
                "<td><a href=\"#case-{}\">{}</a></td>",
                at + 1,
                escape(&text)
            ),
            _ => format!("<td>{}</td>", escape(&text)),
        });
        format!("<tr>{}</tr>\n", cells.collect::<String>())
    });
    let mut table = format!(
        "<div class=\"wide\"><table class=\"names\"><thead><tr>{}</tr></thead><tbody>\n{}</tbody></table></div>\n",
        columns.concat(),
        rows.collect::<String>()
    );
    if cases.iter().any(|case| case.not_counted.is_some()) {
        let note = localized(
            "* not counted; the case gives the reason.",
            "* 未计入，原因见各例。",
        );
        let _ = writeln!(table, "<p>{note}</p>");
    }
    table
}

fn section(number: usize, case: &ObservedCompaction) -> String {
    let time = case
        .time
        .as_ref()
        .map(|time| format!("{}{}", localized(", ", "，"), escape(&short_time(time))))
        .unwrap_or_default();
    let place = say!(
        "{}, before message {}{time}",
        "{}，在第 {} 条消息之前{time}",
        escape(case.format),
        case.at
    );
    let mut out = format!(
        "<section id=\"case-{number}\"><h2>{}</h2><p>{place}</p>\n",
        escape(&case.session)
    );
    if let Some(reason) = case.not_counted {
        let said = say!("Not counted: {}.", "未计入：{}。", reason.message());
        let _ = writeln!(out, "<p>{}</p>", escape(&said));
    }
    let read = case.re_read.iter().map(|one| {
        let named = named(case, &one.path).map_or_else(String::new, naming);
        let lines = one
            .lines
            .map(|[a, b]| say!(", lines {a} to {b}", "，第 {a} 至 {b} 行"))
            .unwrap_or_default();
        format!("{}{lines}{}{named}", escape(&one.path), in_turn(one.turn))
    });
    out.push_str(&list(
        localized("Read again, unchanged", "未变而重读"),
        read,
    ));
    let failed = case.repeated.iter().map(|one| {
        format!(
            "{}: {}{}",
            escape(&one.command),
            escape(&one.error),
            in_turn(one.turn)
        )
    });
    out.push_str(&list(
        localized("Failed again with the same error", "以同样的错误再次失败"),
        failed,
    ));
    if !case.corrections.is_empty() {
        let _ = writeln!(
            out,
            "<h3>{}</h3>",
            localized("May be corrections by the user", "可能是用户的更正")
        );
        case.corrections
            .iter()
            .for_each(|text| out.push_str(&format!("<blockquote>{}</blockquote>\n", escape(text))));
    }
    let _ = writeln!(
        out,
        "<h3>{}</h3>",
        localized("What the summary said", "摘要的内容")
    );
    match &case.summary {
        Some(summary) => out.push_str(&format!(
            "<pre tabindex=\"0\">{}</pre>\n",
            marked(summary, case)
        )),
        None => {
            let none = localized("The log has no readable summary.", "日志中没有可读的摘要。");
            let _ = writeln!(out, "<p>{none}</p>");
        }
    }
    out.push_str("</section>\n");
    out
}

fn in_turn(turn: usize) -> String {
    say!(" (turn {turn})", "（第 {turn} 轮）")
}

/// Whether the summary names a file, as markup.
fn naming(is_named: bool) -> String {
    match is_named {
        true => format!(
            " <span class=\"kept\">✓ {}</span>",
            localized("named in the summary", "摘要中提到")
        ),
        false => format!(
            " <span class=\"lost\">× {}</span>",
            localized("not named in the summary", "摘要中未提到")
        ),
    }
}

/// Whether the summary names the file, by its path or by the last part of it; `None` if the summary cannot be read.
fn named(case: &ObservedCompaction, path: &str) -> Option<bool> {
    let summary = case.summary.as_ref()?;
    Some(!places(summary, path).is_empty())
}

/// The places where a text names a file: by its whole path, otherwise by the last part of it.
fn places(text: &str, path: &str) -> Vec<(usize, usize)> {
    let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
    let whole = places_of_word(text, path);
    if whole.is_empty() {
        places_of_word(text, name)
    } else {
        whole
    }
}

/// The places where a text has `word`, but not as a part of a longer name.
fn places_of_word(text: &str, word: &str) -> Vec<(usize, usize)> {
    if word.is_empty() {
        return Vec::new();
    }
    let all = text
        .match_indices(word)
        .map(|(at, found)| (at, at + found.len()));
    all.filter(|(from, to)| {
        let follows = text.get(*to..).unwrap_or("");
        let goes_on = follows
            .strip_prefix('.')
            .unwrap_or(follows)
            .starts_with(is_part_of_name);
        !text.get(..*from).unwrap_or("").ends_with(is_part_of_name) && !goes_on
    })
    .collect()
}

fn is_part_of_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-')
}

/// The summary as markup, with the files that were read again marked.
fn marked(summary: &str, case: &ObservedCompaction) -> String {
    let mut all: Vec<(usize, usize)> = case
        .re_read
        .iter()
        .flat_map(|one| places(summary, &one.path))
        .collect();
    all.sort_unstable();
    let (mut out, mut end) = (String::new(), 0);
    for (from, to) in all {
        if from < end {
            continue;
        }
        let before = summary.get(end..from).unwrap_or("");
        let name = summary.get(from..to).unwrap_or("");
        out.push_str(&format!("{}<mark>{}</mark>", escape(before), escape(name)));
        end = to;
    }
    out.push_str(&escape(summary.get(end..).unwrap_or("")));
    out
}

/// A list of items, which are markup.
fn list(heading: &str, items: impl Iterator<Item = String>) -> String {
    let items: String = items.map(|item| format!("<li>{item}</li>\n")).collect();
    if items.is_empty() {
        String::new()
    } else {
        format!("<h3>{heading}</h3>\n<ul>{items}</ul>\n")
    }
}

#[cfg(test)]
mod tests {
    use super::places;

    #[test]
    fn a_summary_names_a_file_by_its_path_or_its_last_part() {
        let named = |text: &str| !places(text, "src/net/retry.rs").is_empty();
        assert!(
            named("changed src/net/retry.rs.")
                && named("`retry.rs` waits longer")
                && named("see net/retry.rs")
        );
        assert!(
            !named("the retry waits")
                && !named("my_retry.rs")
                && !named("retry.rs.bak")
                && !named("")
        );
    }
}
