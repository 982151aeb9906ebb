//! JSON Schemas of the files that users write, for editors, derived from the types that the readers fill.
//!
//! The reader of a file refuses everything that its schema refuses. `compeval check` refuses more: it knows which
//! values fit together.

use schemars::schema_for;
use serde_json::{Map, Value, json};

use super::file::ReadToml;
use super::file::tables::Declared;
use super::methods::all_keys;
use crate::compress::StrategyKind;
use crate::judge::RubricFile;
use crate::planted::PlantedSet;
use crate::probe::Bank;
use sessions::transcript::Fixture;

type MakeSchema = fn() -> Value;

const DRAFT: &str = "http://json-schema.org/draft-07/schema#";

/// The schemas by name.
pub const SCHEMAS: [(&str, MakeSchema); 5] = [
    ("pipeline", pipeline),
    ("fixture", || schema_for!(Fixture).into()),
    ("bank", || schema_for!(Bank).into()),
    ("rubric", || schema_for!(RubricFile).into()),
    ("planted", || schema_for!(PlantedSet).into()),
];

/// Stages whose tables need a name, also in a profile, which refers to a table by its name.
const NAMED: [&str; 3] = ["compress", "answer", "judge"];

fn pipeline() -> Value {
    let mut declared = Declared::schema();
    let mut tables = declared["properties"].take();
    for table in NAMED {
        tables[table]["items"]["required"] = json!(["name"]);
    }
    tables["compress"]["items"]["allOf"] = StrategyKind::ALL
        .map(|kind| strategy_rule(kind.name(), all_keys(kind)))
        .into();
    let names = tables.as_object().into_iter().flat_map(Map::keys);
    let references: Map<String, Value> = names
        .map(|name| {
            (
                name.clone(),
                json!({ "$ref": format!("#/definitions/{name}") }),
            )
        })
        .collect();
    let profile =
        json!({ "type": "object", "properties": references, "additionalProperties": false });
    let mut root = profile.clone();
    root["$schema"] = DRAFT.into();
    root["title"] = "compeval pipeline".into();
    root["properties"]["profile"] = json!({
        "description": "Variations: --profile NAME merges one into the pipeline, tables by key, arrays of tables by name.",
        "type": "object",
        "additionalProperties": profile,
    });
    root["definitions"] = tables;
    root
}

/// The rule that a method of this strategy has no other keys.
fn strategy_rule(strategy: &str, keys: Vec<&str>) -> Value {
    let is_this =
        json!({ "properties": { "strategy": { "const": strategy } }, "required": ["strategy"] });
    json!({ "if": is_this, "then": { "propertyNames": { "enum": keys } } })
}
