//! What a run knows of a remote: the footers of its segments, read once when the run starts. Later segments are not
//! looked at, so that the same local cache and the same list give the same results.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use futures::StreamExt;

use super::backend::{ListedObject, Remote};
use super::error::RemoteError;
use super::keys::{PublicKey, TrustedWriter};
use super::pruned::{self, ListObject, PrunedSegments};
use super::rollup::{self, SIDE_BY_SIDE};
use super::segment::{
    self, Footer, FooterHead, Namespace, SegmentEnd, SegmentFault, SegmentItem, SegmentItemKind, SignedFooter, TAIL,
};
use crate::action::{Digest, DigestBuilder};

/// A segment that is used.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) name: Digest,
    pub(super) writer: TrustedWriter,
    pub(super) created: u64,
    /// Those of its entries that are read from it.
    pub(super) entries: Vec<Digest>,
}

/// Where an item is.
#[derive(Clone, Copy, Debug)]
pub(super) struct ItemLocation {
    /// Among the segments of the index.
    pub(super) segment: usize,
    pub(super) item: SegmentItem,
}

#[derive(Debug, Default)]
pub(super) struct RemoteIndex {
    /// The oldest first; those of one time by name.
    pub(super) segments: Vec<Segment>,
    /// Of several segments with one key the oldest has it: a later one changes nothing that was used before.
    pub(super) entries: HashMap<Digest, ItemLocation>,
    pub(super) texts: HashMap<Digest, ItemLocation>,
    /// Footers outside of all roll-ups.
    pub(super) loose: BTreeMap<Digest, SignedFooter>,
    pub(super) unused: UnusedSegments,
    pub(super) bytes: u64,
    /// Entries and texts that the own key signed, whether or not it is trusted.
    pub(super) own: HashSet<Digest>,
}

/// Segments that are there and not used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct UnusedSegments {
    /// Of writers that are not trusted, by their keys.
    pub(super) untrusted: BTreeMap<PublicKey, u64>,
    /// By name, with what is wrong.
    pub(super) damaged: Vec<(Digest, String)>,
    /// Written by newer versions.
    pub(super) newer: u64,
    /// Signed for another remote.
    pub(super) foreign: u64,
    /// Deleted by a prune, and there again.
    pub(super) pruned: u64,
    /// Lists of pruned segments that are damaged or of writers that are not trusted.
    pub(super) lists: u64,
}

impl RemoteIndex {
    /// Reads the footers of all segments, with few requests.
    pub(super) async fn load(
        remote: &dyn Remote,
        namespace: Namespace,
        (trust, own): (&[TrustedWriter], Option<PublicKey>),
    ) -> Result<RemoteIndex, RemoteError> {
        let mut index = RemoteIndex::default();
        let (mut footers, lists) = read_footers(remote).await?;
        let pruned = trusted_lists(&lists, namespace, (trust, own));
        index.unused.lists = (lists.len() - pruned.len()) as u64;
        let before = footers.len();
        footers.retain(|segment| !pruned.iter().any(|list| list.segments.contains(&segment.name)));
        index.unused.pruned = (before - footers.len()) as u64;
        index.bytes = footers.iter().map(|segment| segment.object.bytes).sum();
        index.loose = footers.iter().filter(|segment| !segment.is_rolled_up).filter_map(FoundSegment::named).collect();
        let found = footers.into_iter().map(|segment| (segment.name, segment.footer)).collect();
        index.add_all(found, namespace, trust, own);
        Ok(index)
    }

    fn add_all(
        &mut self,
        found: Vec<(Digest, Result<SignedFooter, SegmentFault>)>,
        namespace: Namespace,
        trust: &[TrustedWriter],
        own: Option<PublicKey>,
    ) {
        let mut used = Vec::new();
        for (name, signed) in found {
            match signed.and_then(|signed| self.admit(name, &signed, namespace, trust, own)) {
                Ok(admitted) => used.extend(admitted),
                Err(SegmentFault::Newer) => self.unused.newer += 1,
                Err(SegmentFault::Damaged(what)) => self.unused.damaged.push((name, what.to_owned())),
            }
        }
        self.unused.damaged.sort_unstable();
        used.sort_unstable_by_key(|(segment, _)| (segment.created, segment.name));
        for (segment, items) in used {
            let place = self.segments.len();
            let mut entries = Vec::new();
            for item in items {
                let at = ItemLocation { segment: place, item };
                match item.kind {
                    SegmentItemKind::Entry if self.entries.contains_key(&item.key) => {}
                    SegmentItemKind::Entry => {
                        self.entries.insert(item.key, at);
                        entries.push(item.key);
                    }
                    SegmentItemKind::Text => drop(self.texts.entry(item.key).or_insert(at)),
                }
            }
            self.segments.push(Segment { entries, ..segment });
        }
    }

    /// The segment, if it is used; else it is counted. Its items are read after the signature was verified.
    fn admit(
        &mut self,
        name: Digest,
        signed: &SignedFooter,
        namespace: Namespace,
        trust: &[TrustedWriter],
        own: Option<PublicKey>,
    ) -> Result<Option<(Segment, Vec<SegmentItem>)>, SegmentFault> {
        if signed.name() != name {
            return Err(SegmentFault::Damaged("its footer is not that of its name"));
        }
        let FooterHead { namespace: of, writer: key } = signed.head()?;
        let writer = trust.iter().find(|writer| writer.key == key).cloned();
        if writer.is_none() && own != Some(key) {
            *self.unused.untrusted.entry(key).or_default() += 1;
            return Ok(None);
        }
        if !signed.is_signed_by(&key) {
            let name_of = writer.map_or_else(|| key.to_string(), |writer| writer.name);
            self.unused.damaged.push((name, format!("its signature is not that of {name_of}")));
            return Ok(None);
        }
        if of != namespace {
            self.unused.foreign += 1;
            return Ok(None);
        }
        let Footer { created, items, .. } = signed.decode()?;
        if own == Some(key) {
            self.own.extend(items.iter().map(|item| item.key));
        }
        let Some(writer) = writer else {
            *self.unused.untrusted.entry(key).or_default() += 1;
            return Ok(None);
        };
        Ok(Some((Segment { name, writer, created, entries: Vec::new() }, items)))
    }

    /// Identifies the segments that are used.
    pub(super) fn digest(&self) -> Digest {
        let mut digest = DigestBuilder::new("compeval segments v1");
        let names: BTreeSet<Digest> = self.segments.iter().map(|segment| segment.name).collect();
        for name in names {
            digest.field("segment", name.0);
        }
        digest.finish()
    }

    /// Whether the remote has an entry or a text already.
    pub(super) fn has(&self, key: &Digest) -> bool {
        self.entries.contains_key(key) || self.texts.contains_key(key) || self.own.contains(key)
    }
}

/// A segment of a remote, whoever wrote it.
pub(super) struct FoundSegment {
    pub(super) name: Digest,
    pub(super) object: ListedObject,
    pub(super) footer: Result<SignedFooter, SegmentFault>,
    is_rolled_up: bool,
}

/// Those of the lists of pruned segments that a trusted writer signed, or the own key.
pub(super) fn trusted_lists(
    lists: &[ListObject],
    namespace: Namespace,
    (trust, own): (&[TrustedWriter], Option<PublicKey>),
) -> Vec<PrunedSegments> {
    let writers = trust.iter().map(|writer| writer.key).chain(own).collect();
    lists.iter().filter_map(|(object, bytes)| pruned::decode(object, bytes, namespace, &writers)).collect()
}

impl FoundSegment {
    /// Its footer by the name of the segment, if it is that.
    fn named(&self) -> Option<(Digest, SignedFooter)> {
        let signed = self.footer.as_ref().ok().filter(|signed| signed.name() == self.name)?;
        Some((self.name, signed.clone()))
    }
}

/// The footers of all segments, read with few requests, and the lists of pruned segments.
pub(super) async fn read_footers(remote: &dyn Remote) -> Result<(Vec<FoundSegment>, Vec<ListObject>), RemoteError> {
    let (listed, (mut rolled_up, lists)) = futures::try_join!(remote.list(segment::FOLDER), rollup::read(remote))?;
    let (mut found, mut missing) = (Vec::new(), Vec::new());
    for object in listed {
        let Some(name) = object.name.rsplit('/').next().and_then(|name| name.parse::<Digest>().ok()) else {
            continue;
        };
        match rolled_up.remove(&name) {
            Some(signed) => found.push(FoundSegment { name, object, footer: Ok(signed), is_rolled_up: true }),
            None => missing.push((name, object)),
        }
    }
    let read = |(name, object)| async move { (name, read_footer(remote, &object).await, object) };
    let mut replies = futures::stream::iter(missing).map(read).buffer_unordered(SIDE_BY_SIDE);
    while let Some((name, reply, object)) = replies.next().await {
        match reply {
            Ok(footer) => found.push(FoundSegment { name, object, footer, is_rolled_up: false }),
            // pruned in the meantime
            Err(RemoteError::NotFound(_)) => {}
            Err(RemoteError::Refused { what, .. }) => {
                let footer = Err(SegmentFault::Damaged(what));
                found.push(FoundSegment { name, object, footer, is_rolled_up: false });
            }
            Err(error) => return Err(error),
        }
    }
    Ok((found, lists))
}

/// The footer of a segment, or what is wrong with it.
pub(super) async fn read_footer(
    remote: &dyn Remote,
    object: &ListedObject,
) -> Result<Result<SignedFooter, SegmentFault>, RemoteError> {
    let mut length = TAIL.min(object.bytes);
    loop {
        let tail = remote.read(&object.name, Some(object.bytes - length..object.bytes)).await?;
        match SignedFooter::of_tail(&tail) {
            Ok(SegmentEnd::Footer(signed)) => return Ok(Ok(signed)),
            Ok(SegmentEnd::Needs(more)) if more > length && more <= object.bytes => length = more,
            Ok(SegmentEnd::Needs(_)) => return Ok(Err(SegmentFault::Damaged("it is cut off"))),
            Err(fault) => return Ok(Err(fault)),
        }
    }
}
