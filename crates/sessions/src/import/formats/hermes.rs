//! Hermes: the gateway transcript (a message per line), the session log and export (one object), trajectories.

use std::collections::HashMap;

use jiff::Timestamp;
use serde_json::Value;

use super::super::content::{list_of, non_empty, plain_text, str_of};
use super::super::conversation::DropReason;
use super::super::draft::ConversationDraft;
use super::super::source::Records;
use super::{openai, sharegpt};
use crate::transcript::Role;

pub(super) fn read(records: &mut Records) -> Vec<ConversationDraft> {
    let mut drafts = Vec::new();
    let mut loose = Gateway::new(records.stem());
    while let Some(item) = records.next_item() {
        let number = drafts.len() + 1;
        if item.get("conversations").is_some() {
            drafts.push(sharegpt::read_conversation(&item, format!("{}-{number}", records.stem())));
        } else if item.get("messages").is_some() {
            let name = if number > 1 { format!("{}-{number}", records.stem()) } else { records.stem() };
            drafts.push(read_session(&item, name));
        } else {
            loose.read_message(&item);
        }
    }
    drafts.push(loose.draft);
    drafts
}

fn read_session(log: &Value, name: String) -> ConversationDraft {
    let mut gateway = Gateway::new(name);
    gateway.draft.set_model(str_of(log, "model"));
    gateway.draft.set_tools(log.get("tools"));
    let prompt = str_of(log, "system_prompt");
    let has_system = list_of(log, "messages").first().is_some_and(|first| str_of(first, "role") == "system");
    if !prompt.is_empty() && !has_system {
        gateway.draft.say(Role::System, prompt);
    }
    list_of(log, "messages").iter().for_each(|message| gateway.read_message(message));
    gateway.draft
}

/// Reads the messages of the gateway.
struct Gateway {
    draft: ConversationDraft,
    /// Rows that a compaction replaced, each with its entries, rising. Those that were kept are inserted again after it,
    /// in their order.
    compacted: HashMap<[String; 4], Vec<usize>>,
    /// Rows with an earlier entry than this one are not inserted again any more: an equal row is a new message.
    next_kept: usize,
    /// Whether the last row was one of these.
    after_compacted: bool,
}

impl Gateway {
    fn new(name: String) -> Gateway {
        let draft = ConversationDraft::new(name);
        Gateway { draft, compacted: HashMap::new(), next_kept: 0, after_compacted: false }
    }

    /// Notes a compaction. Without the rows that it replaced, the log begins with the context after it.
    fn note_compaction(&mut self, message: &Value, summary: Option<&str>) {
        self.draft.begins_midway |= self.compacted.is_empty();
        self.draft.note_compaction(summary);
        if let Some(last) = self.draft.last_compaction() {
            last.time = time_of(message);
        }
    }

    fn read_message(&mut self, message: &Value) {
        if str_of(message, "role") == "session_meta" {
            self.draft.set_model(str_of(message, "model"));
            self.draft.set_tools(message.get("tools"));
            return self.draft.count_bookkeeping("session_meta");
        }
        let [role, content, call] = ["role", "content", "tool_call_id"].map(|key| str_of(message, key).to_owned());
        let calls = message.get("tool_calls").filter(|calls| !calls.is_null()).map(plain_text).unwrap_or_default();
        let row = [role, content, call, calls];
        let old = is_set(message, "compacted");
        if old {
            self.compacted.entry(row.clone()).or_default().push(self.draft.len());
        } else {
            if self.after_compacted {
                self.note_compaction(message, None);
                self.next_kept = 0;
            }
            if let Some(entry) = self.kept_entry(&row) {
                self.after_compacted = false;
                self.next_kept = entry + 1;
                self.draft.keep_entries(std::iter::once(entry));
                return self.draft.count(DropReason::Duplicate);
            }
        }
        self.after_compacted = old;
        let [role, content, _, calls] = &row;
        let is_reply = role == "assistant" && !content.is_empty() && matches!(calls.as_str(), "" | "[]");
        if is_reply && summary_in(message, content).is_none() {
            // A reply that was not there before the compaction is new, and so is all that follows it.
            self.next_kept = usize::MAX;
        }
        self.add_message(message, content);
    }

    /// The entry of the compacted row that is inserted again by `row`. Rows that say nothing are all alike.
    fn kept_entry(&self, row: &[String; 4]) -> Option<usize> {
        let [_, said @ ..] = row;
        let entries = self.compacted.get(row).filter(|_| said.iter().any(|part| !part.is_empty()))?;
        entries.get(entries.partition_point(|entry| *entry < self.next_kept)).copied()
    }

    fn add_message(&mut self, message: &Value, content: &str) {
        if let Some((summary, rest)) = summary_in(message, content) {
            self.note_compaction(message, Some(&summary));
            if !rest.is_empty() {
                openai::read_message(&with_content(message, rest.into()), &mut self.draft);
            }
            return;
        }
        match content.strip_prefix("\u{0}json:").and_then(|json| serde_json::from_str(json).ok()) {
            Some(structured) => openai::read_message(&with_content(message, structured), &mut self.draft),
            None => openai::read_message(message, &mut self.draft),
        }
    }
}

/// The time of a row: seconds since 1970, or as the gateway writes it.
fn time_of(message: &Value) -> Option<String> {
    match message.get("timestamp")?.as_f64() {
        Some(seconds) => Some(Timestamp::from_second(seconds as i64).ok()?.to_string()),
        None => non_empty(str_of(message, "timestamp")),
    }
}

fn is_set(message: &Value, key: &str) -> bool {
    message.get(key).is_some_and(|flag| flag.as_bool() == Some(true) || flag.as_i64() == Some(1))
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
    let marked = content.starts_with("[CONTEXT COMPACTION") || content.starts_with("[CONTEXT SUMMARY]:");
    if !marked && !is_set(message, "_compressed_summary") {
        return None;
    }
    let end = ENDS.iter().find_map(|mark| Some((content.find(mark)?, mark.len())));
    let rest = end.and_then(|(at, length)| content.get(at + length..)).unwrap_or("");
    let rest = rest.trim_start_matches(['-', ']', ' ']).trim();
    Some((content.get(..end.map_or(content.len(), |(at, _)| at)).unwrap_or(content).to_owned(), rest.to_owned()))
}
