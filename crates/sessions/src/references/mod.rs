//! References: the exact details in a session that an agent may need again, such as paths, identifiers and versions.
//!
//! They are found by patterns. Another choice of patterns moves the recall of a point by .05 to .12, so the patterns
//! have a version, [`PATTERNS`], which belongs into the digest of every figure that is made from references.
//!
//! Invariants: references of one text do not overlap (the longest match counts), each is a piece of the text as
//! written, and [`ReferenceIndex`] finds each in the text that it came from. Deliberately absent: what a reference is
//! good for; contexts, methods and log formats.

mod commands;
mod index;
mod noise;
mod quotes;
mod reference;
mod scan;
mod session;
mod shape;
mod target;

pub use index::ReferenceIndex;
pub use reference::{PATTERNS, Reference, ReferenceKind};
pub use scan::{find_references, references_in};
pub use session::{SessionNoise, command_of, readable_text, used_in};
pub use target::{Lines, Target, targets};
