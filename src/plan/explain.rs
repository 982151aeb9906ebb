//! Why something must run, in words: a phrase for the reason, and what has changed, down to file and line.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use serde::Serialize;

use crate::action::{Digest, InputChange, InputPart, SourceRef, Sources};
use base::locale::localized;
use base::named_enum;

use super::lines::changed_places;
use super::sources::{CurrentSources, SourceText};
use super::status::StaleReason;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct StaleExplanation {
    /// The reason; of several, the one nearest to what the user did.
    pub why: StaleCause,
    /// What has changed: `prompts/anchored.md:14`, `temperature: 0 → 0.5`.
    pub changed: Vec<String>,
}

named_enum! {
    /// Why an action is stale: what kind of thing has changed, in the order in which kinds are reported, or what
    /// happened to its output.
    pub enum StaleCause {
        Schema = "schema version",
        Model = "model",
        Prompt = "prompt changed",
        Setting = "setting",
        Rubric = "rubric",
        CommandFile = "command input file",
        Span = "fixture span",
        Probe = "probe text",
        /// It waits for a stale action above it, or was made from an earlier output of that action.
        Upstream = "upstream output changed",
        NeverRun = "never computed",
        Failed = "failed last time",
        Pruned = "pruned",
        Damaged = "damaged",
        Refreshed = "refreshed on request",
    }
}

impl StaleCause {
    /// The phrase that is printed.
    pub fn words(self) -> &'static str {
        let chinese = match self {
            StaleCause::Schema => "格式版本",
            StaleCause::Model => "模型",
            StaleCause::Prompt => "提示词有改动",
            StaleCause::Setting => "设置",
            StaleCause::Rubric => "评分细则",
            StaleCause::CommandFile => "命令的输入文件",
            StaleCause::Span => "样本片段",
            StaleCause::Probe => "问题文字",
            StaleCause::Upstream => "上游输出有变",
            StaleCause::NeverRun => "从未计算",
            StaleCause::Failed => "上次失败",
            StaleCause::Pruned => "已清理",
            StaleCause::Damaged => "已损坏",
            StaleCause::Refreshed => "按要求刷新",
        };
        localized(self.name(), chinese)
    }
}

/// The role that a part plays in the inputs of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InputRole {
    /// A part of this kind.
    Of(StaleCause),
    /// A prompt's text without its values: it also changes with which of these are empty.
    Skeleton,
    /// The text of the criteria, their ids, the shape of the reply.
    Criteria,
    /// Put together from other parts, or follows from another.
    Derived,
}

/// Says what has changed. Keeps the line differences of texts, which many actions share.
pub struct Explainer<'l> {
    read_text: &'l dyn Fn(&Digest) -> Option<String>,
    lines: RefCell<ChangedLocations>,
}

/// Whether inputs of this kind are among what has changed.
pub fn has_changed_inputs(reason: &StaleReason, kind: StaleCause) -> bool {
    let StaleReason::Changed(changes) = reason else {
        return false;
    };
    changes
        .iter()
        .any(|change| role(&change.part) == InputRole::Of(kind))
}

/// Where a text differs from an earlier one, by the digests of both.
type ChangedLocations = HashMap<(Digest, Digest), Rc<[String]>>;

impl<'l> Explainer<'l> {
    /// An explainer that finds earlier texts by `read_text`, as `Lookup::read_text` does.
    pub fn new(read_text: &'l dyn Fn(&Digest) -> Option<String>) -> Explainer<'l> {
        Explainer {
            read_text,
            lines: RefCell::default(),
        }
    }

    /// A reason in words. `old` are the sources of the action that it is compared with, if there is one.
    pub fn explain(
        &self,
        reason: &StaleReason,
        old: Option<&Sources>,
        current: &CurrentSources<'_>,
    ) -> StaleExplanation {
        let (why, changed) = match reason {
            StaleReason::Changed(changes) => return self.explain_changes(changes, old, current),
            StaleReason::NeverRun => (StaleCause::NeverRun, Vec::new()),
            StaleReason::Failed { class } => (StaleCause::Failed, vec![class.clone()]),
            StaleReason::Unreadable => (
                StaleCause::Failed,
                vec!["the reply could not be used".to_owned()],
            ),
            StaleReason::Pruned => (StaleCause::Pruned, Vec::new()),
            StaleReason::Damaged => (StaleCause::Damaged, Vec::new()),
            StaleReason::Refreshed => (StaleCause::Refreshed, Vec::new()),
        };
        StaleExplanation { why, changed }
    }

    fn explain_changes(
        &self,
        changes: &[InputChange],
        old: Option<&Sources>,
        current: &CurrentSources<'_>,
    ) -> StaleExplanation {
        let mut found: Vec<(StaleCause, String)> = Vec::new();
        let prompt_changed = has_changed(current.prompt.as_ref(), old);
        let rubric_changed = has_changed(current.rubric.as_ref(), old);
        let other_values = prompt_changed == Some(true) || changes.iter().any(is_to_or_from_rules);
        for change in changes
            .iter()
            .filter(|change| !is_nothing(change) && !is_to_or_from_rules(change))
        {
            if let Some(setting) = switched(change, current) {
                found.push((StaleCause::Setting, setting));
                continue;
            }
            match role(&change.part) {
                InputRole::Of(_) if other_values && is_value_of_prompt(change) => {}
                InputRole::Of(_) if is_composed(&change.part, changes) || is_split_off(change) => {}
                InputRole::Of(kind) => found.push((kind, words(kind, change, current))),
                InputRole::Skeleton if prompt_changed != Some(false) => {
                    let places = self.places(current.prompt.as_ref(), old);
                    found.extend(
                        places
                            .iter()
                            .map(|place| (StaleCause::Prompt, place.clone())),
                    );
                }
                InputRole::Criteria if rubric_changed != Some(false) => {
                    let places = self.places(current.rubric.as_ref(), old);
                    found.extend(
                        places
                            .iter()
                            .map(|place| (StaleCause::Rubric, place.clone())),
                    );
                }
                InputRole::Skeleton | InputRole::Criteria | InputRole::Derived => {}
            }
        }
        if found.is_empty() {
            found.extend(changes.first().map(|change| fallback(change, current)));
        }
        let mut seen = BTreeSet::new();
        found.retain(|change| seen.insert(change.clone()));
        found.sort_by_key(|(kind, _)| *kind);
        let why = found
            .first()
            .map_or(StaleCause::NeverRun, |(kind, _)| *kind);
        StaleExplanation {
            why,
            changed: found.into_iter().map(|(_, text)| text).collect(),
        }
    }

    /// Where a source differs from its earlier text: `path:line`; only the path if the old text is not stored.
    fn places(&self, origin: Option<&SourceText<'_>>, old: Option<&Sources>) -> Rc<[String]> {
        let Some(origin) = origin else {
            return Rc::new([]);
        };
        let Some(source) = source_of(origin, old) else {
            return Rc::new([origin.label()]);
        };
        let versions = (source.digest, origin.digest);
        if let Some(known) = self.lines.borrow().get(&versions) {
            return known.clone();
        }
        let lines: Rc<[String]> = self.lines_of(origin, &source.digest).into();
        self.lines.borrow_mut().insert(versions, lines.clone());
        lines
    }

    fn lines_of(&self, origin: &SourceText<'_>, old: &Digest) -> Vec<String> {
        let path = origin.label();
        match (self.read_text)(old) {
            Some(old) => changed_places(&path, &old, origin.text),
            None => vec![path],
        }
    }
}

fn source_of<'s>(origin: &SourceText<'_>, old: Option<&'s Sources>) -> Option<&'s SourceRef> {
    old?.0.get(origin.name)
}

/// Whether a source has changed; `None` if that is not known.
fn has_changed(origin: Option<&SourceText<'_>>, old: Option<&Sources>) -> Option<bool> {
    let origin = origin?;
    Some(source_of(origin, old)?.digest != origin.digest)
}

/// Whether the built-in rules replaced a model, or a model replaced them: their version came or went with them.
/// The rules get all values of a prompt, a model gets those that the prompt uses.
fn is_to_or_from_rules(change: &InputChange) -> bool {
    change.part == "rules" && (change.old.is_none() || change.new.is_none())
}

/// Whether a part came or went because another prompt uses other values.
fn is_value_of_prompt(change: &InputChange) -> bool {
    let is_value = matches!(
        change.part.as_str(),
        "transcript"
            | "previous_summary"
            | "focus_topic"
            | "target_tokens"
            | "context"
            | "question"
            | "request"
    );
    is_value && (change.old.is_none() || change.new.is_none())
}

/// The setting that shows a part or hides it, if that came or went.
fn switched(change: &InputChange, current: &CurrentSources<'_>) -> Option<String> {
    let (setting, hidden, shown) = match change.part.as_str() {
        // An answerer is always shown the context, a judge only if `judge_context` is set.
        "context" if current.rubric.is_some() => ("judge_context", "false", "true"),
        "tail" => ("tail", "none", "verbatim"),
        _ => return None,
    };
    match (&change.old, &change.new) {
        (None, Some(_)) => Some(format!("{setting}: {hidden} → {shown}")),
        (Some(_), None) => Some(format!("{setting}: {shown} → {hidden}")),
        _ => None,
    }
}

/// Whether a part came or went because the context is now used with a tail, or without one.
fn is_split_off(change: &InputChange) -> bool {
    change.part == "kept" && (change.old.is_none() || change.new.is_none())
}

/// Whether a value that was left out is empty now, or the other way round.
fn is_nothing(change: &InputChange) -> bool {
    let empty = Digest::hash("");
    [&change.old, &change.new]
        .into_iter()
        .flatten()
        .all(|part| part.digest == empty)
}

/// Whether a part is put together from others that have changed themselves.
fn is_composed(part: &str, changes: &[InputChange]) -> bool {
    let pieces: &[&str] = match part {
        "transcript" => &["previous output", "span"],
        "context" => &["kept", "tail", "found"],
        _ => &[],
    };
    changes
        .iter()
        .any(|change| pieces.contains(&change.part.as_str()))
}

fn role(part: &str) -> InputRole {
    match part {
        "schema" | "rules" => InputRole::Of(StaleCause::Schema),
        "endpoint" | "model" => InputRole::Of(StaleCause::Model),
        "system rubric" | "criteria" | "output schema" => InputRole::Criteria,
        "instructions" => InputRole::Skeleton,
        "previous_summary" | "previous output" | "previous" | "context" | "kept" | "answer"
        | "found" | "query" | "archive" => InputRole::Of(StaleCause::Upstream),
        "transcript" | "span" | "prefix" | "messages" | "tail" | "fixture_model"
        | "context_length" => InputRole::Of(StaleCause::Span),
        "question" | "ground truth" => InputRole::Of(StaleCause::Probe),
        "request" | "stdin" | "sections" | "repetition" => InputRole::Derived,
        _ => match part.split_once(' ') {
            // A turn of the searches, by its index; a prompt has a name.
            Some(("user" | "assistant", turn))
                if turn.bytes().all(|byte| byte.is_ascii_digit()) =>
            {
                InputRole::Of(StaleCause::Upstream)
            }
            Some(("user" | "system" | "assistant", _)) => InputRole::Skeleton,
            Some(("items" | "reply" | "results", _)) => InputRole::Of(StaleCause::Upstream),
            Some(("messages", _)) => InputRole::Of(StaleCause::Span),
            Some(("file", _)) => InputRole::Of(StaleCause::CommandFile),
            _ => InputRole::Of(StaleCause::Setting),
        },
    }
}

fn words(kind: StaleCause, change: &InputChange, current: &CurrentSources<'_>) -> String {
    let part = change.part.as_str();
    match kind {
        StaleCause::Span => {
            let file = current.fixture.unwrap_or(part);
            match part {
                "fixture_model" | "context_length" => format!("{file}: {}", values(part, change)),
                _ => file.to_owned(),
            }
        }
        StaleCause::Probe => match (current.bank, current.probe) {
            (Some(bank), Some(probe)) => {
                format!("{bank}: {part} of {probe}")
            }
            _ => part.to_owned(),
        },
        StaleCause::CommandFile => part.strip_prefix("file ").unwrap_or(part).to_owned(),
        StaleCause::Upstream => match part.split_once(' ').map_or(part, |(kind, _)| kind) {
            "items" => "previous compaction".to_owned(),
            "reply" | "assistant" => "earlier reply".to_owned(),
            "found" | "results" | "user" => "search results".to_owned(),
            _ => part.replace('_', " "),
        },
        _ => values(if part == "rule" { "strategy" } else { part }, change),
    }
}

/// `name: old → new`; only the name if the values are long or secret.
fn values(name: &str, change: &InputChange) -> String {
    match (value(change.old.as_ref()), value(change.new.as_ref())) {
        (Some(old), Some(new)) => format!("{name}: {old} → {new}"),
        _ => name.to_owned(),
    }
}

/// A value as it is shown; `None` if it is long or secret.
fn value(part: Option<&InputPart>) -> Option<&str> {
    let text = part.map_or(Some(""), |part| part.text.as_deref())?;
    Some(if text.is_empty() { "not set" } else { text })
}

/// What is reported if nothing that a user knows has changed: the part that has, and the cause that comes nearest.
fn fallback(change: &InputChange, current: &CurrentSources<'_>) -> (StaleCause, String) {
    match role(&change.part) {
        // neither the rubric nor the question has changed
        InputRole::Criteria if current.probe.is_some() => (
            StaleCause::Setting,
            "criteria that apply, by rubric_scope or the probe's type".to_owned(),
        ),
        InputRole::Criteria => (StaleCause::Rubric, "criteria that apply".to_owned()),
        InputRole::Skeleton => (
            StaleCause::Prompt,
            current
                .prompt
                .as_ref()
                .map_or_else(|| change.part.clone(), SourceText::label),
        ),
        // one execution served all runs, or does now
        InputRole::Derived if change.part == "repetition" => {
            let was_one = change
                .old
                .as_ref()
                .is_some_and(|part| part.text.as_deref() == Some("none"));
            (
                StaleCause::Setting,
                format!("deterministic: {was_one} → {}", !was_one),
            )
        }
        InputRole::Derived => (StaleCause::Schema, change.part.clone()),
        InputRole::Of(kind) => (kind, words(kind, change, current)),
    }
}

#[cfg(test)]
#[path = "explain_tests.rs"]
mod tests;
