//! What went wrong in a run, as the manifest keeps it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::action::{ActionKey, StageName};
use crate::pipeline::CellCoordinate;
use models::ErrorClass;

/// Whose fault a failure is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Blame {
    /// Transport, rate, a judge that breaks its contract: the cell is left out.
    Infrastructure,
    /// The method: its command failed, its output is empty or too long. A property of the method.
    Method,
}

/// An action without an output, as the failures list shows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FailedAction {
    /// Where it was met first.
    #[serde(flatten)]
    pub place: FailureLocation,
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

/// A place in the matrix or in a judge's self-test, in names.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum FailureLocation {
    /// The cell of the matrix that needed the action first.
    Cell(CellCoordinate),
    /// A case of a judge's self-test.
    Selftest {
        /// The judge's name.
        judge: String,
        /// The case's name.
        case: String,
    },
    /// The generation of probes at a point, or the question of one of them without a context.
    Generation {
        /// The fixture's name.
        fixture: String,
        /// The point's number, from 1.
        point: u32,
        /// The probe that is asked; `None` where probes are written.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        probe: Option<String>,
    },
}

impl FailedAction {
    /// A cell that has no action, or no row, though nothing was asked of anyone.
    pub fn of_cell(
        place: CellCoordinate,
        stage: StageName,
        key: Option<ActionKey>,
        error: &dyn std::error::Error,
    ) -> FailedAction {
        let (place, blame, message) = (FailureLocation::Cell(place), Blame::Infrastructure, error.to_string());
        FailedAction { place, stage, key, blame, class: None, message, hint: None }
    }
}

impl FailedAction {
    /// What happened and what to do, on one line.
    pub fn message_with_hint(&self) -> String {
        let hint = self.hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default();
        format!("{}{hint}", self.message)
    }
}

impl FailureLocation {
    /// The cell of a recorded session, if it is one: what fails with a rule in it takes nothing from the others.
    pub fn cell(&self) -> Option<&CellCoordinate> {
        match self {
            FailureLocation::Cell(coordinate) => Some(coordinate).filter(|cell| cell.constraint.is_none()),
            FailureLocation::Selftest { .. } | FailureLocation::Generation { .. } => None,
        }
    }
}

impl fmt::Display for FailureLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FailureLocation::Cell(coordinate) => coordinate.fmt(f),
            FailureLocation::Selftest { judge, case } => write!(f, "self-test of {judge} · {case}"),
            FailureLocation::Generation { fixture, point, probe: None } => {
                write!(f, "probes for {fixture} · point {point}")
            }
            FailureLocation::Generation { fixture, point, probe: Some(probe) } => {
                write!(f, "{fixture} · point {point} · {probe} without a context")
            }
        }
    }
}
