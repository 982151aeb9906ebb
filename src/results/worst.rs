//! The worst probes, with the judge's own words.

use std::borrow::Borrow;
use std::collections::BTreeMap;

use super::design::Design;
use super::row::Row;
use crate::judge::{CriterionId, Score};

/// A probe on which a method does badly.
#[derive(Clone, Debug, PartialEq)]
pub struct Worst {
    /// The method.
    pub method: String,
    /// The fixture.
    pub fixture: String,
    /// The point, from 1.
    pub point: u32,
    /// The probe's id.
    pub probe: String,
    /// Its question.
    pub question: String,
    /// Mean over all grades of the probe's overall score.
    pub score: f64,
    /// The criterion that got the fewest points in the worst grade, and how many.
    pub criterion: Option<(CriterionId, u8)>,
    /// The judge's reason for it.
    pub reasoning: String,
    /// Expected facts that the answer of the worst grade lacks.
    pub lacking: Vec<String>,
}

/// All grades of one probe of one method.
struct Pile {
    scores: Vec<(Place, f64)>,
    worst: (f64, Place),
    row: usize,
}

/// Run, answer, judgement, judge: tells grades of one probe apart, so that the order of rows does not matter.
type Place = (u32, u32, u32, String);

/// The `count` probes on which methods do worst, ceiling and floor and what is perfect left out; of equals the first by
/// name. Of each the row of its worst grade, counted from 0 as they come, and its score; [`Worst::new`] makes the rest
/// of it. Rows may come in any order; what is kept in memory grows with methods × probes and the numbers of the rows.
///
/// # Errors
/// The first row that is an error.
pub fn worst_rows<T, E>(
    design: &Design,
    rows: impl IntoIterator<Item = Result<impl Borrow<Row<T>>, E>>,
    count: usize,
) -> Result<Vec<(usize, f64)>, E> {
    let mut piles: BTreeMap<(String, u32, String, String), Pile> = BTreeMap::new();
    for (at, row) in rows.into_iter().enumerate() {
        let row = row?;
        let row: &Row<T> = row.borrow();
        let is_real = design.methods.iter().any(|m| m.name == row.method && !m.is_ceiling() && !m.is_floor());
        let Some(overall) = row.overall.filter(|_| is_real) else { continue };
        let place: Place = (row.run, row.answer_n, row.judge_n, row.judge.clone());
        let key = (row.fixture.clone(), row.point, row.probe.clone(), row.method.clone());
        let first = || Pile { scores: Vec::new(), worst: (f64::INFINITY, place.clone()), row: at };
        let pile = piles.entry(key).or_insert_with(first);
        pile.scores.push((place.clone(), overall));
        if (overall, &place) < (pile.worst.0, &pile.worst.1) {
            pile.worst = (overall, place);
            pile.row = at;
        }
    }
    let mut found: Vec<(usize, f64)> =
        piles.into_values().filter_map(settled).filter(|(_, score)| *score < Score::MAX).collect();
    // stable: equals stay in the order of their names
    found.sort_by(|a, b| a.1.total_cmp(&b.1));
    found.truncate(count);
    Ok(found)
}

fn settled(mut pile: Pile) -> Option<(usize, f64)> {
    pile.scores.sort_by(|a, b| a.0.cmp(&b.0));
    let scores: Vec<f64> = pile.scores.iter().map(|(_, score)| *score).collect();
    Some((pile.row, crate::stats::mean(&scores)?))
}

impl Worst {
    /// A probe whose worst grade is `row`, with its score over all grades.
    pub fn new(design: &Design, row: &Row, score: f64) -> Worst {
        let fixture = design.fixtures.iter().find(|info| info.name == row.fixture);
        let probe = fixture.and_then(|info| info.probes.iter().find(|p| p.id == row.probe && p.point == row.point));
        let lowest = row.criteria.iter().min_by_key(|criterion| criterion.points());
        Worst {
            method: row.method.clone(),
            fixture: row.fixture.clone(),
            point: row.point,
            probe: row.probe.clone(),
            question: probe.map(|probe| probe.question.clone()).unwrap_or_default(),
            score,
            criterion: lowest.map(|criterion| (criterion.criterion.clone(), criterion.points())),
            reasoning: lowest.map(|criterion| criterion.reasoning.clone()).unwrap_or_default(),
            lacking: row.facts.iter().filter(|fate| !fate.answered).map(|fate| fate.fact.clone()).collect(),
        }
    }
}
