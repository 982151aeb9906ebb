//! Which details of the old history a session used after a compaction, and where it got them.

use std::collections::{BTreeSet, HashSet};

use serde::Serialize;

use super::actions::{SessionActions, results_after};
use super::difference::share;
use super::window::Window;
use crate::import::{Conversation, RecordedCompaction};
use crate::references::{Reference, ReferenceIndex, SessionNoise, readable_text, used_in};
use crate::transcript::{Message, Role};

/// Old references that were used in a window, by where they came from.
///
/// A reference that a message of the user or another call showed is not counted: the session did not need its history
/// for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ReferenceUses {
    /// In the summary or in a message that the compaction kept.
    pub in_context: usize,
    /// Only in results of calls that looked at the same again.
    pub fetched_again: usize,
    /// Nowhere in the log.
    pub unexplained: usize,
}

/// With a larger share of unexplained uses, no share of what was fetched again is given.
const MOST_UNEXPLAINED: f64 = 0.25;

impl ReferenceUses {
    /// What was fetched again, of all that was needed; `None` where the log does not explain enough.
    pub fn fetched_again_share(self) -> Option<f64> {
        self.unexplained_share().filter(|share| *share <= MOST_UNEXPLAINED)?;
        share(self.fetched_again, self.in_context + self.fetched_again)
    }

    /// The share of uses that nothing in the log explains.
    pub fn unexplained_share(self) -> Option<f64> {
        share(self.unexplained, self.in_context + self.fetched_again + self.unexplained)
    }
}

/// Counts the old references that are used in `window`, which follows `compaction`.
pub(super) fn reference_uses(
    conversation: &Conversation,
    actions: &SessionActions,
    compaction: &RecordedCompaction,
    window: Window,
    noise: &SessionNoise,
) -> ReferenceUses {
    let (messages, at) = (conversation.messages.as_slice(), compaction.message);
    let end = actions.turns.get(window.until).copied().unwrap_or(messages.len());
    let (used, first_use) = first_uses(messages, at..end, noise);
    if used.is_empty() {
        return ReferenceUses::default();
    }
    let index = ReferenceIndex::new(&used);
    let old = standing_before(messages, at, &index, used.len());
    let in_context = occurrences_after(conversation, compaction, &index);
    let mut uses = ReferenceUses { in_context: old.intersection(&in_context).count(), ..ReferenceUses::default() };
    let shown = shown_in(messages, actions, at..end, window.from, &index);
    for place in old.difference(&in_context) {
        let first_use = first_use.get(*place).copied().unwrap_or(0);
        let mut showing =
            shown.iter().filter(|(message, _, found)| *message < first_use && found.contains(place)).peekable();
        match showing.peek() {
            None => uses.unexplained += 1,
            Some(_) => uses.fetched_again += usize::from(showing.all(|(_, is_again, _)| *is_again)),
        }
    }
    uses
}

/// The references that the assistant uses, with the message that first uses each.
fn first_uses(
    messages: &[Message],
    range: std::ops::Range<usize>,
    noise: &SessionNoise,
) -> (Vec<Reference>, Vec<usize>) {
    let mut seen = HashSet::new();
    let (mut references, mut first_use) = (Vec::new(), Vec::new());
    for (at, message) in messages.iter().enumerate().take(range.end).skip(range.start) {
        if message.role != Role::Assistant {
            continue;
        }
        for reference in used_in(message) {
            if !noise.has(&reference) && seen.insert(reference.key()) {
                references.push(reference);
                first_use.push(at);
            }
        }
    }
    (references, first_use)
}

/// The references that occur in the history before a message.
fn standing_before(messages: &[Message], at: usize, index: &ReferenceIndex, count: usize) -> BTreeSet<usize> {
    let mut old = BTreeSet::new();
    for message in messages.iter().take(at).rev().filter(|message| message.role != Role::System) {
        if old.len() == count {
            break;
        }
        old.extend(index.occurrences_in(&readable_text(message)));
    }
    old
}

/// The references that occur in the readable context right after a compaction.
fn occurrences_after(
    conversation: &Conversation,
    compaction: &RecordedCompaction,
    index: &ReferenceIndex,
) -> BTreeSet<usize> {
    let mut found = index.occurrences_in(compaction.summary.as_deref().unwrap_or_default());
    found.extend(index.occurrences_in(&compaction.replacement));
    for message in conversation.kept_at(compaction) {
        found.extend(index.occurrences_in(&readable_text(message)));
    }
    found
}

/// The texts that the assistant did not write: of each the message, whether it is the result of a call that looks at
/// the same as one before the compaction, and the references in it.
fn shown_in(
    messages: &[Message],
    actions: &SessionActions,
    range: std::ops::Range<usize>,
    point: usize,
    index: &ReferenceIndex,
) -> Vec<(usize, bool, BTreeSet<usize>)> {
    let mut shown = Vec::new();
    for (at, message) in messages.iter().enumerate().take(range.end).skip(range.start) {
        match message.role {
            Role::Assistant => {
                let results = results_after(messages, at);
                for call in &message.tool_calls {
                    let Some(result) = results.get(call.id.as_str()) else { continue };
                    shown.push((at, actions.was_looked_at(call, point), index.occurrences_in(&readable_text(result))));
                }
            }
            Role::User | Role::System => shown.push((at, false, index.occurrences_in(&message.content))),
            Role::Tool => {}
        }
    }
    shown
}
