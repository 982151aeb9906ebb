//! How a run ended.

use super::budget::BudgetReached;
use super::doors::TrippedBreaker;
use super::shelf::ReportedModels;
use crate::plan::Estimate;

/// How a run ended.
#[derive(Clone, Debug, Default)]
pub struct RunOutcome {
    /// The budget stopped it.
    pub budget: Option<BudgetReached>,
    /// The user interrupted it.
    pub interrupted: bool,
    /// Why the cache could keep nothing more, if it could not.
    pub broken: Option<String>,
    /// Whom every further call would have failed at.
    pub closed: Vec<TrippedBreaker>,
    /// Judges that failed their self-test.
    pub weak_judges: Vec<String>,
    /// Judges whose self-test could not be completed.
    pub untested: Vec<UntestedJudge>,
    /// Cells that were not begun: offline, over budget, interrupted, or nobody to ask.
    pub skipped: u64,
    /// Who answered.
    pub models: ReportedModels,
    /// What was to come when the first stale action was met: nothing where all was cached, `None` where it could not be
    /// estimated.
    pub forecast: Option<Estimate>,
    /// Cells of which nothing was told, by stage: a fault of the program.
    pub unaccounted: Vec<String>,
}

/// A judge whose self-test could not be completed.
#[derive(Clone, Debug)]
pub struct UntestedJudge {
    /// The judge's name.
    pub judge: String,
    /// Why cases could not be asked.
    pub why: String,
}
