//! What sessions cost, as `observe --economics` shows it: the bill, and the worst compactions.

use super::document::{Block, Section};
use super::figures::{counted, share, short_time, usd};
use super::styled::{TextTable, UNKNOWN};
use base::locale::localized;
use base::say;
use base::text::grouped;
use sessions::economics::Economics;
use sessions::import::Format;
use std::collections::BTreeMap;

/// Compactions that are listed; `--json` has all.
const WORST: usize = 3;
/// Sessions that are named; `--json` has all.
const NAMED: usize = 3;

/// The costs of sessions; the last lines of the first section restrict them.
pub fn economics(economics: &Economics) -> Vec<Section> {
    let mut said = bill(economics);
    said.extend(left_out(economics));
    if economics.uncounted > 0 {
        let requests = counted(economics.uncounted, ["request", "requests"], "次请求");
        said.push(say!(
            "left out: {requests} whose tokens the log does not count",
            "未计入：{requests}（日志未统计其词元）"
        ));
    }
    if economics.partial_output {
        let products = Format::those(Format::counts_output_in_part);
        let products = Format::products(&products, localized("and", "和"));
        said.push(say!(
            "logs of {products} count output in part only, so it costs more than is shown",
            "{products} 的日志只计部分输出，因此实际费用高于所示"
        ));
    }
    let title = localized("What the sessions cost", "这些会话的费用");
    let cost = Section::new("economics", title, [Block::List(said)]);
    cost.into_iter().chain(rewrites(economics)).collect()
}

fn bill(economics: &Economics) -> Vec<String> {
    let bill = &economics.bill;
    let total = bill.usd();
    let mut lines = vec![say!(
        "{}, {}: {} at list prices",
        "{}，{}：按标价 {}",
        counted(economics.sessions, ["session", "sessions"], "个会话"),
        counted(bill.requests, ["request", "requests"], "次请求"),
        usd(Some(total)),
    )];
    if economics.sessions > 0 {
        let parts = [bill.cache_write, bill.cache_read, bill.input, bill.output];
        let [writes, reads, other, output] = parts.map(|item| {
            let part = share((total > 0.0).then(|| item.usd / total));
            let tokens = grouped(item.tokens);
            say!("{part} ({tokens} tokens)", "{part}（{tokens} 词元）")
        });
        lines.push(say!(
            "of it cache writes {writes}, cache reads {reads}, other input {other}, output {output}",
            "其中缓存写入 {writes}，缓存读取 {reads}，其他输入 {other}，输出 {output}"
        ));
    }
    lines
}

/// The sessions that are in no figure, and why.
fn left_out(economics: &Economics) -> Vec<String> {
    let mut by_reason: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for one in &economics.left_out {
        let sessions = by_reason.entry(one.why.message()).or_default();
        sessions.push(&one.session);
    }
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

fn rewrites(economics: &Economics) -> Option<Section> {
    let worst = economics.rewrites.iter().take(WORST);
    let tokens: u64 = worst.clone().map(|one| one.tokens).sum();
    let cost: f64 = worst.clone().map(|one| one.usd).sum();
    let title = say!(
        "The worst {} of {} recorded compactions made the provider process {} tokens again ({})",
        "记录的 {1} 次压缩中最差的 {0} 次使服务商重新处理了 {2} 词元（{3}）",
        worst.len(),
        economics.rewrites.len(),
        grouped(tokens),
        usd(Some(cost))
    );
    let columns = [
        localized("session", "会话"),
        localized("at", "位置"),
        localized("time", "时间"),
        localized("rewritten", "重写"),
        localized("cost", "费用"),
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
