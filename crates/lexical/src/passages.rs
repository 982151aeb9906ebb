//! Texts cut into passages: sentences of people, lines of programs, entries of summaries.

use crate::notes::{FileNote, SessionOutline, readable};
use base::words::sentences;
use sessions::transcript::{FileRecord, Message, Role, ToolCall};

/// Where a passage comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// The user's words, or a text without speakers: a summary.
    Said,
    Replied,
    /// What a tool was called with.
    Called,
    Returned,
    /// What no message says by itself, but a reader of all messages knows: with words that say what the text is, which are
    /// searched but not quoted.
    Noted(&'static str),
}

/// A stretch of text that can be quoted by itself.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Passage {
    /// The text, on one line.
    pub(super) text: String,
    /// Where it comes from.
    pub(super) origin: Origin,
    /// The number of the message or paragraph it is in: neighbours share it.
    pub(super) block: usize,
}

/// Cuts a context or transcript into passages.
pub(super) fn passages(text: &str) -> Vec<Passage> {
    let mut collector = PassageCollector::default();
    match read_transcript(text) {
        Some(messages) => {
            messages
                .iter()
                .for_each(|message| collector.add_message(message));
            collector.add_outline(&SessionOutline::from_messages(&messages));
        }
        None => collector.add_plain(text),
    }
    collector.passages
}

#[derive(Default)]
struct PassageCollector {
    passages: Vec<Passage>,
    block: usize,
}

impl PassageCollector {
    fn push(&mut self, origin: Origin, text: &str) {
        let text = text.trim();
        if text.chars().any(char::is_alphanumeric) {
            self.passages.push(Passage {
                text: text.to_owned(),
                origin,
                block: self.block,
            });
        }
    }

    fn add_plain(&mut self, text: &str) {
        for line in text.lines() {
            if line.trim().is_empty() || line.starts_with('#') {
                self.block += 1;
            }
            self.push(Origin::Said, line.trim_start_matches('#'));
        }
    }

    fn add_message(&mut self, message: &Message) {
        self.block += 1;
        match message.role {
            Role::Tool => readable(&message.content)
                .lines()
                .for_each(|line| self.push(Origin::Returned, line)),
            Role::Assistant => {
                sentences(&message.content).for_each(|s| self.push(Origin::Replied, s))
            }
            Role::User | Role::System => {
                sentences(&message.content).for_each(|s| self.push(Origin::Said, s))
            }
        }
        for call in &message.tool_calls {
            self.add_call(call);
        }
    }

    /// Adds what a summary of the session would say and no single message does: otherwise the whole transcript would answer
    /// questions about the session as a whole worse than a summary of it.
    fn add_outline(&mut self, outline: &SessionOutline) {
        let mut note = |subject, text: &str| {
            self.block += 1;
            self.push(Origin::Noted(subject), text);
        };
        for FileNote { file, .. } in &outline.files {
            note(file_subject(file), &file.path);
        }
        for (command, lines) in &outline.failures {
            let message = format!("`{command}`: {}", lines.join(" | "));
            note("command failed, error message 命令失败 报错信息", &message);
        }
        for item in &outline.plan {
            note(
                "open items of the agent's plan, not done yet 代理自己的计划 没有完成的事项",
                item,
            );
        }
        if let Some(command) = &outline.last_command {
            note("command the agent ran last 最后运行的命令", command);
        }
        if let Some(path) = &outline.changed_last {
            note("file the agent was changing last 最后改动的文件", path);
        }
        for sentence in sentences(outline.request.as_deref().unwrap_or_default()) {
            note("the user asked for this last 用户最后要求", sentence);
        }
    }

    fn add_call(&mut self, call: &ToolCall) {
        let Some(arguments) = call.arguments() else {
            return self.push(Origin::Called, &call.function.arguments);
        };
        self.block += 1;
        let (short, long): (Vec<_>, Vec<_>) = arguments.iter().partition(|(_, value)| {
            value
                .as_str()
                .is_none_or(|text| !text.contains('\n') && text.len() < 400)
        });
        let values = short.iter().map(|(_, value)| {
            value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned)
        });
        let head: Vec<String> = [call.function.name.clone()]
            .into_iter()
            .chain(values)
            .collect();
        self.push(Origin::Called, &head.join(" "));
        for (_, value) in long {
            value
                .as_str()
                .unwrap_or_default()
                .lines()
                .for_each(|line| self.push(Origin::Called, line));
        }
    }
}

fn file_subject(file: &FileRecord) -> &'static str {
    match (file.created, file.modified) {
        (true, _) => "files created 新建的文件",
        (false, true) => "existing files changed 修改的已有文件",
        (false, false) => "files only read, not changed 只读过没有改动的文件",
    }
}

/// Reads a rendered transcript back into messages; `None` for any other text.
pub fn read_transcript(text: &str) -> Option<Vec<Message>> {
    speaker(text.lines().next()?)?;
    let mut reader = TranscriptReader::default();
    let mut after_blank = true;
    for line in text.lines() {
        match speaker(line).filter(|_| after_blank) {
            Some(role) => reader.open_message(role),
            None => reader.add_line(line),
        }
        after_blank = line.is_empty();
    }
    Some(reader.messages)
}

fn speaker(line: &str) -> Option<Role> {
    match line {
        "[user]" => Some(Role::User),
        "[assistant]" => Some(Role::Assistant),
        "[system]" => Some(Role::System),
        "[result]" => Some(Role::Tool),
        _ => line
            .strip_prefix("[result ")?
            .strip_suffix(']')
            .map(|_| Role::Tool),
    }
}

#[derive(Default)]
struct TranscriptReader {
    messages: Vec<Message>,
    /// Ids of calls whose results are still to come, in order.
    open: Vec<String>,
    /// How many calls were read.
    calls: usize,
}

impl TranscriptReader {
    fn open_message(&mut self, role: Role) {
        let mut message = Message::text(role, "");
        if role == Role::Tool && !self.open.is_empty() {
            message.tool_call_id = Some(self.open.remove(0));
        }
        self.messages.push(message);
    }

    fn add_line(&mut self, line: &str) {
        let Some(message) = self.messages.last_mut() else {
            return;
        };
        let call = line
            .strip_prefix("[call ")
            .and_then(|rest| rest.split_once("] "));
        if let Some((name, arguments)) = call.filter(|_| message.role == Role::Assistant) {
            self.calls += 1;
            let id = format!("call-{}", self.calls);
            self.open.push(id.clone());
            message.tool_calls.push(ToolCall::new(id, name, arguments));
        } else if let Some(call) = message.tool_calls.last_mut() {
            call.function.arguments.push('\n');
            call.function.arguments.push_str(line);
        } else {
            if !message.content.is_empty() {
                message.content.push('\n');
            }
            message.content.push_str(line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sessions::transcript::render;

    fn session() -> Vec<Message> {
        let mut call = Message::text(Role::Assistant, "Look. Then fix.");
        call.tool_calls
            .push(ToolCall::new("call-1", "terminal", r#"{"command":"ls"}"#));
        call.tool_calls
            .push(ToolCall::new("call-2", "read_file", r#"{"path":"a.py"}"#));
        let results = [
            Message::result("call-1", "a.py\n\nb.py"),
            Message::result("call-2", "x = 1"),
        ];
        [Message::text(Role::User, "go"), call]
            .into_iter()
            .chain(results)
            .collect()
    }

    #[test]
    fn a_rendered_transcript_reads_back() {
        let read = read_transcript(&render(&session())).expect("a transcript");
        let trimmed = |messages: &[Message]| -> Vec<Message> {
            let trim = |m: &Message| Message {
                content: m.content.trim().to_owned(),
                ..m.clone()
            };
            let mut all: Vec<Message> = messages.iter().map(trim).collect();
            all.iter_mut()
                .flat_map(|m| &mut m.tool_calls)
                .for_each(|c| {
                    c.function.arguments = c.function.arguments.trim().to_owned();
                });
            all
        };
        assert_eq!(trimmed(&read), session());
    }

    #[test]
    fn passages_are_sentences_lines_and_entries() {
        let texts = |text: &str| {
            passages(text)
                .into_iter()
                .map(|p| p.text)
                .collect::<Vec<_>>()
        };
        let expected = [
            "go",
            "Look. Then fix.",
            "terminal ls",
            "read_file a.py",
            "a.py",
            "b.py",
            "x = 1",
            // The outline: the file that was read, the last command, the request.
            "a.py",
            "ls",
            "go",
        ];
        assert_eq!(texts(&render(&session())), expected);
        assert_eq!(
            texts("## Files\n- a.py: new\n\n(none)"),
            ["Files", "- a.py: new", "(none)"]
        );
    }
}
