//! A transcript prepared for searches: every message folded once, its names and paths indexed.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::OnceLock;

use super::finder::FactFinder;
use base::words::{paths, words};

use super::names::{TranscriptPaths, normal_path, suffixes};
use sessions::transcript::{Message, file_operations, fold, fold_document};

/// A transcript, message by message. One value serves all points, because a prefix is a range of its messages.
#[derive(Clone, Debug)]
pub struct History {
    messages: Vec<String>,
    /// The files that the calls of each message name, as seen from the folder that a command changed to.
    files: Vec<Vec<String>>,
    /// Built on first use.
    mentions: OnceLock<MentionIndex>,
}

/// The names in a transcript, folded.
#[derive(Clone, Debug, Default)]
struct MentionIndex {
    /// Words, paths and ends of paths, with the first message that has them.
    first: HashMap<String, usize>,
    paths: TranscriptPaths,
}

impl History {
    /// Folds `messages`: contents, names and arguments of calls, the latter also as their JSON means.
    pub fn new(messages: &[Message]) -> History {
        History {
            messages: messages.iter().map(folded_message).collect(),
            files: messages.iter().map(files_of).collect(),
            mentions: OnceLock::new(),
        }
    }

    /// How many messages there are.
    pub fn len(&self) -> usize {
        self.messages.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// The messages among `within` in which the fact occurs, in order.
    pub fn holders(&self, fact: &FactFinder, within: Range<usize>) -> impl Iterator<Item = usize> {
        let texts = self
            .messages
            .iter()
            .enumerate()
            .take(within.end)
            .skip(within.start);
        texts
            .filter(|(_, text)| fact.occurs_in(text))
            .map(|(index, _)| index)
    }

    /// Whether the fact occurs in a message among `within`.
    pub fn holds(&self, fact: &FactFinder, within: Range<usize>) -> bool {
        self.holders(fact, within).next().is_some()
    }
    /// Whether a message before `until` has this folded word, path in normal form, or end of a path.
    pub fn mentions(&self, name: &str, until: usize) -> bool {
        self.index()
            .first
            .get(name)
            .is_some_and(|first| *first < until)
    }

    /// The paths of the transcript.
    pub fn paths(&self) -> &TranscriptPaths {
        &self.index().paths
    }

    fn index(&self) -> &MentionIndex {
        self.mentions
            .get_or_init(|| index_mentions(&self.messages, &self.files))
    }
}

fn index_mentions(messages: &[String], files: &[Vec<String>]) -> MentionIndex {
    let mut mentions = MentionIndex::default();
    for (index, (text, files)) in messages.iter().zip(files).enumerate() {
        for file in files.iter().flat_map(|file| suffixes(file)) {
            note(&mut mentions.first, file, index);
        }
        for word in words(text) {
            note(&mut mentions.first, word, index);
        }
        for path in paths(text) {
            let path = normal_path(path);
            if note(&mut mentions.first, &path, index) {
                mentions.paths.add(&path);
            }
            for suffix in suffixes(&path).skip(1) {
                note(&mut mentions.first, suffix, index);
            }
        }
    }
    mentions
}

/// Notes the first message that has a name. Returns whether the name is new.
fn note(first: &mut HashMap<String, usize>, name: &str, index: usize) -> bool {
    let is_new = !first.contains_key(name);
    if is_new {
        first.insert(name.to_owned(), index);
    }
    is_new
}

fn files_of(message: &Message) -> Vec<String> {
    let operations = message.tool_calls.iter().flat_map(file_operations);
    operations
        .map(|operation| normal_path(&fold(&operation.path)))
        .collect()
}

/// The text of a message with its calls, folded. No fact matches across a line break that is inserted here.
fn folded_message(message: &Message) -> String {
    let mut text = fold_document(&message.content);
    for call in &message.tool_calls {
        for part in [
            fold(&call.function.name),
            fold_document(&call.function.arguments),
        ] {
            text.push('\n');
            text.push_str(&part);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Fact;
    use sessions::transcript::{Role, ToolCall};

    fn history() -> History {
        let mut call = Message::text(Role::Assistant, "");
        call.tool_calls.push(ToolCall::new(
            "c1",
            "write",
            r#"{"path":"src/a.rs","text":"say \"hi\"\nthere"}"#,
        ));
        History::new(&[
            Message::text(Role::User, "用 Redis 做缓存"),
            call,
            Message::result("c1", "ok\nfine"),
        ])
    }

    fn finder(spelling: &str) -> FactFinder {
        FactFinder::new(&Fact {
            spellings: vec![spelling.into()],
        })
    }

    #[test]
    fn finds_facts_in_contents_and_arguments_as_written_and_as_meant() {
        let history = history();
        assert_eq!(
            history.holders(&finder("Redis"), 0..3).collect::<Vec<_>>(),
            [0]
        );
        assert!(history.holds(&finder("say \"hi\" there"), 0..3));
        assert!(history.holds(&finder("\"path\":\"src/a.rs\""), 0..3));
        assert!(
            !history.holds(&finder("ok fine"), 0..2),
            "the range ends before it"
        );
        assert!(history.holds(&finder("ok fine"), 0..3));
    }

    #[test]
    fn a_chain_of_a_thousand_folders_is_found_whole_and_by_its_last_parts() {
        let chain = "/a".repeat(1000) + "/x.rs";
        let history = History::new(&[Message::text(Role::User, chain.as_str())]);
        assert!(history.mentions("a/x.rs", 1) && history.mentions(&chain[1..], 1));
        assert!(history.index().first.len() < 50);
    }

    #[test]
    fn knows_a_file_by_the_folder_that_a_command_changed_to() {
        let mut call = Message::text(Role::Assistant, "");
        let command = r#"{"command":"cd ~/logs && cat > README.md"}"#;
        call.tool_calls.push(ToolCall::new("c1", "shell", command));
        let history = History::new(&[call]);
        assert!(history.mentions("logs/readme.md", 1) && !history.mentions("lib/readme.md", 1));
    }

    #[test]
    fn knows_names_and_ends_of_paths_from_their_first_mention_on() {
        let history = history();
        assert!(history.mentions("a.rs", 2) && history.mentions("src/a.rs", 2));
        assert!(!history.mentions("a.rs", 1));
        assert!(!history.mentions("lib/a.rs", 3));
        assert!(history.mentions("redis", 1));
    }
}
