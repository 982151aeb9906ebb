//! Probes: banks of questions with expected facts, and the proof of a bank against its fixture.
//!
//! Deliberately absent: judging.

mod bank;

pub use bank::{Bank, Fact, Probe, ProbeId, ProbeType};
