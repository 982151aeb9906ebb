//! The page of the rows that a run has written so far.

use super::contexts::{find_contexts, page_contexts};
use super::project::open_snapshot;
use super::publish::{gather, page};
use crate::pipeline::{Matrix, Pipeline};
use crate::plan::Preparer;
use crate::report::html::{self, ChunkCache, PageInput, ReadRows};
use crate::results::{ResultsFolder, names, summarize};

/// The results of a run in progress.
#[derive(Clone, Debug)]
pub struct PartialResults {
    pub pipeline: Pipeline,
    pub folder: ResultsFolder,
}

impl PartialResults {
    /// A number that changes when there is more to show: the length of the file of rows, which only grows.
    pub fn version(&self) -> u64 {
        std::fs::metadata(self.folder.file(names::CELLS)).map_or(0, |found| found.len())
    }

    /// The page of that version; `None` while there is nothing to show.
    pub fn page(&self, version: u64) -> Option<String> {
        let PartialResults { pipeline, folder } = self;
        let rows = folder.few_rows().ok()?;
        let manifest = folder.manifest().ok()?;
        let design = manifest.design.clone();
        let set = gather(folder, manifest, rows.as_deref()).ok()?;
        let summary = summarize(&set, None);
        let rows = rows.unwrap_or_default();
        let matrix = Matrix::new(pipeline);
        let preparer = Preparer::new(pipeline, &matrix);
        // The run writes to the cache meanwhile, so this reads it as another process would.
        let cache = open_snapshot(&pipeline.cache).ok()?;
        let found = find_contexts(&rows, &design, preparer, &cache);
        let read_rows: &ReadRows<'_> = &|range| folder.rows_at(range);
        let input = page(pipeline, &summary, &set.manifest, (&rows, read_rows));
        let chunks: &(dyn ChunkCache + Sync) = &cache;
        let contexts = page_contexts(&found, preparer, &cache);
        html::render(&PageInput { contexts, chunks, live: Some(version), ..input }).ok()
    }
}
