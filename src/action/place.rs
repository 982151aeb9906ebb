//! The names of places, for people, result rows and entries: of the cells of the matrix, and of all other work of a run.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Stage;
use super::inputs::Repetition;
use sessions::transcript::Point;
use store::Digest;

/// A cell by the names of its parts, for people and result rows. The parts of later stages are absent.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CellCoordinate {
    pub fixture: Arc<str>,
    /// The point's number, from 1.
    pub point: Point,
    pub method: Arc<str>,
    /// The run, from 1.
    pub run: u32,
    /// The number of the planted variant of the fixture.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probe: Option<Arc<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answerer: Option<Arc<str>>,
    /// Number of the answer, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer_n: Option<u32>,
    /// The step of an open-book answer, from 2; `None` for the first step and for whole answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub judge: Option<Arc<str>>,
    /// Number of the judgement, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub judge_n: Option<u32>,
}

/// Where work is done, by names: in the matrix, in a judge's self-test, in a regrading, or in the generation of probes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Place {
    /// A cell of the matrix.
    Cell(CellCoordinate),
    /// A case of a judge's self-test.
    Selftest {
        /// The judge's name.
        judge: String,
        /// The case's name.
        case: String,
    },
    /// An answer of a baseline that is graded again.
    Regrading {
        /// The judge's name.
        judge: String,
        /// Which answer.
        answer: String,
    },
    /// Probes are generated at a point, or one of them is asked without a context.
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

impl Place {
    /// The cell of the matrix, if it is one.
    pub fn cell(&self) -> Option<&CellCoordinate> {
        match self {
            Place::Cell(coordinate) => Some(coordinate),
            Place::Selftest { .. } | Place::Regrading { .. } | Place::Generation { .. } => None,
        }
    }

    /// The fixture, unless it is a place of a judge.
    pub fn fixture(&self) -> Option<&str> {
        match self {
            Place::Cell(cell) => Some(&cell.fixture),
            Place::Generation { fixture, .. } => Some(fixture),
            Place::Selftest { .. } | Place::Regrading { .. } => None,
        }
    }

    /// Identifies this place for a stage; the latest action of a place is stored under it. The numbers of a cell are not
    /// in it, the repetition is: runs of a deterministic action are one place.
    pub fn digest(&self, stage: Stage, repetition: Repetition) -> Digest {
        let place = match self {
            Place::Cell(cell) => Place::Cell(CellCoordinate {
                run: 0,
                answer_n: None,
                judge_n: None,
                ..cell.clone()
            }),
            other => other.clone(),
        };
        Digest::of_json(&(stage, repetition, place))
    }

    /// The cell of a recorded session, if it is one. A failure in a planted session affects no other cell.
    pub fn recorded_cell(&self) -> Option<&CellCoordinate> {
        self.cell().filter(|cell| cell.variant.is_none())
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Cell(coordinate) => coordinate.fmt(f),
            Place::Selftest { judge, case } => {
                f.write_str(&format!("self-test of {judge} · {case}"))
            }
            Place::Regrading { judge, answer } => {
                f.write_str(&format!("regrading by {judge} · {answer}"))
            }
            Place::Generation {
                fixture,
                point,
                probe: None,
            } => f.write_str(&format!("probes for {fixture} · point {point}")),
            Place::Generation {
                fixture,
                point,
                probe: Some(probe),
            } => f.write_str(&format!(
                "{fixture} · point {point} · {probe} without a context"
            )),
        }
    }
}

impl fmt::Display for CellCoordinate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&format!(
            "{} · {} · run {} · point {}",
            self.fixture, self.method, self.run, self.point.0
        ))?;
        if let Some(variant) = self.variant {
            write!(f, " · planted {variant}")?;
        }
        if let Some(probe) = &self.probe {
            f.write_str(&format!(" · probe {probe}"))?;
        }
        if let (Some(answerer), Some(n)) = (&self.answerer, self.answer_n) {
            write!(f, " · {answerer} {n}")?;
        }
        if let Some(step) = self.step {
            f.write_str(&format!(" · step {step}"))?;
        }
        if let (Some(judge), Some(n)) = (&self.judge, self.judge_n) {
            write!(f, " · {judge} {n}")?;
        }
        Ok(())
    }
}
