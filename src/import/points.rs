//! Compression points for a transcript: where the product itself compacted, every so many tokens, at the end.

use crate::transcript::{Message, Role, is_boundary};
use crate::units::Tokens;

/// Where points are wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PointRules {
    /// One whenever so many tokens have come since the point before.
    pub every_tokens: Option<Tokens>,
    /// One wherever the log itself was compacted.
    pub at_compactions: bool,
    pub at_end: bool,
}

/// The points that `rules` ask for: exclusive message indices in rising order, none between a call and its result and
/// none before there is something to compress. No rule yields none, which a fixture reads as one at its end.
pub fn propose(
    messages: &[Message],
    compactions: &[usize],
    rules: PointRules,
    count: &dyn Fn(&Message) -> Tokens,
) -> Vec<usize> {
    let start = usize::from(messages.first().is_some_and(|first| first.role == Role::System));
    let fits = |at: usize| at > start && at <= messages.len() && is_boundary(messages, at);
    let marked: Vec<usize> = if rules.at_compactions { compactions.to_vec() } else { Vec::new() };
    let mut points = Vec::new();
    let mut since = 0;
    for (index, message) in messages.iter().enumerate().skip(start) {
        since += count(message).0;
        let at = index + 1;
        let full = rules.every_tokens.is_some_and(|every| since >= every.0.max(1));
        if fits(at) && (full || marked.contains(&at)) {
            points.push(at);
            since = 0;
        }
    }
    if rules.at_end && fits(messages.len()) && points.last() != Some(&messages.len()) {
        points.push(messages.len());
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::ToolCall;

    fn transcript() -> Vec<Message> {
        let mut call = Message::text(Role::Assistant, "xx");
        call.tool_calls.push(ToolCall::new("1", "run", "{}"));
        vec![
            Message::text(Role::System, "s"),
            Message::text(Role::User, "xx"),
            call,
            Message::result("1", "xx"),
            Message::text(Role::Assistant, "xx"),
            Message::text(Role::User, "x"),
        ]
    }

    fn points(rules: PointRules) -> Vec<usize> {
        propose(&transcript(), &[2, 3], rules, &|message| Tokens(message.content.len() as u64))
    }

    #[test]
    fn points_never_part_a_call_from_its_result() {
        let every = |n| PointRules { every_tokens: Some(Tokens(n)), ..PointRules::default() };
        assert_eq!(points(every(3)), [4, 6]);
        assert_eq!(points(every(4)), [4]);
        assert_eq!(points(PointRules { at_compactions: true, ..PointRules::default() }), [2]);
        assert_eq!(points(PointRules { at_end: true, ..every(6) }), [4, 6]);
        assert_eq!(points(PointRules::default()), [0_usize; 0]);
    }
}
