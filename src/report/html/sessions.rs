//! Chunks of sessions: their messages with the first words of each, the points, and where the expected facts are said.

use std::collections::BTreeMap;
use std::convert::Infallible;

use serde::Serialize;

use super::chunks::{FactMatcher, chunk, chunk_name, json};
use super::input::{ChunkCache, PageSession};
use lexical::facts::History;
use sessions::transcript::{Message, Role, estimate_tokens};

/// Characters of a message that are shown.
const FIRST_WORDS: usize = 120;

#[derive(Serialize)]
struct SessionChunk<'s> {
    /// Who speaks, about how many tokens, the first words.
    messages: Vec<(Role, u64, String)>,
    start: usize,
    points: &'s [usize],
    /// By index of the probe: the messages before its point that say each expected fact.
    facts: BTreeMap<usize, Vec<Vec<usize>>>,
}

/// The chunk of a session; of each probe its index, its point and its facts.
pub(super) fn chunk_session(
    session: &PageSession<'_>,
    probes: &[(usize, u32, &FactMatcher)],
    cache: &dyn ChunkCache,
) -> String {
    let mut name = chunk_name("report session v1");
    name.field("session", session.digest.0);
    for (index, point, matcher) in probes {
        name.field("probe", (*index as u64).to_le_bytes()).field("point", point.to_le_bytes());
        name.field("facts", matcher.digest.0);
    }
    let holders = |history: &History, (index, point, matcher): &(usize, u32, &FactMatcher)| {
        let place = usize::try_from(*point).unwrap_or_default().wrapping_sub(1);
        let end = session.points.get(place).copied().unwrap_or(session.messages.len());
        let of = |fact| history.holders(fact, 0..end).collect();
        (*index, matcher.expected().map(of).collect())
    };
    let made = chunk(cache, name.finish(), || {
        let history = History::new(session.messages);
        Ok::<_, Infallible>(json(&SessionChunk {
            messages: session.messages.iter().map(shown).collect(),
            start: session.start,
            points: session.points,
            facts: probes.iter().map(|probe| holders(&history, probe)).collect(),
        }))
    });
    match made {
        Ok(chunk) => chunk,
        Err(never) => match never {},
    }
}

fn shown(message: &Message) -> (Role, u64, String) {
    let text = message.countable_text();
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let mut words: String = line.chars().take(FIRST_WORDS).collect();
    if words.len() < line.len() {
        words.push('…');
    }
    (message.role, estimate_tokens(&text).0, words)
}
