//! Loss attribution: who lost a fact, and what was said though it no longer holds.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use crate::probe::{Fact, FactFinder};
use crate::transcript::fold;

/// What became of one expected fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FactClass {
    /// In the context and in the answer.
    Answered,
    /// In the context, not in the answer: the answerer missed it.
    Missed,
    /// In neither: lost in compression.
    Lost,
    /// In the answer, though not literally in the context: paraphrased there, guessed, or known otherwise.
    AnsweredElsewhere,
}

impl FactClass {
    /// All classes, in the order of tables.
    pub const ALL: [FactClass; 4] =
        [FactClass::Answered, FactClass::Missed, FactClass::Lost, FactClass::AnsweredElsewhere];

    /// The class of a fact by where it stands.
    pub fn of(in_context: bool, in_answer: bool) -> FactClass {
        match (in_context, in_answer) {
            (true, true) => FactClass::Answered,
            (true, false) => FactClass::Missed,
            (false, false) => FactClass::Lost,
            (false, true) => FactClass::AnsweredElsewhere,
        }
    }

    /// The class's name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            FactClass::Answered => "answered",
            FactClass::Missed => "missed",
            FactClass::Lost => "lost",
            FactClass::AnsweredElsewhere => "answered_elsewhere",
        }
    }
}

/// Words that tell of a former state, wherever they stand in a clause.
const FORMER: [&str; 53] = [
    "no longer",
    "not",
    "isn't",
    "previously",
    "previous",
    "formerly",
    "originally",
    "initially",
    "at first",
    "used to",
    "instead of",
    "rather than",
    "superseded",
    "obsolete",
    "outdated",
    "deprecated",
    "abandoned",
    "rejected",
    "discarded",
    "dropped",
    "replaced",
    "replaces",
    "replacing",
    "reverted",
    "old",
    "older",
    "earlier",
    "before",
    "until",
    "no more",
    "ruled out",
    "changed from",
    "不再",
    "不是",
    "不用",
    "不要",
    "原来",
    "原先",
    "原本",
    "起初",
    "最初",
    "之前",
    "以前",
    "此前",
    "早先",
    "曾经",
    "曾用",
    "旧的",
    "放弃",
    "弃用",
    "取代",
    "替换",
    "而非",
];

/// Words after which the new state comes: what stands before them is the former one.
const TURNS: [&str; 14] = [
    "changed to",
    "switched to",
    "moved to",
    "raised to",
    "lowered to",
    "increased to",
    "reduced to",
    "bumped to",
    "became",
    "->",
    "改为",
    "改成",
    "换成",
    "改到",
];

static FORMER_FINDERS: LazyLock<Vec<FactFinder>> = LazyLock::new(|| finders(&FORMER));
static TURN_FINDERS: LazyLock<Vec<FactFinder>> = LazyLock::new(|| finders(&TURNS));

fn finders(phrases: &[&str]) -> Vec<FactFinder> {
    phrases.iter().map(|phrase| FactFinder::new(&Fact { spellings: vec![(*phrase).to_owned()] })).collect()
}

/// For each of `superseded` whether the answer states it as if it still held: in a clause that nothing marks as
/// telling of the past, and not as a part of an expected fact. A rule of thumb, by words.
pub fn stated_as_current(answer: &str, superseded: &[FactFinder], expected: &[FactFinder]) -> Vec<bool> {
    if superseded.is_empty() {
        return Vec::new();
    }
    let clauses: Vec<String> = clauses(answer).map(|clause| fold(clause).replace('’', "'")).collect();
    superseded.iter().map(|fact| clauses.iter().any(|clause| is_current(clause, fact, expected))).collect()
}

fn is_current(clause: &str, fact: &FactFinder, expected: &[FactFinder]) -> bool {
    let mut places = fact.ranges(clause);
    if places.is_empty() || FORMER_FINDERS.iter().any(|marker| marker.stands_in(clause)) {
        return false;
    }
    let wider: Vec<_> = expected.iter().flat_map(|fact| fact.ranges(clause)).collect();
    places.retain(|place| !wider.iter().any(|wide| wide.start <= place.start && place.end <= wide.end));
    let last_turn = TURN_FINDERS.iter().flat_map(|turn| turn.ranges(clause)).map(|turn| turn.start).max();
    places.iter().any(|place| {
        let before = clause.get(..place.start).unwrap_or("").trim_end();
        let left_behind = ["from", "从", "由", "~~"].iter().any(|word| before.ends_with(word));
        !left_behind && last_turn.is_none_or(|turn| place.start > turn)
    })
}

/// The stretches of a text between sentence ends, semicolons and line breaks.
fn clauses(text: &str) -> impl Iterator<Item = &str> {
    let stops = |line| str::split(line, ['。', '！', '？', '；', ';']);
    text.lines().flat_map(stops).flat_map(|part| part.split(". ")).flat_map(|part| part.split(", but "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fact(text: &str) -> FactFinder {
        FactFinder::new(&Fact { spellings: vec![text.to_owned()] })
    }

    fn current(answer: &str, superseded: &str, expected: &str) -> bool {
        stated_as_current(answer, &[fact(superseded)], &[fact(expected)]) == [true]
    }

    #[test]
    fn classes_follow_from_where_a_fact_stands() {
        let table: Vec<&str> = [(true, true), (true, false), (false, false), (false, true)]
            .map(|(context, answer)| FactClass::of(context, answer).name())
            .into();
        assert_eq!(table, FactClass::ALL.map(FactClass::name));
        assert_eq!(serde_json::to_string(&FactClass::AnsweredElsewhere).unwrap(), "\"answered_elsewhere\"");
    }

    #[test]
    fn a_former_value_stated_as_current_is_seen() {
        assert!(current("The port is 8080.", "8080", "8081"));
        assert!(current("服务监听端口8080。", "8080", "8081"));
        assert!(current("It was changed to 8080.", "8080", "8081"));
        assert!(current("8081 was too slow, but the port is now 8080", "8080", "8081"));
    }

    #[test]
    fn a_former_value_told_as_former_is_not() {
        assert!(!current("The port is 8081, no longer 8080.", "8080", "8081"));
        assert!(!current("It went from 8080 to 8081.", "8080", "8081"));
        assert!(!current("8080 was changed to 8081", "8080", "8081"));
        assert!(!current("端口从8080改为8081", "8080", "8081"));
        assert!(!current("8080改成了8081", "8080", "8081"));
        assert!(!current("Originally 8080; it is 8081.", "8080", "8081"));
        assert!(!current("The port is 8081.", "8080", "8081"));
    }

    #[test]
    fn a_part_of_the_true_fact_is_not_the_former_one() {
        assert!(!current("uses redis cluster", "redis", "redis cluster"));
        assert!(current("uses redis, in a redis cluster", "redis", "redis cluster"));
    }
}
