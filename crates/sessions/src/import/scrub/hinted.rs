//! Rules with hints: a pattern is compiled when one of its hints first occurs in a text, so that most never are.

use aho_corasick::AhoCorasick;
use regex::bytes;

use super::shape::{LazyAscii, ascii};

/// Rules, each with a pattern, as the ASCII matcher reads it, and hints, one of which occurs in every text that the
/// pattern matches, in any case.
pub(super) struct HintedRules<R> {
    rules: Vec<(R, LazyAscii)>,
    /// `None` if they are faulty, as a pattern may be; a test compiles all.
    hints: Option<AhoCorasick>,
    /// The rule that each hint belongs to.
    owners: Vec<usize>,
}

impl<R> HintedRules<R> {
    /// Each rule is given with its hints and with what writes its pattern.
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
        HintedRules { rules, hints: AhoCorasick::builder().ascii_case_insensitive(true).build(hints).ok(), owners }
    }

    /// The rules of which a hint occurs in `text`, in their order.
    pub(super) fn hinted_in(&self, text: &str) -> impl Iterator<Item = (&R, &bytes::Regex)> {
        let mut wanted = vec![false; self.rules.len()];
        for hit in self.hints.iter().flat_map(|hints| hints.find_overlapping_iter(text)) {
            let owner = self.owners.get(hit.pattern().as_usize()).and_then(|owner| wanted.get_mut(*owner));
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
        self.rules.iter().filter(move |(_, regex)| !has_hints || regex.is_none()).map(|(rule, _)| rule)
    }
}
