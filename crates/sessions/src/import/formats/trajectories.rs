//! Trajectories: documents that hold a whole run, of SWE-agent, of mini-SWE-agent, and in the interchange format.

use std::collections::HashMap;

use serde_json::Value;

use super::super::blocks;
use super::super::blocks::{Speaker, add_blocks, message_blocks, result_of};
use super::super::content::{
    content_of, first_at, is_true, list_of, str_at, str_of, text_of, time_of, usage_of,
};
use super::super::conversation::DropReason;
use super::super::draft::ConversationDraft;
use super::super::source::Records;
use super::codex::CodexItems;
use crate::transcript::Role;

/// SWE-agent: the `history`, with function calls or with actions as text.
pub(super) fn read_swe_agent(records: &mut Records) -> Vec<ConversationDraft> {
    let mut drafts = Vec::new();
    while let Some(run) = records.next_item() {
        let model = model_of(&run);
        let before = drafts.len();
        read_trajectory(&run, &mut drafts);
        for draft in drafts.iter_mut().skip(before) {
            draft.set_model(model.as_deref().unwrap_or_default());
        }
    }
    drafts
}

/// `replay_config` is an object, or such an object as text.
fn model_of(run: &Value) -> Option<String> {
    let config = match run.get("replay_config") {
        Some(Value::String(text)) => serde_json::from_str(text).ok()?,
        Some(other) => other.clone(),
        None => return None,
    };
    let name = str_at(&config, "/agent/model/name");
    (!name.is_empty()).then(|| name.to_owned())
}

/// One draft for each agent that speaks.
fn read_trajectory(run: &Value, drafts: &mut Vec<ConversationDraft>) {
    let first = drafts.len();
    let mut agents: HashMap<&str, usize> = HashMap::new();
    let steps = list_of(run, "trajectory");
    // Without a history, that before the last step.
    let (history, last) = match (list_of(run, "history"), steps.last()) {
        ([], Some(last)) => (list_of(last, "query"), Some(last)),
        (history, _) => (history, None),
    };
    for item in history {
        let agent = str_of(item, "agent");
        let at = *agents.entry(agent).or_insert_with(|| {
            let part = if drafts.len() == first { "" } else { agent };
            drafts.push(ConversationDraft::new(part));
            drafts.len() - 1
        });
        if let Some(draft) = drafts.get_mut(at) {
            read_message(item, draft);
        }
    }
    if history.is_empty() {
        let mut draft = ConversationDraft::default();
        steps.iter().for_each(|step| read_step(step, &mut draft));
        drafts.push(draft);
    } else if let (Some(step), Some(draft)) = (last, drafts.get_mut(first)) {
        read_step(step, draft);
    }
}

/// Reads a step of the trajectory, where there is no history.
fn read_step(step: &Value, draft: &mut ConversationDraft) {
    let action = str_of(step, "action");
    add_action(first_at(step, &["/thought", "/response"]), action, draft);
    if !action.is_empty() {
        draft.add_next_result(str_of(step, "observation"));
    }
}

fn read_message(item: &Value, draft: &mut ConversationDraft) {
    if is_true(item, "is_demo") || str_of(item, "message_type") == "demonstration" {
        return draft.count(DropReason::Demonstration);
    }
    let native = item
        .get("tool_calls")
        .is_some_and(|calls| calls.as_array().is_some_and(|list| !list.is_empty()));
    match str_of(item, "role") {
        "assistant" if !native => {
            let content = content_of(item, draft);
            let thought = str_of(item, "thought");
            add_action(
                if thought.is_empty() {
                    &content
                } else {
                    thought
                },
                str_of(item, "action"),
                draft,
            );
        }
        "tool" => {
            let text = content_of(item, draft);
            add_results(item, text, draft);
        }
        "user" if draft.waiting() > 0 && is_observation(item) => {
            let text = content_of(item, draft);
            draft.add_next_result(text);
        }
        _ => blocks::read_message(item, "", draft),
    }
}

/// Adds a reply. An action in text stands for a call of the shell.
fn add_action(thought: &str, action: &str, draft: &mut ConversationDraft) {
    let command = action.trim();
    let calls = if command.is_empty() {
        Vec::new()
    } else {
        vec![blocks::shell_call(command, draft)]
    };
    draft.add_reply(thought, calls);
}

/// Adds a result. It may answer several calls: the first gets its text.
fn add_results(item: &Value, text: String, draft: &mut ConversationDraft) {
    let ids = list_of(item, "tool_call_ids")
        .iter()
        .filter_map(Value::as_str);
    let single = Some(str_of(item, "tool_call_id")).filter(|id| !id.is_empty());
    let mut ids: Vec<&str> = ids.chain(single).collect();
    ids.dedup();
    let Some((first, others)) = ids.split_first() else {
        return draft.add_next_result(text);
    };
    draft.add_result(first, text);
    for id in others {
        draft.add_result(id, format!("[answered together with {first}]"));
    }
}

fn is_observation(item: &Value) -> bool {
    matches!(str_of(item, "message_type"), "observation" | "")
}

/// mini-SWE-agent: actions as one fenced block, or native messages of the API.
pub(super) fn read_mini(records: &mut Records) -> Vec<ConversationDraft> {
    let mut drafts = Vec::new();
    let mut loose: Vec<Value> = Vec::new();
    while let Some(item) = records.next_item() {
        if item.get("messages").is_none() {
            loose.push(item);
            continue;
        }
        let mut draft = ConversationDraft::default();
        draft.set_model(first_at(
            &item,
            &["/info/config/model/model_name", "/info/config/model"],
        ));
        read_conversation(list_of(&item, "messages"), &mut draft);
        drafts.push(draft);
    }
    let mut draft = ConversationDraft::default();
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
            "assistant" => read_mini_assistant(message, next, draft),
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
fn read_mini_assistant(message: &Value, next: Option<&Value>, draft: &mut ConversationDraft) {
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

/// The Agent Trajectory Interchange Format, as Harbor and others write it: one document with steps.
pub(super) fn read_atif(records: &mut Records) -> Vec<ConversationDraft> {
    let mut drafts = Vec::new();
    while let Some(document) = records.next_item() {
        drafts.push(read_atif_document(&document));
    }
    drafts
}

fn read_atif_document(document: &Value) -> ConversationDraft {
    let mut draft = ConversationDraft::default();
    draft.set_model(first_at(document, &["/agent/model_name"]));
    draft.set_tools(document.pointer("/agent/tool_definitions"));
    for step in list_of(document, "steps") {
        read_atif_step(step, &mut draft);
    }
    draft
}

fn read_atif_step(step: &Value, draft: &mut ConversationDraft) {
    let results = observed(step);
    let source = str_of(step, "source");
    let Some(speaker) = Speaker::of(source) else {
        return draft.count_unknown(format!("step of `{source}`"));
    };
    draft.set_model(str_of(step, "model_name"));
    if let Some(metrics) = step.get("metrics") {
        draft.count_request(usage_of(metrics), time_of(step));
    }
    let blocks = message_blocks(step, draft);
    let is_frame = blocks.text.trim().is_empty() && blocks.calls.is_empty();
    if !is_frame || results.is_empty() {
        add_blocks(speaker, blocks, draft);
    }
    for result in results {
        read_result(result, draft);
    }
}

/// What the environment answered: a list of results, a single one, or its text.
fn observed(step: &Value) -> Vec<&Value> {
    let Some(observation) = step.get("observation").filter(|one| !one.is_null()) else {
        return Vec::new();
    };
    let inner = ["results", "result"]
        .iter()
        .find_map(|key| observation.get(*key));
    match inner {
        Some(Value::Array(results)) => results.iter().collect(),
        Some(result) => vec![result],
        None => vec![observation],
    }
}

/// A result without the id of a call belongs to the oldest call that waits. Agents without calls get the state of their
/// terminal as a message, which is not the person's.
fn read_result(result: &Value, draft: &mut ConversationDraft) {
    if !result.is_object() {
        let text = text_of(result, draft);
        return add_answer(text, draft);
    }
    let found = result_of(result, draft);
    if found.text.is_empty() && result.get("content").is_none() {
        return add_answer(result.to_string(), draft);
    }
    if draft.has_called(&found.id) {
        draft.add_call_result(found);
    } else {
        add_answer(found.text, draft);
    }
}

/// The line before what the environment answered to an agent that makes no calls.
const OBSERVATION_HEAD: &str = "[observation]";

fn add_answer(text: String, draft: &mut ConversationDraft) {
    if draft.waiting() > 0 {
        draft.add_next_result(text);
    } else if !text.trim().is_empty() {
        draft.say(Role::User, format!("{OBSERVATION_HEAD}\n{text}"));
    }
}
