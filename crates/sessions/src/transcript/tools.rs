//! The tools of a session, as an agent declares them to its model.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::fixture::Fixture;

/// The tool schemas of a session in OpenAI's shape: those that were recorded, else a stub for each tool that is called,
/// with the arguments that occur. Stubs are sorted by name, so that equal sessions have equal ones.
pub fn tool_schemas(fixture: &Fixture) -> Vec<Value> {
    if !fixture.tools.is_empty() {
        return fixture.tools.clone();
    }
    let mut tools: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
    for call in fixture.messages.iter().flat_map(|message| &message.tool_calls) {
        let properties = tools.entry(&call.function.name).or_default();
        // Models write broken JSON at times; such a call still names its tool.
        let arguments = serde_json::from_str(&call.function.arguments).unwrap_or_default();
        let Value::Object(arguments) = arguments else { continue };
        for (name, value) in arguments {
            properties.entry(name).or_insert_with(|| json!({ "type": kind(&value) }));
        }
    }
    let stub = |(name, properties): (&str, Map<String, Value>)| {
        let parameters = json!({ "type": "object", "properties": properties });
        json!({ "type": "function", "function": { "name": name, "description": "", "parameters": parameters } })
    };
    tools.into_iter().map(stub).collect()
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null | Value::String(_) => "string",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::{Message, ParsedFixture, Role, ToolCall};

    #[test]
    fn recorded_schemas_win_and_calls_make_stubs() {
        let text = r#"{"name":"a","messages":[{"role":"user","content":"go"}]}"#;
        let mut fixture = ParsedFixture::read(text).unwrap().fixture;
        let mut call = Message::text(Role::Assistant, "");
        call.tool_calls.push(ToolCall::new("c2", "write", "not json"));
        call.tool_calls.push(ToolCall::new("c1", "read", r#"{"path":"a.rs","line":3}"#));
        fixture.messages.push(call);
        let stubs = tool_schemas(&fixture);
        assert_eq!(stubs.len(), 2);
        assert_eq!(stubs[0]["function"]["name"], "read");
        assert_eq!(stubs[0]["function"]["parameters"]["properties"]["line"], json!({"type": "integer"}));
        fixture.tools = vec![json!({"type": "function"})];
        assert_eq!(tool_schemas(&fixture), fixture.tools);
    }
}
