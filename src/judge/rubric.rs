//! The rubric: which criteria an answer is graded by, in which dimension, with which weight.
//!
//! The built-in rubric is data in two languages. A file is read by its form, and what is wrong with it has its place.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::LazyLock;

use serde::Deserialize;
use toml::Spanned;

use super::criterion::{Anchors, Criterion, CriterionId, Dimension};
use crate::action::{Digest, DigestBuilder};
use crate::probe::ProbeType;
use base::fault::Fault;
use base::locale::Locale;
use base::named_enum;

named_enum! {
    /// Whether criteria follow the type of the probe.
    #[derive(Default)]
    pub enum Scope {
        /// Each probe is graded by the criteria of its type.
        #[default]
        ByType = "by-type",
        /// Every criterion is graded on every probe.
        All = "all",
    }
}

/// A rubric that was checked: ids unique, weights above 0, a criterion for every probe type.
#[derive(Clone, Debug, PartialEq)]
pub struct Rubric {
    criteria: Vec<Criterion>,
    digest: Digest,
}

static ENGLISH: LazyLock<Rubric> = LazyLock::new(|| built_in(Locale::En));
static CHINESE: LazyLock<Rubric> = LazyLock::new(|| built_in(Locale::Zh));

fn built_in(locale: Locale) -> Rubric {
    Rubric::read(Rubric::built_in_text(locale))
        .expect("the built-in rubrics are part of the program and read by its tests")
}

impl Rubric {
    /// The rubric that ships with the program, in one of its languages.
    pub fn built_in(locale: Locale) -> &'static Rubric {
        locale.pick(&ENGLISH, &CHINESE)
    }

    pub fn built_in_text(locale: Locale) -> &'static str {
        locale.pick(
            include_str!("../../assets/rubric/en.toml"),
            include_str!("../../assets/rubric/zh.toml"),
        )
    }

    /// Reads a rubric from the text of its TOML file.
    ///
    /// # Errors
    /// All faults, each with its place: TOML syntax, unknown keys, dimensions and probe types, missing or empty
    /// texts and anchors, repeated ids, weights that are not finite and above 0, probe types nothing applies to.
    pub fn read(text: &str) -> Result<Rubric, Vec<Fault>> {
        let criteria = read(text)?;
        let digest = digest_of(&criteria);
        Ok(Rubric { criteria, digest })
    }

    /// All criteria, in the order of the file.
    pub fn criteria(&self) -> &[Criterion] {
        &self.criteria
    }

    pub fn criterion(&self, id: &CriterionId) -> Option<&Criterion> {
        self.criteria.iter().find(|criterion| criterion.id == *id)
    }

    /// The criteria that a probe of type `kind` is graded by, in the order of the file; never empty.
    pub fn criteria_for(&self, kind: ProbeType, scope: Scope) -> Vec<&Criterion> {
        self.criteria
            .iter()
            .filter(|c| scope == Scope::All || c.applies_to.contains(&kind))
            .collect()
    }

    /// The criteria with these ids, in the order of the file.
    ///
    /// # Errors
    /// The first id that no criterion has.
    pub fn named<'i>(&self, ids: &'i [CriterionId]) -> Result<Vec<&Criterion>, &'i CriterionId> {
        match ids.iter().find(|id| self.criterion(id).is_none()) {
            Some(unknown) => Err(unknown),
            None => Ok(self
                .criteria
                .iter()
                .filter(|criterion| ids.contains(&criterion.id))
                .collect()),
        }
    }

    /// The first type of probe that is graded by the same criteria as `kind`.
    pub fn graded_alike(&self, kind: ProbeType, scope: Scope) -> ProbeType {
        let alike = ProbeType::ALL.into_iter().find(|other| {
            let mut criteria = self.criteria.iter();
            scope == Scope::All
                || criteria.all(|c| c.applies_to.contains(other) == c.applies_to.contains(&kind))
        });
        alike.unwrap_or(kind)
    }

    /// The digest of everything in the rubric that can change a score, so not of the file's comments and layout.
    pub fn digest(&self) -> Digest {
        self.digest
    }
}

fn digest_of(criteria: &[Criterion]) -> Digest {
    let mut builder = DigestBuilder::new("rubric");
    for criterion in criteria {
        builder
            .field("id", &*criterion.id.0)
            .field("dimension", criterion.dimension.name())
            .field("weight", criterion.weight.to_bits().to_le_bytes())
            .field("question", &criterion.question);
        for kind in ProbeType::ALL
            .iter()
            .filter(|kind| criterion.applies_to.contains(kind))
        {
            builder.field("applies_to", kind.name());
        }
        let anchors = &criterion.anchors;
        builder
            .field("0", &anchors.zero)
            .field("3", &anchors.three)
            .field("5", &anchors.five);
    }
    builder.finish()
}

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
fn read(text: &str) -> Result<Vec<Criterion>, Vec<Fault>> {
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
    use crate::judge::Dimension;

    fn ids(kind: ProbeType, scope: Scope) -> Vec<&'static str> {
        Rubric::built_in(Locale::En)
            .criteria_for(kind, scope)
            .iter()
            .map(|c| &*c.id.0)
            .collect()
    }

    #[test]
    fn both_languages_share_ids_weights_and_types() {
        let (en, zh) = (Rubric::built_in(Locale::En), Rubric::built_in(Locale::Zh));
        let [shape_en, shape_zh] = [en, zh].map(|rubric| {
            let criteria = rubric.criteria().iter();
            criteria
                .map(|c| (&c.id, c.dimension, c.weight.to_bits(), &c.applies_to))
                .collect::<Vec<_>>()
        });
        assert_eq!(shape_en, shape_zh);
        assert_eq!(en.criteria().len(), 14);
        assert_ne!(en.digest(), zh.digest());
    }

    #[test]
    fn weights_of_each_dimension_sum_to_one() {
        for dimension in Dimension::ALL {
            let of = |c: &&Criterion| c.dimension == dimension;
            let sum: f64 = Rubric::built_in(Locale::En)
                .criteria()
                .iter()
                .filter(of)
                .map(|c| c.weight)
                .sum();
            assert!((sum - 1.0).abs() < 1e-9, "{dimension}: {sum}");
        }
    }

    #[test]
    fn criteria_follow_the_probe_type() {
        let base = 6;
        assert_eq!(ids(ProbeType::Recall, Scope::ByType).len(), base + 2);
        assert!(
            !ids(ProbeType::Recall, Scope::ByType)
                .iter()
                .any(|id| id.starts_with("artifact_"))
        );
        assert_eq!(ids(ProbeType::Artifact, Scope::ByType).len(), base + 2 + 3);
        assert_eq!(
            ids(ProbeType::Continuation, Scope::ByType),
            ids(ProbeType::Decision, Scope::ByType)
        );
        assert_eq!(ids(ProbeType::Decision, Scope::ByType).len(), base + 2 + 3);
        assert_eq!(ids(ProbeType::Recall, Scope::All).len(), 14);
    }
}

#[cfg(test)]
mod rubric_file_tests {
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
