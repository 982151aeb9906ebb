//! Answering: context and question to work, and a reply to an answer.
//!
//! Deliberately absent: names of fixtures and methods.

mod spec;

pub use spec::{Answerer, AnswererName};
