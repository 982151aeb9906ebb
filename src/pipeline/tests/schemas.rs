//! The JSON Schemas: the shipped files satisfy them, and what they refuse the readers refuse.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{BANK, FIXTURE, Project, STAGES};
use crate::compress::StrategyKind;
use crate::judge::Rubric;
use crate::pipeline::file::ReadToml;
use crate::pipeline::file::tables::CompressTable;
use crate::pipeline::methods::all_keys;
use crate::pipeline::{Problems, SCHEMAS, SourceFile, read_rubric};
use crate::probe::ParsedBank;
use base::locale::Locale;
use sessions::transcript::ParsedFixture;

/// Checks values against the schema of a kind of file.
fn validator(name: &str) -> impl Fn(&Value) -> Result<(), String> {
    let mut all = SCHEMAS.into_iter();
    let (_, make) = all.find(|(kind, _)| *kind == name).expect("a schema");
    let (mut schemas, mut compiler) = (boon::Schemas::new(), boon::Compiler::new());
    compiler
        .add_resource("urn:schema", make())
        .expect("a schema");
    let index = compiler
        .compile("urn:schema", &mut schemas)
        .expect("a sound schema");
    move |value| {
        schemas
            .validate(value, index)
            .map_err(|fault| fault.to_string())
    }
}

fn toml_value(text: &str) -> Value {
    toml::from_str(text).expect("TOML")
}

fn json_value(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

fn accepts(name: &str, value: &Value, what: &str) {
    assert_eq!(validator(name)(value), Ok(()), "{what}");
}

fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
        .collect()
}

#[test]
fn the_shipped_files_satisfy_their_schemas() {
    accepts(
        "pipeline",
        &toml_value(include_str!("../../../pipeline.toml")),
        "pipeline.toml",
    );
    for (name, folder) in [("fixture", "fixtures"), ("bank", "probes")] {
        for path in files(folder) {
            accepts(
                name,
                &json_value(&fs::read_to_string(&path).expect("text")),
                &path.display().to_string(),
            );
        }
    }
    for locale in [Locale::En, Locale::Zh] {
        accepts(
            "rubric",
            &toml_value(Rubric::built_in_text(locale)),
            "the built-in rubric",
        );
    }
    for (path, text) in crate::pipeline::starter_files() {
        match path {
            _ if path.starts_with("fixtures/") => accepts("fixture", &json_value(text), path),
            _ if path.starts_with("probes/") => accepts("bank", &json_value(text), path),
            _ => {}
        }
    }
}

#[test]
fn the_published_schemas_are_those_of_the_program() {
    for (name, make) in SCHEMAS {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join(format!("assets/schemas/{name}.schema.json"));
        let published = fs::read_to_string(&path)
            .unwrap_or_default()
            .replace("\r\n", "\n");
        assert!(
            published == format!("{:#}\n", make()),
            "write it anew: compeval schema {name} > {}",
            path.display()
        );
    }
}

/// The keys of `[[compress]]` as the documentation lists them.
fn table_of_methods() -> String {
    let strategies = StrategyKind::ALL.map(|kind| (kind.name(), all_keys(kind)));
    let mut lines = vec![
        "| `[[compress]]` key | strategies | meaning |".to_owned(),
        "| --- | --- | --- |".to_owned(),
    ];
    let schema = CompressTable::schema();
    for key in CompressTable::keys() {
        let (takes, lacks): (Vec<_>, Vec<_>) =
            strategies.iter().partition(|(_, keys)| keys.contains(&key));
        let names = |these: Vec<&(&str, Vec<&str>)>| {
            let names = these.iter().map(|(name, _)| format!("`{name}`"));
            names.collect::<Vec<_>>().join(", ")
        };
        let taken = match (takes.len(), lacks.len()) {
            (_, 0) => "all".to_owned(),
            (few, many) if few > many => format!("all but {}", names(lacks)),
            _ => names(takes),
        };
        let schema = &schema["properties"][key];
        let meaning = schema["description"].as_str().expect("a meaning");
        let words = schema["enum"].as_array().filter(|_| key != "strategy");
        let words = words.map_or(String::new(), |words| {
            let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
            format!(" ({})", words.join(", "))
        });
        let meaning = meaning.replace('<', "&lt;");
        lines.push(format!("| `{key}` | {taken} | {meaning}{words} |"));
    }
    lines.join("\n")
}

#[test]
fn the_documentation_lists_the_keys_of_methods() {
    let documented = include_str!("../../../docs/pipeline.md").replace("\r\n", "\n");
    let table = table_of_methods();
    assert!(
        documented.contains(&table),
        "write into docs/pipeline.md:\n{table}"
    );
}

#[test]
fn the_tables_of_the_documentation_satisfy_the_schema() {
    let documents = [
        include_str!("../../../docs/pipeline.md"),
        include_str!("../../../docs/running.md"),
        include_str!("../../../README.md"),
    ];
    let blocks: Vec<&str> = documents
        .iter()
        .flat_map(|text| text.split("```toml\n").skip(1))
        .collect();
    assert!(blocks.len() >= 5, "only {} blocks", blocks.len());
    for block in blocks {
        accepts(
            "pipeline",
            &toml_value(block.split("\n```").next().unwrap_or_default()),
            block,
        );
    }
}

#[test]
fn what_the_schema_of_the_pipeline_refuses_the_reader_refuses() {
    let accepted = validator("pipeline");
    let sound = format!("[pipeline]\nruns = 2\n{STAGES}");
    assert!(accepted(&toml_value(&sound)).is_ok());
    Project::new(&sound).opened();
    let faults = [
        ("runs = 2", "rnus = 2"),
        ("runs = 2", "runs = \"2\""),
        ("runs = 2", "runs = -1"),
        ("runs = 2", "runs = { compress = 1, judges = 2 }"),
        ("runs = 2", "locale = \"fr\""),
        ("runs = 2", "tail = \"words\""),
        ("runs = 2", "rubric_scope = \"some\""),
        ("runs = 2", "judge_context = \"yes\""),
        ("runs = 2", "fixtures = 3"),
        ("runs = 2", "fixtures = [1]"),
        ("runs = 2", "[pipelines]"),
        (
            "runs = 2",
            "[providers.x]\nkind = \"openai\"\nbase_url = \"http://127.0.0.1:1\"",
        ),
        ("runs = 2", "[providers.openai.limits]\nmax_inflight = 2"),
        (
            "runs = 2",
            "[prices.\"openai/x\"]\ninput = \"1\"\noutput = 1",
        ),
        ("runs = 2", "[profile.a.pipeline]\nrun = 1"),
        (
            "runs = 2",
            "[[profile.a.judge]]\nname = \"judge\"\nattempts = 1.5",
        ),
        ("runs = 2", "[[probes]]\nmodel = \"lexical\""),
        ("name = \"full\"\n", ""),
        ("strategy = \"full\"", "strategy = \"ful\""),
        (
            "strategy = \"full\"",
            "strategy = \"full\"\ntarget_tokens = 9",
        ),
        (
            "strategy = \"full\"",
            "strategy = \"truncate\"\ntarget_tokens = 9\nkeep_results = 1",
        ),
        (
            "strategy = \"full\"",
            "strategy = \"regenerative\"\nmodel = \"lexical\"\nplacement = \"inside\"",
        ),
        (
            "strategy = \"full\"",
            "strategy = \"command\"\ncommand = \"sh x\"\ninputs = []",
        ),
        ("name = \"agent\"\n", "name = \"agent\"\nlane = \"fast\"\n"),
        ("name = \"judge\"\n", "name = \"judge\"\nattempt = 1\n"),
    ];
    for (from, to) in faults {
        let text = sound.replacen(from, to, 1);
        assert_ne!(text, sound);
        assert!(
            accepted(&toml_value(&text)).is_err(),
            "the schema accepts {to}"
        );
        assert!(!Project::new(&text).refusal().is_empty());
    }
}

#[test]
fn what_the_schema_of_a_fixture_or_a_bank_refuses_the_reader_refuses() {
    let call = r#"{"role": "assistant", "content": null, "tool_calls": [{"id": "c", "function": {"name": "f"}}]},
      {"role": "tool", "tool_call_id": "c", "content": [{"type": "text", "text": "x"}]},
      {"role": "user", "content": "Make it"#;
    let sound = FIXTURE
        .replace(r#"{"role": "user", "content": "Make it"#, call)
        .replace("[2, 4]", "[2]");
    let faults = [
        (r#""name": "tiny","#, ""),
        (r#""messages""#, r#""message""#),
        (r#""role": "user""#, r#""role": "person""#),
        (r#""role": "user", "#, ""),
        ("[2]", "2"),
        ("[2]", "[-2]"),
        ("null", "7"),
        (r#""id": "c", "#, ""),
        (r#"{"name": "f"}"#, r#""f""#),
    ];
    assert!(validator("fixture")(&json_value(&sound)).is_ok());
    ParsedFixture::read(&sound).expect("sound");
    for (from, to) in faults {
        let text = sound.replacen(from, to, 1);
        assert_ne!(text, sound, "{from}");
        assert!(
            validator("fixture")(&json_value(&text)).is_err(),
            "the schema accepts {to} for {from}"
        );
        assert!(
            ParsedFixture::read(&text).is_err(),
            "the reader accepts {to} for {from}"
        );
    }
    let faults = [
        (r#""fixture": "tiny","#, ""),
        (r#""id": "first", "#, ""),
        (r#""recall""#, r#""recal""#),
        ("expected_facts", "expected_fact"),
        ("\"point\": 1", "\"point\": \"1\""),
        ("[\"8080\"]", "8080"),
        ("[\"8080\"]", "[8080]"),
        ("\"point\": 1", "\"answerable\": \"no\""),
    ];
    assert!(validator("bank")(&json_value(BANK)).is_ok());
    ParsedBank::read(BANK).expect("sound");
    for (from, to) in faults {
        let text = BANK.replacen(from, to, 1);
        assert_ne!(text, BANK, "{from}");
        assert!(
            validator("bank")(&json_value(&text)).is_err(),
            "the schema accepts {to} for {from}"
        );
        assert!(
            ParsedBank::read(&text).is_err(),
            "the reader accepts {to} for {from}"
        );
    }
}

#[test]
fn what_the_schema_of_a_rubric_refuses_the_reader_refuses() {
    let sound = Rubric::built_in_text(Locale::En);
    let faults = [
        ("[[criteria]]", "note = 1\n[[criteria]]"),
        ("weight", "weigth"),
        ("dimension = \"accuracy\"", "dimension = \"speed\""),
        ("dimension = \"accuracy\"", ""),
    ];
    for (from, to) in faults {
        let text = sound.replacen(from, to, 1);
        assert_ne!(text, sound, "{from}");
        assert!(
            validator("rubric")(&toml_value(&text)).is_err(),
            "the schema accepts {to} for {from}"
        );
        assert!(!reads_rubric(&text), "the reader accepts {to} for {from}");
    }
    for text in ["", "criteria = []", "criteria = [{ id = \"a\" }]"] {
        assert!(
            validator("rubric")(&toml_value(text)).is_err() && !reads_rubric(text),
            "{text}"
        );
    }
}

fn reads_rubric(text: &str) -> bool {
    read_rubric(
        &SourceFile::new("rubric.toml", text),
        &mut Problems::default(),
    )
    .is_some()
}
