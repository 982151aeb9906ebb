//! The part of the matrix that this process runs: its number, chains and folders.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use crate::parts::{Assignment, Engine, PartNumber, PartRecord};
use crate::pipeline::Pipeline;
use crate::results::{Label, part_folders};
use store::remote::{GivenRemote, RemoteMode};

/// What a process does in a matrix that runs in parts.
#[derive(Clone, Copy, Debug)]
pub enum PartRequest {
    /// Runs a part, and pushes its outputs.
    Run(NumberedPart),
    /// Makes the results from what this many parts pushed. Asks no model.
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

    /// The remote with the mode that is needed: a part writes to it, a merge only reads.
    pub(super) fn remote(self, given: GivenRemote) -> GivenRemote {
        let mode = match self {
            PartRequest::Run(_) => RemoteMode::Write,
            PartRequest::Merge(_) => RemoteMode::Read,
        };
        GivenRemote {
            mode: Some(mode),
            ..given
        }
    }
}

/// A part by its number, with the engine that gave it.
#[derive(Clone, Copy, Debug)]
pub struct NumberedPart {
    pub number: PartNumber,
    pub engine: Option<Engine>,
    /// Whether the part may use the whole limits of the providers; otherwise the parts divide them.
    pub whole_limits: bool,
}

impl NumberedPart {
    /// The number of processes that divide the limits of the providers.
    pub fn sharers(self) -> Option<NonZeroU32> {
        (!self.whole_limits).then_some(self.number.count())
    }
}

/// A part with its chains of the matrix.
#[derive(Debug)]
pub struct PartOfRun {
    /// The record of the part in the manifest.
    pub record: PartRecord,
    assignment: Assignment,
    /// The project's cache, which is read in addition to the part's own cache. It is never locked, because on a shared
    /// file system all parts read it.
    project_cache: PathBuf,
}

impl PartOfRun {
    /// Restricts `pipeline` to the chains of the part, and sets the part's cache and results folder.
    pub fn restrict(pipeline: &mut Pipeline, part: NumberedPart, label: &Label) -> PartOfRun {
        let NumberedPart { number, engine, .. } = part;
        let assignment = Assignment::new(pipeline, number.count());
        let [results, cache] = part_folders(&pipeline.results, label, number);
        pipeline.part = Some(assignment.part(number).chains);
        pipeline.results = results;
        let project_cache = std::mem::replace(&mut pipeline.cache, cache);
        let record = PartRecord {
            number,
            assignment: assignment.digest(),
            engine,
        };
        PartOfRun {
            record,
            assignment,
            project_cache,
        }
    }

    /// The project's cache.
    pub fn project_cache(&self) -> &Path {
        &self.project_cache
    }

    /// The part's share of the estimated work, the money and the requests, from 0 to 1.
    pub fn share(&self) -> f64 {
        self.assignment.share(self.record.number)
    }

    /// The work of the largest part divided by the mean of all parts.
    pub fn largest_to_mean(&self) -> f64 {
        self.assignment.largest_to_mean()
    }

    /// The number of chains of the part; a chain is a method on a fixture.
    pub fn chains(&self) -> usize {
        self.assignment.part(self.record.number).chains.len()
    }

    /// The number of chains of the whole matrix.
    pub fn chains_of_all(&self) -> usize {
        self.assignment.chains()
    }
}
