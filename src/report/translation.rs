//! The texts of reports in the language of the pipeline. Ids and JSON are always in English.

use std::fmt::Display;

use crate::judge::Dimension;
use base::locale::Locale;
use stats::{DifferenceTest, NoEvidenceReason, Verdict};

/// Declares each text once, with both of its languages; `{}` marks a value for [`fill`].
macro_rules! texts {
    ($($name:ident: $english:literal, $chinese:literal;)*) => {
        /// The texts of reports in one language.
        #[derive(Debug)]
        pub(super) struct Translation {
            pub(super) locale: Locale,
            $(pub(super) $name: &'static str,)*
        }

        static ENGLISH: Translation = Translation { locale: Locale::En, $($name: $english,)* };
        static CHINESE: Translation = Translation { locale: Locale::Zh, $($name: $chinese,)* };
    };
}

/// The texts in a language.
pub(super) fn translation(locale: Locale) -> &'static Translation {
    locale.pick(&ENGLISH, &CHINESE)
}

texts! {
    method: "method", "方法";
    overall: "overall", "总分";
    overall_interval: "overall (95%)", "总分（95%）";
    change: "change", "变化";
    changes: "Changes in detail", "变化详情";
    difference: "difference", "差值";
    interval: "95% interval", "95% 区间";
    verdict: "verdict", "结论";
    detectable: "smallest detectable change", "最小可检出变化";
    removed: "removed", "压缩掉";
    context_tokens: "tokens", "词元";
    user_kept_note:
        "{} of the tokens that {} replaces are messages of the user that the vendor keeps word for word: questions about \
         what the user said do not test it.",
        "{} 的词元（在 {} 替换的内容中）是厂商逐字保留的用户消息：关于用户所说内容的问题不能检验这次压缩。";
    kept_verbatim: "{} (kept {})", "{}（保留 {}）";
    not_compressed_line: "not compressed, and in no figure: {}", "未压缩，不计入任何数字：{}";
    not_compressed_part: "{} {} of {} contexts", "{} {}/{} 个上下文";
    in_context_title: "What contexts say of the facts", "上下文对事实的表述";
    in_context_note:
        "By literal rules, without a judge. Placed: with a word of its question; sound: kept minus denied, contradicted and \
         stale ones. Invented: references (paths, names, numbers) per 1,000 tokens of the context that the transcript before \
         the point does not have. A copy has none: read it as a warning, not as a ranking.",
        "按字面规则，不用评审。对应保留：与问题中的词同处一处；无误保留：保留的事实减去被否认、自相矛盾和过时的。臆造：每千词元中压缩点之前的\
         记录里没有的引用（路径、名称、数字）。照抄不会臆造，因此该数字只作警示，不作排名。";
    invented_note:
        "references in contexts that their transcripts do not have: {}. Check whether they are made up; `contexts.jsonl` lists \
         them by context.",
        "上下文中有而记录中没有的引用：{}。请查看是否为臆造；`contexts.jsonl` 按上下文列出。";
    invented_part: "{} {} ({} per 1,000 tokens: {})", "{} {} 个（每千词元 {} 个：{}）";
    invented_midway:
        "invented references: {} of {} contexts are of logs that begin in the middle of a session. What came before is not \
         known, so these have no figure.",
        "臆造的引用：{}/{} 个上下文来自从会话中途开始的日志。此前的内容未知，因此没有数字。";
    overclaims: "overclaims", "妄称";
    of_n: "of {}", "共 {}";
    without_facts: "Answers whose context lost every expected fact", "上下文丢失全部预期事实时的回答";
    admissions: "do not know", "承认不知";
    vague: "vague", "含糊";
    right_anyway: "right anyway", "仍然正确";
    overclaim_change:
        "overclaims (another value where the context lost every expected fact): {} → {}",
        "妄称（上下文丢失全部预期事实时给出别的值）：{} → {}";
    fabrication_change:
        "fabricated answers to unanswerable probes: {} → {}",
        "对无法回答的问题的编造：{} → {}";
    truncated_change: "answers that the token limit cut off: {} → {}", "被词元上限截断的回答：{} → {}";
    share_difference: ", difference {} percentage points", "，差 {} 个百分点";
    comma: ", ", "、";
    semicolon: "; ", "；";
    single_run:
        "One repetition cannot tell an edit from chance; use `runs = 3`.",
        "只有一次重复：无法区分改动的影响与重复之间的偶然差异（`runs = 3` 可以）。";
    lost_headings: "Prompt headings whose facts survive least", "事实保留最少的提示词标题";
    lost_heading: "{}: “{}” ({} of its facts lost, {} of {}).", "{}：“{}”（其事实丢失 {}：{}/{}）。";
    variance:
        "where the scores of a method vary: {} (shares of the variance, mean over dimensions).",
        "同一方法得分的波动来源：{}（方差占比，各维度平均）。";
    cost: "cost", "费用";
    cost_of_contexts: "cost of contexts", "上下文费用";
    seconds: "seconds", "秒";
    compressions_title: "Compressions", "压缩";
    compressions_note:
        "tokens, seconds, calls and cost are those of one compression.",
        "词元、秒、调用与费用均为一次压缩的数值。";
    identical_contexts:
        "{} and {} have identical contexts in all {} compressions{}.",
        "{} 与 {} 在全部 {} 次压缩中的上下文完全相同{}。";
    setting_changed_nothing: ": {} changed nothing", "：{} 没有任何作用";
    title: "Context compression", "上下文压缩评测";
    against: "against", "对比";
    by_dimension: "Six dimensions", "六个维度";
    compression: "Compression and cost", "压缩与费用";
    worst: "Worst probes", "最差的问题";
    notes: "Notes on method", "方法说明";
    lexical: "lexical (rule-based stand-in)", "lexical（规则替身）";
    lexical_note:
        "lexical (rule-based stand-in): built-in rules replace a model in {}. Such figures show that the pipeline \
         works, not how good a method is.",
        "lexical（规则替身）：{}由内置规则代替模型完成。这些数字只说明流程可用，不代表方法优劣。";
    lexical_answers:
        "The answer stage is not measured: the stand-in quotes whatever in the context bears on the question.",
        "回答阶段没有得到测量：替身会引用上下文中与问题有关的一切内容。";
    weak_judge:
        "weak judge: {} failed its self-test but is used (--allow-weak-judge).",
        "评审不可靠：{} 未通过自检，但仍被采用。";
    weak_judge_stopped:
        "weak judge: {} failed its self-test, so it was not used further.",
        "评审不可靠：{} 未通过自检，因此不再请它评分。";
    unqualified:
        "overall and the gate do not count {}: {} has not passed its self-test there (`compeval judge selftest`).",
        "总分和门禁不计入{}：{} 尚未在其中通过自检（`compeval judge selftest`）。";
    narrow_dimension:
        "{} is left out of overall and the gate: full − none is only {} in it, over {} probes.",
        "{}不计入总分和门禁：在这一维度上 full − none 仅为 {}（{} 个问题）。";
    unproven:
        "some expected facts do not occur in the transcript (--allow-unproven).",
        "放行了记录中不存在的预期事实（--allow-unproven）。";
    offline: "offline: only the cache and built-in rules were used.", "离线计算，仅使用缓存与内置规则。";
    judge_sees:
        "judges saw the compacted context, which favours methods whose context is readable.",
        "评审能看到压缩后的上下文，这对上下文可读的方法有利。";
    judge_blind: "judges did not see the compacted context.", "评审看不到压缩后的上下文。";
    same_family:
        "judge {} belongs to the same model family as {} and may favour it.",
        "评审 {} 与 {} 属于同一模型家族，可能偏袒自家。";
    several_answerers:
        "methods have different answerers: across answerers, compare retention and not scores.",
        "各方法的作答模型不同：跨作答模型请比较保持率，不要比较得分。";
    uncommon:
        "{} probes that not all methods have are left out of the tables.",
        "{} 个问题并非所有方法都有，未计入表格。";
    truncated_replies:
        "truncated: {} of the answers were cut off by the token limit (graded as they are).",
        "截断：{} 的答案被输出长度上限截断（按原样评分）。";
    one_probe:
        "one probe: every figure is that of a single question, so methods are not compared. Use 8 to 12 per session.",
        "只有一个问题：每个数字都只反映这一个问题，因此不比较各方法。通常每个会话 8 至 12 个。";
    few_probes:
        "{} probes in all: each one has a large effect on every figure. Use 8 to 12 per session.",
        "总共只有 {} 个问题：单个问题对每个数字影响很大。通常每个会话 8 至 12 个。";
    other_language:
        "{} of {} sessions are in {}, but judges were tested in {} alone: they may not be able to grade these \
         (`locale` in pipeline.toml sets the language of the test).",
        "{}/{} 个会话使用{}，而评审只用{}测试过：能否为这些会话评分尚不清楚（pipeline.toml 的 `locale` 决定测试所用的语言）。";
    english: "English", "英文";
    chinese: "Chinese", "中文";
    deterministic:
        "{}: deterministic, so there is no re-run interval.",
        "确定性：各次运行重复同样的工作，{} 没有重跑区间。";
    intervals:
        "Each figure is the mean over fixtures of the median over runs; its 95% interval is for other sessions like \
         these.",
        "每个数字是各样本（运行中位数）的平均值；下方是对同类会话的 95% 区间。";
    facts_kept_note:
        "facts kept: by literal rules, so a method that rewords loses up to 8% by its wording alone.",
        "事实保留：按字面规则判断，因此改写措辞的方法仅因措辞就可能少算至多 8%。";
    question_formula:
        "tokens/question: tokens of the context, and, where the answer lacks an expected fact, those of the whole transcript, \
         with which it is asked again. This assumes that the reader notices a failure. Facts that \
         `none` answers too do not count.",
        "每题词元：上下文的词元；回答缺少预期事实时，再加用完整记录重问一次的词元。这里假定读者会发现失败。`none` 也能答出的事实不计。";
    open_book_title: "Open book: answers with a search in what was replaced", "开卷：可检索被替换内容时的回答";
    open_book_note:
        "Descriptive: verdicts are on the closed answers. \
         Gain: open − closed on the same probes. Lost and not searched: the agent did not know what it lost.",
        "仅作描述：结论只针对闭卷回答。增益：同一批问题上开卷 − 闭卷。\
         丢失而未检索：智能体不知道自己丢失了什么。";
    open_book_line: "with a search: {}.", "可检索时：{}。";
    archive_alone:
        "A search without any context scores {}, within 1.0 of the whole transcript ({}): open scores measure the archive \
         more than the method.",
        "没有任何上下文、只靠检索得 {} 分，与完整会话（{}）相差不到 1.0：开卷得分更多反映的是存档，而不是方法。";
    archive_unmeasured:
        "No `none` method was answered with a search, so the share due to the archive is unknown: add one.",
        "没有策略为 `none` 的方法做过检索回答，因此无法知道开卷得分有多少来自存档：请添加一个。";
    full_unmeasured:
        "Add a `full` method to compare a search alone with the whole transcript.",
        "没有策略为 `full` 的方法，因此无法知道只靠检索与完整会话相差多少。";
    closed_book: "closed", "闭卷";
    open_book: "open", "开卷";
    gain: "gain", "增益";
    searches: "searches", "检索次数";
    search_tokens: "tokens returned", "返回词元";
    gold_found: "lost fact found", "找到丢失的事实";
    lost_searched: "lost: searched / not", "丢失：检索 / 未检索";
    kept_searched: "kept: searched / not", "保留：检索 / 未检索";
    margin:
        "▲ improved, ▼ regressed: a difference of at least 0.3 (mean of methods: 0.2), an adjusted p of at most .05, \
         and at least 3 fixtures that changed.",
        "▲ 提升，▼ 退步：差值不小于 0.3（多个方法的平均：0.2），校正后 p 不大于 .05，有变化的样本不少于 3 个。";
    unchanged_planted: "unchanged (same planted figures)", "无变化（植入项数字相同）";
    unchanged_contexts: "unchanged (same contexts)", "无变化（上下文相同）";
    unchanged: "unchanged (same answers, same grades)", "无变化（答案与评分均相同）";
    primary: "mean of {} methods", "{} 个方法的平均";
    asked_again:
        "asked again (same requests, different grades) in {} fixtures: {}.",
        "{} 个样本重新请求过（请求相同，评分不同）：{}。";
    edited: "edited ({}): {}.", "改动（{}）：{}。";
    edited_all: "edited for all methods ({}): {}.", "对所有方法的改动（{}）：{}。";
    not_comparable: "no shared cells in {} fixtures: {}.", "{} 个样本没有两侧共有的单元：{}。";
    same_contexts: "byte-identical contexts: {} of {}.", "逐字节相同的上下文：{}/{}。";
    good_to_bad: "probes from good to bad ({}): {}.", "由好变坏的问题（{}）：{}。";
    bad_to_good: "probes from bad to good ({}): {}.", "由坏变好的问题（{}）：{}。";
    facts_lost: "facts lost from the context ({}): {}.", "上下文中丢失的事实（{}）：{}。";
    constraints_lost:
        "constraints lost in most distinct chains ({}): {}.",
        "在多数不同压缩链中丢失的约束（{}）：{}。";
    no_constraints:
        "no question has the tag `constraint`, so the user's rules are not measured.",
        "规则保留：没有问题带有 `constraint` 标签，因此用户禁止或要求的内容无从得知。";
    facts_gained: "facts gained in the context ({}): {}.", "上下文中新增的事实（{}）：{}。";
    tested_fixtures:
        "on the {} of {} fixtures that changed: {}; on all: {}.",
        "在 {}/{} 个有变化的样本上：{}；全部样本：{}。";
    untestable:
        "{} cannot be tested: it changed in {} of {} fixtures, and a test needs 3. On these: {}, re-run interval {}.",
        "{} 无法检验：只有 {}/{} 个样本有变化，检验至少需要 3 个。这些样本上：{}，重跑区间 {}。";
    hardly_reads:
        "The judge {} may not read what it grades: of {} answers of this run, graded again with one fact made false, {} \
         scored lower and {} higher (at least 8 more must score lower). Its grades mean little.",
        "评审 {} 几乎不看所评内容：本次运行的 {} 个回答，各另评一份改错一个事实的副本，副本得分较低的有 {} 个，较高的有 {} 个\
         （须多出 8 个）。其评分意义不大。";
    rules_differ:
        "The judge {} and the literal rules differ on the whole transcript: it calls {} of the answers complete, {} have all their \
         facts ({} answers). Read some: does it accept answers without the facts, or reject answers with them?",
        "评审 {} 与字面规则对完整记录的判断不一：它认为 {} 的回答完整，而含有全部事实的为 {}（共 {} 个回答）。请阅读其中一些：\
         它是放过了缺少事实的回答，还是否定了含有事实的回答？";
    not_checked:
        "The judge {} was not checked on answers of this run: {} of the 20 that are needed can be used.",
        "未在本次运行的回答上检查评审 {}：需要 20 个回答，可用 {} 个。";
    drift_unchecked:
        "{}: drift not checked: `run --compare-to` grades answers of the baseline again where it grades anything.",
        "{}：未检查漂移：`run --compare-to` 有评分时会重新评分基线的回答。";
    drift_found:
        "{}: judge drift. {} answers of the baseline, graded again, moved by {}, so there is no verdict on: {}.",
        "{}：评审漂移。基线的 {} 个回答重新评分后变化 {}，因此以下没有结论：{}。";
    no_drift:
        "{}: {} answers of the baseline, graded again, moved by {}, which does not explain the verdict.",
        "{}：基线的 {} 个回答重新评分后变化 {}，不足以解释结论。";
    blind:
        "{} of {}: these fixtures cannot show any difference.",
        "{} 的 {}：这些样本看不出任何差异。";
    compared:
        "Only what both sides have is compared: {} fixtures with {} probes. {} probes of either side are left out.",
        "只比较两侧共有的部分：{} 个样本、{} 个问题；只在一侧的 {} 个问题未计入。";
    newly_failing:
        "{}: chains (fixture and run) that fail now but not in the baseline ({}): {}.",
        "{}：基线中未失败、现在失败的链（样本与运行）（{}）：{}。";
    unmatched: "only on one side, not compared: {}.", "仅一侧存在，未作比较：{}。";
    nearly_blind:
        "{} of {}: these fixtures hardly show a loss under 1 point. More fixtures would help.",
        "{} 的 {}：低于 1 分的退步几乎看不出来。增加样本会有帮助。";
    beyond_rerun:
        "{}: beyond re-run noise on these {} fixtures, but not shown for other sessions: {}.",
        "{}：在这 {} 个样本上超出重跑噪声，但对其他会话尚无证据：{}。";
    reliability:
        "{} is less reliable on these fixtures: {} of {} chains (fixture and run) failed, in the baseline {} of {}.",
        "{} 在这些样本上更不可靠：{}/{} 条链（样本与运行）失败，基线为 {}/{}。";
    alpha:
        "agreement of the judges: Krippendorff's alpha {} over {} scores{}.",
        "评审之间的一致性：Krippendorff's alpha {}（{} 个分数）{}。";
    scale_unchecked:
        "ceiling and floor: not checked, because no answerable probe has grades of both a `full` and a `none` method.",
        "上限与下限：未检查，因为没有一个可回答的问题同时有 `full` 与 `none` 方法的评分。";
    narrow_scale:
        "ceiling and floor are not clearly apart: full − none is {} over {} probes{}; at least 1.0 and a lower bound \
         above 0 are needed. Figures between them mean little. {}",
        "上限与下限没有明显分开：full − none 为 {}（{} 个问题{}）；至少需要 1.0，且下界须大于 0。其间的数字意义不大。{}";
    narrow_by_judge:
        "The answers of full have the facts and those of none do not, so the judge is the likely cause.",
        "事实出现在 full 的回答中而不在 none 的回答中：请怀疑评审。";
    narrow_by_bank:
        "The answers of both have the facts, so the bank is the likely cause: its probes can be answered without the \
         transcript.",
        "事实在两者的回答中都出现：请怀疑题库，这些问题不看记录也能回答。";
    narrow_by_answerer:
        "The answers of neither have the facts, so the answerer is the likely cause: it does not find them in the whole \
         transcript.",
        "事实在两者的回答中都没有出现：请怀疑作答模型，它在完整记录中也找不到。";
    narrow_by_unknown:
        "Suspect the judge, the bank or the answerer: without expected facts it is not known which.",
        "请怀疑评审、题库或作答模型：没有预期事实，不知道是哪一个。";
    narrow_by_chance:
        "The mean may be chance: ask more probes.", "这一均值可能只是偶然：请增加问题。";
    low_alpha: ", which is poor: do not rely on small differences", "，一致性差：微小差异须谨慎看待";
    point: "point {}", "压缩点 {}";
    cycles: "Over points", "各压缩点";
    cycles_note:
        "Scores and facts kept after repeated compression. Later points have other probes: compare methods, not points.",
        "重复压缩后的得分与事实保留。较后的压缩点有不同的问题：请比较方法，不要比较压缩点。";
    spending: "What this run cost", "本次运行的费用";
    stage: "stage", "阶段";
    actions: "actions", "动作";
    cached: "cached", "已缓存";
    input_tokens: "input tokens", "输入词元";
    output_tokens: "output tokens", "输出词元";
    in_all: "total", "合计";
    reference_title: "Published reference, not measured here", "已发表的参考值，并非本次测量";
    reference_note:
        "From other sessions (36,611 messages) and another judge (GPT-5.2): not comparable with the figures above. \
         A published overall is not the mean of its dimensions: where it is 3.70, the mean is 3.96.",
        "来自其他会话（36,611 条消息）和其他评审（GPT-5.2）；仅供参考，不能与上面的数字比较。公布的总分并非各维度的平均值：总分为 3.70 处，平均值为 3.96。";
    absent_from_answer: "not in the answer", "答案中缺少";
    cells: "cells", "单元";
    judged_by: "judge", "评审";
    answered_by: "answerer", "作答";
    fixtures: "fixtures", "样本";
    runs: "runs", "运行";
}

impl Translation {
    /// The text of this language.
    pub(super) fn pick<T>(&self, english: T, chinese: T) -> T {
        self.locale.pick(english, chinese)
    }

    /// The name of a method in tables, with what the method keeps verbatim: `anchored (kept 20k)`.
    pub(super) fn method_label(&self, name: &str, kept: Option<&str>) -> String {
        kept.map_or_else(
            || name.to_owned(),
            |kept| fill(self.kept_verbatim, &[&name, &kept]),
        )
    }

    /// The name of a dimension; that of the mean of all where it is none.
    pub(super) fn dimension_label(&self, id: &str) -> String {
        let known = Dimension::ALL
            .into_iter()
            .find(|dimension| dimension.name() == id);
        known.map_or_else(
            || self.overall.to_owned(),
            |dimension| dimension.label(self.locale).to_owned(),
        )
    }

    /// The name of a source of variance; sources that repetitions cannot separate are joined by `+`.
    pub(super) fn variance_component(&self, name: &str) -> String {
        let parts = name.split('+').map(|part| match part {
            "compress_run" => self.pick("compression", "压缩").to_owned(),
            "compress_probe" => self
                .pick("compression by probe", "压缩（逐问题）")
                .to_owned(),
            "judge" => self.judged_by.to_owned(),
            "answer" => self.pick("answer", "作答").to_owned(),
            "probe" => self.pick("probe", "问题").to_owned(),
            "fixture" => self.pick("fixture", "样本").to_owned(),
            other => other.to_owned(),
        });
        parts.collect::<Vec<_>>().join(" + ")
    }

    /// The verdict of a test: `improved`, `no evidence (noise)`.
    pub(super) fn verdict(&self, test: &DifferenceTest) -> String {
        let (english, chinese) = match test.verdict {
            Verdict::Improved => ("improved", "提升"),
            Verdict::Regressed => ("regressed", "退步"),
            Verdict::NoEvidence => ("no evidence", "证据不足"),
        };
        let word = self.pick(english, chinese);
        let why = test.reason.map(|reason| self.reason(reason).to_owned());
        why.map_or_else(|| word.to_owned(), |why| format!("{word} ({why})"))
    }

    fn reason(&self, reason: NoEvidenceReason) -> &'static str {
        let (en, zh) = match reason {
            NoEvidenceReason::Confounded => ("answerer differs", "作答模型不同"),
            NoEvidenceReason::FewClusters => ("few fixtures", "样本太少"),
            NoEvidenceReason::Missing => ("missing cells", "缺失单元过多"),
            NoEvidenceReason::BelowMargin => ("below 0.3", "小于 0.3"),
            NoEvidenceReason::BelowPrimaryMargin => ("below 0.2", "小于 0.2"),
            NoEvidenceReason::JudgeDrift => ("judge drift", "评审漂移"),
            NoEvidenceReason::DriftNotExcluded => ("drift not excluded", "未排除评审漂移"),
            NoEvidenceReason::Unchanged => ("unchanged", "无变化"),
            NoEvidenceReason::Correction => ("correction", "多重校正后不显著"),
            NoEvidenceReason::Degenerate => ("degenerate", "各样本差值相同"),
            NoEvidenceReason::Noise => ("noise", "噪声"),
        };
        self.pick(en, zh)
    }
}

/// Replaces each `{}` of `pattern` by the next value.
pub(super) fn fill(pattern: &str, values: &[&dyn Display]) -> String {
    let mut parts = pattern.split("{}");
    let mut out = parts.next().unwrap_or_default().to_owned();
    let mut values = values.iter();
    for part in parts {
        let value = values.next().map(ToString::to_string);
        out.push_str(&value.unwrap_or_default());
        out.push_str(part);
    }
    out
}

/// Parts as one text; `None` if there are none.
pub(super) fn joined(parts: impl IntoIterator<Item = String>, separator: &str) -> Option<String> {
    let joined: Vec<String> = parts.into_iter().collect();
    (!joined.is_empty()).then(|| joined.join(separator))
}

/// The first of several things, and how many more there are.
pub(super) fn first_of<T>(
    all: &[T],
    named: usize,
    tr: &Translation,
    text: impl Fn(&T) -> String,
) -> Vec<String> {
    let mut names: Vec<String> = all.iter().take(named).map(text).collect();
    let more = all.len().saturating_sub(named);
    names.extend((more > 0).then(|| tr.pick(format!("{more} more"), format!("另 {more} 个"))));
    names
}
