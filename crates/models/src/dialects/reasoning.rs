//! Reasoning that a server left in the text of a reply. Every dialect reads its text through [`without_reasoning`], since
//! servers of open models offer all of them. Reasoning that an API reports in fields of its own is never read as text.
//!
//! A server that knows its model's format takes the reasoning out. Any other leaves it in the text, in front of the answer:
//! between both tags, or without the first, which was then the end of the prompt. If nothing follows, the model has not
//! answered, and the reply is as unusable as an empty one.

use base::words::WordList;

/// How the name of a mark around reasoning ends: `<think>`, `<|begin_of_thought|>`, `<inner_monologue>`. So do models of
/// DeepSeek and Qwen, ByteDance, OpenThinker, LongCat, Cohere, MiniMax, and what prompts ask for; here
/// without `_` and `-`.
const NAMES: WordList = WordList(
    "think thinking thought thoughts reasoning reflect reflection scratchpad monologue ponder deliberation \
     thoughtprocess thinkingprocess reasoningprocess reasoningcontent 思考 推理 过程",
);
/// Marks of other forms, before and after reasoning: Mistral, Kimi, OpenAI (gpt-oss), Google, Apertus.
const MARKS: [(&str, &str); 7] = [
    ("[think]", "[/think]"),
    ("◁think▷", "◁/think▷"),
    ("<|channel|>analysis", "<|channel|>final<|message|>"),
    (
        "<|start|>assistant<|channel|>analysis",
        "<|channel|>final<|message|>",
    ),
    ("<|channel>thought", "<channel|>"),
    ("<|inner_prefix|>", "<|inner_suffix|>"),
    ("<unused94>", "<unused95>"),
];
/// The same where either mark may be part of an answer, so that only both together count.
const ENCLOSED: [(&str, &str); 9] = [
    ("<details type=\"reasoning\"", "</details>"),
    ("```think", "\n```"),
    ("```thought", "\n```"),
    ("```reasoning", "\n```"),
    ("[thinking]", "[/thinking]"),
    ("[reasoning]", "[/reasoning]"),
    ("[thought]", "[/thought]"),
    ("<analysis>", "</analysis>"),
    ("<rationale>", "</rationale>"),
];
/// The characters with which a mark of [`MARKS`] or any other one begins.
const BEGINNINGS: [char; 3] = ['<', '[', '◁'];
const QUOTES: [char; 9] = ['`', '"', '\'', '“', '”', '‘', '’', '「', '」'];

/// The text after the reasoning, without white space around it; empty if there is only reasoning. An answer may mention
/// the tags: after other words, both tags are text, and so is a closing tag in quotes, brackets or code marks, or among the
/// words of a line.
pub(crate) fn without_reasoning(text: &str) -> &str {
    let mut rest = text.trim_start_matches('\u{feff}').trim();
    // As long as the text in bytes, so places are the same in both.
    let whole = rest.to_ascii_lowercase();
    let mut lower = whole.as_str();
    while let Some(end) = end_of_reasoning(lower) {
        (rest, lower) = (after(rest, end), after(lower, end));
    }
    for (at, _) in lower.match_indices(BEGINNINGS) {
        let (before, mark) = lower.split_at(at);
        if opening(mark).is_some() {
            break;
        }
        let end = closing(mark).map(|length| before.len() + length);
        if let Some(end) = end.filter(|end| ends_reasoning(before, lower.split_at(*end).1)) {
            return after(rest, end);
        }
    }
    rest
}

/// The end of the reasoning with which a text in lower case begins.
fn end_of_reasoning(lower: &str) -> Option<usize> {
    if let Some((length, close)) = opening(lower) {
        let inner = lower.split_at(length).1.find(&close);
        return Some(inner.map_or(lower.len(), |at| length + at + close.len()));
    }
    ENCLOSED.iter().find_map(|(open, close)| {
        let inner = lower.strip_prefix(open)?;
        Some(open.len() + inner.find(close)? + close.len())
    })
}

/// The length of the mark with which a text in lower case begins, if reasoning follows it, and the mark that ends it.
fn opening(lower: &str) -> Option<(usize, String)> {
    let marks = MARKS.iter().find(|(open, _)| lower.starts_with(open));
    if let Some((open, close)) = marks {
        return Some((open.len(), (*close).to_owned()));
    }
    let form = [("<|", "|>"), ("<", ">")];
    let (begin, end) = form
        .into_iter()
        .find(|(begin, _)| lower.starts_with(begin))?;
    let (name, rest) = reasoning_name(lower.strip_prefix(begin)?)?;
    // Attributes may follow the name, but no other tag.
    let (attributes, _) = rest.split('<').next()?.split_once(end)?;
    if name.starts_with("end") || !(attributes.is_empty() || attributes.starts_with(' ')) {
        return None;
    }
    let bare = name.strip_prefix("begin").or(name.strip_prefix("start"));
    let close = match bare {
        Some(bare) => format!("{begin}end{bare}{end}"),
        None => format!("{begin}/{name}{end}"),
    };
    let length = begin.len() + name.len() + attributes.len() + end.len();
    Some((length, close))
}

/// The length of the mark with which a text in lower case begins, if it ends reasoning.
fn closing(lower: &str) -> Option<usize> {
    let mut marks = MARKS.iter().map(|(_, close)| *close);
    if let Some(close) = marks.find(|close| lower.starts_with(close)) {
        return Some(close.len());
    }
    let form = [("</", ">"), ("<|/", "|>"), ("<|end_", "|>")];
    let (begin, end) = form
        .into_iter()
        .find(|(begin, _)| lower.starts_with(begin))?;
    let (name, rest) = reasoning_name(lower.strip_prefix(begin)?)?;
    rest.starts_with(end)
        .then_some(begin.len() + name.len() + end.len())
}

/// The name of a mark at the beginning of a text, if it is one of reasoning, and what follows it.
fn reasoning_name(text: &str) -> Option<(&str, &str)> {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | ':' | '-');
    let (name, rest) = text.split_at(text.find(|c| !is_part(c))?);
    // `<exit_reason>` is data.
    let plain = name.replace(['_', '-'], "");
    let is_reasoning =
        matches!(name, "reason" | "cot") || NAMES.iter().any(|end| plain.ends_with(end));
    is_reasoning.then_some((name, rest))
}

/// The text from a place on, without white space before it.
fn after(text: &str, at: usize) -> &str {
    text.split_at(at).1.trim_start()
}

/// Whether a closing tag between these texts ends the reasoning: it ends a line, begins one, or stands between two words
/// without a blank, as some models write it.
fn ends_reasoning(before: &str, after: &str) -> bool {
    let Some(last) = before.chars().next_back() else {
        return true;
    };
    let is_quoted = QUOTES.contains(&last) && after.starts_with(QUOTES);
    let ends_line = after.is_empty() || after.starts_with(['\n', '\r']);
    let ends = ends_line || last == '\n' || !last.is_whitespace();
    ends && !is_quoted && !is_mentioned_after(before)
}

/// Whether a tag after this text is only mentioned: it comes after an opening bracket or quote, or in code marks. A
/// straight quote is an opening one if no word ends before it.
fn is_mentioned_after(before: &str) -> bool {
    const OPENING: [char; 8] = ['(', '[', '{', '“', '‘', '（', '「', '《'];
    let mut back = before.chars().rev();
    let opens = match (back.next(), back.next()) {
        (Some('`' | '"' | '\''), previous) => previous
            .is_none_or(|c| c.is_whitespace() || OPENING.contains(&c) || "=,:\\，：".contains(c)),
        (last, _) => last.is_some_and(|last| OPENING.contains(&last)),
    };
    opens
        || before
            .chars()
            .rev()
            .take_while(|c| *c != '\n')
            .filter(|c| *c == '`')
            .count()
            % 2
            == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names of tags that models and prompts use.
    const TAGS: [&str; 30] = [
        "think",
        "scratch_pad",
        "thinking-process",
        "reasoningContent",
        "thoughtprocess",
        "thinking",
        "thought",
        "thoughts",
        "reasoning",
        "reason",
        "reflection",
        "scratchpad",
        "inner_monologue",
        "antthinking",
        "seed:think",
        "longcat_think",
        "mm:think",
        "cot",
        "chain_of_thought",
        "thought_process",
        "thinking_process",
        "inner_thoughts",
        "internal_monologue",
        "reasoning_content",
        "ponder",
        "internal_thoughts",
        "reflect",
        "deliberation",
        "思考",
        "推理过程",
    ];
    const PAIRS: [(&str, &str); 9] = [
        ("<|begin_of_thought|>", "<|end_of_thought|>"),
        ("<|start_of_thought|>", "<|end_of_thought|>"),
        ("<|start_thinking|>", "<|end_thinking|>"),
        ("<|think|>", "<|/think|>"),
        ("<|thinking|>", "<|/thinking|>"),
        ("<|thought|>", "<|/thought|>"),
        ("<|reasoning|>", "<|/reasoning|>"),
        ("<|begin_of_thinking|>", "<|end_of_thinking|>"),
        ("<|begin_think|>", "<|end_think|>"),
    ];

    #[test]
    fn reasoning_is_no_answer() {
        for text in [
            "<think>hm</think>\n\n4711",
            "<think>the tag `</think>` ends it\n</think>\n4711",
            "<think>a</think><think>b</think>4711",
            "<details type=\"reasoning\" done=\"true\">\n<summary>hm</summary>\nhm\n</details>\n4711",
            "```thinking\nhm\n```\n4711",
            "```thinking\r\nhm\r\n```\r\n4711",
            "[thinking]hm[/thinking]\n4711",
            "[THOUGHT]hm[/THOUGHT]\n4711",
            "```think\nhm\n```\n4711",
            "```reasoning\nhm\n```\n4711",
            "<analysis>\nhm\n</analysis>\n4711",
            "<thinking effort=\"high\">hm</thinking>4711",
            "\u{feff}<think>hm</think>4711",
            "[REASONING]\nhm\n[/REASONING]\n4711",
            "hm\n</think>\n4711",
            "hm\r\n</think>\r\n\r\n4711",
            "hm.</think>4711",
            "I say \"4711\"</think>\n4711",
            "hm\n</think> 4711",
            "it is `8081` (not 4711)</think>4711",
            "it is `8081`</think>4711",
            "is `</think>` meant?\n</think>\n4711",
            "</think>\n\n4711",
            " 4711 \n",
        ] {
            assert_eq!(without_reasoning(text), "4711", "{text:?}");
        }
    }

    #[test]
    fn reasoning_in_any_of_the_tags_is_none_of_the_answer() {
        let tags = TAGS
            .iter()
            .map(|name| (format!("<{name}>"), format!("</{name}>")));
        let marks = MARKS.iter().chain(&PAIRS);
        let marks = marks.map(|(open, close)| ((*open).to_owned(), (*close).to_owned()));
        for (open, close) in tags.chain(marks) {
            let upper = open.to_uppercase();
            for text in [
                format!("{open}Perhaps 9999?{close}\n\n4711"),
                format!("{upper}a{close}{open}b{close}4711"),
                format!("Perhaps 9999?\n{close}\n4711"),
            ] {
                assert_eq!(without_reasoning(&text), "4711", "{text}");
            }
            assert_eq!(without_reasoning(&format!("{open}Perhaps 9999?")), "");
            let mentioned = format!("It looks for `{open}` and `{close}`.");
            assert_eq!(without_reasoning(&mentioned), mentioned);
        }
    }

    #[test]
    fn reasoning_alone_is_empty() {
        for text in [
            "<think>hm</think>",
            "<think>never closed",
            "hm\n</think>\n\n",
            "hm</think>",
            "</think>",
            " \n",
        ] {
            assert_eq!(without_reasoning(text), "", "{text:?}");
        }
    }

    #[test]
    fn an_answer_may_mention_the_tags() {
        for text in [
            "use <think> and </think>\n tags",
            "The parser splits at `</think>`.",
            "It is '</think>'\nor nothing",
            "A closing </think> without its opening tag",
            "It drops a lone closing tag (</think>) and what is before it.",
            "- `rest.split_once(\"</think>\\n\")` is in chat.rs",
            "It calls split_once(\"</think>\\n\") and trims.",
            r#"{"evidence": "it names the tag \"</think>\" twice"}"#,
            "The input `hm</think>4711` gives 4711",
            "标签：“</think>”之后是回答",
            "[thinking]\nIt is set in `llm.rs`.",
            "[Reasoning] The port is 4711.",
            "```thinking\nthe port is 4711",
            "<analysis>\nthe port is 4711",
            "<reasonable>\n4711",
            "<exit_reason>4711</exit_reason>",
            "<reason_code>4711</reason_code>",
            "<reasoning-effort>4711</reasoning-effort>",
            "<scratch_pad_id>4711</scratch_pad_id>",
            "<process>4711</process>",
            "<thinkpad-list/> is the element",
            "a < b and </b> end",
            "The port is 4711.\n<think>\nand the host db",
            "# Port\n\n<thinking>\n4711",
        ] {
            assert_eq!(without_reasoning(text), text);
        }
    }
}
