//! The part of a text that says most about a query.

use std::ops::Range;

use super::{Ranking, Term, each_term};

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
    use crate::search::SearchIndex;

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
