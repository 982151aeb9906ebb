//! People and judges: answers written down for people to grade blindly, their grades read, and how far judges agree.

mod agreement;
mod blind_sheet;
mod grades;

pub use agreement::{AgreementResult, JudgeAgreement, compare_judges};
pub use blind_sheet::blind_sheet;
pub use grades::HumanGrades;
