//! Spans: messages as one readable text, and the file operations that tool calls stand for.

use std::collections::HashMap;
use std::fmt::Write as _;

use serde_json::Value;

use base::message::{Message, Role, ToolCall};

/// Writes messages as one text, a headed block each:
///
/// ```text
/// [user]
/// fix the parser
///
/// [assistant]
/// Looking first.
/// [call terminal] {"command":"ls"}
///
/// [result terminal]
/// a.py
/// ```
pub fn render(messages: &[Message]) -> String {
    let mut names: HashMap<&str, &str> = HashMap::new();
    let mut text = String::new();
    for message in messages {
        if !text.is_empty() {
            text.push_str("\n\n");
        }
        let called = message.tool_call_id.as_deref().and_then(|id| names.get(id));
        match (message.role, called) {
            (Role::Tool, Some(name)) => write_line(&mut text, &format!("[result {name}]")),
            (Role::Tool, None) => write_line(&mut text, "[result]"),
            (role, _) => write_line(&mut text, &format!("[{}]", role.name())),
        }
        text.push_str(message.content.trim_end());
        for call in &message.tool_calls {
            names.insert(&call.id, &call.function.name);
            if !text.ends_with('\n') {
                text.push('\n');
            }
            // Writing to a string cannot fail.
            let _ = write!(
                text,
                "[call {}] {}",
                call.function.name, call.function.arguments
            );
        }
    }
    text
}

fn write_line(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

/// What a tool call does to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FileAction {
    /// Writes the whole file, whether it exists or not.
    Write,
    /// Changes a part of it.
    Change,
    /// Looks at it.
    Read,
    /// Removes it.
    Delete,
}

/// A file named by a tool call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileOperation {
    /// The action.
    pub action: FileAction,
    /// The path as written in the call.
    pub path: String,
}

/// Whether `key` is a name that tools give to the argument holding a file's path.
pub fn is_file_path_key(key: &str) -> bool {
    matches!(
        key,
        "path" | "file_path" | "filePath" | "absolute_path" | "notebook_path" | "filename" | "file"
    )
}

/// The file operation that a call of a known file tool stands for; `None` for shells and other tools.
pub fn file_operation(call: &ToolCall) -> Option<FileOperation> {
    let arguments: Value = serde_json::from_str(&call.function.arguments).ok()?;
    let object = arguments.as_object()?;
    let path = object
        .iter()
        .find(|(key, _)| is_file_path_key(key))?
        .1
        .as_str()?
        .to_owned();
    let action = match call.function.name.to_ascii_lowercase().as_str() {
        "read" | "read_file" | "view" | "open" | "cat" => FileAction::Read,
        "write" | "write_file" | "create" | "create_file" => FileAction::Write,
        "edit" | "multiedit" | "patch" | "replace" | "insert" | "notebookedit" | "apply_patch" => {
            FileAction::Change
        }
        "delete" | "delete_file" | "remove_file" => FileAction::Delete,
        "str_replace_editor" | "str_replace_based_edit_tool" | "file_editor" => {
            match object.get("command").and_then(Value::as_str) {
                Some("view") => FileAction::Read,
                Some("create") => FileAction::Write,
                _ => FileAction::Change,
            }
        }
        _ => return None,
    };
    Some(FileOperation { action, path })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn renders_calls_and_results_by_name() {
        let mut call = Message::text(Role::Assistant, "Look.");
        call.tool_calls
            .push(ToolCall::new("c1", "terminal", r#"{"command":"ls"}"#));
        let text = render(&[
            Message::text(Role::User, "go"),
            call,
            Message::result("c1", "a.py\n"),
        ]);
        assert_eq!(
            text,
            "[user]\ngo\n\n[assistant]\nLook.\n[call terminal] {\"command\":\"ls\"}\n\n[result terminal]\na.py"
        );
    }

    #[test]
    fn tells_file_operations_apart() {
        let operation =
            |name: &str, arguments: &str| file_operation(&ToolCall::new("c", name, arguments));
        let read = operation("Read", r#"{"file_path":"/a.rs"}"#).expect("a file tool");
        assert_eq!(
            (read.action, read.path.as_str()),
            (FileAction::Read, "/a.rs")
        );
        assert_eq!(operation("terminal", r#"{"command":"cat a"}"#), None);
        assert_eq!(operation("write_file", "not json"), None);
    }
}
