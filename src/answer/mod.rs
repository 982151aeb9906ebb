//! Answering: context and question to work, and a reply to an answer.
//!
//! Invariants: a bound context goes to the provider that made it, byte for byte; an answer is never empty.
//! Deliberately absent: names of fixtures and methods.

mod spec;
mod prompts;
mod prepare;
mod read;

pub use prepare::{AnswerFault, AnswerInput, prepare};
pub use prompts::{QUESTION, VARIABLES, built_in};
pub use read::{Answer, read};
pub use spec::{Answerer, AnswererName, TruncatedReplies};
