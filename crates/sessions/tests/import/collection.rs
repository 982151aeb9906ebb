//! Imports a collection of real logs, if you have one: `COMPEVAL_LOGS=DIR cargo test --test import -- --ignored
//! --nocapture`.

#![allow(clippy::print_stderr)]

use std::collections::BTreeMap;
use std::path::PathBuf;

use compeval_sessions::import::{self, DropReason};

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
        let name = file
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
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
        let mut dropped: BTreeMap<DropReason, usize> = BTreeMap::new();
        let mut repairs = BTreeMap::new();
        for conversation in all {
            conversation
                .dropped
                .iter()
                .for_each(|(why, n)| *dropped.entry(why.clone()).or_default() += n);
            conversation
                .repairs
                .iter()
                .for_each(|(kind, n)| *repairs.entry(*kind).or_insert(0) += n);
        }
        let results = sum(|c| {
            c.messages
                .iter()
                .filter(|m| m.tool_call_id.is_some())
                .count()
        });
        eprintln!(
            "{name}: {} conversations={} messages={} (without results {}) calls={calls} compactions={} model={:?} repairs={repairs:?} losses={:?}",
            imported.format,
            all.len(),
            sum(|c| c.messages.len()),
            sum(|c| c.messages.len()) - results,
            sum(|c| c.compactions().len()),
            all[0].model,
            imported.losses,
        );
        for (why, count) in dropped {
            eprintln!("    {count:5} {why}");
        }
    }
}

/// Hashes, ids and paths, which scrubbing must leave alone, with counts.
fn unscrubbed_names(text: &str) -> BTreeMap<String, usize> {
    let pattern = r"\b[0-9a-f]{40}\b|\b[0-9a-f]{64}\b|\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b|(?:^|[^/\w.~-])((?:[a-z_]+/)+[a-z_0-9]+\.(?:rs|go|py|ts|tsx|c|md))\b";
    let mut counts = BTreeMap::new();
    for found in regex::Regex::new(pattern)
        .expect("a pattern")
        .find_iter(text)
    {
        *counts.entry(found.as_str().to_owned()).or_default() += 1;
    }
    counts
}

#[test]
#[ignore = "needs a collection of logs"]
fn scrubbing_the_collection_keeps_hashes_ids_and_paths_and_leaves_nothing_certain() {
    for file in logs() {
        let Ok(imported) = import::read_log(&file, None) else {
            continue;
        };
        let mut replaced = BTreeMap::new();
        let mut left = BTreeMap::new();
        let mut uncertain = BTreeMap::new();
        for mut conversation in imported.conversations {
            for message in &mut conversation.messages {
                // Cutting is another matter.
                message.content = message.content.chars().take(1900).collect();
            }
            conversation
                .messages
                .retain(|message| message.role != compeval_sessions::transcript::Role::System);
            let text = |messages: &[compeval_sessions::transcript::Message]| {
                messages
                    .iter()
                    .map(|m| m.countable_text())
                    .collect::<Vec<_>>()
                    .join("\n")
            };
            let before = unscrubbed_names(&text(&conversation.messages));
            let options = import::FixtureOptions::default();
            let count = |m: &compeval_sessions::transcript::Message| {
                compeval_sessions::transcript::estimate_tokens(&m.content)
            };
            let made = import::assemble(conversation, imported.format, &options, &count);
            let after = unscrubbed_names(&text(&made.fixture.messages));
            for (kept, count) in before {
                assert_eq!(
                    after.get(&kept),
                    Some(&count),
                    "{kept} in {}",
                    file.display()
                );
            }
            for (kind, count) in made.report.replaced {
                *replaced.entry(kind.to_string()).or_insert(0) += count;
            }
            left.extend(made.report.left);
            for suspicion in made.suspicions {
                assert!(!suspicion.kind.is_certain(), "{suspicion:?}");
                *uncertain
                    .entry((suspicion.kind.clone(), suspicion.excerpt()))
                    .or_insert(0) += 1;
            }
        }
        eprintln!(
            "{}: {replaced:?} left {left:?}\n    {uncertain:?}",
            file.display()
        );
    }
}
