//! Submitting: requests become a batch. The intent is on disk before the call that creates it, and the id after.

use std::collections::BTreeMap;

use super::tracked::{EndedLine, LineEnd, Tracked, Waiting};
use crate::cache::{
    BatchClosing, BatchIntent, BatchLine, BatchNonce, CacheError, ClosedBatch, JournalRecord, OpenBatch, Refresh,
    now_ms,
};
use crate::provider::{
    BatchAccount, BatchClient, BatchRequest, CallFailure, CreateFault, HttpRequest, Lane, ModelRef, ProviderSpec,
};
use crate::results::{Blame, FailedAction};
use crate::scheduler::breakers::CircuitBreakers;
use crate::scheduler::budget::{BudgetReached, Reservation};
use crate::scheduler::execute::{ExecutionError, Executor};
use crate::units::Usd;

/// Lines of one batch. The vendors take more; so many bound the memory of a process and what a lost batch costs.
pub(super) const MAX_LINES: usize = 10_000;
/// Bytes of requests in one batch, less than half of what either vendor takes.
const MAX_BYTES: usize = 80 << 20;

/// What became of requests that were to be submitted.
#[derive(Default)]
pub(super) struct Submission {
    pub(super) open: Vec<Tracked>,
    /// Tasks that wait for those.
    pub(super) submitted: Vec<Waiting>,
    pub(super) ended: Vec<EndedLine>,
    /// Tasks that the budget has no room for.
    pub(super) unaffordable: Vec<Waiting>,
    pub(super) reached: Option<BudgetReached>,
}

/// A request with what is reserved for it.
struct Built {
    waiting: Waiting,
    request: HttpRequest,
    worst: Option<Usd>,
    reservation: Reservation,
}

/// Submits requests to one model, in as many batches as they need.
pub(super) async fn submit(
    executor: &Executor<'_>,
    group: Vec<(Waiting, u8)>,
    refresh: &Refresh,
    breakers: &CircuitBreakers,
) -> Result<Submission, CacheError> {
    let mut submission = Submission::default();
    let first = group.first().and_then(|(waiting, _)| waiting.request());
    let provider = first.and_then(|request| executor.preparer.pipeline().providers.get(&request.provider));
    let Some(spec) = provider.cloned() else {
        submission.ended.extend(group.into_iter().map(|(waiting, _)| again(waiting)));
        return Ok(submission);
    };
    let client = match BatchClient::new(&BatchAccount::from(&*spec)) {
        Ok(client) => client,
        Err(failure) => {
            let waiting = group.into_iter().map(|(waiting, _)| waiting);
            submission.ended.extend(fail_all(waiting, &failure, breakers));
            return Ok(submission);
        }
    };
    let attempts: BTreeMap<_, u8> = group.iter().map(|(waiting, attempt)| (waiting.job.action.key, *attempt)).collect();
    for (_, mut built) in build(executor, group, &spec, &mut submission) {
        // Requests with a common beginning stand together, for the vendor's prompt cache.
        built.sort_by(|a, b| a.request.body.cmp(&b.request.body));
        while !built.is_empty() {
            let rest = built.split_off(fitting(&built));
            let attempt = |built: &Built| attempts.get(&built.waiting.job.action.key).copied().unwrap_or(1);
            create(executor, (&client, &*spec, refresh), built, attempt, breakers, &mut submission).await?;
            built = rest;
        }
    }
    Ok(submission)
}

fn again(waiting: Waiting) -> EndedLine {
    EndedLine { waiting, end: LineEnd::Again { live: true } }
}

/// How many of the first requests fit into one batch; at least one.
fn fitting(built: &[Built]) -> usize {
    let mut bytes = 0;
    let fits = built.iter().take(MAX_LINES).take_while(|built| {
        bytes += built.request.body.len();
        bytes <= MAX_BYTES
    });
    fits.count().max(1)
}

type Headers = Vec<(&'static str, &'static str)>;

/// Makes the requests and reserves what they may cost, by path and headers: a batch has one of each.
fn build(
    executor: &Executor<'_>,
    group: Vec<(Waiting, u8)>,
    spec: &ProviderSpec,
    submission: &mut Submission,
) -> BTreeMap<(&'static str, Headers), Vec<Built>> {
    let mut built: BTreeMap<_, Vec<Built>> = BTreeMap::new();
    for (waiting, _) in group {
        let Some(request) = waiting.request() else { continue };
        let (request, worst) = match executor.batch_request(&waiting.job, request, spec) {
            Ok(made) => made,
            Err(error) => {
                submission.ended.push(EndedLine { waiting, end: LineEnd::Executed(Err(error)) });
                continue;
            }
        };
        match executor.budget.reserve(worst, worst) {
            Ok(reservation) => {
                let key = (request.path, request.headers.clone());
                built.entry(key).or_default().push(Built { waiting, request, worst, reservation });
            }
            Err(reached) => {
                submission.reached.get_or_insert(reached);
                submission.unaffordable.push(waiting);
            }
        }
    }
    built
}

/// Creates one batch.
async fn create(
    executor: &Executor<'_>,
    (client, spec, refresh): (&BatchClient, &ProviderSpec, &Refresh),
    built: Vec<Built>,
    attempt: impl Fn(&Built) -> u8,
    breakers: &CircuitBreakers,
    submission: &mut Submission,
) -> Result<(), CacheError> {
    let Some(model) = built.first().and_then(|first| first.waiting.request()) else { return Ok(()) };
    let reference = ModelRef { provider: model.provider.clone(), model: model.model.clone() };
    let newest = match client.newest().await {
        Ok(newest) => newest,
        Err(failure) => {
            refuse(executor, built, &failure, breakers, submission);
            return Ok(());
        }
    };
    let created = now_ms();
    let nonce = BatchNonce::new(created, built.iter().map(|built| built.waiting.job.action.key));
    let intent = BatchIntent {
        nonce,
        created,
        account: BatchAccount::from(spec),
        fingerprint: client.fingerprint(),
        operation: model.operation,
        price: executor.preparer.pipeline().prices.get(&reference).copied(),
        ratio: executor.prices.lane_ratio(&reference, Lane::Batch),
        model: reference,
        newest,
        refresh: Some(refresh.clone()).filter(|refresh| !refresh.is_empty()),
        lines: built.iter().map(|built| line(built, attempt(built))).collect(),
    };
    let request = |(built, line): (&Built, &BatchLine)| BatchRequest {
        id: intent.name(line).to_string(),
        request: built.request.clone(),
    };
    let requests: Vec<BatchRequest> = built.iter().zip(&intent.lines).map(request).collect();
    executor.store.record_batch(JournalRecord::Intent(&intent)).await?;
    let id = match client.create(&nonce.to_string(), &requests).await {
        Ok(id) => {
            executor.store.record_batch(JournalRecord::Submitted { nonce, id: &id }).await?;
            Some(id)
        }
        // It is looked for, now and by later runs.
        Err(CreateFault::Unconfirmed(failure)) => {
            tracing::warn!(%nonce, "the creation of a batch was not confirmed: {failure}");
            None
        }
        Err(CreateFault::Refused(failure)) => {
            let closed = ClosedBatch { nonce, closed: now_ms(), closing: BatchClosing::NotCreated, lines: Vec::new() };
            executor.store.record_batch(JournalRecord::Closed(&closed)).await?;
            refuse(executor, built, &failure, breakers, submission);
            return Ok(());
        }
    };
    let (waiting, reservations): (Vec<_>, Vec<_>) =
        built.into_iter().map(|built| (built.waiting, built.reservation)).unzip();
    submission.submitted.extend(waiting);
    submission.open.push(Tracked::new(OpenBatch { intent, id }, reservations));
    Ok(())
}

fn line(built: &Built, attempt: u8) -> BatchLine {
    let Waiting { job, .. } = &built.waiting;
    BatchLine {
        key: job.action.key,
        attempt,
        stage: job.action.stage,
        coordinate: job.coordinate.clone(),
        inputs: job.action.inputs(),
        sources: job.sources.clone(),
        reserved: built.worst,
    }
}

/// Nothing was submitted: releases what was reserved, and fails the requests.
fn refuse(
    executor: &Executor<'_>,
    built: Vec<Built>,
    failure: &CallFailure,
    breakers: &CircuitBreakers,
    submission: &mut Submission,
) {
    let waiting = built.into_iter().map(|built| {
        executor.budget.give_back(built.reservation);
        built.waiting
    });
    submission.ended.extend(fail_all(waiting, failure, breakers));
}

fn fail_all<'b>(
    waiting: impl Iterator<Item = Waiting> + 'b,
    failure: &'b CallFailure,
    breakers: &'b CircuitBreakers,
) -> impl Iterator<Item = EndedLine> + 'b {
    waiting.map(move |waiting| {
        let failed = failed_action(&waiting, failure);
        if let Some(request) = waiting.request() {
            breakers.record(request, &failed);
        }
        EndedLine { waiting, end: LineEnd::Executed(Err(ExecutionError::from(failed))) }
    })
}

pub(super) fn failed_action(waiting: &Waiting, failure: &CallFailure) -> FailedAction {
    let CallFailure { class, message, hint, .. } = failure.clone();
    FailedAction { class: Some(class), hint, ..waiting.job.failure(Blame::Infrastructure, message) }
}
