//! The ledger of a session: each file with what happened to it, from calls and their results.

use std::collections::HashMap;

use super::exit_code::{
    is_failed_result, is_refused_by_user, may_deny, may_deny_command, names_no_file,
};
use super::files::{
    command_of, file_operation, file_operations, is_same_file, may_change_any_file,
};
use super::operation::{FileAction, FileOperation, file_name};
use super::shell::{ShellCommand, shell_commands};
use base::lazy_patterns;
use base::message::{Message, Role, ToolCall};
use base::text::pattern;
use base::words::WordList;

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
    /// The folder that all rooted paths are in: a bare name is that of a file directly in it.
    folder: String,
}

impl FileLedger {
    /// Reads the calls of `messages` from the first to the last.
    pub fn from_messages(messages: &[Message]) -> FileLedger {
        let calls = (0..).zip(messages).flat_map(|(at, message)| {
            let calls = message.tool_calls.iter();
            calls.map(move |call| (at, call, file_operations(call)))
        });
        let calls: Vec<(usize, &ToolCall, Vec<FileOperation>)> = calls.collect();
        let mut ledger = FileLedger {
            folder: common_folder(calls.iter().flat_map(|(.., operations)| operations)),
            ..FileLedger::default()
        };
        let results = results_by_call(messages);
        let mut unclear: Vec<String> = Vec::new();
        let mut makes_project = None;
        for (at, call, mut operations) in calls {
            let result = results.get(call.id.as_str()).copied().unwrap_or("");
            let is_missing = names_no_file(result);
            operations.retain(|one| {
                one.action != FileAction::Read || !is_missing && !is_listing(&one.path, result)
            });
            let commands = shell_commands(&command_of(call).unwrap_or_default());
            if operations.is_empty() || has_own_program(call) {
                unclear.push(call.function.arguments.clone());
            } else {
                let doubtful = commands.iter().filter(|command| command.is_unclear());
                unclear.extend(doubtful.map(|command| command.words.join(" ")));
            }
            if !is_refused_by_user(result) && may_change_any_file(call) {
                let known = ledger.files.iter_mut();
                known.for_each(|file| file.uncertain = true);
                let made = commands.iter().filter_map(ShellCommand::makes_project);
                makes_project = makes_project.max(made.max());
            }
            let was_done = was_done(call, result);
            if was_done == Some(false) {
                continue;
            }
            if was_done.is_none() {
                operations.retain(|one| one.action == FileAction::Read);
                unclear.push(call.function.arguments.clone());
            }
            // What `>>` writes to may be new; another change needs the file.
            let appends = is_shell(call) && call.function.arguments.contains(">>");
            for operation in &operations {
                let said = is_said_to_be_new(result).filter(|_| !is_shell(call));
                let is_new = said
                    .or_else(|| (!is_named_before(messages, at, &operation.path)).then_some(true))
                    .filter(|_| operation.action != FileAction::Change || appends);
                ledger.add(operation, is_new, at);
            }
        }
        for file in &mut ledger.files {
            let name = file_name(&file.path);
            let ending = name.rsplit('.').next().unwrap_or(name);
            file.uncertain |= unclear.iter().any(|text| text.contains(name))
                || makes_project.is_some_and(|makes_all| makes_all || DATA.has(ending));
        }
        ledger.doubt_namesakes();
        ledger
    }

    /// Doubts that a rooted file outside the folder was only read where a bare name, which may be its own, was changed.
    fn doubt_namesakes(&mut self) {
        let changed = self
            .files
            .iter()
            .filter(|file| (file.created || file.modified) && !file.path.contains(['/', '\\']));
        let changed: Vec<String> = changed.map(|file| file.path.clone()).collect();
        for file in &mut self.files {
            let name = file_name(&file.path);
            let is_rooted = file.path.starts_with(['/', '~']) || file.path.contains('\\');
            let is_elsewhere = self.folder.is_empty() || !file.path.starts_with(&self.folder);
            file.uncertain |= is_rooted && is_elsewhere && changed.iter().any(|bare| bare == name);
        }
    }

    /// Whether two paths name one file of this session.
    fn is_same(&self, a: &str, b: &str) -> bool {
        let is_in_folder = |bare: &str, path: &str| {
            let bare = bare.trim_start_matches("./");
            !self.folder.is_empty()
                && path
                    .strip_suffix(bare)
                    .is_some_and(|before| before.ends_with('/'))
                && is_same_file(&format!("{}/{bare}", self.folder), path)
        };
        is_same_file(a, b) || is_in_folder(a, b) || is_in_folder(b, a)
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
            // What moves onto a known file, such as a temporary copy of it, changes that file.
            let replaced = self.take(&operation.path).filter(|file| !file.deleted);
            return self.files.push(FileRecord {
                path: operation.path.clone(),
                modified: true,
                message,
                ..replaced.unwrap_or(FileRecord {
                    renamed_from: Some(from.clone()),
                    deleted: false,
                    ..old
                })
            });
        }
        let is_read = operation.action == FileAction::Read;
        let known = self.place_of(&operation.path);
        let changed = known.and_then(|at| self.files.get_mut(at));
        let changed = changed.filter(|file| is_read && (file.created || file.modified));
        if let Some(file) = changed.filter(|file| !file.deleted) {
            file.read = true;
            return;
        }
        let known = self.take(&operation.path);
        let is_known = known.as_ref().is_some_and(|file| !file.deleted);
        let mut file = known.unwrap_or_default();
        let is_bare = !file.path.is_empty() && !file.path.contains('/');
        if file.path.len() < operation.path.len() && !is_bare {
            file.path.clone_from(&operation.path);
        }
        match operation.action {
            FileAction::Create => file.created = true,
            FileAction::Write if !is_known && is_new == Some(true) => file.created = true,
            FileAction::Write | FileAction::Change => {
                let is_write = operation.action == FileAction::Write;
                file.may_be_new |= !is_known && is_write == is_new.is_none();
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
        let at = self.place_of(path)?;
        Some(self.files.remove(at))
    }

    fn place_of(&self, path: &str) -> Option<usize> {
        let mut files = self.files.iter();
        files.position(|file| self.is_same(&file.path, path))
    }
}

/// The endings of files that a package manager writes.
const DATA: WordList = WordList("json toml lock mod sum yaml yml exs");

/// Whether `call` was done, as its result says; `None` if it may have been refused. A command may have changed files
/// before it failed, and one that has an exit code was run.
pub fn was_done(call: &ToolCall, result: &str) -> Option<bool> {
    let is_shell = is_shell(call);
    let has_failed = is_failed_result(result) || names_no_file(result);
    if is_refused_by_user(result) || !is_shell && has_failed {
        return Some(false);
    }
    let may_deny = if is_shell { may_deny_command } else { may_deny };
    (!may_deny(result)).then_some(true)
}

fn is_shell(call: &ToolCall) -> bool {
    file_operation(call).is_none() && command_of(call).is_some()
}

/// The results in `messages`, by the calls that they answer.
pub fn results_by_call(messages: &[Message]) -> HashMap<&str, &str> {
    let results = messages.iter();
    results
        .filter_map(|one| Some((one.tool_call_id.as_deref()?, one.content.as_str())))
        .collect()
}

/// The folder that all rooted paths of a session are in, but for those of the system; empty if there is none.
fn common_folder<'o>(operations: impl Iterator<Item = &'o FileOperation>) -> String {
    const OF_SYSTEM: WordList = WordList("/tmp/ /var/ /usr/ /etc/ /dev/ /proc/ /private/");
    let paths = operations.map(|operation| operation.path.as_str());
    let own =
        |path: &&str| path.starts_with('/') && !OF_SYSTEM.iter().any(|root| path.starts_with(root));
    let folders = paths
        .filter(own)
        .filter_map(|path| Some(path.rsplit_once('/')?.0.to_owned()));
    let common = folders.reduce(|a, b| {
        let parts = a.split('/').zip(b.split('/'));
        let parts: Vec<&str> = parts.take_while(|(a, b)| a == b).map(|(a, _)| a).collect();
        parts.join("/")
    });
    common.unwrap_or_default()
}

/// Whether a call runs a program of its own making, whose changes no one can read off it.
fn has_own_program(call: &ToolCall) -> bool {
    lazy_patterns! {
        PROGRAM = pattern("python|osascript|(?:node|perl|ruby|awk|php|deno) ");
    }
    PROGRAM.is_match(&call.function.arguments) && command_of(call).is_some()
}

/// Whether a result says that the file is new (`Some(true)`) or was there before (`Some(false)`).
fn is_said_to_be_new(result: &str) -> Option<bool> {
    const HEAD: usize = 200;
    // The lines below show the file, which is "the updated content" of a new file, too.
    let line = result.trim_start().lines().next().unwrap_or_default();
    let head: String = line.chars().take(HEAD).collect::<String>().to_lowercase();
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
    let name = file_name(path.trim_end_matches('/'));
    let may_be_folder = !name.trim_start_matches('.').contains('.');
    let is_name = |line: &str| !line.contains(char::is_whitespace);
    let head: String = result.chars().take(400).collect();
    MARKS.iter().any(|mark| head.contains(mark))
        || may_be_folder && result.trim().contains('\n') && result.trim().lines().all(is_name)
}

/// Whether a call or a result before message `at` names the file: then it may have been there. What the user asks for
/// need not exist.
fn is_named_before(messages: &[Message], at: usize, path: &str) -> bool {
    let name = file_name(path);
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
    fn what_was_read_before_a_call_that_may_change_any_file_is_uncertain() {
        let read = |path: &str| ("read", json!({ "path": path }), "x");
        let run = |line: &str, result| ("bash", json!({ "command": line }), result);
        let denied = "The user denied this operation.";
        let ledger = session(&[
            read("a.rs"),
            run("cargo fmt", denied),
            run("rm b.rs", denied),
        ]);
        assert!(!ledger.files[0].uncertain && ledger.files.len() == 1);
        let ledger = session(&[read("a.rs"), run("cargo fmt", ""), read("b.rs")]);
        let states: Vec<bool> = ledger.files.iter().map(|file| file.uncertain).collect();
        assert_eq!(states, [true, false]);
    }

    #[test]
    fn a_command_that_was_not_run_changed_nothing_and_one_that_failed_may_have() {
        let state = |result: &str| {
            let ledger = session(&[
                ("read", json!({"path": "src/b.py"}), "x"),
                ("bash", json!({"command": "sed -i s/x/y/ src/b.py"}), result),
            ]);
            (ledger.files[0].modified, ledger.files[0].uncertain)
        };
        for refused in [
            "Permission to use Bash has been denied.",
            "[Operation Cancelled] Reason: User did not allow tool call",
        ] {
            assert_eq!(state(refused), (false, false), "{refused}");
        }
        for open in [
            "Command blocked by sandbox policy",
            "This command requires approval",
            "命令被用户取消",
        ] {
            assert_eq!(state(open), (false, true), "{open}");
        }
        for done in [
            "",
            "Exit code 1\nmake: no such target",
            "2 files changed",
            "3 failed, 2 passed",
            "port 80 is not free",
        ] {
            assert_eq!(state(done), (true, false), "{done}");
        }
    }

    #[test]
    fn what_a_command_may_have_written_beside_what_is_evident_is_uncertain() {
        let doubts = |command: &str| {
            let read = |path: &str| ("read", json!({ "path": path }), "x");
            let run = ("bash", json!({ "command": command }), "");
            let ledger = session(&[run, read("web/package.json"), read(r"C:\web\app.css")]);
            let files = ledger.files.iter().filter(|file| file.path != "b.py");
            files.map(|file| file.uncertain).collect::<Vec<bool>>()
        };
        for (command, expected) in [
            ("npm install lodash && cat web/package.json", [true, false]),
            ("npx create-next-app web", [true, true]),
            (
                "cat b.py && (cd web && gsed -i s/x/y/ app.css)",
                [false, true],
            ),
            (
                "cat b.py; curl -o web/package.json https://x.org/a",
                [true, false],
            ),
            (r"Set-Content -Path C:\web\app.css -Value x", [false, true]),
            (
                "cat b.py && grep -n x web/package.json | wc -l",
                [false, false],
            ),
            ("cat b.py && npm run build", [false, false]),
            ("cat b.py && diff app.css b.css", [false, false]),
        ] {
            assert_eq!(doubts(command), expected, "{command}");
        }
    }

    #[test]
    fn what_is_appended_to_a_file_that_nothing_named_may_make_it() {
        let may_be_new = |calls: &[(&str, Value, &str)]| {
            let ledger = session(calls);
            ledger
                .files
                .last()
                .map(|file| (file.modified, file.may_be_new))
        };
        let append = || ("bash", json!({"command": "echo x >> docs/a.md"}), "");
        let read = ("read", json!({"path": "docs/a.md"}), "x");
        let listed = ("bash", json!({"command": "ls docs"}), "a.md\nb.md");
        let edit = ("edit", json!({"path": "docs/a.md"}), "ok");
        assert_eq!(may_be_new(&[append()]), Some((true, true)));
        for known in [read, listed] {
            assert_eq!(may_be_new(&[known, append()]), Some((true, false)));
        }
        assert_eq!(
            may_be_new(&[edit]),
            Some((true, false)),
            "an edit needs a file"
        );
    }

    #[test]
    fn a_bare_name_is_that_of_the_file_in_the_folder_of_the_work() {
        let read = |path: &str| ("read", json!({ "path": path }), "x");
        let edit = |path: &str| ("edit", json!({ "path": path }), "ok");
        let ledger = session(&[
            edit("README.md"),
            read("/r/app/README.md"),
            read("../app/README.md"),
            read("/r/app/docs/README.md"),
            read(r"C:\app\README.md"),
        ]);
        let files = ledger.files.iter();
        let states: Vec<(&str, bool, bool)> = files
            .map(|file| {
                (
                    file.path.as_str(),
                    file.modified || file.created,
                    file.uncertain,
                )
            })
            .collect();
        assert_eq!(
            states,
            [
                ("README.md", true, false),
                ("/r/app/docs/README.md", false, false),
                (r"C:\app\README.md", false, true)
            ],
            "where the folder is another, nobody can say"
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

        let command = "sed s/a/b/ src/a.rs > src/a.rs.tmp && mv src/a.rs.tmp src/a.rs";
        let ledger = session(&[
            ("read", json!({"path": "src/a.rs"}), "fn a()"),
            ("bash", json!({ "command": command }), ""),
        ]);
        let changed = ledger.files.last().unwrap();
        assert!(changed.path == "src/a.rs" && changed.modified && !changed.created);
        assert_eq!(changed.renamed_from, None, "it was there before");
    }
}
