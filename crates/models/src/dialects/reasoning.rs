//! Reasoning that a server left in the text of a reply. Every dialect reads its text through [`without_reasoning`], since
//! servers of open models offer all of them. Reasoning that an API reports in fields of its own is never read as text.
//!
//! A server that knows its model's format takes the reasoning out. Any other leaves it in the text, in front of the answer:
//! between both tags, or without the first, which was then the end of the prompt. If nothing follows, the model has not
//! answered, and the reply is as unusable as an empty one.

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";
const QUOTES: [char; 9] = ['`', '"', '\'', '“', '”', '‘', '’', '「', '」'];

/// The text after the reasoning, without white space around it; empty if there is only reasoning. An answer may mention
/// the tags: after other words, both tags are text, and so is a closing tag in quotes, brackets or code marks, or among the
/// words of a line.
pub(crate) fn without_reasoning(text: &str) -> &str {
    let mut rest = text.trim();
    while let Some(reasoning) = rest.strip_prefix(OPEN) {
        rest = reasoning
            .split_once(CLOSE)
            .map_or("", |(_, after)| after.trim_start());
    }
    let bare = rest.split_once(OPEN).map_or(rest, |(before, _)| before);
    let mut splits = bare
        .match_indices(CLOSE)
        .map(|(at, tag)| (rest.split_at(at).0, rest.split_at(at + tag.len()).1));
    let end = splits.find(|(before, after)| ends_reasoning(before, after));
    end.map_or(rest, |(_, after)| after.trim_start())
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
        ] {
            assert_eq!(without_reasoning(text), text);
        }
    }
}
