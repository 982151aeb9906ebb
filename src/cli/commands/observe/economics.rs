//! The text of `observe --economics`: the bill, the worst compactions, the back-test, and, if that holds, cost against
//! threshold.

use crate::cli::format::{Noun, amount, count, money, or_dash, percent, short};
use crate::cli::terminal::Console;
use base::locale::localized;
use base::say;
use base::text::grouped;
use base::units::Usd;
use sessions::economics::{
    AS_RECORDED, ClockFaults, Economics, FlatRegion, MOST_ERROR, MethodEconomics, Rewrite,
};
use sessions::import::Format;
use sessions::observe::SESSIONS_FOR_INTERVAL;

/// Compactions that are listed; `--json` has all.
const WORST: usize = 3;
/// Sessions that are named; `--json` has all.
const NAMED: usize = 3;

pub(super) fn describe(economics: &Economics, others: usize, console: &Console) -> String {
    let mut paragraphs = vec![console.prose(&bill(economics, others))];
    paragraphs.extend(rewrites(economics, console));
    let texts = [back_test(economics), clock_faults(economics)];
    paragraphs.extend(texts.iter().flatten().map(|text| console.prose(text)));
    match &economics.withheld {
        Some(why) => {
            let text = say!(
                "Other policies were not simulated: {}.",
                "对其他策略不作判断：{}。",
                why.message()
            );
            paragraphs.push(console.prose(&text));
        }
        None => {
            paragraphs.push(methods(economics, console));
            paragraphs.push(console.prose(&notes(economics)));
        }
    }
    paragraphs.extend(left_out(economics).map(|text| console.prose(&text)));
    paragraphs.join("\n\n")
}

fn bill(economics: &Economics, others: usize) -> String {
    let bill = &economics.bill;
    let (sessions, requests) = (
        count(economics.sessions, Noun::Session),
        count(bill.requests, Noun::Request),
    );
    let mut text = say!("{sessions}, {requests}", "{sessions}，{requests}");
    if economics.sessions > 0 {
        let total = bill.total_usd();
        let [writes, reads, other, output] = [
            bill.usd.cache_write,
            bill.usd.cache_read,
            bill.usd.input,
            bill.usd.output,
        ]
        .map(|usd| percent((total > 0.0).then(|| usd / total)));
        text.push_str(&say!(
            ": {} at list prices\nof it cache writes {}, cache reads {}, other input {}, output {}",
            "：按标价 {}\n其中缓存写入 {}，缓存读取 {}，其他输入 {}，输出 {}",
            money(Some(Usd(total))),
            writes,
            reads,
            other,
            output,
        ));
        text.push_str(&say!(
            "\ntokens: {} written, {} read, {} other input, {} output",
            "\n词元：写入 {}，读取 {}，其他输入 {}，输出 {}",
            short(Some(bill.cache_write)),
            short(Some(bill.cache_read)),
            short(Some(bill.input)),
            short(Some(bill.output)),
        ));
    }
    if others > 0 {
        text.push_str(&say!(
            "\n{} of other formats not counted",
            "\n其他格式的 {} 未计入",
            count(others, Noun::File)
        ));
    }
    text
}

fn rewrites(economics: &Economics, console: &Console) -> Option<String> {
    let worst: Vec<&Rewrite> = economics.rewrites.iter().take(WORST).collect();
    let tokens: u64 = worst.iter().map(|one| one.tokens).sum();
    let usd: Option<f64> = worst.iter().map(|one| one.usd).sum();
    let head = match worst.len() {
        0 => return None,
        1 => localized("The one recorded compaction", "记录的唯一一次压缩").to_owned(),
        number if number == economics.rewrites.len() => {
            say!(
                "The {number} recorded compactions",
                "记录的 {number} 次压缩"
            )
        }
        number => say!(
            "The worst {number} of {} recorded compactions",
            "记录的 {} 次压缩中最差的 {number} 次",
            economics.rewrites.len()
        ),
    };
    let cost = usd
        .map(|usd| say!(" ({})", "（{}）", money(Some(Usd(usd)))))
        .unwrap_or_default();
    let columns = [
        localized("session", "会话"),
        localized("at", "位置"),
        localized("time", "时间"),
        localized("rewritten", "重写"),
        localized("cost", "费用"),
    ];
    let rows = worst.iter().map(|one| {
        vec![
            one.session.clone(),
            one.at.to_string(),
            one.time
                .as_deref()
                .map_or("–", |time| time.get(..16).unwrap_or(time))
                .replace('T', " "),
            grouped(one.tokens),
            money(one.usd.map(Usd)),
        ]
    });
    let table = console.table(&columns, &[2], rows);
    let text = say!(
        "{head} made the provider process {} tokens again{cost}:",
        "{head}使服务商重新处理了 {} 词元{cost}：",
        grouped(tokens)
    );
    Some(format!("{}\n{table}", console.prose(&text)))
}

fn back_test(economics: &Economics) -> Option<String> {
    let test = &economics.back_test;
    let formats = test.formats.iter().map(|one| {
        let use_of = if one.holds {
            ""
        } else {
            localized(", too far off to simulate", "，因此对其不作判断")
        };
        say!(
            "  {}: {} in {}{use_of}",
            "  {}：{}，{}{use_of}",
            one.format,
            percent(Some(one.median_error)),
            count(one.sessions, Noun::Session)
        )
    });
    let formats: Vec<String> = formats.collect();
    let worst = test
        .sessions
        .iter()
        .filter(|one| one.error > MOST_ERROR)
        .take(NAMED)
        .map(|one| {
            let [logged, computed] = one.cache_read.map(|tokens| short(Some(tokens)));
            say!(
                "{} {}, {logged} of {computed} read from the cache",
                "{} {}，{computed} 中有 {logged} 读自缓存",
                one.session,
                percent(Some(one.error))
            )
        });
    let worst: Vec<String> = worst.collect();
    let worst = if worst.is_empty() {
        String::new()
    } else {
        say!("\n  worst: {}", "\n  最差：{}", worst.join("; "))
    };
    (!formats.is_empty()).then(|| {
        say!("Back-test: how far input computed from sizes, times and compactions is off the logged bill, as a median\n{}{worst}", "回测：由大小、时间与压缩算出的输入与记录账单的偏差（中位数）\n{}{worst}",
            formats.join("\n")
        )
    })
}

/// Says what is not known because clocks went back.
fn clock_faults(economics: &Economics) -> Option<String> {
    let ClockFaults { sessions, requests } = economics.clock_faults;
    (requests > 0).then(|| {
        say!(
            "In {} the clock went back: how long {} came after the one before is not known, and the cache is taken to have \
             been kept there.",
            "{} 的时钟曾倒退：{} 距前一次多久不得而知，此处视为缓存未过期。",
            count(sessions, Noun::Session),
            count(requests, Noun::Request)
        )
    })
}

fn methods(economics: &Economics, console: &Console) -> String {
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
    let table = console.table(&columns, &[], economics.methods.iter().map(row));
    let at_triggers: Vec<String> = economics.methods.iter().filter_map(at_trigger).collect();
    let title = localized(
        "Cost against threshold; flat is where it is within 2% of the least:",
        "费用与触发大小的关系；平坦区指与最低费用相差不到 2% 处：",
    );
    let mut lines = vec![console.prose(title), table];
    lines.extend(at_triggers.iter().map(|text| console.prose(text)));
    lines.join("\n")
}

fn row(one: &MethodEconomics) -> Vec<String> {
    let FlatRegion {
        from,
        to,
        least_usd,
        ..
    } = one.curve.flat;
    let middle = one.curve.middle().map(|point| point.cost);
    let [freed, floor] = [
        one.life.map(|life| life.freed),
        one.life.map(|life| life.floor),
    ]
    .map(|tokens| short(tokens.map(|tokens| tokens as u64)));

    let difference = one.difference.map_or_else(
        || "–".to_owned(),
        |found| {
            let ci95 = found
                .ci95
                .map(|ci| format!(" [{:+.0}, {:+.0}]", 100.0 * ci.low(), 100.0 * ci.high()));
            format!("{:+.0}%{}", 100.0 * found.center, ci95.unwrap_or_default())
        },
    );
    vec![
        method_name(one).to_owned(),
        short(Some(from)),
        to.map_or_else(|| localized("any", "不限").to_owned(), |to| short(Some(to))),
        money(Some(Usd(least_usd))),
        or_dash(middle.map(|cost| cost.compactions)),
        short(middle.map(|cost| cost.rewritten)),
        freed,
        floor,
        or_dash(one.life.and_then(|life| life.cycles)),
        difference,
    ]
}

/// The name of a method; that of the sessions' own compactions in words.
fn method_name(one: &MethodEconomics) -> &str {
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
        "At your trigger {}: {}, {:+.1}% of the least, {}",
        "在您的触发大小 {}：{}，比最低高 {:+.1}%，{}",
        method_name(one),
        money(Some(Usd(cost.usd))),
        100.0 * above,
        count(cost.compactions, Noun::Compaction),
    ))
}

fn notes(economics: &Economics) -> String {
    let mut lines = vec![say!(
        "As recorded, with the requests of the compactions, which no log counts, {} cost {}.",
        "按记录并计入日志都不计的压缩请求，{}的费用为 {}。",
        count(economics.simulated, Noun::Session),
        money(Some(Usd(economics.as_recorded.usd)))
    )];
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
        let products = Format::products(&Format::counting_output_in_part(), localized("and", "和"));
        lines.push(say!(
            "Logs of {products} count output in part only, so it costs more than is shown.",
            "{products} 的日志只计部分输出，因此实际费用高于所示。"
        ));
    }
    lines.join("\n")
}

/// Says what pauses cost; `None` if the cache never expired.
fn expiries(economics: &Economics) -> Option<String> {
    let recorded = economics.as_recorded;
    (recorded.expiries > 0).then(|| {
        say!(
            "The cache had expired before {} ({} tokens) because of pauses, which no threshold changes.",
            "在 {}之前缓存已过期（{} 词元）：这是停顿所致，任何触发大小都无法改变。",
            count(recorded.expiries, Noun::Request),
            short(Some(recorded.expired))
        )
    })
}

/// Says what is read again after a compaction.
fn refetch(economics: &Economics) -> String {
    match economics.refetch {
        Some(tokens) => say!(
            "Read again after each compaction: {} tokens, the mean excess of these logs over their controls.",
            "每次压缩后重读：{} 词元，即这些日志相对对照的平均超出量。",
            amount(tokens)
        ),
        None => localized(
            "What is read again after a compaction is not known, as none has controls: it is left out.",
            "压缩后重读了多少不得而知，因为都没有对照：未计入。",
        )
        .to_owned(),
    }
}

/// Says that the sizes of a method are extrapolated; `None` if it was measured on spans as large.
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

/// Names the methods that are cheapest at the lowest threshold.
fn cheapest_at_lowest(economics: &Economics) -> Option<String> {
    let lowest = economics
        .methods
        .iter()
        .filter(|one| one.curve.is_least_at_lowest())
        .map(method_name);
    let lowest: Vec<&str> = lowest.collect();
    (!lowest.is_empty()).then(|| {
        say!("Cheapest at the lowest threshold that was simulated: {}. What is lost with every compaction has no price here.", "在模拟的最低触发大小处最便宜：{}。每次压缩丢失的内容在此没有计价。",
            lowest.join(", ")
        )
    })
}

fn left_out(economics: &Economics) -> Option<String> {
    let by_reason = economics.left_out_by_reason();
    let lines = by_reason.iter().map(|(why, sessions)| {
        let named = sessions
            .iter()
            .take(NAMED)
            .copied()
            .collect::<Vec<&str>>()
            .join(", ");
        let more = sessions.len().saturating_sub(NAMED);
        let more = if more > 0 {
            say!(" and {more} more", " 等，另有 {more} 处")
        } else {
            String::new()
        };
        say!(
            "left out: {named}{more}: {why}",
            "未计入：{named}{more}：{why}"
        )
    });
    let lines: Vec<String> = lines.collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}
