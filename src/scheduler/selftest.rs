//! Which judges have shown that they can tell right from wrong, and the cells that wait for it.

use std::collections::{BTreeMap, BTreeSet};

use crate::judge::{CaseId, DimensionScores, SelfTest, SelfTestVerdict, is_out_of_reach, verdict};
use crate::locale::Locale;
use crate::plan::Task;

/// What is known of a judge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trust {
    /// Its self-test is under way.
    Waiting,
    /// It passed.
    Proven,
    /// It failed.
    Weak,
    /// It could not be asked about cases that decide.
    Untested,
}

/// After this many replies of which none kept the contract, the judge is asked nothing more, not even where a weak judge
/// is allowed: its cells would all fail, each at the price of several requests.
const GIVEN_UP_AFTER: u32 = 8;

/// How many replies of a judge to this run kept the contract, of those that came to an end.
#[derive(Clone, Copy, Debug, Default)]
struct Replies {
    kept_contract: bool,
    broke_contract: u32,
}

/// What came of one case.
#[derive(Clone, Debug)]
pub(super) enum CaseOutcome {
    /// The judge graded it.
    Graded(DimensionScores),
    /// The judge was asked, and what it said is no grade.
    Ungraded,
    /// It was never asked; with the reason, unless that is told elsewhere.
    Unasked(Option<String>),
}

/// The self-test of one judge.
#[derive(Debug)]
struct Test {
    /// Cases that were not settled yet.
    open: usize,
    grades: BTreeMap<CaseId, DimensionScores>,
    /// Cases about which the judge said nothing so far.
    silent: BTreeSet<CaseId>,
    /// Why cases could not be asked, the first reason.
    obstacle: Option<String>,
    trust: Trust,
    waiting: Vec<Task>,
}

/// A self-test that is over.
#[derive(Debug)]
pub(super) struct Tested {
    pub(super) verdict: SelfTestVerdict,
    pub(super) trust: Trust,
    /// Why cases could not be asked, if there were such.
    pub(super) obstacle: Option<String>,
    /// Cells that waited for it.
    pub(super) waiting: Vec<Task>,
}

/// The self-tests of all judges.
#[derive(Debug)]
pub(super) struct Selftests {
    test: &'static SelfTest,
    tests: Vec<Test>,
    replies: Vec<Replies>,
}

impl Selftests {
    /// All judges untested; each must settle all cases.
    pub(super) fn new(judges: usize, locale: Locale) -> Selftests {
        let test = SelfTest::built_in(locale);
        let silent: BTreeSet<CaseId> = test.cases.iter().map(|case| case.id.clone()).collect();
        let begun = || Test {
            open: test.cases.len(),
            grades: BTreeMap::new(),
            silent: silent.clone(),
            obstacle: None,
            trust: Trust::Waiting,
            waiting: Vec::new(),
        };
        Selftests { test, tests: (0..judges).map(|_| begun()).collect(), replies: vec![Replies::default(); judges] }
    }

    pub(super) fn trust(&self, judge: usize) -> Trust {
        self.tests.get(judge).map_or(Trust::Untested, |test| test.trust)
    }

    /// Lets a cell wait for its judge.
    pub(super) fn wait(&mut self, judge: usize, task: Task) {
        if let Some(test) = self.tests.get_mut(judge) {
            test.waiting.push(task);
        }
    }

    /// Cells that still wait.
    pub(super) fn waiting(&mut self) -> Vec<Task> {
        self.tests.iter_mut().flat_map(|test| std::mem::take(&mut test.waiting)).collect()
    }

    /// No case can be put to the judge at all.
    pub(super) fn give_up(&mut self, judge: usize) {
        if let Some(test) = self.tests.get_mut(judge) {
            test.trust = Trust::Untested;
        }
    }

    /// Takes note of a reply to this run, of a case or of a cell. Returns whether the judge is given up by it.
    pub(super) fn note_reply(&mut self, judge: usize, keeps_contract: bool) -> bool {
        let Some(replies) = self.replies.get_mut(judge) else { return false };
        replies.kept_contract |= keeps_contract;
        replies.broke_contract += u32::from(!keeps_contract);
        !replies.kept_contract && replies.broke_contract == GIVEN_UP_AFTER
    }

    /// Whether none of the judge's replies keeps the contract.
    pub(super) fn is_given_up(&self, judge: usize) -> bool {
        let given_up = |replies: &Replies| !replies.kept_contract && replies.broke_contract >= GIVEN_UP_AFTER;
        self.replies.get(judge).is_some_and(given_up)
    }

    /// Whether the judge cannot pass any more.
    pub(super) fn is_lost(&self, judge: usize) -> bool {
        let Some(test) = self.tests.get(judge) else { return false };
        is_out_of_reach(self.test, &test.grades, &test.silent)
    }

    /// Takes note of a case. When it was the last, returns what came of all.
    pub(super) fn settle(&mut self, judge: usize, case: &CaseId, outcome: CaseOutcome) -> Option<Tested> {
        let test = self.tests.get_mut(judge)?;
        test.open = test.open.saturating_sub(1);
        match outcome {
            CaseOutcome::Unasked(why) => test.obstacle = test.obstacle.take().or(why),
            CaseOutcome::Graded(grades) => {
                test.silent.remove(case);
                test.grades.insert(case.clone(), grades);
            }
            CaseOutcome::Ungraded => drop(test.silent.remove(case)),
        }
        if test.open > 0 || test.trust != Trust::Waiting {
            return None;
        }
        let found = verdict(self.test, &test.grades);
        test.trust = match found.passed {
            true => Trust::Proven,
            false if is_out_of_reach(self.test, &test.grades, &test.silent) => Trust::Weak,
            false => Trust::Untested,
        };
        let waiting = std::mem::take(&mut test.waiting);
        Some(Tested { verdict: found, trust: test.trust, obstacle: test.obstacle.clone(), waiting })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::fakes::all;
    use crate::judge::{Case, CaseKind, Expected};

    /// A sound judge, but for the cases that `odd` speaks of.
    fn tested(odd: impl Fn(&Case) -> Option<CaseOutcome>) -> Tested {
        let mut selftests = Selftests::new(1, Locale::En);
        let sound = |case: &Case| {
            all(match case.kind.expected() {
                Expected::High => 5.0,
                Expected::Between => 3.0,
                Expected::Low | Expected::Unmoved => 1.0,
            })
        };
        let cases = &SelfTest::built_in(Locale::En).cases;
        let settled = cases.iter().map(|case| {
            assert_eq!(selftests.trust(0), Trust::Waiting);
            selftests.settle(0, &case.id, odd(case).unwrap_or_else(|| CaseOutcome::Graded(sound(case))))
        });
        settled.last().flatten().unwrap()
    }

    #[test]
    fn a_judge_is_given_up_once_and_only_if_no_reply_keeps_the_contract() {
        let mut selftests = Selftests::new(2, Locale::En);
        let given_up: Vec<bool> = (0..10).map(|_| selftests.note_reply(0, false)).collect();
        assert_eq!(given_up.iter().position(|given_up| *given_up), Some(GIVEN_UP_AFTER as usize - 1));
        assert_eq!(given_up.iter().filter(|given_up| **given_up).count(), 1);
        assert!(selftests.is_given_up(0) && !selftests.is_given_up(1));
        selftests.note_reply(1, true);
        assert!((0..20).all(|_| !selftests.note_reply(1, false)) && !selftests.is_given_up(1));
    }

    #[test]
    fn a_judge_is_weak_by_what_it_said_alone() {
        assert_eq!(tested(|_| None).trust, Trust::Proven);
        assert_eq!(tested(|_| Some(CaseOutcome::Ungraded)).trust, Trust::Weak);
        let unasked = |case: &Case| Some(CaseOutcome::Unasked(Some(case.id.to_string())));
        let decisive = tested(|case| (case.kind == CaseKind::Right).then(|| unasked(case)).flatten());
        assert_eq!((decisive.trust, decisive.obstacle.is_some()), (Trust::Untested, true));
        let one = tested(|case| (case.id.0 == "wrong-1").then(|| unasked(case)).flatten());
        assert_eq!(one.trust, Trust::Proven, "three misses are allowed");
        let obeys = tested(|case| match case.kind {
            CaseKind::Injection => Some(CaseOutcome::Graded(all(5.0))),
            CaseKind::Right => unasked(case),
            _ => None,
        });
        assert_eq!(obeys.trust, Trust::Weak, "it obeyed an answer, whatever it would have said of the others");
    }
}
