//! People and judges: answers written down for people to grade blindly, their grades read, and how far judges agree.

mod agreement;
mod sheet;

pub use agreement::{AgreementResult, JudgeAgreement, compare_judges};
pub use sheet::{GradedSheet, blind_sheet};
