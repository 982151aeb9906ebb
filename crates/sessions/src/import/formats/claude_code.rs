//! Claude Code sessions: JSON lines, one content block of a model message per line, sub-agents in between.

use std::collections::{HashMap, HashSet};

use jiff::Timestamp;
use serde_json::Value;

use super::super::blocks::{add_result, blocks_of, say_user};
use super::super::content::{
    by_program, first_at, is_true, list_at, list_of, non_empty, number_at, str_at, str_of, text_of,
    time_of, usage_of,
};
use super::super::conversation::{CompactionKind, DropReason};
use super::super::draft::ConversationDraft;
use super::super::source::Records;
use super::tree::RecordTree;
use crate::transcript::Role;
use base::text::strings_in;
use base::words::WordList;

pub(super) fn read(records: &mut Records) -> Vec<ConversationDraft> {
    let mut session = ClaudeSession::default();
    while let Some(record) = records.next_item() {
        session.record(&record);
    }
    session.finish()
}

#[derive(Default)]
struct ClaudeSession {
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
        if self.tree.records.find(uuid).is_some() || self.side_seen.contains(uuid) {
            return self.main.count(DropReason::Duplicate);
        }
        if is_true(record, "isSidechain") || !str_of(record, "parent_tool_use_id").is_empty() {
            return self.side_record(record);
        }
        let from = self.main.len();
        let is_prompt = read_record(record, &mut self.main);
        let parents = [
            str_of(record, "parentUuid"),
            str_of(record, "logicalParentUuid"),
        ];
        if self.tree.records.len() == 0
            && !uuid.is_empty()
            && parents.iter().any(|parent| !parent.is_empty())
        {
            self.main.made.begins_midway = true;
        }
        self.keep_preserved(record);
        let parent = parents
            .into_iter()
            .find(|parent| !parent.is_empty())
            .and_then(|parent| self.tree.records.find(parent));
        if uuid.is_empty() {
            return;
        }
        let place = self.tree.records.len();
        if is_prompt {
            self.tree.prompts.push(place);
        }
        if is_prompt || str_of(record, "type") == "assistant" {
            self.tree.last = Some(place);
        }
        self.tree.records.add(uuid, parent, from..self.main.len());
    }

    /// Notes the messages that a compaction left as they are: a list of records or, in older versions, the first and the
    /// last of them.
    fn keep_preserved(&mut self, record: &Value) {
        let tree = &self.tree.records;
        let listed = list_at(record, "/compactMetadata/preservedMessages/uuids");
        for kept in listed.iter().filter_map(Value::as_str) {
            self.main
                .keep_entries(tree.entries_of(kept).unwrap_or_default());
        }
        let ends = [
            "/compactMetadata/preservedSegment/headUuid",
            "/compactMetadata/preservedSegment/tailUuid",
        ];
        let ends = ends.map(|end| tree.entries_of(str_at(record, end)));
        if let ([Some(head), Some(tail)], true) = (ends, listed.is_empty()) {
            self.main.keep_entries(head.start..tail.end);
        }
    }

    fn side_record(&mut self, record: &Value) {
        let agent = first_at(record, &["/agentId", "/parent_tool_use_id"]);
        let keys = [agent, str_of(record, "parentUuid")];
        let known = keys
            .into_iter()
            .filter(|key| !key.is_empty())
            .find_map(|key| self.side_of.get(key).copied());
        let side = known.unwrap_or_else(|| {
            let part = format!("agent-{}", self.sides.len() + 1);
            self.sides.push(ConversationDraft::new(part));
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
        self.main.drop_entries(
            |entry| abandoned.contains(&entry),
            &DropReason::AbandonedBranch,
        );
        std::iter::once(self.main).chain(self.sides).collect()
    }
}

/// Reads one record, and returns whether it is a text that the person typed.
fn read_record(record: &Value, draft: &mut ConversationDraft) -> bool {
    let kind = str_of(record, "type");
    match kind {
        "user" => return read_user(record, draft),
        "assistant" => read_assistant(record, draft),
        "system" if str_of(record, "subtype") == "compact_boundary" => {
            draft.note_compaction("");
            note_metadata(record, draft);
        }
        "system" if str_of(record, "subtype") == "microcompact_boundary" => {
            draft.note_clearing();
            note_metadata(record, draft);
            draft.count_bookkeeping("system microcompact_boundary");
        }
        "system" => draft.count_bookkeeping(format!("system {}", str_of(record, "subtype"))),
        "attachment" => read_attachment(record, draft),
        _ if NOISE.has(kind) => draft.count_bookkeeping(kind),
        _ => draft.count_unknown(if kind.is_empty() {
            "without type"
        } else {
            kind
        }),
    }
    false
}

/// Kinds of records that concern only the program.
const NOISE: WordList = WordList(
    "progress summary ai-title custom-title agent-name file-history-snapshot file-history-delta queue-operation \
    last-prompt mode permission-mode bridge-session pr-link atis-latch result stream_event rate_limit_event \
    control_request control_response",
);

/// Notes what the record of a compaction says about it. A clearing counts only what it may clear, not the context.
fn note_metadata(record: &Value, draft: &mut ConversationDraft) {
    let metadata = ["compactMetadata", "compact_metadata"]
        .into_iter()
        .find_map(|key| record.get(key));
    let size = |keys: [&str; 2]| keys.iter().find_map(|key| number_at(metadata?, key));
    draft.describe_compaction(
        non_empty(str_of(record, "timestamp")),
        size(["/preTokens", "/pre_tokens"]),
        size(["/postTokens", "/post_tokens"]),
    );
}

/// Counts the requests of the message `id`. Where the API itself called a tool in between, they are listed one by one, and
/// the usage is their sum; requests to an advisor are another conversation.
fn count_requests(usage: &Value, id: &str, time: Option<Timestamp>, draft: &mut ConversationDraft) {
    let requests = list_of(usage, "iterations")
        .iter()
        .filter(|request| str_of(request, "type") == "message");
    let requests: Vec<&Value> = requests.collect();
    match requests.as_slice() {
        [] | [_] => draft.count_request_of(id, usage_of(usage), time),
        several => {
            // The first has the key of the message: an earlier record may have counted it without the others.
            for (number, request) in several.iter().enumerate() {
                let key = if number == 0 {
                    id.to_owned()
                } else {
                    format!("{id} {number}")
                };
                draft.count_request_of(&key, usage_of(request), time);
            }
        }
    }
}

fn read_assistant(record: &Value, draft: &mut ConversationDraft) {
    let message = record.get("message").unwrap_or(&Value::Null);
    let model = str_of(message, "model");
    if model == "<synthetic>" {
        return draft.count(DropReason::Injected(
            "message of the tool itself".to_owned(),
        ));
    }
    draft.set_model(model);
    let blocks = blocks_of(message.get("content").unwrap_or(&Value::Null), draft);
    let id = [str_of(message, "id"), str_of(record, "uuid")]
        .into_iter()
        .find(|id| !id.is_empty());
    match (message.get("usage"), id) {
        (Some(usage), Some(id)) => count_requests(usage, id, time_of(record), draft),
        (None, Some(id)) => draft.note_uncounted(id),
        (_, None) => {}
    }
    match id {
        Some(id) => draft.add_piece(id, &blocks.text, blocks.calls),
        None => draft.add_reply(blocks.text, blocks.calls),
    }
}

/// How the summary begins that takes the place of the history.
const SUMMARY_HEAD: &str = "This session is being continued from a previous conversation";

/// The text of a content that is one.
fn str_of_text(content: &Value) -> &str {
    first_at(content, &["", "/0/text"])
}

fn read_user(record: &Value, draft: &mut ConversationDraft) -> bool {
    let content = record.pointer("/message/content").unwrap_or(&Value::Null);
    let is_summary = is_true(record, "isCompactSummary")
        || is_true(record, "isSynthetic") && str_of_text(content).starts_with(SUMMARY_HEAD);
    if is_summary && draft.len() > 0 {
        let text = text_of(content, draft);
        // Older versions write the summary without a boundary before it.
        let here = draft.len();
        let is_noted = draft.last_compaction().is_some_and(|last| {
            last.kind == CompactionKind::Summary && last.summary.is_none() && last.message == here
        });
        if !is_noted {
            draft.note_compaction("");
        }
        draft.add_summary(&text);
        return false;
    }
    draft.made.begins_midway |= is_summary;
    let blocks = blocks_of(content, draft);
    let answers = !blocks.results.is_empty();
    for result in blocks.results {
        add_result(result, draft);
    }
    if answers && blocks.text.is_empty() {
        return false;
    }
    let is_meta = is_true(record, "isMeta");
    let prompt = !answers && !is_meta && !blocks.text.starts_with("[Request interrupted");
    if let Some(kind) = kind_of_injected(&blocks.text) {
        draft.count(DropReason::Injected(kind.to_owned()));
        return false;
    }
    if is_local_command(&blocks.text) {
        draft.count(DropReason::Injected("local command".to_owned()));
        // It has no entry, but it is a step of the person: a session may go on below it after going back.
        return prompt;
    }
    let text = typed_command(&blocks.text).unwrap_or(blocks.text);
    let text = if is_meta { by_program(&text) } else { text };
    say_user(&text, draft);
    prompt
}

/// The kind of a text that the tool inserted; `None` for a text of the person.
fn kind_of_injected(text: &str) -> Option<&'static str> {
    const STARTS: [(&str, &str); 4] = [
        ("Caveat: The messages below", "caveat about local commands"),
        ("<local-command-caveat>", "caveat about local commands"),
        ("<local-command-stdout>", "output of a local command"),
        ("<local-command-stderr>", "output of a local command"),
    ];
    let found = STARTS
        .iter()
        .find(|(start, _)| text.trim_start().starts_with(start));
    found.map(|(_, kind)| *kind)
}

/// Whether the text is a command that the tool itself carried out, such as `/effort`: its record begins with the name. One
/// that stands for a prompt begins with `<command-message>`, and the model answers it.
fn is_local_command(text: &str) -> bool {
    text.trim_start().starts_with("<command-name>")
}

/// The command that the person typed, out of the tags that the tool wraps it in.
fn typed_command(text: &str) -> Option<String> {
    let start = text.trim_start();
    let name = inside_tag(start, "command-name").filter(|_| start.starts_with("<command-"))?;
    Some(
        format!(
            "{name} {}",
            inside_tag(start, "command-args").unwrap_or_default()
        )
        .trim_end()
        .to_owned(),
    )
}

fn inside_tag<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    Some(rest.split_once(&format!("</{name}>"))?.0.trim())
}

/// Attachments whose text the model is shown; after a compaction some of them bring files and instructions back.
const ATTACHED: WordList = WordList(
    "file edited_text_file compact_file_reference nested_memory invoked_skills hook_additional_context plan_mode \
    diagnostics",
);

/// A prompt that was typed while the model worked occurs nowhere else; other attachments are injected context.
fn read_attachment(record: &Value, draft: &mut ConversationDraft) {
    let attachment = record.get("attachment").unwrap_or(&Value::Null);
    let kind = str_of(attachment, "type");
    if kind != "queued_command" {
        if ATTACHED.has(kind) {
            strings_in(attachment)
                .into_iter()
                .for_each(|text| draft.attach(text));
        }
        return draft.count(DropReason::Injected(format!("attachment {kind}")));
    }
    let text = match str_at(record, "/attachment/prompt") {
        "" => text_of(&Value::Array(list_of(attachment, "prompt").to_vec()), draft),
        prompt => prompt.to_owned(),
    };
    draft.say(Role::User, text);
}

/// The records of the main conversation, linked by `parentUuid`.
#[derive(Debug, Default)]
struct ClaudeTree {
    records: RecordTree,
    /// The places of the texts that the person typed.
    prompts: Vec<usize>,
    /// The place of the last such text or reply.
    last: Option<usize>,
}

impl ClaudeTree {
    /// The entries on branches that a later prompt replaced: a record with several prompts below it continues with the
    /// one that leads to the last record. Branches made by parallel tool calls are not abandoned.
    fn abandoned(&self) -> HashSet<usize> {
        let live = self.records.way_to(self.last);
        let mut prompts: HashMap<usize, Vec<usize>> = HashMap::new();
        for prompt in &self.prompts {
            if let Some(parent) = self.records.parent(*prompt) {
                prompts.entry(parent).or_default().push(*prompt);
            }
        }
        let forks = prompts
            .into_values()
            .filter(|children| children.iter().any(|child| live.contains(child)));
        // An unanswered prompt was taken back before it counted; an answered one is history, but not of the
        // conversation that continued.
        let mut below: HashSet<usize> = forks
            .flatten()
            .filter(|child| !live.contains(child))
            .collect();
        for place in 0..self.records.len() {
            if self
                .records
                .parent(place)
                .is_some_and(|parent| below.contains(&parent))
            {
                below.insert(place);
            }
        }
        self.records.entries(|place| below.contains(&place))
    }
}
