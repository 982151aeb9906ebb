//! Replies that call tools, as later steps of the same conversation send them back.

use serde_json::Value;
use serde_json::value::RawValue;

use crate::call::ReadFault;
use crate::spec::Dialect;
use crate::tools::call_id;

/// The items of a reply with its calls numbered from `first`: vendors give random ids, and requests that are equal but for
/// them are to be equal. Items without calls stay byte for byte as they are.
///
/// # Errors
/// Items that are no JSON array.
pub fn renumber_calls(dialect: Dialect, items: &str, first: usize) -> Result<String, ReadFault> {
    let malformed = |error: serde_json::Error| ReadFault::Malformed(error.to_string());
    let items: Vec<&RawValue> = serde_json::from_str(items).map_err(malformed)?;
    let mut number = first;
    let mut texts = Vec::with_capacity(items.len());
    for raw in items {
        let mut item: Value = serde_json::from_str(raw.get()).map_err(malformed)?;
        let before = number;
        let mut set = |value: Option<&mut Value>| {
            if let Some(id) = value {
                *id = Value::from(call_id(number));
                number += 1;
            }
        };
        match dialect {
            Dialect::OpenaiResponses if item["type"] == "function_call" => set(item.get_mut("call_id")),
            Dialect::Anthropic if item["type"] == "tool_use" => set(item.get_mut("id")),
            Dialect::OpenaiChat => {
                let calls = item.get_mut("tool_calls").and_then(Value::as_array_mut);
                calls.into_iter().flatten().for_each(|call| set(call.get_mut("id")));
            }
            Dialect::OpenaiResponses | Dialect::Anthropic | Dialect::Lexical => {}
        }
        texts.push(if number == before { raw.get().to_owned() } else { item.to_string() });
    }
    Ok(format!("[{}]", texts.join(",")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_numbered_and_reasoning_stays_as_it_was() {
        let reasoning = r#"{"type":"reasoning", "id":"rs_1","encrypted_content":"g\u00e9"}"#;
        let items =
            format!(r#"[{reasoning},{{"type":"function_call","call_id":"x9","name":"search","arguments":"{{}}"}}]"#);
        let renumbered = renumber_calls(Dialect::OpenaiResponses, &items, 3).expect("an array");
        assert!(renumbered.starts_with(&format!("[{reasoning},")) && renumbered.contains(r#""call_id":"call_3""#));
        let blocks =
            r#"[{"type":"thinking","signature":"s"},{"type":"tool_use","id":"toolu_1"},{"type":"tool_use","id":"b"}]"#;
        let renumbered = renumber_calls(Dialect::Anthropic, blocks, 1).expect("an array");
        assert!(renumbered.contains(r#""id":"call_1""#) && renumbered.contains(r#""id":"call_2""#));
        let message =
            r#"[{"role":"assistant","tool_calls":[{"id":"a","extra_content":{"google":{"thought_signature":"t"}}}]}]"#;
        let renumbered = renumber_calls(Dialect::OpenaiChat, message, 1).expect("an array");
        assert!(renumbered.contains(r#""id":"call_1""#) && renumbered.contains("thought_signature"));
        assert!(renumber_calls(Dialect::OpenaiChat, "{", 1).is_err());
    }
}
