//! What `observe` shows: the page of the worst compactions, each with what was read again and with the summary; and what
//! sessions cost, the bill and the worst compactions. The page has no script.

use std::collections::BTreeMap;

use indexmap::IndexMap;

use super::document::{Block, Section};
use super::figures::{share, short_time, usd};
use super::html::document;
use super::styled::{TextTable, known};
use base::locale::Locale;
use base::say;
use base::text::{grouped, short};
use sessions::economics::Economics;
use sessions::import::Format;
use sessions::observe::{
    LocalDifference, NotCounted, ObservedCompaction, RateDifference, SESSIONS_FOR_INTERVAL,
    SessionObservation, SideDifference,
};

/// Notes on sessions without a compaction; `--json` has all.
const NOTES: usize = 30;

/// What sessions did after their compactions: the result first, then the table of these `cases`, which are indices of
/// `observation.compactions`. `others` is the number of files in other formats.
pub fn observed(
    observation: &SessionObservation,
    cases: &[usize],
    others: usize,
    locale: Locale,
) -> Vec<Block> {
    let mut said = counts(observation, others, locale);
    let compactions = &observation.compactions;
    if compactions.is_empty() {
        said.extend(nothing_found(observation, locale));
        return vec![Block::List(said)];
    }
    said.extend(compared(observation, locale));
    let rows = cases.iter().filter_map(|at| compactions.get(*at));
    let table = TextTable::plain(&compaction_columns(locale), &[], rows.map(compaction_row));
    let rest = compactions.len() - cases.len();
    let rest = (rest > 0).then(|| locale.count(rest, "more compaction", "次其他压缩"));
    let rest = rest.map(|rest| {
        say!(
            locale,
            "and {rest}; --json lists all",
            "另有 {rest}；--json 列出全部"
        )
    });
    let rest = Block::plain(rest.unwrap_or_default());
    let reasons = not_counted(observation, locale);
    vec![Block::List(said), Block::Table(table), rest, reasons]
}

fn counts(observation: &SessionObservation, others: usize, locale: Locale) -> Vec<String> {
    let sessions = observation.sessions.iter();
    let copies = sessions.filter(|session| session.copy_of.is_some()).count();
    let sessions = locale.count(observation.sessions.len() - copies, "session", "个会话");
    let compactions = locale.count(observation.compactions.len(), "compaction", "次压缩");
    let counts = say!(
        locale,
        "{sessions}, {compactions}",
        "{sessions}，{compactions}"
    );
    let copies = (copies > 0).then(|| {
        let copies = locale.count(copies, "copied session", "个副本会话");
        say!(locale, "{copies} counted once", "{copies}只计一次")
    });
    let others = (others > 0).then(|| {
        let files = locale.count(others, "file", "个文件");
        say!(
            locale,
            "{files} of other formats not analysed",
            "其他格式的 {files}未分析"
        )
    });
    [Some(counts), copies, others]
        .into_iter()
        .flatten()
        .collect()
}

/// That nothing was found, and what is to be said of the sessions, each with its file and the number of sessions of the
/// file that it is true of.
fn nothing_found(observation: &SessionObservation, locale: Locale) -> Vec<String> {
    if observation.sessions.is_empty() {
        let products = Format::those(Format::is_observed).into_iter();
        let products: Vec<&str> = products.map(Format::product).collect();
        let products = products.join(locale.pick(", ", "、"));
        return vec![say!(
            locale,
            "No session log was found there. Logs of these are read: {products}.",
            "那里没有会话日志。可读取的日志：{products}。"
        )];
    }
    let mut notes: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for session in &observation.sessions {
        let note = session
            .note
            .map(|note| (&*session.file, note.message(locale)));
        note.into_iter()
            .for_each(|note| *notes.entry(note).or_default() += 1);
    }
    let notes = notes.into_iter().take(NOTES);
    let notes = notes.map(|((file, note), sessions)| match sessions {
        1 => format!("{file}: {note}"),
        _ => format!(
            "{file}: {note} ({})",
            locale.count(sessions, "session", "个会话")
        ),
    });
    let none = locale.pick("No compaction was found.", "没有发现压缩。");
    [none.to_owned()].into_iter().chain(notes).collect()
}

/// Says why compactions with a star are not counted.
fn not_counted(observation: &SessionObservation, locale: Locale) -> Block {
    let mut by_reason: IndexMap<NotCounted, usize> = IndexMap::new();
    let compactions = observation.compactions.iter();
    for reason in compactions.filter_map(|one| one.not_counted) {
        *by_reason.entry(reason).or_default() += 1;
    }
    let lines = by_reason.iter().map(|(reason, count)| {
        let why = reason.message(locale);
        say!(
            locale,
            "* not counted ({count}): {why}",
            "* 未计入（{count}）：{why}"
        )
    });
    Block::List(lines.collect())
}

fn compared(observation: &SessionObservation, locale: Locale) -> Vec<String> {
    let coverage = observation.coverage;
    let have = if coverage.counted == 1 { "has" } else { "have" };
    let reads = locale.count(observation.reads_of_known_files(), "read", "次读取");
    let counted = locale.count(coverage.counted, "counted compaction", "次计入的压缩");
    let mut lines = vec![
        say!(
            locale,
            "Re-reads of unchanged lines: {} of {reads} of files read before, in the windows of counted compactions.",
            "对已读文件的 {reads}中，重读未变行的有 {} 次（在计入的压缩的窗口内）。",
            observation.re_reads(),
        ),
        say!(
            locale,
            "{} of {counted} {have} a control on both sides.",
            "{counted}中有 {} 次两侧都有对照。",
            coverage.with_controls,
        ),
    ];
    match &observation.difference {
        None if !coverage.is_enough() => lines.push(say!(
            locale,
            "Counts only: with controls at under half of the compactions, no difference is given.",
            "仅有计数：有对照的压缩不到一半，不给出差值。"
        )),
        None => lines.push(say!(
            locale,
            "Counts only: a difference needs {SESSIONS_FOR_INTERVAL} sessions with controls.",
            "仅有计数：差值需要 {SESSIONS_FOR_INTERVAL} 个有对照的会话。"
        )),
        Some(found) => lines.extend(rates(found, observation.placebo.as_ref(), locale)),
    }
    lines
}

/// A rate among all of a kind of windows.
type Rate = fn(&LocalDifference) -> Option<RateDifference>;

/// The differences, each with its placebo.
fn rates(
    found: &LocalDifference,
    placebo: Option<&LocalDifference>,
    locale: Locale,
) -> Vec<String> {
    let kinds: [(&str, &str, Rate); 3] = [
        ("Re-reads per turn", "每轮的重读", |found| {
            found.re_reads_per_turn
        }),
        (
            "Re-reads per read of a file read before",
            "对读过文件的每次读取中的重读",
            |found| found.re_reads_per_known_read,
        ),
        (
            "Repeated failures per turn",
            "每轮的重复失败",
            |found| found.repeated_failures_per_turn,
        ),
    ];
    let mut lines = Vec::new();
    for (name, chinese, rate) in kinds {
        let Some(found) = rate(found) else { continue };
        let name = locale.pick(name, chinese);
        let too_few = "too few sessions have room for such windows";
        let around = placebo.and_then(rate).map_or_else(
            || locale.pick(too_few, "能容下这种窗口的会话太少").to_owned(),
            |placebo| rate_words(&placebo, locale),
        );
        lines.push(format!("{name}: {}", rate_words(&found, locale)));
        lines.push(say!(
            locale,
            "{name}, around turns without a compaction: {around}",
            "{name}（无压缩的轮次前后）：{around}"
        ));
    }
    lines.push(say!(
        locale,
        "A finding needs both intervals (95%, over sessions) on the same side of 0. An effect that outlasts the 20 turns is \
         not found.",
        "两个区间（95%，跨会话）都在 0 的同侧才算发现。持续超过 20 轮的影响无法发现。"
    ));
    lines
}

/// `+0.31 in 12 sessions (rate 0.40; less the control before +0.35 [+0.21, +0.49], after +0.31 [+0.18, +0.44])`, or that
/// nothing was found.
fn rate_words(found: &RateDifference, locale: Locale) -> String {
    let finding = found.finding.map_or_else(
        || locale.pick("no difference found", "未发现差异").to_owned(),
        |finding| format!("{finding:+.2}"),
    );
    say!(
        locale,
        "{finding} in {} (rate {:.2}; less the control before {}, after {})",
        "{finding}，{}（比率 {:.2}；减去之前的对照 {}，之后的 {}）",
        locale.count(found.sessions, "session", "个会话"),
        found.rate,
        side_words(found.before),
        side_words(found.after),
    )
}

fn side_words(side: SideDifference) -> String {
    let ci95 = side
        .ci95
        .map(|ci| format!(" [{:+.2}, {:+.2}]", ci.low(), ci.high()))
        .unwrap_or_default();
    format!("{:+.2}{ci95}", side.difference)
}

/// The page: what [`observed`] says, then these cases, the worst first.
pub fn observed_page(
    observation: &SessionObservation,
    cases: &[usize],
    others: usize,
    locale: Locale,
) -> String {
    let blocks = observed(observation, cases, others, locale);
    let compactions = locale.count(observation.compactions.len(), "compaction", "次压缩");
    let title = say!(locale, "After {compactions}", "{compactions}之后");
    let cases = cases.iter();
    let cases = cases.filter_map(|at| observation.compactions.get(*at));
    let order = locale.pick(
        "Worst first; counts are of the 20 turns after each compaction.",
        "最差的在前；计数取自每次压缩之后的 20 轮。",
    );
    let blocks = blocks.into_iter().chain([Block::plain(order)]);
    let overview = Section::new("overview", title, blocks);
    let sections: Vec<Section> = (overview.into_iter())
        .chain(cases.filter_map(|case| section(case, locale)))
        .collect();
    document(locale, "compeval observe", &sections)
}

fn number<T: ToString>(value: Option<T>) -> String {
    known(value, |value| value.to_string())
}

/// The columns of the table of compactions.
fn compaction_columns(locale: Locale) -> [&'static str; 10] {
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
fn compaction_row(case: &ObservedCompaction) -> Vec<String> {
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
            "{products} logs count only part of the output, so the real cost is higher",
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
        vec![
            one.session.clone(),
            one.at.to_string(),
            known(one.time.as_deref(), short_time),
            grouped(one.tokens),
            usd(Some(one.usd)),
        ]
    });
    let table = Block::Table(TextTable::plain(&columns, &[2], rows));
    Section::new("rewrites", title, [table])
}
