//! Results: rows, the manifest, the folder of a label, summaries and comparisons.
//!
//! A result set stands by itself: its manifest holds the design (methods, weights, probes, digests), its rows the
//! scores, and summaries and comparisons are computed from these two alone. Invariants: the order of rows changes
//! nothing; the same rows give the same bytes; what is unknown is null, never 0.
//!
//! From below: `files` reads and writes a results folder, `result_set` has its scores in memory, `aggregates` computes
//! the figures of each method, `comparison` sets two result sets against each other, and `summary` puts all of it
//! together.
//!
//! Deliberately absent: cache and network, times outside the manifest, and wording, which is the business of `report`, except
//! for the headings of figures.

mod aggregates;
mod comparison;
mod files;
mod result_set;

mod figures;
mod human;
mod main_result;
mod summary;
mod worst;

/// Values by name, in the order of tables. Written out as an object.
pub type Ordered<T, Name = String> = indexmap::IndexMap<Name, T>;

pub use aggregates::planted::{PlantedComparison, PlantedSummary, PlantedTest};
pub use aggregates::ranking::{RankedMethod, Ranking};
pub use aggregates::scale::{ExcludedDimension, ExclusionReason, NarrowScaleCause};
pub use aggregates::shares::{Economy, OpenBookSummary, Share, ShareDifference};
pub use comparison::changes::{
    Collapse, Differences, FixtureChanges, Flip, LostConstraint, ProbeFact,
};
pub use comparison::comparable::Incomparable;
pub use comparison::gate::{
    Regression, drifted_losses, is_drift, measures_nothing, newly_failing, probability,
    regressions, signed, unconfirmed_losses, underpowered_methods,
};
pub use comparison::reliability::Reliability;
pub use comparison::values::{
    Comparison, CostChange, CostChanges, DriftCheck, MethodChange, MethodComparison,
};
pub use comparison::{Side, compare, require_comparable};
pub use figures::{FIGURES, Figure, FigureKind, FigureTableId, Measured, Unit};
pub use files::design::{Design, FixtureInfo, MethodInfo, ModelInfo, ProbeInfo, RubricInfo};
pub use files::edits::{FindTextEdit, TextEdit};
pub use files::find::{
    all_sets, incomplete_beside, labels, lock_reports, lock_results, newest, open_results,
    open_side, previous, remove_results, unfinished_refresh,
};
pub use files::folder::{ResultsFolder, names};
pub use files::label_folders::{LabelWriter, part_folders};
pub use files::lines::{FEW, LinesFile, Rows};
pub use files::manifest::{
    AnswerScores, Caveats, ComparisonScope, FORMAT, Manifest, Outcome, ReadingCheck, Regraded,
    Regradings, StageCounts, Unused,
};
pub use files::row::{
    ContextRow, OpenBook, PlantedRow, ROWS, Row, RowCost, RowKeys, RowSearch, RowStep,
};
pub use files::{FolderError, Label};
pub use human::{AgreementResult, GradedSheet, JudgeAgreement, blind_sheet, compare_judges};
pub use main_result::{
    EditNote, QuestionChange, changes_without_verdict, edit_note, first_questions, main_result,
    not_comparable,
};
pub use result_set::selection::{OVERALL, ScoreEstimate};
pub use result_set::{AnswerRows, ProbePlace, ResultSet};
pub use summary::{Headline, MainResult, MethodSummary, Summary, Trend, summarize};
pub use worst::{LossCause, WorstProbe, worst_rows};

#[cfg(test)]
pub(crate) mod fakes;
#[cfg(test)]
mod summary_tests;
