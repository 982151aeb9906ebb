//! Edits of a bank's file that leave the rest of its text as it was written.

use std::ops::Range;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::bank_file::ParsedBank;
use super::{Probe, ProbeId};
use base::fault::{Fault, place_of};

/// The text of a bank's file, and the bank in it. Each edit returns a text that was read again, so none can break it.
#[derive(Clone, Debug)]
pub struct BankText {
    text: String,
    parsed: ParsedBank,
}

/// The keys beside the probes.
#[derive(Deserialize)]
struct BankHeader<'a> {
    #[serde(borrow)]
    fixture: &'a RawValue,
    #[serde(borrow, default)]
    reviewed: Option<&'a RawValue>,
}

impl BankText {
    /// Reads the text of a bank's file.
    ///
    /// # Errors
    /// All faults of [`ParsedBank::read`].
    pub fn read(text: String) -> Result<BankText, Vec<Fault>> {
        let parsed = ParsedBank::read(&text)?;
        Ok(BankText { text, parsed })
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn parsed(&self) -> &ParsedBank {
        &self.parsed
    }

    /// The probe with this id, and its text in the file.
    pub fn probe(&self, id: &ProbeId) -> Option<(&Probe, &str)> {
        let at = self.index(id)?;
        let place = self.parsed.places.get(at)?.probe.clone();
        Some((self.parsed.bank.probes.get(at)?, self.text.get(place)?))
    }

    /// The bank in which a person has reviewed this probe.
    ///
    /// # Errors
    /// The text cannot be read again, which would be a mistake of this program.
    pub fn with_reviewed(&self, id: &ProbeId) -> Result<BankText, Vec<Fault>> {
        if self.parsed.bank.reviewed.contains(id) {
            return Ok(self.clone());
        }
        let quoted = serde_json::Value::from(&*id.0).to_string();
        let head: BankHeader<'_> = serde_json::from_str(&self.text)
            .map_err(|e| vec![Fault::json(&self.text, 0, &e, "")])?;
        let (at, words) = match head.reviewed {
            Some(list) => {
                let ids: Vec<&RawValue> = serde_json::from_str(list.get())
                    .map_err(|e| vec![Fault::json(&self.text, 0, &e, "")])?;
                match ids.last().map(|last| self.place(last)) {
                    Some(last) => (
                        last.end,
                        format!(",{}{quoted}", self.blanks_before(last.start)),
                    ),
                    // Right after the bracket of the empty list.
                    None => (self.place(list).start + 1, quoted),
                }
            }
            None => {
                let fixture = self.place(head.fixture);
                let key = self
                    .text
                    .get(..fixture.start)
                    .and_then(|text| text.rfind("\"fixture\""));
                let blanks = key.map_or("", |key| self.blanks_before(key));
                (fixture.end, format!(",{blanks}\"reviewed\": [{quoted}]"))
            }
        };
        let mut text = self.text.clone();
        text.insert_str(at, &words);
        BankText::read(text)
    }

    /// The bytes of a value that was read from the text.
    fn place(&self, raw: &RawValue) -> Range<usize> {
        place_of(&self.text, raw.get())
    }

    /// The bank with another text in place of this probe's, indented like it.
    ///
    /// # Errors
    /// What is wrong with that text.
    pub fn with_probe(&self, id: &ProbeId, json: &str) -> Result<BankText, Vec<Fault>> {
        let Some(place) = self.index(id).and_then(|at| self.parsed.places.get(at)) else {
            return Ok(self.clone());
        };
        let indent = self.blanks_before(place.probe.start);
        let indent = format!("\n{}", indent.rsplit('\n').next().unwrap_or_default());
        let json = json.trim();
        let is_indented = json.matches('\n').count() == json.matches(&indent).count();
        let json = if is_indented {
            json.to_owned()
        } else {
            json.replace('\n', &indent)
        };
        self.replace_range(place.probe.clone(), &json)
    }

    /// The bank in which `form` is the first spelling of a fact of this probe. `is_literal` says whether all facts
    /// have such a form now, so that they are no longer paraphrases.
    ///
    /// # Errors
    /// The text cannot be read again, which would be a mistake of this program.
    pub fn with_literal_form(
        &self,
        id: &ProbeId,
        fact: usize,
        form: &str,
        is_literal: bool,
    ) -> Result<BankText, Vec<Fault>> {
        let Some((probe, places)) = self.index(id).and_then(|at| {
            Some((
                self.parsed.bank.probes.get(at)?,
                self.parsed.places.get(at)?,
            ))
        }) else {
            return Ok(self.clone());
        };
        let spellings = probe
            .expected_facts
            .get(fact)
            .into_iter()
            .flat_map(|fact| &fact.spellings)
            .map(String::as_str);
        let spellings =
            serde_json::json!(std::iter::once(form).chain(spellings).collect::<Vec<_>>());
        let (list, place) = (places.value("expected_facts"), places.fact(fact));
        // A single text is a list of one fact, too.
        let facts = if list == place {
            format!("[{spellings}]")
        } else {
            spellings.to_string()
        };
        let mut text = self.text.clone();
        if is_literal && !probe.literal {
            match places.value("literal") {
                stated if stated != places.probe && stated.start > list.end => {
                    text.replace_range(stated, "true")
                }
                stated if stated == places.probe => {
                    text.insert_str(list.end, ", \"literal\": true")
                }
                // What is before the facts is edited last, so that their place stays.
                stated => {
                    text.replace_range(place, &facts);
                    text.replace_range(stated, "true");
                    return BankText::read(text);
                }
            }
        }
        text.replace_range(place, &facts);
        BankText::read(text)
    }

    /// The bank without this probe.
    ///
    /// # Errors
    /// It is the last one.
    pub fn without_probe(&self, id: &ProbeId) -> Result<BankText, Vec<Fault>> {
        let Some(at) = self.index(id) else {
            return Ok(self.clone());
        };
        let places = &self.parsed.places;
        let Some(probe) = places.get(at).map(|place| place.probe.clone()) else {
            return Ok(self.clone());
        };
        let before = at.checked_sub(1).and_then(|before| places.get(before));
        // A comma is removed, too: the one before the probe, or the one after the first.
        let with_comma = match (before, places.get(at + 1)) {
            (Some(before), _) => before.probe.end..probe.end,
            (None, Some(next)) => probe.start..next.probe.start,
            (None, None) => probe,
        };
        self.replace_range(with_comma, "")
    }

    fn replace_range(&self, place: Range<usize>, words: &str) -> Result<BankText, Vec<Fault>> {
        let mut text = self.text.clone();
        text.replace_range(place, words);
        BankText::read(text)
    }

    fn index(&self, id: &ProbeId) -> Option<usize> {
        self.parsed
            .bank
            .probes
            .iter()
            .position(|probe| probe.id == *id)
    }

    /// The white space before a byte of the text.
    fn blanks_before(&self, at: usize) -> &str {
        let before = self.text.get(..at).unwrap_or_default();
        before.get(before.trim_end().len()..).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BANK: &str = r#"{
  "fixture": "f",
  "probes": [
    {"id": "a", "type": "recall", "question": "A?",   "expected_facts": ["1"]},
    {
      "id": "b",
      "type": "recall", "question": "B?", "expected_facts": ["2"]
    }
  ]
}
"#;

    fn id(name: &str) -> ProbeId {
        ProbeId(name.into())
    }

    fn bank() -> BankText {
        BankText::read(BANK.to_owned()).expect("sound")
    }

    #[test]
    fn a_mark_is_added_and_all_else_stays() {
        let once = bank().with_reviewed(&id("b")).expect("sound");
        assert_eq!(
            once.text(),
            BANK.replace("\"f\",", "\"f\",\n  \"reviewed\": [\"b\"],")
        );
        let twice = once.with_reviewed(&id("a")).expect("sound");
        assert!(
            twice.text().contains("\"reviewed\": [\"b\",\"a\"],"),
            "{}",
            twice.text()
        );
        assert_eq!(twice.parsed().bank.reviewed, [id("b"), id("a")]);
        assert_eq!(
            twice.with_reviewed(&id("a")).expect("sound").text(),
            twice.text()
        );
        let listed = BANK.replace("\"f\",", "\"f\",\n  \"reviewed\": [\n    \"x\"\n  ],");
        let listed = BankText::read(listed)
            .and_then(|bank| bank.with_reviewed(&id("a")))
            .expect("sound");
        assert!(
            listed.text().contains("    \"x\",\n    \"a\"\n  ],"),
            "{}",
            listed.text()
        );
        let empty = BANK
            .replace("[\"1\"]", "[\"reviewed\"]")
            .replace("  ]\n}", "  ],\n  \"reviewed\": []\n}");
        let marked = BankText::read(empty)
            .and_then(|bank| bank.with_reviewed(&id("a")))
            .expect("sound");
        assert!(
            marked
                .text()
                .ends_with("  ],\n  \"reviewed\": [\"a\"]\n}\n"),
            "{}",
            marked.text()
        );
    }

    #[test]
    fn a_probe_is_replaced_in_its_place_or_refused() {
        let edited = bank().with_probe(
            &id("b"),
            "{\n  \"id\": \"b\", \"type\": \"recall\",\n  \"question\": \"C?\", \"expected_facts\": [\"3\"]\n}\n",
        );
        let edited = edited.expect("sound");
        assert!(
            edited.text().contains("\n    {\n      \"id\": \"b\""),
            "{}",
            edited.text()
        );
        assert_eq!(edited.probe(&id("b")).expect("a probe").0.question, "C?");
        assert!(
            edited.text().contains("\"A?\",   \"expected_facts\""),
            "{}",
            edited.text()
        );
        let refused = bank()
            .with_probe(&id("b"), r#"{"id": "a", "type": "recal", "question": "?"}"#)
            .expect_err("a fault");
        assert!(
            refused.iter().any(|fault| fault.message.contains("recal")),
            "{refused:?}"
        );
    }

    #[test]
    fn a_literal_form_becomes_the_first_spelling_and_ends_the_paraphrase() {
        let bank = BANK.replace(
            "\"fixture\": \"f\",",
            "\"fixture\": \"f\", \"literal\": false,",
        );
        let single = bank.replace("[\"1\"]", "\"1\"").replace(
            "\"question\": \"A?\"",
            "\"literal\": false, \"question\": \"A?\"",
        );
        let single = BankText::read(single)
            .and_then(|bank| bank.with_literal_form(&id("a"), 0, "one", true))
            .expect("sound");
        assert_eq!(
            single.probe(&id("a")).expect("a probe").0.expected_facts[0].spellings,
            ["one", "1"]
        );
        assert!(single.probe(&id("a")).expect("a probe").0.literal);
        let edited = BankText::read(bank)
            .and_then(|bank| bank.with_literal_form(&id("a"), 0, "one", true))
            .expect("sound");
        let (probe, _) = edited.probe(&id("a")).expect("a probe");
        assert_eq!(
            (probe.expected_facts[0].spellings.as_slice(), probe.literal),
            (["one".to_owned(), "1".to_owned()].as_slice(), true)
        );
        assert!(!edited.probe(&id("b")).expect("a probe").0.literal);
    }

    #[test]
    fn a_probe_is_removed_with_its_comma_and_the_last_one_stays() {
        let first = bank().without_probe(&id("a")).expect("sound");
        assert!(
            first
                .text()
                .contains("\"probes\": [\n    {\n      \"id\": \"b\""),
            "{}",
            first.text()
        );
        let second = bank().without_probe(&id("b")).expect("sound");
        assert!(
            second.text().ends_with("[\"1\"]}\n  ]\n}\n"),
            "{}",
            second.text()
        );
        assert!(second.without_probe(&id("a")).is_err());
    }
}
