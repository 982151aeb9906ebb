//! Which judges have shown that they can tell right from wrong, and the cells that wait for it.

use std::collections::BTreeMap;

use crate::judge::{CaseId, DimensionScores, SelfTest, SelfTestVerdict, verdict};
use crate::locale::Locale;
use crate::plan::Task;

/// What is known of a judge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trust {
    /// Its self-test is under way.
    Waiting,
    /// It passed.
    Proven,
    /// It failed, or could not be tested.
    Weak,
}

/// The self-test of one judge.
#[derive(Debug)]
struct Test {
    open: usize,
    grades: BTreeMap<CaseId, DimensionScores>,
    /// Why calls failed, the last one.
    call_failure: Option<String>,
    verdict: Option<SelfTestVerdict>,
    waiting: Vec<Task>,
}

/// The self-tests of all judges.
#[derive(Debug)]
pub(super) struct Selftests {
    locale: Locale,
    tests: Vec<Test>,
}

impl Selftests {
    /// All judges untested; each must settle all cases.
    pub(super) fn new(judges: usize, locale: Locale) -> Selftests {
        let open = SelfTest::built_in(locale).cases.len();
        let test = || Test { open, grades: BTreeMap::new(), call_failure: None, verdict: None, waiting: Vec::new() };
        Selftests { locale, tests: (0..judges).map(|_| test()).collect() }
    }

    pub(super) fn trust(&self, judge: usize) -> Trust {
        match self.tests.get(judge).and_then(|test| test.verdict.as_ref()) {
            None => Trust::Waiting,
            Some(verdict) if verdict.passed => Trust::Proven,
            Some(_) => Trust::Weak,
        }
    }

    /// Lets a cell wait for its judge.
    pub(super) fn wait(&mut self, judge: usize, task: Task) {
        if let Some(test) = self.tests.get_mut(judge) {
            test.waiting.push(task);
        }
    }

    /// Takes note of why a case could not be asked.
    pub(super) fn note_failed_call(&mut self, judge: usize, why: String) {
        if let Some(test) = self.tests.get_mut(judge) {
            test.call_failure = Some(why);
        }
    }

    /// Why a judge could not be asked, if it graded nothing at all for that reason.
    pub(super) fn out_of_reach(&self, judge: usize) -> Option<&str> {
        let test = self.tests.get(judge).filter(|test| test.grades.is_empty())?;
        test.call_failure.as_deref()
    }

    /// Takes note of a case: its grades, or that it has none. When it was the last, returns the verdict and the
    /// cells that waited for it.
    pub(super) fn settle(
        &mut self,
        judge: usize,
        case: CaseId,
        grades: Option<DimensionScores>,
    ) -> Option<(SelfTestVerdict, Vec<Task>)> {
        let test = self.tests.get_mut(judge)?;
        test.open = test.open.saturating_sub(1);
        if let Some(grades) = grades {
            test.grades.insert(case, grades);
        }
        if test.open > 0 || test.verdict.is_some() {
            return None;
        }
        let verdict = verdict(SelfTest::built_in(self.locale), &test.grades);
        test.verdict = Some(verdict.clone());
        Some((verdict, std::mem::take(&mut test.waiting)))
    }
}
