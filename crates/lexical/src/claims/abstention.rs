//! Whether an answer admits that the record does not contain what was asked for, or asserts something. Decided by words, in
//! English and Chinese; a test measures how often that is right on the cases of `admissions.txt`.
//!
//! The answer is cut into segments at punctuation and at words of contrast. It admits ignorance if one segment says that
//! the record is silent and no other segment asserts something anyway: by guessing, by an opening like "it is", or after
//! "but" or "so" ("it does not say who asked, but it is Bob").
//!
//! A negation alone is no admission: "the parser could not determine the encoding" and "the function returns None when
//! the key is missing" describe the work. So a pattern also requires a word for the record, the first person, or the end
//! of the segment. After "because", only the first two count. A statement that is attributed to the record ("the summary
//! says that no test failed") does not count.

use regex::Regex;

use base::lazy_patterns;
use base::text::pattern;
use sessions::transcript::fold;

/// Parts of the patterns below, by name. A part may hold later ones.
const PARTS: [(&str, &str); 12] = [
    (
        "{HERE}",
        r"(?:{RECORD}|this|what|compaction|compression|truncation|summari[sz]ation|compressed|summari[sz]ed)",
    ),
    (
        "{THE_RECORD}",
        r"(?:the |this |my |that |your |our )?(?:\w+ )?(?:contexts?|summary|summaries|transcript|conversation|notes|excerpts?|handoff|compaction)",
    ),
    (
        "{RECORD}",
        r"(?:contexts?|summary|summaries|transcript|conversation|history|session|records?|notes?|material|chat|excerpts?|information|handoff|memory)",
    ),
    (
        "{RECORD_ZH}",
        r"(?:摘要|总结|上下文|记录|会话|对话|历史|笔记|内容|文中|材料|信息|原文|资料|文本|消息)",
    ),
    (
        "{ASK}",
        r"(?:who|whom|whose|which|what|when|where|why|how|whether|if)",
    ),
    ("{NOT}", r"(?:\bnot|n't|\bcannot|\bnever|\bnowhere)"),
    (
        "{NONE}",
        r"(?:\bnot|n't|\bcannot|\bnever|\bnowhere|\bno|\bnothing|\bnone|\bneither|\bwithout|\black(?:s|ing)?|\bomits?)",
    ),
    (
        "{FILLERS}",
        r"(?: (?:been|be|being|have|has|had|even|ever|yet|actually|really|clearly|explicitly|directly|specifically|exactly|currently|otherwise|fully|further|seem to|appear to|able to|itself|at all|anywhere|either|quite|entirely|get|got))*",
    ),
    (
        "{SAY}",
        r"(?:address|answer|appear|capture|clarify|contain|cover|describe|detail|determine|discuss|document|explain|find|give|go into|hold|have|identify|include|indicate|know|list|locate|mention|name|note|preserve|provide|recall|record|remember|reveal|say|see|show|specify|state|tell)(?:e?s)?",
    ),
    (
        "{SAID}",
        r"(?:addressed|answered|captured|covered|described|detailed|determined|discussed|documented|explained|given|identified|included|indicated|kept|listed|mentioned|named|noted|preserved|provided|recorded|retained|revealed|said|shown|specified|spelled out|stated|told)",
    ),
    (
        "{GONE}",
        r"(?:unknown|unclear|unspecified|undetermined|missing|absent|lost|gone|left out|omitted|silent|not (?:known|clear|available|present))",
    ),
    (
        "{DETAIL}",
        r"(?:that|it|this|these|those|names?|values?|numbers?|details?|specifics|reasons?|answer|information|info|explanation|rest|part|step|cause|exact \w+|specific \w+)",
    ),
];

/// Segments that admit ignorance.
const ADMISSIONS: &[&str] = &[
    // statements about the record
    r"^(?:unfortunately |sorry )?{THE_RECORD}\b(?: (?:i|we) \w+(?: \w+)?| provided| given| above)?(?: (?:also|itself|just|simply))?(?: \w+)?{NONE}\b",
    r"{NONE}\b.*\b(?:in|from|of|within|by|into) {THE_RECORD}\b",
    r"\b{RECORD}\b.*\b(?:without \w+ing|never gets? to|stops? short)\b",
    r"\b(?:they|which) (?:do not|don't){FILLERS} {SAY}\b",
    r"n't any (?:mention|record|indication|trace|reference|information)\b",
    r"\b(?:nobody|no one|nothing|none|neither .*) (?:is|was|are|were) {SAID}\b|\bleaves? (?:this|that|it) open\b",
    r"\b(?:is|are|was|were) not$|\bi (?:see|find|found|have|know of) (?:no|nothing)\b|\bunanswerable\b",
    r"\bno longer (?:in|part of) (?:it|{HERE})\b",
    // nothing but an admission
    r"^(?:n/?a\b|n\.a\b|(?:the answer is |(?:that|it|this)(?: is|'s) )?(?:none|unknown|unclear|unspecified|no answer|no data|no idea|not (?:applicable|available|stated|specified|known|sure|certain|clear))(?:$| (?:in|from) .*{RECORD}))",
    // the record does not say; I do not know
    r"\b(?:{RECORD}|it|that|this|kept|was said|nothing|nobody|i|we)\b.{0,60}{NOT}{FILLERS} {SAY}\b",
    r"\b(?:none|neither|nothing|nobody|nowhere)\b.{0,50}\b(?:{RECORD}|there|here)\b.{0,40}\b{SAY}\b",
    r"\b(?:says?|said|mentions?) nothing\b",
    r"\bnothing (?:\w+ )?(?:about|on|regarding|there|here|that says|was said|is said|says|mentions|indicates|in (?:the|my|this|what))\b",
    // it is not said
    r"{NOT}{FILLERS} {SAID}(?:$| (?:and|or|as|who|why|which|when|what|how|where|whether|anywhere|here|at|explicitly|either|yet|there|beyond|of|for|because)\b| (?:in|by|from|within) .*\b{HERE}\b)",
    r"\bno(?: \w+){1,3} (?:is|are|was|were|has been|have been|gets?|got) {SAID}\b",
    r"\bno (?:\w+ )?(?:mention|record|information|info|details?|indication|trace|evidence|reference|hint|way (?:to|of) (?:know|tell|say)(?:ing)?|answer)\b",
    r"(?:^|\b(?:{RECORD}|it|that)\b.{0,40}\b)(?:gives?|has|have|contains?|provides?|offers?|includes?|lists?|shows?|makes?) no(?:thing)?\b",
    r"\b(?:we|i|you|they) (?:have |had |has )?{NOT}(?: really| even| ever| actually)? (?:discuss|decide|settle|agree|talk|cover|establish|specif)\w*\b|\b(?:we|i|you|they) (?:have|had|did)n't (?:discuss|decide|settle|agree|talk|cover|establish|specif)\w*\b",
    r"\b(?:that|this|it) (?:was|is|has been|had been) never (?:discussed|decided|settled|agreed|established|covered|specified|fixed)\b",
    // I cannot tell
    r"\b(?:i|we|one|you)(?: \w+)? (?:cannot|can't|could not|couldn't|do not|don't|did not|didn't|won't|will not|am unable to|was unable to|are unable to)(?: \w+)? (?:answer|be (?:sure|certain)|confirm|determine|find|give|guess|have|identify|infer|know|locate|provide|recall|remember|say|see|speculate|tell)\b",
    r"\b(?:cannot|can't|could not|couldn't) be (?:answered|confirmed|determined|established|identified|inferred|known|told|said|recovered|reconstructed)\b",
    r"^(?:unable to|cannot|can't|could not|not able to) (?:answer|determine|find|identify|say|tell)\b",
    r"\b(?:i am|i'm|we are)(?: \w+)? (?:not (?:sure|certain|aware|able)|unsure|unaware|unable)\b",
    r"\bi (?:have no (?:idea|way)|lack)\b|\bnot sure {ASK}\b",
    // it is missing, unknown, lost
    r"\b{DETAIL}\b(?: \w+)?(?:'s|'re| is| are| was| were| has been| have been| got| seems?| remains?)(?: \w+)? {GONE}(?:$| (?:here|now|{ASK})\b| (?:in|from|on|during|by|when|after|about) .*\b{HERE}\b)",
    r"\b(?:is|are|was|were|remains?) (?:unknown|unclear|unspecified|undetermined|silent)(?:$| (?:here|now)$| (?:about|on)\b| (?:from|in|on|of|during|by) .{0,30}\b{HERE}\b)",
    r"^{GONE} (?:in|from) .*\b{HERE}\b|\b(?:'s|is) (?:unclear|unknown|not clear)(?: from .*?)? {ASK}\b",
    r"(?:n't|\bnot) (?:\w+ )?(?:in|part of|present in|among|within|found in|available in)(?: \w+){0,3} {HERE}\b",
    r"(?:isn't|aren't|wasn't|\bnot) (?:present|available|visible|there)$|^(?:not|nowhere) in (?:the |this |my )?{HERE}",
    r"\b(?:not enough|insufficient|lacks?|without|too little) (?:\w+ )?(?:information|context|details?)\b",
    r"(?:n't|not) (?:make it (?:in|into|to)|survive)\b",
    r"\b(?:lost|omitted|left out|cut|dropped|compressed away|truncated|trimmed)(?: \w+)? (?:in|from|of|during|by|when|before)\b.{0,30}\b(?:{HERE}|that|it)\b",
    r"\b{RECORD}\b.*\b(?:ends?|stops?|cuts? off|starts?|begins?) (?:before|after|at)\b",
    r"\bnot {ASK}\b|\bwould (?:only )?be (?:a guess|guessing|speculation)\b",
    r"\b(?:need|have) to (?:re-?|re )?(?:read|check|open|look|inspect|see|fetch)\b.{0,60}\bto (?:know|tell|say|answer|confirm|determine|find)\b",
    // Chinese
    r"(?:没有|没|未|并未|从未|不)(?:有|曾|被|再|能)?(?:明确|具体|直接|任何|专门|清楚)?地?(?:说明|说|讲|提到|提及|提过|提供|提$|记载|写明|写$|写[改出到清为是]|给出|指明|指出|涉及|透露|交代|包含(?:$|[^在])|注明|列出|谈到|谈及|保留|体现|显示|描述|覆盖|涵盖|收录|讨论过|商量过|谈过|定过|决定过|定下来|保存|出现(?:$|[^在]|在{RECORD_ZH}))",
    r"{RECORD_ZH}.*(?:没有|没|未|无|不)(?:有|曾|被|再)?(?:记录|记|写|找到|查到|看到|见到)|(?:没有|没|未|无)(?:被)?(?:记录|记载)",
    r"(?:摘要|总结|上下文|记录|会话|对话|历史|笔记|材料|原文)(?:里|中|内|里面)?(?:已经|也|并|都|其实|确实|就)*(?:没有|没|未|无|不足)|不足以",
    r"(?:没有|没|未|无)(?:任何|这个|这些|这部分|这方面的?|该|此|这一|找到|查到|足够的?)*(?:相关|有关|关于|对应|答案|内容|信息|线索|细节|依据|记录$|记录[提可])",
    r"(?:无法|没法)(?:从.*)?(?:确定|判断|得知|回答|作答|确认|知道|给出|获知|看出|推断|得出|判定|提供|找到|说)|无从|不得而知",
    r"(?:^|我们?|也|仍|尚|还|并|目前|这个?|就|暂)不(?:知道|清楚|确定|了解|明)(?:$|[^的])|不详|不明(?:$|确)|不好说|说不准|难以(?:判断|确定|得知|回答)",
    r"(?:{RECORD_ZH}|我|这里|其中|里|中).{0,6}(?:找不到|查不到|看不到|看不出|未找到|没找到|没有找到|没有看到|没看到|没见到)",
    r"(?:找不到|查不到|未找到|没有找到)(?:$|相关|有关|关于|任何|答案)|看不出",
    r"^暂?无$|未知$|信息不足|(?:缺少|缺乏|缺失)(?:相关|足够|必要|有关)?的?(?:上下文|信息|资料|细节|依据|内容|记录)|不在(?:这份|该|这个)?{RECORD_ZH}",
    r"(?:压缩|截断|摘要|总结|精简).{0,8}(?:掉|丢失|丢掉|丢了|省略|去掉|略去|遗漏)",
    r"(?:这|该|此|那)(?:部分|个?信息|个?细节|些?内容|一?点).{0,12}(?:丢失|缺失|不在|不存在|省略|遗漏)",
    r"不(?:会|想|能|做|作|便)?(?:妄加|随意)?(?:猜测|推测|猜)|无法(?:猜测|推测)",
];

lazy_patterns! {
    ADMISSION = any_of(ADMISSIONS);

    GUESS = any_of(&[
        r"\b(?:probably|presumably|most likely|likely|perhaps|maybe|it (?:may|might|could) be|my guess|best guess)\b",
        r"\b(?:(?:i|i would|i'd) (?:guess|say)|i'd go|i assume|i suspect|i believe|i think|(?:appears|seems) to have)\b",
        r"可能|大概|应该是|应是|应为|应当是|估计|推测|推断|猜测|或许|也许|我猜|我认为",
    ]);

    /// Segments that begin like a statement of the answer.
    STATEMENT = any_of(&[
        r"^(?:it|this|that|he|she|they)(?:'s| is| was| are| were| used| uses| chose)\b|^yes$",
        r"^the (?:answer|value|reason|port|name|file|version|user|one|person|command|error|cause) (?:is|was)\b",
        r"^(?:答案|就?是|即|用的是|原因是|端口|使用的?是|选择了|由[^于]|为[^什])",
    ]);

    /// Segments that say what could be done to find out, or what the record has instead.
    SUGGESTION = any_of(&[
        r"\b(?:you (?:can|could|may|might|should)|you'd|i (?:can|could|would need|would have)|check|search|consult)\b",
        r"\b(?:look(?:ing)? (?:at|in|up)|ask(?:ing)?|re-?read|if you|please|need to|would be needed)\b",
        r"\bonly (?:says|mentions|covers|lists?|names|the fact|that)\b|\bjust list\b",
        r"可以|建议|需要|请[^求]|若|如果|只(?:提到|说|记录|有|写|列)|仅(?:提到|说|记录|有)",
    ]);

    /// Words after which an answer asserts something in spite of an admission.
    CONTRAST = any_of(&[
        r"\b(?:but|however|yet|nevertheless|nonetheless|so|therefore|thus|hence|though|although|which is why)\b",
        r"但是|但|不过|然而|可是|所以|因此|而是",
    ]);

    REASON = any_of(&[r"\b(?:because|since)\b|因为|由于"]);

    /// Reasons that are about the record or the one who answers.
    OWN_REASON = any_of(&[r"(?:because|since)\b.*\b(?:{RECORD}|i)\b", r"(?:因为|由于).*(?:摘要|总结|上下文|记录里|会话|对话|我)"]);

    /// What the record says, or what others did not do: a negation after it is no admission.
    ATTRIBUTION = any_of(&[
        r"\b(?:according to|per) |\b{THE_RECORD} (?:says?|states?|mentions?|shows?|notes?|indicates?|lists?) (?:[^n]|n[^o])",
        r"(?:摘要|总结|上下文|记录|笔记)[里中]?(?:说|写着|写道|提到|显示|记录了|指出)",
        r"(?:用户|客户|他们?|她们?|代码|函数|测试|文件|服务器?|日志|响应|团队)[都也并还]?(?:没|未|并未|不)",
    ]);

    NEGATION = any_of(&["{NONE}"]);

    /// A word for the record.
    RECORD = any_of(&[r"\b{RECORD}\b"]);

    END = any_of(&[r"[!?。！？;,:\n()、—]|\.(?: |$)| - "]);

    /// Quotations and code, which are not statements of the answer itself.
    QUOTED = any_of(&[r#""[^"\n]*"|“[^”\n]*”|「[^」\n]*」|`[^`\n]*`"#, r"(?:^|[\s(:])'[^'\n]+'"]);
}

/// The pattern of any of `alternatives`, with the parts that they name.
fn any_of(alternatives: &[&str]) -> Regex {
    let joined = alternatives.join("|");
    pattern(
        &PARTS
            .iter()
            .fold(joined, |text, (name, part)| text.replace(name, part)),
    )
}

/// A folded part of an answer, between punctuation and words of contrast.
struct Segment {
    text: String,
    /// Whether a word of contrast is before it.
    follows_contrast: bool,
}

fn segments(answer: &str) -> Vec<Segment> {
    let folded = fold(&QUOTED.replace_all(answer, " ‹›").replace('\n', ". ")).replace("so far", "");
    let mut segments = Vec::new();
    for sentence in END.split(&folded) {
        let mut follows_contrast = false;
        for part in CONTRAST.split(sentence) {
            let text = part
                .trim()
                .trim_start_matches(['\'', '-', '*', ' '])
                .trim_end_matches(['.', ' '])
                .to_owned();
            if !text.is_empty() {
                segments.push(Segment {
                    text,
                    follows_contrast,
                });
            }
            follows_contrast = true;
        }
    }
    segments
}

impl Segment {
    fn admits(&self) -> bool {
        let reason = REASON
            .find(&self.text)
            .filter(|_| !OWN_REASON.is_match(&self.text));
        let statement = reason
            .and_then(|reason| self.text.get(..reason.start()))
            .unwrap_or(&self.text);
        let is_attributed = ATTRIBUTION.find(statement).is_some_and(|attribution| {
            !statement
                .get(..attribution.start())
                .is_some_and(|before| NEGATION.is_match(before))
        });
        ADMISSION.is_match(statement) && !is_attributed
    }
}

/// Whether the answer says, in English or Chinese, that the record does not contain what was asked for, and asserts nothing
/// else.
pub fn abstains(answer: &str) -> bool {
    let segments = segments(answer);
    let admits: Vec<bool> = segments.iter().map(Segment::admits).collect();
    let mut admitted = false;
    for (place, (segment, admits_here)) in segments.iter().zip(&admits).enumerate() {
        let contrasts = admitted && segment.follows_contrast && !RECORD.is_match(&segment.text);
        let asserts =
            GUESS.is_match(&segment.text) || STATEMENT.is_match(&segment.text) || contrasts;
        // "it was changed, but the new value is not recorded"
        let next_admits = segments
            .get(place + 1)
            .is_some_and(|next| next.follows_contrast)
            && admits.get(place + 1).is_some_and(|admits| *admits);
        let is_part_of_admission = *admits_here || (admitted && next_admits);
        if asserts && !is_part_of_admission && !SUGGESTION.is_match(&segment.text) {
            return false;
        }
        admitted |= admits_here;
    }
    admitted
}

/// Whether the answer asserts anything: it is neither empty nor an admission.
pub fn asserts(answer: &str) -> bool {
    !answer.trim().is_empty() && !abstains(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers in both languages, one a line, each after `admits` or `asserts`.
    const CASES: &str = include_str!("admissions.txt");

    #[test]
    #[expect(clippy::print_stdout, reason = "docs/notes quotes the share")]
    fn admissions_differ_from_assertions_in_two_languages() {
        let cases: Vec<(bool, &str)> = CASES
            .lines()
            .map(|line| match line.split_once('\t') {
                Some(("admits", answer)) => (true, answer),
                Some(("asserts", answer)) => (false, answer),
                _ => panic!("{line}"),
            })
            .collect();
        let wrong: Vec<&str> = cases
            .iter()
            .filter(|(admits, answer)| abstains(answer) != *admits)
            .map(|(_, a)| *a)
            .collect();
        let right = 1.0 - wrong.len() as f64 / cases.len() as f64;
        println!(
            "admissions and assertions: {} cases, {:.1}% right, wrong: {wrong:#?}",
            cases.len(),
            100.0 * right
        );
        assert!(cases.len() >= 60 && right >= 0.95, "{right} {wrong:#?}");
    }

    #[test]
    fn silence_asserts_nothing() {
        assert!(!asserts("  ") && !abstains("  "));
    }
}
