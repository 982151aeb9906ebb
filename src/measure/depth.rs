//! Where a transcript says a fact, and how often: contexts lose what was said early, and keep what was said often.

use std::ops::Range;

use super::refetch::tokens_of;
use base::named_enum;
use base::units::Tokens;
use lexical::facts::{FactFinder, History};

named_enum! {
    /// Where a fact was last said before its point: in which third of the span, by tokens.
    pub enum Depth {
        /// In an earlier span alone: it has been through more than one compression.
        EarlierSpan = "earlier_span",
        /// In the oldest third of the span.
        FirstThird = "first_third",
        MiddleThird = "middle_third",
        LastThird = "last_third",
    }
}

impl Depth {
    fn from_share(share: f64) -> Depth {
        if share < 1.0 / 3.0 {
            Depth::FirstThird
        } else if share < 2.0 / 3.0 {
            Depth::MiddleThird
        } else {
            Depth::LastThird
        }
    }
}

/// How often a fact was said before its point, and where last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mentions {
    /// Messages that have it. A message that repeats it counts once: a file that was read is one mention.
    pub messages: u32,
    pub depth: Depth,
    /// Compressions since the last of them, the newest one included.
    pub age: u32,
}

impl Mentions {
    /// The mentions of a fact in the messages from `start` to the last of `points`, which contexts replace. The newest
    /// compression took away the messages after the previous point; `tokens` are those of all messages. `None` if no
    /// message has the whole fact.
    pub(super) fn new(
        fact: &FactFinder,
        history: &History,
        start: usize,
        points: &[usize],
        tokens: &[Tokens],
    ) -> Option<Mentions> {
        let (end, before) = points.split_last()?;
        let (prefix, span) = (start..*end, before.last().copied().unwrap_or(start)..*end);
        let (mut messages, mut last) = (0, None);
        for holder in history.holders(fact, prefix) {
            messages += 1;
            last = Some(holder);
        }
        let last = last?;
        let count = |messages: Range<usize>| tokens_of(tokens, messages).0 as f64;
        let depth = if last < span.start {
            Depth::EarlierSpan
        } else {
            let inside = history.place_in(last, fact).unwrap_or(0.0) * count(last..last + 1);
            // a span without tokens has no thirds: what is said there is new
            let share = (count(span.start..last) + inside) / count(span);
            Depth::from_share(if share.is_finite() { share } else { 1.0 })
        };
        let age = points.iter().filter(|point| **point > last).count() as u32;
        Some(Mentions {
            messages,
            depth,
            age,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lexical::facts::Fact;
    use proptest::prelude::*;
    use sessions::transcript::{Message, Role};

    fn finder() -> FactFinder {
        FactFinder::new(&Fact {
            spellings: vec!["needle".into()],
        })
    }

    /// The fact in these of `count` messages of ten words each, all of ten tokens, at the start of each message.
    fn mentions(count: usize, holders: &[usize], span: Range<usize>) -> Option<Mentions> {
        let text = |n: usize| {
            if holders.contains(&n) {
                "needle and nine words"
            } else {
                "ten words without the fact"
            }
        };
        let messages: Vec<Message> = (0..count)
            .map(|n| Message::text(Role::User, text(n)))
            .collect();
        let points = if span.start > 0 {
            vec![span.start, span.end]
        } else {
            vec![span.end]
        };
        Mentions::new(
            &finder(),
            &History::new(&messages),
            0,
            &points,
            &vec![Tokens(10); count],
        )
    }

    #[test]
    fn thirds_are_counted_in_tokens_up_to_the_fact_itself() {
        let long = format!("{} needle {}", "word ".repeat(50), "word ".repeat(48));
        let messages = [
            Message::text(Role::User, "short"),
            Message::text(Role::Assistant, long),
        ];
        let of = |tokens: [u64; 2]| {
            Mentions::new(
                &finder(),
                &History::new(&messages),
                0,
                &[2],
                &tokens.map(Tokens),
            )
            .map(|m| m.depth)
        };
        assert_eq!(
            of([1, 99]),
            Some(Depth::MiddleThird),
            "in the middle of the longer message"
        );
        assert_eq!(of([900, 100]), Some(Depth::LastThird));
        assert_eq!(of([0, 0]), Some(Depth::LastThird));
    }

    proptest! {
        #[test]
        fn equal_messages_are_shared_out_evenly(thirds in 1usize..12, at in 0usize..36) {
            let (count, at) = (3 * thirds, at % (3 * thirds));
            let wanted = [Depth::FirstThird, Depth::MiddleThird, Depth::LastThird][at / thirds];
            prop_assert_eq!(mentions(count, &[at], 0..count), Some(Mentions { messages: 1, depth: wanted, age: 1 }));
        }

        #[test]
        fn the_last_mention_decides_and_every_message_counts(
            holders in proptest::collection::btree_set(0usize..20, 0..8),
            start in 0usize..20,
        ) {
            let holders: Vec<usize> = holders.into_iter().collect();
            let found = mentions(20, &holders, start..20);
            prop_assert_eq!(found.map(|m| m.messages as usize), (!holders.is_empty()).then_some(holders.len()));
            let alone = holders.last().and_then(|last| mentions(20, &[*last], start..20));
            prop_assert_eq!(found.map(|m| m.depth), alone.map(|m| m.depth));
            let is_earlier = holders.last().is_some_and(|last| *last < start);
            prop_assert_eq!(found.map(|m| m.depth == Depth::EarlierSpan), (!holders.is_empty()).then_some(is_earlier));
            prop_assert_eq!(found.map(|m| m.age), (!holders.is_empty()).then_some(1 + u32::from(is_earlier)));
        }

        #[test]
        fn later_is_never_older(a in 0usize..30, b in 0usize..30, start in 0usize..30) {
            let depth = |at: usize| mentions(30, &[at], start..30).map(|m| m.depth);
            prop_assert!(depth(a.min(b)) <= depth(a.max(b)));
        }
    }
}
