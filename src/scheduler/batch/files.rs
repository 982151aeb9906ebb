//! Requests of the file lane: they wait to be exported to a file, and then for its imported results.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use super::submit::MAX_LINES;
use super::tracked::{EndedLine, LineEnd, Waiting, request_of};
use crate::action::{ActionKey, ModelRequest};
use crate::cache::{
    BatchClosing, BatchIntent, BatchNonce, CacheError, ClosedBatch, EntryStatus, JournalRecord, LineName, Lookup,
    OpenBatch, Store,
};
use crate::scheduler::breakers::CircuitBreakers;
use crate::scheduler::execute::Executor;
use crate::scheduler::job::Job;
use crate::scheduler::options::{ExportOptions, ExportOutcome};
use models::{Lane, ModelRef};

/// The tasks that wait to be exported, and what was exported.
pub(super) struct FileLane<'r, 'e> {
    executor: &'r Executor<'e>,
    waiting: Vec<Waiting>,
    exported: Option<ExportOutcome>,
    not_exported: u64,
}

impl<'r, 'e> FileLane<'r, 'e> {
    pub(super) fn new(executor: &'r Executor<'e>) -> FileLane<'r, 'e> {
        FileLane { executor, waiting: Vec::new(), exported: None, not_exported: 0 }
    }

    /// Whether the request of a job goes through a file.
    pub(super) fn takes(job: &Job) -> bool {
        request_of(job).is_some_and(|request| request.lane == Lane::File)
    }

    pub(super) fn holds(&self, key: &ActionKey) -> bool {
        self.waiting.iter().any(|waiting| waiting.key() == *key)
    }

    pub(super) fn add(&mut self, waiting: Waiting) {
        self.waiting.push(waiting);
    }

    /// What was exported, if that was asked for.
    pub(super) fn exported(&self) -> Option<ExportOutcome> {
        self.exported.clone()
    }

    /// Requests that wait to be exported.
    pub(super) fn not_exported(&self) -> u64 {
        self.not_exported
    }

    /// Reads replies that were imported, and could not be used by the cells that need them.
    pub(super) async fn read_imported(&mut self, breakers: &CircuitBreakers) -> Vec<EndedLine> {
        let (mut ended, mut rest) = (Vec::new(), Vec::new());
        for waiting in std::mem::take(&mut self.waiting) {
            let record = self.executor.store.find(&waiting.key());
            let is_unread = record.is_some_and(|record| record.status == EntryStatus::Unparsed);
            let read = if is_unread { self.executor.read_stored(&waiting.job, breakers).await } else { None };
            match read {
                Some(result) => ended.push(EndedLine { waiting, end: LineEnd::Executed(result) }),
                None => rest.push(waiting),
            }
        }
        self.waiting = rest;
        ended
    }

    /// The requests to one model, as many as a file may have. `None` if it is not known which model, or if a file was
    /// written before.
    pub(super) fn take_chosen(&mut self, options: &ExportOptions) -> Option<Vec<Waiting>> {
        if self.exported.is_some() {
            return None;
        }
        let mut models: BTreeMap<ModelRef, usize> = BTreeMap::new();
        for request in self.waiting.iter().filter_map(Waiting::request) {
            *models.entry(request.model_ref()).or_default() += 1;
        }
        let chosen = match (&options.model, models.len()) {
            (Some(model), _) => Some(model.clone()),
            (None, 0 | 1) => models.keys().next().cloned(),
            (None, _) => {
                self.exported = Some(ExportOutcome::SeveralModels(models));
                return None;
            }
        };
        let is_chosen = |waiting: &mut Waiting| waiting.request().map(ModelRequest::model_ref) == chosen;
        let mut group: Vec<Waiting> = self.waiting.extract_if(.., is_chosen).collect();
        self.waiting.extend(group.split_off(group.len().min(MAX_LINES)));
        Some(group)
    }

    /// Notes the batch that was written to a file, if there was anything to write.
    pub(super) fn note_written(&mut self, intent: Option<&BatchIntent>) {
        self.exported = Some(intent.map_or(ExportOutcome::Nothing, |intent| ExportOutcome::Written {
            nonce: intent.nonce,
            requests: intent.lines.len(),
        }));
    }

    /// What waits is not exported in this run.
    pub(super) fn leave(&mut self) -> impl Iterator<Item = Waiting> {
        self.not_exported += self.waiting.len() as u64;
        self.waiting.drain(..)
    }
}

/// Finishes exports that were killed: if the file has its name, the requests are out; otherwise no engine can have
/// them.
pub(super) async fn finish_exports(store: &Store, open: &mut Vec<OpenBatch>) -> Result<(), CacheError> {
    for mut batch in std::mem::take(open) {
        if batch.is_unfinished_file() {
            let (nonce, file) = (batch.intent.nonce, batch.intent.file.clone().unwrap_or_default());
            if !has_lines_of(&file, nonce) {
                let closed = ClosedBatch::without_lines(nonce, BatchClosing::NotCreated);
                store.record_batch(JournalRecord::Closed(&closed)).await?;
                continue;
            }
            let id = batch.id.insert(file.display().to_string());
            store.record_batch(JournalRecord::Submitted { nonce, id }).await?;
        }
        open.push(batch);
    }
    Ok(())
}

/// Whether a file begins with a request of this batch.
fn has_lines_of(file: &Path, nonce: BatchNonce) -> bool {
    #[derive(serde::Deserialize)]
    struct NamedLine {
        custom_id: String,
    }
    let mut first = String::new();
    let read = File::open(file).and_then(|file| BufReader::new(file).read_line(&mut first));
    let line = read.ok().and_then(|_| serde_json::from_str::<NamedLine>(&first).ok());
    line.and_then(|line| line.custom_id.parse::<LineName>().ok()).is_some_and(|name| name.nonce == nonce)
}
