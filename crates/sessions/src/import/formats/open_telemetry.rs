//! Spans of models' calls: OpenTelemetry's GenAI conventions (OTLP as JSON), OpenInference as Phoenix exports it, and
//! Langfuse's observations. Each call repeats the conversation up to it, so the one with the longest input holds it; a call
//! of a sub-agent, or after a compaction, begins another conversation of its trace.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::super::blocks;
use super::super::content::{first_at, list_of, plain_text, str_of};
use super::super::conversation::DropReason;
use super::super::draft::ConversationDraft;
use super::super::source::Records;

pub(super) fn read(records: &mut Records) -> Vec<ConversationDraft> {
    let mut traces: BTreeMap<String, Trace> = BTreeMap::new();
    while let Some(item) = records.next_item() {
        let of_resources = list_of(&item, "resourceSpans")
            .iter()
            .flat_map(|resource| list_of(resource, "scopeSpans"));
        let mut spans: Vec<&Value> = of_resources
            .flat_map(|scope| list_of(scope, "spans"))
            .collect();
        if item.get("resourceSpans").is_none() {
            spans.push(&item);
        }
        for span in spans {
            let key = first_at(span, &["/traceId", "/trace_id", "/context/trace_id"]).to_owned();
            let trace = traces.entry(key).or_default();
            match ModelCall::from_span(span) {
                Some(call) => trace.add_call(call),
                None => trace.others += 1,
            }
        }
    }
    traces.into_values().flat_map(Trace::into_drafts).collect()
}

/// The calls of a trace: of each conversation only the longest is held.
#[derive(Default)]
struct Trace {
    longest: Vec<ModelCall>,
    /// Other calls of a model.
    shorter: usize,
    /// Spans that are not calls of a model.
    others: usize,
}

impl Trace {
    /// Among equally long calls of a conversation the latest counts.
    fn add_call(&mut self, call: ModelCall) {
        let mut held = self.longest.iter_mut();
        let Some(known) = held.find(|held| held.is_same_conversation(&call)) else {
            return self.longest.push(call);
        };
        self.shorter += 1;
        if (call.input.len(), &call.start) >= (known.input.len(), &known.start) {
            *known = call;
        }
    }

    /// Its conversations, of which the first counts what was left out; a silent one if there are none.
    fn into_drafts(mut self) -> Vec<ConversationDraft> {
        self.longest.sort_by(|a, b| a.start.cmp(&b.start));
        let mut drafts: Vec<_> = self.longest.iter().map(ModelCall::to_draft).collect();
        if drafts.is_empty() {
            drafts.push(ConversationDraft::default());
        }
        if let Some(first) = drafts.first_mut() {
            for _ in 0..self.others {
                first.count_bookkeeping("span that is no call of a model");
            }
            for _ in 0..self.shorter {
                first.count(DropReason::Duplicate);
            }
        }
        drafts
    }
}

/// What a span says of one call of a model.
struct ModelCall {
    start: String,
    model: String,
    input: Vec<Value>,
    output: Vec<Value>,
}

impl ModelCall {
    /// Whether most messages of the shorter input stand at the same place in the longer one. A compaction or a sub-agent
    /// leaves at most the instructions.
    fn is_same_conversation(&self, other: &ModelCall) -> bool {
        let pairs = self.input.iter().zip(&other.input);
        let shorter = self.input.len().min(other.input.len());
        pairs.filter(|(a, b)| a == b).count() * 2 > shorter
    }

    fn to_draft(&self) -> ConversationDraft {
        let mut draft = ConversationDraft::default();
        draft.set_model(&self.model);
        let messages = self.input.iter().chain(&self.output);
        messages.for_each(|message| read_message(message, &mut draft));
        draft
    }

    fn from_span(span: &Value) -> Option<ModelCall> {
        let start = ["startTimeUnixNano", "start_time", "startTime"]
            .into_iter()
            .find_map(|key| span.get(key));
        let start = start.map(plain_text).unwrap_or_default();
        let call = if str_of(span, "type") == "GENERATION" {
            let (input, output) = (messages(span.get("input")), messages(span.get("output")));
            ModelCall {
                start,
                model: str_of(span, "model").to_owned(),
                input,
                output,
            }
        } else {
            ModelCall::from_attributes(&nested(span.get("attributes")?), start)
        };
        Some(call).filter(|call| !call.input.is_empty())
    }

    fn from_attributes(attributes: &Value, start: String) -> ModelCall {
        let inputs = [
            "/gen_ai/input/messages",
            "/llm/input_messages",
            "/gen_ai/prompt",
        ];
        let outputs = [
            "/gen_ai/output/messages",
            "/llm/output_messages",
            "/gen_ai/completion",
        ];
        let mut input = messages(
            inputs
                .iter()
                .find_map(|pointer| attributes.pointer(pointer)),
        );
        let output = messages(
            outputs
                .iter()
                .find_map(|pointer| attributes.pointer(pointer)),
        );
        if let Some(parts) = attributes
            .pointer("/gen_ai/system_instructions")
            .map(parsed)
        {
            input.insert(0, serde_json::json!({ "role": "system", "parts": parts }));
        }
        let models = [
            "/gen_ai/response/model",
            "/gen_ai/request/model",
            "/llm/model_name",
        ];
        ModelCall {
            start,
            model: first_at(attributes, &models).to_owned(),
            input,
            output,
        }
    }
}

/// Attributes as one object: those of OTLP are a list of typed values, and names with dots are paths.
fn nested(attributes: &Value) -> Value {
    let mut root = Value::Object(Map::new());
    match attributes {
        Value::Array(list) => {
            for attribute in list {
                set_path(
                    &mut root,
                    str_of(attribute, "key"),
                    plain(attribute.get("value").unwrap_or(&Value::Null)),
                );
            }
        }
        Value::Object(object) => object
            .iter()
            .for_each(|(key, value)| set_path(&mut root, key, value.clone())),
        _ => {}
    }
    root
}

/// The most names of a path; what follows is one name. The conventions have ten at most, and an object of thousands of
/// levels overflows the stack.
const MOST_NAMES: usize = 32;

/// Sets the value at a path of names with dots between them.
fn set_path(root: &mut Value, path: &str, value: Value) {
    let mut at = root;
    for part in path.splitn(MOST_NAMES, '.') {
        if !at.is_object() {
            *at = Value::Object(Map::new());
        }
        let Some(object) = at.as_object_mut() else {
            return;
        };
        at = object.entry(part).or_insert(Value::Null);
    }
    *at = value;
}

/// A typed value of OTLP as plain JSON.
fn plain(value: &Value) -> Value {
    if let Some(list) = value.get("arrayValue") {
        return list_of(list, "values").iter().map(plain).collect();
    }
    if let Some(list) = value.get("kvlistValue") {
        let entries = list_of(list, "values").iter().map(|entry| {
            let value = plain(entry.get("value").unwrap_or(&Value::Null));
            (str_of(entry, "key").to_owned(), value)
        });
        return Value::Object(entries.collect());
    }
    value
        .as_object()
        .and_then(|object| object.values().next())
        .cloned()
        .unwrap_or(Value::Null)
}

/// A value, parsed if it is a JSON text: attributes cannot have structured values.
fn parsed(value: &Value) -> Value {
    let inner = value
        .as_str()
        .and_then(|text| serde_json::from_str(text).ok());
    inner.unwrap_or_else(|| value.clone())
}

/// A list of messages, also where it is a JSON text, an object with one, or an object whose keys count from 0.
fn messages(value: Option<&Value>) -> Vec<Value> {
    match value.map(parsed) {
        Some(Value::Array(list)) => list,
        Some(Value::Object(object)) => {
            let list = object.get("messages").and_then(Value::as_array);
            let is_message = ["role", "message", "parts"]
                .iter()
                .any(|key| object.contains_key(*key));
            match list {
                Some(list) => list.clone(),
                None if is_message => vec![Value::Object(object)],
                None => numbered(&object),
            }
        }
        Some(Value::String(text)) if !text.is_empty() => vec![Value::String(text)],
        _ => Vec::new(),
    }
}

/// The values of an object whose keys are numbers, in their order.
fn numbered(object: &Map<String, Value>) -> Vec<Value> {
    let numbers = object
        .iter()
        .filter_map(|(key, value)| Some((key.parse::<u64>().ok()?, value.clone())));
    numbers.collect::<BTreeMap<_, _>>().into_values().collect()
}

/// The items of a list that may be an object with numbers for keys.
fn items(value: &Value, key: &str) -> Vec<Value> {
    match value.get(key) {
        Some(Value::Array(list)) => list.clone(),
        Some(Value::Object(object)) => numbered(object),
        _ => Vec::new(),
    }
}

fn read_message(message: &Value, draft: &mut ConversationDraft) {
    match message {
        // Langfuse logs only the text of an answer.
        Value::String(text) => draft.add_reply(text.as_str(), Vec::new()),
        _ if message.get("parts").is_some() => blocks::read_message(message, "", draft),
        _ => match message.get("message") {
            Some(inner) => blocks::read_message(&open_inference(inner), "", draft),
            None => blocks::read_message(&with_list(message), "", draft),
        },
    }
}

/// A message of OpenInference in OpenAI's shape.
fn open_inference(message: &Value) -> Value {
    let mut shaped = message.clone();
    let parts = items(message, "contents");
    let texts = parts
        .iter()
        .map(|part| first_at(part, &["/message_content/text"]).to_owned());
    let texts: Vec<String> = texts.filter(|text| !text.is_empty()).collect();
    if let Some(object) = shaped.as_object_mut() {
        if !texts.is_empty() {
            object.insert("content".to_owned(), texts.join("\n").into());
        }
        let calls = items(message, "tool_calls");
        let calls: Vec<Value> = calls
            .iter()
            .map(|call| call.get("tool_call").unwrap_or(call).clone())
            .collect();
        object.insert("tool_calls".to_owned(), calls.into());
    }
    shaped
}

/// A message whose calls may be numbered instead of listed.
fn with_list(message: &Value) -> Value {
    let mut shaped = message.clone();
    if let Some(Value::Object(calls)) = message.get("tool_calls") {
        shaped["tool_calls"] = numbered(calls).into();
    }
    shaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_thousands_of_dots_makes_no_deep_object() {
        let attributes = serde_json::json!({ "a.".repeat(200_000): "x", "b.c": "y" });
        let nested = nested(&attributes);
        assert_eq!(nested.clone()["b"]["c"], "y");
    }
}
