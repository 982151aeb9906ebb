//! What a run knows of a remote: the footers of its packs, read once when the run starts. Packs that are pushed later
//! are ignored, so that the same local cache and the same list give the same results.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use futures::StreamExt;

use super::backend::{ListedObject, Remote, RemoteError};
use super::index_objects::{self, CONCURRENT_REQUESTS};
use super::keys::{PublicKey, TrustedWriter};
use super::pack::{
    self, Footer, FooterHead, ItemKind, PackEnd, PackFault, PackItem, PartOrigin, SignedFooter,
    TAIL,
};
use super::removals::{ListObject, trusted_lists};
use super::signed::{RemoteId, Trust};
use crate::digest::{Digest, DigestBuilder};

/// A pack that is used.
#[derive(Debug)]
pub(super) struct Pack {
    pub(super) name: Digest,
    /// `None` if it is unsigned.
    pub(super) writer: Option<TrustedWriter>,
    pub(super) part: Option<PartOrigin>,
    pub(super) created: u64,
    /// Its entries that are read from it, and not from another pack.
    pub(super) entries: Vec<Digest>,
}

impl Pack {
    /// Who signed it.
    pub(super) fn writer_name(&self) -> &str {
        self.writer
            .as_ref()
            .map_or("unsigned", |writer| &writer.name)
    }

    /// The part of an assignment that made it.
    fn part_of(&self, assignment: Option<Digest>) -> Option<u32> {
        self.part
            .filter(|part| Some(part.assignment) == assignment)
            .map(|part| part.index)
    }
}

/// Where an item is.
#[derive(Clone, Copy, Debug)]
pub(super) struct ItemLocation {
    /// The position of its pack in `RemoteIndex::packs`.
    pub(super) pack: usize,
    pub(super) item: PackItem,
}

/// The packs that are used, and where each entry and text is.
#[derive(Debug, Default)]
pub(super) struct RemoteIndex {
    /// In the order in which they are used; see `add_all`.
    pub(super) packs: Vec<Pack>,
    pub(super) entries: HashMap<Digest, ItemLocation>,
    pub(super) texts: HashMap<Digest, ItemLocation>,
    /// Footers outside of all index objects.
    pub(super) loose: BTreeMap<Digest, SignedFooter>,
    pub(super) unused: UnusedPacks,
    pub(super) bytes: u64,
    /// Entries and texts that were signed with the own key, whether or not it is trusted.
    pub(super) own: HashSet<Digest>,
    /// Entries that two parts of the assignment made, each its own.
    pub(super) made_twice: u64,
}

/// Packs of the remote that are not used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct UnusedPacks {
    /// The number of packs by each writer who is not trusted.
    pub(super) untrusted: BTreeMap<PublicKey, u64>,
    /// Unsigned, where unsigned packs are not used.
    pub(super) unsigned: u64,
    /// The names of damaged packs, with what is wrong.
    pub(super) damaged: Vec<(Digest, String)>,
    /// Written by newer versions.
    pub(super) newer: u64,
    /// Signed for another remote.
    pub(super) foreign: u64,
    /// Deleted by a prune, and put back.
    pub(super) removed: u64,
    /// Lists of removed packs that are damaged or of writers that are not trusted.
    pub(super) lists: u64,
}

impl RemoteIndex {
    /// Reads the footers of all packs, with few requests. Packs made by parts of `assignment` come first.
    pub(super) async fn load(
        remote: &dyn Remote,
        remote_id: RemoteId,
        trust: &Trust,
        assignment: Option<Digest>,
    ) -> Result<RemoteIndex, RemoteError> {
        let mut index = RemoteIndex::default();
        let (mut footers, lists) = read_footers(remote).await?;
        let removed = trusted_lists(&lists, remote_id, trust);
        index.unused.lists = (lists.len() - removed.len()) as u64;
        let before = footers.len();
        footers.retain(|pack| !removed.iter().any(|list| list.packs.contains(&pack.name)));
        index.unused.removed = (before - footers.len()) as u64;
        index.bytes = footers.iter().map(|pack| pack.object.bytes).sum();
        index.loose = footers
            .iter()
            .filter(|pack| !pack.is_indexed)
            .filter_map(FoundPack::named)
            .collect();
        let mut used = Vec::new();
        for FoundPack { name, footer, .. } in footers {
            match footer.and_then(|signed| index.admit(name, &signed, remote_id, trust)) {
                Ok(admitted) => used.extend(admitted),
                Err(PackFault::Newer) => index.unused.newer += 1,
                Err(PackFault::Damaged(what)) => index.unused.damaged.push((name, what.to_owned())),
            }
        }
        index.unused.damaged.sort_unstable();
        index.add_all(used, assignment);
        Ok(index)
    }

    /// Adds packs and their items. If several packs have a key, the one of the lowest part of the assignment is used,
    /// then the oldest, then the first by name.
    fn add_all(&mut self, mut used: Vec<(Pack, Vec<PackItem>)>, assignment: Option<Digest>) {
        used.sort_unstable_by_key(|(pack, _)| {
            (
                pack.part_of(assignment).unwrap_or(u32::MAX),
                pack.created,
                pack.name,
            )
        });
        let mut made_twice = HashSet::new();
        for (pack, items) in used {
            let (place, part) = (self.packs.len(), pack.part_of(assignment));
            let mut entries = Vec::new();
            for item in items {
                let at = ItemLocation { pack: place, item };
                match (item.kind, self.entries.get(&item.key)) {
                    (ItemKind::Entry, Some(first)) => {
                        let other = self
                            .packs
                            .get(first.pack)
                            .and_then(|pack| pack.part_of(assignment));
                        let is_another =
                            part.is_some() && other.is_some_and(|other| Some(other) != part);
                        if is_another && first.item.digest != item.digest {
                            made_twice.insert(item.key);
                        }
                    }
                    (ItemKind::Entry, None) => {
                        self.entries.insert(item.key, at);
                        entries.push(item.key);
                    }
                    (ItemKind::Text, _) => {
                        self.texts.entry(item.key).or_insert(at);
                    }
                }
            }
            self.packs.push(Pack { entries, ..pack });
        }
        self.made_twice = made_twice.len() as u64;
    }

    /// Returns the pack if it is used, else counts it. Its items are decoded after the signature was verified.
    fn admit(
        &mut self,
        name: Digest,
        signed: &SignedFooter,
        remote_id: RemoteId,
        trust: &Trust,
    ) -> Result<Option<(Pack, Vec<PackItem>)>, PackFault> {
        if signed.name() != name {
            return Err(PackFault::Damaged("its footer is not that of its name"));
        }
        let FooterHead {
            remote_id: signed_for,
            writer: key,
        } = signed.head()?;
        let writer = key.and_then(|key| trust.writer(&key)).cloned();
        let is_used = writer.is_some() || (key.is_none() && trust.unsigned);
        let is_own = key.is_some() && key == trust.own;
        if let Some(key) = key.filter(|key| (is_used || is_own) && !signed.is_signed_by(key)) {
            let name_of = writer.map_or_else(|| key.to_string(), |writer| writer.name);
            self.unused
                .damaged
                .push((name, format!("its signature is not that of {name_of}")));
            return Ok(None);
        }
        if (is_used || is_own) && signed_for != remote_id {
            self.unused.foreign += 1;
            return Ok(None);
        }
        if !is_used {
            match key {
                Some(key) => *self.unused.untrusted.entry(key).or_default() += 1,
                None => self.unused.unsigned += 1,
            }
        }
        if !is_used && !is_own {
            return Ok(None);
        }
        let Footer {
            created,
            items,
            part,
            ..
        } = signed.decode()?;
        if is_own || key.is_none() {
            self.own.extend(items.iter().map(|item| item.key));
        }
        let pack = Pack {
            name,
            writer,
            part,
            created,
            entries: Vec::new(),
        };
        Ok(is_used.then_some((pack, items)))
    }

    /// Identifies the packs that are used.
    pub(super) fn digest(&self) -> Digest {
        let mut digest = DigestBuilder::new("compeval packs v1");
        let names: BTreeSet<Digest> = self.packs.iter().map(|pack| pack.name).collect();
        for name in names {
            digest.field("pack", name.0);
        }
        digest.finish()
    }

    /// Whether the remote has an entry or a text already.
    pub(super) fn has(&self, key: &Digest) -> bool {
        self.entries.contains_key(key) || self.texts.contains_key(key) || self.own.contains(key)
    }
}

/// Groups items that are close together, so that each group is read with one request: a gap costs less than a request.
pub(super) fn group_adjacent(mut items: Vec<ItemLocation>) -> Vec<Vec<ItemLocation>> {
    const GAP: u64 = 64 << 10;
    items.sort_unstable_by_key(|at| at.item.offset);
    items.dedup_by_key(|at| at.item.offset);
    let mut groups: Vec<Vec<ItemLocation>> = Vec::new();
    for at in items {
        match groups.last_mut() {
            Some(group)
                if group
                    .last()
                    .is_some_and(|last| at.item.offset.saturating_sub(last.item.end()) <= GAP) =>
            {
                group.push(at);
            }
            _ => groups.push(vec![at]),
        }
    }
    groups
}

/// A pack of a remote, whoever wrote it.
pub(super) struct FoundPack {
    pub(super) name: Digest,
    pub(super) object: ListedObject,
    pub(super) footer: Result<SignedFooter, PackFault>,
    is_indexed: bool,
}

impl FoundPack {
    /// Its name and footer, if the footer matches the name.
    fn named(&self) -> Option<(Digest, SignedFooter)> {
        let signed = self
            .footer
            .as_ref()
            .ok()
            .filter(|signed| signed.name() == self.name)?;
        Some((self.name, signed.clone()))
    }
}

/// The footers of all packs, read with few requests, and the lists of removed packs.
pub(super) async fn read_footers(
    remote: &dyn Remote,
) -> Result<(Vec<FoundPack>, Vec<ListObject>), RemoteError> {
    let (listed, (mut indexed, lists)) =
        futures::try_join!(remote.list(pack::FOLDER), index_objects::read(remote))?;
    let (mut found, mut missing) = (Vec::new(), Vec::new());
    for object in listed {
        let Some(name) = object
            .name
            .rsplit('/')
            .next()
            .and_then(|name| name.parse::<Digest>().ok())
        else {
            continue;
        };
        match indexed.remove(&name) {
            Some(signed) => found.push(FoundPack {
                name,
                object,
                footer: Ok(signed),
                is_indexed: true,
            }),
            None => missing.push((name, object)),
        }
    }
    let requests = missing
        .into_iter()
        .map(|(name, object)| async move { (name, read_footer(remote, &object).await, object) });
    let mut replies = futures::stream::iter(requests).buffer_unordered(CONCURRENT_REQUESTS);
    while let Some((name, reply, object)) = replies.next().await {
        match reply {
            Ok(footer) => found.push(FoundPack {
                name,
                object,
                footer,
                is_indexed: false,
            }),
            // pruned in the meantime
            Err(RemoteError::NotFound(_)) => {}
            Err(RemoteError::Refused { what, .. }) => {
                let footer = Err(PackFault::Damaged(what));
                found.push(FoundPack {
                    name,
                    object,
                    footer,
                    is_indexed: false,
                });
            }
            Err(error) => return Err(error),
        }
    }
    Ok((found, lists))
}

/// The footer of a pack, or what is wrong with it.
pub(super) async fn read_footer(
    remote: &dyn Remote,
    object: &ListedObject,
) -> Result<Result<SignedFooter, PackFault>, RemoteError> {
    let mut length = TAIL.min(object.bytes);
    loop {
        let tail = remote
            .read(&object.name, Some(object.bytes - length..object.bytes))
            .await?;
        match SignedFooter::from_tail(&tail) {
            Ok(PackEnd::Footer(signed)) => return Ok(Ok(signed)),
            Ok(PackEnd::Needs(more)) if more > length && more <= object.bytes => length = more,
            Ok(PackEnd::Needs(_)) => {
                return Ok(Err(PackFault::Damaged("it is cut off")));
            }
            Err(fault) => return Ok(Err(fault)),
        }
    }
}
