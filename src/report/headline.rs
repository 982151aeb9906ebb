//! The first sentence of every report, in both languages: what is worst first, on at most two lines.

use super::comparison_notes::sameness;
use super::figures::{score, signed};
use super::planted::planted_line;
use super::styled::wrap_lines;
use super::translation::{Translation, first_of, joined, translation};
use crate::action::StageName;
use crate::results::{
    Collapse, Comparison, EditNote, Headline, LostConstraint, MainResult, Manifest, MethodChange,
    MethodComparison, MethodInfo, MethodSummary, OVERALL, PlantedComparison, RankedMethod, Ranking,
    Summary, Trend, changes_without_verdict, edit_note, is_drift, main_result, measures_nothing,
    not_comparable,
};
use base::text::{grouped, shortened};
use stats::thresholds::{MARGIN, MIN_CLUSTERS, SPAN_WARNING};
use stats::{DifferenceTest, Interval, NoEvidenceReason, Separation, Verdict};

/// The width of a line of the sentence, and how many it may have.
const WIDTH: usize = 80;
const LINES: usize = 2;

/// The main result of a set, with the sentence that states it.
pub fn headline(summary: &Summary, manifest: &Manifest) -> Headline {
    let locale = manifest.locale();
    let (result, tr) = (main_result(summary, manifest), translation(locale));
    let clauses = |named: usize| match (&result, &summary.ranking, &summary.comparison) {
        (MainResult::Levels, Some(ranking), _) => {
            let once = manifest.design.has_one_sample();
            Clauses { named, tr }.of_run(ranking, once, summary)
        }
        (MainResult::Change { trend }, _, Some(comparison)) => {
            Clauses { named, tr }.of_comparison(comparison, *trend, summary)
        }
        _ => vec![plain_sentence(&result, summary, manifest, tr)],
    };
    let (text, more) = fitted(clauses, summary, tr);
    Headline {
        text,
        more,
        result,
        locale,
    }
}

/// The maximum number of methods that a clause names.
const NAMED: usize = 3;

/// The clauses that fit into the sentence, and the others as sentences of their own. `clauses` makes them with a number
/// of methods by name, which is lower where even the first one does not fit.
fn fitted(
    clauses: impl Fn(usize) -> Vec<String>,
    summary: &Summary,
    tr: &Translation,
) -> (String, String) {
    let (comma, stop) = (tr.semicolon, tr.pick(".", "。"));
    let fits = |text: &str| wrap_lines(text, WIDTH).lines().count() <= LINES;
    let finished = |text: &str| match text.ends_with(['.', '。']) {
        true => text.to_owned(),
        false => format!("{text}{stop}"),
    };
    let all = (1..=NAMED).rev().map(&clauses);
    let all = all.reduce(|wide, narrow| match wide.first() {
        Some(first) if fits(&finished(first)) => wide,
        _ => narrow,
    });
    let mut text = String::new();
    let mut more = Vec::new();
    for clause in all.unwrap_or_default() {
        let longer = match text.is_empty() {
            true => clause.clone(),
            false => format!("{text}{comma}{clause}"),
        };
        // In order: what comes after a clause without room has none either.
        if text.is_empty() || (more.is_empty() && fits(&finished(&longer))) {
            text = longer;
        } else {
            more.push(finished(&capitalized(&clause, summary)));
        }
    }
    (finished(&text), more.join(tr.pick(" ", "")))
}

/// A clause as the beginning of a sentence. The name of a method stays as it is.
fn capitalized(clause: &str, summary: &Summary) -> String {
    let mut rest = clause.chars();
    let is_name = summary
        .methods
        .keys()
        .any(|name| clause.starts_with(&format!("{name} ")));
    match rest.next().filter(|_| !is_name) {
        Some(first) => first.to_uppercase().chain(rest).collect(),
        None => clause.to_owned(),
    }
}

/// The verdict that decides the colour and the mark of a result.
pub(super) fn verdict_of(result: &MainResult) -> Option<Verdict> {
    match result {
        MainResult::Change { trend } => match trend {
            Trend::Improved => Some(Verdict::Improved),
            Trend::Regressed | Trend::Mixed => Some(Verdict::Regressed),
            Trend::NoEvidence | Trend::Unchanged => None,
        },
        _ => None,
    }
}

/// The sentence on a set of which there is only one thing to say.
fn plain_sentence(
    result: &MainResult,
    summary: &Summary,
    manifest: &Manifest,
    tr: &Translation,
) -> String {
    let is_answered = manifest.design.has_answers();
    match result {
        MainResult::Incomplete { judged, failed, expected } => {
            let [judged, failed, expected] = [judged, failed, expected].map(|count| grouped(*count));
            match is_answered {
                true => tr.pick(
                    format!("Incomplete: {judged} of {expected} cells are graded and {failed} failed, so nothing is concluded."),
                    format!("不完整：{expected} 个单元中 {judged} 个已评分，{failed} 个失败，因此不下结论。"),
                ),
                false => tr.pick(
                    format!("Incomplete: {judged} of {expected} contexts were made, so nothing is concluded."),
                    format!("不完整：{expected} 个上下文中已生成 {judged} 个，因此不下结论。"),
                ),
            }
        }
        MainResult::Unscaled { difference } if *difference >= SPAN_WARNING => tr.pick(
            format!("Too few probes: full is {} points above none, which may be chance.", signed(*difference)),
            format!("问题太少：full 比 none 高 {} 分，可能只是偶然。", signed(*difference)),
        ),
        MainResult::Unscaled { difference } => tr.pick(
            format!("These probes tell no method apart: full is only {} points above none.", signed(*difference)),
            format!("这些问题分不出方法的好坏：full 只比 none 高 {} 分。", signed(*difference)),
        ),
        MainResult::DryRun if manifest.design.is_answered_by_models() => tr.pick(
                "Graded by built-in rules, not by a model: facts kept and answered facts count, scores do not.",
                "由内置规则而非模型评分：事实保留与答出的事实可信，得分不作数。",
            )
            .to_owned(),
        MainResult::DryRun => tr.pick(
                "Dry run with built-in rules: this tests the setup, not the methods.",
                "用内置规则试运行：检验的是配置，不是方法。",
            )
            .to_owned(),
        _ if !is_answered => {
            let line = planted_line(summary, tr).unwrap_or_else(|| tr.pick(
                "No questions were asked: the table shows what each compression costs and keeps.",
                "没有提问：下表是每次压缩的费用与保留。",
            )
            .to_owned());
            line + &failed_questions(manifest, tr)
        }
        _ if manifest.design.methods.iter().all(MethodInfo::is_anchor) => tr.pick(
                "Only the references were run: no method is judged.",
                "只运行了参照方法：没有评判任何方法。",
            )
            .to_owned(),
        _ => tr.pick(
                "No answer has a grade that counts: the table shows what contexts keep.",
                "没有可用的评分：下表是上下文保留的内容。",
            )
            .to_owned(),
    }
}

/// ` 64 questions failed.`, where questions about planted items did.
fn failed_questions(manifest: &Manifest, tr: &Translation) -> String {
    let answers = manifest.failures.iter();
    match answers.filter(|one| one.stage == StageName::Answer).count() {
        0 => String::new(),
        count => {
            let questions = tr.locale.count(count, "question", "个提问");
            tr.pick(
                format!(" {questions} failed."),
                format!("{questions}失败。"),
            )
        }
    }
}

/// `75%`.
fn percent(share: f64) -> String {
    format!("{:.0}%", 100.0 * share)
}

/// Makes the clauses of a sentence in a language. A clause names at most so many methods.
struct Clauses<'t> {
    named: usize,
    tr: &'t Translation,
}

impl Clauses<'_> {
    /// The first of several things, and how many more there are.
    fn list<T>(&self, all: &[T], text: impl Fn(&T) -> String) -> String {
        first_of(all, self.named, self.tr, text).join(self.tr.comma)
    }

    /// The list, or nothing.
    fn some_of<T>(&self, all: &[T], text: impl Fn(&T) -> String) -> Option<String> {
        (!all.is_empty()).then(|| self.list(all, text))
    }

    /// `regressed: a, b`; `None` for nothing.
    fn worded(
        &self,
        [english, chinese]: [&str; 2],
        parts: impl IntoIterator<Item = String>,
    ) -> Option<String> {
        let parts = joined(parts, self.tr.comma)?;
        let (english, chinese) = (format!("{english}: {parts}"), format!("{chinese}：{parts}"));
        Some(self.tr.pick(english, chinese))
    }

    fn names<S: ToString>(&self, names: &[S], words: [&str; 2]) -> Option<String> {
        self.worded(words, self.some_of(names, S::to_string))
    }

    fn changes(&self, changes: &[MethodChange<'_>]) -> Option<String> {
        self.some_of(changes, |change| method_phrase(change, self.tr))
    }

    // --- a run ---

    fn of_run(&self, ranking: &Ranking, once: bool, summary: &Summary) -> Vec<String> {
        let tr = self.tr;
        let mut clauses = Vec::new();
        let basis = basis(ranking.fixtures, once, tr);
        if ranking.above_full.is_empty() {
            let best = summary.methods.get(&ranking.best);
            clauses.extend(best.map(|best| best_clause(&ranking.best, best, tr) + &basis));
        } else {
            let names = self.list(&ranking.above_full, |one| {
                let points = difference(one.difference, one.ci95, tr);
                format!("{} {points}", one.method)
            });
            clauses.push(tr.pick(
                format!(
                    "Scored above the whole transcript, which contains everything: {names}{basis}"
                ),
                format!("评分高于包含全部内容的完整记录：{names}{basis}"),
            ));
            clauses.push(
                tr.pick("no method is named best", "因此不称任何方法为最好")
                    .to_owned(),
            );
        }
        if ranking.fixtures >= MIN_CLUSTERS && ranking.above_full.is_empty() {
            clauses.extend(self.below_best(ranking));
        }
        clauses
    }

    /// The other methods, by whether they are below the best one.
    fn below_best(&self, ranking: &Ranking) -> Vec<String> {
        let tr = self.tr;
        let of = |separation: Separation| -> Vec<&RankedMethod> {
            let others = ranking.others.iter();
            others.filter(|one| one.separation == separation).collect()
        };
        let with_difference =
            |one: &&RankedMethod| format!("{} {}", one.method, signed(one.difference));
        let names = self.some_of(&of(Separation::Apart), with_difference);
        let apart = self.worded(["below it", "低于它"], names);
        let perhaps = self.some_of(&of(Separation::Perhaps), with_difference);
        let perhaps = perhaps.map(|names| {
            let why = match ranking.others.len() + 1 {
                2 => tr.pick(
                    "(too few fixtures to be sure)".to_owned(),
                    "（样本太少，不能确定）".to_owned(),
                ),
                methods => tr.pick(
                    format!("(not after correction for {methods} methods)"),
                    format!("（按 {methods} 个方法校正后不显著）"),
                ),
            };
            tr.pick(
                format!("perhaps below: {names} {why}"),
                format!("可能低于它：{names}{why}"),
            )
        });
        let rest = of(Separation::NotSeparable);
        let names = self.some_of(&rest, |one| one.method.clone());
        let rest = self.worded(["not separable from it", "与它分不开"], names);
        apart.into_iter().chain(perhaps).chain(rest).collect()
    }

    // --- a comparison ---

    /// The clauses on a comparison, the worst first. They are not alternatives: an order that shows only the first would hide
    /// losses.
    fn of_comparison(&self, change: &Comparison, trend: Trend, summary: &Summary) -> Vec<String> {
        let tr = self.tr;
        let with_verdict = |verdict| {
            let mean = of_mean(change, verdict, tr).into_iter();
            mean.chain(self.changes(&change.changes_with_verdict(verdict)))
        };
        let planted = change.names_of(MethodComparison::is_planted_worse);
        let less_reliable = change.names_of(|compared| compared.reliability.test.regressed);
        let growth = change.growth();
        let longer = growth.filter(|growth| *growth > NOTABLE_GROWTH && trend == Trend::Improved);
        let improved = match longer {
            Some(growth) => [
                format!("improved, but {} longer", percent(growth)),
                format!("有提升，但长了 {}", percent(growth)),
            ],
            None => ["improved", "提升"].map(str::to_owned),
        };
        let found = [
            self.confirmed_losses(change),
            self.worded(["regressed", "退步"], with_verdict(Verdict::Regressed)),
            self.names(&planted, ["more planted items go wrong", "植入项出错更多"]),
            self.names(&less_reliable, ["fails more often", "失败更多"]),
            self.names(&change.absent, ["missing here", "本侧缺少"]),
            self.gaps(change, summary),
            self.collapsed(&change.collapsed),
            self.worded(
                improved.each_ref().map(String::as_str),
                with_verdict(Verdict::Improved),
            ),
        ];
        let mut clauses: Vec<String> = found.into_iter().flatten().collect();
        let [small, unproven] = changes_without_verdict(change, summary);
        clauses.extend(self.small(&small));
        let has_finding = !clauses.is_empty();
        clauses.extend(self.unproven(unproven, has_finding));
        if clauses.is_empty() {
            clauses.push(unchanged_clause(change, trend, tr));
        }
        if let Some(first) = clauses.first_mut() {
            *first = with_edit(first, change, summary, tr);
        }
        // An improvement has named a notable growth already.
        let growth = growth.filter(|_| longer.is_none());
        clauses.extend(self.remarks(change, trend, growth));
        clauses
    }

    /// `` anchored lost the user's rule `no new dependency` ``: the gate fails because of this.
    fn confirmed_losses(&self, change: &Comparison) -> Option<String> {
        let losses = losses(change, |lost| lost.is_confirmed);
        self.some_of(&losses, |(method, loss)| {
            let rule = code(&loss.fact.fact);
            self.tr.pick(
                format!("{method} lost the user's rule {rule}"),
                format!("{method} 丢失用户的规则 {rule}"),
            )
        })
    }

    fn gaps(&self, change: &Comparison, summary: &Summary) -> Option<String> {
        let baseline = &change.baseline;
        let gaps = not_comparable(change, summary);
        let all = self.some_of(&gaps, |(method, missing, of)| {
            let [cells, of] = [missing, of].map(|count| grouped(*count));
            match missing {
                0 => self.tr.pick(
                    format!("{method} (cells of {baseline} are missing)"),
                    format!("{method}（{baseline} 缺少单元）"),
                ),
                _ => self.tr.pick(
                    format!("{method} ({cells} of {of} cells are missing)"),
                    format!("{method}（{of} 个单元中缺 {cells} 个）"),
                ),
            }
        });
        self.worded(["not comparable", "无法比较"], all)
    }

    fn collapsed(&self, collapsed: &[Collapse]) -> Option<String> {
        let all = self.some_of(collapsed, |one| {
            let (method, fixture, points) = (&one.method, &one.fixture, signed(one.difference));
            self.tr.pick(
                format!("{method} on {fixture} {points}"),
                format!("{method} 在 {fixture} 上 {points}"),
            )
        });
        self.worded(["collapsed", "崩溃"], all)
    }

    /// Changes that are not chance and too small for a verdict; smaller than the margin only where the interval says so.
    fn small(&self, small: &[MethodChange<'_>]) -> Vec<String> {
        let is_within =
            |one: &MethodChange<'_>| one.test.ci95.is_some_and(|ci| ci.is_within(MARGIN));
        let (within, wider): (Vec<MethodChange<'_>>, Vec<MethodChange<'_>>) =
            small.iter().copied().partition(is_within);
        let words = [
            format!("changed, possibly by {MARGIN} or more"),
            format!("有变化，不排除 {MARGIN}"),
            format!("a change, smaller than {MARGIN}"),
            format!("有变化，小于 {MARGIN}"),
        ];
        let wider = self.worded([&words[0], &words[1]], self.changes(&wider));
        let within = self.worded([&words[2], &words[3]], self.changes(&within));
        wider.into_iter().chain(within).collect()
    }

    /// The methods of which nothing was shown. Where that is all there is to say, with what could have been found.
    fn unproven(&self, unproven: Vec<MethodChange<'_>>, has_finding: bool) -> Vec<String> {
        // Their intervals may exclude 0: what is in doubt is the judge or the answerer.
        let (doubted, rest): (Vec<_>, Vec<_>) = unproven.into_iter().partition(|one| {
            is_drift(one.test) || one.test.reason == Some(NoEvidenceReason::Confounded)
        });
        let doubted = match has_finding {
            true => self.some_of(&doubted, |one| one.method.to_owned()),
            false => self.with_reasons(&doubted),
        };
        let doubted = self.worded(["no verdict", "没有结论"], doubted);
        let has_finding = has_finding || doubted.is_some();
        let rest = self.without_evidence(&rest, has_finding);
        doubted.into_iter().chain(rest).collect()
    }

    fn without_evidence(&self, unproven: &[MethodChange<'_>], has_finding: bool) -> Option<String> {
        let tr = self.tr;
        if has_finding {
            let names = self.some_of(unproven, |one| one.method.to_owned())?;
            return Some(tr.pick(
                format!("no evidence on {names}"),
                format!("{names} 证据不足"),
            ));
        }
        let names = self.with_reasons(unproven)?;
        let found = unproven
            .iter()
            .map(|one| one.test.mdd)
            .reduce(|one, next| Some(one?.max(next?)))
            .flatten();
        let found = found.map_or_else(String::new, |points| {
            tr.pick(
                format!("; {points:.2} or more would have been found"),
                format!("；{points:.2} 及以上会被发现"),
            )
        });
        Some(tr.pick(
            format!("no evidence of a change: {names}{found}"),
            format!("没有证据表明有变化：{names}{found}"),
        ))
    }

    /// The methods without a verdict, with the reason: once, if all have the same.
    fn with_reasons(&self, unproven: &[MethodChange<'_>]) -> Option<String> {
        let first = unproven.first()?.test.reason;
        if unproven.iter().all(|one| one.test.reason == first) {
            return Some(self.changes(unproven)? + no_verdict(first, self.tr));
        }
        self.some_of(unproven, |one| {
            method_phrase(one, self.tr) + no_verdict(one.test.reason, self.tr)
        })
    }

    /// What else restricts or follows from a change, each in a few words. `growth` is that of the tokens, unless it was named.
    fn remarks(&self, change: &Comparison, trend: Trend, growth: Option<f64>) -> Vec<String> {
        let tr = self.tr;
        let unconfirmed = losses(change, |lost| !lost.is_confirmed);
        let unconfirmed = self.some_of(&unconfirmed, |(method, loss)| {
            let rule = code(&loss.fact.fact);
            let why = match loss.is_graded {
                true => tr.pick("the grades do not say", "评分无法说明"),
                false => tr.pick("not checked by a model", "未经模型核对"),
            };
            tr.pick(
                format!("{method} may have dropped the user's rule {rule} ({why})"),
                format!("{method} 可能丢失了用户的规则 {rule}（{why}）"),
            )
        });
        let newly_failing = change.names_of(|compared| compared.reliability.is_only_new());
        let one_sided = change.names_of(MethodComparison::is_one_sided);
        let words = ["some grades only on one side", "部分评分仅一侧有"];
        let restrictions = [
            unconfirmed,
            self.names(&newly_failing, ["new failures", "新的失败"]),
            self.names(&one_sided, words),
        ];
        let rest = basis_of_change(change, trend, growth, tr);
        restrictions.into_iter().flatten().chain(rest).collect()
    }
}

/// How much is the same, how the sizes changed, and what the comparison rests on.
fn basis_of_change(
    change: &Comparison,
    trend: Trend,
    growth: Option<f64>,
    tr: &Translation,
) -> Vec<String> {
    let unchanged = change.names_of(MethodComparison::is_same).len();
    let unchanged = (unchanged > 0 && trend != Trend::Unchanged).then(|| {
        let methods = tr.locale.count(unchanged, "method", "个方法");
        methods + tr.pick(" unchanged", "无变化")
    });
    let notable = growth.filter(|growth| growth.abs() >= MIN_TOKEN_CHANGE);
    let tokens = notable.map(|growth| {
        let part = percent(growth.abs());
        match growth < 0.0 {
            true => tr.pick(format!("{part} fewer tokens"), format!("词元减少 {part}")),
            false => tr.pick(format!("{part} more tokens"), format!("词元增加 {part}")),
        }
    });
    let labels = (change.labels > 1).then(|| {
        let labels = change.labels;
        tr.pick(
            format!("the baseline was compared with {labels} labels so far"),
            format!("该基线至今已与 {labels} 个标签比较"),
        )
    });
    let is_once = change.single_run && trend != Trend::Unchanged;
    let once = is_once.then(|| tr.pick("one run", "一次运行").to_owned());
    let rules = match change.answered_by_models {
        true => tr.pick("graded by built-in rules", "由内置规则评分"),
        false => tr.pick("built-in rules, no model", "内置规则，未用模型"),
    };
    let rules = change.lexical.then(|| rules.to_owned());
    let all = [unchanged, tokens, labels, once, rules];
    all.into_iter().flatten().collect()
}

/// `anchored keeps 83% of the whole transcript's score (95%: 77 to 92%) with 12% of its tokens`: the share of that score,
/// or the score where the share is not defined.
fn best_clause(best: &str, method: &MethodSummary, tr: &Translation) -> String {
    let kept = method.retention.value;
    let ends = match kept {
        Some(_) => {
            let ci95 = method.retention.ci95;
            ci95.map(|ci| [format!("{:.0}", 100.0 * ci.low()), percent(ci.high())])
        }
        None => {
            let ci95 = method.overall.ci95;
            ci95.map(|ci| [ci.low(), ci.high()].map(|end| format!("{end:.2}")))
        }
    };
    let interval = ends.map_or_else(String::new, |[low, high]| {
        tr.pick(
            format!(" (95%: {low} to {high})"),
            format!("（95%：{low}–{high}）"),
        )
    });
    let whole = match kept {
        Some(_) => tr.pick("its", "其"),
        None => tr.pick("the transcript's", "完整记录的"),
    };
    let tokens = method.economy.compression_ratio.map(|removed| {
        let part = percent(1.0 - removed);
        tr.pick(
            format!(" with {part} of {whole} tokens"),
            format!("，词元为{whole} {part}"),
        )
    });
    let rest = interval + &tokens.unwrap_or_default();
    match kept.map(percent) {
        Some(value) => tr.pick(
            format!("{best} keeps {value} of the whole transcript's score{rest}"),
            format!("{best} 保留完整记录得分的 {value}{rest}"),
        ),
        None => {
            let value = score(method.overall.median);
            tr.pick(
                format!("{best} scores {value} of 5{rest}"),
                format!("{best} 得分 {value}（满分 5）{rest}"),
            )
        }
    }
}

/// ` on 8 fixtures, one run`: what the figures rest on, and what follows if that is little.
fn basis(fixtures: usize, once: bool, tr: &Translation) -> String {
    let once = match once {
        true => tr.pick(", one run", "，一次运行"),
        false => "",
    };
    let count = tr.locale.count(fixtures, "fixture", "个样本");
    match fixtures < MIN_CLUSTERS {
        true => tr.pick(
            format!(" on {count}{once}, too few to rank methods"),
            format!("，只有 {count}{once}，不足以排序"),
        ),
        false => tr.pick(format!(" on {count}{once}"), format!("，{count}{once}")),
    }
}

/// `−0.75 (95%: −1.01 to −0.49)`.
fn difference(points: f64, ci95: Option<Interval>, tr: &Translation) -> String {
    let interval = ci95.map_or_else(String::new, |ci| {
        let (low, high) = (signed(ci.low()), signed(ci.high()));
        tr.pick(
            format!(" (95%: {low} to {high})"),
            format!("（95%：{low} 至 {high}）"),
        )
    });
    format!("{}{interval}", signed(points))
}

/// The growth in tokens from which the sentence on an improvement also names the growth.
const NOTABLE_GROWTH: f64 = 0.1;
/// Smaller changes in tokens, as a share, are not mentioned.
const MIN_TOKEN_CHANGE: f64 = 0.01;

fn of_mean(change: &Comparison, verdict: Verdict, tr: &Translation) -> Option<String> {
    let mean = change.mean_with_verdict(verdict)?;
    let (count, figures) = (change.tested, figures(mean, tr));
    Some(tr.pick(
        format!("mean of {count} methods {figures}"),
        format!("{count} 个方法的平均 {figures}"),
    ))
}

/// `anchored in continuity +1.19 (95%: +0.70 to +1.68)`.
fn method_phrase(change: &MethodChange<'_>, tr: &Translation) -> String {
    let dimension = match change.measure == OVERALL {
        true => String::new(),
        false => {
            let label = tr.dimension_label(change.measure);
            tr.pick(format!(" in {label}"), format!(" 的{label}"))
        }
    };
    format!("{}{dimension} {}", change.method, figures(change.test, tr))
}

/// `−0.75 (95%: −1.01 to −0.49) on 3 of 8 fixtures`: with the fixtures that changed, if some did not.
fn figures(test: &DifferenceTest, tr: &Translation) -> String {
    let (some, all) = (test.clusters, test.clusters + test.unchanged);
    let fixtures = match some > 0 && some < all {
        true => tr.pick(
            format!(" on {some} of {all} fixtures"),
            format!("（{all} 个样本中的 {some} 个）"),
        ),
        false => String::new(),
    };
    difference(test.difference, test.ci95, tr) + &fixtures
}

/// The constraints that methods lost, each once, of those for which this holds.
fn losses(
    change: &Comparison,
    holds: impl Fn(&LostConstraint) -> bool,
) -> Vec<(&str, &LostConstraint)> {
    let mut losses: Vec<(&str, &LostConstraint)> = Vec::new();
    for (method, compared) in &change.methods {
        for lost in compared.constraints_lost.iter().filter(|lost| holds(lost)) {
            let is_known = losses.iter().any(|(known, other)| {
                *known == method
                    && (&other.fact.fact, other.is_graded) == (&lost.fact.fact, lost.is_graded)
            });
            if !is_known {
                losses.push((method, lost));
            }
        }
    }
    losses
}

fn no_verdict(reason: Option<NoEvidenceReason>, tr: &Translation) -> &'static str {
    use NoEvidenceReason::{Confounded, Correction, DriftNotExcluded, FewClusters, JudgeDrift};
    match reason {
        Some(JudgeDrift) => tr.pick(", as the judge changed", "（评审已变化）"),
        Some(DriftNotExcluded) => tr.pick(", as the judge may have changed", "（评审可能已变化）"),
        Some(FewClusters) => tr.pick(" (too few fixtures for a test)", "（样本太少，无法检验）"),
        Some(Correction) => tr.pick(" (not after correction)", "（校正后不显著）"),
        Some(Confounded) => tr.pick(" (another answerer)", "（作答模型不同）"),
        _ => "",
    }
}

/// Why nothing is said of the scores of a comparison in which something changed.
fn no_change<'t>(change: &Comparison, tr: &'t Translation) -> &'t str {
    let mut planted = change
        .methods
        .values()
        .filter_map(|one| one.planted.as_ref());
    if planted.any(PlantedComparison::is_changed) {
        tr.pick(
            "no evidence that more planted items go wrong",
            "没有证据表明植入项出错更多",
        )
    } else if measures_nothing(change) {
        tr.pick("no dimension is left to compare", "没有可比较的维度")
    } else {
        tr.pick("no score changed", "得分无变化")
    }
}

fn unchanged_clause(change: &Comparison, trend: Trend, tr: &Translation) -> String {
    let baseline = &change.baseline;
    if trend == Trend::NoEvidence {
        return no_change(change, tr).to_owned();
    }
    let [what, _] = sameness(change, tr);
    let is_blind = change.lexical && !change.answered_by_models;
    let blind = match is_blind && edit_note(change).is_some() {
        true => tr.pick(
            "; the built-in rules read only headings of a prompt",
            "；内置规则只读提示词的标题",
        ),
        false => "",
    };
    tr.pick(
        format!("unchanged: the same {what} as {baseline}{blind}"),
        format!("无变化：{what}和 {baseline} 相同{blind}"),
    )
}

/// The text of a constraint or an edit as code.
fn code(text: &str) -> String {
    format!("`{}`", shortened(&text.replace('`', "'"), MAX_EDIT))
}

/// The maximum length of an edited line in the sentence, in characters.
const MAX_EDIT: usize = 40;

/// The first clause, `after removing `## Current state``, or against the other method that is the baseline.
fn with_edit(first: &str, change: &Comparison, summary: &Summary, tr: &Translation) -> String {
    let first = tr.pick(capitalized(first, summary), first.to_owned());
    let Some(edit) = edit_note(change) else {
        return first;
    };
    let (english, chinese) = match edit {
        EditNote::OtherMethod(name) => (format!("against {name}"), format!("与 {name} 相比")),
        EditNote::Removed(text) => (
            format!("after removing {}", code(&text)),
            format!("删除 {} 后", code(&text)),
        ),
        EditNote::Added(text) => (
            format!("after adding {}", code(&text)),
            format!("增加 {} 后", code(&text)),
        ),
        EditNote::Changed(place) => (format!("after editing {place}"), format!("修改 {place} 后")),
        EditNote::Setting(text) => (format!("after {text}"), format!("{text} 后")),
        EditNote::Several(count) => (format!("after {count} edits"), format!("{count} 处改动后")),
    };
    tr.pick(format!("{first} {english}"), format!("{chinese}，{first}"))
}
