//! The figures of fixtures, for a table of all of them.

use std::collections::{BTreeMap, BTreeSet};

use crate::transcript::{Fixture, Message, Role, file_operation};
use base::units::Tokens;
use base::words::{is_han, is_hangul, is_kana};

/// The figures of one fixture.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct FixtureStats {
    /// Messages, the system message included.
    pub messages: usize,
    /// Tokens of all messages.
    pub tokens: Tokens,
    /// Calls of each tool.
    pub tools: BTreeMap<String, usize>,
    /// Files that calls of file tools name.
    pub files: BTreeSet<String>,
    /// Compression points; at least one.
    pub points: usize,
    /// Languages that person and assistant write: `en` for Latin letters, `zh`, `ja`, `ko`, `ru`.
    pub languages: Vec<&'static str>,
}

/// Counts what the fixture consists of; `count` counts the tokens of a message.
pub fn stats(fixture: &Fixture, count: &dyn Fn(&Message) -> Tokens) -> FixtureStats {
    let mut tools: BTreeMap<String, usize> = BTreeMap::new();
    let mut files = BTreeSet::new();
    for call in fixture
        .messages
        .iter()
        .flat_map(|message| &message.tool_calls)
    {
        *tools.entry(call.function.name.clone()).or_default() += 1;
        files.extend(file_operation(call).map(|operation| operation.path));
    }
    FixtureStats {
        messages: fixture.messages.len(),
        tokens: Tokens(
            fixture
                .messages
                .iter()
                .map(|message| count(message).0)
                .sum(),
        ),
        tools,
        files,
        points: fixture.effective_points().len(),
        languages: languages(&fixture.messages),
    }
}

/// The languages with a tenth of the letters or more; a letter of an unspaced script counts as three.
fn languages(messages: &[Message]) -> Vec<&'static str> {
    let mut counts: BTreeMap<&'static str, usize> = BTreeMap::new();
    let spoken = messages
        .iter()
        .filter(|message| matches!(message.role, Role::User | Role::Assistant));
    for letter in spoken.flat_map(|message| message.content.chars()) {
        if let Some((language, weight)) = language_of(letter) {
            *counts.entry(language).or_default() += weight;
        }
    }
    // Kana make the Chinese characters around them Japanese.
    if counts.get("ja").copied().unwrap_or(0) * 5 > counts.get("zh").copied().unwrap_or(0) {
        let kanji = counts.remove("zh").unwrap_or(0);
        *counts.entry("ja").or_default() += kanji;
    }
    let total: usize = counts.values().sum();
    let mut shares: Vec<(&'static str, usize)> = counts
        .into_iter()
        .filter(|(_, count)| *count > 0 && count * 10 >= total)
        .collect();
    shares.sort_by_key(|(language, count)| (std::cmp::Reverse(*count), *language));
    shares.into_iter().map(|(language, _)| language).collect()
}

fn language_of(letter: char) -> Option<(&'static str, usize)> {
    match letter {
        'A'..='Z' | 'a'..='z' => Some(("en", 1)),
        c if is_han(c) => Some(("zh", 3)),
        c if is_kana(c) => Some(("ja", 3)),
        c if is_hangul(c) => Some(("ko", 3)),
        '\u{400}'..='\u{4ff}' => Some(("ru", 1)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::ToolCall;

    #[test]
    fn a_fixture_is_counted_by_what_it_holds() {
        let mut call = Message::text(Role::Assistant, "看一下这个文件里写了什么内容");
        call.tool_calls
            .push(ToolCall::new("1", "read_file", r#"{"path":"src/a.rs"}"#));
        let messages = [
            Message::text(Role::User, "look at a please"),
            call,
            Message::result("1", "x"),
        ];
        let json = serde_json::json!({"name": "f", "messages": messages}).to_string();
        let fixture: Fixture = serde_json::from_str(&json).expect("a fixture");
        let stats = stats(&fixture, &|_| Tokens(2));
        assert_eq!(
            (stats.messages, stats.tokens, stats.points),
            (3, Tokens(6), 1)
        );
        assert_eq!(stats.tools["read_file"], 1);
        assert!(stats.files.contains("src/a.rs"));
        assert_eq!(stats.languages, ["zh", "en"]);
    }
}
