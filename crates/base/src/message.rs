//! Chat messages in the shape that fixtures, programs and providers share: OpenAI's chat shape with
//! `tool_calls` and `tool_call_id`.

use crate::named_enum;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

named_enum! {
    /// Who speaks.
    pub enum Role {
        /// Instructions to the model; `developer` is read as this too.
        #[serde(alias = "developer")]
        System = "system",
        /// The person.
        User = "user",
        /// The model.
        Assistant = "assistant",
        /// The result of one tool call.
        Tool = "tool",
    }
}

/// One message of a transcript.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Message {
    /// Who speaks.
    #[schemars(with = "String", extend("enum" = ["system", "developer", "user", "assistant", "tool"]))]
    pub role: Role,
    /// The text; empty where the message only calls tools. Text parts of a list are joined by newlines.
    #[serde(default, deserialize_with = "text_of_content")]
    #[schemars(with = "Option<Content>")]
    pub content: String,
    /// The tools an assistant message calls, in order.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "null_is_empty"
    )]
    #[schemars(with = "Option<Vec<ToolCall>>")]
    pub tool_calls: Vec<ToolCall>,
    /// On a tool message: the call it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
}

impl Message {
    /// A message of plain text.
    pub fn text(role: Role, content: impl Into<String>) -> Message {
        Message {
            role,
            content: content.into(),
            tool_calls: Vec::new(),
            tool_call_id: None,
        }
    }

    /// The result of a tool call.
    pub fn result(call: impl Into<String>, content: impl Into<String>) -> Message {
        Message {
            tool_call_id: Some(call.into()),
            ..Message::text(Role::Tool, content)
        }
    }

    /// The content, and the arguments of the calls.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        let calls = self.tool_calls.iter();
        let arguments = calls.map(|call| call.function.arguments.as_str());
        std::iter::once(self.content.as_str()).chain(arguments)
    }

    /// The text of the message that counts as tokens: content, then the name and arguments of its calls.
    pub fn countable_text(&self) -> String {
        let mut text = self.content.clone();
        for call in &self.tool_calls {
            text.push('\n');
            text.push_str(&call.function.name);
            text.push(' ');
            text.push_str(&call.function.arguments);
        }
        text
    }
}

/// A call of a tool by the assistant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolCall {
    /// The id that the result names; unique within a transcript.
    pub id: String,
    /// Always `function`.
    #[serde(rename = "type", default)]
    pub kind: CallKind,
    /// What is called, with which arguments.
    pub function: Function,
}

impl ToolCall {
    /// A call of `name` with `arguments`, a JSON object in text form.
    pub fn new(
        id: impl Into<String>,
        name: impl Into<String>,
        arguments: impl Into<String>,
    ) -> ToolCall {
        let function = Function {
            name: name.into(),
            arguments: arguments.into(),
        };
        ToolCall {
            id: id.into(),
            kind: CallKind::Function,
            function,
        }
    }

    /// The arguments by name; `None` for what is no JSON object, which models write at times.
    pub fn arguments(&self) -> Option<Map<String, Value>> {
        serde_json::from_str(&self.function.arguments).ok()
    }
}

/// A result without its call, or a call without its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unpaired<'a> {
    /// The message with the result or the call.
    pub at: usize,
    /// The id of the call.
    pub id: &'a str,
    /// Whether it is a call.
    pub is_call: bool,
}

/// What breaks a history: results must follow their calls, and nothing may stand between them.
pub fn unpaired(messages: &[Message]) -> Vec<Unpaired<'_>> {
    let (mut found, mut open) = (Vec::new(), Vec::new());
    let unanswered = |(at, id)| Unpaired {
        at,
        id,
        is_call: true,
    };
    for (at, message) in messages.iter().enumerate() {
        if message.role == Role::Tool {
            let id = message.tool_call_id.as_deref().unwrap_or_default();
            let is_call = false;
            match open.iter().position(|(_, call)| *call == id) {
                Some(call) => drop(open.remove(call)),
                None => found.push(Unpaired { at, id, is_call }),
            }
            continue;
        }
        found.extend(open.drain(..).map(unanswered));
        let calls = message.tool_calls.iter();
        open.extend(calls.map(|call| (at, call.id.as_str())));
    }
    found.extend(open.into_iter().map(unanswered));
    found
}

/// The kinds of tool call: one so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CallKind {
    /// A function with a name and JSON arguments.
    #[default]
    Function,
}

/// A function's name and its arguments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Function {
    /// The tool's name.
    pub name: String,
    /// The arguments as JSON text, kept as written: models do emit broken JSON.
    #[serde(default)]
    pub arguments: String,
}

/// What [`text_of_content`] reads besides null.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "a schema, not data")]
enum Content {
    Text(String),
    Parts(Vec<ContentPart>),
}

#[derive(Deserialize, JsonSchema)]
struct ContentPart {
    #[serde(default)]
    text: Option<String>,
}

fn text_of_content<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    struct ContentVisitor;
    impl<'de> serde::de::Visitor<'de> for ContentVisitor {
        type Value = String;
        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("a string, null, or a list of parts with `text`")
        }
        fn visit_str<E>(self, text: &str) -> Result<String, E> {
            Ok(text.to_owned())
        }
        fn visit_string<E>(self, text: String) -> Result<String, E> {
            Ok(text)
        }
        fn visit_unit<E>(self) -> Result<String, E> {
            Ok(String::new())
        }
        fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut seq: A) -> Result<String, A::Error> {
            let mut texts = Vec::new();
            while let Some(part) = seq.next_element::<ContentPart>()? {
                texts.extend(part.text);
            }
            Ok(texts.join("\n"))
        }
    }
    deserializer.deserialize_any(ContentVisitor)
}

fn null_is_empty<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<ToolCall>, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_string_null_and_parts() {
        let read = |json: &str| serde_json::from_str::<Message>(json).unwrap();
        assert_eq!(read(r#"{"role":"user","content":"a"}"#).content, "a");
        assert_eq!(
            read(r#"{"role":"assistant","content":null,"tool_calls":null}"#).content,
            ""
        );
        let parts = r#"{"role":"developer","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}"#;
        assert_eq!(read(parts), Message::text(Role::System, "a\nb"));
    }
}
