//! The rubric file: its criteria, read like the tables of `pipeline.toml`, all faults at once, each with its place.

use std::collections::HashSet;
use std::ops::Range;

use serde_json::{Map as JsonMap, Value, json};

use super::{
    DeTable, DeValue, Key, Located, Map, Problem, Problems, ReadToml, SourceFile, Spanned,
    TableArray, TomlReader, described, merge, parse, value,
};
use crate::judge::{Anchors, Criterion, Dimension, Rubric};
use crate::probe::ProbeType;

type ProbeTypes = Vec<Located<ProbeType>>;

table! {
    RubricTable {
        criteria: TableArray<CriterionTable>,
    }
}

table! {
    /// `[[criteria]]`
    CriterionTable by id {
        id: String,
        name: String,
        dimension: Dimension,
        weight: f64,
        applies_to: ProbeTypes,
        question: String,
        anchors: Map<String>,
    }
}

/// The points of the scale that have an anchor.
const ANCHORS: [&str; 3] = ["0", "3", "5"];

/// Reads a rubric. All faults are problems: TOML syntax, unknown keys, dimensions and probe types, missing or empty texts
/// and anchors, repeated ids, weights that are not finite and above 0, probe types nothing applies to.
pub fn read_rubric(file: &SourceFile, problems: &mut Problems) -> Option<Rubric> {
    let root = parse(file, problems)?;
    let before = problems.errors();
    let mut reader = TomlReader {
        file,
        problems,
        settings: &[],
        key: "",
    };
    let table = RubricTable::from_table(&root, &mut reader);
    let written = table.criteria.as_ref().map_or(&[][..], |list| &list.value);
    if written.is_empty() && table.faulty.is_empty() {
        let problem = Problem::error("the rubric has no criteria");
        let problem = problem.at(file, 0..file.text.len().min(1));
        problems.push(problem.help("write one [[criteria]] table for each criterion"));
    }
    let mut ids = HashSet::new();
    let mut criteria = Vec::new();
    for table in written {
        let mut check = CriterionCheck {
            file,
            problems,
            table,
        };
        criteria.extend(check.criterion(&mut ids));
    }
    if problems.errors() == before {
        problems.0.extend(uncovered(&criteria, file));
    }
    (problems.errors() == before).then(|| Rubric::new(criteria))
}

/// Probe types that no criterion applies to: their probes could not be graded at all.
fn uncovered(criteria: &[Criterion], file: &SourceFile) -> Vec<Problem> {
    let bare = ProbeType::ALL
        .into_iter()
        .filter(|kind| !criteria.iter().any(|c| c.applies_to.contains(kind)));
    let problems = bare.map(|kind| {
        let problem = Problem::error(format!("no criterion applies to {} probes", kind.name()));
        let help = "leave `applies_to` out of a criterion that applies to every type";
        problem.at(file, 0..0).help(help)
    });
    problems.collect()
}

/// The check of one criterion.
struct CriterionCheck<'a> {
    file: &'a SourceFile,
    problems: &'a mut Problems,
    table: &'a Located<CriterionTable>,
}

impl CriterionCheck<'_> {
    fn criterion(&mut self, ids: &mut HashSet<String>) -> Option<Criterion> {
        let table: &CriterionTable = &self.table.value;
        let id = self.text("id", &table.id);
        if let Some(written) = table.id.as_ref().filter(|_| id.is_some())
            && !ids.insert(written.value.to_lowercase())
        {
            let message = format!("criterion id `{}` is used twice", written.value);
            self.error(written, message, "ids are unique within a rubric");
        }
        let name = match &table.name {
            Some(_) => self.text("name", &table.name),
            None => id.clone(),
        };
        let dimension = self
            .required("dimension", &table.dimension)
            .map(|one| one.value);
        let weight = self.required("weight", &table.weight);
        if let Some(weight) = weight.filter(|weight| weight.value <= 0.0) {
            let message = format!("weight {} is not above 0", weight.value);
            self.error(
                weight,
                message,
                "leave a criterion out rather than weigh it 0",
            );
        }
        if let Some(list) = table
            .applies_to
            .as_ref()
            .filter(|list| list.value.is_empty())
        {
            let help = "list probe types, as in [\"recall\", \"artifact\"], or leave the key out for all four";
            self.error(list, "`applies_to` names no probe type", help);
        }
        let types = value(&table.applies_to);
        let question = self.text("question", &table.question);
        let anchors = self.anchors();
        Some(Criterion {
            id: id?.as_str().into(),
            name: name?,
            dimension: dimension?,
            weight: weight?.value,
            applies_to: types.map_or(ProbeType::ALL.to_vec(), |types| {
                types.into_iter().map(|one| one.value).collect()
            }),
            question: question?,
            anchors: anchors?,
        })
    }

    fn anchors(&mut self) -> Option<Anchors> {
        let table = self.table;
        let written = self.required("anchors", &table.value.anchors)?;
        for (key, text) in &written.value {
            if !ANCHORS.contains(&key.as_str()) {
                let help = "write the texts of 0, 3 and 5 under [criteria.anchors]";
                self.error(text, format!("unknown anchor `{key}`"), help);
            }
        }
        let [zero, three, five] = ANCHORS.map(|key| match written.value.get(key) {
            Some(text) => self.filled(key, text),
            None => {
                let help = "write the texts of 0, 3 and 5 under [criteria.anchors]";
                self.error(written, format!("`{key}` is missing"), help);
                None
            }
        });
        Some(Anchors {
            zero: zero?,
            three: three?,
            five: five?,
        })
    }

    /// The value of a key that must be written.
    fn required<'t, T>(
        &mut self,
        key: &'static str,
        written: &'t Option<Located<T>>,
    ) -> Option<&'t Located<T>> {
        if written.is_none() && !self.table.value.faulty.contains(&key) {
            let table = self.table;
            self.error(
                table,
                format!("`{key}` is missing"),
                "every criterion needs it",
            );
        }
        written.as_ref()
    }

    /// A text that must be there and must not be blank.
    fn text(&mut self, key: &'static str, written: &Option<Located<String>>) -> Option<String> {
        let text = self.required(key, written)?;
        self.filled(key, text)
    }

    fn filled(&mut self, key: &str, text: &Located<String>) -> Option<String> {
        if text.value.trim().is_empty() {
            let help = "the judge reads this text: say what is meant";
            self.error(text, format!("`{key}` is empty"), help);
            return None;
        }
        Some(text.value.clone())
    }

    fn error<T>(&mut self, at: &Located<T>, message: impl Into<String>, help: &str) {
        let problem = Problem::error(message).at(self.file, at.place.clone());
        self.problems.push(problem.help(help));
    }
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

    fn read(text: &str) -> Result<Rubric, Vec<Problem>> {
        let mut problems = Problems::default();
        let rubric = read_rubric(&SourceFile::new("r.toml", text), &mut problems);
        rubric.ok_or(problems.0)
    }

    /// The faults as (line, message, help).
    fn faults(text: &str) -> Vec<(usize, String, String)> {
        let shown = |problem: Problem| {
            let line = problem.position().map_or(0, |(_, line, _)| line);
            let help = problem.advice().unwrap_or_default().to_owned();
            (line, problem.message().to_owned(), help)
        };
        let faults = read(text).expect_err("a fault");
        faults.into_iter().map(shown).collect()
    }

    fn only_fault(from: &str, to: &str) -> (usize, String, String) {
        let text = SOUND.replace(from, to);
        assert_ne!(text, SOUND);
        let mut found = faults(&text);
        assert_eq!(found.len(), 1, "{found:?}");
        found.remove(0)
    }

    #[test]
    fn a_sound_rubric_applies_to_all_types_and_takes_its_id_for_a_name() {
        let rubric = read(SOUND).expect("sound");
        assert_eq!(rubric.criteria()[0].applies_to, ProbeType::ALL);
        assert_eq!(rubric.criteria()[0].name, "right");
    }

    #[test]
    fn weights_must_be_finite_and_above_zero() {
        for weight in ["0", "0.0", "-0.5", "nan", "inf", "\"heavy\""] {
            let (line, message, _) = only_fault("weight = 1", &format!("weight = {weight}"));
            assert_eq!(line, 4, "{message}");
        }
    }

    #[test]
    fn slips_are_named_with_what_was_probably_meant() {
        let (line, message, help) = only_fault("weight = 1", "weight = 1\nquestions = \"x\"");
        assert_eq!((line, help.as_str()), (5, "did you mean `question`?"));
        assert!(message.contains("unknown key"));
        let (line, _, help) = only_fault("\"accuracy\"", "\"accurracy\"");
        assert_eq!((line, help.as_str()), (3, "did you mean `accuracy`?"));
        let (_, message, help) = only_fault(
            "weight = 1",
            "weight = 1\napplies_to = [\"recal\", \"decision\"]",
        );
        assert_eq!(
            (message.as_str(), help.as_str()),
            ("unknown applies_to `recal`", "did you mean `recall`?")
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
        assert_eq!(faults("[[criteria]]\nid = \n")[0].0, 2);
    }
}
