//! Fabrication: names in an answer that nobody said.

use std::collections::BTreeSet;

use crate::facts::{History, normal_path, suffixes};
use base::words::{paths, words};
use sessions::transcript::fold;

/// Paths and identifiers in `answer` that occur neither in the question nor before message `until` of the
/// transcript. A path is known by its ending, of two parts at least where it has them.
pub fn unknown_names(answer: &str, question: &str, history: &History, until: usize) -> Vec<String> {
    let question = fold(question);
    let mut seen = BTreeSet::new();
    let mut unknown = Vec::new();
    for path in paths(answer).filter(|path| is_file_path(path)) {
        let folded = normal_path(&fold(path));
        if seen.insert(folded.clone())
            && !question.contains(&folded)
            && !knows_path(&folded, history, until)
        {
            unknown.push(path.to_owned());
        }
    }
    for word in words(answer).filter(|word| is_identifier(word)) {
        let folded = fold(word);
        let is_known = question.contains(&folded)
            || history.mentions(&folded, until)
            || unknown.iter().any(|path| path.contains(word));
        if !is_known && seen.insert(folded) {
            unknown.push(word.to_owned());
        }
    }
    unknown
}

fn knows_path(path: &str, history: &History, until: usize) -> bool {
    let parts = path.split('/').count().min(2);
    suffixes(path)
        .filter(|rest| rest.split('/').count() >= parts)
        .any(|rest| history.mentions(rest, until))
}

/// Extensions that distinguish files from other words with a dot.
const EXTENSIONS: [&str; 48] = [
    "rs", "py", "js", "ts", "tsx", "jsx", "mjs", "go", "java", "kt", "c", "h", "cc", "cpp", "hpp",
    "cs", "rb", "php", "swift", "scala", "sh", "bash", "sql", "html", "css", "scss", "vue", "json",
    "jsonl", "toml", "yaml", "yml", "xml", "ini", "cfg", "conf", "env", "lock", "md", "txt", "rst",
    "csv", "log", "proto", "tf", "service", "db", "sqlite",
];

/// Whether a run of path characters names a file: by a known extension, or as an absolute path.
pub fn is_file_path(run: &str) -> bool {
    let name = run.rsplit(['/', '\\']).next().unwrap_or(run);
    let by_extension = name.rsplit_once('.').is_some_and(|(stem, extension)| {
        !stem.is_empty() && EXTENSIONS.contains(&extension.to_lowercase().as_str())
    });
    let absolute = run.starts_with(['/', '~']) && run.matches('/').count() > 1;
    by_extension || absolute
}

/// Whether a word is spelled as only programs spell: `snake_case`, `CONSTANT_CASE` or `camelCase`. Capitalised words
/// are left out, because brands are spelled like that, too.
pub fn is_identifier(word: &str) -> bool {
    let inner = word.trim_matches('_');
    let snake = inner.contains('_')
        && inner.chars().nth(3).is_some()
        && inner.chars().any(char::is_alphabetic);
    let rest = inner.trim_start_matches(|c: char| c.is_ascii_lowercase());
    let head = inner.len() - rest.len();
    let camel = head > 1 && matches!(rest.as_bytes(), [b'A'..=b'Z', b'a'..=b'z', ..]);
    snake || camel
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use sessions::transcript::{Message, Role};

    fn unknown(answer: &str) -> Vec<String> {
        let messages = [
            Message::text(
                Role::User,
                "Look at /home/user/app/src/cache/store.rs and config.toml; retry_count is 5",
            ),
            Message::text(Role::Assistant, "later: src/late.rs"),
        ];
        unknown_names(
            answer,
            "What does parseLine in lib/parse.py do?",
            &History::new(&messages),
            1,
        )
    }

    #[test]
    fn names_of_the_transcript_and_the_question_are_known() {
        assert!(
            unknown("In store.rs, cache/store.rs and ./src/cache/store.rs:12, `retry_count`.")
                .is_empty()
        );
        assert!(unknown("parseLine in lib/parse.py; see config.toml").is_empty());
        assert!(
            unknown("/workspace/app/src/cache/store.rs").is_empty(),
            "known by its ending"
        );
    }

    #[test]
    fn invented_names_are_listed_once_each() {
        let answer = "It is in src/other/store.rs and helpers.py; retry_limit and maxRetries (maxRetries!), in src/late.rs";
        assert_eq!(
            unknown(answer),
            [
                "src/other/store.rs",
                "helpers.py",
                "src/late.rs",
                "retry_limit",
                "maxRetries"
            ]
        );
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
