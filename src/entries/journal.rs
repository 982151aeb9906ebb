//! The journal of batches: what was submitted, so that nothing is paid for twice and nothing that was paid for is lost.
//!
//! It consists of frames in the packs, each on disk before the next step is taken:
//! 1. an intent, before the call that creates a batch: everything needed to store its results, even if the project
//!    changes meanwhile;
//! 2. a submission, once the vendor has confirmed the batch;
//! 3. a closing, after all results are stored: the attempts without a result that each line has behind it.
//!
//! A batch is open while its closing is missing. The actions of an open batch are held: nothing else requests them.
//!
//! A [`Refresh`] replaces outputs that the cache has; it is under way as long as its batches are open, and after a run that
//! was stopped.

use std::collections::{BTreeSet, HashMap, HashSet};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

use super::EntryRecord;
use crate::action::{ActionKey, InputsDocument, Place, Stage};
use base::units::Usd;
use models::{ModelRef, Operation, Price, ProviderSpec};
use store::cache::{BatchNonce, BatchStep, CacheError, Record, StepLog, Store, now_ms};

/// A batch that is about to be created.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BatchIntent {
    pub nonce: BatchNonce,
    /// Milliseconds since 1970 (UTC).
    pub created: u64,
    /// The provider with its limits as they were then.
    pub account: ProviderSpec,
    /// A short fingerprint of the API key: the vendor shows batches only to the account that made them.
    pub fingerprint: u32,
    pub model: ModelRef,
    pub operation: Operation,
    /// The live price of the model that the user declared; `None` means the price table.
    pub price: Option<Price>,
    /// The price in a batch as a fraction of the live price.
    pub ratio: f64,
    /// The newest batch of the account before this one, if the vendor keeps no metadata.
    pub newest: Option<String>,
    /// The refresh that it is part of.
    pub refresh: Option<Refresh>,
    pub lines: Vec<BatchLine>,
}

/// A request of a batch with everything that its entry needs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BatchLine {
    pub key: ActionKey,
    /// From 1, counted across processes.
    pub attempt: u8,
    pub place: Place,
    pub inputs: InputsDocument,
    /// The most that it may cost; `None` if the price is unknown.
    pub reserved: Option<Usd>,
}

impl BatchIntent {
    /// The most that the batch may cost, as far as prices are known.
    pub fn reserved(&self) -> Usd {
        Usd(self
            .lines
            .iter()
            .filter_map(|line| line.reserved)
            .map(|usd| usd.0)
            .sum())
    }

    /// The name of a line at the vendor, which no line of another batch has: the key alone would let an old batch replace
    /// a later attempt.
    pub fn name(&self, line: &BatchLine) -> String {
        let key = URL_SAFE_NO_PAD.encode(line.key.0.0);
        format!("{key}-{:02}-{}", line.attempt, self.nonce)
    }

    /// Writes the intent to the journal. It is on disk when this returns.
    ///
    /// # Errors
    /// As [`Store::put_step`].
    pub async fn write(&self, store: &Store) -> Result<(), CacheError> {
        write_step(store, self.nonce, BatchStep::Intent, self).await
    }

    /// Writes to the journal that the vendor has confirmed the batch and calls it `id`.
    ///
    /// # Errors
    /// As [`Store::put_step`].
    pub async fn write_submitted(&self, store: &Store, id: &str) -> Result<(), CacheError> {
        write_step(store, self.nonce, BatchStep::Submitted, &id).await
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClosedLine {
    pub key: ActionKey,
    /// The attempts without a result that the action has behind it; 0 if this one had a result.
    pub without_result: u8,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClosedBatch {
    pub nonce: BatchNonce,
    /// Milliseconds since 1970 (UTC).
    pub closed: u64,
    pub lines: Vec<ClosedLine>,
}

impl ClosedBatch {
    /// The closing, now, of a batch with these lines; there are none if the vendor never had it.
    pub fn new(nonce: BatchNonce, lines: Vec<ClosedLine>) -> ClosedBatch {
        ClosedBatch {
            nonce,
            closed: now_ms(),
            lines,
        }
    }

    /// Writes the closing to the journal. It is on disk when this returns.
    ///
    /// # Errors
    /// As [`Store::put_step`].
    pub async fn write(&self, store: &Store) -> Result<(), CacheError> {
        write_step(store, self.nonce, BatchStep::Closed, self).await
    }
}

/// A batch that is not closed.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenBatch {
    pub intent: BatchIntent,
    /// The vendor's name for it, once it was confirmed.
    pub id: Option<String>,
}

impl OpenBatch {
    /// The vendor's name for it, for people.
    pub fn place(&self) -> &str {
        self.id.as_deref().unwrap_or("not confirmed")
    }
}

/// All that the cache knows of batches.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Journal {
    pub open: Vec<OpenBatch>,
    pub closed: Vec<ClosedBatch>,
}

impl Journal {
    /// The actions of open batches.
    pub fn held(&self) -> HashSet<ActionKey> {
        self.open
            .iter()
            .flat_map(|batch| &batch.intent.lines)
            .map(|line| line.key)
            .collect()
    }

    /// The refresh that a run is to do, or an earlier one of the same stages that open batches are part of.
    pub fn refresh(&self, wanted: Refresh) -> Refresh {
        let under_way = self
            .open
            .iter()
            .filter_map(|batch| batch.intent.refresh.as_ref());
        let same = under_way.filter(|refresh| refresh.is_of(&wanted.stages));
        let since = same
            .map(|refresh| refresh.since)
            .fold(wanted.since, u64::min);
        Refresh { since, ..wanted }
    }

    /// The number of attempts without a result that each action has behind it.
    pub fn attempts(&self) -> HashMap<ActionKey, u8> {
        let lines = self.closed.iter().flat_map(|batch| &batch.lines);
        lines.map(|line| (line.key, line.without_result)).collect()
    }

    /// The batches that were submitted from a cache.
    ///
    /// # Errors
    /// A record of a batch cannot be read: without it, it is unknown what was already paid for.
    pub fn read(cache: &impl StepLog) -> Result<Journal, CacheError> {
        let mut journal = Journal::default();
        let steps = cache.steps();
        for (nonce, _) in steps.iter().filter(|(_, step)| *step == BatchStep::Closed) {
            journal
                .closed
                .extend(cache.read_step(*nonce, BatchStep::Closed, decode)?);
        }
        for (nonce, _) in steps.iter().filter(|(_, step)| *step == BatchStep::Intent) {
            if journal.closed.iter().any(|closed| closed.nonce == *nonce) {
                continue;
            }
            let id = cache.read_step(*nonce, BatchStep::Submitted, decode::<String>)?;
            let intent = cache.read_step(*nonce, BatchStep::Intent, decode)?;
            journal
                .open
                .extend(intent.map(|intent| OpenBatch { intent, id }));
        }
        journal.open.sort_by_key(|batch| batch.intent.created);
        journal.closed.sort_by_key(|batch| batch.closed);
        Ok(journal)
    }
}

fn decode<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    serde_json::from_slice(bytes).ok()
}

/// Writes a step of a batch. It is on disk when this returns.
async fn write_step(
    store: &Store,
    nonce: BatchNonce,
    step: BatchStep,
    content: &impl Serialize,
) -> Result<(), CacheError> {
    let content = serde_json::to_vec(content)
        .map_err(|error| CacheError::unencoded("the record of a batch", &error.to_string()))?;
    store.put_step(nonce, step, &content).await
}

/// The stages that a run refreshes. This may take several runs, because a run may be stopped, or leave batches open. Each
/// run notes the refresh in its manifest and its batches, so that the next one continues it instead of starting again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refresh {
    stages: BTreeSet<Stage>,
    /// Outputs made since this time are new. Milliseconds since 1970 (UTC).
    since: u64,
}

impl Refresh {
    /// A refresh that begins now.
    pub fn new(stages: BTreeSet<Stage>) -> Refresh {
        Refresh {
            stages,
            since: now_ms(),
        }
    }

    pub fn is_of(&self, stages: &BTreeSet<Stage>) -> bool {
        self.stages == *stages
    }

    pub fn is_empty(&self) -> bool {
        self.stages.is_empty()
    }

    pub fn has(&self, stage: Stage) -> bool {
        self.stages.contains(&stage)
    }

    /// Whether a cached output is to be replaced. One from the future was made by a clock that is ahead, before this refresh.
    pub fn replaces(&self, record: &Record) -> bool {
        record.stage().is_some_and(|stage| self.has(stage))
            && !(self.since..=now_ms()).contains(&record.summary.created)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::Digest;
    use store::cache::{EntryStatus, EntrySummary, FrameLocation, Tag};

    #[test]
    fn a_refresh_replaces_what_was_made_before_it_by_any_clock() {
        let refresh = Refresh::new([Stage::Answer].into());
        let made = |stage: Stage, created: u64| Record {
            key: ActionKey::default(),
            location: FrameLocation {
                pack: 1,
                offset: 0,
                head: 0,
                body: 0,
            },
            raw: Digest::default(),
            raw_len: 0,
            status: EntryStatus::Unparsed,
            summary: EntrySummary {
                created,
                kind: Tag(stage as u8),
                ..EntrySummary::default()
            },
        };
        let (before, after) = (refresh.since - 1, now_ms());
        for (stage, created, is_replaced) in [
            (Stage::Answer, before, true),
            (Stage::Answer, after + 3_600_000, true),
            (Stage::Answer, after, false),
            (Stage::Answer, refresh.since, false),
            (Stage::Judge, before, false),
        ] {
            assert_eq!(refresh.replaces(&made(stage, created)), is_replaced);
        }
    }

    #[test]
    fn attempts_are_those_without_a_result_since_the_last_outcome() {
        let (a, b) = (ActionKey(Digest::hash("a")), ActionKey(Digest::hash("b")));
        let line = |key, without_result| ClosedLine {
            key,
            without_result,
        };
        let closed = |lines| ClosedBatch::new(BatchNonce::new(1, [].into_iter()), lines);
        let journal = Journal {
            closed: vec![
                closed(vec![line(a, 1), line(b, 1)]),
                closed(vec![line(a, 2), line(b, 0)]),
            ],
            ..Journal::default()
        };
        assert_eq!(journal.attempts(), HashMap::from([(a, 2), (b, 0)]));
    }
}
