//! Who grades.

use crate::action::Template;
use base::text_name;
use models::ModelUse;

text_name! {
    /// The name of a judge in results; part of no cache key.
    pub struct JudgeName;
}

#[derive(Clone, Debug)]
pub struct JudgeSpec {
    pub name: JudgeName,
    pub model: ModelUse,
    /// The prompt (variable: `request`).
    pub template: Template,
    /// The prompt's file, relative to the pipeline; `None` for the built-in one.
    pub prompt_path: Option<String>,
    /// How many replies that break the contract are taken before the cell fails.
    pub attempts: u32,
}
