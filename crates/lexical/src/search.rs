//! Full-text search by BM25 over a list of texts, the same on every machine: no clock, no threads, no model. It finds the
//! passages that the rules quote, and what an agent searches for in the history that its context replaced.
//!
//! It knows texts and positions in a list, and nothing of sessions, methods or answers. Of a text that is found, the lines
//! that say most about the query are given.

use std::collections::HashMap;
use std::ops::Range;

use super::terms::{Term, each_term, terms};

/// How quickly further occurrences of a term in a text count less (k1 of BM25).
const SATURATION: f64 = 1.2;
/// How far long texts are marked down (b of BM25).
const LENGTH_WEIGHT: f64 = 0.75;

/// An index of texts, built once and searched in any range of positions: a search in a range ranks as an index of that
/// range alone would.
#[derive(Debug, Default)]
pub struct SearchIndex {
    /// For each term, the texts that have it, in order, each with the number of occurrences.
    postings: HashMap<Term, Vec<(u32, u32)>>,
    /// The number of terms in all texts before each position, then in all texts.
    terms_before: Vec<u64>,
}

/// What a query finds.
#[derive(Debug, Default)]
pub struct Ranking {
    /// The positions of all texts that share a term with the query, best first; of texts with the same score, the
    /// earlier one first.
    pub positions: Vec<usize>,
    /// The terms of the query that occur, with their weights: the rarer, the heavier.
    weights: Vec<(Term, f64)>,
}

impl Ranking {
    /// The weight of a term by its index in [`Ranking::weights`].
    fn weight(&self, term: usize) -> f64 {
        self.weights.get(term).map_or(0.0, |(_, weight)| *weight)
    }
}

impl SearchIndex {
    /// Indexes texts, each at its position.
    pub fn new<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> SearchIndex {
        let mut index = SearchIndex {
            postings: HashMap::new(),
            terms_before: vec![0],
        };
        let mut total = 0;
        for (position, text) in (0_u32..).zip(texts) {
            each_term(text.as_ref(), |term| {
                total += 1;
                let list = index.postings.entry(term).or_default();
                match list.last_mut().filter(|(last, _)| *last == position) {
                    Some((_, count)) => *count += 1,
                    None => list.push((position, 1)),
                }
            });
            index.terms_before.push(total);
        }
        index
    }

    /// Ranks the texts in `range` by BM25.
    pub fn rank(&self, query: &str, range: Range<usize>) -> Ranking {
        let range = range.start..range.end.min(self.terms_before.len().saturating_sub(1));
        let weights = self.weights(query, &range);
        let scores = self.scores(&weights, &range);
        let mut scored: Vec<(usize, f64)> = (range.start..).zip(scores).collect();
        scored.retain(|(_, score)| *score > 0.0);
        scored.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        Ranking {
            positions: scored.into_iter().map(|(at, _)| at).collect(),
            weights,
        }
    }

    /// The terms of the query that occur in `range`, with their weights: the rarer, the heavier.
    pub(super) fn weights(&self, query: &str, range: &Range<usize>) -> Vec<(Term, f64)> {
        let texts = range.len() as f64;
        let weighted = terms(query).into_iter().filter_map(|term| {
            let holding = self.postings_in(term, range).len() as f64;
            let weight = (1.0 + (texts - holding + 0.5) / (holding + 0.5)).ln();
            (holding > 0.0).then_some((term, weight))
        });
        weighted.collect()
    }

    /// The BM25 score of each text in `range`.
    pub(super) fn scores(&self, weights: &[(Term, f64)], range: &Range<usize>) -> Vec<f64> {
        let mean_length = self.length(range) / (range.len() as f64).max(1.0);
        let mut scores = vec![0.0; range.len()];
        for (term, weight) in weights {
            for (position, count) in self.postings_in(*term, range) {
                let at = *position as usize;
                let length = self.length(&(at..at + 1));
                let scale =
                    SATURATION * (1.0 - LENGTH_WEIGHT + LENGTH_WEIGHT * length / mean_length);
                let count = f64::from(*count);
                if let Some(score) = scores.get_mut(at - range.start) {
                    *score += weight * count * (SATURATION + 1.0) / (count + scale);
                }
            }
        }
        scores
    }

    fn postings_in(&self, term: Term, range: &Range<usize>) -> &[(u32, u32)] {
        let postings = self.postings.get(&term).map_or(&[][..], Vec::as_slice);
        let [from, to] = [range.start, range.end]
            .map(|end| postings.partition_point(|(at, _)| (*at as usize) < end));
        postings.get(from..to).unwrap_or_default()
    }

    /// The number of terms in all texts of a range.
    fn length(&self, range: &Range<usize>) -> f64 {
        let [start, end] = [range.start, range.end]
            .map(|at| self.terms_before.get(at).copied().unwrap_or_default());
        end.saturating_sub(start) as f64
    }
}

/// Marks what was left out.
const GAP: &str = "[…]";

/// The consecutive lines of `text` that have most of the query's terms within `limit` tokens, as `size` counts them;
/// the whole text if it fits. Gaps before and after the lines are marked.
pub fn excerpt(text: &str, ranking: &Ranking, limit: u64, size: impl Fn(&str) -> u64) -> String {
    let text = text.trim_end();
    if size(text) <= limit {
        return text.to_owned();
    }
    let lines = lines(text, limit, &size);
    let sizes: Vec<u64> = lines.iter().map(|line| size(line)).collect();
    let chosen = fill(best_window(&lines, &sizes, ranking, limit), &sizes, limit);
    let inner = lines.get(chosen.clone()).unwrap_or_default().concat();
    let before = if chosen.start > 0 {
        format!("{GAP}\n")
    } else {
        String::new()
    };
    let after = if chosen.end < lines.len() {
        format!("\n{GAP}")
    } else {
        String::new()
    };
    format!("{before}{}{after}", inner.trim_end())
}

/// The lines of a text, each with its end. A line over the limit is split into pieces within it.
fn lines<'t>(text: &'t str, limit: u64, size: &impl Fn(&str) -> u64) -> Vec<&'t str> {
    let mut lines = Vec::new();
    for mut line in text.split_inclusive('\n') {
        loop {
            let (piece, rest) = line.split_at(fitting(line, limit, size));
            lines.push(piece);
            if rest.is_empty() {
                break;
            }
            line = rest;
        }
    }
    lines
}

/// The length in bytes of a beginning of `line` that fits, one character at least: of the line halved again and again,
/// the longest part that fits. The shortest is measured first: a line may be a file of megabytes, and each of its many
/// pieces would measure all that is left.
fn fitting(line: &str, limit: u64, size: &impl Fn(&str) -> u64) -> usize {
    let first = line.chars().next().map_or(0, char::len_utf8);
    let mut end = line.len();
    let mut ends = vec![end];
    while end > first {
        end = line.floor_char_boundary(end / 2).max(first);
        ends.push(end);
    }
    let fits = |end: &usize| size(line.get(..*end).unwrap_or_default()) <= limit;
    ends.into_iter()
        .rev()
        .take_while(fits)
        .last()
        .unwrap_or(first)
}

/// The first window within the limit that has the heaviest terms, without the lines before its first match.
fn best_window(lines: &[&str], sizes: &[u64], ranking: &Ranking, limit: u64) -> Range<usize> {
    let line_terms: Vec<Vec<usize>> = lines
        .iter()
        .map(|line| matching_terms(line, ranking))
        .collect();
    let mut counts = vec![0_u32; ranking.weights.len()];
    let (mut start, mut used, mut score) = (0, 0, 0.0);
    let (mut best, mut best_score) = (0..0, 0.0);
    for (end, (terms, length)) in line_terms.iter().zip(sizes).enumerate() {
        used += length;
        for term in terms {
            let Some(count) = counts.get_mut(*term) else {
                continue;
            };
            *count += 1;
            score += if *count == 1 {
                ranking.weight(*term)
            } else {
                0.0
            };
        }
        while used > limit && start < end {
            used -= sizes.get(start).copied().unwrap_or_default();
            for term in line_terms.get(start).into_iter().flatten() {
                let Some(count) = counts.get_mut(*term) else {
                    continue;
                };
                *count -= 1;
                score -= if *count == 0 {
                    ranking.weight(*term)
                } else {
                    0.0
                };
            }
            start += 1;
        }
        // Sums of the same weights in another order differ in their last digits.
        if score > best_score + 1e-9 {
            (best, best_score) = (start..end + 1, score);
        }
    }
    let first = best
        .clone()
        .find(|at| line_terms.get(*at).is_some_and(|terms| !terms.is_empty()));
    first.unwrap_or(best.start)..best.end
}

/// The indices in the ranking's weights of the terms that `line` has, each once.
fn matching_terms(line: &str, ranking: &Ranking) -> Vec<usize> {
    let mut found = Vec::new();
    let mut note = |term: Term| {
        if let Some(at) = ranking.weights.iter().position(|(known, _)| *known == term)
            && !found.contains(&at)
        {
            found.push(at);
        }
    };
    each_term(line, &mut note);
    found
}

/// Extends a window by the lines after it, then by those before it, while they fit.
fn fill(window: Range<usize>, sizes: &[u64], limit: u64) -> Range<usize> {
    let Range { mut start, mut end } = window;
    let mut room = limit.saturating_sub(sizes.get(start..end).unwrap_or_default().iter().sum());
    while let Some(size) = sizes.get(end).filter(|size| **size <= room) {
        room -= size;
        end += 1;
    }
    while let Some(size) = start
        .checked_sub(1)
        .and_then(|before| sizes.get(before))
        .filter(|size| **size <= room)
    {
        room -= size;
        start -= 1;
    }
    start..end
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TEXTS: [&str; 5] = [
        "The server listens on port 8080.",
        "Retry failed: ValueError, delay must not be negative.",
        "Changed the port to 8081, because the firewall lets it through.",
        "A long report on the port, the port again, and on weather, gardens, trains, painting, music, kitchens, rivers, mountains, libraries.",
        "端口改为 8081。",
    ];

    fn ranked(query: &str) -> Vec<usize> {
        SearchIndex::new(TEXTS)
            .rank(query, 0..TEXTS.len())
            .positions
    }

    #[test]
    fn rare_terms_and_short_texts_come_first() {
        assert_eq!(ranked("which port does the firewall let through?")[0], 2);
        assert_eq!(ranked("ValueError delay"), [1]);
        assert_eq!(ranked("port")[0], 0, "the shortest of those that have it");
        assert_eq!(ranked("端口"), [4]);
        assert!(ranked("zebra quux").is_empty() && ranked("").is_empty());
    }

    #[test]
    fn of_equals_the_earlier_one_is_first() {
        let index = SearchIndex::new(["same words", "other", "same words"]);
        assert_eq!(index.rank("words", 0..3).positions, [0, 2]);
    }

    /// BM25 as the formula says it, without an index.
    fn naive(texts: &[String], query: &str) -> Vec<usize> {
        let all_terms = |text: &str| {
            let mut terms = Vec::new();
            each_term(text, |term| terms.push(term));
            terms
        };
        let documents: Vec<Vec<Term>> = texts.iter().map(|text| all_terms(text)).collect();
        let count = documents.len() as f64;
        let mean = documents.iter().map(Vec::len).sum::<usize>() as f64 / count.max(1.0);
        let score = |document: &Vec<Term>| -> f64 {
            let of = |term: Term| {
                let df = documents
                    .iter()
                    .filter(|other| other.contains(&term))
                    .count() as f64;
                let tf = document.iter().filter(|other| **other == term).count() as f64;
                let idf = (1.0 + (count - df + 0.5) / (df + 0.5)).ln();
                idf * tf * 2.2 / (tf + 1.2 * (0.25 + 0.75 * document.len() as f64 / mean))
            };
            terms(query)
                .into_iter()
                .filter(|term| document.contains(term))
                .map(of)
                .sum()
        };
        let mut scored: Vec<(usize, f64)> = documents
            .iter()
            .map(score)
            .enumerate()
            .filter(|(_, s)| *s > 0.0)
            .collect();
        scored.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        scored.into_iter().map(|(at, _)| at).collect()
    }

    proptest! {
        #[test]
        fn a_range_ranks_as_an_index_of_it_alone_and_as_the_formula_says(
            texts in proptest::collection::vec("[a-d端口 ]{0,12}", 0..12),
            query in "[a-d端口 ]{0,6}",
            start in 0_usize..6,
        ) {
            let start = start.min(texts.len());
            let whole = SearchIndex::new(&texts);
            let part = SearchIndex::new(&texts[start..]);
            let expected: Vec<usize> = part.rank(&query, 0..texts.len()).positions;
            let shifted: Vec<usize> = expected.iter().map(|at| at + start).collect();
            prop_assert_eq!(whole.rank(&query, start..texts.len()).positions, shifted);
            prop_assert_eq!(expected, naive(&texts[start..], &query));
        }
    }
}

#[cfg(test)]
mod excerpt_tests {
    use proptest::prelude::*;

    use super::*;

    fn words(text: &str) -> u64 {
        text.split_whitespace().count() as u64
    }

    fn cut(text: &str, query: &str, limit: u64) -> String {
        excerpt(
            text,
            &SearchIndex::new([text]).rank(query, 0..1),
            limit,
            words,
        )
    }

    #[test]
    fn a_short_text_is_whole_and_a_long_one_is_cut_around_the_terms() {
        let text = "one two\nthree four\nthe port is 8081\nfive six\nseven eight\n";
        assert_eq!(cut(text, "port", 100), text.trim_end());
        assert_eq!(cut(text, "port", 6), "[…]\nthe port is 8081\nfive six\n[…]");
        assert_eq!(cut(text, "eight", 4), "[…]\nfive six\nseven eight");
        assert_eq!(cut(text, "one", 2), "one two\n[…]");
    }

    #[test]
    fn the_window_with_more_of_the_terms_is_taken() {
        let text = "port\nx y z x y z\nport and firewall\nx y z x y z\nfirewall";
        assert!(cut(text, "port firewall", 4).contains("port and firewall"));
    }

    #[test]
    fn the_limit_is_kept_where_lines_are_indented() {
        let text = "端a\n  a端端 a端a\n  a\n a端aaa\n   aaa";
        let size = |text: &str| text.len() as u64;
        let found = excerpt(text, &SearchIndex::new([text]).rank("a", 0..1), 19, size);
        let inner = found.trim_start_matches("[…]\n").trim_end_matches("\n[…]");
        assert!(text.contains(inner) && size(inner) <= 19, "{found:?}");
    }

    proptest! {
        #[test]
        fn an_excerpt_is_cut_from_its_text_and_keeps_the_limit(
            text in "([a-c端 ]{0,9}\n){0,9}[a-c ]{0,40}", query in "[a-c端 ]{1,5}", limit in 4_u64..60,
        ) {
            let size = |text: &str| text.len() as u64;
            let found = excerpt(&text, &SearchIndex::new([&text]).rank(&query, 0..1), limit, size);
            let inner = found.trim_start_matches("[…]\n").trim_end_matches("\n[…]");
            prop_assert!(text.contains(inner));
            prop_assert!(size(inner) <= limit, "{found:?}");
        }
    }
}
