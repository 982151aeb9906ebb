//! Reports: results as text, tables and pages.
//!
//! Invariants: nothing is computed here that `results` could compute; an unknown value is a dash; results of the
//! built-in rules are marked wherever they are shown; text from transcripts and models is escaped for its destination.
//! This module does not print, write files or change numbers.

mod comparison_notes;
mod details;
mod document;
mod exports;
mod figures;
mod headline;
pub mod html;
mod markdown;
mod notes;
mod observed;
mod planted;
mod screen;
mod styled;
mod translation;

pub use comparison_notes::note_count;
pub use details::{details, reference};
pub use document::{Block, Section, styled, styled_sections};
pub use exports::{csv_header, csv_line, junit};
pub use figures::short_time;
pub use headline::headline;
pub use markdown::markdown;
pub use observed::{economics, observed, observed_page};
pub use screen::screen;
pub use styled::{COLOR_MARK, TextStyle, TextTable, fitted, known, labelled, paint, wrap_lines};

#[cfg(test)]
mod situation_tests;
#[cfg(test)]
mod tests;
