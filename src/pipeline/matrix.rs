//! The matrix: every cell of a run, in a fixed order. Cells are computed, never stored.
//!
//! Order: fixture, method, run, point, probe, answerer, answer_n, judge, judge_n. Counts are arithmetic and
//! memory grows with fixtures × points (and the probes at them), never with the number of cells.

use std::collections::BTreeSet;

use serde::Serialize;

use super::model::{
    AnswererIx, FixtureIx, JudgeIx, MethodIx, Pipeline, PointIx, ProbeIx, Runs, VariantIx,
};
use crate::action::{BuiltInStrategy, CellCoordinate, Repetition};
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
}

/// The cells that a pipeline selects.
///
/// # Panics
/// Methods panic at cells and indices of another matrix.
#[derive(Clone, Debug)]
pub struct Matrix {
    pub(super) fixtures: Vec<FixtureAxis>,
    pub(super) methods: Vec<MethodAxis>,
    /// Whether an answerer gives the same answer each time, by its index.
    pub(super) answerer_is_deterministic: Vec<bool>,
    pub(super) judge_is_deterministic: Vec<bool>,
    pub(super) runs: Runs,
    /// The chains that this process runs; `None` is all.
    pub(super) part: Option<BTreeSet<(FixtureIx, MethodIx)>>,
    /// Whether only planted sessions are run.
    pub(super) is_planted_alone: bool,
}

#[derive(Clone, Debug)]
pub(super) struct FixtureAxis {
    /// The selected probes at each point.
    probes: Vec<Vec<ProbeIx>>,
    /// The number of probes at all earlier points, parallel to `probes`.
    before: Vec<u64>,
    total: u64,
    /// The number of planted variants.
    variants: usize,
}

#[derive(Clone, Debug)]
pub(super) struct MethodAxis {
    pub(super) method_answerers: Vec<AnswererIx>,
    /// Whether planted sessions are compressed: a recorded context was made of the session as it was.
    pub(super) takes_planted: bool,
    /// The answerer that is asked about planted items: the first that answers from the context alone.
    pub(super) planted_answerer: Option<AnswererIx>,
    pub(super) keeps_state: bool,
    /// Whether its output is the same each time.
    pub(super) is_deterministic: bool,
}

impl FixtureAxis {
    /// The selected probes at each point, and the number of planted variants.
    pub(super) fn new(probes: Vec<Vec<ProbeIx>>, variants: usize) -> FixtureAxis {
        let mut total = 0;
        let mut before = Vec::with_capacity(probes.len());
        for at in &probes {
            before.push(total);
            total += at.len() as u64;
        }
        FixtureAxis {
            probes,
            before,
            total,
            variants,
        }
    }

    /// The points at which a method must compress, in order: those with a probe, and all earlier ones if the method
    /// keeps state. If nothing is answered, all points.
    fn needed(&self, keeps_state: bool, without_answers: bool) -> impl Iterator<Item = PointIx> {
        let last = self
            .probes
            .iter()
            .rposition(|at| without_answers || !at.is_empty());
        let until = last.map_or(0, |last| last + 1);
        let points = (0..until).filter(move |at| {
            keeps_state
                || without_answers
                || self
                    .probes
                    .get(*at)
                    .is_some_and(|probes| !probes.is_empty())
        });
        points.map(PointIx)
    }
}

impl Matrix {
    /// The matrix of what `pipeline` selects.
    pub fn new(pipeline: &Pipeline) -> Matrix {
        let fixtures = pipeline.fixtures.iter();
        let methods =
            pipeline
                .methods
                .iter()
                .zip(&pipeline.method_answerers)
                .map(|(method, answerers)| MethodAxis {
                    method_answerers: answerers.clone(),
                    takes_planted: !matches!(
                        method.strategy,
                        Strategy::Rule(BuiltInStrategy::Recorded)
                    ),
                    planted_answerer: answerers
                        .iter()
                        .find(|ix| pipeline.answerer(**ix).recovery.is_none())
                        .copied(),
                    keeps_state: method.strategy.keeps_state(),
                    is_deterministic: method.strategy.is_deterministic(),
                });
        Matrix {
            fixtures: fixtures
                .map(|f| FixtureAxis::new(f.selected.clone(), f.variants.len()))
                .collect(),
            methods: methods.collect(),
            answerer_is_deterministic: pipeline
                .answerers
                .iter()
                .map(|a| !a.model.is_asked())
                .collect(),
            judge_is_deterministic: pipeline
                .judges
                .iter()
                .map(|j| !j.model.is_asked())
                .collect(),
            runs: pipeline.settings.runs,
            part: pipeline.part.clone(),
            is_planted_alone: (pipeline.planted.as_ref()).is_some_and(|planted| planted.is_all),
        }
    }

    /// Whether there is no answerer: then there are only contexts.
    pub fn is_without_answers(&self) -> bool {
        self.answerer_is_deterministic.is_empty()
    }

    fn includes(&self, fixture: FixtureIx, method: MethodIx) -> bool {
        self.part
            .as_ref()
            .is_none_or(|part| part.contains(&(fixture, method)))
    }

    pub fn runs(&self) -> Runs {
        self.runs
    }

    /// All chains that this process runs, in order: for each fixture, the recorded session, then each planted
    /// variant. A variant takes part in the first run only: more variants tell more than repetitions of one.
    pub fn chains(&self) -> impl Iterator<Item = Chain> {
        self.fixtures
            .iter()
            .enumerate()
            .flat_map(move |(fixture, axis)| {
                let (fixture, recorded) = (FixtureIx(fixture), self.methods_on(FixtureIx(fixture)));
                let recorded = recorded.flat_map(move |method| {
                    (1..=self.recorded_runs()).map(move |run| Chain {
                        fixture,
                        method,
                        run,
                        variant: None,
                    })
                });
                let planted = (0..axis.variants).flat_map(move |at| {
                    let methods = self.methods_on(fixture);
                    let methods = methods.filter(|method| self.methods[method.0].takes_planted);
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
    fn recorded_runs(&self) -> u32 {
        if self.is_planted_alone {
            0
        } else {
            self.runs.compress
        }
    }

    fn methods_on(&self, fixture: FixtureIx) -> impl Iterator<Item = MethodIx> {
        (0..self.methods.len())
            .map(MethodIx)
            .filter(move |method| self.includes(fixture, *method))
    }

    /// The compressions of a chain, in the order in which they must be done.
    pub fn compressions(&self, chain: Chain) -> impl Iterator<Item = CompressCell> {
        let keeps_state = self.keeps_state(chain.method);
        let takes_all = self.is_without_answers() || chain.variant.is_some();
        let points = self.fixtures[chain.fixture.0].needed(keeps_state, takes_all);
        points.map(move |point| CompressCell { chain, point })
    }

    /// The answers to give from a context, in order.
    pub fn answers(&self, compress: CompressCell) -> impl Iterator<Item = AnswerCell> {
        let is_planted = compress.chain.variant.is_some();
        let method_answerers = self.method_answerers(compress.chain.method);
        let probes = self
            .probes(compress.chain.fixture, compress.point)
            .iter()
            .filter(move |_| !is_planted);
        let recorded = probes.flat_map(move |&probe| {
            method_answerers.iter().flat_map(move |&answerer| {
                (1..=self.runs.answer).map(move |answer_n| AnswerCell {
                    compress,
                    probe,
                    answerer,
                    answer_n,
                })
            })
        });
        let asked = self.methods[compress.chain.method.0].planted_answerer;
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
    pub fn judgements(&self, answer: AnswerCell) -> impl Iterator<Item = JudgeCell> {
        let is_planted = answer.compress.chain.variant.is_some();
        let judges = (0..self.judge_is_deterministic.len()).filter(move |_| !is_planted);
        judges.flat_map(move |judge| {
            (1..=self.runs.judge).map(move |judge_n| JudgeCell {
                answer,
                judge: JudgeIx(judge),
                judge_n,
            })
        })
    }

    /// All cells of the judge stage, that is all rows, in order.
    pub fn cells(&self) -> impl Iterator<Item = JudgeCell> {
        self.chains()
            .flat_map(|chain| self.compressions(chain))
            .flat_map(|cell| self.answers(cell))
            .flat_map(|cell| self.judgements(cell))
    }

    /// The selected probes at a point.
    pub fn probes(&self, fixture: FixtureIx, point: PointIx) -> &[ProbeIx] {
        &self.fixtures[fixture.0].probes[point.0]
    }

    /// The answerers that read the contexts of a method.
    pub fn method_answerers(&self, method: MethodIx) -> &[AnswererIx] {
        &self.methods[method.0].method_answerers
    }

    /// Whether a point needs the output of the point before.
    pub fn keeps_state(&self, method: MethodIx) -> bool {
        self.methods[method.0].keeps_state
    }

    /// Cells of each stage, without walking them.
    pub fn counts(&self) -> MatrixCounts {
        let mut counts = MatrixCounts::default();
        let runs = u64::from(self.recorded_runs());
        let mut planted = 0;
        for (fixture, axis) in self.fixtures.iter().enumerate() {
            for method in self
                .methods_on(FixtureIx(fixture))
                .map(|method| &self.methods[method.0])
            {
                counts.compress += runs
                    * axis
                        .needed(method.keeps_state, self.is_without_answers())
                        .count() as u64;
                if method.takes_planted {
                    let contexts = (axis.variants * axis.probes.len()) as u64;
                    counts.compress += contexts;
                    planted += contexts * 2 * u64::from(method.planted_answerer.is_some());
                }
                counts.answer += runs * axis.total * self.answers_per_probe(method);
            }
        }
        counts.judge = counts.answer * self.judgements_per_answer();
        counts.answer += planted;
        counts
    }

    /// How many rows depend on a context.
    pub fn downstream_judgements(&self, compress: CompressCell) -> u64 {
        let answers = self.answers(compress);
        answers
            .map(|answer| self.judgements(answer).count() as u64)
            .sum()
    }

    /// The position of a row among all rows of the whole matrix, from 0.
    pub fn ordinal(&self, cell: &JudgeCell) -> u64 {
        let AnswerCell {
            compress: CompressCell { chain, point },
            probe,
            answerer,
            answer_n,
        } = cell.answer;
        let runs = u64::from(self.runs.compress);
        let per_probe: u64 = self
            .methods
            .iter()
            .map(|m| runs * self.answers_per_probe(m))
            .sum();
        let fixtures = self
            .fixtures
            .iter()
            .take(chain.fixture.0)
            .map(|axis| axis.total * per_probe)
            .sum::<u64>();
        let (axis, method) = (
            &self.fixtures[chain.fixture.0],
            &self.methods[chain.method.0],
        );
        let methods: u64 = self
            .methods
            .iter()
            .take(chain.method.0)
            .map(|m| runs * self.answers_per_probe(m))
            .sum();
        let method_per_probe = self.answers_per_probe(method);
        let probes_before = axis.before[point.0] + position(&axis.probes[point.0], &probe);
        let answerer_at = position(&method.method_answerers, &answerer);
        let answers = fixtures
            + axis.total * (methods + method_per_probe * from_zero(chain.run))
            + probes_before * method_per_probe
            + answerer_at * u64::from(self.runs.answer)
            + from_zero(answer_n);
        answers * self.judgements_per_answer()
            + cell.judge.0 as u64 * u64::from(self.runs.judge)
            + from_zero(cell.judge_n)
    }

    fn answers_per_probe(&self, method: &MethodAxis) -> u64 {
        method.method_answerers.len() as u64 * u64::from(self.runs.answer)
    }

    fn judgements_per_answer(&self) -> u64 {
        self.judge_is_deterministic.len() as u64 * u64::from(self.runs.judge)
    }

    /// The repetition of a compression: none where one execution serves all runs.
    pub fn compress_repetition(&self, cell: &CompressCell) -> Repetition {
        let is_deterministic = self.methods[cell.chain.method.0].is_deterministic;
        if is_deterministic {
            Repetition::NONE
        } else {
            Repetition {
                compress: Some(cell.chain.run),
                ..Repetition::NONE
            }
        }
    }

    /// The repetition of an answer. Each run gets its own, also from a compression that serves all runs.
    pub fn answer_repetition(&self, cell: &AnswerCell) -> Repetition {
        if self.answerer_is_deterministic[cell.answerer.0] {
            return Repetition::NONE;
        }
        Repetition {
            compress: Some(cell.compress.chain.run),
            answer: Some(cell.answer_n),
            judge: None,
        }
    }

    /// The repetition of a judgement. Each answer cell gets its own, also where the answers are the same.
    pub fn judge_repetition(&self, cell: &JudgeCell) -> Repetition {
        if self.judge_is_deterministic[cell.judge.0] {
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

fn position<T: PartialEq>(items: &[T], item: &T) -> u64 {
    items
        .iter()
        .position(|known| known == item)
        .unwrap_or(items.len()) as u64
}

fn from_zero(number: u32) -> u64 {
    u64::from(number.saturating_sub(1))
}
