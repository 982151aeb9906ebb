//! Constraints: whether a rule that the user gave occurs in a context, word for word or nearly so.
//!
//! A rule is inserted into a session as a message of the user, in memory only. Nothing else in the session states it, so a
//! context that has it has kept it. Whether an agent obeys a rule that it still has is not measured.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::facts::{Fact, FactFinder};
use base::lazy_patterns;
use base::locale::Locale;
use base::text::{around, pattern};
use base::words::is_unspaced;
use sessions::transcript::{MappedFold, Message, Role, fold};

/// A rule of the user: something must not be done to an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Rule {
    /// The language of `text`; it decides which words forbid.
    pub language: Locale,
    /// The sentence as the user says it.
    pub text: String,
    /// What the rule is about, exactly.
    pub object: String,
}

/// Whether a rule occurs in a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleSurvival {
    /// Word for word.
    pub literal: bool,
    /// Word for word, or its object and a prohibition in one sentence.
    pub near_literal: bool,
}

/// Looks for one rule.
#[derive(Clone, Debug)]
pub struct RuleFinder {
    whole: FactFinder,
    object: FactFinder,
    prohibition: FactFinder,
    /// Prohibitions in scripts without spaces, which match anywhere: 之前不要重启.
    unspaced: Vec<String>,
}

impl RuleFinder {
    /// Prepares to look for `rule` in many texts.
    pub fn new(rule: &Rule) -> RuleFinder {
        let text = rule
            .text
            .trim()
            .trim_end_matches(['.', '!', '。', '！'])
            .to_owned();
        let (unspaced, prohibition): (Vec<String>, Vec<String>) = prohibitions(rule.language)
            .map(str::to_owned)
            .partition(|word| word.chars().all(is_unspaced));
        let finder = |spellings| FactFinder::new(&Fact { spellings });
        RuleFinder {
            unspaced: unspaced.iter().map(|word| fold(word)).collect(),
            whole: finder(vec![text]),
            object: finder(vec![rule.object.clone()]),
            prohibition: finder(prohibition),
        }
    }

    /// Whether the rule occurs in `text`; `folded` is `text` after [`sessions::transcript::fold_document`].
    pub fn survival(&self, text: &str, folded: &str) -> RuleSurvival {
        let literal = self.whole.occurs_in(folded);
        RuleSurvival {
            literal,
            near_literal: literal || self.object.occurs_in(folded) && self.is_stated_in(text),
        }
    }

    /// Whether a sentence of `text` has the object and forbids something.
    pub fn is_stated_in(&self, text: &str) -> bool {
        let places = self.object.find(&MappedFold::new(text));
        places.into_iter().any(|place| {
            let (sentence, lead) = (
                sentence_around(text, place.clone()),
                lead_in(text, place.start),
            );
            self.forbids(&fold(sentence))
                || lead.is_some_and(|lead| self.forbids(&fold(lead)) && !cancels(sentence))
        })
    }

    /// Whether the folded sentence forbids something and does not lift a prohibition.
    fn forbids(&self, sentence: &str) -> bool {
        let is_forbidden = self.prohibition.occurs_in(sentence)
            || self
                .unspaced
                .iter()
                .any(|word| sentence.contains(word.as_str()))
            || FORBIDDEN.is_match(sentence);
        is_forbidden && !cancels(sentence)
    }
}

lazy_patterns! {
    /// Prohibitions that are not fixed words. 别 and 勿 are also parts of many other words, such as 特别.
    FORBIDDEN = pattern(r"\b(?:leave|leaves|left)\b.{1,80}\balone\b|(?:^|[^特区类级分个性识辨差告离派])别(?:[^的人处名称墅忘扭])|(?:^|[^请切])勿[^忘]");

    /// Words that lift a prohibition or only sound like one.
    CANCELLED = pattern(r"\bno longer (?:forbidden|prohibited|banned|off limits|read-only|holds|applies|valid)\b|\bnot (?:forbidden|prohibited|banned)\b|\b(?:was|were|is|has been|have been) (?:lifted|withdrawn|waived|revoked)\b|\b(?:don't|do not|never|must not) forget\b|解除|取消|忘记|别忘|勿忘|不要忘");
}

fn cancels(sentence: &str) -> bool {
    CANCELLED.is_match(&fold(sentence))
}

/// The line that introduces the list with a bullet at `place`: a heading, or a line that ends in a colon. Bullets and empty
/// lines in between belong to the list.
fn lead_in(text: &str, place: usize) -> Option<&str> {
    let start = text.get(..place)?.rfind('\n').map_or(0, |at| at + 1);
    let line = text.get(start..)?.lines().next()?;
    let above = is_bullet(line).then(|| text.get(..start))??;
    let lead = above
        .lines()
        .rev()
        .find(|line| !line.trim().is_empty() && !is_bullet(line))?;
    (lead.starts_with('#') || lead.trim_end().trim_end_matches('*').ends_with([':', '：']))
        .then_some(lead)
}

fn is_bullet(line: &str) -> bool {
    let rest = line.trim_start();
    let number = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    rest.starts_with(['-', '*', '•', '+'])
        || number.len() < rest.len() && number.starts_with(['.', ')'])
}

/// Words that forbid something in a language. `not`, `no` and 别 alone are not among them: they also occur in reports of
/// what was not done, and in words such as 特别.
fn prohibitions(language: Locale) -> impl Iterator<Item = &'static str> {
    const WORDS: &str = include_str!("prohibitions.txt");
    let prefix = language.pick("en ", "zh ");
    WORDS
        .lines()
        .filter_map(move |line| line.strip_prefix(prefix))
}

/// The fewest characters of a line that is wrapped. Shorter lines are items of a list.
const WRAPPED_LINE: usize = 60;

/// The sentence of `text` around a place in it: up to a full stop, question or exclamation mark that white space follows,
/// the end of a string in JSON, or a line break, unless the line is long and the next one goes on in lower case.
fn sentence_around(text: &str, place: Range<usize>) -> &str {
    let (before, after) = around(text, &place);
    let start = before
        .char_indices()
        .rev()
        .find(|(at, _)| ends_sentence(text, *at))
        .map_or(0, |(at, c)| at + c.len_utf8());
    let end = after
        .char_indices()
        .find(|(at, _)| ends_sentence(text, place.end + at));
    text.get(start..end.map_or(text.len(), |(at, _)| place.end + at))
        .unwrap_or("")
}

fn ends_sentence(text: &str, at: usize) -> bool {
    let mut rest = text.get(at..).unwrap_or("").chars();
    match rest.next() {
        Some('。' | '！' | '？') => true,
        Some('.' | '!' | '?') => rest.next().is_none_or(char::is_whitespace),
        Some('"') => rest.as_str().starts_with([',', ']', '}']),
        Some('\n') => {
            let line = text
                .get(..at)
                .and_then(|before| before.rsplit('\n').next())
                .unwrap_or("");
            let next = rest.as_str().trim_start_matches([' ', '\t']);
            line.chars().count() < WRAPPED_LINE
                || !next.starts_with(|c: char| c.is_lowercase() || c == '`')
        }
        _ => false,
    }
}

/// The language in which the user of a session writes: Chinese if at least a tenth of the letters are, since code and names
/// are Latin.
pub fn language_of(messages: &[Message]) -> Locale {
    let letters = messages
        .iter()
        .filter(|message| message.role == Role::User)
        .flat_map(|message| message.content.chars());
    let (mut all, mut chinese) = (0u64, 0u64);
    for letter in letters.filter(|c| c.is_alphabetic()) {
        all += 1;
        chinese += u64::from(is_unspaced(letter));
    }
    if all > 0 && chinese * 10 >= all {
        Locale::Zh
    } else {
        Locale::En
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use sessions::transcript::fold_document;

    fn rule(language: Locale, text: &str, object: &str) -> Rule {
        Rule {
            language,
            text: text.into(),
            object: object.into(),
        }
    }

    /// `l` word for word, `n` nearly, `-` lost.
    fn survival(rule: &Rule, text: &str) -> char {
        let RuleSurvival {
            literal,
            near_literal,
        } = RuleFinder::new(rule).survival(text, &fold_document(text));
        match (literal, near_literal) {
            (true, true) => 'l',
            (false, true) => 'n',
            (false, false) => '-',
            (true, false) => '?',
        }
    }

    #[test]
    fn object_and_prohibition_must_be_in_one_sentence() {
        let rule = rule(
            Locale::En,
            "Do not change db/billing_schema.sql.",
            "db/billing_schema.sql",
        );
        let cases = [
            (
                "Rules: do not change `db/billing_schema.sql`. Then go on.",
                'l',
            ),
            ("- DO NOT CHANGE db/billing_schema.sql", 'l'),
            (
                "The user said that db/billing_schema.sql must not be changed",
                'n',
            ),
            ("never push\ndb/billing_schema.sql: read", '-'),
            (
                "Constraint of the user: the agent may never touch the file\n`db/billing_schema.sql` of the service",
                '-',
            ),
            (
                "Constraints that the user gave: the agent may never touch the file\n`db/billing_schema.sql`",
                'n',
            ),
            (
                r#"{"files":["db/billing_schema.sql"],"rules":["never push"]}"#,
                '-',
            ),
            (
                r#"{"rules":["never push","db/billing_schema.sql: never"]}"#,
                'n',
            ),
            ("db/billing_schema.sql was read. Never run the tests", '-'),
            ("db/billing_schema.sql\nNever run the tests", '-'),
            ("db/billing_schema.sql did not change", '-'),
            ("Do not change other/db/billing_schema.sqlite", '-'),
            ("Do not change the schema", '-'),
            ("", '-'),
        ];
        for (text, wanted) in cases {
            assert_eq!(survival(&rule, text), wanted, "{text}");
        }
    }

    #[test]
    fn chinese_rules_are_found() {
        let rule = rule(
            Locale::Zh,
            "不要修改 db/billing_schema.sql。",
            "db/billing_schema.sql",
        );
        assert_eq!(
            survival(&rule, "约束：不要修改db/billing_schema.sql。接着跑测试。"),
            'l'
        );
        assert_eq!(
            survival(&rule, "用户禁止改动 `db/billing_schema.sql` 文件"),
            'n'
        );
        assert_eq!(
            survival(&rule, "读了 db/billing_schema.sql。不要跑测试。"),
            '-'
        );
        assert_eq!(survival(&rule, "特别是 db/billing_schema.sql"), '-');
    }

    #[test]
    fn the_language_is_that_of_the_user() {
        let language = |text: &str| {
            language_of(&[
                Message::text(Role::User, text),
                Message::text(Role::Assistant, "好的好的"),
            ])
        };
        assert_eq!(language("Rename it, please."), Locale::En);
        assert_eq!(
            language("请把 src/store.rs 里的 flush_pages 改成 flush_all"),
            Locale::Zh
        );
        assert_eq!(language(""), Locale::En);
    }

    proptest! {
        #[test]
        fn added_text_never_hides_a_rule(before in "[a-z .\n]{0,40}", after in "[a-z .\n]{0,40}") {
            let rule = rule(Locale::En, "Never run `make reseed`.", "make reseed");
            let text = format!("{before}\n\nNever run `make reseed`.\n\n{after}");
            prop_assert_eq!(survival(&rule, &text), 'l');
            let near = format!("{before}\n\nThe target `make reseed` is forbidden.\n\nThen {after}");
            prop_assert_eq!(survival(&rule, &near), 'n');
        }
    }
}
