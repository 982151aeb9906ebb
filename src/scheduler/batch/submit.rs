//! What is submitted: the requests of a batch, its intent, and the upload. The requests are uploaded first. The intent is
//! on disk before the call that creates a batch; that it was created is recorded afterwards.

use crate::entries::{BatchIntent, BatchLine, Refresh};
use crate::plan::Action;
use crate::scheduler::budget::Reservation;
use crate::scheduler::execute::Executor;
use base::units::Usd;
use models::{
    BatchClient, BatchRequest, CallFailure, HttpRequest, Lane, ModelRef, Operation, PreparedBatch,
    ProviderSpec,
};
use store::cache::{BatchNonce, now_ms};

/// Lines of one batch. The vendors accept more; this limit bounds the memory of a process and the cost of a lost batch.
pub(super) const MAX_LINES: usize = 10_000;
/// Bytes of requests in one batch, less than half of what either vendor takes.
const MAX_BYTES: usize = 80 << 20;

/// A request that is ready to be submitted, with what is reserved for it.
pub(super) struct BuiltRequest {
    pub(super) action: Action,
    pub(super) attempt: u8,
    pub(super) request: HttpRequest,
    pub(super) worst: Option<Usd>,
    pub(super) reservation: Reservation,
}

/// Uploads the requests of a batch to one model. Returns what is to be recorded before the batch is created.
pub(super) async fn upload(
    executor: &Executor<'_>,
    refresh: &Refresh,
    client: &BatchClient,
    spec: &ProviderSpec,
    model: &ModelRef,
    built: &[BuiltRequest],
) -> Result<(BatchIntent, PreparedBatch), CallFailure> {
    let (newest, created) = (client.newest().await?, now_ms());
    let pipeline = executor.pipeline;
    let asked = built.first().and_then(|first| first.action.request());
    let (operation, lane) = asked.map_or((Operation::Generate, Lane::Batch), |request| {
        (request.operation, request.lane)
    });
    let lines = built.iter().map(|built| BatchLine {
        key: built.action.key,
        attempt: built.attempt,
        place: executor.place(&built.action),
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
        ratio: executor.prices.lane_ratio(model, lane),
        model: model.clone(),
        newest,
        refresh: Some(refresh.clone()).filter(|refresh| !refresh.is_empty()),
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

/// How many of the first requests fit into one batch: at least one.
pub(super) fn fitting(built: &[BuiltRequest]) -> usize {
    let mut bytes = 0;
    let fits = built.iter().take(MAX_LINES).take_while(|built| {
        bytes += built.request.body.len();
        bytes <= MAX_BYTES
    });
    fits.count().max(1)
}
