//! The card that a person sees before a decision: a probe with the places of its facts in the transcript, or a message.

use serde::Serialize;

use crate::probe::{BankText, Probe, ProbeId, ProbeType, check_bank};
use lexical::facts::{Fact, FactFinder, History, literal_forms};
use sessions::import::PARAPHRASE;
use sessions::transcript::{Fixture, MappedFold, Role};

/// Characters around a fact that are shown.
const AROUND: usize = 160;

/// A probe or a message that a person decides about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ReviewItem {
    pub(super) fixture: String,
    /// The probe; without one it is the message in the user's own words.
    pub(super) probe: Option<ProbeId>,
}

/// A fixture, ready to be searched.
pub(super) struct SearchableFixture {
    pub(super) fixture: Fixture,
    pub(super) history: History,
}

/// One question of a review.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Card {
    pub(super) fixture: String,
    /// From 1.
    pub(super) number: usize,
    pub(super) of: usize,
    #[serde(flatten)]
    pub(super) subject: Subject,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "lowercase", tag = "subject")]
pub(super) enum Subject {
    /// A message that is still in the user's own words.
    Message {
        message: usize,
        role: Role,
        text: String,
    },
    Probe(Box<ProbeCard>),
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct ProbeCard {
    pub(super) id: String,
    #[serde(rename = "type")]
    pub(super) kind: ProbeType,
    /// The number of the point at which it is asked.
    pub(super) point: usize,
    /// The messages before that point.
    pub(super) messages: usize,
    pub(super) question: String,
    pub(super) answerable: bool,
    pub(super) facts: Vec<FactPlace>,
    pub(super) superseded: Vec<FactPlace>,
    /// Proposals for facts that no message has.
    pub(super) literal_forms: Vec<LiteralForm>,
    pub(super) reference_answer: Option<String>,
    /// What `check` says of it.
    pub(super) findings: Vec<String>,
    /// Its text in the bank.
    pub(super) source: String,
    #[serde(skip)]
    pub(super) probe: Probe,
}

/// What the transcript says in its own words, in place of a fact that no message has.
#[derive(Clone, Debug, Serialize)]
pub(super) struct LiteralForm {
    pub(super) form: String,
    /// The text of the probe with it.
    pub(super) source: String,
}

/// A fact with the first place where it occurs before the point.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct FactPlace {
    pub(super) spellings: Vec<String>,
    /// The first message that has it; `None` where none has.
    pub(super) message: Option<usize>,
    pub(super) role: Option<Role>,
    /// Other messages that have it.
    pub(super) others: usize,
    pub(super) before: String,
    pub(super) found: String,
    pub(super) after: String,
}

impl Card {
    /// The card of an item; `None` if its probe or message is gone.
    pub(super) fn new(
        item: &ReviewItem,
        number: usize,
        of: usize,
        session: &SearchableFixture,
        bank: &BankText,
    ) -> Option<Card> {
        let subject = match &item.probe {
            Some(id) => {
                let (probe, source) = bank.probe(id)?;
                Subject::Probe(Box::new(ProbeCard::new(probe, source, session, bank)))
            }
            None => {
                let index =
                    usize::try_from(session.fixture.notes.get(PARAPHRASE)?.as_u64()?).ok()?;
                let message = session.fixture.messages.get(index)?;
                Subject::Message {
                    message: index,
                    role: message.role,
                    text: message.content.clone(),
                }
            }
        };
        Some(Card {
            fixture: item.fixture.clone(),
            number,
            of,
            subject,
        })
    }
}

impl ProbeCard {
    fn new(probe: &Probe, source: &str, session: &SearchableFixture, bank: &BankText) -> ProbeCard {
        let points = session.fixture.effective_points();
        let point = probe.point.map_or(points.len(), |point| point.0 as usize);
        let end = points
            .get(point.wrapping_sub(1))
            .copied()
            .unwrap_or(session.history.len());
        let [facts, superseded] = [&probe.expected_facts, &probe.superseded_facts].map(|facts| {
            facts
                .iter()
                .map(|fact| FactPlace::new(fact, session, end))
                .collect::<Vec<_>>()
        });
        let findings = check_bank(bank.parsed(), &session.fixture, &session.history, false);
        let findings = findings
            .into_iter()
            .filter(|finding| finding.probe.as_ref() == Some(&probe.id));
        ProbeCard {
            id: probe.id.to_string(),
            kind: probe.kind,
            point,
            messages: end,
            question: probe.question.clone(),
            answerable: probe.answerable,
            literal_forms: proposed_forms(probe, &facts, session, end, bank),
            facts,
            superseded,
            reference_answer: probe.reference_answer.clone(),
            findings: findings
                .map(|finding| format!("{}: {}", finding.message, finding.help))
                .collect(),
            source: source.to_owned(),
            probe: probe.clone(),
        }
    }
}

/// Literal forms of the facts that are in no message, each with the text of the probe that would have it. With the last
/// such fact replaced, the facts of the probe are no longer paraphrases.
fn proposed_forms(
    probe: &Probe,
    places: &[FactPlace],
    SearchableFixture { fixture, history }: &SearchableFixture,
    end: usize,
    bank: &BankText,
) -> Vec<LiteralForm> {
    let facts = (0..).zip(&probe.expected_facts).zip(places);
    let missing: Vec<(usize, &Fact)> = facts
        .filter(|(_, place)| place.message.is_none())
        .map(|(fact, _)| fact)
        .collect();
    let is_last = missing.len() == 1;
    let mut proposed = Vec::new();
    for (at, fact) in missing {
        for form in literal_forms(
            fact,
            &probe.question,
            history,
            &fixture.messages,
            fixture.start()..end,
        ) {
            let Ok(edited) = bank.with_literal_form(&probe.id, at, &form, is_last) else {
                continue;
            };
            if let Some((_, source)) = edited.probe(&probe.id) {
                proposed.push(LiteralForm {
                    source: source.to_owned(),
                    form,
                });
            }
        }
    }
    proposed
}

impl FactPlace {
    fn new(
        fact: &Fact,
        SearchableFixture { fixture, history }: &SearchableFixture,
        end: usize,
    ) -> FactPlace {
        let finder = FactFinder::within(fact, history.paths());
        let mut holders = history.holders(&finder, fixture.start()..end);
        let message = holders.next();
        let others = holders.count();
        let place = FactPlace {
            spellings: fact.spellings.clone(),
            message,
            others,
            ..FactPlace::default()
        };
        let Some(holder) = message.and_then(|index| fixture.messages.get(index)) else {
            return place;
        };
        let text = holder.countable_text();
        let range = finder
            .find(&MappedFold::new(&text))
            .into_iter()
            .next()
            .unwrap_or(0..0);
        let (before, rest) = text.split_at_checked(range.start).unwrap_or(("", &text));
        let (found, after) = rest.split_at_checked(range.len()).unwrap_or(("", rest));
        let skipped = before.chars().count().saturating_sub(AROUND);
        let cut = before.char_indices().nth(skipped).map_or(0, |(at, _)| at);
        let mark = if skipped > 0 { "…" } else { "" };
        FactPlace {
            role: Some(holder.role),
            before: format!("{mark}{}", before.get(cut..).unwrap_or_default()),
            found: found.to_owned(),
            after: base::text::shortened(after, AROUND),
            ..place
        }
    }
}
