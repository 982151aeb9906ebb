//! The judges' self-tests as actions: ordinary judgements of cases whose order is known, shared by run and plan.

use std::fmt;
use std::rc::Rc;

use serde::{Deserialize, Serialize};

use super::prepare::{Action, PrepareError, judge_request};
use crate::action::{Repetition, Stage, Work};
use crate::cache::{EntryCoordinate, Lookup};
use crate::judge::{Case, CaseId, CriterionScore, JudgeQuestion, read_reply};
use crate::pipeline::{JudgeIx, Pipeline};
use models::Operation;

/// One case as one judge is asked about it.
#[derive(Clone, Debug)]
pub struct SelftestTask {
    pub judge: JudgeIx,
    pub case: CaseId,
    pub cell: SelftestCell,
    /// Replies that may break the contract before the action fails.
    pub attempts: u32,
    /// What the reply must score.
    pub question: Rc<JudgeQuestion>,
    pub action: Action,
}

/// A case of a self-test, in names.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SelftestCell {
    pub judge: String,
    pub case: String,
}

impl fmt::Display for SelftestCell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "self-test of {} · {}", self.judge, self.case)
    }
}

/// All cases of one judge, under the rubric and locale in force. They carry repetition 0 unless the judge answers the same
/// each time.
pub fn selftest(pipeline: &Pipeline, judge: JudgeIx) -> Result<Vec<SelftestTask>, PrepareError> {
    pipeline.selftest.cases.iter().map(|case| selftest_case(pipeline, judge, case)).collect()
}

fn selftest_case(pipeline: &Pipeline, judge: JudgeIx, case: &Case) -> Result<SelftestTask, PrepareError> {
    let settings = &pipeline.settings;
    let spec = pipeline.judge(judge);
    let criteria = match &case.criteria {
        Some(ids) => pipeline.rubric.named(ids).map_err(|id| PrepareError::UnknownCriterion(id.clone()))?,
        None => pipeline.rubric.criteria_for(case.probe_type, settings.rubric_scope),
    };
    let question = JudgeQuestion::new(&case.question, case.truth(), &criteria, settings.locale, spec.prompts());
    let context = case.context.clone().filter(|_| settings.judge_context).map(Into::into);
    let turns = question.with(case.answer.clone().into(), context)?;
    let repetition = Repetition { judge: Some(0), ..Repetition::NONE };
    let action = Action::new(Stage::Judge, repetition, Work::request(judge_request(spec, turns, &question)));
    let cell = SelftestCell { judge: spec.name.0.to_string(), case: case.id.0.clone() };
    let (case, question, attempts) = (case.id.clone(), Rc::new(question), spec.attempts);
    Ok(SelftestTask { judge, case, cell, attempts, question, action })
}

impl SelftestTask {
    /// The grades that the cache has; `None` if it has none that can be read.
    pub fn grades(&self, lookup: &impl Lookup) -> Option<Vec<CriterionScore>> {
        let record = lookup.find(&self.action.key)?;
        let body = lookup.body(&record).ok()?;
        let reply = models::read(record.dialect?, Operation::Generate, &body, None).ok()?;
        read_reply(&reply.text, self.question.criteria()).ok()
    }

    /// The place by which the cache finds the latest action of a case.
    pub fn coordinate(&self) -> EntryCoordinate {
        let (judge, probe) = (Some(self.cell.judge.clone()), Some(format!("selftest/{}", self.cell.case)));
        EntryCoordinate { judge, probe, repetition: self.action.repetition, ..EntryCoordinate::default() }
    }
}
