//! The part of the matrix that this process runs: its number, its chains, its folders.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use crate::parts::{Assignment, Engine, PartNumber, PartRecord};
use crate::pipeline::Pipeline;
use crate::results::{Label, PartFolder};
use store::remote::{GivenRemote, RemoteMode};

/// What a process does of a matrix that runs in parts.
#[derive(Clone, Copy, Debug)]
pub enum PartRequest {
    /// Runs one of them, and pushes what it makes.
    Run(NumberedPart),
    /// Makes the results of so many from what they pushed. Asks no model.
    Merge(NonZeroU32),
}

impl PartRequest {
    /// The part that is run.
    pub fn number(self) -> Option<NumberedPart> {
        match self {
            PartRequest::Run(number) => Some(number),
            PartRequest::Merge(_) => None,
        }
    }

    /// The remote as this needs it: a part pushes, a merge reads.
    pub(super) fn remote(self, given: GivenRemote) -> GivenRemote {
        let mode = match self {
            PartRequest::Run(_) => RemoteMode::Write,
            PartRequest::Merge(_) => RemoteMode::Read,
        };
        GivenRemote { mode: Some(mode), ..given }
    }
}

/// A part by its number, with the engine that gave it.
#[derive(Clone, Copy, Debug)]
pub struct NumberedPart {
    pub number: PartNumber,
    pub engine: Option<Engine>,
    /// Whether the providers' limits are not divided among the parts.
    pub whole_limits: bool,
}

impl NumberedPart {
    /// Processes that the providers' limits are divided among.
    pub fn sharers(self) -> Option<NonZeroU32> {
        (!self.whole_limits).then_some(self.number.of())
    }
}

/// A part with its chains of the matrix.
#[derive(Debug)]
pub struct PartOfRun {
    /// What the manifest says of it.
    pub record: PartRecord,
    assignment: Assignment,
    /// The project's cache, which is read beside the part's own and never locked: on a shared file system all parts
    /// read it.
    project_cache: PathBuf,
}

impl PartOfRun {
    /// Leaves `pipeline` the chains of the part, and gives it the part's cache and results folder.
    pub fn restrict(pipeline: &mut Pipeline, part: NumberedPart, label: &Label) -> PartOfRun {
        let NumberedPart { number, engine, .. } = part;
        let assignment = Assignment::new(pipeline, number.of());
        let folder = PartFolder::new(&pipeline.results, label, number);
        pipeline.part = Some(assignment.part(number).chains);
        folder.path().clone_into(&mut pipeline.results);
        let project_cache = std::mem::replace(&mut pipeline.cache, folder.cache());
        let record = PartRecord { number, assignment: assignment.digest(), engine };
        PartOfRun { record, assignment, project_cache }
    }

    /// The project's cache.
    pub fn project_cache(&self) -> &Path {
        &self.project_cache
    }

    /// Its part of the estimated work, of the money and of the requests, from 0 to 1.
    pub fn share(&self) -> f64 {
        self.assignment.share(self.record.number)
    }

    /// The work of the largest part, in means of all.
    pub fn largest_to_mean(&self) -> f64 {
        self.assignment.largest_to_mean()
    }

    /// Its chains (a method on a fixture each).
    pub fn chains(&self) -> usize {
        self.assignment.part(self.record.number).chains.len()
    }

    /// The chains of the whole matrix.
    pub fn chains_of_all(&self) -> usize {
        self.assignment.chains()
    }
}
