//! A fact: a short text in its accepted spellings.

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
            Spellings::One(one) => Fact { spellings: vec![one] },
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
    /// The spelling that is shown.
    pub fn name(&self) -> &str {
        self.spellings.first().map_or("", String::as_str)
    }
}
