//! Whether an answer admits that the record does not hold what was asked, or asserts something. By words, in English
//! and Chinese; the table of cases below says how often it is right.
//!
//! The answer is cut into segments at punctuation and at words of contrast. It admits if a segment says that the
//! record is silent, and no other segment asserts all the same: by guessing, by an opening like "it is", or behind
//! "but" or "so" ("it does not say who asked, but it is Bob").

use std::sync::LazyLock;

use regex::Regex;

use crate::transcript::fold;

/// Segments that say that the record does not hold the answer.
static ADMISSION: LazyLock<Regex> = LazyLock::new(|| {
    pattern(&[
        r"^n/?a\b|^n\.a\b|^(?:none|nothing|unknown|unclear|unspecified|no answer|no data|no idea|not applicable)$",
        // the record does not say
        r"|\b(?:context|summary|transcript|conversation|history|session|record|records|notes?|logs?|material|text|messages?|chat|excerpt|document|information|it|that|this|kept|was said|nothing|nobody|i|we)\b.{0,40}(?:\bnot|n't|\bcannot|\bnever|\bnowhere)(?: \w+){0,2} (?:say|said|name|state|mention|specify|tell|indicate|record|reveal|give|provide|include|contain|hold|identify|discuss|cover|document|know|determine|find|show|list|explain|have|address|answer|appear|see|note)s?\b",
        // it is not said
        r"|(?:\bnot|n't|\bnever|\bnowhere)(?: \w+){0,2} (?:said|named|stated|mentioned|specified|told|indicated|recorded|revealed|given|provided|included|identified|discussed|covered|documented|known|available|determined|explained|kept|preserved|noted|answered|sure|clear|certain)\b",
        r"|\b(?:cannot|can't|could not|couldn't) (?:say|tell|answer|determine|find|know|be determined|be answered|be known|see)\b",
        r"|\bno (?:\w+ )?(?:mention|record|information|info|details?|indication|trace|evidence|reference|way to (?:know|tell)|answer|data)\b",
        r"|\bnothing (?:\w+ )?(?:about|on|regarding|in the|there|that says|says|mentions|indicates|was said|is said)\b|\bsays nothing\b|\bnot found in\b|\bnot in (?:the|this|my|what)\b|\b(?:isn't|aren't|wasn't) (?:in|part of) (?:the|this|my)\b",
        r"|\b(?:is|are|was|remains?) (?:unknown|unclear|unspecified|undetermined|silent|missing|absent|lost)\b|\bunknown\b|\bunable to\b|\b(?:not enough|insufficient|lacks?|without) (?:\w+ )?(?:information|context|details?)\b",
        r"|\b(?:lost|omitted|left out|cut|dropped|compressed away)(?: \w+)? (?:in|from|of|during|by|when)\b|\bnot (?:who|why|which|when|what|how|where)\b|\bwould (?:only )?be (?:a guess|guessing)\b|\b(?:won't|will not|cannot|can't) guess\b",
        // Chinese
        r"|(?:没有|没|未|并未|从未|不)(?:有|曾|被|再)?(?:明确|具体|直接|任何|专门)?(?:地)?(?:说|讲|提到|提及|提过|提供|记载|记录|写明|给出|指明|指出|涉及|透露|交代|包含|注明|列出|谈到|保留|体现|显示|谈及|描述)",
        r"|(?:没有|没|未|无)(?:任何)?(?:找到|查到|相关|有关|关于|这方面|这一|对应|答案)|无法(?:确定|判断|得知|回答|确认|知道|给出|获知)|没法(?:确定|回答|知道)|无从|不得而知|不知道|不知|不清楚|不确定|不详|未知|找不到|查不到|看不出|信息不足|缺少|缺乏|^暂?无$|不在(?:摘要|上下文|记录)",
        r"|不(?:会|想|能|做|作)?(?:猜测|推测|猜)|无法(?:猜测|推测)",
    ])
});

/// Segments that guess.
static GUESS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(&[
        r"\b(?:probably|presumably|most likely|likely|perhaps|maybe|it (?:may|might|could) be|my guess|(?:i|i would|i'd) guess|best guess|i assume|i suspect|i believe|i think)\b",
        r"|可能|大概|应该是|应是|应为|估计|推测|猜测|或许|也许|我猜|我认为",
    ])
});

/// Segments that begin as a statement of the answer does.
static STATEMENT: LazyLock<Regex> = LazyLock::new(|| {
    pattern(&[
        r"^(?:it|this|that|he|she|they)(?:'s| is| was| are| were| used| uses| chose)\b|^(?:yes|no)$",
        r"|^the (?:answer|value|reason|port|name|file|version|user|one|person|command|error|cause) (?:is|was)\b",
        r"|^(?:答案|就?是|即|用的是|原因是|端口|使用的?是|选择了|由|为)",
    ])
});

/// Segments that say what could be done to find out.
static SUGGESTION: LazyLock<Regex> = LazyLock::new(|| {
    pattern(&[
        r"\b(?:you (?:can|could|may|might|should)|i (?:can|could|would need|would have)|check|look(?:ing)? (?:at|in|up)|ask(?:ing)?|re-?read|consult|search|if you|please|need to|would be needed|only (?:says|mentions|covers|lists|names))\b",
        r"|可以|建议|需要|请|若|如果|只(?:提到|说|记录|有|写)|仅(?:提到|说|记录|有)",
    ])
});

/// Words after which an answer says what holds all the same.
static CONTRAST: LazyLock<Regex> = LazyLock::new(|| {
    pattern(&[
        r"\b(?:but|however|nevertheless|nonetheless|so|therefore|thus|hence|though|although)\b|但是|但|不过|然而|可是|所以|因此|而是",
    ])
});

/// Where segments end.
static END: LazyLock<Regex> = LazyLock::new(|| pattern(&[r"[!?。！？;,:\n()、]|\.(?: |$)| - "]));

/// Quoted stretches and code: what is quoted is not said by the answer itself.
static QUOTED: LazyLock<Regex> = LazyLock::new(|| pattern(&[r#""[^"\n]*"|“[^”\n]*”|「[^」\n]*」|`[^`\n]*`"#]));

fn pattern(parts: &[&str]) -> Regex {
    Regex::new(&parts.concat()).expect("the patterns are part of the program and compiled by its tests")
}

/// A stretch of an answer, and whether a word of contrast stands before it.
struct Segment {
    text: String,
    follows_contrast: bool,
}

fn segments(answer: &str) -> Vec<Segment> {
    let folded = fold(&QUOTED.replace_all(answer, "‹›").replace('\n', ". ")).replace("so far", "");
    let mut segments = Vec::new();
    for sentence in END.split(&folded) {
        let mut follows_contrast = false;
        for part in CONTRAST.split(sentence) {
            let text = part.trim().trim_start_matches(['\'', '-', '*', ' ']).trim_end_matches(['.', ' ']).to_owned();
            if !text.is_empty() {
                segments.push(Segment { text, follows_contrast });
            }
            follows_contrast = true;
        }
    }
    segments
}

/// Whether the answer says, in English or Chinese, that the record does not hold what was asked, and leaves it at that.
pub fn admits_not_knowing(answer: &str) -> bool {
    let mut admitted = false;
    let mut opened = false;
    for segment in segments(answer) {
        let admits = ADMISSION.is_match(&segment.text);
        let contrasts = admitted && segment.follows_contrast;
        let asserts = GUESS.is_match(&segment.text) || STATEMENT.is_match(&segment.text) || contrasts;
        opened |= asserts && !admits && !SUGGESTION.is_match(&segment.text);
        admitted |= admits;
    }
    admitted && !opened
}

/// Whether the answer asserts anything: it is neither empty nor an admission.
pub fn asserts(answer: &str) -> bool {
    !answer.trim().is_empty() && !admits_not_knowing(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers that admit, in both languages.
    const HONEST: [&str; 50] = [
        "N/A",
        "n/a.",
        "Unknown.",
        "Unclear.",
        "The context doesn’t say.",
        "The summary does not say.",
        "There is nothing about it in the summary.",
        "Nothing about the owner in the summary.",
        "The session does not name it.",
        "What was kept does not hold the answer.",
        "I don't know; it is not explicitly mentioned anywhere.",
        "There is no record of that.",
        "This cannot be determined from what I have.",
        "I looked through the summary, but it does not mention a deadline.",
        "The transcript never states why.",
        "That detail is not in the summary. It was probably lost in compression.",
        "No information is given about the database version.",
        "I can't tell which host was used; you could check the deployment logs.",
        "The notes cover the refactoring and the tests, but not who asked for it.",
        "Not specified.",
        "The provided context is silent on this, so I cannot answer.",
        "I'm not sure: the history only covers the parser.",
        "It was left out of the summary.",
        "There's no indication of the port in the conversation so far.",
        "The summary says nothing on that point.",
        "I have no way to know. Any number would be a guess.",
        "Insufficient context to answer.",
        "The record lists three files. It does not say which was changed first.",
        "The answer is unknown.",
        "This isn't part of the transcript, so the reason remains unclear.",
        "记录中没有提到这一点。",
        "会话里没有说，那只是本地用的替身。",
        "无法确定。",
        "无",
        "未知。",
        "摘要里没有说明。",
        "总结中未提及负责人。",
        "上下文没有给出端口号，需要查看配置文件。",
        "不清楚，记录里找不到。",
        "这一点在摘要中没有体现，我不会猜测。",
        "没有相关信息。",
        "抱歉，对话中没有记录这个版本号。",
        "不详。",
        "我无法得知是谁要求的。",
        "摘要只提到了测试，没有提及原因。",
        "从现有内容看不出原因。",
        "信息不足，无法回答。",
        "文中并未写明截止日期。",
        "没有找到关于数据库的内容。",
        "上下文里不包含这个答案。",
    ];

    /// Answers that assert, in both languages.
    const ASSERTIONS: [&str; 42] = [
        "It is 42.",
        "Bob asked for it.",
        "Redis was not fast enough, so Postgres was chosen.",
        "The transcript does not say, but it is probably 42.",
        "The summary does not say who asked, but it is Bob.",
        "It does not say who asked, but it is the release team.",
        "The summary doesn't name the port; it is 8080.",
        "Although the summary does not say who asked, it was Bob.",
        "Not mentioned, however the port is 8080.",
        "The timeout is not specified in the config, so the default of 30 seconds applies.",
        "The context does not mention it. The answer is Postgres.",
        "Unknown to the users, the job ran twice.",
        "The error was \"module not found\".",
        "It failed with `no such file or directory`.",
        "I don't know for certain, I think it was Friday.",
        "There is no explicit record, most likely they used nginx.",
        "The server returned 404 Not Found.",
        "The config does not include a cache, Redis is used directly.",
        "They dropped the index because writes were slow.",
        "Yes.",
        "No, the user rejected it.",
        "The tests do not cover the parser.",
        "Port 8080",
        "The deadline was moved to Friday.",
        "src/db/mod.rs was never changed.",
        "It might be version 3.2; nothing says otherwise.",
        "The migration is not finished.",
        "没有提到，不过应该是42。",
        "代码未提交，端口是8080。",
        "是张三要求的。",
        "端口是8080。",
        "记录中没有说明，但端口是8080。",
        "摘要没有提到负责人，大概是李四。",
        "没有使用缓存，直接查询数据库。",
        "报错是“文件未找到”。",
        "虽然没有记录，但是用的是 Postgres。",
        "上下文未说明原因，我认为是为了性能。",
        "因为写入太慢，所以放弃了索引。",
        "测试没有通过。",
        "没有写明，不过答案是三个。",
        "超时没有配置，因此默认30秒。",
        "用户不要求兼容旧版本。",
    ];

    #[test]
    #[expect(clippy::print_stdout, reason = "the share of docs/method.md is read off it")]
    fn admissions_are_told_from_assertions_in_two_languages() {
        let honest = HONEST.iter().map(|answer| (*answer, true));
        let cases: Vec<(&str, bool)> = honest.chain(ASSERTIONS.iter().map(|answer| (*answer, false))).collect();
        let wrong: Vec<&str> =
            cases.iter().filter(|(answer, admits)| admits_not_knowing(answer) != *admits).map(|(a, _)| *a).collect();
        let right = 1.0 - wrong.len() as f64 / cases.len() as f64;
        println!("admissions and assertions: {} cases, {:.1}% right, wrong: {wrong:#?}", cases.len(), 100.0 * right);
        assert!(cases.len() >= 60 && right >= 0.95, "{right} {wrong:#?}");
    }

    #[test]
    fn silence_asserts_nothing() {
        assert!(!asserts("  ") && !admits_not_knowing("  "));
    }
}
