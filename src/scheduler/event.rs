//! What happens in a run, as values. Bars, lines, manifest and rows are listeners to one stream.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::action::{ActionKey, Stage};
use crate::judge::SelfTestVerdict;
use crate::pipeline::{Coordinate, Counts};
use crate::plan::SelftestCell;
use crate::provider::ErrorClass;
use crate::results::Row;
use crate::units::{Usage, Usd};

/// What happened. Nothing is told before it is kept.
#[derive(Clone, Debug)]
pub enum Event<'a> {
    /// An output was found in the cache.
    Cached {
        /// The stage.
        stage: StageName,
        /// Whether only an unchanged output above it made that so.
        spared: bool,
    },
    /// Work on an action begins.
    Started {
        /// The stage.
        stage: StageName,
    },
    /// An action was executed and its output is kept.
    Kept {
        /// The stage.
        stage: StageName,
        /// What it used.
        usage: Usage,
        /// What it cost; `None` where no price is known, 0 where nobody was asked.
        cost: Option<Usd>,
        /// Whether the output is that of the earlier action in this place, though the inputs are not.
        unchanged: bool,
    },
    /// An action has no output.
    Failed(&'a Failure),
    /// A stale action is left alone: offline, over budget, or interrupted.
    HeldBack {
        /// The stage.
        stage: StageName,
    },
    /// Cells that can have no output because one above them has none.
    Blocked(Counts),
    /// A cell shares the action of another.
    Shared {
        /// The stage.
        stage: StageName,
    },
    /// A judge's self-test is done.
    Selftested {
        /// The judge.
        judge: &'a str,
        /// How it did.
        verdict: &'a SelfTestVerdict,
    },
    /// Something odd about an output that is used all the same.
    Warning(String),
    /// A judged cell.
    Row {
        /// Its place among all rows.
        ordinal: u64,
        /// The row.
        row: &'a Row,
    },
}

/// A stage as people are shown it: the judge's self-test stands apart from grading.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StageName {
    /// Compression.
    Compress,
    /// Answers.
    Answer,
    /// The judge's self-test.
    Selftest,
    /// Grades.
    Judge,
}

impl StageName {
    /// All stages of a run, in order.
    pub const ALL: [StageName; 4] = [StageName::Compress, StageName::Answer, StageName::Selftest, StageName::Judge];

    /// The name in tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            StageName::Compress => "compress",
            StageName::Answer => "answer",
            StageName::Selftest => "selftest",
            StageName::Judge => "judge",
        }
    }
}

impl From<Stage> for StageName {
    fn from(stage: Stage) -> StageName {
        match stage {
            Stage::Probes | Stage::Compress => StageName::Compress,
            Stage::Answer => StageName::Answer,
            Stage::Judge => StageName::Judge,
        }
    }
}

/// Whose fault a failure is (STATISTICS section 2).
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
pub struct Failure {
    /// Where it was met first.
    #[serde(flatten)]
    pub place: Place,
    /// The stage.
    pub stage: StageName,
    /// The action; `None` if it could not even be made.
    pub key: Option<ActionKey>,
    /// Whose fault it is.
    pub blame: Blame,
    /// The class of a failed call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<ErrorClass>,
    /// What happened.
    pub message: String,
    /// What to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl Failure {
    /// An action that could not even be made.
    pub(super) fn unprepared(place: Coordinate, stage: StageName, error: &dyn std::error::Error) -> Failure {
        Failure { key: None, ..Failure::of_cell(place, stage, None, error) }
    }

    /// A cell whose row could not be made.
    pub(super) fn of_cell(
        place: Coordinate,
        stage: StageName,
        key: Option<ActionKey>,
        error: &dyn std::error::Error,
    ) -> Failure {
        let (place, blame, message) = (Place::Cell(place), Blame::Infrastructure, error.to_string());
        Failure { place, stage, key, blame, class: None, message, hint: None }
    }
}

/// A place in the matrix or in a judge's self-test, in names.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Place {
    /// A cell.
    Cell(Coordinate),
    /// A case of a self-test.
    Selftest(SelftestCell),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Cell(coordinate) => coordinate.fmt(f),
            Place::Selftest(cell) => cell.fmt(f),
        }
    }
}

/// Takes note of what happens.
pub trait Listener {
    /// Is told of one event.
    ///
    /// # Errors
    /// A listener that cannot go on, such as one that writes rows to a full disk. It ends the run.
    fn hear(&mut self, event: &Event<'_>) -> Result<(), crate::files::FileError>;
}
