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

/// What was edited in a method.
#[derive(Debug, Default)]
pub(crate) struct MethodEdits {
    /// Each edit in words.
    pub lines: Vec<String>,
    /// Prompts and inputs that differ.
    pub texts: Vec<TextEdit>,
}

/// The edits of a method. Those of another method of the same strategy are how the two differ; with another strategy
/// they would be noise, and there are none.
pub(crate) fn method_edits(
    before: &MethodInfo,
    after: &MethodInfo,
    find: FindTextEdit<'_>,
) -> MethodEdits {
    let mut edits = MethodEdits::default();
    if before.name != after.name && before.strategy != after.strategy {
        return edits;
    }
    edits.compare("strategy", Some(&before.strategy), Some(&after.strategy));
    edits.compare(
        "target_tokens",
        before.target_tokens.as_ref(),
        after.target_tokens.as_ref(),
    );
    edits.compare(
        "placement",
        before.placement.as_ref(),
        after.placement.as_ref(),
    );
    edits.compare("kept", before.kept.as_ref(), after.kept.as_ref());
    edits.compare("extract", before.extract.as_ref(), after.extract.as_ref());
    edits.compare_models(before.model.as_ref(), after.model.as_ref(), find);
    edits.compare_programs(before.program.as_ref(), after.program.as_ref(), find);
    edits
}

/// Edits of the pipeline as a whole that do not prevent a comparison.
pub(crate) fn pipeline_edits(before: &Design, after: &Design) -> Vec<String> {
    let mut edits = MethodEdits::default();
    edits.compare(
        "focus topic",
        before.focus_topic.as_ref(),
        after.focus_topic.as_ref(),
    );
    edits.lines
}

impl MethodEdits {
    fn compare<T: ToString + PartialEq>(
        &mut self,
        name: &str,
        before: Option<&T>,
        after: Option<&T>,
    ) {
        if before != after {
            let [before, after] = [before, after]
                .map(|value| value.map_or_else(|| "not set".to_owned(), T::to_string));
            self.lines.push(format!("{name}: {before} → {after}"));
        }
    }

    fn compare_models(
        &mut self,
        before: Option<&ModelInfo>,
        after: Option<&ModelInfo>,
        find: FindTextEdit<'_>,
    ) {
        self.compare(
            "model",
            before.map(|asked| &asked.model),
            after.map(|asked| &asked.model),
        );
        let settings = [before, after]
            .map(|asked| asked.and_then(|asked| serde_json::to_value(&asked.settings).ok()));
        let objects = settings.iter().flatten().filter_map(Value::as_object);
        let names: BTreeSet<&String> = objects.flat_map(|settings| settings.keys()).collect();
        for name in names {
            let [old, new] = settings.each_ref().map(|settings| {
                settings
                    .as_ref()?
                    .get(name)
                    .filter(|value| !value.is_null())
            });
            self.compare(name, old, new);
        }
        if let [Some(old), Some(new)] = [before, after].map(|asked| asked?.prompt) {
            let path = after
                .and_then(|asked| asked.prompt_path.clone())
                .unwrap_or_else(|| "the built-in prompt".to_owned());
            self.compare_texts(&path, &old, &new, find);
        }
    }

    fn compare_programs(
        &mut self,
        before: Option<&ProgramInfo>,
        after: Option<&ProgramInfo>,
        find: FindTextEdit<'_>,
    ) {
        let (Some(before), Some(after)) = (before, after) else {
            return;
        };
        self.compare(
            "command",
            Some(&before.command.join(" ")),
            Some(&after.command.join(" ")),
        );
        self.compare("model", before.model.as_ref(), after.model.as_ref());
        for (path, old, new) in differing(&before.inputs, &after.inputs) {
            match (old, new) {
                (Some(old), Some(new)) => self.compare_texts(path, old, new, find),
                (None, _) => self.lines.push(format!("{path}: new input")),
                (_, None) => self.lines.push(format!("{path}: no longer an input")),
            }
        }
        let added = after
            .variables
            .difference(&before.variables)
            .map(|name| format!("variable {name}: new"));
        let removed = before
            .variables
            .difference(&after.variables)
            .map(|name| format!("variable {name}: removed"));
        self.lines.extend(added.chain(removed));
        self.compare(
            "deterministic",
            Some(&before.deterministic),
            Some(&after.deterministic),
        );
    }

    fn compare_texts(
        &mut self,
        path: &str,
        before: &Digest,
        after: &Digest,
        find: FindTextEdit<'_>,
    ) {
        if before != after {
            let edit = find(path, before, after);
            self.lines.extend(edit.places.iter().cloned());
            self.texts.push(edit);
        }
    }
}

/// The entries of two maps that differ.
fn differing<'m, T: PartialEq>(
    before: &'m BTreeMap<String, T>,
    after: &'m BTreeMap<String, T>,
) -> Vec<(&'m String, Option<&'m T>, Option<&'m T>)> {
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let both = names
        .into_iter()
        .map(|name| (name, before.get(name), after.get(name)));
    both.filter(|(_, before, after)| before != after).collect()
}
