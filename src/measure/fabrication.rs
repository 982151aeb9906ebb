//! Fabrication: what an answer asserts though nobody said it.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;
use serde::{Deserialize, Serialize};

use crate::probe::{History, normal_path, paths, suffixes, words};
use crate::transcript::fold;

/// What an answer made up.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fabrication {
    /// Of an unanswerable probe: whether the answer asserts something all the same. `None` of the others.
    pub asserted: Option<bool>,
    /// Paths and identifiers in the answer that occur nowhere in the transcript, in order of appearance.
    pub unknown_names: Vec<String>,
}

/// Ways to say that the record does not hold the answer, of folded text.
static ADMISSION: LazyLock<Regex> = LazyLock::new(|| {
    pattern(&[
        r"(?:\bnot|n't|\bcannot|\bnever|\bnowhere)(?: \w+){0,2} (?:say|said|names?|named|stated?|mention(?:ed)?",
        r"|specif(?:y|ied)|tell|told|indicated?|record(?:ed)?|reveal(?:ed)?|given?|provided?|included?|contain(?:ed)?",
        r"|hold|held|identif(?:y|ied)|discuss(?:ed)?|cover(?:ed)?|document(?:ed)?|know|known|available|determined?|find|found)\b",
        r"|\bno (?:\w+ )?(?:mention|record|information|details?|indication)\b|\bunknown\b|\bunable to (?:say|tell|find)\b",
        r"|\b(?:not enough|insufficient) (?:information|context)\b",
        r"|(?:没有|没|未)(?:明确|具体|直接)?(?:说|讲|提到|提及|提过|提供|记载|记录|写明|给出|指明|指出|涉及|透露|交代|包含)",
        r"|(?:没有|没|未)(?:找到|相关)|无法(?:确定|判断|得知|回答)|无从|不得而知|不知道|不清楚|找不到|信息不足|不包含",
    ])
});

/// Ways to guess all the same.
static GUESS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(&[
        r"\b(?:probably|presumably|most likely|it (?:is|was) likely|my guess|(?:i|i would|i'd) guess|best guess|i assume)\b",
        r"|可能是|大概是|应该是|估计是|推测|猜测",
    ])
});

fn pattern(parts: &[&str]) -> Regex {
    Regex::new(&parts.concat()).expect("the patterns are part of the program and compiled by its tests")
}

/// Whether the answer says, in English or Chinese, that the record does not hold what was asked, and leaves it at
/// that. A rule of thumb, by words.
pub fn admits_not_knowing(answer: &str) -> bool {
    let folded = fold(answer).replace('’', "'");
    ADMISSION.is_match(&folded) && !GUESS.is_match(&folded)
}

/// Whether the answer asserts anything: it is neither empty nor an admission.
pub fn asserts(answer: &str) -> bool {
    !answer.trim().is_empty() && !admits_not_knowing(answer)
}

/// Paths and identifiers in `answer` that occur neither in the question nor before message `until` of the
/// transcript. A path is known by its ending, of two parts at least where it has them.
pub fn unknown_names(answer: &str, question: &str, history: &History, until: usize) -> Vec<String> {
    let question = fold(question);
    let mut seen = BTreeSet::new();
    let mut unknown = Vec::new();
    for path in paths(answer).filter(|path| is_file_path(path)) {
        let folded = normal_path(&fold(path));
        if seen.insert(folded.clone()) && !question.contains(&folded) && !knows_path(&folded, history, until) {
            unknown.push(path.to_owned());
        }
    }
    for word in words(answer).filter(|word| is_identifier(word)) {
        let folded = fold(word);
        let in_path = || unknown.iter().any(|path| path.contains(word));
        if !question.contains(&folded) && !history.mentions(&folded, until) && !in_path() && seen.insert(folded) {
            unknown.push(word.to_owned());
        }
    }
    unknown
}

fn knows_path(path: &str, history: &History, until: usize) -> bool {
    let parts = path.split('/').count().min(2);
    suffixes(path).filter(|rest| rest.split('/').count() >= parts).any(|rest| history.mentions(rest, until))
}

/// Extensions that tell a file from other words with a dot.
const EXTENSIONS: [&str; 48] = [
    "rs", "py", "js", "ts", "tsx", "jsx", "mjs", "go", "java", "kt", "c", "h", "cc", "cpp", "hpp", "cs", "rb", "php",
    "swift", "scala", "sh", "bash", "sql", "html", "css", "scss", "vue", "json", "jsonl", "toml", "yaml", "yml", "xml",
    "ini", "cfg", "conf", "env", "lock", "md", "txt", "rst", "csv", "log", "proto", "tf", "service", "db", "sqlite",
];

/// Whether a run of path characters names a file: by a known extension, or as an absolute path.
fn is_file_path(run: &str) -> bool {
    let name = run.rsplit(['/', '\\']).next().unwrap_or(run);
    let by_extension = name
        .rsplit_once('.')
        .is_some_and(|(stem, extension)| !stem.is_empty() && EXTENSIONS.contains(&extension.to_lowercase().as_str()));
    let absolute = run.starts_with(['/', '~']) && run.matches('/').count() > 1;
    by_extension || absolute
}

/// Whether a word is spelled as only programs spell: `snake_case`, `CONSTANT_CASE` or `camelCase`. Capitalised
/// ones are left out, for brands are spelled so too.
fn is_identifier(word: &str) -> bool {
    let inner = word.trim_matches('_');
    let snake = inner.contains('_') && inner.chars().nth(3).is_some() && inner.chars().any(char::is_alphabetic);
    let rest = inner.trim_start_matches(|c: char| c.is_ascii_lowercase());
    let head = inner.len() - rest.len();
    let camel = head > 1 && matches!(rest.as_bytes(), [b'A'..=b'Z', b'a'..=b'z', ..]);
    snake || camel
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::{Message, Role};
    use proptest::prelude::*;

    fn unknown(answer: &str) -> Vec<String> {
        let messages = [
            Message::text(Role::User, "Look at /home/user/app/src/cache/store.rs and config.toml; retry_count is 5"),
            Message::text(Role::Assistant, "later: src/late.rs"),
        ];
        unknown_names(answer, "What does parseLine in lib/parse.py do?", &History::new(&messages), 1)
    }

    #[test]
    fn admissions_in_two_languages_are_told_from_assertions() {
        let admissions = [
            "The context doesn’t say.",
            "The session does not name it.",
            "What was kept does not hold the answer.",
            "I don't know; it is not explicitly mentioned anywhere.",
            "There is no record of that.",
            "This cannot be determined from what I have.",
            "记录中没有提到这一点。",
            "会话里没有说，那只是本地用的替身。",
            "无法确定。",
        ];
        let assertions = [
            "It is 42.",
            "Redis was not fast enough, so Postgres was chosen.",
            "The transcript does not say, but it is probably 42.",
            "没有提到，不过应该是42。",
            "代码未提交，端口是8080。",
        ];
        assert!(admissions.iter().all(|answer| admits_not_knowing(answer) && !asserts(answer)));
        assert!(assertions.iter().all(|answer| asserts(answer)));
        assert!(!asserts("  "), "silence asserts nothing");
    }

    #[test]
    fn names_of_the_transcript_and_the_question_are_known() {
        assert!(unknown("In store.rs, cache/store.rs and ./src/cache/store.rs:12, `retry_count`.").is_empty());
        assert!(unknown("parseLine in lib/parse.py; see config.toml").is_empty());
        assert!(unknown("/workspace/app/src/cache/store.rs").is_empty(), "known by its ending");
    }

    #[test]
    fn invented_names_are_listed_once_each() {
        let answer =
            "It is in src/other/store.rs and helpers.py; retry_limit and maxRetries (maxRetries!), in src/late.rs";
        assert_eq!(unknown(answer), ["src/other/store.rs", "helpers.py", "src/late.rs", "retry_limit", "maxRetries"]);
    }

    #[test]
    fn ordinary_words_are_no_names() {
        assert!(
            unknown("OpenAI and/or GitHub on macOS 1.2.3, e.g. Node.js-like; TCP/IP at https://a.org/b.html")
                .is_empty()
        );
    }

    proptest! {
        #[test]
        fn what_the_transcript_says_is_never_unknown(answer in "[a-zA-Z_./ ]{0,60}") {
            let history = History::new(&[Message::text(Role::User, answer.clone())]);
            prop_assert_eq!(unknown_names(&answer, "", &history, 1), Vec::<String>::new());
        }
    }
}
