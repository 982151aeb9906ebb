//! From rows to fixture values: panels, replicates, probes, runs (STATISTICS section 2).

use std::collections::{BTreeMap, BTreeSet};

use super::row::Row;
use crate::judge::{self, Dimension, Rubric};
use crate::probe::ProbeType;
use crate::stats::{self, RunValues};

/// A probe where it was asked.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProbeAt {
    /// The compression point, from 1.
    pub point: u32,
    /// The probe's id.
    pub id: String,
    /// What it tests.
    pub kind: ProbeType,
}

/// Scores of one method on one fixture and dimension: probe by run; `None` where a cell is missing.
type Table = BTreeMap<ProbeAt, Vec<Option<f64>>>;

/// All scores of a result set, ready to be averaged.
#[derive(Clone, Debug, Default)]
pub struct Scores {
    /// Methods in the order they first came (`METHOD/ANSWERER` with several answerers).
    pub methods: Vec<String>,
    /// Fixtures in the order they first came.
    pub fixtures: Vec<String>,
    /// Runs.
    pub runs: usize,
    tables: BTreeMap<(String, String, Dimension), Table>,
}

/// Scores of one answer: which repetition, graded by whom.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Coordinate {
    method: String,
    fixture: String,
    probe: ProbeAt,
    run: u32,
    repetition: (u32, u32),
}

impl Scores {
    /// Gathers rows; `rubric` weighs the criteria of a panel's medians.
    pub fn gather<'r>(rows: impl Iterator<Item = &'r Row>, rubric: &Rubric) -> Scores {
        let mut scores = Scores::default();
        let mut panels: BTreeMap<Coordinate, Vec<&Row>> = BTreeMap::new();
        let rows: Vec<&Row> = rows.collect();
        let answerers: BTreeSet<&str> = rows.iter().map(|row| row.answerer.as_str()).collect();
        for row in rows {
            let method = method_key(row, answerers.len() > 1);
            note(&mut scores.methods, &method);
            note(&mut scores.fixtures, &row.fixture);
            scores.runs = scores.runs.max(row.run as usize);
            let probe = ProbeAt { point: row.point, id: row.probe.clone(), kind: row.kind };
            let repetition = (row.answer_n, row.judge_n);
            let at = Coordinate { method, fixture: row.fixture.clone(), probe, run: row.run, repetition };
            panels.entry(at).or_default().push(row);
        }
        scores.average_repetitions(&panels, rubric);
        scores
    }

    /// Means over the replicates inside a run.
    fn average_repetitions(&mut self, panels: &BTreeMap<Coordinate, Vec<&Row>>, rubric: &Rubric) {
        let mut sums: BTreeMap<(&Coordinate, Dimension), (f64, u32)> = BTreeMap::new();
        let mut first: Option<&Coordinate> = None;
        for (at, rows) in panels {
            // Repetitions of one run are neighbours in the order of coordinates: they share the first one's entry.
            let home = match first {
                Some(f) if (&f.method, &f.fixture, &f.probe, f.run) == (&at.method, &at.fixture, &at.probe, at.run) => f,
                _ => at,
            };
            first = Some(home);
            for (dimension, score) in panel_scores(rows, rubric) {
                let sum = sums.entry((home, dimension)).or_insert((0.0, 0));
                *sum = (sum.0 + score, sum.1 + 1);
            }
        }
        let runs = self.runs;
        for ((at, dimension), (sum, count)) in sums {
            let table = self.tables.entry((at.method.clone(), at.fixture.clone(), dimension)).or_default();
            let by_run = table.entry(at.probe.clone()).or_insert_with(|| vec![None; runs]);
            if let Some(slot) = by_run.get_mut(at.run.saturating_sub(1) as usize) {
                *slot = Some(sum / f64::from(count));
            }
        }
    }

    fn table(&self, method: &str, fixture: &str, dimension: Dimension) -> Option<&Table> {
        self.tables.get(&(method.to_owned(), fixture.to_owned(), dimension))
    }

    /// The probes of a method on a fixture that were judged at least once.
    pub fn judged(&self, method: &str, fixture: &str) -> BTreeSet<ProbeAt> {
        Dimension::ALL
            .into_iter()
            .filter_map(|dimension| self.table(method, fixture, dimension))
            .flat_map(|table| table.iter())
            .filter(|(_, runs)| runs.iter().any(Option::is_some))
            .map(|(probe, _)| probe.clone())
            .collect()
    }

    /// The dimensions that a method has on a fixture.
    pub fn dimensions(&self, method: &str, fixture: &str) -> BTreeSet<Dimension> {
        Dimension::ALL.into_iter().filter(|d| self.table(method, fixture, *d).is_some()).collect()
    }

    /// The values of the runs of one dimension, over the probes that `keep` admits. `None` where nothing was measured.
    pub fn dimension(
        &self,
        method: &str,
        fixture: &str,
        dimension: Dimension,
        keep: &impl Fn(&ProbeAt) -> bool,
    ) -> Option<RunValues> {
        let table = self.table(method, fixture, dimension)?;
        let kept: Vec<Vec<Option<f64>>> =
            table.iter().filter(|(probe, _)| keep(probe)).map(|(_, runs)| runs.clone()).collect();
        (!kept.is_empty()).then(|| stats::run_values(&kept))
    }

    /// The values of the runs over all of `dimensions` together: the mean of a run's dimensions.
    pub fn overall(
        &self,
        method: &str,
        fixture: &str,
        dimensions: &BTreeSet<Dimension>,
        keep: &impl Fn(&ProbeAt) -> bool,
    ) -> Option<RunValues> {
        let measures: Vec<RunValues> =
            dimensions.iter().filter_map(|d| self.dimension(method, fixture, *d, keep)).collect();
        (!measures.is_empty()).then(|| stats::combined_runs(&measures))
    }
}

/// What a method is called in summaries.
pub fn method_key(row: &Row, several_answerers: bool) -> String {
    if several_answerers { format!("{}/{}", row.method, row.answerer) } else { row.method.clone() }
}

fn note(known: &mut Vec<String>, name: &str) {
    if !known.iter().any(|k| k == name) {
        known.push(name.to_owned());
    }
}

/// Dimension scores of one answer: medians over judges, criterion by criterion.
fn panel_scores(rows: &[&Row], rubric: &Rubric) -> BTreeMap<Dimension, f64> {
    if let [row] = rows {
        return row.dimensions.clone();
    }
    let medians = judge::panel_medians(rows.iter().map(|row| row.criteria.as_slice()));
    let scores = judge::dimension_scores(rubric, medians.iter().map(|(id, score)| (id, *score)));
    scores.iter().map(|(dimension, score)| (dimension, score.value())).collect()
}
