//! The judges' self-tests as tasks: ordinary judgements of answers whose quality is known.

use std::rc::Rc;

use super::prepare::{Action, Preparer};
use super::reading::{Output, RawBody, read_output};
use super::task::{SelftestTask, Task};
use crate::entries::EntryRecord;
use crate::judge::{Case, CriterionScore, JudgeQuestion};
use crate::pipeline::{JudgeIx, Matrix, Pipeline};
use store::cache::Lookup;

/// All cases of all judges, under the rubric and locale in force.
pub(super) fn selftests(pipeline: &Pipeline) -> impl Iterator<Item = Task> {
    let cases =
        move |judge: usize| pipeline.selftest.cases.iter().map(move |case| selftest(pipeline, JudgeIx(judge), case));
    (0..pipeline.judges.len()).flat_map(cases)
}

fn selftest(pipeline: &Pipeline, judge: JudgeIx, case: &Case) -> Task {
    let (settings, spec) = (&pipeline.settings, pipeline.judge(judge));
    let criteria = match &case.criteria {
        // An id that the rubric does not have is found where the action is prepared.
        Some(ids) => pipeline.rubric.named(ids).unwrap_or_default(),
        None => pipeline.rubric.criteria_for(case.probe_type, settings.rubric_scope),
    };
    let question = JudgeQuestion::new(&case.question, case.truth(), &criteria, settings.locale, spec.prompts());
    Task::Selftest(SelftestTask { judge, case: case.id.clone(), question: Rc::new(question) })
}

/// The actions of the self-tests, as far as their prompts render.
pub fn selftest_actions(pipeline: &Pipeline) -> Vec<Action> {
    let matrix = Matrix::new(pipeline);
    let preparer = Preparer::new(pipeline, &matrix);
    selftests(pipeline).filter_map(|task| preparer.prepare(&task).ok()).collect()
}

/// The grades of the self-tests that `lookup` has and that can be read, in the order of judges and cases.
pub fn selftest_grades(pipeline: &Pipeline, lookup: &impl Lookup) -> Vec<Vec<CriterionScore>> {
    let matrix = Matrix::new(pipeline);
    let preparer = Preparer::new(pipeline, &matrix);
    let grades = |task: Task| {
        let record = lookup.find(&preparer.prepare(&task).ok()?.key)?;
        let bytes = lookup.body(&record).ok()?;
        match read_output(&preparer, &task, RawBody { format: record.body_format(), bytes: &bytes }) {
            Ok(Output::Grades(grades)) => Some(grades),
            _ => None,
        }
    };
    selftests(pipeline).filter_map(grades).collect()
}
