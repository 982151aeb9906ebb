//! OpenHands to 2025: lists of actions and observations, alone or as the history of an evaluation. From the end of 2025
//! on, events of the agent SDK.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use super::super::blocks::{
    Speaker, add_blocks, call_of, message_blocks, read_message as read_plain,
};
use super::super::content::{
    arguments, first_at, list_of, non_empty, number_at, placeholder, plain_text, result_text,
    str_at, str_of, text_of,
};
use super::super::draft::ConversationDraft;
use super::super::source::{Records, plain_name};
use crate::transcript::{Role, ToolCall, recorded_exit_code};
use base::words::WordList;

/// The events of one session as they are read: which entry each became, by its id, until a condensation takes it out of
/// the view.
#[derive(Default)]
pub(crate) struct EventView {
    entries: HashMap<String, Vec<usize>>,
    /// The same, where the id is a number.
    numbered: BTreeMap<u64, Vec<usize>>,
}

impl EventView {
    /// Reads one event of any age.
    pub(crate) fn read_event(&mut self, event: &Value, draft: &mut ConversationDraft) {
        let from = draft.len();
        add_event(event, draft);
        if let Some(id) = event
            .get("id")
            .filter(|_| draft.len() > from)
            .map(plain_text)
        {
            if let Ok(number) = id.parse::<u64>() {
                self.numbered.entry(number).or_default().push(from);
            }
            self.entries.entry(id).or_default().push(from);
        }
        if !first_at(event, &["/kind", "/action"]).eq_ignore_ascii_case("condensation") {
            return;
        }
        for entry in self.take_forgotten(event.get("args").unwrap_or(event)) {
            draft.forget_entry(entry);
        }
        draft.keep_entries(0..from);
        draft.describe_compaction(non_empty(str_of(event, "timestamp")), None, None);
    }

    /// Takes out the entries of the events that a condensation names, and returns them.
    fn take_forgotten(&mut self, details: &Value) -> Vec<usize> {
        let listed = list_of(details, "forgotten_event_ids").iter();
        let mut forgotten: Vec<usize> = listed
            .filter_map(|id| self.entries.remove(&plain_text(id)))
            .flatten()
            .collect();
        let bounds = ["/forgotten_events_start_id", "/forgotten_events_end_id"]
            .map(|key| number_at(details, key));
        // The log may name any numbers.
        if let [Some(first), Some(last)] = bounds
            && first <= last
        {
            let taken = self.numbered.extract_if(first..=last, |_, _| true);
            forgotten.extend(taken.flat_map(|(_, entries)| entries));
        }
        forgotten
    }
}

pub(super) fn read(records: &mut Records) -> Vec<ConversationDraft> {
    let mut drafts = Vec::new();
    let mut loose = ConversationDraft::default();
    let mut view = EventView::default();
    while let Some(item) = records.next_item() {
        if item.get("history").is_some_and(Value::is_array) {
            drafts.push(read_evaluation(&item));
        } else {
            view.read_event(&item, &mut loose);
        }
    }
    drafts.push(loose);
    drafts
}

fn read_evaluation(line: &Value) -> ConversationDraft {
    let instance = non_empty(str_of(line, "instance_id"));
    let part = instance.map(|instance| plain_name(&instance));
    let mut draft = ConversationDraft::new(part.unwrap_or_default());
    draft.set_model(str_at(line, "/metadata/llm_config/model"));
    let mut view = EventView::default();
    for item in list_of(line, "history") {
        match item {
            // The oldest outputs hold pairs of an action and its observation.
            Value::Array(pair) => pair
                .iter()
                .for_each(|event| view.read_event(event, &mut draft)),
            event => view.read_event(event, &mut draft),
        }
    }
    draft
}

/// Adds one event of any age.
fn add_event(event: &Value, draft: &mut ConversationDraft) {
    if event.get("kind").is_some() {
        read_sdk_event(event, draft);
    } else if let Some(name) = event.get("action").and_then(Value::as_str) {
        read_action(name, event, draft);
    } else if let Some(name) = event.get("observation").and_then(Value::as_str) {
        read_observation(name, event, draft);
    } else if event.get("role").is_some() {
        read_plain(event, "", draft);
    } else {
        draft.count_bookkeeping("event that is neither action nor observation");
    }
}

fn read_action(name: &str, event: &Value, draft: &mut ConversationDraft) {
    // The oldest actions have their arguments at top level.
    let args = event.get("args").unwrap_or(event);
    match name {
        "system" => {
            draft.set_tools(args.get("tools"));
            draft.say(Role::System, str_of(args, "content"));
        }
        "message" => read_message(event, args, draft),
        "condensation" => draft.note_compaction(str_of(args, "summary")),
        "recall" | "null" | "change_agent_state" | "condensation_request" => {
            draft.count_bookkeeping(format!("action {name}"));
        }
        "finish" | "reject" => add_last_words(event, args, draft),
        _ => read_call(name, event, args, draft),
    }
}

/// Adds the last words. They are not a call, since nothing answers them.
fn add_last_words(event: &Value, args: &Value, draft: &mut ConversationDraft) {
    let thought = str_at(
        event,
        "/tool_call_metadata/model_response/choices/0/message/content",
    );
    let last = first_at(args, &["/final_thought", "/thought", "/reason"]);
    let text = if thought.is_empty() || last.contains(thought) {
        last.to_owned()
    } else {
        format!("{thought}\n{last}")
    };
    draft.add_reply(text, Vec::new());
}

fn read_message(event: &Value, args: &Value, draft: &mut ConversationDraft) {
    let mut text = str_of(args, "content").to_owned();
    for url in list_of(args, "image_urls") {
        text.push('\n');
        text.push_str(&placeholder("image", "", url.as_str().unwrap_or("")));
    }
    if str_of(event, "source") == "user" {
        draft.say(Role::User, text)
    } else {
        draft.add_reply(text, Vec::new())
    }
}

/// All actions of one reply of the model are one message.
fn read_call(name: &str, event: &Value, args: &Value, draft: &mut ConversationDraft) {
    let response = event.pointer("/tool_call_metadata/model_response");
    draft.set_model(response.map_or("", |response| str_of(response, "model")));
    let asked = response.and_then(|response| response.pointer("/choices/0/message"));
    let thought = asked.map_or("", |message| str_of(message, "content"));
    let thought = if thought.is_empty() {
        str_of(args, "thought")
    } else {
        thought
    };
    let id = str_at(event, "/tool_call_metadata/tool_call_id");
    let made = asked.and_then(|message| {
        let mut calls = list_of(message, "tool_calls").iter();
        calls.find(|call| str_of(call, "id") == id && !id.is_empty())
    });
    let call = match made {
        Some(made) => call_of(made, draft),
        None => ToolCall::new(call_id(event, "id"), name, plain_arguments(args)),
    };
    let key = response.map_or("", |response| str_of(response, "id"));
    if key.is_empty() {
        return draft.add_reply(thought, vec![call]);
    }
    let text = if draft.has_begun(key) { "" } else { thought };
    draft.add_piece(key, text, vec![call]);
}

/// The arguments without the fields that the program added for itself.
fn plain_arguments(args: &Value) -> String {
    const ADDED: WordList = WordList(
        "thought is_input blocking is_static hidden confirmation_state impl_source translated_ipython_code \
        security_risk action source timestamp",
    );
    let mut args = args.clone();
    if let Some(object) = args.as_object_mut() {
        object.retain(|key, value| !ADDED.has(key) && !value.is_null());
    }
    args.to_string()
}

fn call_id(event: &Value, key: &str) -> String {
    let id = str_at(event, "/tool_call_metadata/tool_call_id");
    if !id.is_empty() {
        return id.to_owned();
    }
    event
        .get(key)
        .map_or_else(String::new, |number| format!("event_{number}"))
}

fn read_observation(name: &str, event: &Value, draft: &mut ConversationDraft) {
    if matches!(name, "recall" | "null" | "agent_state_changed" | "condense") {
        return draft.count_bookkeeping(format!("observation {name}"));
    }
    let content = first_at(event, &["/content", "/message"]);
    let code = event
        .pointer("/extras/metadata/exit_code")
        .and_then(Value::as_i64);
    let content = with_exit_code(content.to_owned(), code);
    let id = call_id(event, "cause");
    if id.is_empty() && draft.waiting() > 0 {
        draft.add_next_result(content)
    } else {
        draft.add_result(&id, content)
    }
}

/// An event of the agent SDK, from the end of 2025 on.
fn read_sdk_event(event: &Value, draft: &mut ConversationDraft) {
    match str_of(event, "kind") {
        "SystemPromptEvent" => {
            draft.set_tools(event.get("tools"));
            draft.say(Role::System, str_at(event, "/system_prompt/text"));
        }
        "MessageEvent" => read_sdk_message(event, draft),
        "ActionEvent" => read_sdk_action(event, draft),
        "ObservationEvent" => {
            let content = event
                .pointer("/observation/content")
                .or_else(|| event.pointer("/observation/output"));
            let text = text_of(content.unwrap_or(&Value::Null), draft);
            let code = ["/observation/metadata/exit_code", "/observation/exit_code"];
            let code = code
                .into_iter()
                .find_map(|path| event.pointer(path)?.as_i64());
            let text = with_exit_code(text, code);
            let is_marked = event
                .pointer("/observation/is_error")
                .and_then(Value::as_bool)
                != Some(true)
                || text.starts_with("[An error occurred");
            let text = if is_marked {
                text
            } else {
                format!("[An error occurred during execution.]\n{text}")
            };
            draft.add_result(str_of(event, "tool_call_id"), text);
        }
        "AgentErrorEvent" => {
            let error = result_text(str_of(event, "error").to_owned(), true);
            draft.add_result(str_of(event, "tool_call_id"), error);
        }
        "UserRejectObservation" => draft.add_result(
            str_of(event, "tool_call_id"),
            str_of(event, "rejection_reason"),
        ),
        "Condensation" => draft.note_compaction(str_of(event, "summary")),
        kind if NOISE.has(kind) => draft.count_bookkeeping(kind),
        kind => draft.count_unknown(kind),
    }
}

/// Kinds of events that concern only the program.
const NOISE: WordList = WordList(
    "CondensationRequest ConversationStateUpdateEvent PauseEvent InterruptEvent TokenEvent StreamingDeltaEvent \
    LLMCompletionLogEvent HookExecutionEvent",
);

/// The output of a command with its exit code, which the model is told and the log keeps apart.
fn with_exit_code(output: String, code: Option<i64>) -> String {
    match code.filter(|code| *code > 0 && recorded_exit_code(&output) != Some(*code)) {
        Some(code) => format!("{output}\n[Command finished with exit code {code}]"),
        None => output,
    }
}

fn read_sdk_message(event: &Value, draft: &mut ConversationDraft) {
    let message = event.get("llm_message").unwrap_or(&Value::Null);
    let mut blocks = message_blocks(message, draft);
    let extended = text_of(event.get("extended_content").unwrap_or(&Value::Null), draft);
    if !extended.is_empty() {
        blocks.text.push('\n');
        blocks.text.push_str(&extended);
    }
    let speaker = Speaker::of(str_of(message, "role")).unwrap_or(Speaker::User);
    add_blocks(speaker, blocks, draft);
}

/// Actions of one reply of the model are one message; only the first carries the thought.
fn read_sdk_action(event: &Value, draft: &mut ConversationDraft) {
    let thought = text_of(event.get("thought").unwrap_or(&Value::Null), draft);
    let id = str_of(event, "tool_call_id");
    let given = [
        event.pointer("/tool_call/function/arguments"),
        event.pointer("/tool_call/arguments"),
        event.get("action"),
    ];
    let call = ToolCall::new(
        id,
        str_of(event, "tool_name"),
        arguments(given.into_iter().flatten().next()),
    );
    match str_of(event, "llm_response_id") {
        "" => draft.add_reply(thought, vec![call]),
        key => draft.add_piece(key, &thought, vec![call]),
    }
}
