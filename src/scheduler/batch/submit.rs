//! Submitting: creates batches of requests at the vendor. The requests are uploaded first. The intent is on disk before
//! the call that creates a batch; that it was created is recorded afterwards.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use super::tracked::{EndedLine, LineEnd, Tracked};
use crate::action::DigestBuilder;
use crate::entries::{BatchClosing, BatchIntent, BatchLine, ClosedBatch, OpenBatch, Refresh};
use crate::plan::Action;
use crate::scheduler::breakers::CircuitBreakers;
use crate::scheduler::budget::{BudgetReached, Reservation};
use crate::scheduler::execute::Executor;
use crate::scheduler::options::{StopRequest, stop_requested};
use base::files::user_folder;
use base::lock::FileLock;
use base::units::Usd;
use models::{
    BatchAccount, BatchClient, BatchRequest, CallFailure, CreateFault, HttpRequest, Lane, ModelRef,
    Operation, PreparedBatch, ProviderSpec,
};
use store::cache::{BatchNonce, CacheError, now_ms};

/// Lines of one batch. The vendors accept more; this limit bounds the memory of a process and the cost of a lost batch.
pub(super) const MAX_LINES: usize = 10_000;
/// Bytes of requests in one batch, less than half of what either vendor takes.
const MAX_BYTES: usize = 80 << 20;

/// The outcome of a submission.
#[derive(Default)]
pub(super) struct Submission {
    pub(super) open: Vec<Tracked>,
    /// Actions that wait for these batches.
    pub(super) submitted: Vec<Action>,
    pub(super) ended: Vec<EndedLine>,
    /// Actions that the budget has no room for.
    pub(super) unaffordable: Vec<Action>,
    pub(super) reached: Option<BudgetReached>,
    /// Actions that are not submitted because the run is to stop.
    pub(super) left: Vec<Action>,
}

/// A request that is ready to be submitted, with what is reserved for it.
struct BuiltRequest {
    action: Action,
    model: ModelRef,
    operation: Operation,
    lane: Lane,
    attempt: u8,
    request: HttpRequest,
    worst: Option<Usd>,
    reservation: Reservation,
}

#[derive(Clone, Copy)]
pub(super) struct Submitter<'s, 'e> {
    pub(super) executor: &'s Executor<'e>,
    /// What the run refreshes. It is noted in each batch.
    pub(super) refresh: &'s Refresh,
    pub(super) stop: &'s watch::Receiver<StopRequest>,
    pub(super) breakers: &'s CircuitBreakers,
}

impl Submitter<'_, '_> {
    /// Submits requests to one model to its vendor, in as many batches as they need.
    pub(super) async fn submit(self, group: Vec<(Action, u8)>) -> Result<Submission, CacheError> {
        let mut submission = Submission::default();
        let Some(spec) = self.provider_of(&group) else {
            let again = group.into_iter().map(|(action, _)| EndedLine {
                action,
                end: LineEnd::Again { live: true },
            });
            submission.ended.extend(again);
            return Ok(submission);
        };
        let client = match BatchClient::new(&BatchAccount::from(&*spec)) {
            Ok(client) => client,
            Err(failure) => {
                submission
                    .ended
                    .extend(self.fail_all(group.into_iter().map(|(action, _)| action), &failure));
                return Ok(submission);
            }
        };
        for mut built in self.build(group, &spec, &mut submission) {
            while !built.is_empty() {
                let rest = built.split_off(fitting(&built));
                self.create(&client, &spec, built, &mut submission).await?;
                built = rest;
            }
        }
        Ok(submission)
    }

    fn provider_of(self, group: &[(Action, u8)]) -> Option<Arc<ProviderSpec>> {
        let request = group.first().and_then(|(action, _)| action.request())?;
        self.executor
            .preparer
            .pipeline()
            .providers
            .get(&request.provider)
            .cloned()
    }

    /// Makes the requests and reserves what they may cost, by path and headers: a batch has one of each. Requests with a
    /// common beginning are together, for the vendor's prompt cache.
    fn build(
        self,
        group: Vec<(Action, u8)>,
        spec: &ProviderSpec,
        submission: &mut Submission,
    ) -> Vec<Vec<BuiltRequest>> {
        let mut groups: BTreeMap<_, Vec<BuiltRequest>> = BTreeMap::new();
        for (action, attempt) in group {
            let Some(asked) = action.request() else {
                submission.ended.push(EndedLine {
                    action,
                    end: LineEnd::Again { live: true },
                });
                continue;
            };
            let (model, operation, lane) = (asked.model_ref(), asked.operation, asked.lane);
            let (request, worst) = match self.executor.batch_request(&action, asked, spec) {
                Ok(made) => made,
                Err(error) => {
                    submission.ended.push(EndedLine {
                        action,
                        end: LineEnd::Executed(Err(error)),
                    });
                    continue;
                }
            };
            match self.executor.budget.reserve(worst, worst) {
                Ok(reservation) => {
                    let built = groups
                        .entry((request.path, request.headers.clone()))
                        .or_default();
                    built.push(BuiltRequest {
                        action,
                        model,
                        operation,
                        lane,
                        attempt,
                        request,
                        worst,
                        reservation,
                    });
                }
                Err(reached) => {
                    submission.reached.get_or_insert(reached);
                    submission.unaffordable.push(action);
                }
            }
        }
        groups
            .values_mut()
            .for_each(|built| built.sort_by(|a, b| a.request.body.cmp(&b.request.body)));
        groups.into_values().collect()
    }

    /// What is recorded before a batch is created. `first` is one of `built`; all of them ask its model.
    fn intent(
        self,
        spec: &ProviderSpec,
        first: &BuiltRequest,
        built: &[BuiltRequest],
        fingerprint: u32,
        newest: Option<String>,
    ) -> BatchIntent {
        let model = first.model.clone();
        let created = now_ms();
        BatchIntent {
            nonce: BatchNonce::new(created, built.iter().map(|built| built.action.key)),
            created,
            account: BatchAccount::from(spec),
            fingerprint,
            operation: first.operation,
            price: self
                .executor
                .preparer
                .pipeline()
                .prices
                .get(&model)
                .copied(),
            ratio: self.executor.prices.lane_ratio(&model, first.lane),
            model,
            newest,
            refresh: Some(self.refresh.clone()).filter(|refresh| !refresh.is_empty()),
            max_attempts: spec.limits.max_attempts,
            lines: built.iter().map(|built| self.batch_line(built)).collect(),
        }
    }

    /// Uploads the requests of a batch. `first` is one of `built`; all of them ask its model.
    async fn upload(
        self,
        client: &BatchClient,
        spec: &ProviderSpec,
        first: &BuiltRequest,
        built: &[BuiltRequest],
    ) -> Result<(BatchIntent, PreparedBatch), CallFailure> {
        let newest = client.newest().await?;
        let intent = self.intent(spec, first, built, client.fingerprint(), newest);
        let prepared = client
            .prepare(&intent.nonce.to_string(), &requests(&intent, built))
            .await?;
        Ok((intent, prepared))
    }

    async fn create(
        self,
        client: &BatchClient,
        spec: &ProviderSpec,
        built: Vec<BuiltRequest>,
        submission: &mut Submission,
    ) -> Result<(), CacheError> {
        let store = self.executor.store;
        let Some(first) = built.first() else {
            return Ok(());
        };
        let account = BatchAccount::from(spec);
        let _lock = tokio::select! {
            biased;
            () = stop_requested(self.stop.clone(), StopRequest::Drain) => {
                submission.left.extend(self.give_back(built));
                return Ok(());
            }
            lock = lock_creation(&account, client.fingerprint()) => lock,
        };
        let uploaded = self.upload(client, spec, first, &built).await;
        let (mut intent, prepared) = match uploaded {
            Ok(uploaded) => uploaded,
            Err(failure) => {
                self.refuse(built, &failure, submission);
                return Ok(());
            }
        };
        let nonce = intent.nonce;
        // An upload may take longer than a batch is searched for whose creation was not confirmed.
        intent.created = now_ms();
        intent.write(store).await?;
        let id = match client.create(&prepared).await {
            Ok(id) => {
                intent.write_submitted(store, &id).await?;
                Some(id)
            }
            // This run and later ones look for it.
            Err(CreateFault::Unconfirmed(failure)) => {
                tracing::warn!(%nonce, "the creation of a batch was not confirmed: {failure}");
                None
            }
            Err(CreateFault::Refused(failure)) => {
                ClosedBatch::without_lines(nonce, BatchClosing::NotCreated)
                    .write(store)
                    .await?;
                self.refuse(built, &failure, submission);
                return Ok(());
            }
        };
        submission.add_batch(OpenBatch { intent, id }, built);
        Ok(())
    }

    /// Releases what was reserved for requests that the vendor refused, and fails them.
    fn refuse(self, built: Vec<BuiltRequest>, failure: &CallFailure, submission: &mut Submission) {
        let actions = self.give_back(built).into_iter();
        submission.ended.extend(self.fail_all(actions, failure));
    }

    fn fail_all<'b>(
        self,
        actions: impl Iterator<Item = Action> + 'b,
        failure: &'b CallFailure,
    ) -> impl Iterator<Item = EndedLine> + 'b
    where
        Self: 'b,
    {
        actions.map(move |action| {
            let end = LineEnd::failed(
                &action,
                self.executor.failed_call(&action, failure),
                self.breakers,
            );
            EndedLine { action, end }
        })
    }

    fn batch_line(self, built: &BuiltRequest) -> BatchLine {
        let BuiltRequest {
            action,
            attempt,
            worst,
            ..
        } = built;
        BatchLine {
            key: action.key,
            attempt: *attempt,
            place: self.executor.place(action),
            inputs: action.inputs(self.executor.preparer.pipeline()),
            reserved: *worst,
        }
    }

    /// Releases what was reserved for requests that are not submitted.
    fn give_back(self, built: Vec<BuiltRequest>) -> Vec<Action> {
        let actions = built.into_iter().map(|built| {
            self.executor.budget.give_back(built.reservation);
            built.action
        });
        actions.collect()
    }
}

impl Submission {
    /// Adds a batch that was created.
    fn add_batch(&mut self, batch: OpenBatch, built: Vec<BuiltRequest>) {
        let (actions, reservations): (Vec<_>, Vec<_>) = built
            .into_iter()
            .map(|built| (built.action, built.reservation))
            .unzip();
        self.submitted.extend(actions);
        self.open.push(Tracked::new(batch, reservations));
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

fn requests(intent: &BatchIntent, built: &[BuiltRequest]) -> Vec<BatchRequest> {
    let lines = built.iter().zip(&intent.lines);
    lines
        .map(|(built, line)| BatchRequest {
            id: intent.name(line).to_string(),
            request: built.request.clone(),
        })
        .collect()
}

/// Time between two looks whether the lock is free.
const LOCK_CHECK: Duration = Duration::from_millis(50);

/// Waits until no other process of this user creates a batch of the account, and locks the account. If the answer of a
/// create call is lost, the batch is searched for among those that were created since: as processes take turns, there
/// are few of these. The lock only makes such searches shorter, so the batch is created without it if it cannot be
/// taken.
async fn lock_creation(account: &BatchAccount, fingerprint: u32) -> Option<FileLock> {
    let path = lock_file(account, fingerprint)?;
    loop {
        match FileLock::try_acquire(&path) {
            Ok(Some(lock)) => return Some(lock),
            Ok(None) => tokio::time::sleep(LOCK_CHECK).await,
            Err(error) => {
                tracing::debug!(path = %path.display(), "no lock for the account: {error}");
                return None;
            }
        }
    }
}

fn lock_file(account: &BatchAccount, fingerprint: u32) -> Option<PathBuf> {
    let mut name = DigestBuilder::new("compeval account v1");
    name.field("dialect", account.dialect.name());
    name.field("base_url", &account.base_url);
    name.field("key", fingerprint.to_le_bytes());
    Some(user_folder()?.join(format!("batches-{}.lock", name.finish().short())))
}
