//! Calls and results that a harness writes as text, because its model has no calls of its own: those of Cline and Roo
//! Code (`[read_file for 'x'] Result:`) and of OpenHands (`EXECUTION RESULT of [name]:`).

use super::conversation::DropReason;
use super::draft::{CallResult, ConversationDraft};
use super::written_call::is_name;

/// A block that a harness puts beside the person's words at each turn.
const INJECTED: &str = "environment_details";

/// Adds the results in a text of the user's role to the calls that they answer, and returns the person's own words.
pub(super) fn take_results(text: &str, draft: &mut ConversationDraft) -> String {
    let (mut own, injected) = without_blocks(text, INJECTED);
    if !injected.is_empty() {
        own = own.trim().to_owned();
    }
    for _ in injected {
        draft.count(DropReason::Injected(INJECTED.to_owned()));
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

/// Adds the result, and returns what the person said in it.
fn finish(result: Option<CallResult>, draft: &mut ConversationDraft) -> String {
    let Some(mut result) = result else {
        return String::new();
    };
    let said = take_said(&mut result.text);
    result.text = result.text.trim().to_owned();
    draft.make_written_call(&result.name);
    draft.add_call_result(result);
    said
}

/// Takes what the person said out of the result of a call: why it was refused, how to go on, or the answer to a question.
/// Only a result that begins with the person holds such words; a file may have them, too.
pub(super) fn take_said(result: &mut String) -> String {
    const BLOCKS: [&str; 2] = ["feedback", "answer"];
    const SAID: [&str; 3] = ["the user said:", "answered your questions:", "answered:"];
    const AFTER: &str = ". You can now continue";
    let begin = result.trim_start();
    let begin = begin.strip_prefix("Error: ").unwrap_or(begin);
    let is_block = |tag: &&str| begin.starts_with(&format!("<{tag}>"));
    let is_person = begin.starts_with("The user ") || begin.starts_with("User ");
    if !is_person && !BLOCKS.iter().any(is_block) {
        return String::new();
    }
    for tag in BLOCKS {
        let (rest, blocks) = without_blocks(result, tag);
        if !blocks.is_empty() {
            *result = rest;
            return joined(blocks);
        }
    }
    let mark = SAID
        .iter()
        .find_map(|mark| Some(result.find(mark)? + mark.len()));
    let Some(end) = mark.filter(|_| is_person) else {
        return String::new();
    };
    let said = result.split_off(end);
    let said = said.split(AFTER).next().unwrap_or_default();
    said.trim().to_owned()
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
