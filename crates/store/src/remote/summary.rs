//! The summary of a remote: counts of what it contains, of what was pulled and uploaded, and warnings.

use std::collections::BTreeMap;

use super::backend::RemoteError;
use super::index::{RemoteIndex, UnusedPacks};
use super::keys::PublicKey;
use super::signed::Trust;
use super::upload::PushCounts;
use crate::cache::{CacheError, now_ms};
use crate::digest::Digest;

/// What was pulled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PullCounts {
    /// Entries.
    pub entries: u64,
    /// Source texts.
    pub texts: u64,
    /// Their packed size.
    pub bytes: u64,
}

/// What a remote has and what was done with it.
#[derive(Clone, Debug)]
pub struct SharedSummary {
    /// The remote.
    pub url: String,
    /// Identifies the list of packs that are used.
    pub list: Digest,
    /// Packs that it has.
    pub packs: u64,
    /// Entries in them.
    pub entries: u64,
    /// Source texts in them.
    pub texts: u64,
    /// The size of all packs, unused ones included.
    pub bytes: u64,
    /// Entries and packs that are used, by writer.
    pub writers: BTreeMap<String, (u64, u64)>,
    /// Packs of writers that are not trusted, by their keys.
    pub untrusted: BTreeMap<PublicKey, u64>,
    /// Unsigned packs that are not used.
    pub unsigned: u64,
    /// Packs that differ from what was written.
    pub damaged: u64,
    /// Packs of newer versions.
    pub newer: u64,
    /// Packs of other remotes.
    pub foreign: u64,
    /// Packs that a prune deleted and that were put back.
    pub removed: u64,
    /// Entries that two parts of the assignment made, each its own.
    pub made_twice: u64,
    /// What was pulled.
    pub pulled: PullCounts,
    /// What was uploaded.
    pub pushed: PushCounts,
}

impl SharedSummary {
    /// What a remote has, before anything is pulled or uploaded.
    pub(super) fn new(url: &str, index: &RemoteIndex) -> SharedSummary {
        let mut writers: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        for pack in &index.packs {
            writers.entry(pack.writer_name().to_owned()).or_default().1 += 1;
        }
        for pack in index
            .entries
            .values()
            .filter_map(|at| index.packs.get(at.pack))
        {
            writers.entry(pack.writer_name().to_owned()).or_default().0 += 1;
        }
        let UnusedPacks {
            untrusted,
            unsigned,
            damaged,
            newer,
            foreign,
            removed,
            lists: _,
        } = &index.unused;
        SharedSummary {
            url: url.to_owned(),
            list: index.digest(),
            packs: index.packs.len() as u64,
            entries: index.entries.len() as u64,
            texts: index.texts.len() as u64,
            bytes: index.bytes,
            writers,
            untrusted: untrusted.clone(),
            unsigned: *unsigned,
            damaged: damaged.len() as u64,
            newer: *newer,
            foreign: *foreign,
            removed: *removed,
            made_twice: index.made_twice,
            pulled: PullCounts::default(),
            pushed: PushCounts::default(),
        }
    }
}

/// A clock that is ahead by more than this is reported.
const CLOCK_TOLERANCE_MS: u64 = 3_600_000;

pub(super) fn unused_warnings(unused: &UnusedPacks, url: &str) -> Vec<String> {
    let UnusedPacks {
        untrusted,
        unsigned,
        damaged,
        newer,
        foreign,
        removed,
        lists,
    } = unused;
    let mut warnings = Vec::from_iter(untrusted_warning(untrusted, url));
    warnings.extend(some_packs(*unsigned).map(|packs| {
        format!("{packs} in {url} nobody signed; they are used where --remote names that folder")
    }));
    warnings.extend(
        damaged
            .iter()
            .map(|(name, what)| damaged_pack(name, url, what)),
    );
    warnings.extend(some_packs(*newer).map(|packs| {
        format!(
            "{packs} in {url} are of a newer version of compeval and are not used; update compeval"
        )
    }));
    warnings.extend(some_packs(*foreign).map(|packs| {
        format!(
            "{packs} in {url} were signed for another remote and copied here; they are not used"
        )
    }));
    warnings.extend(some_packs(*removed).map(|packs| {
        format!("{packs} in {url} were deleted by a prune and are there again; they are not used")
    }));
    warnings.extend((*lists > 0).then(|| {
        format!("{lists} lists of removed packs in {url} are damaged or of writers that are not in `trust`")
    }));
    warnings
}

/// Names the writers that are not trusted, with the number of their packs.
fn untrusted_warning(untrusted: &BTreeMap<PublicKey, u64>, url: &str) -> Option<String> {
    let keys: Vec<String> = untrusted
        .iter()
        .map(|(key, count)| format!("{key} ({count})"))
        .collect();
    (!keys.is_empty()).then(|| {
        let packs = count_packs(untrusted.values().sum());
        format!(
            "{packs} in {url} are of writers that are not in `trust` and are not used: {}",
            keys.join(", ")
        )
    })
}

/// A pack that differs from what was written.
pub(super) fn damaged_pack(name: &Digest, url: &str, what: &str) -> String {
    format!("the pack {name} in {url} is damaged and is not used: {what}")
}

/// An entry of a pack that is not what the footer says.
pub(super) fn differing_entry(file: &str) -> CacheError {
    let what = "an entry differs from what its footer says";
    CacheError::BadImport {
        path: file.into(),
        what: what.to_owned(),
    }
}

/// An upload that failed.
pub(super) fn not_uploaded(count: usize, error: &RemoteError) -> String {
    format!("{count} entries were not uploaded: {error}; a later run uploads them")
}

fn count_packs(count: u64) -> String {
    if count == 1 {
        "1 pack".to_owned()
    } else {
        format!("{count} packs")
    }
}

fn some_packs(count: u64) -> Option<String> {
    (count > 0).then(|| count_packs(count))
}

pub(super) fn clock_warning(index: &RemoteIndex) -> Option<String> {
    let newest = index.packs.iter().max_by_key(|pack| pack.created)?;
    let ahead = newest.created.saturating_sub(now_ms());
    let name = newest
        .writer
        .as_ref()
        .map_or("a machine", |writer| &writer.name);
    (ahead > CLOCK_TOLERANCE_MS).then(|| {
        format!(
            "the clock of {name} or of this machine is wrong: a pack was written {} min from now",
            ahead / 60_000
        )
    })
}

/// Warns if the own key is not trusted.
pub(super) fn own_key_warning(trust: &Trust) -> Option<String> {
    let own = trust.own.filter(|own| trust.writer(own).is_none())?;
    Some(format!(
        "the key that signs what is uploaded is not in `trust`, so runs of this pipeline will not use it; add \"NAME {own}\""
    ))
}

/// Warns of records of parts that are not used.
pub(super) fn records_warning(refused: u64, url: &str) -> Option<String> {
    (refused > 0).then(|| {
        format!(
            "{refused} records of parts in {url} are damaged or of writers that are not in `trust`"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remote::index::Pack;
    use crate::remote::{SigningKey, TrustedWriter};

    #[test]
    fn a_clock_that_is_an_hour_ahead_is_reported() {
        let writer = TrustedWriter {
            name: "ci".into(),
            key: SigningKey::generate().unwrap().0.public(),
        };
        let warning = |ahead: u64| {
            let created = now_ms() + ahead;
            let pack = Pack {
                name: Digest::hash("a"),
                writer: Some(writer.clone()),
                part: None,
                created,
                entries: Vec::new(),
            };
            clock_warning(&RemoteIndex {
                packs: vec![pack],
                ..RemoteIndex::default()
            })
        };
        assert!(warning(3_000_000).is_none());
        assert!(
            warning(7_200_000).is_some_and(
                |text| text.contains("the clock of ci") && text.contains("min from now")
            )
        );
    }
}
