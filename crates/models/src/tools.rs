//! Tools that a request declares, and the steps of a conversation with calls of them.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Value, json};

/// A function that a model may call instead of answering.
#[derive(Clone, Debug, PartialEq)]
pub struct Tool {
    /// Its name, as providers want one: letters, digits, `_`, `-`.
    pub name: Arc<str>,
    /// What it does and when to call it, for the model.
    pub description: Arc<str>,
    /// The JSON Schema of its arguments, an object.
    pub parameters: Value,
}

impl Tool {
    /// Reads a declaration in the shape of any vendor; `None` if it names no function.
    pub fn from_schema(schema: &Value) -> Option<Tool> {
        let function = schema.get("function").unwrap_or(schema);
        let name = function
            .get("name")?
            .as_str()
            .filter(|name| !name.is_empty())?;
        let description = function
            .get("description")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let given = ["parameters", "input_schema", "inputSchema"]
            .into_iter()
            .find_map(|key| function.get(key));
        let mut parameters = given
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default();
        // Arguments are an object, and Anthropic requires that the schema says so.
        parameters.entry("type").or_insert_with(|| "object".into());
        parameters.entry("properties").or_insert_with(|| json!({}));
        let parameters = Value::Object(parameters);
        Some(Tool {
            name: name.into(),
            description: description.into(),
            parameters,
        })
    }
}

/// The tools as one request declares them.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolOffer {
    /// The tools. They stay in the request after their last call: some vendors refuse a conversation with calls of an
    /// undeclared tool, and prompt caches are keyed by them.
    pub tools: Arc<[Tool]>,
    /// Whether they may be called now.
    pub is_open: bool,
}

impl ToolOffer {
    /// The tools of a recorded session, none of which may be called; `None` if `schemas` declare none. Of two with one
    /// name the first counts, since vendors refuse a name that is declared twice.
    pub fn from_recorded(schemas: &[Value]) -> Option<ToolOffer> {
        let mut names = HashSet::new();
        let read = schemas.iter().filter_map(Tool::from_schema);
        let tools: Vec<Tool> = read
            .filter(|tool| names.insert(tool.name.clone()))
            .collect();
        (!tools.is_empty()).then(|| ToolOffer {
            tools: tools.into(),
            is_open: false,
        })
    }
}

/// What a call of a tool returned.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct CallResult {
    /// The id of the call.
    pub id: String,
    /// The result as the model reads it.
    pub text: String,
}

/// The id of the call with this number in a conversation, from 1.
pub fn call_id(number: usize) -> String {
    format!("call_{number}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations_of_every_vendor_are_read_and_no_name_is_declared_twice() {
        let parameters = json!({"type": "object", "properties": {"path": {"type": "string"}}});
        let schemas = [
            json!({"type": "function", "function": {"name": "read", "description": "Reads.", "parameters": parameters}}),
            json!({"name": "write", "input_schema": parameters}),
            json!({"type": "function", "name": "read", "parameters": {}}),
            json!({"type": "web_search"}),
        ];
        let offer = ToolOffer::from_recorded(&schemas).unwrap();
        let names: Vec<&str> = offer.tools.iter().map(|tool| &*tool.name).collect();
        assert_eq!(
            (names.as_slice(), offer.is_open),
            (["read", "write"].as_slice(), false)
        );
        assert!(offer.tools.iter().all(|tool| tool.parameters == parameters));
        assert_eq!(
            ToolOffer::from_recorded(&[json!({"type": "web_search"})]),
            None
        );
    }
}
