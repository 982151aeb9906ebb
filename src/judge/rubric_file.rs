//! The rubric file: its form, and what is wrong with it, each with its place.

use std::collections::HashSet;
use std::ops::Range;

use serde::Deserialize;
use toml::Spanned;

use super::criterion::{Anchors, Criterion, CriterionId, Dimension};
use crate::probe::ProbeType;
use base::fault::Fault;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RubricFile {
    #[serde(default)]
    criteria: Vec<CriterionTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CriterionTable {
    id: Spanned<String>,
    name: Option<Spanned<String>>,
    dimension: Dimension,
    weight: Spanned<f64>,
    applies_to: Option<Spanned<Vec<ProbeType>>>,
    question: Spanned<String>,
    anchors: AnchorTable,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AnchorTable {
    #[serde(rename = "0")]
    zero: Spanned<String>,
    #[serde(rename = "3")]
    three: Spanned<String>,
    #[serde(rename = "5")]
    five: Spanned<String>,
}

/// Reads the criteria of a rubric file.
///
/// # Errors
/// The first fault of its form; of a sound form, all faults of what it says.
pub(super) fn read(text: &str) -> Result<Vec<Criterion>, Vec<Fault>> {
    let file: RubricFile = toml::from_str(text).map_err(|error| {
        let place = error.span().unwrap_or(0..text.len().min(1));
        let help = "a rubric is TOML with one [[criteria]] table for each criterion: id, dimension, weight, question, \
                    [criteria.anchors] with 0, 3 and 5; name and applies_to may be left out";
        vec![Fault::at(place, error.message(), help)]
    })?;
    let mut faults = Vec::new();
    if file.criteria.is_empty() {
        let help = "write one [[criteria]] table for each criterion";
        faults.push(Fault::at(
            0..text.len().min(1),
            "the rubric has no criteria",
            help,
        ));
    }
    let mut seen = HashSet::new();
    for criterion in &file.criteria {
        criterion.check(&mut seen, &mut faults);
    }
    let criteria: Vec<Criterion> = file.criteria.into_iter().map(Criterion::from).collect();
    if faults.is_empty() {
        faults.extend(uncovered(&criteria));
    }
    if faults.is_empty() {
        Ok(criteria)
    } else {
        Err(faults)
    }
}

impl CriterionTable {
    fn check(&self, seen: &mut HashSet<String>, faults: &mut Vec<Fault>) {
        let mut report = |place: Range<usize>, message: String, help: &str| {
            faults.push(Fault::at(place, message, help));
        };
        let anchors = &self.anchors;
        let texts = [
            ("id", Some(&self.id)),
            ("name", self.name.as_ref()),
            ("question", Some(&self.question)),
            ("0", Some(&anchors.zero)),
            ("3", Some(&anchors.three)),
            ("5", Some(&anchors.five)),
        ];
        for (key, text) in texts {
            if let Some(text) = text.filter(|text| text.get_ref().trim().is_empty()) {
                let help = "the judge reads this text: say what is meant";
                report(text.span(), format!("`{key}` is empty"), help);
            }
        }
        let id = self.id.get_ref();
        if !seen.insert(id.to_lowercase()) {
            let message = format!("criterion id `{id}` is used twice");
            report(self.id.span(), message, "ids are unique within a rubric");
        }
        let weight = *self.weight.get_ref();
        if !(weight.is_finite() && weight > 0.0) {
            let message = format!("weight {weight} is not above 0 and finite");
            let help = "a weight is a number above 0; leave a criterion out rather than weigh it 0";
            report(self.weight.span(), message, help);
        }
        if let Some(types) = self
            .applies_to
            .as_ref()
            .filter(|types| types.get_ref().is_empty())
        {
            let help = "list probe types, as in [\"recall\", \"artifact\"], or leave the key out for all four";
            report(
                types.span(),
                "`applies_to` names no probe type".to_owned(),
                help,
            );
        }
    }
}

impl From<CriterionTable> for Criterion {
    fn from(table: CriterionTable) -> Criterion {
        let id = table.id.into_inner();
        let types = table.applies_to.map(Spanned::into_inner);
        Criterion {
            name: table.name.map_or_else(|| id.clone(), Spanned::into_inner),
            id: CriterionId::from(id.as_str()),
            dimension: table.dimension,
            weight: table.weight.into_inner(),
            applies_to: types.unwrap_or_else(|| ProbeType::ALL.to_vec()),
            question: table.question.into_inner(),
            anchors: Anchors {
                zero: table.anchors.zero.into_inner(),
                three: table.anchors.three.into_inner(),
                five: table.anchors.five.into_inner(),
            },
        }
    }
}

/// Probe types that no criterion applies to: their probes could not be graded at all.
fn uncovered(criteria: &[Criterion]) -> Vec<Fault> {
    let bare = ProbeType::ALL
        .into_iter()
        .filter(|kind| !criteria.iter().any(|c| c.applies_to.contains(kind)));
    let faults = bare.map(|kind| {
        let message = format!("no criterion applies to {} probes", kind.name());
        let help = "leave `applies_to` out of a criterion that applies to every type";
        Fault::at(0..0, message, help)
    });
    faults.collect()
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
            assert!(
                message.contains("weight") || message.contains("invalid type"),
                "{message}"
            );
        }
    }

    #[test]
    fn slips_are_named_with_what_was_expected() {
        for (from, to, at, expected) in [
            (
                "weight = 1",
                "weight = 1\nquestions = \"x\"",
                "questions",
                "`question`",
            ),
            ("\"accuracy\"", "\"accurracy\"", "\"accurracy\"", "accuracy"),
            (
                "weight = 1",
                "weight = 1\napplies_to = [\"recal\", \"decision\"]",
                "\"recal\"",
                "recall",
            ),
        ] {
            let (place, message, help) = only_fault(from, to);
            assert_eq!(place, at);
            assert!(message.contains("unknown"), "{message}");
            assert!(message.contains(expected), "{message}");
            assert!(help.contains("[[criteria]]"), "{help}");
        }
    }

    #[test]
    fn missing_and_empty_texts_are_faults() {
        assert!(
            only_fault("question = \"Is it right?\"\n", "")
                .1
                .contains("missing field `question`")
        );
        assert!(only_fault("\"nearly\"", "\" \"").1.contains("`3` is empty"));
        assert!(
            only_fault(", 5 = \"yes\"", "")
                .1
                .contains("missing field `5`")
        );
        assert!(
            faults("")
                .first()
                .is_some_and(|fault| fault.1.contains("no criteria"))
        );
    }

    #[test]
    fn all_faults_of_what_a_sound_form_says_come_at_once() {
        let text = format!(
            "{}{}",
            SOUND.replace("weight = 1", "weight = 0"),
            SOUND.replace("Is it right?", " ")
        );
        let messages: Vec<String> = faults(&text).into_iter().map(|fault| fault.1).collect();
        assert_eq!(messages.len(), 3, "{messages:?}");
        assert!(messages[2].contains("used twice"));
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
