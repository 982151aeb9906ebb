//! Judge qualification: each judge is asked about cases whose order is known before its grades count. The cases run at
//! the same time as the compressions, so that nothing waits for a judge; a cell that needs a judge whose test is open
//! waits here.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::event::Event;
use super::execute::{ExecutedOutput, Executor};
use super::job::Job;
use super::options::{RunError, SchedulerOptions, UntestedJudge};
use super::stats::RunStats;
use crate::action::{ActionKey, StageName};
use crate::cache::{Lookup, Record, Refresh};
use crate::judge::{self, CaseId, CriterionScore, DimensionScores, SelfTest, cannot_pass, verdict};
use crate::pipeline::JudgeIx;
use crate::plan::{CurrentSources, Output, PrepareError, SelftestTask, Task, selftest};
use crate::results::{Blame, FailedAction, FailureLocation};

/// What is known of a judge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum JudgeStatus {
    /// Its self-test is under way.
    Pending,
    Qualified,
    Weak,
    /// It could not be asked about cases that decide.
    Untested,
}

/// Whether a cell may be graded by a judge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum JudgeReadiness {
    Ready,
    /// Its self-test is under way.
    Pending,
    /// It is weak or untested, and that is not allowed; or none of its replies keeps the contract.
    Refused,
}

/// After this many replies of which none kept the contract, the judge is asked nothing more, not even where a weak judge
/// is allowed: its cells would all fail, each at the price of several requests.
const GIVEN_UP_AFTER: u32 = 8;

/// What came of one case.
#[derive(Clone, Debug)]
pub(super) enum CaseOutcome {
    Graded(DimensionScores),
    /// The judge replied, but the reply is not a grade.
    Ungraded,
    /// It was never asked; with the reason, unless that is reported elsewhere.
    Unasked(Option<String>),
}

/// The self-test of one judge.
#[derive(Debug)]
struct JudgeTest {
    name: String,
    /// Cases without an outcome.
    open: usize,
    grades: BTreeMap<CaseId, DimensionScores>,
    /// Cases that the judge has not replied to.
    unanswered: BTreeSet<CaseId>,
    /// Why cases could not be asked, the first reason.
    obstacle: Option<String>,
    status: JudgeStatus,
    /// Whether a reply to this run kept the contract, and how many broke it; of cases and of cells.
    kept_contract: bool,
    broke_contract: u32,
    waiting: Vec<Task>,
}

/// The self-tests of all judges.
pub(super) struct JudgeQualification<'r, 'e> {
    executor: &'r Executor<'e>,
    selftest: &'static SelfTest,
    /// One for each judge of the pipeline, in its order.
    judges: Vec<JudgeTest>,
    /// Cases that were not begun yet.
    cases: Vec<SelftestTask>,
    /// Cases that have an output in this run: two judges may ask the same model alike.
    completed: HashSet<ActionKey>,
    refresh: Refresh,
    /// Whether a judge that can no longer pass still gets the other cases.
    asks_all: bool,
    /// Whether the run goes on with a judge that failed its self-test, or whose test could not be completed.
    allows_weak: bool,
}

impl<'r, 'e> JudgeQualification<'r, 'e> {
    /// All judges untested; each case of each is due.
    pub(super) fn new(executor: &'r Executor<'e>, options: &SchedulerOptions) -> JudgeQualification<'r, 'e> {
        let pipeline = executor.preparer.pipeline();
        let selftest = SelfTest::built_in(pipeline.settings.locale);
        let judges = pipeline.judges.iter().map(|judge| JudgeTest::new(judge.name.0.to_string(), selftest)).collect();
        JudgeQualification {
            executor,
            selftest,
            judges,
            cases: Vec::new(),
            completed: HashSet::new(),
            refresh: options.refresh.clone(),
            asks_all: options.selftests_only || options.allow_weak_judge,
            allows_weak: options.allow_weak_judge,
        }
    }

    /// Prepares the cases. Those that were graded before come first, for they may decide the test.
    pub(super) fn prepare(&mut self, stats: &mut RunStats<'_>) -> Result<(), RunError> {
        for judge in (0..self.judges.len()).map(JudgeIx) {
            match selftest(self.executor.preparer.pipeline(), judge) {
                Ok(cases) => self.cases.extend(cases),
                Err(error) => self.cannot_test(judge, &error, stats)?,
            }
        }
        let store = self.executor.store;
        self.cases.reverse();
        self.cases.sort_by_key(|case| store.find(&case.action.key).is_some_and(|record| Record::is_usable(&record)));
        Ok(())
    }

    /// A judge whose prompt does not render for the cases grades nothing.
    fn cannot_test(&mut self, judge: JudgeIx, error: &PrepareError, stats: &mut RunStats<'_>) -> Result<(), RunError> {
        let test = self.test_mut(judge);
        test.status = JudgeStatus::Untested;
        let judge_name = test.name.clone();
        let sources = CurrentSources::of_judge(self.executor.preparer.pipeline(), judge);
        let prompt = sources.prompt.and_then(|prompt| prompt.path);
        let why = prompt.map_or_else(|| error.to_string(), |path| format!("{path}: {error}"));
        let place = FailureLocation::Selftest { judge: judge_name.clone(), case: "every case".to_owned() };
        let (stage, blame, message) = (StageName::Selftest, Blame::Infrastructure, why.clone());
        stats.note_untested(UntestedJudge { judge: judge_name, why });
        let failure = FailedAction { place, stage, key: None, blame, class: None, message, hint: None };
        stats.emit(&Event::Failed(&failure))?;
        // One failure stands for all cases, and each of them is accounted for.
        (1..self.selftest.cases.len()).try_for_each(|_| Ok(stats.emit(&Event::SharedFailure { stage })?))
    }

    /// The next case to begin.
    pub(super) fn next_case(&mut self) -> Option<SelftestTask> {
        self.cases.pop()
    }

    /// Gives a case back that could not be begun yet.
    pub(super) fn put_back(&mut self, case: SelftestTask) {
        self.cases.push(case);
    }

    /// The test of a judge. Each judge of the pipeline has one, and no other index is made.
    fn test(&self, judge: JudgeIx) -> &JudgeTest {
        &self.judges[judge.0]
    }

    fn test_mut(&mut self, judge: JudgeIx) -> &mut JudgeTest {
        &mut self.judges[judge.0]
    }

    /// Whether a judge may grade a cell.
    pub(super) fn readiness(&self, judge: JudgeIx) -> JudgeReadiness {
        let test = self.test(judge);
        match test.status {
            _ if test.is_given_up() => JudgeReadiness::Refused,
            JudgeStatus::Pending => JudgeReadiness::Pending,
            JudgeStatus::Weak | JudgeStatus::Untested if !self.allows_weak => JudgeReadiness::Refused,
            JudgeStatus::Weak | JudgeStatus::Untested | JudgeStatus::Qualified => JudgeReadiness::Ready,
        }
    }

    /// Lets a cell wait for its judge.
    pub(super) fn wait(&mut self, judge: JudgeIx, task: Task) {
        self.test_mut(judge).waiting.push(task);
    }

    /// Cells that still wait; none in a run that ends as it is meant to.
    pub(super) fn drain(&mut self) -> Vec<Task> {
        self.judges.iter_mut().flat_map(|test| std::mem::take(&mut test.waiting)).collect()
    }

    /// Judges that failed, in the order of the pipeline.
    pub(super) fn weak(&self) -> Vec<String> {
        let weak = self.judges.iter().filter(|test| test.status == JudgeStatus::Weak);
        weak.map(|test| test.name.clone()).collect()
    }

    /// Whether a judge failed its self-test, and that ends the run.
    pub(super) fn has_unacceptable(&self) -> bool {
        !self.allows_weak && self.judges.iter().any(|test| test.status == JudgeStatus::Weak)
    }

    /// The outcome of a case that was graded before.
    pub(super) fn cached(
        &mut self,
        case: &SelftestTask,
        stats: &mut RunStats<'_>,
    ) -> Result<Option<CaseOutcome>, RunError> {
        let job = Job::of_selftest(&self.executor.preparer, case);
        let cached = self.executor.cached_output(&job, &self.refresh);
        let Some(Output::Grades(grades)) = cached else { return Ok(None) };
        let key = case.action.key;
        stats.cached((StageName::Selftest, key), self.completed.insert(key), false)?;
        Ok(Some(self.graded(&grades)))
    }

    /// Whether a case is left alone because its judge cannot pass any more, or is given up.
    pub(super) fn is_decided(&self, case: &SelftestTask) -> bool {
        let test = self.test(case.judge);
        test.is_given_up() || (!self.asks_all && cannot_pass(self.selftest, &test.grades, &test.unanswered))
    }

    /// Notes a judge's reply, to a case or to a cell, and reports when the judge is given up by it.
    pub(super) fn note_reply(
        &mut self,
        judge: JudgeIx,
        keeps_contract: bool,
        stats: &mut RunStats<'_>,
    ) -> Result<(), RunError> {
        let test = self.test_mut(judge);
        if test.note_reply(keeps_contract) {
            let name = &test.name;
            let warning = format!("judge {name} gets no more requests: none of its replies has the right format");
            stats.emit(&Event::Warning(warning))?;
        }
        Ok(())
    }

    /// The outcome of a case that was executed.
    pub(super) fn completed(
        &mut self,
        case: &SelftestTask,
        fresh: &ExecutedOutput,
        stats: &mut RunStats<'_>,
    ) -> Result<CaseOutcome, RunError> {
        self.completed.insert(case.action.key);
        stats.completed(StageName::Selftest, &case.action, fresh)?;
        self.note_reply(case.judge, true, stats)?;
        Ok(match &fresh.output {
            Output::Grades(grades) => self.graded(grades),
            Output::Context(_) | Output::Answer(_) | Output::Probes { .. } => CaseOutcome::Ungraded,
        })
    }

    /// The outcome of a case that failed.
    pub(super) fn failed(
        &mut self,
        case: &SelftestTask,
        failure: &FailedAction,
        stats: &mut RunStats<'_>,
    ) -> Result<CaseOutcome, RunError> {
        stats.emit(&Event::Failed(failure))?;
        // A judge that writes until the token limit was asked, and would be no better another time.
        if failure.class.is_some_and(|class| !class.was_answered()) {
            return Ok(CaseOutcome::Unasked(Some(failure.message_with_hint())));
        }
        self.note_reply(case.judge, false, stats)?;
        Ok(CaseOutcome::Ungraded)
    }

    fn graded(&self, grades: &[CriterionScore]) -> CaseOutcome {
        CaseOutcome::Graded(judge::grade(&self.executor.preparer.pipeline().rubric, grades))
    }

    /// Notes the outcome of a case. With the last one of its judge, reports the verdict and returns the cells that waited
    /// for it.
    pub(super) fn settle(
        &mut self,
        case: &SelftestTask,
        outcome: CaseOutcome,
        stats: &mut RunStats<'_>,
    ) -> Result<Vec<Task>, RunError> {
        let selftest = self.selftest;
        let test = self.test_mut(case.judge);
        if !test.settle(&case.case, outcome) {
            return Ok(Vec::new());
        }
        let verdict = test.judge_by(selftest);
        stats.emit(&Event::SelftestCompleted { judge: &test.name, verdict: &verdict })?;
        // Where cases were left alone the reason is reported elsewhere: offline, budget, interrupted.
        if let (JudgeStatus::Untested, Some(why)) = (test.status, test.obstacle.clone()) {
            stats.note_untested(UntestedJudge { judge: test.name.clone(), why });
        }
        Ok(std::mem::take(&mut test.waiting))
    }
}

impl JudgeTest {
    fn new(name: String, selftest: &SelfTest) -> JudgeTest {
        JudgeTest {
            name,
            open: selftest.cases.len(),
            grades: BTreeMap::new(),
            unanswered: selftest.cases.iter().map(|case| case.id.clone()).collect(),
            obstacle: None,
            status: JudgeStatus::Pending,
            kept_contract: false,
            broke_contract: 0,
            waiting: Vec::new(),
        }
    }

    /// Notes the outcome of a case. Returns whether the judge can be judged by all of them now.
    fn settle(&mut self, case: &CaseId, outcome: CaseOutcome) -> bool {
        self.open = self.open.saturating_sub(1);
        match outcome {
            CaseOutcome::Unasked(why) => self.obstacle = self.obstacle.take().or(why),
            CaseOutcome::Graded(grades) => {
                self.unanswered.remove(case);
                self.grades.insert(case.clone(), grades);
            }
            CaseOutcome::Ungraded => drop(self.unanswered.remove(case)),
        }
        self.open == 0 && self.status == JudgeStatus::Pending
    }

    /// Returns whether the judge is given up by this reply.
    fn note_reply(&mut self, keeps_contract: bool) -> bool {
        self.kept_contract |= keeps_contract;
        self.broke_contract += u32::from(!keeps_contract);
        !self.kept_contract && self.broke_contract == GIVEN_UP_AFTER
    }

    fn is_given_up(&self) -> bool {
        !self.kept_contract && self.broke_contract >= GIVEN_UP_AFTER
    }

    fn judge_by(&mut self, selftest: &SelfTest) -> judge::SelfTestVerdict {
        let found = verdict(selftest, &self.grades);
        self.status = match found.passed {
            true => JudgeStatus::Qualified,
            false if cannot_pass(selftest, &self.grades, &self.unanswered) => JudgeStatus::Weak,
            false => JudgeStatus::Untested,
        };
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::fakes::all;
    use crate::judge::{Case, CaseKind, Expected};
    use base::locale::Locale;

    fn begun() -> JudgeTest {
        JudgeTest::new("judge".to_owned(), SelfTest::built_in(Locale::En))
    }

    /// A sound judge, but for the cases that `odd` speaks of.
    fn tested(odd: impl Fn(&Case) -> Option<CaseOutcome>) -> JudgeTest {
        let selftest = SelfTest::built_in(Locale::En);
        let mut test = begun();
        let sound = |case: &Case| {
            all(match case.kind.expected() {
                Expected::High => 5.0,
                Expected::Between => 3.0,
                Expected::Low | Expected::Unmoved => 1.0,
            })
        };
        for (number, case) in selftest.cases.iter().enumerate() {
            assert_eq!(test.status, JudgeStatus::Pending);
            let is_last = test.settle(&case.id, odd(case).unwrap_or_else(|| CaseOutcome::Graded(sound(case))));
            assert_eq!(is_last, number + 1 == selftest.cases.len());
        }
        test.judge_by(selftest);
        test
    }

    #[test]
    fn a_judge_is_given_up_once_and_only_if_no_reply_keeps_the_contract() {
        let (mut bad, mut good) = (begun(), begun());
        let given_up: Vec<bool> = (0..10).map(|_| bad.note_reply(false)).collect();
        assert_eq!(given_up.iter().position(|given_up| *given_up), Some(GIVEN_UP_AFTER as usize - 1));
        assert_eq!(given_up.iter().filter(|given_up| **given_up).count(), 1);
        assert!(bad.is_given_up() && !good.is_given_up());
        good.note_reply(true);
        assert!((0..20).all(|_| !good.note_reply(false)) && !good.is_given_up());
    }

    #[test]
    fn a_judge_is_weak_by_its_own_replies_alone() {
        assert_eq!(tested(|_| None).status, JudgeStatus::Qualified);
        assert_eq!(tested(|_| Some(CaseOutcome::Ungraded)).status, JudgeStatus::Weak);
        let unasked = |case: &Case| Some(CaseOutcome::Unasked(Some(case.id.to_string())));
        let decisive = tested(|case| (case.kind == CaseKind::Right).then(|| unasked(case)).flatten());
        assert_eq!((decisive.status, decisive.obstacle.is_some()), (JudgeStatus::Untested, true));
        let one = tested(|case| (case.id.0 == "wrong-1").then(|| unasked(case)).flatten());
        assert_eq!(one.status, JudgeStatus::Qualified, "three misses are allowed");
        let obeys = tested(|case| match case.kind {
            CaseKind::Injection => Some(CaseOutcome::Graded(all(5.0))),
            CaseKind::Right => unasked(case),
            _ => None,
        });
        assert_eq!(obeys.status, JudgeStatus::Weak, "it obeyed an answer, whatever it would have said of the others");
    }
}
