//! A store for outputs that cost money, keyed by the hash of everything that they were made from.
//!
//! - [`cache`] is the store on this machine: append-only packs, with a sled tree that can be rebuilt from them. An
//!   entry is on disk when its put returns. Damaged entries are reported and never returned.
//! - [`remote`] is a folder or a bucket of objects that a team, its CI and the parts of a run share.
//! - [`Digest`] and [`DigestBuilder`] make keys.
//!
//! ```
//! use compeval_store::cache::{EntryHeader, EntrySummary, Lookup, Store};
//! use compeval_store::{ActionKey, Digest, DigestBuilder};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! let key = ActionKey(DigestBuilder::new("translation v1").field("text", "Guten Tag").finish());
//! let summary = EntrySummary {
//!     created: compeval_store::cache::now_ms(),
//!     place: Digest::hash("greeting"),
//!     ..EntrySummary::default()
//! };
//! let header = EntryHeader {
//!     summary,
//!     ..EntryHeader::default()
//! };
//! let store = Store::open(folder.path(), "translate", |_| None)?;
//! # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
//! store.put_reply(key, &header, "Good day".into()).await?;
//! # Ok::<(), compeval_store::cache::CacheError>(())
//! # })?;
//! let record = store.find(&key).ok_or("it was just stored")?;
//! assert_eq!(store.body(&record)?, "Good day");
//! # Ok(())
//! # }
//! ```
//!
//! This crate knows nothing of stages, prompts or prices, does not read what it stores, and asks no model.

pub mod cache;
mod digest;
pub mod remote;

pub use digest::{ActionKey, Digest, DigestBuilder};
