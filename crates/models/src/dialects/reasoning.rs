//! Reasoning that a server left in the text of a reply. Every dialect reads its text through [`without_reasoning`], since
//! servers of open models offer all of them. Reasoning that an API reports in fields of its own is never read as text.
//!
//! A server that knows its model's format takes the reasoning out. Any other leaves it in the text, in front of the answer:
//! between both tags, or without the first, which was then the end of the prompt. If nothing follows, the model has not
//! answered, and the reply is as unusable as an empty one.

/// What stands before and after reasoning: models of DeepSeek and Qwen, Mistral, Kimi, ByteDance, OpenAI (gpt-oss), Google,
/// OpenThinker, LongCat, Cohere, Apertus, Open WebUI, and what prompts ask for.
const TAGS: [(&str, &str); 32] = [
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<thoughts>", "</thoughts>"),
    ("<reasoning>", "</reasoning>"),
    ("<reason>", "</reason>"),
    ("<reflection>", "</reflection>"),
    ("<scratchpad>", "</scratchpad>"),
    ("<inner_monologue>", "</inner_monologue>"),
    ("<antthinking>", "</antthinking>"),
    ("<seed:think>", "</seed:think>"),
    ("<longcat_think>", "</longcat_think>"),
    ("[think]", "[/think]"),
    ("◁think▷", "◁/think▷"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("<|channel|>analysis", "<|channel|>final<|message|>"),
    (
        "<|start|>assistant<|channel|>analysis",
        "<|channel|>final<|message|>",
    ),
    ("<|channel>thought", "<channel|>"),
    ("<|start_thinking|>", "<|end_thinking|>"),
    ("<|inner_prefix|>", "<|inner_suffix|>"),
    ("<unused94>", "<unused95>"),
    ("<|think|>", "<|/think|>"),
    ("<|thinking|>", "<|/thinking|>"),
    ("<|begin_of_thinking|>", "<|end_of_thinking|>"),
    ("<mm:think>", "</mm:think>"),
    ("<cot>", "</cot>"),
    ("<chain_of_thought>", "</chain_of_thought>"),
    ("<thought_process>", "</thought_process>"),
    ("<thinking_process>", "</thinking_process>"),
    ("<inner_thoughts>", "</inner_thoughts>"),
    ("<internal_monologue>", "</internal_monologue>"),
    ("<reasoning_content>", "</reasoning_content>"),
];
/// The same where either mark may be part of an answer, so that only both together count.
const ENCLOSED: [(&str, &str); 4] = [
    ("<details type=\"reasoning\"", "</details>"),
    ("```thinking", "\n```"),
    ("[thinking]", "[/thinking]"),
    ("[reasoning]", "[/reasoning]"),
];
const QUOTES: [char; 9] = ['`', '"', '\'', '“', '”', '‘', '’', '「', '」'];

/// The text after the reasoning, without white space around it; empty if there is only reasoning. An answer may mention
/// the tags: after other words, both tags are text, and so is a closing tag in quotes, brackets or code marks, or among the
/// words of a line.
pub(crate) fn without_reasoning(text: &str) -> &str {
    let mut rest = text.trim();
    // As long as the text in bytes, so places are the same in both.
    let whole = rest.to_ascii_lowercase();
    let mut lower = whole.as_str();
    while let Some(end) = end_of_reasoning(lower) {
        (rest, lower) = (after(rest, end), after(lower, end));
    }
    let opens = TAGS.iter().filter_map(|(open, _)| lower.find(open)).min();
    let bare = opens.map_or(lower, |at| lower.split_at(at).0);
    let ends = TAGS.iter().filter_map(|(_, close)| {
        let mut places = bare
            .match_indices(close)
            .map(|(at, _)| (at, at + close.len()));
        places.find(|(at, end)| ends_reasoning(rest.split_at(*at).0, rest.split_at(*end).1))
    });
    ends.min().map_or(rest, |(_, end)| after(rest, end))
}

/// The end of the reasoning with which a text in lower case begins.
fn end_of_reasoning(lower: &str) -> Option<usize> {
    let opened = TAGS.iter().find(|(open, _)| lower.starts_with(open));
    let closed = |(open, close): &(&str, &str)| {
        let inner = lower.strip_prefix(open)?;
        Some(open.len() + inner.find(close)? + close.len())
    };
    match opened {
        Some(pair) => Some(closed(pair).unwrap_or(lower.len())),
        None => ENCLOSED.iter().find_map(closed),
    }
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
        for (open, close) in TAGS {
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
        ] {
            assert_eq!(without_reasoning(text), text);
        }
    }
}
