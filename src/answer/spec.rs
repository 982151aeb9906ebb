//! Who answers the probes.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::action::Template;
use crate::provider::ModelUse;

/// The name of an answerer in results; part of no cache key.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AnswererName(pub Arc<str>);

/// A declared answerer.
#[derive(Clone, Debug)]
pub struct Answerer {
    /// Its name.
    pub name: AnswererName,
    /// Who answers.
    pub model: ModelUse,
    /// The prompt (variables: `context`, `question`).
    pub template: Template,
    /// The prompt's file, relative to the pipeline; `None` for the built-in one.
    pub prompt_path: Option<String>,
}
