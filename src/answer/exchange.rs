//! The steps of an open-book answer: the searches that the answerer asked for, and their results.
//!
//! Invariants: an exchange is a value, and the next step of an answer depends on it and on the context alone. A
//! malformed request for a search gets an error text and uses up one search: leaving such answers out would flatter the
//! method. No exchange is endless: if a model asks again after it learned that no search is left, that reply is its
//! answer.

use std::sync::Arc;

use super::{LINE, Recovery, TOOL};
use crate::action::{ActionKey, Digest};
use base::locale::Locale;
use base::units::Usd;
use models::{Completion, Dialect, ReadFault, call_id, renumber_calls};

/// All steps of an answer before the present one.
#[derive(Clone, Debug, Default)]
pub struct Exchange {
    pub rounds: Vec<Round>,
}

/// A step in which the answerer asked for searches, with what they returned.
#[derive(Clone, Debug)]
pub struct Round {
    /// The action of the step.
    pub key: ActionKey,
    /// What it cost; `None` where no price is known.
    pub cost: Option<Usd>,
    pub request: SearchRequest,
    /// The results of its searches, in order; fewer than it asks for while some are still to be made.
    pub returned: Vec<Returned>,
}

/// A reply that asks for searches.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchRequest {
    /// The reply as the next step has it: a text, or the dialect's items.
    pub reply: Arc<str>,
    /// The searches that it asks for; at least one.
    pub asked: Vec<Asked>,
}

/// One search that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    Query(Arc<str>),
    /// A search that is not made; the text says why.
    Misuse(String),
}

/// What one search returned.
#[derive(Clone, Debug)]
pub struct Returned {
    /// What the answerer gets to read.
    pub text: Arc<str>,
    /// Best first; empty for a misuse.
    pub excerpts: Vec<Excerpt>,
}

/// A part of a message that a search returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt {
    /// The label that it is shown with: `message 12 · user`.
    pub label: String,
    pub text: String,
    /// The message's index in the session.
    pub message: usize,
}

impl SearchRequest {
    /// The digest of the reply.
    pub fn digest(&self) -> Digest {
        Digest::hash(&*self.reply)
    }
}

impl Exchange {
    /// Searches that were asked for, misuse included.
    pub fn used(&self) -> usize {
        self.rounds
            .iter()
            .map(|round| round.request.asked.len())
            .sum()
    }

    /// Searches that may still be asked for.
    pub(super) fn left(&self, recovery: &Recovery) -> usize {
        (recovery.calls as usize).saturating_sub(self.used())
    }

    /// Whether the next reply is the answer, whatever it is: the model has asked again although no search was left.
    pub(super) fn must_end(&self, recovery: &Recovery) -> bool {
        self.used() > recovery.calls as usize
    }

    /// The search that is to be made next.
    pub fn pending(&self) -> Option<&Arc<str>> {
        let round = self.rounds.last()?;
        match round.request.asked.get(round.returned.len())? {
            Asked::Query(query) => Some(query),
            Asked::Misuse(_) => None,
        }
    }

    /// The exchange after a step that asked for searches. Misuses have returned already.
    pub fn after(&self, key: ActionKey, cost: Option<Usd>, request: SearchRequest) -> Exchange {
        let mut rounds = self.rounds.clone();
        rounds.push(Round {
            key,
            cost,
            request,
            returned: Vec::new(),
        });
        Exchange { rounds }.with_misuses()
    }

    /// The exchange after its pending search.
    pub fn returned(&self, recovery: &Recovery, excerpts: Vec<Excerpt>) -> Exchange {
        let mut rounds = self.rounds.clone();
        if let Some(round) = rounds.last_mut() {
            let text = excerpts_as_text(recovery, &excerpts).into();
            round.returned.push(Returned { text, excerpts });
        }
        Exchange { rounds }.with_misuses()
    }

    fn with_misuses(mut self) -> Exchange {
        if let Some(round) = self.rounds.last_mut() {
            while let Some(Asked::Misuse(why)) = round.request.asked.get(round.returned.len()) {
                let text = why.as_str().into();
                round.returned.push(Returned {
                    text,
                    excerpts: Vec::new(),
                });
            }
        }
        self
    }

    /// Everything that searches returned, each excerpt once, without labels; empty where there was none.
    pub fn excerpts_text(&self) -> String {
        let mut texts: Vec<&str> = Vec::new();
        for excerpt in self.excerpts() {
            if !texts.contains(&excerpt.text.as_str()) {
                texts.push(&excerpt.text);
            }
        }
        texts.join("\n\n")
    }

    /// All excerpts, in the order in which they came.
    pub fn excerpts(&self) -> impl Iterator<Item = &Excerpt> {
        self.rounds
            .iter()
            .flat_map(|round| &round.returned)
            .flat_map(|returned| &returned.excerpts)
    }
}

/// The results of a search as an answerer gets to read them.
fn excerpts_as_text(recovery: &Recovery, excerpts: &[Excerpt]) -> String {
    if excerpts.is_empty() {
        return recovery.nothing_found().to_owned();
    }
    let texts = excerpts
        .iter()
        .map(|excerpt| format!("[{}]\n{}", excerpt.label, excerpt.text));
    texts.collect::<Vec<_>>().join("\n\n")
}

/// The searches that a reply asks for; `None` if it is an answer.
///
/// # Errors
/// Calls that are not what the dialect promises.
pub fn read_request(
    recovery: &Recovery,
    exchange: &Exchange,
    dialect: Dialect,
    reply: &Completion,
) -> Result<Option<SearchRequest>, ReadFault> {
    if exchange.must_end(recovery) {
        return Ok(None);
    }
    let mut left = exchange.left(recovery);
    let mut admit = |asked: Result<Arc<str>, String>| {
        let is_left = left > 0;
        left = left.saturating_sub(1);
        match asked {
            Ok(query) if is_left => Asked::Query(query),
            Ok(_) => Asked::Misuse(none_left(recovery.locale).to_owned()),
            Err(told) => Asked::Misuse(told),
        }
    };
    if let Some(items) = reply.items.as_deref().filter(|_| !reply.calls.is_empty()) {
        let calls = reply.calls.iter();
        let asked = calls.map(|call| admit(query_of(&call.name, &call.arguments, recovery.locale)));
        let asked = asked.collect();
        let reply = renumber_calls(dialect, items, exchange.used() + 1)?.into();
        return Ok(Some(SearchRequest { reply, asked }));
    }
    // The stand-in has no tools.
    let text = reply.text.trim();
    let query = (dialect == Dialect::Lexical)
        .then(|| text.strip_prefix(LINE))
        .flatten();
    Ok(query.map(|query| SearchRequest {
        reply: text.into(),
        asked: vec![admit(Ok(query.trim().into()))],
    }))
}

/// The ids of the calls of a round that begins after `used` searches.
pub(super) fn call_ids(used: usize, calls: usize) -> impl Iterator<Item = String> {
    (used + 1..=used + calls).map(call_id)
}

/// The words that a call searches for.
///
/// # Errors
/// What a model that misuses the search is told.
fn query_of(tool: &str, arguments: &str, locale: Locale) -> Result<Arc<str>, String> {
    if tool != TOOL {
        return Err(locale.pick(
            format!("Error: there is no tool `{tool}`; the only one is `{TOOL}`. This used up one search."),
            format!("错误：没有工具 `{tool}`，唯一的工具是 `{TOOL}`。已计为一次检索。"),
        ));
    }
    let arguments: serde_json::Value = serde_json::from_str(arguments).unwrap_or_default();
    let query = arguments["query"].as_str().map(str::trim);
    let query = query.filter(|query| !query.is_empty());
    query.map(Into::into).ok_or_else(|| {
        let message = locale.pick(
            "Error: the query is empty. This used up one search.",
            "错误：检索词为空。已计为一次检索。",
        );
        message.to_owned()
    })
}

fn none_left(locale: Locale) -> &'static str {
    locale.pick(
        "Error: no searches are left. Answer from what you have.",
        "错误：检索次数已用完。请根据已有内容作答。",
    )
}
