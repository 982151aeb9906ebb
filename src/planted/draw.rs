//! Draws by seed.

use crate::action::Digest;
use base::random::Random;

/// A sequence of its own for each purpose under a seed.
pub(super) fn sequence(seed: u64, purpose: &str) -> Random {
    let Digest([a, b, c, d, e, f, g, h, ..]) = Digest::hash(format!("{seed} {purpose}"));
    Random::seeded(u64::from_be_bytes([a, b, c, d, e, f, g, h]))
}

/// The pattern with a digit in place of each `#`.
pub(super) fn digits(pattern: &str, random: &mut Random) -> String {
    let digit = |random: &mut Random| char::from(b'0' + random.below(10) as u8);
    pattern
        .chars()
        .map(|c| if c == '#' { digit(random) } else { c })
        .collect()
}
