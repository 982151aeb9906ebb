//! Aider's chat history: Markdown, many chats in one file; prompts, Aider's own output and replies told apart by how
//! their lines begin.

use super::super::conversation::Why;
use super::super::draft::Draft;
use super::super::source::Records;
use crate::transcript::Role;

const CHAT: &str = "# aider chat started at ";

pub(super) fn read(records: &mut Records) -> Vec<Draft> {
    let stem = records.stem();
    let mut chats = Vec::new();
    let mut chat = Chat::new(stem.clone());
    while let Some(line) = records.next_text() {
        let line = line.trim_end_matches(['\n', '\r']);
        if line.starts_with(CHAT) {
            let next = Chat::new(format!("{stem}-{}", chats.len() + 1));
            chats.push(std::mem::replace(&mut chat, next).finish());
        } else {
            chat.line(line);
        }
    }
    chats.push(chat.finish());
    chats
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Speaker {
    Person,
    Aider,
    Model,
}

struct Chat {
    draft: Draft,
    speaker: Option<Speaker>,
    text: String,
    /// Inside a fence or a search block no line is a marker.
    fenced: bool,
    searching: bool,
    prompted: bool,
}

impl Chat {
    fn new(name: String) -> Chat {
        let (speaker, text) = (None, String::new());
        Chat { draft: Draft::new(name), speaker, text, fenced: false, searching: false, prompted: false }
    }

    fn line(&mut self, line: &str) {
        let inside = (self.fenced || self.searching) && self.speaker == Some(Speaker::Model);
        let (speaker, text) = match (inside, line.strip_prefix("#### "), line.strip_prefix("> ")) {
            (false, Some(prompt), _) => (Speaker::Person, prompt),
            (false, None, Some(output)) => (Speaker::Aider, output),
            (false, None, None) if line == "####" => (Speaker::Person, ""),
            (false, None, None) if line == ">" => (Speaker::Aider, ""),
            (false, None, None) if line.is_empty() && self.speaker != Some(Speaker::Model) => return,
            _ => (Speaker::Model, line),
        };
        if self.speaker != Some(speaker) {
            self.flush();
            self.speaker = Some(speaker);
        }
        if speaker == Speaker::Model {
            self.track(line);
        } else if speaker == Speaker::Aider {
            self.header(text);
        }
        self.text.push_str(if speaker == Speaker::Model { text } else { text.trim_end() });
        self.text.push('\n');
    }

    /// Fences and search blocks of the model's text.
    fn track(&mut self, line: &str) {
        match line.trim_end() {
            "<<<<<<< SEARCH" => self.searching = true,
            ">>>>>>> REPLACE" => self.searching = false,
            fence if fence.starts_with("```") && !self.searching => self.fenced = !self.fenced,
            _ => {}
        }
    }

    fn header(&mut self, text: &str) {
        let model = ["Main model: ", "Models: ", "Model: "].into_iter().find_map(|mark| text.strip_prefix(mark));
        if let Some(model) = model {
            self.draft.model = model.split([' ', ',']).next().map(str::to_owned);
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
            Some(Speaker::Person) => {
                self.prompted = true;
                self.draft.say(Role::User, text);
            }
            Some(Speaker::Model) => self.draft.assistant(text, Vec::new()),
            // What Aider prints before the first prompt is its greeting.
            Some(Speaker::Aider) if !self.prompted => {
                self.draft.count(Why::Bookkeeping("start of the chat".to_owned()));
            }
            Some(Speaker::Aider) => self.draft.say(Role::User, format!("[output of aider]\n{text}")),
            None => {}
        }
    }

    fn finish(mut self) -> Draft {
        self.flush();
        self.draft
    }
}
