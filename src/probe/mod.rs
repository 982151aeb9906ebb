//! Probes: banks of questions with expected facts, and the proof of a bank against its fixture.
//!
//! Deliberately absent: judging.

mod bank;
mod bank_edit;
mod bank_file;
mod check;
mod generate;
mod phrases;
mod clues;
mod decisions;
mod propose;

pub use bank::{Bank, Probe, ProbeId, ProbeType, one_or_several_facts};
pub use bank_edit::BankText;
pub use bank_file::{ParsedBank, ProbePlaces};
pub use check::{BankFinding, FindingKind, check_bank, probes_per_point, recommended_probes};
pub use clues::ProbeSources;
pub use generate::{
    CandidateVerdicts, GENERATION_VARIABLES, ProbeCandidate, RejectionReason, generation_schema, generation_template,
    generation_work, read_candidates, verify,
};
pub use propose::propose_candidates;
