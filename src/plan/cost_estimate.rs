//! What the stale actions of a matrix are expected to take, and what they take at most.

use serde::{Deserialize, Serialize};

use base::units::{Usd, add_known};

/// The requests, tokens, dollars and seconds of what is stale.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CostEstimate {
    pub requests: u64,
    /// Requests if every call takes all attempts, and every judge all the replies that it may give.
    pub requests_worst: u64,
    pub input_tokens: f64,
    pub output_tokens: f64,
    /// Dollars expected; null where a price is unknown.
    pub usd: Option<Usd>,
    /// Dollars between which the run is likely to end: by how much the lengths of earlier replies vary, or else from half
    /// of the usual length to the length declared.
    pub usd_low: Option<Usd>,
    pub usd_high: Option<Usd>,
    /// Dollars of the worst requests if every reply is as long as it may be.
    pub usd_worst: Option<Usd>,
    /// Seconds that the requests sent live take.
    pub seconds: f64,
    /// The part that goes into batches.
    pub batched: BatchedEstimate,
}

/// The part of an estimate that goes into batches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BatchedEstimate {
    pub requests: u64,
    /// Dollars expected; null where a price is unknown.
    pub usd: Option<Usd>,
    /// Dollars that the same requests would cost live.
    pub usd_live: Option<Usd>,
}

impl BatchedEstimate {
    const NOTHING: BatchedEstimate = BatchedEstimate {
        requests: 0,
        usd: Some(Usd(0.0)),
        usd_live: Some(Usd(0.0)),
    };

    pub(super) fn add(&mut self, requests: u64, usd: Option<Usd>, usd_live: Option<Usd>) {
        self.requests += requests;
        self.usd = add_known(self.usd, usd);
        self.usd_live = add_known(self.usd_live, usd_live);
    }
}

impl CostEstimate {
    /// The estimate where everything is cached.
    pub fn nothing() -> CostEstimate {
        let free = Some(Usd(0.0));
        CostEstimate {
            usd: free,
            usd_low: free,
            usd_high: free,
            usd_worst: free,
            batched: BatchedEstimate::NOTHING,
            ..CostEstimate::default()
        }
    }
}
