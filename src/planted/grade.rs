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
#[error("the reply {0}")]
pub struct ReplyFault(String);

fn fault(message: impl Into<String>) -> ReplyFault {
    ReplyFault(message.into())
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
    let word = shortened(&one_line(word), 40);
    fault(format!(
        "gives {number} the word {word:?}; expected {expected}"
    ))
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
        let slot = slot.ok_or_else(|| {
            let number = shortened(number, 20);
            fault(format!(
                "has the number `{number}`, which was not asked about"
            ))
        })?;
        if slot.is_some() {
            return Err(fault(format!("has the number {number} twice")));
        }
        *slot = Some(read(number, word)?);
    }
    let mut targets: Vec<[Option<T>; 2]> = variant.targets.iter().map(|_| [None, None]).collect();
    for ((number, (target, is_decoy)), word) in request.numbers().zip(&request.listed).zip(words) {
        let word = word.ok_or_else(|| fault(format!("leaves out the number {number}")))?;
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
        let seen = shortened(&one_line(reply), 60);
        return Err(fault(format!(
            "is not one JSON object and nothing else; it begins: {seen}"
        )));
    }
    serde_json::from_str(text).map_err(|error| fault(format!("is not sound JSON: {error}")))
}
