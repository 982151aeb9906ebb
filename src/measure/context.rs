//! What a context says about the facts of a probe that occur in it: placed, denied, contradicted, stale.
//!
//! A fact that occurs may be said of the wrong thing, be denied, or be contradicted by another value. The rules that read
//! answers find this in the entries of the context.
//!
//! Limits: a fact beside a word of its question may still be said of something else, especially within one sentence. A
//! fact alone in a bullet without a heading counts as not placed. Contradictions are found only between entries that share
//! most of their words.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::overclaim::KnownValues;
use super::survival::share;
use crate::probe::Probe;
use base::lazy_patterns;
use base::text::{around, pattern};
use base::words::words;
use lexical::claims::{asks_for_rejection, is_denied, stated_last};
use lexical::facts::{Fact, FactFinder, Topic, TranscriptPaths};
use lexical::{ContextEntries, ContextEntry};

/// What a context says of one expected fact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FactInContext {
    /// It occurs.
    pub present: bool,
    /// It occurs in an entry with a content word of its question; null where the question has none.
    pub placed: Option<bool>,
    /// Every place where it occurs denies it.
    pub denied: bool,
    /// An entry says the same of another value.
    pub contradicted: bool,
}

/// What a context says of the facts of a probe.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextFacts {
    /// The expected facts, in their order.
    pub facts: Vec<FactInContext>,
    /// The superseded facts that it states as current.
    pub stale: Vec<String>,
}

impl ContextFacts {
    /// Facts kept minus denied, contradicted and stale ones, as a share of the expected ones, at least 0; `None` for a
    /// probe without facts.
    pub fn sound(&self) -> Option<f64> {
        let kept = self
            .facts
            .iter()
            .filter(|fact| fact.present && !fact.denied && !fact.contradicted)
            .count();
        let sound = kept.saturating_sub(self.stale.len());
        (!self.facts.is_empty()).then(|| sound as f64 / self.facts.len() as f64)
    }

    /// The shares of a probe.
    pub fn shares(&self) -> ContextShares {
        ContextShares {
            placed: self.placed(),
            denied: share(self.facts.iter().map(|fact| fact.denied)),
            contradicted: share(self.facts.iter().map(|fact| fact.contradicted)),
            stale: (!self.facts.is_empty()).then_some(self.stale.len() as f64),
            sound: self
                .sound()
                .map(|sound| self.placed().unwrap_or(sound).min(sound)),
        }
    }

    /// The share of the expected facts that are present and placed; `None` where the question names nothing.
    pub fn placed(&self) -> Option<f64> {
        share(
            self.facts
                .iter()
                .map(|fact| fact.placed)
                .collect::<Option<Vec<bool>>>()?,
        )
    }
}

/// Shares of the expected facts of one probe, from 0 to 1; `stale` is a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ContextShares {
    /// Present, and with a word of the question; null where the question names nothing.
    pub placed: Option<f64>,
    /// Present, and denied wherever they occur.
    pub denied: Option<f64>,
    /// Present, beside an entry that says the same of another value.
    pub contradicted: Option<f64>,
    /// The number of superseded facts that are stated as current.
    pub stale: Option<f64>,
    /// Kept minus denied, contradicted and stale ones, but no more than `placed`.
    pub sound: Option<f64>,
}

/// A probe whose facts can be looked for in many contexts.
#[derive(Clone, Debug)]
pub struct ContextProbe {
    pub(super) expected: Vec<FactFinder>,
    pub(super) superseded: Vec<FactFinder>,
    pub(super) superseded_names: Vec<String>,
    /// What the question is about.
    pub(super) topic: Topic,
    /// What an entry may say without contradicting a fact.
    known: KnownValues,
    reads_denials: bool,
}

impl ContextProbe {
    /// Prepares a probe about a transcript with these `paths`.
    pub fn new(probe: &Probe, paths: &TranscriptPaths) -> ContextProbe {
        let facts = probe.expected_facts.iter().chain(&probe.superseded_facts);
        let spellings = facts.flat_map(|fact| &fact.spellings).map(String::as_str);
        let known = KnownValues::new(&probe.question, spellings);
        ContextProbe {
            expected: FactFinder::all_within(&probe.expected_facts, paths),
            superseded: FactFinder::all_within(&probe.superseded_facts, paths),
            superseded_names: names_of(&probe.superseded_facts),
            topic: Topic::new(&probe.question, &probe.expected_facts),
            known,
            reads_denials: !asks_for_rejection(&probe.question),
        }
    }

    /// What a context says. `folded` is its text made by [`sessions::transcript::fold_document`], in which facts may
    /// reach over the ends of entries. `own` are the entries that the method wrote: a message of the session that was kept
    /// word for word says what was true when it was said, so only these can be stale, denied or contradicted.
    pub fn read(
        &self,
        entries: &ContextEntries,
        own: &ContextEntries,
        folded: &str,
    ) -> ContextFacts {
        let stale = stated_last(own.statements(), &self.superseded, &self.expected);
        let names = self
            .superseded_names
            .iter()
            .zip(stale)
            .filter(|(_, is_stale)| *is_stale);
        ContextFacts {
            facts: self
                .expected
                .iter()
                .map(|finder| self.fact(finder, entries, own, folded))
                .collect(),
            stale: names.map(|(name, _)| name.clone()).collect(),
        }
    }

    fn fact(
        &self,
        finder: &FactFinder,
        entries: &ContextEntries,
        own: &ContextEntries,
        folded: &str,
    ) -> FactInContext {
        let present = self.topic.has(finder, folded);
        if !present {
            return FactInContext {
                placed: (!self.topic.is_empty()).then_some(false),
                ..FactInContext::default()
            };
        }
        let [holders, own_holders] = [entries, own].map(|entries| {
            let list = entries.list().iter();
            list.filter(|entry| finder.occurs_in(&entry.folded))
                .collect::<Vec<&ContextEntry>>()
        });
        let denied = self.reads_denials
            && !holders.is_empty()
            && holders.len() == own_holders.len()
            && own_holders.iter().all(|entry| {
                let places = finder.ranges(&entry.folded);
                places.iter().all(|place| is_denied(&entry.folded, place))
            });
        let is_placed = |entry: &&ContextEntry| {
            self.topic.is_named_in(&entry.folded) || self.topic.is_named_in(&entry.lead)
        };
        FactInContext {
            present,
            placed: (!self.topic.is_empty()).then(|| holders.iter().any(is_placed)),
            denied,
            contradicted: own_holders
                .into_iter()
                .filter(is_placed)
                .any(|entry| self.has_two(entry, finder) || self.contradicts(entry, finder, own)),
        }
    }

    /// Whether an entry offers another value of its kind in the same breath: "on 9090 or 7070".
    fn has_two(&self, entry: &ContextEntry, finder: &FactFinder) -> bool {
        finder.ranges(&entry.folded).into_iter().any(|range| {
            let (before, after) = around(&entry.folded, &range);
            let others = [OTHER_BEFORE.captures(before), OTHER_AFTER.captures(after)];
            let mut others = others.into_iter().flatten();
            others.any(|found| {
                found
                    .get(1)
                    .is_some_and(|other| self.known.names_another(other.as_str()))
            })
        })
    }

    /// Whether another entry has all words of `entry` except the fact, and another value of its kind.
    fn contradicts(
        &self,
        entry: &ContextEntry,
        finder: &FactFinder,
        entries: &ContextEntries,
    ) -> bool {
        let entry_words = content(&entry.folded, finder);
        entry_words.len() >= SHARED_WORDS
            && entries
                .list()
                .iter()
                .filter(|other| are_comparable(entry, other))
                .any(|other| {
                    let other_words = content(&other.folded, finder);
                    entry_words.is_subset(&other_words)
                        && other_words.len() <= entry_words.len() + OTHER_WORDS
                        && !finder.occurs_in(&other.folded)
                        && self.known.names_another(&other.text)
                })
    }
}

lazy_patterns! {
    /// A value that is offered before a fact.
    OTHER_BEFORE = pattern(r#"([^\s,;，；。]+)(?:\s+(?:or|/|vs\.?)\s+|\s*或者?\s*)[`"'“]?$"#);

    /// A value that is offered after a fact.
    OTHER_AFTER = pattern(r#"^[`"'”]?(?:\s+(?:or|/|vs\.?)\s+|\s*或者?\s*)([^\s,;，；。]+)"#);
}

/// The fewest words beside the value that an entry needs for another to say the same.
const SHARED_WORDS: usize = 3;

/// The most words that the other may have besides: those of its value.
const OTHER_WORDS: usize = 4;

/// The names of facts, in the spelling that is shown.
pub(super) fn names_of(facts: &[Fact]) -> Vec<String> {
    facts.iter().map(|fact| fact.name().to_owned()).collect()
}

/// Whether two entries are under the same lead and about equally long: a much longer one has many words about other
/// things.
fn are_comparable(entry: &ContextEntry, other: &ContextEntry) -> bool {
    let (length, other_length) = (entry.folded.len(), other.folded.len());
    other_length <= 2 * length && 2 * other_length >= length && other.lead == entry.lead
}

/// The words of a folded entry without those of a fact in it.
fn content<'e>(folded: &'e str, fact: &FactFinder) -> BTreeSet<&'e str> {
    let values: Vec<&str> = fact
        .ranges(folded)
        .into_iter()
        .filter_map(|range| folded.get(range))
        .collect();
    let words_of_fact: BTreeSet<&str> = values.into_iter().flat_map(words).collect();
    words(folded)
        .filter(|word| word.chars().any(char::is_alphabetic) && !words_of_fact.contains(word))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use sessions::transcript::fold_document;

    fn read(text: &str) -> ContextFacts {
        let probe: Probe = serde_json::from_value(json!({"id": "a", "type": "recall",
            "question": "On which port does the gateway listen?", "expected_facts": ["9090"],
            "superseded_facts": ["8080"]}))
        .unwrap();
        ContextProbe::new(&probe, &TranscriptPaths::default()).read(
            &ContextEntries::from_text(text),
            &ContextEntries::from_text(text),
            &fold_document(text),
        )
    }

    #[test]
    fn what_was_kept_word_for_word_is_neither_stale_nor_denied_nor_contradicted() {
        let probe: Probe = serde_json::from_value(json!({"id": "a", "type": "recall",
            "question": "On which port does the gateway listen?", "expected_facts": ["9090"],
            "superseded_facts": ["8080"]}))
        .unwrap();
        let probe = ContextProbe::new(&probe, &TranscriptPaths::default());
        let text =
            "Is it that the gateway does not listen on port 9090?\n\nThe gateway listens on 8080.";
        let (all, own) = (
            ContextEntries::from_text(text),
            ContextEntries::from_text("Go on."),
        );
        let facts = probe.read(&all, &own, &fold_document(text));
        assert_eq!((facts.stale.len(), facts.sound()), (0, Some(1.0)));
        assert_eq!(
            probe.read(&all, &all, &fold_document(text)).sound(),
            Some(0.0)
        );
    }

    #[test]
    fn a_fact_is_placed_with_a_word_of_its_question() {
        for text in [
            "The gateway listens on 9090.",
            "## Ports\n- 9090",
            r#"{"gateway": {"port": "9090"}}"#,
        ] {
            assert_eq!(read(text).facts[0].placed, Some(true), "{text}");
        }
        for text in ["The cache holds 9090 rows. The gateway is up.", "- 9090"] {
            assert_eq!(
                read(text).facts[0],
                FactInContext {
                    present: true,
                    placed: Some(false),
                    ..Default::default()
                }
            );
        }
    }

    #[test]
    fn denied_contradicted_and_stale_facts_are_not_sound() {
        assert_eq!(read("The gateway listens on port 9090.").sound(), Some(1.0));
        let denied = read("The gateway does not listen on port 9090.");
        assert!(denied.facts[0].denied && denied.sound() == Some(0.0));
        let both = read(
            "- The public gateway listens on port 9090\n- The public gateway listens on port 7070",
        );
        assert!(both.facts[0].contradicted && both.sound() == Some(0.0));
        for two in [
            "The gateway listens on port 9090 or 7070.",
            "The gateway listens on 7070 / 9090",
        ] {
            assert!(read(two).facts[0].contradicted, "{two}");
        }
        assert!(!read("The gateway listens on port 9090 or not at all.").facts[0].contradicted);
        let stale = read("The gateway listens on port 9090. The gateway listens on port 8080.");
        assert_eq!(
            (stale.stale.as_slice(), stale.sound()),
            (&["8080".to_owned()][..], Some(0.0))
        );
        let former = read("The gateway listens on 9090, no longer on 8080.");
        assert_eq!((former.stale.len(), former.sound()), (0, Some(1.0)));
    }
}
