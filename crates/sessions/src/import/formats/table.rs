//! A format as a table: which kind of record holds what, and where.

use std::collections::HashMap;

use serde_json::Value;

use super::super::blocks::{call_of, read_message, result_of};
use super::super::content::{first_at, non_empty, number_at, str_at, str_of};
use super::super::draft::ConversationDraft;
use super::super::source::Records;
use crate::transcript::Role;

/// The records of a format. Places are JSON pointers.
pub(super) struct Table {
    /// Where a record says its kind; of several places the words are joined by blanks.
    pub(super) kind: &'static [&'static str],
    /// What each kind holds. A name that ends in `*` stands for all that begin so; the first row that fits counts.
    pub(super) rows: &'static [(&'static str, Row)],
    /// Where a record names the model.
    pub(super) model: &'static [&'static str],
    /// Where a record names the sub-agent that it belongs to.
    pub(super) side: &'static [&'static str],
}

/// What a record holds.
pub(super) enum Row {
    /// A message in any dialect at this place, by this speaker if it names none.
    Message(&'static str, &'static str),
    /// A text in this role: the first one of these places that has any.
    Says(Role, &'static [&'static str]),
    /// A call at this place, unless a message has made it already.
    Call(&'static str),
    /// The result of a call at this place.
    Result(&'static str),
    /// A compaction: where its summary is, and the sizes before and after it.
    Compaction(&'static [&'static str], &'static str, &'static str),
    /// State of the program.
    Noise,
    /// What no row can say.
    Hook(fn(&Value, &mut ConversationDraft)),
}

impl Table {
    /// The conversations of a log: that of the agent, and those of its sub-agents.
    pub(super) fn read_all(&self, records: &mut Records) -> Vec<ConversationDraft> {
        let stem = records.stem();
        let mut drafts = vec![ConversationDraft::new(stem.as_str())];
        let mut sides: HashMap<String, usize> = HashMap::new();
        while let Some(record) = records.next_item() {
            let side = first_at(&record, self.side);
            let at = match side {
                "" => 0,
                side => *sides.entry(side.to_owned()).or_insert_with(|| {
                    drafts.push(ConversationDraft::new(format!(
                        "{stem}-agent-{}",
                        drafts.len()
                    )));
                    drafts.len() - 1
                }),
            };
            if let Some(draft) = drafts.get_mut(at) {
                self.read(&record, draft);
            }
        }
        drafts
    }

    /// Reads one record.
    pub(super) fn read(&self, record: &Value, draft: &mut ConversationDraft) {
        let words = self.kind.iter().map(|place| str_at(record, place));
        let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
        let kind = match words.as_slice() {
            [] => "without type".to_owned(),
            words => words.join(" "),
        };
        let row = self
            .rows
            .iter()
            .find(|(name, _)| match name.strip_suffix('*') {
                Some(start) => kind.starts_with(start),
                None => *name == kind,
            });
        let Some((_, row)) = row else {
            return draft.count_unknown(kind);
        };
        draft.set_model(first_at(record, self.model));
        row.read(&kind, record, draft);
    }
}

impl Row {
    fn read(&self, kind: &str, record: &Value, draft: &mut ConversationDraft) {
        let at = |place: &str| record.pointer(place).unwrap_or(&Value::Null);
        match self {
            Row::Message(place, speaker) => read_message(at(place), speaker, draft),
            Row::Says(Role::Assistant, places) if at("/delta") == &Value::Bool(true) => {
                draft.append_to_reply(first_at(record, places));
            }
            Row::Says(role, places) => draft.say(*role, first_at(record, places)),
            Row::Call(place) => {
                let call = call_of(at(place), draft);
                if !draft.add_call(call) {
                    draft.count_bookkeeping(kind);
                }
            }
            Row::Result(place) => {
                let result = result_of(at(place), draft);
                draft.add_call_result(result);
            }
            Row::Compaction(summary, before, after) => {
                draft.note_compaction(first_at(record, summary));
                let [before, after] = [before, after].map(|place| number_at(record, place));
                draft.describe_compaction(non_empty(str_of(record, "timestamp")), before, after);
            }
            Row::Noise => draft.count_bookkeeping(kind),
            Row::Hook(read) => read(record, draft),
        }
    }
}
