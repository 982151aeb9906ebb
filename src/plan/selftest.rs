//! The judges' self-tests as tasks: ordinary judgements of answers whose quality is known.

use std::rc::Rc;

use super::task::{SelftestTask, Task};
use crate::judge::{Case, JudgeQuestion};
use crate::pipeline::{JudgeIx, Pipeline};

/// All cases of all judges, under the rubric and locale in force.
pub(super) fn selftests(pipeline: &Pipeline) -> impl Iterator<Item = Task> {
    let cases =
        move |judge: usize| pipeline.selftest.cases.iter().map(move |case| selftest(pipeline, JudgeIx(judge), case));
    (0..pipeline.judges.len()).flat_map(cases)
}

fn selftest(pipeline: &Pipeline, judge: JudgeIx, case: &Case) -> Task {
    let (settings, spec) = (&pipeline.settings, pipeline.judge(judge));
    let criteria = pipeline.rubric.criteria_for(case.probe_type, settings.rubric_scope);
    let question = JudgeQuestion::new(&case.question, case.truth(), &criteria, settings.locale, spec.prompts());
    Task::Selftest(SelftestTask { judge, case: case.id.clone(), question: Rc::new(question) })
}
