//! What is said of a remote: counts of what it contains, of what was pulled and uploaded, and warnings.

use std::collections::BTreeMap;

use super::index::{RemoteIndex, UnusedPacks};
use super::keys::PublicKey;
use super::signed::Trust;
use super::upload::PushCounts;
use crate::cache::now_ms;
use crate::digest::Digest;
use base::say;

/// What was pulled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PullCounts {
    /// Entries.
    pub entries: u64,
    /// Source texts.
    pub texts: u64,
    /// Packed.
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
    /// Of all packs, those of others included.
    pub bytes: u64,
    /// Entries and packs that are used, by writer.
    pub writers: BTreeMap<String, (u64, u64)>,
    /// Entries of writers that are not trusted, by their keys.
    pub untrusted: BTreeMap<PublicKey, u64>,
    /// Signed by nobody, where that does not count.
    pub unsigned: u64,
    /// Packs that differ from what was written.
    pub damaged: u64,
    /// Packs of newer versions.
    pub newer: u64,
    /// Packs of other remotes.
    pub foreign: u64,
    /// Packs that a prune deleted and that are there again.
    pub removed: u64,
    /// Entries of which two parts of the assignment made one each.
    pub made_twice: u64,
    /// What was pulled.
    pub pulled: PullCounts,
    /// What was uploaded.
    pub pushed: PushCounts,
}

/// A clock that is ahead by more than this is reported.
const CLOCK_TOLERANCE_MS: u64 = 3_600_000;

pub(super) fn unused_warnings(unused: &UnusedPacks, url: &str) -> Vec<String> {
    let UnusedPacks { untrusted, unsigned, damaged, newer, foreign, removed, lists } = unused;
    let mut warnings = Vec::new();
    if !untrusted.is_empty() {
        let keys: Vec<String> = untrusted.iter().map(|(key, count)| format!("{key} ({count})")).collect();
        let all = count_packs(untrusted.values().sum());
        let text =
            format!("{all} in {url} are of writers that are not in `trust` and are not used: {}", keys.join(", "));
        warnings.push(text);
    }
    if *unsigned > 0 {
        let all = count_packs(*unsigned);
        warnings.push(format!("{all} in {url} nobody signed; they are used where --remote names that folder"));
    }
    for (name, what) in damaged {
        warnings.push(format!("the pack {name} in {url} is damaged and is not used: {what}"));
    }
    if *newer > 0 {
        let all = count_packs(*newer);
        warnings.push(format!("{all} in {url} are of a newer version of compeval and are not used; update compeval"));
    }
    if *foreign > 0 {
        let all = count_packs(*foreign);
        warnings.push(format!("{all} in {url} were signed for another remote and copied here; they are not used"));
    }
    if *removed > 0 {
        let all = count_packs(*removed);
        let text = format!("{all} in {url} were deleted by a prune and are there again; they are not used");
        warnings.push(text);
    }
    if *lists > 0 {
        let text = format!("{lists} lists of removed packs in {url} are damaged or of writers that are not in `trust`");
        warnings.push(text);
    }
    warnings
}

fn count_packs(count: u64) -> String {
    if count == 1 { "1 pack".to_owned() } else { format!("{count} packs") }
}

pub(super) fn clock_warning(index: &RemoteIndex) -> Option<String> {
    let newest = index.packs.iter().max_by_key(|pack| pack.created)?;
    let ahead = newest.created.saturating_sub(now_ms());
    let name = newest.writer.as_ref().map_or("a machine", |writer| &writer.name);
    (ahead > CLOCK_TOLERANCE_MS).then(|| {
        say!(
            "the clock of {name} or of this machine is wrong: a pack was written {} min from now",
            "{name} 或本机的时钟有误：一个包写于 {} 分钟之后",
            ahead / 60_000
        )
    })
}

/// The own key is not trusted.
pub(super) fn own_key_warning(trust: &Trust) -> Option<String> {
    let own = trust.own.filter(|own| trust.writer(own).is_none())?;
    Some(say!(
        "the key that signs what is uploaded is not in `trust`, so runs of this pipeline will not use it; add \"NAME {own}\"",
        "签署上传内容的密钥不在 `trust` 中，因此本流程的运行不会采用；请加入 \"NAME {own}\""
    ))
}

/// Records of parts do not count.
pub(super) fn records_warning(refused: u64, url: &str) -> Option<String> {
    (refused > 0)
        .then(|| format!("{refused} records of parts in {url} are damaged or of writers that are not in `trust`"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remote::index::Pack;
    use crate::remote::{SigningKey, TrustedWriter};

    #[test]
    fn a_clock_that_is_an_hour_ahead_is_reported() {
        let writer = TrustedWriter { name: "ci".into(), key: SigningKey::generate().unwrap().0.public() };
        let warning = |ahead: u64| {
            let created = now_ms() + ahead;
            let pack = Pack {
                name: Digest::hash("a"),
                writer: Some(writer.clone()),
                part: None,
                created,
                entries: Vec::new(),
            };
            clock_warning(&RemoteIndex { packs: vec![pack], ..RemoteIndex::default() })
        };
        assert!(warning(3_000_000).is_none());
        assert!(
            warning(7_200_000).is_some_and(|text| text.contains("the clock of ci") && text.contains("min from now"))
        );
    }
}
