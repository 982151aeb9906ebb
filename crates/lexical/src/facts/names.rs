//! Names in texts: words as programs spell them, and paths.

use std::collections::HashMap;

use base::words::is_word;

/// The distinct folded paths of a transcript in normal form, by file name.
#[derive(Clone, Debug, Default)]
pub struct TranscriptPaths(HashMap<String, Vec<String>>);

impl TranscriptPaths {
    /// Adds a path in normal form.
    pub(super) fn add(&mut self, path: &str) {
        let name = path.rsplit('/').next().unwrap_or(path);
        self.0
            .entry(name.to_owned())
            .or_default()
            .push(path.to_owned());
    }

    /// Whether `ending`, some last parts of the folded path `path`, belongs to this path alone: every path of the
    /// transcript that ends so is this one, written shorter or longer.
    pub fn is_unique_ending(&self, path: &str, ending: &str) -> bool {
        let name = ending.rsplit('/').next().unwrap_or(ending);
        let namesakes = self.0.get(name).into_iter().flatten();
        let mut others = namesakes.filter(|other| ends_in(other, ending));
        others.all(|other| ends_in(other, path) || ends_in(path, other))
    }
}

/// Whether a text goes on after this character if a word follows: `config.yaml` is another file than `config.yaml.bak`,
/// `src/db` another folder than `src/db-old`.
pub(super) fn goes_on_after(text: &str, c: char) -> bool {
    c == '.' && (is_path(text) || is_file(text)) || c == '-' && is_path(text)
}

/// Whether a text goes on before this character if a word precedes it: `settings.json` is another file than
/// `my-settings.json`.
pub(super) fn goes_on_before(text: &str, c: char) -> bool {
    c == '-' && (is_path(text) || is_file(text)) || c == '.' && is_path(text)
}

fn is_path(text: &str) -> bool {
    text.contains('/') && !text.contains(' ')
}

/// Whether a text may be the name of a file or a host: one word with an ending.
fn is_file(text: &str) -> bool {
    let Some((stem, end)) = text.rsplit_once('.').filter(|_| !text.contains(' ')) else {
        return false;
    };
    stem.ends_with(is_word)
        && (1..=5).contains(&end.len())
        && end.chars().all(|c| c.is_ascii_alphanumeric())
        && end.contains(|c: char| c.is_ascii_alphabetic())
}

/// Whether a text ends in a number after a point or after the letter `v`.
pub(super) fn is_version(text: &str) -> bool {
    let head = text.trim_end_matches(|c: char| c.is_ascii_digit());
    head.len() < text.len() && (head.ends_with('.') || head == "v" || head.ends_with(" v"))
}

/// Whether the path `long` ends in the whole parts `short`.
pub(super) fn ends_in(long: &str, short: &str) -> bool {
    long.strip_suffix(short)
        .is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
}

/// A path with `/` between its parts and neither `./`, `~/` nor a drive at its start.
pub fn normal_path(path: &str) -> String {
    let slashed = path.replace('\\', "/");
    let parts: Vec<&str> = slashed
        .split('/')
        .filter(|part| !matches!(*part, "" | "." | "~"))
        .collect();
    parts.join("/")
}

/// The most parts that are taken from the end of a path.
const MOST_PARTS: usize = 32;

/// A path in normal form, and what is left of it as parts are taken from its front. Of a chain of thousands of parts there
/// are only the last ones, so that time and memory grow with the text and not with its square.
pub fn suffixes(path: &str) -> impl Iterator<Item = &str> {
    let passed_over = path.matches('/').count().saturating_sub(MOST_PARTS);
    let starts = path.match_indices('/').map(|(at, _)| at + 1);
    [0].into_iter()
        .chain(starts.skip(passed_over))
        .filter_map(|start| path.get(start..))
        .filter(|rest| !rest.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_a_normal_form_and_its_ends() {
        assert_eq!(normal_path("./src\\a.rs"), "src/a.rs");
        assert_eq!(
            suffixes("a/b/c.rs").collect::<Vec<_>>(),
            ["a/b/c.rs", "b/c.rs", "c.rs"]
        );
    }
}
