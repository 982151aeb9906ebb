//! What a session cost, and what it would have cost under another policy of compaction. No model is asked.
//!
//! A log becomes [`SessionSteps`]: the size of each request, what was read from the prompt cache and written to it, the
//! output, and the time since the request before. A [`Policy`] says when the history is compacted and how; [`simulate`]
//! replays the steps under it: a prefix that did not change is read from the cache, unless the cache has expired;
//! everything after it is written anew.
//!
//! This is accounting. An agent whose history is compacted at another point would do other things next. Of these only
//! re-reads are added, at the rate that the same logs show.
//!
//! `steps` and `prices` turn a log into priced requests, `history` and `prompt_cache` make the back-test, `method` and
//! `simulate` a policy, `curve` the cost by threshold, and `report` combines them.
//!
//! Invariants: nothing is advised unless the same arithmetic reproduces the bill of the logs of the same format
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
    AS_RECORDED, CompactionMethod, ContextSize, LifeCycle, MeasuredContext, RequestCost,
    measured_methods,
};
pub use prices::{ModelPrice, Rates};
pub use reasons::{LeftOut, LeftOutSession, MOST_ERROR, Withheld};
pub use report::{
    ClockFaults, Economics, MethodEconomics, PolicySettings, economics, without_copies,
};
pub use simulate::{Policy, SimulatedSession, Trigger, simulate};
pub use steps::{PricedSession, SessionSteps, Step};

#[cfg(test)]
mod tests;
