//! Probes: banks of questions with expected facts, and the proof of a bank against its fixture.
//!
//! Deliberately absent: judging.

mod bank;
mod facts;
mod highlight;

pub use bank::{Bank, Fact, Probe, ProbeId, ProbeType};
pub use facts::{FactFinder, stands_in};
pub use highlight::MappedFold;
