//! A set of many keys in little memory: a run of 300,000 cells meets 600,000 actions.
//!
//! The beginnings of keys are random numbers, so they spread evenly over buckets, and a bucket is a short sorted list
//! without spare room. A hash set takes up to four times as much, and six times while it grows.

use crate::action::{ActionKey, Digest};

/// The number of leading bits of a key that select its bucket.
const BUCKET_BITS: u32 = 12;
/// Keys for which a bucket gets room at once.
const STEP: usize = 16;

/// A set of keys, compared by their first 64 bits: of a million keys, two begin alike in one run of 37 million.
#[derive(Debug, Default)]
pub(super) struct KeySet(Vec<Vec<u64>>);

impl KeySet {
    /// Adds a key. Returns whether it is new.
    pub(super) fn insert(&mut self, key: &ActionKey) -> bool {
        if self.0.is_empty() {
            self.0.resize_with(1 << BUCKET_BITS, Vec::new);
        }
        let (bucket, start) = place(key);
        let bucket = &mut self.0[bucket];
        let Err(at) = bucket.binary_search(&start) else { return false };
        if bucket.len() == bucket.capacity() {
            bucket.reserve_exact(STEP);
        }
        bucket.insert(at, start);
        true
    }

    pub(super) fn contains(&self, key: &ActionKey) -> bool {
        let (bucket, start) = place(key);
        self.0.get(bucket).is_some_and(|bucket| bucket.binary_search(&start).is_ok())
    }
}

/// The bucket of a key, and what is there.
fn place(key: &ActionKey) -> (usize, u64) {
    let Digest([a, b, c, d, e, f, g, h, ..]) = key.0;
    let start = u64::from_be_bytes([a, b, c, d, e, f, g, h]);
    ((start >> (u64::BITS - BUCKET_BITS)) as usize, start)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_has_what_a_hash_set_has(numbers in prop::collection::vec(0..400_u16, 0..600)) {
            let (mut set, mut expected) = (KeySet::default(), HashSet::new());
            for number in numbers {
                // some in one bucket, some in many
                let mut key = ActionKey(Digest::hash(number.to_be_bytes()));
                if number % 3 == 0 {
                    key.0.0[..2].fill(0);
                }
                prop_assert_eq!(set.contains(&key), expected.contains(&key));
                prop_assert_eq!(set.insert(&key), expected.insert(key));
                prop_assert!(set.contains(&key));
            }
        }
    }
}
