//! What the calls of a session do to files: by tools that read and edit, by patches, by command lines.

use serde_json::{Map, Value};

use super::operation::{FileAction, FileOperation};
use super::shell::{ShellCommand, may_change_unnamed_files, shell_commands};
use base::message::ToolCall;
use base::text::plain;
use base::words::WordList;

/// Whether `key` is a name that tools give to the argument holding a file's path.
fn is_file_path_key(key: &str) -> bool {
    const KEYS: WordList =
        WordList("path filepath absolutepath notebookpath filename file targetfile relativepath");
    KEYS.has(&plain(key))
}

/// Whether two paths name one file: the shorter one, rooted nowhere, is the end of the longer.
pub fn is_same_file(a: &str, b: &str) -> bool {
    // Windows has `C:\a` and `C:/a`, and a shell of Unix writes `/c/a` there.
    if [a, b]
        .iter()
        .any(|path| path.contains('\\') || path.starts_with("C:/"))
    {
        let [a, b] = [a, b].map(|path| path.replace('\\', "/").replace("C:/", "/c/"));
        return is_same_file(&a, &b);
    }
    let [a, b] = [a, b].map(|path| path.trim_start_matches("./").trim_start_matches("../"));
    let (long, short) = if a.len() > b.len() { (a, b) } else { (b, a) };
    let short = short.strip_prefix('~').unwrap_or(short);
    let is_end = |short: &str| {
        long.strip_suffix(short).is_some_and(|before| {
            before.is_empty() || before.ends_with('/') || short.starts_with('/')
        })
    };
    a == b || short.contains('/') && is_end(short)
}

/// The operations of a call, in order; none for a tool that is not known.
pub fn file_operations(call: &ToolCall) -> Vec<FileOperation> {
    let Some(arguments) = call.arguments() else {
        return patched(&call.function.arguments);
    };
    let mut operations = operations_of_tool(&call.function.name, &arguments);
    if operations.is_empty() {
        let commands = commands_in(&arguments);
        let texts = arguments.values().filter_map(Value::as_str);
        let of_shell = commands.iter().map(String::as_str);
        let of_shell = of_shell.filter(|command| !arguments.values().any(|value| value == command));
        for text in texts.chain(of_shell) {
            operations.extend(patched(text));
        }
        for command in &commands {
            operations.extend(
                shell_commands(command)
                    .iter()
                    .flat_map(ShellCommand::operations),
            );
        }
    }
    operations
}

/// The first file of a call of a known file tool; `None` for shells and other tools.
pub fn file_operation(call: &ToolCall) -> Option<FileOperation> {
    let operations = operations_of_tool(&call.function.name, &call.arguments()?);
    operations.into_iter().next()
}

/// The operations of a known file tool.
fn operations_of_tool(name: &str, arguments: &Map<String, Value>) -> Vec<FileOperation> {
    match action_of_tool(name, arguments) {
        Some(ToolAction::Rename) => renamed(arguments).into_iter().flatten().collect(),
        Some(ToolAction::Of(action)) => paths_in(arguments)
            .into_iter()
            .map(|path| FileOperation::new(action, path))
            .collect(),
        None => Vec::new(),
    }
}

/// What a tool does with the files that its arguments name.
enum ToolAction {
    Of(FileAction),
    Rename,
}

/// What the tool `name` does, whatever the style of its name and the server that it is from.
fn action_of_tool(name: &str, arguments: &Map<String, Value>) -> Option<ToolAction> {
    const READ: WordList = WordList(
        "read readfile view viewfile open openfile cat readmanyfiles readmultiplefiles readtextfile notebookread \
        getfilecontents fsread",
    );
    const WRITE: WordList = WordList(
        "write writefile writetofile create createfile savefile newfile createnewfile createtextfile rewritefile",
    );
    const CHANGE: WordList = WordList(
        "edit editfile multiedit patch replace insert notebookedit editnotebook applypatch applydiff replaceinfile \
        insertcontent searchandreplace searchreplace strreplace strreplacefile updatefile appendfile appendtofile \
        multistrreplace hashlineedit replacestringinfile multireplacestringinfile inserteditintofile editnotebookfile \
        replacefilecontent multireplacefilecontent editexistingfile singlefindandreplace editblock fsappend",
    );
    const DELETE: WordList = WordList("delete deletefile removefile removefiles deletepath");
    const RENAME: WordList = WordList("move movefile renamefile rename movepath");
    // What these do, an argument says.
    const EDITORS: WordList =
        WordList("strreplaceeditor strreplacebasededittool fileeditor texteditor fswrite");
    let own = plain(name.rsplit("__").next().unwrap_or(name));
    let command = arguments.get("command").and_then(Value::as_str);
    let action = match own.as_str() {
        own if READ.has(own) => FileAction::Read,
        own if WRITE.has(own) => FileAction::Write,
        own if CHANGE.has(own) => FileAction::Change,
        own if DELETE.has(own) => FileAction::Delete,
        own if RENAME.has(own) => return Some(ToolAction::Rename),
        own if EDITORS.has(own) => match command {
            Some("view") => FileAction::Read,
            Some("create" | "write") => FileAction::Write,
            None if own == "fswrite" => FileAction::Write,
            _ => FileAction::Change,
        },
        _ => return None,
    };
    Some(ToolAction::Of(action))
}

fn renamed(arguments: &Map<String, Value>) -> Option<[FileOperation; 2]> {
    let text = |keys: [&str; 4]| keys.iter().find_map(|key| arguments.get(*key)?.as_str());
    let from = text(["source", "from", "old_path", "source_path"])?;
    let to = text(["destination", "to", "new_path", "destination_path"])?;
    Some(FileOperation::rename(from, to))
}

/// The paths that arguments name: one, or a list of them.
fn paths_in(arguments: &Map<String, Value>) -> Vec<&str> {
    let single = arguments.iter().find(|(key, _)| is_file_path_key(key));
    if let Some(path) = single.and_then(|(_, path)| path.as_str()) {
        return vec![path];
    }
    let lists = [
        "paths",
        "files",
        "file_paths",
        "filePaths",
        "replacements",
        "operations",
    ];
    let list = lists.iter().find_map(|key| arguments.get(*key)?.as_array());
    let paths = list.into_iter().flatten().filter_map(|item| {
        let named = item
            .as_object()?
            .iter()
            .find(|(key, _)| is_file_path_key(key));
        named.map(|(_, path)| path)
    });
    let plain = list.into_iter().flatten().filter(|item| item.is_string());
    plain.chain(paths).filter_map(Value::as_str).collect()
}

/// The files of a patch, in the format of `apply_patch` or as a unified diff that is applied. Code that passes a patch on
/// has it in a string of its own, with `\n` for the ends of lines.
fn patched(text: &str) -> Vec<FileOperation> {
    const BEGIN: &str = "*** Begin Patch";
    let Some((_, patch)) = text.split_once(BEGIN) else {
        let is_applied = ["git apply", "patch -p"]
            .iter()
            .any(|mark| text.contains(mark));
        return if is_applied || text.starts_with("--- ") || text.starts_with("diff --git ") {
            of_unified_diff(text)
        } else {
            Vec::new()
        };
    };
    let unescaped;
    let patch = if patch.trim_start_matches(' ').starts_with("\\n") {
        unescaped = patch.replace("\\n", "\n");
        unescaped.as_str()
    } else {
        patch
    };
    let mut operations: Vec<FileOperation> = Vec::new();
    for line in patch.lines().map(str::trim_start) {
        let heads = [
            ("*** Update File: ", FileAction::Change),
            ("*** Add File: ", FileAction::Create),
            ("*** Delete File: ", FileAction::Delete),
        ];
        let found = heads
            .iter()
            .find_map(|(head, action)| Some((line.strip_prefix(head)?, *action)));
        if let Some((path, action)) = found {
            operations.push(FileOperation::new(action, path.trim()));
        } else if let Some(to) = line.strip_prefix("*** Move to: ")
            && let Some(last) = operations.pop()
        {
            operations.extend(FileOperation::rename(&last.path, to.trim()));
        }
    }
    operations
}

fn of_unified_diff(text: &str) -> Vec<FileOperation> {
    let mut operations = Vec::new();
    let mut old = "";
    for line in text.lines() {
        if let Some(path) = line.strip_prefix("--- ") {
            old = path.split('\t').next().unwrap_or(path).trim();
        } else if let Some(path) = line.strip_prefix("+++ ").filter(|_| !old.is_empty()) {
            let new = path.split('\t').next().unwrap_or(path).trim();
            let plain = |path: &str| -> String {
                let inside = path.strip_prefix("a/").or_else(|| path.strip_prefix("b/"));
                inside.unwrap_or(path).to_owned()
            };
            operations.push(match (old, new) {
                ("/dev/null", new) => FileOperation::new(FileAction::Create, &plain(new)),
                (old, "/dev/null") => FileOperation::new(FileAction::Delete, &plain(old)),
                (_, new) => FileOperation::new(FileAction::Change, &plain(new)),
            });
            old = "";
        }
    }
    operations
}

/// The command lines that arguments hold: of a shell, or in code that runs them (`exec_command({cmd: "…"})`).
fn commands_in(arguments: &Map<String, Value>) -> Vec<String> {
    if let Some(command) = command_among(arguments) {
        return vec![command];
    }
    let code = ["input", "code"]
        .iter()
        .find_map(|key| arguments.get(*key)?.as_str());
    code.map(commands_in_code).unwrap_or_default()
}

/// The names of the argument that holds the command line of a shell call.
pub const COMMAND_KEYS: [&str; 3] = ["command", "cmd", "script"];

/// The values of `command` in editing tools that can do several things. Their calls also have a path.
const EDITOR_COMMANDS: WordList = WordList("view create write str_replace insert append undo_edit");

/// The command line of a shell call; `None` for other calls.
pub fn command_of(call: &ToolCall) -> Option<String> {
    command_among(&call.arguments()?)
}

/// The command line among the arguments of a call; `None` if it is no shell call.
pub fn command_among(arguments: &Map<String, Value>) -> Option<String> {
    let mut keys = COMMAND_KEYS.iter();
    let command = keys.find_map(|key| command_in(arguments.get(*key)?))?;
    let is_of_editor = arguments.contains_key("path") && EDITOR_COMMANDS.has(&command);
    (!is_of_editor).then_some(command)
}

/// A command line: a text, or a list of words. `["bash", "-lc", "cargo test"]` is the command `cargo test`.
pub fn command_in(value: &Value) -> Option<String> {
    let Value::Array(items) = value else {
        return value
            .as_str()
            .map(|text| command_of_shell(text).unwrap_or_else(|| text.to_owned()));
    };
    let words: Vec<&str> = items.iter().map(Value::as_str).collect::<Option<_>>()?;
    match words.as_slice() {
        [shell, option, command] if is_shell_with(shell, option) => Some((*command).to_owned()),
        words => Some(words.join(" ")),
    }
}

/// Whether a program is a shell, and the option tells it to run the command line that follows.
fn is_shell_with(program: &str, option: &str) -> bool {
    const SHELLS: [&str; 6] = ["bash", "sh", "zsh", "dash", "ksh", "fish"];
    let name = program.rsplit('/').next().unwrap_or(program);
    SHELLS.contains(&name) && option.starts_with('-') && option.ends_with('c')
}

/// The command line that a shell is told to run: `make` of `/bin/bash -lc 'make'`.
fn command_of_shell(text: &str) -> Option<String> {
    let (shell, rest) = text.trim().split_once(' ')?;
    let (option, rest) = rest.trim_start().split_once(' ')?;
    is_shell_with(shell, option)
        .then(|| unquoted(rest.trim()))
        .flatten()
}

/// A single word of a shell without its quotes; `None` if the text is more than one.
fn unquoted(text: &str) -> Option<String> {
    let mut word = String::new();
    let mut quote = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => quote = Some(c),
            (Some('"'), '\\') => {
                let next = chars.next()?;
                if !matches!(next, '"' | '\\' | '$' | '`') {
                    word.push('\\');
                }
                word.push(next);
            }
            (None, '\\') => word.push(chars.next()?),
            (None, c) if c.is_whitespace() || matches!(c, ';' | '&' | '|' | '<' | '>') => {
                return None;
            }
            (_, c) => word.push(c),
        }
    }
    quote.is_none().then_some(word)
}

/// Whether a call may change files that it does not name: a sub-agent changes them unseen, and so do some commands.
pub(crate) fn may_change_any_file(call: &ToolCall) -> bool {
    let name = call.function.name.to_lowercase();
    let arguments = call.arguments().unwrap_or_default();
    matches!(name.as_str(), "task" | "agent" | "spawn_agent")
        || commands_in(&arguments)
            .iter()
            .any(|command| may_change_unnamed_files(command))
}

/// The values of `cmd` and `command` in code.
fn commands_in_code(code: &str) -> Vec<String> {
    let mut commands = Vec::new();
    let mut rest = code;
    while let Some(at) = rest.find("exec_command(") {
        rest = rest.get(at + "exec_command(".len()..).unwrap_or("");
        let Some((_, after)) = rest.split_once("cmd") else {
            break;
        };
        let after = after.trim_start_matches(['"', '\'', ' ', ':', '\n']);
        let start = rest.len() - after.len();
        let quote = rest.get(..start).and_then(|before| before.chars().last());
        if let Some(quote) = quote.filter(|quote| matches!(quote, '"' | '\'')) {
            commands.push(until_quote(after, quote));
        } else if let Some(after) = after.strip_prefix('`') {
            commands.push(until_quote(after, '`'));
        }
        rest = after;
    }
    commands
}

fn until_quote(text: &str, quote: char) -> String {
    let mut read = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next().filter(|c| *c != quote) {
        match c {
            '\\' => match chars.next() {
                Some('n') => read.push('\n'),
                Some(other) => read.push(other),
                None => {}
            },
            other => read.push(other),
        }
    }
    read
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operations(name: &str, arguments: &str) -> Vec<(FileAction, String)> {
        let call = ToolCall::new("c", name, arguments);
        let all = file_operations(&call).into_iter();
        all.map(|one| (one.action, one.path)).collect()
    }

    #[test]
    fn a_command_is_found_under_any_of_its_names() {
        let command = |arguments| command_of(&ToolCall::new("c", "shell", arguments));
        let found = command(r#"{"command": null, "script": "make"}"#);
        assert_eq!(found.as_deref(), Some("make"));
        assert_eq!(command(r#"{"command": "view", "path": "a.rs"}"#), None);
    }

    #[test]
    fn tools_of_any_style_and_server_are_told_apart() {
        let path = r#"{"file_path":"/a.rs:30-75"}"#;
        for (name, action) in [
            ("Read", FileAction::Read),
            ("mcp__fs__read_text_file", FileAction::Read),
            ("write_to_file", FileAction::Write),
            ("replace_in_file", FileAction::Change),
        ] {
            assert_eq!(
                operations(name, path),
                [(action, "/a.rs".to_owned())],
                "{name}"
            );
        }
        for (name, arguments, action) in [
            (
                "replace_string_in_file",
                r#"{"filePath":"/a.rs","oldString":"x"}"#,
                FileAction::Change,
            ),
            (
                "multi_replace_string_in_file",
                r#"{"replacements":[{"filePath":"/a.rs","oldString":"x"}]}"#,
                FileAction::Change,
            ),
            (
                "insert_edit_into_file",
                r#"{"filePath":"/a.rs"}"#,
                FileAction::Change,
            ),
            (
                "replace_file_content",
                r#"{"TargetFile":"/a.rs"}"#,
                FileAction::Change,
            ),
            (
                "view_file",
                r#"{"AbsolutePath":"/a.rs","StartLine":1}"#,
                FileAction::Read,
            ),
            (
                "fs_read",
                r#"{"operations":[{"mode":"Line","path":"/a.rs"}]}"#,
                FileAction::Read,
            ),
            (
                "fs_write",
                r#"{"command":"append","path":"/a.rs"}"#,
                FileAction::Change,
            ),
            (
                "fs_write",
                r#"{"command":"create","path":"/a.rs"}"#,
                FileAction::Write,
            ),
            (
                "fsWrite",
                r#"{"path":"/a.rs","text":"x"}"#,
                FileAction::Write,
            ),
            (
                "developer__text_editor",
                r#"{"command":"write","path":"/a.rs"}"#,
                FileAction::Write,
            ),
        ] {
            assert_eq!(
                operations(name, arguments),
                [(action, "/a.rs".to_owned())],
                "{name} {arguments}"
            );
            assert_eq!(command_of(&ToolCall::new("c", name, arguments)), None);
        }
        for name in [
            "create_issue",
            "replace_label",
            "search_files",
            "text_editor_settings",
        ] {
            assert_eq!(operations(name, path), [], "{name}");
        }
        assert_eq!(operations("write_file", "not json"), []);
        let call = ToolCall::new("c", "terminal", r#"{"command":"cat a.rs"}"#);
        assert_eq!(file_operation(&call), None, "a shell is no file tool");
    }

    #[test]
    fn patches_are_read_wherever_they_stand() {
        let patch = "*** Begin Patch\n*** Add File: n.md\n+x\n*** Update File: a.rs\n*** Move to: b.rs\n*** End Patch";
        let expected = [
            (FileAction::Create, "n.md".to_owned()),
            (FileAction::Delete, "a.rs".to_owned()),
            (FileAction::Write, "b.rs".to_owned()),
        ];
        let input = serde_json::json!({ "input": patch }).to_string();
        assert_eq!(operations("apply_patch", &input), expected);
        let heredoc = format!("apply_patch <<'EOF'\n{patch}\nEOF");
        let shell = serde_json::json!({ "command": ["bash", "-lc", heredoc] }).to_string();
        assert_eq!(operations("shell", &shell), expected);
        let code = format!(
            "await tools.apply_patch({patch:?}); tools.exec_command({{cmd: \"rm \\\"old.rs\\\"\"}})"
        );
        let code = serde_json::json!({ "input": code }).to_string();
        let mut with_command = expected.to_vec();
        with_command.push((FileAction::Delete, "old.rs".to_owned()));
        assert_eq!(operations("exec", &code), with_command);
        let diff = r#"{"command":"git apply <<'E'\n--- /dev/null\n+++ b/new.txt\n--- a/x.c\n+++ b/x.c\nE"}"#;
        assert_eq!(
            operations("bash", diff),
            [
                (FileAction::Create, "new.txt".to_owned()),
                (FileAction::Change, "x.c".to_owned())
            ]
        );
    }

    #[test]
    fn the_command_line_of_a_shell_is_read_from_a_list_and_from_a_text() {
        let of = |value: Value| command_in(&value).unwrap_or_default();
        for (given, command) in [
            (r#"/bin/bash -lc 'cat a.rs'"#, "cat a.rs"),
            (
                r#"sh -c "echo \"x\" > \$HOME/a.md""#,
                r#"echo "x" > $HOME/a.md"#,
            ),
            (r#"zsh -lc 'echo '"'"'x'"'"''"#, "echo 'x'"),
            ("bash -lc make", "make"),
            ("/usr/bin/zsh -ic 'a\nb'", "a\nb"),
            ("bash -c 'a' && rm b.rs", "bash -c 'a' && rm b.rs"),
            ("bash script.sh", "bash script.sh"),
            ("python -c 'x'", "python -c 'x'"),
        ] {
            assert_eq!(of(Value::from(given)), command, "{given}");
        }
        assert_eq!(of(serde_json::json!(["zsh", "-lc", "make"])), "make");
    }

    #[test]
    fn one_file_has_a_short_and_a_rooted_path() {
        assert!(is_same_file("/r/src/a.rs", "src/a.rs") && !is_same_file("/r/a.rs", "a.rs"));
        let windows = r"C:\proj\src\a.rs";
        for other in [
            r"src\a.rs",
            "C:/proj/src/a.rs",
            "/c/proj/src/a.rs",
            "src/a.rs",
        ] {
            assert!(is_same_file(windows, other), "{other}");
        }
        for other in ["/d/proj/src/a.rs", r"lib\a.rs", "a.rs", "x:a.rs"] {
            assert!(!is_same_file(windows, other), "{other}");
        }
    }
}
