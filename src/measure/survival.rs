//! What a compression keeps: which expected facts occur in the context, who lost the others, how much of the replaced
//! messages is gone, and what it costs to fetch lost facts again.
//!
//! The class of a fact follows from two literal findings, in the context and in the answer, because only they can be
//! had for every cell without a model, and alike in every run. They separate the loss of the compressor from that of
//! the answerer, which a grade cannot. A paraphrase is not found: a fact counted as answered elsewhere may have been in
//! the context in other words.

use std::collections::BTreeSet;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use base::named_enum;
use base::units::Tokens;
use lexical::facts::{FactFinder, History, Topic};

named_enum! {
    /// What happened to one expected fact.
    pub enum FactClass {
        /// In the context and in the answer.
        Answered = "answered",
        /// In the context, not in the answer: the answerer missed it.
        Missed = "missed",
        /// In neither: lost in compression.
        Lost = "lost",
        /// In the answer, though not literally in the context: paraphrased there, guessed, or known otherwise.
        AnsweredElsewhere = "answered_elsewhere",
    }
}

impl FactClass {
    /// The class of a fact by where it occurs.
    pub fn new(in_context: bool, in_answer: bool) -> FactClass {
        match (in_context, in_answer) {
            (true, true) => FactClass::Answered,
            (true, false) => FactClass::Missed,
            (false, false) => FactClass::Lost,
            (false, true) => FactClass::AnsweredElsewhere,
        }
    }
}

/// For each fact, whether it occurs in `text`, made by [`sessions::transcript::fold`]. `topic` is that of the question:
/// short numbers count only near one of its words. It is empty for an answer, which need not repeat its question.
pub fn presence(text: &str, facts: &[FactFinder], topic: &Topic) -> Vec<bool> {
    facts.iter().map(|fact| topic.has(fact, text)).collect()
}

/// The share of `true`, from 0 to 1; `None` if there are no values.
pub fn share(presence: impl IntoIterator<Item = bool>) -> Option<f64> {
    let (mut all, mut held) = (0u32, 0u32);
    for is_present in presence {
        all += 1;
        held += u32::from(is_present);
    }
    (all > 0).then(|| f64::from(held) / f64::from(all))
}

/// 1 − context / replaced, in tokens: 1 keeps nothing, 0 keeps as much as there was, below 0 grew. `None` where
/// nothing was replaced.
pub fn compression_ratio(context: Tokens, replaced: Tokens) -> Option<f64> {
    (replaced.0 > 0).then(|| 1.0 - context.0 as f64 / replaced.0 as f64)
}

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
    use proptest::prelude::*;

    use super::*;
    use lexical::facts::Fact;
    use sessions::transcript::{Message, Role, fold};

    #[test]
    fn classes_follow_from_where_a_fact_stands() {
        let table: Vec<&str> = [(true, true), (true, false), (false, false), (false, true)]
            .map(|(context, answer)| FactClass::new(context, answer).name())
            .into();
        assert_eq!(table, FactClass::ALL.map(FactClass::name));
        assert_eq!(
            serde_json::to_string(&FactClass::AnsweredElsewhere).unwrap(),
            "\"answered_elsewhere\""
        );
    }

    #[test]
    fn survival_is_the_share_of_facts_that_stand() {
        let facts: Vec<Fact> = ["8081", "src/store.rs", "连接超时"]
            .map(|text| Fact {
                spellings: vec![text.into()],
            })
            .into();
        let present = presence(
            &fold("Port 8081. 数据库连接超时。"),
            &FactFinder::all(&facts),
            &Topic::default(),
        );
        assert_eq!(present, [true, false, true]);
        assert_eq!(share(present), Some(2.0 / 3.0));
        assert_eq!(share([]), None);
    }

    #[test]
    fn a_ratio_needs_something_to_replace() {
        assert_eq!(compression_ratio(Tokens(250), Tokens(1000)), Some(0.75));
        assert_eq!(compression_ratio(Tokens(0), Tokens(1000)), Some(1.0));
        assert_eq!(compression_ratio(Tokens(2000), Tokens(1000)), Some(-1.0));
        assert_eq!(compression_ratio(Tokens(5), Tokens(0)), None);
    }

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
