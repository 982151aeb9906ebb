//! Reports: what `results` holds, in words, tables and pages.
//!
//! Invariants: nothing is computed here that `results` could compute; what is unknown is a dash; wherever the built-in
//! rules stood in for a model it says so; text from transcripts and models is escaped for where it goes.
//! Deliberately absent: printing, files, and anything that changes a number.

mod ink;
mod words;
mod grid;
mod changes;
mod figures;
mod notes;
mod tables;
mod markdown;
pub mod html;

pub use ink::{Ink, Styled};
pub use markdown::{ReportInput, markdown};
pub use tables::{comparison_table, published, reference_table, summary_table};
pub use words::{Words, words};

#[cfg(test)]
mod tests;
