//! Gathers what is worth keeping of a span, as entries with a score.

use super::terms::{Term, terms};
use crate::notes::{SessionNotes, file_entry, rules};
use base::named_enum;
use base::text::shortened;
use base::words::sentences;
use sessions::transcript::{Message, Role};

named_enum! {
    /// What an entry is about, in the order of the sections, with the label of its line.
    pub(super) enum Kind {
        Intent = "request",
        /// Demands and prohibitions of the user, word for word.
        Demand = "demand",
        /// A file that was created.
        Created = "created",
        /// A file that was changed.
        Modified = "modified",
        /// A file that was looked at.
        Read = "read",
        /// A choice with its reason.
        Decision = "decision",
        Error = "error",
        State = "state",
        Next = "next",
        /// An entry of a former summary under a heading that names no kind.
        Other = "other",
    }
}

impl Kind {
    /// The share of a summary's room for entries of this kind.
    pub(super) fn share(self) -> f64 {
        match self {
            Kind::Intent => 0.1,
            Kind::Demand => 0.1,
            Kind::Created => 0.08,
            Kind::Modified => 0.1,
            Kind::Read => 0.03,
            Kind::Decision => 0.25,
            Kind::Error => 0.08,
            Kind::State => 0.19,
            Kind::Next => 0.1,
            Kind::Other => 0.0,
        }
    }

    /// The kind of a line under a heading of several kinds, by its label; the first one if it has none.
    pub(super) fn labelled(text: &str, kinds: &[Kind]) -> Kind {
        let label = text.split_once(": ").map_or("", |(label, _)| label);
        kinds
            .iter()
            .copied()
            .find(|kind| kind.name() == label)
            .or(kinds.first().copied())
            .unwrap_or(Kind::Other)
    }
}

/// One line of a summary.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) kind: Kind,
    pub(super) text: String,
    /// The more exact things it says for its length, the higher.
    pub(super) score: f64,
    /// Its place among all entries.
    pub(super) order: usize,
}

impl Entry {
    /// An entry of a former summary.
    pub(super) fn from_summary(kind: Kind, text: &str, order: usize) -> Entry {
        let text = text
            .strip_prefix(kind.name())
            .and_then(|rest| rest.strip_prefix(": "))
            .unwrap_or(text)
            .to_owned();
        // Demands do not age; most next steps are done by now.
        let lasting = match kind {
            Kind::Demand => DEMANDED,
            Kind::Decision => DECIDED,
            Kind::Next => 0.4,
            _ => 1.0,
        };
        Entry {
            kind,
            score: information_density(&text) * lasting,
            text,
            order,
        }
    }

    /// The line as it is written; with its label where several kinds share a section.
    pub(super) fn line(&self, labelled: bool) -> String {
        if labelled {
            format!("- {}: {}\n", self.kind.name(), self.text)
        } else {
            format!("- {}\n", self.text)
        }
    }

    fn path(&self) -> &str {
        self.text.split([':', ' ']).next().unwrap_or_default()
    }
}

/// Adds what `span` has to the entries of a former summary. Newer entries replace older ones on the same subject.
pub(super) fn gather(span: &[Message], focus: &str, entries: &mut Vec<Entry>) {
    let notes = SessionNotes::from_messages(span);
    let mut gathered = EntryCollector {
        entries,
        focus: terms(focus),
    };
    gathered.add_files(&notes);
    gathered.add_failures(&notes);
    gathered.add_values(&notes);
    gathered.add_words(span);
    gathered.add_ending(span);
}

/// The factors on the scores of demands and of decisions.
const DEMANDED: f64 = 3.0;
const DECIDED: f64 = 1.2;
/// The most characters of an entry on a file.
const FILE: usize = 130;

struct EntryCollector<'a> {
    entries: &'a mut Vec<Entry>,
    focus: Vec<Term>,
}

impl EntryCollector<'_> {
    fn add(&mut self, kind: Kind, text: String, factor: f64) {
        if text.is_empty() || self.entries.iter().any(|known| known.text == text) {
            return;
        }
        let in_focus =
            !self.focus.is_empty() && terms(&text).iter().any(|term| self.focus.contains(term));
        let score = information_density(&text) * factor * if in_focus { 1.6 } else { 1.0 };
        let order = self
            .entries
            .iter()
            .map(|known| known.order + 1)
            .max()
            .unwrap_or(0);
        self.entries.push(Entry {
            kind,
            text,
            score,
            order,
        });
    }

    fn add_files(&mut self, notes: &SessionNotes) {
        for note in notes
            .lasting_files()
            .into_iter()
            .filter(|note| !note.file.deleted)
        {
            let file = &note.file;
            let created = file.created
                || self
                    .entries
                    .iter()
                    .any(|known| known.kind == Kind::Created && known.path() == file.path);
            let kind = match (created, file.modified) {
                (true, _) => Kind::Created,
                (_, true) => Kind::Modified,
                _ => Kind::Read,
            };
            let old: Vec<Entry> = self
                .entries
                .extract_if(.., |known| known.path() == file.path)
                .collect();
            let before = old
                .first()
                .and_then(|known| known.text.split_once(": "))
                .map(|(_, details)| details);
            let entry = file_entry(note, kind != Kind::Read);
            let text = match before.filter(|_| kind != Kind::Read) {
                Some(details) if entry.contains(": ") => {
                    shortened(&format!("{entry}; before: {details}"), FILE)
                }
                Some(details) => format!("{entry}: {details}"),
                None => shortened(&entry, FILE),
            };
            self.add(kind, text, 1.0);
        }
    }

    fn add_failures(&mut self, notes: &SessionNotes) {
        for failure in &notes.failures {
            let command = shortened(&failure.command, 90);
            let lines: Vec<String> = failure
                .lines
                .iter()
                .rev()
                .take(2)
                .rev()
                .map(|line| shortened(line, 160))
                .collect();
            self.add(
                Kind::Error,
                format!("`{command}`: {}", lines.join(" | ")),
                1.0,
            );
        }
    }

    /// Adds settings. The value seen last replaces older ones.
    fn add_values(&mut self, notes: &SessionNotes) {
        for (key, value) in &notes.values {
            self.entries.retain(|known| {
                known.kind != Kind::State
                    || rules::assignment(&known.text).is_none_or(|(old, _)| old != key)
            });
            if value.starts_with(|c: char| c.is_ascii_digit()) {
                self.add(Kind::State, format!("{key} = {value}"), 0.7);
            }
        }
    }

    fn add_words(&mut self, span: &[Message]) {
        let last = span.len().max(1) as f64;
        for (index, message) in span.iter().enumerate() {
            let late = index as f64 / last;
            if message.role == Role::Tool {
                continue;
            }
            for sentence in statements(&message.content) {
                match message.role {
                    Role::User => self.add_request(&sentence),
                    Role::Assistant => self.add_statement(&sentence, late),
                    Role::System | Role::Tool => {}
                }
            }
        }
    }

    fn add_request(&mut self, sentence: &str) {
        let text = shortened(sentence, 320);
        if rules::states_demand(sentence) {
            self.add(Kind::Demand, format!("\"{text}\""), DEMANDED);
        } else {
            self.add(Kind::Intent, text, 1.0);
        }
    }

    fn add_statement(&mut self, sentence: &str, late: f64) {
        let text = shortened(sentence.trim_start_matches(['-', '*', ' ']), 320);
        let reason = if rules::states_reason(sentence) {
            1.25
        } else {
            1.0
        };
        if rules::states_decision(sentence) {
            self.add(Kind::Decision, text, DECIDED * reason);
        } else if rules::states_task(sentence) {
            self.add(Kind::Next, text, 0.5 + late);
        } else {
            self.add(Kind::State, text, 0.9 * reason * (0.8 + 0.4 * late));
        }
    }

    /// Adds the last words of both speakers as next steps, because the work goes on from there.
    fn add_ending(&mut self, span: &[Message]) {
        let near_end = span.len() - span.len() / 4;
        let user = last_words(span, Role::User).filter(|(at, _)| *at >= near_end);
        for (_, message) in [user, last_words(span, Role::Assistant)]
            .into_iter()
            .flatten()
        {
            let ending: Vec<&str> = sentences(&message.content).collect();
            for sentence in ending.iter().rev().take(3).rev() {
                let text = shortened(sentence, 320);
                self.entries.retain(|known| known.text != text);
                self.add(Kind::Next, text, 1.5);
            }
        }
    }
}

/// The last message of a speaker that has text, with its place.
fn last_words(span: &[Message], role: Role) -> Option<(usize, &Message)> {
    span.iter()
        .enumerate()
        .rev()
        .find(|(_, message)| message.role == role && !message.content.is_empty())
}

/// The sentences of a text; a very short one that demands nothing is joined to the one before it.
fn statements(text: &str) -> Vec<String> {
    const SHORT: usize = 24;
    const LONG: usize = 200;
    let mut all: Vec<String> = Vec::new();
    for sentence in sentences(text) {
        let joins = sentence.chars().count() < SHORT && !rules::states_demand(sentence);
        match all
            .last_mut()
            .filter(|before| joins && before.chars().count() < LONG)
        {
            Some(before) => {
                before.push(' ');
                before.push_str(sentence);
            }
            None => all.push(sentence.to_owned()),
        }
    }
    all
}

/// How much a text says that could not be guessed, for its length.
fn information_density(text: &str) -> f64 {
    let exact = text
        .split_whitespace()
        .filter(|word| is_exact(word))
        .count() as f64;
    let quoted = (text.matches(['`', '"', '“', '「']).count() as f64 / 2.0).floor();
    (1.0 + exact + 0.5 * quoted) / (40.0 + text.chars().count() as f64).sqrt()
}

/// A number, a path, an identifier, a code: nothing of ordinary prose.
fn is_exact(word: &str) -> bool {
    let word = word.trim_matches(|c: char| !c.is_alphanumeric());
    let inner = word.get(1..).unwrap_or_default();
    word.contains(|c: char| c.is_ascii_digit() || matches!(c, '_' | '/' | '=' | '('))
        || inner.contains('.')
        || inner.contains(char::is_uppercase)
}
