//! The worst probes, with the judge's own words.

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::Hash;

use serde::{Deserialize, Serialize};

use super::cause::LossCause;
use super::files::design::Design;
use super::files::row::Row;
use super::result_set::ContextPlaces;
use crate::judge::{CriterionId, Score};

/// A probe on which a method does badly.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorstProbe {
    /// The name of the method.
    pub method: String,
    /// The name of the fixture.
    pub fixture: String,
    /// The point, from 1.
    pub point: u32,
    /// The probe's id.
    pub probe: String,
    /// Its question; empty where the design lacks it.
    pub question: String,
    /// The mean of the probe's overall score over all grades.
    pub score: f64,
    /// The criterion with the fewest points in the worst grade, and its points.
    pub criterion: Option<(CriterionId, u8)>,
    /// The judge's reason for these points.
    pub reasoning: String,
    /// Expected facts that the answer of the worst grade lacks.
    pub lacking: Vec<String>,
    /// What lost it, by that answer.
    pub cause: Option<LossCause>,
}

/// All grades of one probe of one method.
struct ProbeScores {
    scores: Vec<(GradeId, f64)>,
    /// The lowest score (of equals that of the first grade), its grade, and the place of its row.
    worst: (f64, GradeId, usize),
    /// What lost the answer of that grade.
    cause: Option<LossCause>,
}

impl ProbeScores {
    /// The row of the worst grade, and the mean score. Scores are summed in the order of their grades, so that the
    /// order of rows does not matter.
    fn mean(mut self) -> Option<(usize, f64, Option<LossCause>)> {
        self.scores.sort_by_key(|(grade, _)| *grade);
        let scores: Vec<f64> = self.scores.iter().map(|(_, score)| *score).collect();
        Some((self.worst.2, stats::mean(&scores)?, self.cause))
    }
}

/// Run, answer, judgement, judge: identifies a grade of a probe, so that the order of rows does not matter.
type GradeId = (u32, u32, u32, usize);

/// The `count` probes on which methods do worst, those first that the compression lost; of equals the first by name. Ceiling and floor are left out, and so
/// are perfect scores and answers from the contexts `apart`. Each entry is the place of the row with the worst grade,
/// counted from 0, and the probe's score; [`WorstProbe::new`] adds the rest. Rows may come in any order. A row with a
/// name that the design does not know is skipped. Memory grows with methods × probes, and with the number of rows.
///
/// # Errors
/// The first row that is an error.
pub fn worst_rows<T, E>(
    design: &Design,
    rows: impl IntoIterator<Item = Result<impl Borrow<Row<T>>, E>>,
    apart: &ContextPlaces<'_>,
    count: usize,
) -> Result<Vec<(usize, f64)>, E> {
    let order = NameOrder::from_design(design);
    let mut probes: BTreeMap<(usize, usize), ProbeScores> = BTreeMap::new();
    for (at, row) in rows.into_iter().enumerate() {
        let row = row?;
        let row: &Row<T> = row.borrow();
        let is_apart = apart.contains(&(
            row.method.as_str(),
            row.fixture.as_str(),
            row.point,
            row.run,
        ));
        let tested = Some(row).filter(|row| !is_apart && design.is_tested(row));
        let Some(((key, grade), overall)) =
            tested.and_then(|row| order.place(row)).zip(row.overall)
        else {
            continue;
        };
        let scores = probes.entry(key).or_insert(ProbeScores {
            scores: Vec::new(),
            worst: (overall, grade, at),
            cause: LossCause::from_facts(&row.facts, row.fabricated),
        });
        scores.scores.push((grade, overall));
        if (overall, grade) < (scores.worst.0, scores.worst.1) {
            scores.worst = (overall, grade, at);
            scores.cause = LossCause::from_facts(&row.facts, row.fabricated);
        }
    }
    let mut worst: Vec<(usize, f64, Option<LossCause>)> = probes
        .into_values()
        .filter_map(ProbeScores::mean)
        .filter(|(_, score, _)| *score < Score::MAX)
        .collect();
    // stable: equals stay in the order of their names
    worst.sort_by(|a, b| {
        let [one, other] = [a.2, b.2].map(LossCause::rank);
        one.cmp(&other).then(a.1.total_cmp(&b.1))
    });
    let first = worst.into_iter().take(count);
    Ok(first.map(|(at, score, _)| (at, score)).collect())
}

/// Each name's place in the order of names.
struct NameOrder<'d> {
    /// Without ceiling and floor.
    methods: HashMap<&'d str, usize>,
    probes: HashMap<(&'d str, u32, &'d str), usize>,
    judges: HashMap<&'d str, usize>,
}

impl<'d> NameOrder<'d> {
    fn from_design(design: &'d Design) -> NameOrder<'d> {
        let candidates = design.methods.iter().filter(|method| !method.is_anchor());
        let probes = design.fixtures.iter().flat_map(|fixture| {
            fixture
                .probes
                .iter()
                .map(|probe| (fixture.name.as_str(), probe.point, probe.id.as_str()))
        });
        NameOrder {
            methods: rank(candidates.map(|method| method.name.as_str())),
            probes: rank(probes),
            judges: rank(design.judges.iter().map(|judge| judge.name.as_str())),
        }
    }

    /// The probe and the method of a row, and its grade among theirs.
    fn place<T>(&self, row: &Row<T>) -> Option<((usize, usize), GradeId)> {
        let method = self.methods.get(row.method.as_str())?;
        let probe = self
            .probes
            .get(&(row.fixture.as_str(), row.point, row.probe.as_str()))?;
        let judge = self.judges.get(row.judge.as_str())?;
        Some((
            (*probe, *method),
            (row.run, row.answer_n, row.judge_n, *judge),
        ))
    }
}

fn rank<Name: Ord + Hash>(names: impl Iterator<Item = Name>) -> HashMap<Name, usize> {
    let sorted: BTreeSet<Name> = names.collect();
    sorted.into_iter().zip(0..).collect()
}

impl WorstProbe {
    /// A probe whose worst grade is `row`, with its score over all grades.
    pub fn new(design: &Design, row: &Row, score: f64) -> WorstProbe {
        let probe = design.probe(&row.fixture, row.point, &row.probe);
        let lowest = row
            .criteria
            .iter()
            .min_by_key(|criterion| criterion.points());
        WorstProbe {
            method: row.method.clone(),
            fixture: row.fixture.clone(),
            point: row.point,
            probe: row.probe.clone(),
            question: probe
                .map(|probe| probe.question.clone())
                .unwrap_or_default(),
            score,
            criterion: lowest.map(|criterion| (criterion.criterion.clone(), criterion.points())),
            reasoning: lowest
                .map(|criterion| criterion.reasoning.clone())
                .unwrap_or_default(),
            lacking: row
                .facts
                .iter()
                .filter(|fact| !fact.answered)
                .map(|fact| fact.fact.clone())
                .collect(),
            cause: LossCause::from_facts(&row.facts, row.fabricated),
        }
    }
}
