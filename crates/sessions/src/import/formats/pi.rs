//! pi, Oh My Pi, OpenClaw, Factory's Droid: JSON lines, from version 2 of pi on a tree.

use std::collections::HashSet;
use std::ops::Range;

use serde_json::Value;

use super::super::blocks::read_message;
use super::super::content::{is_true, number_at, str_of};
use super::super::conversation::DropReason;
use super::super::draft::ConversationDraft;
use super::super::source::Records;
use super::tables::Row::{Compaction, Hook, Message, Noise, Says};
use super::tables::Table;
use super::tree::RecordTree;
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
    let mut draft = ConversationDraft::default();
    let mut tree = PiTree::default();
    while let Some(record) = records.next_item() {
        let from = draft.len();
        draft.made.begins_midway |=
            tree.records.len() == 0 && !str_of(&record, "parentId").is_empty();
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
    records: RecordTree,
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
        let known = self.records.find(parent);
        // A parent that is not in the file: the log begins in the middle, or a line was lost. Go on from the line before.
        let parent = if known.is_none() && !parent.is_empty() {
            self.records.len().checked_sub(1)
        } else {
            known
        };
        self.records.add(id, parent, entries);
    }

    /// The first entry that stays in the context after a compaction, if it is known. Version 1 has no ids: it counts the
    /// records from 0.
    fn first_kept(&self, compaction: &Value) -> Option<usize> {
        let kept = self
            .records
            .entries_of(str_of(compaction, "firstKeptEntryId"));
        let record = number_at(compaction, "/firstKeptEntryIndex")
            .and_then(|record| usize::try_from(record).ok());
        kept.map(|entries| entries.start)
            .or_else(|| self.starts.get(record?).copied())
    }

    fn abandoned(&self) -> HashSet<usize> {
        let live = self.records.way_to(self.records.len().checked_sub(1));
        // Without links there is no tree.
        let is_linked = |place| self.records.parent(place).is_some();
        let is_tree = live.len() > 1 || (0..self.records.len()).any(is_linked);
        self.records
            .entries(|place| is_tree && !live.contains(&place))
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
