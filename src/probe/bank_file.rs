//! The bank file: reading it with a place for every fault, all of them at once.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Bank, Probe, ProbeType};
use base::fault::{Fault, place_of, suggestion};
use lexical::facts::Fact;

/// A bank with the places of its probes in the text it was read from.
#[derive(Clone, Debug)]
pub struct ParsedBank {
    pub bank: Bank,
    /// The places of each probe, in the bank's order.
    pub places: Vec<ProbePlaces>,
}

/// Where a probe and its parts are: byte ranges in the file's text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProbePlaces {
    pub probe: Range<usize>,
    pub(super) values: BTreeMap<String, Range<usize>>,
    /// Its expected facts, in order.
    facts: Vec<Range<usize>>,
}

impl ProbePlaces {
    /// The value of `key`; the whole probe where it has no such key.
    pub fn value(&self, key: &str) -> Range<usize> {
        self.values.get(key).unwrap_or(&self.probe).clone()
    }

    /// The expected fact of this number, from 0.
    pub fn fact(&self, index: usize) -> Range<usize> {
        self.facts
            .get(index)
            .cloned()
            .unwrap_or_else(|| self.value("expected_facts"))
    }
}

fn shape() -> &'static str {
    "a bank is JSON: {\"fixture\": NAME, \"probes\": [{\"id\", \"type\", \"question\", \"expected_facts\"}, …]}"
}
const KEYS: [&str; 11] = [
    "id",
    "type",
    "question",
    "expected_facts",
    "reference_answer",
    "point",
    "tags",
    "superseded_facts",
    "answerable",
    "literal",
    "proof",
];

#[derive(Deserialize)]
struct BankOutline<'a> {
    #[serde(borrow)]
    probes: Vec<&'a RawValue>,
}

impl ParsedBank {
    /// Reads a bank from the text of its file.
    ///
    /// # Errors
    /// All faults: broken JSON, unknown keys and types of probes, repeated ids, empty questions and facts, a
    /// point 0, facts that an unanswerable probe cannot have.
    pub fn read(text: &str) -> Result<ParsedBank, Vec<Fault>> {
        let outline: BankOutline<'_> =
            serde_json::from_str(text).map_err(|e| vec![Fault::json(text, 0, &e, shape())])?;
        let mut faults = Vec::new();
        let mut places = Vec::new();
        let mut seen = HashSet::new();
        for raw in &outline.probes {
            places.extend(
                read_probe(text, raw.get(), &mut seen).map_err(|found| faults.extend(found)),
            );
        }
        if outline.probes.is_empty() {
            faults.push(Fault::at(
                0..text.len().min(1),
                "the bank has no probes",
                "write 8 to 12 of all four types",
            ));
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        let mut bank: Bank =
            serde_json::from_str(text).map_err(|e| vec![Fault::json(text, 0, &e, shape())])?;
        if !bank.literal {
            for (probe, places) in bank.probes.iter_mut().zip(&places) {
                probe.literal &= places.values.contains_key("literal");
            }
        }
        Ok(ParsedBank { bank, places })
    }
}

type Fields<'a> = BTreeMap<String, &'a RawValue>;

/// Checks one probe, `raw` in `text`, and returns the positions of its parts.
fn read_probe(
    text: &str,
    raw: &str,
    seen: &mut HashSet<String>,
) -> Result<ProbePlaces, Vec<Fault>> {
    let place = place_of(text, raw);
    let fields: Fields<'_> = serde_json::from_str(raw)
        .map_err(|error| vec![Fault::json(text, place.start, &error, shape())])?;
    let places = places_of(text, place.clone(), &fields);
    let mut faults = name_faults(text, &fields, &places);
    if !faults.is_empty() {
        return Err(faults);
    }
    let probe: Probe = serde_json::from_str(raw)
        .map_err(|error| vec![Fault::json(text, place.start, &error, shape())])?;
    if !seen.insert(probe.id.to_string()) {
        let message = format!("probe id `{}` is used twice", probe.id);
        let help = "ids are unique within a bank";
        faults.push(Fault::at(places.value("id"), message, help));
    }
    faults.extend(content_faults(&probe, &places));
    if faults.is_empty() {
        Ok(places)
    } else {
        Err(faults)
    }
}

fn places_of(text: &str, probe: Range<usize>, fields: &Fields<'_>) -> ProbePlaces {
    let values = fields
        .iter()
        .map(|(key, raw)| (key.clone(), place_of(text, raw.get())))
        .collect();
    let raw = fields.get("expected_facts").copied();
    let listed = raw.and_then(|raw| serde_json::from_str::<Vec<&RawValue>>(raw.get()).ok());
    // A single text is a list of one fact, too.
    let facts = listed.unwrap_or_else(|| {
        raw.filter(|raw| raw.get().starts_with('"'))
            .into_iter()
            .collect()
    });
    let facts = facts
        .into_iter()
        .map(|raw| place_of(text, raw.get()))
        .collect();
    ProbePlaces {
        probe,
        values,
        facts,
    }
}

/// Reports keys and types that no probe has, each with the nearest that one has.
fn name_faults(text: &str, fields: &Fields<'_>, places: &ProbePlaces) -> Vec<Fault> {
    let mut faults: Vec<Fault> = fields
        .keys()
        .filter(|key| !KEYS.contains(&key.as_str()))
        .map(|key| Fault::unknown_key(key_place(text, key, places), key, "a probe", &KEYS))
        .collect();
    let named = fields
        .get("type")
        .and_then(|raw| serde_json::from_str::<String>(raw.get()).ok());
    if let Some(name) = named.filter(|name| !ProbeType::ALL.iter().any(|kind| kind.name() == name))
    {
        let help = suggestion(&name, &ProbeType::ALL.map(ProbeType::name));
        faults.push(Fault::at(
            places.value("type"),
            format!("unknown probe type `{name}`"),
            help,
        ));
    }
    faults
}

/// The key itself is before its value.
fn key_place(text: &str, key: &str, places: &ProbePlaces) -> Range<usize> {
    let value = places.value(key);
    let quoted = format!("\"{key}\"");
    let before = text.get(places.probe.start..value.start).unwrap_or("");
    before.rfind(&quoted).map_or(value, |at| {
        let start = places.probe.start + at;
        start..start + quoted.len()
    })
}

fn content_faults(probe: &Probe, places: &ProbePlaces) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut fault = |place: Range<usize>, message: String, help: &str| {
        faults.push(Fault::at(place, message, help))
    };
    let id = &probe.id;
    if id.0.trim().is_empty() {
        let help = "results name probes by their ids";
        fault(places.value("id"), "a probe has an empty id".into(), help);
    }
    if probe.question.trim().is_empty() {
        let message = format!("probe `{id}` has an empty question");
        fault(places.value("question"), message, "write what is asked");
    }
    if probe.point.is_some_and(|point| point.0 == 0) {
        let help = "points count from 1: 1 is the first compression, the last is the default";
        fault(
            places.value("point"),
            format!("probe `{id}` is asked at point 0"),
            help,
        );
    }
    if !probe.answerable && !probe.expected_facts.is_empty() {
        let help = "its right answer is that the transcript does not say; remove the facts or \"answerable\": false";
        let message = format!("probe `{id}` is unanswerable, yet has expected facts");
        fault(places.value("expected_facts"), message, help);
    }
    let expected = probe
        .expected_facts
        .iter()
        .enumerate()
        .map(|(index, fact)| (places.fact(index), fact));
    let superseded = probe
        .superseded_facts
        .iter()
        .map(|fact| (places.value("superseded_facts"), fact));
    for (place, _) in expected
        .chain(superseded)
        .filter(|(_, fact)| is_blank(fact))
    {
        let message = format!("probe `{id}` has an empty fact");
        let help = "a fact is a short text, or a list of its spellings";
        fault(place, message, help);
    }
    faults
}

fn is_blank(fact: &Fact) -> bool {
    fact.spellings.is_empty()
        || fact
            .spellings
            .iter()
            .any(|spelling| spelling.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bank(probe: &str) -> String {
        format!("{{\"fixture\":\"f\",\n\"probes\":[\n{probe}\n]}}")
    }

    const SOUND: &str = r#"{"id":"a","type":"recall","question":"Which port?","expected_facts":["8081",["10 s","10s"]]}"#;

    fn faults(text: &str) -> Vec<(String, String, String)> {
        let shown = |fault: Fault| {
            (
                text[fault.place].to_owned(),
                fault.message,
                fault.help.unwrap_or_default(),
            )
        };
        ParsedBank::read(text)
            .expect_err("a fault")
            .into_iter()
            .map(shown)
            .collect()
    }

    fn only_fault(from: &str, to: &str) -> (String, String, String) {
        let text = bank(&SOUND.replace(from, to));
        let mut found = faults(&text);
        assert_eq!(found.len(), 1, "{found:?}");
        found.remove(0)
    }

    #[test]
    fn a_sound_bank_knows_where_its_facts_stand() {
        let text = bank(SOUND);
        let parsed = ParsedBank::read(&text).expect("sound");
        assert_eq!(&text[parsed.places[0].fact(1)], r#"["10 s","10s"]"#);
        assert_eq!(&text[parsed.places[0].probe.clone()], SOUND);
        assert_eq!(&text[parsed.places[0].value("point")], SOUND);
    }

    #[test]
    fn unknown_keys_and_types_are_named_with_the_nearest() {
        let (at, message, help) = only_fault("expected_facts", "expected_fact");
        assert_eq!(
            (at.as_str(), help.as_str()),
            ("\"expected_fact\"", "did you mean `expected_facts`?")
        );
        assert!(message.contains("unknown key `expected_fact`"));
        let (at, message, help) = only_fault("recall", "reccall");
        assert_eq!(
            (at.as_str(), help.as_str()),
            ("\"reccall\"", "did you mean `recall`?")
        );
        assert_eq!(message, "unknown probe type `reccall`");
    }

    #[test]
    fn what_cannot_be_graded_is_a_fault() {
        assert!(only_fault("Which port?", " ").1.contains("empty question"));
        assert!(only_fault(r#""8081""#, r#"" ""#).1.contains("empty fact"));
        assert_eq!(only_fault("\"type\"", "\"point\":0,\"type\"").0, "0");
        assert!(
            only_fault("\"type\"", "\"answerable\":false,\"type\"")
                .1
                .contains("unanswerable")
        );
        assert!(
            faults("{\"fixture\":\"f\",\"probes\":[]}")[0]
                .1
                .contains("no probes")
        );
    }

    #[test]
    fn truth_is_a_list_a_text_a_reference_answer_or_nothing() {
        let read = |facts: &str| {
            let text = bank(&SOUND.replace(r#","expected_facts":["8081",["10 s","10s"]]"#, facts));
            (ParsedBank::read(&text).expect("sound"), text)
        };
        let (parsed, text) = read(r#","expected_facts":"8081""#);
        assert_eq!(
            parsed.bank.probes[0].expected_facts,
            [Fact {
                spellings: vec!["8081".into()]
            }]
        );
        assert_eq!(&text[parsed.places[0].fact(0)], "\"8081\"");
        let (parsed, _) = read(r#","reference_answer":"It listens on 8081.""#);
        assert_eq!(parsed.bank.probes[0].expected_facts, []);
        assert_eq!(read("").0.bank.probes[0].reference_answer, None);
    }

    #[test]
    fn a_bank_says_for_its_probes_that_facts_are_paraphrases() {
        let own = SOUND
            .replace("\"a\"", "\"b\"")
            .replace("\"type\"", "\"literal\":true,\"type\"");
        let text = bank(&format!("{SOUND},\n{own}"))
            .replace("\"probes\"", "\"literal\":false,\n\"probes\"");
        let literal: Vec<bool> = ParsedBank::read(&text)
            .expect("sound")
            .bank
            .probes
            .iter()
            .map(|probe| probe.literal)
            .collect();
        assert_eq!(literal, [false, true]);
    }

    #[test]
    fn ids_are_unique_and_all_faults_come_at_once() {
        let text = bank(&format!(
            "{SOUND},\n{SOUND},\n{}",
            SOUND.replace("recall", "rumour").replace("\"a\"", "\"b\"")
        ));
        let messages: Vec<String> = faults(&text).into_iter().map(|fault| fault.1).collect();
        assert_eq!(
            messages,
            ["probe id `a` is used twice", "unknown probe type `rumour`"]
        );
    }

    #[test]
    fn broken_json_is_placed_on_its_line() {
        let text = bank("{\"id\": }");
        let found = ParsedBank::read(&text).expect_err("a fault");
        assert_eq!(text[..found[0].place.start].matches('\n').count(), 2);
        let missing = bank(&SOUND.replace("\"id\":\"a\",", ""));
        assert!(faults(&missing)[0].1.contains("missing field `id`"));
    }
}
