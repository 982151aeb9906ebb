//! Results: rows, the manifest, the folder of a label, summaries and comparisons.
//!
//! A result set stands by itself: its manifest holds the design (methods, weights, probes, digests), its rows the
//! scores, and summaries and comparisons are computed from these two alone. Invariants: the order of rows changes
//! nothing; the same rows give the same bytes; what is unknown is null, never 0.
//!
//! Deliberately absent: cache and network, times outside the manifest, and wording, which is the business of `report`.

mod context_row;
mod row;
mod failure;
mod design;
mod manifest;
mod label;
mod lines_file;
mod rows_file;
mod keys_file;
mod folder;
mod label_folders;
mod label_writer;
mod find;
mod shard_folders;

mod grade;
mod scores;
mod set;
mod selection;
mod level;
mod age;
mod answers;
mod shares;
mod economy;
mod needed;
mod cells;
mod noise;
mod scale;
mod groups;
mod spending;
mod summary;
mod run_files;
mod figures;
mod worst;

mod constraint_row;
mod constraints;
mod comparable;
mod changes;
mod edits;
mod design_change;
mod reliability;
mod compare;
mod gate;

/// Values by name, in the order of tables. Written out as an object.
pub type Ordered<T, Name = String> = indexmap::IndexMap<Name, T>;

pub use age::SurvivalByAge;
pub use cells::CellCounts;
pub use changes::{Differences, FixtureChanges, Flip, ProbeFact, SameContexts};
pub use comparable::{Incomparable, Incompatibility};
pub use compare::{Comparison, MethodComparison, Side, compare};
pub use constraint_row::ConstraintRow;
pub use constraints::{ConstraintShares, ConstraintSummary};
pub use context_row::{AgedReference, ContextFigures, ContextNeeded, ContextReference, ContextRow};
pub use design::{CriterionWeight, Design, FixtureInfo, MethodInfo, ModelInfo, ProbeInfo, ProgramInfo, RubricInfo};
pub use design_change::DesignChange;
pub use economy::{Economy, FactCounts, PROBES_OF_TASK};
pub use edits::ChangedLines;
pub use failure::{Blame, FailedAction, FailureLocation};
pub use figures::{figures_digest, take_figures};
pub use find::{
    all_sets, find_results, incomplete_beside, labels, labels_compared_with, lock_reports, newest, open_results,
    open_side, remove_results,
};
pub use folder::{FolderError, ResultsFolder, names};
pub use gate::{Regression, newly_failing, regressions, underpowered_methods};
pub use keys_file::KeysFile;
pub use label::{Label, LabelError};
pub use label_folders::LabelLockError;
pub use label_writer::{LabelWriter, LabelWriterError, Publication};
pub use level::{OVERALL, ScoreEstimate, ScoreEstimates};
pub use lines_file::{LinesFile, RowsForm};
pub use manifest::{
    Caveats, ComparisonScope, FORMAT, ForecastTotals, ImportedEntries, Manifest, MergedShard, Outcome, RemoteUse,
    StageCounts, Unused, WriterEntries,
};
pub use needed::{CompressionCost, IdenticalContexts, NeededPoints, NeededSummary};
pub use noise::JudgeQuality;
pub use reliability::{FailedChain, Reliability};
pub use row::{ROWS, Row, RowCost, RowKeys, ScoredRow, Unread};
pub use rows_file::{FEW, FinishedRows, ListedRow, RowError, Rows, RowsFile};
pub use run_files::{RunFile, run_files};
pub use scale::{NarrowScaleCause, ScaleCheck};
pub use set::{MethodVariant, ProbeAt, ResultSet, SetError};
pub use shard_folders::{ShardFolder, find_shards};
pub use shares::{Overclaim, Share, ShareDifference};
pub use spending::{difference_variances, mean_call_costs};
pub use summary::{Cycle, Lowest, MethodSummary, Summary, Weakest, summarize};
pub use worst::{WorstProbe, worst_rows};

#[cfg(test)]
pub(crate) mod fakes;
#[cfg(test)]
mod folder_tests;
#[cfg(test)]
mod compare_tests;
#[cfg(test)]
mod summary_tests;
