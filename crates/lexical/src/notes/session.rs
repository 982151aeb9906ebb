//! Facts extracted from a transcript by rules: files, failures, decisions, demands, tasks, values. No model.
//!
//! Tests that failed behind a pipe: `cargo test | tail` ends with the exit code of `tail`.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::rules;
use base::lazy_patterns;
use base::text::{pattern, shortened};
use base::words::{WordList, sentences};
use sessions::transcript::{
    CLEARED_RESULT, FileAction, FileLedger, FileOperation, FileRecord, Message, Role, ToolCall,
    command_among, command_of, file_operation, file_operations, is_refused_by_user, is_same_file,
    recorded_exit_code, results_by_call, shell_commands, stated_exit_code, was_done,
};

/// All extracted facts, in the order of the transcript.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionNotes {
    /// Sentences of the user that demand or forbid something.
    pub demands: Vec<String>,
    /// Files, in the order of their last change or, if never changed, their last reading.
    pub files: Vec<FileNote>,
    /// Commands that failed, with what they printed.
    pub failures: Vec<NotedFailure>,
    /// Sentences that state a choice.
    pub decisions: Vec<String>,
    /// Sentences that name something left to do.
    pub tasks: Vec<String>,
    /// Sentences of the assistant that state a reason, a cause or a measured value.
    pub findings: Vec<String>,
    /// Settings with the value seen last.
    pub values: Vec<(String, String)>,
    /// Keys of values to which one message gave two values last.
    pub contested: HashSet<String>,
    /// The file that was given a setting last, with the value.
    written: HashMap<String, (String, String)>,
    /// Keys to which two files gave two values.
    divided: HashSet<String>,
}

/// What happened to one file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FileNote {
    /// Its state, from the ledger of the session.
    pub file: FileRecord,
    /// What was changed or defined in it.
    pub details: Vec<String>,
}

impl FileNote {
    fn is_scratch(&self) -> bool {
        self.file.path.starts_with("/tmp/")
    }
}

/// A command that failed.
#[derive(Clone, Debug, PartialEq)]
pub struct NotedFailure {
    /// The command, or the tool's name. `…` stands for lines after the first: any of them may have failed.
    pub command: String,
    /// The lines that say what went wrong, word for word.
    pub lines: Vec<String>,
    /// Whether the lines are messages of an error, and not just the last that was printed.
    pub is_message: bool,
    /// Whether the result records that the command succeeded all the same: what it printed may be about something else.
    pub has_succeeded: bool,
}

/// The most characters of a noted sentence or line.
const LINE: usize = 240;
/// The most details of a file.
const DETAILS: usize = 6;
/// The most characters of a command.
const COMMAND: usize = 110;

impl SessionNotes {
    /// Reads `messages` from the first to the last.
    pub fn from_messages(messages: &[Message]) -> SessionNotes {
        let mut notes = SessionNotes::default();
        let mut calls: HashMap<&str, &ToolCall> = HashMap::new();
        let results = results_by_call(messages);
        let mut details: Vec<(String, String)> = Vec::new();
        for message in messages {
            let known = notes.values.len();
            match message.role {
                Role::System => {}
                Role::User => notes.note_user(&message.content),
                Role::Assistant => notes.note_assistant(&message.content),
                Role::Tool => {
                    let call = message
                        .tool_call_id
                        .as_deref()
                        .and_then(|id| calls.get(id).copied());
                    notes.note_result(call, &message.content);
                }
            }
            for call in &message.tool_calls {
                calls.insert(&call.id, call);
                let result = results.get(call.id.as_str()).copied().unwrap_or_default();
                if was_done(call, result) == Some(true) {
                    notes.note_call(call, &mut details);
                }
            }
            notes.settle_values(known);
        }
        notes.contested.extend(notes.divided.drain());
        notes.files = FileLedger::from_messages(messages)
            .files
            .into_iter()
            .map(|file| FileNote {
                details: newest_details(&file.path, &details),
                file,
            })
            .collect();
        notes
    }

    /// The files without scratch files: those under `/tmp` count only if all files are there.
    pub fn lasting_files(&self) -> Vec<&FileNote> {
        let is_all_scratch = self.files.iter().all(FileNote::is_scratch);
        self.files
            .iter()
            .filter(|file| is_all_scratch || !file.is_scratch())
            .collect()
    }

    fn note_user(&mut self, text: &str) {
        for sentence in sentences(text) {
            if rules::states_demand(sentence) {
                push_new(&mut self.demands, clipped(sentence));
            } else if rules::states_decision(sentence) {
                push_new(&mut self.decisions, clipped(sentence));
            }
        }
    }

    fn note_assistant(&mut self, text: &str) {
        for sentence in sentences(text).filter(|s| s.chars().count() > 12) {
            if rules::states_decision(sentence) {
                push_new(&mut self.decisions, clipped(sentence));
            } else if rules::states_task(sentence) {
                push_new(&mut self.tasks, clipped(sentence));
            } else if rules::states_reason(sentence) || is_measured(sentence) {
                push_new(&mut self.findings, clipped(sentence));
            }
            let assigned = rules::assignment(sentence).filter(|_| !rules::reports(sentence));
            if let Some((key, value)) = assigned {
                self.values.push((key.to_owned(), value.to_owned()));
            }
        }
    }

    /// Notes the settings that a call writes, and what it changes: into `details`, with the path of each.
    fn note_call(&mut self, call: &ToolCall, details: &mut Vec<(String, String)>) {
        let arguments = call.arguments().unwrap_or_default();
        let old = first_text(&arguments, &["old_string", "old_str", "oldText"]);
        let new = first_text(&arguments, &["new_string", "new_str", "newText"]);
        let whole = first_text(&arguments, &["content", "file_text"]);
        let command = command_among(&arguments);
        let mut lines = change_details(old, new);
        let text = whole.or(command.as_deref());
        lines.extend(text.map(definitions).unwrap_or_default());
        let operations = file_operations(call).into_iter();
        let changing = operations.filter(|operation| operation.action != FileAction::Read);
        let changed: Vec<FileOperation> = changing.collect();
        let Some(FileOperation { path, .. }) = changed.first() else {
            return;
        };
        self.note_settings(new.or(whole).unwrap_or_default(), path);
        let of_shell = command.as_deref().unwrap_or_default().lines();
        of_shell.for_each(|line| self.note_settings(replacement(line).unwrap_or(line), path));
        for operation in changed {
            let of_file = lines
                .iter()
                .map(|line| (operation.path.clone(), line.clone()));
            details.extend(of_file);
        }
    }

    fn note_settings(&mut self, text: &str, path: &str) {
        for line in text.lines().filter(|line| line.len() < 100) {
            if let Some((key, value)) = rules::assignment(line)
                .filter(|(_, value)| value.starts_with(|c: char| c.is_ascii_digit()))
            {
                self.values.push((key.to_owned(), value.to_owned()));
                let now = (path.to_owned(), value.to_owned());
                let before = self.written.insert(key.to_owned(), now);
                if before.is_some_and(|(file, old)| old != value && !is_same_file(&file, path)) {
                    self.divided.insert(key.to_owned());
                }
            }
        }
    }

    /// Lets the values after the first `known`, which one message gave, replace older ones.
    fn settle_values(&mut self, known: usize) {
        let given = self.values.split_off(known);
        for (key, value) in &given {
            let mut all = given.iter();
            if all.any(|(other, another)| other == key && another != value) {
                self.contested.insert(key.clone());
            } else {
                self.contested.remove(key);
            }
            self.values.retain(|(known, _)| known != key);
            self.values.push((key.clone(), value.clone()));
        }
    }

    fn note_result(&mut self, call: Option<&ToolCall>, content: &str) {
        if content == CLEARED_RESULT || is_refused_by_user(content) {
            return;
        }
        let is_read = call.is_some_and(|call| {
            file_operation(call).is_some_and(|operation| operation.action == FileAction::Read)
                || call.function.name.contains("search")
        });
        let text = readable(content);
        let command = call.and_then(command_of);
        let code = exit_code(command.as_deref(), content, &text);
        let has_failed = code.is_some_and(|code| code != 0);
        if is_read && !has_failed {
            return;
        }
        let lines = error_lines(&text, has_failed);
        if lines.is_empty() {
            return;
        }
        let command = command
            .as_deref()
            .or(call.map(|c| c.function.name.as_str()))
            .unwrap_or("a tool");
        let more = command.trim().lines().nth(1).map_or("", |_| " …");
        let line = command.lines().next().unwrap_or_default();
        // The folder says little: the command comes after it.
        let run = line
            .strip_prefix("cd ")
            .and_then(|rest| rest.split_once("&& "))
            .map_or(line, |(_, run)| run);
        let command = shortened(&format!("{}{more}", run.trim()), COMMAND);
        let before = std::iter::once("").chain(lines.iter().map(String::as_str));
        let is_message = lines
            .iter()
            .zip(before)
            .all(|(line, before)| rules::is_error_line(line) || is_before_message(before));
        let failure = NotedFailure {
            command,
            is_message,
            lines,
            has_succeeded: code == Some(0),
        };
        self.failures.retain(|known| known.lines != failure.lines);
        self.failures.push(failure);
    }
}

/// The newest details of the file at `path`, each once.
fn newest_details(path: &str, details: &[(String, String)]) -> Vec<String> {
    let mut newest = Vec::new();
    for (_, detail) in details.iter().filter(|(of, _)| is_same_file(of, path)) {
        push_new(&mut newest, detail.clone());
    }
    let surplus = newest.len().saturating_sub(DETAILS);
    newest.drain(..surplus);
    newest
}

fn is_measured(sentence: &str) -> bool {
    sentence.len() < 400
        && sentence.split_whitespace().any(|word| {
            let word = word.trim_matches(|c: char| !c.is_alphanumeric());
            word.len() > 1 && word.starts_with(|c: char| c.is_ascii_digit())
        })
}

fn first_text<'v>(arguments: &'v Map<String, Value>, keys: &[&str]) -> Option<&'v str> {
    keys.iter().find_map(|key| arguments.get(*key)?.as_str())
}

/// The new text of a `sed` substitution in a line of shell.
fn replacement(line: &str) -> Option<&str> {
    let (_, script) = line
        .split_once("s/")
        .filter(|(before, _)| before.contains("sed "))?;
    script.split('/').nth(1)
}

/// The first added lines of a change. A single removed line is shown with the first added one.
fn change_details(old: Option<&str>, new: Option<&str>) -> Vec<String> {
    let (old, new) = (old.unwrap_or_default(), new.unwrap_or_default());
    let (removed, added) = (lines_without(old, new), lines_without(new, old));
    match (removed.as_slice(), added.as_slice()) {
        ([removed], [added, ..]) => vec![format!("{removed} → {added}")],
        (_, added) => added.iter().take(3).cloned().collect(),
    }
}

/// The lines of `text` that `other` does not have.
fn lines_without(text: &str, other: &str) -> Vec<String> {
    let lines = text.lines().map(str::trim);
    let differing =
        lines.filter(|line| line.len() > 2 && !other.lines().any(|known| known.trim() == *line));
    differing.map(|line| shortened(line, 100)).collect()
}

/// Names that a text defines: functions, classes, types, sections.
fn definitions(text: &str) -> Vec<String> {
    text.lines()
        .map(str::trim_start)
        .filter_map(definition)
        .take(DETAILS)
        .collect()
}

fn definition(line: &str) -> Option<String> {
    lazy_patterns! {
        DEFINITION = pattern(r"^(?:(?:async )?def|class|(?:pub )?fn|(?:(?:async|export) )?function|struct|enum|func|CREATE TABLE) [\p{Alphabetic}\p{N}_]+");
    }
    let found = DEFINITION.find(line)?;
    Some(found.as_str().to_owned())
}

/// The text of a tool's result; of a JSON object that wraps one, its output.
pub fn readable(content: &str) -> std::borrow::Cow<'_, str> {
    if !content.starts_with('{') {
        return content.into();
    }
    let Ok(Value::Object(object)) = serde_json::from_str::<Value>(content) else {
        return content.into();
    };
    let parts: Vec<&str> = ["output", "stdout", "stderr", "error"]
        .into_iter()
        .filter_map(|key| object.get(key)?.as_str())
        .collect();
    if parts.is_empty() {
        content.into()
    } else {
        parts.join("\n").into()
    }
}

/// The exit code that a result records, unless it is that of a pipe behind which tests failed.
fn exit_code(command: Option<&str>, content: &str, text: &str) -> Option<i64> {
    let code = recorded_exit_code(content).or_else(|| recorded_exit_code(text))?;
    let is_hiding = code == 0 && command.is_some_and(|command| hides_failed_tests(command, text));
    (!is_hiding).then_some(code)
}

/// The lines of a result that say what went wrong: the newest error lines or, if the command failed without any, the newest
/// lines that mention trouble, else the last line.
fn error_lines(text: &str, has_failed: bool) -> Vec<String> {
    let mut lines = newest_lines(text, rules::is_error_line);
    if lines.is_empty() && has_failed {
        lines = newest_lines(text, rules::mentions_trouble);
    }
    if lines.is_empty() && has_failed {
        let last = text
            .lines()
            .rev()
            .find(|line| says_something(line) && !is_frame(line));
        lines.extend(last.map(|line| clipped(line.trim())));
    }
    lines
}

/// The newest lines that a rule picks. The message of a panic is on the line after its place, and that of npm before
/// several lines that only point elsewhere.
fn newest_lines(text: &str, rule: fn(&str) -> bool) -> Vec<String> {
    const KEPT: usize = 3;
    let mut lines: Vec<String> = Vec::new();
    let before = std::iter::once("").chain(text.lines());
    let picked = text.lines().zip(before).filter(|(line, before)| {
        (rule(line) || is_before_message(before)) && says_something(line) && line.len() < 1000
    });
    let picked = picked.map(|(line, _)| line);
    for line in picked.filter(|line| stated_exit_code(line).is_none()) {
        push_new(&mut lines, clipped(line.trim()));
    }
    while lines.len() > KEPT {
        let mut places = lines.iter();
        let pointer =
            places.position(|line| line.starts_with("npm ") && rules::points_elsewhere(line));
        lines.remove(pointer.unwrap_or(0));
    }
    lines
}

/// Whether a line is the place of a panic, whose message is on the next one.
fn is_before_message(line: &str) -> bool {
    line.contains(" panicked at ") && line.ends_with(':')
}

/// Whether an agent put a line around the output of a command, such as `Wall time: 2 seconds` or `(no output)`.
fn is_frame(line: &str) -> bool {
    lazy_patterns! {
        FRAME = pattern(r"^(?:(?:Chunk ID|Wall time|Original token count|Signal|Background PIDs|Process Group PGID): .*|\(.*\)|\[.*\]|<.*>)$");
    }
    let line = line.trim();
    FRAME.is_match(line) || stated_exit_code(line).is_some()
}

/// Whether a line is more than a mark, a bare number, or the report that there is no error (`Error: (none)`).
fn says_something(line: &str) -> bool {
    const LETTERS: usize = 8;
    let letters = line
        .chars()
        .filter(|c| c.is_alphanumeric())
        .take(LETTERS)
        .count();
    letters == LETTERS && !line.trim_end().ends_with("(none)")
}

fn clipped(text: &str) -> String {
    shortened(text.trim().trim_start_matches(['-', '*', ' ']), LINE)
}

/// Appends an item. If it is in the list already, it moves to the end.
fn push_new(list: &mut Vec<String>, item: String) {
    list.retain(|known| *known != item);
    if !item.is_empty() {
        list.push(item);
    }
}

lazy_patterns! {
    /// A line with which a runner of tests sums up.
    SUMMARY = pattern(
        r"^\W*(?:test result: |error: (?:test (?:run )?failed|\d+ targets? failed)|Summary \[|Tests:?\s+\d|\d+ (?:passing|failing)\b|\d+ (?:pass|fail)$|.*\b\d+ (?:passed|failed|errors?)\b.* in [\d.]+s\b|(?:OK|FAILED)(?: \(.*\))?$|(?:ok|FAIL)(?:\t|  |$)|(?:\w+\] )?BUILD (?:SUCCESS|FAIL))",
    );

    /// Such a line that speaks of failures.
    FAILED = pattern(r"\b[1-9]\d* (?:failed|failing|fail|errors?)\b|\bFAIL(?:ED|URE)?\b|^\W*error: ");
}

/// Whether a command line ends in a pipe from a runner of tests whose last summary, in the output, says that tests failed.
/// The exit code of the pipe says nothing then. All three have to be there: what another program prints of tests that
/// failed, such as the log of an earlier run, is no failure of its own.
pub(super) fn hides_failed_tests(command: &str, output: &str) -> bool {
    // Outputs may be long, and few commands are such pipes.
    if !pipes_tests(command) {
        return false;
    }
    let summary = output.lines().rev().find(|line| SUMMARY.is_match(line));
    summary.is_some_and(|line| FAILED.is_match(line))
}

fn pipes_tests(command: &str) -> bool {
    let commands = shell_commands(command);
    let first = commands.iter().rposition(|command| !command.is_piped);
    let piped = first
        .filter(|first| first + 1 < commands.len())
        .and_then(|first| commands.get(first));
    piped.is_some_and(|piped| runs_tests(&piped.words)) && !command.contains("pipefail")
}

fn runs_tests(words: &[String]) -> bool {
    const WRAPPERS: WordList =
        WordList("sudo time timeout env npx bunx uv poetry run exec python python3 -m");
    const RUNNERS: WordList = WordList("pytest unittest tox jest vitest mocha rspec phpunit ctest");
    const TOOLS: WordList = WordList(
        "cargo go npm pnpm yarn bun deno make just mvn gradle gradlew dotnet mix swift manage.py",
    );
    let mut names = words
        .iter()
        .map(|word| word.rsplit('/').next().unwrap_or(word))
        .skip_while(|word| {
            WRAPPERS.has(word)
                || word.contains('=')
                || word.starts_with(|c: char| c.is_ascii_digit())
        });
    let Some(program) = names.next() else {
        return false;
    };
    RUNNERS.has(program)
        || TOOLS.has(program)
            && names.any(|word| matches!(word, "test" | "nextest") || word.starts_with("test:"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CARGO: &str =
        "test a ... FAILED\ntest result: FAILED. 2 passed; 1 failed; finished in 0.01s\n";

    #[test]
    fn the_last_summary_of_each_runner_tells_whether_tests_failed() {
        for (command, output) in [
            ("cargo test 2>&1 | tail -20", CARGO),
            (
                "cargo test --no-fail-fast 2>&1 | tail -5",
                "test result: ok. 3 passed; 0 failed\nerror: 1 target failed:",
            ),
            (
                "cd app && .venv/bin/pytest -q | tail -3",
                "FAILED t.py::a - assert 1 == 2\n1 failed, 10 passed in 0.12s",
            ),
            (
                "TZ=UTC timeout 60 uv run python -m pytest | head",
                "==== 2 errors in 0.50s ====\n",
            ),
            (
                "python3 -m unittest 2>&1 | tail",
                "Ran 3 tests in 0.001s\n\nFAILED (failures=1)",
            ),
            (
                "go test ./... | grep -v '^ok'",
                "--- FAIL: TestA (0.00s)\nFAIL\tapp/store\t0.004s\nFAIL",
            ),
            (
                "npm test 2>&1 | tail -8",
                "Tests:       1 failed, 3 passed, 4 total\nTime:        1 s",
            ),
            (
                "npx mocha | tail -n 30",
                "  3 passing (20ms)\n  1 failing\n",
            ),
            ("bun test | tail", " 3 pass\n 1 fail\n 5 expect() calls"),
            ("./gradlew test | tail -3", "BUILD FAILED in 3s"),
            ("cargo test |& tail -3", CARGO),
        ] {
            assert!(hides_failed_tests(command, output), "{command}");
        }
    }

    #[test]
    fn what_passed_what_no_pipe_hides_and_what_others_print_is_no_failure() {
        for (command, output) in [
            (
                "cargo test | tail",
                "test should_fail ... ok\ntest result: ok. 10 passed; 0 failed",
            ),
            (
                "pytest -q | tail -1",
                "1 failed, 2 passed in 0.10s\n3 passed in 0.12s",
            ),
            ("bun test | tail", " 3 pass\n 0 fail"),
            ("cargo test", CARGO),
            ("cargo test | tail; echo done", CARGO),
            ("set -o pipefail; cargo test | tail", CARGO),
            ("cat run-412.log | tail -20", CARGO),
            ("gh run view 7 --log-failed | tail", CARGO),
            ("cargo build | tail", CARGO),
            ("git log | grep test", "fix: 1 failed"),
        ] {
            assert!(!hides_failed_tests(command, output), "{command}");
        }
    }
}
