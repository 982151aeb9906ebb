//! Probes: banks of questions with expected facts, and the proof of a bank against its fixture.
//!
//! A text is folded once and then searched for many facts; a transcript is folded and indexed once for all points
//! and probes ([`History`]). Deliberately absent: judging.

mod bank;
mod bank_file;
mod check;
mod facts;
mod highlight;
mod history;
mod names;

pub use bank::{Bank, Fact, Probe, ProbeId, ProbeType};
pub use bank_file::{ParsedBank, ProbePlaces};
pub use check::{Finding, FindingKind, Severity, check_bank};
pub use facts::{FactFinder, stands_in};
pub use highlight::MappedFold;
pub use history::History;
pub use names::{normal_path, paths, suffixes, words};
