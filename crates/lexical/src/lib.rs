//! Rules about texts, in English and Chinese, that need no model: the same result each time, at no cost.
//!
//! - [`facts`] finds exact facts (a path, a number, an error message) in a text or a session, however they are spelled.
//! - [`claims`] reads what a text says about a fact: that it holds, that it no longer does, or that nothing is known.
//! - [`notes`] takes notes on a session: files, failures, decisions, open tasks.
//! - [`LiteralGrade`] grades an answer by the facts it must contain; [`answer()`] and [`summarize`] stand in for a model.
//!
//! ```
//! use compeval_lexical::facts::Fact;
//! use compeval_lexical::{Aspect, GradedAnswer, LiteralGrade};
//! use base::locale::Locale;
//!
//! let expected = [Fact { spellings: vec!["8081".to_owned()] }];
//! let superseded = [Fact { spellings: vec!["8080".to_owned()] }];
//! let grade = |answer| {
//!     let graded = GradedAnswer {
//!         question: "On which port does it listen?",
//!         answer,
//!         expected_facts: &expected,
//!         superseded_facts: &superseded,
//!         ..GradedAnswer::default()
//!     };
//!     LiteralGrade::new(&graded, Locale::En).score(Aspect::Accuracy)
//! };
//! assert_eq!(grade("It was 8080 at first; now it is 8081."), 5);
//! assert_eq!(grade("It is not 8081 but 8080."), 0);
//! ```
//!
//! The crate knows nothing of requests, prompt templates, methods or models. It uses no network and writes no file.

mod answer;
pub mod claims;
mod entries;
pub mod facts;
mod gather;
mod grade;
mod instructions;
mod invented;
pub mod notes;
mod passages;
pub mod search;
mod summary;
mod tasks;
mod terms;

pub use answer::{answer, search_for};
pub use entries::{ContextEntries, ContextEntry};
pub use grade::{Aspect, GradedAnswer, LiteralGrade};
pub use instructions::prompt_headings;
pub use invented::{
    InventedReferences, KnownReferences, is_file_path, is_identifier, reference_keys, unknown_names,
};
pub use passages::read_transcript;
pub use summary::{SummaryPrompt, summarize};
pub use tasks::answer_about_tasks;
pub use terms::terms;
