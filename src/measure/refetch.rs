//! The cost of fetching lost facts again, and when a small summary stops being cheap.

use std::collections::BTreeSet;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use base::units::Tokens;
use lexical::facts::{FactFinder, History};

/// Tokens of one fetch besides what is fetched: a call and its framing.
pub const FETCH_OVERHEAD: Tokens = Tokens(300);
/// Probes of a task by default.
pub const DEFAULT_PROBES: u32 = 10;

/// The cost of fetching the lost facts of a probe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refetch {
    /// Tokens of the messages fetched, each counted once, and of the fetches themselves; of all that was replaced, if
    /// `unguided`.
    pub tokens: Tokens,
    /// Nothing in the context points to one of the messages.
    pub unguided: bool,
    /// Lost facts that occur in no message whole; what finding them takes is not known.
    pub unlocated: u32,
}

/// The tokens of a range of messages; `tokens` are those of all messages, so the range lies within them.
pub(super) fn tokens_of(tokens: &[Tokens], messages: Range<usize>) -> Tokens {
    debug_assert!(
        messages.end <= tokens.len(),
        "{messages:?} of {} messages",
        tokens.len()
    );
    tokens
        .iter()
        .take(messages.end)
        .skip(messages.start)
        .copied()
        .sum()
}

/// For each fact, the smallest message in `prefix` that has it, the earlier one of equals; `tokens` are those of the
/// transcript's messages. `None` where no message has it.
pub fn smallest_holders(
    history: &History,
    prefix: Range<usize>,
    tokens: &[Tokens],
    facts: &[FactFinder],
) -> Vec<Option<usize>> {
    let holders = facts.iter().map(|fact| {
        let sized = history
            .holders(fact, prefix.clone())
            .filter_map(|index| Some((*tokens.get(index)?, index)));
        sized.min().map(|(_, index)| index)
    });
    holders.collect()
}

/// The cost of fetching, given the smallest holder of each lost fact. Whoever reads the context knows where to look for
/// a message if the context `points_to` it by an exact token of the message; without such a token for each message,
/// everything that was replaced has to be read once. Without this rule an empty context would be cheap: it would find
/// every fact at once.
pub fn refetch(
    lost: impl IntoIterator<Item = Option<usize>>,
    tokens: &[Tokens],
    replaced: Tokens,
    points_to: impl Fn(usize) -> bool,
) -> Refetch {
    let (mut fetched, mut cost) = (BTreeSet::new(), Refetch::default());
    for holder in lost {
        match holder.and_then(|index| Some((index, *tokens.get(index)?))) {
            Some((index, size)) if fetched.insert(index) => {
                cost.tokens += size + FETCH_OVERHEAD;
                cost.unguided |= !points_to(index);
            }
            Some(_) => {}
            None => cost.unlocated += 1,
        }
    }
    if cost.unguided {
        cost.tokens = replaced;
    }
    cost
}

/// Tokens of a task of `probes` probes, each with a request of its own: the context is read with every request, after
/// the first from the prompt cache at `cached` of the price, and each probe fetches what it lacks.
pub fn tokens_per_task(context: f64, refetch: f64, probes: f64, cached: f64) -> f64 {
    context * (1.0 + cached * (probes - 1.0)) + probes * refetch
}

/// The number of probes at which two methods cost the same, each given as (context, refetch cost) in tokens. `None` if
/// they never do, from one probe on.
pub fn break_even(a: (f64, f64), b: (f64, f64), cached: f64) -> Option<f64> {
    let smaller = b.0 - a.0;
    let probes = smaller * (1.0 - cached) / (a.1 - b.1 - cached * smaller);
    (probes.is_finite() && probes >= 1.0).then_some(probes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lexical::facts::Fact;
    use proptest::prelude::*;
    use sessions::transcript::{Message, Role};

    fn tokens() -> Vec<Tokens> {
        [50, 9, 20, 5].map(Tokens).into()
    }

    #[test]
    fn the_smallest_holder_within_the_prefix_is_fetched() {
        let texts = [
            "system: port 8081",
            "the port is 8081 and retries 5",
            "retries 5, port 8081",
            "8081",
        ];
        let messages: Vec<Message> = texts
            .iter()
            .map(|text| Message::text(Role::User, *text))
            .collect();
        let facts: Vec<Fact> = ["8081", "retries 5", "gone"]
            .map(|t| Fact {
                spellings: vec![t.into()],
            })
            .into();
        let holders = smallest_holders(
            &History::new(&messages),
            1..3,
            &tokens(),
            &FactFinder::all(&facts),
        );
        assert_eq!(holders, [Some(1), Some(1), None]);
        let fetched = |points_to: fn(usize) -> bool| {
            refetch(holders.clone(), &tokens(), Tokens(29), points_to)
        };
        assert_eq!(
            fetched(|_| true),
            Refetch {
                tokens: Tokens(309),
                unguided: false,
                unlocated: 1
            }
        );
        assert_eq!(
            fetched(|_| false),
            Refetch {
                tokens: Tokens(29),
                unguided: true,
                unlocated: 1
            }
        );
    }

    #[test]
    fn nothing_lost_costs_nothing() {
        assert_eq!(
            refetch([], &tokens(), Tokens(84), |_| false),
            Refetch::default()
        );
    }

    #[test]
    fn a_small_summary_that_forgets_pays_later() {
        let (summary, full) = ((1_000.0, 500.0), (21_000.0, 0.0));
        assert_eq!(tokens_per_task(summary.0, summary.1, 1.0, 0.1), 1_500.0);
        assert_eq!(tokens_per_task(summary.0, summary.1, 10.0, 1.0), 15_000.0);
        assert_eq!(tokens_per_task(full.0, full.1, 10.0, 0.1), 39_900.0);
        assert_eq!(
            break_even(summary, full, 1.0),
            None,
            "without a cache the smaller one stays cheaper"
        );
        assert_eq!(break_even((1_000.0, 3_000.0), full, 0.1), Some(18.0));
        assert_eq!(break_even(full, (1_000.0, 3_000.0), 0.1), Some(18.0));
        for k in [17.0, 19.0] {
            let at = |(context, refetch)| tokens_per_task(context, refetch, k, 0.1);
            assert_eq!(at((1_000.0, 3_000.0)) < at(full), k < 18.0);
        }
        assert_eq!(break_even((1.0, 1.0), (2.0, 1.0), 0.1), None);
    }

    #[test]
    fn an_empty_context_is_never_cheaper_than_the_whole() {
        for cached in [0.0, 0.1, 1.0] {
            for probes in [1.0, 10.0, 100.0] {
                assert!(
                    tokens_per_task(0.0, 5.0, probes, cached)
                        >= tokens_per_task(5.0, 0.0, probes, cached)
                );
            }
        }
    }

    proptest! {
        #[test]
        fn order_and_repetition_of_facts_do_not_matter(lost in proptest::collection::vec(0usize..4, 0..8)) {
            let cost = |order: Vec<usize>| refetch(order.into_iter().map(Some), &tokens(), Tokens(84), |_| true).tokens;
            let mut twice = lost.clone();
            twice.extend(lost.iter().rev());
            prop_assert_eq!(cost(lost), cost(twice));
        }
    }
}
