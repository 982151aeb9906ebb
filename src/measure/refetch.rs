//! Refetch cost: what it takes to find lost facts again, and when a small summary stops being cheap.

use std::collections::BTreeSet;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::probe::{FactFinder, History};
use crate::units::Tokens;

/// Tokens of one fetch besides what is fetched: a call and its framing.
pub const FETCH_OVERHEAD: Tokens = Tokens(300);
/// How often each fact is needed in a task, where nothing else is said.
pub const DEFAULT_NEEDS: f64 = 10.0;

/// What fetching the lost facts of a probe takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refetch {
    /// Tokens of the messages fetched, each counted once, and of the fetches themselves.
    pub tokens: Tokens,
    /// Distinct messages fetched.
    pub fetches: u32,
    /// Lost facts that stand in no message whole; they are not in the cost.
    pub unlocated: u32,
}

/// For each fact the smallest message among `prefix` that holds it, the earlier of equals; `tokens` are those of
/// the transcript's messages. `None` where no message does.
pub fn smallest_holders(
    history: &History,
    prefix: Range<usize>,
    tokens: &[Tokens],
    facts: &[FactFinder],
) -> Vec<Option<usize>> {
    let smallest = |fact: &FactFinder| {
        let sized = history.holders(fact, prefix.clone()).filter_map(|index| Some((*tokens.get(index)?, index)));
        sized.min().map(|(_, index)| index)
    };
    facts.iter().map(smallest).collect()
}

/// What fetching costs, given the smallest holder of each lost fact.
pub fn refetch(lost: impl IntoIterator<Item = Option<usize>>, tokens: &[Tokens]) -> Refetch {
    let mut fetched = BTreeSet::new();
    let mut cost = Refetch::default();
    for holder in lost {
        match holder.and_then(|index| Some((index, *tokens.get(index)?))) {
            Some((index, size)) if fetched.insert(index) => {
                cost.tokens += size + FETCH_OVERHEAD;
                cost.fetches += 1;
            }
            Some(_) => {}
            None => cost.unlocated += 1,
        }
    }
    cost
}

/// Tokens of a task that needs each fact `needs` times: the context, and its refetch cost that often.
pub fn tokens_per_task(context: f64, refetch: f64, needs: f64) -> f64 {
    context + needs * refetch
}

/// How many needs of each fact make two methods cost the same, each given as (context, refetch cost) in tokens.
/// `None` if one is never dearer than the other, at any number of needs from 0.
pub fn break_even(a: (f64, f64), b: (f64, f64)) -> Option<f64> {
    let needs = (b.0 - a.0) / (a.1 - b.1);
    (needs.is_finite() && needs >= 0.0).then_some(needs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::Fact;
    use crate::transcript::{Message, Role};
    use proptest::prelude::*;

    fn tokens() -> Vec<Tokens> {
        [50, 9, 20, 5].map(Tokens).into()
    }

    #[test]
    fn the_smallest_holder_within_the_prefix_is_fetched() {
        let texts = ["system: port 8081", "the port is 8081 and retries 5", "retries 5, port 8081", "8081"];
        let messages: Vec<Message> = texts.iter().map(|text| Message::text(Role::User, *text)).collect();
        let facts: Vec<Fact> = ["8081", "retries 5", "gone"].map(|t| Fact { spellings: vec![t.into()] }).into();
        let holders = smallest_holders(&History::new(&messages), 1..3, &tokens(), &FactFinder::all(&facts));
        assert_eq!(holders, [Some(1), Some(1), None]);
        let cost = refetch(holders, &tokens());
        assert_eq!(cost, Refetch { tokens: Tokens(309), fetches: 1, unlocated: 1 });
    }

    #[test]
    fn nothing_lost_costs_nothing() {
        assert_eq!(refetch([], &tokens()), Refetch::default());
    }

    #[test]
    fn a_small_summary_that_forgets_pays_later() {
        let (summary, full) = ((1_000.0, 500.0), (21_000.0, 0.0));
        assert_eq!(tokens_per_task(summary.0, summary.1, DEFAULT_NEEDS), 6_000.0);
        assert_eq!(break_even(summary, full), Some(40.0));
        assert_eq!(break_even(full, summary), Some(40.0));
        assert_eq!(break_even((1.0, 1.0), (2.0, 2.0)), None);
        assert_eq!(break_even((1.0, 1.0), (2.0, 1.0)), None);
    }

    proptest! {
        #[test]
        fn order_and_repetition_of_facts_do_not_matter(lost in proptest::collection::vec(0usize..4, 0..8)) {
            let cost = |order: Vec<usize>| refetch(order.into_iter().map(Some), &tokens()).tokens;
            let mut twice = lost.clone();
            twice.extend(lost.iter().rev());
            prop_assert_eq!(cost(lost), cost(twice));
        }
    }
}
