//! Which lines of a text differ from an earlier one. Only this file uses the crate `similar`.

use similar::{Algorithm, ChangeTag, capture_diff_slices, group_diff_ops};

/// A stretch of lines that differs, with some lines around it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hunk {
    /// Its first line in the new text, from 1.
    pub line: usize,
    /// The lines in order, each after `-` if only the old text has it, `+` if only the new one has it, or a blank.
    pub lines: Vec<String>,
}

impl Hunk {
    /// The lines of a unified diff.
    pub fn unified(&self) -> impl Iterator<Item = String> {
        let head = format!("@@ line {} @@", self.line);
        std::iter::once(head).chain(self.lines.iter().cloned())
    }
}

/// The lines with their ends, so that a missing end of the last line is a difference.
fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

/// The stretches in which `new` differs from `old`, each with `around` lines before and after it.
pub fn hunks(old: &str, new: &str, around: usize) -> Vec<Hunk> {
    let (old, new) = (lines(old), lines(new));
    let ops = capture_diff_slices(Algorithm::Myers, &old, &new);
    let hunks = group_diff_ops(ops, around).into_iter().map(|ops| {
        let first = ops.first().map_or(0, |op| op.new_range().start);
        let lines = ops
            .iter()
            .flat_map(|op| op.iter_changes(&old[..], &new[..]))
            .map(|change| {
                let mark = match change.tag() {
                    ChangeTag::Equal => ' ',
                    ChangeTag::Delete => '-',
                    ChangeTag::Insert => '+',
                };
                let line = change.value().trim_end_matches(['\n', '\r']);
                format!("{mark}{line}")
            });
        Hunk {
            line: first + 1,
            lines: lines.collect(),
        }
    });
    hunks.collect()
}

/// The most places of one file that are named.
const MOST_PLACES: usize = 8;

/// Where the text of `path` differs from its earlier text: `path:line`, `path:first-last`; only the path if no line
/// differs.
pub fn changed_places(path: &str, old: &str, new: &str) -> Vec<String> {
    let mut places: Vec<String> = changed_lines(old, new)
        .into_iter()
        .map(|(first, last)| match first == last {
            true => format!("{path}:{first}"),
            false => format!("{path}:{first}-{last}"),
        })
        .collect();
    if places.is_empty() {
        places.push(path.to_owned());
    }
    if places.len() > MOST_PLACES {
        let more = places.len() - MOST_PLACES;
        places.truncate(MOST_PLACES);
        places.push(format!("and {more} more places"));
    }
    places
}

/// The lines of `new`, from 1, that differ from `old`: first and last of each stretch. Where lines were only removed,
/// it is the line that is now in their place.
fn changed_lines(old: &str, new: &str) -> Vec<(usize, usize)> {
    let last = lines(new).len().max(1);
    let places = hunks(old, new, 0).into_iter().map(|hunk| {
        let added = hunk.lines.iter().filter(|line| line.starts_with('+'));
        let first = hunk.line.min(last);
        (first, (hunk.line + added.count() - 1).clamp(first, last))
    });
    places.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "one\ntwo\nthree\nfour\nfive\n";

    #[test]
    fn changed_lines_are_those_of_the_new_text() {
        assert_eq!(changed_lines(OLD, "one\n2\nthree\nfour\nfive\n"), [(2, 2)]);
        assert_eq!(
            changed_lines(OLD, "zero\none\ntwo\nthree\nfour\n5\n6\n"),
            [(1, 1), (6, 7)]
        );
        assert_eq!(
            changed_lines(OLD, "one\nthree\nfour\nfive\n"),
            [(2, 2)],
            "what stands where a line was taken out"
        );
        assert_eq!(
            changed_lines(OLD, "one\ntwo\nthree\nfour\n"),
            [(4, 4)],
            "the last line that is left"
        );
        assert_eq!(changed_lines(OLD, ""), [(1, 1)]);
        assert!(changed_lines(OLD, OLD).is_empty());
    }

    #[test]
    fn a_hunk_has_the_lines_around_it() {
        let found = hunks(OLD, "one\ntwo\n3\nfour\nfive\n", 1);
        let lines = [" two", "-three", "+3", " four"]
            .map(str::to_owned)
            .to_vec();
        assert_eq!(found, [Hunk { line: 2, lines }]);
    }
}
