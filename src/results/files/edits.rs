//! What was edited between two designs, in the words of `plan`: `target_tokens: 2000 → 150`, `prompts/anchored.md:14`.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::design::{Design, MethodInfo, ModelInfo, ProgramInfo};
use crate::action::Digest;

/// Finds the lines in which a text differs from an earlier one: path as shown, digest before, digest after. Where the
/// texts are gone, the path alone.
pub type ChangedLines<'t> = &'t dyn Fn(&str, &Digest, &Digest) -> Vec<String>;

pub(in crate::results) fn method_edits(
    before: &MethodInfo,
    after: &MethodInfo,
    lines: ChangedLines<'_>,
) -> Vec<String> {
    let mut edits = EditList { found: Vec::new(), lines };
    edits.value("strategy", Some(&before.strategy), Some(&after.strategy));
    edits.value("target_tokens", before.target_tokens.as_ref(), after.target_tokens.as_ref());
    edits.value("placement", before.placement.as_ref(), after.placement.as_ref());
    edits.value("artifact_index", Some(&before.artifact_index), Some(&after.artifact_index));
    edits.asked(before.model.as_ref(), after.model.as_ref());
    edits.program(before.program.as_ref(), after.program.as_ref());
    edits.found
}

/// What was edited of the whole pipeline that bars no comparison.
pub(in crate::results) fn pipeline_edits(before: &Design, after: &Design) -> Vec<String> {
    let mut edits = EditList { found: Vec::new(), lines: &|_, _, _| Vec::new() };
    edits.value("focus topic", before.focus_topic.as_ref(), after.focus_topic.as_ref());
    edits.found
}

struct EditList<'t> {
    found: Vec<String>,
    lines: ChangedLines<'t>,
}

impl EditList<'_> {
    fn value<T: ToString + PartialEq>(&mut self, name: &str, before: Option<&T>, after: Option<&T>) {
        if before != after {
            let word = |value: Option<&T>| value.map_or_else(|| "not set".to_owned(), T::to_string);
            self.found.push(format!("{name}: {} → {}", word(before), word(after)));
        }
    }

    fn asked(&mut self, before: Option<&ModelInfo>, after: Option<&ModelInfo>) {
        let none = Value::Null;
        self.value("model", before.map(|asked| &asked.model), after.map(|asked| &asked.model));
        let settings = |asked: Option<&ModelInfo>| asked.and_then(|asked| serde_json::to_value(&asked.settings).ok());
        let (old, new) = (settings(before).unwrap_or_default(), settings(after).unwrap_or_default());
        let names = |value: &Value| -> Vec<String> {
            value.as_object().into_iter().flatten().map(|(k, _)| k.clone()).collect()
        };
        let all: BTreeSet<String> = names(&old).into_iter().chain(names(&new)).collect();
        for name in all {
            let of = |value: &Value| value.get(&name).unwrap_or(&none).clone();
            self.value(&name, Some(&of(&old)).filter(|v| !v.is_null()), Some(&of(&new)).filter(|v| !v.is_null()));
        }
        let prompt = |asked: Option<&ModelInfo>| asked.and_then(|asked| asked.prompt);
        if let (Some(old), Some(new)) = (prompt(before), prompt(after)) {
            let path =
                after.and_then(|asked| asked.prompt_path.clone()).unwrap_or_else(|| "the built-in prompt".to_owned());
            self.text(&path, &old, &new);
        }
    }

    fn program(&mut self, before: Option<&ProgramInfo>, after: Option<&ProgramInfo>) {
        let (Some(before), Some(after)) = (before, after) else { return };
        self.value("command", Some(&before.command.join(" ")), Some(&after.command.join(" ")));
        self.value("model", before.model.as_ref(), after.model.as_ref());
        for (path, old, new) in differing(&before.inputs, &after.inputs) {
            match (old, new) {
                (Some(old), Some(new)) => self.text(path, old, new),
                (None, _) => self.found.push(format!("{path}: new input")),
                (_, None) => self.found.push(format!("{path}: no longer an input")),
            }
        }
        let added = after.variables.difference(&before.variables).map(|name| format!("variable {name}: new"));
        let removed = before.variables.difference(&after.variables).map(|name| format!("variable {name}: removed"));
        self.found.extend(added.chain(removed));
        self.value("deterministic", Some(&before.deterministic), Some(&after.deterministic));
    }

    fn text(&mut self, path: &str, before: &Digest, after: &Digest) {
        if before != after {
            self.found.extend((self.lines)(path, before, after));
        }
    }
}

/// The entries of two maps that differ.
fn differing<'m, T: PartialEq>(
    before: &'m BTreeMap<String, T>,
    after: &'m BTreeMap<String, T>,
) -> Vec<(&'m String, Option<&'m T>, Option<&'m T>)> {
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let both = names.into_iter().map(|name| (name, before.get(name), after.get(name)));
    both.filter(|(_, before, after)| before != after).collect()
}
