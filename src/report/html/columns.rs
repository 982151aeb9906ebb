//! Cells as columns of small numbers: what every chart and list needs at once.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

use crate::judge::Dimension;
use crate::measure::{FactClass, FactFate};
use crate::results::ScoredRow;

/// A column; one whose values are all the same is written as that value.
#[derive(Debug, Default)]
pub(super) struct Column(Vec<Option<i64>>);

impl Column {
    fn push(&mut self, value: Option<i64>) {
        self.0.push(value);
    }
}

impl Serialize for Column {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.first() {
            Some(first) if self.0.iter().all(|value| value == first) => first.serialize(serializer),
            _ => self.0.serialize(serializer),
        }
    }
}

/// Names in the order they first came, and where each stands.
#[derive(Debug)]
pub(super) struct Names<T>(BTreeMap<T, usize>, Vec<T>);

impl<T> Default for Names<T> {
    fn default() -> Names<T> {
        Names(BTreeMap::new(), Vec::new())
    }
}

impl<T: Ord + Clone> Names<T> {
    /// The place of `name`, a new one if it has none.
    pub(super) fn place(&mut self, name: T) -> usize {
        let next = self.1.len();
        match self.0.entry(name) {
            std::collections::btree_map::Entry::Occupied(known) => *known.get(),
            std::collections::btree_map::Entry::Vacant(vacant) => {
                self.1.push(vacant.key().clone());
                *vacant.insert(next)
            }
        }
    }

    /// The place of `name`, if it has one.
    pub(super) fn find(&self, name: &T) -> Option<usize> {
        self.0.get(name).copied()
    }

    /// All names, in order.
    pub(super) fn all(&self) -> &[T] {
        &self.1
    }
}

/// Where a cell's names stand in the tables of the page.
#[derive(Clone, Copy, Debug)]
pub(super) struct Places {
    pub(super) method: usize,
    pub(super) probe: usize,
    pub(super) answerer: usize,
    pub(super) judge: usize,
    pub(super) context: usize,
}

/// All cells, a column for each property. Scores are in hundredths, shares in thousandths.
#[derive(Debug, Default, Serialize)]
pub(super) struct Columns {
    n: usize,
    method: Column,
    probe: Column,
    run: Column,
    answerer: Column,
    judge: Column,
    answer_n: Column,
    judge_n: Column,
    context: Column,
    overall: Column,
    dimensions: [Column; Dimension::ALL.len()],
    survival: Column,
    tokens: Column,
    /// A letter for each fact, in the order of the row.
    facts: Vec<String>,
    /// 1: asserts something nobody can know; 2: states a superseded fact; 4: names what does not exist.
    flags: Column,
}

impl Columns {
    /// Adds a cell.
    pub(super) fn push(&mut self, row: &ScoredRow, places: Places) {
        let whole = |number: usize| i64::try_from(number).ok();
        self.n += 1;
        self.method.push(whole(places.method));
        self.probe.push(whole(places.probe));
        self.run.push(Some(row.run.into()));
        self.answerer.push(whole(places.answerer));
        self.judge.push(whole(places.judge));
        self.answer_n.push(Some(row.answer_n.into()));
        self.judge_n.push(Some(row.judge_n.into()));
        self.context.push(whole(places.context));
        self.overall.push(scaled(row.overall, 100.0));
        for (column, dimension) in self.dimensions.iter_mut().zip(Dimension::ALL) {
            column.push(scaled(row.dimensions.get(&dimension).copied(), 100.0));
        }
        self.survival.push(scaled(row.fact_survival, 1000.0));
        self.tokens.push(row.context_tokens.and_then(|tokens| i64::try_from(tokens).ok()));
        self.facts.push(row.facts.iter().map(letter).collect());
        self.flags.push(Some(flags(row)));
    }
}

fn flags(row: &ScoredRow) -> i64 {
    let fabricated = row.fabricated == Some(true);
    i64::from(fabricated) + 2 * i64::from(!row.stale_facts.is_empty()) + 4 * i64::from(!row.invented.is_empty())
}

/// A finite number as a whole multiple of 1/`by`.
fn scaled(value: Option<f64>, by: f64) -> Option<i64> {
    value.filter(|value| value.is_finite()).map(|value| (value * by).round() as i64)
}

fn letter(fate: &FactFate) -> char {
    match (fate.class, fate.answered) {
        (Some(FactClass::Answered), _) => 'a',
        (Some(FactClass::Missed), _) => 'm',
        (Some(FactClass::Lost), _) => 'l',
        (Some(FactClass::AnsweredElsewhere), _) => 'e',
        (None, true) => 'y',
        (None, false) => 'n',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_of_one_value_is_written_as_it() {
        let json = |values: &[Option<i64>]| serde_json::to_string(&Column(values.to_vec())).unwrap();
        assert_eq!(json(&[Some(1), Some(1)]), "1");
        assert_eq!(json(&[None, None]), "null");
        assert_eq!(json(&[Some(1), None]), "[1,null]");
        assert_eq!(json(&[]), "[]");
    }

    #[test]
    fn names_keep_their_places() {
        let mut names = Names::default();
        let places: Vec<usize> = ["b", "a", "b"].map(|name| names.place(name)).into();
        assert_eq!(places, [0, 1, 0]);
        assert_eq!(names.all(), ["b", "a"]);
    }
}
