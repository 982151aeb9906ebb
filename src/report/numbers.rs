//! Formats numbers for tables and sentences.

use super::translation::{Translation, fill};
use crate::results::{ScoreEstimate, Share};
pub(super) use crate::results::{probability, signed};
use base::say;
use base::text::grouped;
use base::units::{Usd, money};
use stats::{DifferenceTest, Interval, Verdict};

/// What tables and sentences show for an unknown value.
pub(super) const UNKNOWN: &str = "–";

/// Whether the text of a table cell is known and not empty.
pub(super) fn is_figure(text: &str) -> bool {
    !matches!(text, "" | UNKNOWN)
}

pub(super) fn score(value: Option<f64>) -> String {
    value.map_or_else(
        || UNKNOWN.to_owned(),
        |value| format!("{value:.2}").replace('-', "−"),
    )
}

pub(super) fn share(value: Option<f64>) -> String {
    value.map_or_else(
        || UNKNOWN.to_owned(),
        |value| format!("{:.1}%", 100.0 * value),
    )
}

/// A count with thousands separators.
pub(super) fn count(value: Option<f64>) -> String {
    value.map_or_else(
        || UNKNOWN.to_owned(),
        |value| grouped(value.round().max(0.0) as u64),
    )
}

/// `1,204–2,310`: the interval of a count.
pub(super) fn count_range(interval: Interval) -> String {
    format!(
        "{}–{}",
        count(Some(interval.low())),
        count(Some(interval.high()))
    )
}

pub(super) fn usd(value: Option<f64>) -> String {
    money(value.map(Usd))
}

/// `3.1–4.7`: the interval of a level.
pub(super) fn range(interval: Option<Interval>) -> String {
    interval
        .map(|ci| format!("{:.1}–{:.1}", ci.low(), ci.high()))
        .unwrap_or_default()
}

/// `3.87 3.6–4.2`: a level and its interval.
pub(super) fn level(found: &ScoreEstimate) -> String {
    format!("{} {}", score(found.median), range(found.ci95))
        .trim_end()
        .to_owned()
}

/// `[+0.32, +0.63]`.
pub(super) fn brackets(interval: Option<Interval>) -> String {
    interval.map_or_else(
        || UNKNOWN.to_owned(),
        |ci| format!("[{}, {}]", signed(ci.low()), signed(ci.high())),
    )
}

/// `0–35%`: the interval of a share.
pub(super) fn percent_range(interval: Interval) -> String {
    format!(
        "{:.0}–{:.0}%",
        100.0 * interval.low(),
        100.0 * interval.high()
    )
}

/// `[0%, 35%] of 18`: the interval and the denominator of a share; `of 18` without an interval.
fn share_detail(share: &Share, tr: &Translation) -> String {
    let interval = share
        .ci95
        .map(|ci| format!("[{:.0}%, {:.0}%] ", 100.0 * ci.low(), 100.0 * ci.high()));
    format!(
        "{}{}",
        interval.unwrap_or_default(),
        fill(tr.of_n, &[&grouped(share.of)])
    )
}

/// `11.1% [0%, 35%] of 18`; a dash if there is nothing to count.
pub(super) fn share_with_interval(found: &Share, tr: &Translation) -> String {
    if found.of == 0 {
        UNKNOWN.to_owned()
    } else {
        format!("{} {}", share(found.share), share_detail(found, tr))
    }
}

/// `▲` for an improvement, `▼` for a regression.
pub(super) fn mark(judged: Option<&DifferenceTest>) -> &'static str {
    judged.map_or("", |judged| verdict_mark(judged.verdict))
}

pub(super) fn verdict_mark(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Improved => "▲",
        Verdict::Regressed => "▼",
        Verdict::NoEvidence => "",
    }
}

/// `2026-01-02 03:04`, from a time in RFC 3339.
pub fn short_time(time: &str) -> String {
    time.chars()
        .take(16)
        .map(|c| if c == 'T' { ' ' } else { c })
        .collect()
}

/// A number with its noun in the language that is printed: `1 session`, `3 sessions`; `3 个会话`.
pub(super) fn counted<N: TryInto<u64>>(number: N, [one, many]: [&str; 2], chinese: &str) -> String {
    let number = number.try_into().unwrap_or(u64::MAX);
    let noun = if number == 1 { one } else { many };
    say!("{} {noun}", "{} {chinese}", grouped(number))
}
