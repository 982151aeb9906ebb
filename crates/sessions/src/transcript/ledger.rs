//! The ledger of a session: each file with what happened to it, from calls and their results.

use std::collections::HashMap;

use super::exit_code::{is_failed_result, names_no_file};
use super::files::{file_operation, file_operations, is_same_file};
use super::operation::{FileAction, FileOperation};
use base::message::{Message, Role, ToolCall};

/// What happened to one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileRecord {
    /// Its path: the longest form that was written.
    pub path: String,
    /// The path before it was renamed.
    pub renamed_from: Option<String>,
    /// It was made here: a patch or a result says so, or nothing had named it before.
    pub created: bool,
    /// It was changed; after that, if it was created here.
    pub modified: bool,
    /// It was written as a whole, and nothing says whether it was there before.
    pub may_be_new: bool,
    /// It was looked at.
    pub read: bool,
    /// It is no longer there.
    pub deleted: bool,
    /// A call whose effect is not known names it: whether it changed nobody can say.
    pub uncertain: bool,
    /// The message with the call that decided its state last.
    pub message: usize,
}

/// All files of a session, in the order of their last change or, if never changed, their last reading.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileLedger {
    /// The files.
    pub files: Vec<FileRecord>,
}

impl FileLedger {
    /// Reads the calls of `messages` from the first to the last.
    pub fn from_messages(messages: &[Message]) -> FileLedger {
        let mut ledger = FileLedger::default();
        let results: HashMap<&str, &str> = messages
            .iter()
            .filter_map(|one| Some((one.tool_call_id.as_deref()?, one.content.as_str())))
            .collect();
        let mut unclear: Vec<&str> = Vec::new();
        for (at, message) in messages.iter().enumerate() {
            for call in &message.tool_calls {
                let result = results.get(call.id.as_str()).copied().unwrap_or("");
                let mut operations = file_operations(call);
                let is_missing = names_no_file(result);
                operations.retain(|one| {
                    one.action != FileAction::Read || !is_missing && !is_listing(&one.path, result)
                });
                if operations.is_empty() || has_own_program(call) {
                    unclear.push(&call.function.arguments);
                }
                // An edit that was refused did not happen; a command may have changed files before it failed.
                let is_refused = is_failed_result(result) || is_missing;
                let is_tool = file_operation(call).is_some() || !is_shell(call);
                for operation in operations.iter().filter(|_| !(is_refused && is_tool)) {
                    let said = is_said_to_be_new(result).filter(|_| is_tool);
                    let is_new = said.or_else(|| {
                        (!is_named_before(messages, at, &operation.path)).then_some(true)
                    });
                    ledger.add(operation, is_new, at);
                }
            }
        }
        for file in &mut ledger.files {
            let name = file.path.rsplit('/').next().unwrap_or(&file.path);
            file.uncertain = unclear.iter().any(|arguments| arguments.contains(name));
        }
        ledger
    }

    fn add(&mut self, operation: &FileOperation, is_new: Option<bool>, message: usize) {
        if let Some(from) = &operation.renamed_from {
            let old = self.take(from).unwrap_or_default();
            self.files.push(FileRecord {
                path: from.clone(),
                deleted: true,
                message,
                ..FileRecord::default()
            });
            self.take(&operation.path);
            return self.files.push(FileRecord {
                path: operation.path.clone(),
                renamed_from: Some(from.clone()),
                modified: true,
                deleted: false,
                message,
                ..old
            });
        }
        let is_read = operation.action == FileAction::Read;
        let of_path = |file: &&mut FileRecord| is_same_file(&file.path, &operation.path);
        let changed = self.files.iter_mut().find(of_path);
        let changed = changed.filter(|file| is_read && (file.created || file.modified));
        if let Some(file) = changed.filter(|file| !file.deleted) {
            file.read = true;
            return;
        }
        let known = self.take(&operation.path);
        let is_known = known.as_ref().is_some_and(|file| !file.deleted);
        let mut file = known.unwrap_or_default();
        if file.path.len() < operation.path.len() {
            file.path.clone_from(&operation.path);
        }
        match operation.action {
            FileAction::Create => file.created = true,
            FileAction::Write if !is_known && is_new == Some(true) => file.created = true,
            FileAction::Write | FileAction::Change => {
                file.may_be_new |=
                    operation.action == FileAction::Write && !is_known && is_new.is_none();
                file.modified = true;
            }
            FileAction::Read => file.read = true,
            FileAction::Delete => {}
        }
        file.deleted = operation.action == FileAction::Delete;
        file.message = message;
        self.files.push(file);
    }

    /// Takes out the file of this path.
    fn take(&mut self, path: &str) -> Option<FileRecord> {
        let at = self
            .files
            .iter()
            .position(|file| is_same_file(&file.path, path))?;
        Some(self.files.remove(at))
    }
}

/// Whether a call runs a command line.
fn is_shell(call: &ToolCall) -> bool {
    ["command", "cmd", "script"]
        .iter()
        .any(|key| call.function.arguments.contains(&format!("\"{key}\"")))
}

/// Whether a call runs a program of its own making, whose changes no one can read off it.
fn has_own_program(call: &ToolCall) -> bool {
    const PROGRAMS: [&str; 8] = [
        "python",
        "node ",
        "perl ",
        "ruby ",
        "awk ",
        "php ",
        "deno ",
        "osascript",
    ];
    is_shell(call)
        && PROGRAMS
            .iter()
            .any(|program| call.function.arguments.contains(program))
}

/// Whether a result says that the file is new (`Some(true)`) or was there before (`Some(false)`).
fn is_said_to_be_new(result: &str) -> Option<bool> {
    const HEAD: usize = 200;
    let head: String = result.chars().take(HEAD).collect::<String>().to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| head.contains(word));
    if says(&["updated", "overw", "modified", "replaced"]) {
        Some(false)
    } else if says(&["created", "new file", "creating"]) {
        Some(true)
    } else {
        None
    }
}

/// Whether the result of reading `path` lists a folder: names alone, for a path without an extension, or a mark of it.
fn is_listing(path: &str, result: &str) -> bool {
    const MARKS: [&str; 2] = ["directory</type>", "files and directories up to"];
    let name = path
        .trim_end_matches('/')
        .rsplit('/')
        .next()
        .unwrap_or(path);
    let may_be_folder = !name.trim_start_matches('.').contains('.');
    let is_name = |line: &str| !line.contains(char::is_whitespace);
    let head: String = result.chars().take(400).collect();
    MARKS.iter().any(|mark| head.contains(mark))
        || may_be_folder && result.trim().contains('\n') && result.trim().lines().all(is_name)
}

/// Whether a call or a result before message `at` names the file: then it may have been there. What the user asks for
/// need not exist.
fn is_named_before(messages: &[Message], at: usize, path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    messages.iter().take(at).any(|message| {
        let is_result = message.role == Role::Tool && message.content.contains(name);
        let mut calls = message.tool_calls.iter();
        is_result || calls.any(|call| call.function.arguments.contains(name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn session(calls: &[(&str, Value, &str)]) -> FileLedger {
        let mut messages = vec![Message::text(Role::User, "go")];
        for (name, arguments, result) in calls {
            let id = format!("c{}", messages.len());
            let mut call = Message::text(Role::Assistant, "");
            call.tool_calls
                .push(ToolCall::new(&id, *name, arguments.to_string()));
            messages.extend([call, Message::result(&id, *result)]);
        }
        FileLedger::from_messages(&messages)
    }

    #[test]
    fn a_refused_edit_did_not_happen_and_a_file_that_was_listed_is_not_new() {
        let ledger = session(&[
            ("bash", json!({"command": "ls"}), "old.md\nlib.rs"),
            ("write", json!({"path": "old.md", "content": "x"}), "ok"),
            ("write", json!({"path": "new.md", "content": "x"}), "ok"),
            ("edit", json!({"path": "lib.rs"}), "Error: no match"),
            ("view", json!({"path": ".github"}), "CODEOWNERS\nworkflows"),
        ]);
        let states: Vec<(&str, bool, bool)> = ledger
            .files
            .iter()
            .map(|file| (file.path.as_str(), file.created, file.modified))
            .collect();
        assert_eq!(states, [("old.md", false, true), ("new.md", true, false)]);
        assert!(
            ledger.files[0].may_be_new,
            "it was listed before, perhaps by a search"
        );
    }

    #[test]
    fn a_renamed_file_keeps_its_state_and_an_unknown_tool_makes_it_uncertain() {
        let ledger = session(&[
            ("read", json!({"path": "src/a.rs:1-20"}), "fn a()"),
            ("bash", json!({"command": "git mv src/a.rs src/b.rs"}), ""),
            ("refactor", json!({"where": "src/b.rs"}), "ok"),
        ]);
        let [old, new] = ledger.files.as_slice() else {
            panic!("{ledger:?}")
        };
        assert!(old.deleted && old.path == "src/a.rs");
        assert!(new.read && new.modified && new.uncertain && new.message == 3);
        assert_eq!(new.renamed_from.as_deref(), Some("src/a.rs"));
    }
}
