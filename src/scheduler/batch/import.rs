//! Importing: stores an engine's results of an exported file, and closes the batches that they complete.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};

use super::collect::{Collector, Outcomes, record_closing};
use crate::cache::{BatchIntent, BatchNonce, CacheError, LineName, LineOutcome, OpenBatch, Store};
use crate::scheduler::options::RunError;
use base::files::FileError;
use base::units::{Usd, add_known};
use models::{BatchResult, Dialect, read_batch_line};

/// Lines that are stored side by side.
const CHUNK: usize = 256;

/// What was imported.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ImportedResults {
    /// The batches that the files have results of.
    pub batches: Vec<ImportedBatch>,
    /// Lines of no open batch.
    pub foreign: u64,
    /// Lines of a request that another line had answered.
    pub repeated: u64,
    /// Lines that are no results: the file and the number of the first, and how many.
    #[serde(skip)]
    pub unreadable: Option<(PathBuf, u64, u64)>,
}

/// What came of the lines of one batch.
#[derive(Clone, Debug, Serialize)]
pub struct ImportedBatch {
    #[serde(rename = "batch", serialize_with = "as_text")]
    pub nonce: BatchNonce,
    pub stored: u64,
    /// Without a reply, and not to be asked again.
    pub failed: u64,
    /// To be asked again.
    pub unfinished: u64,
    /// What was billed; `None` where it is unknown.
    #[serde(rename = "usd")]
    pub charge: Option<Usd>,
    pub is_closed: bool,
}

/// The nonce as `batch ls` shows it; the journal keeps its bytes.
fn as_text<S: Serializer>(nonce: &BatchNonce, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(nonce)
}

/// Stores the results in `files`. A batch whose lines they have is closed; with `keep_open` only if they have all.
///
/// # Errors
/// A file cannot be read, or the cache not written to. What is stored by then stays; the files can be imported again.
pub async fn import_results(store: &Store, files: &[PathBuf], keep_open: bool) -> Result<ImportedResults, RunError> {
    let open = store.journal()?.open.into_iter().filter(|batch| batch.intent.file.is_some()).collect::<Vec<_>>();
    let mut importing = Importing {
        batches: open.iter().map(|batch| ImportingBatch::new(store, batch)).collect(),
        found: ImportedResults::default(),
    };
    for file in files {
        importing.read(file).await?;
    }
    let Importing { batches, mut found } = importing;
    for batch in batches.into_iter().filter(|batch| !batch.outcomes.is_empty()) {
        found.batches.push(batch.close(store, keep_open).await?);
    }
    Ok(found)
}

struct Importing<'b> {
    batches: Vec<ImportingBatch<'b>>,
    found: ImportedResults,
}

struct ImportingBatch<'b> {
    intent: &'b BatchIntent,
    collector: Collector<'b>,
    outcomes: Outcomes,
}

impl Importing<'_> {
    async fn read(&mut self, path: &Path) -> Result<(), RunError> {
        let fault = |error| FileError::new("read", path, error);
        let mut file = BufReader::new(File::open(path).map_err(fault)?);
        let (mut line, mut number, mut chunk) = (Vec::new(), 0, Vec::new());
        loop {
            line.clear();
            if file.read_until(b'\n', &mut line).map_err(fault)? == 0 {
                return Ok(self.store(chunk).await?);
            }
            number += 1;
            let text = line.trim_ascii();
            if text.is_empty() {
                continue;
            }
            let name = |result: &BatchResult| result.id.parse::<LineName>().ok();
            match read_batch_line(Dialect::OpenaiChat, text) {
                Ok(result) => match name(&result) {
                    Some(name) => chunk.push((name.nonce, result)),
                    None => self.found.foreign += 1,
                },
                Err(_) => {
                    let (_, _, count) = self.found.unreadable.get_or_insert_with(|| (path.to_owned(), number, 0));
                    *count += 1;
                }
            }
            if chunk.len() >= CHUNK {
                self.store(std::mem::take(&mut chunk)).await?;
            }
        }
    }

    async fn store(&mut self, mut chunk: Vec<(BatchNonce, BatchResult)>) -> Result<(), CacheError> {
        for batch in &mut self.batches {
            let own = chunk.extract_if(.., |(nonce, _)| *nonce == batch.intent.nonce).map(|(_, result)| result);
            self.found.repeated += batch.collector.store(own.collect(), &mut batch.outcomes).await?;
        }
        self.found.foreign += chunk.len() as u64;
        Ok(())
    }
}

impl<'b> ImportingBatch<'b> {
    fn new(store: &'b Store, OpenBatch { intent, .. }: &'b OpenBatch) -> ImportingBatch<'b> {
        ImportingBatch { intent, collector: Collector::new(store, intent), outcomes: Outcomes::new() }
    }

    async fn close(mut self, store: &Store, keep_open: bool) -> Result<ImportedBatch, CacheError> {
        let is_complete = self.intent.lines.iter().all(|line| self.outcomes.contains_key(&line.key));
        let is_closed = is_complete || !keep_open;
        if is_closed {
            self.collector.fill_missing(&mut self.outcomes).await?;
            record_closing(store, self.intent, &self.outcomes).await?;
        }
        let count = |is: fn(LineOutcome) -> bool| self.outcomes.values().filter(|line| is(line.outcome)).count() as u64;
        let stored = count(|outcome| outcome == LineOutcome::Stored);
        let failed = count(|outcome| outcome == LineOutcome::Failed);
        Ok(ImportedBatch {
            nonce: self.intent.nonce,
            stored,
            failed,
            unfinished: self.intent.lines.len() as u64 - stored - failed,
            charge: self.outcomes.values().map(|line| line.charge).reduce(add_known).unwrap_or(Some(Usd(0.0))),
            is_closed,
        })
    }
}
