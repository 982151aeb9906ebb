//! The templates of the self-test, in each language.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use super::Quality;
use crate::judge::criterion::Dimension;
use crate::probe::ProbeType;
use base::locale::Locale;
use lexical::facts::Fact;

/// The texts that cases are drawn from. They have slots in braces.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Templates {
    pub context: String,
    pub outdated_context: String,
    /// Lines that make a context longer.
    pub padding: Vec<String>,
    /// Sentences without content that make an answer longer.
    pub filler: Vec<String>,
    /// Instructions to the judge, put after a wrong answer.
    pub injections: Vec<String>,
    /// What stands between the parts of an answer.
    pub joint: String,
    /// Slots of numbers, each with the least and the greatest.
    pub numbers: BTreeMap<String, [u64; 2]>,
    /// Slots of words, each with the words to draw from. These may have slots themselves.
    pub pools: BTreeMap<String, Vec<String>>,
    /// Slots that are drawn together: a decision with its reasons.
    pub records: Vec<BTreeMap<String, Vec<String>>>,
    pub questions: Vec<QuestionTemplate>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct QuestionTemplate {
    #[serde(rename = "type")]
    pub probe_type: ProbeType,
    /// The two dimensions that its answers are labelled in.
    pub dimensions: [Dimension; 2],
    pub question: String,
    pub expected_facts: Vec<Fact>,
    #[serde(default)]
    pub superseded_facts: Vec<Fact>,
    pub answers: Vec<AnswerTemplate>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AnswerTemplate {
    /// In the dimensions of the question, in their order.
    pub quality: [Quality; 2],
    /// A question that the record does not answer, asked instead.
    pub unanswerable: Option<String>,
    /// The answer, unless it has parts.
    #[serde(default)]
    pub answer: String,
    /// The parts that it is put together from, each with its phrasings.
    #[serde(default)]
    pub parts: Vec<Vec<String>>,
    /// What stands between the parts; `None` is what the language has.
    pub joint: Option<String>,
    /// Whether the parts stay in their order.
    #[serde(default)]
    pub fixed_order: bool,
}

static ENGLISH: LazyLock<Templates> =
    LazyLock::new(|| read(include_str!("../../../assets/selftest/en.toml")));
static CHINESE: LazyLock<Templates> =
    LazyLock::new(|| read(include_str!("../../../assets/selftest/zh.toml")));

fn read(text: &str) -> Templates {
    toml::from_str(text).expect("the templates are part of the program and read by its tests")
}

impl Templates {
    pub(super) fn built_in(locale: Locale) -> &'static Templates {
        locale.pick(&ENGLISH, &CHINESE)
    }
}
