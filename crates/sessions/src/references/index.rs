//! Which of many references occur in a text, in one pass over it.

use std::collections::BTreeSet;

use aho_corasick::{AhoCorasick, MatchKind};

use super::{Reference, ReferenceKind};

/// Finds references in many texts.
///
/// Matches ignore the case of ASCII letters and never begin or end inside a word, a number or a version. This is for
/// searching whole sessions for thousands of references; contexts are searched with the finder of facts, which also
/// knows other spellings.
#[derive(Clone, Debug)]
pub struct ReferenceIndex {
    automaton: Option<AhoCorasick>,
    kinds: Vec<ReferenceKind>,
}

impl ReferenceIndex {
    /// An index of these references.
    pub fn new(references: &[Reference]) -> ReferenceIndex {
        let patterns = references.iter().map(|reference| match reference.kind {
            ReferenceKind::Path => reference.text.strip_prefix("./").unwrap_or(&reference.text),
            _ => reference.text.as_str(),
        });
        let mut builder = AhoCorasick::builder();
        builder
            .ascii_case_insensitive(true)
            .match_kind(MatchKind::Standard);
        // Building fails only beyond billions of states; then nothing is found.
        let automaton = builder.build(patterns).ok();
        ReferenceIndex {
            automaton,
            kinds: references.iter().map(|reference| reference.kind).collect(),
        }
    }

    /// The references that occur in `text`, as positions in the list that the index was made from.
    pub fn occurrences_in(&self, text: &str) -> BTreeSet<usize> {
        let mut indices = BTreeSet::new();
        let Some(automaton) = &self.automaton else {
            return indices;
        };
        for hit in automaton.find_overlapping_iter(text) {
            let index = hit.pattern().as_usize();
            let Some(kind) = self.kinds.get(index) else {
                continue;
            };
            if !hit.is_empty() && is_whole(text.as_bytes(), hit.start(), hit.end(), *kind) {
                indices.insert(index);
            }
        }
        indices
    }
}

/// Whether the match is a whole word: the text does not continue it at either end.
fn is_whole(text: &[u8], start: usize, end: usize, kind: ReferenceKind) -> bool {
    let before = text.get(..start).unwrap_or_default();
    let hit = text.get(start..end).unwrap_or_default();
    let after = text.get(end..).unwrap_or_default();
    let joins_before = before.last().is_some_and(is_word) && hit.first().is_some_and(is_word);
    let joins_after = hit.last().is_some_and(is_word) && after.first().is_some_and(is_word);
    if joins_before || joins_after {
        return false;
    }
    let (signs_before, signs_after): (&[u8], &[u8]) = match kind {
        ReferenceKind::Number | ReferenceKind::Version => (b".-", b".-"),
        ReferenceKind::Hash | ReferenceKind::Flag => (b"-", b"-"),
        ReferenceKind::Path | ReferenceKind::FileName => (b".", b".-"),
        ReferenceKind::Identifier
        | ReferenceKind::Url
        | ReferenceKind::Command
        | ReferenceKind::ErrorLine
        | ReferenceKind::Quoted => return true,
    };
    let continues_before =
        matches!(before, [.., word, sign] if signs_before.contains(sign) && is_word(word));
    let continues_after =
        matches!(after, [sign, word, ..] if signs_after.contains(sign) && is_word(word));
    !continues_before && !continues_after
}

fn is_word(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || *byte == b'_'
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::references::references_in;
    use proptest::prelude::*;

    fn occurrences(references: &[(ReferenceKind, &str)], text: &str) -> Vec<usize> {
        let list: Vec<Reference> = references
            .iter()
            .map(|(kind, text)| Reference {
                kind: *kind,
                text: (*text).to_owned(),
            })
            .collect();
        ReferenceIndex::new(&list)
            .occurrences_in(text)
            .into_iter()
            .collect()
    }

    #[test]
    fn references_stand_whole_and_in_any_case() {
        use ReferenceKind::{FileName, Identifier, Number, Path, Version};
        let list = [
            (Path, "./src/a.rs"),
            (FileName, "a.rs"),
            (Version, "1.2.3"),
            (Number, "8081"),
            (Identifier, "load_config"),
            (Identifier, "loadConfig"),
        ];
        assert_eq!(
            occurrences(&list, "see /x/src/a.rs:3 and LOADCONFIG()"),
            [0, 1, 5]
        );
        assert_eq!(
            occurrences(
                &list,
                "src/a.rs.bak b_a.rs 1.2.3.4 18081 my_load_config loadConfigs 1.2.3-rc1"
            ),
            [0; 0]
        );
        assert_eq!(occurrences(&list, "port 8081, v 1.2.3."), [2, 3]);
    }

    proptest! {
        #[test]
        fn every_reference_is_found_in_its_own_text(text in "[a-zA-Z0-9_./:=#@`\" \n-]{0,80}|\\PC{0,60}") {
            let references = references_in(&text);
            let found = ReferenceIndex::new(&references).occurrences_in(&text);
            for (index, reference) in references.iter().enumerate() {
                prop_assert!(found.contains(&index), "{reference:?} in {text:?}");
            }
        }
    }
}
