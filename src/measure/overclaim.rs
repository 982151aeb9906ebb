//! What an answer does when its context lost every expected fact: name another value, admit it, stay vague, or be right
//! all the same.
//!
//! Only exact values can be compared by rule: paths, numbers, names as programs spell them, proper names. An answer
//! asserts *another value* if it names one of a kind that the expected facts have, and that occurs neither in them nor
//! in the question. An assertion in plain words counts as vague, because no rule can tell it from a paraphrase of what
//! is right; so the share of other values is a lower bound of what answers make up.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use base::lazy_patterns;
use base::text::pattern;
use base::words::is_unspaced;
use lexical::claims::abstains;
use lexical::facts::{normal_path, suffixes};
use lexical::{is_file_path, is_identifier};
use sessions::transcript::fold;

/// What an answer does when its context lost every expected fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerWhenLost {
    /// It asserts another value of a kind that was asked for.
    OtherValue,
    /// It says that it does not know.
    Admission,
    /// It neither admits nor names a value.
    Vague,
    /// It has all expected facts, or some and no other value: guessed, paraphrased in the context, or known otherwise.
    Right,
}

/// Kinds of values that can be compared by rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ValueKind {
    Path,
    Number,
    /// A name that only programs spell so: `retry_count`, `--all`, `b5ddf67`.
    Code,
    Name,
}

/// A value in a text, folded.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ComparableValue {
    kind: ValueKind,
    text: String,
}

/// The kinds of values that a probe asks for, and the values that are not new in an answer.
#[derive(Clone, Debug, Default)]
pub(super) struct KnownValues {
    kinds: BTreeSet<ValueKind>,
    numbers: BTreeSet<String>,
    texts: Vec<String>,
}

impl KnownValues {
    /// The values of a question and of all spellings of its expected facts.
    pub(super) fn new<'t>(
        question: &'t str,
        spellings: impl Iterator<Item = &'t str> + Clone,
    ) -> KnownValues {
        let texts = spellings.clone().chain([question]);
        let numbers = texts
            .clone()
            .flat_map(values)
            .filter(|value| value.kind == ValueKind::Number);
        KnownValues {
            kinds: spellings.flat_map(values).map(|value| value.kind).collect(),
            numbers: numbers.map(|value| digits(&value.text)).collect(),
            texts: texts.map(fold).collect(),
        }
    }

    /// Whether `answer` names another value of a kind that the expected facts have.
    pub(super) fn names_another(&self, answer: &str) -> bool {
        values(answer)
            .iter()
            .any(|value| self.kinds.contains(&value.kind) && !self.holds(value))
    }

    fn holds(&self, value: &ComparableValue) -> bool {
        match value.kind {
            ValueKind::Number => self.numbers.contains(&digits(&value.text)),
            ValueKind::Path => {
                // the same file may be written from further up
                let mut endings = suffixes(&value.text)
                    .filter(|ending| *ending == value.text || ending.contains('/'));
                endings.any(|ending| self.texts.iter().any(|text| text.contains(ending)))
            }
            ValueKind::Code | ValueKind::Name => {
                self.texts.iter().any(|text| text.contains(&value.text))
            }
        }
    }
}

impl AnswerWhenLost {
    /// Classifies an answer, given whether each expected fact occurs in it. The context has none of them.
    pub(super) fn new(answer: &str, answered: &[bool], known: &KnownValues) -> AnswerWhenLost {
        if answered.iter().all(|occurs| *occurs) {
            AnswerWhenLost::Right
        } else if abstains(answer) {
            AnswerWhenLost::Admission
        } else if known.names_another(answer) {
            AnswerWhenLost::OtherValue
        } else if answered.contains(&true) {
            AnswerWhenLost::Right
        } else {
            AnswerWhenLost::Vague
        }
    }
}

lazy_patterns! {
    /// Where sentences end, and the marks of lists at the start of a line, whose numbers are not values.
    SENTENCE_END = pattern(r"(?m)[.!?:](?:\s+|$)|[。！？：；]|\n+|^\s*(?:[-*•]|#{1,6}|\d{1,2}[.)])\s+");
}

/// A sentence of at most this many words is a bare value, so a capital at its beginning is that of a name.
const VALUE_ALONE: usize = 2;

fn values(text: &str) -> Vec<ComparableValue> {
    SENTENCE_END
        .split(text)
        .flat_map(values_of_sentence)
        .collect()
}

fn values_of_sentence(sentence: &str) -> Vec<ComparableValue> {
    let tokens: Vec<&str> = sentence
        .split(ends_token)
        .map(trim_token)
        .filter(|token| !token.is_empty())
        .collect();
    let has_sentence_case = tokens.len() > VALUE_ALONE && !sentence.contains(is_unspaced);
    let values = tokens.iter().enumerate().filter_map(|(place, token)| {
        let kind = kind_of(token, place == 0 && has_sentence_case)?;
        let text = if kind == ValueKind::Path {
            normal_path(&fold(without_line(token)))
        } else {
            fold(token)
        };
        Some(ComparableValue { kind, text })
    });
    values.collect()
}

fn ends_token(c: char) -> bool {
    const MARKS: &[char] = &[
        '"', '\'', '`', '“', '”', '‘', '’', '「', '」', '『', '』', '(', ')', '[', ']', '{', '}',
        '<', '>', '=', '|', ';', '，', '、', '（', '）', '《', '》', '→',
    ];
    c.is_whitespace() || is_unspaced(c) || MARKS.contains(&c)
}

fn trim_token(token: &str) -> &str {
    token
        .trim_matches(['*', '~'])
        .trim_end_matches([',', '.', ':', '!', '?', '/', '-', '…'])
}

fn kind_of(token: &str, begins_sentence: bool) -> Option<ValueKind> {
    let first = token.chars().next()?;
    let number = token.trim_start_matches(['+', '-', '#', '$', '€', '£', '~', '≤', '≥', 'v', 'V']);
    let option = token.strip_prefix("--").or_else(|| token.strip_prefix('$'));
    let is_code = is_identifier(token)
        || token.contains("::")
        || token.ends_with("()")
        || option.is_some_and(|name| name.starts_with(|c: char| c.is_ascii_alphabetic()))
        || (first.is_ascii_alphabetic() && token.contains(|c: char| c.is_ascii_digit()));
    let has_inner_capital = token.chars().skip(1).any(char::is_uppercase);
    if is_file_path(without_line(token)) {
        Some(ValueKind::Path)
    } else if number.starts_with(|c: char| c.is_ascii_digit()) {
        Some(ValueKind::Number)
    } else if is_code {
        Some(ValueKind::Code)
    } else if first.is_uppercase()
        && token.chars().nth(1).is_some()
        && (!begins_sentence || has_inner_capital)
    {
        Some(ValueKind::Name)
    } else {
        None
    }
}

/// `src/a.rs` of `src/a.rs:12`.
fn without_line(token: &str) -> &str {
    let line = token
        .rsplit_once(':')
        .filter(|(_, line)| line.chars().all(|c| c.is_ascii_digit()));
    line.map_or(token, |(path, _)| path)
}

/// The digits of a number and what joins them, without sign and unit.
fn digits(number: &str) -> String {
    let start = number.trim_start_matches(|c: char| !c.is_ascii_digit());
    let end = start
        .find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | ':' | '-')))
        .unwrap_or(start.len());
    start
        .get(..end)
        .unwrap_or(start)
        .trim_end_matches(['.', ':', '-'])
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::AnswerWhenLost::{Admission, OtherValue, Right, Vague};
    use super::*;
    use lexical::facts::{Fact, FactFinder};
    use proptest::prelude::*;

    fn class_of(question: &str, facts: &[&str], answer: &str) -> AnswerWhenLost {
        let finders = facts.iter().map(|fact| {
            FactFinder::new(&Fact {
                spellings: vec![(*fact).to_owned()],
            })
        });
        let answered: Vec<bool> = finders
            .map(|finder| finder.occurs_in(&fold(answer)))
            .collect();
        AnswerWhenLost::new(
            answer,
            &answered,
            &KnownValues::new(question, facts.iter().copied()),
        )
    }

    #[test]
    fn answers_without_their_facts_are_of_four_kinds() {
        let port = ("On which port does the service of 2024 listen?", ["8081"]);
        let file = (
            "Which file holds the limits for src/main.rs?",
            ["conf/limits.toml"],
        );
        let store = ("Which database was chosen?", ["Postgres"]);
        let hash = ("Which commit broke it?", ["b5ddf67"]);
        let reason = ("Why was the index dropped?", ["writes were too slow"]);
        let both = ("Which port and host?", ["8081", "edge-2"]);
        type FactQuestion<'a> = (&'a str, &'a [&'a str]);
        let cases: &[(FactQuestion<'_>, &str, AnswerWhenLost)] = &[
            ((port.0, &port.1), "It listens on port 9000.", OtherValue),
            ((port.0, &port.1), "端口是9000。", OtherValue),
            ((port.0, &port.1), "It is 8081.", Right),
            (
                (port.0, &port.1),
                "The port is 8081/tcp, as set in 2024.",
                Right,
            ),
            ((port.0, &port.1), "The summary does not say.", Admission),
            ((port.0, &port.1), "摘要里没有说明。", Admission),
            (
                (port.0, &port.1),
                "The summary does not say, but it is 9000.",
                OtherValue,
            ),
            (
                (port.0, &port.1),
                "The usual one, as configured by the team.",
                Vague,
            ),
            (
                (port.0, &port.1),
                "The service of 2024 listens where it always did.",
                Vague,
            ),
            (
                (port.0, &port.1),
                "1. It was discussed.\n2. It was set.",
                Vague,
            ),
            ((port.0, &port.1), "Postgres listens there.", Vague),
            ((port.0, &port.1), "  ", Vague),
            (
                (file.0, &file.1),
                "They are in settings/rates.toml.",
                OtherValue,
            ),
            ((file.0, &file.1), "They are in `limits.toml:12`.", Vague),
            ((file.0, &file.1), "/app/src/main.rs reads them.", Vague),
            ((file.0, &file.1), "src/limits.toml", OtherValue),
            ((store.0, &store.1), "They chose MySQL.", OtherValue),
            ((store.0, &store.1), "Redis.", OtherValue),
            ((store.0, &store.1), "用的是 Redis。", OtherValue),
            ((store.0, &store.1), "They chose a relational one.", Vague),
            (
                (store.0, &store.1),
                "I cannot tell from the notes.",
                Admission,
            ),
            ((hash.0, &hash.1), "It was 1f3e9ac, I believe.", Vague),
            ((hash.0, &hash.1), "It was a1f3e9c.", OtherValue),
            (
                (reason.0, &reason.1),
                "Because customers complained.",
                Vague,
            ),
            ((reason.0, &reason.1), "It had 40 columns.", Vague),
            ((both.0, &both.1), "Port 8081 of the host.", Right),
            ((both.0, &both.1), "Port 8081 on edge-7.", OtherValue),
        ];
        for ((question, facts), answer, wanted) in cases {
            assert_eq!(
                class_of(question, facts, answer),
                *wanted,
                "{question} {answer}"
            );
        }
    }

    proptest! {
        #[test]
        fn a_number_is_another_value_exactly_if_it_is_another_number(fact in 10u32..100_000, said in 10u32..100_000) {
            let found = class_of("How many?", &[&fact.to_string()], &format!("There were {said} of them."));
            prop_assert_eq!(found, if fact == said { Right } else { OtherValue });
        }

        #[test]
        fn no_answer_makes_it_panic(answer in "\\PC{0,80}") {
            class_of("Which port of edge?", &["8081", "src/a.rs", "Redis"], &answer);
        }
    }
}
