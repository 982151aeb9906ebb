//! What the stale actions of a matrix are expected to take.

use serde::{Deserialize, Serialize};

use base::units::Usd;

/// The requests, tokens, dollars and seconds of what is stale.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CostEstimate {
    pub requests: u64,
    pub input_tokens: f64,
    pub output_tokens: f64,
    /// Dollars expected; null where a price is unknown.
    pub usd: Option<Usd>,
    /// Dollars between which the run is likely to end: by how much the lengths of earlier replies vary, or else from half
    /// of the usual length to the length declared.
    pub usd_low: Option<Usd>,
    pub usd_high: Option<Usd>,
    /// Seconds that the requests sent live take.
    pub seconds: f64,
}

impl CostEstimate {
    /// The estimate where everything is cached.
    pub fn nothing() -> CostEstimate {
        let free = Some(Usd(0.0));
        CostEstimate {
            usd: free,
            usd_low: free,
            usd_high: free,
            ..CostEstimate::default()
        }
    }
}
