//! A collection of real logs, where one is at hand: `COMPEVAL_LOGS=DIR cargo test --test import -- --ignored --nocapture`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use compeval::import::{self, Why};

fn logs() -> Vec<PathBuf> {
    let root = std::env::var_os("COMPEVAL_LOGS").expect("COMPEVAL_LOGS names a folder of logs");
    let mut files: Vec<PathBuf> = walkdir::WalkDir::new(root)
        .into_iter()
        .filter_map(Result::ok)
        .filter(|entry| entry.file_type().is_file())
        .map(|entry| entry.into_path())
        .collect();
    files.sort();
    files
}

#[test]
#[ignore = "needs a collection of logs"]
fn every_log_of_the_collection_is_imported() {
    for file in logs() {
        let name = file.file_name().expect("a name").to_string_lossy().into_owned();
        let imported = match import::read_log(&file, None) {
            Ok(imported) => imported,
            Err(error) => {
                eprintln!("{name}: {error}");
                continue;
            }
        };
        let all = &imported.conversations;
        let sum = |of: fn(&import::Conversation) -> usize| all.iter().map(of).sum::<usize>();
        let calls = sum(|c| c.messages.iter().map(|m| m.tool_calls.len()).sum());
        let mut dropped: BTreeMap<Why, usize> = BTreeMap::new();
        let mut flags = BTreeMap::new();
        for conversation in all {
            conversation.dropped.iter().for_each(|(why, n)| *dropped.entry(why.clone()).or_default() += n);
            conversation.flags.iter().for_each(|flag| *flags.entry(flag.kind).or_insert(0) += 1);
        }
        let results = sum(|c| c.messages.iter().filter(|m| m.tool_call_id.is_some()).count());
        eprintln!(
            "{name}: {} conversations={} messages={} (without results {}) calls={calls} compactions={} model={:?} flags={flags:?} losses={:?}",
            imported.format,
            all.len(),
            sum(|c| c.messages.len()),
            sum(|c| c.messages.len()) - results,
            sum(|c| c.compactions.len()),
            all[0].model,
            imported.losses,
        );
        for (why, count) in dropped {
            eprintln!("    {count:5} {why}");
        }
    }
}
