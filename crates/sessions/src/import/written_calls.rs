//! Calls and results that a harness writes as text, because its model has no calls of its own: those of Cline and Roo
//! Code (`[read_file for 'x'] Result:`) and of OpenHands (`EXECUTION RESULT of [name]:`).

use serde_json::{Map, Value};

use super::conversation::DropReason;
use super::draft::{CallResult, ConversationDraft};
use crate::transcript::ToolCall;

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
    for line in own.split_inclusive('\n') {
        match head_of_result(line).filter(|(name, _)| draft.expects_result_of(name)) {
            Some((name, after)) => {
                finish(open.take(), draft);
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
    finish(open, draft);
    rest
}

fn finish(result: Option<CallResult>, draft: &mut ConversationDraft) {
    if let Some(mut result) = result {
        result.text = result.text.trim().to_owned();
        draft.make_written_call(&result.name);
        draft.add_call_result(result);
    }
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

/// The call of the tool `name` that is written in a reply, with the text around it: `<name><key>value</key></name>`, or
/// `<function=name><parameter=key>value</parameter></function>`.
pub(super) fn written_call(text: &str, name: &str, id: String) -> Option<(String, ToolCall)> {
    let forms = [
        (format!("<{name}>"), format!("</{name}>"), "<", ">", "</"),
        (
            format!("<function={name}>"),
            "</function>".to_owned(),
            "<parameter=",
            ">",
            "</parameter",
        ),
    ];
    forms
        .iter()
        .find_map(|(open, close, key, key_end, value_end)| {
            let at = text.rfind(open.as_str())?;
            let inside = text.get(at + open.len()..)?;
            let end = inside.find(close.as_str()).unwrap_or(inside.len());
            let (body, after) = inside.split_at(end);
            let arguments = parameters(body, key, key_end, value_end);
            let after = after.strip_prefix(close.as_str()).unwrap_or(after);
            let around = format!("{}{after}", text.get(..at)?).trim().to_owned();
            let call = ToolCall::new(id.clone(), name, Value::Object(arguments).to_string());
            Some((around, call))
        })
}

fn parameters(body: &str, open: &str, open_end: &str, close: &str) -> Map<String, Value> {
    let mut parameters = Map::new();
    let mut rest = body;
    while let Some((_, after)) = rest.split_once(open) {
        let Some((key, after)) = after.split_once(open_end) else {
            break;
        };
        let closing = if close == "</" {
            format!("</{key}>")
        } else {
            format!("{close}>")
        };
        let (value, tail) = after.split_once(closing.as_str()).unwrap_or((after, ""));
        if is_name(key) {
            let value = value.trim_matches('\n');
            parameters.insert(key.to_owned(), value.into());
        }
        rest = tail;
    }
    parameters
}

/// Whether this can be the name of a tool or a parameter.
fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}
