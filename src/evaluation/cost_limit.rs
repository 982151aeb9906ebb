//! Whether a cost limit allows a run at all. This is decided before the first request. If the price of a model is
//! unknown, the run is refused.
//!
//! A model without `max_output_tokens` may write so much that one reply costs more than the limit, although a run with
//! usual replies costs a tenth of the limit. Such a run is allowed if its estimated cost is below the limit; then the
//! last reply may exceed the limit. Otherwise the run is refused, and the error has the smallest limit that works.

use std::path::Path;

use super::engine::EngineOptions;
use super::error::{DearestReply, EvaluationError};
use super::project::stage_models;
use crate::entries::Journal;
use crate::pipeline::{Matrix, Pipeline};
use crate::plan::{Assumptions, Preparer, forecast};
use crate::scheduler::BudgetLimits;
use base::units::{Tokens, Usd};
use models::{Lane, ModelUse, Prices, longest_reply};
use store::cache::Store;

/// Refuses a cost limit if the price of a model is unknown. `file` is the pipeline, which declares prices.
///
/// # Errors
/// The first model without a price.
pub fn require_prices<'m>(
    limits: &BudgetLimits,
    models: impl Iterator<Item = &'m ModelUse>,
    prices: &Prices,
    file: &Path,
) -> Result<(), EvaluationError> {
    let mut asked = models.filter(|model| model.is_asked());
    let unknown = asked.find(|model| prices.price(&model.reference, Tokens(0)).is_none());
    match unknown.filter(|_| limits.usd.is_some()) {
        Some(model) => Err(EvaluationError::UnknownPrice {
            model: model.reference.clone(),
            file: file.to_owned(),
        }),
        None => Ok(()),
    }
}

/// Refuses a run that its cost limit would stop at the first reply. If one reply may cost more than the limit but the
/// estimate of the run is below it, the budget is changed to allow such replies. `share` is the part of the money that
/// this process may spend, from 0 to 1.
///
/// # Errors
/// [`EvaluationError::CostLimit`].
pub(super) fn check_cost_limit(
    pipeline: &Pipeline,
    store: &Store,
    options: &EngineOptions,
    share: f64,
) -> Result<(), EvaluationError> {
    let prices = Prices::new(pipeline.prices.clone());
    let Some(limit) = options.budget.limits().usd.filter(|_| !options.offline) else {
        return Ok(());
    };
    let Some(reply) = dearest_reply(pipeline, &prices).filter(|reply| reply.usd.0 > limit.0) else {
        return Ok(());
    };
    let matrix = Matrix::new(pipeline);
    let journal = Journal::read(store)?;
    let (refresh, submitted) = (journal.refresh(options.refresh.clone()), journal.held());
    let assumptions = Assumptions {
        refresh: &refresh,
        prices: &prices,
        submitted: &submitted,
        explained: None,
    };
    let expected = forecast(Preparer::new(pipeline, &matrix), store, assumptions).ok();
    let expected = expected.and_then(|found| found.estimate.usd);
    match expected {
        Some(expected) if expected.0 <= limit.0 => {
            options.budget.allow_expensive_replies();
            Ok(())
        }
        expected => Err(EvaluationError::CostLimit {
            limit,
            share,
            reply,
            expected,
        }),
    }
}

/// The model whose longest reply costs the most, among those that are asked live.
fn dearest_reply(pipeline: &Pipeline, prices: &Prices) -> Option<DearestReply> {
    let models =
        stage_models(pipeline).filter(|model| model.is_asked() && model.lane != Lane::Batch);
    let replies = models.filter_map(
        |ModelUse {
             reference,
             provider,
             settings,
             lane,
         }| {
            let tokens = longest_reply(
                provider.dialect,
                &reference.model,
                settings.max_output_tokens,
            );
            let usd = prices.worst_case(reference, Tokens(0), tokens)?.0
                * prices.lane_ratio(reference, *lane);
            let is_limited = settings.max_output_tokens.is_some();
            Some(DearestReply {
                model: reference.clone(),
                tokens,
                usd: Usd(usd),
                is_limited,
            })
        },
    );
    replies.max_by(|a, b| a.usd.0.total_cmp(&b.usd.0))
}
