//! The exit code of a command, as agents write it into its result.

use serde_json::Value;

use base::lazy_patterns;
use base::text::{first_bytes, last_bytes, pattern};

lazy_patterns! {
    STATEMENT = pattern(
        r"(?i)^[\[<]?(?:(?:ELIFECYCLE\]?\s+|error )?(?:the )?(?:command|process) (?:completed|finished|exited|failed) with (?:exit )?code|exited with exit code|exit code:?|returncode>|exit_code>)\s*(-?\d+)(?:[\].>]*|</(?:returncode|exit_code)>|\. CTRL.*)$",
    );

    FIELD = pattern(r#""exit_code"\s*:\s*(-?\d+)"#);

    DENIAL = pattern(
        r"(?i)\b(?:not|no|\w+n't|cannot|unable|fail\w*|errors?|denied|declined|rejected|refused|abort\w*|cancell?ed|interrupted|blocked|forbidden|disallowed|invalid|requires?|timed out|timeout|false|since|outside|exists|read-only|multiple|(?-i:E[A-Z]{4,}))\b|未|不|已存在|无法|没有|拒绝|失败|取消|中止|禁止",
    );

    SUCCESS = pattern(
        r"(?i)\b(?:success\w*|(?:0|no) (?:failed|rejected|invalid|errors?)|updated|created|wrote|written|applied|saved|edited|inserted|overwr\w+|replaced|ok|done|no output)\b|成功|完成|已(?:创建|新建|更新|修改|写入|保存|替换|应用)",
    );

    CALL = pattern(
        r"(?i)\b(?:user|command|tool|execution|polic\w+|hook|sandbox|approv\w+)\b|用户|命令|工具",
    );

    NAMED_ERROR = pattern(r"^\w*(?:Error|Exception): ");

    REFUSED = pattern(
        r#"(?ix)^(?:error:\s)?[\[(]?(?:
            (?:the\s)?user\s(?:has\s)?(?:denied|declined|rejected|refused|skipped|chose\snot\sto|did\snot\sallow|didn't\sallow|does\snot\swant|doesn't\swant)
            | .{0,40}\b(?:denied|declined|rejected|refused)\sby\s(?:the\s)?user | skipped\sdue\sto\suser | (?:denied|declined|rejected)\W*$
            | permission\s(?:to\suse\s\w+\s(?:with\scommand|has\sbeen\sdenied) | for\sthis\saction\shas\sbeen\sdenied | denied\sand\scould\snot\srequest)
            | pretooluse:\S+\shook | .{0,40}\bblocked\sby\shook | operation\scancelled\]
            | tool\s(?:call|execution)\b.{0,60}\b(?:denied|rejected) | exec_command\sfailed\sfor\s.*\brejected\sby
            | \{.*"exit_code":\s?-1.*"status":\s?"blocked)"#,
    );

    JSON_ERROR = pattern(
        r#"^\{[^{}]*"(?:(?:success|ok)"\s*:\s*false|error"\s*:\s*"[^"]|status"\s*:\s*"(?:error|fail|reject|den|declin|cancel|abort))"#,
    );
}

/// What replaces a missing result of a call.
pub const NO_RESULT: &str = "[no result recorded]";

/// What replaces a result that the harness took out of the context before it was logged.
pub const CLEARED_RESULT: &str = "[result cleared by the harness]";

/// How a program of Node says that there is no such file.
const NO_ENTRY: &str = "ENOENT";

/// Characters at the beginning of a result that are searched for a mark of an error.
const HEAD: usize = 400;
/// Lines at the beginning and at the end of a result among which agents write the exit code.
const FIRST: usize = 4;
const LAST: usize = 6;
/// Bytes at the ends of a JSON object that was cut, likewise.
const ENDS: usize = 400;

/// Whether a result says that its call failed.
pub fn is_failed_result(result: &str) -> bool {
    is_marked(&head_of(result)) || recorded_exit_code(result).is_some_and(|code| code != 0)
}

/// Whether a result says that the person did not allow its call: then nothing was done at all.
pub fn is_refused_by_user(result: &str) -> bool {
    let head = head_of(result);
    REFUSED.is_match(head.lines().next().unwrap_or_default())
}

/// Whether the result of an edit leaves open whether it was done: a short sentence that denies something and speaks of no
/// success. Each tool has its own words for a refusal, and they are more than can be listed.
pub(crate) fn may_deny(result: &str) -> bool {
    const LONGEST: usize = 500;
    let line = result.trim().trim_start_matches(['[', '(', '<']);
    let line = line.lines().next().unwrap_or_default();
    // Code, a diff or a numbered line begins with no word.
    let is_prose = line.starts_with(char::is_alphanumeric) && !line.ends_with(['{', ':', ';']);
    result.len() <= LONGEST && is_prose && DENIAL.is_match(line) && !SUCCESS.is_match(line)
}

/// Whether the result of a command leaves open whether it was run: it denies something of the call, and has no exit code.
/// What the command itself printed denies other things.
pub(super) fn may_deny_command(result: &str) -> bool {
    may_deny(result) && CALL.is_match(result) && recorded_exit_code(result).is_none()
}

/// Whether the head of a result is marked as an error, or is that of a JSON object that names one.
fn is_marked(head: &str) -> bool {
    const MARKS: [&str; 8] = [
        "<tool_use_error>",
        "<error>",
        "Error:",
        "error:",
        "ERROR:",
        "[An error occurred during execution",
        NO_RESULT,
        CLEARED_RESULT,
    ];
    MARKS.iter().any(|mark| head.starts_with(mark))
        || JSON_ERROR.is_match(head)
        || NAMED_ERROR.is_match(head)
}

/// Whether the result of reading a file says that it could not be read. One that the harness cleared was read. A file may
/// speak of `ENOENT`.
pub(crate) fn is_failed_read(result: &str) -> bool {
    let head = head_of(result);
    !head.starts_with(CLEARED_RESULT)
        && (is_marked(&head) || head.starts_with(NO_ENTRY) || says_no_file(&head))
}

/// Whether a result says that there is no such file.
pub(super) fn names_no_file(result: &str) -> bool {
    let head = head_of(result);
    head.contains(NO_ENTRY) || says_no_file(&head)
}

fn says_no_file(head: &str) -> bool {
    const MARKS: [&str; 4] = [
        "No such file or directory",
        "[Errno ",
        "does not exist",
        "File not found",
    ];
    MARKS.iter().any(|mark| head.contains(mark))
}

fn head_of(result: &str) -> String {
    result.trim_start().chars().take(HEAD).collect()
}

/// The exit code that a result records; `None` if it records none. Agents write it on a line of its own or into a field: a
/// code in the midst of a line is one that the program speaks of.
pub fn recorded_exit_code(result: &str) -> Option<i64> {
    let lines = result.lines().filter(|line| !line.trim().is_empty());
    let mut ends = lines.clone().take(FIRST).chain(lines.rev().take(LAST));
    ends.find_map(stated_exit_code)
        .or_else(|| code_in_json(result.trim()))
}

/// The exit code that a line states; `None` if the line says anything else.
pub fn stated_exit_code(line: &str) -> Option<i64> {
    /// Bytes of the longest statement.
    const LONGEST: usize = 100;
    let line = Some(line.trim()).filter(|line| line.len() <= LONGEST)?;
    STATEMENT.captures(line)?.get(1)?.as_str().parse().ok()
}

fn code_in_json(text: &str) -> Option<i64> {
    if !text.starts_with('{') {
        return None;
    }
    if let Ok(value) = serde_json::from_str::<Value>(text) {
        return ["/exit_code", "/metadata/exit_code"]
            .into_iter()
            .find_map(|at| value.pointer(at)?.as_i64());
    }
    [first_bytes(text, ENDS), last_bytes(text, ENDS)]
        .into_iter()
        .find_map(|end| FIELD.captures(end)?.get(1)?.as_str().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_exit_codes_of_all_agents_are_read() {
        let cut = format!(
            r#"{{"output":"{}... cut ...","exit_code":-1,"error":"it waits"#,
            "x ".repeat(400)
        );
        for (result, code) in [
            ("Exit code 1\nerror[E0308]: mismatched types at 12", 1),
            (
                "Exit code: 101\nWall time: 1.2 seconds\nOutput:\nerror: it failed",
                101,
            ),
            (
                "Chunk ID: a\nWall time: 1 seconds\nProcess exited with code 2\nOutput:\nerror",
                2,
            ),
            ("error: it failed\n\nCommand exited with code 1", 1),
            (
                "Output: (empty)\nError: (none)\nExit Code: 0\nSignal: 0\nBackground PIDs: (none)",
                0,
            ),
            ("<returncode>2</returncode>\n<output>\n</output>", 2),
            (
                "<status>completed</status>\n\n<exit_code>3</exit_code>\n\n<stdout>\nx\n</stdout>",
                3,
            ),
            ("3 files\n<exited with exit code 0>", 0),
            (
                "x\n[The command completed with exit code 130. CTRL+C was sent.]\n[Current working directory: /p]",
                130,
            ),
            ("no\n[Command finished with exit code 4]", 4),
            ("{1: 2}\n0\n[exit code 1]", 1),
            (
                "Found 1 error.\n\u{2009}ELIFECYCLE\u{2009} Command failed with exit code 1.",
                1,
            ),
            ("Exit code: -1073741510\nOutput:\n", -1073741510),
            (
                r#"{"output":"error[E]: mismatched types","metadata":{"exit_code":1}}"#,
                1,
            ),
            (r#"{"output": "done", "exit_code": 0, "error": null}"#, 0),
            (cut.as_str(), -1),
        ] {
            assert_eq!(recorded_exit_code(result), Some(code), "{result}");
        }
    }

    #[test]
    fn a_code_that_the_program_speaks_of_is_not_its_own() {
        let long = format!(
            "{}Exit code 1\n{}",
            "a line\n".repeat(9),
            "a line\n".repeat(9)
        );
        for result in [
            "run 412: exit code 30 after 9s",
            "#!/bin/sh\n# exit code 1 if there is none",
            "##[error]Process completed with exit code 1.",
            "Exit Code: (none)",
            r#"{"output": "it says \"exit_code\": 1"}"#,
            "done",
            "",
            long.as_str(),
        ] {
            assert_eq!(recorded_exit_code(result), None, "{result}");
        }
    }

    #[test]
    fn what_was_not_done_is_told_from_what_was() {
        for result in [
            "apply_patch verification failed: no such lines",
            "patch rejected: it writes outside of the project",
            "Invalid patch: bad",
            "aborted by user after 3.2s",
            "[Operation Cancelled] Reason: not allowed",
            "The old_string was not found in the file.",
            "McpError: timeout",
            "The write was blocked by a policy",
            "工具调用被用户拒绝。",
            "Found 2 matches, but replace_all is false.",
            "File has been modified since it was read, either by the user or by a linter.",
            "EPERM: operation not permitted, open 'a.py'",
            "1 out of 2 hunks FAILED -- saving rejects to file a.py.rej",
            "This change requires approval.",
            "目标已存在",
            r#"{"ok": false}"#,
            r#"{"status":"denied","path":"a.py"}"#,
            "<error>the text occurs twice</error>",
        ] {
            assert!(is_failed_result(result) || may_deny(result), "{result}");
        }
        for result in [
            "",
            "The edit was applied successfully.",
            "Patch applied with 0 rejected hunks",
            "The file a.py has been updated, no other file was touched.",
            "//! Edits that failed.",
            "def test_failed_edit():\n    pass",
            "# A rejected patch",
            "14 passed",
            "(no output)",
            "Command `echo x > a.c` executed with exit code 0.",
            "51:## Planning Contract Enforcement",
            "已写入，无需其他操作",
        ] {
            assert!(!is_failed_result(result) && !may_deny(result), "{result}");
        }
        for result in [
            "The user declined this command.",
            "Error: declined",
            "Error: Permission to use Bash with command sed -i s/a/b/ \\\n a.py has been denied.",
            "Permission for this action has been denied. Reason: it cannot be undone",
            "Permission denied and could not request permission from user",
            "Error: PreToolUse:Bash hook error: [./guard.sh]: no sed",
            "Bash operation blocked by hook:\n- no sed",
            "[Operation Cancelled] Reason: User did not allow tool call",
            "Tool execution for \"run_shell_command\" denied by policy.",
            "exec_command failed for `/bin/bash -lc 'rm a.py'`: Rejected(\"rejected by user\")",
            r#"{"output": "", "exit_code": -1, "error": "no", "status": "blocked"}"#,
            "The user chose not to run this tool call",
        ] {
            assert!(is_refused_by_user(result), "{result}");
        }
        for result in [
            "Permission denied (publickey)",
            "ERROR: Permission to o/r.git denied to bob.",
            "PostToolUse:Bash hook error: a line is too long",
            r#"{"issue": 7, "status": "blocked"}"#,
            "The user denies it in tests/deny.py",
        ] {
            assert!(!is_refused_by_user(result), "{result}");
        }
    }

    #[test]
    fn a_read_that_failed_is_told_from_a_file_that_speaks_of_failures() {
        for result in [
            "ENOENT: no such file",
            "cat: x: No such file or directory",
            NO_RESULT,
        ] {
            assert!(is_failed_read(result), "{result}");
        }
        let code = "if (error.code === 'ENOENT') {\n  return;\n}";
        for result in [CLEARED_RESULT, code] {
            assert!(!is_failed_read(result), "{result}");
        }
        assert!(
            is_failed_result(CLEARED_RESULT),
            "it may be that of an edit"
        );
        assert!(names_no_file("Error: ENOENT, open 'x'"));
    }

    proptest! {
        #[test]
        fn no_result_panics(result in "(\\{\"exit_code\": ?)?\\PC{0,60}(exit code )?[0-9-]{0,30}") {
            let _ = recorded_exit_code(&result);
        }
    }
}
