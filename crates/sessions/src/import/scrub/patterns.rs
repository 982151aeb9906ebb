//! Compiles patterns. Those of rules with hints are compiled when a hint first occurs in a text, so most never are.

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;
use regex::{Regex, RegexBuilder, bytes};

/// The most memory that a compiled pattern may take.
pub(super) const SIZE: usize = 64 << 20;

/// A pattern that is compiled at its first use.
pub(super) type LazyAscii =
    LazyLock<Option<bytes::Regex>, Box<dyn FnOnce() -> Option<bytes::Regex> + Send>>;

/// A pattern whose word ends are ASCII: so are the secrets, and it makes the matcher faster.
pub(super) fn with_ascii_word_ends(text: &str) -> String {
    text.replace(r"\b", r"(?-u:\b)")
}

/// Compiles a pattern that is part of the program.
pub(super) fn compiled(text: &str) -> Regex {
    RegexBuilder::new(&with_ascii_word_ends(text))
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

/// Rules, each with a pattern for [`ascii`] and hints. One of the hints occurs in every text that the pattern matches,
/// in any case.
pub(super) struct HintedRules<R> {
    rules: Vec<(R, LazyAscii)>,
    /// `None` if they do not compile; a test compiles all.
    hints: Option<AhoCorasick>,
    /// The rule that each hint belongs to.
    owners: Vec<usize>,
}

impl<R> HintedRules<R> {
    /// Each rule is given with its hints and a function that makes its pattern.
    pub(super) fn new<H, P>(listed: impl IntoIterator<Item = (R, H, P)>) -> HintedRules<R>
    where
        H: IntoIterator<Item: AsRef<[u8]>>,
        P: FnOnce() -> String + Send + 'static,
    {
        let (mut rules, mut hints, mut owners) = (Vec::new(), Vec::new(), Vec::new());
        for (rule, hints_of_rule, pattern) in listed {
            hints.extend(hints_of_rule);
            owners.resize(hints.len(), rules.len());
            rules.push((rule, LazyAscii::new(Box::new(move || ascii(&pattern())))));
        }
        HintedRules {
            rules,
            hints: AhoCorasick::builder()
                .ascii_case_insensitive(true)
                .build(hints)
                .ok(),
            owners,
        }
    }

    /// The rules that have a hint in `text`, in their order.
    pub(super) fn hinted_in(&self, text: &str) -> impl Iterator<Item = (&R, &bytes::Regex)> {
        let mut wanted = vec![false; self.rules.len()];
        for hit in self
            .hints
            .iter()
            .flat_map(|hints| hints.find_overlapping_iter(text))
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

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.rules.len()
    }

    /// The rules that do not compile.
    #[cfg(test)]
    pub(super) fn faulty(&self) -> impl Iterator<Item = &R> {
        let has_hints = self.hints.is_some();
        self.rules
            .iter()
            .filter(move |(_, regex)| !has_hints || regex.is_none())
            .map(|(rule, _)| rule)
    }
}
