//! Fields that many entries of a pack share, by number: names, settings, and digests of texts that they were made from.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};

use crate::digest::Digest;

/// Shorter fields are not worth a number.
const LEAST_SHARED: usize = 4;
/// The fields that were seen once are forgotten when there are this many of them.
const MOST_SEEN: usize = 1 << 16;

/// Fields that get consecutive numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct NewFields {
    first: u32,
    fields: Vec<Vec<u8>>,
}

/// The shared fields of a pack, by their numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct SharedFields(HashMap<u32, Vec<u8>>);

impl SharedFields {
    pub(crate) fn add(&mut self, new: NewFields) {
        self.0.extend((new.first..=u32::MAX).zip(new.fields));
    }

    pub(crate) fn get(&self, number: u32) -> Option<&Vec<u8>> {
        self.0.get(&number)
    }
}

/// Gives the fields of a pack their numbers. A field gets one when it is seen for the second time.
#[derive(Debug, Default)]
pub(crate) struct FieldNumbers {
    numbers: HashMap<Digest, u32>,
    seen: HashSet<Digest>,
    next: u32,
    /// Numbered since the last frame of shared fields.
    new: Vec<Vec<u8>>,
}

impl FieldNumbers {
    /// The numbers of a pack that has these fields already.
    pub(crate) fn from_shared(shared: &SharedFields) -> FieldNumbers {
        let next = shared
            .0
            .keys()
            .max()
            .map_or(0, |last| last.saturating_add(1));
        let numbers = shared
            .0
            .iter()
            .map(|(number, field)| (Digest::hash(field), *number))
            .collect();
        FieldNumbers {
            numbers,
            next,
            ..FieldNumbers::default()
        }
    }

    /// Forgets all numbers, because the frames that define them were not written. None of them is used again.
    pub(crate) fn forget(&mut self) {
        *self = FieldNumbers {
            next: self.next,
            ..FieldNumbers::default()
        };
    }

    /// The number of a field; `None` if it is to be written out.
    pub(crate) fn number(&mut self, field: &[u8]) -> Option<u32> {
        if field.len() < LEAST_SHARED {
            return None;
        }
        let digest = Digest::hash(field);
        if let Some(number) = self.numbers.get(&digest) {
            return Some(*number);
        }
        if !self.seen.remove(&digest) {
            if self.seen.len() >= MOST_SEEN {
                self.seen.clear();
            }
            self.seen.insert(digest);
            return None;
        }
        // when the numbers are used up, fields are written out
        let number = self.next;
        self.next = number.checked_add(1).filter(|next| *next < u32::MAX)?;
        self.numbers.insert(digest, number);
        self.new.push(field.to_vec());
        Some(number)
    }

    /// The fields that got a number since they were last taken; `None` if none did.
    pub(super) fn take_new(&mut self) -> Option<NewFields> {
        let fields = std::mem::take(&mut self.new);
        let count = u32::try_from(fields.len())
            .ok()
            .filter(|count| *count > 0)?;
        Some(NewFields {
            first: self.next.checked_sub(count)?,
            fields,
        })
    }
}
