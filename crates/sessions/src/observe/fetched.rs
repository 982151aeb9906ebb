//! Which details of the old history a session used after a compaction, and where it got them.

use std::collections::{BTreeSet, HashSet};
use std::ops::Range;

use serde::Serialize;

use super::actions::{SessionActions, results_after};
use super::difference::share;
use super::window::Window;
use crate::import::{CompactionKind, Conversation, RecordedCompaction};
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
        self.unexplained_share()
            .filter(|share| *share <= MOST_UNEXPLAINED)?;
        share(self.fetched_again, self.in_context + self.fetched_again)
    }

    /// The share of uses that nothing in the log explains.
    pub fn unexplained_share(self) -> Option<f64> {
        share(
            self.unexplained,
            self.in_context + self.fetched_again + self.unexplained,
        )
    }
}

/// Counts the old references that are used in a window; `None` after a compaction without a readable summary.
pub(super) fn reference_uses(
    conversation: &Conversation,
    actions: &SessionActions,
    compaction: &RecordedCompaction,
    window: Window,
    noise: &SessionNoise,
) -> Option<ReferenceUses> {
    let summary = compaction.summary.as_deref()?;
    if compaction.kind != CompactionKind::Summary {
        return None;
    }
    let messages = conversation.messages.as_slice();
    let turns = actions.turns.get(window.from..window.until);
    let used = UsedReferences::from_turns(messages, turns.unwrap_or_default(), noise);
    if used.references.is_empty() {
        return Some(ReferenceUses::default());
    }
    let index = ReferenceIndex::new(&used.references);
    let found_in = |message: &Message| index.occurrences_in(&readable_text(message));
    let before = messages.iter().take(compaction.message);
    let old: BTreeSet<usize> = before
        .filter(|message| message.role != Role::System)
        .flat_map(found_in)
        .collect();
    let kept = conversation.kept_at(compaction).into_iter();
    let mut context: BTreeSet<usize> = kept.flat_map(found_in).collect();
    context.extend(index.occurrences_in(summary));
    context.extend(index.occurrences_in(&compaction.replacement));
    let end = actions.turns.get(window.until).copied();
    let range = compaction.message..end.unwrap_or(messages.len());
    let shown = shown_in(messages, actions, range, window.from, &index);
    let mut uses = ReferenceUses {
        in_context: old.intersection(&context).count(),
        ..ReferenceUses::default()
    };
    for place in old.difference(&context) {
        let first_use = used.first_use.get(*place).copied().unwrap_or_default();
        match is_fetched_again(&shown, *place, first_use) {
            None => uses.unexplained += 1,
            Some(is_again) => uses.fetched_again += usize::from(is_again),
        }
    }
    Some(uses)
}

/// Whether only calls that look at the same again show a reference before it is used; `None` if nothing shows it.
fn is_fetched_again(
    shown: &[(usize, bool, BTreeSet<usize>)],
    place: usize,
    first_use: usize,
) -> Option<bool> {
    let showing = shown
        .iter()
        .filter(|(message, _, found)| *message < first_use && found.contains(&place));
    let mut showing = showing.peekable();
    showing.peek()?;
    Some(showing.all(|(_, is_again, _)| *is_again))
}

/// The references that the assistant uses in a window, and the message that first uses each.
struct UsedReferences {
    references: Vec<Reference>,
    first_use: Vec<usize>,
}

impl UsedReferences {
    /// `turns` are the messages of the assistant in the window.
    fn from_turns(messages: &[Message], turns: &[usize], noise: &SessionNoise) -> UsedReferences {
        let mut seen = HashSet::new();
        let mut used = UsedReferences {
            references: Vec::new(),
            first_use: Vec::new(),
        };
        for at in turns {
            for reference in messages.get(*at).map(used_in).unwrap_or_default() {
                if !noise.has(&reference) && seen.insert(reference.key()) {
                    used.references.push(reference);
                    used.first_use.push(*at);
                }
            }
        }
        used
    }
}

/// The texts that the assistant did not write: of each the message, whether it is the result of a call that looks at
/// the same as one before the compaction, and the references in it.
fn shown_in(
    messages: &[Message],
    actions: &SessionActions,
    range: Range<usize>,
    point: usize,
    index: &ReferenceIndex,
) -> Vec<(usize, bool, BTreeSet<usize>)> {
    let mut shown = Vec::new();
    for (at, message) in messages
        .iter()
        .enumerate()
        .take(range.end)
        .skip(range.start)
    {
        match message.role {
            Role::Assistant => {
                let results = results_after(messages, at);
                for call in &message.tool_calls {
                    let Some(result) = results.get(call.id.as_str()) else {
                        continue;
                    };
                    shown.push((
                        at,
                        actions.was_looked_at(call, point),
                        index.occurrences_in(&readable_text(result)),
                    ));
                }
            }
            Role::User | Role::System => {
                shown.push((at, false, index.occurrences_in(&message.content)))
            }
            Role::Tool => {}
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::ToolCall;

    /// A call that reads a file, and its result.
    fn reads(file: &str, result: &str) -> [Message; 2] {
        let mut call = Message::text(Role::Assistant, "");
        let arguments = format!(r#"{{"path":"{file}"}}"#);
        call.tool_calls
            .push(ToolCall::new(file, "read_file", arguments));
        [call, Message::result(file, result)]
    }

    #[test]
    fn what_is_used_later_was_kept_fetched_again_or_is_unexplained() {
        let mut messages = vec![Message::text(Role::User, "see src/kept.rs and src/lost.rs")];
        messages.extend(reads("src/old.rs", "it calls src/again.rs"));
        messages.push(Message::text(Role::User, "src/stays.rs"));
        let at = messages.len();
        messages.extend(reads("src/old.rs", "it calls src/again.rs"));
        for used in ["kept", "lost", "again", "stays", "new"] {
            messages.push(Message::text(Role::Assistant, format!("src/{used}.rs")));
        }
        let conversation = Conversation {
            recorded: vec![RecordedCompaction {
                message: at,
                summary: Some("It is in src/kept.rs and src/old.rs.".to_owned()),
                kept: std::iter::once(at - 1..at).collect(),
                ..RecordedCompaction::default()
            }],
            messages,
            ..Conversation::default()
        };
        let actions = SessionActions::from_messages(&conversation.messages);
        let compaction = conversation.recorded.first().expect("one");
        let from = actions.turn_at(at);
        let window = Window::new(from, &[from], actions.turns.len());
        let noise = SessionNoise::default();
        let uses_after = |one| reference_uses(&conversation, &actions, one, window, &noise);
        let expected = ReferenceUses {
            in_context: 3,
            fetched_again: 1,
            unexplained: 1,
        };
        assert_eq!(uses_after(compaction), Some(expected));
        let silent = RecordedCompaction {
            summary: None,
            ..compaction.clone()
        };
        assert_eq!(uses_after(&silent), None);
    }
}
