//! A conversation in the making: readers append to it, and at the end calls are paired with results.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::conversation::{
    CompactionKind, Conversation, DropReason, ModelStep, RecordedCompaction, RepairKind,
};
use super::pairing::{Pairing, is_void};
use super::placeholder::is_placeholder;
use super::scrub::joined_ranges;
use super::written_call::written_call;
use crate::transcript::{CLEARED_RESULT, Message, Role, ToolCall};
use base::units::Usage;

/// The result of a call.
pub(super) struct CallResult {
    /// The id of the call; empty where the log has none.
    pub(super) id: String,
    /// The name of the tool; empty where the log does not repeat it.
    pub(super) name: String,
    pub(super) text: String,
}

/// A conversation that a reader builds. Indices are those of entries, not of the final messages.
#[derive(Debug, Default)]
pub(super) struct ConversationDraft {
    /// What is made. Its messages are entries until the end, and its places are theirs.
    pub(super) made: Conversation,
    pub(super) model: Option<Arc<str>>,
    /// The step of each message, by its key, where a format counts tokens by message.
    step_keys: HashMap<String, usize>,
    /// The messages that the model wrote and that have no count of tokens so far.
    uncounted: HashSet<String>,
    /// The entry of each message that is read in pieces, by its key.
    keys: HashMap<String, usize>,
    /// The calls of these messages: the entry and the id of each.
    pieced: HashSet<(usize, String)>,
    /// Keys of messages that have said nothing so far.
    silent: HashSet<String>,
    /// Calls of the last reply that have no result so far, by id and name of the tool, in order.
    open: Vec<(String, String)>,
    /// The ids of all calls so far.
    called: HashSet<String>,
    /// Those that were answered: such an id that comes again is that of another call.
    answered: HashSet<String>,
    /// The system texts so far, without what differs from turn to turn.
    prompts: HashSet<u64>,
    /// How many ids were made for calls.
    ids: usize,
    /// How many entries at the start were copied from another session.
    copied: usize,
}

impl ConversationDraft {
    /// A conversation beside others of its file; `part` tells it from them.
    pub(super) fn new(part: impl Into<String>) -> ConversationDraft {
        let mut draft = ConversationDraft::default();
        draft.made.name_hint = part.into();
        draft
    }

    /// How many entries there are so far.
    pub(super) fn len(&self) -> usize {
        self.made.messages.len()
    }

    /// Drops the entries that `abandoned` selects, and counts them.
    pub(super) fn drop_entries(&mut self, abandoned: impl Fn(usize) -> bool, why: &DropReason) {
        for (index, entry) in self.made.messages.iter_mut().enumerate() {
            if abandoned(index) && !is_void(entry) {
                *entry = Message::text(Role::User, "");
                *self.made.dropped.entry(why.clone()).or_default() += 1;
            }
        }
    }

    /// Drops the newest turns of the person, who took them back.
    pub(super) fn drop_turns(&mut self, turns: u64) {
        let prompts = self.made.messages.iter().enumerate().rev();
        let prompts = prompts.filter(|(_, entry)| begins_turn(entry));
        let dropped = prompts.take(usize::try_from(turns).unwrap_or(usize::MAX));
        if let Some((start, _)) = dropped.last() {
            self.drop_from(start);
        }
    }

    /// Drops the entries from this one on, which the person took back, with the compactions among them.
    pub(super) fn drop_from(&mut self, start: usize) {
        self.drop_entries(|entry| entry >= start, &DropReason::AbandonedBranch);
        self.made.recorded.retain(|one| one.message <= start);
    }

    pub(super) fn count(&mut self, why: DropReason) {
        *self.made.dropped.entry(why).or_default() += 1;
    }

    /// Counts a record that concerns only the program that wrote the log.
    pub(super) fn count_bookkeeping(&mut self, kind: impl Into<String>) {
        self.count(DropReason::Bookkeeping(kind.into()));
    }

    /// Counts a record of a kind that is not known.
    pub(super) fn count_unknown(&mut self, kind: impl Into<String>) {
        self.count(DropReason::Unknown(kind.into()));
    }

    /// Notes the model that a record names, if it names one.
    pub(super) fn set_model(&mut self, model: &str) {
        if !model.is_empty() && self.model.as_deref() != Some(model) {
            self.model = Some(model.into());
        }
    }

    /// Notes the tools that a record declares, if it declares any: a list, or the JSON of one.
    pub(super) fn set_tools(&mut self, declared: Option<&Value>) {
        let tools = match declared {
            Some(Value::Array(tools)) => tools.clone(),
            Some(Value::String(json)) => serde_json::from_str(json).unwrap_or_default(),
            _ => Vec::new(),
        };
        let tools: Vec<Value> = tools.iter().filter_map(tool_schema).collect();
        if !tools.is_empty() {
            self.made.tools = tools;
        }
    }

    /// Counts the tokens of a request to the model that spoke last. The first after a compaction tells the size of its
    /// result. A request without input was never answered.
    pub(super) fn count_request(&mut self, usage: Usage, time: Option<Timestamp>) {
        let Some(input) = usage.input.filter(|input| input.0 > 0) else {
            return;
        };
        if let Some(last) = self.made.recorded.last_mut()
            && last.tokens_after.is_none()
        {
            let before = last.step.checked_sub(1);
            let before = before.and_then(|at| self.made.steps.get(at)?.usage.input);
            last.tokens_before = last.tokens_before.or(before.map(|before| before.0));
            // A request that is no smaller was sent before the compaction took effect.
            last.tokens_after =
                Some(input.0).filter(|now| last.tokens_before.is_none_or(|before| *now < before));
        }
        self.made.steps.push(ModelStep {
            model: self.model.clone(),
            time,
            usage,
        });
    }

    /// Notes that the newest request asked for the summary of a compaction here: only the next one comes after it.
    pub(super) fn note_request_of_compaction(&mut self) {
        let here = self.made.messages.len();
        if let Some(last) = self.made.recorded.last_mut()
            && last.message == here
        {
            (last.step, last.tokens_after) = (self.made.steps.len(), None);
        }
    }

    /// Counts the tokens of a request where a log counts them with each piece of the message `key`: the last count is used.
    pub(super) fn count_request_of(&mut self, key: &str, usage: Usage, time: Option<Timestamp>) {
        if let Some(step) = self
            .step_keys
            .get(key)
            .and_then(|at| self.made.steps.get_mut(*at))
        {
            step.usage = usage;
            return;
        }
        let at = self.made.steps.len();
        self.count_request(usage, time);
        if self.made.steps.len() > at {
            self.step_keys.insert(key.to_owned(), at);
            self.uncounted.remove(key);
        }
    }

    /// Notes that the log counts no tokens with this piece of the message `key`.
    pub(super) fn note_uncounted(&mut self, key: &str) {
        if !self.step_keys.contains_key(key) {
            self.uncounted.insert(key.to_owned());
        }
    }

    /// Adds a message of plain text; an empty one is only counted.
    pub(super) fn say(&mut self, role: Role, text: impl Into<String>) {
        let text = text.into();
        if text.trim().is_empty() {
            return self.count(DropReason::Empty);
        }
        if role == Role::System && !self.prompts.insert(fingerprint_of_prompt(&text)) {
            return self.count(DropReason::Injected("system text again".to_owned()));
        }
        self.made.messages.push(Message::text(role, text));
    }

    /// Adds a message of the assistant; one without text and calls is only counted.
    pub(super) fn add_reply(&mut self, text: impl Into<String>, calls: Vec<ToolCall>) {
        let mut message = Message::text(Role::Assistant, text);
        if message.content.trim().is_empty() && calls.is_empty() {
            return self.count(DropReason::Empty);
        }
        calls.iter().for_each(|call| self.note_call(&call.id));
        self.open = calls.iter().map(id_and_tool).collect();
        message.tool_calls = calls;
        self.made.messages.push(message);
    }

    fn note_call(&mut self, id: &str) {
        self.called.insert(id.to_owned());
        self.answered.remove(id);
    }

    /// Adds a call to the reply before it, or as a reply of its own; false if the call is known already.
    pub(super) fn add_call(&mut self, call: ToolCall) -> bool {
        if self.called.contains(&call.id) && !self.answered.contains(&call.id) {
            return false;
        }
        self.begin_call(call);
        true
    }

    /// Adds a call that begins here, whatever its id.
    pub(super) fn begin_call(&mut self, call: ToolCall) {
        match self.last_reply() {
            Some(reply) => {
                reply.tool_calls.push(call.clone());
                self.note_call(&call.id);
                self.open.push(id_and_tool(&call));
            }
            None => self.add_reply("", vec![call]),
        }
    }

    /// Adds a piece of text to the reply before it, or as a reply of its own.
    pub(super) fn append_to_reply(&mut self, text: &str) {
        match self.last_reply() {
            Some(reply) if reply.tool_calls.is_empty() => reply.content.push_str(text),
            _ => self.add_reply(text, Vec::new()),
        }
    }

    /// The reply that nothing follows so far.
    fn last_reply(&mut self) -> Option<&mut Message> {
        let here = self.made.messages.len();
        let is_cut = self
            .made
            .recorded
            .last()
            .is_some_and(|last| last.message == here);
        let last = self.made.messages.last_mut().filter(|_| !is_cut);
        last.filter(|last| last.role == Role::Assistant)
    }

    /// Whether a call has this id.
    pub(super) fn has_called(&self, id: &str) -> bool {
        self.called.contains(id)
    }

    /// Whether a call of the tool `name` waits for its result, or is written in the text of the last reply.
    pub(super) fn expects_result_of(&mut self, name: &str) -> bool {
        self.first_open_of(name).is_some()
            || self.last_reply().is_some_and(|reply| {
                reply.tool_calls.is_empty()
                    && written_call(&reply.content, name, String::new()).is_some()
            })
    }

    /// Makes a call of the one that the last reply has written as text, unless one of this name waits.
    pub(super) fn make_written_call(&mut self, name: &str) {
        if self.first_open_of(name).is_some() {
            return;
        }
        let id = self.new_id();
        let Some(reply) = self.last_reply() else {
            return;
        };
        if let Some((text, call)) = written_call(&reply.content, name, id) {
            reply.content = text;
            self.add_call(call);
        }
    }

    /// Adds a piece of the assistant message called `key`, which may have begun earlier.
    pub(super) fn add_piece(&mut self, key: &str, text: &str, mut calls: Vec<ToolCall>) {
        let begun = self.keys.get(key).copied();
        let at = begun.unwrap_or(self.made.messages.len());
        calls.retain(|call| !self.pieced.contains(&(at, call.id.clone())));
        self.pieced
            .extend(calls.iter().map(|call| (at, call.id.clone())));
        if begun.is_none() {
            if text.trim().is_empty() && calls.is_empty() {
                self.silent.insert(key.to_owned());
                return;
            }
            self.silent.remove(key);
            self.keys.insert(key.to_owned(), at);
            return self.add_reply(text, calls);
        }
        let Some(message) = self.made.messages.get_mut(at) else {
            return;
        };
        if !text.is_empty() {
            if !message.content.is_empty() {
                message.content.push('\n');
            }
            message.content.push_str(text);
        }
        let ids: Vec<String> = calls.iter().map(|call| call.id.clone()).collect();
        message.tool_calls.extend(calls);
        ids.iter().for_each(|id| self.note_call(id));
    }

    /// Whether the message called `key` has said something.
    pub(super) fn has_begun(&self, key: &str) -> bool {
        self.keys.contains_key(key)
    }

    /// Adds the result of the call `id`.
    pub(super) fn add_result(&mut self, id: &str, text: impl Into<String>) {
        self.open.retain(|(open, _)| open != id);
        self.answered.insert(id.to_owned());
        let mut text = text.into();
        if is_placeholder(&text) {
            *self
                .made
                .repairs
                .entry(RepairKind::ClearedResult)
                .or_default() += 1;
            CLEARED_RESULT.clone_into(&mut text);
        }
        self.made.messages.push(Message::result(id, text));
    }

    /// Adds a result to the call that it names; else to the oldest call of its tool that waits, or the oldest at all.
    pub(super) fn add_call_result(&mut self, result: CallResult) {
        let CallResult { id, name, text } = result;
        if self.called.contains(&id) || !id.is_empty() && self.waiting() == 0 {
            return self.add_result(&id, text);
        }
        match self.first_open_of(&name) {
            Some(id) => self.add_result(&id, text),
            None => self.add_next_result(text),
        }
    }

    /// Adds the result of the oldest call of the last assistant message that has none, in formats without ids.
    pub(super) fn add_next_result(&mut self, text: impl Into<String>) {
        let oldest = self.open.first().map(|(id, _)| id.clone());
        self.add_result(&oldest.unwrap_or_default(), text);
    }

    /// The oldest call of a tool that waits for a result.
    fn first_open_of(&self, tool: &str) -> Option<String> {
        let found = self.open.iter().find(|(_, name)| name == tool);
        found.map(|(id, _)| id.clone())
    }

    /// Calls of the last assistant message that wait for a result.
    pub(super) fn waiting(&self) -> usize {
        self.open.len()
    }

    /// A new id for a call in a format without ids.
    pub(super) fn new_id(&mut self) -> String {
        self.ids += 1;
        format!("call_{}", self.ids)
    }

    /// Adds a text that the model was shown although it is not a message, where it is right after a compaction: then it is
    /// part of the new context.
    pub(super) fn attach(&mut self, text: &str) {
        let here = self.made.messages.len();
        if let Some(last) = self.last_compaction()
            && last.message == here
        {
            last.replacement.push('\n');
            last.replacement.push_str(text);
        }
    }

    /// Notes that the agent compacted its history here. The summary that replaces it is not part of the history.
    pub(super) fn note_compaction(&mut self, summary: &str) {
        self.record(CompactionKind::Summary);
        if !summary.is_empty() {
            self.add_summary(summary);
        }
    }

    /// Notes when the newest compaction was made, and the sizes before and after it.
    pub(super) fn describe_compaction(
        &mut self,
        time: Option<String>,
        before: Option<u64>,
        after: Option<u64>,
    ) {
        if let Some(last) = self.last_compaction() {
            (last.time, last.tokens_before, last.tokens_after) = (time, before, after);
        }
    }

    /// Notes that old tool results were cleared here.
    pub(super) fn note_clearing(&mut self) {
        self.record(CompactionKind::Clearing);
    }

    /// Records a compaction once, even if the log has several records of it at one place.
    fn record(&mut self, kind: CompactionKind) {
        let message = self.made.messages.len();
        if self
            .made
            .recorded
            .last()
            .is_none_or(|last| (last.message, last.kind) != (message, kind))
        {
            let step = self.made.steps.len();
            self.made.recorded.push(RecordedCompaction {
                message,
                step,
                kind,
                ..RecordedCompaction::default()
            });
        }
    }

    /// The newest compaction, for what the log says of it later.
    pub(super) fn last_compaction(&mut self) -> Option<&mut RecordedCompaction> {
        self.made.recorded.last_mut()
    }

    /// Notes entries that stay in the context after the newest compaction, unless they were forgotten; results go with
    /// their calls.
    pub(super) fn keep_entries(&mut self, entries: Range<usize>) {
        if let Some(last) = self.last_compaction()
            && !entries.is_empty()
        {
            last.kept.push(entries);
        }
    }

    /// Notes that the newest compaction took an entry out, and so did the later ones.
    pub(super) fn forget_entry(&mut self, entry: usize) {
        let is_result = self
            .made
            .messages
            .get(entry)
            .is_none_or(|message| message.role == Role::Tool);
        if let Some(last) = self.made.recorded.last().filter(|_| !is_result) {
            self.made.forgotten.entry(entry).or_insert(last.message);
        }
    }

    /// Marks all entries so far as copied from the history of another session, which counts its own tokens.
    pub(super) fn mark_copied(&mut self) {
        self.copied = self.made.messages.len();
        self.made.steps.clear();
        self.step_keys.clear();
        self.made.recorded.iter_mut().for_each(|one| one.step = 0);
    }

    pub(super) fn add_summary(&mut self, summary: &str) {
        self.count(DropReason::CompactSummary);
        if let Some(last) = self.last_compaction()
            && last.summary.is_none()
        {
            last.summary = Some(summary.to_owned()).filter(|summary| !summary.trim().is_empty());
        }
    }

    /// Pairs calls and results by id, and returns the conversation.
    pub(super) fn finish(mut self) -> Conversation {
        for _ in 0..self.silent.len() {
            self.count(DropReason::Empty);
        }
        let mut conversation = self.made;
        conversation.uncounted = self.uncounted.len();
        conversation.model = self.model.map(|model| model.to_string());
        let entries = std::mem::take(&mut conversation.messages);
        let starts = Pairing::new(entries).run(&mut conversation);
        let place = |entry: usize| {
            let end = conversation.messages.len();
            starts.get(entry).copied().unwrap_or(end)
        };
        // Before the first message that is not the system's there is nothing to compact.
        let first = conversation
            .messages
            .iter()
            .position(|message| message.role != Role::System);
        let first = first.unwrap_or(usize::MAX);
        let forgotten = conversation.forgotten.iter();
        let forgotten = forgotten
            .map(|(entry, by)| (place(*entry), place(*by)))
            .collect();
        let copied = if self.copied == 0 {
            0
        } else {
            place(self.copied)
        };
        let recorded = conversation.recorded.iter().map(|one| {
            let kept = one
                .kept
                .iter()
                .map(|entries| place(entries.start)..place(entries.end));
            RecordedCompaction {
                message: place(one.message),
                kept: joined_ranges(kept.filter(|range| !range.is_empty()).collect(), 0),
                ..one.clone()
            }
        });
        let recorded = recorded.filter(|one| one.message > first).collect();
        if copied > 0 {
            conversation.repairs.insert(RepairKind::Copied, copied);
        }
        Conversation {
            forgotten,
            recorded,
            ..conversation
        }
    }
}

/// Whether an entry is a prompt of the person, and not what Codex adds in the person's name.
fn begins_turn(entry: &Message) -> bool {
    let is_added = ["<user_shell_command>", "<skill>"]
        .iter()
        .any(|tag| entry.content.starts_with(tag));
    entry.role == Role::User && !is_void(entry) && !is_added
}

fn id_and_tool(call: &ToolCall) -> (String, String) {
    (call.id.clone(), call.function.name.clone())
}

/// The declaration of a function in OpenAI's shape, whoever wrote it; `None` for a tool that the vendor runs itself.
fn tool_schema(tool: &Value) -> Option<Value> {
    let function = tool.get("function").unwrap_or(tool);
    let name = function.get("name")?.as_str()?;
    let description = function
        .get("description")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let given = ["parameters", "input_schema", "inputSchema"]
        .into_iter()
        .find_map(|key| function.get(key));
    let parameters = given
        .filter(|given| given.is_object())
        .cloned()
        .unwrap_or_else(|| json!({ "type": "object" }));
    let function = json!({ "name": name, "description": description, "parameters": parameters });
    Some(json!({ "type": "function", "function": function }))
}

/// What tells a system prompt from another: its words without numbers, as a prompt that is sent again has another date.
/// Of a long one, the beginning.
fn fingerprint_of_prompt(text: &str) -> u64 {
    const COMPARED: usize = 2000;
    let mut hasher = DefaultHasher::new();
    let words = text.chars().filter(|c| c.is_alphabetic()).take(COMPARED);
    words.for_each(|c| c.hash(&mut hasher));
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn call(id: &str) -> ToolCall {
        ToolCall::new(id, "run", "{}")
    }

    fn shape(conversation: &Conversation) -> Vec<String> {
        let one = |m: &Message| match &m.tool_call_id {
            Some(id) => format!("{id}={}", m.content),
            None => format!("{}:{}", m.role.name(), m.content),
        };
        conversation.messages.iter().map(one).collect()
    }

    #[test]
    fn declared_tools_have_one_shape_and_of_several_lists_the_last_counts() {
        let mut draft = ConversationDraft::default();
        draft.set_tools(Some(&json!([{"name": "old", "input_schema": {}}])));
        let schema = json!({"type": "object", "properties": {}});
        draft.set_tools(Some(
            &json!([{"name": "read", "input_schema": schema}, {"type": "web_search"}]),
        ));
        draft.set_tools(None);
        let function = json!({"name": "read", "description": "", "parameters": schema});
        let expected = vec![json!({"type": "function", "function": function})];
        assert_eq!(draft.finish().tools, expected);
        let mut listed = ConversationDraft::default();
        listed.set_tools(Some(&Value::from(
            Value::from(expected.clone()).to_string(),
        )));
        assert_eq!(
            listed.finish().tools,
            expected,
            "a list may be written as a text"
        );
    }

    #[test]
    fn results_move_right_after_their_calls() {
        let mut draft = ConversationDraft::default();
        draft.add_reply("a", vec![call("1"), call("2")]);
        draft.add_result("2", "two");
        draft.say(Role::User, "hm");
        draft.note_compaction("");
        draft.add_result("1", "one");
        let done = draft.finish();
        assert_eq!(shape(&done), ["assistant:a", "1=one", "2=two", "user:hm"]);
        assert_eq!(done.compactions(), [4]);
        assert_eq!(done.repairs, BTreeMap::new());
    }

    #[test]
    fn calls_and_results_without_a_partner_are_repaired_and_counted() {
        let mut draft = ConversationDraft::default();
        draft.add_result("0", "from before");
        draft.add_reply("a", vec![call("1")]);
        draft.add_reply("b", vec![call("1")]);
        draft.add_result("1", "late");
        let done = draft.finish();
        assert_eq!(
            shape(&done),
            [
                "assistant:a",
                "1=[no result recorded]",
                "assistant:b",
                "1_2=late"
            ]
        );
        let once = [
            RepairKind::OrphanResult,
            RepairKind::NoResult,
            RepairKind::RepeatedId,
        ]
        .map(|kind| (kind, 1));
        assert_eq!(done.repairs, BTreeMap::from(once));
    }

    #[test]
    fn a_result_without_an_id_answers_the_oldest_call_that_waits() {
        let mut draft = ConversationDraft::default();
        draft.add_reply("a", vec![call("1"), call("2"), call("3")]);
        draft.add_result("1", "one");
        draft.add_next_result("two");
        assert_eq!(draft.waiting(), 1);
        draft.add_next_result("three");
        assert_eq!(draft.waiting(), 0);
        assert_eq!(
            shape(&draft.finish()),
            ["assistant:a", "1=one", "2=two", "3=three"]
        );
    }

    #[test]
    fn pieces_of_one_message_are_merged_at_the_first() {
        let mut draft = ConversationDraft::default();
        draft.add_piece("m", "look", vec![call("1")]);
        draft.add_result("1", "one");
        draft.add_piece("m", "", vec![call("2"), call("1")]);
        draft.add_result("2", "two");
        assert_eq!(shape(&draft.finish()), ["assistant:look", "1=one", "2=two"]);
    }
}
