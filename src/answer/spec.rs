//! Who answers the probes.

use super::recovery::Recovery;
use crate::action::Template;
use base::{named_enum, text_name};
use models::ModelUse;

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
    /// The prompt's file, relative to the pipeline; `None` for the built-in one.
    pub prompt_path: Option<String>,
    /// What is done with replies that the token limit cut off.
    pub truncated_replies: TruncatedReplies,
    /// How it may search what its contexts replaced; `None` of one that answers from the context alone.
    pub recovery: Option<Recovery>,
}

named_enum! {
    /// What is done with an answer that the token limit cut off. Part of the design of a result set, not of any key.
    #[derive(Default)]
    pub enum TruncatedReplies {
        Fail = "fail",
        /// It is graded like any other, and marked.
        #[default]
        Grade = "grade",
    }
}
