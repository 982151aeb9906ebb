//! The batch lane of a run: which requests go into batches, and what a run does while batches are open. `collect`
//! polls open batches and stores their results, and `tracked` reads these.
//!
//! The event loop offers each stale action when it would begin (`take`), and calls `advance` when nothing is ready and
//! nothing is under way: then as much is pending as can be put into one batch. So a batch is as large as the matrix
//! allows. The loop stands still while open batches are polled; a run that does not wait polls them once.
//!
//! A request that a batch did not get to goes into the next one; one whose reply breaks its contract goes live instead,
//! because another batch would take another day. Cases of self-tests go live, because cells wait for their verdict.
//!
//! The requests are uploaded first; the intent is on disk before the call that creates a batch; that it was created is
//! recorded afterwards. Each step is in the journal of the cache before the next is taken, so a process that is killed
//! between any two of them leaves a batch that the next one continues with. Batches of earlier processes and of this one
//! are treated alike.
//!
//! Limits: a batch has requests to one model; its results are read when it has ended, all at once; and what it may cost
//! stays reserved until then.

mod collect;
mod tracked;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use crate::action::{ActionKey, ModelRequest, StageName};
use crate::entries::{BatchIntent, BatchLine, ClosedBatch, Journal, OpenBatch};
use crate::plan::{Action, FailedAction, Task};
use crate::scheduler::budget::{BudgetReached, Reservation};
use crate::scheduler::execute::Executor;
use crate::scheduler::options::{ExecutionError, OpenBatchNote, RunOutcome, StopRequest};
use base::units::Usd;
use collect::{BatchCollector, LineOutcome, Outcomes};
use models::{
    BatchClient, BatchRequest, CallFailure, ErrorClass, HttpRequest, Lane, Limits, ModelRef,
    Operation, PreparedBatch, ProviderSpec,
};
use store::cache::{BatchNonce, CacheError, EntryStatus, Lookup, now_ms};
pub(super) use tracked::EndedLine;
use tracked::{Tracked, poll_wait};
use tracked::{UnusableReply, read_stored};

/// Lines of one batch. The vendors accept more; this limit bounds the memory of a process and the cost of a lost batch.
const MAX_LINES: usize = 10_000;
/// Bytes of requests in one batch, less than half of what either vendor takes.
const MAX_BYTES: usize = 80 << 20;

/// Whether an action grades a case of a self-test.
fn is_case(action: &Action) -> bool {
    action.task.stage() == StageName::Selftest
}

/// A request that is ready to be submitted, with what is reserved for it.
struct BuiltRequest {
    action: Action,
    attempt: u8,
    request: HttpRequest,
    worst: Option<Usd>,
    reservation: Reservation,
}

/// The batches of a run, and the actions that wait for them.
pub(super) struct BatchLane<'r, 'e> {
    executor: &'r Executor<'e>,
    open: Vec<Tracked>,
    /// Actions of open batches: nothing else requests them.
    pub(super) held: HashSet<ActionKey>,
    /// Attempts without a result, of this and earlier processes.
    attempts: HashMap<ActionKey, u8>,
    /// Actions in open batches that this run waits for.
    waiting: HashMap<ActionKey, Action>,
    /// Actions to be submitted.
    pending: Vec<Action>,
    /// Actions that go live now, each with the replies to it that cannot be used and were not stored.
    live: HashMap<ActionKey, u32>,
    reached: Option<BudgetReached>,
    /// Models that were refused a batch because of a limit, with the most lines of their next one.
    limited: HashMap<ModelRef, usize>,
    /// What is to be said of the last such refusal.
    pub(super) refusal: Option<String>,
    /// Requests that this run has submitted.
    pub(super) submitted_requests: u64,
    polls: u32,
}

impl<'r, 'e> BatchLane<'r, 'e> {
    /// A lane without batches; `open` adds the batches of earlier processes.
    pub(super) fn new(executor: &'r Executor<'e>) -> BatchLane<'r, 'e> {
        BatchLane {
            executor,
            open: Vec::new(),
            held: HashSet::new(),
            attempts: HashMap::new(),
            waiting: HashMap::new(),
            pending: Vec::new(),
            live: HashMap::new(),
            reached: None,
            limited: HashMap::new(),
            refusal: None,
            submitted_requests: 0,
            polls: 0,
        }
    }

    /// Reads the journal. What open batches may cost counts against the budget of this run.
    pub(super) async fn open(&mut self) -> Result<(), CacheError> {
        let journal = Journal::read(self.executor.store)?;
        self.held = journal.held();
        self.attempts = journal.attempts();
        let budget = self.executor.budget;
        self.open.extend(journal.open.into_iter().map(|batch| {
            let reserved = budget.reserve_unconditionally(batch.intent.reserved());
            Tracked::new(batch, vec![reserved])
        }));
        Ok(())
    }

    /// Whether a cell waits for the batch that holds its action.
    pub(super) fn waits_for(&self, action: &Action) -> bool {
        !is_case(action) && self.held.contains(&action.key) && !self.executor.options.offline
    }

    /// Whether a case is skipped because its action is held: two judges may ask the same model alike. Then this run has
    /// no verdict, and no cell waits for it.
    pub(super) fn excludes(&self, action: &Action) -> bool {
        is_case(action) && self.held.contains(&action.key)
    }

    /// Takes an action whose request goes into a batch, or that is held. Returns one that goes live.
    pub(super) fn take(&mut self, mut action: Action) -> Option<Action> {
        if self.waits_for(&action) {
            self.waiting.insert(action.key, action);
            return None;
        }
        if !self.is_batched(&action) {
            action.unusable = self.live.get(&action.key).copied().unwrap_or(0);
            return Some(action);
        }
        self.pending.push(action);
        None
    }

    /// Whether the request of an action goes into a batch.
    fn is_batched(&self, action: &Action) -> bool {
        // Tasks outside of the matrix are waited for.
        let is_awaited = is_case(action) || matches!(action.task, Task::Side(_));
        let lane = action.request().map(|request| request.lane);
        if is_awaited || lane != Some(Lane::Batch) || self.live.contains_key(&action.key) {
            return false;
        }
        // Its reply broke the contract: a batch would take another day to find out whether the next one keeps it.
        let record = self.executor.store.find(&action.key);
        !record.is_some_and(|record| matches!(record.status, EntryStatus::Malformed { .. }))
    }

    /// Adds the outcome of the batches.
    pub(super) fn report(&self, outcome: &mut RunOutcome) {
        let notes = self.open.iter().map(|tracked| OpenBatchNote {
            nonce: tracked.batch.intent.nonce.to_string(),
            lines: tracked.batch.intent.lines.len(),
            note: tracked.note.clone(),
        });
        outcome.batches = notes.collect();
        outcome.budget = outcome.budget.or(self.reached);
    }

    /// Continues when nothing is ready and nothing is under way: polls, submits, and waits if the run does. Returns the
    /// actions that no longer wait for a batch; none if there is nothing more to do in this run.
    pub(super) async fn advance(&mut self) -> Result<Vec<EndedLine>, CacheError> {
        let mut stop = self.executor.stop.clone();
        loop {
            if self.executor.options.offline || *stop.borrow() >= StopRequest::Drain {
                return Ok(Vec::new());
            }
            let mut ended = self.poll_all().await?;
            ended.extend(self.submit_pending().await?);
            if !ended.is_empty() {
                self.polls = 0;
                return Ok(ended);
            }
            let may_wait =
                self.executor.options.waits_for_batches && *stop.borrow() < StopRequest::Drain;
            if !may_wait || self.open.iter().all(|tracked| tracked.is_stuck) {
                return Ok(Vec::new());
            }
            let wait = poll_wait(self.shortest_first_wait(), self.polls);
            self.polls += 1;
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                Ok(()) = stop.changed() => {}
            }
        }
    }

    /// An action that is begun again, live.
    fn begin_live(&mut self, action: Action) -> EndedLine {
        self.live.entry(action.key).or_insert(0);
        (action, None)
    }

    /// An action whose request failed, which may stop other requests that would fail in the same way. If its batch, of so
    /// many lines, was over a limit, it waits for a smaller one.
    fn failed(&mut self, action: Action, failure: &CallFailure, lines: usize) -> EndedLine {
        if let (ErrorClass::RateLimited, Some(request)) = (failure.class, action.request()) {
            let model = request.model_ref();
            self.refusal = Some(format!(
                "a batch of {lines} requests to {model} is over a limit of the account: they wait for smaller batches, one \
                 at a time, or for the next run ({failure})"
            ));
            self.limited.insert(model, lines / 2);
            return (action, None);
        }
        let failure = self.executor.failed_call(&action, failure);
        self.failed_line(action, failure)
    }

    /// The actions of a batch that was not created.
    fn refused(&mut self, actions: Vec<Action>, failure: &CallFailure) -> Vec<EndedLine> {
        let lines = actions.len();
        let failed = actions.into_iter();
        failed
            .map(|action| self.failed(action, failure, lines))
            .collect()
    }

    fn failed_line(&self, action: Action, failure: FailedAction) -> EndedLine {
        if let Some(request) = action.request() {
            self.executor.breakers.record(request, &failure);
        }
        (action, Some(Err(ExecutionError::from(failure))))
    }

    /// Takes the actions that still wait, whether or not they were submitted: this run has no output of them.
    pub(super) fn drain(&mut self) -> Vec<Action> {
        let submitted = self.waiting.drain().map(|(_, action)| action);
        submitted.chain(self.pending.drain(..)).collect()
    }

    /// The first wait of the provider that is polled most often.
    fn shortest_first_wait(&self) -> Duration {
        let accounts = self
            .open
            .iter()
            .map(|tracked| &tracked.batch.intent.account);
        let waits = accounts.map(|account| account.limits.batch_poll);
        waits.min().unwrap_or(Limits::BATCH_POLL)
    }

    /// Polls every open batch: on each call in a run that waits, otherwise once.
    async fn poll_all(&mut self) -> Result<Vec<EndedLine>, CacheError> {
        let known: Vec<String> = self
            .open
            .iter()
            .filter_map(|tracked| tracked.batch.id.clone())
            .collect();
        let mut ended = Vec::new();
        for mut tracked in std::mem::take(&mut self.open) {
            let collector = BatchCollector {
                executor: self.executor,
                waiting: &self.waiting,
            };
            let is_due = (self.executor.options.waits_for_batches || !tracked.was_polled)
                && *self.executor.stop.borrow() == StopRequest::No;
            let outcomes = match is_due {
                true => collector.poll(&mut tracked, &known).await?,
                false => None,
            };
            match outcomes {
                Some(outcomes) => ended.extend(self.settle(tracked, &outcomes).await?),
                None => self.open.push(tracked),
            }
        }
        Ok(ended)
    }

    /// Settles the cost of a batch that was closed, and reads the outputs that its tasks wait for.
    async fn settle(
        &mut self,
        tracked: Tracked,
        outcomes: &Outcomes,
    ) -> Result<Vec<EndedLine>, CacheError> {
        let Tracked {
            batch,
            reservations,
            ..
        } = tracked;
        let billed = outcomes.values().map(|line| (line.usage, line.charge));
        self.executor
            .budget
            .settle_batch(reservations, spent_for(&batch.intent, outcomes), billed);
        let mut ended = Vec::new();
        for line in &batch.intent.lines {
            self.held.remove(&line.key);
            let result = outcomes.get(&line.key);
            let without_result = result.map_or(0, |result| result.attempts_without_result(line));
            self.attempts.insert(line.key, without_result);
            let Some(action) = self.waiting.remove(&line.key) else {
                continue;
            };
            ended.push(match result.map(|result| &result.outcome) {
                Some(LineOutcome::Unkept(reply)) => self.end_unkept(action, reply),
                Some(LineOutcome::Stored) => match read_stored(self.executor, &action).await {
                    Some(result) => (action, Some(result)),
                    None => self.begin_live(action),
                },
                Some(LineOutcome::Failed(failure)) => {
                    self.failed(action, failure, batch.intent.lines.len())
                }
                Some(LineOutcome::Unfinished) | None => (action, None),
            });
        }
        Ok(ended)
    }

    /// What follows from a reply that cannot be used and was not stored.
    fn end_unkept(&mut self, action: Action, reply: &UnusableReply) -> EndedLine {
        if !reply.is_asked_again {
            return self.failed_line(action, *reply.failure.clone());
        }
        self.live.insert(action.key, 1);
        (action, None)
    }

    /// The most lines of the next batch to a model: none while one that is over a limit would be beside another.
    fn most_lines(&self, model: &ModelRef) -> usize {
        let Some(most) = self.limited.get(model) else {
            return MAX_LINES;
        };
        let mut open = self.open.iter().map(|tracked| &tracked.batch.intent.model);
        if open.any(|other| other == model) {
            0
        } else {
            *most
        }
    }

    /// Submits what is pending, model by model.
    async fn submit_pending(&mut self) -> Result<Vec<EndedLine>, CacheError> {
        let (mut groups, mut ended) = (BTreeMap::<ModelRef, Vec<Action>>::new(), Vec::new());
        for action in std::mem::take(&mut self.pending) {
            if let Some(model) = action.request().map(ModelRequest::model_ref) {
                groups.entry(model).or_default().push(action);
            }
        }
        for (model, mut group) in groups {
            while !group.is_empty() {
                let most = self.most_lines(&model);
                if *self.executor.stop.borrow() != StopRequest::No || most == 0 {
                    self.pending.append(&mut group);
                    break;
                }
                let rest = group.split_off(group.len().min(most));
                let part = std::mem::replace(&mut group, rest);
                ended.extend(self.submit(&model, part).await?);
            }
        }
        Ok(ended)
    }

    /// Submits requests to one model to its vendor, in as many batches as they need. Returns the actions that need not wait
    /// for one. What the budget has no room for stays pending.
    async fn submit(
        &mut self,
        model: &ModelRef,
        group: Vec<Action>,
    ) -> Result<Vec<EndedLine>, CacheError> {
        let mut ended = Vec::new();
        let providers = &self.executor.pipeline.providers;
        let Some(spec) = providers.get(&model.provider).cloned() else {
            // The live request names what is wrong.
            ended.extend(group.into_iter().map(|action| self.begin_live(action)));
            return Ok(ended);
        };
        let client = match BatchClient::new(&spec) {
            Ok(client) => client,
            Err(failure) => return Ok(self.refused(group, &failure)),
        };
        for mut built in self.build(group, &spec, &mut ended) {
            while !built.is_empty() {
                let rest = built.split_off(fitting(&built));
                ended.extend(self.create(&client, &spec, model, built).await?);
                built = rest;
            }
        }
        Ok(ended)
    }

    /// Makes the requests and reserves what they may cost, by path and headers: a batch has one of each. Requests with a
    /// common beginning are together, for the vendor's prompt cache.
    fn build(
        &mut self,
        group: Vec<Action>,
        spec: &ProviderSpec,
        ended: &mut Vec<EndedLine>,
    ) -> Vec<Vec<BuiltRequest>> {
        let mut groups: BTreeMap<_, Vec<BuiltRequest>> = BTreeMap::new();
        let mut reached = None;
        for action in group {
            let Some(asked) = action.request() else {
                continue;
            };
            let (request, worst) = match self.executor.batch_request(&action, asked, spec) {
                Ok(made) => made,
                Err(error) => {
                    ended.push((action, Some(Err(error))));
                    continue;
                }
            };
            match self.executor.budget.reserve(worst, worst) {
                Ok(reservation) => {
                    let built = groups
                        .entry((request.path, request.headers.clone()))
                        .or_default();
                    let before = self.attempts.get(&action.key).copied().unwrap_or(0);
                    built.push(BuiltRequest {
                        action,
                        attempt: before.saturating_add(1),
                        request,
                        worst,
                        reservation,
                    });
                }
                Err(limit) => {
                    reached.get_or_insert(limit);
                    self.pending.push(action);
                }
            }
        }
        self.reached = reached.or(self.reached.filter(|_| !self.pending.is_empty()));
        groups
            .values_mut()
            .for_each(|built| built.sort_by(|a, b| a.request.body.cmp(&b.request.body)));
        groups.into_values().collect()
    }

    /// Uploads the requests of a batch to one model. Returns what is to be recorded before the batch is created.
    async fn upload(
        &self,
        client: &BatchClient,
        spec: &ProviderSpec,
        model: &ModelRef,
        built: &[BuiltRequest],
    ) -> Result<(BatchIntent, PreparedBatch), CallFailure> {
        let (newest, created) = (client.newest().await?, now_ms());
        let pipeline = self.executor.pipeline;
        let asked = built.first().and_then(|first| first.action.request());
        let (operation, lane) = asked.map_or((Operation::Generate, Lane::Batch), |request| {
            (request.operation, request.lane)
        });
        let lines = built.iter().map(|built| BatchLine {
            key: built.action.key,
            attempt: built.attempt,
            place: self.executor.place(&built.action),
            inputs: built.action.inputs(pipeline),
            reserved: built.worst,
        });
        let intent = BatchIntent {
            nonce: BatchNonce::new(created, built.iter().map(|built| built.action.key)),
            created,
            account: spec.clone(),
            fingerprint: client.fingerprint(),
            operation,
            price: pipeline.prices.get(model).copied(),
            ratio: self.executor.prices.lane_ratio(model, lane),
            model: model.clone(),
            newest,
            refresh: Some(self.executor.options.refresh.clone())
                .filter(|refresh| !refresh.is_empty()),
            lines: lines.collect(),
        };
        let requests = built
            .iter()
            .zip(&intent.lines)
            .map(|(built, line)| BatchRequest {
                id: intent.name(line),
                request: built.request.clone(),
            });
        let requests: Vec<BatchRequest> = requests.collect();
        let prepared = client.prepare(&intent.nonce.to_string(), &requests).await?;
        Ok((intent, prepared))
    }

    /// Creates a batch. Returns its actions if the vendor refuses it.
    async fn create(
        &mut self,
        client: &BatchClient,
        spec: &ProviderSpec,
        model: &ModelRef,
        built: Vec<BuiltRequest>,
    ) -> Result<Vec<EndedLine>, CacheError> {
        let store = self.executor.store;
        let (mut intent, prepared) = match self.upload(client, spec, model, &built).await {
            Ok(uploaded) => uploaded,
            Err(failure) => return Ok(self.refused(self.give_back(built), &failure)),
        };
        let nonce = intent.nonce;
        // An upload may take longer than a batch is searched for whose creation was not confirmed.
        intent.created = now_ms();
        intent.write(store).await?;
        let id = match client.create(&prepared).await {
            Ok(id) => id,
            Err(failure) => {
                ClosedBatch::new(nonce, Vec::new()).write(store).await?;
                return Ok(self.refused(self.give_back(built), &failure));
            }
        };
        // Without an id, this run and later ones look for it.
        if let Some(id) = &id {
            intent.write_submitted(store, id).await?;
        }
        self.submitted_requests += built.len() as u64;
        let mut reservations = Vec::with_capacity(built.len());
        for BuiltRequest {
            action,
            reservation,
            ..
        } in built
        {
            reservations.push(reservation);
            self.held.insert(action.key);
            self.waiting.insert(action.key, action);
        }
        self.open
            .push(Tracked::new(OpenBatch { intent, id }, reservations));
        Ok(Vec::new())
    }

    /// Releases what was reserved for requests that are not submitted.
    fn give_back(&self, built: Vec<BuiltRequest>) -> Vec<Action> {
        let actions = built.into_iter().map(|built| {
            self.executor.budget.give_back(built.reservation);
            built.action
        });
        actions.collect()
    }
}

/// How many of the first requests fit into one batch: at least one.
fn fitting(built: &[BuiltRequest]) -> usize {
    let mut bytes = 0;
    let fits = built.iter().take(MAX_LINES).take_while(|built| {
        bytes += built.request.body.len();
        bytes <= MAX_BYTES
    });
    fits.count().max(1)
}

/// What counts as spent for a batch: what its lines cost, and the most that those of unknown cost may cost.
fn spent_for(intent: &BatchIntent, outcomes: &Outcomes) -> Usd {
    let costs = intent
        .lines
        .iter()
        .filter_map(|line| outcomes.get(&line.key)?.charge.or(line.reserved));
    Usd(costs.map(|usd| usd.0).sum())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::{Digest, InputsDocument, Place, Repetition, Stage};
    use collect::LineResult;
    use models::Dialect;

    fn line(key: ActionKey) -> BatchLine {
        BatchLine {
            key,
            attempt: 1,
            place: Place::Selftest {
                judge: "judge".to_owned(),
                case: "case".to_owned(),
            },
            inputs: InputsDocument {
                stage: Stage::Answer,
                schema: 1,
                repetition: Repetition::NONE,
                inputs: Vec::new(),
                sources: Vec::new(),
            },
            reserved: Some(Usd(0.5)),
        }
    }

    fn intent(keys: [ActionKey; 3]) -> BatchIntent {
        BatchIntent {
            nonce: BatchNonce::new(1, keys.into_iter()),
            created: 1,
            account: ProviderSpec {
                name: "openai".into(),
                dialect: Dialect::OpenaiChat,
                base_url: "https://api.openai.com/v1".to_owned(),
                api_key: None,
                endpoint: "openai".into(),
                limits: Limits::default(),
                lane: Lane::Batch,
                key_place: None,
            },
            fingerprint: 0,
            model: ModelRef::parse("openai/gpt-5.2").expect("a model"),
            operation: Operation::Generate,
            price: None,
            ratio: 0.5,
            newest: None,
            refresh: None,
            lines: keys.map(line).into(),
        }
    }

    #[test]
    fn a_line_has_a_name_that_every_vendor_takes_and_no_other_batch_has() {
        let intent = intent(["a", "b", "c"].map(|name| ActionKey(Digest::hash(name))));
        let names: HashSet<String> = intent.lines.iter().map(|line| intent.name(line)).collect();
        assert_eq!(names.len(), 3);
        for name in names {
            let is_taken = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
            assert!(name.len() <= 64 && name.chars().all(is_taken), "{name}");
            assert!(name.ends_with(&intent.nonce.to_string()), "{name}");
        }
    }

    #[test]
    fn only_a_line_of_unknown_cost_counts_with_the_most_that_it_may_cost() {
        let keys = ["paid", "unknown", "failed"].map(|name| ActionKey(Digest::hash(name)));
        let costs = [Some(Usd(0.1)), None, Some(Usd(0.0))];
        let results = costs.map(|charge| LineResult {
            usage: None,
            charge,
            outcome: LineOutcome::Stored,
        });
        let outcomes: Outcomes = keys.into_iter().zip(results).collect();
        let spent = spent_for(&intent(keys), &outcomes).0;
        assert!((spent - 0.6).abs() < 1e-9, "{spent}");
        assert_eq!(
            spent_for(&intent(keys), &Outcomes::new()),
            Usd(0.0),
            "it was never created"
        );
    }
}
