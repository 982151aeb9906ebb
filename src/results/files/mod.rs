//! The files of a results folder: rows, contexts, manifest, and the folders of labels; labels themselves, the names of
//! result sets, safe as names of folders; and why what has one cannot be opened.

pub(super) mod design;
pub(super) mod edits;
pub(super) mod find;
pub(super) mod folder;
pub(super) mod label_folders;
pub(super) mod lines;
pub(super) mod manifest;
pub(super) mod row;

#[cfg(test)]
mod folder_tests;

use std::fmt;
use std::path::{Path, PathBuf};

use base::files::FileError;

/// The name of a result set, and of its folder.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Label(String);

impl Label {
    /// The most bytes a label may have.
    pub const LONGEST: usize = 120;

    /// What means the newest other results on the command line.
    pub const PREVIOUS: &str = "previous";

    /// A checked label.
    ///
    /// # Errors
    /// A name that is not a plain folder name on every system, or that means something else on the command line.
    pub fn new(text: &str) -> Result<Label, FolderError> {
        let (name, _) = split_number(text);
        let why = if text.is_empty() {
            "it is empty"
        } else if text.len() > Label::LONGEST {
            "it is too long"
        } else if text.starts_with(['.', '-']) || text.ends_with('.') {
            "it begins with `.` or `-`, or ends with `.`"
        } else if name.starts_with(' ') || name.ends_with(' ') || name.contains("  ") {
            "it begins or ends with a blank, or holds two in a row"
        } else if !name
            .chars()
            .all(|c| c.is_alphanumeric() || "-_.+=@ ".contains(c))
        {
            "it holds a character that is not allowed"
        } else if name == Label::PREVIOUS {
            "it means the newest other results"
        } else if is_device(name) {
            "Windows has a device of this name"
        } else {
            return Ok(Label(text.to_owned()));
        };
        Err(FolderError::Unusable(format!(
            "`{text}` cannot be a label: {why}; expected up to {} letters, digits, `-`, `_`, `.`, `+`, `=` or `@`, with single \
             blanks between them",
            Label::LONGEST
        )))
    }

    /// The label of a run that was given none: the time at which it began, in UTC, with a number if it is taken.
    pub fn from_time(time: jiff::Timestamp, is_taken: impl Fn(&Label) -> bool) -> Label {
        let label = Label(time.strftime("%Y%m%dT%H%M%SZ").to_string());
        let numbered = (2..).map(|number| Label(format!("{label}-{number}")));
        let mut labels = std::iter::once(label.clone()).chain(numbered);
        labels.find(|label| !is_taken(label)).unwrap_or(label)
    }

    /// The label under which `run --replace` keeps replaced results: `before~1`; what was `before~1` becomes
    /// `before~2`.
    pub fn earlier(&self, number: u32) -> Label {
        Label(format!("{}~{number}", self.0))
    }

    /// The label that these results had before they were replaced; `None` if they were not.
    pub fn successor(&self) -> Option<&str> {
        let (name, number) = split_number(&self.0);
        number.map(|_| name)
    }

    /// The label as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Whether Windows takes a file or folder of this name for a device, whatever its extension.
fn is_device(name: &str) -> bool {
    let stem = name
        .split('.')
        .next()
        .unwrap_or_default()
        .trim_end()
        .to_uppercase();
    let number = stem
        .strip_prefix("COM")
        .or_else(|| stem.strip_prefix("LPT"))
        .unwrap_or_default();
    let is_numbered = matches!(
        number.chars().collect::<Vec<_>>().as_slice(),
        ['1'..='9' | '¹' | '²' | '³']
    );
    is_numbered || ["CON", "PRN", "AUX", "NUL"].contains(&stem.as_str())
}

/// `before~1` as `before` and 1.
fn split_number(text: &str) -> (&str, Option<u32>) {
    let split = text
        .rsplit_once('~')
        .filter(|(name, digits)| !name.is_empty() && !digits.starts_with(['0', '+']));
    match split.and_then(|(name, digits)| Some((name, digits.parse().ok()?))) {
        Some((name, number)) => (name, Some(number)),
        None => (text, None),
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Why a result set cannot be opened, or not be written.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// There are no results with this label.
    #[error("there are no results `{label}` in `{}`{}", results.display(), hint(near.as_deref()))]
    Missing {
        /// The label that was asked for.
        label: String,
        /// The folder of results.
        results: PathBuf,
        /// The label that was probably meant.
        near: Option<String>,
    },
    /// There are no results at all.
    #[error("there are no results in `{}`; make some with `compeval run`", _0.display())]
    Empty(PathBuf),
    /// The name cannot be a label, or there are results, and not those that are wanted, or a file of them is not as it was
    /// written: where, and what to do.
    #[error("{_0}")]
    Unusable(String),
    /// Another process writes them.
    #[error(
        "the results `{label}` are being written by {holder}; wait until it has ended, or use another label"
    )]
    Held {
        /// The label.
        label: Label,
        /// The command and its process.
        holder: String,
    },
    /// The results are protected, or results that would have to be renamed are.
    #[error("the results `{_0}` are protected")]
    Protected(Label),
    /// The label has results of another design.
    #[error(
        "the results `{label}` are of another design, and this run would replace them; what differs:{}",
        conflicts.iter().map(|item| format!("\n  - {item}")).collect::<String>()
    )]
    OtherDesign {
        /// The label.
        label: Label,
        /// How the designs differ.
        conflicts: Vec<String>,
    },
    /// The file system refused.
    #[error(transparent)]
    File(#[from] FileError),
}

impl FolderError {
    /// A line, counted from 1, that is not what a file of a result set has.
    pub(super) fn line(path: &Path, line: usize, what: &str) -> FolderError {
        let path = path.display();
        FolderError::Unusable(format!(
            "line {line} of `{path}` is not {what}; run the label again"
        ))
    }

    /// A line that is not a row.
    pub(super) fn row(path: &Path, line: usize, source: &serde_json::Error) -> FolderError {
        FolderError::line(path, line, &format!("a row of results: {source}"))
    }
}

fn hint(near: Option<&str>) -> String {
    near.map(|near| format!("; did you mean `{near}`?"))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_names_and_times_are_labels() {
        let blanks = ["my run", "my run~1", "新 提示词", "a -b"];
        let plain = [
            "baseline",
            "v1.2",
            "2026-01-02",
            "新提示词",
            "a+b=c@d",
            "before~1",
            "com10",
            "con-1",
        ];
        for good in plain.into_iter().chain(blanks) {
            assert_eq!(Label::new(good).unwrap().as_str(), good);
        }
        let time: jiff::Timestamp = "2026-01-02T03:04:05Z".parse().unwrap();
        let label = Label::from_time(time, |_| false);
        assert_eq!(label.as_str(), "20260102T030405Z");
        assert_eq!(Label::new(label.as_str()).unwrap(), label);
        let next = Label::from_time(time, |taken| *taken == label);
        assert_eq!(next.as_str(), "20260102T030405Z-2");
        assert!(Label::new(Label::PREVIOUS).is_err());
    }

    #[test]
    fn replaced_results_are_numbered_from_the_newest() {
        let label = Label::new("before").unwrap();
        assert_eq!(
            (label.earlier(1).as_str(), label.successor()),
            ("before~1", None)
        );
        assert_eq!(Label::new("before~12").unwrap().successor(), Some("before"));
    }

    #[test]
    fn names_that_lead_elsewhere_are_not() {
        for bad in [
            "",
            ".",
            "..",
            "a/b",
            "a\\b",
            "a:b",
            "-x",
            " a",
            "a ",
            "a  b",
            "a ~1",
            "a\tb",
            "a\u{a0}b",
            "con",
            "Aux.1",
            "nul~1",
            "LPT9",
            "a.",
            "a\n",
            "~1",
            "a~",
            "a~01",
            "a~x",
            "a~1~2",
            &"x".repeat(121),
        ] {
            assert!(Label::new(bad).is_err(), "{bad:?}");
        }
        assert!(
            Label::new("a/b")
                .unwrap_err()
                .to_string()
                .starts_with("`a/b` cannot be a label: it holds")
        );
    }
}
