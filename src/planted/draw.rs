//! Draws by seed.

use crate::action::Digest;

/// splitmix64 (Steele, Lea and Flood 2014).
pub(super) struct Random(u64);

impl Random {
    /// A sequence of its own for each purpose under a seed.
    pub(super) fn new(seed: u64, purpose: &str) -> Random {
        let Digest([a, b, c, d, e, f, g, h, ..]) = Digest::hash(format!("{seed} {purpose}"));
        Random(u64::from_be_bytes([a, b, c, d, e, f, g, h]))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `size`; 0 where there is none.
    pub(super) fn below(&mut self, size: usize) -> usize {
        (self.next() % (size.max(1) as u64)) as usize
    }

    /// The items in a random order (Fisher and Yates).
    pub(super) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }

    /// The pattern with a digit in place of each `#`.
    pub(super) fn digits(&mut self, pattern: &str) -> String {
        let digit = |random: &mut Random| char::from(b'0' + random.below(10) as u8);
        pattern
            .chars()
            .map(|c| if c == '#' { digit(self) } else { c })
            .collect()
    }
}
