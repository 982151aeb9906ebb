//! Compares docs/data.md with the files of a run: every field is on the page, and the CSV has the fields of the rows.

use std::collections::BTreeSet;

use base::units::Usage;
use compeval::action::CellCoordinate;
use compeval::plan::CostEstimate;
use compeval::results::{Caveats, Design, Manifest, ReadingCheck, Unused};
use serde::de::value::Error;
use serde::de::{DeserializeOwned, Deserializer, Error as _, Visitor};
use serde_json::Value;
use store::remote::Exchanged;

use super::project::Project;
use super::server::Server;

/// Keys whose values have names of the project or groups of values as keys, and no fields.
const BY_NAME: &[&str] = &[
    "methods",
    "dimensions",
    "by_probe_type",
    "by_fixture",
    "by_tag",
    "by_length",
    "noise",
    "variance_shares",
    "repeats",
    "survival_by_heading",
];

/// All fields of a value, at any depth.
fn fields(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| fields(item, found)),
        Value::Object(object) => {
            for (key, value) in object {
                found.insert(key.clone());
                match value {
                    Value::Object(named) if BY_NAME.contains(&key.as_str()) => {
                        named.values().for_each(|value| fields(value, found));
                    }
                    value => fields(value, found),
                }
            }
        }
        _ => {}
    }
}

/// Takes the names of the fields that a type reads, and gives it nothing to read.
struct FieldNames<'f>(&'f mut Vec<&'static str>);

impl<'de> Deserializer<'de> for FieldNames<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(Error::custom("it has no fields of its own"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        names: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Error> {
        self.0.extend(names);
        Err(Error::custom("their names are enough"))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit unit_struct newtype_struct
        seq tuple tuple_struct map enum identifier ignored_any
    }
}

/// The names of all fields of a type, also of those that no run of a test sets.
fn field_names<T: DeserializeOwned>() -> Vec<&'static str> {
    let mut names = Vec::new();
    assert!(T::deserialize(FieldNames(&mut names)).is_err() && !names.is_empty());
    names
}

/// A run with a comparison in which something differs.
fn compared() -> Project {
    let server = Server::start();
    let project = Project::new(&server);
    project.expect(0, "run --label a --runs 1");
    project.edit("prompts/anchored.md", "## ", "## The ");
    project.expect(0, "run --label b --runs 1 --compare-to a");
    project
}

#[test]
fn every_field_of_a_run_is_on_the_page() {
    let project = compared();
    let page = include_str!("../../docs/data.md");
    let mut found = BTreeSet::new();
    for row in project.rows("b") {
        fields(&row, &mut found);
    }
    for line in project.read("results/b/contexts.jsonl").lines() {
        fields(&serde_json::from_str(line).expect("a context"), &mut found);
    }
    fields(&project.result("b", "summary.json"), &mut found);
    assert!(
        found.len() > 120 && found.contains("question") && found.contains("mdd"),
        "{found:?}"
    );
    let missing: Vec<&String> = found
        .iter()
        .filter(|name| !page.contains(&format!("`{name}`")))
        .collect();
    assert!(missing.is_empty(), "docs/data.md does not list {missing:?}");
}

#[test]
fn every_field_of_a_manifest_is_in_its_table() {
    let server = Server::start();
    let project = Project::new(&server);
    server.refuse_answers("Which error number");
    project.expect(5, "run --label a --runs 1 --methods full");
    let manifest = project.result("a", "manifest.json");
    let mut found = BTreeSet::new();
    fields(&manifest["failures"], &mut found);
    fields(&manifest["stages"]["answer"], &mut found);
    let of_types = [
        field_names::<Manifest>(),
        field_names::<Design>(),
        field_names::<CellCoordinate>(),
        field_names::<Usage>(),
        field_names::<Unused>(),
        field_names::<CostEstimate>(),
        field_names::<Caveats>(),
        field_names::<ReadingCheck>(),
        field_names::<Exchanged>(),
    ];
    found.extend(of_types.concat().into_iter().map(str::to_owned));
    for name in [
        "outcome",
        "regradings",
        "blame",
        "early_cutoff",
        "output_tokens",
    ] {
        assert!(found.contains(name), "{name}: {found:?}");
    }
    let page = include_str!("../../docs/data.md");
    let (_, table) = page.split_once("\n## manifest.json\n").expect("a section");
    let table = table.split("\n## ").next().unwrap_or_default();
    let missing: Vec<&String> = found
        .iter()
        .filter(|name| !table.contains(&format!("`{name}`")))
        .collect();
    assert!(
        missing.is_empty(),
        "docs/data.md does not list {missing:?} under manifest.json"
    );
}

#[test]
fn the_csv_has_a_line_for_each_cell_with_its_label_and_question() {
    let project = compared();
    let printed = project.expect(0, "report a --csv").stdout;
    let mut reader = csv::Reader::from_reader(printed.as_bytes());
    let columns: Vec<String> = reader
        .headers()
        .expect("a header")
        .iter()
        .map(str::to_owned)
        .collect();
    assert_eq!(columns[..4], ["label", "fixture", "point", "method"]);
    let lines: Vec<csv::StringRecord> = reader
        .records()
        .collect::<Result<_, _>>()
        .expect("sound lines");
    let rows = project.rows("a");
    assert_eq!(lines.len(), rows.len());
    let cell = |line: usize, name: &str| {
        let column = columns
            .iter()
            .position(|column| column == name)
            .unwrap_or_else(|| panic!("no column {name}"));
        lines[line][column].to_owned()
    };
    for (line, row) in rows.iter().enumerate() {
        assert_eq!(cell(line, "label"), "a");
        assert!(!cell(line, "question").is_empty());
        for name in ["fixture", "probe", "question", "answer", "type"] {
            assert_eq!(
                cell(line, name),
                row[name].as_str().unwrap_or_default(),
                "{name}"
            );
        }
        assert_eq!(cell(line, "overall"), row["overall"].to_string());
        let accuracy = &row["dimensions"]["accuracy"];
        assert_eq!(
            cell(line, "accuracy"),
            if accuracy.is_null() {
                String::new()
            } else {
                accuracy.to_string()
            }
        );
        assert_eq!(
            cell(line, "keys.judge"),
            row["keys"]["judge"].as_str().unwrap_or_default()
        );
    }
}
