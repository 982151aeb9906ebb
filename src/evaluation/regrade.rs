//! Did a judge change? If a comparison has a verdict, answers of the baseline are graded again, whatever their grades
//! were, and the verdict stands only without the shift of these grades.
//!
//! This is done when the rows of a run are finished, because the verdict cannot be known earlier. The actions are executed
//! like those of the run: with keys, within its budget, and counted in its manifest. Their keys include the grades of the
//! judged side besides the request, so a repeated run asks nothing again, and last week's replies do not vouch for today's
//! judge. A run that executed no judgement sends nothing here either.
//!
//! Does a judge read? Twenty answers of the run, all to its longest contexts, are graded again: as they are, and with one
//! expected fact made false wherever it is mentioned. A judge that reads grades the changed copy lower far more often
//! than higher; one that is lost in long contexts does not, and its grades in this run mean little.
//!
//! The answers are chosen by their contexts and digests, so a rename or another order sends nothing new.

use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::comparison::Compared;
use super::engine::{EngineOptions, with_engine};
use super::event::{EvaluationError, Listening};
use super::publish::{compress_cell, recorded_context};
use crate::action::{ActionKey, Digest, StageName};
use crate::judge::{Dimension, grade};
use crate::pipeline::{JudgeIx, Pipeline};
use crate::plan::{Action, AnswerToRegrade, Output, Task, regrading};
use crate::probe::Probe;
use crate::results::{
    AnswerRows, AnswerScores, Design, MethodComparison, ReadingCheck, Regraded, Regradings,
    ResultSet, ResultsFolder, Row,
};
use crate::scheduler::run_tasks;
use lexical::facts::with_false_value;
use stats::{mean_of, regraded_answers};
use store::cache::{Lookup, Store};

/// The minimum number of answers for a mean shift.
const FEWEST_ANSWERS: usize = 4;

/// Grades answers again.
pub(super) struct Regrader<'r> {
    pub(super) pipeline: &'r Pipeline,
    pub(super) store: &'r Store,
    pub(super) options: &'r EngineOptions,
    /// Whether some of this was left out because the run was asked to stop.
    pub(super) left_out: Cell<bool>,
}

impl Regrader<'_> {
    /// Grades answers of the baseline again for each verdict of the comparison.
    ///
    /// # Errors
    /// Rows cannot be read; the cache or a file cannot be written.
    pub(super) fn check_drift(
        &self,
        compared: &Compared,
        judged: &ResultSet,
        listening: &Listening<'_>,
    ) -> Result<Regradings, EvaluationError> {
        let subjects = compared.comparison.drift_subjects();
        if subjects.is_empty() {
            return Ok(Regradings::default());
        }
        let pipeline = self.pipeline;
        let mut due = Vec::new();
        let only_known = listening.totals().stage(StageName::Judge).executed == 0;
        for (subject, difference) in subjects {
            let wanted = regraded_answers(difference);
            let mut answers = self.answers(compared, judged, subject.as_deref(), wanted)?;
            if only_known {
                answers.retain(|answer| self.are_known(&answer.tasks));
            }
            due.push((subject, answers));
        }
        let answers = due.iter().flat_map(|(_, answers)| answers);
        let tasks: Vec<Task> = answers.flat_map(|answer| answer.tasks.clone()).collect();
        let mut outputs = self.perform(&tasks, listening)?.into_iter();
        let left_out: BTreeSet<Dimension> = (compared.comparison.excluded)
            .iter()
            .map(|excluded| excluded.dimension)
            .collect();
        let mut found = Regradings {
            baseline: compared.baseline.manifest.started.clone(),
            ..Regradings::default()
        };
        for (subject, answers) in due {
            let pairs = answers
                .iter()
                .filter_map(|answer| answer.scores(pipeline, &mut outputs));
            let pairs: Vec<_> = pairs.collect();
            if pairs.len() < FEWEST_ANSWERS {
                continue;
            }
            let regraded = Regraded::between(&pairs, &left_out);
            match subject {
                Some(method) => _ = found.methods.insert(method, regraded),
                None => found.primary = Some(regraded),
            }
        }
        Ok(found)
    }

    /// Whether there is a judge to check: rules do not change.
    pub(super) fn has_judge(&self) -> bool {
        let mut judges = self.pipeline.judges.iter();
        judges.any(|judge| judge.model.is_asked())
    }

    /// Whether the cache has the outputs of all these tasks.
    pub(super) fn are_known(&self, tasks: &[Task]) -> bool {
        tasks.iter().all(|task| {
            let action = Action::prepare(self.pipeline, task).ok();
            action.is_some_and(|action| self.store.find_usable(&action.key).is_some())
        })
    }

    /// Executes the tasks like those of the run; none of them after a request to stop.
    pub(super) fn perform(
        &self,
        tasks: &[Task],
        listening: &Listening<'_>,
    ) -> Result<Vec<Option<Output>>, EvaluationError> {
        if tasks.is_empty() {
            return Ok(Vec::new());
        }
        let Regrader {
            pipeline,
            store,
            options,
            ..
        } = *self;
        if options.is_stopping() {
            self.left_out.set(true);
            return Ok(tasks.iter().map(|_| None).collect());
        }
        let graded = listening.totals().stage(StageName::Regrade).cells;
        let stages = vec![(StageName::Regrade, graded + tasks.len() as u64)];
        let outputs: Vec<Option<Output>> = with_engine(
            pipeline,
            &stages,
            store,
            options,
            listening,
            async |executor| Ok(run_tasks(executor, tasks, &mut &*listening).await?),
        )?;
        if options.is_stopping() && outputs.iter().any(Option::is_none) {
            self.left_out.set(true);
        }
        Ok(outputs)
    }
}

/// An answer of the baseline that can be graded again.
struct RegradableAnswer {
    /// The original grades of each judge, in the order of the pipeline; `None` if a judge gave none.
    then: Vec<Option<AnswerScores>>,
    /// A task for each judge.
    tasks: Vec<Task>,
}

impl Regrader<'_> {
    /// The answers to grade again for a method of the judged side; a `subject` of `None` is the mean over methods.
    fn answers(
        &self,
        compared: &Compared,
        judged: &ResultSet,
        subject: Option<&str>,
        wanted: usize,
    ) -> Result<Vec<RegradableAnswer>, EvaluationError> {
        let methods = compared.comparison.methods.iter();
        let methods: Vec<(&String, &MethodComparison)> = methods
            .filter(|(name, _)| subject.is_none_or(|subject| subject == *name))
            .collect();
        // The grades that a change of the judge may explain.
        let occasion =
            judged.digest_of_grades(|variant| methods.iter().any(|(name, _)| *name == variant));
        let candidates = compared.baseline.answer_rows(|variant, place| {
            compared.comparison.asked.contains(place)
                && methods.iter().any(|(_, method)| {
                    method.against == variant
                        && method.fixtures.tested() > 0
                        && method.fixtures.has_part_in_tests(&place.fixture)
                })
        });
        // Some cannot be sent, because their contexts are gone.
        let chosen = spread(candidates, 4 * wanted);
        let places = chosen.iter().flatten().copied().collect();
        let rows = compared.folder.rows_in(&places)?;
        let mut answers = Vec::new();
        for places in chosen {
            let rows: Vec<&Row> = places.iter().filter_map(|place| rows.get(place)).collect();
            answers.extend(self.answer(compared.baseline.design(), &rows, occasion));
            if answers.len() == wanted {
                break;
            }
        }
        Ok(answers)
    }

    /// An answer from the rows of its judges. `None` if the original request cannot be sent: the context is not in the
    /// cache, or the project no longer has the answer's probe.
    fn answer(&self, design: &Design, rows: &[&Row], occasion: Digest) -> Option<RegradableAnswer> {
        let row = *rows.first()?;
        let probe = self.probe(row)?;
        let context = self.context(design, row)?;
        let name = name_of_answer(row);
        let answer = AnswerToRegrade {
            name: &name,
            probe,
            text: &row.answer,
            context: context.as_deref(),
        };
        let judges = (0..self.pipeline.judges.len()).map(JudgeIx);
        let tasks = judges
            .map(|judge| regrading(self.pipeline, judge, answer, occasion).ok())
            .collect::<Option<Vec<Task>>>()?;
        let rows_by_judge = design
            .judges
            .iter()
            .map(|judge| rows.iter().find(|row| row.judge == judge.name));
        let then = rows_by_judge
            .map(|row| row.map(|row| row.dimensions.clone()))
            .collect();
        Some(RegradableAnswer { then, tasks })
    }

    /// The probe of an answer; `None` if the project no longer has it.
    pub(super) fn probe(&self, row: &Row) -> Option<&Probe> {
        let loaded = self
            .pipeline
            .fixtures
            .iter()
            .find(|loaded| loaded.name() == row.fixture)?;
        loaded
            .bank
            .probes
            .iter()
            .find(|probe| *probe.id.0 == *row.probe)
    }

    /// The context of an answer in a result set with this design; the inner `None` is a context that judges do not see.
    pub(super) fn context(&self, design: &Design, row: &Row) -> Option<Option<String>> {
        if !self.pipeline.settings.judge_context {
            return Some(None);
        }
        let cell = compress_cell(self.pipeline, design, row)?;
        recorded_context(self.pipeline, cell, &row.keys.compress, self.store)
    }
}

/// Names the answer of a row in a way that people can read.
pub(super) fn name_of_answer(row: &Row) -> String {
    format!(
        "{} · {} · {} · {} · {}",
        row.fixture, row.point, row.method, row.run, row.probe
    )
}

/// The places of at most `most` answers, taken from the fixtures in turn; their order within a fixture is arbitrary.
fn spread(answers: AnswerRows, most: usize) -> Vec<Vec<usize>> {
    let by_fixture: Vec<Vec<Vec<usize>>> = answers
        .into_values()
        .map(|answers| answers.into_values().collect())
        .collect();
    let turns = by_fixture.iter().map(Vec::len).max().unwrap_or_default();
    let in_turn = (0..turns).flat_map(|turn| {
        by_fixture
            .iter()
            .filter_map(move |answers| answers.get(turn))
    });
    in_turn.take(most).cloned().collect()
}

impl RegradableAnswer {
    /// The original and the new scores, as means over the judges that graded the answer both times. Takes the outputs
    /// of the answer's tasks.
    fn scores(
        &self,
        pipeline: &Pipeline,
        outputs: &mut impl Iterator<Item = Option<Output>>,
    ) -> Option<(AnswerScores, AnswerScores)> {
        let today: Vec<Option<Output>> = outputs.by_ref().take(self.tasks.len()).collect();
        let both = self.then.iter().zip(&today).filter_map(|(then, today)| {
            Some((then.clone()?, scores_of(pipeline, today.as_ref()?)?))
        });
        let (then, today): (Vec<AnswerScores>, Vec<AnswerScores>) = both.unzip();
        (!then.is_empty()).then(|| (mean_scores(&then), mean_scores(&today)))
    }
}

/// The scores of an output that is a judge's.
pub(super) fn scores_of(pipeline: &Pipeline, output: &Output) -> Option<AnswerScores> {
    let Output::Grades(grades) = output else {
        return None;
    };
    let scores = grade(&pipeline.rubric, grades);
    Some(
        scores
            .iter()
            .map(|(dimension, score)| (dimension, score.value()))
            .collect(),
    )
}

fn mean_scores(by_judge: &[AnswerScores]) -> AnswerScores {
    let means = Dimension::ALL.into_iter().filter_map(|dimension| {
        Some((
            dimension,
            mean_of(
                by_judge
                    .iter()
                    .filter_map(|scores| scores.get(&dimension).copied()),
            )?,
        ))
    });
    means.collect()
}

/// The lowest grade of an answer that can be used.
const GOOD: f64 = 3.0;
/// The maximum number of expected facts: with two, a false one is worth at least two points.
const MOST_FACTS: usize = 2;
/// How many answers are looked at to find those in which a fact can be made false.
const LOOKED_AT: usize = 8 * ReadingCheck::ANSWERS;

/// An answer as it is, and with a false fact.
type Pair = [Task; 2];

/// Checks each judge that is a model. With `only_known`, nothing is sent: grades that the cache does not have are missing.
///
/// # Errors
/// Rows cannot be read; the cache or a file cannot be written.
pub(super) fn check_reading(
    regrader: &Regrader<'_>,
    folder: &ResultsFolder,
    design: &Design,
    only_known: bool,
    listening: &Listening<'_>,
) -> Result<Vec<ReadingCheck>, EvaluationError> {
    let mut checks = Vec::new();
    let judges = regrader.pipeline.judges.iter().enumerate();
    for (at, judge) in judges.filter(|(_, judge)| judge.model.is_asked()) {
        let name = &*judge.name.0;
        let mut pairs = pairs(regrader, JudgeIx(at), name, folder, design)?;
        if only_known {
            pairs.retain(|pair| regrader.are_known(pair));
        }
        let mut check = ReadingCheck {
            judge: name.to_owned(),
            below: 0,
            above: 0,
            of: pairs.len(),
        };
        if pairs.len() < ReadingCheck::ANSWERS {
            checks.push(check);
            continue;
        }
        let grades = regrader.perform(&pairs.concat(), listening)?;
        check.of = 0;
        for pair in grades.chunks(2) {
            let mut scores = pair
                .iter()
                .map(|output| mean_of_facts(&scores_of(regrader.pipeline, output.as_ref()?)?));
            let Some((unchanged, changed)) = scores.next().flatten().zip(scores.next().flatten())
            else {
                continue;
            };
            check.of += 1;
            check.below += usize::from(changed < unchanged);
            check.above += usize::from(changed > unchanged);
        }
        checks.push(check);
    }
    Ok(checks)
}

/// The answers that a judge grades in a check, at most as many as it needs.
fn pairs(
    regrader: &Regrader<'_>,
    judge: JudgeIx,
    name: &str,
    folder: &ResultsFolder,
    design: &Design,
) -> Result<Vec<Pair>, EvaluationError> {
    let mut found: BTreeMap<(Reverse<u64>, ActionKey), usize> = BTreeMap::new();
    for (place, row) in folder.rows()?.enumerate() {
        let row = row?;
        if row.judge == name && is_candidate(&row) {
            let size = Reverse(row.context_tokens.unwrap_or_default());
            found.entry((size, row.keys.answer)).or_insert(place);
        }
    }
    let places: Vec<usize> = found.into_values().take(LOOKED_AT).collect();
    let rows = folder.rows_in(&places.iter().copied().collect())?;
    let rows = places.iter().filter_map(|place| rows.get(place));
    Ok(rows
        .filter_map(|row| pair(regrader, judge, design, row))
        .take(ReadingCheck::ANSWERS)
        .collect())
}

fn pair(regrader: &Regrader<'_>, judge: JudgeIx, design: &Design, row: &Row) -> Option<Pair> {
    let probe = regrader.probe(row)?;
    let truths = [probe.expected_facts.as_slice(), &probe.superseded_facts].concat();
    let changed = probe
        .expected_facts
        .iter()
        .find_map(|fact| with_false_value(&row.answer, fact, &truths))?;
    let context = regrader.context(design, row)?;
    let name = name_of_answer(row);
    let task = |text: &str| {
        let answer = AnswerToRegrade {
            name: &name,
            probe,
            text,
            context: context.as_deref(),
        };
        // The unchanged answer is graded anew: its first grade may be a week old.
        let occasion = Digest::hash("does it read");
        regrading(regrader.pipeline, judge, answer, occasion).ok()
    };
    Some([task(&row.answer)?, task(&changed)?])
}

fn is_candidate(row: &Row) -> bool {
    row.judge_n == 1
        && row.open_book.is_none()
        && (1..=MOST_FACTS).contains(&row.facts.len())
        && mean_of_facts(&row.dimensions).is_some_and(|score| score >= GOOD)
}

/// The mean of the two dimensions that are about facts.
fn mean_of_facts(scores: &AnswerScores) -> Option<f64> {
    Some((scores.get(&Dimension::Accuracy)? + scores.get(&Dimension::Completeness)?) / 2.0)
}
