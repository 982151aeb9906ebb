//! What is measured without a judge: free, deterministic, and for every cell.
//!
//! These numbers say *where* a fact was lost, which a judge cannot. Pure functions on texts and token counts that
//! are handed in; a context that only its provider can read gives `None`, never 0. Deliberately absent: models.

mod cell;
mod context;
mod headings;
mod overclaim;
mod survival;

pub use cell::{FactOutcome, Measured, ProbeMeasure};
pub use context::{ContextFacts, ContextProbe, ContextShares, FactInContext};
pub use headings::Headings;
pub use overclaim::AnswerWhenLost;
pub use survival::{FactClass, compression_ratio, presence, refetch, share};
