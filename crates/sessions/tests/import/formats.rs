//! One small log of each shape of each format.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use compeval_sessions::import::{ImportedLog, read_log};
use compeval_sessions::transcript::Message;

fn log(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/import/logs").join(name)
}

fn line(message: &Message) -> String {
    let calls: Vec<String> = message
        .tool_calls
        .iter()
        .map(|call| format!(" {}={}{}", call.id, call.function.name, call.function.arguments))
        .collect();
    let answers = message.tool_call_id.as_ref().map(|id| format!(" {id}")).unwrap_or_default();
    format!("{}{answers}: {:?}{}", message.role.name(), message.content, calls.concat())
}

fn shown(imported: &ImportedLog) -> String {
    let mut text = format!("{}\n", imported.format);
    for conversation in &imported.conversations {
        let model = conversation.model.as_deref().unwrap_or("-");
        let _ = writeln!(text, "== {} ({model}), compacted at {:?}", conversation.name_hint, conversation.compactions);
        for message in &conversation.messages {
            let _ = writeln!(text, "{}", line(message));
        }
        for summary in &conversation.summaries {
            let _ = writeln!(text, "summary: {summary:?}");
        }
        for (kind, count) in &conversation.repairs {
            let _ = writeln!(text, "put right: {count} {kind:?}");
        }
        for (why, count) in &conversation.dropped {
            let _ = writeln!(text, "left out: {count} {why}");
        }
    }
    assert_eq!(imported.losses, []);
    text
}

#[test]
fn each_shape_of_each_format_is_read() {
    let mut names: Vec<String> = std::fs::read_dir(log(""))
        .expect("logs")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    assert!(names.len() >= 24);
    for name in names {
        let imported = read_log(&log(&name), None).unwrap_or_else(|error| panic!("{name}: {error}"));
        insta::with_settings!({prepend_module_to_snapshot => false, snapshot_path => "snapshots"}, {
            insta::assert_snapshot!(name.replace('.', "-"), shown(&imported));
        });
    }
}
