//! Centres: means, medians, and the one number that sums up a cluster's table of cells.

use std::borrow::Borrow;
use std::ops::{Add, AddAssign};

use serde::{Deserialize, Serialize};

use super::thresholds::MIN_RUN_SHARE;

/// Far beyond any score, and small enough that no fourth power of it overflows.
const MAX_MAGNITUDE: f64 = 1e60;

/// Whether a number may be computed with: finite, and of a sane size.
pub(super) fn usable(x: f64) -> bool {
    x.abs() <= MAX_MAGNITUDE
}

/// The mean; `None` for no values, or if one of them is not a usable number.
pub fn mean(values: &[f64]) -> Option<f64> {
    mean_of(values.iter().copied())
}

/// The mean of the values of an iterator; `None` as for [`mean`].
pub fn mean_of(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    counted_mean(values).map(|(mean, _)| mean)
}

/// The mean and the number of values.
fn counted_mean(values: impl IntoIterator<Item = f64>) -> Option<(f64, usize)> {
    let (mut count, mut all_usable) = (0, true);
    let counted = values.into_iter().inspect(|x| {
        count += 1;
        all_usable &= usable(*x);
    });
    let sum: f64 = counted.sum();
    (all_usable && count > 0).then(|| (sum / count as f64, count))
}

/// The median, for an even count the mean of the middle two; `None` for no values, or if one is not a usable number.
pub fn median(values: &[f64]) -> Option<f64> {
    if !values.iter().all(|x| usable(*x)) {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let high = sorted.get(sorted.len() / 2)?;
    let low = sorted.get((sorted.len() - 1) / 2)?;
    Some((low + high) / 2.0)
}

/// The sample variance, over n − 1; `None` for fewer than two values, or if one is not a usable number.
pub(super) fn sample_variance(values: &[f64]) -> Option<f64> {
    let center = mean(values)?;
    let squares: f64 = values.iter().map(|x| (x - center).powi(2)).sum();
    (values.len() > 1).then(|| squares / (values.len() - 1) as f64)
}

/// The sample standard deviation, over n − 1; `None` for fewer than two values, or if one is not a usable number.
pub fn sample_sd(values: &[f64]) -> Option<f64> {
    sample_variance(values).map(f64::sqrt)
}

/// The number of cells that a table should have, and how many of them are missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissingCounts {
    /// All cells.
    pub cells: usize,
    /// Cells without a number.
    pub missing: usize,
}

impl MissingCounts {
    /// The missing share, from 0 to 1; `None` where no cell was due.
    pub fn share(self) -> Option<f64> {
        (self.cells > 0).then(|| self.missing as f64 / self.cells as f64)
    }
}

impl Add for MissingCounts {
    type Output = MissingCounts;
    fn add(self, other: MissingCounts) -> MissingCounts {
        MissingCounts {
            cells: self.cells.saturating_add(other.cells),
            missing: self.missing.saturating_add(other.missing),
        }
    }
}

impl AddAssign for MissingCounts {
    fn add_assign(&mut self, other: MissingCounts) {
        *self = *self + other;
    }
}

/// The values of the runs of one cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunValues {
    /// A value per run, in order; `None` for a run that has fewer than half of the items.
    pub values: Vec<Option<f64>>,
    /// Missing cells of the whole table, runs that were dropped included.
    pub gaps: MissingCounts,
}

impl RunValues {
    /// The values of the runs that have one.
    pub fn present(&self) -> Vec<f64> {
        self.values.iter().flatten().copied().collect()
    }

    /// The one number of the cluster: the median over its runs, so that one broken run cannot move a result.
    /// `None` if no run is left.
    pub fn cluster_value(&self) -> Option<f64> {
        median(&self.present())
    }
}

/// The value of each run from a table of cells, with a row per item and a column per run.
///
/// With nothing missing it is the plain mean over the items. A missing cell is filled additively: with ȳ_p the mean of
/// item p over the runs that have it and M the mean of all ȳ_p, a run is worth M plus the mean, over its items present,
/// of its departure from ȳ_p. So a run is not flattered when its hardest item is the one that failed.
///
/// Short rows and numbers that are not usable count as missing. An item without any value counts among the missing
/// cells, but takes no other part. A run with fewer than half of the items that do is `None`.
pub fn run_values<Row: AsRef<[Option<f64>]>>(table: &[Row]) -> RunValues {
    let runs = table
        .iter()
        .map(|row| row.as_ref().len())
        .max()
        .unwrap_or(0);
    let items: Vec<NumberedRow<'_>> = table
        .iter()
        .filter_map(|row| NumberedRow::from_row(row.as_ref()))
        .collect();
    let filled: usize = items.iter().map(|item| item.count).sum();
    let cells = runs * table.len();
    let gaps = MissingCounts {
        cells,
        missing: cells.saturating_sub(filled),
    };
    let Some(grand) = mean_of(items.iter().map(|item| item.mean)) else {
        return RunValues {
            values: vec![None; runs],
            gaps,
        };
    };
    let values = (0..runs).map(|run| {
        let departures = items
            .iter()
            .filter_map(|item| Some(item.at(run)? - item.mean));
        let (departure, present) = counted_mean(departures)?;
        let enough = present as f64 >= MIN_RUN_SHARE * items.len() as f64;
        enough.then_some(grand + departure)
    });
    RunValues {
        values: values.collect(),
        gaps,
    }
}

/// A row of the table that has at least one number.
struct NumberedRow<'a> {
    row: &'a [Option<f64>],
    count: usize,
    mean: f64,
}

impl NumberedRow<'_> {
    fn from_row(row: &[Option<f64>]) -> Option<NumberedRow<'_>> {
        let (mean, count) = counted_mean(row.iter().flatten().copied().filter(|x| usable(*x)))?;
        Some(NumberedRow { row, count, mean })
    }

    fn at(&self, run: usize) -> Option<f64> {
        self.row.get(run).copied().flatten().filter(|x| usable(*x))
    }
}

/// Combines several measures of the same runs, each given by its runs: a run gets the unweighted mean of its values. A
/// run that lacks one of the measures gets none, since a mean over fewer would measure something else. The missing
/// cells of all measures are added up.
pub fn combined_runs<Runs: Borrow<RunValues>>(measures: &[Runs]) -> RunValues {
    let measures: Vec<&RunValues> = measures.iter().map(Borrow::borrow).collect();
    let runs = measures
        .iter()
        .map(|measure| measure.values.len())
        .max()
        .unwrap_or(0);
    let gaps = measures
        .iter()
        .fold(MissingCounts::default(), |sum, measure| sum + measure.gaps);
    let values = (0..runs).map(|run| {
        let values: Option<Vec<f64>> = measures
            .iter()
            .map(|measure| measure.values.get(run).copied().flatten())
            .collect();
        mean(&values?)
    });
    RunValues {
        values: values.collect(),
        gaps,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: Option<f64>, b: f64) -> bool {
        a.is_some_and(|a| (a - b).abs() < 1e-12)
    }

    #[test]
    fn a_missing_hard_item_does_not_flatter_its_run() {
        let table = [
            vec![Some(5.0), Some(4.0), Some(5.0)],
            vec![Some(2.0), None, Some(1.0)],
            vec![Some(3.0), Some(3.0), Some(4.0)],
        ];
        let runs = run_values(&table);
        for (value, expected) in runs.values.iter().zip([10.0 / 3.0, 8.0 / 3.0, 10.0 / 3.0]) {
            assert!(close(*value, expected), "{value:?} against {expected}");
        }
        assert!(close(runs.cluster_value(), 10.0 / 3.0));
        assert_eq!(
            runs.gaps,
            MissingCounts {
                cells: 9,
                missing: 1
            }
        );
    }

    #[test]
    fn a_full_table_gives_plain_means() {
        let runs = run_values(&[vec![Some(1.0), Some(2.0)], vec![Some(4.0), Some(3.0)]]);
        assert!(close(runs.values[0], 2.5) && close(runs.values[1], 2.5));
        assert_eq!(runs.gaps.share(), Some(0.0));
    }

    #[test]
    fn a_run_with_fewer_than_half_of_its_items_is_dropped() {
        let half = run_values(&[vec![Some(1.0), Some(2.0)], vec![Some(3.0), None]]);
        assert!(half.values[1].is_some());
        let less = run_values(&[
            vec![Some(1.0), Some(2.0)],
            vec![Some(3.0), None],
            vec![Some(3.0), None],
        ]);
        assert_eq!(less.values[1], None);
        assert!(close(less.cluster_value(), 7.0 / 3.0));
    }

    #[test]
    fn a_cell_that_is_not_a_number_is_missing() {
        let runs = run_values(&[
            vec![Some(f64::NAN), Some(2.0)],
            vec![Some(f64::INFINITY)],
            vec![],
        ]);
        assert_eq!(
            runs.gaps,
            MissingCounts {
                cells: 6,
                missing: 5
            }
        );
        assert_eq!(runs.values, [None, Some(2.0)]);
    }

    #[test]
    fn nothing_in_gives_nothing_out() {
        assert_eq!(run_values::<Vec<_>>(&[]), RunValues::default());
        assert_eq!(run_values(&[vec![None, None]]).values, [None, None]);
        assert_eq!(RunValues::default().cluster_value(), None);
        assert_eq!(RunValues::default().gaps.share(), None);
        assert_eq!(
            (mean(&[]), median(&[]), sample_sd(&[1.0])),
            (None, None, None)
        );
        assert_eq!(
            (mean(&[f64::NAN]), median(&[1.0, f64::INFINITY])),
            (None, None)
        );
    }

    #[test]
    fn medians_take_the_middle() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
    }

    #[test]
    fn a_run_without_one_of_the_measures_has_no_combined_value() {
        let first = run_values(&[vec![Some(1.0), Some(2.0)]]);
        let second = run_values(&[vec![Some(3.0), None]]);
        let both = combined_runs(&[first, second]);
        assert_eq!(both.values, [Some(2.0), None]);
        assert_eq!(
            both.gaps,
            MissingCounts {
                cells: 4,
                missing: 1
            }
        );
        assert_eq!(combined_runs::<RunValues>(&[]), RunValues::default());
    }
}
