//! What a strategy yields: a context, and the digests that identify it.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::Value;

use crate::action::{Digest, InputValue};
use models::{Endpoint, ModelName};
use sessions::transcript::{Message, Role, ToolCall, render};

/// What stands in place of the compressed messages.
#[derive(Clone, Debug, PartialEq)]
pub enum Context {
    /// Messages that anyone can read; often one summary.
    Readable {
        /// The messages; none for the empty context.
        messages: Vec<Message>,
    },
    /// Items that only the provider which made them can take back.
    Bound {
        /// A JSON array, byte for byte as received.
        items: Arc<str>,
        /// What they say, where the provider lets it be read.
        text: Option<String>,
    },
}

impl Context {
    /// A context of one summary; empty text is the empty context.
    pub fn summary(text: impl Into<String>) -> Context {
        Context::Readable {
            messages: summary_messages(text.into()),
        }
    }

    /// Whether it has all of `messages`, in their order and word for word, so that nothing was compressed.
    pub fn has_all(&self, messages: &[Message]) -> bool {
        let Context::Readable { messages: kept } = self else {
            return false;
        };
        let mut kept = kept.iter();
        let originals = messages
            .iter()
            .filter(|message| !message.content.trim().is_empty() || !message.tool_calls.is_empty());
        let mut originals = originals.peekable();
        originals.peek().is_some()
            && originals.all(|original| kept.any(|message| says_the_same(message, original)))
    }

    /// Whether its text has the words and calls of all of `messages`, whatever the form.
    pub fn says_all(&self, messages: &[Message]) -> bool {
        let Some(text) = self.text() else {
            return false;
        };
        messages.iter().all(|message| {
            let calls = message
                .tool_calls
                .iter()
                .map(|call| call.function.arguments.as_str());
            std::iter::once(message.content.trim())
                .chain(calls)
                .all(|part| text.contains(part))
        })
    }

    /// The readable text, as it goes into prompts and is counted: one summary as it is, several messages as a
    /// transcript. `None` if only the provider can read it.
    pub fn text(&self) -> Option<Arc<str>> {
        match self {
            Context::Readable { messages } => Some(text_of(messages).into()),
            Context::Bound { text, .. } => text.as_deref().map(Into::into),
        }
    }

    /// The readable text without the messages that are `recorded` word for word; `None` if it has none of them.
    pub fn text_beside(&self, recorded: &[Message]) -> Option<String> {
        let Context::Readable { messages } = self else {
            return None;
        };
        let recorded: HashSet<(Role, &str)> = recorded
            .iter()
            .map(|message| (message.role, message.content.trim()))
            .collect();
        let own: Vec<Message> = messages
            .iter()
            .filter(|message| !recorded.contains(&(message.role, message.content.trim())))
            .cloned()
            .collect();
        (own.len() < messages.len()).then(|| text_of(&own))
    }

    /// The texts of user messages that a vendor returned word for word beside its item; `None` if the context is no
    /// vendor's.
    pub fn verbatim_user_texts(&self) -> Option<Vec<String>> {
        let Context::Bound { items, .. } = self else {
            return None;
        };
        let items: Vec<Value> = serde_json::from_str(items).unwrap_or_default();
        let of_user = items
            .iter()
            .filter(|item| item.get("role").and_then(Value::as_str) == Some("user"));
        let texts = of_user.map(|item| match item.get("content") {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Array(parts)) => {
                let texts: Vec<&str> = parts
                    .iter()
                    .filter_map(|part| part.get("text")?.as_str())
                    .collect();
                texts.join("\n")
            }
            _ => String::new(),
        });
        Some(texts.filter(|text| !text.is_empty()).collect())
    }
}

/// The messages of a context of one summary; none if the text is empty.
pub(super) fn summary_messages(text: String) -> Vec<Message> {
    if text.is_empty() {
        Vec::new()
    } else {
        vec![Message::text(Role::User, text)]
    }
}

/// Whether two messages say and call the same; the spacing of JSON does not matter.
fn says_the_same(one: &Message, other: &Message) -> bool {
    one.role == other.role
        && one.content.trim() == other.content.trim()
        && one
            .tool_calls
            .iter()
            .map(call_of)
            .eq(other.tool_calls.iter().map(call_of))
}

/// The tool and the arguments of a call, in one spacing if they are JSON.
fn call_of(call: &ToolCall) -> (&str, String) {
    let (name, arguments) = (
        call.function.name.as_str(),
        call.function.arguments.as_str(),
    );
    let parsed = serde_json::from_str::<Value>(arguments);
    (
        name,
        parsed.map_or_else(|_| arguments.to_owned(), |parsed| parsed.to_string()),
    )
}

fn text_of(messages: &[Message]) -> String {
    match messages {
        [] => String::new(),
        [one] if one.role != Role::Tool && one.tool_calls.is_empty() => one.content.clone(),
        several => render(several),
    }
}

/// A context by its digests: what is known of it before a byte is fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ContextRef {
    Readable {
        text: Digest,
    },
    /// Only its provider can take it back.
    Bound {
        items: Digest,
        /// The digest of its readable text, if there is one.
        text: Option<Digest>,
        endpoint: Endpoint,
        model: ModelName,
    },
}

impl ContextRef {
    /// Identifies what an answerer is given.
    pub fn digest(&self) -> Digest {
        match self {
            ContextRef::Readable { text } => *text,
            ContextRef::Bound { items, .. } => *items,
        }
    }

    /// The readable text, to put into a prompt.
    pub fn text(&self) -> Option<InputValue> {
        match self {
            ContextRef::Readable { text } => Some(InputValue::Output(*text)),
            ContextRef::Bound { text, .. } => text.map(InputValue::Output),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_with_every_message_word_for_word_has_them_all() {
        let call = |arguments: &str| {
            let tool_calls = vec![ToolCall::new("c", "read", arguments)];
            Message {
                tool_calls,
                ..Message::text(Role::Assistant, "")
            }
        };
        let history = [
            Message::text(Role::User, "go"),
            call(r#"{"path":"a"}"#),
            Message::result("c", "text"),
        ];
        let holds = |messages: Vec<Message>| Context::Readable { messages }.has_all(&history);
        let noted = Message::text(Role::System, "Go on from here.");
        let spaced = call(r#"{ "path": "a" }"#);
        assert!(holds(vec![
            noted,
            history[0].clone(),
            spaced.clone(),
            history[2].clone()
        ]));
        assert!(
            !holds(vec![
                history[0].clone(),
                spaced,
                Message::result("c", "te…")
            ]),
            "a shortened result"
        );
        assert!(!holds(history[..2].to_vec()));
        assert!(
            !Context::summary("go").has_all(&[]),
            "nothing was to be compressed"
        );
        assert!(
            Context::summary(r#"go {"path":"a"} text"#).says_all(&history),
            "as one text"
        );
        assert!(
            !Context::summary("go, text").says_all(&history),
            "without a call"
        );
    }

    #[test]
    fn one_summary_is_plain_and_several_messages_are_a_transcript() {
        assert_eq!(
            Context::summary("## A\nx").text().as_deref(),
            Some("## A\nx")
        );
        let messages = vec![
            Message::text(Role::User, "a"),
            Message::text(Role::Assistant, "b"),
        ];
        assert_eq!(
            Context::Readable { messages }.text().as_deref(),
            Some("[user]\na\n\n[assistant]\nb")
        );
        assert_eq!(Context::summary("").text().as_deref(), Some(""));
    }

    #[test]
    fn user_messages_beside_an_opaque_item_are_known() {
        let items = r#"[{"type":"message","role":"user","content":[{"type":"input_text","text":"My code is 4711."}]},
            {"role":"user","content":"Go on."},{"type":"compaction","encrypted_content":"gAAA"}]"#;
        let context = Context::Bound {
            items: items.into(),
            text: None,
        };
        let kept = context.verbatim_user_texts();
        assert_eq!(
            kept,
            Some(vec!["My code is 4711.".to_owned(), "Go on.".to_owned()])
        );
        let bare = Context::Bound {
            items: r#"[{"type":"compaction","encrypted_content":"gAAA"}]"#.into(),
            text: None,
        };
        assert_eq!(
            bare.verbatim_user_texts(),
            Some(Vec::new()),
            "none were kept"
        );
        assert_eq!(
            Context::summary("My code is 4711.").verbatim_user_texts(),
            None,
            "a summary quotes nobody"
        );
    }
}
