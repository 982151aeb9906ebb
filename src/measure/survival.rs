//! What a compression keeps: which expected facts occur in the context, and how much of the replaced messages is gone.

use crate::probe::{FactFinder, Topic};
use base::units::Tokens;

/// For each fact whether it occurs in `text`, made by [`sessions::transcript::fold`]. `topic` is that of the question, of which
/// short numbers need a word near them; empty for an answer, which need not repeat its question.
pub fn presence(text: &str, facts: &[FactFinder], topic: &Topic) -> Vec<bool> {
    facts.iter().map(|fact| topic.has(fact, text)).collect()
}

/// The share of `true`, from 0 to 1; `None` of nothing.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::Fact;
    use sessions::transcript::fold;

    #[test]
    fn survival_is_the_share_of_facts_that_stand() {
        let facts: Vec<Fact> =
            ["8081", "src/store.rs", "连接超时"].map(|text| Fact { spellings: vec![text.into()] }).into();
        let present = presence(&fold("Port 8081. 数据库连接超时。"), &FactFinder::all(&facts), &Topic::default());
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
}
