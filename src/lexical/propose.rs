//! Probes by rule: candidates from what an index of the transcript names.

use serde_json::{Value, json};

use super::answer::is_chinese;
use super::passages::messages;
use crate::compress::SessionNotes;
use crate::probe::{ProbeSources, propose_candidates};
use base::locale::Locale;
use sessions::transcript::{Message, Role, ToolCall};

/// Proposes probes about a rendered transcript, in the shape that a model's reply has.
pub(super) fn propose(transcript: &str) -> String {
    let span = messages(transcript).unwrap_or_else(|| vec![Message::text(Role::User, transcript)]);
    let said: Vec<&str> =
        span.iter().filter(|message| message.role != Role::Tool).map(|message| message.content.as_str()).collect();
    let locale = if is_chinese(&said.concat()) { Locale::Zh } else { Locale::En };
    let candidates = propose_candidates(&clues(&span), locale);
    json!({ "probes": candidates }).to_string()
}

fn clues(span: &[Message]) -> ProbeSources {
    let notes = SessionNotes::from_messages(span);
    let words = own_words(span);
    let files = || notes.lasting_files().into_iter().filter(|file| !file.deleted);
    ProbeSources {
        created: files().filter(|file| file.created).map(|file| file.path.clone()).collect(),
        modified: (files().filter(|file| file.modified && !file.created))
            .map(|file| (file.path.clone(), file.details.clone()))
            .collect(),
        read: files()
            .filter(|file| file.read && !file.created && !file.modified)
            .map(|file| file.path.clone())
            .collect(),
        failures: notes.failures.iter().map(|failure| (failure.command.clone(), failure.lines.clone())).collect(),
        decisions: notes.decisions.clone(),
        demands: notes
            .demands
            .iter()
            .filter(|demand| words.iter().any(|text| text.contains(*demand)))
            .cloned()
            .collect(),
        findings: notes.findings.clone(),
        plan: open_plan(span),
        tasks: notes.tasks.clone(),
        request: words.last().map(|text| (*text).to_owned()),
        last_command: calls(span).rev().find_map(|call| command(&call.function.arguments)),
        values: notes.values.clone(),
    }
}

/// What the person wrote: no prompt of a program in the person's name, and nothing as long as pasted text.
fn own_words(span: &[Message]) -> Vec<&str> {
    const LONGEST: usize = 1500;
    let said = span.iter().filter(|message| message.role == Role::User).map(|message| message.content.trim());
    said.filter(|text| text.len() <= LONGEST && !text.starts_with(['<', '[']) && !text.contains("</")).collect()
}

fn calls(span: &[Message]) -> impl DoubleEndedIterator<Item = &ToolCall> {
    span.iter().flat_map(|message| &message.tool_calls)
}

/// The items not done of the list the agent keeps for itself, as it wrote it last; by whatever name its tool goes.
fn open_plan(span: &[Message]) -> Vec<String> {
    let list = |call: &ToolCall| {
        let arguments: Value = serde_json::from_str(&call.function.arguments).ok()?;
        let list = ["todos", "plan", "items"].into_iter().find_map(|key| arguments.get(key)?.as_array().cloned())?;
        list.iter().all(|item| item.get("status").is_some()).then_some(list)
    };
    let Some(items) = calls(span).rev().find_map(list) else { return Vec::new() };
    let open = items.iter().filter(|item| !matches!(text(item, "status"), "completed" | "done" | "cancelled"));
    let words = open.filter_map(|item| {
        ["content", "step", "text", "title", "description"]
            .into_iter()
            .map(|key| text(item, key))
            .find(|t| !t.is_empty())
    });
    words.map(str::to_owned).collect()
}

fn text<'v>(item: &'v Value, key: &str) -> &'v str {
    item.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// The one line of a call that runs a command of one line.
fn command(arguments: &str) -> Option<String> {
    const LONGEST: usize = 110;
    let arguments: Value = serde_json::from_str(arguments).ok()?;
    let command = ["command", "cmd"].into_iter().find_map(|key| arguments.get(key)?.as_str())?.trim();
    (!command.contains('\n') && command.len() <= LONGEST).then(|| command.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::{ProbeType, read_candidates};

    #[test]
    fn a_rendered_transcript_yields_candidates_as_a_reply() {
        let span = "[user]\nFix the retry.\n\n[assistant]\nGoing with linear back-off instead of 2 ** n.\n\
                    [call write_file] {\"path\":\"app/retry.py\",\"content\":\"DELAY = 3\"}\n\n[result write_file]\nok";
        let (candidates, unreadable) = read_candidates(&propose(span)).expect("a reply");
        assert_eq!(unreadable, 0);
        let kinds: Vec<ProbeType> = candidates.iter().map(|candidate| candidate.kind).collect();
        assert!(kinds.contains(&ProbeType::Artifact) && kinds.contains(&ProbeType::Decision), "{candidates:?}");
        assert_eq!(read_candidates(&propose("")).expect("a reply").0, []);
    }

    #[test]
    fn the_plan_as_it_stood_last_is_asked_for() {
        let span = "[user]\nGo on.\n\n[assistant]\n\n\
                    [call TodoWrite] {\"todos\":[{\"content\":\"Write the parser\",\"status\":\"completed\"},\
                    {\"content\":\"Run the slow tests\",\"status\":\"pending\"}]}\n\n[result TodoWrite]\nok";
        let (candidates, _) = read_candidates(&propose(span)).expect("a reply");
        let plan = candidates.iter().find(|c| c.kind == ProbeType::Continuation).expect("a candidate");
        assert_eq!(plan.expected_facts, ["Run the slow tests"]);
    }
}
