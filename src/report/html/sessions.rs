//! Chunks of sessions: the first words of each message, the points, and which messages state the expected facts.

use std::convert::Infallible;

use serde::Serialize;

use super::chunks::{FactMatcher, chunk, json};
use super::input::{ChunkCache, PageSession};
use crate::action::memo_key;
use crate::report::REPORTS;
use lexical::facts::History;
use sessions::transcript::{Message, Role, estimate_tokens};

/// How many characters of a message are shown.
const FIRST_WORDS: usize = 120;

#[derive(Serialize)]
struct SessionChunk<'s> {
    /// The role, the estimated number of tokens, and the first words.
    messages: Vec<(Role, u64, String)>,
    start: usize,
    points: &'s [usize],
    /// For each probe its point, its id, and for each expected fact the messages before the point that state it.
    facts: Vec<(u32, &'s str, Vec<Vec<usize>>)>,
}

/// The chunk of a session; `probes` are the point, the id and the facts of each probe.
pub(super) fn chunk_session(
    session: &PageSession<'_>,
    probes: &[(u32, &str, &FactMatcher)],
    cache: &dyn ChunkCache,
) -> String {
    let mut name = memo_key("report session", REPORTS);
    name.field("session", session.digest.0);
    for (point, probe, matcher) in probes {
        name.field("point", point.to_le_bytes())
            .field("probe", probe)
            .field("facts", matcher.digest.0);
    }
    let made = chunk(cache, name.finish(), || {
        let history = History::new(session.messages);
        let facts = probes.iter().map(|(point, probe, matcher)| {
            (
                *point,
                *probe,
                messages_with_facts(session, &history, *point, matcher),
            )
        });
        Ok::<_, Infallible>(json(&SessionChunk {
            messages: session.messages.iter().map(shown).collect(),
            start: session.start,
            points: session.points,
            facts: facts.collect(),
        }))
    });
    match made {
        Ok(chunk) => chunk,
        Err(never) => match never {},
    }
}

/// For each expected fact, the messages before a point that state it.
fn messages_with_facts(
    session: &PageSession<'_>,
    history: &History,
    point: u32,
    matcher: &FactMatcher,
) -> Vec<Vec<usize>> {
    let place = usize::try_from(point).unwrap_or_default().wrapping_sub(1);
    let end = session
        .points
        .get(place)
        .copied()
        .unwrap_or(session.messages.len());
    matcher
        .expected()
        .map(|fact| history.holders(fact, 0..end).collect())
        .collect()
}

fn shown(message: &Message) -> (Role, u64, String) {
    let text = message.countable_text();
    let line = text
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .unwrap_or_default();
    let mut words: String = line.chars().take(FIRST_WORDS).collect();
    if words.len() < line.len() {
        words.push('…');
    }
    (message.role, estimate_tokens(&text).0, words)
}
