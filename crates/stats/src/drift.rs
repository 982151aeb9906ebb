//! Whether a judge has changed between the two sides of a comparison.
//!
//! If every fixture differs by the same, either the edit did it or the grading. So answers of the baseline are graded
//! again: if they move like the method, the judge has changed, and the comparison shows nothing about the edit.

use serde::{Deserialize, Serialize};

use super::center::mean_of;

/// Baseline answers that are graded again.
pub const REGRADED_ANSWERS: usize = 8;

/// Of a difference, the part that makes the judge's shift an explanation.
const EXPLAINED: f64 = 0.5;

/// The same answers, graded twice.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Regrading {
    /// How many answers.
    pub answers: usize,
    /// The second grades less the first, mean over the answers.
    pub shift: f64,
}

impl Regrading {
    /// From grades of the same answers, in the same order; `None` without a pair of usable numbers.
    pub fn between(first: &[f64], second: &[f64]) -> Option<Regrading> {
        let answers = first.len().min(second.len());
        let shift = mean_of(first.iter().zip(second).map(|(first, second)| second - first))?;
        Some(Regrading { answers, shift })
    }

    /// Whether the judge's shift is half of a difference of the later side, or more.
    pub fn explains(&self, difference: f64) -> bool {
        difference != 0.0 && self.shift * difference.signum() >= EXPLAINED * difference.abs()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shift_of_half_the_loss_in_the_same_direction_explains_it() {
        let harsher = Regrading::between(&[3.0, 4.0, 5.0, 3.0], &[2.0, 4.0, 4.0, 3.0]).unwrap();
        assert_eq!((harsher.answers, harsher.shift), (4, -0.5));
        assert!(harsher.explains(-1.0) && harsher.explains(-0.4));
        assert!(!harsher.explains(-1.1) && !harsher.explains(1.0) && !harsher.explains(0.0));
        let lenient = Regrading::between(&[2.0], &[3.0]).unwrap();
        assert!(lenient.explains(1.5) && !lenient.explains(-1.5));
    }

    #[test]
    fn no_answers_and_no_numbers_are_no_regrading() {
        assert_eq!(Regrading::between(&[], &[1.0]), None);
        assert_eq!(Regrading::between(&[f64::NAN], &[1.0]), None);
    }
}
