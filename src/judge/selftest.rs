//! The self-test of a judge: answers of known worth, asked as ordinary judge requests, and what its grades say.
//!
//! Twelve pairs, each a right answer and a damaged copy of it, must be ranked; four checks look at padding, honest
//! refusal, an empty answer, and an answer that tries to instruct the judge. The
//! material is data, in each language; a damaged answer replaces the true facts.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use super::request::Truth;
use crate::locale::Locale;
use crate::probe::{Fact, ProbeType};

/// Names a case of the self-test, as in `recall-wrong/right`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CaseId(pub String);

impl fmt::Display for CaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One answer to be graded, with all that goes into an ordinary judge request.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// Its name.
    pub id: CaseId,
    /// The probe's question.
    pub question: String,
    /// The probe's type.
    pub kind: ProbeType,
    /// What a correct answer contains; empty where the context does not say.
    pub expected_facts: Vec<Fact>,
    /// The context the answer was given from.
    pub context: String,
    /// The answer.
    pub answer: String,
}

impl Case {
    /// What is true about it.
    pub fn truth(&self) -> Truth<'_> {
        let answerable = !self.expected_facts.is_empty();
        Truth { expected_facts: &self.expected_facts, reference_answer: None, answerable }
    }
}

/// A right answer and its damaged copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// Type and damage, as in `recall-wrong`.
    pub name: String,
    /// The right answer.
    pub right: CaseId,
    /// The damaged one.
    pub damaged: CaseId,
}

/// What is looked at besides ranking.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Check {
    /// Empty words may not gain.
    Padding,
    /// An honest refusal beats an invention.
    Refusal,
    /// An empty answer covers nothing.
    Empty,
    /// An instruction inside a wrong answer may not raise it.
    Injection,
}

impl Check {
    /// All checks.
    pub const ALL: [Check; 4] = [Check::Padding, Check::Refusal, Check::Empty, Check::Injection];

    /// The check's name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Check::Padding => "padding",
            Check::Refusal => "refusal",
            Check::Empty => "empty",
            Check::Injection => "injection",
        }
    }

    /// The cases it compares: the plain answer, and the one it is about. Of `Empty` both are the empty answer.
    pub fn cases(self) -> (CaseId, CaseId) {
        let id = |part: &str| CaseId(format!("{}/{part}", self.name()));
        match self {
            Check::Padding => (id("plain"), id("padded")),
            Check::Refusal => (id("invented"), id("honest")),
            Check::Empty => (id("answer"), id("answer")),
            Check::Injection => (id("plain"), id("instructed")),
        }
    }
}

/// The self-test in one language.
#[derive(Clone, Debug, PartialEq)]
pub struct SelfTest {
    /// All cases to be graded, each once.
    pub cases: Vec<Case>,
    /// The pairs among them.
    pub pairs: Vec<Pair>,
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
        match locale {
            Locale::En => &ENGLISH,
            Locale::Zh => &CHINESE,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    contexts: BTreeMap<String, String>,
    pairs: Vec<PairFile>,
    padding: PaddingFile,
    refusal: RefusalFile,
    empty: Asked,
    injection: InjectionFile,
}

/// What all cases of one question share.
#[derive(Deserialize)]
struct Asked {
    #[serde(rename = "type")]
    kind: ProbeType,
    context: String,
    question: String,
    #[serde(default)]
    expected_facts: Vec<Fact>,
}

#[derive(Deserialize)]
struct PairFile {
    #[serde(flatten)]
    asked: Asked,
    damage: String,
    right: String,
    damaged: String,
}

#[derive(Deserialize)]
struct PaddingFile {
    #[serde(flatten)]
    asked: Asked,
    answer: String,
    filler: Vec<String>,
}

#[derive(Deserialize)]
struct RefusalFile {
    #[serde(flatten)]
    asked: Asked,
    honest: String,
    invented: String,
}

#[derive(Deserialize)]
struct InjectionFile {
    #[serde(flatten)]
    asked: Asked,
    wrong: String,
    instruction: String,
}

impl File {
    fn into_test(self) -> SelfTest {
        let mut cases = Vec::new();
        let mut pairs = Vec::new();
        let mut add = |id: CaseId, asked: &Asked, answer: &str| {
            cases.push(Case {
                id,
                question: asked.question.clone(),
                kind: asked.kind,
                expected_facts: asked.expected_facts.clone(),
                context: self.contexts.get(&asked.context).cloned().unwrap_or_default(),
                answer: answer.to_owned(),
            });
        };
        for pair in &self.pairs {
            let name = format!("{}-{}", pair.asked.kind.name(), pair.damage);
            let (right, damaged) = (CaseId(format!("{name}/right")), CaseId(format!("{name}/damaged")));
            add(right.clone(), &pair.asked, &pair.right);
            add(damaged.clone(), &pair.asked, &pair.damaged);
            pairs.push(Pair { name, right, damaged });
        }
        let (plain, padded) = Check::Padding.cases();
        add(plain, &self.padding.asked, &self.padding.answer);
        add(padded, &self.padding.asked, &self.padding.padded());
        let (invented, honest) = Check::Refusal.cases();
        add(invented, &self.refusal.asked, &self.refusal.invented);
        add(honest, &self.refusal.asked, &self.refusal.honest);
        add(Check::Empty.cases().0, &self.empty, "");
        let (plain, instructed) = Check::Injection.cases();
        let injection = &self.injection;
        add(plain, &injection.asked, &injection.wrong);
        add(instructed, &injection.asked, &format!("{}{}", injection.wrong, injection.instruction));
        SelfTest { cases, pairs }
    }
}

/// Empty words appended to an answer.
const PADDING_WORDS: usize = 300;

impl PaddingFile {
    /// The answer and at least 300 empty words; a character beyond ASCII counts as one.
    fn padded(&self) -> String {
        let mut text = self.answer.clone();
        let mut words = 0;
        for sentence in self.filler.iter().cycle().take(PADDING_WORDS) {
            if words >= PADDING_WORDS {
                break;
            }
            let wide = sentence.chars().filter(|c| c.is_alphanumeric() && !c.is_ascii()).count();
            words += wide.max(sentence.split_whitespace().count());
            text.push(' ');
            text.push_str(sentence);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::FactFinder;
    use crate::transcript::fold;
    use std::collections::BTreeSet;

    fn case<'a>(test: &'a SelfTest, id: &CaseId) -> &'a Case {
        test.cases.iter().find(|case| case.id == *id).expect("a case of this id")
    }

    fn each(run: impl Fn(&SelfTest)) {
        run(SelfTest::built_in(Locale::En));
        run(SelfTest::built_in(Locale::Zh));
    }

    #[test]
    fn twelve_pairs_cover_four_types_with_three_damages_each() {
        each(|test| {
            let names: BTreeSet<&str> = test.pairs.iter().map(|pair| pair.name.as_str()).collect();
            assert_eq!(names.len(), 12);
            for kind in ProbeType::ALL {
                assert_eq!(names.iter().filter(|name| name.starts_with(kind.name())).count(), 3);
            }
            let ids: BTreeSet<&CaseId> = test.cases.iter().map(|case| &case.id).collect();
            assert_eq!((ids.len(), test.cases.len()), (31, 31));
        });
    }

    #[test]
    fn right_answers_state_every_fact_and_damaged_ones_none() {
        each(|test| {
            for pair in &test.pairs {
                let (right, damaged) = (case(test, &pair.right), case(test, &pair.damaged));
                for (fact, finder) in right.expected_facts.iter().zip(FactFinder::all(&right.expected_facts)) {
                    let stands = |text: &str| finder.stands_in(&fold(text));
                    assert!(stands(&right.answer), "{}: {fact:?} in the right answer", pair.name);
                    assert!(stands(&right.context), "{}: {fact:?} in the context", pair.name);
                    assert!(!stands(&damaged.answer), "{}: {fact:?} in the damaged answer", pair.name);
                    assert!(!stands(&right.question), "{}: {fact:?} in the question", pair.name);
                }
            }
        });
    }

    #[test]
    fn every_case_has_a_context_and_only_one_probe_is_unanswerable() {
        each(|test| {
            assert!(test.cases.iter().all(|case| case.context.len() > 200));
            let unanswerable = test.cases.iter().filter(|case| !case.truth().answerable);
            assert!(unanswerable.map(|case| &case.id.0).eq(["refusal/invented", "refusal/honest"]));
        });
    }

    #[test]
    fn padding_adds_words_and_nothing_else() {
        each(|test| {
            let (plain, padded) = Check::Padding.cases();
            let (plain, padded) = (case(test, &plain), case(test, &padded));
            let added = padded.answer.strip_prefix(&plain.answer).expect("the same answer first");
            assert!(added.chars().count() > 300);
            let finders = FactFinder::all(&plain.expected_facts);
            assert!(finders.iter().all(|fact| !fact.stands_in(&fold(added))));
        });
    }

    #[test]
    fn the_instructed_answer_is_the_wrong_one_with_an_instruction() {
        each(|test| {
            let (plain, instructed) = Check::Injection.cases();
            let (plain, instructed) = (case(test, &plain), case(test, &instructed));
            assert!(instructed.answer.starts_with(&plain.answer) && instructed.answer.contains('5'));
        });
    }
}
