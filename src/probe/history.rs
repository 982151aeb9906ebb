//! A transcript made ready to be searched: every message folded once, its names and paths indexed.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::OnceLock;

use serde_json::Value;

use super::facts::FactFinder;
use super::names::{normal_path, paths, suffixes, words};
use crate::transcript::{Message, fold};

/// What a transcript says, message by message. One serves all points: a prefix is a range of its messages.
#[derive(Clone, Debug)]
pub struct History {
    messages: Vec<String>,
    /// Folded words, paths and ends of paths, with the first message that has them; made when first asked for.
    mentions: OnceLock<HashMap<String, usize>>,
}

impl History {
    /// Folds `messages`: contents, names and arguments of calls, the latter also as their JSON means.
    pub fn new(messages: &[Message]) -> History {
        History { messages: messages.iter().map(folded_message).collect(), mentions: OnceLock::new() }
    }

    /// How many messages there are.
    pub fn len(&self) -> usize {
        self.messages.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// The messages among `within` in which the fact stands, in order.
    pub fn holders(&self, fact: &FactFinder, within: Range<usize>) -> impl Iterator<Item = usize> {
        let texts = self.messages.iter().enumerate().take(within.end).skip(within.start);
        texts.filter(|(_, text)| fact.stands_in(text)).map(|(index, _)| index)
    }

    /// Whether the fact stands in a message among `within`.
    pub fn holds(&self, fact: &FactFinder, within: Range<usize>) -> bool {
        self.holders(fact, within).next().is_some()
    }

    /// Whether a message before `until` has this folded word, path in normal form, or end of a path.
    pub fn mentions(&self, name: &str, until: usize) -> bool {
        self.mentions.get_or_init(|| mentions(&self.messages)).get(name).is_some_and(|first| *first < until)
    }
}

fn mentions(messages: &[String]) -> HashMap<String, usize> {
    let mut mentions = HashMap::new();
    for (index, text) in messages.iter().enumerate() {
        for word in words(text) {
            note(&mut mentions, word, index);
        }
        for path in paths(text) {
            let path = normal_path(path);
            suffixes(&path).for_each(|suffix| note(&mut mentions, suffix, index));
        }
    }
    mentions
}

fn note(mentions: &mut HashMap<String, usize>, name: &str, index: usize) {
    if !mentions.contains_key(name) {
        mentions.insert(name.to_owned(), index);
    }
}

/// All that a message says. Folding leaves no line breaks, so a fact never reaches over one of those put in here.
fn folded_message(message: &Message) -> String {
    let mut text = fold(&message.content);
    for call in &message.tool_calls {
        let arguments = &call.function.arguments;
        for part in [&call.function.name, arguments] {
            text.push('\n');
            text.push_str(&fold(part));
        }
        if let Ok(value) = serde_json::from_str(arguments) {
            push_strings(&value, &mut text);
        }
    }
    text
}

fn push_strings(value: &Value, text: &mut String) {
    match value {
        Value::String(string) => {
            text.push('\n');
            text.push_str(&fold(string));
        }
        Value::Array(items) => items.iter().for_each(|item| push_strings(item, text)),
        Value::Object(map) => map.values().for_each(|item| push_strings(item, text)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::Fact;
    use crate::transcript::{Role, ToolCall};

    fn history() -> History {
        let mut call = Message::text(Role::Assistant, "");
        call.tool_calls.push(ToolCall::new("c1", "write", r#"{"path":"src/a.rs","text":"say \"hi\"\nthere"}"#));
        History::new(&[Message::text(Role::User, "用 Redis 做缓存"), call, Message::result("c1", "ok\nfine")])
    }

    fn finder(spelling: &str) -> FactFinder {
        FactFinder::new(&Fact { spellings: vec![spelling.into()] })
    }

    #[test]
    fn finds_facts_in_contents_and_arguments_as_written_and_as_meant() {
        let history = history();
        assert_eq!(history.holders(&finder("Redis"), 0..3).collect::<Vec<_>>(), [0]);
        assert!(history.holds(&finder("say \"hi\" there"), 0..3));
        assert!(history.holds(&finder("\"path\":\"src/a.rs\""), 0..3));
        assert!(!history.holds(&finder("ok fine"), 0..2), "the range ends before it");
        assert!(history.holds(&finder("ok fine"), 0..3));
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
