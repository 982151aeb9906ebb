//! A call's turns as a flat list of parts, which every dialect renders in its own shape, and the request that it makes of
//! them.
//!
//! Invariants: no part is blank; a native tool call is directly followed by its result, as all vendors require, and a
//! call or result without its counterpart (a span may begin or end in the middle of a pair) becomes text. The names and
//! ids of native calls are such as all vendors take, and no id is there twice.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use bytes::Bytes;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use super::json::Fields;
use crate::call::{Call, CallResult, LONGEST_ID, LONGEST_NAME, Operation, Tool, Turn, fit};
use crate::spec::Dialect;
use base::message::{Function, Message, Role, ToolCall};

#[derive(Debug, Default)]
pub(crate) struct FlatConversation<'a> {
    /// The system texts before anything else, joined.
    pub system: Option<String>,
    pub parts: Vec<ConversationPart<'a>>,
    /// Where the last turn of the first step begins in `parts`. The parts before it are shared with other questions.
    pub last_turn: usize,
    /// The ids of calls that are taken.
    ids: HashSet<String>,
}

#[derive(Debug)]
pub(crate) enum ConversationPart<'a> {
    /// A text by the user or the assistant. System texts in the middle are labelled and attributed to the user.
    Text(Role, Cow<'a, str>),
    /// Tool calls, each answered by one of the `Result`s that follow; the text said with them may be empty.
    Calls(Cow<'a, str>, Vec<ToolCall>),
    Result {
        call: String,
        text: &'a str,
    },
    /// Stored items of a compaction.
    Items(Vec<&'a RawValue>),
    /// The reply of the model in an earlier step, with the calls whose results follow.
    Reply(Vec<&'a RawValue>),
    /// The results of its calls, in order.
    Results(&'a [CallResult]),
}

/// How a dialect renders a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HistoryStyle {
    /// Tool calls as such; neighbouring text turns of one speaker are one message, since many chat templates require that
    /// speakers alternate.
    NativeCalls,
    /// Tool calls as text; every turn by itself.
    CallsAsText,
    /// Tool calls as such where Anthropic's rules allow it; every turn by itself.
    CallsAsBlocks,
}

/// Flattens the turns of `call`.
pub(crate) fn conversation(
    call: &Call,
    style: HistoryStyle,
) -> Result<FlatConversation<'_>, BuildFault> {
    let mut whole = FlatConversation::default();
    for turn in &call.turns {
        if let Turn::Results(results) = turn {
            whole
                .ids
                .extend(results.iter().map(|result| result.id.clone()));
        }
    }
    let mut was_text = false;
    let mut is_first_step = true;
    for turn in &call.turns {
        let begin = whole.parts.len();
        let after_text = std::mem::replace(&mut was_text, matches!(turn, Turn::Text { .. }));
        match turn {
            Turn::Text { role, text } => {
                whole.push_said(*role, Cow::Borrowed(text));
                if style == HistoryStyle::NativeCalls && after_text {
                    whole.join_neighbours();
                }
            }
            Turn::Messages(messages) => whole.push_recorded(messages, style),
            Turn::Items(items) => whole.parts.push(ConversationPart::Items(elements(items)?)),
            Turn::Reply(items) => {
                is_first_step = false;
                whole.parts.push(ConversationPart::Reply(elements(items)?));
            }
            Turn::Results(results) => whole.parts.push(ConversationPart::Results(results)),
        }
        if whole.parts.len() > begin && is_first_step {
            whole.last_turn = begin;
        }
    }
    if whole.parts.is_empty() {
        Err(BuildFault::new("the conversation to send is empty"))
    } else {
        Ok(whole)
    }
}

impl<'a> FlatConversation<'a> {
    fn push_said(&mut self, role: Role, text: Cow<'a, str>) {
        if text.trim().is_empty() {
            return;
        }
        match role {
            Role::System if self.parts.is_empty() => match &mut self.system {
                Some(system) => {
                    system.push_str("\n\n");
                    system.push_str(&text);
                }
                None => self.system = Some(text.into_owned()),
            },
            Role::System => self.push_text(Role::User, format!("[system message]\n{text}").into()),
            Role::User | Role::Assistant => self.push_text(role, text),
            Role::Tool => self.push_text(Role::User, format!("[tool result]\n{text}").into()),
        }
    }

    fn push_text(&mut self, speaker: Role, text: Cow<'a, str>) {
        self.parts.push(ConversationPart::Text(speaker, text));
    }

    fn join_neighbours(&mut self) {
        if let [
            ..,
            ConversationPart::Text(before, first),
            ConversationPart::Text(speaker, second),
        ] = self.parts.as_mut_slice()
            && before == speaker
        {
            *first = [first, "\n\n", second].concat().into();
            self.parts.pop();
        }
    }

    fn push_recorded(&mut self, messages: &'a [Message], style: HistoryStyle) {
        let native = match style {
            HistoryStyle::NativeCalls => self.native_ids(messages, |_| true),
            HistoryStyle::CallsAsBlocks => self.native_ids(messages, fits_block),
            HistoryStyle::CallsAsText => NativeIds::new(),
        };
        for (at, message) in messages.iter().enumerate() {
            match message.role {
                Role::Assistant => self.push_assistant(at, message, &native),
                Role::Tool => self.push_result(message, native.get(&(at, 0))),
                role => self.push_said(role, Cow::Borrowed(&message.content)),
            }
        }
    }

    fn push_assistant(&mut self, at: usize, message: &'a Message, native: &NativeIds) {
        let mut text = Cow::Borrowed(message.content.as_str());
        let mut calls = Vec::new();
        for (nth, call) in message.tool_calls.iter().enumerate() {
            let Function { name, arguments } = &call.function;
            if let Some(id) = native.get(&(at, nth)) {
                let name = fit(name, LONGEST_NAME);
                calls.push(ToolCall::new(id.as_str(), name, arguments.as_str()));
                continue;
            }
            if !text.is_empty() {
                text.to_mut().push_str("\n\n");
            }
            text.to_mut()
                .push_str(&format!("[tool call {}] {name}\n{arguments}", call.id));
        }
        if calls.is_empty() {
            self.push_said(Role::Assistant, text);
        } else {
            self.parts.push(ConversationPart::Calls(text, calls));
        }
    }

    fn push_result(&mut self, message: &'a Message, native: Option<&String>) {
        let text = message.content.as_str();
        if let Some(call) = native.cloned() {
            self.parts.push(ConversationPart::Result { call, text });
        } else {
            let call = message.tool_call_id.as_deref().unwrap_or("");
            let text = if text.is_empty() { "(empty)" } else { text };
            self.push_text(Role::User, format!("[tool result {call}]\n{text}").into());
        }
    }

    /// The ids of the calls that `fits` accepts and whose result is in the run of tool messages directly after them, and of
    /// these results.
    fn native_ids(&mut self, messages: &[Message], fits: impl Fn(&ToolCall) -> bool) -> NativeIds {
        let mut native = NativeIds::new();
        for (at, message) in messages.iter().enumerate() {
            let after = messages.iter().enumerate().skip(at + 1);
            let mut results: Vec<(usize, &Message)> =
                after.take_while(|(_, m)| m.role == Role::Tool).collect();
            for (nth, call) in message.tool_calls.iter().enumerate() {
                let result = results
                    .iter()
                    .position(|(_, result)| result.tool_call_id.as_ref() == Some(&call.id));
                let Some(result) = result.filter(|_| fits(call)) else {
                    continue;
                };
                let id = self.new_id(&call.id);
                native.insert((results.remove(result).0, 0), id.clone());
                native.insert((at, nth), id);
            }
        }
        native
    }

    /// An id that vendors take and no other call has.
    fn new_id(&mut self, recorded: &str) -> String {
        let numbered = (2..).map(|number| format!("{recorded} {number}"));
        let mut ids = std::iter::once(recorded.to_owned()).chain(numbered);
        let new = ids.find_map(|id| {
            let id = fit(&id, LONGEST_ID).into_owned();
            self.ids.insert(id.clone()).then_some(id)
        });
        new.unwrap_or_default()
    }
}

/// The ids of native calls and of their results, by the place of the message and that of the call in it; of a result the
/// latter is 0.
type NativeIds = HashMap<(usize, usize), String>;

/// Whether Anthropic takes a call as a block: it requires an object of arguments.
fn fits_block(call: &ToolCall) -> bool {
    serde_json::from_str::<HashMap<String, &RawValue>>(&call.function.arguments).is_ok()
}

/// A request ready to send, made once: every retry sends these bytes. All operations are a POST.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpRequest {
    /// The path below the provider's base URL, with a leading slash.
    pub path: &'static str,
    /// Headers besides the key and the content type.
    pub headers: Vec<(&'static str, &'static str)>,
    /// The bytes of the body.
    pub body: Bytes,
}

/// Why a call cannot be put into a dialect.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{_0}")]
pub struct BuildFault(String);

impl BuildFault {
    pub(crate) fn new(what: impl Into<String>) -> BuildFault {
        BuildFault(what.into())
    }

    /// The dialect knows no such operation.
    pub(crate) fn unsupported(dialect: Dialect, operation: Operation) -> BuildFault {
        let kind = dialect.name();
        BuildFault(format!(
            "an endpoint of kind `{kind}` cannot do this ({operation:?})"
        ))
    }

    /// A value that JSON cannot hold.
    fn of_json(error: &serde_json::Error) -> BuildFault {
        BuildFault(format!("the request could not be written as JSON: {error}"))
    }
}

/// The body of a request, field by field.
#[derive(Default)]
pub(crate) struct Body(Fields);

impl Body {
    /// The fields that most requests have. Streaming is named because some servers stream unless told not to.
    pub(crate) fn generating(call: &Call) -> Result<Body, BuildFault> {
        let mut body = Body::default();
        body.set("model", &call.model.0)?;
        body.set("stream", false)?;
        body.set("temperature", call.settings.temperature)?;
        Ok(body)
    }

    /// Adds a field, unless there is no value.
    pub(crate) fn set(&mut self, name: &str, value: impl Serialize) -> Result<(), BuildFault> {
        let value = to_raw_value(&value).map_err(|error| BuildFault::of_json(&error))?;
        if value.get() != "null" {
            self.0.insert(name.to_owned(), value);
        }
        Ok(())
    }

    /// Declares the tools of a call, each in the form of the dialect.
    pub(crate) fn set_tools(
        &mut self,
        call: &Call,
        declare: impl Fn(Cow<'_, str>, &Tool) -> Value,
    ) -> Result<(), BuildFault> {
        let tools = call.tools.iter().flat_map(|offer| offer.tools.iter());
        let tools: Vec<Value> = tools
            .map(|tool| declare(fit(&tool.name, LONGEST_NAME), tool))
            .collect();
        self.set("tools", call.tools.is_some().then_some(tools))
    }

    pub(crate) fn bytes(&self) -> Result<Bytes, BuildFault> {
        let bytes = serde_json::to_vec(&self.0).map_err(|error| BuildFault::of_json(&error))?;
        Ok(bytes.into())
    }
}

/// A part of a conversation in OpenAI's dialects: made here, or as a provider sent it.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum SentItem<'a> {
    Made(Value),
    Stored(&'a RawValue),
}

/// The elements of a JSON array, each byte for byte.
pub(crate) fn elements(array: &str) -> Result<Vec<&RawValue>, BuildFault> {
    let read = serde_json::from_str(array);
    read.map_err(|error| {
        BuildFault(format!(
            "the stored items to send back are no JSON array: {error}"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::{Operation, Settings};

    fn call(turns: Vec<Turn>) -> Call {
        Call {
            model: "m".into(),
            operation: Operation::Generate,
            turns,
            instructions: None,
            settings: Settings::default(),
            schema: None,
            tools: None,
            prefix_uses: 1,
        }
    }

    fn recorded() -> Vec<Message> {
        let calls = vec![
            ToolCall::new("a", "read", "{}"),
            ToolCall::new("b", "run", "{\"x\":1}"),
        ];
        vec![
            Message::result("gone", "left over"),
            Message {
                tool_calls: calls,
                ..Message::text(Role::Assistant, "")
            },
            Message::result("a", "text of a"),
            Message::text(Role::User, "and b?"),
            Message::result("b", "late"),
        ]
    }

    fn shape(conversation: &FlatConversation<'_>) -> Vec<String> {
        let describe = |part: &ConversationPart<'_>| match part {
            ConversationPart::Text(speaker, text) => format!("{}: {text}", speaker.name()),
            ConversationPart::Calls(text, calls) => {
                format!(
                    "calls {:?} {text}",
                    calls.iter().map(|c| c.id.as_str()).collect::<Vec<_>>()
                )
            }
            ConversationPart::Result { call, text } => format!("result {call}: {text}"),
            ConversationPart::Items(items) | ConversationPart::Reply(items) => {
                format!("items {}", items.len())
            }
            ConversationPart::Results(results) => format!("results {}", results.len()),
        };
        conversation.parts.iter().map(describe).collect()
    }

    #[test]
    fn only_calls_with_their_result_stay_native() {
        let call = call(vec![Turn::Messages(recorded().into())]);
        assert_eq!(
            shape(&conversation(&call, HistoryStyle::NativeCalls).unwrap()),
            [
                "user: [tool result gone]\nleft over",
                "calls [\"a\"] [tool call b] run\n{\"x\":1}",
                "result a: text of a",
                "user: and b?",
                "user: [tool result b]\nlate",
            ]
        );
        let text = conversation(&call, HistoryStyle::CallsAsText).unwrap();
        assert!(
            text.parts
                .iter()
                .all(|part| matches!(part, ConversationPart::Text(..)))
        );
    }

    #[test]
    fn calls_with_one_id_go_out_with_different_ones() {
        let asks = |ids: &[&str]| Message {
            tool_calls: ids
                .iter()
                .map(|id| ToolCall::new(*id, "read", "{}"))
                .collect(),
            ..Message::text(Role::Assistant, "")
        };
        let history = vec![
            asks(&["c", "c", "call_1"]),
            Message::result("c", "first"),
            Message::result("call_1", "named like a later step"),
            Message::result("c", "second"),
            asks(&["c"]),
            Message::result("c", "third"),
            asks(&["c"]),
        ];
        let later = vec![CallResult {
            id: "call_1".to_owned(),
            text: "found".to_owned(),
        }];
        let call = call(vec![
            Turn::Messages(history.into()),
            Turn::Results(later.into()),
        ]);
        let conversation = conversation(&call, HistoryStyle::NativeCalls).unwrap();
        let (mut called, mut returned) = (Vec::new(), Vec::new());
        for part in &conversation.parts {
            match part {
                ConversationPart::Calls(_, calls) => {
                    called.extend(calls.iter().map(|call| call.id.clone()));
                }
                ConversationPart::Result { call, text } => returned.push((call.clone(), *text)),
                _ => {}
            }
        }
        let distinct: HashSet<&String> = called.iter().collect();
        assert_eq!((called.len(), distinct.len()), (4, 4), "{called:?}");
        assert!(!called.contains(&"call_1".to_owned()) && called[0] == "c");
        let of = |place: usize, text| (called[place].clone(), text);
        assert_eq!(
            returned,
            [
                of(0, "first"),
                of(2, "named like a later step"),
                of(1, "second"),
                of(3, "third"),
            ]
        );
        assert!(shape(&conversation).contains(&"assistant: [tool call c] read\n{}".to_owned()));
    }

    #[test]
    fn leading_system_texts_are_one_and_later_ones_are_labelled() {
        let say = |role, text: &str| Turn::Text {
            role,
            text: text.into(),
        };
        let call = call(vec![
            say(Role::System, "a"),
            say(Role::System, "b"),
            say(Role::User, "q"),
            say(Role::System, "c"),
        ]);
        let conversation = conversation(&call, HistoryStyle::CallsAsText).unwrap();
        assert_eq!(conversation.system.as_deref(), Some("a\n\nb"));
        assert_eq!(
            shape(&conversation),
            ["user: q", "user: [system message]\nc"]
        );
        assert_eq!(conversation.last_turn, 1);
    }

    #[test]
    fn neighbouring_texts_of_one_speaker_are_one_message_where_speakers_must_alternate() {
        let say = |role, text: &str| Turn::Text {
            role,
            text: text.into(),
        };
        let call = call(vec![
            say(Role::User, "context"),
            say(Role::User, "question"),
            say(Role::Assistant, "a"),
        ]);
        let joined = conversation(&call, HistoryStyle::NativeCalls).unwrap();
        assert_eq!(
            shape(&joined),
            ["user: context\n\nquestion", "assistant: a"]
        );
        assert_eq!(
            conversation(&call, HistoryStyle::CallsAsText)
                .unwrap()
                .parts
                .len(),
            3
        );
    }

    #[test]
    fn a_blank_conversation_is_not_sent() {
        let call = call(vec![Turn::Text {
            role: Role::User,
            text: " \n".into(),
        }]);
        assert!(conversation(&call, HistoryStyle::NativeCalls).is_err());
    }

    #[test]
    fn elements_keep_their_bytes() {
        let array = r#"[ {"b" : 1.50,"a":"\u00e9"} , 2]"#;
        let texts: Vec<&str> = elements(array).unwrap().iter().map(|e| e.get()).collect();
        assert_eq!(texts, [r#"{"b" : 1.50,"a":"\u00e9"}"#, "2"]);
    }
}
