//! The loop's dealings with judges: their self-tests run beside the compressions, and nothing is graded before.

use super::errand::Errand;
use super::event::{Event, Listener};
use super::perform::{Fresh, NoOutput};
use super::run::{Errands, Landed, Loop, RunError, Stop, is_asked, is_local};
use crate::action::{Stage, StageName};
use crate::judge::{self, CriterionScore};
use crate::pipeline::JudgeIx;
use crate::plan::{Output, SelftestTask};

impl<'r, 'e: 'r, L: Listener> Loop<'r, 'e, L> {
    /// Finds out which cases were graded before; the others are begun in turn.
    pub(super) fn find_selftests(&mut self) -> Result<(), RunError> {
        let preparer = self.performer.preparer;
        for judge in 0..preparer.pipeline().judges.len() {
            match preparer.selftest(JudgeIx(judge)) {
                Ok(tests) => self.tests.extend(tests),
                Err(error) => {
                    self.ended.weak_judges.push(format!("its prompt does not render: {error}"));
                }
            }
        }
        self.tests.reverse();
        Ok(())
    }

    pub(super) fn begin_selftest(&mut self, test: SelftestTask, stop: Stop) -> Result<(), RunError> {
        let (stage, key) = (StageName::Selftest, test.action.key);
        let refreshed = self.options.refresh.contains(&Stage::Judge);
        if let Some(grades) = self.performer.cached_grades(&test).filter(|_| !refreshed) {
            let event = if self.seen.insert(key) {
                Event::Cached { stage, key, spared: false }
            } else {
                Event::Shared { stage }
            };
            self.performer.store.touch([key]);
            self.listener.hear(&event)?;
            return self.settle_selftest(&test, Some(grades));
        }
        self.foretell()?;
        if self.stops(stop) || (self.options.offline && !is_local(&test.action.work)) {
            self.ended.held_back += 1;
            self.listener.hear(&Event::HeldBack { stage })?;
            return self.settle_selftest(&test, None);
        }
        self.listener.hear(&Event::Started { stage })?;
        let performer = self.performer;
        let errand = Errand::of_selftest(&performer.preparer, &test);
        self.flights.push(Box::pin(async move {
            let result = performer.perform(&errand, &test.action).await;
            Landed { action: test.action.clone(), errand: Errands::Selftest(test), result }
        }));
        Ok(())
    }

    pub(super) fn land_selftest(
        &mut self,
        test: &SelftestTask,
        result: Result<Fresh, NoOutput>,
    ) -> Result<(), RunError> {
        match result {
            Ok(fresh) => {
                self.seen.insert(test.action.key);
                let Fresh { usage, cost, saved, unchanged, output, .. } = fresh;
                let (stage, key, asked) = (StageName::Selftest, test.action.key, is_asked(&test.action.work));
                self.listener.hear(&Event::Kept { stage, key, asked, usage, cost, saved, unchanged })?;
                let grades = if let Output::Grades(grades) = output { Some(grades) } else { None };
                self.settle_selftest(test, grades)
            }
            Err(NoOutput::Store(error)) => Err(error.into()),
            Err(NoOutput::OverBudget(reached)) => {
                if self.is_squeezed(reached) {
                    self.tests.push(test.clone());
                    return Ok(());
                }
                self.ended.held_back += 1;
                self.listener.hear(&Event::HeldBack { stage: StageName::Selftest })?;
                self.settle_selftest(test, None)
            }
            Err(NoOutput::Failed(failure)) => {
                self.note_hopeless(&failure);
                if failure.class.is_some() {
                    let hint = failure.hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default();
                    self.selftests.note_failed_call(test.judge.0, format!("{}{hint}", failure.message));
                }
                self.listener.hear(&Event::Failed(&failure))?;
                self.settle_selftest(test, None)
            }
        }
    }

    fn settle_selftest(&mut self, test: &SelftestTask, grades: Option<Vec<CriterionScore>>) -> Result<(), RunError> {
        let pipeline = self.performer.preparer.pipeline();
        let graded = grades.map(|grades| judge::grade(&pipeline.rubric, &grades));
        let Some((verdict, waiting)) = self.selftests.settle(test.judge.0, test.case.clone(), graded) else {
            return Ok(());
        };
        let name = pipeline.judges.get(test.judge.0).map_or_else(String::new, |judge| judge.name.0.to_string());
        self.listener.hear(&Event::Selftested { judge: &name, verdict: &verdict })?;
        if let Some(why) = self.selftests.out_of_reach(test.judge.0) {
            self.ended.hopeless.get_or_insert_with(|| format!("judge {name} could not be asked: {why}"));
        }
        // A judge that could not be asked at all has shown nothing; what it graded before stands.
        let was_asked = self.ended.held_back == 0 && self.ended.hopeless.is_none();
        if !verdict.passed && was_asked {
            self.ended.weak_judges.push(name);
        }
        waiting.into_iter().rev().for_each(|task| self.frontier.put_back(task));
        Ok(())
    }
}
