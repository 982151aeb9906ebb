//! Compression points for a transcript: where the product itself compacted, at regular distances, at the end.

use std::collections::HashSet;

use crate::transcript::{Message, Role, ends_of_spans, is_boundary, points_at_shares};
use base::units::Tokens;

/// Where compression points are placed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PointRules {
    /// A point whenever this many tokens have come since the one before.
    pub every_tokens: Option<Tokens>,
    /// A point wherever the log itself was compacted.
    pub at_compactions: bool,
    /// Whether the end of the session is a point.
    pub at_end: bool,
    /// This many points, at the ends of spans of about equal tokens.
    pub spans: Option<u32>,
}

/// The least share of the messages, and turns of the assistant, after the last point, so that a compression can be
/// judged by what the session used later.
const TAIL: (f64, usize) = (0.15, 10);
/// The shares of the tokens before the points of a transcript for which no rule is given.
const SHARES: [f64; 2] = [0.4, 0.7];

/// The points that `rules` ask for: exclusive message indices in rising order, none between a call and its result and
/// none before there is something to compress. Without a rule they are after 40% and 70% of the tokens. Points leave
/// a tail, unless only one at the end was asked for, or none would be left. None at all is read as one at the end.
pub fn propose(
    messages: &[Message],
    compactions: &[usize],
    rules: PointRules,
    count: &dyn Fn(&Message) -> Tokens,
) -> Vec<usize> {
    let start = usize::from(
        messages
            .first()
            .is_some_and(|first| first.role == Role::System),
    );
    if rules == PointRules::default() {
        return points_at_shares(messages, start, SHARES, count)
            .into_iter()
            .filter(|at| may_be_point(messages, start, *at) && leaves_tail(messages, *at))
            .collect();
    }
    if let Some(spans) = rules.spans {
        return ends_of_spans(messages, start, spans, count);
    }
    let marked: HashSet<usize> = compactions
        .iter()
        .copied()
        .filter(|_| rules.at_compactions)
        .collect();
    let mut points = Vec::new();
    let mut since = 0;
    for (index, message) in messages.iter().enumerate().skip(start) {
        since += count(message).0;
        let at = index + 1;
        let full = rules
            .every_tokens
            .is_some_and(|every| since >= every.0.max(1));
        if may_be_point(messages, start, at) && (full || marked.contains(&at)) {
            points.push(at);
            since = 0;
        }
    }
    let early = points.partition_point(|at| leaves_tail(messages, *at));
    if early > 0 {
        points.truncate(early);
    }
    let end = messages.len();
    if rules.at_end && may_be_point(messages, start, end) && points.last() != Some(&end) {
        points.push(end);
    }
    points
}

/// Whether there is something to compress between `start` and `at`, and no call is separated from its result.
fn may_be_point(messages: &[Message], start: usize, at: usize) -> bool {
    at > start && at <= messages.len() && is_boundary(messages, at)
}

/// The fewest messages, without the system message, of a session in which a compression can leave anything out.
pub const FEWEST_MESSAGES: usize = 5;
/// The fewest tokens of such a session: a summary of a shorter one is about as long.
pub const FEWEST_TOKENS: u64 = 1000;

/// Whether there is nothing to compress: fewer messages or tokens than [`FEWEST_MESSAGES`] and [`FEWEST_TOKENS`].
pub fn is_too_short(messages: &[Message], count: &dyn Fn(&Message) -> Tokens) -> bool {
    let start = usize::from(
        messages
            .first()
            .is_some_and(|first| first.role == Role::System),
    );
    let session = messages.get(start..).unwrap_or_default();
    let tokens: Tokens = session.iter().map(count).sum();
    session.len() < FEWEST_MESSAGES || tokens < Tokens(FEWEST_TOKENS)
}

/// Whether enough of the session is after a point.
fn leaves_tail(messages: &[Message], at: usize) -> bool {
    let (share, turns) = TAIL;
    let tail = messages.get(at..).unwrap_or_default();
    let spoken = tail
        .iter()
        .filter(|message| message.role == Role::Assistant)
        .count();
    tail.len() as f64 >= share * messages.len() as f64 && spoken >= turns
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
        propose(&transcript(), &[2, 3], rules, &|message| {
            Tokens(message.content.len() as u64)
        })
    }

    #[test]
    fn points_never_part_a_call_from_its_result() {
        let every = |n| PointRules {
            every_tokens: Some(Tokens(n)),
            ..PointRules::default()
        };
        assert_eq!(points(every(3)), [4, 6]);
        assert_eq!(points(every(4)), [4]);
        assert_eq!(
            points(PointRules {
                at_compactions: true,
                ..PointRules::default()
            }),
            [2]
        );
        assert_eq!(
            points(PointRules {
                at_end: true,
                ..every(6)
            }),
            [4, 6]
        );
        assert_eq!(points(PointRules::default()), [0_usize; 0]);
    }

    fn long(turns: usize) -> Vec<Message> {
        (0..turns)
            .map(|_| Message::text(Role::Assistant, "xx"))
            .collect()
    }

    #[test]
    fn a_session_of_few_messages_or_tokens_is_too_short() {
        let is_short = |turns, tokens| is_too_short(&long(turns), &|_| Tokens(tokens));
        assert!(is_short(4, 9000) && is_short(5, 199) && !is_short(5, 200));
        let mut with_system = vec![Message::text(Role::System, "s")];
        with_system.extend(long(4));
        assert!(
            is_too_short(&with_system, &|_| Tokens(9000)),
            "the system message does not count"
        );
        assert!(is_too_short(&[], &|_| Tokens(1)));
    }

    #[test]
    fn points_leave_a_tail_where_the_session_is_long_enough() {
        let at = |turns, rules| propose(&long(turns), &[], rules, &|_| Tokens(1));
        assert_eq!(at(100, PointRules::default()), [40, 70]);
        assert_eq!(
            at(30, PointRules::default()),
            [12],
            "fewer than ten turns follow a point at 70%"
        );
        assert_eq!(at(12, PointRules::default()), [0_usize; 0]);
        let every = PointRules {
            every_tokens: Some(Tokens(30)),
            ..PointRules::default()
        };
        assert_eq!(
            at(100, every),
            [30, 60],
            "only 10 of 100 messages follow a point at 90"
        );
        assert_eq!(
            at(
                100,
                PointRules {
                    at_end: true,
                    ..every
                }
            ),
            [30, 60, 100]
        );
        assert_eq!(
            at(
                9,
                PointRules {
                    every_tokens: Some(Tokens(4)),
                    ..every
                }
            ),
            [4, 8],
            "else none would be left"
        );
    }
}
