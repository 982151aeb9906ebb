//! What `observe` shows: the page of the worst compactions, each with what was read again and with the summary; and what
//! sessions cost, the bill and the worst compactions. The page has no script.

use std::collections::BTreeMap;

use super::document::{Block, Section};
use super::figures::{share, short_time, usd};
use super::html::document;
use super::styled::{TextTable, UNKNOWN};
use base::locale::Locale;
use base::say;
use base::text::{grouped, short};
use sessions::economics::Economics;
use sessions::import::Format;
use sessions::observe::{ObservedCompaction, SessionObservation};

/// The page; `cases` are indices of `observation.compactions`, the worst first.
pub fn observed_page(observation: &SessionObservation, cases: &[usize], locale: Locale) -> String {
    let compactions = observation.compactions.len();
    let title = say!(
        locale,
        "After {}",
        "{}之后",
        locale.count(compactions, "compaction", "次压缩")
    );
    let sessions = locale.count(observation.sessions.len(), "session", "个会话");
    let coverage = observation.coverage;
    let of_known_files = locale.count(observation.reads_of_known_files(), "read", "次读取");
    let lead = say!(
        locale,
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
    let table = TextTable::plain(&compaction_columns(locale), &[], rows);
    let note = locale.pick(
        "* not counted; the case gives the reason.",
        "* 未计入，原因见各例。",
    );
    let has_stars = shown.iter().any(|case| case.not_counted.is_some());
    let note = has_stars.then(|| Block::plain(note));
    let blocks = [Block::plain(lead), Block::Table(table)];
    let overview = Section::new("overview", title, blocks.into_iter().chain(note));
    let sections: Vec<Section> = (overview.into_iter())
        .chain(shown.into_iter().filter_map(|case| section(case, locale)))
        .collect();
    document(locale, "compeval observe", &sections)
}

fn number<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| "–".to_owned(), |value| value.to_string())
}

/// The columns of the table of compactions.
pub fn compaction_columns(locale: Locale) -> [&'static str; 10] {
    [
        locale.pick("session", "会话"),
        locale.pick("at", "位置"),
        locale.pick("before", "之前"),
        locale.pick("after", "之后"),
        locale.pick("turns", "轮"),
        locale.pick("reads", "读取"),
        locale.pick("re-reads", "重读"),
        locale.pick("fetched again", "重新取得"),
        locale.pick("failed again", "再次失败"),
        locale.pick("to edit", "至编辑"),
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

fn section(case: &ObservedCompaction, locale: Locale) -> Option<Section> {
    let time = case.time.as_deref();
    let time = time.map(|time| format!("{}{}", locale.pick(", ", "，"), short_time(time)));
    let place = say!(
        locale,
        "{}, before message {}{}",
        "{}，在第 {} 条消息之前{}",
        case.format,
        case.at,
        time.unwrap_or_default()
    );
    let reason = case.not_counted.map(|reason| reason.message(locale));
    let reason = reason.map(|reason| say!(locale, "Not counted: {reason}.", "未计入：{reason}。"));
    let read = case.re_read.iter().map(|one| {
        let lines = one
            .lines
            .map(|[a, b]| say!(locale, ", lines {a} to {b}", "，第 {a} 至 {b} 行"));
        format!(
            "{}{}{}",
            one.path,
            lines.unwrap_or_default(),
            in_turn(one.turn, locale)
        )
    });
    let failed = case.repeated.iter();
    let failed = failed.map(|one| {
        format!(
            "{}: {}{}",
            one.command,
            one.error,
            in_turn(one.turn, locale)
        )
    });
    let lists = [
        (
            locale.pick("Read again, unchanged", "未变而重读"),
            read.collect(),
        ),
        (
            locale.pick("Failed again with the same error", "以同样的错误再次失败"),
            failed.collect(),
        ),
    ];
    let said = locale
        .pick("What the summary said", "摘要的内容")
        .to_owned();
    let summary = match &case.summary {
        Some(summary) => Block::Diff(said, summary.lines().map(str::to_owned).collect(), 0),
        None => {
            let none = locale.pick("The log has no readable summary.", "日志中没有可读的摘要。");
            Block::Lines(said, vec![none.to_owned()])
        }
    };
    let blocks = [place].into_iter().chain(reason).map(Block::plain);
    let lists = lists.map(|(title, items)| Block::Lines(title.to_owned(), items));
    let blocks = blocks.chain(lists).chain([summary]);
    Section::new("case", case.session.clone(), blocks)
}

fn in_turn(turn: usize, locale: Locale) -> String {
    say!(locale, " (turn {turn})", "（第 {turn} 轮）")
}

/// Compactions that are listed; `--json` has all.
const WORST: usize = 3;
/// Sessions that are named; `--json` has all.
const NAMED: usize = 3;

/// The costs of sessions; the last lines of the first section restrict them.
pub fn economics(economics: &Economics, locale: Locale) -> Vec<Section> {
    let mut said = bill(economics, locale);
    said.extend(left_out(economics, locale));
    if economics.uncounted > 0 {
        let requests = locale.count(economics.uncounted, "request", "次请求");
        said.push(say!(
            locale,
            "left out: {requests} whose tokens the log does not count",
            "未计入：{requests}（日志未统计其词元）"
        ));
    }
    if economics.partial_output {
        let products = Format::those(Format::counts_output_in_part);
        let products = Format::products(&products, locale.pick("and", "和"));
        said.push(say!(
            locale,
            "logs of {products} count output in part only, so it costs more than is shown",
            "{products} 的日志只计部分输出，因此实际费用高于所示"
        ));
    }
    let title = locale.pick("What the sessions cost", "这些会话的费用");
    let cost = Section::new("economics", title, [Block::List(said)]);
    cost.into_iter()
        .chain(rewrites(economics, locale))
        .collect()
}

fn bill(economics: &Economics, locale: Locale) -> Vec<String> {
    let bill = &economics.bill;
    let total = bill.usd();
    let mut lines = vec![say!(
        locale,
        "{}, {}: {} at list prices",
        "{}，{}：按标价 {}",
        locale.count(economics.sessions, "session", "个会话"),
        locale.count(bill.requests, "request", "次请求"),
        usd(Some(total)),
    )];
    if economics.sessions > 0 {
        let parts = [bill.cache_write, bill.cache_read, bill.input, bill.output];
        let [writes, reads, other, output] = parts.map(|item| {
            let part = share((total > 0.0).then(|| item.usd / total));
            let tokens = grouped(item.tokens);
            say!(
                locale,
                "{part} ({tokens} tokens)",
                "{part}（{tokens} 词元）"
            )
        });
        lines.push(say!(
            locale, "of it cache writes {writes}, cache reads {reads}, other input {other}, output {output}",
            "其中缓存写入 {writes}，缓存读取 {reads}，其他输入 {other}，输出 {output}"
        ));
    }
    lines
}

/// The sessions that are in no figure, and why.
fn left_out(economics: &Economics, locale: Locale) -> Vec<String> {
    let mut by_reason: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for one in &economics.left_out {
        let sessions = by_reason.entry(one.why.message(locale)).or_default();
        sessions.push(&one.session);
    }
    let lines = by_reason.iter().map(|(why, sessions)| {
        let named: Vec<&str> = sessions.iter().take(NAMED).copied().collect();
        let named = named.join(locale.pick(", ", "、"));
        let more = match sessions.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => {
                let all = sessions.len();
                say!(locale, " and {more} more", " 等 {all} 个会话")
            }
        };
        say!(
            locale,
            "left out: {named}{more}: {why}",
            "未计入：{named}{more}：{why}"
        )
    });
    lines.collect()
}

fn rewrites(economics: &Economics, locale: Locale) -> Option<Section> {
    let worst = economics.rewrites.iter().take(WORST);
    let tokens: u64 = worst.clone().map(|one| one.tokens).sum();
    let cost: f64 = worst.clone().map(|one| one.usd).sum();
    let title = say!(
        locale,
        "The worst {} of {} recorded compactions made the provider process {} tokens again ({})",
        "记录的 {1} 次压缩中最差的 {0} 次使服务商重新处理了 {2} 词元（{3}）",
        worst.len(),
        economics.rewrites.len(),
        grouped(tokens),
        usd(Some(cost))
    );
    let columns = [
        locale.pick("session", "会话"),
        locale.pick("at", "位置"),
        locale.pick("time", "时间"),
        locale.pick("rewritten", "重写"),
        locale.pick("cost", "费用"),
    ];
    let rows = worst.map(|one| {
        let time = one.time.as_deref().map(short_time);
        vec![
            one.session.clone(),
            one.at.to_string(),
            time.unwrap_or_else(|| UNKNOWN.to_owned()),
            grouped(one.tokens),
            usd(Some(one.usd)),
        ]
    });
    let table = Block::Table(TextTable::plain(&columns, &[2], rows));
    Section::new("rewrites", title, [table])
}
