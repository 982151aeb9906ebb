//! The labels of reports, in the language of the pipeline. Ids, JSON and the command line stay English.

use crate::judge::Dimension;
use crate::locale::Locale;
use crate::stats::{NoRetention, Reason, Verdict};

/// All labels in one language.
#[derive(Debug)]
pub struct Words {
    /// Its language.
    pub locale: Locale,
    pub(super) method: &'static str,
    pub(super) overall: &'static str,
    pub(super) dimension: &'static str,
    pub(super) difference: &'static str,
    pub(super) interval: &'static str,
    pub(super) verdict: &'static str,
    pub(super) detectable: &'static str,
    pub(super) context_tokens: &'static str,
    pub(super) removed: &'static str,
    pub(super) survival: &'static str,
    pub(super) lift: &'static str,
    pub(super) retention: &'static str,
    pub(super) tokens_per_task: &'static str,
    pub(super) fabricated: &'static str,
    pub(super) cost: &'static str,
    pub(super) failed: &'static str,
    pub(super) missing: &'static str,
    pub(super) title: &'static str,
    pub(super) against: &'static str,
    pub(super) identical: &'static str,
    pub(super) six_dimensions: &'static str,
    pub(super) compression: &'static str,
    pub(super) worst: &'static str,
    pub(super) notes: &'static str,
    pub(super) lexical: &'static str,
    pub(super) lexical_note: &'static str,
    pub(super) lexical_compared: &'static str,
    pub(super) weak_judge: &'static str,
    pub(super) weak_judge_stopped: &'static str,
    pub(super) unproven: &'static str,
    pub(super) offline: &'static str,
    pub(super) judge_sees: &'static str,
    pub(super) judge_blind: &'static str,
    pub(super) same_family: &'static str,
    pub(super) several_readers: &'static str,
    pub(super) uncommon: &'static str,
    pub(super) one_fixture: &'static str,
    pub(super) few_fixtures: &'static str,
    pub(super) deterministic: &'static str,
    pub(super) intervals: &'static str,
    pub(super) margin: &'static str,
    pub(super) unchanged: &'static str,
    pub(super) primary: &'static str,
    pub(super) asked_again: &'static str,
    pub(super) edited: &'static str,
    pub(super) edited_all: &'static str,
    pub(super) not_comparable: &'static str,
    pub(super) only_judged: &'static str,
    pub(super) only_baseline: &'static str,
    pub(super) same_contexts: &'static str,
    pub(super) good_to_bad: &'static str,
    pub(super) bad_to_good: &'static str,
    pub(super) facts_lost: &'static str,
    pub(super) facts_gained: &'static str,
    pub(super) tested_fixtures: &'static str,
    pub(super) and_more: &'static str,
    pub(super) untestable: &'static str,
    pub(super) no_common_cell: &'static str,
    pub(super) blind: &'static str,
    pub(super) compared: &'static str,
    pub(super) newly_failing: &'static str,
    pub(super) unmatched: &'static str,
    pub(super) nearly_blind: &'static str,
    pub(super) beyond_rerun: &'static str,
    pub(super) reliability: &'static str,
    pub(super) narrow_span: &'static str,
    pub(super) alpha: &'static str,
    pub(super) low_alpha: &'static str,
    pub(super) scale_unchecked: &'static str,
    pub(super) narrow_scale: &'static str,
    pub(super) narrow_by_judge: &'static str,
    pub(super) narrow_by_bank: &'static str,
    pub(super) narrow_by_answerer: &'static str,
    pub(super) reference_title: &'static str,
    pub(super) reference_note: &'static str,
    pub(super) lacking: &'static str,
    pub(super) cells: &'static str,
    pub(super) judged_by: &'static str,
    pub(super) answered_by: &'static str,
    pub(super) fixtures: &'static str,
    pub(super) runs: &'static str,
}

/// The labels of a language.
pub fn words(locale: Locale) -> &'static Words {
    match locale {
        Locale::En => &ENGLISH,
        Locale::Zh => &CHINESE,
    }
}

static ENGLISH: Words = Words {
    locale: Locale::En,
    method: "method",
    overall: "overall",
    dimension: "dimension",
    difference: "difference",
    interval: "95% interval",
    verdict: "verdict",
    detectable: "detectable from",
    context_tokens: "tokens kept",
    removed: "removed",
    survival: "facts kept",
    lift: "not guessable",
    retention: "retention",
    tokens_per_task: "tokens/task(10)",
    fabricated: "fabricated",
    cost: "cost",
    failed: "failed",
    missing: "missing",
    title: "Context compression",
    against: "against",
    identical: "identical scores",
    six_dimensions: "Six dimensions",
    compression: "Compression and cost",
    worst: "Worst probes",
    notes: "Notes on method",
    lexical: "lexical (rule-based stand-in)",
    lexical_note: "lexical (rule-based stand-in): built-in rules took the place of a model in {}. Such figures show that \
                   the pipeline works, not how good a method is.",
    lexical_compared: "lexical (rule-based stand-in) took part in what is compared here.",
    weak_judge: "weak judge: {} failed its self-test and was used all the same.",
    weak_judge_stopped: "weak judge: {} failed its self-test, so it was asked for no more grades.",
    unproven: "expected facts that occur nowhere in the transcript were let pass (--allow-unproven).",
    offline: "computed offline, from the cache and built-in rules alone.",
    judge_sees: "judges saw the compacted context, which favours methods whose context is readable.",
    judge_blind: "judges did not see the compacted context.",
    same_family: "judge {} is of one model family with {}: it may favour its own.",
    several_readers: "methods differ in who answered: across answerers compare retention, not scores.",
    uncommon: "Left out of the tables are probes that not all methods have: {}.",
    one_fixture: "one fixture: a value, but no interval.",
    few_fixtures: "under 3 fixtures: intervals are very wide, and there is no verdict.",
    deterministic: "deterministic: all runs repeat the same work, so there is no re-run interval for {}.",
    intervals: "Each figure is the mean over fixtures of the median over runs; below it the 95% interval for other \
                sessions like these.",
    margin: "▲ improved, ▼ regressed: by 0.3 or more (a mean of methods: 0.2), adjusted p at most .05, 3 fixtures or more \
             that changed.",
    unchanged: "unchanged (the same answers, graded the same)",
    primary: "mean of {} methods",
    asked_again: "asked again, the same requests with other grades, in {} fixtures: {}.",
    edited: "edited ({}): {}.",
    edited_all: "edited for all methods ({}): {}.",
    not_comparable: "without a cell that both sides have, in {} fixtures: {}.",
    only_judged: "cells that the baseline does not have, of {} probes: {}.",
    only_baseline: "cells that only the baseline has, of {} probes: {}.",
    same_contexts: "contexts that are byte for byte the same: {} of {}.",
    good_to_bad: "probes from good to bad ({}): {}.",
    bad_to_good: "probes from bad to good ({}): {}.",
    facts_lost: "facts lost from the context ({}): {}.",
    facts_gained: "facts gained in the context ({}): {}.",
    tested_fixtures: "on {} of {} fixtures, those that changed: {}; over all: {}.",
    and_more: "and {} more",
    untestable: "{} cannot be tested: it changed in {} of {} fixtures, and a test needs 3. On these: {}, re-run interval {}.",
    no_common_cell: "{} is not comparable: no cell was judged on both sides.",
    blind: "{} of {}: these fixtures cannot show any difference.",
    compared: "Compared is what both sides have: {} fixtures with {} probes. {} probes of either side are left out.",
    newly_failing: "{}: chains (fixture and run) that fail now and did not in the baseline ({}): {}.",
    unmatched: "only on one side, not compared: {}.",
    nearly_blind: "{} of {}: these fixtures hardly show a loss under 1 point. More of them would help.",
    beyond_rerun: "{}: on these {} fixtures beyond re-run noise, though not shown for other sessions: {}.",
    reliability: "{} is less reliable on these fixtures: {} of {} chains (fixture and run) failed, in the baseline {} of {}.",
    narrow_span: "ceiling and floor are under 1 point apart: these probes hardly measure anything.",
    alpha: "agreement of the judges: Krippendorff's alpha {} over {} scores.",
    scale_unchecked: "ceiling and floor: not checked, for there are no grades of both a `full` and a `none` method.",
    narrow_scale: "ceiling and floor are too close: full − none is {} over {} probes{}; at least 1.0, and a bound above 0, \
                   are needed. Figures between them mean little. {}",
    narrow_by_judge: "The facts stand in the answers of full and not in those of none, so suspect the judge.",
    narrow_by_bank: "The facts stand in the answers of both, so suspect the bank: its probes can be answered without the \
                     transcript.",
    narrow_by_answerer: "The facts stand in the answers of neither, so suspect the answerer: it does not find them in the \
                         whole transcript.",
    low_alpha: "judges agree poorly (alpha {}): take small differences with care.",
    reference_title: "Published reference, not measured here",
    reference_note: "36,611 messages, judged by GPT-5.2; for orientation only, never comparable with the figures above.",
    lacking: "not in the answer",
    cells: "cells",
    judged_by: "judge",
    answered_by: "answers",
    fixtures: "fixtures",
    runs: "runs",
};

static CHINESE: Words = Words {
    locale: Locale::Zh,
    method: "方法",
    overall: "总分",
    dimension: "维度",
    difference: "差值",
    interval: "95% 区间",
    verdict: "结论",
    detectable: "最小可测差值",
    context_tokens: "保留词元",
    removed: "压缩掉",
    survival: "事实保留",
    lift: "不可猜事实",
    retention: "保持率",
    tokens_per_task: "每任务词元(10)",
    fabricated: "编造",
    cost: "费用",
    failed: "失败",
    missing: "缺失",
    title: "上下文压缩评测",
    against: "对比",
    identical: "得分完全相同",
    six_dimensions: "六个维度",
    compression: "压缩与费用",
    worst: "最差的问题",
    notes: "方法说明",
    lexical: "lexical（规则替身）",
    lexical_note: "lexical（规则替身）：{}由内置规则代替模型完成。这些数字只说明流程可用，不代表方法优劣。",
    lexical_compared: "参与比较的结果中有 lexical（规则替身）。",
    weak_judge: "评审不可靠：{} 未通过自检，但仍被采用。",
    weak_judge_stopped: "评审不可靠：{} 未通过自检，因此不再请它评分。",
    unproven: "放行了记录中不存在的预期事实（--allow-unproven）。",
    offline: "离线计算，仅使用缓存与内置规则。",
    judge_sees: "评审能看到压缩后的上下文，这对上下文可读的方法有利。",
    judge_blind: "评审看不到压缩后的上下文。",
    same_family: "评审 {} 与 {} 属于同一模型家族，可能偏袒自家。",
    several_readers: "各方法的作答模型不同：跨作答模型请比较保持率，不要比较得分。",
    uncommon: "{} 个问题并非所有方法都有，未计入表格。",
    one_fixture: "只有一个样本：有数值，没有区间。",
    few_fixtures: "样本不足 3 个：区间很宽，且不下结论。",
    deterministic: "确定性：各次运行重复同样的工作，{} 没有重跑区间。",
    intervals: "每个数字是各样本（运行中位数）的平均值；下方是对同类会话的 95% 区间。",
    margin: "▲ 提升，▼ 退步：差值不小于 0.3（多个方法的平均：0.2），校正后 p 不大于 .05，有变化的样本不少于 3 个。",
    unchanged: "无变化（答案与评分均相同）",
    primary: "{} 个方法的平均",
    asked_again: "{} 个样本重新请求过（请求相同，评分不同）：{}。",
    edited: "改动（{}）：{}。",
    edited_all: "对所有方法的改动（{}）：{}。",
    not_comparable: "{} 个样本没有两侧共有的单元：{}。",
    only_judged: "基线没有的单元，涉及 {} 个问题：{}。",
    only_baseline: "仅基线有的单元，涉及 {} 个问题：{}。",
    same_contexts: "逐字节相同的上下文：{}/{}。",
    good_to_bad: "由好变坏的问题（{}）：{}。",
    bad_to_good: "由坏变好的问题（{}）：{}。",
    facts_lost: "上下文中丢失的事实（{}）：{}。",
    facts_gained: "上下文中新增的事实（{}）：{}。",
    tested_fixtures: "在 {}/{} 个有变化的样本上：{}；全部样本：{}。",
    and_more: "另有 {} 项",
    untestable: "{} 无法检验：只有 {}/{} 个样本有变化，检验至少需要 3 个。这些样本上：{}，重跑区间 {}。",
    no_common_cell: "{} 无法比较：没有两侧都评过分的单元。",
    blind: "{} 的 {}：这些样本看不出任何差异。",
    compared: "只比较两侧共有的部分：{} 个样本、{} 个问题；两侧共有 {} 个问题未计入。",
    newly_failing: "{}：基线中未失败、现在失败的链（样本与运行）（{}）：{}。",
    unmatched: "仅一侧存在，未作比较：{}。",
    nearly_blind: "{} 的 {}：低于 1 分的退步几乎看不出来。增加样本会有帮助。",
    beyond_rerun: "{}：在这 {} 个样本上超出重跑噪声，但对其他会话尚无证据：{}。",
    reliability: "{} 在这些样本上更不可靠：{}/{} 条链（样本与运行）失败，基线为 {}/{}。",
    narrow_span: "上限与下限相差不足 1 分：这些问题几乎测不出什么。",
    alpha: "评审之间的一致性：Krippendorff's alpha {}（{} 个分数）。",
    scale_unchecked: "上限与下限：未检查，因为没有同时对 `full` 与 `none` 方法评分。",
    narrow_scale: "上限与下限过于接近：full − none 为 {}（{} 个问题{}）；至少需要 1.0，且下界须大于 0。其间的数字意义不大。{}",
    narrow_by_judge: "事实出现在 full 的回答中而不在 none 的回答中：请怀疑评审。",
    narrow_by_bank: "事实在两者的回答中都出现：请怀疑题库，这些问题不看记录也能回答。",
    narrow_by_answerer: "事实在两者的回答中都没有出现：请怀疑作答模型，它在完整记录中也找不到。",
    low_alpha: "评审之间一致性差（alpha {}）：微小差异须谨慎看待。",
    reference_title: "已发表的参考值，并非本次测量",
    reference_note: "36,611 条消息，由 GPT-5.2 评审；仅供参考，不能与上面的数字比较。",
    lacking: "答案中缺少",
    cells: "单元",
    judged_by: "评审",
    answered_by: "作答",
    fixtures: "样本",
    runs: "运行",
};

impl Words {
    /// The label of a dimension given by its id.
    pub(super) fn dimension_label(&self, id: &str) -> String {
        let known = Dimension::ALL.into_iter().find(|dimension| dimension.name() == id);
        known.map_or_else(|| id.to_owned(), |dimension| dimension.label(self.locale).to_owned())
    }

    /// A verdict with its reason, as people read it.
    pub fn verdict(&self, verdict: Verdict, reason: Option<Reason>) -> String {
        let word = match (verdict, self.locale) {
            (Verdict::Improved, Locale::En) => "improved",
            (Verdict::Improved, Locale::Zh) => "提升",
            (Verdict::Regressed, Locale::En) => "regressed",
            (Verdict::Regressed, Locale::Zh) => "退步",
            (Verdict::NoEvidence, Locale::En) => "no evidence",
            (Verdict::NoEvidence, Locale::Zh) => "证据不足",
        };
        reason.map_or_else(|| word.to_owned(), |reason| format!("{word} ({})", self.reason(reason)))
    }

    fn reason(&self, reason: Reason) -> &'static str {
        let (en, zh) = match reason {
            Reason::Confounded => ("answerer differs", "作答模型不同"),
            Reason::FewClusters => ("few fixtures", "样本太少"),
            Reason::Missing => ("missing cells", "缺失单元过多"),
            Reason::BelowMargin => ("below 0.3", "小于 0.3"),
            Reason::BelowPrimaryMargin => ("below 0.2", "小于 0.2"),
            Reason::Unchanged => ("unchanged", "无变化"),
            Reason::Correction => ("correction", "多重校正后不显著"),
            Reason::Degenerate => ("degenerate", "各样本差值相同"),
            Reason::Noise => ("noise", "噪声"),
        };
        self.pick(en, zh)
    }

    /// Why there is no retention.
    pub fn no_retention(&self, reason: NoRetention) -> &'static str {
        let (en, zh) = match reason {
            NoRetention::MissingArm => ("no full or none method", "缺少 full 或 none 方法"),
            NoRetention::NotANumber => ("not a number", "不是数值"),
            NoRetention::NarrowSpan => ("ceiling and floor too close", "上下限过近"),
            NoRetention::UncertainSpan => ("ceiling and floor not apart", "上下限无法区分"),
            NoRetention::FewClusters => ("few fixtures", "样本太少"),
        };
        self.pick(en, zh)
    }

    fn pick(&self, en: &'static str, zh: &'static str) -> &'static str {
        match self.locale {
            Locale::En => en,
            Locale::Zh => zh,
        }
    }
}

/// Puts `values` into the holes of `pattern`, in order.
pub(super) fn fill(pattern: &str, values: &[&str]) -> String {
    let mut parts = pattern.split("{}");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for (part, value) in parts.zip(values.iter().copied().chain(std::iter::repeat(""))) {
        out.push_str(value);
        out.push_str(part);
    }
    out
}
