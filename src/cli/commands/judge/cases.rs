//! Asks the judges of a pipeline about its cases and about nothing else, for `judge selftest` and `judge grade`.

use std::sync::Arc;

use crate::cli::args::BudgetArgs;
use crate::cli::failure::Failure;
use crate::cli::project::{limits_of, open_store, print_notices};
use crate::cli::remote::RemoteArgs;
use crate::cli::screen::RunLog;
use crate::cli::terminal::Console;
use crate::evaluation::{
    EngineOptions, Event, Listening, require_keys, require_prices, run_matrix,
};
use crate::pipeline::Pipeline;
use crate::scheduler::{Budget, RunOutcome};
use base::units::Usd;
use models::Prices;
use store::cache::Store;

/// What came of the cases. The grades are in the store.
pub(super) struct AskedCases {
    pub(super) store: Store,
    pub(super) run_log: RunLog,
    pub(super) outcome: RunOutcome,
    /// What the replies cost; `None` where a price is unknown.
    pub(super) usd: Option<Usd>,
}

/// Asks about the cases that are not graded in the cache or the remote. A judge that fails is asked all the same.
///
/// # Errors
/// There is no judge, a key or a price is missing, or the store or the remote cannot be used.
pub(super) fn ask_judges(
    pipeline: &Pipeline,
    budget: &BudgetArgs,
    remote: &RemoteArgs,
    console: &Console,
) -> Result<AskedCases, Failure> {
    if pipeline.judges.is_empty() {
        let hint = "add a [[judge]] table to the pipeline";
        return Err(Failure::input("the project has no judge").hinted(hint));
    }
    require_keys(pipeline.judges.iter().map(|judge| &judge.model))?;
    let prices = Prices::new(pipeline.prices.clone());
    let allowance = limits_of(budget)?;
    require_prices(
        &allowance,
        pipeline.judges.iter().map(|judge| &judge.model),
        &prices,
        &pipeline.file,
    )?;
    let store = open_store(&pipeline.cache, console)?;
    for source in &pipeline.sources {
        store.text(source.digest, &source.text);
    }
    let mut run_log = RunLog::new(console);
    let options = EngineOptions {
        selftests_only: true,
        allow_weak_judge: true,
        budget: Arc::new(Budget::new(allowance)),
        shared: remote.connect(&pipeline.remote, console)?,
        reports_access: !console.is_quiet,
        stop: Some(run_log.screen.stop()),
        ..EngineOptions::default()
    };
    let outcome = run_matrix(
        pipeline,
        &store,
        &options,
        None,
        &Listening::new(&mut |event: &Event<'_>| run_log.on_event(event)),
        None,
    )?;
    store.sync()?;
    print_notices(&store, console);
    Ok(AskedCases {
        store,
        run_log,
        outcome,
        usd: options.budget.spent().usd,
    })
}
