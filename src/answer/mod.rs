//! Answering: context and question to work, and a reply to an answer, or to the searches that it asks for.
//!
//! Invariants: a bound context goes to the provider that made it, byte for byte; an answer is never empty.
//! Deliberately absent: names of fixtures and methods.

mod answerer;
mod exchange;
mod prepare;
mod read;

pub use answerer::{Answerer, AnswererName, OPEN_BOOK, Recovery, SearchProtocol, TruncatedReplies};
pub use exchange::{Archive, Asked, Excerpt, Exchange, Returned, Round, SearchRequest, read_request};
pub use prepare::{AnswerFault, AnswerInput, QUESTION, VARIABLES, built_in, prepare, with_excerpts};
pub use read::{Answer, SearchFault, excerpts_digest, read, read_excerpts};
