//! Whether the result of a call is an error, and which.

use crate::transcript::{is_failed_result, stated_exit_code};

/// Lines of an error that identify it.
const LINES: usize = 4;

/// The error in a result: what identifies it, and the line to show. `None` if the result is not an error.
pub(super) fn error_of(result: &str) -> Option<(String, String)> {
    if !is_failed_result(result) {
        return None;
    }
    let mut lines: Vec<&str> = lines_without_code(result)
        .filter(|line| describes_an_error(line))
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

fn describes_an_error(line: &str) -> bool {
    let line = line.to_lowercase();
    const MARKS: [&str; 8] = [
        "error",
        "fail",
        "panicked",
        "exception",
        "not found",
        "no such",
        "denied",
        "cannot",
    ];
    MARKS.iter().any(|mark| line.contains(mark))
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
