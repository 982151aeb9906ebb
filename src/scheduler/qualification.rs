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
use crate::judge::{self, CaseId, CriterionScore, Dimension, DimensionScores, SelfTest, cannot_grade, verdict};
use crate::pipeline::JudgeIx;
use crate::plan::{CurrentSources, Output, PrepareError, SelftestTask, Task, selftest};
use crate::results::{Blame, FailedAction, FailureLocation, UnqualifiedJudge};

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
/// is allowed: its cells would all fail, each at the price of several requests. Until one reply is kept, no more cases are
/// under way than can bring this many replies.
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
    /// Cases without an outcome, and how many of them were begun.
    open: usize,
    begun: usize,
    grades: BTreeMap<CaseId, DimensionScores>,
    /// Cases that the judge has not replied to.
    unanswered: BTreeSet<CaseId>,
    /// Why cases could not be asked, the first reason.
    obstacle: Option<String>,
    status: JudgeStatus,
    /// The dimensions in which it is not qualified.
    unqualified: Vec<Dimension>,
    /// Whether a reply to this run kept the contract, and how many broke it; of cases and of cells.
    kept_contract: bool,
    broke_contract: u32,
    waiting: Vec<Task>,
}

/// The self-tests of all judges.
pub(super) struct JudgeQualification<'r, 'e> {
    executor: &'r Executor<'e>,
    selftest: &'r SelfTest,
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
        let selftest = &*pipeline.selftest;
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

    /// How many replies of a judge to one request may break the contract.
    pub(super) fn attempts(&self, judge: JudgeIx) -> u32 {
        self.executor.preparer.pipeline().judge(judge).attempts
    }

    /// The next case to begin.
    pub(super) fn next_case(&mut self) -> Option<SelftestTask> {
        let may_begin = |case: &SelftestTask| {
            let test = self.test(case.judge);
            test.kept_contract || test.may_begin(case.attempts)
        };
        let mut case = self.cases.remove(self.cases.iter().rposition(may_begin)?);
        let test = self.test_mut(case.judge);
        test.begun += 1;
        if !test.kept_contract {
            case.attempts = case.attempts.min(GIVEN_UP_AFTER.saturating_sub(test.broke_contract).max(1));
        }
        Some(case)
    }

    /// Gives a case back that could not be begun yet.
    pub(super) fn put_back(&mut self, case: SelftestTask) {
        let test = self.test_mut(case.judge);
        test.begun = test.begun.saturating_sub(1);
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

    /// The dimensions that a judge may not grade, by judge, in the order of the pipeline.
    pub(super) fn unqualified(&self) -> Vec<UnqualifiedJudge> {
        let partly = self.judges.iter().filter(|test| !test.unqualified.is_empty());
        let named = |test: &JudgeTest| (test.name.clone(), test.unqualified.clone());
        partly.map(named).map(|(judge, dimensions)| UnqualifiedJudge { judge, dimensions }).collect()
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
        test.is_given_up() || (!self.asks_all && cannot_grade(self.selftest, &test.grades, &test.unanswered))
    }

    /// Notes what a judge replied to a case or to a cell: how many replies broke the contract, or 0 if one kept it. Reports
    /// when the judge is given up by it.
    pub(super) fn note_replies(
        &mut self,
        judge: JudgeIx,
        broken: u32,
        stats: &mut RunStats<'_>,
    ) -> Result<(), RunError> {
        let test = self.test_mut(judge);
        if test.note_replies(broken) {
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
        self.note_replies(case.judge, 0, stats)?;
        Ok(match &fresh.output {
            Output::Grades(grades) => self.graded(grades),
            _ => CaseOutcome::Ungraded,
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
        self.note_replies(case.judge, broken_replies(failure, case.attempts), stats)?;
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

/// How many replies broke the contract in an action that failed: one that the token limit cut off is not asked for again.
pub(super) fn broken_replies(failure: &FailedAction, attempts: u32) -> u32 {
    if failure.class.is_some() { 1 } else { attempts.max(1) }
}

impl JudgeTest {
    fn new(name: String, selftest: &SelfTest) -> JudgeTest {
        JudgeTest {
            name,
            open: selftest.cases.len(),
            begun: 0,
            unqualified: Vec::new(),
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
        self.begun = self.begun.saturating_sub(1);
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

    /// Whether another case may begin before a reply kept the contract.
    fn may_begin(&self, attempts: u32) -> bool {
        let under_way = u32::try_from(self.begun).unwrap_or(u32::MAX).saturating_add(1).saturating_mul(attempts);
        self.begun == 0 || self.broke_contract.saturating_add(under_way) <= GIVEN_UP_AFTER
    }

    /// Returns whether the judge is given up by these replies.
    fn note_replies(&mut self, broken: u32) -> bool {
        let was_given_up = self.is_given_up();
        self.kept_contract |= broken == 0;
        self.broke_contract = self.broke_contract.saturating_add(broken);
        !was_given_up && self.is_given_up()
    }

    fn is_given_up(&self) -> bool {
        !self.kept_contract && self.broke_contract >= GIVEN_UP_AFTER
    }

    fn judge_by(&mut self, selftest: &SelfTest) -> judge::SelfTestVerdict {
        let found = verdict(selftest, &self.grades);
        self.unqualified = found.unqualified().map(|result| result.dimension).collect();
        self.status = match found.may_grade {
            true => JudgeStatus::Qualified,
            false if cannot_grade(selftest, &self.grades, &self.unanswered) => JudgeStatus::Weak,
            false => JudgeStatus::Untested,
        };
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::fakes::by_dimension;
    use crate::judge::{Case, CaseKind, Quality, SelfTestDesign, draw_selftest};
    use base::locale::Locale;
    use std::sync::LazyLock;

    fn selftest() -> &'static SelfTest {
        static TEST: LazyLock<SelfTest> =
            LazyLock::new(|| draw_selftest(Locale::En, SelfTestDesign { seed: 1, padding: 1000 }));
        &TEST
    }

    fn begun() -> JudgeTest {
        JudgeTest::new("judge".to_owned(), selftest())
    }

    fn sound(case: &Case) -> DimensionScores {
        by_dimension(|dimension| match case.labels.get(&dimension) {
            Some(Quality::Right) => 5.0,
            Some(Quality::Half) => 3.0,
            Some(Quality::Wrong) | None => 1.0,
        })
    }

    /// A sound judge, but for the cases that `odd` speaks of.
    fn tested(odd: impl Fn(&Case) -> Option<CaseOutcome>) -> JudgeTest {
        let selftest = selftest();
        let mut test = begun();
        for (number, case) in selftest.cases.iter().enumerate() {
            assert_eq!(test.status, JudgeStatus::Pending);
            let of = match &case.kind {
                CaseKind::Lengthened(of) => selftest.case(of).expect("a case"),
                CaseKind::Labelled | CaseKind::Injection => case,
            };
            let is_last = test.settle(&case.id, odd(case).unwrap_or_else(|| CaseOutcome::Graded(sound(of))));
            assert_eq!(is_last, number + 1 == selftest.cases.len());
        }
        test.judge_by(selftest);
        test
    }

    #[test]
    fn a_judge_is_given_up_once_and_only_if_no_reply_keeps_the_contract() {
        let (mut bad, mut good) = (begun(), begun());
        let given_up: Vec<bool> = (0..10).map(|_| bad.note_replies(1)).collect();
        assert_eq!(given_up.iter().position(|given_up| *given_up), Some(GIVEN_UP_AFTER as usize - 1));
        assert_eq!(given_up.iter().filter(|given_up| **given_up).count(), 1);
        assert!(bad.is_given_up() && !good.is_given_up());
        good.note_replies(0);
        assert!((0..20).all(|_| !good.note_replies(3)) && !good.is_given_up());
        let mut alone = begun();
        alone.begun = 1;
        assert!(alone.may_begin(3) && !alone.may_begin(5), "two cases can bring six replies, or ten");
        let mut repeated = begun();
        assert_eq!([3, 3, 2].map(|replies| repeated.note_replies(replies)), [false, false, true]);
    }

    #[test]
    fn a_judge_is_weak_by_its_own_replies_alone() {
        assert_eq!(tested(|_| None).status, JudgeStatus::Qualified);
        assert_eq!(tested(|_| Some(CaseOutcome::Ungraded)).status, JudgeStatus::Weak);
        let unasked = |case: &Case| Some(CaseOutcome::Unasked(Some(case.id.to_string())));
        let decisive = tested(|case| case.labels.contains_key(&Dimension::Accuracy).then(|| unasked(case)).flatten());
        assert_eq!((decisive.status, decisive.obstacle.is_some()), (JudgeStatus::Untested, true));
        let one = tested(|case| (case.id == selftest().cases[0].id).then(|| unasked(case)).flatten());
        assert_eq!(one.status, JudgeStatus::Qualified, "two misses a dimension are allowed");
        let obeys =
            tested(|case| (case.kind == CaseKind::Injection).then(|| CaseOutcome::Graded(by_dimension(|_| 5.0))));
        assert_eq!(obeys.status, JudgeStatus::Weak, "it obeyed an answer");
    }

    #[test]
    fn a_judge_that_is_blind_in_one_dimension_grades_the_others() {
        let blind = tested(|case| {
            let graded = sound(case);
            let is_blind = |dimension| dimension == Dimension::Continuity;
            let score = |d| if is_blind(d) { 3.0 } else { graded.get(d).expect("a score").value() };
            (case.kind == CaseKind::Labelled).then(|| CaseOutcome::Graded(by_dimension(score)))
        });
        assert_eq!((blind.status, blind.unqualified), (JudgeStatus::Qualified, vec![Dimension::Continuity]));
    }
}
