//! Probes: banks of questions with expected facts, and the proof of a bank against its fixture.
//!
//! A text is folded once and then searched for many facts; a transcript is folded and indexed once for all points
//! and probes ([`History`]). Deliberately absent: judging.

mod bank;
mod bank_edit;
mod bank_file;
mod check;
mod facts;
mod generate;
mod history;
mod literal_forms;
mod names;
mod phrases;
mod clues;
mod decisions;
mod propose;
mod topic;
#[cfg(test)]
mod variants;

pub use bank::{Bank, Fact, Probe, ProbeId, ProbeType, one_or_several_facts};
pub use bank_edit::BankText;
pub use bank_file::{ParsedBank, ProbePlaces};
pub use check::{BankFinding, FindingKind, check_bank, probes_per_point, recommended_probes};
pub use clues::ProbeSources;
pub use facts::FactFinder;
pub use generate::{
    CandidateVerdicts, GENERATION_VARIABLES, ProbeCandidate, RejectionReason, generation_schema, generation_template,
    generation_work, read_candidates, verify,
};
pub use history::History;
pub use literal_forms::literal_forms;
pub use names::{TranscriptPaths, normal_path, paths, suffixes, words};
pub use propose::propose_candidates;
pub use topic::{Topic, is_alike, is_content_word, pieces};
