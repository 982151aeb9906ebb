//! What the calls of a session do: which lines they read, which files they change, which commands fail.

use std::collections::HashMap;

use crate::references::{FileLines, Lines, Target, is_error_line, targets};
use crate::transcript::{
    FileAction, Message, Role, ToolCall, command_of, file_operations, is_failed_read,
    is_failed_result, may_change_any_file, may_deny, stated_exit_code,
};
use base::text::one_line;

/// A file was read or changed.
#[derive(Clone, Debug)]
pub(super) struct FileAccess {
    /// The place among all calls of the session.
    order: usize,
    pub(super) turn: usize,
    pub(super) file: FileLines,
    /// Tokens of the result, for a read; `None` for a change.
    pub(super) tokens: Option<u64>,
}

impl FileAccess {
    pub(super) fn is_read(&self) -> bool {
        self.tokens.is_some()
    }
}

#[derive(Clone, Debug)]
pub(super) struct FailedCommand {
    pub(super) turn: usize,
    /// The turn in which the same command first failed with the same error.
    pub(super) first: usize,
    pub(super) command: String,
    /// The line of the error to show.
    pub(super) shown: String,
}

/// The calls of a session, by turn.
#[derive(Debug, Default)]
pub(super) struct SessionActions {
    /// The message of each turn.
    pub(super) turns: Vec<usize>,
    /// How many calls each turn makes, and how many of these are understood.
    pub(super) calls: Vec<(usize, usize)>,
    /// In the order of their turns.
    pub(super) failures: Vec<FailedCommand>,
    /// Reads and changes of files, in order.
    pub(super) accesses: Vec<FileAccess>,
    /// Calls that may have changed any file: their places, rising.
    any_change: Vec<usize>,
    /// Searches and commands, with the first turn of each.
    looks: HashMap<Target, usize>,
    /// Commands with what identifies their error, with the first turn of each.
    first_failures: HashMap<(String, String), usize>,
    order: usize,
}

impl SessionActions {
    pub(super) fn from_messages(messages: &[Message]) -> SessionActions {
        let mut actions = SessionActions::default();
        for (at, message) in messages
            .iter()
            .enumerate()
            .filter(|(_, message)| message.role == Role::Assistant)
        {
            let turn = actions.turns.len();
            actions.turns.push(at);
            let results = results_after(messages, at);
            let mut known = 0;
            for call in &message.tool_calls {
                let result = results
                    .get(call.id.as_str())
                    .map_or("", |result| result.content.as_str());
                known += usize::from(actions.add(turn, call, result));
            }
            actions.calls.push((message.tool_calls.len(), known));
        }
        actions
    }

    /// Adds a call, and returns whether it is known what it does.
    fn add(&mut self, turn: usize, call: &ToolCall, result: &str) -> bool {
        self.order += 1;
        let command = command_of(call);
        let looked_at = targets(call);
        let operations = file_operations(call).into_iter();
        let changing = operations.filter(|operation| operation.action != FileAction::Read);
        let changed: Vec<String> = changing.map(|one| one.path).collect();
        let known = command.is_some() || !looked_at.is_empty() || !changed.is_empty();
        let is_shell = command.is_some();
        // An edit that was refused did not happen; a command may have changed files before it failed.
        if is_shell || !(is_failed_result(result) || may_deny(result)) {
            self.change(turn, changed);
        }
        if may_change_any_file(call) {
            self.any_change.push(self.order);
        }
        for target in looked_at {
            self.look(turn, target, result);
        }
        if let (Some(command), Some((error, shown))) = (command, error_of(result)) {
            let command = one_line(&command);
            let first = *self
                .first_failures
                .entry((command.clone(), error))
                .or_insert(turn);
            self.failures.push(FailedCommand {
                turn,
                first,
                command,
                shown,
            });
        }
        known
    }

    fn change(&mut self, turn: usize, paths: Vec<String>) {
        for path in paths {
            let lines = Lines::ALL;
            self.access(turn, FileLines { path, lines }, None);
        }
    }

    fn look(&mut self, turn: usize, target: Target, result: &str) {
        match target {
            Target::File(file) if !is_failed_read(result) => {
                self.access(turn, file, Some(tokens_of(result)));
            }
            Target::File(_) => {}
            other => {
                self.looks.entry(other).or_insert(turn);
            }
        }
    }

    fn access(&mut self, turn: usize, file: FileLines, tokens: Option<u64>) {
        self.accesses.push(FileAccess {
            order: self.order,
            turn,
            file,
            tokens,
        });
    }

    /// Whether the lines were read before turn `point`, and nothing changed the file between then and now.
    pub(super) fn is_re_read(&self, read: &FileAccess, point: usize) -> bool {
        // What was read before a call that may have changed any file does not count.
        let changes = self
            .any_change
            .partition_point(|order| *order <= read.order);
        let changed = changes
            .checked_sub(1)
            .and_then(|last| self.any_change.get(last));
        let changed = changed.copied().unwrap_or_default();
        let from = self.accesses.partition_point(|one| one.order <= changed);
        let until = self.accesses.partition_point(|one| one.order < read.order);
        let mut earlier = self.accesses.get(from..until).into_iter().flatten().rev();
        let decisive = earlier.find(|access| {
            (!access.is_read() || access.turn < point) && access.file.overlaps(&read.file)
        });
        decisive.is_some_and(|access| access.is_read())
    }

    /// The reads before turn `point`.
    fn reads_before(&self, point: usize) -> impl Iterator<Item = &FileAccess> {
        let earlier = self.accesses.iter();
        earlier
            .take_while(move |access| access.turn < point)
            .filter(|access| access.is_read())
    }

    /// Whether a read is of a file that was read before turn `point`, in whichever lines.
    pub(super) fn is_known_file(&self, read: &FileAccess, point: usize) -> bool {
        self.reads_before(point)
            .any(|access| name_of(&access.file.path) == name_of(&read.file.path))
    }

    /// Whether what a call looks at was looked at before turn `point`, even if it has changed since.
    pub(super) fn was_looked_at(&self, call: &ToolCall, point: usize) -> bool {
        targets(call).iter().any(|target| match target {
            Target::File(file) => self
                .reads_before(point)
                .any(|access| access.file.overlaps(file)),
            other => self.looks.get(other).is_some_and(|turn| *turn < point),
        })
    }

    /// The first turn at or after message `at`.
    pub(super) fn turn_at(&self, at: usize) -> usize {
        self.turns.partition_point(|message| *message < at)
    }
}

/// A rough count: four characters per token.
fn tokens_of(result: &str) -> u64 {
    result.chars().count() as u64 / 4
}

/// The results of the calls of message `at`, by the id of the call.
pub(super) fn results_after(messages: &[Message], at: usize) -> HashMap<&str, &Message> {
    let following = messages
        .iter()
        .skip(at + 1)
        .take_while(|message| message.role == Role::Tool);
    following
        .filter_map(|message| Some((message.tool_call_id.as_deref()?, message)))
        .collect()
}

fn name_of(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Lines of an error that identify it.
const LINES: usize = 4;

/// The error in a result: what identifies it, and the line to show. `None` if the result is not an error.
fn error_of(result: &str) -> Option<(String, String)> {
    if !is_failed_result(result) {
        return None;
    }
    let mut lines: Vec<&str> = lines_without_code(result)
        .filter(|line| is_error_line(line) || line.to_lowercase().contains("fail"))
        .take(LINES)
        .collect();
    if lines.is_empty() {
        lines.extend(lines_without_code(result).next_back());
    }
    let shown = lines.first()?.chars().take(200).collect();
    Some((
        lines
            .iter()
            .map(|line| without_numbers(line))
            .collect::<Vec<_>>()
            .join("\n"),
        shown,
    ))
}

/// The lines of a result that are neither empty nor state its exit code.
fn lines_without_code(result: &str) -> impl DoubleEndedIterator<Item = &str> {
    result
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && stated_exit_code(line).is_none())
}

/// Removes digits: times, addresses and line numbers differ between two occurrences of the same error.
fn without_numbers(line: &str) -> String {
    line.chars()
        .filter(|c| !c.is_ascii_digit())
        .take(300)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    /// One turn with a call of one of four kinds: a read of ten lines, a write, a command that may change anything, and a
    /// command that reads.
    fn add(kind: usize, file: usize, first: u64, messages: &mut Vec<Message>) {
        let path = format!("src/f{file}/mod.rs");
        let (name, arguments) = match kind {
            0 => (
                "Read",
                json!({"file_path": path, "offset": first, "limit": 10}),
            ),
            1 => ("Write", json!({"file_path": path, "content": "x"})),
            2 => ("Bash", json!({"command": "git checkout main"})),
            _ => ("Bash", json!({"command": format!("cat {path}")})),
        };
        let id = format!("c{}", messages.len());
        let mut call = Message::text(Role::Assistant, "");
        call.tool_calls
            .push(ToolCall::new(&id, name, arguments.to_string()));
        messages.push(call);
        messages.push(Message::result(&id, "done"));
    }

    /// Whether some read before turn `point` shows a line of `read`, with no change between the two.
    fn is_searched(actions: &SessionActions, read: &FileAccess, point: usize) -> bool {
        let earlier = actions
            .accesses
            .iter()
            .filter(|one| one.order < read.order && one.file.overlaps(&read.file));
        let earlier: Vec<&FileAccess> = earlier.collect();
        earlier
            .iter()
            .filter(|one| one.is_read() && one.turn < point)
            .any(|old| {
                let is_changed = earlier
                    .iter()
                    .any(|one| !one.is_read() && one.order > old.order);
                !is_changed
                    && !actions
                        .any_change
                        .iter()
                        .any(|order| (old.order..=read.order).contains(order))
            })
    }

    proptest! {
        #[test]
        fn re_reads_are_found_as_by_a_look_at_all_reads(
            calls in prop::collection::vec((0..4_usize, 0..2_usize, 1..40_u64), 1..30),
            point in 0..30_usize,
        ) {
            let mut messages = Vec::new();
            calls.iter().for_each(|(kind, file, first)| add(*kind, *file, *first, &mut messages));
            let actions = SessionActions::from_messages(&messages);
            let reads: Vec<&FileAccess> =
                actions.accesses.iter().filter(|one| one.is_read()).collect();
            for read in &reads {
                prop_assert_eq!(actions.is_re_read(read, point), is_searched(&actions, read, point));
                let is_known = reads.iter().any(|one| one.turn < point);
                prop_assert_eq!(actions.is_known_file(read, point), is_known, "the files have one name");
            }
        }
    }

    #[test]
    fn a_failure_knows_when_its_command_first_failed_so() {
        let mut messages = Vec::new();
        for (id, code) in [("a", 1), ("b", 2), ("c", 2)] {
            let mut call = Message::text(Role::Assistant, "");
            call.tool_calls
                .push(ToolCall::new(id, "Bash", r#"{"command":"make"}"#));
            messages.extend([
                call,
                Message::result(
                    id,
                    format!("Exit code {code}\nerror: no rule {}", "x".repeat(code)),
                ),
            ]);
        }
        let failures = SessionActions::from_messages(&messages).failures;
        assert_eq!(
            failures
                .iter()
                .map(|one| (one.turn, one.first))
                .collect::<Vec<_>>(),
            [(0, 0), (1, 1), (2, 1)]
        );
    }

    #[test]
    fn two_tests_that_fail_are_two_errors() {
        let failed = |test: &str| {
            error_of(&format!(
                "Exit code 1\n--- FAIL: {test} (0.00s)\nFAIL pool 0.003s"
            ))
        };
        let [one, other] = ["TestDrain", "TestWait"].map(failed);
        assert!(one.is_some() && one != other);
    }

    #[test]
    fn a_result_is_an_error_by_its_exit_code_or_its_mark() {
        for text in [
            "Exit code 1\nerror[E0308]: mismatched types at 12",
            "Exit code: 101\nWall time: 1.2 seconds\nOutput:\nerror[E0308]: mismatched types at 9",
            "Chunk ID: a\nProcess exited with code 2\nOutput:\nerror[E0308]: mismatched types at 30",
            "error[E0308]: mismatched types at 7\n\nCommand exited with code 1",
            r#"{"output":"error[E]: mismatched types","metadata":{"exit_code":1}}"#,
        ] {
            assert!(error_of(text).is_some(), "{text}");
        }
        assert_eq!(
            error_of("Exit code: 0\nOutput:\nerror counters: none"),
            None
        );
        assert_eq!(error_of("all good"), None);
        for text in [
            r#"{"success": false, "message": "no match"}"#,
            r#"{"output": "", "error": "no such file"}"#,
        ] {
            assert!(error_of(text).is_some(), "{text}");
        }
        assert_eq!(
            error_of(r#"{"output": "done", "exit_code": 0, "error": null}"#),
            None
        );
        assert_eq!(
            error_of("commit a1b2c3d\nrun 412: exit code 30 after 9s"),
            None,
            "the log of another command"
        );
        let key = |text: &str| error_of(text).map(|(key, _)| key);
        assert_eq!(
            key("Exit code 1\nerror at 12"),
            key("Exit code: 1\nWall time: 9 s\nerror at 13")
        );
        assert_ne!(
            key("Exit code 1\nerror at 12"),
            key("Exit code 1\nerror: no file")
        );
    }
}
