//! The targets of tool calls: lines of a file, a search, or a command. Two calls with a common target show the same.

use serde_json::{Map, Value};

use crate::transcript::{
    FileAction, ShellCommand, ToolCall, command_of, file_operation, is_same_file, shell_commands,
};
use base::text::one_line;

/// A range of lines, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lines {
    /// The first line, from 1.
    pub first: u64,
    /// The last line, itself included.
    pub last: u64,
}

impl Lines {
    /// The whole file.
    pub const ALL: Lines = Lines {
        first: 1,
        last: u64::MAX,
    };

    /// `count` lines from `first` on.
    fn with_count(first: u64, count: Option<u64>) -> Lines {
        let first = first.max(1);
        Lines {
            first,
            last: count.map_or(u64::MAX, |count| {
                first.saturating_add(count.saturating_sub(1))
            }),
        }
    }

    /// The last `count` lines of a file whose length is not known.
    fn at_end(count: u64) -> Lines {
        Lines {
            first: u64::MAX.saturating_sub(count),
            last: u64::MAX,
        }
    }

    /// Whether some line is in both.
    pub fn overlaps(self, other: Lines) -> bool {
        self.first <= other.last && other.first <= self.last
    }
}

/// Lines of a file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FileLines {
    /// The path, as the call has it.
    pub path: String,
    /// The lines.
    pub lines: Lines,
}

impl FileLines {
    /// Whether some line is in both. A path is the same with and without the folders in front of it.
    pub fn overlaps(&self, other: &FileLines) -> bool {
        is_same_file(&self.path, &other.path) && self.lines.overlaps(other.lines)
    }
}

/// What a call looks at. Two calls with an equal search or command, or with lines that overlap, show the same.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// Lines of a file.
    File(FileLines),
    /// A search: the tool, the pattern and the places.
    Search(String),
    /// A command line that reads no file, with single blanks.
    Command(String),
}

/// What a call looks at; nothing if it changes things, or does something else.
pub fn targets(call: &ToolCall) -> Vec<Target> {
    if let Some(command) = command_of(call) {
        return targets_of_command(&command);
    }
    let Some(arguments) = call.arguments() else {
        return Vec::new();
    };
    if let Some(operation) = file_operation(call) {
        let lines = lines_of(&arguments);
        let is_read = operation.action == FileAction::Read;
        return is_read
            .then_some(Target::File(FileLines {
                path: operation.path,
                lines,
            }))
            .into_iter()
            .collect();
    }
    search(&call.function.name, &arguments)
        .into_iter()
        .collect()
}

/// The lines that the arguments of a reading tool ask for.
fn lines_of(arguments: &Map<String, Value>) -> Lines {
    if let Some([first, last]) = arguments
        .get("view_range")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
    {
        return Lines {
            first: first.as_u64().unwrap_or(1),
            last: last.as_u64().unwrap_or(u64::MAX),
        };
    }
    let first = number_in(
        arguments,
        &["offset", "start_line", "line_start", "startLine"],
    );
    match number_in(arguments, &["end_line", "line_end", "endLine"]) {
        Some(last) => Lines {
            first: first.unwrap_or(1),
            last,
        },
        None => Lines::with_count(first.unwrap_or(1), number_in(arguments, &["limit"])),
    }
}

fn number_in(arguments: &Map<String, Value>, keys: &[&str]) -> Option<u64> {
    keys.iter().find_map(|key| arguments.get(*key)?.as_u64())
}

/// The search that a tool with a pattern or a query stands for.
fn search(name: &str, arguments: &Map<String, Value>) -> Option<Target> {
    let wanted = ["pattern", "query", "regex", "url"]
        .iter()
        .find_map(|key| arguments.get(*key)?.as_str())?;
    let places = ["path", "glob", "include", "type", "dir_path"]
        .iter()
        .filter_map(|key| arguments.get(*key)?.as_str());
    let places = places.collect::<Vec<_>>().join("\n");
    Some(Target::Search(format!(
        "{}\n{wanted}\n{places}",
        name.to_lowercase()
    )))
}

fn targets_of_command(command: &str) -> Vec<Target> {
    let mut targets: Vec<Target> = Vec::new();
    for part in shell_commands(command) {
        let lines = lines_of_command(&part);
        let operations = part.operations();
        let reads = operations
            .iter()
            .filter(|operation| operation.action == FileAction::Read);
        let before = targets.len();
        targets.extend(reads.map(|read| {
            Target::File(FileLines {
                path: read.path.clone(),
                lines: lines.unwrap_or(Lines::ALL),
            })
        }));
        // `nl file | sed -n '10,20p'` shows only these lines.
        if let (true, true, Some(lines), Some(Target::File(file))) = (
            part.is_piped,
            targets.len() == before,
            lines,
            targets.last_mut(),
        ) {
            file.lines = lines;
        }
    }
    if targets.is_empty() {
        targets.push(Target::Command(one_line(command)));
    }
    targets
}

/// The lines that `sed`, `head` or `tail` lets through; `None` for other programs.
fn lines_of_command(command: &ShellCommand) -> Option<Lines> {
    let run = command.run();
    let (program, arguments) = run.split_first()?;
    match *program {
        "sed" => arguments.iter().find_map(|word| printed_lines(word)),
        "head" => Some(Lines::with_count(
            1,
            Some(count_of(arguments)?.parse().ok()?),
        )),
        "tail" => {
            let count = count_of(arguments)?;
            match count.strip_prefix('+') {
                Some(first) => Some(Lines::with_count(first.parse().ok()?, None)),
                None => Some(Lines::at_end(count.parse().ok()?)),
            }
        }
        _ => None,
    }
}

/// `10,20p`, `10p` and `10,$p`.
fn printed_lines(script: &str) -> Option<Lines> {
    let (first, last) = match script.strip_suffix('p')?.split_once(',') {
        Some((first, "$")) => (first.parse().ok()?, u64::MAX),
        Some((first, last)) => (first.parse().ok()?, last.parse().ok()?),
        None => {
            let line = script.strip_suffix('p')?.parse().ok()?;
            (line, line)
        }
    };
    Some(Lines { first, last })
}

/// The number in `-n 20`, `-n20`, `-20` or `--lines=20`; 10 without one, `None` where bytes are counted.
fn count_of<'a>(arguments: &[&'a str]) -> Option<&'a str> {
    if arguments
        .iter()
        .any(|word| word.starts_with("-c") || word.starts_with("--bytes"))
    {
        return None;
    }
    let at = arguments
        .iter()
        .position(|word| matches!(*word, "-n" | "--lines"));
    let direct = at
        .and_then(|at| arguments.get(at + 1))
        .copied()
        .filter(|word| is_count(word));
    direct
        .or_else(|| arguments.iter().copied().find_map(attached_count))
        .or(Some("10"))
}

/// The number in `-n20`, `-20` or `--lines=20`.
fn attached_count(word: &str) -> Option<&str> {
    let options = ["--lines=", "-n", "-"];
    options
        .iter()
        .find_map(|option| word.strip_prefix(option))
        .filter(|count| is_count(count))
}

fn is_count(word: &str) -> bool {
    !word.is_empty()
        && word
            .trim_start_matches('+')
            .bytes()
            .all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(name: &str, arguments: &str) -> Vec<Target> {
        targets(&ToolCall::new("c", name, arguments))
    }

    fn shell(command: &str) -> Vec<Target> {
        of(
            "Bash",
            &serde_json::json!({ "command": command }).to_string(),
        )
    }

    fn file(path: &str, first: u64, last: u64) -> Target {
        Target::File(lines_of_file(path, first, last))
    }

    fn lines_of_file(path: &str, first: u64, last: u64) -> FileLines {
        FileLines {
            path: path.into(),
            lines: Lines { first, last },
        }
    }

    #[test]
    fn reading_tools_have_lines() {
        assert_eq!(
            of("Read", r#"{"file_path":"/a.rs"}"#),
            [file("/a.rs", 1, u64::MAX)]
        );
        assert_eq!(
            of("Read", r#"{"file_path":"/a.rs","offset":10,"limit":5}"#),
            [file("/a.rs", 10, 14)]
        );
        assert_eq!(
            of("view", r#"{"path":"a.rs","view_range":[3,9]}"#),
            [file("a.rs", 3, 9)]
        );
        assert_eq!(of("Write", r#"{"file_path":"/a.rs","content":"x"}"#), []);
        assert_eq!(
            of(
                "file_editor",
                r#"{"command":"view","path":"a.rs","view_range":[3,9]}"#
            ),
            [file("a.rs", 3, 9)]
        );
    }

    #[test]
    fn the_shell_reads_files_too() {
        assert_eq!(shell("cat a.rs"), [file("a.rs", 1, u64::MAX)]);
        assert_eq!(
            shell("cd /p && sed -n '10,20p' src/a.rs"),
            [file("/p/src/a.rs", 10, 20)]
        );
        assert_eq!(
            shell("nl -ba src/a.rs | sed -n '5,9p'"),
            [file("src/a.rs", 5, 9)]
        );
        assert_eq!(
            shell("head -n 20 a.rs && tail -n +30 b.rs"),
            [file("a.rs", 1, 20), file("b.rs", 30, u64::MAX)]
        );
        assert_eq!(
            shell("head -5 a.rs || cat b.rs"),
            [file("a.rs", 1, 5), file("b.rs", 1, u64::MAX)]
        );
        assert_eq!(
            shell("nohup sed -n '3,4p' a.rs; while true; do head -2 b.rs; done"),
            [file("a.rs", 3, 4), file("b.rs", 1, 2)]
        );
        assert_eq!(
            shell("cargo  test --lib"),
            [Target::Command("cargo test --lib".into())]
        );
        let Some(Target::File(end)) = shell("tail -n 5 a.rs").pop() else {
            panic!("a file")
        };
        assert!(end.overlaps(&lines_of_file("a.rs", 1, u64::MAX)));
        assert!(!end.overlaps(&lines_of_file("a.rs", 1, 50)));
    }

    #[test]
    fn targets_overlap_by_lines_searches_by_pattern_and_place() {
        assert!(lines_of_file("/p/src/a.rs", 1, 10).overlaps(&lines_of_file("src/a.rs", 10, 12)));
        assert!(!lines_of_file("src/a.rs", 1, 10).overlaps(&lines_of_file("src/a.rs", 11, 12)));
        assert!(!lines_of_file("src/a.rs", 1, 10).overlaps(&lines_of_file("src/ba.rs", 1, 10)));
        let search = |pattern: &str| {
            of(
                "Grep",
                &format!(r#"{{"pattern":"{pattern}","path":"src","-n":true}}"#),
            )
        };
        assert!(search("foo")[0] == search("foo")[0] && search("foo")[0] != search("bar")[0]);
    }

    proptest! {
        #[test]
        fn no_command_panics_and_each_overlaps_itself(command in "(sed|head|tail|cat|nl|\\| )?[ -~]{0,50}") {
            let found = shell(&command);
            let overlaps = found.iter().all(|target| match target {
                Target::File(file) => file.lines.first > file.lines.last || file.overlaps(file),
                _ => true,
            });
            prop_assert!(overlaps);
        }
    }
}
