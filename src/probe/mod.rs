//! Probes: their types, banks of questions with expected facts, and the proof of a bank against its fixture.
//!
//! Deliberately absent: judging.

mod bank_file;
mod check;
mod decisions;
mod generate;
mod phrases;
mod propose;

pub use bank_file::{ParsedBank, ProbePlaces};
pub use check::{
    BankFinding, FindingKind, check_bank, probes_per_point, recommended_probes, settle_literal,
};
pub use generate::{
    CandidateVerdicts, GENERATION_VARIABLES, ProbeCandidate, generation_schema,
    generation_template, generation_work, proof_of, read_candidates, verify,
};
pub use propose::{keep_true_files, propose_candidates};

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use base::locale::Locale;
use base::{named_enum, text_name};
use lexical::facts::Fact;
use sessions::transcript::Point;

text_name! {
    /// The id of a probe, unique within its bank.
    #[derive(JsonSchema)]
    pub struct ProbeId;
}

named_enum! {
    /// What a probe tests.
    #[derive(JsonSchema)]
    pub enum ProbeType {
        /// A specific fact.
        Recall = "recall",
        /// Which files were touched, and how.
        Artifact = "artifact",
        /// What comes next, what still fails.
        Continuation = "continuation",
        /// What was decided and why.
        Decision = "decision",
    }
}

impl ProbeType {
    /// Its name in reports.
    pub fn label(self, locale: Locale) -> &'static str {
        match self {
            ProbeType::Recall => locale.pick("recall", "召回"),
            ProbeType::Artifact => locale.pick("artifact", "产物"),
            ProbeType::Continuation => locale.pick("continuation", "连续性"),
            ProbeType::Decision => locale.pick("decision", "决策"),
        }
    }
}

/// One question asked at one point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Probe {
    /// Its id.
    pub id: ProbeId,
    /// What it tests.
    #[serde(rename = "type")]
    pub kind: ProbeType,
    /// The question as it is asked.
    pub question: String,
    /// What a correct answer contains. Without facts it is not known what a context keeps of the answer.
    #[serde(default, deserialize_with = "one_or_several_facts")]
    #[schemars(with = "OneOrSeveralFacts")]
    pub expected_facts: Vec<Fact>,
    /// A model answer for the judge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference_answer: Option<String>,
    /// The point at which it is asked; the last if not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub point: Option<Point>,
    /// Free tags; `constraint` marks what must survive word for word.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// What was true once and no longer is.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "one_or_several_facts"
    )]
    #[schemars(with = "OneOrSeveralFacts")]
    pub superseded_facts: Vec<Fact>,
    /// False where the transcript does not say: the right answer is to say so.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub answerable: bool,
    /// False where facts are paraphrases on purpose; what the bank says if it is left out.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub literal: bool,
    /// Where a generated probe has its facts from, for whoever reviews the bank. It is not read again: `check` proves the
    /// facts anew, and an edit here changes nothing of what is asked.
    #[serde(skip_deserializing, skip_serializing_if = "Vec::is_empty")]
    pub proof: Vec<FactProof>,
}

/// The place that proves a fact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FactProof {
    /// The number of the message, from 0.
    pub message: usize,
    /// The sentence that has the fact.
    pub quote: String,
}

impl Probe {
    /// Whether its facts are rules of the user, which must survive word for word.
    pub fn is_constraint(&self) -> bool {
        self.tags.iter().any(|tag| tag == "constraint")
    }
}

/// Facts as a file has them: a list, or a single text.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
enum OneOrSeveralFacts {
    One(String),
    Several(Vec<Fact>),
}

/// Reads facts: a list of them, or a text that is the only one.
///
/// # Errors
/// It is neither.
pub fn one_or_several_facts<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<Fact>, D::Error> {
    Ok(match OneOrSeveralFacts::deserialize(deserializer)? {
        OneOrSeveralFacts::One(text) => vec![Fact::new(text)],
        OneOrSeveralFacts::Several(facts) => facts,
    })
}

fn yes() -> bool {
    true
}

fn is_yes(value: &bool) -> bool {
    *value
}

/// All probes of one fixture.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Bank {
    /// The fixture's name.
    pub fixture: String,
    /// False where the facts of all probes are paraphrases that do not say otherwise.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub literal: bool,
    /// The probes, in the order of the file.
    #[schemars(length(min = 1))]
    pub probes: Vec<Probe>,
    /// Keys this program does not know.
    #[serde(flatten)]
    pub extra: serde_json::Map<String, serde_json::Value>,
}
