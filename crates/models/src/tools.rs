//! A tool that a model may call, and the steps of such a conversation.

use std::sync::Arc;

use serde_json::Value;

/// A function that the model may call instead of answering.
#[derive(Clone, Debug, PartialEq)]
pub struct Tool {
    /// Its name, as providers want one: letters, digits, `_`, `-`.
    pub name: &'static str,
    /// What it does and when to call it, for the model.
    pub description: Arc<str>,
    /// The JSON Schema of its arguments, an object.
    pub parameters: Value,
}

/// A tool as one request offers it.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolOffer {
    /// The tool. It stays in the request after its last call: some vendors refuse a conversation with calls of a tool that
    /// it does not declare, and prompt caches are keyed by it.
    pub tool: Arc<Tool>,
    /// Whether it may be called now.
    pub is_open: bool,
}

/// What a call of a tool returned.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct CallResult {
    /// The id of the call.
    pub id: String,
    /// What the model gets to read.
    pub text: String,
}

/// The id of the call with this number in a conversation, from 1.
pub fn call_id(number: usize) -> String {
    format!("call_{number}")
}
