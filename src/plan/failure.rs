//! An action that has no output, and whose fault that is.

use serde::{Deserialize, Serialize};

use crate::action::{ActionKey, StageName};
use crate::pipeline::Place;
use models::ErrorClass;

/// Whose fault a failure is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Blame {
    /// Transport, rate limits, or a judge that breaks its contract: the cell is left out.
    Infrastructure,
    /// The method: its command failed, or its output is empty or too long. Such failures are a property of the method.
    Method,
}

/// An action that has no output, as the manifest lists it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FailedAction {
    /// The first place in the matrix that needed it.
    #[serde(flatten)]
    pub place: Place,
    /// The stage of the action that failed.
    pub stage: StageName,
    /// The action; `None` if it failed before it could be named.
    pub key: Option<ActionKey>,
    /// Whose fault it is.
    pub blame: Blame,
    /// The class of a failed call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<ErrorClass>,
    /// What happened, as the user reads it.
    pub message: String,
    /// What the user can do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl FailedAction {
    /// A failure that is blamed on the infrastructure until more is known.
    pub fn new(
        place: Place,
        stage: StageName,
        key: Option<ActionKey>,
        message: impl Into<String>,
    ) -> FailedAction {
        let (blame, message) = (Blame::Infrastructure, message.into());
        FailedAction {
            place,
            stage,
            key,
            blame,
            class: None,
            message,
            hint: None,
        }
    }

    /// What happened and what to do, on one line.
    pub fn message_with_hint(&self) -> String {
        let hint = self
            .hint
            .as_ref()
            .map(|hint| format!("; {hint}"))
            .unwrap_or_default();
        format!("{}{hint}", self.message)
    }
}
