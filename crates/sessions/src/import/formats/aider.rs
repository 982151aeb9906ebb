//! Aider's chat history: Markdown, many chats in one file; prompts, Aider's own output and replies are distinguished by how
//! their lines begin.

use super::super::draft::ConversationDraft;
use super::super::source::Records;
use crate::transcript::Role;

const CHAT: &str = "# aider chat started at ";

pub(super) fn read(records: &mut Records) -> Vec<ConversationDraft> {
    let stem = records.stem();
    let mut chats = Vec::new();
    let mut chat = AiderChat::new(stem.clone());
    let mut is_history = false;
    while let Some(line) = records.next_text() {
        let line = line.trim_end_matches(['\n', '\r']);
        if line.starts_with(CHAT) {
            is_history = true;
            let next = AiderChat::new(format!("{stem}-{}", chats.len() + 1));
            chats.push(std::mem::replace(&mut chat, next).finish());
        } else {
            chat.read_line(line);
        }
    }
    chats.push(chat.finish());
    // Any other text would be one long message.
    if is_history { chats } else { Vec::new() }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum AiderSpeaker {
    Person,
    Aider,
    Model,
}

#[derive(Default)]
struct AiderChat {
    draft: ConversationDraft,
    speaker: Option<AiderSpeaker>,
    text: String,
    /// Inside a fence or a search block no line is a marker.
    fenced: bool,
    searching: bool,
    prompted: bool,
}

impl AiderChat {
    fn new(name: String) -> AiderChat {
        AiderChat {
            draft: ConversationDraft::new(name),
            ..AiderChat::default()
        }
    }

    fn read_line(&mut self, line: &str) {
        let inside = (self.fenced || self.searching) && self.speaker == Some(AiderSpeaker::Model);
        let (speaker, text) = match (inside, line.strip_prefix("#### "), line.strip_prefix("> ")) {
            (false, Some(prompt), _) => (AiderSpeaker::Person, prompt),
            (false, None, Some(output)) => (AiderSpeaker::Aider, output),
            (false, None, None) if line == "####" => (AiderSpeaker::Person, ""),
            (false, None, None) if line == ">" => (AiderSpeaker::Aider, ""),
            (false, None, None) if line.is_empty() && self.speaker != Some(AiderSpeaker::Model) => {
                return;
            }
            _ => (AiderSpeaker::Model, line),
        };
        if self.speaker != Some(speaker) {
            self.flush();
            self.speaker = Some(speaker);
        }
        if speaker == AiderSpeaker::Model {
            self.track_blocks(line);
        } else if speaker == AiderSpeaker::Aider {
            self.read_header(text);
        }
        self.text.push_str(if speaker == AiderSpeaker::Model {
            text
        } else {
            text.trim_end()
        });
        self.text.push('\n');
    }

    /// Notes where fences and search blocks of the model's text begin and end.
    fn track_blocks(&mut self, line: &str) {
        match line.trim_end() {
            "<<<<<<< SEARCH" => self.searching = true,
            ">>>>>>> REPLACE" => self.searching = false,
            fence if fence.starts_with("```") && !self.searching => self.fenced = !self.fenced,
            _ => {}
        }
    }

    /// Reads the model's name from a line that Aider prints.
    fn read_header(&mut self, text: &str) {
        let model = ["Main model: ", "Models: ", "Model: "]
            .into_iter()
            .find_map(|mark| text.strip_prefix(mark));
        if let Some(model) = model {
            self.draft.model = model.split([' ', ',']).next().map(Into::into);
        }
    }

    fn flush(&mut self) {
        let text = std::mem::take(&mut self.text);
        (self.fenced, self.searching) = (false, false);
        let text = text.trim();
        if text.is_empty() {
            return;
        }
        match self.speaker {
            Some(AiderSpeaker::Person) => {
                self.prompted = true;
                self.draft.say(Role::User, text);
            }
            Some(AiderSpeaker::Model) => self.draft.add_reply(text, Vec::new()),
            // What Aider prints before the first prompt is its greeting.
            Some(AiderSpeaker::Aider) if !self.prompted => {
                self.draft.count_bookkeeping("start of the chat");
            }
            Some(AiderSpeaker::Aider) => self
                .draft
                .say(Role::User, format!("[output of aider]\n{text}")),
            None => {}
        }
    }

    fn finish(mut self) -> ConversationDraft {
        self.flush();
        self.draft
    }
}
