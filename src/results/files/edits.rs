//! What was edited between two designs, in the words of `plan`: `target_tokens: 2000 → 150`, `prompts/anchored.md:14`.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;

use super::design::{Design, MethodInfo, ModelInfo, ProgramInfo};
use crate::action::Digest;

/// How a text differs from an earlier one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TextEdit {
    /// The path as reports show it.
    pub path: String,
    /// Where it differs: `path:line` or `path:first-last`; the path alone where one of the texts is gone.
    pub places: Vec<String>,
    /// The lines that differ, each after its sign: `-` for the earlier text, `+` for the later one. Empty where one of
    /// the texts is gone.
    pub diff: Vec<String>,
}

impl TextEdit {
    /// Where only the digests are known: the text differs somewhere.
    pub fn unknown(path: &str) -> TextEdit {
        TextEdit { path: path.to_owned(), places: vec![path.to_owned()], diff: Vec::new() }
    }
}

/// Finds how a text differs from an earlier one: path as shown, digest before, digest after.
pub type FindTextEdit<'t> = &'t dyn Fn(&str, &Digest, &Digest) -> TextEdit;

/// What was edited of a method.
#[derive(Debug, Default)]
pub(in crate::results) struct MethodEdits {
    /// Each edit in words.
    pub lines: Vec<String>,
    /// Prompts and inputs that differ.
    pub texts: Vec<TextEdit>,
}

pub(in crate::results) fn method_edits(before: &MethodInfo, after: &MethodInfo, find: FindTextEdit<'_>) -> MethodEdits {
    let mut edits = EditList { found: Vec::new(), texts: Vec::new(), find: Some(find) };
    edits.value("strategy", Some(&before.strategy), Some(&after.strategy));
    edits.value("target_tokens", before.target_tokens.as_ref(), after.target_tokens.as_ref());
    edits.value("placement", before.placement.as_ref(), after.placement.as_ref());
    edits.value("kept", before.kept.as_ref(), after.kept.as_ref());
    edits.value("extract", before.extract.as_ref(), after.extract.as_ref());
    edits.asked(before.model.as_ref(), after.model.as_ref());
    edits.program(before.program.as_ref(), after.program.as_ref());
    MethodEdits { lines: edits.found, texts: edits.texts }
}

/// What was edited of the whole pipeline that bars no comparison.
pub(in crate::results) fn pipeline_edits(before: &Design, after: &Design) -> Vec<String> {
    let mut edits = EditList { found: Vec::new(), texts: Vec::new(), find: None };
    edits.value("focus topic", before.focus_topic.as_ref(), after.focus_topic.as_ref());
    edits.found
}

struct EditList<'t> {
    found: Vec<String>,
    texts: Vec<TextEdit>,
    find: Option<FindTextEdit<'t>>,
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
        let edit = self.find.filter(|_| before != after).map(|find| find(path, before, after));
        self.found.extend(edit.iter().flat_map(|edit| edit.places.iter().cloned()));
        self.texts.extend(edit);
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
