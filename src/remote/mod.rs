//! A cache that a team and its CI share: signed, immutable segments of entries in a folder or bucket.
//!
//! - `Remote` is a place for objects (list, read a range, write, delete): a `folder`, or a bucket or web server
//!   (`object_store`, in builds with the feature `object-stores`).
//! - A segment (`segment`) holds packed entries and a footer with the place and the digest of each. The writer's signature
//!   covers the footer, so one entry can be read and verified by itself. The name of a segment is the digest of footer
//!   and signature: nothing is ever overwritten.
//! - `RemoteIndex` is what a run knows of a remote: the footers of all segments by trusted writers, fixed when the run
//!   starts. What it does not use (other writers, damage, newer versions) it counts and names.
//! - `SharedCache` connects a remote with a local cache: it pulls single entries, and uploads those that were made here.
//! - `RemoteEntries` is a remote as a cache that is only read, for a plan.
//!
//! Invariants: nothing is used that a trusted writer did not sign for this remote; entries that were pulled are never
//! signed again by another key; the local output of a key wins; a remote that fails costs one warning and no run.
//! The signing key is in the environment alone.

mod error;
mod keys;
mod url;
mod settings;
mod backend;
mod folder;
#[cfg(feature = "object-stores")]
mod object_store;
mod segment;
mod rollup;
mod pruned;
mod listing;
mod namespace;
mod index;
mod request_slots;
mod upload;
mod prune;
mod warnings;
mod summary;
mod shared;
mod lookup;
#[cfg(all(test, unix))]
mod tests;

pub use backend::{ListedObject, Remote, WriteOutcome};
pub use error::RemoteError;
pub use keys::{KeyError, PublicKey, SigningKey, TrustedWriter};
pub use lookup::RemoteEntries;
pub use prune::RemotePruneCounts;
pub use settings::{DeclaredRemote, GivenRemote, RemoteMode, RemoteSettings, SettingsError};
pub use shared::SharedCache;
pub use summary::{PullCounts, SharedSummary};
pub use upload::PushCounts;
pub use url::{BucketUrl, RemoteUrl, StoreKind, UrlError};
