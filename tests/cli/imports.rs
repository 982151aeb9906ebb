//! What an import makes of a log, and what it refuses.

use std::fs;

use serde_json::{Value, json};

#[cfg(unix)]
use super::project::Ended;
use super::tools_cli::Project;

/// A log as an OpenAI client keeps it.
pub(super) fn log() -> String {
    let arguments = r#"{"path":"app/retry.py","content":"DELAY_MS = 3500"}"#;
    let call = json!({"id": "c1", "type": "function", "function": {"name": "write_file", "arguments": arguments}});
    json!({"messages": [
        {"role": "user", "content": "Fix /home/jdoe/app, ask jdoe@corp.io. Never change port 8081."},
        {"role": "assistant", "content": "Going with SQLite instead of a JSON file.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "ok"},
        {"role": "assistant", "content": "Next: `retry_job` still needs a test in tests/test_retry.py."},
    ]})
    .to_string()
}

#[test]
fn an_imported_log_is_scrubbed_never_overwrites_and_is_accounted_for() {
    let project = Project::new();
    project.write("logs/session.json", &log());
    project.write("logs/notes.txt", "nothing");
    let folder = project.run(&["fixture", "import", "logs", "--final", "--json"]);
    assert_eq!(
        (
            folder.code,
            folder.json()["too_short"][0]["messages"].clone()
        ),
        (2, json!(4)),
        "{}",
        folder.err
    );
    let left_out =
        "error: no fixture was written: 1 session left out, with under 5 messages or 1000 tokens";
    assert!(folder.err.contains(left_out), "{}", folder.err);
    let first = project.run(&[
        "fixture",
        "import",
        "logs/session.json",
        "--final",
        "--json",
    ]);
    assert_eq!(first.code, 0, "{}", first.err);
    let account = first.json();
    assert_eq!(account["fixtures"][0]["file"], "fixtures/session.json");
    assert_eq!(
        account["fixtures"][0]["replaced"]["account name in a path"],
        1
    );
    let text = project.read("fixtures/session.json");
    assert!(
        !text.contains("jdoe") && !text.contains("corp.io"),
        "{text}"
    );
    let second = project.run(&["fixture", "import", "logs/session.json"]);
    assert!(
        second.out.contains("wrote fixtures/session-2.json"),
        "{}",
        second.out
    );
    assert_eq!(project.read("fixtures/session.json"), text);
    let scrubbed = project.run(&["fixture", "scrub", "fixtures/session.json", "--json"]);
    assert_eq!(scrubbed.json()["files"][0]["changed"], false);
    let checked = project.run(&["check", "--json"]).json()["warnings"].to_string();
    assert_eq!(checked.matches("has no bank").count(), 2, "{checked}");
}

#[test]
fn an_import_of_a_session_that_went_on_names_the_fixture_of_its_earlier_copy() {
    let project = Project::new();
    let import = || {
        let import = project.run(&["fixture", "import", "session.json", "--final"]);
        assert_eq!(import.code, 0, "{}", import.err);
        import.out.lines().next().unwrap_or_default().to_owned()
    };
    project.write("session.json", &log());
    assert!(!import().contains("earlier copy"));
    assert!(!import().contains("earlier copy"), "nothing has changed");
    let more = r#"{"role":"user","content":"Go on."},{"role":"assistant","content":"Done."}]}"#;
    let log = log();
    let open = log.strip_suffix("]}").expect("a list of messages");
    project.write("session.json", &format!("{open},{more}"));
    for _ in 0..2 {
        let line = import();
        assert!(
            line.contains("fixtures/session-2.json")
                && line.contains("; fixtures/session.json is an earlier copy of this session"),
            "{line}"
        );
    }
    assert!(
        project.read("fixtures/session.json").len() < project.read("fixtures/session-2.json").len()
    );
    project.write("session.json", &log.replace("8081", "9999"));
    assert!(!import().contains("earlier copy"), "another session");
}

#[test]
fn an_import_names_every_fixture_in_a_pipe() {
    let project = Project::new();
    let files: Vec<String> = (1..=21)
        .map(|number| format!("logs/session-{number}.json"))
        .collect();
    for (number, file) in files.iter().enumerate() {
        // Logs that say the same are one session.
        project.write(file, &log().replace("SQLite", &format!("SQLite {number}")));
    }
    let named: Vec<&str> = files.iter().map(String::as_str).collect();
    let import = project.run(&[&["fixture", "import", "--final"], &named[..]].concat());
    assert_eq!(
        import
            .out
            .lines()
            .filter(|line| line.starts_with("wrote "))
            .count(),
        21,
        "{}",
        import.out
    );
}

#[test]
fn an_import_cuts_a_session_at_a_whole_turn_and_records_it() {
    let project = Project::new();
    project.write("session.json", &log());
    let cut = |name: &str, arguments: &[&str]| -> Value {
        let import = project.run(
            &[
                &["fixture", "import", "session.json", "--name", name],
                arguments,
            ]
            .concat(),
        );
        assert_eq!(import.code, 0, "{}", import.err);
        serde_json::from_str(&project.read(&format!("fixtures/{name}.json"))).unwrap()
    };
    let whole = cut("whole", &[]);
    assert!(
        whole["truncated_to"].is_null() && whole["scrubbed_at"].as_str().unwrap().ends_with('Z'),
        "{whole}"
    );
    assert_eq!(
        (
            whole["messages"].as_array().unwrap().len(),
            whole["scrubbing_passes"].as_array().unwrap().len()
        ),
        (4, 10)
    );
    for (name, limit) in [
        ("tokens", ["--max-tokens", "50"]),
        ("least", ["--max-tokens", "1"]),
    ] {
        let fixture = cut(name, &limit);
        assert_eq!(
            (
                &fixture["truncated_to"],
                fixture["messages"].as_array().unwrap().len()
            ),
            (&json!(3), 3),
            "{name}"
        );
    }
    for (limit, is_over) in [("1", true), ("50", false)] {
        let said = project.run(&["fixture", "import", "session.json", "--max-tokens", limit]);
        let is_said = said
            .out
            .contains("its first turn alone is over --max-tokens");
        assert_eq!(is_said, is_over, "{limit}: {}", said.out);
        let flags = ["--max-tokens", limit, "--json"];
        let said = project.run(&[&["fixture", "import", "session.json"], &flags[..]].concat());
        let written = format!("\"over_max_tokens\":{is_over}");
        assert!(
            said.out.replace("\": ", "\":").contains(&written),
            "{}",
            said.out
        );
    }
    assert_eq!(
        project
            .run(&["fixture", "import", "session.json", "--max-tokens", "0"])
            .code,
        2
    );
}

#[test]
fn what_is_no_log_is_named_and_nothing_is_written() {
    let project = Project::new();
    project.write("empty.jsonl", "");
    project.write("other.json", r#"{"weather":"fine"}"#);
    let before = fs::read_dir(project.path().join("fixtures"))
        .unwrap()
        .count();
    for (arguments, words) in [
        (
            vec!["fixture", "import", "empty.jsonl"],
            "`empty.jsonl` is empty",
        ),
        (
            vec!["fixture", "import", "other.json"],
            "in no known format",
        ),
        (vec!["fixture", "import", "missing.json"], "No such file"),
        (
            vec!["fixture", "import", "other.json", "--format", "claud-code"],
            "did you mean `claude-code`?",
        ),
        (
            vec!["fixture", "import", "other.json", "--every-tokens", "0"],
            "0 is not in 1..",
        ),
        (
            vec!["fixture", "scrub", "fixtures", "--handle", "a"],
            "too short to be distinguished",
        ),
        (vec!["fixture", "scrub", "other.json"], "missing field"),
        (vec!["fixture", "scrub", "fixtures"], "is a directory"),
    ] {
        let done = project.run(&arguments);
        assert_eq!(done.code, 2, "{arguments:?}: {}", done.err);
        assert!(done.err.contains(words), "{arguments:?}: {}", done.err);
    }
    assert_eq!(
        fs::read_dir(project.path().join("fixtures"))
            .unwrap()
            .count(),
        before
    );
}

#[cfg(unix)]
#[test]
fn a_name_that_is_no_text_is_shown_as_far_as_it_is() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    let project = super::project::Project::offline();
    fs::create_dir(project.path("logs")).expect("a folder");
    let name = OsStr::from_bytes(b"session\xff.json");
    fs::write(project.path("logs").join(name), log()).expect("a log");
    let ended = project.expect(2, "fixture import logs --final --json");
    let source = ended.json()["too_short"][0]["source"].clone();
    assert_eq!(source, "logs/session\u{fffd}.json");
    let mut run = project.command("run --label a --model lexical --junit");
    let ended = Ended::of(&run.arg(name).output().expect("the program"));
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(project.path(".").join(name).exists());
}
