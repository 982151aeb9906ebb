//! The ledger of tries: which designs of methods were compared with a baseline. The best of many tries looks better
//! than it is, so an improvement has to hold among all of them.
//!
//! The ledger is in the folder of the baseline and is copied with it. Entries are only added. Each is a file that is
//! named by the digest of its content, so copies are merged by union (`cp`, git) without conflicts. If a design has
//! several numbers, the largest counts.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::folder::{FolderError, ResultsFolder, list_entries};
use crate::action::Digest;
use base::files::{self, FileError};

/// The folder of the entries in that of the baseline.
const TRIES: &str = "tries";

/// A design that was compared with the baseline.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Try {
    /// The method as the baseline calls it; null for the mean over the methods tested.
    pub method: Option<String>,
    /// The digest of everything that decides the answers.
    pub design: Digest,
    /// The number of this try of the method, from 1.
    pub number: usize,
    /// The digests of the transcripts of the fixtures that were compared.
    pub fixtures: BTreeSet<Digest>,
    /// Whether it tested a winner on fixtures that no try had used: then it does not count as a try.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub confirms: bool,
}

/// All entries of a ledger.
#[derive(Clone, Debug, Default)]
pub struct Tries(BTreeSet<Try>);

impl Tries {
    /// Reads the ledger of a baseline; it is empty if nothing was compared with the baseline.
    ///
    /// # Errors
    /// A file cannot be read or is not an entry: without it, too few tries would be counted.
    pub fn read(baseline: &ResultsFolder) -> Result<Tries, FolderError> {
        let mut entries = BTreeSet::new();
        let paths = list_entries(&baseline.file(TRIES))?.into_iter();
        for path in paths.filter(|path| path.extension().is_some_and(|e| e == "json")) {
            let text = files::read_text(&path)?;
            entries.insert(
                serde_json::from_str(&text).map_err(|source| FolderError::Try { path, source })?,
            );
        }
        Ok(Tries(entries))
    }

    /// The number of a design among the tries of a method: the one that it has, or the next.
    pub fn number(&self, method: Option<&str>, design: &Digest) -> usize {
        let tries = self
            .0
            .iter()
            .filter(|entry| entry.method.as_deref() == method && !entry.confirms);
        let mut numbers: BTreeMap<&Digest, usize> = BTreeMap::new();
        for entry in tries {
            let number = numbers.entry(&entry.design).or_default();
            *number = entry.number.max(*number);
        }
        // An incomplete copy has fewer entries than its largest number.
        let largest = numbers
            .values()
            .copied()
            .max()
            .unwrap_or_default()
            .max(numbers.len());
        numbers.get(design).copied().unwrap_or(largest + 1)
    }

    /// Whether a fixture was used by a try, or to confirm a design that is not among `confirmed`.
    pub fn have_used(&self, transcript: &Digest, confirmed: &BTreeSet<Digest>) -> bool {
        let mut users = self
            .0
            .iter()
            .filter(|entry| entry.fixtures.contains(transcript));
        users.any(|entry| !entry.confirms || !confirmed.contains(&entry.design))
    }
}

impl Try {
    /// Adds it to the ledger of a baseline, unless it is already there.
    ///
    /// # Errors
    /// The file system's error, with the path.
    pub fn record(&self, baseline: &ResultsFolder) -> Result<(), FileError> {
        let name = Digest::of_json(self).short();
        let path = baseline.file(TRIES).join(format!("{name}.json"));
        if path.exists() {
            return Ok(());
        }
        let text = serde_json::to_string_pretty(self)
            .map_err(|e| FileError::new("write", &path, e.into()))?;
        files::write_whole(&path, text + "\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(method: Option<&str>, design: &str, number: usize) -> Try {
        let fixtures = [Digest::hash("f1")].into();
        Try {
            method: method.map(str::to_owned),
            design: Digest::hash(design),
            number,
            fixtures,
            confirms: false,
        }
    }

    fn numbers(tries: &Tries, designs: &[&str]) -> Vec<usize> {
        designs
            .iter()
            .map(|design| tries.number(Some("m"), &Digest::hash(design)))
            .collect()
    }

    #[test]
    fn a_design_keeps_its_number_and_the_next_one_follows_the_largest() {
        assert_eq!(numbers(&Tries::default(), &["a"]), [1]);
        let tries = Tries(
            [
                entry(Some("m"), "a", 1),
                entry(Some("m"), "b", 2),
                entry(Some("n"), "c", 3),
            ]
            .into(),
        );
        assert_eq!(numbers(&tries, &["a", "b", "c"]), [1, 2, 3]);
        // Two copies of one ledger, each with a try of its own, and with different numbers for one design.
        let both = Tries(
            tries
                .0
                .iter()
                .cloned()
                .chain([entry(Some("m"), "d", 2), entry(Some("m"), "b", 3)])
                .collect(),
        );
        assert_eq!(numbers(&both, &["a", "b", "d", "e"]), [1, 3, 2, 4]);
        let partial = Tries([entry(Some("m"), "x", 7)].into());
        assert_eq!(
            (
                numbers(&partial, &["y"]),
                partial.number(None, &Digest::hash("y"))
            ),
            (vec![8], 1)
        );
    }

    #[test]
    fn entries_are_added_once_and_read_by_union_and_a_broken_one_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let baseline = ResultsFolder::at(folder.path());
        for entry in [
            entry(Some("m"), "a", 1),
            entry(Some("m"), "a", 1),
            entry(None, "a", 1),
        ] {
            entry.record(&baseline).unwrap();
        }
        let read = Tries::read(&baseline).unwrap();
        assert_eq!(read.0.len(), 2);
        let own = [Digest::hash("a")].into();
        assert!(
            read.have_used(&Digest::hash("f1"), &own) && !read.have_used(&Digest::hash("f2"), &own)
        );
        files::write_whole(&baseline.file(TRIES).join("z.json"), "<<<<<<< ours").unwrap();
        assert!(Tries::read(&baseline).is_err());
    }

    #[test]
    fn a_confirmation_is_no_try_and_may_be_repeated_for_its_own_design_alone() {
        let tries = Tries(
            [Try {
                confirms: true,
                ..entry(Some("m"), "a", 1)
            }]
            .into(),
        );
        assert_eq!(numbers(&tries, &["b"]), [1]);
        let designs = |design: &str| BTreeSet::from([Digest::hash(design)]);
        let fixture = Digest::hash("f1");
        assert!(
            !tries.have_used(&fixture, &designs("a")) && tries.have_used(&fixture, &designs("b"))
        );
    }
}
