//! Sums over entries.

use serde::Serialize;

use crate::cli::format::money;
use base::units::{Usd, add_known};
use store::cache::Record;

/// Totals over entries. One unknown price makes `usd` unknown; `usd_known` is the sum of the known ones.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct EntryTotals {
    pub(super) entries: u64,
    pub(super) bytes: u64,
    /// Null if a price is unknown.
    usd: Option<Usd>,
    usd_known: Usd,
    /// Entries with an unknown price.
    unpriced: u64,
}

impl Default for EntryTotals {
    fn default() -> EntryTotals {
        EntryTotals {
            entries: 0,
            bytes: 0,
            usd: Some(Usd(0.0)),
            usd_known: Usd(0.0),
            unpriced: 0,
        }
    }
}

impl EntryTotals {
    pub(super) fn add(&mut self, record: &Record) {
        self.entries += 1;
        self.bytes += record.stored_bytes();
        self.usd = add_known(self.usd, record.cost);
        self.usd_known += record.cost.unwrap_or_default();
        self.unpriced += u64::from(record.cost.is_none());
    }

    /// The cost, with the number of unpriced entries.
    pub(super) fn money(&self) -> String {
        match self.unpriced {
            0 => money(self.usd),
            n if n == self.entries => money(None),
            n => format!("{} + {n} unpriced", money(Some(self.usd_known))),
        }
    }
}
