//! Exact facts in texts: a fact in any of its spellings, names and paths, and a transcript made ready to be searched.
//!
//! A text is folded once and then searched for many facts; a transcript is folded and indexed once ([`History`]).

mod fact;
mod false_values;
mod finder;
mod history;
mod literal_forms;
mod names;
mod topic;
#[cfg(test)]
mod variants;

pub use fact::Fact;
pub use false_values::with_false_value;
pub use finder::FactFinder;
pub use history::History;
pub use literal_forms::literal_forms;
pub use names::{TranscriptPaths, normal_path, paths, suffixes, words};
pub use topic::{Topic, is_alike, is_content_word, pieces};
