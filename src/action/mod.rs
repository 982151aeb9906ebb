//! Actions: the stages, what a unit of work is, which inputs determine its output, and the key made from them.
//!
//! Invariant: what is hashed is what is run. The inputs in an [`InputsDocument`] are made from a `Work` and a
//! `Repetition` and from nothing else. Names, paths, limits, timeouts and API keys need no exclusion from the hash,
//! because a `Work` does not hold them (or, for the provider's name, the one function that visits a `Work` skips it).
//! This module does no I/O and reads no clock.

mod inputs;
mod place;
mod template;
mod value;
mod work;

pub use inputs::{Input, InputsDocument, Repetition, Source, memo_key};
pub use place::{CellCoordinate, Place};
pub use store::{ActionKey, Digest, DigestBuilder};
pub use template::{
    BuiltInTemplate, INSTRUCTIONS, Prompt, SEARCHES_LEFT, Template, TemplateFault, Variable,
    at_paragraph,
};
pub use value::{ComposedValue, ComposedValueBuilder, InputValue};
pub use work::{
    BuiltInStrategy, Computation, ModelRequest, Program, ReplyShape, RequestTurn, Work,
};

use base::named_enum;

named_enum! {
    /// A stage of the pipeline, as it is in keys.
    pub enum Stage {
        Probes = "probes",
        /// Makes a context from a transcript.
        Compress = "compress",
        /// Answers a question from a context.
        Answer = "answer",
        /// Scores an answer by criteria.
        Judge = "judge",
    }
}

impl Stage {
    /// The version of how the work of a stage is made from its inputs. Raising it makes older outputs stale.
    pub fn schema(self) -> u16 {
        match self {
            Stage::Probes | Stage::Compress | Stage::Answer => 1,
            // 2: the context is before the question.
            Stage::Judge => 2,
        }
    }
}

named_enum! {
    /// A stage as it is reported: the judges' self-test and regrading are counted apart from grading.
    pub enum StageName {
        /// Not part of a run.
        Probes = "probes",
        Compress = "compress",
        Answer = "answer",
        Selftest = "selftest",
        Judge = "judge",
        /// Grades answers again to check a judge: of a baseline where a comparison needs it, of the run with a fact made false.
        Regrade = "regrade",
    }
}

impl StageName {
    /// The stages of every run, in order.
    pub const OF_RUN: [StageName; 4] = [
        StageName::Compress,
        StageName::Answer,
        StageName::Selftest,
        StageName::Judge,
    ];

    /// The stage that is in the keys of its actions.
    pub fn stage(self) -> Stage {
        match self {
            StageName::Probes => Stage::Probes,
            StageName::Compress => Stage::Compress,
            StageName::Answer => Stage::Answer,
            StageName::Selftest | StageName::Judge | StageName::Regrade => Stage::Judge,
        }
    }
}

impl From<Stage> for StageName {
    fn from(stage: Stage) -> StageName {
        match stage {
            Stage::Probes => StageName::Probes,
            Stage::Compress => StageName::Compress,
            Stage::Answer => StageName::Answer,
            Stage::Judge => StageName::Judge,
        }
    }
}
