//! Scrubbing, in ten steps. It is deterministic and idempotent: a second pass changes nothing.
//!
//! Secrets are found by [`secrets`] (machine tokens by their shape, by [`rules`]; passwords by their position, by
//! [`passwords`]), personal data by [`personal`]. [`audit`] lists suspicious texts that stay.

mod audit;
mod edit;
mod key_names;
mod passwords;
mod personal;
mod rules;
mod secrets;
mod separators;
mod values;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;

use aho_corasick::AhoCorasick;

use super::conversation::ORPHAN_HEAD;
use crate::transcript::{Fixture, Message, Role};
use base::message::unpaired;
use base::text::{beside, each_string, first_bytes};
use edit::cut;
use personal::HandleMatcher;
use secrets::secrets;
use values::is_distinctive;

pub use audit::{Suspicion, SuspicionKind, audit};
pub(crate) use edit::joined_ranges;

/// Whether a text has a machine token, a private key, or a password by its position.
pub fn has_secret(text: &str) -> bool {
    !secrets(text).is_empty()
}

/// The text that replaces every system prompt.
pub const SYSTEM_PLACEHOLDER: &str = "You are a helpful assistant with access to tools.";

/// The steps of a scrubbing, as a fixture records them.
const PASSES: [&str; 10] = [
    "secrets replaced",
    "account names in paths replaced",
    "personal handles replaced",
    "e-mail addresses and commit authors replaced",
    "reasoning blocks removed",
    "mentions replaced",
    "first user message marked for paraphrase",
    "system prompt replaced",
    "empty assistant messages and orphan tool results dropped",
    "tool outputs over 2000 characters cut",
];

/// The key of a fixture that says when it was scrubbed.
pub const SCRUBBED_AT: &str = "scrubbed_at";

/// Records in the fixture that it was scrubbed, and when.
pub fn record_scrubbing(fixture: &mut Fixture, at: &str) {
    fixture
        .extra
        .insert("scrubbing_passes".to_owned(), PASSES.to_vec().into());
    fixture.extra.insert(SCRUBBED_AT.to_owned(), at.into());
}

/// The user's settings.
#[derive(Clone, Debug, Default)]
pub struct ScrubSettings {
    /// Personal handles, replaced in every case variant.
    pub handles: Vec<String>,
    /// Facts that must not be cut away from long tool outputs: the spellings of the bank's expected facts.
    pub facts: Vec<String>,
}

/// The kinds of replacement, as the audit lists them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, thiserror::Error)]
pub enum Replacement {
    /// A secret of this kind.
    #[error("secret ({0})")]
    Secret(String),
    /// The account name in a home folder.
    #[error("account name in a path")]
    HomeFolder,
    /// A personal handle.
    #[error("personal handle")]
    Handle,
    /// An e-mail address or the author of a commit.
    #[error("e-mail address or author")]
    Address,
    /// Reasoning inside the text of an answer.
    #[error("reasoning block")]
    Reasoning,
    /// A mention of a person.
    #[error("mention")]
    Mention,
    /// The prompt of the product.
    #[error("system prompt")]
    SystemPrompt,
    /// An assistant message that became empty.
    #[error("empty assistant message")]
    EmptyMessage,
    /// A tool result without its call.
    #[error("result without call")]
    OrphanResult,
    /// A tool output over 2,000 characters.
    #[error("long tool output")]
    LongOutput,
}

/// What a scrub removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScrubReport {
    /// The kinds of text that were replaced, dropped or cut, with counts.
    pub replaced: BTreeMap<Replacement, usize>,
    /// The message the person began with. Its wording is personal, so somebody has to paraphrase it.
    pub paraphrase: Option<usize>,
    /// Account names that were replaced in paths but still occur elsewhere, with counts: set them as handles if they
    /// are personal.
    pub left: BTreeMap<String, usize>,
}

impl ScrubReport {
    fn add(&mut self, kind: Replacement, count: usize) {
        if count > 0 {
            *self.replaced.entry(kind).or_default() += count;
        }
    }
}

/// Replaces secrets and personal data in one fixture, the same string by the same replacement everywhere.
#[derive(Clone, Debug, Default)]
struct Scrubber {
    /// Secrets that are replaced wherever they occur, longest first, and what each becomes.
    known: Vec<(String, String)>,
    /// Finds `known`, by their places in it; `None` before all are learned.
    finder: Option<AhoCorasick>,
    names: HashMap<String, String>,
    numbers: BTreeMap<String, usize>,
    handles: HandleMatcher,
    accounts: BTreeSet<String>,
}

/// The most rounds of replacing.
const ROUNDS: usize = 5;

/// Scrubs `fixture` in place.
pub fn scrub(fixture: &mut Fixture, settings: &ScrubSettings) -> ScrubReport {
    let mut report = ScrubReport::default();
    let mut scrubber = Scrubber::learn(fixture, settings);
    // A replacement can expose something that the next round replaces; scrubbing ends when a round changes nothing.
    for _ in 0..ROUNDS {
        let before = fingerprint(fixture);
        scrubber.pass(fixture, settings, &mut report);
        if fingerprint(fixture) == before {
            break;
        }
        scrubber = Scrubber {
            accounts: scrubber.accounts,
            ..Scrubber::learn(fixture, settings)
        };
    }
    report.paraphrase = fixture
        .messages
        .iter()
        .position(|message| message.role == Role::User);
    report.left = left_over(&scrubber.accounts, &fixture.messages);
    report
}

/// Scrubs texts from a session as a fixture of the session would be. What is a secret anywhere in the session is
/// replaced in the texts too.
pub fn scrub_texts(session: &[Message], texts: &mut [String]) {
    let mut scrubber = Scrubber::default();
    let of_session = session.iter().flat_map(Message::texts);
    of_session.for_each(|text| scrubber.learn_text(text));
    texts.iter().for_each(|text| scrubber.learn_text(text));
    scrubber.end_learning();
    let mut report = ScrubReport::default();
    for text in texts {
        for _ in 0..ROUNDS {
            let scrubbed = scrubber.scrub_text(text, &mut report);
            let scrubbed = personal::replace_mentions(&scrubbed, &mut 0).into_owned();
            if scrubbed == *text {
                break;
            }
            *text = scrubbed;
        }
    }
}

/// A hash that tells whether a round changed anything, without a second fixture in memory.
fn fingerprint(fixture: &mut Fixture) -> u64 {
    let mut hasher = DefaultHasher::new();
    fixture.messages.len().hash(&mut hasher);
    each_text(fixture, &mut |text| text.hash(&mut hasher));
    hasher.finish()
}

impl Scrubber {
    /// Finds all secrets of the fixture first, so that each is replaced everywhere.
    fn learn(fixture: &mut Fixture, settings: &ScrubSettings) -> Scrubber {
        let mut scrubber = Scrubber {
            handles: HandleMatcher::new(&settings.handles),
            ..Scrubber::default()
        };
        scrubber.numbers = used_numbers(fixture);
        each_text(fixture, &mut |text| scrubber.learn_text(text));
        scrubber.end_learning();
        scrubber
    }

    fn learn_text(&mut self, text: &str) {
        for found in secrets(text) {
            let secret = text.get(found.range).unwrap_or("").to_owned();
            let name = self.name_for(&secret, found.kind);
            if is_distinctive(&secret) {
                self.known.push((secret, name));
            }
        }
    }

    fn end_learning(&mut self) {
        self.known
            .sort_by(|a, b| b.0.len().cmp(&a.0.len()).then_with(|| a.cmp(b)));
        self.known.dedup();
        // It fails only for gigabytes of secrets.
        self.finder = AhoCorasick::new(self.known.iter().map(|(secret, _)| secret)).ok();
    }

    /// The replacement of a secret: `REDACTED_KIND_1`. It consists of characters that JSON and URLs need not escape.
    fn name_for(&mut self, secret: &str, kind: &str) -> String {
        if let Some(name) = self.names.get(secret) {
            return name.clone();
        }
        let base = format!("REDACTED_{}", kind.to_ascii_uppercase().replace('-', "_"));
        let number = self.numbers.entry(base.clone()).or_default();
        *number += 1;
        let name = format!("{base}_{number}");
        self.names.insert(secret.to_owned(), name.clone());
        name
    }

    fn pass(&mut self, fixture: &mut Fixture, settings: &ScrubSettings, report: &mut ScrubReport) {
        each_text(fixture, &mut |text| *text = self.scrub_text(text, report));
        let (mut reasoning, mut mentions) = (0, 0);
        for message in &mut fixture.messages {
            if message.role == Role::Assistant {
                message.content =
                    personal::without_reasoning(&message.content, &mut reasoning).into_owned();
            }
            message.content =
                personal::replace_mentions(&message.content, &mut mentions).into_owned();
        }
        report.add(Replacement::Reasoning, reasoning);
        report.add(Replacement::Mention, mentions);
        replace_system_prompts(fixture, report);
        drop_messages(fixture, report);
        cut_outputs(fixture, &settings.facts, report);
    }

    /// Steps 1 to 4 on one text.
    fn scrub_text(&mut self, text: &str, report: &mut ScrubReport) -> String {
        let text = self.without_secrets(&edit::joined(text), report);
        let (mut homes, mut handles, mut addresses) = (0, 0, 0);
        let text = personal::replace_homes(&text, &mut self.accounts, &mut homes);
        let text = self.handles.replace(&text, &mut handles);
        let text = personal::replace_addresses(&text, &mut addresses).into_owned();
        report.add(Replacement::HomeFolder, homes);
        report.add(Replacement::Handle, handles);
        report.add(Replacement::Address, addresses);
        text
    }

    fn without_secrets(&mut self, text: &str, report: &mut ScrubReport) -> String {
        let mut out = String::with_capacity(text.len());
        let mut last = 0;
        for found in secrets(text) {
            let secret = text.get(found.range.clone()).unwrap_or("");
            out.push_str(text.get(last..found.range.start).unwrap_or(""));
            out.push_str(&self.name_for(secret, found.kind));
            last = found.range.end;
            report.add(Replacement::Secret(found.kind.to_owned()), 1);
        }
        out.push_str(text.get(last..).unwrap_or(""));
        let mut count = 0;
        // Of the secrets at one place only the longest is found in one round.
        for _ in 0..ROUNDS {
            let known = self.known_in(&out);
            if known.is_empty() {
                break;
            }
            out = edit::replaced(&out, known, &mut count).into_owned();
        }
        report.add(Replacement::Secret("found elsewhere".to_owned()), count);
        out
    }

    /// Where known secrets are in `text`, and what each becomes: of overlapping ones the longest, of equally long ones
    /// the first in order. All are found in one pass: a log may hold tens of thousands. Of those that begin at one place
    /// only the longest is held: a thousand that begin alike would be found a thousand times at each.
    fn known_in(&self, text: &str) -> Vec<(Range<usize>, &str)> {
        let Some(finder) = &self.finder else {
            return Vec::new();
        };
        let mut longest: HashMap<usize, (usize, usize)> = HashMap::new();
        for hit in finder
            .find_overlapping_iter(text)
            .filter(|hit| is_alone(text, &hit.range()))
        {
            let found = (hit.pattern().as_usize(), hit.end());
            let known = longest.entry(hit.start()).or_insert(found);
            *known = found.min(*known);
        }
        let mut hits: Vec<(usize, Range<usize>)> = longest
            .into_iter()
            .map(|(start, (known, end))| (known, start..end))
            .collect();
        hits.sort_unstable_by_key(|(known, place)| (*known, place.start));
        // The ends of the places that are taken, by their starts.
        let mut taken: BTreeMap<usize, usize> = BTreeMap::new();
        let mut places = Vec::new();
        for (known, place) in hits {
            let is_free = taken
                .range(..place.end)
                .next_back()
                .is_none_or(|(_, end)| *end <= place.start);
            if let Some((_, name)) = self.known.get(known).filter(|_| is_free) {
                taken.insert(place.start, place.end);
                places.push((place, name.as_str()));
            }
        }
        places
    }
}

/// Whether a secret at `place` is there by itself. A short one inside a longer word is part of that word.
fn is_alone(text: &str, place: &Range<usize>) -> bool {
    let beside = beside(text, place);
    place.len() >= 16 || !beside.iter().flatten().any(char::is_ascii_alphanumeric)
}

/// Hands every text of a fixture in which a secret can occur to `edit`, the name of a tool once.
fn each_text(fixture: &mut Fixture, edit: &mut dyn FnMut(&mut String)) {
    edit(&mut fixture.description);
    // The model of a local server is often a path.
    edit(&mut fixture.model);
    let recorded = fixture.recorded.iter_mut();
    recorded.for_each(|one| edit(&mut one.summary));
    let mut names: HashMap<String, String> = HashMap::new();
    for message in &mut fixture.messages {
        edit(&mut message.content);
        for call in &mut message.tool_calls {
            edit(&mut call.function.arguments);
            let name = &mut call.function.name;
            match names.get(name) {
                Some(edited) => name.clone_from(edited),
                None => {
                    let written = name.clone();
                    edit(name);
                    names.insert(written, name.clone());
                }
            }
        }
    }
    for value in fixture.tools.iter_mut().chain([&mut fixture.notes]) {
        each_string(value, edit);
    }
}

/// The numbers that replacements of an earlier scrubbing have taken.
fn used_numbers(fixture: &mut Fixture) -> BTreeMap<String, usize> {
    /// More bytes than any name of a replacement has.
    const LONGEST_NAME: usize = 256;
    let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
    each_text(fixture, &mut |text| {
        for (at, _) in text.match_indices("REDACTED_") {
            let rest = first_bytes(text.get(at..).unwrap_or(""), LONGEST_NAME);
            let end = rest
                .find(|c: char| !(c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_'))
                .unwrap_or(rest.len());
            let word = rest.get(..end).unwrap_or("");
            // A larger number is not from an earlier scrubbing, and leaves none for the next secret.
            if let Some((base, Ok(number))) = word
                .rsplit_once('_')
                .map(|(base, number)| (base, number.parse::<u32>()))
            {
                let known = numbers.entry(base.to_owned()).or_default();
                *known = (number as usize).max(*known);
            }
        }
    });
    numbers
}

/// Step 8: replaces the leading system messages by one placeholder. A later one is context that the tool inserted; it
/// stays, scrubbed.
fn replace_system_prompts(fixture: &mut Fixture, report: &mut ScrubReport) {
    let leading = fixture
        .messages
        .iter()
        .take_while(|message| message.role == Role::System)
        .count();
    let Some(first) = fixture
        .messages
        .first_mut()
        .filter(|first| first.role == Role::System)
    else {
        return;
    };
    let changed = first.content != SYSTEM_PLACEHOLDER;
    first.content = SYSTEM_PLACEHOLDER.to_owned();
    report.add(
        Replacement::SystemPrompt,
        usize::from(changed) + leading - 1,
    );
    retain(fixture, |index, _| index == 0 || index >= leading);
}

/// Step 9: drops empty assistant messages, and results without their call.
fn drop_messages(fixture: &mut Fixture, report: &mut ScrubReport) {
    let unpaired = unpaired(&fixture.messages).into_iter();
    let orphans = unpaired.filter(|one| !one.is_call).map(|one| one.at);
    let orphans: BTreeSet<usize> = orphans.collect();
    let mut empty = 0;
    retain(fixture, |index, message| {
        let silent = message.role == Role::Assistant
            && message.content.trim().is_empty()
            && message.tool_calls.is_empty();
        empty += usize::from(silent);
        !silent && !orphans.contains(&index)
    });
    report.add(Replacement::EmptyMessage, empty);
    report.add(Replacement::OrphanResult, orphans.len());
}

/// Keeps the messages that `keep` selects and moves the points along.
fn retain(fixture: &mut Fixture, mut keep: impl FnMut(usize, &Message) -> bool) {
    let kept: Vec<bool> = fixture
        .messages
        .iter()
        .enumerate()
        .map(|(index, message)| keep(index, message))
        .collect();
    if kept.iter().all(|kept| *kept) {
        return;
    }
    // How many messages before each are kept; a place beyond the end is at the end.
    let mut before = vec![0];
    before.extend(kept.iter().scan(0, |count, kept| {
        *count += usize::from(*kept);
        Some(*count)
    }));
    for places in [&mut fixture.points, &mut fixture.compactions] {
        let moved = places
            .iter()
            .filter_map(|point| before.get((*point).min(kept.len())).copied());
        *places = moved.filter(|point| *point > 0).collect();
        places.dedup();
    }
    let moved = |place: usize| before.get(place.min(kept.len())).copied().unwrap_or(0);
    for one in &mut fixture.recorded {
        one.at = moved(one.at);
        for range in &mut one.kept {
            *range = range.map(moved);
        }
        one.kept.retain(|[from, to]| from < to);
    }
    let mut kept = kept.into_iter();
    fixture.messages.retain(|_| kept.next().unwrap_or(true));
}

/// The output of a tool in a message. A result whose call is not in the log is an output too.
fn output_of(message: &Message) -> Option<&str> {
    match message.role {
        Role::Tool => Some(message.content.as_str()),
        Role::User => message
            .content
            .strip_prefix(ORPHAN_HEAD)
            .and_then(|rest| rest.strip_prefix('\n')),
        Role::System | Role::Assistant => None,
    }
}

/// Step 10: cuts long tool outputs.
fn cut_outputs(fixture: &mut Fixture, facts: &[String], report: &mut ScrubReport) {
    for message in &mut fixture.messages {
        if let Some((output, short)) =
            output_of(message).and_then(|output| Some((output, cut(output, facts)?)))
        {
            message
                .content
                .replace_range(message.content.len() - output.len().., &short);
            report.add(Replacement::LongOutput, 1);
            fixture
                .extra
                .insert("outputs_cut_to".to_owned(), edit::LIMIT.into());
        }
    }
}

/// How often the account names occur outside of paths. Names that are variants of each other count as the first of them.
fn left_over(accounts: &BTreeSet<String>, messages: &[Message]) -> BTreeMap<String, usize> {
    /// The bytes of a name that is looked for; a longer one is not an account.
    const LENGTHS: Range<usize> = 3..64;
    /// The names in one pattern: a log may hold a list of thousands.
    const AT_ONCE: usize = 100;
    let mut names: BTreeMap<String, &String> = BTreeMap::new();
    for account in accounts.iter().filter(|name| LENGTHS.contains(&name.len())) {
        names.entry(personal::spoken(account)).or_insert(account);
    }
    let looked_for: Vec<String> = names.values().map(|name| (*name).clone()).collect();
    let matchers: Vec<HandleMatcher> = looked_for.chunks(AT_ONCE).map(HandleMatcher::new).collect();
    let mut counts = BTreeMap::new();
    let texts = messages.iter().flat_map(Message::texts);
    for plain in texts.map(edit::unescaped) {
        let places = matchers
            .iter()
            .flat_map(|matcher| matcher.places_in(&plain));
        let found = places.filter_map(|place| names.get(&personal::spoken(plain.get(place)?)));
        for account in found {
            *counts.entry((*account).clone()).or_default() += 1;
        }
    }
    counts
}
