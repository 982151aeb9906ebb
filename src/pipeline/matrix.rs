//! The matrix: every cell of a run, in a fixed order. Cells are computed, never stored.
//!
//! Order: fixture, method, run, point, probe, answerer, answer_n, judge, judge_n. Counts are arithmetic and
//! memory grows with fixtures × points (and the probes at them), never with the number of cells.

use serde::Serialize;

use super::model::{
    AnswererIx, FixtureIx, JudgeIx, LoadedFixture, MethodIx, Pipeline, PointIx, ProbeIx, VariantIx,
};
use crate::action::{BuiltInStrategy, CellCoordinate, Repetition, StageName};
use crate::compress::Strategy;
use crate::planted::{NEXT_STEP, STATE};

/// The place of the next step among the requests about a planted variant.
pub const PLANTED_NEXT: ProbeIx = ProbeIx(0);
/// The place of the state among them.
pub const PLANTED_STATE: ProbeIx = ProbeIx(1);

/// One method on one fixture in one run: its compressions follow one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Chain {
    pub fixture: FixtureIx,
    /// What is planted in the fixture, if anything is. Its next step and its state are asked in place of probes.
    pub variant: Option<VariantIx>,
    pub method: MethodIx,
    /// The run, from 1.
    pub run: u32,
}

/// A cell of the compress stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CompressCell {
    /// The chain it belongs to.
    pub chain: Chain,
    pub point: PointIx,
}

/// A cell of the answer stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AnswerCell {
    pub compress: CompressCell,
    pub probe: ProbeIx,
    pub answerer: AnswererIx,
    /// Number of the answer, from 1.
    pub answer_n: u32,
}

/// A cell of the judge stage: one row of the results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JudgeCell {
    pub answer: AnswerCell,
    pub judge: JudgeIx,
    /// Number of the judgement, from 1.
    pub judge_n: u32,
}

impl CompressCell {
    /// The names of a compression.
    pub fn place(&self, pipeline: &Pipeline) -> CellCoordinate {
        let fixture = pipeline.fixture(self.chain.fixture);
        CellCoordinate {
            fixture: fixture.name().into(),
            point: self.point.number(),
            method: pipeline.method(self.chain.method).name.0.clone(),
            run: self.chain.run,
            variant: self.chain.variant.map(|ix| fixture.variant(ix).number),
            probe: None,
            answerer: None,
            answer_n: None,
            step: None,
            judge: None,
            judge_n: None,
        }
    }
}

impl AnswerCell {
    /// The names of an answer.
    pub fn place(&self, pipeline: &Pipeline) -> CellCoordinate {
        let chain = self.compress.chain;
        CellCoordinate {
            probe: match chain.variant {
                Some(_) if self.probe == PLANTED_NEXT => Some(NEXT_STEP.into()),
                Some(_) => Some(STATE.into()),
                None => pipeline
                    .fixture(chain.fixture)
                    .probe(self.probe)
                    .map(|p| p.id.0.clone()),
            },
            answerer: Some(pipeline.answerer(self.answerer).name.0.clone()),
            answer_n: Some(self.answer_n),
            ..self.compress.place(pipeline)
        }
    }
}

impl JudgeCell {
    /// The names of a judgement.
    pub fn place(&self, pipeline: &Pipeline) -> CellCoordinate {
        CellCoordinate {
            judge: Some(pipeline.judge(self.judge).name.0.clone()),
            judge_n: Some(self.judge_n),
            ..self.answer.place(pipeline)
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MatrixCounts {
    pub compress: u64,
    pub answer: u64,
    pub judge: u64,
}

impl MatrixCounts {
    pub fn all(&self) -> u64 {
        self.compress + self.answer + self.judge
    }

    pub fn by_stage(&self) -> [(StageName, u64); 3] {
        [
            (StageName::Compress, self.compress),
            (StageName::Answer, self.answer),
            (StageName::Judge, self.judge),
        ]
    }
}

/// The cells that a pipeline selects.
///
/// # Panics
/// Methods panic at cells and indices of another pipeline.
#[derive(Clone, Copy, Debug)]
pub struct Matrix<'p>(pub &'p Pipeline);

impl<'p> Matrix<'p> {
    /// Whether there is no answerer: then there are only contexts.
    pub fn is_without_answers(self) -> bool {
        self.0.answerers.is_empty()
    }

    /// All chains that this process runs, in order: for each fixture, the recorded session, then each planted
    /// variant. A variant takes part in the first run only: more variants tell more than repetitions of one.
    pub fn chains(self) -> impl Iterator<Item = Chain> {
        self.0
            .fixtures
            .iter()
            .enumerate()
            .flat_map(move |(fixture, loaded)| {
                let (fixture, recorded) = (FixtureIx(fixture), self.methods_on(FixtureIx(fixture)));
                let recorded = recorded.flat_map(move |method| {
                    (1..=self.recorded_runs()).map(move |run| Chain {
                        fixture,
                        method,
                        run,
                        variant: None,
                    })
                });
                let planted = (0..loaded.variants.len()).flat_map(move |at| {
                    let methods = self.methods_on(fixture);
                    let methods = methods.filter(move |method| self.takes_planted(*method));
                    methods.map(move |method| Chain {
                        fixture,
                        method,
                        run: 1,
                        variant: Some(VariantIx(at)),
                    })
                });
                recorded.chain(planted)
            })
    }

    /// How often each recorded session is compressed.
    fn recorded_runs(self) -> u32 {
        match &self.0.planted {
            Some(planted) if planted.is_all => 0,
            _ => self.0.settings.runs.compress,
        }
    }

    /// Whether a method compresses planted sessions: a recorded context was made of the session as it was.
    fn takes_planted(self, method: MethodIx) -> bool {
        let strategy = &self.0.method(method).strategy;
        !matches!(strategy, Strategy::Rule(BuiltInStrategy::Recorded))
    }

    /// The answerer that is asked about planted items: the first that answers from the context alone.
    fn planted_answerer(self, method: MethodIx) -> Option<AnswererIx> {
        let mut answerers = self.0.method_answerers[method.0].iter();
        answerers
            .find(|ix| self.0.answerer(**ix).recovery.is_none())
            .copied()
    }

    fn methods_on(self, fixture: FixtureIx) -> impl Iterator<Item = MethodIx> {
        let part = self.0.part.as_ref();
        (0..self.0.methods.len())
            .map(MethodIx)
            .filter(move |method| part.is_none_or(|part| part.contains(&(fixture, *method))))
    }

    /// The compressions of a chain, in the order in which they must be done.
    pub fn compressions(self, chain: Chain) -> impl Iterator<Item = CompressCell> {
        let takes_all = self.is_without_answers() || chain.variant.is_some();
        let points = self.needed_points(chain.fixture, chain.method, takes_all);
        points.map(move |point| CompressCell { chain, point })
    }

    /// The points at which a method must compress, in order: those with a probe, and all earlier ones if the method
    /// keeps state; or all points.
    fn needed_points(
        self,
        fixture: FixtureIx,
        method: MethodIx,
        takes_all: bool,
    ) -> impl Iterator<Item = PointIx> {
        let selected = &self.0.fixture(fixture).selected;
        let is_asked = move |at: usize| takes_all || !selected[at].is_empty();
        let until = (0..selected.len()).rev().find(|at| is_asked(*at));
        let keeps_state = self.keeps_state(method);
        (0..until.map_or(0, |last| last + 1))
            .filter(move |at| keeps_state || is_asked(*at))
            .map(PointIx)
    }

    /// The answers to give from a context, in order.
    pub fn answers(self, compress: CompressCell) -> impl Iterator<Item = AnswerCell> {
        let is_planted = compress.chain.variant.is_some();
        let CompressCell { chain, point } = compress;
        let method_answerers = &self.0.method_answerers[chain.method.0];
        let probes = self.0.fixture(chain.fixture).selected[point.0].iter();
        let probes = probes.filter(move |_| !is_planted);
        let recorded = probes.flat_map(move |&probe| {
            method_answerers.iter().flat_map(move |&answerer| {
                (1..=self.0.settings.runs.answer).map(move |answer_n| AnswerCell {
                    compress,
                    probe,
                    answerer,
                    answer_n,
                })
            })
        });
        let asked = self.planted_answerer(chain.method);
        let planted = asked.into_iter().filter(move |_| is_planted);
        let planted = planted.flat_map(move |answerer| {
            [PLANTED_NEXT, PLANTED_STATE].map(|probe| AnswerCell {
                compress,
                probe,
                answerer,
                answer_n: 1,
            })
        });
        recorded.chain(planted)
    }

    /// The judgements of an answer, in order; none of a reply about planted items.
    pub fn judgements(self, answer: AnswerCell) -> impl Iterator<Item = JudgeCell> {
        let is_planted = answer.compress.chain.variant.is_some();
        let judges = (0..self.0.judges.len()).filter(move |_| !is_planted);
        judges.flat_map(move |judge| {
            (1..=self.0.settings.runs.judge).map(move |judge_n| JudgeCell {
                answer,
                judge: JudgeIx(judge),
                judge_n,
            })
        })
    }

    /// All cells of the judge stage, that is all rows, in order.
    pub fn cells(self) -> impl Iterator<Item = JudgeCell> {
        self.chains()
            .flat_map(move |chain| self.compressions(chain))
            .flat_map(move |cell| self.answers(cell))
            .flat_map(move |cell| self.judgements(cell))
    }

    /// Whether a point needs the output of the point before.
    pub fn keeps_state(self, method: MethodIx) -> bool {
        self.0.method(method).strategy.keeps_state()
    }

    /// Cells of each stage, without walking them.
    pub fn counts(self) -> MatrixCounts {
        let mut counts = MatrixCounts::default();
        let runs = u64::from(self.recorded_runs());
        let mut planted = 0;
        for (at, fixture) in self.0.fixtures.iter().enumerate() {
            for method in self.methods_on(FixtureIx(at)) {
                let points = self.needed_points(FixtureIx(at), method, self.is_without_answers());
                counts.compress += runs * points.count() as u64;
                if self.takes_planted(method) {
                    let contexts = (fixture.variants.len() * fixture.points.len()) as u64;
                    counts.compress += contexts;
                    planted += contexts * 2 * u64::from(self.planted_answerer(method).is_some());
                }
                counts.answer += runs * probes_of(fixture) * self.answers_per_probe(method);
            }
        }
        counts.judge = counts.answer * self.judgements_per_answer();
        counts.answer += planted;
        counts
    }

    /// How many rows depend on a context.
    pub fn downstream_judgements(self, compress: CompressCell) -> u64 {
        let answers = self.answers(compress);
        answers
            .map(|answer| self.judgements(answer).count() as u64)
            .sum()
    }

    /// The position of a row among all rows of the whole matrix, from 0.
    pub fn ordinal(self, cell: &JudgeCell) -> u64 {
        let AnswerCell {
            compress: CompressCell { chain, point },
            probe,
            answerer,
            answer_n,
        } = cell.answer;
        let runs = u64::from(self.0.settings.runs.compress);
        let per_run = |methods: std::ops::Range<usize>| -> u64 {
            methods
                .map(|method| self.answers_per_probe(MethodIx(method)))
                .sum()
        };
        let earlier = self.0.fixtures.iter().take(chain.fixture.0);
        let fixtures =
            earlier.map(probes_of).sum::<u64>() * runs * per_run(0..self.0.methods.len());
        let fixture = self.0.fixture(chain.fixture);
        let methods = runs * per_run(0..chain.method.0);
        let per_probe = self.answers_per_probe(chain.method);
        let (before, at) = fixture.selected.split_at(point.0);
        let before: usize = before.iter().map(Vec::len).sum();
        let probes_before = before as u64 + position(&at[0], &probe);
        let answerer_at = position(&self.0.method_answerers[chain.method.0], &answerer);
        let answers = fixtures
            + probes_of(fixture) * (methods + per_probe * from_zero(chain.run))
            + probes_before * per_probe
            + answerer_at * u64::from(self.0.settings.runs.answer)
            + from_zero(answer_n);
        answers * self.judgements_per_answer()
            + cell.judge.0 as u64 * u64::from(self.0.settings.runs.judge)
            + from_zero(cell.judge_n)
    }

    fn answers_per_probe(self, method: MethodIx) -> u64 {
        let answerers = self.0.method_answerers[method.0].len();
        answerers as u64 * u64::from(self.0.settings.runs.answer)
    }

    fn judgements_per_answer(self) -> u64 {
        self.0.judges.len() as u64 * u64::from(self.0.settings.runs.judge)
    }

    /// The repetition of a compression: none where one execution serves all runs.
    pub fn compress_repetition(self, cell: &CompressCell) -> Repetition {
        if self.0.method(cell.chain.method).strategy.is_deterministic() {
            return Repetition::NONE;
        }
        Repetition {
            compress: Some(cell.chain.run),
            ..Repetition::NONE
        }
    }

    /// The repetition of an answer. Each run gets its own, also from a compression that serves all runs.
    pub fn answer_repetition(self, cell: &AnswerCell) -> Repetition {
        if !self.0.answerer(cell.answerer).model.is_asked() {
            return Repetition::NONE;
        }
        Repetition {
            compress: Some(cell.compress.chain.run),
            answer: Some(cell.answer_n),
            judge: None,
        }
    }

    /// The repetition of a judgement. Each answer cell gets its own, also where the answers are the same.
    pub fn judge_repetition(self, cell: &JudgeCell) -> Repetition {
        if !self.0.judge(cell.judge).model.is_asked() {
            return Repetition::NONE;
        }
        let answer = &cell.answer;
        Repetition {
            compress: Some(answer.compress.chain.run),
            answer: Some(answer.answer_n),
            judge: Some(cell.judge_n),
        }
    }
}

/// The number of selected probes at all points.
fn probes_of(fixture: &LoadedFixture) -> u64 {
    fixture.selected.iter().map(|at| at.len() as u64).sum()
}

fn position<T: PartialEq>(items: &[T], item: &T) -> u64 {
    items
        .iter()
        .position(|known| known == item)
        .unwrap_or(items.len()) as u64
}

fn from_zero(number: u32) -> u64 {
    u64::from(number.saturating_sub(1))
}
