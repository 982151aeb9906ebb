//! Notes on a session: which files were touched and how, what failed, what was decided and what is left, from the messages
//! alone. Deterministic, no model. [`notes_within`] writes them as a text of a given size.

mod outline;
pub mod rules;
mod session;

pub use outline::{SessionOutline, todo_items};
pub use session::{FileNote, NotedFailure, SessionNotes, readable};

use base::units::Tokens;
use sessions::transcript::FileRecord;

/// A heading with its entries, the newest last, and its share of the limit.
struct Section {
    heading: &'static str,
    entries: Vec<String>,
    share: f64,
}

impl Section {
    /// The tokens of the whole section.
    fn tokens(&self, count: &impl Fn(&str) -> Tokens) -> f64 {
        HEADING
            + self
                .entries
                .iter()
                .map(|entry| count(entry).0 as f64 + 2.0)
                .sum::<f64>()
    }
}

/// The size of notes if none is given.
pub const DEFAULT_TOKENS: Tokens = Tokens(1200);

/// Writes the notes in at most `limit` tokens as `count` counts them. The oldest entries of a section are left out first,
/// and the section says how many.
pub fn notes_within(
    notes: &SessionNotes,
    limit: Tokens,
    count: &impl Fn(&str) -> Tokens,
) -> String {
    let mut sections = sections(notes);
    sections.retain(|section| !section.entries.is_empty());
    let wants: Vec<(f64, f64)> = sections
        .iter()
        .map(|section| (section.share, section.tokens(count)))
        .collect();
    let mut scale = 1.0;
    // Room is allocated by the sizes of the entries alone. If the whole text is too large, all sections shrink alike.
    for _ in 0..12 {
        let text = render(&sections, &allocate(&wants, limit.0 as f64 * scale), count);
        if count(&text) <= limit {
            return text;
        }
        scale *= 0.85;
    }
    String::new()
}

/// The tokens of a heading and of the line that says how many entries were left out.
const HEADING: f64 = 12.0;

fn render(sections: &[Section], allocation: &[f64], count: &impl Fn(&str) -> Tokens) -> String {
    let mut text = String::new();
    for (section, limit) in sections.iter().zip(allocation) {
        let entries = newest_within(&section.entries, *limit, count);
        if entries.is_empty() {
            continue;
        }
        let left_out = section.entries.len() - entries.len();
        text.push_str(if text.is_empty() {
            "## Artifact index\n"
        } else {
            "\n"
        });
        text.push_str(&format!("### {}\n", section.heading));
        entries
            .iter()
            .for_each(|entry| text.push_str(&format!("- {entry}\n")));
        if left_out > 0 {
            text.push_str(&format!("- ({left_out} older left out)\n"));
        }
    }
    text.trim_end().to_owned()
}

/// The newest entries that fit into `limit`, in their order.
fn newest_within<'a>(
    entries: &'a [String],
    limit: f64,
    count: &impl Fn(&str) -> Tokens,
) -> &'a [String] {
    let mut used = HEADING;
    let mut kept = entries.len();
    for entry in entries.iter().rev() {
        used += count(entry).0 as f64 + 2.0;
        // Rounding must not drop an entry that fits exactly.
        if used > limit + 1e-6 {
            break;
        }
        kept -= 1;
    }
    entries.get(kept..).unwrap_or_default()
}

fn sections(notes: &SessionNotes) -> Vec<Section> {
    let files = notes.lasting_files();
    let created = file_entries(&files, |f| f.created && !f.deleted, true);
    let modified = file_entries(&files, |f| f.modified && !f.created && !f.deleted, true);
    let deleted = file_entries(&files, |f| f.deleted, false);
    let read = file_entries(
        &files,
        |f| f.read && !f.created && !f.modified && !f.deleted,
        false,
    );
    let failures = notes
        .failures
        .iter()
        .map(|f| format!("`{}`: {}", f.command, f.lines.join(" | ")))
        .collect();
    let decisions = notes
        .demands
        .iter()
        .map(|d| format!("the user demands: {d}"))
        .chain(notes.decisions.iter().cloned());
    let all = [
        ("Files created", created, 0.16),
        ("Files modified", modified, 0.18),
        ("Files deleted", deleted, 0.04),
        ("Files read", read, 0.07),
        ("Failed commands", failures, 0.2),
        ("Decisions", decisions.collect(), 0.25),
        ("Open tasks", notes.tasks.clone(), 0.1),
    ];
    let sections = all.into_iter().map(|(heading, entries, share)| Section {
        heading,
        entries,
        share,
    });
    sections.collect()
}

/// A line on each of the `wanted` files.
fn file_entries(
    files: &[&FileNote],
    wanted: fn(&FileRecord) -> bool,
    detailed: bool,
) -> Vec<String> {
    files
        .iter()
        .filter(|note| wanted(&note.file))
        .map(|file| file_entry(file, detailed))
        .collect()
}

/// One line on a file.
pub fn file_entry(note: &FileNote, detailed: bool) -> String {
    let file = &note.file;
    let also = match &file.renamed_from {
        Some(from) => format!(" (renamed from {from})"),
        None if file.created && file.modified => " (changed later)".to_owned(),
        None => String::new(),
    };
    if !detailed || note.details.is_empty() {
        return format!("{}{also}", file.path);
    }
    format!("{}{also}: {}", file.path, note.details.join("; "))
}

/// The amount of `limit` allocated to each entry of `wants`, a pair of share and need; the need has the unit of `limit`. An
/// entry that needs less than its share gets what it needs, and the rest of its share goes to the others.
///
/// Each round fixes the entries whose share of the remainder covers their need; the others split what is left. The last
/// round, in which no need is covered, gives each its share.
pub fn allocate(wants: &[(f64, f64)], limit: f64) -> Vec<f64> {
    let mut allocated: Vec<Option<f64>> = vec![None; wants.len()];
    let mut left = limit.max(0.0);
    loop {
        let open = allocated
            .iter()
            .zip(wants)
            .filter(|(amount, _)| amount.is_none())
            .map(|(_, want)| *want);
        let open: Vec<(f64, f64)> = open.collect();
        let total: f64 = open.iter().map(|(share, _)| share).sum();
        let fair = |share: f64| left * share / total.max(f64::EPSILON);
        let covered: f64 = open
            .iter()
            .filter(|(share, need)| *need <= fair(*share))
            .map(|(_, need)| need)
            .sum();
        let any_covered = open.iter().any(|(share, need)| *need <= fair(*share));
        let next: Vec<Option<f64>> = allocated
            .iter()
            .zip(wants)
            .map(|(amount, (share, need))| {
                amount.or_else(|| {
                    (!any_covered || *need <= fair(*share)).then(|| need.min(fair(*share)))
                })
            })
            .collect();
        allocated = next;
        left -= covered;
        if allocated.iter().all(Option::is_some) {
            return allocated.into_iter().flatten().collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;
    use sessions::transcript::estimate_tokens;
    use sessions::transcript::{Message, Role, ToolCall};

    fn notes(messages: &[Message], limit: Tokens) -> String {
        notes_within(
            &SessionNotes::from_messages(messages),
            limit,
            &estimate_tokens,
        )
    }

    fn session() -> Vec<Message> {
        let mut messages = vec![Message::text(
            Role::User,
            "Fix the retry logic. Never change the port 8081.",
        )];
        let mut step = |text: &str, name: &str, arguments: serde_json::Value, result: &str| {
            let id = format!("c{}", messages.len());
            let mut call = Message::text(Role::Assistant, text);
            call.tool_calls
                .push(ToolCall::new(&id, name, arguments.to_string()));
            messages.push(call);
            messages.push(Message::result(&id, result));
        };
        step(
            "Reading.",
            "read_file",
            json!({"path": "app/retry.py"}),
            "1|def retry():\n2|    raise ValueError: no",
        );
        step(
            "Backing off linearly instead of exponentially, because the queue is short.",
            "patch",
            json!({"path": "app/retry.py", "old_string": "delay = 2 ** n", "new_string": "delay = 3 * n"}),
            "--- a\n+++ b",
        );
        step(
            "A test.",
            "write_file",
            json!({"path": "tests/test_retry.py", "content": "def test_delay():\n  pass"}),
            "ok",
        );
        let output =
            "F\nE       assert 6 == 3\nFAILED tests/test_retry.py::test_delay\n[exit code 1]";
        step("Run.", "terminal", json!({"command": "pytest -q"}), output);
        messages.push(Message::text(
            Role::Assistant,
            "The jitter test still fails; it is next.",
        ));
        messages
    }

    #[test]
    fn notes_name_files_failures_decisions_and_tasks() {
        insta::assert_snapshot!(notes(&session(), DEFAULT_TOKENS), @r"
        ## Artifact index
        ### Files created
        - tests/test_retry.py: def test_delay

        ### Files modified
        - app/retry.py: delay = 2 ** n → delay = 3 * n

        ### Failed commands
        - `pytest -q`: E       assert 6 == 3 | FAILED tests/test_retry.py::test_delay

        ### Decisions
        - the user demands: Never change the port 8081.
        - Backing off linearly instead of exponentially, because the queue is short.

        ### Open tasks
        - The jitter test still fails; it is next.
        ");
    }

    /// The lines that are noted of a command with this result.
    fn noted(command: &str, result: &str) -> Option<NotedFailure> {
        let mut call = Message::text(Role::Assistant, "");
        call.tool_calls.push(ToolCall::new(
            "c",
            "exec_command",
            json!({"command": command}).to_string(),
        ));
        SessionNotes::from_messages(&[call, Message::result("c", result)])
            .failures
            .pop()
    }

    #[test]
    fn a_failed_command_is_noted_with_what_it_printed_and_not_with_what_its_agent_added() {
        let head = "Chunk ID: a1b2c3\nWall time: 0.1 seconds\nProcess exited with code 2\nOriginal token count: 9\nOutput:\n";
        let error = "src/a.ts(7,5): error TS2353: no such property";
        for result in [
            format!("{head}{error}\n"),
            format!("{error}\n\nCommand exited with code 1"),
            format!("<returncode>1</returncode>\n<output>\n{error}\n</output>"),
            format!(
                "Output:\n{error}\nError: (none)\nExit Code: 1\nSignal: 0\nProcess Group PGID: 40211"
            ),
        ] {
            assert_eq!(
                noted("npx tsc", &result).map(|failure| failure.lines),
                Some(vec![error.to_owned()]),
                "{result}"
            );
        }
        for silent in [
            head,
            "(no output)\n\nCommand exited with code 1",
            "Exit code 1",
        ] {
            assert_eq!(noted("grep -q retry src/a.ts", silent), None, "{silent}");
        }
        let log =
            noted("git log", "fatal: it was 1\nrun 412: exit code 0 after 9s").expect("a failure");
        assert!(!log.has_succeeded, "the code is another command's");
    }

    #[test]
    fn a_list_that_was_cleared_has_no_open_items() {
        let plan = |lists: &[serde_json::Value]| {
            let mut call = Message::text(Role::Assistant, "");
            let calls = lists.iter().map(|list| {
                let arguments = json!({ "todos": list }).to_string();
                ToolCall::new("c", "todo_write", arguments)
            });
            call.tool_calls.extend(calls);
            SessionOutline::from_messages(&[call]).plan
        };
        let open = json!([{"content": "Write the parser", "status": "pending"}]);
        assert_eq!(plan(std::slice::from_ref(&open)), ["Write the parser"]);
        assert!(plan(&[open, json!([])]).is_empty());
        for (state, is_over) in [
            ("COMPLETED", true),
            ("canceled", true),
            ("skipped", true),
            ("TODO_STATUS_COMPLETED", true),
            ("PENDING", false),
            ("incomplete", false),
            ("blocked", false),
            ("", false),
        ] {
            let list = json!([{"content": "Write the parser", "status": state}]);
            assert_eq!(plan(&[list]).is_empty(), is_over, "{state}");
        }
    }

    #[test]
    fn a_part_of_a_list_and_the_list_of_a_server_are_no_plan() {
        let plan = |name: &str, merge: bool| {
            let list = json!([{"id": "1", "title": "Port the rows", "status": "open"}]);
            let arguments = json!({"items": list, "merge": merge});
            SessionOutline::from_messages(&calls(&[(name, arguments, "ok")])).plan
        };
        assert!(plan("todo_write", true).is_empty());
        assert!(plan("mcp__jira__create_issues", false).is_empty());
        for name in ["todo_write", "update_plan", "mcp_list"] {
            assert_eq!(plan(name, false), ["Port the rows"], "{name}");
        }
    }

    #[test]
    fn what_a_command_shows_is_no_error_of_its_own() {
        let failures = |command: &str, result: &str| {
            let mut call = Message::text(Role::Assistant, "");
            call.tool_calls.push(ToolCall::new(
                "c",
                "bash",
                json!({ "command": command }).to_string(),
            ));
            SessionOutline::from_messages(&[call, Message::result("c", result)]).failures
        };
        assert!(failures("cat run.log | tail -2", "error: no space left on device").is_empty());
        assert!(!failures("cat x.log", "cat: x.log: No such file or directory").is_empty());
        assert!(!failures("make", "error: no space left on device").is_empty());
        let logged = "ValueError: bad delimiter in row 7";
        for (command, line, is_own) in [
            ("kubectl logs pod/api-7 --tail=20", logged, false),
            ("docker compose logs api", logged, false),
            ("sed -n '1,40p' build.log", logged, false),
            ("awk 'NR>3' app.log", logged, false),
            ("git show HEAD:src/a.py", logged, false),
            ("curl -s http://127.0.0.1/log | tail -3", logged, false),
            ("ssh web1 'tail -5 app.log | grep Error'", logged, false),
            ("docker run image", logged, true),
            ("ssh web1 ./deploy.sh", logged, true),
            (
                "ssh web1",
                "ssh: connect to host web1: Connection refused",
                true,
            ),
            ("git log nope", "fatal: ambiguous argument 'nope'", true),
            ("git commit -m x", "error: pathspec 'x' did not match", true),
            (
                "sed -n 1p a.log",
                "sed: can't read a.log: No such file or directory",
                true,
            ),
            (
                "kubectl logs nope",
                "Error from server: timed out: nope",
                true,
            ),
            ("sed -i s/a/b/ a.py\npytest -q", logged, true),
        ] {
            assert_ne!(failures(command, line).is_empty(), is_own, "{command}");
        }
        for (line, is_error) in [
            ("Error: Debugger attached.", false),
            ("Error: Debugger ending on ws://127.0.0.1:9229/6f1c", false),
            ("Error: Waiting for the debugger to disconnect...", false),
            ("Error: Port 8080 is already in use", true),
            ("Error: listen EADDRINUSE :::8080", true),
            ("Error: 找不到名为 config 的模块", true),
        ] {
            assert_eq!(!failures("npm test", line).is_empty(), is_error, "{line}");
        }
    }

    #[test]
    fn a_value_that_a_message_gives_twice_or_a_program_said_is_not_sure() {
        let said = |text: &str| {
            let notes = SessionNotes::from_messages(&[Message::text(Role::Assistant, text)]);
            let sure = notes
                .values
                .iter()
                .filter(|(key, _)| !notes.contested.contains(key));
            sure.map(|(_, value)| value.clone()).collect::<Vec<_>>()
        };
        assert_eq!(said("I set padding: 4px on the list."), ["4px"]);
        assert!(said("Set padding: 4px on the list.\nSet padding: 8px on the button.").is_empty());
        assert!(said("The log says max_conn=100 is not enough.").is_empty());
        for weighed in [
            "We could raise max_conn = 500, but I leave it.",
            "It should be cache_ttl = 600 in production.",
            "For example max_age = 3600 is enough.",
        ] {
            assert!(said(weighed).is_empty(), "{weighed}");
        }
        for text in ["Set example_age = 36 now.", "I set shoulder = 4 here."] {
            assert_eq!(said(text).len(), 1, "{text}");
        }
    }

    #[test]
    fn a_value_that_another_file_gives_differently_is_not_sure() {
        let write =
            |path: &str, text: &str| ("write", json!({"path": path, "content": text}), "ok");
        let sure = |session: &[(&str, serde_json::Value, &str)]| {
            let outline = SessionOutline::from_messages(&calls(session));
            outline
                .values
                .into_iter()
                .map(|(_, value)| value)
                .collect::<Vec<_>>()
        };
        let first = || write("/r/api.toml", "port = 80");
        assert!(sure(&[first(), write("/r/admin.toml", "port = 90")]).is_empty());
        assert_eq!(sure(&[first(), write("/r/api.toml", "port = 90")]), ["90"]);
        assert_eq!(
            sure(&[first(), write("/r/admin.toml", "port = 80")]),
            ["80"]
        );
    }

    /// Calls of tools, each with its result.
    fn calls(calls: &[(&str, serde_json::Value, &str)]) -> Vec<Message> {
        let called = (0..)
            .zip(calls)
            .flat_map(|(at, (name, arguments, result))| {
                let id = format!("c{at}");
                let mut call = Message::text(Role::Assistant, "");
                call.tool_calls
                    .push(ToolCall::new(&id, *name, arguments.to_string()));
                [call, Message::result(&id, *result)]
            });
        called.collect()
    }

    #[test]
    fn an_edit_that_was_not_done_gives_neither_a_value_nor_a_detail() {
        let edit = |old: &str, new: &str, result| {
            let arguments = json!({"file_path": "a.toml", "old_string": old, "new_string": new});
            let done = (
                "Edit",
                json!({"file_path": "a.toml", "old_string": "x", "new_string": "waits"}),
                "ok",
            );
            let notes = SessionNotes::from_messages(&calls(&[done, ("Edit", arguments, result)]));
            (notes.values.len(), notes.files[0].details.len())
        };
        for result in [
            "<tool_use_error>String to replace not found in file.</tool_use_error>",
            "The user doesn't want to proceed with this tool use.",
            "The write was blocked by a policy",
        ] {
            assert_eq!(edit("port = 80", "port = 90", result), (0, 1), "{result}");
        }
        for result in [
            "ok",
            "",
            "a.toml has been updated, no other file was touched.",
        ] {
            assert_eq!(edit("port = 80", "port = 90", result), (1, 2), "{result}");
        }
    }

    #[test]
    fn a_command_that_may_not_be_the_last_or_goes_on_is_not_given_as_it() {
        let last = |command: &str, result: &str| {
            let run = |command: &str, result| ("bash", json!({ "command": command }), result);
            let span = calls(&[run("pytest -q tests", "3 passed"), run(command, result)]);
            SessionOutline::from_messages(&span).last_command
        };
        let long = "x ".repeat(80);
        for (command, result) in [
            ("rm a.py\nrm b.py", ""),
            (&long, ""),
            ("rm a.py", "Command blocked by sandbox policy"),
        ] {
            assert_eq!(last(command, result), None, "{command}");
        }
        let refused = last("rm a.py", "The user denied it.");
        assert_eq!(refused.as_deref(), Some("pytest -q tests"));
        for result in ["", "Exit code 1\nrm: cannot remove a.py", "removed 'a.py'"] {
            assert_eq!(
                last("rm a.py\n", result).as_deref(),
                Some("rm a.py"),
                "{result}"
            );
        }
        let failed = |command: &str| {
            let failure = noted(command, "Exit code 1\nerror: no space left on device");
            failure.map(|failure| failure.command)
        };
        let first = "rm -rf out && mkdir out";
        let cut = failed(&format!("{first}\n./convert out"));
        assert_eq!(cut.as_deref(), Some("rm -rf out && mkdir out …"));
        for whole in [
            first.to_owned(),
            format!("{first}\n"),
            format!("cd /r && {first}"),
        ] {
            assert_eq!(failed(&whole).as_deref(), Some(first));
        }
    }

    #[test]
    fn nothing_to_note_is_an_empty_text() {
        assert_eq!(
            notes(&[Message::text(Role::User, "hello")], DEFAULT_TOKENS),
            ""
        );
    }

    #[test]
    fn unneeded_room_goes_to_the_others() {
        assert_eq!(
            allocate(&[(0.5, 10.0), (0.25, 100.0), (0.25, 100.0)], 90.0),
            [10.0, 40.0, 40.0]
        );
        assert_eq!(allocate(&[(0.5, 1.0), (0.5, 2.0)], 90.0), [1.0, 2.0]);
        assert!(allocate(&[], 90.0).is_empty());
    }

    proptest! {
        #[test]
        fn notes_stay_within_their_limit(limit in 0u64..200) {
            let text = notes(&session(), Tokens(limit));
            prop_assert!(estimate_tokens(&text) <= Tokens(limit));
        }

        #[test]
        fn no_more_is_allocated_than_there_is_or_is_needed(
            wants in prop::collection::vec((0.01f64..1.0, 0.0f64..500.0), 0..9),
            limit in 0.0f64..1000.0,
        ) {
            let amounts = allocate(&wants, limit);
            prop_assert!(amounts.iter().sum::<f64>() <= limit + 1e-6);
            prop_assert!(amounts.iter().zip(&wants).all(|(amount, (_, need))| amount <= need));
        }
    }
}
