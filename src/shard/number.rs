//! The number of a shard, and the argument that gives it.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Which shard of how many, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "ShardFields")]
pub struct Shard {
    index: NonZeroU32,
    of: NonZeroU32,
}

/// A shard as a file has it, before it is checked.
#[derive(Deserialize)]
struct ShardFields {
    index: u32,
    of: u32,
}

impl TryFrom<ShardFields> for Shard {
    type Error = ShardFault;

    fn try_from(fields: ShardFields) -> Result<Shard, ShardFault> {
        Shard::new(fields.index, fields.of)
    }
}

/// Text that is no shard.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShardFault {
    #[error("expected I/N, as in 3/8, or `auto`, or `auto/N`")]
    Form,
    #[error("there is no shard {index} of {of}: shards are numbered from 1 to {of}")]
    Outside { index: u32, of: u32 },
    #[error("the number of shards is from 1 to {}", Shard::MOST)]
    Count,
}

impl Shard {
    /// The most shards of a run.
    pub const MOST: u32 = 10_000;

    /// # Errors
    /// A number outside of 1 to `of`.
    pub fn new(index: u32, of: u32) -> Result<Shard, ShardFault> {
        let count = NonZeroU32::new(of).filter(|of| of.get() <= Shard::MOST).ok_or(ShardFault::Count)?;
        let inside = NonZeroU32::new(index).filter(|index| *index <= count);
        Ok(Shard { index: inside.ok_or(ShardFault::Outside { index, of })?, of: count })
    }

    /// From 1.
    pub fn index(self) -> u32 {
        self.index.get()
    }

    /// How many shards there are.
    pub fn of(self) -> NonZeroU32 {
        self.of
    }

    /// The name of its folder.
    pub fn folder(self) -> String {
        format!("{}-of-{}", self.index, self.of)
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.of)
    }
}

/// What `--shard` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShardArgument {
    /// `3/8`
    Number(Shard),
    /// `auto`, or `auto/8`: the engine's variables say which.
    Auto(Option<NonZeroU32>),
}

impl FromStr for ShardArgument {
    type Err = ShardFault;

    fn from_str(text: &str) -> Result<ShardArgument, ShardFault> {
        let number = |text: &str| text.parse::<u32>().map_err(|_| ShardFault::Form);
        let (index, of) = match text.split_once('/') {
            None if text == "auto" => return Ok(ShardArgument::Auto(None)),
            None => return Err(ShardFault::Form),
            Some((index, of)) => (index, number(of)?),
        };
        if index == "auto" {
            let shard = Shard::new(1, of)?;
            return Ok(ShardArgument::Auto(Some(shard.of)));
        }
        Shard::new(number(index)?, of).map(ShardArgument::Number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shard_is_read_or_refused_by_what_is_wrong() {
        let read = |text: &str| text.parse::<ShardArgument>();
        assert_eq!(read("3/8"), Ok(ShardArgument::Number(Shard::new(3, 8).unwrap())));
        assert_eq!(read("auto"), Ok(ShardArgument::Auto(None)));
        assert_eq!(read("auto/8"), Ok(ShardArgument::Auto(NonZeroU32::new(8))));
        assert_eq!(read("9/8"), Err(ShardFault::Outside { index: 9, of: 8 }));
        assert_eq!(read("0/8"), Err(ShardFault::Outside { index: 0, of: 8 }));
        assert_eq!(read("1/0"), Err(ShardFault::Count));
        assert_eq!(read("auto/0"), Err(ShardFault::Count));
        for odd in ["", "3", "3/", "/8", "-1/8", "3/8/2", "a/b", "auto/x", "3 / 8", "99999999999/8"] {
            assert_eq!(read(odd), Err(ShardFault::Form), "{odd}");
        }
    }

    #[test]
    fn a_file_cannot_hold_a_shard_that_is_none() {
        let read = |text: &str| serde_json::from_str::<Shard>(text);
        assert_eq!(read(r#"{"index":3,"of":8}"#).unwrap(), Shard::new(3, 8).unwrap());
        assert!(read(r#"{"index":9,"of":8}"#).is_err());
        let written = serde_json::to_string(&Shard::new(3, 8).unwrap()).unwrap();
        assert_eq!(written, r#"{"index":3,"of":8}"#);
    }
}
