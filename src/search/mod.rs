//! Full-text search by BM25 over a list of texts, the same on every machine: no clock, no threads, no model.
//!
//! It knows texts and positions in a list, and nothing of sessions, methods or answers. Deliberately absent: stemming and
//! synonyms. An agent that searches its history writes the words that it remembers, and rules of one language would favour
//! sessions in it.

mod terms;
mod index;
mod excerpt;

pub use excerpt::excerpt;
pub use index::{Ranking, SearchIndex};
