//! What is measured without a judge: free, deterministic, and for every cell.
//!
//! These numbers say *where* a fact was lost, which a judge cannot. Pure functions on texts and token counts that
//! are handed in; a context that only its provider can read gives `None`, never 0. Deliberately absent: models.

mod abstention;
mod attribution;
mod cell;
mod constraint;
mod context;
mod denial;
mod entries;
mod invented;
mod depth;
mod fabrication;
mod needed;
mod headings;
#[cfg(test)]
mod literal_cases;
mod overclaim;
mod prose;
mod refetch;
mod states;
mod survival;

pub use abstention::{abstains, asserts};
pub use attribution::{FactClass, stated_as_current};
pub use cell::{FactOutcome, Measured, ProbeMeasure};
pub use constraint::{Rule, RuleFinder, RulePosition, RuleSurvival, language_of};
pub use context::{ContextFacts, ContextProbe, ContextShares, FactInContext};
pub use denial::{asks_for_rejection, is_denied};
pub use depth::Depth;
pub use entries::{ContextEntries, ContextEntry};
pub use fabrication::unknown_names;
pub use headings::{Headings, prompt_headings};
pub use invented::{InventedReferences, KnownReferences};
pub use needed::{
    NeedState, NeededAtPoint, NeededRecall, NeededReference, RecallCaveat, ReferenceSource, SessionReferences,
};
pub use overclaim::AnswerWhenLost;
pub use prose::ProseEntries;
pub use refetch::{DEFAULT_PROBES, FETCH_OVERHEAD, Refetch, break_even, refetch, smallest_holders, tokens_per_task};
pub use survival::{compression_ratio, presence, share};

#[cfg(test)]
mod needed_tests;
