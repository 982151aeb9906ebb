//! What lost a question: the compression, the answerer, or nothing that was there.

use crate::measure::{FactClass, FactOutcome};
use base::named_enum;

named_enum! {
    /// What lost a question.
    pub enum LossCause {
        /// The context lacks a fact that the answer needs.
        Compression = "compression",
        /// The context has the facts, and the answer does not.
        Answerer = "answerer",
        /// The transcript does not say, and the answer does.
        MadeUp = "made up",
    }
}

impl LossCause {
    /// The cause of a bad answer, from its facts; `None` where they do not show it.
    pub(crate) fn from_facts(facts: &[FactOutcome], fabricated: Option<bool>) -> Option<LossCause> {
        let has = |class| facts.iter().any(|fact| fact.class == Some(class));
        match fabricated {
            Some(true) => Some(LossCause::MadeUp),
            _ if has(FactClass::Lost) => Some(LossCause::Compression),
            _ if facts.iter().any(|fact| fact.class.is_some()) => Some(LossCause::Answerer),
            _ => None,
        }
    }

    /// Its place: what the compression lost comes first, what it did not lose last.
    pub(crate) fn rank(cause: Option<LossCause>) -> u8 {
        match cause {
            Some(LossCause::Compression) => 0,
            None => 1,
            Some(LossCause::Answerer | LossCause::MadeUp) => 2,
        }
    }
}
