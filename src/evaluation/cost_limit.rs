//! Whether a limit of the cost allows a run at all: decided before the first request, not by refusing it. Without a known
//! price of each model it does not.
//!
//! A model without `max_output_tokens` may write so much that one reply could cost more than the limit, although a run of
//! usual replies costs a tenth of it. Such a run goes on if it is estimated below the limit; then the limit may be exceeded
//! by the last reply. Otherwise it is refused, with the smallest limit that works.

use std::path::Path;

use super::engine::EngineOptions;
use super::error::{DearestReply, EvaluationError};
use super::project::stage_models;
use crate::entries::Journal;
use crate::pipeline::{Matrix, Pipeline, asked_models};
use crate::plan::{Assumptions, Preparer, forecast};
use crate::scheduler::BudgetLimits;
use base::units::{Tokens, Usd};
use models::{Lane, ModelUse, Prices, longest_reply};
use store::cache::Store;

/// Refuses a limit of the cost where the price of a model is unknown. `file` declares prices.
///
/// # Errors
/// The first model without a price.
pub fn require_prices<'m>(
    limits: &BudgetLimits,
    models: impl Iterator<Item = &'m ModelUse>,
    prices: &Prices,
    file: &Path,
) -> Result<(), EvaluationError> {
    let unknown = asked_models(models).find(|model| prices.price(&model.reference, Tokens(0)).is_none());
    match unknown.filter(|_| limits.usd.is_some()) {
        Some(model) => Err(EvaluationError::UnknownPrice { model: model.reference.clone(), file: file.to_owned() }),
        None => Ok(()),
    }
}

/// Refuses a run that its cost limit would stop at the first reply. Prepares the budget for one that is estimated below
/// its limit although a single reply may cost more.
///
/// # Errors
/// [`EvaluationError::CostLimit`].
pub(super) fn check_cost_limit(
    pipeline: &Pipeline,
    store: &Store,
    options: &EngineOptions,
) -> Result<(), EvaluationError> {
    let prices = Prices::new(pipeline.prices.clone());
    let Some(limit) = options.budget.limits().usd.filter(|_| !options.offline) else { return Ok(()) };
    let Some(reply) = dearest_reply(pipeline, &prices).filter(|reply| reply.usd.0 > limit.0) else { return Ok(()) };
    let matrix = Matrix::new(pipeline);
    let journal = Journal::read(store)?;
    let (refresh, submitted) = (journal.refresh(options.refresh.clone()), journal.held());
    let assumptions = Assumptions { refresh: &refresh, prices: &prices, submitted: &submitted, reasons: false };
    let expected = forecast(Preparer::new(pipeline, &matrix), store, assumptions).ok();
    let expected = expected.and_then(|found| found.estimate.usd);
    match expected {
        Some(expected) if expected.0 <= limit.0 => {
            options.budget.allow_dear_replies();
            Ok(())
        }
        expected => Err(EvaluationError::CostLimit { limit, reply, expected }),
    }
}

/// The model whose longest reply costs the most, among those that are asked live.
fn dearest_reply(pipeline: &Pipeline, prices: &Prices) -> Option<DearestReply> {
    let asked = stage_models(pipeline).filter(|model| model.is_asked() && model.lane != Lane::Batch);
    let replies = asked.filter_map(|ModelUse { reference, provider, settings, lane }| {
        let tokens = longest_reply(provider.dialect, &reference.model, settings.max_output_tokens);
        let usd = prices.worst_case(reference, Tokens(0), tokens)?.0 * prices.lane_ratio(reference, *lane);
        let is_limited = settings.max_output_tokens.is_some();
        Some(DearestReply { model: reference.clone(), tokens, usd: Usd(usd), is_limited })
    });
    replies.max_by(|a, b| a.usd.0.total_cmp(&b.usd.0))
}
