//! A refresh: stages whose outputs are made again although the cache has them.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::meta::EntryRecord;
use crate::action::Stage;
use store::cache::{Record, now_ms};

/// The stages that a run refreshes. Batches may take several runs for it: each of them notes the refresh in what it
/// submits, so that the next one continues with it instead of starting again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refresh {
    stages: BTreeSet<Stage>,
    /// Outputs made since then are new. Milliseconds since 1970 (UTC).
    since: u64,
}

impl Refresh {
    /// Continues the refresh of these stages that is under way, or begins one.
    pub(super) fn of<'a>(stages: BTreeSet<Stage>, under_way: impl Iterator<Item = &'a Refresh>) -> Refresh {
        let since = under_way.filter(|refresh| refresh.stages == stages).map(|refresh| refresh.since).min();
        Refresh { stages, since: since.unwrap_or_else(now_ms) }
    }

    pub fn is_empty(&self) -> bool {
        self.stages.is_empty()
    }

    pub fn has(&self, stage: Stage) -> bool {
        self.stages.contains(&stage)
    }

    /// Whether a cached output is to be replaced.
    pub fn replaces(&self, record: &Record) -> bool {
        record.stage().is_some_and(|stage| self.has(stage)) && record.created < self.since
    }
}
