//! What a session cost, and what it would have cost under another policy of compaction. No model is asked.
//!
//! A log becomes [`SessionSteps`]: the size of each request, what was read from the prompt cache and written to it, the
//! output, and the time since the request before. A [`Policy`] says when the history is compacted and how; [`simulate`]
//! replays the steps under it: a prefix that did not change is read from the cache, unless the cache has expired;
//! everything behind it is written anew.
//!
//! This is accounting. An agent whose history is compacted elsewhere does other things next; only what it reads again
//! is added, as the same logs show it.
//!
//! `steps` and `prices` make priced requests of a log, `history` and `prompt_cache` the back-test, `method` and `simulate` a
//! policy, `curve` the cost against its threshold, and `report` puts them together.
//!
//! Invariants: nothing is advised unless the same arithmetic gives back the bill of the logs of the same format
//! ([`BackTest`]); a session whose counters, times or prices are unknown is left out with a reason ([`LeftOut`]), never
//! counted as free.

mod curve;
mod history;
mod method;
mod prices;
mod prompt_cache;
mod reasons;
mod report;
mod simulate;
mod steps;

pub use curve::{CostCurve, CostPoint, FlatRegion};
pub use history::{BackTest, FormatError, Rewrite, SessionError, TokenBill};
pub use method::{
    AS_RECORDED, CompactionMethod, ContextSize, LifeCycle, MeasuredContext, RequestCost, measured_methods,
};
pub use prices::{ModelPrice, Rates};
pub use reasons::{LeftOut, MOST_ERROR, Withheld};
pub use report::{
    ClockFaults, Economics, LeftOutSession, LogSteps, MethodEconomics, PolicySettings, economics, without_copies,
};
pub use simulate::{Policy, SimulatedSession, Trigger, simulate};
pub use steps::{PricedSession, SessionSteps, Step};

#[cfg(test)]
mod tests;
