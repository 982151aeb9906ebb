//! What sessions cost, as `observe --economics` and its page show it: the bill, the worst compactions, the back-test,
//! and, if that holds, cost against threshold.

use super::document::{Block, Section};
use super::numbers::{UNKNOWN, count, counted, share, short_time, usd};
use super::styled::TextTable;
use base::locale::localized;
use base::say;
use base::text::grouped;
use sessions::economics::{
    AS_RECORDED, ClockFaults, Economics, MOST_ERROR, MethodEconomics, Rewrite,
};
use sessions::import::Format;
use sessions::observe::SESSIONS_FOR_INTERVAL;

/// Compactions that are listed; `--json` has all.
const WORST: usize = 3;
/// Sessions that are named; `--json` has all.
const NAMED: usize = 3;

/// The economics of sessions, and how many files were in none of the formats. What restricts the conclusions comes
/// before them.
pub fn economics(economics: &Economics, others: usize) -> Vec<Section> {
    let mut said = bill(economics, others);
    said.extend(left_out(economics));
    said.extend(clock_faults(economics));
    let title = localized("What the sessions cost", "这些会话的费用");
    let cost = Section::new("economics", title, [Block::List(said)]);
    [cost, rewrites(economics), back_test(economics)]
        .into_iter()
        .chain([methods(economics)])
        .flatten()
        .collect()
}

fn sessions(number: usize) -> String {
    counted(number, ["session", "sessions"], "个会话")
}

fn requests<N: TryInto<u64>>(number: N) -> String {
    counted(number, ["request", "requests"], "次请求")
}

fn bill(economics: &Economics, others: usize) -> Vec<String> {
    let bill = &economics.bill;
    let total = bill.total_usd();
    let mut lines = vec![say!(
        "{}, {}: {} at list prices",
        "{}，{}：按标价 {}",
        sessions(economics.sessions),
        requests(bill.requests),
        usd(Some(total)),
    )];
    if economics.sessions > 0 {
        let parts = [
            (bill.usd.cache_write, bill.cache_write),
            (bill.usd.cache_read, bill.cache_read),
            (bill.usd.input, bill.input),
            (bill.usd.output, bill.output),
        ];
        let [writes, reads, other, output] = parts.map(|(usd, tokens)| {
            let part = share((total > 0.0).then(|| usd / total));
            let tokens = grouped(tokens);
            say!("{part} ({tokens} tokens)", "{part}（{tokens} 词元）")
        });
        lines.push(say!(
            "of it cache writes {writes}, cache reads {reads}, other input {other}, output {output}",
            "其中缓存写入 {writes}，缓存读取 {reads}，其他输入 {other}，输出 {output}"
        ));
    }
    lines.extend((others > 0).then(|| {
        let others = counted(others, ["file", "files"], "个文件");
        say!(
            "{others} of other formats not counted",
            "其他格式的 {others} 未计入"
        )
    }));
    lines
}

/// The sessions that are in no figure, and why.
fn left_out(economics: &Economics) -> Vec<String> {
    let by_reason = economics.left_out_by_reason();
    let lines = by_reason.iter().map(|(why, sessions)| {
        let named: Vec<&str> = sessions.iter().take(NAMED).copied().collect();
        let named = named.join(localized(", ", "、"));
        let more = match sessions.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => {
                let all = sessions.len();
                say!(" and {more} more", " 等 {all} 个会话")
            }
        };
        say!(
            "left out: {named}{more}: {why}",
            "未计入：{named}{more}：{why}"
        )
    });
    lines.collect()
}

/// How many times between requests are unknown because clocks went back.
fn clock_faults(economics: &Economics) -> Option<String> {
    let faults: ClockFaults = economics.clock_faults;
    (faults.requests > 0).then(|| {
        say!(
            "In {} the clock went back: how long {} came after the one before is not known, and the cache is taken to have \
             been kept there.",
            "{} 的时钟曾倒退：{} 距前一次多久不得而知，此处视为缓存未过期。",
            sessions(faults.sessions),
            requests(faults.requests)
        )
    })
}

fn rewrites(economics: &Economics) -> Option<Section> {
    let worst: Vec<&Rewrite> = economics.rewrites.iter().take(WORST).collect();
    let tokens: u64 = worst.iter().map(|one| one.tokens).sum();
    let cost: Option<f64> = worst.iter().map(|one| one.usd).sum();
    let title = say!(
        "The worst {} of {} recorded compactions made the provider process {} tokens again ({})",
        "记录的 {1} 次压缩中最差的 {0} 次使服务商重新处理了 {2} 词元（{3}）",
        worst.len(),
        economics.rewrites.len(),
        grouped(tokens),
        usd(cost)
    );
    let columns = [
        localized("session", "会话"),
        localized("at", "位置"),
        localized("time", "时间"),
        localized("rewritten", "重写"),
        localized("cost", "费用"),
    ];
    let rows = worst.into_iter().map(|one| {
        let time = one.time.as_deref().map(short_time);
        vec![
            one.session.clone(),
            one.at.to_string(),
            time.unwrap_or_else(|| UNKNOWN.to_owned()),
            grouped(one.tokens),
            usd(one.usd),
        ]
    });
    let table = Block::Table(TextTable::plain(&columns, &[2], rows));
    Section::new("rewrites", title, [table])
}

fn back_test(economics: &Economics) -> Option<Section> {
    let test = &economics.back_test;
    let formats = test.formats.iter().map(|one| {
        let consequence = match one.holds {
            true => "",
            false => localized(", too far off to simulate", "，偏差过大，未作模拟"),
        };
        let (format, error) = (one.format, share(Some(one.median_error)));
        let sessions = sessions(one.sessions);
        say!(
            "{format}: {error} in {sessions}{consequence}",
            "{format}：{sessions}中偏差 {error}{consequence}"
        )
    });
    let far = test.sessions.iter().filter(|one| one.error > MOST_ERROR);
    let worst = far.take(NAMED).map(|one| {
        let [logged, computed] = one.cache_read.map(grouped);
        let (session, error) = (&one.session, share(Some(one.error)));
        say!(
            "worst: {session} {error}, {logged} of {computed} read from the cache",
            "偏差最大：{session} {error}，应有 {computed} 词元读自缓存，记录为 {logged}"
        )
    });
    let title = localized(
        "Back-test: how far input computed from sizes, times and compactions is off the logged bill, as a median",
        "回测：由大小、时间与压缩算出的输入与记录账单的偏差（中位数）",
    );
    Section::new(
        "back-test",
        title,
        [Block::List(formats.chain(worst).collect())],
    )
}

fn methods(economics: &Economics) -> Option<Section> {
    if let Some(why) = &economics.withheld {
        let said = say!(
            "Other policies were not simulated: {}.",
            "未模拟其他策略：{}。",
            why.message()
        );
        let title = localized("Other policies", "其他策略");
        return Section::new("methods", title, [Block::List(vec![said])]);
    }
    let columns = [
        localized("method", "方法"),
        localized("flat from", "平坦区自"),
        localized("to", "至"),
        localized("cost", "费用"),
        localized("compactions", "压缩"),
        localized("rewritten", "重写"),
        localized("freed", "释放"),
        localized("floor", "底线"),
        localized("cycles", "周期"),
        localized("difference", "差值"),
    ];
    let rows = economics.methods.iter().map(row);
    let table = Block::Table(TextTable::plain(&columns, &[], rows));
    let title = localized(
        "Cost against threshold; flat is where it is within 2% of the least",
        "费用与触发大小的关系；平坦区指与最低费用相差不到 2% 处",
    );
    Section::new("methods", title, [table, Block::List(notes(economics))])
}

fn row(one: &MethodEconomics) -> Vec<String> {
    let flat = one.curve.flat;
    let middle = one.curve.middle().map(|point| point.cost);
    let known = |number: Option<u64>| number.map_or_else(|| UNKNOWN.to_owned(), grouped);
    let life = one.life;
    let difference = one.difference.map(|found| {
        let ci95 = found
            .ci95
            .map(|ci| format!(" [{:+.0}, {:+.0}]", 100.0 * ci.low(), 100.0 * ci.high()));
        format!("{:+.0}%{}", 100.0 * found.center, ci95.unwrap_or_default())
    });
    vec![
        method_name(one).to_owned(),
        grouped(flat.from),
        flat.to
            .map_or_else(|| localized("any", "不限").to_owned(), grouped),
        usd(Some(flat.least_usd)),
        known(middle.map(|cost| cost.compactions)),
        known(middle.map(|cost| cost.rewritten)),
        count(life.map(|life| life.freed)),
        count(life.map(|life| life.floor)),
        known(life.and_then(|life| life.cycles)),
        difference.unwrap_or_else(|| UNKNOWN.to_owned()),
    ]
}

/// The name of a method; that of the sessions' own compactions in words.
pub(super) fn method_name(one: &MethodEconomics) -> &str {
    if one.method == AS_RECORDED {
        localized(AS_RECORDED, "按记录")
    } else {
        &one.method
    }
}

fn at_trigger(one: &MethodEconomics) -> Option<String> {
    let cost = one.at_trigger?;
    let above = cost.usd / one.curve.flat.least_usd - 1.0;
    Some(say!(
        "At your trigger {}: {}, {:.1}% above the least, {}",
        "按您的触发大小，{}：{}，比最低费用高 {:.1}%，{}",
        method_name(one),
        usd(Some(cost.usd)),
        100.0 * above,
        counted(cost.compactions, ["compaction", "compactions"], "次压缩"),
    ))
}

fn notes(economics: &Economics) -> Vec<String> {
    let mut lines: Vec<String> = economics.methods.iter().filter_map(at_trigger).collect();
    lines.push(say!(
        "As recorded, with the requests of the compactions, which no log counts, {} cost {}.",
        "按记录并计入日志都不计的压缩请求，{}的费用为 {}。",
        sessions(economics.simulated),
        usd(Some(economics.as_recorded.usd))
    ));
    lines.extend(expiries(economics));
    lines.push(refetch(economics));
    if economics.methods.iter().all(|one| one.difference.is_none()) {
        lines.push(say!(
            "No difference from what was recorded: that needs {SESSIONS_FOR_INTERVAL} logs with their own costs.",
            "不给出与记录的差值：需要 {SESSIONS_FOR_INTERVAL} 个各有费用的日志。"
        ));
    }
    lines.extend(economics.methods.iter().filter_map(extrapolation));
    lines.extend(cheapest_at_lowest(economics));
    lines.push(Economics::caveat().to_owned());
    if economics.partial_output {
        let products = Format::products(
            &Format::those(Format::counts_output_in_part),
            localized("and", "和"),
        );
        lines.push(say!(
            "Logs of {products} count output in part only, so it costs more than is shown.",
            "{products} 的日志只计部分输出，因此实际费用高于所示。"
        ));
    }
    lines
}

/// What pauses cost; `None` if the cache never expired.
fn expiries(economics: &Economics) -> Option<String> {
    let recorded = economics.as_recorded;
    (recorded.expiries > 0).then(|| {
        say!(
            "The cache had expired before {} ({} tokens) because of pauses, which no threshold changes.",
            "在 {}之前缓存已过期（{} 词元）：这是停顿所致，任何触发大小都无法改变。",
            requests(recorded.expiries),
            grouped(recorded.expired)
        )
    })
}

/// What is read again after a compaction.
fn refetch(economics: &Economics) -> String {
    match economics.refetch {
        Some(tokens) => say!(
            "Read again after each compaction: {} tokens, the mean excess of these logs over their controls.",
            "每次压缩后重读：{} 词元，即这些日志相对对照的平均超出量。",
            count(Some(tokens))
        ),
        None => localized(
            "What is read again after a compaction is not known, as none has controls: it is left out.",
            "压缩后重读了多少不得而知，因为都没有对照：未计入。",
        )
        .to_owned(),
    }
}

/// That the sizes of a method are extrapolated; `None` if it was measured on spans as large.
fn extrapolation(one: &MethodEconomics) -> Option<String> {
    let largest = one
        .largest_measured
        .filter(|tokens| one.curve.flat.from > *tokens)?;
    Some(say!(
        "{}: measured on at most {} replaced tokens; its sizes here are extrapolated.",
        "{}：至多在 {} 个被替换词元上测得；此处的大小为外推。",
        one.method,
        grouped(largest)
    ))
}

/// The methods that are cheapest at the lowest threshold.
fn cheapest_at_lowest(economics: &Economics) -> Option<String> {
    let methods = economics.methods.iter();
    let lowest = methods.filter(|one| one.curve.is_least_at_lowest());
    let lowest: Vec<&str> = lowest.map(method_name).collect();
    let names = lowest.join(", ");
    (!lowest.is_empty()).then(|| {
        say!(
            "Cheapest at the lowest threshold that was simulated: {names}. What is lost with every compaction has no price here.",
            "在模拟的最低触发大小处最便宜：{names}。每次压缩丢失的内容在此没有计价。"
        )
    })
}
