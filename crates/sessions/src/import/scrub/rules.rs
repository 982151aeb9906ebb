//! The rules for secrets, which are data. Tokens of machines have a shape: `assets/secrets/tokens.json` and the rules of
//! gitleaks. A password has a position: `positions.json` has those that no key word introduces, see [`super::passwords`].
//!
//! Patterns are compiled when a key word of theirs first occurs in a text, so most never are.

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;
use regex::{Regex, RegexBuilder, bytes};
use serde::Deserialize;
use serde_json::Value;

/// The most memory that a compiled pattern may take.
const SIZE: usize = 64 << 20;

/// Machine tokens. Of two rules that match at one place the earlier names the kind.
pub(super) static TOKENS: LazyLock<Rules> = LazyLock::new(|| {
    Rules::read(&[
        include_str!("../../../assets/secrets/tokens.json"),
        include_str!("../../../assets/secrets/gitleaks.json"),
    ])
});

/// Positions of passwords.
pub(super) static POSITIONS: LazyLock<Rules> =
    LazyLock::new(|| Rules::read(&[include_str!("../../../assets/secrets/positions.json")]));

/// What a secret of one kind looks like, or what is around it.
#[derive(Debug, Deserialize)]
pub(super) struct SecretRule {
    /// The kind of secret, in lower case with hyphens.
    pub(super) id: String,
    /// A pattern for [`ascii`].
    pub(super) regex: String,
    /// One of these occurs in every text that the pattern matches, in any case.
    keywords: Vec<String>,
    /// The least entropy of a secret.
    #[serde(default)]
    pub(super) entropy: f64,
    /// The group of the pattern that is the secret; without it, the first that matches, of a pattern without groups the
    /// whole match.
    group: Option<usize>,
    /// Whether a value must have digits or signs and be no path, because ordinary words occur in this position too.
    #[serde(default)]
    pub(super) strong: bool,
}

impl SecretRule {
    /// The secret of a match.
    pub(super) fn secret<'t>(&self, captures: &bytes::Captures<'t>) -> Option<bytes::Match<'t>> {
        match self.group {
            Some(group) => captures.get(group),
            None if captures.len() == 1 => captures.get(0),
            None => captures.iter().skip(1).flatten().next(),
        }
    }
}

/// A pattern that is compiled at its first use.
type LazyPattern = LazyLock<Option<bytes::Regex>, Box<dyn FnOnce() -> Option<bytes::Regex> + Send>>;

/// Rules, with what tells which of them a text needs.
pub(super) struct Rules {
    rules: Vec<(SecretRule, LazyPattern)>,
    /// `None` if the key words do not compile; a test compiles all.
    keywords: Option<AhoCorasick>,
    /// The rule that each key word belongs to.
    owners: Vec<usize>,
}

impl Rules {
    /// The files are part of the program and a test compiles every rule, so a fault in one leaves out its rules rather
    /// than a panic.
    fn read(files: &[&str]) -> Rules {
        let (mut rules, mut keywords, mut owners) = (Vec::new(), Vec::new(), Vec::new());
        for file in files {
            let mut file: Value = serde_json::from_str(file).unwrap_or_default();
            let listed: Vec<SecretRule> =
                serde_json::from_value(file["rules"].take()).unwrap_or_default();
            for rule in listed {
                keywords.extend(rule.keywords.clone());
                owners.resize(keywords.len(), rules.len());
                let pattern = with_values(&rule.regex);
                rules.push((rule, LazyPattern::new(Box::new(move || ascii(&pattern)))));
            }
        }
        Rules {
            rules,
            keywords: caseless(&keywords),
            owners,
        }
    }

    /// The rules that have a key word in `text`, in their order.
    pub(super) fn hinted_in(
        &self,
        text: &str,
    ) -> impl Iterator<Item = (&SecretRule, &bytes::Regex)> {
        let mut wanted = vec![false; self.rules.len()];
        for hit in self
            .keywords
            .iter()
            .flat_map(|keywords| keywords.find_overlapping_iter(text))
        {
            let owner = self
                .owners
                .get(hit.pattern().as_usize())
                .and_then(|owner| wanted.get_mut(*owner));
            if let Some(owner) = owner {
                *owner = true;
            }
        }
        let wanted = self.rules.iter().zip(wanted).filter(|(_, wanted)| *wanted);
        wanted.filter_map(|((rule, regex), _)| Some((rule, regex.as_ref()?)))
    }
}

/// Writes out the short forms in positions: `{V}` is a value, quoted or not, `{Q}` a quoted one.
fn with_values(pattern: &str) -> String {
    pattern
        .replace(
            "{V}",
            r#"(?:"([^"\n]{1,200})"|'([^'\n]{1,200})'|([^\s"'|;<>`]{1,200}))"#,
        )
        .replace("{Q}", r#"(?:"([^"\n]{1,200})"|'([^'\n]{1,200})')"#)
}

/// Finds any of these words in any case.
pub(super) fn caseless(words: &[impl AsRef<[u8]>]) -> Option<AhoCorasick> {
    AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .build(words)
        .ok()
}

/// Compiles a pattern that is part of the program. Its word ends are ASCII: so are the secrets, and it makes the matcher
/// faster.
pub(super) fn compiled(text: &str) -> Regex {
    RegexBuilder::new(&text.replace(r"\b", r"(?-u:\b)"))
        .size_limit(SIZE)
        .build()
        .unwrap_or_else(|error| unreachable!("built-in pattern: {error}"))
}

/// A pattern whose `\w`, `\s` and `\b` are ASCII, as Go reads them: faster to compile and to match. `None` if it is
/// faulty; a test compiles all.
pub(super) fn ascii(pattern: &str) -> Option<bytes::Regex> {
    bytes::RegexBuilder::new(pattern)
        .unicode(false)
        .size_limit(SIZE)
        .build()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_compiles() {
        for (rules, fewest) in [(&*TOKENS, 240), (&*POSITIONS, 120)] {
            assert!(rules.rules.len() > fewest && rules.keywords.is_some());
            let faulty: Vec<&str> = rules
                .rules
                .iter()
                .filter(|(_, regex)| regex.is_none())
                .map(|(rule, _)| rule.regex.as_str())
                .collect();
            assert_eq!(faulty, Vec::<&str>::new());
        }
    }
}
