//! Shapes: what an agent keeps verbatim around its summary. Cuts fall between messages, never between a call and its
//! results, and they depend on the recorded messages alone: what is kept at a point is known before a model is asked.

use super::compute::json_of;
use super::compute::units;
use crate::action::{Digest, DigestBuilder, InputValue};
use base::units::Tokens;
use lexical::notes::{SessionNotes, file_entry};
use sessions::transcript::{Message, Role, estimate_tokens, render};

/// Messages in the two forms that work is made of; computed once per fixture and point, and shared.
#[derive(Clone, Debug)]
pub struct SpanText {
    pub text: InputValue,
    pub json: InputValue,
}

impl SpanText {
    /// Both forms of `messages`.
    pub fn from_messages(messages: &[Message]) -> SpanText {
        SpanText {
            text: render(messages).into(),
            json: json_of(messages).into(),
        }
    }
}

/// What is kept verbatim beside the summary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shape {
    /// How many of the oldest messages are kept, at least: a call is kept with its results.
    pub head: u32,
    pub tail: Option<Tail>,
    /// The user's newest messages between head and tail, up to this many tokens.
    pub user: Option<Tokens>,
    /// The room for a list of the files that were touched, after the summary.
    pub files: Option<Tokens>,
}

/// How much of the end is kept, at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tail {
    Tokens(Tokens),
    /// So many percent of the tokens of all messages.
    Percent(u32),
    Messages(u32),
}

/// A history cut by a shape.
#[derive(Clone, Debug)]
pub struct Kept {
    /// The head, then the user's messages.
    pub before: Vec<Message>,
    pub tail: Vec<Message>,
    /// The path of each file with a line on its state, the newest first, and the room for them.
    pub files: (Vec<(String, String)>, Tokens),
    /// The messages to summarise: from the head, or from the end of what was summarised before, to the tail.
    pub span: SpanText,
    pub is_span_empty: bool,
    /// The conversation that an agent has when it compacts, without the messages that the summary of the point before
    /// replaced.
    pub conversation: SpanText,
    /// The number of tokens that are kept.
    pub tokens: Tokens,
    /// Identifies what is kept.
    pub digest: Digest,
}

/// A number of tokens as tables show it: `20k`, `1500`.
fn shown_tokens(tokens: Tokens) -> String {
    match tokens.0 {
        number if number >= 1000 && number % 1000 == 0 => format!("{}k", number / 1000),
        number => number.to_string(),
    }
}

impl Shape {
    pub fn is_empty(&self) -> bool {
        *self == Shape::default()
    }

    /// What is kept, as tables show it: `first 2, user 20k, 30%`.
    pub fn name(&self) -> String {
        let head = (self.head > 0).then(|| format!("first {}", self.head));
        let user = self
            .user
            .map(|tokens| format!("user {}", shown_tokens(tokens)));
        let tail = self.tail.map(|tail| match tail {
            Tail::Tokens(tokens) => shown_tokens(tokens),
            Tail::Percent(percent) => format!("{percent}%"),
            Tail::Messages(messages) => format!("last {messages}"),
        });
        let files = self.files.map(|_| "files".to_owned());
        head.into_iter()
            .chain(user)
            .chain(tail)
            .chain(files)
            .collect::<Vec<_>>()
            .join(", ")
    }

    /// Cuts `messages`, all those before a point. `earlier` of them were before the previous point, which kept the tail
    /// of these and summarised the rest.
    pub fn cut(
        &self,
        messages: &[Message],
        earlier: Option<usize>,
        count: &impl Fn(&str) -> Tokens,
    ) -> Kept {
        let sizes: Vec<Tokens> = messages
            .iter()
            .map(|message| count(&message.countable_text()))
            .collect();
        let head = self.head_end(messages);
        let tail = self.tail_start(messages, &sizes).max(head);
        let summarised = earlier.map_or(0, |end| {
            let before = messages.get(..end).unwrap_or_default();
            self.tail_start(before, sizes.get(..end).unwrap_or_default())
        });
        let from = summarised.max(head).min(tail);
        let slice = |from: usize, to: usize| messages.get(from..to).unwrap_or_default();
        let mut before = slice(0, head).to_vec();
        before.extend(self.user_messages(slice(head, tail), count));
        let (kept_tail, span) = (slice(tail, messages.len()), slice(from, tail));
        let files = self.files.map(|room| (lines_on_files(messages), room));
        let mut digest = DigestBuilder::new("kept");
        digest.field("before", json_of(&before));
        digest.field("tail", json_of(kept_tail));
        if let Some((lines, room)) = &files {
            digest.field("room for files", room.0.to_le_bytes());
            for (_, line) in lines {
                digest.field("file", line);
            }
        }
        let kept = before.iter().chain(kept_tail);
        let kept: Tokens = kept.map(|message| count(&message.countable_text())).sum();
        Kept {
            tokens: kept + self.files.unwrap_or_default(),
            digest: digest.finish(),
            files: files.unwrap_or_default(),
            before,
            tail: kept_tail.to_vec(),
            span: SpanText::from_messages(span),
            is_span_empty: span.is_empty(),
            conversation: SpanText::from_messages(slice(
                if earlier.is_some() { from } else { 0 },
                messages.len(),
            )),
        }
    }

    fn head_end(&self, messages: &[Message]) -> usize {
        let wanted = self.head as usize;
        let ends = units(messages).into_iter().map(|unit| unit.end);
        if wanted == 0 {
            0
        } else {
            ends.into_iter()
                .find(|end| *end >= wanted)
                .unwrap_or(messages.len())
        }
    }

    /// The first message of the tail: whole units from the end, as many as fit.
    fn tail_start(&self, messages: &[Message], sizes: &[Tokens]) -> usize {
        let context_size: Tokens = sizes.iter().copied().sum();
        let (most_tokens, most_messages) = match self.tail {
            None => return messages.len(),
            Some(Tail::Tokens(tokens)) => (tokens, usize::MAX),
            Some(Tail::Percent(percent)) => (
                Tokens(context_size.0 * u64::from(percent) / 100),
                usize::MAX,
            ),
            Some(Tail::Messages(messages)) => (Tokens(u64::MAX), messages as usize),
        };
        let (mut start, mut total) = (messages.len(), Tokens(0));
        for unit in units(messages).into_iter().rev() {
            total += sizes
                .get(unit.clone())
                .unwrap_or_default()
                .iter()
                .copied()
                .sum();
            if total > most_tokens || messages.len() - unit.start > most_messages {
                break;
            }
            start = unit.start;
        }
        start
    }

    /// The newest messages of the user that fit; the oldest of them is cut at its end.
    fn user_messages(&self, messages: &[Message], count: &impl Fn(&str) -> Tokens) -> Vec<Message> {
        let Some(mut room) = self.user else {
            return Vec::new();
        };
        let mut kept = Vec::new();
        let of_user = messages.iter().filter(|message| message.role == Role::User);
        for message in of_user
            .rev()
            .filter(|message| !message.content.trim().is_empty())
        {
            let size = count(&message.content);
            if size <= room {
                room = Tokens(room.0 - size.0);
                kept.push(message.clone());
                continue;
            }
            let text = beginning(&message.content, room, count);
            kept.extend((!text.is_empty()).then(|| Message::text(Role::User, text)));
            break;
        }
        kept.reverse();
        kept
    }
}

/// As much of the beginning of a text as has at most `room` tokens.
fn beginning(text: &str, room: Tokens, count: &impl Fn(&str) -> Tokens) -> String {
    let ends: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
    let (mut fits, mut exceeds) = (0, ends.len());
    while fits + 1 < exceeds {
        let middle = usize::midpoint(fits, exceeds);
        let part = ends
            .get(middle)
            .and_then(|end| text.get(..*end))
            .unwrap_or_default();
        if count(part) <= room {
            fits = middle
        } else {
            exceeds = middle
        }
    }
    ends.get(fits)
        .and_then(|end| text.get(..*end))
        .unwrap_or_default()
        .to_owned()
}

impl Kept {
    /// The context: head, the user's messages, summary, tail.
    pub fn around(&self, summary: &str) -> Vec<Message> {
        let summary = with_files(summary, &self.files.0, self.files.1);
        let summary = (!summary.is_empty()).then(|| Message::text(Role::User, summary));
        self.before
            .iter()
            .cloned()
            .chain(summary)
            .chain(self.tail.iter().cloned())
            .collect()
    }
}

/// The path of each file of a session with its state, the newest first.
fn lines_on_files(messages: &[Message]) -> Vec<(String, String)> {
    let notes = SessionNotes::from_messages(messages);
    let files = notes.lasting_files().into_iter().rev();
    let lines = files.map(|note| {
        let file = &note.file;
        let state = if file.deleted {
            "deleted"
        } else if file.created {
            "created"
        } else if file.modified {
            "modified"
        } else {
            "read"
        };
        let line = format!("{state}: {}", file_entry(note, state != "read"));
        (file.path.clone(), line)
    });
    lines.collect()
}

/// A summary with those lines after it whose files it does not name, as many as fit.
fn with_files(summary: &str, files: &[(String, String)], room: Tokens) -> String {
    const HEADING: &str = "## Files";
    let mut list = String::new();
    let mut used = estimate_tokens(HEADING).0;
    for (path, line) in files {
        let name = path.rsplit('/').next().unwrap_or(path);
        let size = estimate_tokens(line).0 + 2;
        if summary.contains(name) || used + size > room.0 {
            continue;
        }
        used += size;
        list.push_str(&format!("\n- {line}"));
    }
    match (summary.is_empty(), list.is_empty()) {
        (_, true) => summary.to_owned(),
        (true, false) => format!("{HEADING}\n{list}"),
        (false, false) => format!("{}\n\n{HEADING}\n{list}", summary.trim_end()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sessions::transcript::ToolCall;

    #[test]
    fn files_that_a_summary_does_not_name_follow_it_within_their_room() {
        let write = |path: &str| {
            let mut call = Message::text(Role::Assistant, "");
            let arguments = serde_json::json!({"path": path, "content": "x"}).to_string();
            call.tool_calls
                .push(ToolCall::new(path, "write", arguments));
            [call, Message::result(path, "File created")]
        };
        let messages: Vec<Message> = ["src/old.rs", "src/named.rs", "src/new.rs"]
            .map(write)
            .concat();
        let shape = |room| Shape {
            files: Some(Tokens(room)),
            ..Shape::default()
        };
        let around = |room| {
            let kept = shape(room).cut(&messages, None, &count);
            kept.around("named.rs is done.").remove(0).content
        };
        assert_eq!(
            around(100),
            "named.rs is done.\n\n## Files\n\n- created: src/new.rs\n- created: src/old.rs"
        );
        assert_eq!(around(2), "named.rs is done.");
        assert_eq!(shape(100).name(), "files");
    }

    /// A message of as many tokens as it has words.
    fn count(text: &str) -> Tokens {
        Tokens(text.split_whitespace().count() as u64)
    }

    fn session() -> Vec<Message> {
        let mut call = Message::text(Role::Assistant, "look");
        call.tool_calls.push(ToolCall::new("c1", "read", "a.rs"));
        vec![
            Message::text(Role::User, "fix the parser please"),
            call,
            Message::result("c1", "fn main"),
            Message::text(Role::Assistant, "done so far"),
            Message::text(Role::User, "now the tests"),
            Message::text(Role::Assistant, "they pass"),
        ]
    }

    fn texts(messages: &[Message]) -> Vec<&str> {
        messages
            .iter()
            .map(|message| message.content.as_str())
            .collect()
    }

    #[test]
    fn no_cut_separates_a_call_from_its_result() {
        let shape = Shape {
            files: None,
            head: 2,
            tail: Some(Tail::Messages(2)),
            user: None,
        };
        let kept = shape.cut(&session(), None, &count);
        assert_eq!(
            texts(&kept.before),
            ["fix the parser please", "look", "fn main"]
        );
        assert_eq!(texts(&kept.tail), ["now the tests", "they pass"]);
        let tail_of_four = Shape {
            tail: Some(Tail::Messages(4)),
            ..Shape::default()
        };
        assert_eq!(
            tail_of_four.cut(&session(), None, &count).tail.len(),
            3,
            "the result alone is not kept"
        );
    }

    #[test]
    fn what_the_tail_kept_returns_to_the_next_span_and_no_message_is_there_twice() {
        let shape = Shape {
            tail: Some(Tail::Tokens(Tokens(5))),
            ..Shape::default()
        };
        let first = shape.cut(&session()[..4], None, &count);
        assert_eq!(texts(&first.tail), ["done so far"]);
        let second = shape.cut(&session(), Some(4), &count);
        assert_eq!(texts(&second.tail), ["now the tests", "they pass"]);
        let InputValue::Text(_, span) = &second.span.text else {
            panic!("a text")
        };
        assert_eq!(&**span, "[assistant]\ndone so far");
        assert_eq!(
            texts(&second.around("S")),
            ["S", "now the tests", "they pass"]
        );
    }

    #[test]
    fn the_users_newest_messages_are_kept_and_the_oldest_is_cut_to_fit() {
        let shape = Shape {
            user: Some(Tokens(5)),
            ..Shape::default()
        };
        let kept = shape.cut(&session(), None, &count);
        assert_eq!(texts(&kept.before), ["fix the ", "now the tests"]);
        assert_eq!(kept.tokens, Tokens(5));
        assert!(!kept.is_span_empty, "what the user said is summarised, too");
    }

    #[test]
    fn a_history_that_fits_is_kept_whole() {
        let shape = Shape {
            files: None,
            head: 2,
            tail: Some(Tail::Percent(100)),
            user: Some(Tokens(100)),
        };
        let kept = shape.cut(&session(), None, &count);
        assert!(kept.is_span_empty);
        assert_eq!(kept.around(""), session());
        assert_eq!(shape.name(), "first 2, user 100, 100%");
    }
}
