//! Probes from a truncated span: a model is asked for candidates, code decides which of them hold.
//!
//! Here are the prompt, the shape of the reply, its reading, and the proof: every expected fact occurs in the span word
//! for word, no question gives its answer away, none is asked twice, and no type crowds out another.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::{Range, RangeInclusive};

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::check::STRONG;
use super::{FactProof, Probe, ProbeId, ProbeType};
use crate::action::{
    BuiltInTemplate, InputValue, ModelRequest, ReplyShape, RequestTurn, Template, TemplateFault,
    Variable, Work,
};
use base::locale::Locale;
use base::text::shortened;
use base::words::sentences;
use lexical::facts::{Fact, FactFinder, History};
use models::{ModelUse, Operation, OutputSchema, ReadFault};
use sessions::transcript::{Message, Point, Role, fold};

/// The most characters of a quoted sentence.
const QUOTE: usize = 240;

/// The variables a generation prompt may use.
pub const GENERATION_VARIABLES: &[Variable] = &["transcript", "count"];

static PROMPT: BuiltInTemplate = BuiltInTemplate::new(
    include_str!("../../assets/prompts/en/probes.md"),
    include_str!("../../assets/prompts/zh/probes.md"),
    GENERATION_VARIABLES,
);

/// The generation prompt that ships with the program, in one of its languages.
pub fn generation_template(locale: Locale) -> Template {
    PROMPT.get(locale)
}

/// The shape of a reply, within the limits of the vendors' strict modes.
pub fn generation_schema() -> OutputSchema {
    let text = json!({"type": "string"});
    let probe = json!({
        "type": "object",
        "properties": {
            "type": {"type": "string", "enum": ProbeType::ALL.map(ProbeType::name)},
            "question": text,
            "expected_facts": {"type": "array", "items": text},
            "reference_answer": text,
        },
        "required": ["type", "question", "expected_facts", "reference_answer"],
        "additionalProperties": false,
    });
    let schema = json!({
        "type": "object",
        "properties": {"probes": {"type": "array", "items": probe}},
        "required": ["probes"],
        "additionalProperties": false,
    });
    OutputSchema {
        name: "probes",
        schema,
    }
}

/// The work of asking `model` for `wanted` probes about `transcript`, the rendered span.
pub fn generation_work(
    model: &ModelUse,
    template: &Template,
    transcript: InputValue,
    wanted: &RangeInclusive<usize>,
) -> Result<Work, TemplateFault> {
    let (fewest, most) = (wanted.start(), wanted.end());
    let count = if fewest == most {
        fewest.to_string()
    } else {
        format!("{fewest}–{most}")
    };
    let prompt = template.fill(
        "prompt",
        vec![("transcript", transcript), ("count", count.into())],
    )?;
    let request = ModelRequest::new(
        model,
        Operation::Generate,
        vec![RequestTurn::Text(Role::User, prompt)],
    );
    Ok(Work::request(ModelRequest {
        schema: Some(ReplyShape::new(generation_schema())),
        ..request
    }))
}

/// A probe as it was proposed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeCandidate {
    #[serde(rename = "type")]
    pub kind: ProbeType,
    pub question: String,
    /// What a right answer contains.
    #[serde(default)]
    pub expected_facts: Vec<String>,
    /// A model answer; empty if there is none.
    #[serde(default)]
    pub reference_answer: String,
}

pub(super) fn candidate(
    kind: ProbeType,
    question: impl Into<String>,
    facts: Vec<String>,
    reference: &str,
) -> ProbeCandidate {
    ProbeCandidate {
        kind,
        question: question.into(),
        expected_facts: facts,
        reference_answer: reference.to_owned(),
    }
}

#[derive(Deserialize)]
struct GeneratorReply {
    probes: Vec<serde_json::Value>,
}

/// Reads a reply: one JSON object, alone or in a fence. Entries that are not candidates are left out and counted.
pub fn read_candidates(reply: &str) -> Result<(Vec<ProbeCandidate>, usize), ReadFault> {
    if reply.trim().is_empty() {
        return Err(ReadFault::Empty);
    }
    let (start, end) = (reply.find('{'), reply.rfind('}'));
    let object = start
        .zip(end)
        .and_then(|(start, end)| reply.get(start..=end))
        .unwrap_or(reply);
    let read: GeneratorReply = serde_json::from_str(object).map_err(|error| {
        ReadFault::Malformed(format!(
            "expected one JSON object with a list `probes`: {error}"
        ))
    })?;
    let total = read.probes.len();
    let candidates: Vec<ProbeCandidate> = read
        .probes
        .into_iter()
        .filter_map(|probe| serde_json::from_value(probe).ok())
        .collect();
    let unreadable = total - candidates.len();
    Ok((candidates, unreadable))
}

/// Why a candidate is dropped that nothing is wrong with.
const SURPLUS: &str = "there are enough of its type";

/// The candidates that hold, and those that do not.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CandidateVerdicts {
    /// The probes that hold, type by type.
    pub kept: Vec<Probe>,
    /// The candidates that were dropped, and why.
    pub dropped: Vec<(ProbeCandidate, String)>,
    /// Types without a probe.
    pub missing: Vec<ProbeType>,
}

/// Decides which candidates hold against `span`, the messages of `history` that they are about. The whole history
/// decides whether a name is unique, as in [`super::check_bank`]. `known` are existing probes, of this and other
/// points; at most `most` new ones are asked at `point`.
pub fn verify(
    candidates: Vec<ProbeCandidate>,
    history: &History,
    span: Range<usize>,
    point: Point,
    most: usize,
    known: &[Probe],
) -> CandidateVerdicts {
    let of_one_type = most.div_ceil(ProbeType::ALL.len());
    let known = known.iter().flat_map(|probe| {
        let facts = probe.expected_facts.iter().map(Fact::name);
        own_texts(&probe.question, facts)
    });
    let mut taken: HashSet<String> = known.collect();
    let mut kept: Vec<ProbeCandidate> = Vec::new();
    let mut verified = CandidateVerdicts::default();
    for candidate in candidates {
        let is_surplus = count_of(candidate.kind, &kept) >= of_one_type;
        let facts = candidate.expected_facts.iter().map(String::as_str);
        let own = own_texts(&candidate.question, facts);
        let is_repeated = own.iter().any(|text| taken.contains(text));
        let rejection = rejection_reason(&candidate, history, span.clone())
            .or_else(|| is_surplus.then(|| SURPLUS.to_owned()))
            .or_else(|| is_repeated.then(|| "it repeats another probe".to_owned()));
        match rejection {
            Some(why) => verified.dropped.push((candidate, why)),
            None => {
                taken.extend(own);
                kept.push(candidate);
            }
        }
    }
    kept.sort_by_key(|candidate| candidate.kind);
    // The last ones of the types that have the most go first.
    while kept.len() > most {
        let kind = ProbeType::ALL
            .into_iter()
            .max_by_key(|kind| count_of(*kind, &kept));
        let Some(at) = kept.iter().rposition(|one| Some(one.kind) == kind) else {
            break;
        };
        verified.dropped.push((kept.remove(at), SURPLUS.to_owned()));
    }
    let missing = ProbeType::ALL.into_iter();
    verified.missing = missing.filter(|kind| count_of(*kind, &kept) == 0).collect();
    verified.kept = numbered(kept, point);
    verified
}

/// The probes of candidates, type by type numbered from 1.
fn numbered(candidates: Vec<ProbeCandidate>, point: Point) -> Vec<Probe> {
    let mut numbers: BTreeMap<ProbeType, usize> = BTreeMap::new();
    let probes = candidates.into_iter().map(|candidate| {
        let number = numbers.entry(candidate.kind).or_default();
        *number += 1;
        probe_from_candidate(candidate, *number, point)
    });
    probes.collect()
}

fn count_of(kind: ProbeType, candidates: &[ProbeCandidate]) -> usize {
    candidates.iter().filter(|one| one.kind == kind).count()
}

fn rejection_reason(
    candidate: &ProbeCandidate,
    history: &History,
    span: Range<usize>,
) -> Option<String> {
    if candidate.question.trim().is_empty() {
        return Some("it asks nothing".to_owned());
    }
    if candidate
        .expected_facts
        .iter()
        .all(|fact| fact.trim().is_empty())
    {
        return Some("it expects no fact".to_owned());
    }
    let question = fold(&candidate.question);
    candidate.expected_facts.iter().find_map(|fact| {
        let finder = FactFinder::within(&Fact::new(fact.as_str()), history.paths());
        if !history.holds(&finder, span.clone()) {
            Some(format!("the fact \"{fact}\" does not occur in the span"))
        } else if fact.contains("REDACTED_") {
            Some(format!("the fact \"{fact}\" is what a scrubber left"))
        } else if finder.occurs_in(&question) {
            Some(format!("the question gives the fact \"{fact}\" away"))
        } else {
            (finder.shortest() < STRONG)
                .then(|| format!("the fact \"{fact}\" is too short to mean anything"))
        }
    })
}

fn probe_from_candidate(candidate: ProbeCandidate, number: usize, point: Point) -> Probe {
    let id = format!("p{}-{}-{number}", point.0, candidate.kind.name());
    let reference = candidate.reference_answer.trim().to_owned();
    Probe {
        id: ProbeId(id.into()),
        kind: candidate.kind,
        question: candidate.question.trim().to_owned(),
        expected_facts: candidate
            .expected_facts
            .into_iter()
            .map(Fact::new)
            .collect(),
        reference_answer: Some(reference).filter(|reference| !reference.is_empty()),
        point: Some(point),
        tags: vec!["generated".to_owned()],
        superseded_facts: Vec::new(),
        answerable: true,
        literal: true,
        proof: Vec::new(),
    }
}

/// The first sentence among the `messages` of `span` that has each fact of a probe. A fact that is cut by the end of a
/// sentence is quoted with its whole message.
pub fn proof_of(
    probe: &Probe,
    messages: &[Message],
    history: &History,
    span: Range<usize>,
) -> Vec<FactProof> {
    let proofs = probe.expected_facts.iter().filter_map(|fact| {
        let finder = FactFinder::within(fact, history.paths());
        let message = history.holders(&finder, span.clone()).next()?;
        let text = messages.get(message)?.countable_text();
        let quote = sentences(&text)
            .find(|sentence| finder.occurs_in(&fold(sentence)))
            .unwrap_or(&text);
        Some(FactProof {
            message,
            quote: shortened(quote, QUOTE),
        })
    });
    proofs.collect()
}

/// What no other probe may have: its question, and its facts on lines of their own, since a folded text has no line break.
fn own_texts<'a>(question: &str, facts: impl Iterator<Item = &'a str>) -> [String; 2] {
    let facts: BTreeSet<String> = facts.map(fold).collect();
    let facts = Vec::from_iter(facts).join("\n");
    [fold(question), format!("\n{facts}")]
}

#[cfg(test)]
mod tests {
    use super::*;
    use sessions::transcript::Message;
    use std::convert::Infallible;

    fn candidate(kind: ProbeType, question: &str, facts: &[&str]) -> ProbeCandidate {
        let expected_facts = facts.iter().map(|fact| (*fact).to_owned()).collect();
        ProbeCandidate {
            kind,
            question: question.into(),
            expected_facts,
            reference_answer: String::new(),
        }
    }

    #[test]
    fn what_does_not_hold_is_dropped_with_its_reason() {
        let span = [Message::text(
            Role::User,
            "The port is 8081, moved from 8080 because nginx had it. Use 15 workers, REDACTED_SECRET_2.",
        )];
        let recall = |question: &str, facts: &[&str]| candidate(ProbeType::Recall, question, facts);
        let list = vec![
            recall("Which port?", &["8081"]),
            recall("which  PORT?", &["nginx"]),
            recall("Which port was it?", &["808"]),
            recall("Was it moved from 8080?", &["8080"]),
            recall("How many?", &["15"]),
            recall("Which key?", &["REDACTED_SECRET_2"]),
            recall(" ", &["nginx"]),
            recall("Why?", &[]),
            candidate(ProbeType::Decision, "Why was it moved?", &["nginx had it"]),
        ];
        let verified = verify(list, &History::new(&span), 0..1, Point(2), 12, &[]);
        let kept: Vec<String> = verified
            .kept
            .iter()
            .map(|probe| probe.id.to_string())
            .collect();
        assert_eq!(kept, ["p2-recall-1", "p2-decision-1"]);
        let why: Vec<String> = verified.dropped.into_iter().map(|(_, why)| why).collect();
        let expected = [
            "it repeats another probe",
            "the fact \"808\" does not occur in the span",
            "the question gives the fact \"8080\" away",
            "the fact \"15\" is too short to mean anything",
            "the fact \"REDACTED_SECRET_2\" is what a scrubber left",
            "it asks nothing",
            "it expects no fact",
        ];
        assert_eq!(why, expected);
        assert_eq!(
            verified.missing,
            [ProbeType::Artifact, ProbeType::Continuation]
        );
    }

    #[test]
    fn no_type_crowds_out_another_and_known_probes_are_not_repeated() {
        let span = [Message::text(Role::User, "alpha beta gamma delta epsilon")];
        let list: Vec<ProbeCandidate> = ["alpha", "beta", "gamma", "delta", "epsilon"]
            .map(|fact| {
                candidate(
                    ProbeType::Recall,
                    &format!("Which letter comes at {}?", fact.len()),
                    &[fact],
                )
            })
            .to_vec();
        let once = verify(list.clone(), &History::new(&span), 0..1, Point(1), 12, &[]);
        assert_eq!(once.kept.len(), 3);
        let again = verify(list, &History::new(&span), 0..1, Point(1), 12, &once.kept);
        assert!(again.kept.iter().all(|probe| {
            !once
                .kept
                .iter()
                .any(|known| known.question == probe.question)
        }));
    }

    #[test]
    fn each_type_is_there_where_a_point_gets_few_probes() {
        let words = [
            "alpha", "beta", "gamma", "delta", "epsilon", "lambda", "omicron", "upsilon",
        ];
        let span = [Message::text(Role::User, words.join(" "))];
        let ask = |(index, fact): (usize, &&str)| {
            candidate(
                ProbeType::ALL[index / 2],
                &format!("Which {index}?"),
                &[fact],
            )
        };
        let list = || words.iter().enumerate().map(ask).collect::<Vec<_>>();
        let kept = |most: usize| {
            let verified = verify(list(), &History::new(&span), 0..1, Point(1), most, &[]);
            assert_eq!(verified.kept.len() + verified.dropped.len(), words.len());
            (verified.kept.len(), verified.missing)
        };
        assert_eq!(
            [kept(4), kept(6), kept(12)],
            [(4, vec![]), (6, vec![]), (8, vec![])]
        );
    }

    #[test]
    fn a_reply_is_read_with_or_without_a_fence() {
        let reply = "```json\n{\"probes\":[{\"type\":\"recall\",\"question\":\"q\",\"expected_facts\":[\"f\"],\"reference_answer\":\"\"},{\"type\":\"rumour\"}]}\n```";
        let (candidates, unreadable) = read_candidates(reply).expect("reads");
        assert_eq!((candidates.len(), unreadable), (1, 1));
        assert!(matches!(
            read_candidates("no JSON"),
            Err(ReadFault::Malformed(_))
        ));
        assert_eq!(read_candidates(" "), Err(ReadFault::Empty));
    }

    #[test]
    fn both_prompts_hold_the_transcript() {
        for locale in [Locale::En, Locale::Zh] {
            let prompt = generation_template(locale)
                .fill("prompt", vec![("transcript", "T-R-A-N".into())])
                .expect("fills");
            let text = prompt
                .text(&|_| Ok::<_, Infallible>("".into()))
                .expect("text");
            assert!(text.contains("T-R-A-N") && text.contains("expected_facts"));
        }
    }
}
