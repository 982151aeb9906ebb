//! The prefixes that several requests of a run have in common, as the providers' prompt caches see them.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashSet};

use crate::action::StageName;
use crate::plan::StageDuration;
use models::{CacheTtl, Client, ModelRef};

/// A stage that lasts longer uses its prefixes again after a prompt cache of five minutes has dropped them.
const SHORT_TTL_SECONDS: f64 = 300.0;
/// Writing for an hour costs twice the price of input, so two uses cost as much as two requests without a cache.
const USES_THAT_PAY: u32 = 3;

/// Shared prefixes: those sent so far, and how long providers are asked to keep them.
#[derive(Debug, Default)]
pub struct SharedPrefixes {
    sent: RefCell<HashSet<u64>>,
    /// What each stage is expected to take.
    durations: RefCell<BTreeMap<StageName, StageDuration>>,
    /// Decided at the first request of a stage to a model: to change it later would write everything again.
    lasting: RefCell<BTreeMap<(StageName, ModelRef), bool>>,
}

impl SharedPrefixes {
    /// Notes a prefix. Returns whether no earlier request of this run had it.
    pub(super) fn is_new(&self, prefix: u64) -> bool {
        self.sent.borrow_mut().insert(prefix)
    }

    /// Sets what the forecast says of the stages.
    pub(super) fn set_durations(&self, durations: BTreeMap<StageName, StageDuration>) {
        *self.durations.borrow_mut() = durations;
    }

    /// How long the provider is to keep a prefix that `uses` requests of a stage share.
    pub(super) fn ttl(
        &self,
        stage: StageName,
        model: &ModelRef,
        uses: u32,
        client: &Client,
    ) -> CacheTtl {
        let mut lasting = self.lasting.borrow_mut();
        let is_lasting = *lasting.entry((stage, model.clone())).or_insert_with(|| {
            self.expected_seconds(stage, model, client)
                .is_some_and(|seconds| seconds > SHORT_TTL_SECONDS)
        });
        if is_lasting && uses >= USES_THAT_PAY {
            CacheTtl::Hour
        } else {
            CacheTtl::FiveMinutes
        }
    }

    /// How long a stage is expected to take with a model, as fast as its provider allows.
    fn expected_seconds(&self, stage: StageName, model: &ModelRef, client: &Client) -> Option<f64> {
        let StageDuration { requests, seconds } = *self.durations.borrow().get(&stage)?;
        let mut statuses = client.statuses().into_iter();
        let announced = statuses
            .find(|status| (&status.provider, &status.model) == (&model.provider, &model.model));
        let rate = announced.and_then(|status| status.requests_per_minute);
        Some(seconds.max(rate.map_or(0.0, |rate| requests / rate.max(1) as f64 * 60.0)))
    }
}

/// Splits a text at the last blank line in its first `shared` bytes, which several requests share, because a provider's
/// prompt cache ends at a turn. Dialects join turns of one speaker by a blank line again.
pub(super) fn at_paragraph(text: &str, shared: usize) -> (Option<&str>, &str) {
    const BLANK_LINE: &str = "\n\n";
    let end = text
        .get(..shared)
        .filter(|shared| shared.len() < text.len())
        .and_then(|text| text.rfind(BLANK_LINE));
    match end.map(|end| (&text[..end], &text[end + BLANK_LINE.len()..])) {
        Some((before, after)) if !before.trim().is_empty() => (Some(before), after),
        _ => (None, text),
    }
}
