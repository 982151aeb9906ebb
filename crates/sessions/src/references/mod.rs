//! References: the exact details in a session that an agent may need again, such as paths, identifiers and versions.
//!
//! They are found by patterns. Another choice of patterns moves the recall of a point by .05 to .12, so the patterns
//! have a version, [`PATTERNS`], which belongs in the digest of every figure that is made from references.
//!
//! Invariants: references of one text do not overlap (the longest match counts), each is a piece of the text as
//! written, and [`ReferenceIndex`] finds each in the text that it came from. Nothing here knows what references are
//! used for, or contexts, methods and log formats.

mod index;
mod noise;
mod scan;
mod session;
mod shape;
mod target;

pub use index::ReferenceIndex;
pub(crate) use noise::is_error_line;
pub use scan::{find_references, references_in};
pub use session::{SessionNoise, readable_text, used_in};
pub use target::{FileLines, Lines, Target, targets};

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// The version of the patterns. Raise it with every change of what is found.
pub const PATTERNS: u32 = 2;

/// What kind of detail a reference is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReferenceKind {
    /// A path with a folder.
    Path,
    /// A file name without a folder.
    FileName,
    /// A name in code: snake, camel or Pascal case; kebab case in code marks.
    Identifier,
    /// A long command line option.
    Flag,
    /// A port, an issue number, a value after `=` or `:`, or a number in an error line.
    Number,
    /// A version.
    Version,
    /// 7 hexadecimal digits or more.
    Hash,
    /// A URL.
    Url,
    /// A program with its subcommand.
    Command,
    /// An error line in code marks or quotation marks.
    ErrorLine,
    /// Chinese or Japanese text in code marks or quotation marks.
    Quoted,
}

/// An exact detail of a session.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Reference {
    /// Its kind.
    pub kind: ReferenceKind,
    /// As it is written.
    pub text: String,
}

impl Reference {
    /// The key that all spellings of a reference share: the text in lower case, a path without `./`.
    pub fn key(&self) -> String {
        let text = match self.kind {
            ReferenceKind::Path => Cow::from(self.text.strip_prefix("./").unwrap_or(&self.text)),
            _ => Cow::from(&self.text),
        };
        text.to_lowercase()
    }
}
