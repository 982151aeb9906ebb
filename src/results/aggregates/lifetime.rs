//! The life of a session under a method, as far as its contexts show it: what a compaction frees, what it leaves, and when
//! what it leaves has grown so far that nothing is freed any more.

use super::needed::contexts;
use crate::results::result_set::set::ResultSet;
use sessions::economics::{LifeCycle, MeasuredContext};

/// Of a method; `None` where no session was compressed more than once, or no size is known.
pub(in crate::results) fn life_cycle(set: &ResultSet, method: &str) -> Option<LifeCycle> {
    let measured = contexts(set, method).into_iter().filter_map(|context| {
        Some(MeasuredContext {
            method: context.method.clone(),
            chain: format!("{} {}", context.run, context.fixture),
            point: context.point,
            replaced: context.replaced_tokens,
            tokens: context.tokens?,
            seconds: context.seconds,
            usd: context.usd,
            calls: context.calls,
        })
    });
    LifeCycle::of_contexts(&measured.collect::<Vec<_>>()).filter(|life| life.growth.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::aggregates::needed::fakes::{context, set};

    #[test]
    fn a_floor_that_rises_reaches_the_trigger() {
        let at = |point: u32, tokens: u64| {
            let mut one = context("a", point, 1, 1.0);
            one.tokens = Some(tokens);
            one
        };
        let life = life_cycle(&set(vec![at(1, 100), at(2, 150), at(3, 200)]), "m").unwrap();
        assert_eq!((life.trigger, life.floor, life.freed, life.growth), (1000.0, 100.0, 900.0, Some(50.0)));
        assert_eq!(life.cycles, Some(18));
        let flat = life_cycle(&set(vec![at(1, 100), at(2, 100)]), "m").unwrap();
        assert_eq!(flat.cycles, None, "it never does");
        assert_eq!(life_cycle(&set(vec![at(1, 100)]), "m"), None, "one compression says nothing of growth");
        let mut unreadable = at(2, 0);
        unreadable.tokens = None;
        assert_eq!(life_cycle(&set(vec![at(1, 100), unreadable]), "m"), None);
    }
}
