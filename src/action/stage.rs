//! Stages: as keys name them, and as people are shown them.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A stage of the pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// Generation of probes.
    Probes,
    /// Transcript to context.
    Compress,
    /// Context and question to answer.
    Answer,
    /// Answer to criterion scores.
    Judge,
}

impl Stage {
    /// All stages, in the order of the pipeline.
    pub const ALL: [Stage; 4] = [Stage::Probes, Stage::Compress, Stage::Answer, Stage::Judge];

    /// The stage's name in pipelines, tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Probes => "probes",
            Stage::Compress => "compress",
            Stage::Answer => "answer",
            Stage::Judge => "judge",
        }
    }

    /// The version of how this stage's work is made from its inputs. Raised when that changes, so that what was
    /// made the old way is unseen.
    pub fn schema(self) -> u16 {
        match self {
            Stage::Probes | Stage::Compress | Stage::Answer | Stage::Judge => 1,
        }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A stage as people are shown it: the judge's self-test stands apart from grading.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StageName {
    /// Generation of probes; no part of a run.
    Probes,
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
            StageName::Probes => "probes",
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
            Stage::Probes => StageName::Probes,
            Stage::Compress => StageName::Compress,
            Stage::Answer => StageName::Answer,
            Stage::Judge => StageName::Judge,
        }
    }
}
