//! Compression points: where a transcript may be cut.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use base::message::{Message, Role};
use base::units::Tokens;

/// The 1-based number of a compression point within its fixture, that is its compression cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Point(pub u32);

/// Whether cutting before `messages[at]` keeps every tool call with its results.
///
/// Results directly follow their call, so a cut is safe exactly where the next message is not a result.
pub fn is_boundary(messages: &[Message], at: usize) -> bool {
    at <= messages.len() && messages.get(at).is_none_or(|next| next.role != Role::Tool)
}

/// For each of the rising shares of the tokens from `start` on, the first place after it at which the messages can be
/// cut. Shares that one message passes together have one place.
pub fn points_at_shares(
    messages: &[Message],
    start: usize,
    shares: impl IntoIterator<Item = f64>,
    count: &dyn Fn(&Message) -> Tokens,
) -> Vec<usize> {
    let sizes: Vec<u64> = messages.iter().skip(start).map(|message| count(message).0).collect();
    let total: u64 = sizes.iter().sum();
    let mut places = Vec::new();
    let mut since = 0;
    let mut shares = shares.into_iter().peekable();
    for (at, size) in (start + 1..).zip(sizes) {
        since += size;
        if shares.peek().is_some_and(|share| since as f64 >= share * total as f64) && is_boundary(messages, at) {
            places.push(at);
            while shares.next_if(|share| since as f64 >= share * total as f64).is_some() {}
        }
    }
    places
}

/// The ends of this many spans of about equal tokens, the last at the end of the transcript. A transcript with fewer
/// turns has fewer spans.
pub fn ends_of_spans(messages: &[Message], start: usize, spans: u32, count: &dyn Fn(&Message) -> Tokens) -> Vec<usize> {
    let shares = (1..spans).map(|span| f64::from(span) / f64::from(spans));
    let mut ends = points_at_shares(messages, start, shares, count);
    ends.retain(|at| *at < messages.len());
    if messages.len() > start {
        ends.push(messages.len());
    }
    ends
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::ToolCall;

    #[test]
    fn spans_have_about_equal_tokens_and_part_no_call_from_its_result() {
        let mut call = Message::text(Role::Assistant, "x");
        call.tool_calls.push(ToolCall::new("1", "run", "{}"));
        let mut messages = vec![Message::text(Role::User, "x"); 9];
        messages.splice(4..6, [call, Message::result("1", "x")]);
        let ends = |spans| ends_of_spans(&messages, 0, spans, &|_| Tokens(1));
        assert_eq!(ends(3), [3, 6, 9]);
        assert_eq!(ends(2), [6, 9], "the half ends between a call and its result");
        assert_eq!(ends(1), [9]);
        assert_eq!(ends(100).len(), 8);
        assert_eq!(ends_of_spans(&messages[..1], 1, 4, &|_| Tokens(1)), [0_usize; 0]);
    }
}
