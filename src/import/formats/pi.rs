//! pi, Oh My Pi, OpenClaw: JSON lines, from version 2 on a tree.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use serde_json::Value;

use super::super::content::{arguments, list_of, str_of, text_of};
use super::super::conversation::DropReason;
use super::super::draft::ConversationDraft;
use super::super::source::Records;
use crate::transcript::{Role, ToolCall};

pub(super) fn read(records: &mut Records) -> Vec<ConversationDraft> {
    let mut draft = ConversationDraft::new(records.stem());
    let mut tree = PiTree::default();
    while let Some(items) = records.next_items() {
        for record in items {
            let from = draft.len();
            draft.begins_midway |= tree.nodes.is_empty() && !str_of(&record, "parentId").is_empty();
            entry(&record, &mut draft);
            if str_of(&record, "type") == "compaction" {
                draft.keep_entries(tree.first_kept(&record)..from);
            }
            tree.add(&record, from..draft.len());
        }
    }
    let abandoned = tree.abandoned();
    draft.drop_entries(|entry| abandoned.contains(&entry), &DropReason::AbandonedBranch);
    vec![draft]
}

/// The tree of version 2 and later: the conversation is the way from the last record to the root.
#[derive(Default)]
struct PiTree {
    index: HashMap<String, usize>,
    nodes: Vec<(Option<usize>, Range<usize>)>,
}

impl PiTree {
    fn add(&mut self, record: &Value, entries: Range<usize>) {
        let id = str_of(record, "id");
        if id.is_empty() || str_of(record, "type") == "session" {
            return;
        }
        let parent = str_of(record, "parentId");
        let known = self.index.get(parent).copied();
        // A parent that is not in the file: the log begins in the middle, or a line was lost. Go on from the line before.
        let parent = if known.is_none() && !parent.is_empty() { self.nodes.len().checked_sub(1) } else { known };
        self.index.insert(id.to_owned(), self.nodes.len());
        self.nodes.push((parent, entries));
    }

    /// The first entry that stays in the context after a compaction. Without links no entry is known to stay.
    fn first_kept(&self, compaction: &Value) -> usize {
        let node = self.index.get(str_of(compaction, "firstKeptEntryId")).and_then(|at| self.nodes.get(*at));
        node.map_or(usize::MAX, |(_, entries)| entries.start)
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
        let left = self.nodes.iter().enumerate().filter(|(index, _)| !live.contains(index));
        left.flat_map(|(_, node)| node.1.clone()).collect()
    }
}

fn entry(record: &Value, draft: &mut ConversationDraft) {
    match str_of(record, "type") {
        "message" => message(record.get("message").unwrap_or(&Value::Null), draft),
        "compaction" => {
            draft.compaction(Some(str_of(record, "summary")));
            if let Some(last) = draft.last_compaction() {
                last.time = Some(str_of(record, "timestamp").to_owned()).filter(|time| !time.is_empty());
                last.tokens_before = record.get("tokensBefore").and_then(Value::as_u64);
            }
        }
        "branch_summary" => draft.say(Role::User, str_of(record, "summary")),
        "custom_message" => {
            let text = text_of(record.get("content").unwrap_or(&Value::Null), draft);
            draft.say(Role::User, text);
        }
        "session_init" => {
            let prompt = str_of(record, "systemPrompt");
            if prompt.is_empty() {
                draft.count(DropReason::Bookkeeping("session_init".to_owned()));
            } else {
                draft.say(Role::System, prompt);
            }
        }
        "model_change" => {
            let model = ["modelId", "model"].into_iter().map(|key| str_of(record, key)).find(|m| !m.is_empty());
            draft.model = model.map(str::to_owned).or(draft.model.take());
            draft.count(DropReason::Bookkeeping("model_change".to_owned()));
        }
        kind @ ("session"
        | "custom"
        | "thinking_level_change"
        | "label"
        | "session_info"
        | "title"
        | "title_change"
        | "ttsr_injection"
        | "credential_pin") => draft.count(DropReason::Bookkeeping(kind.to_owned())),
        kind => draft.count(DropReason::Unknown(kind.to_owned())),
    }
}

fn message(message: &Value, draft: &mut ConversationDraft) {
    let content = message.get("content").unwrap_or(&Value::Null);
    match str_of(message, "role") {
        "assistant" => assistant(message, draft),
        "toolResult" => {
            let text = text_of(content, draft);
            draft.result(str_of(message, "toolCallId"), text);
        }
        "bashExecution" if message.get("excludeFromContext").and_then(Value::as_bool) == Some(true) => {
            draft.count(DropReason::Injected("command hidden from the model".to_owned()));
        }
        "bashExecution" => {
            let text = format!("Ran `{}`\n{}", str_of(message, "command"), str_of(message, "output"));
            draft.say(Role::User, text);
        }
        "compactionSummary" => draft.summary(str_of(message, "summary")),
        "branchSummary" => draft.say(Role::User, str_of(message, "summary")),
        "developer" => {
            let text = text_of(content, draft);
            draft.say(Role::System, text);
        }
        "user" | "custom" => {
            let text = text_of(content, draft);
            draft.say(Role::User, text);
        }
        other => draft.count(DropReason::Unknown(format!("role `{other}`"))),
    }
}

fn assistant(message: &Value, draft: &mut ConversationDraft) {
    let model = str_of(message, "model");
    if !model.is_empty() {
        draft.model = Some(model.to_owned());
    }
    let usage = ["input", "cacheRead", "cacheWrite"].map(|key| message.get("usage")?.get(key)?.as_u64());
    draft.context_size(usage.into_iter().flatten().sum());
    let (mut texts, mut calls) = (Vec::new(), Vec::new());
    for block in list_of(message, "content") {
        if str_of(block, "type") == "toolCall" {
            calls.push(ToolCall::new(str_of(block, "id"), str_of(block, "name"), arguments(block.get("arguments"))));
        } else {
            texts.push(text_of(block, draft));
        }
    }
    texts.retain(|text| !text.is_empty());
    draft.assistant(texts.join("\n"), calls);
}
