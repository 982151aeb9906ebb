//! Needed later: the references from before a point that the recorded session used after it, and how many of them a
//! context still has.
//!
//! 1. The references that the assistant uses anywhere are looked for in every message, once for a session.
//! 2. A reference is *needed* at a point if it occurs before the point and the assistant uses it in the window after the
//!    point. Between point and use, either nothing showed it (*carried*), or the only calls that showed it repeated a read
//!    from before the point (*fetched again*); what such a call reads is needed, too. Without the second case, a compaction
//!    after which everything is read again would look perfect.
//! 3. A needed reference counts only if a message before the point says something about it in words (`prose.rs`). A context
//!    keeps it only if it says something about it, too: a bare list has them all, and nobody can work from it.
//! 4. The recall of a context is the mean, over the messages that first use needed references, of the share of these that
//!    it has. It is not one share of all references, because a single message often uses a third of them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::{Deserialize, Serialize};

use super::prose::{ProseEntries, ReferenceWords, SessionProse};
use super::refetch::{refetch, tokens_of};
use base::units::Tokens;
use lexical::facts::{Fact, FactFinder, History};
use sessions::references::{
    PATTERNS, Reference, ReferenceIndex, ReferenceKind, SessionNoise, Target, readable_text,
    targets, used_in,
};
use sessions::transcript::{Fixture, Message, Role};

/// Turns of the assistant after a point in which a use counts.
const WINDOW: usize = 20;
/// With fewer messages that use needed references, there is no recall.
const FEWEST_MESSAGES: usize = 3;
/// A point with fewer tokens before it has no verdict: short sessions need no compression.
const SHORTEST: Tokens = Tokens(20_000);

/// How the session had a needed reference at hand when it used it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NeedState {
    /// Nothing showed it after the point.
    Carried,
    /// Only calls that repeated an earlier one showed it.
    FetchedAgain,
}

/// Where a reference last occurred before the point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReferenceSource {
    User,
    Assistant,
    ToolResult,
    Attachment,
}

/// Why the recall of a point decides nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecallCaveat {
    /// Under 20,000 tokens are before the point.
    Short,
    /// The session after the point was written from a context that its product had compacted.
    AfterCompaction,
    /// Tool results were cut before references were recorded.
    Cut,
    /// Under three messages use something from before it, so that it has no recall.
    FewMessages,
    /// Nothing after the point uses anything from before it, or nothing follows it.
    NothingNeeded,
}

#[derive(Clone, Debug)]
pub struct NeededReference {
    pub reference: Reference,
    pub state: NeedState,
    pub source: ReferenceSource,
    /// The message that first uses it.
    pub message: usize,
    /// Turns of the assistant from the point to its first use, from 1.
    pub distance: u32,
    /// Points between its last occurrence and this point, this one included.
    pub age: u32,
    /// The smallest message before the point that has it.
    holder: Option<usize>,
    /// What the messages before the point say of it.
    words: ReferenceWords,
    finder: FactFinder,
}

/// What a session needs after one of its points.
#[derive(Clone, Debug, Default)]
pub struct NeededAtPoint {
    pub references: Vec<NeededReference>,
    /// Needed references that no message says anything about in words; they are left out.
    pub without_words: u32,
    pub caveat: Option<RecallCaveat>,
}

/// What a context has of the needed references.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NeededRecall {
    pub count: u32,
    /// Messages that first use one.
    pub messages: u32,
    /// Needed references that no message says anything about in words, and that do not count.
    pub without_words: u32,
    /// The mean over these messages of the share of references that the context has with a word about it; null under
    /// three messages.
    pub recall: Option<f64>,
    /// Needed references that nothing showed again.
    pub carried: u32,
    /// Needed references that were fetched again.
    pub fetched_again: u32,
    /// The share of those carried that the context has.
    pub recall_carried: Option<f64>,
    /// The share of those fetched again that it has.
    pub recall_fetched_again: Option<f64>,
    /// Tokens of fetching the lost ones again.
    pub refetch_tokens: u64,
    /// Why the recall decides nothing.
    pub caveat: Option<RecallCaveat>,
}

/// A session with the references that its assistant uses, and the messages in which each occurs.
#[derive(Clone, Debug)]
pub struct SessionReferences {
    references: Vec<Reference>,
    /// By message: the references that it uses, where the assistant speaks.
    uses: Vec<Vec<usize>>,
    /// By message: the references that it shows.
    shows: Vec<BTreeSet<usize>>,
    /// By message: those that an attachment in front of it shows.
    attached: Vec<BTreeSet<usize>>,
    /// By message: what the call looks at whose result it is.
    targets: Vec<Vec<Target>>,
    roles: Vec<Role>,
    start: usize,
    compactions: Vec<usize>,
    is_cut: bool,
    prose: SessionProse,
}

impl SessionReferences {
    pub fn from_fixture(fixture: &Fixture) -> SessionReferences {
        let messages = &fixture.messages;
        let noise = noise_of(fixture);
        let mut places: HashMap<String, usize> = HashMap::new();
        let mut references: Vec<Reference> = Vec::new();
        let uses = messages.iter().map(|message| {
            let used = if message.role == Role::Assistant {
                used_in(message)
            } else {
                Vec::new()
            };
            let used = used.into_iter().filter(|reference| !noise.has(reference));
            used.map(|reference| {
                *places.entry(reference.key()).or_insert_with(|| {
                    references.push(reference);
                    references.len() - 1
                })
            })
            .collect()
        });
        let uses: Vec<Vec<usize>> = uses.collect();
        let index = ReferenceIndex::new(&references);
        let texts: Vec<String> = messages.iter().map(readable_text).collect();
        let shows = messages.iter().zip(&texts).map(|(message, text)| {
            let mut shown = index.occurrences_in(text);
            shown.extend(recorded_in(&index, &message.cut_references));
            shown
        });
        let shows = shows.collect();
        let attached = messages
            .iter()
            .map(|message| recorded_in(&index, &message.attached_references));
        SessionReferences {
            uses,
            shows,
            attached: attached.collect(),
            references,
            targets: targets_of_results(messages),
            roles: messages.iter().map(|message| message.role).collect(),
            start: fixture.start(),
            compactions: fixture.compactions.clone(),
            prose: SessionProse::new(&texts, &noise),
            is_cut: fixture.reference_patterns != Some(PATTERNS) && fixture.has_cut_outputs(),
        }
    }

    /// The references that are needed after the last of `points`, exclusive indices of messages in rising order.
    /// `tokens` are those of all messages.
    pub fn needed(&self, points: &[usize], tokens: &[Tokens], history: &History) -> NeededAtPoint {
        let Some(&point) = points.last() else {
            return NeededAtPoint::default();
        };
        let window = self.window(point);
        let before = (self.start..point)
            .flat_map(|at| self.shown_at(at))
            .collect::<BTreeSet<usize>>();
        let mut scan = WindowScan {
            session: self,
            before,
            shown: BTreeMap::new(),
            seen: BTreeSet::new(),
        };
        let read: Vec<&Target> = (self.start..point)
            .filter_map(|at| self.targets.get(at))
            .flatten()
            .collect();
        let mut needed = NeededAtPoint {
            caveat: self.caveat(point, tokens),
            ..NeededAtPoint::default()
        };
        let mut turn = 0;
        for at in window {
            scan.show(self.attached.get(at), ShownBy::Otherwise);
            match self.roles.get(at) {
                Some(Role::Assistant) => {
                    turn += 1;
                    let fetches = self.fetches_after(at, &read);
                    for (place, state) in scan.use_all(at, &fetches) {
                        let used = FirstUse {
                            message: at,
                            turn,
                            place,
                            state,
                        };
                        needed
                            .references
                            .extend(self.needed_reference(&used, points, tokens, history));
                    }
                }
                Some(Role::Tool) => {
                    let targets = self.targets.get(at).map(Vec::as_slice).unwrap_or_default();
                    let is_repeated = targets
                        .iter()
                        .any(|target| read.iter().any(|before| before.overlaps(target)));
                    scan.show(
                        self.shows.get(at),
                        if is_repeated {
                            ShownBy::RepeatedCall
                        } else {
                            ShownBy::Otherwise
                        },
                    );
                }
                Some(Role::User | Role::System) | None => {
                    scan.show(self.shows.get(at), ShownBy::Otherwise)
                }
            }
        }
        let count = needed.references.len();
        needed
            .references
            .retain(|reference| !reference.words.is_empty());
        needed.without_words = (count - needed.references.len()) as u32;
        needed
    }

    /// The messages after a point up to the end of the window: a number of turns, the next compaction, or the end.
    fn window(&self, point: usize) -> std::ops::Range<usize> {
        let next = self
            .compactions
            .iter()
            .copied()
            .find(|at| *at > point)
            .unwrap_or(self.roles.len());
        let mut turns = (point..next).filter(|at| self.roles.get(*at) == Some(&Role::Assistant));
        let end = turns.nth(WINDOW).unwrap_or(next);
        point..end.max(point)
    }

    fn shown_at(&self, at: usize) -> impl Iterator<Item = usize> {
        self.shows
            .get(at)
            .into_iter()
            .chain(self.attached.get(at))
            .flatten()
            .copied()
    }

    fn caveat(&self, point: usize, tokens: &[Tokens]) -> Option<RecallCaveat> {
        if self.compactions.iter().any(|at| *at <= point) {
            Some(RecallCaveat::AfterCompaction)
        } else if self.is_cut {
            Some(RecallCaveat::Cut)
        } else {
            (tokens_of(tokens, self.start..point) < SHORTEST).then_some(RecallCaveat::Short)
        }
    }

    /// The references that are targets of calls in message `at` that read again what was read before.
    fn fetches_after(&self, at: usize, read: &[&Target]) -> BTreeSet<usize> {
        let results = (at + 1..self.roles.len())
            .take_while(|next| self.roles.get(*next) == Some(&Role::Tool));
        let targets = results
            .filter_map(|result| self.targets.get(result))
            .flatten();
        let repeated = targets.filter(|target| read.iter().any(|before| before.overlaps(target)));
        let names: Vec<String> = repeated
            .filter_map(|target| match target {
                Target::File { path, .. } => Some(path.trim_start_matches("./").to_lowercase()),
                Target::Search(_) | Target::Command(_) => None,
            })
            .collect();
        let used = self.uses.get(at).into_iter().flatten().copied();
        used.filter(|place| {
            self.references
                .get(*place)
                .is_some_and(|reference| names.contains(&reference.key()))
        })
        .collect()
    }

    fn needed_reference(
        &self,
        used: &FirstUse,
        points: &[usize],
        tokens: &[Tokens],
        history: &History,
    ) -> Option<NeededReference> {
        let FirstUse {
            place,
            message,
            turn,
            state,
        } = *used;
        let point = *points.last()?;
        let holders: Vec<usize> = (self.start..point)
            .filter(|at| is_among(place, self.shows.get(*at)))
            .collect();
        let last_attached = (self.start..point)
            .rev()
            .find(|at| is_among(place, self.attached.get(*at)));
        let last = holders.last().copied().max(last_attached)?;
        let source = match self.roles.get(last) {
            _ if holders.last() != Some(&last) => ReferenceSource::Attachment,
            Some(Role::Assistant) => ReferenceSource::Assistant,
            Some(Role::Tool) => ReferenceSource::ToolResult,
            Some(Role::User) => ReferenceSource::User,
            Some(Role::System) | None => ReferenceSource::Attachment,
        };
        let holder = holders
            .iter()
            .copied()
            .min_by_key(|at| tokens.get(*at).copied());
        let age = points.iter().filter(|at| **at > last).count() as u32;
        let reference = self.references.get(place)?.clone();
        let fact = Fact {
            spellings: vec![reference.text.clone()],
        };
        let finder = FactFinder::within(&fact, history.paths());
        let words = self.prose.about(&finder, holders.into_iter());
        Some(NeededReference {
            reference,
            state,
            source,
            message,
            distance: turn,
            age,
            holder,
            words,
            finder,
        })
    }
}

/// The first use of a needed reference.
struct FirstUse {
    place: usize,
    state: NeedState,
    /// The message of the assistant.
    message: usize,
    /// Its turn after the point, from 1.
    turn: u32,
}

/// How a reference came into the session after a point.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ShownBy {
    RepeatedCall,
    Otherwise,
}

/// The state of the scan of a window.
struct WindowScan<'s> {
    session: &'s SessionReferences,
    /// References that occur before the point.
    before: BTreeSet<usize>,
    /// How each was shown after it. A repeated call counts only if nothing else showed it.
    shown: BTreeMap<usize, ShownBy>,
    /// References that the assistant has used after it.
    seen: BTreeSet<usize>,
}

impl WindowScan<'_> {
    fn show(&mut self, references: Option<&BTreeSet<usize>>, how: ShownBy) {
        for place in references.into_iter().flatten() {
            let known = self.shown.entry(*place).or_insert(how);
            if how == ShownBy::Otherwise {
                *known = how;
            }
        }
    }

    /// The references that message `at` is the first to use and that are needed. Those in `fetches`, what its calls read
    /// again, are needed however they were shown.
    fn use_all(&mut self, at: usize, fetches: &BTreeSet<usize>) -> Vec<(usize, NeedState)> {
        let mut needed = Vec::new();
        for place in self.session.uses.get(at).into_iter().flatten() {
            if !self.seen.insert(*place) || !self.before.contains(place) {
                continue;
            }
            match self.shown.get(place) {
                None => needed.push((*place, NeedState::Carried)),
                Some(ShownBy::RepeatedCall) => needed.push((*place, NeedState::FetchedAgain)),
                Some(ShownBy::Otherwise) if fetches.contains(place) => {
                    needed.push((*place, NeedState::FetchedAgain))
                }
                Some(ShownBy::Otherwise) => {}
            }
        }
        needed
    }
}

impl NeededAtPoint {
    /// For each needed reference, whether `context` has it and says something about it.
    pub fn presence(&self, context: &ProseEntries) -> Vec<bool> {
        self.references
            .iter()
            .map(|needed| needed.words.are_near(&needed.finder, context))
            .collect()
    }

    /// The figures of a context with the needed references that `present` names; `None` where nothing is needed.
    pub fn recall(&self, present: &[bool], tokens: &[Tokens]) -> Option<NeededRecall> {
        if self.references.is_empty() {
            return None;
        }
        let carried = self.presence_in_state(NeedState::Carried, present);
        let fetched_again = self.presence_in_state(NeedState::FetchedAgain, present);
        let lost = self
            .references
            .iter()
            .zip(present)
            .filter(|(_, is_present)| !**is_present);
        let lost = lost.map(|(needed, _)| needed.holder);
        Some(NeededRecall {
            count: self.references.len() as u32,
            without_words: self.without_words,
            messages: self.by_message(present).len() as u32,
            recall: self.mean_recall(present),
            carried: carried.len() as u32,
            fetched_again: fetched_again.len() as u32,
            recall_carried: super::share(carried),
            recall_fetched_again: super::share(fetched_again),
            // An agent that works on knows where to look: the reference itself occurs in its next message.
            refetch_tokens: refetch(lost, tokens, Tokens(0), |_| true).tokens.0,
            caveat: self.caveat,
        })
    }

    /// Whether a context has each of the needed references in `state`.
    fn presence_in_state(&self, state: NeedState, present: &[bool]) -> Vec<bool> {
        let needed = self
            .references
            .iter()
            .zip(present)
            .filter(|(needed, _)| needed.state == state);
        needed.map(|(_, is_present)| *is_present).collect()
    }

    /// The recall alone; `None` under three messages.
    pub fn mean_recall(&self, present: &[bool]) -> Option<f64> {
        let shares: Vec<f64> = self
            .by_message(present)
            .into_values()
            .filter_map(super::share)
            .collect();
        (shares.len() >= FEWEST_MESSAGES).then(|| shares.iter().sum::<f64>() / shares.len() as f64)
    }

    fn by_message(&self, present: &[bool]) -> BTreeMap<usize, Vec<bool>> {
        let mut messages: BTreeMap<usize, Vec<bool>> = BTreeMap::new();
        for (needed, is_present) in self.references.iter().zip(present) {
            messages
                .entry(needed.message)
                .or_default()
                .push(*is_present);
        }
        messages
    }
}

/// The texts that are not references in this session, with what is recorded of a system prompt that was replaced.
fn noise_of(fixture: &Fixture) -> SessionNoise {
    let mut noise = SessionNoise::from_messages(&fixture.messages);
    let system = fixture
        .messages
        .first()
        .filter(|message| message.role == Role::System);
    let recorded = system
        .map(|system| system.cut_references.as_slice())
        .unwrap_or_default();
    let recorded = recorded.iter().map(|text| Reference {
        kind: ReferenceKind::Identifier,
        text: text.clone(),
    });
    noise.add(&recorded.collect::<Vec<_>>());
    noise
}

/// By message: what the call looks at whose result it is.
fn targets_of_results(messages: &[Message]) -> Vec<Vec<Target>> {
    let calls: HashMap<&str, _> = messages
        .iter()
        .flat_map(|message| &message.tool_calls)
        .map(|call| (call.id.as_str(), call))
        .collect();
    let found = messages.iter().map(|message| {
        let call = message.tool_call_id.as_deref().and_then(|id| calls.get(id));
        call.map(|call| targets(call)).unwrap_or_default()
    });
    found.collect()
}

/// The recorded texts that are references of this session; others were used by messages that are gone.
fn recorded_in(session: &ReferenceIndex, texts: &[String]) -> BTreeSet<usize> {
    session.occurrences_in(&texts.join("\n"))
}

fn is_among(place: usize, shown: Option<&BTreeSet<usize>>) -> bool {
    shown.is_some_and(|shown| shown.contains(&place))
}
