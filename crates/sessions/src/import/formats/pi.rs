//! pi, Oh My Pi, OpenClaw: JSON lines, from version 2 on a tree.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use jiff::Timestamp;
use serde_json::Value;

use super::super::content::{
    arguments, content_of, first_at, is_true, list_of, non_empty, number_at, result_text,
    say_content, str_of, text_of, time_of, tokens_at,
};
use super::super::conversation::DropReason;
use super::super::draft::ConversationDraft;
use super::super::source::Records;
use crate::transcript::{Role, ToolCall};
use base::units::Usage;

pub(super) fn read(records: &mut Records) -> Vec<ConversationDraft> {
    let mut draft = ConversationDraft::new(records.stem());
    let mut tree = PiTree::default();
    while let Some(record) = records.next_item() {
        let from = draft.len();
        draft.begins_midway |= tree.nodes.is_empty() && !str_of(&record, "parentId").is_empty();
        read_entry(&record, &mut draft);
        if str_of(&record, "type") == "compaction"
            && let Some(first) = tree.first_kept(&record)
        {
            draft.keep_entries(first..from);
        }
        tree.add(&record, from..draft.len());
    }
    let abandoned = tree.abandoned();
    draft.drop_entries(
        |entry| abandoned.contains(&entry),
        &DropReason::AbandonedBranch,
    );
    vec![draft]
}

/// The tree of version 2 and later: the conversation is the way from the last record to the root.
#[derive(Default)]
struct PiTree {
    index: HashMap<String, usize>,
    nodes: Vec<(Option<usize>, Range<usize>)>,
    /// The first entry of each record, the header included, or of the next one that has any.
    starts: Vec<usize>,
}

impl PiTree {
    fn add(&mut self, record: &Value, entries: Range<usize>) {
        self.starts.push(entries.start);
        let id = str_of(record, "id");
        if id.is_empty() || str_of(record, "type") == "session" {
            return;
        }
        let parent = str_of(record, "parentId");
        let known = self.index.get(parent).copied();
        // A parent that is not in the file: the log begins in the middle, or a line was lost. Go on from the line before.
        let parent = if known.is_none() && !parent.is_empty() {
            self.nodes.len().checked_sub(1)
        } else {
            known
        };
        self.index.insert(id.to_owned(), self.nodes.len());
        self.nodes.push((parent, entries));
    }

    /// The first entry that stays in the context after a compaction, if it is known. Version 1 has no ids: it counts the
    /// records from 0.
    fn first_kept(&self, compaction: &Value) -> Option<usize> {
        let node = self
            .index
            .get(str_of(compaction, "firstKeptEntryId"))
            .and_then(|at| self.nodes.get(*at));
        let record = number_at(compaction, "/firstKeptEntryIndex")
            .and_then(|record| usize::try_from(record).ok());
        node.map(|(_, entries)| entries.start)
            .or_else(|| self.starts.get(record?).copied())
    }

    fn abandoned(&self) -> HashSet<usize> {
        let mut live = HashSet::new();
        let mut next = self.nodes.len().checked_sub(1);
        while let Some(index) = next {
            live.insert(index);
            next = self.nodes.get(index).and_then(|node| node.0);
        }
        // Without links there is no tree.
        if live.len() <= 1 && self.nodes.iter().all(|node| node.0.is_none()) {
            return HashSet::new();
        }
        let left = self
            .nodes
            .iter()
            .enumerate()
            .filter(|(index, _)| !live.contains(index));
        left.flat_map(|(_, node)| node.1.clone()).collect()
    }
}

fn read_entry(record: &Value, draft: &mut ConversationDraft) {
    match str_of(record, "type") {
        "message" => read_message(
            record.get("message").unwrap_or(&Value::Null),
            time_of(record),
            draft,
        ),
        "compaction" => {
            draft.note_compaction(Some(str_of(record, "summary")));
            if let Some(last) = draft.last_compaction() {
                last.time = non_empty(str_of(record, "timestamp"));
                last.tokens_before = number_at(record, "/tokensBefore");
            }
        }
        "branch_summary" => draft.say(Role::User, str_of(record, "summary")),
        "custom_message" => say_content(Role::User, record, draft),
        "session_init" => {
            let prompt = str_of(record, "systemPrompt");
            if prompt.is_empty() {
                draft.count_bookkeeping("session_init");
            } else {
                draft.say(Role::System, prompt);
            }
        }
        "model_change" => {
            draft.set_model(first_at(record, &["/modelId", "/model"]));
            draft.count_bookkeeping("model_change");
        }
        kind @ ("session"
        | "custom"
        | "thinking_level_change"
        | "label"
        | "session_info"
        | "title"
        | "title_change"
        | "ttsr_injection"
        | "credential_pin") => draft.count_bookkeeping(kind),
        kind => draft.count_unknown(kind),
    }
}

fn read_message(message: &Value, time: Option<Timestamp>, draft: &mut ConversationDraft) {
    match str_of(message, "role") {
        "assistant" => read_assistant(message, time, draft),
        "toolResult" => {
            let text = content_of(message, draft);
            let text = result_text(text, is_true(message, "isError"));
            draft.add_result(str_of(message, "toolCallId"), text);
        }
        "bashExecution" if is_true(message, "excludeFromContext") => {
            draft.count(DropReason::Injected(
                "command hidden from the model".to_owned(),
            ));
        }
        "bashExecution" => {
            let text = format!(
                "Ran `{}`\n{}",
                str_of(message, "command"),
                str_of(message, "output")
            );
            draft.say(Role::User, text);
        }
        "compactionSummary" => draft.add_summary(str_of(message, "summary")),
        "branchSummary" => draft.say(Role::User, str_of(message, "summary")),
        "developer" => say_content(Role::System, message, draft),
        "user" | "custom" => say_content(Role::User, message, draft),
        other => draft.count_unknown(format!("role `{other}`")),
    }
}

fn read_assistant(message: &Value, time: Option<Timestamp>, draft: &mut ConversationDraft) {
    draft.set_model(str_of(message, "model"));
    if let Some(usage) = message.get("usage") {
        draft.count_request(usage_of(usage), time);
    }
    let (mut texts, mut calls) = (Vec::new(), Vec::new());
    for block in list_of(message, "content") {
        if str_of(block, "type") == "toolCall" {
            calls.push(ToolCall::new(
                str_of(block, "id"),
                str_of(block, "name"),
                arguments(block.get("arguments")),
            ));
        } else {
            texts.push(text_of(block, draft));
        }
    }
    texts.retain(|text| !text.is_empty());
    draft.add_reply(texts.join("\n"), calls);
}

/// `input` are the tokens that were neither read from the cache nor written to it.
fn usage_of(usage: &Value) -> Usage {
    let (read, written) = (
        tokens_at(usage, "/cacheRead"),
        tokens_at(usage, "/cacheWrite"),
    );
    Usage {
        input: tokens_at(usage, "/input")
            .map(|plain| plain + read.unwrap_or_default() + written.unwrap_or_default()),
        cached_input: read,
        cache_write: written,
        cache_write_hour: None,
        output: tokens_at(usage, "/output"),
        reasoning: tokens_at(usage, "/reasoning"),
    }
}
