//! The rubric file: reading it with a place for every fault, all of them at once.

use std::collections::HashSet;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::criterion::{Anchors, Criterion, CriterionId, Dimension};
use crate::probe::ProbeType;
use base::fault::{Fault, suggestion};

const KEYS: [&str; 7] = [
    "id",
    "name",
    "dimension",
    "weight",
    "applies_to",
    "question",
    "anchors",
];
const ANCHORS: [&str; 3] = ["0", "3", "5"];

/// Reads the criteria of a rubric file.
pub(super) fn read(text: &str) -> Result<Vec<Criterion>, Vec<Fault>> {
    let table = DeTable::parse(text).map_err(|error| vec![syntax_fault(text, &error)])?;
    let mut reader = RubricReader { faults: Vec::new() };
    let mut criteria = Vec::new();
    let mut found = false;
    for (key, value) in table.get_ref() {
        if key.get_ref() == "criteria" {
            found = true;
            criteria = reader.read_criteria(value);
        } else {
            reader.faults.push(Fault::unknown_key(
                key.span(),
                key.get_ref(),
                "a rubric",
                &["criteria"],
            ));
        }
    }
    if !found {
        let start = 0..text.len().min(1);
        reader.report(
            start,
            "the rubric has no criteria",
            "write one [[criteria]] table for each criterion",
        );
    } else if reader.faults.is_empty() {
        reader.faults.extend(uncovered(&criteria));
    }
    if reader.faults.is_empty() {
        Ok(criteria)
    } else {
        Err(reader.faults)
    }
}

fn syntax_fault(text: &str, error: &toml::de::Error) -> Fault {
    let place = error.span().unwrap_or(0..text.len().min(1));
    Fault::at(
        place,
        error.message(),
        "a rubric is TOML with one [[criteria]] table for each criterion",
    )
}

/// Probe types that no criterion applies to: their probes could not be graded at all.
fn uncovered(criteria: &[Criterion]) -> Vec<Fault> {
    let bare = ProbeType::ALL
        .into_iter()
        .filter(|kind| !criteria.iter().any(|c| c.applies_to.contains(kind)));
    let faults = bare.map(|kind| {
        let message = format!("no criterion applies to {} probes", kind.name());
        Fault::at(
            0..0,
            message,
            "leave `applies_to` out of a criterion that applies to every type",
        )
    });
    faults.collect()
}

struct RubricReader {
    faults: Vec<Fault>,
}

type TomlValue<'a> = Spanned<DeValue<'a>>;

impl RubricReader {
    fn report(&mut self, place: Range<usize>, message: impl Into<String>, help: &str) {
        self.faults.push(Fault::at(place, message, help));
    }

    fn read_criteria(&mut self, value: &TomlValue<'_>) -> Vec<Criterion> {
        let Some(items) = value.get_ref().as_array() else {
            self.report(
                value.span(),
                "`criteria` is not a list of tables",
                "write [[criteria]] before each criterion",
            );
            return Vec::new();
        };
        if items.is_empty() {
            self.report(
                value.span(),
                "the rubric has no criteria",
                "write one [[criteria]] table for each criterion",
            );
        }
        let mut seen = HashSet::new();
        items
            .iter()
            .filter_map(|item| self.read_criterion(item, &mut seen))
            .collect()
    }

    fn read_criterion(
        &mut self,
        item: &TomlValue<'_>,
        seen: &mut HashSet<String>,
    ) -> Option<Criterion> {
        let place = item.span();
        let Some(table) = item.get_ref().as_table() else {
            self.report(
                place,
                "a criterion is not a table",
                "write [[criteria]] before each criterion",
            );
            return None;
        };
        self.report_unknown_keys(table, "a criterion", &KEYS);
        let id = self.read_text(table, "id", &place);
        if let Some(id) = &id
            && !seen.insert(id.to_lowercase())
        {
            let at = find(table, "id").map_or(place.clone(), TomlValue::span);
            self.report(
                at,
                format!("criterion id `{id}` is used twice"),
                "ids are unique within a rubric",
            );
        }
        let name = if find(table, "name").is_some() {
            self.read_text(table, "name", &place)
        } else {
            id.clone()
        };
        let dimension = self.read_dimension(table, &place);
        let weight = self.read_weight(table, &place);
        let applies_to = self.read_applies_to(table);
        let question = self.read_text(table, "question", &place);
        let anchors = self.read_anchors(table, &place);
        Some(Criterion {
            id: CriterionId::from(id?.as_str()),
            name: name?,
            dimension: dimension?,
            weight: weight?,
            applies_to: applies_to?,
            question: question?,
            anchors: anchors?,
        })
    }

    fn report_unknown_keys(&mut self, table: &DeTable<'_>, of: &str, known: &[&str]) {
        for key in table
            .keys()
            .filter(|key| !known.contains(&key.get_ref().as_ref()))
        {
            self.faults
                .push(Fault::unknown_key(key.span(), key.get_ref(), of, known));
        }
    }

    /// A text that must be there and must not be blank.
    fn read_text(
        &mut self,
        table: &DeTable<'_>,
        key: &str,
        owner: &Range<usize>,
    ) -> Option<String> {
        let Some(value) = find(table, key) else {
            self.report(
                owner.clone(),
                format!("`{key}` is missing"),
                "every criterion needs it",
            );
            return None;
        };
        match value.get_ref().as_str() {
            Some(text) if !text.trim().is_empty() => Some(text.to_owned()),
            Some(_) => {
                self.report(
                    value.span(),
                    format!("`{key}` is empty"),
                    "the judge reads this text: say what is meant",
                );
                None
            }
            None => {
                let found = value.get_ref().type_str();
                self.report(
                    value.span(),
                    format!("`{key}` is a {found}, expected a text"),
                    "put it in quotes",
                );
                None
            }
        }
    }

    fn read_dimension(&mut self, table: &DeTable<'_>, owner: &Range<usize>) -> Option<Dimension> {
        let text = self.read_text(table, "dimension", owner)?;
        let known = Dimension::ALL
            .iter()
            .find(|dimension| dimension.name() == text);
        if known.is_none() {
            let at = find(table, "dimension").map_or(owner.clone(), TomlValue::span);
            let help = suggestion(&text, &Dimension::ALL.map(Dimension::name));
            self.report(at, format!("unknown dimension `{text}`"), &help);
        }
        known.copied()
    }

    fn read_weight(&mut self, table: &DeTable<'_>, owner: &Range<usize>) -> Option<f64> {
        let help = "a weight is a number above 0; leave a criterion out rather than weigh it 0";
        let Some(value) = find(table, "weight") else {
            self.report(owner.clone(), "`weight` is missing", help);
            return None;
        };
        let number = match value.get_ref() {
            DeValue::Float(float) => float.as_str().parse::<f64>().ok(),
            DeValue::Integer(integer) => i64::from_str_radix(integer.as_str(), integer.radix())
                .ok()
                .map(|n| n as f64),
            _ => None,
        };
        let sound = number.filter(|weight| weight.is_finite() && *weight > 0.0);
        if sound.is_none() {
            let message = match number {
                Some(weight) => format!("weight {weight} is not above 0 and finite"),
                None => "`weight` is not a number".to_owned(),
            };
            self.report(value.span(), message, help);
        }
        sound
    }

    /// The types listed; all of them where the key is absent.
    fn read_applies_to(&mut self, table: &DeTable<'_>) -> Option<Vec<ProbeType>> {
        let Some(value) = find(table, "applies_to") else {
            return Some(ProbeType::ALL.to_vec());
        };
        let items = value.get_ref().as_array().filter(|items| !items.is_empty());
        let Some(items) = items else {
            let help = "list probe types, as in [\"recall\", \"artifact\"], or leave the key out for all four";
            self.report(
                value.span(),
                "`applies_to` is not a list of probe types",
                help,
            );
            return None;
        };
        let kinds: Vec<Option<ProbeType>> = items
            .iter()
            .map(|item| self.read_probe_type(item))
            .collect();
        kinds.into_iter().collect()
    }

    fn read_probe_type(&mut self, item: &TomlValue<'_>) -> Option<ProbeType> {
        let text = item.get_ref().as_str().unwrap_or("");
        let known = ProbeType::ALL.into_iter().find(|kind| kind.name() == text);
        if known.is_none() {
            let help = suggestion(text, &ProbeType::ALL.map(ProbeType::name));
            self.report(item.span(), format!("unknown probe type `{text}`"), &help);
        }
        known
    }

    fn read_anchors(&mut self, table: &DeTable<'_>, owner: &Range<usize>) -> Option<Anchors> {
        let help = "write the texts of 0, 3 and 5 under [criteria.anchors]";
        let Some(value) = find(table, "anchors") else {
            self.report(owner.clone(), "`anchors` is missing", help);
            return None;
        };
        let Some(anchors) = value.get_ref().as_table() else {
            self.report(value.span(), "`anchors` is not a table", help);
            return None;
        };
        self.report_unknown_keys(anchors, "anchors", &ANCHORS);
        let [zero, three, five] = ANCHORS.map(|key| self.read_text(anchors, key, &value.span()));
        Some(Anchors {
            zero: zero?,
            three: three?,
            five: five?,
        })
    }
}

fn find<'t, 'a>(table: &'t DeTable<'a>, key: &str) -> Option<&'t TomlValue<'a>> {
    table
        .iter()
        .find(|(name, _)| name.get_ref() == key)
        .map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOUND: &str = r#"[[criteria]]
id = "right"
dimension = "accuracy"
weight = 1
question = "Is it right?"
anchors = { 0 = "no", 3 = "nearly", 5 = "yes" }
"#;

    /// The faults as (text at the place, message, help).
    fn faults(text: &str) -> Vec<(String, String, String)> {
        let shown = |fault: Fault| {
            (
                text[fault.place].to_owned(),
                fault.message,
                fault.help.unwrap_or_default(),
            )
        };
        read(text)
            .expect_err("a fault")
            .into_iter()
            .map(shown)
            .collect()
    }

    fn only_fault(from: &str, to: &str) -> (String, String, String) {
        let text = SOUND.replace(from, to);
        assert_ne!(text, SOUND);
        let mut found = faults(&text);
        assert_eq!(found.len(), 1, "{found:?}");
        found.remove(0)
    }

    #[test]
    fn a_sound_rubric_applies_to_all_types_and_takes_its_id_for_a_name() {
        let criteria = read(SOUND).expect("sound");
        assert_eq!(criteria[0].applies_to, ProbeType::ALL);
        assert_eq!(criteria[0].name, "right");
    }

    #[test]
    fn weights_must_be_finite_and_above_zero() {
        for weight in ["0", "0.0", "-0.5", "nan", "inf", "\"heavy\""] {
            let (at, message, _) = only_fault("weight = 1", &format!("weight = {weight}"));
            assert_eq!(at, weight);
            assert!(message.contains("weight"), "{message}");
        }
    }

    #[test]
    fn slips_are_named_with_what_was_probably_meant() {
        let (at, message, help) = only_fault("weight = 1", "weight = 1\nquestions = \"x\"");
        assert_eq!(
            (at.as_str(), help.as_str()),
            ("questions", "did you mean `question`?")
        );
        assert!(message.contains("unknown key"));
        let (at, _, help) = only_fault("\"accuracy\"", "\"accurracy\"");
        assert_eq!(
            (at.as_str(), help.as_str()),
            ("\"accurracy\"", "did you mean `accuracy`?")
        );
        let (_, message, help) = only_fault(
            "weight = 1",
            "weight = 1\napplies_to = [\"recal\", \"decision\"]",
        );
        assert_eq!(
            (message.as_str(), help.as_str()),
            ("unknown probe type `recal`", "did you mean `recall`?")
        );
    }

    #[test]
    fn missing_and_empty_texts_are_faults() {
        assert!(
            only_fault("question = \"Is it right?\"\n", "")
                .1
                .contains("`question` is missing")
        );
        assert!(only_fault("\"nearly\"", "\" \"").1.contains("`3` is empty"));
        assert!(only_fault(", 5 = \"yes\"", "").1.contains("`5` is missing"));
        assert!(
            faults("")
                .first()
                .is_some_and(|fault| fault.1.contains("no criteria"))
        );
    }

    #[test]
    fn all_faults_come_at_once() {
        let text = format!(
            "{}{}",
            SOUND.replace("weight = 1", "weight = 0"),
            SOUND.replace("accuracy", "speed")
        );
        let messages: Vec<String> = faults(&text).into_iter().map(|fault| fault.1).collect();
        assert_eq!(messages.len(), 3, "{messages:?}");
        assert!(messages[1].contains("used twice"));
    }

    #[test]
    fn a_probe_type_that_nothing_applies_to_is_a_fault() {
        let (_, message, _) = only_fault(
            "weight = 1",
            "weight = 1\napplies_to = [\"recall\", \"artifact\", \"decision\"]",
        );
        assert_eq!(message, "no criterion applies to continuation probes");
    }

    #[test]
    fn broken_toml_is_placed() {
        let found = read("[[criteria]]\nid = \n").expect_err("a fault");
        assert!(
            found[0].place.start >= "[[criteria]]\n".len(),
            "in the second line: {found:?}"
        );
    }
}
