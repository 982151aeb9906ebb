//! Pairs calls with their results over a whole conversation.

use std::collections::{HashMap, HashSet, VecDeque};

use serde_json::Value;

use super::conversation::{Conversation, RepairKind};
use crate::transcript::{Message, NO_RESULT, Role};

/// The entries of a whole conversation, on the way to messages.
pub(super) struct Pairing {
    entries: Vec<Option<Message>>,
    /// Where each id is called and answered: indices of entries, rising. Those that were passed are dropped.
    called: HashMap<String, VecDeque<usize>>,
    answered: HashMap<String, VecDeque<usize>>,
    seen: HashSet<String>,
    /// The last number that each repeated id got.
    numbers: HashMap<String, usize>,
}

impl Pairing {
    pub(super) fn new(entries: Vec<Message>) -> Pairing {
        let mut called: HashMap<String, VecDeque<usize>> = HashMap::new();
        let mut answered: HashMap<String, VecDeque<usize>> = HashMap::new();
        for (index, entry) in entries.iter().enumerate() {
            for call in &entry.tool_calls {
                called.entry(call.id.clone()).or_default().push_back(index);
            }
            if let Some(id) = &entry.tool_call_id {
                answered.entry(id.clone()).or_default().push_back(index);
            }
        }
        let entries = entries.into_iter().map(Some).collect();
        Pairing {
            entries,
            called,
            answered,
            seen: HashSet::new(),
            numbers: HashMap::new(),
        }
    }

    /// Emits all entries in order, and returns the index of the message at which each entry begins.
    pub(super) fn run(mut self, into: &mut Conversation) -> Vec<usize> {
        let mut starts = Vec::with_capacity(self.entries.len());
        for index in 0..self.entries.len() {
            starts.push(into.messages.len());
            let Some(message) = self.entries.get_mut(index).and_then(Option::take) else {
                continue;
            };
            if is_void(&message) {
                continue;
            }
            if message.role == Role::Tool {
                count_repair(into, RepairKind::OrphanResult);
            } else {
                self.emit(index, message, into);
            }
        }
        starts
    }

    fn emit(&mut self, index: usize, mut message: Message, into: &mut Conversation) {
        let mut results = Vec::new();
        for call in &mut message.tool_calls {
            let result = self.take_result(index, &call.id);
            let written = std::mem::take(&mut call.id);
            call.id = self.unique(&written);
            if call.id != written {
                count_repair(into, RepairKind::RepeatedId);
            }
            if serde_json::from_str::<Value>(&call.function.arguments).is_err() {
                count_repair(into, RepairKind::BrokenArguments);
            }
            results.push((call.id.clone(), result));
        }
        into.messages.push(message);
        for (id, result) in results {
            if result.is_none() {
                count_repair(into, RepairKind::NoResult);
            }
            into.messages.push(Message::result(
                id,
                result.unwrap_or_else(|| NO_RESULT.to_owned()),
            ));
        }
    }

    /// The first result for `id` after entry `index`, before the id is called again. Entries are asked for in their
    /// order.
    fn take_result(&mut self, index: usize, id: &str) -> Option<String> {
        let called = self.called.get_mut(id)?;
        drop_passed(called, index);
        let again = called.front().copied().unwrap_or(usize::MAX);
        let answers = self.answered.get_mut(id)?;
        drop_passed(answers, index);
        let at = answers.front().copied().filter(|at| *at < again)?;
        answers.pop_front();
        self.entries
            .get_mut(at)?
            .take()
            .map(|message| message.content)
    }

    fn unique(&mut self, id: &str) -> String {
        let base = if id.is_empty() { "call" } else { id };
        let mut unique = base.to_owned();
        while !self.seen.insert(unique.clone()) {
            let number = self.numbers.entry(base.to_owned()).or_insert(1);
            *number += 1;
            unique = format!("{base}_{number}");
        }
        unique
    }
}

/// Drops the indices up to `index`.
fn drop_passed(indices: &mut VecDeque<usize>, index: usize) {
    while indices.front().is_some_and(|at| *at <= index) {
        indices.pop_front();
    }
}

fn count_repair(into: &mut Conversation, kind: RepairKind) {
    *into.repairs.entry(kind).or_default() += 1;
}

/// Whether an entry was dropped.
pub(super) fn is_void(message: &Message) -> bool {
    message.content.is_empty() && message.tool_calls.is_empty() && message.role == Role::User
}
