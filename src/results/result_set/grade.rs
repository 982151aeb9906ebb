//! What statistics need of a row: its place, its grade, and what was measured of its answer.

use std::collections::BTreeMap;

use crate::action::ActionKey;
use crate::judge::Dimension;
use crate::measure::{AnswerWhenLost, ContextFacts, ContextShares, FactOutcome};
use crate::results::files::row::{OpenBook, Row};

/// Scores of the dimensions that were measured.
pub(crate) type ByDimension = BTreeMap<Dimension, f64>;

/// The place of a dimension in lists by dimension. [`Dimension::ALL`] has the order of declaration.
pub(crate) fn place(dimension: Dimension) -> usize {
    dimension as usize
}

/// The items whose key is `wanted`, in a list sorted by `key`.
pub(crate) fn equal_range<T, K: Ord>(sorted: &[T], key: impl Fn(&T) -> K, wanted: K) -> &[T] {
    let from = sorted.partition_point(|item| key(item) < wanted);
    let until = sorted.partition_point(|item| key(item) <= wanted);
    sorted.get(from..until).unwrap_or_default()
}

/// The place of an answer: variant, probe, run, number of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct AnswerAt {
    pub variant: usize,
    pub probe: usize,
    pub run: u32,
    pub answer_n: u32,
}

impl AnswerAt {
    /// The variant, probe and run that it belongs to.
    pub(crate) fn cell(&self) -> (usize, usize, u32) {
        (self.variant, self.probe, self.run)
    }
}

/// One grade of one answer by one judge.
#[derive(Clone, Debug)]
pub(crate) struct Grade {
    pub at: AnswerAt,
    pub judge_n: u32,
    pub judge: usize,
    pub dimensions: ByDimension,
    /// Place of each criterion in the rubric, and its points.
    pub points: Vec<(u16, u8)>,
    /// Compression, answer, judgement.
    pub keys: [ActionKey; 3],
    /// Whether the token limit cut the answer off.
    pub truncated: bool,
    /// The place of its row among all rows.
    pub row: usize,
}

impl Grade {
    /// Whether both have the same points of each criterion, and the same dimensions.
    pub(crate) fn is_graded_like(&self, other: &Grade) -> bool {
        self.dimensions == other.dimensions
            && (self.points == other.points || self.sorted_points() == other.sorted_points())
    }

    fn sorted_points(&self) -> Vec<(u16, u8)> {
        let mut points = self.points.clone();
        points.sort_unstable();
        points
    }
}

/// What was measured of one answer without a judge.
#[derive(Clone, Debug)]
pub(crate) struct MeasuredAnswer {
    pub at: AnswerAt,
    pub facts: Vec<FactOutcome>,
    pub when_lost: Option<AnswerWhenLost>,
    pub heading: Option<String>,
    pub survival: Option<f64>,
    /// The survival in the summary alone, if the context has more than a summary.
    pub summary_survival: Option<f64>,
    pub in_context: Option<ContextShares>,
    pub is_constraint: bool,
    pub context_tokens: Option<u64>,
    pub replaced_tokens: Option<u64>,
    pub ratio: Option<f64>,
    pub fabricated: Option<bool>,
    pub stale: u64,
    pub truncated: bool,
    /// Its searches, if the answerer could search.
    pub reach: Option<Box<Reach>>,
}

/// The searches of an open-book answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reach {
    pub searches: u64,
    /// Tokens of what was returned.
    pub tokens: u64,
    pub gold_found: Option<bool>,
    pub own_archive: bool,
}

impl Reach {
    fn new(open: &OpenBook) -> Reach {
        let searches = open.searches.len() as u64;
        Reach {
            searches,
            tokens: open.tokens,
            gold_found: open.gold_found,
            own_archive: open.own_archive,
        }
    }
}

impl MeasuredAnswer {
    pub(crate) fn from_row(at: AnswerAt, row: &Row) -> MeasuredAnswer {
        MeasuredAnswer {
            at,
            facts: row.facts.clone(),
            when_lost: row.answer_when_lost,
            heading: row.heading.clone(),
            survival: row.fact_survival,
            summary_survival: row.summary_survival,
            in_context: row.context_facts.as_ref().map(ContextFacts::shares),
            is_constraint: row.is_constraint,
            context_tokens: row.context_tokens,
            replaced_tokens: row.replaced_tokens,
            ratio: row.compression_ratio,
            fabricated: row.fabricated,
            stale: row.stale_facts.len() as u64,
            truncated: row.truncated,
            reach: row
                .open_book
                .as_ref()
                .map(|open| Box::new(Reach::new(open))),
        }
    }
}
