//! pi, Oh My Pi, OpenClaw, Factory's Droid: JSON lines, from version 2 of pi on a tree.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use serde_json::Value;

use super::super::blocks::read_message;
use super::super::content::{is_true, number_at, str_of};
use super::super::conversation::DropReason;
use super::super::draft::ConversationDraft;
use super::super::source::Records;
use super::tables::Row::{Compaction, Hook, Message, Noise, Says};
use super::tables::Table;
use crate::transcript::Role;

/// The records of pi's family.
const PI: Table = Table {
    kind: &["/type"],
    model: &["/modelId", "/model", "/message/model"],
    usage: &["/message/usage"],
    side: &[],
    rows: &[
        ("message", Hook(message)),
        ("compaction", Compaction(&["/summary"], "/tokensBefore", "")),
        ("compaction_state", Compaction(&["/summaryText"], "", "")),
        ("branch_summary", Says(Role::User, &["/summary"])),
        ("custom_message", Message("", "user")),
        ("session_init", Says(Role::System, &["/systemPrompt"])),
        ("session*", Noise),
        ("model_change", Noise),
        ("custom", Noise),
        ("thinking_level_change", Noise),
        ("label", Noise),
        ("title*", Noise),
        ("todo_state", Noise),
        ("ttsr_injection", Noise),
        ("credential_pin", Noise),
    ],
};

pub(super) fn read(records: &mut Records) -> Vec<ConversationDraft> {
    let mut draft = ConversationDraft::new(records.stem());
    let mut tree = PiTree::default();
    while let Some(record) = records.next_item() {
        let from = draft.len();
        draft.made.begins_midway |=
            tree.nodes.is_empty() && !str_of(&record, "parentId").is_empty();
        PI.read(&record, &mut draft);
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

fn message(record: &Value, draft: &mut ConversationDraft) {
    let message = record.get("message").unwrap_or(&Value::Null);
    match str_of(message, "role") {
        "bashExecution" if is_true(message, "excludeFromContext") => {
            draft.count(DropReason::Injected(
                "command hidden from the model".to_owned(),
            ));
        }
        "bashExecution" => {
            let (command, output) = (str_of(message, "command"), str_of(message, "output"));
            draft.say(Role::User, format!("Ran `{command}`\n{output}"));
        }
        "compactionSummary" => draft.add_summary(str_of(message, "summary")),
        "branchSummary" => draft.say(Role::User, str_of(message, "summary")),
        _ => read_message(message, "", draft),
    }
}
