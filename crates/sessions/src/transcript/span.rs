//! Spans: messages as one readable text.

use std::collections::HashMap;
use std::fmt::Write as _;

use base::message::{Message, Role};

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

#[cfg(test)]
mod tests {
    use super::*;
    use base::message::ToolCall;

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
}
