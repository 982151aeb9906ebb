//! LangSmith runs: the last call of a model in each trace holds the whole conversation. Calls below the run of a tool are
//! those of a sub-agent.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::super::content::{arguments, content_of, first_at, list_of, str_of};
use super::super::conversation::DropReason;
use super::super::draft::{ConversationDraft, conversation_names};
use super::super::source::Records;
use super::openai;
use crate::transcript::{Role, ToolCall};

pub(super) fn read(records: &mut Records) -> Vec<ConversationDraft> {
    let mut traces: BTreeMap<String, Trace> = BTreeMap::new();
    while let Some(item) = records.next_item() {
        if item.get("post").is_some() || item.get("patch").is_some() {
            for run in list_of(&item, "post").iter().chain(list_of(&item, "patch")) {
                add_run(run, &mut traces);
            }
        } else {
            add_run(&item, &mut traces);
        }
    }
    let stem = records.stem();
    let names = conversation_names(&stem, traces.len());
    traces
        .into_values()
        .zip(names)
        .map(|(trace, name)| trace.into_draft(name))
        .collect()
}

/// The most levels of a trace that are looked at: each is compared with all tools.
const MOST_LEVELS: usize = 128;

/// The runs of one trace, by id; an update of a run wins over what was posted.
#[derive(Default)]
struct Trace {
    models: BTreeMap<String, Value>,
    /// The orders of tool runs.
    tools: BTreeSet<String>,
    others: usize,
}

fn add_run(run: &Value, traces: &mut BTreeMap<String, Trace>) {
    let key = first_at(run, &["/trace_id", "/id"]);
    let trace = traces.entry(key.to_owned()).or_default();
    let id = str_of(run, "id").to_owned();
    match trace.models.get_mut(&id) {
        Some(known) => merge(known, run),
        None if str_of(run, "run_type") == "llm" => {
            drop(trace.models.insert(id, without_children(run)))
        }
        None => {
            trace.others += 1;
            if str_of(run, "run_type") == "tool" {
                trace.tools.insert(str_of(run, "dotted_order").to_owned());
            }
        }
    }
    list_of(run, "child_runs")
        .iter()
        .for_each(|child| add_run(child, traces));
}

/// A run alone. Its children are runs of their own: with them, each level of a trace would hold all below it again.
fn without_children(run: &Value) -> Value {
    let mut alone = Value::Object(Map::new());
    merge(&mut alone, run);
    alone
}

/// Sets what an update says of a run, except its children.
fn merge(known: &mut Value, update: &Value) {
    let (Some(known), Some(update)) = (known.as_object_mut(), update.as_object()) else {
        return;
    };
    for (key, value) in update
        .iter()
        .filter(|(key, value)| !value.is_null() && *key != "child_runs")
    {
        known.insert(key.clone(), value.clone());
    }
}

impl Trace {
    fn into_draft(self, name: String) -> ConversationDraft {
        let mut draft = ConversationDraft::new(name);
        for _ in 0..self.others {
            draft.count_bookkeeping("run that is no call of a model");
        }
        let mut runs: Vec<Value> = self.models.into_values().collect();
        // Those of sub-agents come first, so that the last one is of the conversation itself if the trace has one.
        runs.sort_by_cached_key(|run| {
            let order = str_of(run, "dotted_order");
            let mut above = order
                .match_indices('.')
                .take(MOST_LEVELS)
                .filter_map(|(at, _)| order.get(..at));
            let is_of_sub_agent = above.any(|above| self.tools.contains(above));
            (!is_of_sub_agent, order.to_owned())
        });
        let last = runs.pop();
        runs.iter().for_each(|_| draft.count(DropReason::Duplicate));
        if let Some(run) = last {
            read_conversation(&run, &mut draft);
        }
        draft
    }
}

fn read_conversation(run: &Value, draft: &mut ConversationDraft) {
    let models = [
        "/extra/metadata/ls_model_name",
        "/inputs/model",
        "/extra/invocation_params/model",
    ];
    draft.set_model(first_at(run, &models));
    let inputs = list_of(run.get("inputs").unwrap_or(&Value::Null), "messages");
    for message in inputs {
        match message {
            Value::Array(list) => list.iter().for_each(|message| read_message(message, draft)),
            one => read_message(one, draft),
        }
    }
    let outputs = [
        "/outputs/generations/0/0/message",
        "/outputs/choices/0/message",
        "/outputs/message",
    ];
    match outputs.into_iter().find_map(|at| run.pointer(at)) {
        Some(reply) => read_message(reply, draft),
        None => list_of(run.get("outputs").unwrap_or(&Value::Null), "messages")
            .last()
            .into_iter()
            .for_each(|reply| read_message(reply, draft)),
    }
}

/// A message of OpenAI's API, or an object of LangChain in one of its three forms.
fn read_message(message: &Value, draft: &mut ConversationDraft) {
    if message.get("role").is_some() {
        return openai::read_message(message, draft);
    }
    let class = list_of(message, "id").last().and_then(Value::as_str);
    let body = message
        .get("kwargs")
        .or_else(|| message.get("data"))
        .unwrap_or(message);
    let kind = class
        .unwrap_or(str_of(message, "type"))
        .trim_end_matches("Chunk");
    let text = content_of(body, draft);
    match kind {
        "HumanMessage" | "human" => draft.say(Role::User, text),
        "SystemMessage" | "system" => draft.say(Role::System, text),
        "ToolMessage" | "tool" => draft.add_result(str_of(body, "tool_call_id"), text),
        "AIMessage" | "ai" => {
            let calls = list_of(body, "tool_calls").iter().map(|call| {
                ToolCall::new(
                    str_of(call, "id"),
                    str_of(call, "name"),
                    arguments(call.get("args")),
                )
            });
            draft.add_reply(text, calls.collect());
        }
        other => draft.count_unknown(format!("message `{other}`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_run_is_held_without_those_below_it() {
        let below = json!({"id": "b", "run_type": "llm", "trace_id": "t"});
        let run = json!({"id": "a", "run_type": "llm", "trace_id": "t", "child_runs": [below]});
        let mut traces = BTreeMap::new();
        add_run(&run, &mut traces);
        let held: Vec<Value> = traces
            .into_values()
            .flat_map(|trace| trace.models.into_values())
            .collect();
        assert_eq!(
            held,
            [
                json!({"id": "a", "run_type": "llm", "trace_id": "t"}),
                below
            ]
        );
    }
}
