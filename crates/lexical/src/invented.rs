//! What the transcript does not hold: references of a context that a summary made up, and names in an answer that nobody
//! said.
//!
//! A method that copies has none by construction, so the figure is a warning and ranks no methods. Line numbers, sums,
//! counts and names of what is still to be made are listed separately, because a summary may derive them. What `full`
//! writes around the messages, and the words of a method's own prompt, are not inventions. A log that begins in the middle
//! of a session has no figure: what came before it is unknown.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use sessions::references::{Reference, ReferenceKind, find_references, references_in};
use sessions::transcript::{Message, fold, render};

use crate::entries::{ContextEntries, ContextEntry};
use crate::facts::{Fact, FactFinder, History, normal_path, suffixes};
use base::lazy_patterns;
use base::text::{around, pattern};
use base::units::Tokens;
use base::words::{WordList, paths, sentences, words};

/// The references of a session up to a point.
#[derive(Clone, Debug)]
pub struct KnownReferences {
    until: usize,
    /// The keys of the references in the transcript as text, which is the context of `full`.
    written: BTreeSet<String>,
}

/// The references of one context that the transcript does not hold, each once, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InventedReferences {
    /// Paths, names, numbers and so on that nothing explains.
    pub invented: Vec<String>,
    /// Line numbers, sums and counts.
    pub derived: Vec<String>,
    /// Names of what is still to be made.
    pub planned: Vec<String>,
}

impl InventedReferences {
    /// Invented references per 1,000 tokens of the context; `None` if it is empty.
    pub fn per_1000_tokens(&self, tokens: Tokens) -> Option<f64> {
        (tokens.0 > 0).then(|| 1000.0 * self.invented.len() as f64 / tokens.0 as f64)
    }
}

impl KnownReferences {
    /// The references of the messages before `until`. `messages` must begin where the session did.
    pub fn new(messages: &[Message], until: usize) -> KnownReferences {
        let prefix = messages.get(..until).unwrap_or(messages);
        let written = ContextEntries::from_text(&render(prefix));
        let keys = written
            .list()
            .iter()
            .flat_map(|entry| reference_keys(&entry.text));
        KnownReferences {
            until,
            written: keys.collect(),
        }
    }

    /// The references that the entries of a context have beyond these. `history` is of the same messages; `template`
    /// has the keys of the references in the method's prompt.
    pub fn invented_in(
        &self,
        history: &History,
        entries: &ContextEntries,
        template: &BTreeSet<String>,
    ) -> InventedReferences {
        let mut found = InventedReferences::default();
        let mut seen = BTreeSet::new();
        for entry in entries.list() {
            for (range, reference) in find_references(&entry.text) {
                let key = reference.key();
                let is_known = template.contains(&key) || self.written.contains(&key);
                if !is_exact(reference.kind)
                    || is_known
                    || !seen.insert(key)
                    || self.is_in(history, &reference)
                {
                    continue;
                }
                let (before, after) = around(&entry.text, &range);
                if before.ends_with(CUT) || after.starts_with(CUT) {
                    continue; // a part of a reference: the summary cut the text that it quotes
                }
                if is_derived(&reference, before, after) {
                    found.derived.push(reference.text);
                } else if is_planned(entry, before) {
                    found.planned.push(reference.text);
                } else {
                    found.invented.push(reference.text);
                }
            }
        }
        found
    }

    fn holds(&self, history: &History, text: &str) -> bool {
        let finder = FactFinder::within(&Fact::new(text), history.paths());
        history.holds(&finder, 0..self.until)
    }

    /// Whether the transcript has it: by the literal rules, or each sentence of a quotation, the end of a path, or each
    /// side of a slash.
    fn is_in(&self, history: &History, reference: &Reference) -> bool {
        if self.holds(history, &reference.text) {
            return true;
        }
        if reference.kind == ReferenceKind::Quoted {
            // A summary joins lines of what it quotes, and leaves sentences out.
            let mut sentences = sentences(&reference.text)
                .map(|sentence| {
                    sentence.trim_end_matches(['。', '！', '？', '；', '.', '!', '?', ';'])
                })
                .filter(|sentence| !sentence.is_empty())
                .peekable();
            return sentences.peek().is_some()
                && sentences.all(|sentence| self.holds(history, sentence));
        }
        let path = normal_path(&fold(&reference.text));
        let mut endings = suffixes(&path).filter(|ending| ending.contains('/'));
        let ends_known = endings.any(|ending| history.mentions(ending, self.until));
        ends_known
            || path.contains('/')
                && path
                    .split('/')
                    .all(|part| history.mentions(part, self.until))
    }
}

/// The keys of the references in a text.
pub fn reference_keys(text: &str) -> BTreeSet<String> {
    references_in(text).iter().map(Reference::key).collect()
}

/// Marks a quotation that was cut.
const CUT: &[char] = &['…'];

/// Whether references of a kind are repeated exactly. Commands and error lines are often reworded.
fn is_exact(kind: ReferenceKind) -> bool {
    match kind {
        ReferenceKind::Path
        | ReferenceKind::FileName
        | ReferenceKind::Identifier
        | ReferenceKind::Flag
        | ReferenceKind::Number
        | ReferenceKind::Version
        | ReferenceKind::Hash
        | ReferenceKind::Url
        | ReferenceKind::Quoted => true,
        ReferenceKind::Command | ReferenceKind::ErrorLine => false,
    }
}

lazy_patterns! {
    /// Right before a number: it counts lines or is a sum.
    COUNTED_BEFORE = pattern(r"(?i)(?:\blines? |\bL|:|\b(?:total|sum|count|about|around|roughly|approximately)(?: of)?[ :]+|共|约|第)$");

    /// Right after a number: it counts things.
    COUNTED_AFTER = pattern(r"^ ?(?:%|percent|files?\b|tests?\b|lines?\b|messages?\b|tokens?\b|calls?\b|steps?\b|times\b|个|行|次|条|步)");

    /// Words for what is still to be made.
    PLANNED = pattern(r"(?i)\b(?:next steps?|to-?do|remaining|create[sd]?|creating|add(?:s|ed|ing)?|will|plan(?:s|ned)?|should|new file)\b|下一步|接下来|待办|新建|新增|将|计划");
}

fn is_derived(reference: &Reference, before: &str, after: &str) -> bool {
    reference.kind == ReferenceKind::Number
        && (COUNTED_BEFORE.is_match(before) || COUNTED_AFTER.is_match(after))
}

fn is_planned(entry: &ContextEntry, before: &str) -> bool {
    PLANNED.is_match(before) || PLANNED.is_match(&entry.lead)
}

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
const EXTENSIONS: WordList = WordList(
    "rs py js ts tsx jsx mjs go java kt c h cc cpp hpp cs rb php swift scala sh bash sql html css scss vue json jsonl \
    toml yaml yml xml ini cfg conf env lock md txt rst csv log proto tf service db sqlite",
);

/// Whether a run of path characters names a file: by a known extension, or as an absolute path.
pub fn is_file_path(run: &str) -> bool {
    let name = run.rsplit(['/', '\\']).next().unwrap_or(run);
    let by_extension = name.rsplit_once('.').is_some_and(|(stem, extension)| {
        !stem.is_empty() && EXTENSIONS.has(&extension.to_lowercase())
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

    fn invented(text: &str) -> InventedReferences {
        let texts = [
            "Edit src/db/pool.rs on 2024-03-17, port=8081, in commit 4f2a91c9d0.",
            "`load_config` fails. 不要改他的分支，复现脚本放 ~/review 就行。\n\n今晚找 DBA 跑。",
        ];
        let messages = texts.map(|text| Message::text(Role::User, text));
        let (history, template) = (
            History::new(&messages),
            reference_keys("End with `summary_end`."),
        );
        KnownReferences::new(&messages, 2).invented_in(
            &history,
            &ContextEntries::from_text(text),
            &template,
        )
    }

    #[test]
    fn what_the_transcript_holds_is_not_invented_however_it_is_written() {
        for text in [
            "pool.rs and db/pool.rs, /home/u/src/db/pool.rs",
            "commit 4f2a91c9, `load_config()`",
            "port=8081 since `load_config` failed",
            "- 用户：「不要改他的分支，复现脚本放 ~/review 就行。 今晚找 DBA 跑。」",
            "`python3 src/db/pool.r…`: fails with …ool_config",
            "The words of the prompt, `summary_end`, are the method's",
            "",
        ] {
            assert_eq!(invented(text), InventedReferences::default(), "{text}");
        }
    }

    #[test]
    fn what_nothing_explains_is_listed_and_what_may_be_worked_out_apart() {
        let found = invented("The cache in src/net/cache.rs calls `drop_all_rows`, port=9999.");
        assert_eq!(
            found.invented,
            ["src/net/cache.rs", "drop_all_rows", "9999"]
        );
        assert_eq!(found.per_1000_tokens(Tokens(1500)), Some(2.0));
        assert_eq!(found.per_1000_tokens(Tokens(0)), None);
        assert_eq!(
            invented("- 用户：「不要改他的分支，复现脚本放 ~/review 就行。 明早找 DBA 跑。」")
                .invented
                .len(),
            1,
            "one sentence is not the user's"
        );
        let planned = invented("## Next steps\n- write src/net/cache.rs\n\n## Done\n- nothing");
        assert_eq!((planned.planned.len(), planned.invented.len()), (1, 0));
    }

    #[test]
    fn a_copy_has_none() {
        let text = "[user]\nEdit src/db/pool.rs on 2024-03-17, port=8081, in commit 4f2a91c9d0.";
        assert_eq!(invented(text), InventedReferences::default());
    }

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
