//! Exact facts in texts: a fact in any of its spellings, names and paths, and a transcript prepared for searches.
//!
//! A text is folded once and then searched for many facts; a transcript is folded and indexed once ([`History`]).

mod false_values;
mod finder;
mod history;
mod names;
mod topic;
#[cfg(test)]
mod variants_tests;

pub use false_values::with_false_value;
pub use finder::FactFinder;
pub use history::History;
pub use names::{TranscriptPaths, normal_path, suffixes};
pub use topic::{Topic, is_alike, is_content_word, pieces};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A short text that a correct answer contains, in one of its accepted spellings.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(from = "Spellings", into = "Spellings")]
pub struct Fact {
    /// At least one spelling; the first is the one shown.
    pub spellings: Vec<String>,
}

#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Spellings {
    One(String),
    Several(Vec<String>),
}

impl From<Spellings> for Fact {
    fn from(spellings: Spellings) -> Fact {
        match spellings {
            Spellings::One(one) => Fact::new(one),
            Spellings::Several(spellings) => Fact { spellings },
        }
    }
}

impl From<Fact> for Spellings {
    fn from(fact: Fact) -> Spellings {
        match <[String; 1]>::try_from(fact.spellings) {
            Ok([one]) => Spellings::One(one),
            Err(several) => Spellings::Several(several),
        }
    }
}

impl Fact {
    /// A fact with one spelling.
    pub fn new(spelling: impl Into<String>) -> Fact {
        Fact {
            spellings: vec![spelling.into()],
        }
    }

    /// The spelling that is shown.
    pub fn name(&self) -> &str {
        self.spellings.first().map_or("", String::as_str)
    }
}
