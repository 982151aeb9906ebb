//! Logs of more than one file: Inspect's archives, and sessions of one file per event.

use std::io::{Cursor, Write};
use std::path::Path;

use compeval_sessions::import::{
    Format, ImportError, ImportedLog, Log, log_files, read, read_bytes,
};
use proptest::prelude::*;
use zip::CompressionMethod;
use zip::write::{SimpleFileOptions, ZipWriter};

const HEADER: &str = r#"{"version":2,"eval":{"task":"t","model":"openai/gpt-4o"}}"#;

fn sample(id: &str, epoch: u32) -> String {
    format!(
        r#"{{"id":"{id}","epoch":{epoch},"messages":[{{"role":"user","content":"q {id}"}},
        {{"role":"assistant","content":"attachment://h"}}],"attachments":{{"h":"a {id}"}},"events":[]}}"#
    )
}

fn archive(entries: &[(&str, &[u8], CompressionMethod)]) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes, method) in entries {
        let options = SimpleFileOptions::default().compression_method(*method);
        writer.start_file(*name, options).expect("an entry");
        writer.write_all(bytes).expect("bytes");
    }
    writer.finish().expect("an archive").into_inner()
}

fn sound() -> Vec<u8> {
    let (first, again, other) = (sample("7", 1), sample("7", 2), sample("a/../b", 1));
    archive(&[
        (
            "_journal/start.json",
            HEADER.as_bytes(),
            CompressionMethod::Deflated,
        ),
        (
            "samples/7_epoch_1.json",
            first.as_bytes(),
            CompressionMethod::Deflated,
        ),
        (
            "samples/7_epoch_2.json",
            again.as_bytes(),
            CompressionMethod::Zstd,
        ),
        (
            "samples/../../x.json",
            other.as_bytes(),
            CompressionMethod::Stored,
        ),
        ("summaries.json", b"[]", CompressionMethod::Deflated),
    ])
}

fn imported(bytes: Vec<u8>) -> Result<ImportedLog, ImportError> {
    read_bytes(Path::new("log.eval"), bytes, None)
}

#[test]
fn an_archive_of_inspect_has_a_conversation_per_sample() {
    let imported = imported(sound()).expect("reads");
    assert_eq!(
        (imported.format, imported.losses.as_slice()),
        (Format::Inspect, [].as_slice())
    );
    let names: Vec<&str> = imported
        .conversations
        .iter()
        .map(|c| c.name_hint.as_str())
        .collect();
    assert_eq!(
        names,
        ["log-7", "log-7-epoch-2", "log-a----b"],
        "entries are never taken for paths"
    );
    let last = &imported.conversations[1];
    assert_eq!(
        (last.model.as_deref(), last.messages.len()),
        (Some("openai/gpt-4o"), 2)
    );
    assert_eq!(last.messages[1].content, "a 7");
}

#[test]
fn a_damaged_sample_is_named_and_the_others_are_read() {
    let (whole, half) = (sample("1", 1), &sample("2", 1)[..60]);
    let stored = CompressionMethod::Stored;
    let entries = [
        ("header.json", HEADER.as_bytes(), stored),
        ("samples/1.json", whole.as_bytes(), stored),
        ("samples/2.json", half.as_bytes(), stored),
        ("samples/3.json", b"CHECKSUM".as_slice(), stored),
    ];
    let mut bytes = archive(&entries);
    let at = bytes
        .windows(8)
        .position(|w| w == b"CHECKSUM")
        .expect("the entry");
    bytes[at] = b'X';
    let imported = imported(bytes).expect("reads");
    let losses: Vec<String> = imported.losses.iter().map(ToString::to_string).collect();
    assert!(
        losses[0].starts_with("log.eval/samples/2.json:1: the JSON document is damaged"),
        "{losses:?}"
    );
    assert!(
        losses[1].contains("the entry `samples/3.json` cannot be unpacked"),
        "{losses:?}"
    );
    assert_eq!(
        (losses.len(), imported.conversations[0].messages.len()),
        (2, 2)
    );
}

#[test]
fn an_entry_that_swells_beyond_the_limit_is_skipped() {
    let whole = sample("1", 1);
    let bomb = vec![b' '; (128 << 20) + 1];
    let bytes = archive(&[
        ("header.json", HEADER.as_bytes(), CompressionMethod::Stored),
        ("samples/0.json", &bomb, CompressionMethod::Zstd),
        (
            "samples/1.json",
            whole.as_bytes(),
            CompressionMethod::Stored,
        ),
    ]);
    assert!(bytes.len() < 1 << 20);
    let imported = imported(bytes).expect("reads");
    assert!(
        imported.losses[0].message.contains("more than 128 MB"),
        "{:?}",
        imported.losses
    );
    assert_eq!(imported.conversations.len(), 1);
}

#[test]
fn an_archive_of_something_else_is_named() {
    let bytes = archive(&[("word/document.xml", b"<x/>", CompressionMethod::Stored)]);
    let error = imported(bytes).expect_err("no log").to_string();
    assert!(error.contains("is a ZIP archive; unpack it"), "{error}");
    let headless = archive(&[("header.json", HEADER.as_bytes(), CompressionMethod::Stored)]);
    assert!(matches!(
        imported(headless),
        Err(ImportError::NoSession {
            format: Format::Inspect,
            ..
        })
    ));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn harmed_archives_never_panic(
        flips in proptest::collection::vec((any::<usize>(), any::<u8>()), 1..6),
        cut in proptest::option::of(any::<usize>()),
    ) {
        let mut bytes = sound();
        for (at, byte) in flips {
            let at = at % bytes.len();
            bytes[at] = byte;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut % bytes.len());
        }
        if let Ok(imported) = imported(bytes) {
            prop_assert!(imported.conversations.iter().all(|c| !c.messages.is_empty()));
        }
    }
}

/// A session of OpenHands as its server keeps it: one file per event, and a cache of pages beside them.
fn session(root: &Path) {
    let events = root.join("s-1/events");
    std::fs::create_dir_all(&events).expect("a folder");
    std::fs::create_dir_all(root.join("s-1/event_cache")).expect("a folder");
    for id in (0..12).filter(|id| *id != 5) {
        let source = if id % 2 == 0 { "user" } else { "agent" };
        let event = format!(
            "{{\n \"id\": {id},\n \"source\": \"{source}\",\n \"action\": \"message\",\n \"args\": {{\"content\": \"say {id}\"}}\n}}"
        );
        std::fs::write(events.join(format!("{id}.json")), event).expect("writes");
    }
    std::fs::write(events.join("12.json"), "{\"id\": 12, \"source\": \"us").expect("writes");
    std::fs::write(
        root.join("s-1/event_cache/0-2.json"),
        "[{\"source\":\"user\",\"action\":\"message\"}]",
    )
    .expect("writes");
}

#[test]
fn a_folder_of_events_is_one_session_in_the_order_of_their_numbers() {
    let root = tempfile::tempdir().expect("a folder");
    session(root.path());
    std::fs::write(
        root.path().join("1.json"),
        "[{\"role\":\"user\",\"content\":\"not an event\"}]",
    )
    .expect("writes");
    // Reading a pipe would wait for ever.
    let pipe = root.path().join("s-1/base_state.json");
    let made = std::process::Command::new("mkfifo").arg(pipe).status();
    assert!(made.expect("mkfifo").success());
    let (logs, passed) = log_files(root.path());
    assert_eq!(passed.len(), 1, "{passed:?}");
    let [Log::File(_), log @ Log::Events { files, .. }] = logs.as_slice() else {
        panic!("{logs:?}")
    };
    assert_eq!(files.len(), 12);
    let imported = read(log, None).expect("reads");
    let [conversation] = imported.conversations.as_slice() else {
        panic!("{imported:?}")
    };
    let said: Vec<&str> = conversation
        .messages
        .iter()
        .map(|m| m.content.as_str())
        .collect();
    let numbers = (0..12)
        .filter(|id| *id != 5)
        .map(|id| format!("say {id}"))
        .collect::<Vec<_>>();
    assert_eq!(
        (conversation.name_hint.as_str(), said),
        ("s-1", numbers.iter().map(String::as_str).collect())
    );
    assert_eq!(imported.losses.len(), 1, "{:?}", imported.losses);
    assert!(imported.losses[0].file.ends_with("events/12.json"));
}

#[test]
fn a_session_has_its_folders_name_however_the_path_is_written() {
    let root = tempfile::tempdir().expect("a folder");
    session(root.path());
    for (path, name) in [
        ("s-1/event_cache/../events", "s-1"),
        ("s-1/events/../../s-1/event_cache/..", "s-1"),
    ] {
        let (logs, _) = log_files(&root.path().join(path));
        let Some(log @ Log::Events { .. }) = logs.first() else {
            panic!("{logs:?}")
        };
        assert_eq!(
            read(log, None).expect("reads").conversations[0].name_hint,
            name,
            "{path}"
        );
    }
    let (mut logs, _) = log_files(root.path());
    let Some(Log::Events { folder, .. }) = logs.first_mut() else {
        panic!("{logs:?}")
    };
    // As in `import .`, from within.
    *folder = ".".into();
    let here = std::env::current_dir().expect("a folder");
    let named = &read(&logs[0], None).expect("reads").conversations[0].name_hint;
    assert_eq!(
        Some(named.as_str()),
        here.file_name().and_then(|name| name.to_str())
    );
}

#[test]
fn another_format_than_a_folder_or_an_archive_has_is_refused() {
    let root = tempfile::tempdir().expect("a folder");
    session(root.path());
    let (logs, _) = log_files(root.path());
    let refused = |found: Result<ImportedLog, ImportError>| {
        found.map_or_else(|error| error.to_string(), |_| String::new())
    };
    let found = refused(read(&logs[0], Some(Format::Codex)));
    assert!(
        found.contains("events` is a folder of events") && found.contains("expected openhands"),
        "{found}"
    );
    let found = refused(read_bytes(
        Path::new("log.eval"),
        sound(),
        Some(Format::Codex),
    ));
    assert!(
        found.contains("`log.eval` is an archive")
            && found.contains("expected inspect, found `--format codex`")
    );
    assert_eq!(refused(read(&logs[0], Some(Format::OpenHands))), "");
    assert_eq!(
        refused(read_bytes(
            Path::new("log.eval"),
            sound(),
            Some(Format::Inspect)
        )),
        ""
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn harmed_events_never_panic(harms in proptest::collection::vec((0..12_usize, any::<usize>(), any::<u8>()), 1..8)) {
        let root = tempfile::tempdir().expect("a folder");
        session(root.path());
        for (event, at, byte) in harms {
            let file = root.path().join(format!("s-1/events/{event}.json"));
            let Ok(mut bytes) = std::fs::read(&file) else { continue };
            let at = at % bytes.len().max(1);
            if byte < 64 { bytes.truncate(at) } else if let Some(old) = bytes.get_mut(at) { *old = byte }
            std::fs::write(&file, bytes).expect("writes");
        }
        for log in log_files(root.path()).0 {
            if let Ok(imported) = read(&log, None) {
                prop_assert!(imported.conversations.iter().all(|c| !c.messages.is_empty()));
            }
        }
    }
}

#[test]
fn events_of_the_agent_sdk_are_one_session_with_its_model() {
    let root = tempfile::tempdir().expect("a folder");
    let events = root.path().join("conv/events");
    std::fs::create_dir_all(&events).expect("a folder");
    std::fs::write(
        root.path().join("conv/base_state.json"),
        r#"{"agent":{"llm":{"model":"m-1"}}}"#,
    )
    .expect("writes");
    for (number, role) in [(0, "user"), (1, "assistant"), (10, "user")] {
        let event = format!(
            r#"{{"id":"e{number}","kind":"MessageEvent","source":"user","llm_message":{{"role":"{role}","content":[{{"type":"text","text":"say {number}"}}]}}}}"#
        );
        std::fs::write(events.join(format!("event-{number:05}-ab-cd.json")), event)
            .expect("writes");
    }
    for folder in [root.path().to_owned(), events] {
        let (logs, _) = log_files(&folder);
        let [log] = logs.as_slice() else {
            panic!("{logs:?}")
        };
        let imported = read(log, None).expect("reads");
        assert_eq!(imported.conversations[0].messages.len(), 3);
        assert_eq!(imported.conversations[0].model.as_deref(), Some("m-1"));
    }
}
