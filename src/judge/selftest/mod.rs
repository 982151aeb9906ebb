//! The self-test of a judge: answers of known quality, sent as ordinary judge requests, and what they say about it.
//!
//! The cases are drawn from templates with the seed of a project, so that no model can have memorised them. Each
//! answer is labelled in two dimensions; some answers come again as lengthened copies, and some try to instruct the judge.

mod case;
mod cases_file;
mod draw;
mod templates;
mod verdict;

pub use case::{Case, CaseId, CaseKind, Quality, SelfTest};
pub use cases_file::read_selftest;
pub use draw::{MAX_PADDING, SELFTEST_CASES, SelfTestDesign, draw_selftest};
pub use verdict::{
    DimensionResult, INJECTION_GAIN, LENGTH_SHIFT, MIN_SPREAD, SelfTestVerdict, allowed_misses, allowed_misses_in_all,
    cannot_grade, verdict,
};
