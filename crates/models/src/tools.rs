//! Tools that a request declares, and the steps of a conversation with calls of them. Recorded names of tools and ids of
//! calls are made fit for the vendors: the same name becomes the same one everywhere in a request, because the rule looks
//! at nothing else.

use std::borrow::Cow;
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

/// The longest name of a tool: OpenAI's limit, the strictest of the vendors'.
pub(crate) const LONGEST_NAME: usize = 64;
/// The longest id of a call: OpenAI's Chat Completions.
pub(crate) const LONGEST_ID: usize = 40;

/// A name of letters, digits, `_` and `-` that begins with a letter or `_`, `most` characters long. Of any other name the
/// fitting characters are kept, with a checksum that distinguishes it from similar ones.
pub(crate) fn fit(name: &str, most: usize) -> Cow<'_, str> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let begins_well =
        most == LONGEST_ID || name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if begins_well && (1..=most).contains(&name.len()) && name.chars().all(fits) {
        return Cow::Borrowed(name);
    }
    let mut kept: String = name
        .chars()
        .map(|c| if fits(c) { c } else { '_' })
        .collect();
    kept.truncate(most - 10);
    if !begins_well {
        kept.insert(0, '_');
    }
    Cow::Owned(format!("{kept}_{:08x}", crc32fast::hash(name.as_bytes())))
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

    use std::collections::HashSet;

    #[test]
    fn names_that_no_vendor_takes_are_made_fit_and_stay_different() {
        let long = "mcp__".repeat(20);
        let names = [
            "functions.exec",
            "functions/exec",
            "a b",
            "a:b",
            "读取文件",
            "写入文件",
            "",
            "9lives",
            "tool\n",
            "émile",
            &long,
            &format!("{long}x"),
            "-x",
        ];
        for most in [LONGEST_NAME, LONGEST_ID] {
            let fitted: HashSet<_> = names.iter().map(|name| fit(name, most)).collect();
            assert_eq!(fitted.len(), names.len());
            for name in &fitted {
                assert!(
                    (1..=most).contains(&name.len()) && *fit(name, most) == **name,
                    "{name}"
                );
            }
        }
        for plain in [
            "edit_file",
            "mcp__server__list-files",
            "_x",
            &"a".repeat(64),
        ] {
            assert_eq!(fit(plain, LONGEST_NAME), plain);
        }
        assert_eq!(fit("call_1", LONGEST_ID), "call_1");
    }
}
