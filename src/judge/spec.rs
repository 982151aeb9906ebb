//! Who grades.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::action::Template;
use crate::provider::ModelUse;

/// The name of a judge in results; part of no cache key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct JudgeName(pub Arc<str>);

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
