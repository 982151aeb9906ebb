//! The prose that a session and a context put around a reference.
//!
//! A bare list of identifiers has nearly every reference of a session, and nobody can work from it. So a context keeps
//! a reference only where it says something about it: a word that the session also says about the reference stands
//! within six words of it, in the same sentence, row or bullet. In Chinese and Japanese text it is a piece of two
//! characters within twelve characters.
//!
//! Words in references, names of tools and of their arguments, stop words, and words in over 5% of the messages say
//! nothing about a reference.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;

use super::entries::{ContextEntries, ContextEntry};
use lexical::facts::{FactFinder, is_alike, is_content_word, pieces, words};
use sessions::references::{Reference, ReferenceKind, SessionNoise, references_in};
use sessions::transcript::fold;

/// How many words a reference and a word about it may be apart.
const NEAR_WORDS: usize = 6;
/// The same in characters of scripts without blanks.
const NEAR_CHARACTERS: usize = 12;
/// A word in a larger share of the messages is about everything.
const COMMON_SHARE: f64 = 0.05;
/// Messages that a word may be in however short the session is.
const FEW_MESSAGES: usize = 3;

/// A text as sentences, rows and bullets.
#[derive(Clone, Debug, Default)]
pub struct ProseEntries(Vec<ProseEntry>);

#[derive(Clone, Debug)]
struct ProseEntry {
    folded: String,
    /// Its references, folded: they are not prose.
    references: Vec<String>,
    /// The words of its references.
    reference_words: HashSet<String>,
}

impl ProseEntries {
    /// The entries of a text as written.
    pub fn from_text(text: &str) -> ProseEntries {
        ProseEntries::from_entries(&ContextEntries::from_text(text))
    }

    /// The same entries, with the references in them.
    pub fn from_entries(entries: &ContextEntries) -> ProseEntries {
        ProseEntries(entries.list().iter().map(ProseEntry::from_entry).collect())
    }
}

impl ProseEntry {
    fn from_entry(entry: &ContextEntry) -> ProseEntry {
        let references: Vec<String> = references_in(&entry.text)
            .iter()
            .map(|reference| fold(&reference.text))
            .collect();
        let reference_words = references
            .iter()
            .flat_map(|reference| words(reference))
            .map(str::to_owned)
            .collect();
        ProseEntry {
            folded: entry.folded.clone(),
            references,
            reference_words,
        }
    }

    /// Whether a word or piece that one of the functions knows is near the reference.
    fn has_near(
        &self,
        reference: &FactFinder,
        knows_word: impl Fn(&str) -> bool,
        knows_piece: impl Fn(&str) -> bool,
    ) -> bool {
        reference.ranges(&self.folded).iter().any(|place| {
            self.words_near(place).any(&knows_word)
                || self.pieces_near(place).any(|piece| knows_piece(&piece))
        })
    }

    /// The words of the entry that could say something of a reference.
    fn content(&self) -> impl Iterator<Item = &str> {
        self.folded
            .split_whitespace()
            .filter_map(|word| self.as_prose(word))
    }

    /// The pieces in `text`, a part of the entry, that are in none of its references.
    fn pieces_of(&self, text: &str) -> impl Iterator<Item = String> {
        pieces(text).filter(|piece| {
            !self
                .references
                .iter()
                .any(|reference| reference.contains(piece.as_str()))
        })
    }

    /// The word itself, without the punctuation around it; `None` if it is not a word of prose.
    fn as_prose<'t>(&self, word: &'t str) -> Option<&'t str> {
        let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
        let is_plain = bare.chars().all(|c| c.is_alphabetic() || c == '-');
        (is_plain && is_content_word(bare) && !self.reference_words.contains(bare)).then_some(bare)
    }

    /// The words near the places of a reference.
    fn words_near<'e>(&'e self, place: &Range<usize>) -> impl Iterator<Item = &'e str> {
        let before = self.folded.get(..place.start).unwrap_or("");
        let after = self.folded.get(place.end..).unwrap_or("");
        let back = before.split_whitespace().rev().take(NEAR_WORDS);
        let ahead = after.split_whitespace().take(NEAR_WORDS);
        back.chain(ahead).filter_map(|word| self.as_prose(word))
    }

    fn pieces_near(&self, place: &Range<usize>) -> impl Iterator<Item = String> {
        let before = self.folded.get(..place.start).unwrap_or("");
        let start = before
            .char_indices()
            .rev()
            .nth(NEAR_CHARACTERS - 1)
            .map_or(0, |(at, _)| at);
        let after = self.folded.get(place.end..).unwrap_or("");
        let ahead: String = after.chars().take(NEAR_CHARACTERS).collect();
        self.pieces_of(before.get(start..).unwrap_or(""))
            .chain(self.pieces_of(&ahead))
            .collect::<Vec<_>>()
            .into_iter()
    }
}

/// The messages of a session, and the words in them that say nothing.
#[derive(Clone, Debug, Default)]
pub(super) struct SessionProse {
    messages: Vec<ProseEntries>,
    /// Words and pieces in too many messages, and names of tools and arguments.
    common: HashSet<String>,
}

/// What a session says about one reference; empty if nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ReferenceWords {
    words: BTreeSet<String>,
    pieces: BTreeSet<String>,
}

impl SessionProse {
    /// Reads the texts of all messages.
    pub(super) fn new(texts: &[String], noise: &SessionNoise) -> SessionProse {
        let messages: Vec<ProseEntries> = texts
            .iter()
            .map(|text| ProseEntries::from_text(text))
            .collect();
        let mut holders: HashMap<String, usize> = HashMap::new();
        for message in &messages {
            let words = message
                .0
                .iter()
                .flat_map(|entry| entry.content().map(str::to_owned));
            let pieces = message.0.iter().flat_map(|entry| pieces(&entry.folded));
            let distinct: HashSet<String> = words.chain(pieces).collect();
            distinct
                .into_iter()
                .for_each(|word| *holders.entry(word).or_default() += 1);
        }
        let most = ((messages.len() as f64 * COMMON_SHARE) as usize).max(FEW_MESSAGES);
        let common = holders.into_iter().filter(|(word, count)| {
            *count > most
                || noise.has(&Reference {
                    kind: ReferenceKind::Identifier,
                    text: word.clone(),
                })
        });
        SessionProse {
            common: common.map(|(word, _)| word).collect(),
            messages,
        }
    }

    /// What the messages `holders` say about a reference: the words of those that have it near a word.
    pub(super) fn about(
        &self,
        reference: &FactFinder,
        holders: impl Iterator<Item = usize>,
    ) -> ReferenceWords {
        let mut found = ReferenceWords::default();
        for message in holders.filter_map(|at| self.messages.get(at)) {
            let mut entries = message.0.iter();
            if !entries.any(|entry| {
                entry.has_near(reference, |word| self.says(word), |piece| self.says(piece))
            }) {
                continue;
            }
            for entry in &message.0 {
                found.words.extend(
                    entry
                        .content()
                        .filter(|word| self.says(word))
                        .map(str::to_owned),
                );
                found.pieces.extend(
                    entry
                        .pieces_of(&entry.folded)
                        .filter(|piece| self.says(piece)),
                );
            }
        }
        found
    }

    fn says(&self, word: &str) -> bool {
        !self.common.contains(word)
    }
}

impl ReferenceWords {
    /// Whether the session says nothing about the reference, so that no context can.
    pub(super) fn is_empty(&self) -> bool {
        self.words.is_empty() && self.pieces.is_empty()
    }

    /// Whether `context` has the reference near one of these words.
    pub(super) fn are_near(&self, reference: &FactFinder, context: &ProseEntries) -> bool {
        let mut entries = context.0.iter();
        entries.any(|entry| {
            entry.has_near(
                reference,
                |word| self.has(word),
                |piece| self.pieces.contains(piece),
            )
        })
    }

    fn has(&self, word: &str) -> bool {
        self.words.contains(word) || self.words.iter().any(|own| is_alike(own, word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lexical::facts::Fact;

    fn prose(texts: &[&str]) -> SessionProse {
        let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
        SessionProse::new(&texts, &SessionNoise::default())
    }

    fn finder(text: &str) -> FactFinder {
        FactFinder::new(&Fact {
            spellings: vec![text.to_owned()],
        })
    }

    fn keeps(context: &str) -> bool {
        let session = prose(&[
            "The gateway forwards orders to port 8081.",
            "`src/a.rs` and `load_rows`, `8081`",
        ]);
        let port = finder("8081");
        session
            .about(&port, 0..2)
            .are_near(&port, &ProseEntries::from_text(context))
    }

    #[test]
    fn a_reference_is_kept_where_a_word_of_its_message_stands_near() {
        for text in [
            "The gateway listens on 8081.",
            "- gateway: 8081",
            "| what | port |\n|---|---|\n| gateway | 8081 |",
            "forwarding to 8081",
        ] {
            assert!(keeps(text), "{text}");
        }
        let far = "The gateway is fine and so are one two three four five six seven eight 8081";
        for text in [
            "8081",
            "src/a.rs\nload_rows\n8081",
            "src/a.rs, load_rows, 8081",
            "The 8081. Gateway",
            far,
        ] {
            assert!(!keeps(text), "{text}");
        }
    }

    #[test]
    fn what_no_message_says_anything_of_cannot_be_kept() {
        let session = prose(&["src/a.rs\nload_rows"]);
        assert!(session.about(&finder("load_rows"), 0..1).is_empty());
    }

    #[test]
    fn words_that_stand_everywhere_say_nothing() {
        let texts: Vec<String> = (0..5)
            .map(|at| format!("The gateway calls `row_{at}`"))
            .collect();
        let session = SessionProse::new(&texts, &SessionNoise::default());
        let found = session.about(&finder("row_1"), 0..5);
        assert!(found.is_empty(), "{found:?}");
    }

    #[test]
    fn chinese_goes_by_pieces_of_two_characters() {
        let session = prose(&["网关监听端口 8081，请勿更改"]);
        let port = finder("8081");
        let about = session.about(&port, 0..1);
        assert!(about.are_near(&port, &ProseEntries::from_text("网关使用 8081")));
        assert!(!about.are_near(&port, &ProseEntries::from_text("- 8081")));
    }
}
