//! The proof of a bank: that its facts can be known at their point, and only from what is compressed.

use std::ops::{Range, RangeInclusive};

use super::bank_file::{ParsedBank, ProbePlaces};
use super::{Probe, ProbeType};
use base::fault::Fault;
use lexical::facts::{Fact, FactFinder, History};
use sessions::transcript::{Fixture, fold};

/// The kind of a finding about a bank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FindingKind {
    /// The fixture has no such point.
    PointOutOfRange,
    /// The fact occurs nowhere before its point, and the probe does not say that this is on purpose.
    UnprovenFact,
    /// What is said to be superseded occurs nowhere before the point.
    UnprovenSuperseded,
    /// The fact occurs in the question.
    GivenAway,
    /// The fact occurs in the messages that are shown verbatim after the point.
    InTail,
    /// The fact is so short that it occurs in many texts by chance.
    Weak,
    /// One text is both expected and superseded.
    Contradiction,
    /// Too few probes, or too many for the number of points.
    Count,
    /// Nothing is known about the right answer.
    NoTruth,
    /// The bank lacks a type of probe.
    Balance,
}

/// One finding about a bank.
pub type BankFinding = (FindingKind, Fault);

/// A finding about the bank as a whole, in the place of its first probe.
fn about_bank(bank: &ParsedBank, kind: FindingKind, message: String, help: &str) -> BankFinding {
    let first = bank.places.first();
    let place = first.map_or(0..0, |places| places.value("id"));
    (kind, Fault::at(place, message, help))
}

/// How many probes a fixture with one point should have.
const PROBES: RangeInclusive<usize> = 8..=12;

/// How many probes a fixture with this many points should have. Each further point raises the maximum by the same
/// number.
pub fn recommended_probes(points: usize) -> RangeInclusive<usize> {
    *PROBES.start()..=*PROBES.end() * points.max(1)
}

/// How many probes to ask for at each of `points` points: 8 to 12 for the fixture, but one of each type at every point.
pub fn probes_per_point(points: usize) -> RangeInclusive<usize> {
    let (points, types) = (points.max(1), ProbeType::ALL.len());
    PROBES.start().div_ceil(points).max(types)..=(*PROBES.end() / points).max(types)
}

/// Characters below which a fact is weak.
pub(super) const STRONG: usize = 3;

/// Checks `bank` against its fixture, whose messages are `history`. `verbatim_tail` says whether the answerer is
/// shown what follows the point.
pub fn check_bank(
    bank: &ParsedBank,
    fixture: &Fixture,
    history: &History,
    verbatim_tail: bool,
) -> Vec<BankFinding> {
    let points = fixture.effective_points();
    let mut findings = Vec::new();
    for (probe, places) in bank.bank.probes.iter().zip(&bank.places) {
        let number = probe.point.map_or(points.len(), |point| point.0 as usize);
        let Some(&end) = number.checked_sub(1).and_then(|index| points.get(index)) else {
            findings.push(point_out_of_range(probe, places, points.len()));
            continue;
        };
        let tail = if verbatim_tail {
            end..history.len()
        } else {
            0..0
        };
        let check = ProbeCheck {
            probe,
            places,
            history,
            prefix: fixture.start()..end,
            tail,
        };
        check.run(&mut findings);
    }
    findings.extend(balance(bank, points.len()));
    findings
}

/// In a bank whose facts may be paraphrases, marks the probes as literal whose facts all occur before their point: only
/// those with a paraphrase are unknown. What a probe says itself stays.
pub fn settle_literal(bank: &mut ParsedBank, fixture: &Fixture, history: &History) {
    if bank.bank.literal {
        return;
    }
    let points = fixture.effective_points();
    for (probe, places) in bank.bank.probes.iter_mut().zip(&bank.places) {
        let number = probe.point.map_or(points.len(), |point| point.0 as usize);
        let end = number.checked_sub(1).and_then(|index| points.get(index));
        let Some(end) = end.filter(|_| !places.values.contains_key("literal")) else {
            continue;
        };
        let finders = FactFinder::all_within(&probe.expected_facts, history.paths());
        let mut finders = finders.iter();
        probe.literal = finders.all(|fact| history.holds(fact, fixture.start()..*end));
    }
}

fn point_out_of_range(probe: &Probe, places: &ProbePlaces, points: usize) -> BankFinding {
    let number = probe.point.map_or(0, |point| point.0);
    let message = format!(
        "probe `{}` is asked at point {number}, but the fixture has {points}",
        probe.id
    );
    let help = format!("give a point from 1 to {points}, or leave it out for the last");
    let fault = Fault::at(places.value("point"), message, help);
    (FindingKind::PointOutOfRange, fault)
}

/// What is wrong with a fact: the kind, the end of a sentence about the fact, and what to do.
type FactFault = (FindingKind, String, &'static str);

/// The check of one probe.
struct ProbeCheck<'a> {
    probe: &'a Probe,
    places: &'a ProbePlaces,
    history: &'a History,
    /// The messages before its point.
    prefix: Range<usize>,
    /// The messages that are shown verbatim after it.
    tail: Range<usize>,
}

impl ProbeCheck<'_> {
    fn run(&self, findings: &mut Vec<BankFinding>) {
        if self.probe.answerable
            && self.probe.expected_facts.is_empty()
            && self.probe.reference_answer.is_none()
        {
            let message = "has neither expected facts nor a reference answer".to_owned();
            let help = "a judge grades it by the context alone; \"answerable\": false says that the transcript has no answer";
            findings.push(self.finding(
                FindingKind::NoTruth,
                self.places.value("question"),
                message,
                help,
            ));
        }
        let question = fold(&self.probe.question);
        for (index, fact) in self.probe.expected_facts.iter().enumerate() {
            let finder = FactFinder::within(fact, self.history.paths());
            let found = self.check_expected(fact, &finder, &question);
            findings.extend(found.into_iter().map(|(kind, message, help)| {
                self.finding(
                    kind,
                    self.places.fact(index),
                    format!("expected fact \"{}\" {message}", fact.name()),
                    help,
                )
            }));
        }
        for fact in &self.probe.superseded_facts {
            let found = self.check_superseded(fact);
            findings.extend(found.into_iter().map(|(kind, message, help)| {
                let place = self.places.value("superseded_facts");
                let message = format!("superseded fact \"{}\" {message}", fact.name());
                self.finding(kind, place, message, help)
            }));
        }
    }

    fn finding(
        &self,
        kind: FindingKind,
        place: Range<usize>,
        message: String,
        help: &str,
    ) -> BankFinding {
        let message = format!("probe `{}`: {message}", self.probe.id);
        (kind, Fault::at(place, message, help))
    }

    fn check_expected(&self, fact: &Fact, finder: &FactFinder, question: &str) -> Vec<FactFault> {
        let faults = [
            self.unproven(finder),
            given_away(finder, question),
            self.in_tail(finder),
            weak(finder),
            self.contradiction(fact),
        ];
        faults.into_iter().flatten().collect()
    }

    fn unproven(&self, finder: &FactFinder) -> Option<FactFault> {
        if !self.probe.literal || self.history.holds(finder, self.prefix.clone()) {
            return None;
        }
        let later = self
            .history
            .holds(finder, self.prefix.end..self.history.len());
        let message = if later {
            "occurs only after its point"
        } else {
            nowhere()
        };
        let help = "quote the transcript, add the spelling it uses, or write \"literal\": false for a paraphrase";
        Some((FindingKind::UnprovenFact, message.to_owned(), help))
    }

    fn in_tail(&self, finder: &FactFinder) -> Option<FactFault> {
        let help =
            "it is shown verbatim, so it says nothing about the compression; ask for another fact";
        let message = "also occurs in the verbatim tail";
        let is_shown = self.history.holds(finder, self.tail.clone());
        is_shown.then(|| (FindingKind::InTail, message.to_owned(), help))
    }

    fn contradiction(&self, fact: &Fact) -> Option<FactFault> {
        let help = "it is either true now or it was true once; keep one of the two";
        let message = "is also listed as superseded";
        let is_both = self.probe.superseded_facts.contains(fact);
        is_both.then(|| (FindingKind::Contradiction, message.to_owned(), help))
    }

    fn check_superseded(&self, fact: &Fact) -> Option<FactFault> {
        let known = self.history.holds(
            &FactFinder::within(fact, self.history.paths()),
            self.prefix.clone(),
        );
        let help =
            "what never occurred there cannot be carried over by mistake; quote the transcript";
        let missing = self.probe.literal && !known;
        missing.then(|| (FindingKind::UnprovenSuperseded, nowhere().to_owned(), help))
    }
}

fn given_away(finder: &FactFinder, question: &str) -> Option<FactFault> {
    let help = "ask without naming the answer; whoever repeats the question has it right";
    let message = "occurs in the question";
    finder
        .occurs_in(question)
        .then(|| (FindingKind::GivenAway, message.to_owned(), help))
}

fn weak(finder: &FactFinder) -> Option<FactFault> {
    if finder.shortest() >= STRONG {
        return None;
    }
    let help = "write what is beside it too, as in \"retries: 5\" for \"5\"";
    let message = format!("is under {STRONG} characters and may occur in any text by chance");
    Some((FindingKind::Weak, message, help))
}

fn nowhere() -> &'static str {
    "occurs nowhere before its point"
}

/// Whether the bank has enough probes, not too many, and all types. Few probes at one of several points are fine.
fn balance(bank: &ParsedBank, points: usize) -> Vec<BankFinding> {
    let probes = &bank.bank.probes;
    let wanted = recommended_probes(points);
    let count = (!wanted.contains(&probes.len())).then(|| {
        let (fewest, most) = (wanted.start(), wanted.end());
        let message = format!(
            "probes in the bank: {}; {fewest} to {most} are recommended",
            probes.len()
        );
        let help = "few probes measure little, many cost much";
        about_bank(bank, FindingKind::Count, message, help)
    });
    let absent: Vec<&str> = ProbeType::ALL
        .into_iter()
        .filter(|kind| probes.iter().all(|probe| probe.kind != *kind))
        .map(ProbeType::name)
        .collect();
    let balance = (!absent.is_empty()).then(|| {
        let message = format!("the bank has no {} probe", absent.join(", no "));
        let help = "dimensions that only such probes measure will be absent";
        about_bank(bank, FindingKind::Balance, message, help)
    });
    count.into_iter().chain(balance).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use sessions::transcript::{Message, Role};

    fn fixture() -> Fixture {
        let texts = [
            "You are an agent.",
            "port 8080 please",
            "端口改为8081，Connection refused",
            "later: tail-only",
        ];
        let mut messages: Vec<Message> = texts
            .iter()
            .map(|text| Message::text(Role::User, *text))
            .collect();
        messages[0].role = Role::System;
        serde_json::from_value(json!({"name": "f", "points": [2, 3], "messages": messages}))
            .unwrap()
    }

    fn kinds(probe: serde_json::Value, tail: bool) -> Vec<FindingKind> {
        let mut full = json!({"id": "a", "type": "recall", "question": "Which one?"});
        full.as_object_mut()
            .unwrap()
            .extend(probe.as_object().unwrap().clone());
        let text = json!({"fixture": "f", "probes": [full]}).to_string();
        let fixture = fixture();
        let bank = ParsedBank::read(&text).expect("a sound bank");
        let findings = check_bank(&bank, &fixture, &History::new(&fixture.messages), tail);
        assert!(
            findings
                .iter()
                .all(|(_, fault)| text.get(fault.place.clone()).is_some())
        );
        findings
            .into_iter()
            .map(|(kind, _)| kind)
            .filter(|kind| !matches!(kind, FindingKind::Count | FindingKind::Balance))
            .collect()
    }

    #[test]
    fn in_a_bank_of_paraphrases_only_what_is_not_quoted_is_unknown() {
        let probe = |id: &str, fact: &str| json!({"id": id, "type": "recall", "question": "Which?", "expected_facts": [fact]});
        let probes = [probe("a", "port 8080"), probe("b", "the usual port")];
        let text = json!({"fixture": "f", "literal": false, "probes": probes}).to_string();
        let mut bank = ParsedBank::read(&text).expect("a sound bank");
        let fixture = fixture();
        settle_literal(&mut bank, &fixture, &History::new(&fixture.messages));
        let literal: Vec<bool> = bank.bank.probes.iter().map(|probe| probe.literal).collect();
        assert_eq!(literal, [true, false]);
    }

    #[test]
    fn facts_before_their_point_are_proven() {
        let none: [FindingKind; 0] = [];
        assert_eq!(
            kinds(
                json!({"expected_facts": ["connection REFUSED", "端口改为8081"]}),
                false
            ),
            none
        );
        assert_eq!(
            kinds(json!({"point": 1, "expected_facts": ["port 8080"]}), false),
            none
        );
    }

    #[test]
    fn facts_only_after_their_point_in_the_system_message_or_nowhere_are_not_proven() {
        use FindingKind::UnprovenFact;
        assert_eq!(
            kinds(
                json!({"point": 1, "expected_facts": ["Connection refused"]}),
                false
            ),
            [UnprovenFact]
        );
        assert_eq!(
            kinds(json!({"expected_facts": ["You are an agent"]}), false),
            [UnprovenFact]
        );
        assert_eq!(
            kinds(json!({"expected_facts": ["paraphrased"]}), false),
            [UnprovenFact]
        );
        assert!(
            kinds(
                json!({"expected_facts": ["paraphrased"], "literal": false}),
                false
            )
            .is_empty()
        );
    }

    #[test]
    fn given_away_weak_and_repeated_facts_are_reported() {
        use FindingKind::{
            Contradiction, GivenAway, InTail, UnprovenFact, UnprovenSuperseded, Weak,
        };
        let question = "Was it Connection refused?";
        assert_eq!(
            kinds(
                json!({"question": question, "expected_facts": ["Connection refused"]}),
                false
            ),
            [GivenAway]
        );
        assert_eq!(
            kinds(json!({"expected_facts": ["为"]}), false),
            [UnprovenFact, Weak]
        );
        assert!(kinds(json!({"expected_facts": ["端口"]}), false).is_empty());
        assert_eq!(
            kinds(json!({"expected_facts": ["tail-only"]}), true),
            [UnprovenFact, InTail]
        );
        let both =
            json!({"expected_facts": ["port 8080"], "superseded_facts": ["port 8080", "port 7"]});
        assert_eq!(kinds(both, false), [Contradiction, UnprovenSuperseded]);
    }

    #[test]
    fn a_probe_about_whose_answer_nothing_is_known_is_reported() {
        assert_eq!(kinds(json!({}), false), [FindingKind::NoTruth]);
        assert!(kinds(json!({"reference_answer": "8081."}), false).is_empty());
        assert!(kinds(json!({"answerable": false}), false).is_empty());
    }

    #[test]
    fn probes_for_all_points_together_are_those_of_a_fixture_and_four_at_each() {
        let per_point = [1, 2, 3, 4, 9].map(probes_per_point);
        assert_eq!(per_point, [8..=12, 4..=6, 4..=4, 4..=4, 4..=4]);
        for (points, at_each) in (1..).zip(per_point).take(4) {
            assert!(recommended_probes(points).contains(&(at_each.start() * points)));
            assert!(recommended_probes(points).contains(&(at_each.end() * points)));
        }
    }

    #[test]
    fn a_point_the_fixture_does_not_have_is_an_error() {
        assert_eq!(
            kinds(json!({"point": 3, "expected_facts": ["x"]}), false),
            [FindingKind::PointOutOfRange]
        );
    }

    #[test]
    fn probes_are_counted_over_the_points_of_a_fixture() {
        let messages = |points: &[usize]| {
            let all = points
                .iter()
                .enumerate()
                .flat_map(|(at, count)| (0..*count).map(move |index| (at + 1, index)));
            let probes: Vec<_> = all
                .map(|(point, index)| {
                    let kind = ProbeType::ALL[index % 4].name();
                    json!({"id": format!("{point}-{index}"), "type": kind, "point": point, "question": "?",
                           "expected_facts": ["port 8080"]})
                })
                .collect();
            let text = json!({"fixture": "f", "probes": probes}).to_string();
            let (bank, fixture) = (ParsedBank::read(&text).unwrap(), fixture());
            let findings = check_bank(&bank, &fixture, &History::new(&fixture.messages), false);
            assert!(
                findings
                    .iter()
                    .all(|(_, fault)| &text[fault.place.clone()] == "\"1-0\""),
                "one line, not the probe"
            );
            findings
                .into_iter()
                .map(|(_, fault)| fault.message)
                .collect::<Vec<_>>()
        };
        assert!(
            messages(&[4, 4]).is_empty()
                && messages(&[1, 11]).is_empty()
                && messages(&[12, 12]).is_empty()
        );
        assert_eq!(
            messages(&[13, 12]),
            ["probes in the bank: 25; 8 to 24 are recommended"]
        );
        let few = messages(&[1]);
        assert_eq!(few[0], "probes in the bank: 1; 8 to 24 are recommended");
        assert_eq!(
            few[1],
            "the bank has no artifact, no continuation, no decision probe"
        );
    }
}
