//! A cache that a team, its CI and the parts of a run share: a folder or a bucket of packs.
//!
//! - `Remote` is a place for objects (list, read a range, write, delete): a `folder`, or a bucket or web server
//!   (`object_store`, in builds with the feature `object-stores`).
//! - A pushed `pack` holds entries that were made in one place, and a footer with the place and the digest of each. The
//!   writer's signature covers the footer, so one entry can be read and verified by itself. The name of a pack is the
//!   digest of footer and signature: nothing is ever overwritten. Footers of many packs are gathered in `index_objects`.
//! - `RemoteIndex` is what a run knows of a remote: the footers of all packs by trusted writers, fixed when the run
//!   starts. What it does not use (other writers, damage, newer versions) it counts and names.
//! - `SharedCache` connects a remote with a local cache: it pulls single entries, and uploads those that were made here.
//! - `RemoteEntries` is a remote as a read-only cache, for a plan.
//! - `part_records` record what the parts of a run did.
//!
//! Invariants: nothing is used that a trusted writer did not sign for this remote, except unsigned packs in a folder
//! that the user named on the command line; entries that were pulled are never signed again by another key; the local
//! output of a key wins; a remote that fails causes one warning and ends no run. The signing key is only in the
//! environment.

mod backend;
mod folder;
mod index;
mod index_objects;
mod keys;
mod lookup;
mod marker;
#[cfg(feature = "object-stores")]
mod object_store;
mod pack;
mod part_records;
mod prune;
mod removals;
mod request_slots;
mod settings;
mod shared;
mod signed;
mod summary;
#[cfg(all(test, unix))]
mod tests;
mod upload;
mod url;

pub use backend::{ListedObject, Remote, RemoteError, WriteOutcome};
pub use keys::{KeyError, PublicKey, SigningKey, TrustedWriter};
pub use lookup::RemoteEntries;
pub use pack::PartOrigin;
pub use part_records::{FoundRecord, PartName};
pub use prune::RemotePruneCounts;
pub use settings::{DeclaredRemote, GivenRemote, RemoteMode, RemoteSettings, SettingsError};
pub use shared::SharedCache;
pub use summary::{PullCounts, SharedSummary};
pub use upload::PushCounts;
pub use url::{BucketUrl, RemoteUrl, StoreKind, UrlError};
