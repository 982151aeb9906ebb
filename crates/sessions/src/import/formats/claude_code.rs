//! Claude Code sessions: JSON lines, one content block of a model message a line, sub-agents in between.

use std::collections::{HashMap, HashSet};

use jiff::Timestamp;
use serde_json::Value;

use super::super::content::{is_true, list_at, list_of, named, str_at, str_of, text_of, time_of};
use super::super::conversation::DropReason;
use super::super::draft::ConversationDraft;
use super::super::source::Records;
use super::anthropic::blocks_of;
use super::claude_tree::{ClaudeTree, Link};
use crate::transcript::Role;
use base::units::{Tokens, Usage};

pub(super) fn read(records: &mut Records) -> Vec<ConversationDraft> {
    let mut session = ClaudeSession {
        name: records.stem(),
        main: ConversationDraft::new(records.stem()),
        ..ClaudeSession::default()
    };
    while let Some(record) = records.next_item() {
        session.record(&record);
    }
    session.finish()
}

#[derive(Default)]
struct ClaudeSession {
    name: String,
    main: ConversationDraft,
    sides: Vec<ConversationDraft>,
    /// The sub-agent that each sidechain record or agent id belongs to.
    side_of: HashMap<String, usize>,
    side_seen: HashSet<String>,
    tree: ClaudeTree,
}

impl ClaudeSession {
    fn record(&mut self, record: &Value) {
        let uuid = str_of(record, "uuid");
        if self.tree.knows(uuid) || self.side_seen.contains(uuid) {
            return self.main.count(DropReason::Duplicate);
        }
        if is_true(record, "isSidechain") {
            return self.side_record(record);
        }
        let from = self.main.len();
        let prompt = read_record(record, &mut self.main);
        let parent = [str_of(record, "parentUuid"), str_of(record, "logicalParentUuid")];
        if self.tree.is_empty() && !uuid.is_empty() && parent.iter().any(|parent| !parent.is_empty()) {
            self.main.begins_midway = true;
        }
        let kept = list_at(record, "/compactMetadata/preservedMessages/uuids").iter().filter_map(Value::as_str);
        self.main.keep_entries(kept.flat_map(|uuid| self.tree.entries_of(uuid)));
        self.tree.add(Link {
            uuid,
            parent: parent.into_iter().find(|parent| !parent.is_empty()).unwrap_or(""),
            prompt,
            reply: str_of(record, "type") == "assistant",
            entries: from..self.main.len(),
        });
    }

    fn side_record(&mut self, record: &Value) {
        let keys = [str_of(record, "agentId"), str_of(record, "parentUuid")];
        let known = keys.into_iter().filter(|key| !key.is_empty()).find_map(|key| self.side_of.get(key).copied());
        let side = known.unwrap_or_else(|| {
            self.sides.push(ConversationDraft::new(format!("{}-agent-{}", self.name, self.sides.len() + 1)));
            self.sides.len() - 1
        });
        for key in [str_of(record, "uuid"), keys[0]] {
            if !key.is_empty() {
                self.side_of.insert(key.to_owned(), side);
                self.side_seen.insert(key.to_owned());
            }
        }
        if let Some(draft) = self.sides.get_mut(side) {
            read_record(record, draft);
        }
    }

    fn finish(mut self) -> Vec<ConversationDraft> {
        let abandoned = self.tree.abandoned();
        self.main.drop_entries(|entry| abandoned.contains(&entry), &DropReason::AbandonedBranch);
        std::iter::once(self.main).chain(self.sides).collect()
    }
}

/// Reads one record; whether it is a text that the person typed.
fn read_record(record: &Value, draft: &mut ConversationDraft) -> bool {
    let kind = str_of(record, "type");
    match kind {
        "user" => return user(record, draft),
        "assistant" => assistant(record, draft),
        "system" if str_of(record, "subtype") == "compact_boundary" => {
            draft.compaction(None);
            describe(record, "/compactMetadata", draft);
        }
        "system" if str_of(record, "subtype") == "microcompact_boundary" => {
            draft.clearing();
            describe(record, "/microcompactMetadata", draft);
            draft.bookkeeping("system microcompact_boundary");
        }
        "system" => draft.bookkeeping(format!("system {}", str_of(record, "subtype"))),
        "attachment" => attachment(record, draft),
        "progress"
        | "summary"
        | "ai-title"
        | "custom-title"
        | "agent-name"
        | "file-history-snapshot"
        | "file-history-delta"
        | "queue-operation"
        | "last-prompt"
        | "mode"
        | "permission-mode"
        | "bridge-session"
        | "pr-link"
        | "atis-latch" => draft.bookkeeping(kind),
        _ => draft.unknown(if kind.is_empty() { "without type" } else { kind }),
    }
    false
}

/// What the record of a compaction says of it.
fn describe(record: &Value, metadata: &str, draft: &mut ConversationDraft) {
    let number = |key: &str| record.pointer(&format!("{metadata}/{key}")).and_then(Value::as_u64);
    let (before, after, saved) = (number("preTokens"), number("postTokens"), number("tokensSaved"));
    if let Some(last) = draft.last_compaction() {
        last.time = named(str_of(record, "timestamp"));
        last.tokens_before = before;
        last.tokens_after = after.or_else(|| before?.checked_sub(saved?));
    }
}

/// The tokens of the request that a message answers. `input_tokens` are those that were neither read from the cache nor
/// written to it.
fn usage_of(usage: &Value) -> Usage {
    let number = |key: &str| usage.get(key).and_then(Value::as_u64).map(Tokens);
    let (read, written) = (number("cache_read_input_tokens"), number("cache_creation_input_tokens"));
    let kept_long = usage.pointer("/cache_creation/ephemeral_1h_input_tokens").and_then(Value::as_u64);
    Usage {
        input: number("input_tokens").map(|plain| plain + read.unwrap_or_default() + written.unwrap_or_default()),
        cached_input: read,
        cache_write: written,
        cache_write_hour: kept_long.map(Tokens),
        output: number("output_tokens"),
        reasoning: None,
    }
}

/// Counts the requests of the message `id`. Where the API itself called a tool in between, they are listed one by one, and
/// the usage is their sum; what an advisor was asked is another conversation.
fn count(usage: &Value, id: &str, time: Option<Timestamp>, draft: &mut ConversationDraft) {
    let requests = list_of(usage, "iterations").iter().filter(|request| str_of(request, "type") == "message");
    let requests: Vec<&Value> = requests.collect();
    match requests.as_slice() {
        [] | [_] => draft.step_of(id, usage_of(usage), time),
        several => {
            for (number, request) in several.iter().enumerate() {
                draft.step_of(&format!("{id} {number}"), usage_of(request), time);
            }
        }
    }
}

fn assistant(record: &Value, draft: &mut ConversationDraft) {
    let message = record.get("message").unwrap_or(&Value::Null);
    let model = str_of(message, "model");
    if model == "<synthetic>" {
        return draft.count(DropReason::Injected("message of the tool itself".to_owned()));
    }
    draft.set_model(model);
    let blocks = blocks_of(message.get("content").unwrap_or(&Value::Null), draft);
    let id = [str_of(message, "id"), str_of(record, "uuid")].into_iter().find(|id| !id.is_empty());
    if let Some((usage, id)) = message.get("usage").zip(id) {
        count(usage, id, time_of(record), draft);
    }
    match id {
        Some(id) => draft.piece(id, &blocks.text, blocks.calls),
        None => draft.assistant(blocks.text, blocks.calls),
    }
}

fn user(record: &Value, draft: &mut ConversationDraft) -> bool {
    let content = record.pointer("/message/content").unwrap_or(&Value::Null);
    let flag = |key: &str| is_true(record, key);
    if flag("isCompactSummary") && draft.len() > 0 {
        let text = text_of(content, draft);
        draft.summary(&text);
        return false;
    }
    draft.begins_midway |= flag("isCompactSummary");
    let blocks = blocks_of(content, draft);
    let answers = !blocks.results.is_empty();
    for (id, text) in blocks.results {
        draft.result(&id, text);
    }
    if answers && blocks.text.is_empty() {
        return false;
    }
    let prompt = !answers && !flag("isMeta") && !blocks.text.starts_with("[Request interrupted");
    if let Some(kind) = injected(&blocks.text) {
        draft.count(DropReason::Injected(kind.to_owned()));
        return false;
    }
    draft.say(Role::User, command(&blocks.text).unwrap_or(blocks.text));
    prompt
}

/// What a text is that the tool put in, and not the person.
fn injected(text: &str) -> Option<&'static str> {
    let begins = |starts: [&str; 2]| starts.iter().any(|start| text.trim_start().starts_with(start));
    if begins(["Caveat:", "<local-command-caveat>"]) {
        return Some("caveat about local commands");
    }
    begins(["<local-command-stdout>", "<local-command-stderr>"]).then_some("output of a local command")
}

/// The command that the person typed, out of the tags that the tool wraps it in.
fn command(text: &str) -> Option<String> {
    let start = text.trim_start();
    let tag = |name: &str| {
        let rest = start.split_once(&format!("<{name}>"))?.1;
        Some(rest.split_once(&format!("</{name}>"))?.0.trim().to_owned())
    };
    let name = tag("command-name").filter(|_| start.starts_with("<command-"))?;
    Some(format!("{name} {}", tag("command-args").unwrap_or_default()).trim_end().to_owned())
}

/// Attachments whose text the model is shown; after a compaction some of them bring files and instructions back.
const ATTACHED: [&str; 8] = [
    "file", "edited_text_file", "compact_file_reference", "nested_memory", "invoked_skills", "hook_additional_context",
    "plan_mode", "diagnostics",
];

fn strings_of(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(items) => items.iter().flat_map(strings_of).collect(),
        Value::Object(object) => object.values().flat_map(strings_of).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}

/// A prompt that was typed while the model worked occurs nowhere else; other attachments are injected context.
fn attachment(record: &Value, draft: &mut ConversationDraft) {
    let attachment = record.get("attachment").unwrap_or(&Value::Null);
    let kind = str_of(attachment, "type");
    if kind != "queued_command" {
        if ATTACHED.contains(&kind) {
            strings_of(attachment).into_iter().for_each(|text| draft.attach(text));
        }
        return draft.count(DropReason::Injected(format!("attachment {kind}")));
    }
    let text = match str_at(record, "/attachment/prompt") {
        "" => text_of(&Value::Array(list_of(attachment, "prompt").to_vec()), draft),
        prompt => prompt.to_owned(),
    };
    draft.say(Role::User, text);
}
