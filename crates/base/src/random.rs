//! Random numbers that are the same on every machine for the same seed.

/// splitmix64 (Steele, Lea and Flood 2014).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The sequence of a seed.
    pub fn seeded(seed: u64) -> Random {
        Random(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from 0 to 1, 1 excluded.
    pub fn uniform(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A number below `size`; 0 where there is none.
    pub fn below(&mut self, size: usize) -> usize {
        (self.next() % size.max(1) as u64) as usize
    }

    /// A number from `least` to `most`, both included.
    pub fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.next() % (most.saturating_sub(least) + 1)
    }

    /// Puts items into a random order (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_has_one_sequence_and_numbers_stay_in_their_ranges() {
        // The first number of seed 0 in the authors' code.
        assert_eq!(Random::seeded(0).next(), 0xe220_a839_7b1d_cdaf);
        let mut random = Random::seeded(7);
        for _ in 0..1000 {
            assert!((0.0..1.0).contains(&random.uniform()));
            assert!(random.below(3) < 3 && (5..=9).contains(&random.between(5, 9)));
        }
        assert_eq!((random.below(0), random.between(4, 4)), (0, 4));
        let mut items: Vec<u8> = (0..50).collect();
        random.shuffle(&mut items);
        assert!(!items.is_sorted());
        items.sort_unstable();
        assert!(items.into_iter().eq(0..50));
    }
}
