//! Which details of the old history a session used after a compaction, and where it got them.

use std::collections::{BTreeMap, BTreeSet, HashSet};
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

/// A compaction and the window after it.
#[derive(Clone, Copy)]
pub(super) struct CompactionWindow<'c> {
    pub(super) compaction: &'c RecordedCompaction,
    pub(super) window: Window,
}

impl CompactionWindow<'_> {
    /// The messages from the compaction to the end of the window.
    pub(super) fn messages(self, actions: &SessionActions, count: usize) -> Range<usize> {
        self.compaction.message
            ..actions
                .turns
                .get(self.window.until)
                .copied()
                .unwrap_or(count)
    }

    fn is_readable(self) -> bool {
        self.compaction.kind == CompactionKind::Summary && self.compaction.summary.is_some()
    }
}

/// Counts the old references that are used in each window; `None` after a compaction without a readable summary. The
/// compactions are in the order of the log.
pub(super) fn reference_uses(
    conversation: &Conversation,
    actions: &SessionActions,
    windows: &[CompactionWindow<'_>],
    noise: &SessionNoise,
) -> Vec<Option<ReferenceUses>> {
    let messages = conversation.messages.as_slice();
    let used = windows.iter().map(|one| {
        let turns = actions
            .turns
            .get(one.window.from..one.window.until)
            .unwrap_or_default();
        one.is_readable()
            .then(|| UsedReferences::from_turns(messages, turns, noise))
    });
    let used: Vec<Option<UsedReferences>> = used.collect();
    let end = windows.last().map_or(0, |last| last.compaction.message);
    let all = used
        .iter()
        .flatten()
        .flat_map(|used| used.references.iter().cloned())
        .collect();
    let mut history = ReferenceHistory::new(messages.get(..end).unwrap_or(messages), all);
    let counted = windows.iter().zip(&used).map(|(one, used)| {
        used.as_ref()
            .map(|used| count_uses(conversation, actions, *one, used, &mut history))
    });
    counted.collect()
}

fn count_uses(
    conversation: &Conversation,
    actions: &SessionActions,
    one: CompactionWindow<'_>,
    used: &UsedReferences,
    history: &mut ReferenceHistory,
) -> ReferenceUses {
    let mut uses = ReferenceUses::default();
    if used.references.is_empty() {
        return uses;
    }
    let (messages, compaction) = (conversation.messages.as_slice(), one.compaction);
    let index = ReferenceIndex::new(&used.references);
    let mut replaced_by = index.occurrences_in(compaction.summary.as_deref().unwrap_or_default());
    replaced_by.extend(index.occurrences_in(&compaction.replacement));
    let shown = shown_in(
        messages,
        actions,
        one.messages(actions, messages.len()),
        one.window.from,
        &index,
    );
    for (place, (reference, first_use)) in used.references.iter().zip(&used.first_use).enumerate() {
        if !history.has_before(reference, compaction.message) {
            continue;
        }
        if replaced_by.contains(&place)
            || history.is_kept(reference, compaction, &conversation.forgotten)
        {
            uses.in_context += 1;
            continue;
        }
        match is_fetched_again(&shown, place, *first_use) {
            None => uses.unexplained += 1,
            Some(is_again) => uses.fetched_again += usize::from(is_again),
        }
    }
    uses
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

/// Where references occur in the history. All of them are found in one pass: a search of the whole history for each of
/// thousands of compactions would take quadratic time.
struct ReferenceHistory {
    /// The references, sorted.
    references: Vec<Reference>,
    /// The first message with each that is not the system's.
    first: Vec<Option<usize>>,
    /// The messages with each that no compaction so far has forgotten. A result counts as a part of its call.
    messages: Vec<BTreeSet<usize>>,
}

impl ReferenceHistory {
    fn new(messages: &[Message], mut references: Vec<Reference>) -> ReferenceHistory {
        references.sort_unstable();
        references.dedup();
        let messages: &[Message] = if references.is_empty() { &[] } else { messages };
        let index = ReferenceIndex::new(&references);
        let (first, occurrences) = (
            vec![None; references.len()],
            vec![BTreeSet::new(); references.len()],
        );
        let mut history = ReferenceHistory {
            references,
            first,
            messages: occurrences,
        };
        let mut call = 0;
        for (at, message) in messages.iter().enumerate() {
            if message.role != Role::Tool {
                call = at;
            }
            for place in index.occurrences_in(&readable_text(message)) {
                history.add(place, at, call, message.role);
            }
        }
        history
    }

    /// Notes that message `at`, which belongs to message `call`, has the reference at `place`.
    fn add(&mut self, place: usize, at: usize, call: usize, role: Role) {
        if let Some(first) = self.first.get_mut(place).filter(|_| role != Role::System) {
            first.get_or_insert(at);
        }
        if let Some(messages) = self.messages.get_mut(place) {
            messages.insert(call);
        }
    }

    /// Whether a reference occurs before message `at`, but for messages of the system.
    fn has_before(&self, reference: &Reference, at: usize) -> bool {
        let place = self.references.binary_search(reference).ok();
        place
            .and_then(|place| *self.first.get(place)?)
            .is_some_and(|first| first < at)
    }

    /// Whether a reference occurs in a message that a compaction kept. The compactions must come in order: what one has
    /// forgotten is not looked at again, since no later one keeps it.
    fn is_kept(
        &mut self,
        reference: &Reference,
        compaction: &RecordedCompaction,
        forgotten: &BTreeMap<usize, usize>,
    ) -> bool {
        let place = self.references.binary_search(reference).ok();
        let Some(messages) = place.and_then(|place| self.messages.get_mut(place)) else {
            return false;
        };
        for range in &compaction.kept {
            while let Some(at) = messages.range(range.clone()).next_back().copied() {
                if forgotten.get(&at).is_none_or(|by| *by > compaction.message) {
                    return true;
                }
                messages.remove(&at);
            }
        }
        false
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
    use proptest::prelude::*;

    /// Adds a message of one of four kinds that names a file; a call is followed by its result.
    fn add(kind: usize, file: usize, messages: &mut Vec<Message>) {
        let text = format!("see src/f{file}.rs");
        match kind {
            0 => messages.push(Message::text(Role::User, text)),
            1 => messages.push(Message::text(Role::System, text)),
            2 => messages.push(Message::text(Role::Assistant, text)),
            _ => {
                let id = format!("c{}", messages.len());
                let mut call = Message::text(Role::Assistant, "");
                call.tool_calls.push(ToolCall::new(
                    &id,
                    "read_file",
                    format!(r#"{{"path":"src/f{file}.rs"}}"#),
                ));
                messages.push(call);
                messages.push(Message::result(
                    &id,
                    format!("use src/f{}.rs", (file + 1) % 6),
                ));
            }
        }
    }

    /// A conversation of `steps`: each has a kind and a file. A compaction has a place, a mask of the steps that it keeps,
    /// and the file in its summary. Of what is forgotten there are the step and the compaction.
    fn conversation(
        steps: &[(usize, usize)],
        compactions: &[(usize, u16, usize)],
        forgotten: &[(usize, usize)],
    ) -> Conversation {
        let (mut messages, mut starts) = (Vec::new(), vec![0]);
        for (kind, file) in steps {
            add(*kind, *file, &mut messages);
            starts.push(messages.len());
        }
        let recorded = compactions.iter().map(|(at, mask, file)| {
            let at = at % starts.len();
            let kept = (0..at)
                .filter(|step| (*mask >> (step % 16)) & 1 == 1)
                .map(|step| starts[step]..starts[step + 1]);
            let summary = Some(format!("It is in src/f{file}.rs."));
            RecordedCompaction {
                message: starts[at],
                kept: kept.collect(),
                summary,
                ..RecordedCompaction::default()
            }
        });
        let mut recorded: Vec<RecordedCompaction> = recorded.collect();
        recorded.sort_by_key(|one| one.message);
        let forgotten = forgotten
            .iter()
            .map(|(step, by)| {
                (
                    starts[step % starts.len()],
                    recorded[by % recorded.len()].message,
                )
            })
            .collect();
        Conversation {
            messages,
            recorded,
            forgotten,
            ..Conversation::default()
        }
    }

    /// The same by definition: the whole history is searched for one compaction.
    fn searched(
        conversation: &Conversation,
        actions: &SessionActions,
        one: CompactionWindow<'_>,
        noise: &SessionNoise,
    ) -> ReferenceUses {
        let messages = conversation.messages.as_slice();
        let used = UsedReferences::from_turns(
            messages,
            &actions.turns[one.window.from..one.window.until],
            noise,
        );
        let index = ReferenceIndex::new(&used.references);
        let history = messages
            .iter()
            .take(one.compaction.message)
            .filter(|message| message.role != Role::System);
        let old: BTreeSet<usize> = history
            .flat_map(|message| index.occurrences_in(&readable_text(message)))
            .collect();
        let kept = conversation.kept_at(one.compaction).into_iter();
        let mut context: BTreeSet<usize> = kept
            .flat_map(|message| index.occurrences_in(&readable_text(message)))
            .collect();
        context.extend(index.occurrences_in(one.compaction.summary.as_deref().unwrap()));
        let shown = shown_in(
            messages,
            actions,
            one.messages(actions, messages.len()),
            one.window.from,
            &index,
        );
        let mut uses = ReferenceUses {
            in_context: old.intersection(&context).count(),
            ..ReferenceUses::default()
        };
        for place in old.difference(&context) {
            match is_fetched_again(&shown, *place, used.first_use[*place]) {
                None => uses.unexplained += 1,
                Some(is_again) => uses.fetched_again += usize::from(is_again),
            }
        }
        uses
    }

    proptest! {
        #[test]
        fn one_pass_finds_what_a_search_for_each_compaction_finds(
            steps in prop::collection::vec((0..4_usize, 0..6_usize), 1..30),
            compactions in prop::collection::vec((0..30_usize, any::<u16>(), 0..6_usize), 1..6),
            forgotten in prop::collection::vec((0..30_usize, 0..6_usize), 0..8),
        ) {
            let conversation = conversation(&steps, &compactions, &forgotten);
            let actions = SessionActions::from_messages(&conversation.messages);
            let borders: Vec<usize> = conversation.recorded.iter().map(|one| actions.turn_at(one.message)).collect();
            let windows = conversation.recorded.iter().zip(&borders).map(|(compaction, from)| {
                CompactionWindow { compaction, window: Window::new(*from, &borders, actions.turns.len()) }
            });
            let windows: Vec<CompactionWindow<'_>> = windows.collect();
            let noise = SessionNoise::from_messages(&conversation.messages);
            let found = reference_uses(&conversation, &actions, &windows, &noise);
            let expected = windows.iter().map(|one| Some(searched(&conversation, &actions, *one, &noise)));
            prop_assert_eq!(found, expected.collect::<Vec<_>>());
        }
    }
}
