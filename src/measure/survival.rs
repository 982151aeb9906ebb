//! What a compression keeps: which expected facts occur in the context, who lost the others, and how much of the
//! replaced messages is gone.
//!
//! The class of a fact follows from two literal findings, in the context and in the answer, because only they can be
//! had for every cell without a model, and alike in every run. They separate the loss of the compressor from that of
//! the answerer, which a grade cannot. A paraphrase is not found: a fact counted as answered elsewhere may have been in
//! the context in other words.

use base::named_enum;
use base::units::Tokens;
use lexical::facts::{FactFinder, Topic};

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

#[cfg(test)]
mod tests {
    use super::*;
    use lexical::facts::Fact;
    use sessions::transcript::fold;

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
}
