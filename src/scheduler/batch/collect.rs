//! Collecting: polls a batch, stores its results line by line as they arrive, and closes it. Everything that this needs
//! is in the intent, so a batch can be collected after the project was edited.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use bytes::Bytes;
use futures::future::join_all;

use super::tracked::{LONGEST_BATCH, LONGEST_KEPT, Tracked, confirmation_wait, results_wait};
use super::tracked::{UnusableReply, read_reply};
use crate::action::{ActionKey, Stage};
use crate::entries::{BatchIntent, BatchLine, ClosedBatch, ClosedLine, EntryMeta};
use crate::plan::Action;
use crate::scheduler::execute::Executor;
use base::units::{Usage, Usd};
use models::{
    self, BatchClient, BatchEnding, BatchResult, BatchSearch, BatchStatus, CallFailure, Dialect,
    ErrorClass, Lane, ModelRef, Prices, read_billing,
};
use store::cache::{CacheError, Lookup, Record, now_ms};

/// The outcomes of the lines of a closed batch; empty if it was never created.
pub(super) type Outcomes = HashMap<ActionKey, LineResult>;

/// The outcome of one line.
#[derive(Clone, Debug)]
pub(super) struct LineResult {
    pub(super) usage: Option<Usage>,
    /// What was billed; `None` if it is unknown.
    pub(super) charge: Option<Usd>,
    pub(super) outcome: LineOutcome,
}

/// What follows for the action of a line.
#[derive(Clone, Debug)]
pub(super) enum LineOutcome {
    /// A reply is stored, or a usable one was there before.
    Stored,
    /// Its reply was not stored: it cannot be used, and the action has an output.
    Unkept(UnusableReply),
    /// It would fail again.
    Failed(CallFailure),
    /// An attempt without a result: 429, 5xx, expired, cancelled, or absent from the results.
    Unfinished,
}

impl LineResult {
    /// A line that has no reply and costs nothing.
    fn without_reply(outcome: LineOutcome) -> LineResult {
        LineResult {
            usage: None,
            charge: Some(Usd(0.0)),
            outcome,
        }
    }

    /// The attempts without a result that the action of this line has behind it.
    pub(super) fn attempts_without_result(&self, line: &BatchLine) -> u8 {
        match self.outcome {
            LineOutcome::Unfinished => line.attempt,
            _ => 0,
        }
    }
}

/// Collects batches that are open.
#[derive(Clone, Copy)]
pub(super) struct BatchCollector<'c, 'e> {
    pub(super) executor: &'c Executor<'e>,
    /// The actions of this run that wait for batches.
    pub(super) waiting: &'c HashMap<ActionKey, Action>,
}

impl BatchCollector<'_, '_> {
    /// Asks the vendor about a batch. If it has ended, stores its results and closes it; `None` if it stays open.
    pub(super) async fn poll(
        &self,
        tracked: &mut Tracked,
        known: &[String],
    ) -> Result<Option<Outcomes>, CacheError> {
        (tracked.was_polled, tracked.is_stuck) = (true, false);
        if age_of(&tracked.batch.intent) >= LONGEST_KEPT {
            return self.close_gone(tracked).await.map(Some);
        }
        let Some(client) = connect(tracked) else {
            return Ok(None);
        };
        let id = match &tracked.batch.id {
            Some(id) => id.clone(),
            None => match self.confirm(&client, tracked, known).await? {
                BatchSearch::Found(id) => id,
                BatchSearch::Undecided => return Ok(None),
                BatchSearch::Absent => return Ok(Some(Outcomes::new())),
            },
        };
        let status = match client.status(&id).await {
            Ok(status) => status,
            Err(failure)
                if failure.class == ErrorClass::NotFound
                    && age_of(&tracked.batch.intent) >= LONGEST_BATCH =>
            {
                return self.close_gone(tracked).await.map(Some);
            }
            Err(failure) => {
                note_failure(tracked, failure);
                return Ok(None);
            }
        };
        match &status.ending {
            None => {
                tracked.note = format!(
                    "{} of {} done",
                    status.done,
                    tracked.batch.intent.lines.len()
                );
                Ok(None)
            }
            Some(BatchEnding::ResultsGone) => self.close_gone(tracked).await.map(Some),
            Some(BatchEnding::Refused(failure)) => {
                let outcomes = self.close_refused(tracked, failure).await?;
                client.delete(&status).await;
                Ok(Some(outcomes))
            }
            Some(BatchEnding::Done) => self.collect(&client, tracked, &status).await,
        }
    }

    /// Closes a batch that the vendor refused: all of its lines have failed.
    async fn close_refused(
        &self,
        tracked: &Tracked,
        failure: &CallFailure,
    ) -> Result<Outcomes, CacheError> {
        let failed = LineResult::without_reply(LineOutcome::Failed(failure.clone()));
        let lines = tracked.batch.intent.lines.iter();
        let outcomes: Outcomes = lines.map(|line| (line.key, failed.clone())).collect();
        self.close(tracked, &outcomes).await?;
        Ok(outcomes)
    }

    /// Closes a batch whose results the vendor no longer has. Its lines fail: they were billed, so only another run pays for
    /// them again.
    async fn close_gone(&self, tracked: &Tracked) -> Result<Outcomes, CacheError> {
        let collector = LineCollector::new(*self, &tracked.batch.intent);
        let mut outcomes = Outcomes::new();
        collector.fill_missing(&mut outcomes, true).await?;
        self.close(tracked, &outcomes).await?;
        Ok(outcomes)
    }

    /// Looks for a batch whose creation was not confirmed. It is absent once it can no longer turn up; then it is closed.
    async fn confirm(
        &self,
        client: &BatchClient,
        tracked: &mut Tracked,
        known: &[String],
    ) -> Result<BatchSearch, CacheError> {
        let BatchIntent {
            nonce,
            created,
            account,
            newest,
            ..
        } = &tracked.batch.intent;
        let nonce = *nonce;
        let found = client
            .find(&nonce.to_string(), newest.as_deref(), known)
            .await;
        match &found {
            Ok(BatchSearch::Found(id)) => {
                tracked
                    .batch
                    .intent
                    .write_submitted(self.executor.store, id)
                    .await?;
                tracked.batch.id = Some(id.clone());
            }
            Ok(BatchSearch::Absent) => {
                let has_metadata = account.dialect != Dialect::Anthropic;
                let patience = confirmation_wait(account.limits.batch_poll, has_metadata);
                if Duration::from_millis(now_ms().saturating_sub(*created)) < patience {
                    tracked.note = "not confirmed by the provider".to_owned();
                    return Ok(BatchSearch::Undecided);
                }
                ClosedBatch::new(nonce, Vec::new())
                    .write(self.executor.store)
                    .await?;
            }
            Ok(BatchSearch::Undecided) => {
                tracked.note =
                    "not confirmed: it may be one of the provider's open batches".to_owned();
            }
            Err(failure) => tracked.note.clone_from(&failure.message),
        }
        Ok(found.unwrap_or(BatchSearch::Undecided))
    }

    /// Stores the results of a batch that has ended, and closes it.
    async fn collect(
        &self,
        client: &BatchClient,
        tracked: &mut Tracked,
        status: &BatchStatus,
    ) -> Result<Option<Outcomes>, CacheError> {
        let intent = &tracked.batch.intent;
        let collector = LineCollector::new(*self, intent);
        let is_final = has_final_results(intent, status);
        let mut read = collector.read(client, status).await?;
        if is_gone(&read) || is_final && matches!(read, Ok((_, 1..))) {
            // The first reading may have ended early.
            read = collector.read(client, status).await?;
        }
        if is_gone(&read) {
            return self.close_gone(tracked).await.map(Some);
        }
        let (mut outcomes, missing) = match read {
            Ok(read) => read,
            Err(failure) => {
                note_failure(tracked, failure);
                return Ok(None);
            }
        };
        if missing > 0 && !is_final {
            tracked.note = format!(
                "its results lack {missing} replies that the provider counts; they are read again later"
            );
            return Ok(None);
        }
        collector.fill_missing(&mut outcomes, missing > 0).await?;
        self.close(tracked, &outcomes).await?;
        // What is missing may be wanted from the provider's support.
        if missing == 0 {
            client.delete(status).await;
        }
        Ok(Some(outcomes))
    }

    /// Records the outcome of all lines.
    async fn close(&self, tracked: &Tracked, outcomes: &Outcomes) -> Result<(), CacheError> {
        let intent = &tracked.batch.intent;
        let lines = intent.lines.iter().filter_map(|line| {
            let result = outcomes.get(&line.key)?;
            Some(ClosedLine {
                key: line.key,
                without_result: result.attempts_without_result(line),
            })
        });
        let closed = ClosedBatch::new(intent.nonce, lines.collect());
        closed.write(self.executor.store).await
    }
}

/// A client with the key that a batch was submitted with. If there is none, notes why.
fn connect(tracked: &mut Tracked) -> Option<BatchClient> {
    let BatchIntent {
        account,
        fingerprint,
        ..
    } = &tracked.batch.intent;
    let why = match BatchClient::new(account) {
        Ok(client) if client.fingerprint() == *fingerprint => return Some(client),
        Ok(_) => {
            let variable = account
                .api_key
                .as_ref()
                .map_or("the key", |variable| &*variable.0);
            format!("submitted with another key than {variable} has now")
        }
        Err(failure) => failure.message,
    };
    tracked.note_stuck(why);
    None
}

/// How long ago a batch was created.
fn age_of(intent: &BatchIntent) -> Duration {
    Duration::from_millis(now_ms().saturating_sub(intent.created))
}

fn note_failure(tracked: &mut Tracked, failure: CallFailure) {
    match failure.class {
        class if class.is_terminal() => tracked.note_stuck(failure.message),
        _ => tracked.note = failure.message,
    }
}

/// Whether the vendor does not have the results that it has announced.
fn is_gone<T>(read: &Result<T, CallFailure>) -> bool {
    matches!(read, Err(failure) if failure.class == ErrorClass::NotFound)
}

/// Whether the results of a batch that has ended are all that will come.
fn has_final_results(intent: &BatchIntent, status: &BatchStatus) -> bool {
    let ended_for = status
        .ended_for
        .unwrap_or(age_of(intent).saturating_sub(LONGEST_BATCH));
    ended_for >= results_wait(intent.account.limits.batch_poll)
}

/// Stores the results of one batch.
struct LineCollector<'c, 'e> {
    batches: BatchCollector<'c, 'e>,
    intent: &'c BatchIntent,
    /// The lines by their names at the vendor.
    lines: HashMap<String, &'c BatchLine>,
    prices: Prices,
}

impl<'c, 'e> LineCollector<'c, 'e> {
    fn new(batches: BatchCollector<'c, 'e>, intent: &'c BatchIntent) -> LineCollector<'c, 'e> {
        let declared = intent.price.map(|price| (intent.model.clone(), price));
        LineCollector {
            batches,
            intent,
            lines: intent
                .lines
                .iter()
                .map(|line| (intent.name(line), line))
                .collect(),
            prices: Prices::new(declared.into_iter().collect::<BTreeMap<_, _>>()),
        }
    }

    /// Reads and stores the results. Also returns how many replies the vendor counts that are missing.
    async fn read(
        &self,
        client: &BatchClient,
        status: &BatchStatus,
    ) -> Result<Result<(Outcomes, u64), CallFailure>, CacheError> {
        let mut outcomes = Outcomes::new();
        let read = client
            .results(status, async |results| {
                self.store(results, &mut outcomes).await
            })
            .await;
        let missing = match read {
            Ok(missing) => missing?,
            Err(failure) => return Ok(Err(failure)),
        };
        // Where every line has a result, the vendor counts in another way.
        let is_whole = outcomes.len() == self.intent.lines.len();
        Ok(Ok((outcomes, if is_whole { 0 } else { missing })))
    }

    /// Stores some results side by side: each waits for the disk. If a line has several results, the first counts.
    /// Results of lines that were not submitted are ignored.
    async fn store(
        &self,
        results: Vec<BatchResult>,
        outcomes: &mut Outcomes,
    ) -> Result<(), CacheError> {
        let mut batch: Vec<(&BatchLine, BatchResult)> = Vec::new();
        for result in results {
            let line = self.lines.get(&result.id).filter(|line| {
                !outcomes.contains_key(&line.key)
                    && batch.iter().all(|(other, _)| other.key != line.key)
            });
            match line {
                Some(line) => batch.push((*line, result)),
                None => tracing::warn!(
                    id = result.id,
                    "a result line is not of this batch, or is there twice"
                ),
            }
        }
        let stored = join_all(batch.into_iter().map(|(line, result)| async move {
            Ok::<_, CacheError>((line.key, self.store_line(line, result).await?))
        }));
        for result in stored.await {
            let (key, result) = result?;
            outcomes.insert(key, result);
        }
        Ok(())
    }

    /// Notes the outcome of the lines that are missing from the results. `may_be_billed` if the vendor counts replies to
    /// some of them.
    async fn fill_missing(
        &self,
        outcomes: &mut Outcomes,
        may_be_billed: bool,
    ) -> Result<(), CacheError> {
        for line in self
            .intent
            .lines
            .iter()
            .filter(|line| !outcomes.contains_key(&line.key))
            .collect::<Vec<_>>()
        {
            let outcome = match self.stored_since(line) {
                // Stored by an earlier collection, or by a process that was killed.
                Some(record) => LineResult {
                    usage: Some(record.summary.usage),
                    charge: record.summary.cost,
                    outcome: LineOutcome::Stored,
                },
                None if may_be_billed => self.lose(line).await?,
                None => self.unfinished(line, "the results lack it").await?,
            };
            outcomes.insert(line.key, outcome);
        }
        Ok(())
    }

    /// A usable output that came later than the batch.
    fn stored_since(&self, line: &BatchLine) -> Option<Record> {
        let record = self.batches.executor.store.find(&line.key)?;
        (record.is_usable() && record.summary.created >= self.intent.created).then_some(record)
    }

    async fn store_line(
        &self,
        line: &BatchLine,
        result: BatchResult,
    ) -> Result<LineResult, CacheError> {
        match result.reply {
            Ok(body) if body.is_empty() => self.lose(line).await,
            Ok(body) => self.store_reply(line, body, result.request_id).await,
            Err(failure) if failure.class.is_retryable() => {
                self.unfinished(line, &failure.message).await
            }
            Err(failure) => self.fail(line, failure).await,
        }
    }

    /// Stores a reply. A usable output that came later than the batch stays, and an earlier one does if the reply cannot
    /// be used. The vendor keeps the reply until the batch is closed, so it may be read before it is stored.
    async fn store_reply(
        &self,
        line: &BatchLine,
        body: Bytes,
        request_id: Option<String>,
    ) -> Result<LineResult, CacheError> {
        let billing = read_billing(self.intent.account.dialect, &body);
        let live = self.prices.cost(&self.intent.model, &billing.usage);
        let charge = live.map(|usd| Usd(usd.0 * self.intent.ratio));
        let (is_kept, unkept) = match (self.stored_since(line), self.batches.waiting.get(&line.key))
        {
            (Some(_), _) => (false, None),
            (None, Some(action)) => {
                let unkept = self.unkept(action, &body);
                (unkept.is_none(), unkept)
            }
            (None, None) => (self.may_replace(line, &body), None),
        };
        if is_kept {
            let mut meta = EntryMeta {
                request_id,
                ..self.meta(line)
            };
            meta.summary.models.answered = billing.model;
            (meta.summary.usage, meta.summary.cost) = (billing.usage, charge);
            self.batches
                .executor
                .store
                .put_reply(line.key, &meta.header(), body)
                .await?;
        }
        Ok(LineResult {
            usage: Some(billing.usage),
            charge,
            outcome: unkept.map_or(LineOutcome::Stored, LineOutcome::Unkept),
        })
    }

    /// Why a reply to an action that has an output is not stored, if so.
    fn unkept(&self, action: &Action, body: &[u8]) -> Option<UnusableReply> {
        let executor = self.batches.executor;
        let request = action.request().filter(|_| executor.has_output(action))?;
        let dialect = self.intent.account.dialect;
        read_reply(executor, action, request, dialect, body).err()
    }

    /// Whether a reply that no action of this run waits for may be stored. Only the action could tell whether it keeps the
    /// contract of its stage, so this looks for an answer alone.
    fn may_replace(&self, line: &BatchLine, body: &[u8]) -> bool {
        if self
            .batches
            .executor
            .store
            .find(&line.key)
            .is_none_or(|record| !record.is_usable())
        {
            return true;
        }
        let read = models::read(
            self.intent.account.dialect,
            self.intent.operation,
            body,
            None,
        );
        read.is_ok_and(|reply| !reply.truncated || line.inputs.stage == Stage::Answer)
    }

    /// Notes an attempt without a result. After the last one the line has failed.
    async fn unfinished(&self, line: &BatchLine, why: &str) -> Result<LineResult, CacheError> {
        let attempts = u32::from(line.attempt);
        if attempts < self.intent.account.limits.max_attempts {
            return Ok(LineResult::without_reply(LineOutcome::Unfinished));
        }
        let message =
            format!("{attempts} batches ended without a reply to it, the last because: {why}");
        self.fail(
            line,
            CallFailure {
                class: ErrorClass::Transient,
                message,
                hint: None,
                attempts,
            },
        )
        .await
    }

    /// Fails a line whose reply may be billed and did not come: this run does not pay for it again.
    async fn lose(&self, line: &BatchLine) -> Result<LineResult, CacheError> {
        let message = "the results of its batch have no reply to it, and it may be billed";
        let hint = "run again to send the request again and pay for it again";
        let (class, attempts) = (ErrorClass::Transient, u32::from(line.attempt));
        let failure = CallFailure {
            class,
            message: message.to_owned(),
            hint: Some(hint.to_owned()),
            attempts,
        };
        Ok(LineResult {
            charge: None,
            ..self.fail(line, failure).await?
        })
    }

    async fn fail(&self, line: &BatchLine, failure: CallFailure) -> Result<LineResult, CacheError> {
        let (header, class) = (self.meta(line).header(), failure.class.name());
        self.batches
            .executor
            .store
            .fail(line.key, &header, class, &failure.message)
            .await?;
        Ok(LineResult::without_reply(LineOutcome::Failed(failure)))
    }

    fn meta(&self, line: &BatchLine) -> EntryMeta {
        let ModelRef { provider, model } = &self.intent.model;
        let asked = format!("{provider}/{model}");
        let mut meta = EntryMeta {
            attempts: u32::from(line.attempt),
            lane: Lane::Batch,
            ..EntryMeta::new(line.place.clone(), line.inputs.clone(), Some(asked))
        };
        meta.summary.latency_ms = meta.summary.created.saturating_sub(self.intent.created);
        meta.in_dialect(self.intent.account.dialect)
    }
}
