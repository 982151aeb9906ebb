//! mini-swe-agent trajectories: actions as one fenced block, or native messages of the API.

use serde_json::Value;

use super::super::blocks;
use super::super::content::{content_of, first_at, list_of, str_of};
use super::super::draft::ConversationDraft;
use super::super::source::Records;
use super::codex::CodexItems;

pub(super) fn read(records: &mut Records) -> Vec<ConversationDraft> {
    let mut drafts = Vec::new();
    let mut loose: Vec<Value> = Vec::new();
    while let Some(item) = records.next_item() {
        if item.get("messages").is_none() {
            loose.push(item);
            continue;
        }
        let mut draft = ConversationDraft::new(records.stem());
        draft.set_model(first_at(
            &item,
            &["/info/config/model/model_name", "/info/config/model"],
        ));
        read_conversation(list_of(&item, "messages"), &mut draft);
        drafts.push(draft);
    }
    let mut draft = ConversationDraft::new(records.stem());
    read_conversation(&loose, &mut draft);
    drafts.push(draft);
    drafts
}

fn read_conversation(messages: &[Value], draft: &mut ConversationDraft) {
    let mut items = CodexItems::default();
    for (index, message) in messages.iter().enumerate() {
        let next = messages.get(index + 1);
        if message.get("type").is_some() && message.get("role").is_none() {
            items.read_item(message, draft);
            continue;
        }
        items.flush(draft);
        match str_of(message, "role") {
            "exit" => draft.count_bookkeeping("exit"),
            "assistant" => read_assistant(message, next, draft),
            "user" if draft.waiting() > 0 => {
                let text = content_of(message, draft);
                draft.add_next_result(text);
            }
            _ => blocks::read_message(message, "", draft),
        }
    }
    items.flush(draft);
}

/// A fenced block is a call of the shell if what follows is the output of a command.
fn read_assistant(message: &Value, next: Option<&Value>, draft: &mut ConversationDraft) {
    let text = str_of(message, "content");
    let fenced = fenced(text);
    match fenced.filter(|(_, command)| {
        next.is_some_and(|next| is_output(next) || is_submission(command, next))
    }) {
        Some((rest, command)) => {
            let call = blocks::shell_call(command, draft);
            draft.add_reply(rest.trim(), vec![call]);
        }
        None => blocks::read_message(message, "", draft),
    }
}

fn is_output(message: &Value) -> bool {
    str_of(message, "role") == "user"
        && str_of(message, "content")
            .trim_start()
            .starts_with("<returncode>")
}

/// Whether `next` is the output of the command that submits: that output has no frame.
fn is_submission(command: &str, next: &Value) -> bool {
    const MARKS: [&str; 2] = [
        "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT",
        "MINI_SWE_AGENT_FINAL_OUTPUT",
    ];
    str_of(next, "role") == "user" && MARKS.iter().any(|mark| command.contains(mark))
}

/// The text around the last fenced block that is a command, and the command.
fn fenced(text: &str) -> Option<(String, &str)> {
    const OPENINGS: [&str; 3] = ["```bash\n", "```mswea_bash_command\n", "```sh\n"];
    let (at, opening) = OPENINGS
        .iter()
        .filter_map(|opening| Some((text.rfind(opening)?, *opening)))
        .max()?;
    let before = text.get(..at)?;
    let block = text.get(at + opening.len()..)?;
    let end = block.rfind("\n```").unwrap_or(block.len());
    let (command, after) = block.split_at(end);
    Some((
        format!("{before}{}", after.trim_start_matches(['\n', '`'])),
        command,
    ))
}
