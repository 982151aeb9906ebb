//! What differs between the inputs of two actions, as a person would say it: one comparison for `plan`, `why` and `cache
//! show`. Only this file uses the crate `similar`, for the lines of texts.

use std::collections::BTreeSet;

use serde::Serialize;
use similar::{Algorithm, ChangeTag, capture_diff_slices, group_diff_ops};

use super::sources::{FIXTURE, PROBE, PROMPT, RUBRIC};
use crate::action::{Digest, Input, InputsDocument, Source, Stage};
use base::locale::Locale;
use base::named_enum;

/// Finds a text by its digest, as `Lookup::read_text` does.
pub type FindText<'a> = &'a dyn Fn(&Digest) -> Option<String>;

/// Why an action is stale.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// The reason; of several, the one nearest to what the user did.
    pub cause: StaleCause,
    pub changes: Vec<Change>,
}

impl From<StaleCause> for Reason {
    fn from(cause: StaleCause) -> Reason {
        Reason {
            cause,
            changes: Vec::new(),
        }
    }
}

impl From<Vec<Change>> for Reason {
    fn from(changes: Vec<Change>) -> Reason {
        let cause = changes.first().map(|change| change.cause);
        Reason {
            cause: cause.unwrap_or(StaleCause::NotCached),
            changes,
        }
    }
}

impl Reason {
    /// That it failed, with what is known of the failure.
    pub(super) fn failed(what: &str) -> Reason {
        let changes = vec![Change::new(StaleCause::Failed, what)];
        Reason::from(changes)
    }

    /// What has changed, in words: `prompts/anchored.md:14`, `temperature: 0 → 0.5`.
    pub fn words(&self, text: FindText<'_>) -> Vec<String> {
        let mut seen = BTreeSet::new();
        let words = self.changes.iter().flat_map(|change| change.words(text));
        words.filter(|words| seen.insert(words.clone())).collect()
    }
}

/// Something that a person changed, or that follows from it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Change {
    pub cause: StaleCause,
    /// The setting, the file or the output.
    pub what: String,
    /// The old and the new value, where both are short and not secret.
    pub values: Option<(String, String)>,
    /// The old and the new text of the file or the output, where it had one before.
    pub texts: Option<(Digest, Digest)>,
}

impl Change {
    fn new(cause: StaleCause, what: impl Into<String>) -> Change {
        Change {
            cause,
            what: what.into(),
            values: None,
            texts: None,
        }
    }

    /// Whether it is a file whose lines are what has changed.
    pub fn is_of_lines(&self) -> bool {
        matches!(self.cause, StaleCause::Prompt | StaleCause::Rubric)
    }

    /// In words: with both values; a file with its lines, if both texts are stored.
    pub fn words(&self, text: FindText<'_>) -> Vec<String> {
        let stored = self.texts.filter(|_| self.is_of_lines());
        let stored = stored.and_then(|(old, new)| text(&old).zip(text(&new)));
        match (&self.values, stored) {
            (Some((old, new)), _) => vec![format!("{}: {old} → {new}", self.what)],
            (None, Some((old, new))) => changed_places(&self.what, &old, &new),
            (None, None) => vec![self.what.clone()],
        }
    }
}

/// An input that one side lacks, or that has another digest.
#[derive(Clone, Debug, Serialize)]
pub struct InputChange {
    /// The name of the input, or `schema` or `repetition`.
    pub name: String,
    /// `None` if the older action did not have it.
    pub old: Option<Input>,
    pub new: Option<Input>,
}

/// All inputs that differ, in the order of the documents: what is compared, before anything is explained.
pub fn differing_inputs(old: &InputsDocument, new: &InputsDocument) -> Vec<InputChange> {
    let (before, now) = (all_inputs(old), all_inputs(new));
    let find = |inputs: &[Input], name: &str| {
        let found = inputs.iter().find(|input| input.name == name);
        found.cloned()
    };
    let mut seen = BTreeSet::new();
    let names = now.iter().chain(&before).map(|input| &*input.name);
    let names = names.filter(|name| seen.insert(*name));
    let changes = names.map(|name| InputChange {
        name: name.to_owned(),
        old: find(&before, name),
        new: find(&now, name),
    });
    changes
        .filter(|change| {
            let digest = |input: &Option<Input>| input.as_ref().map(|input| input.digest);
            digest(&change.old) != digest(&change.new)
        })
        .collect()
}

/// The inputs of a document, with its numbers as inputs.
fn all_inputs(document: &InputsDocument) -> Vec<Input> {
    let numbers = [
        ("schema", document.schema.to_string()),
        ("repetition", document.repetition.to_string()),
    ];
    let numbers = numbers.map(|(name, text)| Input {
        name: name.into(),
        digest: Digest::hash(&text),
        text: Some(text),
    });
    numbers
        .into_iter()
        .chain(document.inputs.iter().cloned())
        .collect()
}

/// What has changed from the inputs of one action to those of another, what is nearest to the user first. What merely
/// follows from something else is left out.
pub fn difference(old: &InputsDocument, new: &InputsDocument) -> Vec<Change> {
    let inputs = differing_inputs(old, new);
    let comparison = Comparison {
        old,
        new,
        inputs: &inputs,
    };
    let mut changes: Vec<Change> = inputs
        .iter()
        .filter_map(|input| comparison.explain(input))
        .collect();
    if changes.is_empty() {
        changes.extend(inputs.first().map(|input| comparison.fallback(input)));
    }
    let mut seen = BTreeSet::new();
    changes.retain(|change| seen.insert(change.clone()));
    changes.sort_by_key(|change| change.cause);
    changes
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
        NotCached = "not in the cache",
        Failed = "failed last time",
        Damaged = "damaged",
        Refreshed = "refreshed on request",
    }
}

impl StaleCause {
    /// The phrase that is printed.
    pub fn words(self, locale: Locale) -> &'static str {
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
            StaleCause::NotCached => "缓存中没有",
            StaleCause::Failed => "上次失败",
            StaleCause::Damaged => "已损坏",
            StaleCause::Refreshed => "按要求刷新",
        };
        locale.pick(self.name(), chinese)
    }
}

/// What an input is to a person.
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

/// Two documents, with the inputs in which they differ.
struct Comparison<'a> {
    old: &'a InputsDocument,
    new: &'a InputsDocument,
    inputs: &'a [InputChange],
}

impl Comparison<'_> {
    /// What a person changed in this input; `None` if it merely follows from something else.
    fn explain(&self, input: &InputChange) -> Option<Change> {
        if input.is_nothing() || input.is_to_or_from_rules() {
            return None;
        }
        if let Some(setting) = self.switched(input) {
            return Some(setting);
        }
        match role(&input.name) {
            InputRole::Of(_) if self.uses_other_values() && input.is_value_of_prompt() => None,
            InputRole::Of(_) if self.is_composed(&input.name) || input.is_split_off() => None,
            InputRole::Of(cause) => Some(self.worded(cause, input)),
            InputRole::Skeleton => self.source(StaleCause::Prompt, PROMPT),
            InputRole::Criteria => self.source(StaleCause::Rubric, RUBRIC),
            InputRole::Derived => None,
        }
    }

    /// The change of a source; `None` if it is the same as before.
    fn source(&self, cause: StaleCause, name: &str) -> Option<Change> {
        let new = source(self.new, name)?;
        let texts = self.versions(name);
        let is_same = texts.is_some_and(|(old, new)| old == new);
        (!is_same).then(|| Change {
            texts,
            ..Change::new(cause, new.label())
        })
    }

    /// The digests of a source in both documents.
    fn versions(&self, name: &str) -> Option<(Digest, Digest)> {
        Some((
            source(self.old, name)?.digest,
            source(self.new, name)?.digest,
        ))
    }

    /// Whether the prompt now has other values: by an edit, or because built-in rules get all of them, where a model gets
    /// those that the prompt uses.
    fn uses_other_values(&self) -> bool {
        self.versions(PROMPT).is_some_and(|(old, new)| old != new)
            || self.inputs.iter().any(InputChange::is_to_or_from_rules)
    }

    /// The setting that shows an input or hides it, if that came or went.
    fn switched(&self, input: &InputChange) -> Option<Change> {
        let (setting, hidden, shown) = match &*input.name {
            // An answerer is always shown the context, a judge only if `judge_context` is set.
            "context" if self.new.stage == Stage::Judge => ("judge_context", "false", "true"),
            "tail" => ("tail", "none", "verbatim"),
            _ => return None,
        };
        let values = match (&input.old, &input.new) {
            (None, Some(_)) => (hidden, shown),
            (Some(_), None) => (shown, hidden),
            _ => return None,
        };
        Some(Change {
            values: Some((values.0.to_owned(), values.1.to_owned())),
            ..Change::new(StaleCause::Setting, setting)
        })
    }

    /// Whether an input is put together from others that have changed themselves.
    fn is_composed(&self, name: &str) -> bool {
        let pieces: &[&str] = match name {
            "transcript" => &["previous output", "span"],
            "context" => &["kept", "tail", "found"],
            _ => &[],
        };
        self.inputs
            .iter()
            .any(|input| pieces.contains(&input.name.as_str()))
    }

    fn worded(&self, cause: StaleCause, input: &InputChange) -> Change {
        let name = input.name.as_str();
        let fixture = || source(self.new, FIXTURE).map_or(name.to_owned(), Source::label);
        let change = |what: String| Change::new(cause, what);
        match cause {
            StaleCause::Span if matches!(name, "fixture_model" | "context_length") => Change {
                values: input.values(),
                ..change(format!("{}: {name}", fixture()))
            },
            StaleCause::Span => Change {
                texts: self.versions(FIXTURE),
                ..change(fixture())
            },
            StaleCause::Probe => match source(self.new, PROBE) {
                Some(bank) => Change {
                    texts: self.versions(&bank.name),
                    ..change(format!(
                        "{}: {name} of {}",
                        bank.label(),
                        bank.name.strip_prefix(PROBE).unwrap_or_default()
                    ))
                },
                None => change(name.to_owned()),
            },
            StaleCause::CommandFile => {
                change(name.strip_prefix("file ").unwrap_or(name).to_owned())
            }
            StaleCause::Upstream => {
                let what = match name.split_once(' ').map_or(name, |(kind, _)| kind) {
                    "items" => "previous compaction".to_owned(),
                    "reply" => "earlier reply".to_owned(),
                    "found" | "results" => "search results".to_owned(),
                    _ => name.replace('_', " "),
                };
                let digests = input.old.as_ref().zip(input.new.as_ref());
                Change {
                    texts: digests.map(|(old, new)| (old.digest, new.digest)),
                    ..change(what)
                }
            }
            _ => Change {
                values: input.values(),
                ..change(if name == "rule" { "strategy" } else { name }.to_owned())
            },
        }
    }

    /// What is reported if nothing that a user knows has changed: the input that has, and the cause that comes nearest.
    fn fallback(&self, input: &InputChange) -> Change {
        match role(&input.name) {
            // neither the rubric nor the question has changed
            InputRole::Criteria if source(self.new, PROBE).is_some() => Change::new(
                StaleCause::Setting,
                "criteria that apply, by rubric_scope or the probe's type",
            ),
            InputRole::Criteria => Change::new(StaleCause::Rubric, "criteria that apply"),
            InputRole::Skeleton => {
                let prompt = source(self.new, PROMPT);
                let label = prompt.map_or_else(|| input.name.clone(), Source::label);
                Change::new(StaleCause::Prompt, label)
            }
            // one execution served all runs, or does now
            InputRole::Derived if input.name == "repetition" => {
                let was_one = input
                    .old
                    .as_ref()
                    .is_some_and(|input| input.text.as_deref() == Some("none"));
                Change {
                    values: Some((was_one.to_string(), (!was_one).to_string())),
                    ..Change::new(StaleCause::Setting, "deterministic")
                }
            }
            InputRole::Derived => Change::new(StaleCause::Schema, input.name.clone()),
            InputRole::Of(cause) => self.worded(cause, input),
        }
    }
}

/// The source whose name is, or begins with, this one.
fn source<'d>(document: &'d InputsDocument, name: &str) -> Option<&'d Source> {
    document
        .sources
        .iter()
        .find(|source| source.name.starts_with(name))
}

impl InputChange {
    fn has_come_or_gone(&self) -> bool {
        self.old.is_none() || self.new.is_none()
    }

    /// Whether the built-in rules replaced a model, or a model replaced them: their version came or went with them.
    fn is_to_or_from_rules(&self) -> bool {
        self.name == "rules" && self.has_come_or_gone()
    }

    /// Whether an input came or went because another prompt uses other values.
    fn is_value_of_prompt(&self) -> bool {
        let is_value = matches!(
            self.name.as_str(),
            "transcript"
                | "previous_summary"
                | "focus_topic"
                | "target_tokens"
                | "context"
                | "question"
                | "request"
        );
        is_value && self.has_come_or_gone()
    }

    /// Whether an input came or went because the context is now used with a tail, or without one.
    fn is_split_off(&self) -> bool {
        self.name == "kept" && self.has_come_or_gone()
    }

    /// Whether a value that was left out is empty now, or the other way round.
    fn is_nothing(&self) -> bool {
        let empty = Digest::hash("");
        [&self.old, &self.new]
            .into_iter()
            .flatten()
            .all(|input| input.digest == empty)
    }

    /// The values, unless one of them is long or secret.
    fn values(&self) -> Option<(String, String)> {
        let value = |input: &Option<Input>| match input {
            None => Some("not set".to_owned()),
            Some(input) => input.text.clone().map(|text| match text.is_empty() {
                true => "not set".to_owned(),
                false => text,
            }),
        };
        Some((value(&self.old)?, value(&self.new)?))
    }
}

fn role(name: &str) -> InputRole {
    match name {
        "schema" | "rules" => InputRole::Of(StaleCause::Schema),
        "endpoint" | "model" => InputRole::Of(StaleCause::Model),
        "system rubric" | "criteria" | "output schema" => InputRole::Criteria,
        "instructions" => InputRole::Skeleton,
        "previous_summary" | "previous output" | "previous" | "context" | "kept" | "answer"
        | "found" => InputRole::Of(StaleCause::Upstream),
        "transcript" | "span" | "prefix" | "messages" | "tail" | "fixture_model"
        | "context_length" => InputRole::Of(StaleCause::Span),
        "question" | "ground truth" => InputRole::Of(StaleCause::Probe),
        "request" | "stdin" | "sections" | "repetition" => InputRole::Derived,
        _ => match name.split_once(' ') {
            Some(("user" | "system", _)) => InputRole::Skeleton,
            Some(("items" | "reply" | "results", _)) => InputRole::Of(StaleCause::Upstream),
            Some(("messages", _)) => InputRole::Of(StaleCause::Span),
            Some(("file", _)) => InputRole::Of(StaleCause::CommandFile),
            _ => InputRole::Of(StaleCause::Setting),
        },
    }
}

#[cfg(test)]
#[path = "difference_tests.rs"]
mod tests;

/// A stretch of lines that differs, with some lines around it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hunk {
    /// Its first line in the new text, from 1.
    pub line: usize,
    /// The lines in order, each after `-` if only the old text has it, `+` if only the new one has it, or a blank.
    pub lines: Vec<String>,
}

impl Hunk {
    /// The lines of a unified diff.
    pub fn unified(&self) -> impl Iterator<Item = String> {
        let head = format!("@@ line {} @@", self.line);
        std::iter::once(head).chain(self.lines.iter().cloned())
    }
}

/// The lines with their ends, so that a missing end of the last line is a difference.
fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

/// The stretches in which `new` differs from `old`, each with `around` lines before and after it.
pub fn hunks(old: &str, new: &str, around: usize) -> Vec<Hunk> {
    let (old, new) = (lines(old), lines(new));
    let ops = capture_diff_slices(Algorithm::Myers, &old, &new);
    let hunks = group_diff_ops(ops, around).into_iter().map(|ops| {
        let first = ops.first().map_or(0, |op| op.new_range().start);
        let lines = ops
            .iter()
            .flat_map(|op| op.iter_changes(&old[..], &new[..]))
            .map(|change| {
                let mark = match change.tag() {
                    ChangeTag::Equal => ' ',
                    ChangeTag::Delete => '-',
                    ChangeTag::Insert => '+',
                };
                let line = change.value().trim_end_matches(['\n', '\r']);
                format!("{mark}{line}")
            });
        Hunk {
            line: first + 1,
            lines: lines.collect(),
        }
    });
    hunks.collect()
}

/// The most places of one file that are named.
const MOST_PLACES: usize = 8;

/// Where the text of `path` differs from its earlier text: `path:line`, `path:first-last`; only the path if no line
/// differs.
pub fn changed_places(path: &str, old: &str, new: &str) -> Vec<String> {
    let mut places: Vec<String> = changed_lines(old, new)
        .into_iter()
        .map(|(first, last)| match first == last {
            true => format!("{path}:{first}"),
            false => format!("{path}:{first}-{last}"),
        })
        .collect();
    if places.is_empty() {
        places.push(path.to_owned());
    }
    if places.len() > MOST_PLACES {
        let more = places.len() - MOST_PLACES;
        places.truncate(MOST_PLACES);
        places.push(format!("and {more} more places"));
    }
    places
}

/// The lines of `new`, from 1, that differ from `old`: first and last of each stretch. Where lines were only removed,
/// it is the line that is now in their place.
fn changed_lines(old: &str, new: &str) -> Vec<(usize, usize)> {
    let last = lines(new).len().max(1);
    let places = hunks(old, new, 0).into_iter().map(|hunk| {
        let added = hunk.lines.iter().filter(|line| line.starts_with('+'));
        let first = hunk.line.min(last);
        (first, (hunk.line + added.count() - 1).clamp(first, last))
    });
    places.collect()
}

#[cfg(test)]
mod line_tests {
    use super::*;

    const OLD: &str = "one\ntwo\nthree\nfour\nfive\n";

    #[test]
    fn changed_lines_are_those_of_the_new_text() {
        assert_eq!(changed_lines(OLD, "one\n2\nthree\nfour\nfive\n"), [(2, 2)]);
        assert_eq!(
            changed_lines(OLD, "zero\none\ntwo\nthree\nfour\n5\n6\n"),
            [(1, 1), (6, 7)]
        );
        assert_eq!(
            changed_lines(OLD, "one\nthree\nfour\nfive\n"),
            [(2, 2)],
            "what stands where a line was taken out"
        );
        assert_eq!(
            changed_lines(OLD, "one\ntwo\nthree\nfour\n"),
            [(4, 4)],
            "the last line that is left"
        );
        assert_eq!(changed_lines(OLD, ""), [(1, 1)]);
        assert!(changed_lines(OLD, OLD).is_empty());
    }

    #[test]
    fn a_hunk_has_the_lines_around_it() {
        let found = hunks(OLD, "one\ntwo\n3\nfour\nfive\n", 1);
        let lines = [" two", "-three", "+3", " four"]
            .map(str::to_owned)
            .to_vec();
        assert_eq!(found, [Hunk { line: 2, lines }]);
    }
}
