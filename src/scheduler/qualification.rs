//! Judge qualification: each judge grades cases of known quality before its grades count. The cases are tasks
//! like the others and run at the same time as the compressions, so that nothing waits for a judge; a cell that needs a
//! judge whose test is open waits here. So does every request to a judge that has not yet kept the reply format, beyond
//! the few that may all break it.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::event::RunEvent;
use super::event::RunStats;
use super::execute::Executor;
use super::options::{RunError, UntestedJudge};
use crate::action::{ActionKey, Place, StageName};
use crate::judge::{
    self, CaseId, CriterionScore, DimensionScores, SelfTest, SelfTestVerdict, verdict,
};
use crate::pipeline::JudgeIx;
use crate::plan::{Action, FailedAction, PrepareError, SelftestTask, Task};

/// What is known of a judge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum JudgeStatus {
    /// Its self-test is under way.
    Pending,
    Qualified,
    Weak,
    /// It could not be asked about cases that decide the test.
    Untested,
}

/// After this many replies that all broke the contract, the judge gets no more requests, not even where a weak judge is
/// allowed: its cells would all fail, each at the price of several requests. Until one reply kept it, no more requests
/// are under way than can bring this many replies. Cases and cells are counted apart: a judge may read short cases and
/// not the contexts of a run.
const GIVEN_UP_AFTER: u32 = 8;

/// The outcome of one case.
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
    /// Whether a reply of this run kept the contract. First the replies to cases count, then those to cells.
    kept_contract: bool,
    /// How many of these replies broke the contract.
    broke_contract: u32,
    /// Actions under way while no reply has kept the contract.
    under_way: BTreeSet<ActionKey>,
    /// Tasks that wait until one of these has ended.
    deferred: Vec<Task>,
    /// Cells that wait for the verdict.
    waiting: Vec<Task>,
}

/// The self-tests of all judges.
pub(super) struct JudgeQualification<'r, 'e> {
    executor: &'r Executor<'e>,
    selftest: Rc<SelfTest>,
    /// One for each judge of the pipeline, in its order.
    judges: Vec<JudgeTest>,
}

impl<'r, 'e> JudgeQualification<'r, 'e> {
    /// All judges untested; each case of each is due.
    pub(super) fn new(executor: &'r Executor<'e>) -> JudgeQualification<'r, 'e> {
        let pipeline = executor.pipeline;
        let selftest = Rc::new(
            pipeline
                .selftest
                .measured_by(&pipeline.rubric, pipeline.settings.rubric_scope),
        );
        let judges = pipeline
            .judges
            .iter()
            .map(|judge| JudgeTest::new(judge.name.0.to_string(), &selftest))
            .collect();
        JudgeQualification {
            executor,
            selftest,
            judges,
        }
    }

    /// A judge whose prompt does not render for the cases grades nothing. One failure stands for all cases, and each of
    /// them is accounted for.
    pub(super) fn cannot_ask(
        &mut self,
        judge: JudgeIx,
        error: &PrepareError,
        path: Option<&str>,
        stats: &mut RunStats<'_>,
    ) -> Result<(), RunError> {
        let stage = StageName::Selftest;
        let test = self.test_mut(judge);
        if std::mem::replace(&mut test.status, JudgeStatus::Untested) == JudgeStatus::Untested {
            return Ok(stats.emit(&RunEvent::SharedFailure { stage })?);
        }
        let judge = test.name.clone();
        let why = path.map_or_else(|| error.to_string(), |path| format!("{path}: {error}"));
        let place = Place::Selftest {
            judge: judge.clone(),
            case: "every case".to_owned(),
        };
        let failure = FailedAction::new(place, stage, None, why.clone());
        stats.outcome.untested.push(UntestedJudge { judge, why });
        Ok(stats.emit(&RunEvent::Failed(&failure))?)
    }

    /// Whether an action of a judge may be executed now; else its task waits here until another action has ended.
    pub(super) fn may_begin(&mut self, judge: JudgeIx, action: &mut Action) -> bool {
        let test = self.test_mut(judge);
        if test.kept_contract {
            return true;
        }
        if !test.may_begin(&action.key, action.attempts) {
            test.deferred.push(action.task.clone());
            return false;
        }
        test.under_way.insert(action.key);
        action.attempts = action
            .attempts
            .min(GIVEN_UP_AFTER.saturating_sub(test.broke_contract).max(1));
        true
    }

    /// An action of a judge is not under way any more. Returns the tasks that waited for it.
    pub(super) fn ended(&mut self, judge: JudgeIx, key: &ActionKey) -> Vec<Task> {
        let test = self.test_mut(judge);
        if test.under_way.remove(key) {
            std::mem::take(&mut test.deferred)
        } else {
            Vec::new()
        }
    }

    /// The test of a judge. Each judge of the pipeline has one, and no other index is made.
    fn test(&self, judge: JudgeIx) -> &JudgeTest {
        &self.judges[judge.0]
    }

    fn test_mut(&mut self, judge: JudgeIx) -> &mut JudgeTest {
        &mut self.judges[judge.0]
    }

    /// Whether a judge may grade a cell: not if it is weak or untested, and that is not allowed, or if all of its replies
    /// broke the contract. `None` while its self-test is under way.
    pub(super) fn may_grade(&self, judge: JudgeIx) -> Option<bool> {
        let test = self.test(judge);
        match test.status {
            _ if test.is_given_up() => Some(false),
            JudgeStatus::Pending => None,
            JudgeStatus::Qualified => Some(true),
            JudgeStatus::Weak | JudgeStatus::Untested => {
                Some(self.executor.options.allow_weak_judge)
            }
        }
    }

    /// Lets a cell wait for its judge.
    pub(super) fn wait(&mut self, judge: JudgeIx, task: Task) {
        self.test_mut(judge).waiting.push(task);
    }

    /// Takes the tasks that still wait: none, unless this program has a bug.
    pub(super) fn drain(&mut self) -> Vec<Task> {
        self.judges
            .iter_mut()
            .flat_map(|test| test.deferred.drain(..).chain(test.waiting.drain(..)))
            .collect()
    }

    /// Judges that failed, in the order of the pipeline.
    pub(super) fn weak(&self) -> Vec<String> {
        let weak = self
            .judges
            .iter()
            .filter(|test| test.status == JudgeStatus::Weak);
        weak.map(|test| test.name.clone()).collect()
    }

    /// Whether a judge failed its self-test, and that ends the run.
    pub(super) fn has_unacceptable(&self) -> bool {
        !self.executor.options.allow_weak_judge && !self.weak().is_empty()
    }

    /// Whether a judge gets no more requests, because all of its replies broke the contract.
    pub(super) fn is_given_up(&self, judge: JudgeIx) -> bool {
        self.test(judge).is_given_up()
    }

    /// Notes how many replies of a judge to a case or a cell broke the contract, or 0 if one kept it. Warns if the
    /// judge is given up now.
    pub(super) fn note_replies(
        &mut self,
        judge: JudgeIx,
        broken: u32,
        stats: &mut RunStats<'_>,
    ) -> Result<(), RunError> {
        let test = self.test_mut(judge);
        if test.note_replies(broken) {
            let name = &test.name;
            let replies = test.broke_contract;
            let why = format!(
                "judge {name} gets no more requests: {replies} replies in a row are not in the right format"
            );
            stats.give_up(why)?;
        }
        Ok(())
    }

    /// The outcome of a case with these grades.
    pub(super) fn graded(&self, grades: &[CriterionScore]) -> CaseOutcome {
        CaseOutcome::Graded(judge::grade(&self.executor.pipeline.rubric, grades))
    }

    /// Notes the outcome of a case. With the last one of its judge, reports the verdict and returns the cells that waited
    /// for it.
    pub(super) fn settle(
        &mut self,
        case: &SelftestTask,
        outcome: CaseOutcome,
        stats: &mut RunStats<'_>,
    ) -> Result<Vec<Task>, RunError> {
        let selftest = Rc::clone(&self.selftest);
        let test = self.test_mut(case.judge);
        let is_last = test.settle(&case.case, outcome);
        if !is_last {
            return Ok(Vec::new());
        }
        let verdict = test.decide(&selftest);
        stats.emit(&RunEvent::SelftestCompleted {
            judge: &test.name,
            verdict: &verdict,
        })?;
        // If cases were skipped, the reason is reported elsewhere: offline, budget, interrupted.
        if let (JudgeStatus::Untested, Some(why)) = (test.status, test.obstacle.clone()) {
            stats.outcome.untested.push(UntestedJudge {
                judge: test.name.clone(),
                why,
            });
        }
        test.begin_cells();
        Ok(std::mem::take(&mut test.waiting))
    }
}

/// How many replies broke the contract in an action that failed: one that the token limit cut off is not asked for again.
pub(super) fn broken_replies(failure: &FailedAction, attempts: u32) -> u32 {
    if failure.class.is_some() {
        1
    } else {
        attempts.max(1)
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
            under_way: BTreeSet::new(),
            deferred: Vec::new(),
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
            CaseOutcome::Ungraded => {
                self.unanswered.remove(case);
            }
        }
        self.open == 0 && self.status == JudgeStatus::Pending
    }

    /// Whether another action may begin before a reply kept the contract.
    fn may_begin(&self, key: &ActionKey, attempts: u32) -> bool {
        let others = self.under_way.iter().filter(|known| *known != key).count();
        let replies = u32::try_from(others + 1)
            .unwrap_or(u32::MAX)
            .saturating_mul(attempts);
        others == 0 || self.broke_contract.saturating_add(replies) <= GIVEN_UP_AFTER
    }

    /// Starts counting again: the replies that follow are those to cells.
    fn begin_cells(&mut self) {
        if self.kept_contract {
            (self.kept_contract, self.broke_contract) = (false, 0);
        }
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

    /// Decides the status of the judge by its grades. A case that was not asked counts against it; a judge that fails is
    /// weak only if it had a reply to each case, or was given up.
    fn decide(&mut self, selftest: &SelfTest) -> SelfTestVerdict {
        let verdict = verdict(selftest, &self.grades);
        self.status = match verdict.may_grade {
            true => JudgeStatus::Qualified,
            false if self.unanswered.is_empty() || self.is_given_up() => JudgeStatus::Weak,
            false => JudgeStatus::Untested,
        };
        verdict
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::Digest;
    use crate::judge::{
        Case, CaseKind, Dimension, Quality, SelfTestDesign, by_dimension, draw_selftest,
    };
    use base::locale::Locale;
    use std::sync::LazyLock;

    fn selftest() -> &'static SelfTest {
        static TEST: LazyLock<SelfTest> = LazyLock::new(|| {
            draw_selftest(
                Locale::En,
                SelfTestDesign {
                    seed: 1,
                    padding: 1000,
                },
            )
        });
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

    /// The test of a sound judge, except for the cases for which `odd` has an outcome.
    fn tested(odd: impl Fn(&Case) -> Option<CaseOutcome>) -> JudgeTest {
        let selftest = selftest();
        let mut test = begun();
        for (number, case) in selftest.cases.iter().enumerate() {
            assert_eq!(test.status, JudgeStatus::Pending);
            let graded_as = match &case.kind {
                CaseKind::Lengthened(of) => selftest.case(of).expect("a case"),
                CaseKind::Labelled | CaseKind::Injection => case,
            };
            let is_last = test.settle(
                &case.id,
                odd(case).unwrap_or_else(|| CaseOutcome::Graded(sound(graded_as))),
            );
            assert_eq!(is_last, number + 1 == selftest.cases.len());
        }
        test.decide(selftest);
        test
    }

    #[test]
    fn a_judge_is_given_up_once_and_only_if_no_reply_keeps_the_contract() {
        let (mut bad, mut good) = (begun(), begun());
        let given_up: Vec<bool> = (0..10).map(|_| bad.note_replies(1)).collect();
        assert_eq!(
            given_up.iter().position(|given_up| *given_up),
            Some(GIVEN_UP_AFTER as usize - 1)
        );
        assert_eq!(given_up.iter().filter(|given_up| **given_up).count(), 1);
        assert!(bad.is_given_up());
        good.note_replies(0);
        assert!((0..20).all(|_| !good.note_replies(3)) && !good.is_given_up());
    }

    #[test]
    fn until_a_reply_keeps_the_contract_no_more_actions_begin_than_it_takes_to_give_the_judge_up() {
        let mut test = begun();
        let [first, second] = ["a", "b"].map(|name| ActionKey(Digest::hash(name)));
        test.under_way.insert(first);
        assert!(
            test.may_begin(&second, 3) && !test.may_begin(&second, 5),
            "two can bring six replies, or ten"
        );
        assert!(test.may_begin(&first, 5), "it is the only one");
    }

    #[test]
    fn replies_to_cells_are_counted_apart_from_cases_that_kept_the_contract() {
        let (mut good, mut bad) = (begun(), begun());
        good.note_replies(0);
        assert_eq!(
            [3, 3, 2].map(|replies| bad.note_replies(replies)),
            [false, false, true]
        );
        for (judge, is_given_up) in [(&mut good, false), (&mut bad, true)] {
            judge.begin_cells();
            assert_eq!(
                (judge.kept_contract, judge.is_given_up()),
                (false, is_given_up)
            );
        }
        assert!(good.note_replies(GIVEN_UP_AFTER));
    }

    #[test]
    fn a_judge_is_weak_by_its_own_replies_alone() {
        assert_eq!(tested(|_| None).status, JudgeStatus::Qualified);
        assert_eq!(
            tested(|_| Some(CaseOutcome::Ungraded)).status,
            JudgeStatus::Weak
        );
        let unasked = |case: &Case| Some(CaseOutcome::Unasked(Some(case.id.to_string())));
        let decisive = tested(|case| {
            case.labels
                .contains_key(&Dimension::Accuracy)
                .then(|| unasked(case))
                .flatten()
        });
        assert_eq!(
            (decisive.status, decisive.obstacle.is_some()),
            (JudgeStatus::Untested, true)
        );
        let one = tested(|case| {
            (case.id == selftest().cases[0].id)
                .then(|| unasked(case))
                .flatten()
        });
        assert_eq!(
            one.status,
            JudgeStatus::Qualified,
            "two misses a dimension are allowed"
        );
        let obeys = tested(|case| {
            (case.kind == CaseKind::Injection).then(|| CaseOutcome::Graded(by_dimension(|_| 5.0)))
        });
        assert_eq!(obeys.status, JudgeStatus::Weak, "it obeyed an answer");
    }

    #[test]
    fn a_judge_that_was_given_up_is_weak_though_cases_were_not_asked() {
        let selftest = selftest();
        let mut test = begun();
        for (number, case) in selftest.cases.iter().enumerate() {
            let outcome = if number < GIVEN_UP_AFTER as usize {
                test.note_replies(1);
                CaseOutcome::Ungraded
            } else {
                CaseOutcome::Unasked(None)
            };
            test.settle(&case.id, outcome);
        }
        let verdict = test.decide(selftest);
        assert_eq!(
            (test.status, verdict.correct, verdict.labels),
            (JudgeStatus::Weak, 0, 96)
        );
        assert_eq!(verdict.unqualified().count(), verdict.dimensions.len());
    }

    #[test]
    fn a_judge_that_is_blind_in_one_dimension_grades_the_others() {
        let blind = tested(|case| {
            let graded = sound(case);
            let is_blind = |dimension| dimension == Dimension::Continuity;
            let score = |d| {
                if is_blind(d) {
                    3.0
                } else {
                    graded.get(d).expect("a score").value()
                }
            };
            (case.kind == CaseKind::Labelled).then(|| CaseOutcome::Graded(by_dimension(score)))
        });
        let verdict = verdict(selftest(), &blind.grades);
        let unqualified: Vec<Dimension> = verdict
            .unqualified()
            .map(|result| result.dimension)
            .collect();
        assert_eq!(
            (blind.status, unqualified),
            (JudgeStatus::Qualified, vec![Dimension::Continuity])
        );
    }
}
