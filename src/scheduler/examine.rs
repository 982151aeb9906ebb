//! The loop's dealings with judges: their self-tests run beside the compressions, and nothing is graded before.

use super::ended::UntestedJudge;
use super::errand::Errand;
use super::event::{Event, Listener, SkipReason};
use super::perform::{Fresh, NoOutput};
use super::run::{Errands, Landed, Loop, RunError, is_asked};
use super::selftest::{CaseOutcome, Tested, Trust};
use crate::action::{Stage, StageName};
use crate::cache::Lookup;
use crate::judge::{self, CriterionScore, SelfTest};
use crate::pipeline::JudgeIx;
use crate::plan::{CurrentSources, Output, SelftestTask};
use crate::results::{Blame, Failure, Place};

impl<'r, 'e: 'r, L: Listener> Loop<'r, 'e, L> {
    /// Finds out which cases were graded before: they come first, for they may settle the matter.
    pub(super) fn find_selftests(&mut self) -> Result<(), RunError> {
        let performer = self.performer;
        for judge in 0..performer.preparer.pipeline().judges.len() {
            match performer.preparer.selftest(JudgeIx(judge)) {
                Ok(tests) => self.tests.extend(tests),
                Err(error) => self.cannot_test(judge, &error.to_string())?,
            }
        }
        let is_stored = |test: &SelftestTask| performer.store.find(&test.action.key).is_some_and(|r| r.is_usable());
        self.tests.reverse();
        self.tests.sort_by_key(is_stored);
        Ok(())
    }

    /// A judge whose prompt does not render for the cases grades nothing.
    fn cannot_test(&mut self, judge: usize, error: &str) -> Result<(), RunError> {
        let pipeline = self.performer.preparer.pipeline();
        let prompt = CurrentSources::of_judge(pipeline, JudgeIx(judge)).prompt.and_then(|prompt| prompt.path);
        let why = prompt.map_or_else(|| error.to_owned(), |path| format!("{path}: {error}"));
        let name = self.judge_name(judge);
        let place = Place::Selftest { judge: name.clone(), case: "every case".to_owned() };
        let (stage, blame, message) = (StageName::Selftest, Blame::Infrastructure, why.clone());
        let failure = Failure { place, stage, key: None, blame, class: None, message, hint: None };
        self.selftests.give_up(judge);
        self.ended.untested.push(UntestedJudge { judge: name, why });
        self.listener.on_event(&Event::Failed(&failure))?;
        // One failure stands for all cases, and each of them is accounted for.
        let cases = SelfTest::built_in(pipeline.settings.locale).cases.len();
        (1..cases).try_for_each(|_| Ok(self.listener.on_event(&Event::SharedFailure { stage })?))
    }

    fn judge_name(&self, judge: usize) -> String {
        let judges = &self.performer.preparer.pipeline().judges;
        judges.get(judge).map_or_else(String::new, |judge| judge.name.0.to_string())
    }

    pub(super) fn begin_selftest(&mut self, test: SelftestTask) -> Result<(), RunError> {
        let (stage, key) = (StageName::Selftest, test.action.key);
        let refreshed = self.options.refresh.contains(&Stage::Judge);
        if let Some(grades) = self.performer.cached_grades(&test).filter(|_| !refreshed) {
            let event = if self.seen.insert(key) {
                Event::Cached { stage, key, early_cutoff: false }
            } else {
                Event::Shared { stage }
            };
            self.listener.on_event(&event)?;
            return self.settle_selftest(&test, self.graded(&grades));
        }
        self.foretell()?;
        let is_closed = self.is_closed(&test.action.work);
        let judge = test.judge.0;
        let is_decided =
            self.selftests.is_given_up(judge) || (self.selftests.is_lost(judge) && !self.wants_whole_tests());
        let reason = self.skip_reason(&test.action.work).filter(|_| !is_decided);
        if let Some(reason) = reason.or(is_decided.then_some(SkipReason::Decided)) {
            self.ended.skipped += u64::from(!is_decided);
            self.listener.on_event(&Event::Skipped { stage, reason })?;
            return self.settle_selftest(&test, CaseOutcome::Unasked(is_closed));
        }
        self.note_begun(&test.action.work);
        self.listener.on_event(&Event::Started { stage })?;
        let performer = self.performer;
        let (errand, doors) = (Errand::of_selftest(&performer.preparer, &test), self.doors.clone());
        self.flights.push(Box::pin(async move {
            let result = performer.perform(&errand, &test.action, &doors).await;
            Landed { action: test.action.clone(), errand: Errands::Selftest(test), result }
        }));
        Ok(())
    }

    /// Whether a judge that cannot pass any more is asked about the other cases all the same.
    fn wants_whole_tests(&self) -> bool {
        self.options.selftests_only || self.options.allow_weak_judge
    }

    fn graded(&self, grades: &[CriterionScore]) -> CaseOutcome {
        CaseOutcome::Graded(judge::grade(&self.performer.preparer.pipeline().rubric, grades))
    }

    pub(super) fn land_selftest(
        &mut self,
        test: &SelftestTask,
        result: Result<Fresh, NoOutput>,
    ) -> Result<(), RunError> {
        match result {
            Ok(fresh) => {
                self.seen.insert(test.action.key);
                let Fresh { usage, cost, unchanged, output, .. } = fresh;
                let (stage, key, asked) = (StageName::Selftest, test.action.key, is_asked(&test.action.work));
                self.listener.on_event(&Event::Completed { stage, key, asked, usage, cost, unchanged })?;
                self.note_reply(test.judge.0, true)?;
                let outcome =
                    if let Output::Grades(grades) = output { self.graded(&grades) } else { CaseOutcome::Ungraded };
                self.settle_selftest(test, outcome)
            }
            Err(NoOutput::Store(error)) => Err(error.into()),
            Err(NoOutput::OverBudget(reached)) if self.is_squeezed(reached) => {
                self.tests.push(test.clone());
                Ok(())
            }
            Err(NoOutput::OverBudget(_) | NoOutput::CalledOff) => {
                self.ended.skipped += 1;
                let reason = self.skip_reason(&test.action.work).unwrap_or(SkipReason::Interrupted);
                self.listener.on_event(&Event::Skipped { stage: StageName::Selftest, reason })?;
                let why = self.is_closed(&test.action.work);
                self.settle_selftest(test, CaseOutcome::Unasked(why))
            }
            Err(NoOutput::Failed(failure)) => {
                // A judge that loses itself until the token limit was asked, and would be no better another time.
                let outcome = match failure.class {
                    Some(class) if !class.was_answered() => CaseOutcome::Unasked(Some(failure.told())),
                    Some(_) | None => CaseOutcome::Ungraded,
                };
                self.listener.on_event(&Event::Failed(&failure))?;
                if matches!(outcome, CaseOutcome::Ungraded) {
                    self.note_reply(test.judge.0, false)?;
                }
                self.settle_selftest(test, outcome)
            }
        }
    }

    /// Takes note of a judge's reply, and says so when the judge is given up by it.
    pub(super) fn note_reply(&mut self, judge: usize, keeps_contract: bool) -> Result<(), RunError> {
        if self.selftests.note_reply(judge, keeps_contract) {
            let name = self.judge_name(judge);
            let warning = format!("judge {name} is not asked any more: none of its replies keeps the contract");
            self.listener.on_event(&Event::Warning(warning))?;
        }
        Ok(())
    }

    fn settle_selftest(&mut self, test: &SelftestTask, outcome: CaseOutcome) -> Result<(), RunError> {
        let judge = test.judge.0;
        let Some(tested) = self.selftests.settle(judge, &test.case, outcome) else { return Ok(()) };
        let Tested { verdict, trust, obstacle, waiting } = tested;
        let name = self.judge_name(judge);
        self.listener.on_event(&Event::SelftestCompleted { judge: &name, verdict: &verdict })?;
        match (trust, obstacle) {
            (Trust::Weak, _) => {
                self.ended.weak_judges.push(name);
                if !self.options.allow_weak_judge {
                    self.doors.close_all();
                }
            }
            (Trust::Untested, Some(why)) => self.ended.untested.push(UntestedJudge { judge: name, why }),
            // Where cases were left alone the reason is told elsewhere: offline, budget, interrupted.
            (Trust::Untested, None) | (Trust::Proven | Trust::Waiting, _) => {}
        }
        waiting.into_iter().rev().for_each(|task| self.frontier.put_back(task));
        Ok(())
    }
}
