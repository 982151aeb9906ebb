//! Reads the replies and compares them with what is true. A reply out of form fails as a whole: nothing in it counts.

use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::State;
use super::plant::Variant;
use super::request::Request;
use base::text::{one_line, shortened};

/// How a reply breaks its form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplyFault {
    /// Prose, a refusal, or nothing at all.
    #[error("the reply is not one JSON object and nothing else; it begins: {0}")]
    NotOneObject(String),
    /// An object that cannot be read.
    #[error("the reply is not sound JSON: {0}")]
    Unsound(String),
    /// A number that was not listed.
    #[error("the reply has the number `{0}`, which was not asked about")]
    Unknown(String),
    /// A number with two words.
    #[error("the reply has the number {0} twice")]
    Twice(String),
    /// A listed number without a word.
    #[error("the reply leaves out the number {0}")]
    Missing(usize),
    /// A word that is not among those asked for.
    #[error("the reply gives {number} the word {word}; expected {expected}")]
    Word {
        /// The number as written.
        number: String,
        /// The word, quoted.
        word: String,
        /// What could stand there.
        expected: String,
    },
}

/// What an answerer said of an action.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Said {
    /// The word.
    pub state: State,
    /// The handle that it gave, if any.
    pub handle: Option<String>,
}

/// What is known of a target and of its decoy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graded<T> {
    /// Of the action itself.
    pub target: T,
    /// `None` where the decoy was not asked about.
    pub decoy: Option<T>,
}

/// The members of an object in their order, repeated ones too.
struct Members(Vec<(String, String)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Members, D::Error> {
        struct All;
        impl<'de> Visitor<'de> for All {
            type Value = Members;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object with a word for each number")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Members, M::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry::<String, String>()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(All)
    }
}

/// Which actions a reply to the first request does: for each target.
///
/// # Errors
/// The reply is out of form.
pub fn grade_next(variant: &Variant, reply: &str) -> Result<Vec<Graded<bool>>, ReplyFault> {
    graded(variant, &variant.next, reply, |number, word| match word {
        "do" => Ok(true),
        "leave" => Ok(false),
        _ => Err(wrong_word(number, word, "\"do\" or \"leave\"")),
    })
}

/// What a reply to the second request says of each target.
///
/// # Errors
/// The reply is out of form.
pub fn grade_states(variant: &Variant, reply: &str) -> Result<Vec<Graded<Said>>, ReplyFault> {
    graded(variant, &variant.state, reply, |number, word| {
        let (name, handle) = match word.split_once(':') {
            Some((name, handle)) if name.trim() == State::Started.name() => {
                (name.trim(), Some(handle))
            }
            _ => (word.trim(), None),
        };
        let state = State::ALL.into_iter().find(|state| state.name() == name);
        let handle = handle
            .map(str::trim)
            .filter(|handle| !handle.is_empty())
            .map(str::to_owned);
        state.map(|state| Said { state, handle }).ok_or_else(|| {
            let words = State::ALL.map(State::name).join(", ");
            wrong_word(number, word, &format!("one of {words}"))
        })
    })
}

fn wrong_word(number: &str, word: &str, expected: &str) -> ReplyFault {
    ReplyFault::Word {
        number: number.to_owned(),
        word: format!("{:?}", shortened(&one_line(word), 40)),
        expected: expected.to_owned(),
    }
}

/// Reads one word for each number of a request.
fn graded<T>(
    variant: &Variant,
    request: &Request,
    reply: &str,
    read: impl Fn(&str, &str) -> Result<T, ReplyFault>,
) -> Result<Vec<Graded<T>>, ReplyFault> {
    let Members(members) = read_object(reply)?;
    let mut words: Vec<Option<T>> = request.listed.iter().map(|_| None).collect();
    for (number, word) in &members {
        let at = request
            .numbers()
            .position(|known| known.to_string() == *number);
        let slot = at.and_then(|at| words.get_mut(at));
        let slot = slot.ok_or_else(|| ReplyFault::Unknown(shortened(number, 20)))?;
        if slot.is_some() {
            return Err(ReplyFault::Twice(number.clone()));
        }
        *slot = Some(read(number, word)?);
    }
    let mut targets: Vec<[Option<T>; 2]> = variant.targets.iter().map(|_| [None, None]).collect();
    for ((number, (target, is_decoy)), word) in request.numbers().zip(&request.listed).zip(words) {
        let word = word.ok_or(ReplyFault::Missing(number))?;
        if let Some([own, decoy]) = targets.get_mut(*target) {
            *(if *is_decoy { decoy } else { own }) = Some(word);
        }
    }
    let graded = targets.into_iter().filter_map(|[target, decoy]| {
        Some(Graded {
            target: target?,
            decoy,
        })
    });
    Ok(graded.collect())
}

/// The object that is the whole reply. A code fence around it is no prose.
fn read_object(reply: &str) -> Result<Members, ReplyFault> {
    let text = reply.trim();
    let fenced = text
        .strip_prefix("```json")
        .or_else(|| text.strip_prefix("```"));
    let text = fenced
        .and_then(|inner| inner.strip_suffix("```"))
        .map_or(text, str::trim);
    if !text.starts_with('{') || !text.ends_with('}') {
        return Err(ReplyFault::NotOneObject(shortened(&one_line(reply), 60)));
    }
    serde_json::from_str(text).map_err(|error| ReplyFault::Unsound(error.to_string()))
}
