//! The references that the messages of a session use.

use std::collections::HashSet;

use serde_json::Value;

use super::Reference;
use super::scan::{references_in, references_in_command};
use crate::transcript::{COMMAND_KEYS, Message, Role, command_in};

/// The readable text of a message: its content, and the strings of JSON in the content and in the arguments of its
/// calls, without escapes.
pub fn readable_text(message: &Message) -> String {
    let mut text = message.content.clone();
    if text.trim_start().starts_with(['{', '['])
        && let Ok(value) = serde_json::from_str::<Value>(&message.content)
    {
        append_strings(&mut text, strings_of(&value));
    }
    for call in &message.tool_calls {
        append_strings(&mut text, arguments(&call.function.arguments));
    }
    text
}

/// Appends strings to a text, each on a line of its own.
fn append_strings(text: &mut String, strings: Vec<(String, String)>) {
    for (_, string) in strings {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&string);
    }
}

/// The distinct references in the text of a message and in the values of its calls' arguments, in order.
pub fn used_in(message: &Message) -> Vec<Reference> {
    let mut references = references_in(&message.content);
    for call in &message.tool_calls {
        for (key, string) in arguments(&call.function.arguments) {
            let is_command = COMMAND_KEYS.contains(&key.as_str());
            references.extend(if is_command {
                references_in_command(&string)
            } else {
                references_in(&string)
            });
        }
    }
    let mut seen = HashSet::new();
    references.retain(|reference| seen.insert(reference.key()));
    references
}

/// The strings in the arguments of a call, each with its key; arguments that are not JSON are one string.
fn arguments(arguments: &str) -> Vec<(String, String)> {
    match serde_json::from_str(arguments) {
        Ok(value) => strings_of(&value),
        Err(_) => vec![(String::new(), arguments.to_owned())],
    }
}

/// All strings in a value, each with the name of the innermost field. The words of a command in a list are one string.
fn strings_of(value: &Value) -> Vec<(String, String)> {
    let mut strings = Vec::new();
    let mut open = vec![(String::new(), value)];
    while let Some((key, value)) = open.pop() {
        match value {
            Value::String(string) => strings.push((key, string.clone())),
            Value::Array(items) => {
                let is_command = COMMAND_KEYS.contains(&key.as_str());
                match command_in(value).filter(|_| is_command) {
                    Some(command) => strings.push((key, command)),
                    None => open.extend(items.iter().rev().map(|item| (key.clone(), item))),
                }
            }
            Value::Object(object) => {
                open.extend(object.iter().rev().map(|(key, item)| (key.clone(), item)))
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    strings
}

/// Names that do not count as references in one session: of its tools, of their arguments, and those in the system
/// prompt.
#[derive(Clone, Debug, Default)]
pub struct SessionNoise {
    keys: HashSet<String>,
}

impl SessionNoise {
    /// From a session's messages. A leading system message counts only if `messages` still contains it.
    pub fn from_messages(messages: &[Message]) -> SessionNoise {
        let mut keys = HashSet::new();
        for message in messages
            .iter()
            .take_while(|message| message.role == Role::System)
        {
            keys.extend(references_in(&message.content).iter().map(Reference::key));
        }
        for call in messages.iter().flat_map(|message| &message.tool_calls) {
            keys.insert(call.function.name.to_lowercase());
            if let Ok(value) = serde_json::from_str(&call.function.arguments) {
                add_field_names(&value, &mut keys);
            }
        }
        SessionNoise { keys }
    }

    /// Whether a reference is noise.
    pub fn has(&self, reference: &Reference) -> bool {
        self.keys.contains(&reference.key())
    }
}

fn add_field_names(value: &Value, keys: &mut HashSet<String>) {
    match value {
        Value::Object(object) => {
            for (key, inner) in object {
                keys.insert(key.to_lowercase());
                add_field_names(inner, keys);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| add_field_names(item, keys)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::{ToolCall, command_of};

    fn calling(name: &str, arguments: &str) -> Message {
        let mut message = Message::text(Role::Assistant, "Now `job_state`.");
        message
            .tool_calls
            .push(ToolCall::new("c1", name, arguments));
        message
    }

    fn texts(references: Vec<Reference>) -> Vec<String> {
        references
            .into_iter()
            .map(|reference| reference.text)
            .collect()
    }

    #[test]
    fn arguments_are_read_without_escapes_and_field_names() {
        let message = calling(
            "edit_thing",
            r#"{"file_name":"src/a.rs","new_text":"\nload_config()","depth":12}"#,
        );
        assert_eq!(
            texts(used_in(&message)),
            ["job_state", "src/a.rs", "load_config"]
        );
        assert!(readable_text(&message).ends_with("\nload_config()"));
    }

    #[test]
    fn a_command_may_be_a_list_of_words() {
        let message = calling("shell", r#"{"command":["bash","-lc","cargo test --lib"]}"#);
        assert_eq!(
            texts(used_in(&message)),
            ["job_state", "cargo test", "--lib"]
        );
        let command = |arguments| command_of(&ToolCall::new("c", "shell", arguments));
        let listed = command(r#"{"command":["ls","-a"]}"#);
        assert_eq!(listed.as_deref(), Some("ls -a"));
        assert_eq!(command(r#"{"path":"a"}"#), None);
        assert_eq!(
            command(r#"{"command":"view","path":"a"}"#),
            None,
            "an editor's word is no command line"
        );
    }

    #[test]
    fn names_of_tools_and_the_system_prompt_are_noise() {
        let messages = [
            Message::text(Role::System, "Work in /srv/project/root with my_tool."),
            calling("look_up", r#"{"file_name":{"inner_key":"x"}}"#),
        ];
        let noise = SessionNoise::from_messages(&messages);
        let has = |text: &str| noise.has(&references_in(text)[0]);
        assert!(has("/srv/project/root") && has("my_tool") && has("look_up") && has("inner_key"));
        assert!(!has("job_state"));
    }

    #[test]
    fn broken_arguments_are_read_as_text() {
        assert_eq!(
            texts(used_in(&calling("edit", "{src/a.rs"))),
            ["job_state", "src/a.rs"]
        );
    }
}
