//! Logs that are damaged, or not logs at all: the import never panics or hangs, and reads what is sound.

use std::path::{Path, PathBuf};

use compeval_sessions::import::{
    FixtureOptions, Format, ImportError, NO_RESULT, RepairKind, assemble, log_files, read_bytes,
    read_log,
};
use compeval_sessions::transcript::Role;
use proptest::prelude::*;
use serde_json::json;

fn logs() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/import/logs");
    let (files, losses) = log_files(&folder);
    assert_eq!(losses, []);
    files.into_iter().map(|log| log.path().to_owned()).collect()
}

fn read(name: &str, text: &str) -> Result<compeval_sessions::import::ImportedLog, ImportError> {
    read_bytes(Path::new(name), text.as_bytes().to_vec(), None)
}

#[test]
fn a_file_that_is_not_a_log_is_named_with_what_to_do() {
    let message = |name: &str, text: &str| read(name, text).expect_err("no log").to_string();
    assert_eq!(message("a.jsonl", " \n\n"), "the log `a.jsonl` is empty");
    assert_eq!(message("a.jsonl", ""), "the log `a.jsonl` is empty");
    let near = message("a.json", r#"{"dialogue":[{"speaker":"me"}],"kind":"chat"}"#);
    assert!(
        near.contains("keys: dialogue, kind") && near.contains("claude-code"),
        "{near}"
    );
    assert!(near.contains(r#"begins with `{"dialogue""#), "{near}");
    let cut = message("a.eval", "PK\u{3}\u{4}xyz");
    assert!(
        cut.contains("a ZIP archive that cannot be opened")
            && cut.contains("inspect log convert --to json"),
        "{cut}"
    );
    assert!(message("a.db", "SQLite format 3\0xyz").contains("opencode export"));
    let hermes = message(
        "a.db",
        "SQLite format 3\0.....CREATE TABLE sessions (id TEXT)CREATE TABLE messages(id)",
    );
    assert!(
        hermes.contains("it is Hermes': run `hermes sessions export"),
        "{hermes}"
    );
    let opencode = message(
        "a.db",
        "SQLite format 3\0..CREATE TABLE `session` (id)CREATE TABLE `part` (id)",
    );
    assert!(
        opencode.contains("it is OpenCode's: run `opencode export"),
        "{opencode}"
    );
    let broken = message("a.json", "{\"a\":");
    assert!(
        broken.starts_with("a.json:1: the JSON document is damaged at column 5"),
        "{broken}"
    );
    assert!(message("a.jsonl", "oh\nno\n").starts_with("a.jsonl:1: the line is no JSON"));
    let near = message(
        "a.jsonl",
        "{\"role\":\"user\",\"text\":\"a\"}\n{\"role\":\"user\",\"text\":\"b\"}\n",
    );
    assert!(
        near.contains("is in no known format") && near.contains("(keys: role, text)"),
        "{near}"
    );
    let page = "# Formats\n\n```json\n{\"role\": \"user\"}\n```\n";
    assert!(
        matches!(read("a.md", page), Err(ImportError::UnknownFormat { .. })),
        "a page about logs is no log"
    );
    let silent = message(
        "a.jsonl",
        "{\"type\":\"session_meta\",\"payload\":{}}\n{\"type\":\"turn_context\",\"payload\":{}}\n",
    );
    assert_eq!(silent, "`a.jsonl` was read as codex and holds no messages");
    let long = format!(
        "{{\"role\":\"user\",\"content\":\"{}\"}}",
        "x".repeat(33 << 20)
    );
    assert!(message("a.jsonl", &long).contains("a.jsonl:1: the line is longer than 32 MB"));
    assert!(matches!(
        read_log(Path::new("/nowhere/a.jsonl"), None),
        Err(ImportError::Io { .. })
    ));
}

#[test]
fn a_range_of_events_is_not_counted_through() {
    let log = r#"[
        {"id": 1, "source": "user", "action": "message", "args": {"content": "go"}},
        {"id": 2, "source": "agent", "action": "condensation", "args":
            {"forgotten_events_start_id": 0, "forgotten_events_end_id": 18446744073709551615, "summary": "s"}},
        {"id": 3, "source": "agent", "action": "message", "args": {"content": "done"}}
    ]"#;
    let imported = read("a.json", log).expect("reads");
    let conversation = &imported.conversations[0];
    let kept = conversation
        .recorded
        .iter()
        .map(|one| conversation.kept_at(one).len());
    assert_eq!(
        kept.collect::<Vec<_>>(),
        [0],
        "the only event was forgotten"
    );
}

#[test]
fn damage_is_counted_with_file_and_line_and_the_rest_is_read() {
    let text = "{\"role\":\"user\",\"content\":\"a\"}\nnot json\n{\"role\":\"user\",\"content\":\"b\"}\n{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"c\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]}\n{\"role\":\"us";
    let imported = read("a.jsonl", text).expect("reads");
    let messages = &imported.conversations[0].messages;
    assert_eq!(messages.len(), 4);
    assert_eq!(messages[3].content, NO_RESULT);
    let losses: Vec<String> = imported.losses.iter().map(ToString::to_string).collect();
    assert!(
        losses[0].starts_with("a.jsonl:2: the line is no JSON"),
        "{losses:?}"
    );
    assert!(
        losses[1].starts_with("a.jsonl:5: the line is cut off"),
        "{losses:?}"
    );
}

#[test]
fn of_very_many_damaged_lines_the_first_are_listed_and_the_others_counted() {
    let text = format!(
        "{{\"role\":\"user\",\"content\":\"a\"}}\n{}",
        "no\n".repeat(1500)
    );
    let losses = read("a.jsonl", &text).expect("reads").losses;
    assert_eq!(losses.len(), 1001);
    assert_eq!(
        losses.last().expect("one").to_string(),
        "a.jsonl: 500 more places could not be read"
    );
    let nothing = read("a.jsonl", &"no\n".repeat(1500))
        .expect_err("no log")
        .to_string();
    assert!(nothing.contains("so with 1499 more places"), "{nothing}");
}

#[test]
fn a_long_output_is_cut_and_says_its_length() {
    let output: String = (0..20_000).map(|n| format!("line {n}\\n")).collect();
    let log = format!(
        "{{\"role\":\"user\",\"content\":\"go\"}}\n{{\"role\":\"assistant\",\"tool_calls\":[{{\"id\":\"c\",\"function\":{{\"name\":\"f\",\"arguments\":\"{{}}\"}}}}]}}\n{{\"role\":\"tool\",\"tool_call_id\":\"c\",\"content\":\"{output}\"}}\n"
    );
    let imported = read("a.jsonl", &log).expect("reads");
    let conversation = imported.conversations[0].clone();
    let count = |_: &compeval_sessions::transcript::Message| base::units::Tokens(1);
    let made = assemble(
        conversation,
        imported.format,
        &FixtureOptions::default(),
        &count,
    );
    let content = &made.fixture.messages[2].content;
    assert!(
        content.starts_with("line 0\n") && content.ends_with("line 19999\n"),
        "{content}"
    );
    assert!(
        content.contains("[... cut, 208,890 characters in the original ...]"),
        "{content}"
    );
}

#[test]
fn a_password_that_only_the_middle_of_a_long_output_introduces_is_replaced_everywhere() {
    let password = ["Xk7!m", "Q2pLz9"].concat();
    let lines = "a line of output\n".repeat(400);
    let call = json!({"id": "c", "function": {"name": "printenv", "arguments": "{}"}});
    let messages = json!([
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": format!("{lines}DB_PASSWORD={password}\n{lines}")},
        {"role": "assistant", "content": format!("I call connect(\"db\", \"app\", \"{password}\").")},
    ]);
    let conversation = read("a.json", &messages.to_string())
        .expect("reads")
        .conversations
        .remove(0);
    let count = |_: &compeval_sessions::transcript::Message| base::units::Tokens(1);
    let made = assemble(
        conversation,
        Format::OpenAi,
        &FixtureOptions::default(),
        &count,
    );
    let text = serde_json::to_string(&made.fixture).expect("JSON");
    assert!(
        text.contains("REDACTED_PASSWORD_1") && !text.contains(&password),
        "{text}"
    );
    assert!(!text.contains("DB_PASSWORD"), "the middle is cut: {text}");
}

#[test]
fn a_result_without_its_call_is_dropped_and_counted() {
    let log = "{\"role\":\"tool\",\"tool_call_id\":\"x\",\"content\":\"lost\"}\n{\"role\":\"user\",\"content\":\"b\"}\n";
    let imported = read("a.jsonl", log).expect("reads");
    let conversation = &imported.conversations[0];
    assert_eq!(conversation.messages.len(), 1);
    assert_eq!(
        conversation.repairs.get(&RepairKind::OrphanResult),
        Some(&1)
    );
}

#[test]
fn a_format_can_be_forced() {
    let bytes = b"[{\"role\":\"user\",\"content\":\"a\"}]".to_vec();
    let forced = read_bytes(Path::new("a.json"), bytes, Some(Format::Anthropic)).expect("reads");
    assert_eq!(forced.format, Format::Anthropic);
}

#[cfg(unix)]
#[test]
fn a_link_out_of_a_folder_is_not_followed() {
    let outside = tempfile::tempdir().expect("a folder");
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::copy(&logs()[0], outside.path().join("x.jsonl")).expect("copies");
    std::os::unix::fs::symlink(
        outside.path().join("x.jsonl"),
        folder.path().join("y.jsonl"),
    )
    .expect("links");
    let (files, losses) = log_files(folder.path());
    assert!(files.is_empty());
    assert!(
        losses[0]
            .to_string()
            .contains("y.jsonl: a link out of the folder"),
        "{losses:?}"
    );
}

/// Damage to a log.
#[derive(Clone, Debug)]
enum Harm {
    Flip(usize, u8),
    Cut(usize),
    Swap(usize, usize),
    Repeat(usize),
    Insert(usize, Vec<u8>),
}

fn harm() -> impl Strategy<Value = Harm> {
    prop_oneof![
        (any::<usize>(), any::<u8>()).prop_map(|(at, byte)| Harm::Flip(at, byte)),
        any::<usize>().prop_map(Harm::Cut),
        (any::<usize>(), any::<usize>()).prop_map(|(a, b)| Harm::Swap(a, b)),
        any::<usize>().prop_map(Harm::Repeat),
        (any::<usize>(), proptest::collection::vec(any::<u8>(), 1..6))
            .prop_map(|(at, bytes)| Harm::Insert(at, bytes)),
    ]
}

fn harmed(bytes: Vec<u8>, harm: &Harm) -> Vec<u8> {
    let mut lines: Vec<Vec<u8>> = bytes
        .split_inclusive(|byte| *byte == b'\n')
        .map(<[u8]>::to_vec)
        .collect();
    let (length, count) = (bytes.len().max(1), lines.len().max(1));
    let mut bytes = bytes;
    match harm {
        Harm::Flip(at, byte) => {
            if let Some(old) = bytes.get_mut(at % length) {
                *old = *byte;
            }
        }
        Harm::Cut(at) => bytes.truncate(at % length),
        Harm::Insert(at, new) => drop(bytes.splice(at % length..at % length, new.iter().copied())),
        Harm::Swap(a, b) if !lines.is_empty() => {
            lines.swap(a % count, b % count);
            bytes = lines.concat();
        }
        Harm::Repeat(at) if !lines.is_empty() => {
            lines.push(lines[at % count].clone());
            bytes = lines.concat();
        }
        Harm::Swap(..) | Harm::Repeat(_) => {}
    }
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn harmed_logs_never_panic_and_pairs_stay_pairs(
        index in any::<usize>(),
        harms in proptest::collection::vec(harm(), 1..6),
        forced in proptest::option::of(0..Format::ALL.len()),
    ) {
        let files = logs();
        let file = &files[index % files.len()];
        let bytes = std::fs::read(file).expect("a log");
        let bytes = harms.iter().fold(bytes, harmed);
        let format = forced.map(|index| Format::ALL[index]);
        let Ok(imported) = read_bytes(file, bytes, format) else { return Ok(()) };
        for conversation in imported.conversations {
            prop_assert!(!conversation.messages.is_empty());
            let fixture = serde_json::json!({"name": "f", "messages": conversation.messages, "points": conversation.compactions()});
            if conversation.messages.iter().any(|message| message.role != Role::System)
                && let Err(faults) = compeval_sessions::transcript::ParsedFixture::read(&fixture.to_string())
            {
                prop_assert!(false, "{faults:?}");
            }
        }
    }
}
