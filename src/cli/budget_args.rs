//! The flags that limit what a command may spend.

use clap::Args;

/// Limits of a command that sends requests.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct BudgetArgs {
    /// Spend at most this much, in US dollars
    #[arg(long, value_name = "USD")]
    pub(crate) max_cost: Option<f64>,
    /// Send at most this many requests
    #[arg(long, value_name = "N")]
    pub(crate) max_requests: Option<u64>,
}
