//! Hermes: the gateway transcript (a message per line), the session log and export (one object), trajectories.

use std::collections::{HashMap, HashSet};

use jiff::Timestamp;
use serde_json::Value;

use super::super::blocks::{call_of, read_message};
use super::super::content::{first_at, list_of, non_empty, plain_text, str_of, text_of};
use super::super::conversation::DropReason;
use super::super::draft::{CallResult, ConversationDraft};
use super::super::source::Records;
use super::super::text_results::without_blocks;
use crate::transcript::{Role, ToolCall};

pub(super) fn read(records: &mut Records) -> Vec<ConversationDraft> {
    let mut drafts = Vec::new();
    let mut loose = Gateway::new();
    while let Some(item) = records.next_item() {
        if item.get("conversations").is_some() {
            drafts.push(read_trajectory(&item));
        } else if item.get("messages").is_some() {
            drafts.push(read_session(&item));
        } else {
            loose.read_message(&item);
        }
    }
    drafts.push(loose.finish());
    drafts
}

fn read_session(log: &Value) -> ConversationDraft {
    let mut gateway = Gateway::new();
    gateway.draft.set_model(str_of(log, "model"));
    gateway.draft.set_tools(log.get("tools"));
    let prompt = str_of(log, "system_prompt");
    let has_system = list_of(log, "messages")
        .first()
        .is_some_and(|first| str_of(first, "role") == "system");
    if !prompt.is_empty() && !has_system {
        gateway.draft.say(Role::System, prompt);
    }
    list_of(log, "messages")
        .iter()
        .for_each(|message| gateway.read_message(message));
    gateway.finish()
}

/// What makes a row the same message as another: role, content, id of the call that it answers, calls.
type Row = [String; 4];

fn row_of(message: &Value) -> Row {
    let [role, content, call] =
        ["role", "content", "tool_call_id"].map(|key| str_of(message, key).to_owned());
    let calls = message
        .get("tool_calls")
        .filter(|calls| !calls.is_null())
        .map(plain_text)
        .unwrap_or_default();
    [role, content, call, calls]
}

/// Reads the messages of the gateway.
///
/// A compaction marks all rows of its context as compacted, and inserts the new context after them: some of the first
/// messages, the summary, and the newest messages again. So after several compactions the marked rows are several
/// contexts, one after the other.
struct Gateway {
    draft: ConversationDraft,
    /// Rows that are marked, up to the row that is read now.
    marked: Vec<Value>,
    /// Those that were read, each with its entries, rising. Kept ones are inserted again in their order.
    compacted: HashMap<Row, Vec<usize>>,
    /// Rows with an earlier entry than this one are not inserted again any more: an equal row is a new message.
    next_kept: usize,
    /// The texts that were read as summaries: a message that contains one may be kept, too.
    summaries: HashSet<String>,
}

impl Gateway {
    fn new() -> Gateway {
        Gateway {
            draft: ConversationDraft::default(),
            marked: Vec::new(),
            compacted: HashMap::new(),
            next_kept: usize::MAX,
            summaries: HashSet::new(),
        }
    }

    fn finish(mut self) -> ConversationDraft {
        self.read_marked();
        self.draft
    }

    fn read_message(&mut self, message: &Value) {
        if str_of(message, "role") == "session_meta" {
            self.draft.set_model(str_of(message, "model"));
            self.draft.set_tools(message.get("tools"));
            return self.draft.count_bookkeeping("session_meta");
        }
        if flag(message, "compacted") == Some(true) {
            return self.marked.push(message.clone());
        }
        if flag(message, "active") == Some(false) {
            return self.draft.count(DropReason::AbandonedBranch);
        }
        if self.read_marked() {
            self.begin_context(message);
        }
        self.read_row(message, false);
    }

    /// Reads the rows that are marked, and returns whether there were any.
    fn read_marked(&mut self) -> bool {
        let rows = std::mem::take(&mut self.marked);
        let starts = starts_of_contexts(&rows);
        for (at, message) in rows.iter().enumerate() {
            if starts.contains(&at) {
                self.begin_context(message);
            }
            self.read_row(message, true);
        }
        !rows.is_empty()
    }

    /// Notes that a compaction inserted this row and those that follow.
    fn begin_context(&mut self, message: &Value) {
        self.note_compaction(message, "");
        self.next_kept = 0;
    }

    /// Notes a compaction. Without the rows that it replaced, the log begins with the context after it.
    fn note_compaction(&mut self, message: &Value, summary: &str) {
        self.draft.made.begins_midway |= self.compacted.is_empty();
        self.draft.note_compaction(summary);
        self.draft.describe_compaction(time_of(message), None, None);
    }

    fn read_row(&mut self, message: &Value, is_marked: bool) {
        let row = row_of(message);
        if self.is_kept(&row) {
            return;
        }
        let [role, content, _, calls] = &row;
        if let Some((summary, rest)) = summary_in(message, content) {
            return self.read_summary(message, content, &summary, rest);
        }
        if role == "assistant" && !content.is_empty() && matches!(calls.as_str(), "" | "[]") {
            // A reply that was not there before the compaction is new, and so is all that follows it.
            self.next_kept = usize::MAX;
        }
        let entry = self.draft.len();
        match content
            .strip_prefix("\u{0}json:")
            .and_then(|json| serde_json::from_str(json).ok())
        {
            Some(structured) => {
                read_message(&with_content(message, structured), "", &mut self.draft)
            }
            None => read_message(message, "", &mut self.draft),
        }
        if is_marked && self.draft.len() > entry {
            self.compacted.entry(row).or_default().push(entry);
        }
    }

    /// Reads a row with a summary. `rest` is what it says besides: a message that was kept.
    fn read_summary(&mut self, message: &Value, content: &str, summary: &str, rest: String) {
        if !self.summaries.insert(content.to_owned()) {
            return self.draft.count(DropReason::Duplicate);
        }
        self.note_compaction(message, summary);
        let message = with_content(message, rest.into());
        let row = row_of(&message);
        let [_, rest, ..] = &row;
        if !rest.is_empty() && !self.is_kept(&row) {
            read_message(&message, "", &mut self.draft);
        }
    }

    /// Whether a row is a compacted one that is inserted again; then it is counted. Rows that say nothing are all alike.
    fn is_kept(&mut self, row: &Row) -> bool {
        let [_, said @ ..] = row;
        let entries = self
            .compacted
            .get(row)
            .filter(|_| said.iter().any(|part| !part.is_empty()));
        let next = self.next_kept;
        let entry = entries.and_then(|entries| {
            entries
                .get(entries.partition_point(|entry| *entry < next))
                .copied()
        });
        let Some(entry) = entry else { return false };
        self.next_kept = entry + 1;
        self.draft.keep_entries(entry..entry + 1);
        self.draft.count(DropReason::Duplicate);
        true
    }
}

/// Where the contexts begin that compactions inserted among marked rows: at the summary, or at the first messages of the
/// context before, which stand again directly before the summary.
fn starts_of_contexts(rows: &[Value]) -> HashSet<usize> {
    /// More messages than Hermes keeps before a summary.
    const MOST_FIRST: usize = 32;
    let keys: Vec<Row> = rows.iter().map(row_of).collect();
    let (mut starts, mut summaries, mut last) = (HashSet::new(), HashSet::new(), 0);
    for (at, (message, [_, content, ..])) in rows.iter().zip(&keys).enumerate() {
        if summary_in(message, content).is_none() || !summaries.insert(content) {
            continue;
        }
        let most = MOST_FIRST.min((at - last) / 2);
        let first = (1..=most)
            .rev()
            .find(|count| keys.get(at - count..at) == keys.get(last..last + count));
        last = at - first.unwrap_or(0);
        starts.insert(last);
    }
    starts
}

/// The time of a row: seconds since 1970, or as the gateway writes it.
fn time_of(message: &Value) -> Option<String> {
    match message.get("timestamp")?.as_f64() {
        Some(seconds) => Some(Timestamp::from_second(seconds as i64).ok()?.to_string()),
        None => non_empty(str_of(message, "timestamp")),
    }
}

/// Whether a flag is set, where there is one: a word or a number of the database.
fn flag(message: &Value, key: &str) -> Option<bool> {
    let flag = message.get(key)?;
    flag.as_bool().or_else(|| Some(flag.as_i64()? != 0))
}

fn with_content(message: &Value, content: Value) -> Value {
    let mut message = message.clone();
    if let Some(object) = message.as_object_mut() {
        object.insert("content".to_owned(), content);
    }
    message
}

/// The summary that a message is or begins with, and the rest of the message.
fn summary_in(message: &Value, content: &str) -> Option<(String, String)> {
    const ENDS: [&str; 2] = ["--- END OF CONTEXT SUMMARY", "[END OF CONTEXT SUMMARY]"];
    if let Some(rest) = content.strip_prefix("[PRIOR CONTEXT") {
        let (said, summary) = rest.split_once("[END OF PRIOR CONTEXT")?;
        let said = said.split_once(']').map_or("", |(_, said)| said).trim();
        return Some((summary.to_owned(), said.to_owned()));
    }
    let marked =
        content.starts_with("[CONTEXT COMPACTION") || content.starts_with("[CONTEXT SUMMARY]:");
    if !marked && flag(message, "_compressed_summary") != Some(true) {
        return None;
    }
    let Some((summary, rest)) = ENDS.iter().find_map(|mark| content.split_once(mark)) else {
        return Some((content.to_owned(), String::new()));
    };
    // The mark may go on in its line: `— respond to the message below, not the summary above ---`.
    let closed = rest
        .split_once("---")
        .filter(|(more, _)| more.starts_with(" —") && !more.contains('\n'));
    let rest = closed
        .map_or(rest, |(_, rest)| rest)
        .trim_start_matches(['-', ']', ' '])
        .trim();
    Some((summary.to_owned(), rest.to_owned()))
}

/// A trajectory: turns of `from` and `value`, with calls, results and reasoning as tags inside the text.
fn read_trajectory(item: &Value) -> ConversationDraft {
    let mut draft = ConversationDraft::default();
    draft.set_model(str_of(item, "model"));
    draft.set_tools(item.get("tools"));
    for turn in list_of(item, "conversations") {
        let value = text_of(turn.get("value").unwrap_or(&Value::Null), &mut draft);
        match str_of(turn, "from") {
            "system" => draft.say(Role::System, value),
            "human" => draft.say(Role::User, value),
            "gpt" => read_reply(&value, &mut draft),
            "tool" => read_results(&value, &mut draft),
            other => draft.count_unknown(format!("speaker `{other}`")),
        }
    }
    draft
}

/// The assistant's text without `<think>` and `<tool_call>` blocks; the latter become calls.
fn read_reply(value: &str, draft: &mut ConversationDraft) {
    let (text, _) = without_blocks(value, "think");
    let (text, written) = without_blocks(&text, "tool_call");
    let calls = written.iter().map(|call| written_call(call, draft));
    let calls = calls.collect();
    draft.add_reply(text.trim(), calls);
}

/// All results of a turn are one text.
fn read_results(value: &str, draft: &mut ConversationDraft) {
    let (_, responses) = without_blocks(value, "tool_response");
    if responses.is_empty() {
        return draft.add_next_result(value);
    }
    for response in responses {
        let parsed: Value = serde_json::from_str(response.trim()).unwrap_or(Value::Null);
        let text = match parsed.get("content") {
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
            None => response.trim().to_owned(),
        };
        draft.add_call_result(CallResult {
            id: String::new(),
            name: first_at(&parsed, &["/name"]).to_owned(),
            text,
        });
    }
}

/// A call as JSON; one that is not, such as Qwen's `<function=NAME>`, keeps its arguments as written.
fn written_call(text: &str, draft: &mut ConversationDraft) -> ToolCall {
    if let Ok(call @ Value::Object(_)) = serde_json::from_str(text.trim()) {
        return call_of(&call, draft);
    }
    let name = text
        .split_once("<function=")
        .and_then(|(_, rest)| rest.split(['>', '\n']).next());
    let name = name.filter(|name| !name.is_empty()).unwrap_or("unknown");
    ToolCall::new(draft.new_id(), name, text.trim())
}
