//! The main result of a result set: what one sentence says of it, as values. `report` words it.
//!
//! No order is claimed between methods whose intervals overlap, a retention is given only where it is defined, and of an
//! incomplete set only that it is incomplete.

mod change;
mod levels;
mod lost;

use serde::{Deserialize, Serialize};

pub use change::{AnswererAgreement, EditNote, MainChange, MethodChange};
pub use levels::{MainLevels, MethodLevel};
pub use lost::{QuestionChange, first_questions};

use super::files::manifest::{Manifest, Outcome};
use super::summary::Summary;
use base::locale::Locale;

/// `headline` in JSON: the main result, and the sentence that says it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Headline {
    /// What came out; `kind` and `values` are stable.
    #[serde(flatten)]
    pub result: MainResult,
    /// The language of `text`.
    pub locale: Locale,
    /// The sentence; its wording may change between versions.
    pub text: String,
}

/// The main result of a result set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "values", rename_all = "snake_case")]
pub enum MainResult {
    /// Too much is missing to say more.
    Incomplete(MissingCells),
    /// Ceiling and floor are too close for any figure between them.
    Unscaled(NarrowScale),
    /// Built-in rules stood in for a model.
    Sample,
    /// What methods keep of the score of the whole transcript.
    Retention(MainLevels),
    /// Scores, where retention is not defined.
    Scores(MainLevels),
    /// The recall of what sessions needed later, where nothing was graded.
    Recall(MainLevels),
    /// Nothing was measured.
    Empty,
    /// Against a baseline: something got better and nothing worse.
    Improved(MainChange),
    /// Something got worse and nothing better.
    Regressed(MainChange),
    /// Some methods got better and some worse.
    Mixed(MainChange),
    /// Something changed, and neither was shown.
    NoEvidence(MainChange),
    /// The same answers with the same grades.
    Unchanged(MainChange),
}

/// How much of a set there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissingCells {
    /// Cells with a grade.
    pub judged: u64,
    /// Cells that failed.
    pub failed: u64,
    /// All that the design asks for.
    pub expected: u64,
}

/// A scale on which figures mean nothing.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct NarrowScale {
    /// The score of the whole transcript minus that of an empty context, in points.
    pub difference: f64,
}

/// The share of missing cells above which nothing else is said.
const MAX_MISSING: f64 = 0.1;

impl MainResult {
    /// The main result of a set, or of its comparison if there is one.
    pub fn new(summary: &Summary, manifest: &Manifest) -> MainResult {
        if let Some(missing) = too_many_missing(summary, manifest) {
            return MainResult::Incomplete(missing);
        }
        let primary = primary_answerer(manifest);
        match &summary.comparison {
            Some(comparison) => change::main_change(comparison, manifest),
            None if summary.scale.cause.is_some() => {
                MainResult::Unscaled(NarrowScale { difference: summary.scale.difference.unwrap_or_default() })
            }
            None if summary.lexical => MainResult::Sample,
            None => levels::main_levels(summary, primary),
        }
    }
}

/// The first declared answerer, whose results are the main ones; `None` where nothing is answered.
fn primary_answerer(manifest: &Manifest) -> Option<&str> {
    manifest.design.answerers.first().map(|asked| asked.name.as_str())
}

fn too_many_missing(summary: &Summary, manifest: &Manifest) -> Option<MissingCells> {
    let counts = || summary.methods.values().map(|method| method.cells);
    let judged = counts().map(|cells| cells.judged).sum();
    let failed = counts().map(|cells| cells.failed).sum();
    let missing: u64 = counts().map(|cells| cells.missing).sum();
    let expected = judged + failed + missing;
    let was_stopped = matches!(manifest.outcome, Outcome::Budget | Outcome::Pending | Outcome::Interrupted);
    let is_sparse = (failed + missing) as f64 > MAX_MISSING * expected as f64;
    (was_stopped || is_sparse).then_some(MissingCells { judged, failed, expected })
}
