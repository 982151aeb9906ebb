//! Krippendorff's alpha with the ordinal metric: how far several observers agree, beyond chance ("Computing Krippendorff's
//! Alpha-Reliability", 2011). Scores on a scale with anchors are ordinal: how far 3 and 4 lie apart is not known to be
//! as far as 4 and 5.

use std::collections::BTreeMap;

use super::agreement::{Coefficient, NoCoefficient};

/// Alpha over units, each given as the list of its scores, by any number of observers; missing scores are simply not
/// listed. Units with fewer than two scores are ignored. 1 is perfect agreement, 0 that of chance.
pub fn krippendorff_alpha(units: &[Vec<u8>]) -> Coefficient {
    let rated: Vec<&[u8]> = units
        .iter()
        .map(Vec::as_slice)
        .filter(|unit| unit.len() > 1)
        .collect();
    let table = Coincidences::from_units(&rated);
    let value = match (table.total > 0.0, table.counts.len() > 1) {
        (false, _) => Err(NoCoefficient::TooFew),
        (true, false) => Err(NoCoefficient::NoVariation),
        (true, true) => table.alpha().ok_or(NoCoefficient::NoVariation),
    };
    Coefficient::new(value, rated.len())
}

/// How often two values occur in the same unit. A unit weighs as much as it has scores.
#[derive(Default)]
struct Coincidences {
    /// o_ck, for the pairs that occur
    meetings: BTreeMap<(u8, u8), f64>,
    /// n_c
    counts: BTreeMap<u8, f64>,
    /// n
    total: f64,
}

impl Coincidences {
    fn from_units(units: &[&[u8]]) -> Coincidences {
        let mut table = Coincidences::default();
        for unit in units {
            let mut score_counts: BTreeMap<u8, f64> = BTreeMap::new();
            for score in *unit {
                *score_counts.entry(*score).or_default() += 1.0;
            }
            let others = unit.len() as f64 - 1.0;
            for (c, count) in &score_counts {
                for (k, other) in &score_counts {
                    let pairs = if c == k {
                        count * (count - 1.0)
                    } else {
                        count * other
                    };
                    *table.meetings.entry((*c, *k)).or_default() += pairs / others;
                }
                *table.counts.entry(*c).or_default() += count;
            }
            table.total += unit.len() as f64;
        }
        table
    }

    /// 1 − (n−1) Σ o δ² / Σ n_c n_k δ²
    fn alpha(&self) -> Option<f64> {
        let observed: f64 = self
            .meetings
            .iter()
            .map(|((c, k), o)| o * self.distance(*c, *k))
            .sum();
        let expected: f64 = self
            .counts
            .iter()
            .map(|(c, n_c)| {
                self.counts
                    .iter()
                    .map(|(k, n_k)| n_c * n_k * self.distance(*c, *k))
                    .sum::<f64>()
            })
            .sum();
        (expected > 0.0).then(|| 1.0 - (self.total - 1.0) * observed / expected)
    }

    /// δ², the squared distance of two values: it grows with the number of scores between them.
    fn distance(&self, c: u8, k: u8) -> f64 {
        if c == k {
            return 0.0;
        }
        let between: f64 = self.counts.range(c.min(k)..=c.max(k)).map(|(_, n)| n).sum();
        (between - (self.count_of(c) + self.count_of(k)) / 2.0).powi(2)
    }

    fn count_of(&self, value: u8) -> f64 {
        self.counts.get(&value).copied().unwrap_or(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The scores of four observers for twelve units; a dot is a missing score.
    fn published() -> Vec<Vec<u8>> {
        let observers = [
            "123321412...",
            "1233224125.3",
            ".3332342251.",
            "12332441251.",
        ];
        (0..12)
            .map(|unit| {
                observers
                    .iter()
                    .filter_map(|row| digit(row, unit))
                    .collect()
            })
            .collect()
    }

    fn digit(row: &str, place: usize) -> Option<u8> {
        row.chars().nth(place)?.to_digit(10)?.try_into().ok()
    }

    #[test]
    fn the_published_example_comes_out() {
        let alpha = krippendorff_alpha(&published());
        assert!((alpha.value.unwrap() - 0.815).abs() < 5e-4);
        // the twelfth unit has a single score
        assert_eq!(alpha.pairs, 11);
    }

    #[test]
    fn perfect_agreement_is_one_and_constant_scores_have_no_alpha() {
        assert_eq!(
            krippendorff_alpha(&[vec![1, 1], vec![5, 5]]).value,
            Some(1.0)
        );
        let constant = krippendorff_alpha(&[vec![4, 4], vec![4, 4]]);
        assert_eq!(
            (constant.value, constant.reason),
            (None, Some(NoCoefficient::NoVariation))
        );
        let lone = krippendorff_alpha(&[vec![4], vec![]]);
        assert_eq!(
            (lone.value, lone.reason),
            (None, Some(NoCoefficient::TooFew))
        );
    }
}
