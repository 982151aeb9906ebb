//! The first sentence of every report, in both languages.

use super::comparison_notes::has_grades;
use super::notes::has_answers;
use super::numbers::signed;
use super::translation::{Translation, translation};
use crate::judge::Dimension;
use crate::results::{
    AnswererAgreement, ConstraintLoss, EditNote, Headline, MainChange, MainLevels, MainResult,
    Manifest, MethodChange, MethodLevel, OVERALL, Summary, main_result,
};
use base::locale::Locale;
use base::text::{grouped, shortened};
use stats::thresholds::SPAN_WARNING;
use stats::{Interval, NoEvidenceReason, Verdict};

/// The main result of a set, with the sentence that states it.
pub fn headline(summary: &Summary, manifest: &Manifest) -> Headline {
    let locale = manifest.design.locale.of_report();
    let (result, tr) = (main_result(summary, manifest), translation(locale));
    let text = match &result {
        MainResult::Incomplete {
            judged, expected, ..
        } if !has_answers(&manifest.design) => incomplete_contexts([*judged, *expected], tr),
        MainResult::Sample if manifest.design.is_answered_by_models() => {
            graded_by_rules(tr).to_owned()
        }
        MainResult::Unchanged(change) if !summary.comparison.as_ref().is_some_and(has_grades) => {
            unchanged(change, ["contexts", "上下文"], tr)
        }
        _ => sentence(&result, tr),
    };
    Headline {
        text,
        result,
        locale,
    }
}

fn graded_by_rules(tr: &Translation) -> &'static str {
    tr.locale.pick(
        "Graded by built-in rules, not by a model: facts kept and answered facts count, scores do not.",
        "由内置规则而非模型评分：事实保留与答出的事实可信，得分不作数。",
    )
}

/// The verdict that decides the colour and the mark of a result.
pub(super) fn verdict_of(result: &MainResult) -> Option<Verdict> {
    match result {
        MainResult::Improved(_) => Some(Verdict::Improved),
        MainResult::Regressed(_) | MainResult::Mixed(_) => Some(Verdict::Regressed),
        _ => None,
    }
}

fn sentence(result: &MainResult, tr: &Translation) -> String {
    match result {
        MainResult::Incomplete { judged, failed, expected } => incomplete([*judged, *failed, *expected], tr),
        MainResult::Unscaled { difference } if *difference >= SPAN_WARNING => tr.locale.pick(
            format!("Too few probes: full is {} points above none, which may be chance.", signed(*difference)),
            format!("问题太少：full 比 none 高 {} 分，可能只是偶然。", signed(*difference)),
        ),
        MainResult::Unscaled { difference } => tr.locale.pick(
            format!("Nothing is measured: full and none are only {} points apart.", signed(*difference)),
            format!("测不出什么：full 与 none 只相差 {} 分。", signed(*difference)),
        ),
        MainResult::Sample => tr
            .locale
            .pick(
                "Run with built-in rules in place of a model: shows that all works, not which method is good.",
                "由内置规则代替模型的运行：只说明一切可用，不说明哪种方法好。",
            )
            .to_owned(),
        MainResult::Empty => {
            tr.locale.pick("Nothing was measured of what contexts keep.", "没有测得上下文保留了什么。").to_owned()
        }
        MainResult::Retention(levels) => level_sentence(levels, Measure::Retention, tr),
        MainResult::Scores(levels) => level_sentence(levels, Measure::Score, tr),
        MainResult::Improved(change) => {
            let word = match change.tokens.filter(|tokens| *tokens > NOTABLE_GROWTH) {
                Some(growth) => tr.locale.pick(
                    format!("Improved, but {} longer", percent(growth)),
                    format!("有提升，但长了 {}", percent(growth)),
                ),
                None => tr.locale.pick("Improved", "提升").to_owned(),
            };
            change_sentence(&word, change, tr)
        }
        MainResult::Regressed(change) => change_sentence(tr.locale.pick("Regressed", "退步"), change, tr),
        MainResult::Mixed(change) => change_sentence(tr.locale.pick("Mixed", "有升有降"), change, tr),
        MainResult::NoEvidence(change) if change.methods.is_empty() && change.no_evidence == 0 => {
            change_sentence(tr.locale.pick("No score changed", "得分无变化"), change, tr)
        }
        MainResult::NoEvidence(change) => {
            change_sentence(tr.locale.pick("No evidence of a change", "没有证据表明有变化"), change, tr)
        }
        MainResult::Unchanged(change) => unchanged(change, ["answers and grades", "答案与评分"], tr),
    }
}

/// The sentence on a comparison in which this is the same on both sides, in English and in Chinese.
fn unchanged(change: &MainChange, [english, chinese]: [&str; 2], tr: &Translation) -> String {
    let word = tr.locale.pick(
        format!("Unchanged: the same {english} as {}", change.baseline),
        format!("无变化：{chinese}和 {} 相同", change.baseline),
    );
    change_sentence(
        &word,
        &MainChange {
            unchanged: 0,
            tokens: None,
            ..change.clone()
        },
        tr,
    )
}

/// The growth in tokens from which the sentence on an improvement also names the growth.
const NOTABLE_GROWTH: f64 = 0.1;
/// Smaller changes in tokens, as a share, are not mentioned.
const MIN_TOKEN_CHANGE: f64 = 0.01;

/// `75%`.
fn percent(share: f64) -> String {
    format!("{:.0}%", 100.0 * share)
}

/// The sentence on a set with this many graded, failed and expected cells.
fn incomplete(cells: [u64; 3], tr: &Translation) -> String {
    let [judged, failed, expected] = cells.map(grouped);
    tr.locale.pick(
        format!("Incomplete: {judged} of {expected} cells are graded and {failed} failed, so nothing is concluded."),
        format!("不完整：{expected} 个单元中 {judged} 个已评分，{failed} 个失败，因此不下结论。"),
    )
}

/// The sentence on a set in which nothing is answered, with this many contexts made and expected.
fn incomplete_contexts(contexts: [u64; 2], tr: &Translation) -> String {
    let [made, expected] = contexts.map(grouped);
    tr.locale.pick(
        format!("Incomplete: {made} of {expected} contexts were made, so nothing is concluded."),
        format!("不完整：{expected} 个上下文中已生成 {made} 个，因此不下结论。"),
    )
}

/// What a level is measured in.
#[derive(Clone, Copy)]
enum Measure {
    Retention,
    Score,
}

impl Measure {
    fn value(self, value: f64) -> String {
        match self {
            Measure::Retention => percent(value),
            Measure::Score => format!("{value:.2}"),
        }
    }

    fn interval(self, interval: Interval, locale: Locale) -> String {
        let (low, high) = (interval.low(), interval.high());
        match self {
            Measure::Retention => {
                let low = format!("{:.0}", 100.0 * low);
                locale.pick(
                    format!("{low} to {}", percent(high)),
                    format!("{low}–{}", percent(high)),
                )
            }
            Measure::Score => locale.pick(
                format!("{low:.2} to {high:.2}"),
                format!("{low:.2}–{high:.2}"),
            ),
        }
    }

    /// The span of the values of several methods.
    fn span(self, levels: &[MethodLevel], locale: Locale) -> String {
        let (first, last) = (
            levels.first().map(|level| level.value),
            levels.last().map(|level| level.value),
        );
        let (high, low) = (first.unwrap_or_default(), last.unwrap_or_default());
        let (low, high) = (self.value(low), self.value(high));
        if low == high {
            return high;
        }
        let low = low.trim_end_matches('%');
        locale.pick(format!("{low} to {high}"), format!("{low}–{high}"))
    }
}

fn level_sentence(levels: &MainLevels, measure: Measure, tr: &Translation) -> String {
    let MainLevels {
        best,
        indistinguishable,
        lower,
        fixtures,
    } = levels;
    let (name, value) = (&best.method, measure.value(best.value));
    let interval = best.ci95.map(|ci| measure.interval(ci, tr.locale));
    let value = match &interval {
        Some(ci) => tr.locale.pick(
            format!("{value} (95%: {ci})"),
            format!("{value}（95%：{ci}）"),
        ),
        None => value,
    };
    let tokens = best.tokens.map(percent);
    let mut text = tr.locale.pick(
        english_level(name, &value, measure),
        chinese_level(name, &value, measure),
    );
    let whole = match measure {
        Measure::Retention => ["its", "其"],
        Measure::Score => ["the transcript's", "完整记录的"],
    };
    text += &tokens
        .map(|part| {
            let [english, chinese] = whole;
            tr.locale.pick(
                format!(" with {part} of {english} tokens"),
                format!("，词元为{chinese} {part}"),
            )
        })
        .unwrap_or_default();
    if interval.is_none() {
        text += &match (measure, *fixtures) {
            // a retention lacks its interval on one fixture alone
            (Measure::Retention, _) | (_, 0 | 1) => tr
                .locale
                .pick(
                    " on one fixture, which shows no order",
                    "，只有一个样本，不能排序",
                )
                .to_owned(),
            (_, several) => tr.locale.pick(
                format!(", the same on {several} fixtures, so without an interval"),
                format!("，{several} 个样本都相同，因此没有区间"),
            ),
        };
    }
    text += &others(
        indistinguishable,
        measure,
        tr,
        ["not distinguishable from it", "与其无法区分"],
    );
    text += &others(lower, measure, tr, ["lower", "更低"]);
    text + tr.locale.pick(".", "。")
}

fn english_level(name: &str, value: &str, measure: Measure) -> String {
    match measure {
        Measure::Retention => format!("{name} keeps {value} of the whole transcript's score"),
        Measure::Score => format!("{name} scores {value} of 5"),
    }
}

fn chinese_level(name: &str, value: &str, measure: Measure) -> String {
    match measure {
        Measure::Retention => format!("{name} 保留完整记录得分的 {value}"),
        Measure::Score => format!("{name} 得分 {value}（满分 5）"),
    }
}

/// `; 4 methods are lower (43 to 53%)`; one or two methods are named.
fn others(
    levels: &[MethodLevel],
    measure: Measure,
    tr: &Translation,
    [english, chinese]: [&str; 2],
) -> String {
    let span = measure.span(levels, tr.locale);
    let names: Vec<&str> = levels.iter().map(|level| level.method.as_str()).collect();
    match levels.len() {
        0 => String::new(),
        1 => tr.locale.pick(
            format!("; {} is {english} ({span})", names.concat()),
            format!("；{} {chinese}（{span}）", names.concat()),
        ),
        2 => tr.locale.pick(
            format!("; {} are {english} ({span})", names.join(" and ")),
            format!("；{} {chinese}（{span}）", names.join("、")),
        ),
        more => tr.locale.pick(
            format!("; {more} methods are {english} ({span})"),
            format!("；{more} 个方法{chinese}（{span}）"),
        ),
    }
}

/// The maximum number of methods that the sentence names with their figures.
const NAMED: usize = 2;

fn change_sentence(word: &str, change: &MainChange, tr: &Translation) -> String {
    let mut shown: Vec<String> = confirmed_losses(change, tr).into_iter().collect();
    shown.extend(change.mean.iter().map(|mean| mean_phrase(mean, tr)));
    // Beside a verdict on the mean, scores without one say nothing more.
    let is_shown = |method: &&MethodChange| {
        change.mean.is_none() || method.measure != OVERALL || method.verdict != Verdict::NoEvidence
    };
    let methods: Vec<&MethodChange> = change.methods.iter().filter(is_shown).collect();
    shown.extend(
        methods
            .iter()
            .take(NAMED)
            .map(|method| method_phrase(method, tr)),
    );
    let more = methods.len().saturating_sub(NAMED);
    shown.extend((more > 0).then(|| {
        tr.locale
            .pick(format!("{more} more"), format!("另有 {more} 个"))
    }));
    let edit = change
        .edit
        .as_ref()
        .map(|edit| edit_phrase(edit, tr))
        .unwrap_or_default();
    let colon = if shown.is_empty() {
        ""
    } else {
        tr.locale.pick(": ", "：")
    };
    let names = shown.join(tr.locale.pick(", ", "、"));
    let mut parts = vec![match tr.locale {
        Locale::En => format!("{word}{colon}{names}{edit}"),
        Locale::Zh => format!("{edit}{word}{colon}{names}"),
    }];
    parts.extend(consequences(change, tr));
    parts.join(tr.locale.pick("; ", "；")) + tr.locale.pick(".", "。")
}

/// `anchored −0.75 (95%: −1.01 to −0.49)`, with the number of tries where it improved.
fn method_phrase(method: &MethodChange, tr: &Translation) -> String {
    let why = match method.reason {
        Some(NoEvidenceReason::JudgeDrift) => {
            tr.locale.pick(", judge drift", "（评审漂移）").to_owned()
        }
        Some(NoEvidenceReason::Truncated) => tr
            .locale
            .pick(
                ", which depends on truncated answers",
                "（取决于被截断的回答）",
            )
            .to_owned(),
        Some(NoEvidenceReason::FewClusters) => tr
            .locale
            .pick(" (too few fixtures for a test)", "（样本太少，无法检验）")
            .to_owned(),
        _ => String::new(),
    };
    let dimension = Dimension::ALL
        .into_iter()
        .find(|dimension| dimension.name() == method.measure);
    let of = dimension.map(|dimension| {
        let label = dimension.label(tr.locale);
        tr.locale
            .pick(format!(" in {label}"), format!(" 的{label}"))
    });
    let (name, of) = (&method.method, of.unwrap_or_default());
    format!(
        "{name}{of} {}{}{why}",
        signed(method.difference),
        figures(method, tr)
    )
}

/// `` anchored loses the constraint `no new dependency` ``: the gate fails because of this.
fn confirmed_losses(change: &MainChange, tr: &Translation) -> Option<String> {
    let losses: Vec<&ConstraintLoss> = change
        .constraints_lost
        .iter()
        .filter(|loss| loss.is_confirmed)
        .collect();
    let (first, more) = losses.split_first()?;
    let (method, constraint) = (&first.method, code(&first.fact));
    Some(match more.len() {
        0 => tr.locale.pick(
            format!("{method} loses the constraint {constraint}"),
            format!("{method} 丢失约束 {constraint}"),
        ),
        more => tr.locale.pick(
            format!("{method} loses the constraint {constraint} (and {more} more lost)"),
            format!("{method} 丢失约束 {constraint}（另有 {more} 条丢失）"),
        ),
    })
}

/// `` the constraint `no new dependency` of anchored may be lost: no model judged it ``: only a warning. So is a loss of
/// which the grades do not say whether it is one.
fn unconfirmed_losses(change: &MainChange, tr: &Translation) -> Option<String> {
    let losses: Vec<&ConstraintLoss> = change
        .constraints_lost
        .iter()
        .filter(|loss| !loss.is_confirmed)
        .collect();
    let (first, more) = losses.split_first()?;
    let (method, constraint) = (&first.method, code(&first.fact));
    let (english, chinese) = match more.len() {
        0 => (String::new(), String::from(" ")),
        more => (format!(" and {more} more"), format!(" 等 {} 条", more + 1)),
    };
    let why = match first.is_graded {
        true => tr.locale.pick("the grades do not say", "评分无法说明"),
        false => tr.locale.pick("no model judged it", "没有模型评审过"),
    };
    Some(tr.locale.pick(
        format!("the constraint {constraint} of {method}{english} may be lost: {why}"),
        format!("{method} 的约束 {constraint}{chinese}可能已丢失：{why}"),
    ))
}

/// The text of a constraint or an edit as code.
fn code(text: &str) -> String {
    format!("`{}`", shortened(&text.replace('`', "'"), MAX_EDIT))
}

fn mean_phrase(mean: &MethodChange, tr: &Translation) -> String {
    let count = &mean.method;
    let name = tr.locale.pick(
        format!("mean of {count} methods"),
        format!("{count} 个方法的平均"),
    );
    format!("{name} {}{}", signed(mean.difference), figures(mean, tr))
}

/// ` (95%: 0.49 to 1.01; 1 try) on 3 of 8 fixtures`: the interval, the number of tries of an improvement, and the
/// fixtures that changed, if some did not.
fn figures(change: &MethodChange, tr: &Translation) -> String {
    let (some, all) = (change.fixtures, change.fixtures + change.unchanged);
    let fixtures = (some > 0 && some < all).then(|| {
        tr.locale.pick(
            format!(" on {some} of {all} fixtures"),
            format!("（{all} 个样本中的 {some} 个）"),
        )
    });
    interval(change, tr) + &fixtures.unwrap_or_default()
}

fn interval(change: &MethodChange, tr: &Translation) -> String {
    change.ci95.map_or_else(String::new, |ci| {
        let (low, high) = (signed(ci.low()), signed(ci.high()));
        tr.locale.pick(
            format!(" (95%: {low} to {high})"),
            format!("（95%：{low} 至 {high}）"),
        )
    })
}

/// The maximum length of an edited line in the sentence, in characters.
const MAX_EDIT: usize = 40;

/// ` after removing `## Current state``, or the other method that is the baseline.
fn edit_phrase(edit: &EditNote, tr: &Translation) -> String {
    let (english, chinese) = match edit {
        EditNote::OtherMethod(name) => {
            return tr
                .locale
                .pick(format!(" against {name}"), format!("与 {name} 相比，"));
        }
        EditNote::Removed(text) => (
            format!("removing {}", code(text)),
            format!("删除 {} 后", code(text)),
        ),
        EditNote::Added(text) => (
            format!("adding {}", code(text)),
            format!("增加 {} 后", code(text)),
        ),
        EditNote::Changed(place) => (format!("editing {place}"), format!("修改 {place} 后")),
        EditNote::Setting(text) => (text.clone(), format!("{text} 后")),
        EditNote::Several(count) => (format!("{count} edits"), format!("{count} 处改动后")),
    };
    tr.locale
        .pick(format!(" after {english}"), format!("{chinese}，"))
}

/// `3 methods unchanged`; `None` for no method.
fn count_methods(
    count: usize,
    [one, many]: [&str; 2],
    chinese: &str,
    tr: &Translation,
) -> Option<String> {
    let english = if count == 1 { one } else { many };
    (count > 0).then(|| {
        tr.locale
            .pick(format!("{count} {english}"), format!("{count} {chinese}"))
    })
}

/// What else restricts or follows from a change, each in a few words.
fn consequences(change: &MainChange, tr: &Translation) -> Vec<String> {
    let less_reliable = (!change.less_reliable.is_empty()).then(|| {
        let names = change.less_reliable.join(", ");
        tr.locale.pick(
            format!("more failures of {names}"),
            format!("{names} 失败更多"),
        )
    });
    let newly_failing = (!change.newly_failing.is_empty()).then(|| {
        let names = change.newly_failing.join(", ");
        tr.locale.pick(
            format!("new failures of {names}"),
            format!("{names} 有新的失败"),
        )
    });
    let one_sided = (!change.one_sided.is_empty()).then(|| {
        let names = change.one_sided.join(", ");
        tr.locale.pick(
            format!("only one side has some grades of {names}"),
            format!("{names} 的部分评分仅一侧有"),
        )
    });
    let tokens = change
        .tokens
        .filter(|tokens| tokens.abs() >= MIN_TOKEN_CHANGE);
    let drift = change.drift_unchecked.then(|| {
        tr.locale
            .pick("drift not checked", "未检查评审漂移")
            .to_owned()
    });
    let labels = (change.labels > 1).then(|| {
        let labels = change.labels;
        tr.locale.pick(
            format!("the baseline was compared with {labels} labels so far"),
            format!("该基线至今已与 {labels} 个标签比较"),
        )
    });
    let lexical = change.lexical.then(|| {
        tr.locale
            .pick("built-in rules, no model", "内置规则，未用模型")
            .to_owned()
    });
    [
        unconfirmed_losses(change, tr),
        less_reliable,
        newly_failing,
        one_sided,
        count_methods(
            change.no_evidence,
            ["method without evidence", "methods without evidence"],
            "个方法证据不足",
            tr,
        ),
        count_methods(
            change.unchanged,
            ["method unchanged", "methods unchanged"],
            "个方法无变化",
            tr,
        ),
        tokens.map(|tokens| token_change(tokens, tr)),
        change.answerers.map(|answerers| agreement(answerers, tr)),
        labels,
        drift,
        lexical,
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// `12% fewer tokens`
fn token_change(tokens: f64, tr: &Translation) -> String {
    let part = percent(tokens.abs());
    let (english, chinese) = if tokens < 0.0 {
        ("fewer", "减少")
    } else {
        ("more", "增加")
    };
    tr.locale.pick(
        format!("{part} {english} tokens"),
        format!("词元{chinese} {part}"),
    )
}

/// `same with 2 of 3 answerers`
fn agreement(AnswererAgreement { same, of }: AnswererAgreement, tr: &Translation) -> String {
    match same {
        // The result of the first one with the regressions of others.
        0 => tr
            .locale
            .pick(
                "no answerer alone gives this result",
                "没有一个作答模型单独得出此结论",
            )
            .to_owned(),
        same => tr.locale.pick(
            format!("same with {same} of {of} answerers"),
            format!("{of} 个作答模型中 {same} 个结论相同"),
        ),
    }
}
