//! Parts of a matrix that run as processes of their own, on any engine that starts numbered tasks, and share results
//! through a remote.
//!
//! Every part computes the same assignment from the design only: parts do not communicate, and none looks at a cache,
//! which differs from machine to machine. Everything here is pure; `evaluation` reads the environment and the remote.
//!
//! Deliberately absent: starting machines, sending work, and waiting. Job arrays do that.
//!
//! Here are the number of a part and the argument that gives it.

mod assignment;
mod cost;
mod engine;

pub use assignment::{Assignment, PartChains, PartRecord};
pub use engine::{Engine, EngineError};

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The number of a part, from 1, and how many parts there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "PartFields")]
pub struct PartNumber {
    index: NonZeroU32,
    of: NonZeroU32,
}

/// A part as a file has it, before it is checked.
#[derive(Deserialize)]
struct PartFields {
    index: u32,
    of: u32,
}

impl TryFrom<PartFields> for PartNumber {
    type Error = PartFault;

    fn try_from(fields: PartFields) -> Result<PartNumber, PartFault> {
        PartNumber::new(fields.index, fields.of)
    }
}

/// Why a text is not the number of a part.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PartFault {
    #[error("expected I/N, as in 3/8, or `auto`, or `auto/N`")]
    Form,
    #[error("there is no part {index} of {of}: parts are numbered from 1 to {of}")]
    Outside { index: u32, of: u32 },
    #[error("the number of parts is from 1 to {}", PartNumber::MOST)]
    Count,
}

impl PartNumber {
    /// The most parts of a run.
    pub const MOST: u32 = 10_000;

    /// # Errors
    /// A number outside of 1 to `of`.
    pub fn new(index: u32, of: u32) -> Result<PartNumber, PartFault> {
        let count = NonZeroU32::new(of)
            .filter(|of| of.get() <= PartNumber::MOST)
            .ok_or(PartFault::Count)?;
        let inside = NonZeroU32::new(index).filter(|index| *index <= count);
        Ok(PartNumber {
            index: inside.ok_or(PartFault::Outside { index, of })?,
            of: count,
        })
    }

    /// From 1.
    pub fn index(self) -> u32 {
        self.index.get()
    }

    /// How many parts there are.
    pub fn count(self) -> NonZeroU32 {
        self.of
    }

    /// The name of its folder.
    pub fn folder(self) -> String {
        format!("{}-of-{}", self.index, self.of)
    }
}

impl fmt::Display for PartNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.of)
    }
}

/// What `--part` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartArgument {
    /// `3/8`
    Number(PartNumber),
    /// `auto`, or `auto/8`: the engine's variables say which.
    Auto(Option<NonZeroU32>),
}

impl FromStr for PartArgument {
    type Err = PartFault;

    fn from_str(text: &str) -> Result<PartArgument, PartFault> {
        let (index, of) = match text.split_once('/') {
            None if text == "auto" => return Ok(PartArgument::Auto(None)),
            None => return Err(PartFault::Form),
            Some((index, of)) => (index, of.parse().map_err(|_| PartFault::Form)?),
        };
        if index == "auto" {
            let part = PartNumber::new(1, of)?;
            return Ok(PartArgument::Auto(Some(part.of)));
        }
        PartNumber::new(index.parse().map_err(|_| PartFault::Form)?, of).map(PartArgument::Number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_read_or_refused_by_what_is_wrong() {
        let read = |text: &str| text.parse::<PartArgument>();
        assert_eq!(
            read("3/8"),
            Ok(PartArgument::Number(PartNumber::new(3, 8).unwrap()))
        );
        assert_eq!(read("auto"), Ok(PartArgument::Auto(None)));
        assert_eq!(read("auto/8"), Ok(PartArgument::Auto(NonZeroU32::new(8))));
        assert_eq!(read("9/8"), Err(PartFault::Outside { index: 9, of: 8 }));
        assert_eq!(read("0/8"), Err(PartFault::Outside { index: 0, of: 8 }));
        assert_eq!(read("1/0"), Err(PartFault::Count));
        assert_eq!(read("auto/0"), Err(PartFault::Count));
        for odd in [
            "",
            "3",
            "3/",
            "/8",
            "-1/8",
            "3/8/2",
            "a/b",
            "auto/x",
            "3 / 8",
            "99999999999/8",
        ] {
            assert_eq!(read(odd), Err(PartFault::Form), "{odd}");
        }
    }

    #[test]
    fn a_file_cannot_hold_a_part_outside_of_its_count() {
        let read = |text: &str| serde_json::from_str::<PartNumber>(text);
        assert_eq!(
            read(r#"{"index":3,"of":8}"#).unwrap(),
            PartNumber::new(3, 8).unwrap()
        );
        assert!(read(r#"{"index":9,"of":8}"#).is_err());
        let written = serde_json::to_string(&PartNumber::new(3, 8).unwrap()).unwrap();
        assert_eq!(written, r#"{"index":3,"of":8}"#);
    }
}
