//! Calls and results that a harness writes as text, because its model has no calls of its own: those of Cline and Roo
//! Code (`[read_file for 'x'] Result:`) and of OpenHands (`EXECUTION RESULT of [name]:`).

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
