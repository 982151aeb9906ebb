//! Calls and results that a harness writes as text, because its model has no calls of its own: those of Cline and Roo
//! Code (`[read_file for 'x'] Result:`) and of OpenHands (`EXECUTION RESULT of [name]:`). And what a harness writes in the
//! place of a result that it took out of the context.

use super::conversation::DropReason;
use super::draft::{CallResult, ConversationDraft};
use super::written_call::is_name;

/// Blocks that a harness puts beside the person's words at each turn.
const INJECTED: [&str; 1] = ["environment_details"];

/// Adds the results in a text of the user's role to the calls that they answer, and returns the person's own words.
pub(super) fn take_results(text: &str, draft: &mut ConversationDraft) -> String {
    let mut own = text.to_owned();
    for tag in INJECTED {
        let (rest, blocks) = without_blocks(&own, tag);
        if !blocks.is_empty() {
            own = rest.trim().to_owned();
        }
        for _ in blocks {
            draft.count(DropReason::Injected(tag.to_owned()));
        }
    }
    if let Some(task) = own
        .trim()
        .strip_prefix("<task>")
        .and_then(|rest| rest.trim_end().strip_suffix("</task>"))
    {
        return task.trim().to_owned();
    }
    let mut rest = String::new();
    let mut open: Option<CallResult> = None;
    if own.trim_start().starts_with(RESUMPTION) {
        draft.count(DropReason::Injected("task resumption".to_owned()));
        return joined(without_blocks(&own, "user_message").1);
    }
    for line in own.split_inclusive('\n') {
        match head_of_result(line).filter(|(name, _)| draft.expects_result_of(name)) {
            Some((name, after)) => {
                rest.push_str(&finish(open.take(), draft));
                open = Some(CallResult {
                    id: String::new(),
                    name: name.to_owned(),
                    text: after.to_owned(),
                });
            }
            None => match &mut open {
                Some(result) => result.text.push_str(line),
                None => rest.push_str(line),
            },
        }
    }
    rest.push_str(&finish(open, draft));
    rest
}

/// How a harness begins the message with which an interrupted task is resumed.
const RESUMPTION: &str = "[TASK RESUMPTION]";

fn joined(blocks: Vec<String>) -> String {
    let blocks: Vec<&str> = blocks.iter().map(|block| block.trim()).collect();
    blocks.join("\n")
}

/// Adds the result, and returns what the person said in it: of an operation that was denied, or of an answer.
fn finish(result: Option<CallResult>, draft: &mut ConversationDraft) -> String {
    let Some(mut result) = result else {
        return String::new();
    };
    let mut said = Vec::new();
    if result.text.trim_start().starts_with("The user ") {
        let (rest, blocks) = without_blocks(&result.text, "feedback");
        result.text = rest;
        said = blocks;
    }
    result.text = result.text.trim().to_owned();
    draft.make_written_call(&result.name);
    draft.add_call_result(result);
    joined(said)
}

/// The name of the tool in a line that begins a result, and what follows in the line.
fn head_of_result(line: &str) -> Option<(&str, &str)> {
    if let Some(rest) = line.strip_prefix("EXECUTION RESULT of [") {
        return rest.split_once("]:");
    }
    let rest = line.strip_prefix('[')?;
    let (head, after) = rest.split_once("] Result:")?;
    let name = head.split(' ').next()?;
    is_name(name).then_some((name, after))
}

/// The text without its `<tag>` blocks, and what was in them. A block that never ends is text.
pub(super) fn without_blocks(text: &str, tag: &str) -> (String, Vec<String>) {
    let (open, close) = (format!("<{tag}>"), format!("</{tag}>"));
    let (mut rest, mut kept, mut blocks) = (text, String::new(), Vec::new());
    while let Some((before, after)) = rest.split_once(&open) {
        let Some((inside, tail)) = after.split_once(&close) else {
            break;
        };
        kept.push_str(before);
        blocks.push(inside.to_owned());
        rest = tail;
    }
    kept.push_str(rest);
    (kept, blocks)
}

/// Whether a result is only the note of a harness that it took the result out: a note in brackets or tags, or of one line
/// about what a tool gave.
pub(super) fn is_placeholder(text: &str) -> bool {
    const LONGEST: usize = 300;
    const BRACKETS: [(char, char); 3] = [('[', ']'), ('(', ')'), ('<', '>')];
    const GIVERS: [&str; 5] = ["tool", "environment", "observation", "function", "context"];
    let text = text.trim();
    let text = text.strip_prefix("Error: ").unwrap_or(text);
    if let Some(tag) = tag_around(text)
        && tells_of_removal(&words_of(tag))
    {
        return true;
    }
    if text.len() > LONGEST || text.contains(['"', '=']) {
        return false;
    }
    let inside = |(open, close)| text.strip_prefix(open)?.strip_suffix(close);
    let is_one = |inside: &&str| !text.starts_with('<') || inside.matches('<').count() <= 1;
    let words = words_of(text);
    match BRACKETS.into_iter().find_map(inside).filter(is_one) {
        Some(_) => tells_of_removal(&words) || words.len() == 1 && is_removal(&words.concat()),
        None => {
            let is_line = !text.contains('\n');
            let of_tool = words
                .iter()
                .any(|word| GIVERS.contains(&word.as_str()) || word.contains("工具"));
            is_line && of_tool && tells_of_removal(&words)
        }
    }
}

/// The name of the tag that a text consists of.
fn tag_around(text: &str) -> Option<&str> {
    let inside = text.strip_prefix('<')?.strip_suffix('>')?;
    let name = inside.split(['>', ' ', '\n']).next()?;
    let is_whole = !inside.contains('>') || inside.ends_with(&format!("</{name}"));
    is_whole.then_some(name)
}

fn words_of(note: &str) -> Vec<String> {
    let words = note.split(|c: char| !c.is_alphabetic());
    let words = words.filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

fn is_removal(word: &str) -> bool {
    matches!(
        word,
        "evicted"
            | "cleared"
            | "pruned"
            | "compacted"
            | "omitted"
            | "trimmed"
            | "removed"
            | "masked"
            | "elided"
            | "truncated"
            | "dropped"
            | "persisted"
            | "offloaded"
            | "stripped"
            | "purged"
            | "discarded"
            | "deleted"
            | "collapsed"
            | "snipped"
            | "snip"
            | "hidden"
            | "longer"
    ) || ["清除", "移除", "省略", "截断"]
        .iter()
        .any(|part| word.contains(part))
}

fn tells_of_removal(words: &[String]) -> bool {
    const HELD: [&str; 11] = [
        "result",
        "results",
        "output",
        "outputs",
        "history",
        "content",
        "context",
        "observation",
        "response",
        "lines",
        "image",
    ];
    let is_held = |word: &String| {
        let mut parts = ["结果", "输出", "内容"].iter();
        HELD.contains(&word.as_str()) || parts.any(|part| word.contains(part))
    };
    words.iter().any(|word| is_removal(word)) && words.iter().any(is_held)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_that_a_result_was_taken_out_is_told_from_a_short_result() {
        for note in [
            "<output-persisted>\nOutput too large.\n\nPreview:\nabc = \"x\"\n</output-persisted>",
            "<results-masked id=\"1\">",
            "[[INFO] The outdated response was dropped, read the file again.]",
            "(tool output omitted)",
            "Old environment output: (9 lines omitted)",
            "Error: [result removed]",
            "[elided]",
            "<STRIPPED>",
            "[... 300 lines omitted ...]",
            "[tool call result no longer available]",
            "[旧的工具结果内容已清除]",
        ] {
            assert!(is_placeholder(note), "{note}");
        }
        for result in [
            "[ok]",
            "[]",
            "(no output)",
            "[removed 3 packages]",
            "[\"removed\", \"result\"]",
            "<p>removed</p>\n<p>content</p>",
            "The cache was cleared.",
            "Removed stale history files.",
            "content\nremoved by the tool",
        ] {
            assert!(!is_placeholder(result), "{result}");
        }
    }
}
