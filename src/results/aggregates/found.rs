//! What rules find in the contexts of a method: references that their transcripts do not have, and the findings of the
//! guard.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::contexts::{contexts, mean_by_fixture};
use crate::results::Ordered;
use crate::results::files::row::ContextRow;
use crate::results::result_set::ResultSet;
use base::units::Tokens;
use guard::{Options, Verdict};

/// `invented` of a method in `summary.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InventedSummary {
    /// Invented references per 1,000 tokens of a context, the mean over fixtures; null where no context was measured.
    pub per_1000_tokens: Option<f64>,
    /// Contexts that were measured.
    pub contexts: u64,
    /// Readable contexts that were not measured, because their logs begin in the middle of a session.
    pub begun_midway: u64,
    /// How many invented references all measured contexts have.
    pub count: u64,
    /// The distinct invented references, at most [`MOST_NAMED`]; those in most contexts come first.
    pub references: Vec<String>,
}

/// The most references that a summary names.
const MOST_NAMED: usize = 20;

impl InventedSummary {
    /// Measures a method; `None` where no context can be read.
    pub(crate) fn new(set: &ResultSet, method: &str) -> Option<InventedSummary> {
        let own = contexts(set, method);
        let readable = own.iter().filter(|context| context.tokens.is_some());
        let (known, midway): (Vec<&ContextRow>, Vec<&ContextRow>) = readable
            .copied()
            .partition(|context| context.invented.is_some());
        if known.is_empty() && midway.is_empty() {
            return None;
        }
        let invented = known
            .iter()
            .filter_map(|context| context.invented.as_ref())
            .map(|found| &found.invented);
        Some(InventedSummary {
            per_1000_tokens: mean_by_fixture(&known, |context| {
                context
                    .invented
                    .as_ref()?
                    .per_1000_tokens(Tokens(context.tokens?))
            }),
            contexts: known.len() as u64,
            begun_midway: midway.len() as u64,
            count: invented
                .clone()
                .map(|references| references.len() as u64)
                .sum(),
            references: most_frequent(invented.flatten()),
        })
    }
}

fn most_frequent<'r>(references: impl Iterator<Item = &'r String>) -> Vec<String> {
    let mut counts: BTreeMap<&String, usize> = BTreeMap::new();
    references.for_each(|reference| *counts.entry(reference).or_default() += 1);
    let mut counts: Vec<(&String, usize)> = counts.into_iter().collect();
    // stable: equals stay in alphabetical order
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    counts
        .into_iter()
        .take(MOST_NAMED)
        .map(|(reference, _)| reference.clone())
        .collect()
}

/// The findings of the guard in the contexts of one method.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GuardSummary {
    /// How many contexts it looked at.
    pub contexts: u64,
    /// How many it would have rejected.
    pub rejected: u64,
    /// The share of these.
    pub rejected_share: f64,
    /// How many contexts have a finding of each rule, warnings among them.
    pub findings: Ordered<u64>,
}

impl GuardSummary {
    /// Of the contexts of `method`; `None` where the guard looked at none.
    pub(crate) fn new(set: &ResultSet, method: &str) -> Option<GuardSummary> {
        let guarded = contexts(set, method).into_iter();
        let guarded: Vec<_> = guarded.filter_map(|row| row.guard.as_ref()).collect();
        let rejected = guarded
            .iter()
            .filter(|found| found.values().any(|verdict| *verdict == Verdict::Reject))
            .count();
        let findings = Options::KINDS.into_iter().filter_map(|kind| {
            let count = guarded
                .iter()
                .filter(|found| found.contains_key(kind))
                .count();
            (count > 0).then(|| (kind.to_owned(), count as u64))
        });
        (!guarded.is_empty()).then(|| GuardSummary {
            contexts: guarded.len() as u64,
            rejected: rejected as u64,
            rejected_share: rejected as f64 / guarded.len() as f64,
            findings: findings.collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::contexts::fakes::{context, set};
    use super::*;
    use lexical::InventedReferences;

    fn with(fixture: &str, run: u32, tokens: u64, invented: Option<&[&str]>) -> ContextRow {
        let invented = invented.map(|names| InventedReferences {
            invented: names.iter().map(|name| (*name).to_owned()).collect(),
            ..InventedReferences::default()
        });
        ContextRow {
            tokens: Some(tokens),
            invented,
            ..context(fixture, 1, run)
        }
    }

    #[test]
    fn it_is_the_mean_over_sessions_and_leaves_out_those_that_begin_midway() {
        let contexts = vec![
            with("a", 1, 1000, Some(&["x.rs", "y.rs"])),
            with("a", 2, 1000, Some(&["y.rs", "a.rs"])),
            with("b", 1, 500, Some(&[])),
            with("c", 1, 500, None),
        ];
        let found = InventedSummary::new(&set(contexts), "m").expect("contexts");
        assert_eq!(
            (
                found.per_1000_tokens,
                found.contexts,
                found.begun_midway,
                found.count
            ),
            (Some(1.0), 3, 1, 4)
        );
        assert_eq!(found.references, ["y.rs", "a.rs", "x.rs"]);
    }

    #[test]
    fn nothing_is_known_where_all_sessions_begin_midway_or_no_context_can_be_read() {
        let midway = InventedSummary::new(&set(vec![with("a", 1, 100, None)]), "m")
            .expect("a readable context");
        assert_eq!(
            (midway.per_1000_tokens, midway.begun_midway),
            (None, 1),
            "unknown is not zero"
        );
        let opaque = ContextRow {
            tokens: None,
            invented: None,
            ..context("a", 1, 1)
        };
        assert_eq!(InventedSummary::new(&set(vec![opaque]), "m"), None);
    }
}
