//! Answering: context and question to work, and a reply to an answer, or to the searches that it asks for.
//!
//! Invariants: a bound context goes to the provider that made it, byte for byte; an answer is never empty.
//! Deliberately absent: names of fixtures and methods.
//!
//! Here are the answerers that a pipeline declares, and how an open-book one may search what its context replaced.

mod exchange;
mod prepare;

pub use exchange::{Asked, Excerpt, Exchange, Returned, Round, SearchRequest, read_request};
pub use prepare::{
    AnswerFault, AnswerInput, QUESTION, VARIABLES, built_in, prepare, with_excerpts,
};

use std::sync::{Arc, LazyLock};

use serde_json::{Value, json};

use crate::action::{BuiltInTemplate, Digest, Prompt, Template, TemplateFault};
use base::locale::Locale;
use base::text_name;
use base::units::Tokens;
use models::{ModelUse, ReadFault, Tool};

text_name! {
    /// The name of an answerer in results; part of no cache key.
    pub struct AnswererName;
}

#[derive(Clone, Debug)]
pub struct Answerer {
    pub name: AnswererName,
    pub model: ModelUse,
    /// The prompt (variables: `context`, `question`).
    pub template: Template,
    /// How it may search what its contexts replaced; `None` if it answers from the context alone.
    pub recovery: Option<Recovery>,
}

/// How an answerer may search.
#[derive(Clone, Debug)]
pub struct Recovery {
    /// The name of the answerer that answers the same questions without a search.
    pub closed: Arc<str>,
    /// Searches that it may ask for; at least 1.
    pub calls: u32,
    /// The most messages that one search returns; at least 1.
    pub results: u32,
    /// The most tokens of each of them; at least 1.
    pub excerpt_tokens: Tokens,
    pub locale: Locale,
}

impl Recovery {
    /// What decides its searches, by the names of the pipeline.
    pub fn settings(&self) -> Value {
        json!({
            "calls": self.calls,
            "results": self.results,
            "excerpt_tokens": self.excerpt_tokens.0,
        })
    }
}

/// The suffix of the names of open-book answerers.
pub const OPEN_BOOK: &str = "+search";

/// The name of the tool.
const TOOL: &str = "search";

/// The beginning of a reply of the stand-in that asks for a search.
const LINE: &str = "SEARCH:";

static TOOL_PROMPT: BuiltInTemplate = BuiltInTemplate::new(
    include_str!("../../assets/prompts/en/search-tool.md"),
    include_str!("../../assets/prompts/zh/search-tool.md"),
    &["calls"],
);

impl Recovery {
    /// Tells the answerer, before the question, that it may search, how, and how often.
    fn prompt(&self) -> Result<Prompt, TemplateFault> {
        TOOL_PROMPT.get(self.locale).fill(
            "search prompt",
            vec![("calls", self.calls.to_string().into())],
        )
    }

    /// The tool as it is declared to a model.
    fn tools(&self) -> Arc<[Tool]> {
        static TOOLS: LazyLock<[Arc<[Tool]>; 2]> = LazyLock::new(|| {
            [Locale::En, Locale::Zh].map(|locale| Arc::from([declare_tool(locale)]))
        });
        let [english, chinese] = &*TOOLS;
        self.locale.pick(english, chinese).clone()
    }

    /// The answer of a model that called the tool once more instead of answering.
    pub fn no_answer(&self) -> &'static str {
        self.locale.pick(
            "(no answer: another search was asked for instead)",
            "（没有作答：又一次要求检索）",
        )
    }

    /// What a search without a match returns.
    fn nothing_found(&self) -> &'static str {
        self.locale.pick("No message matches.", "没有匹配的消息。")
    }
}

fn declare_tool(locale: Locale) -> Tool {
    let (description, query) = match locale {
        Locale::En => (
            "Searches the earlier messages of this session, which were taken out of your memory, and returns excerpts \
             of those that match best.",
            "Words to look for, as they stood in the messages.",
        ),
        Locale::Zh => (
            "在本次会话中已从你的记忆里移除的较早消息里检索，返回最匹配的消息摘录。",
            "要查找的词，按消息中的原文写。",
        ),
    };
    let query = json!({"type": "string", "description": query});
    let parameters = json!({"type": "object", "properties": {"query": query}, "required": ["query"], "additionalProperties": false});
    Tool {
        name: TOOL.into(),
        description: description.into(),
        parameters,
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The words, without white space around them; never empty.
    pub text: Arc<str>,
    /// The digest of the text, which the store keeps as `out`.
    pub out: Digest,
    /// Whether the token limit cut it off.
    pub truncated: bool,
}

/// Reads a reply's text. One that the token limit cut off is read, and graded, like any other.
pub fn read(reply: &str, truncated: bool) -> Result<Answer, ReadFault> {
    let text = reply.trim();
    if text.is_empty() {
        return Err(ReadFault::Empty);
    }
    Ok(Answer {
        text: text.into(),
        out: Digest::hash(text),
        truncated,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn space_around_an_answer_is_no_part_of_it() {
        assert_eq!(read(" 8080\n", false), read("8080", false));
        assert_eq!(read(" \n", true), Err(ReadFault::Empty));
    }
}
