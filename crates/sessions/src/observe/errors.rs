//! Whether the result of a call is an error, and which.

use std::sync::LazyLock;

use regex::Regex;

use crate::import::NO_RESULT;
use base::text::pattern;

/// Characters at both ends of a result that are searched for its exit code.
const ENDS: usize = 400;
/// Lines of an error that identify it.
const LINES: usize = 4;

/// The error in a result: what identifies it, and the line to show. `None` if the result is not an error.
pub(super) fn error_of(result: &str) -> Option<(String, String)> {
    if !is_error(result) {
        return None;
    }
    let mut lines: Vec<&str> = lines_without_code(result).filter(|line| describes_an_error(line)).take(LINES).collect();
    if lines.is_empty() {
        // A result in JSON is one line, including the exit code.
        let json = Some(result.trim()).filter(|text| text.starts_with('{'));
        lines.extend(lines_without_code(result).next_back().or(json));
    }
    let shown = lines.first()?.chars().take(200).collect();
    Some((lines.iter().map(|line| without_numbers(line)).collect::<Vec<_>>().join("\n"), shown))
}

/// The lines of a result that are neither empty nor contain its exit code.
fn lines_without_code(result: &str) -> impl DoubleEndedIterator<Item = &str> {
    result.lines().map(str::trim).filter(|line| !line.is_empty() && exit_code(line).is_none())
}

/// Whether a result says that its call failed.
pub(super) fn is_error(result: &str) -> bool {
    let start = result.trim_start();
    let head: String = start.chars().take(ENDS).collect();
    let marks = ["<tool_use_error>", "Error:", "error:", "ERROR:", "[An error occurred during execution", NO_RESULT];
    if marks.iter().any(|mark| head.starts_with(mark)) || is_json_error(&head) {
        return true;
    }
    recorded_exit_code(result).is_some_and(|code| code != "0")
}

/// The exit code that a result records at its beginning or its end; `None` if it records none.
pub fn recorded_exit_code(result: &str) -> Option<&str> {
    let start = result.trim_start();
    let head_end = start.char_indices().nth(ENDS).map_or(start.len(), |(at, _)| at);
    let tail_start = result.floor_char_boundary(result.len().saturating_sub(ENDS));
    exit_code(start.get(..head_end)?).or_else(|| exit_code(result.get(tail_start..)?))
}

/// Whether a result is a JSON object that names an error, or says that the call failed.
fn is_json_error(head: &str) -> bool {
    static ERROR: LazyLock<Regex> =
        LazyLock::new(|| pattern(r#"^\{[^{}]*"(?:success"\s*:\s*false|error"\s*:\s*"[^"])"#));
    ERROR.is_match(head)
}

/// Whether a file could not be read.
pub(super) fn is_failed_read(result: &str) -> bool {
    let head: String = result.trim_start().chars().take(ENDS).collect();
    let marks = ["<tool_use_error>", "Error:", "ERROR:", "[An error occurred during execution", NO_RESULT, "ENOENT"];
    marks.iter().any(|mark| head.starts_with(mark))
        || is_json_error(&head)
        || ["No such file or directory", "does not exist"].iter().any(|mark| head.contains(mark))
}

fn exit_code(text: &str) -> Option<&str> {
    static CODE: LazyLock<Regex> =
        LazyLock::new(|| pattern(r#"(?i)(?:exit code:?|exited with code|"exit_code"\s*:|<returncode>)\s*(\d+)"#));
    Some(CODE.captures(text)?.get(1)?.as_str())
}

fn describes_an_error(line: &str) -> bool {
    let line = line.to_lowercase();
    const MARKS: [&str; 8] = ["error", "fail", "panicked", "exception", "not found", "no such", "denied", "cannot"];
    MARKS.iter().any(|mark| line.contains(mark))
}

/// Removes digits: times, addresses and line numbers differ between two occurrences of the same error.
fn without_numbers(line: &str) -> String {
    line.chars().filter(|c| !c.is_ascii_digit()).take(300).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_of_all_formats_are_read() {
        for text in [
            "Exit code 1\nerror[E0308]: mismatched types at 12",
            "Exit code: 101\nWall time: 1.2 seconds\nOutput:\nerror[E0308]: mismatched types at 9",
            "Chunk ID: a\nProcess exited with code 2\nOutput:\nerror[E0308]: mismatched types at 30",
            "error[E0308]: mismatched types at 7\n\nCommand exited with code 1",
            r#"{"output":"error[E]: mismatched types","metadata":{"exit_code":1}}"#,
        ] {
            assert!(error_of(text).is_some(), "{text}");
        }
        assert_eq!(error_of("Exit code: 0\nOutput:\nerror counters: none"), None);
        assert_eq!(error_of("all good"), None);
        for text in [r#"{"success": false, "message": "no match"}"#, r#"{"output": "", "error": "no such file"}"#] {
            assert!(error_of(text).is_some(), "{text}");
        }
        assert_eq!(error_of(r#"{"output": "done", "exit_code": 0, "error": null}"#), None);
        assert_eq!(recorded_exit_code("<returncode>2</returncode>\n<output>\n</output>"), Some("2"));
        let gemini = "Output: (empty)\nError: (none)\nExit Code: 0\nSignal: 0";
        assert_eq!((recorded_exit_code(gemini), recorded_exit_code("Output: done")), (Some("0"), None));
        let key = |text: &str| error_of(text).map(|(key, _)| key);
        assert_eq!(key("Exit code 1\nerror at 12"), key("Exit code: 1\nWall time: 9 s\nerror at 13"));
        assert_ne!(key("Exit code 1\nerror at 12"), key("Exit code 1\nerror: no file"));
    }
}
