//! What was edited between two designs, in the words of `plan`: `target_tokens: 2000 → 150`, `prompts/anchored.md:14`.
//! Designs are compared as the documents that manifests have.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::{Map, Value};

use super::design::{Design, MethodInfo};
use crate::action::Digest;

/// How a text differs from an earlier one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TextEdit {
    /// The path as reports show it.
    pub path: String,
    /// Where it differs: `path:line` or `path:first-last`; only the path if one of the texts is gone.
    pub places: Vec<String>,
    /// The lines that differ, each after its sign: `-` for the earlier text, `+` for the later one. Empty if one of the
    /// texts is gone.
    pub diff: Vec<String>,
}

impl TextEdit {
    /// An edit of which only the digests are known: the text differs somewhere.
    pub fn unknown(path: &str) -> TextEdit {
        TextEdit {
            path: path.to_owned(),
            places: vec![path.to_owned()],
            diff: Vec::new(),
        }
    }
}

/// Finds how a text differs from an earlier one: path as shown, digest before, digest after.
pub type FindTextEdit<'t> = &'t dyn Fn(&str, &Digest, &Digest) -> TextEdit;

/// A value in which two documents differ.
struct Difference {
    /// The names that lead to it.
    path: Vec<String>,
    /// `None` where it is not set.
    before: Option<Value>,
    after: Option<Value>,
}

impl Difference {
    /// Its name in the innermost object.
    fn name(&self) -> &str {
        self.path.last().map_or("", String::as_str)
    }

    fn digests(&self) -> [Option<Digest>; 2] {
        [&self.before, &self.after].map(|side| serde_json::from_value(side.clone()?).ok())
    }

    fn is_rise(&self) -> bool {
        let [before, after] = [&self.before, &self.after].map(|side| side.as_ref()?.as_u64());
        before < after
    }

    /// The difference in words; of a text, only what it is.
    fn line(&self) -> String {
        match self.digests() {
            [None, None] => format!(
                "{}: {} → {}",
                self.name(),
                shown(self.before.as_ref()),
                shown(self.after.as_ref())
            ),
            [None, Some(_)] => format!("{}: new", self.name()),
            [Some(_), None] => format!("{}: removed", self.name()),
            [Some(_), Some(_)] => self.name().to_owned(),
        }
    }
}

fn shown(value: Option<&Value>) -> String {
    match value {
        None => "not set".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(items)) => {
            let items: Vec<String> = items.iter().map(|item| shown(Some(item))).collect();
            items.join(" ")
        }
        Some(other) => other.to_string(),
    }
}

/// All values in which two documents differ. Objects are compared name by name; null is not set.
fn differences(before: &Value, after: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    compare(&[], Some(before), Some(after), &mut found);
    found
}

fn compare(
    path: &[String],
    before: Option<&Value>,
    after: Option<&Value>,
    found: &mut Vec<Difference>,
) {
    let [before, after] = [before, after].map(|side| side.filter(|value| !value.is_null()));
    match [before, after] {
        [before, after] if before == after => {}
        [Some(Value::Object(old)), Some(Value::Object(new))] => {
            let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
            for name in names {
                let path = [path, std::slice::from_ref(name)].concat();
                compare(&path, old.get(name), new.get(name), found);
            }
        }
        [before, after] => found.push(Difference {
            path: path.to_vec(),
            before: before.cloned(),
            after: after.cloned(),
        }),
    }
}

/// The differences of two methods that decide their contexts. Of different strategies everything differs, so they have
/// none.
fn method_differences(before: &MethodInfo, after: &MethodInfo) -> Vec<Difference> {
    if before.strategy != after.strategy {
        return Vec::new();
    }
    let [old, new] = [before, after].map(|method| serde_json::to_value(method).unwrap_or_default());
    let mut found = differences(&old, &new);
    found.retain(|difference| {
        let path: Vec<&str> = difference.path.iter().map(String::as_str).collect();
        !matches!(
            path.as_slice(),
            ["name" | "readers" | "deterministic"]
                | ["model", "name" | "endpoint" | "lexical" | "prompt_path"]
        )
    });
    found
}

/// The settings in which two methods of one strategy differ.
pub(crate) fn differing_settings(one: &MethodInfo, other: &MethodInfo) -> Vec<String> {
    let differences = method_differences(one, other);
    differences
        .iter()
        .map(|difference| difference.name().to_owned())
        .collect()
}

/// The edits of a method in words, and the prompts and inputs that differ. Those of another method of the same strategy are how the two differ; with another strategy
/// they would be noise, and there are none.
pub(crate) fn method_edits(
    before: &MethodInfo,
    after: &MethodInfo,
    find: FindTextEdit<'_>,
) -> (Vec<String>, Vec<TextEdit>) {
    let (mut lines, mut texts) = (Vec::new(), Vec::new());
    if before.name == after.name && before.strategy != after.strategy {
        let line = format!("strategy: {} → {}", before.strategy, after.strategy);
        lines.push(line);
    }
    let asked = after.model.as_ref();
    let prompt = asked.and_then(|asked| asked.prompt_path.as_deref());
    for difference in method_differences(before, after) {
        let path = match difference.name() {
            "prompt" => prompt.unwrap_or("the built-in prompt"),
            name => name,
        };
        match difference.digests() {
            [Some(old), Some(new)] => {
                let edit = find(path, &old, &new);
                lines.extend(edit.places.iter().cloned());
                texts.push(edit);
            }
            _ => lines.push(difference.line()),
        }
    }
    (lines, texts)
}

/// Edits of the pipeline as a whole that do not prevent a comparison.
pub(crate) fn pipeline_edits(before: &Design, after: &Design) -> Vec<String> {
    let [before, after] = [before, after].map(|design| design.focus_topic.clone().map(Value::from));
    let topic = Difference {
        path: vec!["focus topic".to_owned()],
        before,
        after,
    };
    let is_edited = topic.before != topic.after;
    is_edited.then(|| topic.line()).into_iter().collect()
}

/// The differences by which rows of an earlier design would be lost or changed, in words; what only the later design has
/// is none. Paths of prompts and the order of lists do not matter.
pub(crate) fn design_conflicts(before: &Design, after: &Design) -> Vec<String> {
    let mut conflicts = Vec::new();
    let mut probes: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut described: BTreeSet<String> = BTreeSet::new();
    for difference in differences(&document(before), &document(after)) {
        let path: Vec<&str> = difference.path.iter().map(String::as_str).collect();
        let is_new = difference.before.is_none();
        let line = match path.as_slice() {
            ["planted"] | ["fixtures" | "methods", _] | ["fixtures", _, "probes", _] if is_new => {
                continue;
            }
            [.., "prompt_path"] => continue,
            ["fixtures", fixture, "probes", _] => {
                let id = difference.before.as_ref().and_then(|probe| probe.get("id"));
                let ids = probes.entry((*fixture).to_owned()).or_default();
                ids.push(shown(id));
                continue;
            }
            ["fixtures", fixture, "digests", "transcript"] => {
                format!("the messages of fixture {fixture}")
            }
            // Tags, and the rest of a bank.
            ["fixtures", _, _, ..] => continue,
            ["methods", name, _, ..] if !described.insert((*name).to_owned()) => continue,
            ["methods", name, _, ..] => describe_edit(before, after, name),
            ["runs", _] if difference.is_rise() => continue,
            ["runs", _] => format!("runs.{}", difference.line()),
            ["planted", ..] => {
                "what is planted in the sessions (`planted`), or who is asked about it".to_owned()
            }
            ["rubric", ..] => "the rubric".to_owned(),
            [list, name] => match is_new {
                true => format!("{} {name} is new", list.trim_end_matches('s')),
                false => format!("{} {name} is not in this run", list.trim_end_matches('s')),
            },
            [list, name, ..] => {
                format!(
                    "{} {name}: {}",
                    list.trim_end_matches('s'),
                    difference.line()
                )
            }
            _ => difference.line(),
        };
        if !conflicts.contains(&line) {
            conflicts.push(line);
        }
    }
    conflicts.extend(probes.into_iter().map(|(fixture, ids)| {
        let ids = match ids.len() {
            1..=3 => ids.join(", "),
            number => format!("{number} of them"),
        };
        format!("probes of fixture {fixture} that this run does not ask: {ids}")
    }));
    conflicts
}

fn describe_edit(before: &Design, after: &Design, name: &str) -> String {
    let edits = before
        .method(name)
        .zip(after.method(name))
        .map(|(old, new)| method_edits(old, new, &|path, _, _| TextEdit::unknown(path)).0);
    match edits.unwrap_or_default() {
        edits if edits.is_empty() => format!("method {name}"),
        edits => format!("method {name}: {}", edits.join(", ")),
    }
}

/// A design as a document in which what is in its lists has a name.
fn document(design: &Design) -> Value {
    let mut document = serde_json::to_value(design).unwrap_or_default();
    for list in ["methods", "answerers", "judges", "fixtures"] {
        name_items(document.get_mut(list), "name");
    }
    let fixtures = document.get_mut("fixtures").and_then(Value::as_object_mut);
    for fixture in fixtures.into_iter().flat_map(Map::values_mut) {
        name_items(fixture.get_mut("probes"), "digest");
    }
    document
}

/// Turns a list into an object, by a field that is different in each item.
fn name_items(list: Option<&mut Value>, field: &str) {
    let Some(list) = list else { return };
    let items = list.as_array_mut().map(std::mem::take).unwrap_or_default();
    let named = items.into_iter().filter_map(|item| {
        let name = item.get(field)?.as_str()?.to_owned();
        Some((name, item))
    });
    *list = Value::Object(named.collect());
}
