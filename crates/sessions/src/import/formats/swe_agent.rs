//! SWE-agent trajectories: the `history`, with function calls or with actions as text.

use std::collections::HashMap;

use serde_json::Value;

use super::super::blocks;
use super::super::content::{content_of, first_at, is_true, list_of, str_at, str_of};
use super::super::conversation::DropReason;
use super::super::draft::ConversationDraft;
use super::super::source::Records;

pub(super) fn read(records: &mut Records) -> Vec<ConversationDraft> {
    let mut drafts = Vec::new();
    while let Some(run) = records.next_item() {
        let model = model_of(&run);
        let before = drafts.len();
        read_trajectory(&run, &records.stem(), &mut drafts);
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
fn read_trajectory(run: &Value, stem: &str, drafts: &mut Vec<ConversationDraft>) {
    let first = drafts.len();
    let mut agents: HashMap<&str, usize> = HashMap::new();
    let query = list_of(run, "trajectory")
        .last()
        .map_or(&[] as &[Value], |step| list_of(step, "query"));
    let history = if list_of(run, "history").is_empty() {
        query
    } else {
        list_of(run, "history")
    };
    for item in history {
        let agent = str_of(item, "agent");
        let at = *agents.entry(agent).or_insert_with(|| {
            let name = if drafts.len() == first {
                stem.to_owned()
            } else {
                format!("{stem}-{agent}")
            };
            drafts.push(ConversationDraft::new(name));
            drafts.len() - 1
        });
        if let Some(draft) = drafts.get_mut(at) {
            read_message(item, draft);
        }
    }
    if history.is_empty() {
        let mut draft = ConversationDraft::new(stem);
        list_of(run, "trajectory")
            .iter()
            .for_each(|step| read_step(step, &mut draft));
        drafts.push(draft);
    } else if list_of(run, "history").is_empty()
        && let (Some(step), Some(draft)) =
            (list_of(run, "trajectory").last(), drafts.get_mut(first))
    {
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
