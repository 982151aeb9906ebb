//! The cost of fetching lost facts again.

use std::collections::BTreeSet;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use base::units::Tokens;
use lexical::facts::{FactFinder, History};

/// Tokens of one fetch besides what is fetched: a call and its framing.
pub(super) const FETCH_OVERHEAD: Tokens = Tokens(300);

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
pub(super) fn smallest_holders(
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
