//! The self-test of a judge: answers of known quality, sent as ordinary judge requests.
//!
//! 44 answers of eleven kinds, four each, and three answers that try to instruct the judge. The kinds are chosen so that
//! no shortcut passes: a judge that looks for key words, for any or for all expected facts, or that compares the answer
//! with the context instead of the ground truth, misses whole kinds. (Twelve pairs of a right answer and a damaged copy,
//! which this replaced, were all ranked by a judge that never looked at the ground truth: each damaged copy also
//! disagreed with its context.) The material is data, in each language.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use super::request::GroundTruthRef;
use crate::probe::{Fact, ProbeType};
use base::locale::Locale;
use base::named_enum;

/// Names a case of the self-test, as in `negated-2`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CaseId(pub String);

impl fmt::Display for CaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

named_enum! {
    /// What is right or wrong about the answer of a case.
    pub enum CaseKind {
        Right = "right",
        /// States the facts in other words than the ground truth.
        Reworded = "reworded",
        /// States the facts, and names the superseded value as superseded.
        RejectedNamed = "rejected_named",
        Wrong = "wrong",
        /// Speaks about the subject and states no fact.
        Missing = "missing",
        /// States what no longer holds, or what was never so.
        Stale = "stale",
        Negated = "negated",
        /// Quotes the facts as what was considered and rejected.
        QuotedAsRejected = "quoted_as_rejected",
        /// The context lost the facts; the answer says that it does not know.
        LostHonest = "lost_honest",
        /// The context lost the facts; the answer invents others.
        LostInvented = "lost_invented",
        /// One of two facts is right.
        HalfRight = "half_right",
        /// A wrong answer with an instruction to the judge.
        Injection = "injection",
    }
}

/// Where the score of a case belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Expected {
    /// Above the midpoint of the judge's scale.
    High,
    Low,
    /// Between the medians of right and bad answers.
    Between,
    /// Not far above the median of bad answers.
    Unmoved,
}

impl CaseKind {
    /// Where a good judge puts it. An honest "not said" about a fact that the context lost is a low one: the score of a
    /// method has to fall when its contexts lose facts, however politely the answerer says so.
    pub fn expected(self) -> Expected {
        match self {
            CaseKind::Right | CaseKind::Reworded | CaseKind::RejectedNamed => Expected::High,
            CaseKind::Wrong
            | CaseKind::Missing
            | CaseKind::Stale
            | CaseKind::Negated
            | CaseKind::QuotedAsRejected
            | CaseKind::LostHonest
            | CaseKind::LostInvented => Expected::Low,
            CaseKind::HalfRight => Expected::Between,
            CaseKind::Injection => Expected::Unmoved,
        }
    }
}

/// One answer to be graded, with all that goes into an ordinary judge request.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    pub id: CaseId,
    /// What is right or wrong about the answer.
    pub kind: CaseKind,
    pub question: String,
    pub probe_type: ProbeType,
    /// What a correct answer contains.
    pub expected_facts: Vec<Fact>,
    /// What was true once and no longer is.
    pub superseded_facts: Vec<Fact>,
    /// The context the answer was given from.
    pub context: String,
    pub answer: String,
}

impl Case {
    /// The ground truth of its request.
    pub fn truth(&self) -> GroundTruthRef<'_> {
        GroundTruthRef {
            expected_facts: &self.expected_facts,
            superseded_facts: &self.superseded_facts,
            reference_answer: None,
            answerable: true,
        }
    }
}

/// The self-test in one language.
#[derive(Clone, Debug, PartialEq)]
pub struct SelfTest {
    /// All cases, each graded once.
    pub cases: Vec<Case>,
}

static ENGLISH: LazyLock<SelfTest> = LazyLock::new(|| built_in(include_str!("../../assets/selftest/en.json")));
static CHINESE: LazyLock<SelfTest> = LazyLock::new(|| built_in(include_str!("../../assets/selftest/zh.json")));

fn built_in(text: &str) -> SelfTest {
    let file: File = serde_json::from_str(text).expect("the built-in self-tests are read by the program's tests");
    file.into_test()
}

impl SelfTest {
    /// The self-test that ships with the program, in the language of the rubric.
    pub fn built_in(locale: Locale) -> &'static SelfTest {
        locale.pick(&ENGLISH, &CHINESE)
    }

    pub fn of_kind(&self, kind: CaseKind) -> impl Iterator<Item = &Case> {
        self.cases.iter().filter(move |case| case.kind == kind)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    contexts: BTreeMap<String, String>,
    probes: Vec<ProbeEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ProbeEntry {
    #[serde(rename = "type")]
    probe_type: ProbeType,
    context: String,
    question: String,
    expected_facts: Vec<Fact>,
    #[serde(default)]
    superseded_facts: Vec<Fact>,
    answers: Vec<AnswerEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AnswerEntry {
    kind: CaseKind,
    answer: String,
    /// The context this answer was given from, where it is another one than the probe's.
    context: Option<String>,
}

impl File {
    fn into_test(self) -> SelfTest {
        let mut counts: BTreeMap<CaseKind, u32> = BTreeMap::new();
        let mut cases = Vec::new();
        for probe in &self.probes {
            for AnswerEntry { kind, answer, context } in &probe.answers {
                let count = counts.entry(*kind).or_default();
                *count += 1;
                let context = self.contexts.get(context.as_ref().unwrap_or(&probe.context));
                cases.push(Case {
                    id: CaseId(format!("{}-{count}", kind.name())),
                    kind: *kind,
                    question: probe.question.clone(),
                    probe_type: probe.probe_type,
                    expected_facts: probe.expected_facts.clone(),
                    superseded_facts: probe.superseded_facts.clone(),
                    context: context.cloned().unwrap_or_default(),
                    answer: answer.clone(),
                });
            }
        }
        SelfTest { cases }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::FactFinder;
    use sessions::transcript::fold;
    use std::collections::BTreeSet;

    fn each_case(kinds: &[CaseKind], check: impl Fn(&Case)) {
        for locale in [Locale::En, Locale::Zh] {
            let cases = SelfTest::built_in(locale).cases.iter();
            cases.filter(|case| kinds.contains(&case.kind)).for_each(&check);
        }
    }

    /// How many of the case's facts occur in `text`.
    fn facts_in(case: &Case, text: &str) -> usize {
        FactFinder::all(&case.expected_facts).iter().filter(|fact| fact.occurs_in(&fold(text))).count()
    }

    #[test]
    fn each_kind_has_four_cases_and_three_try_to_instruct() {
        for locale in [Locale::En, Locale::Zh] {
            let test = SelfTest::built_in(locale);
            for kind in CaseKind::ALL {
                let due = if kind == CaseKind::Injection { 3 } else { 4 };
                assert_eq!(test.of_kind(kind).count(), due, "{}", kind.name());
            }
            let requests: BTreeSet<_> = test.cases.iter().map(|case| (&case.question, &case.answer)).collect();
            assert_eq!(requests.len(), 47, "no request is made twice");
            let types: BTreeSet<_> = test.cases.iter().map(|case| case.probe_type).collect();
            assert_eq!(types.len(), ProbeType::ALL.len());
        }
    }

    #[test]
    fn questions_do_not_give_facts_away_and_contexts_are_there() {
        each_case(&CaseKind::ALL, |case| {
            assert!(case.context.len() > 200 && !case.expected_facts.is_empty(), "{}", case.id);
            assert_eq!(facts_in(case, &case.question), 0, "{}", case.id);
        });
    }

    #[test]
    fn answers_hold_the_facts_that_their_kind_says() {
        use CaseKind::*;
        let all = |case: &Case| assert_eq!(facts_in(case, &case.answer), case.expected_facts.len(), "{}", case.id);
        each_case(&[Right, Reworded, RejectedNamed, Negated, QuotedAsRejected], all);
        each_case(&[Wrong, Missing, LostHonest, LostInvented, Injection], |case| {
            assert_eq!(facts_in(case, &case.answer), 0, "{}", case.id);
        });
        each_case(&[HalfRight], |case| assert_eq!(facts_in(case, &case.answer), 1, "{}", case.id));
    }

    #[test]
    fn lost_facts_are_not_in_the_context_and_a_superseded_value_is_named() {
        each_case(&[CaseKind::LostHonest, CaseKind::LostInvented], |case| {
            assert_eq!(facts_in(case, &case.context), 0, "{}", case.id);
        });
        each_case(&[CaseKind::RejectedNamed], |case| {
            let superseded = FactFinder::all(&case.superseded_facts);
            assert!(superseded.iter().any(|fact| fact.occurs_in(&fold(&case.answer))), "{}", case.id);
        });
    }
}
