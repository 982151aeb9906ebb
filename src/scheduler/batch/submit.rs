//! Submitting: creates batches of requests at the vendor. The requests are uploaded first. The intent is on disk before
//! the call that creates a batch; that it was created is recorded afterwards.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use tokio::sync::watch;

use super::tracked::{EndedLine, Tracked};
use super::{BatchLane, MAX_LINES};
use crate::action::DigestBuilder;
use crate::entries::{BatchClosing, BatchIntent, BatchLine, ClosedBatch, OpenBatch};
use crate::plan::Action;
use crate::scheduler::breakers::CircuitBreakers;
use crate::scheduler::budget::Reservation;
use crate::scheduler::options::{StopRequest, stop_requested};
use base::files::user_folder;
use base::lock::FileLock;
use base::units::Usd;
use models::{
    BatchAccount, BatchClient, BatchRequest, CallFailure, CreateFault, HttpRequest, Lane, ModelRef,
    Operation, PreparedBatch, ProviderSpec,
};
use store::cache::{BatchNonce, CacheError, now_ms};

/// Bytes of requests in one batch, less than half of what either vendor takes.
const MAX_BYTES: usize = 80 << 20;

/// A request that is ready to be submitted, with what is reserved for it.
struct BuiltRequest {
    action: Action,
    attempt: u8,
    request: HttpRequest,
    worst: Option<Usd>,
    reservation: Reservation,
}

impl BatchLane<'_, '_> {
    /// Submits requests to one model to its vendor, in as many batches as they need. Returns the actions that need not wait
    /// for one. What the budget has no room for, or is not submitted because the run is to stop, stays pending.
    pub(super) async fn submit(
        &mut self,
        model: &ModelRef,
        group: Vec<Action>,
        stop: &watch::Receiver<StopRequest>,
        breakers: &CircuitBreakers,
    ) -> Result<Vec<EndedLine>, CacheError> {
        let mut ended = Vec::new();
        let providers = &self.executor.preparer.pipeline().providers;
        let Some(spec) = providers.get(&model.provider).cloned() else {
            // The live request names what is wrong.
            ended.extend(group.into_iter().map(|action| self.begin_live(action)));
            return Ok(ended);
        };
        let client = match BatchClient::new(&BatchAccount::from(&*spec)) {
            Ok(client) => client,
            Err(failure) => {
                let failed = |action| self.failed(action, &failure, breakers);
                ended.extend(group.into_iter().map(failed));
                return Ok(ended);
            }
        };
        for mut built in self.build(group, &spec, &mut ended) {
            while !built.is_empty() {
                let rest = built.split_off(fitting(&built));
                let refused = self.create(&client, &spec, model, built, stop).await?;
                if let Some((actions, failure)) = refused {
                    let failed = |action| self.failed(action, &failure, breakers);
                    ended.extend(actions.into_iter().map(failed));
                }
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

    /// What is recorded before a batch is created, of requests to one model.
    fn intent(
        &self,
        spec: &ProviderSpec,
        model: &ModelRef,
        built: &[BuiltRequest],
        fingerprint: u32,
        newest: Option<String>,
    ) -> BatchIntent {
        let (executor, created) = (self.executor, now_ms());
        let asked = built.first().and_then(|first| first.action.request());
        let (operation, lane) = asked.map_or((Operation::Generate, Lane::Batch), |request| {
            (request.operation, request.lane)
        });
        let lines = built.iter().map(|built| BatchLine {
            key: built.action.key,
            attempt: built.attempt,
            place: executor.place(&built.action),
            inputs: built.action.inputs(executor.preparer.pipeline()),
            reserved: built.worst,
        });
        BatchIntent {
            nonce: BatchNonce::new(created, built.iter().map(|built| built.action.key)),
            created,
            account: BatchAccount::from(spec),
            fingerprint,
            operation,
            price: executor.preparer.pipeline().prices.get(model).copied(),
            ratio: executor.prices.lane_ratio(model, lane),
            model: model.clone(),
            newest,
            refresh: Some(self.refresh.clone()).filter(|refresh| !refresh.is_empty()),
            max_attempts: spec.limits.max_attempts,
            lines: lines.collect(),
        }
    }

    /// Uploads the requests of a batch.
    async fn upload(
        &self,
        client: &BatchClient,
        spec: &ProviderSpec,
        model: &ModelRef,
        built: &[BuiltRequest],
    ) -> Result<(BatchIntent, PreparedBatch), CallFailure> {
        let newest = client.newest().await?;
        let intent = self.intent(spec, model, built, client.fingerprint(), newest);
        let prepared = client
            .prepare(&intent.nonce.to_string(), &requests(&intent, built))
            .await?;
        Ok((intent, prepared))
    }

    /// Creates a batch. If the vendor refuses it, returns the actions and why.
    async fn create(
        &mut self,
        client: &BatchClient,
        spec: &ProviderSpec,
        model: &ModelRef,
        built: Vec<BuiltRequest>,
        stop: &watch::Receiver<StopRequest>,
    ) -> Result<Option<(Vec<Action>, CallFailure)>, CacheError> {
        let store = self.executor.store;
        let account = BatchAccount::from(spec);
        let _lock = tokio::select! {
            biased;
            () = stop_requested(stop.clone(), StopRequest::Drain) => {
                let unsent = self.give_back(built);
                self.pending.extend(unsent);
                return Ok(None);
            }
            lock = lock_creation(&account, client.fingerprint()) => lock,
        };
        let uploaded = self.upload(client, spec, model, &built).await;
        let (mut intent, prepared) = match uploaded {
            Ok(uploaded) => uploaded,
            Err(failure) => return Ok(Some((self.give_back(built), failure))),
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
                return Ok(Some((self.give_back(built), failure)));
            }
        };
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
        Ok(None)
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
