//! All measures of one cell. What all cells of a probe share is made once.

use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::context::{ContextFacts, ContextProbe, names_of};
use super::overclaim::{AnswerWhenLost, KnownValues};
use super::survival::{FactClass, Refetch, presence, refetch, share, smallest_holders, tokens_of};
use crate::probe::Probe;
use base::units::Tokens;
use lexical::claims::{asserts, stated_as_current};
use lexical::facts::{History, Topic};
use lexical::{ContextEntries, unknown_names};
use sessions::transcript::{fold, fold_document};

/// One probe at its point, ready to measure many contexts and answers.
#[derive(Clone, Debug)]
pub struct ProbeMeasure {
    names: Vec<String>,
    /// The facts, and what the question is about.
    facts: ContextProbe,
    question: String,
    answerable: bool,
    /// Facts that are paraphrases occur nowhere literally: where they were kept or lost is then unknown.
    literal: bool,
    /// What an answer may say without asserting another value.
    known: KnownValues,
    /// The smallest message that holds each expected fact, and the tokens of all messages.
    holders: Vec<Option<usize>>,
    tokens: Arc<[Tokens]>,
    /// Tokens of the messages that the context replaces.
    replaced: Tokens,
    /// Messages before this one are known to whoever answers.
    until: usize,
}

/// What happened to one expected fact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FactOutcome {
    /// The fact, in the spelling that is shown.
    pub fact: String,
    /// Whether it occurs in the answer.
    pub answered: bool,
    /// Where it was kept or lost; `None` if the context cannot be read, and for a paraphrase.
    pub class: Option<FactClass>,
    /// For an answer with a search, whether an excerpt has the fact. `None` for other answers, and for a paraphrase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<bool>,
}

impl FactOutcome {
    /// Whether it occurs in the context; `None` where that is unknown.
    pub fn is_present(&self) -> Option<bool> {
        self.class
            .map(|class| matches!(class, FactClass::Answered | FactClass::Missed))
    }

    /// Whether only a search had it: an excerpt has it and the context does not.
    pub fn is_found_by_search(&self) -> bool {
        self.found == Some(true)
            && matches!(
                self.class,
                Some(FactClass::Lost | FactClass::AnsweredElsewhere)
            )
    }
}

/// Everything that is measured of one answer without a judge.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    pub facts: Vec<FactOutcome>,
    /// The share of expected facts that occur in the context; `None` if the context cannot be read, for paraphrases,
    /// and for a probe without facts.
    pub fact_survival: Option<f64>,
    /// What the answer does where the context lost every expected fact; `None` where it kept one, and as for
    /// `fact_survival`.
    pub when_lost: Option<AnswerWhenLost>,
    /// Superseded facts that the answer states as if they held.
    pub stale: Vec<String>,
    /// For an unanswerable probe, whether the answer asserts something all the same; `None` for others.
    pub asserted: Option<bool>,
    /// Paths and identifiers in the answer that occur nowhere in the transcript, in order of appearance.
    pub unknown_names: Vec<String>,
    /// The cost of fetching the facts that compression lost; `None` as for `fact_survival`.
    pub refetch: Option<Refetch>,
}

impl ProbeMeasure {
    /// Prepares `probe`, asked after the messages of the `prefix` of `history` were compressed. `tokens` are those of all
    /// messages; messages before `until` are known to whoever answers (the end of the prefix, or of a verbatim tail).
    pub fn new(
        probe: &Probe,
        history: &History,
        prefix: Range<usize>,
        until: usize,
        tokens: Arc<[Tokens]>,
    ) -> ProbeMeasure {
        let facts = ContextProbe::new(probe, history.paths());
        let spellings = probe
            .expected_facts
            .iter()
            .flat_map(|fact| &fact.spellings)
            .map(String::as_str);
        let replaced = tokens_of(&tokens, prefix.clone());
        let holders = smallest_holders(history, prefix, &tokens, &facts.expected);
        ProbeMeasure {
            names: names_of(&probe.expected_facts),
            facts,
            question: probe.question.clone(),
            answerable: probe.answerable,
            literal: probe.literal,
            known: KnownValues::new(&probe.question, spellings),
            holders,
            tokens,
            replaced,
            until,
        }
    }

    /// For each expected fact, whether it occurs in `context`, a text made by [`fold`]. It is the same for all answers
    /// from a context and worth keeping, for a context may be long.
    pub fn presence(&self, context: &str) -> Vec<bool> {
        presence(context, &self.facts.expected, &self.facts.topic)
    }

    /// The share of the expected facts that occur in `context`, as [`Measured::fact_survival`] has it.
    pub fn survival(&self, context: &str) -> Option<f64> {
        if self.literal {
            share(self.presence(context))
        } else {
            None
        }
    }

    /// For each expected fact, whether one of the `excerpts` has it; `None` for paraphrases.
    pub fn found_in<'t>(&self, excerpts: impl Iterator<Item = &'t str>) -> Option<Vec<bool>> {
        let mut found = vec![false; self.facts.expected.len()];
        for excerpt in excerpts {
            let present = self.presence(&fold_document(excerpt));
            found
                .iter_mut()
                .zip(present)
                .for_each(|(found, is_present)| *found |= is_present);
        }
        self.literal.then_some(found)
    }

    /// What a context says of the facts beyond that they occur; `None` for paraphrases, and for a probe without facts.
    /// `own` are the entries that the method wrote.
    pub fn in_context(
        &self,
        entries: &ContextEntries,
        own: &ContextEntries,
        folded: &str,
    ) -> Option<ContextFacts> {
        let has_facts = self.literal && !self.facts.expected.is_empty();
        has_facts.then(|| self.facts.read(entries, own, folded))
    }

    /// Measures one answer. `present` is the result of [`ProbeMeasure::presence`] for its context; `None` if that
    /// cannot be read. `points_to` tells whether an exact token of a message occurs in that context.
    pub fn measure(
        &self,
        history: &History,
        present: Option<&[bool]>,
        points_to: impl Fn(usize) -> bool,
        answer: &str,
    ) -> Measured {
        let present = present.filter(|_| self.literal);
        let folded = fold(answer);
        let answered = presence(&folded, &self.facts.expected, &Topic::default());
        let is_lost =
            present.is_some_and(|present| !present.is_empty() && !present.contains(&true));
        let when_lost = is_lost.then(|| AnswerWhenLost::new(answer, &answered, &self.known));
        let facts = self
            .names
            .iter()
            .zip(answered)
            .enumerate()
            .map(|(index, (name, answered))| {
                let is_present = present.and_then(|present| present.get(index));
                FactOutcome {
                    fact: name.clone(),
                    answered,
                    class: is_present.map(|is_present| FactClass::new(*is_present, answered)),
                    found: None,
                }
            });
        let stale = stated_as_current(answer, &self.facts.superseded, &self.facts.expected);
        Measured {
            facts: facts.collect(),
            fact_survival: present.and_then(|present| share(present.iter().copied())),
            when_lost,
            stale: self
                .facts
                .superseded_names
                .iter()
                .zip(stale)
                .filter(|(_, said)| *said)
                .map(|(n, _)| n.clone())
                .collect(),
            asserted: (!self.answerable).then(|| asserts(answer)),
            unknown_names: unknown_names(answer, &self.question, history, self.until),
            refetch: present
                .filter(|present| !present.is_empty())
                .map(|present| {
                    let lost = self
                        .holders
                        .iter()
                        .zip(present)
                        .filter(|(_, is_present)| !**is_present);
                    refetch(
                        lost.map(|(holder, _)| *holder),
                        &self.tokens,
                        self.replaced,
                        &points_to,
                    )
                }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use sessions::transcript::{Message, Role};

    fn measured(context: Option<&str>, answer: &str, literal: bool) -> Measured {
        let messages = ["port 8080 first", "端口改为8081，报错连接超时"]
            .map(|text| Message::text(Role::User, text));
        let probe: Probe = serde_json::from_value(json!({"id": "a", "type": "recall", "question": "Which port?",
            "expected_facts": ["8081", "连接超时"], "superseded_facts": ["8080"], "literal": literal}))
        .unwrap();
        let history = History::new(&messages);
        let measure = ProbeMeasure::new(&probe, &history, 0..2, 2, [Tokens(4), Tokens(12)].into());
        let present = context.map(|context| measure.presence(&fold(context)));
        measure.measure(&history, present.as_deref(), |_| true, answer)
    }

    #[test]
    fn what_only_an_excerpt_has_was_found_and_not_kept() {
        let messages = [Message::text(Role::User, "端口改为8081，报错连接超时")];
        let probe: Probe = serde_json::from_value(
            json!({"id": "a", "type": "recall", "question": "Which port?",
            "expected_facts": ["8081", "连接超时"]}),
        )
        .unwrap();
        let history = History::new(&messages);
        let measure = ProbeMeasure::new(&probe, &history, 0..1, 1, [Tokens(9)].into());
        let found = measure.found_in(["nothing", "Port 8081 it is"].into_iter());
        assert_eq!(found, Some(vec![true, false]));
        assert_eq!(
            measure.found_in(std::iter::empty()),
            Some(vec![false, false]),
            "no search"
        );
        let fact = |class, found| FactOutcome {
            class: Some(class),
            found,
            ..measured(None, "", true).facts[0].clone()
        };
        assert!(fact(FactClass::AnsweredElsewhere, Some(true)).is_found_by_search());
        assert!(fact(FactClass::Lost, Some(true)).is_found_by_search());
        assert!(
            !fact(FactClass::Answered, Some(true)).is_found_by_search(),
            "the context has it anyway"
        );
        assert!(
            !fact(FactClass::AnsweredElsewhere, None).is_found_by_search(),
            "nobody could search"
        );
    }

    #[test]
    fn a_cell_is_measured_from_every_side() {
        let cell = measured(Some("Port 8081."), "It is 8080, in notes.md.", true);
        let classes: Vec<_> = cell.facts.iter().map(|fact| fact.class).collect();
        assert_eq!(classes, [Some(FactClass::Missed), Some(FactClass::Lost)]);
        assert_eq!(cell.fact_survival, Some(0.5));
        assert_eq!(cell.when_lost, None);
        assert_eq!(cell.stale, ["8080"]);
        assert_eq!(cell.unknown_names, ["notes.md"]);
        assert_eq!(
            cell.refetch,
            Some(Refetch {
                tokens: Tokens(312),
                unguided: false,
                unlocated: 0
            })
        );
    }

    #[test]
    fn what_answers_do_without_their_facts_is_recorded_where_all_are_lost() {
        let when_lost = |context, answer, literal| measured(context, answer, literal).when_lost;
        assert_eq!(
            when_lost(Some("Nothing."), "It is 9000.", true),
            Some(AnswerWhenLost::OtherValue)
        );
        assert_eq!(
            when_lost(Some("Nothing."), "The summary does not say.", true),
            Some(AnswerWhenLost::Admission)
        );
        assert_eq!(
            when_lost(Some("Port 8081."), "It is 9000.", true),
            None,
            "one fact was kept"
        );
        assert_eq!(
            when_lost(Some("Nothing."), "It is 9000.", false),
            None,
            "a paraphrase"
        );
        assert_eq!(when_lost(None, "It is 9000.", true), None);
    }

    #[test]
    fn an_unreadable_context_is_unknown_and_not_lost() {
        let cell = measured(None, "8081，连接超时", true);
        assert_eq!(cell.fact_survival, None);
        assert_eq!(cell.refetch, None);
        assert!(
            cell.facts
                .iter()
                .all(|fact| fact.answered && fact.class.is_none())
        );
    }

    #[test]
    fn a_paraphrase_is_not_lost_because_it_stands_nowhere() {
        let cell = measured(Some("about something else"), "8081", false);
        assert_eq!((cell.fact_survival, cell.refetch), (None, None));
        assert!(cell.facts[0].answered && cell.facts[0].class.is_none());
    }
}
