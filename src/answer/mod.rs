//! Answering: context and question to work, and a reply to an answer, or to the searches that it asks for.
//!
//! Invariants: a bound context goes to the provider that made it, byte for byte; an answer is never empty.
//! Deliberately absent: names of fixtures and methods.

mod spec;
mod recovery;
mod prompts;
mod exchange;
mod program;
mod prepare;
mod read;

pub use exchange::{Archive, Asked, Excerpt, Exchange, Returned, Round, SearchRequest, read_request};
pub use prepare::{AnswerFault, AnswerInput, prepare, with_excerpts};
pub use program::{SearchFault, excerpts_digest, read_excerpts};
pub use prompts::{QUESTION, VARIABLES, built_in};
pub use read::{Answer, read};
pub use recovery::{OPEN_BOOK, Recovery, SearchProtocol};
pub use spec::{Answerer, AnswererName, TruncatedReplies};
