//! The part of the matrix that this process runs: its chains and folders.

use std::path::{Path, PathBuf};

use crate::parts::PartNumber;
use crate::pipeline::Pipeline;
use crate::results::{Label, part_folders};

/// A part with its chains of the matrix.
#[derive(Debug)]
pub struct PartOfRun {
    pub number: PartNumber,
    /// The number of its chains; a chain is a method on a fixture.
    pub chains: usize,
    /// The number of chains of the whole matrix.
    pub chains_of_all: usize,
    /// The project's cache, which is read in addition to the part's own cache. It is never locked, because on a shared
    /// file system all parts read it.
    project_cache: PathBuf,
}

impl PartOfRun {
    /// Restricts `pipeline` to the chains of the part, and sets the part's cache and results folder.
    pub fn restrict(pipeline: &mut Pipeline, number: PartNumber, label: &Label) -> PartOfRun {
        let chains = number.chains(pipeline);
        let [results, cache] = part_folders(&pipeline.results, label, number);
        pipeline.results = results;
        let part = PartOfRun {
            number,
            chains: chains.len(),
            chains_of_all: pipeline.fixtures.len() * pipeline.methods.len(),
            project_cache: std::mem::replace(&mut pipeline.cache, cache),
        };
        pipeline.part = Some(chains);
        part
    }

    /// The project's cache.
    pub fn project_cache(&self) -> &Path {
        &self.project_cache
    }
}
