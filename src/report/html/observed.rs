//! The page of `observe`: the worst compactions, each with what was read again and with the summary. It has no script.

use super::document::document;
use crate::report::document::{Block, Section};
use crate::report::figures::{counted, short_time};
use crate::report::styled::TextTable;
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
    let shown = cases.iter();
    let shown = shown.filter_map(|at| observation.compactions.get(*at));
    let shown: Vec<&ObservedCompaction> = shown.collect();
    let rows = shown.iter().map(|case| compaction_row(case));
    let table = TextTable::plain(&compaction_columns(), &[], rows);
    let note = localized(
        "* not counted; the case gives the reason.",
        "* 未计入，原因见各例。",
    );
    let has_stars = shown.iter().any(|case| case.not_counted.is_some());
    let note = has_stars.then(|| Block::plain(note));
    let blocks = [Block::plain(lead), Block::Table(table)];
    let overview = Section::new("overview", title, blocks.into_iter().chain(note));
    let sections: Vec<Section> = (overview.into_iter())
        .chain(shown.into_iter().filter_map(section))
        .collect();
    document(Locale::printed(), "compeval observe", &sections)
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

fn section(case: &ObservedCompaction) -> Option<Section> {
    let time = case.time.as_deref();
    let time = time.map(|time| format!("{}{}", localized(", ", "，"), short_time(time)));
    let place = say!(
        "{}, before message {}{}",
        "{}，在第 {} 条消息之前{}",
        case.format,
        case.at,
        time.unwrap_or_default()
    );
    let reason = case.not_counted.map(|reason| reason.message());
    let reason = reason.map(|reason| say!("Not counted: {reason}.", "未计入：{reason}。"));
    let read = case.re_read.iter().map(|one| {
        let lines = one
            .lines
            .map(|[a, b]| say!(", lines {a} to {b}", "，第 {a} 至 {b} 行"));
        format!(
            "{}{}{}",
            one.path,
            lines.unwrap_or_default(),
            in_turn(one.turn)
        )
    });
    let failed = case.repeated.iter();
    let failed = failed.map(|one| format!("{}: {}{}", one.command, one.error, in_turn(one.turn)));
    let lists = [
        (
            localized("Read again, unchanged", "未变而重读"),
            read.collect(),
        ),
        (
            localized("Failed again with the same error", "以同样的错误再次失败"),
            failed.collect(),
        ),
    ];
    let said = localized("What the summary said", "摘要的内容").to_owned();
    let summary = match &case.summary {
        Some(summary) => Block::Diff(said, summary.lines().map(str::to_owned).collect(), 0),
        None => {
            let none = localized("The log has no readable summary.", "日志中没有可读的摘要。");
            Block::Lines(said, vec![none.to_owned()])
        }
    };
    let blocks = [place].into_iter().chain(reason).map(Block::plain);
    let lists = lists.map(|(title, items)| Block::Lines(title.to_owned(), items));
    let blocks = blocks.chain(lists).chain([summary]);
    Section::new("case", case.session.clone(), blocks)
}

fn in_turn(turn: usize) -> String {
    say!(" (turn {turn})", "（第 {turn} 轮）")
}
