//! The main result of a result set as values. `report` puts it into a sentence.

use serde::{Deserialize, Serialize};

use super::aggregates::ranking::Ranking;
use super::comparison::changes::Collapse;
use base::locale::Locale;
use stats::{DifferenceTest, Interval, NoEvidenceReason, Verdict};

/// `headline` in JSON: the main result, and the sentence that states it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Headline {
    /// The result; `kind` and `values` are stable.
    #[serde(flatten)]
    pub result: MainResult,
    /// The language of `text`.
    pub locale: Locale,
    /// The sentence, on at most two lines of 80 columns; its wording may change between versions.
    pub text: String,
    /// What the sentence had no room for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub more: String,
}

/// The main result of a result set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "values", rename_all = "snake_case")]
pub enum MainResult {
    /// Too many cells are missing to say more; where nothing is answered, contexts.
    Incomplete {
        /// Cells with a grade, or contexts.
        judged: u64,
        /// Cells that failed, or compressions.
        failed: u64,
        /// Cells or contexts that the design asks for.
        expected: u64,
    },
    /// Ceiling and floor are too close together for a figure between them to mean anything.
    Unscaled {
        /// The score of the whole transcript minus that of an empty context, in points.
        difference: f64,
    },
    /// Built-in rules stood in for a model.
    DryRun,
    /// There are contexts, but no scores.
    Unscored,
    /// What methods keep of the score of the whole transcript, or their scores.
    Levels(MainLevels),
    /// What changed against a baseline.
    Change(Box<MainChange>),
}

/// Methods by their score, without ceiling and floor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MainLevels {
    /// The methods; the highest is the best, unless some are graded above the whole transcript.
    #[serde(flatten)]
    pub ranking: Ranking,
    /// What the highest keeps of the score of the whole transcript, or its score where that is not defined.
    pub value: f64,
    /// Whether `value` is a share of the score of the whole transcript.
    pub is_retention: bool,
    /// 95% interval; null on one fixture, and where all fixtures have the same value.
    pub ci95: Option<Interval>,
    /// Tokens of a context as a share of those it replaces.
    pub tokens: Option<f64>,
    /// Whether a sampled stage was run only once.
    pub one_run: bool,
}

/// Whether anything got better or worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trend {
    /// Something got better and nothing worse.
    Improved,
    /// Something got worse and nothing better, or a method is missing.
    Regressed,
    /// Some of both.
    Mixed,
    /// Something changed, and nothing was shown to be better or worse.
    NoEvidence,
    /// The same answers with the same grades; where nothing is answered, the same contexts.
    Unchanged,
}

/// What a comparison shows, the worst first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MainChange {
    /// Whether anything got better or worse.
    pub trend: Trend,
    /// What it is compared with.
    pub baseline: String,
    /// Scores and dimensions that regressed, the largest loss first.
    pub regressed: Vec<MethodChange>,
    /// The mean over the methods that changed, if it has a verdict that no method has.
    pub mean: Option<MethodChange>,
    /// Constraints of the user that contexts of the baseline have and most of this side lost.
    pub constraints_lost: Vec<ConstraintLoss>,
    /// Methods in which more planted items go wrong.
    pub planted: Vec<String>,
    /// Methods that fail more often than in the baseline.
    pub less_reliable: Vec<String>,
    /// Methods of the baseline that this side lacks.
    pub absent: Vec<String>,
    /// Methods with too many missing cells to compare.
    pub not_comparable: Vec<MissingCells>,
    /// Fixtures in which a method broke down.
    pub collapsed: Vec<Collapse>,
    /// Other methods with a chain that fails now and did not fail in the baseline.
    pub newly_failing: Vec<String>,
    /// Scores and dimensions that improved, the largest gain first.
    pub improved: Vec<MethodChange>,
    /// Differences that are not chance, and smaller than what a verdict needs.
    pub small: Vec<MethodChange>,
    /// The other methods that changed.
    pub unproven: Vec<MethodChange>,
    /// Methods of which only one side has the grades of some probes.
    pub one_sided: Vec<String>,
    /// How many methods have the same answers with the same grades.
    pub unchanged: usize,
    /// What was edited; null if no edit is known.
    pub edit: Option<EditNote>,
    /// How the tokens of the contexts of the named methods changed: 0.75 is 75% more.
    pub tokens: Option<f64>,
    /// Whether a changed judge would explain a verdict, and this was not checked.
    pub drift_unchecked: bool,
    /// Whether built-in rules stood in for a model.
    pub lexical: bool,
    /// Whether models were asked only once on one of the sides.
    pub one_run: bool,
    /// How many labels were compared with the baseline, this one included.
    pub labels: usize,
    /// How many answerers give this result, if several are compared.
    pub answerers: Option<AnswererAgreement>,
}

/// The change of one method.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MethodChange {
    /// The method; for the mean, the number of methods.
    pub method: String,
    /// `overall`, or the id of a dimension.
    pub measure: String,
    /// In points.
    pub difference: f64,
    /// 95% interval of the difference; null on one fixture.
    pub ci95: Option<Interval>,
    /// The fixtures that changed, of which this is the difference.
    pub fixtures: usize,
    /// Fixtures that did not change.
    pub unchanged: usize,
    /// What the difference shows.
    pub verdict: Verdict,
    /// Why it shows nothing, if it does.
    pub reason: Option<NoEvidenceReason>,
    /// The smallest difference that would be detected.
    pub detectable: Option<f64>,
}

impl MethodChange {
    /// The change of this measure of a method, as its test found it.
    pub fn new(method: &str, measure: &str, test: &DifferenceTest) -> MethodChange {
        MethodChange {
            method: method.to_owned(),
            measure: measure.to_owned(),
            difference: test.difference,
            ci95: test.ci95,
            fixtures: test.clusters,
            unchanged: test.unchanged,
            verdict: test.verdict,
            reason: test.reason,
            detectable: test.mdd,
        }
    }
}

/// A method with too many missing cells to compare.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissingCells {
    /// Its name.
    pub method: String,
    /// Cells that it lacks on this side.
    pub missing: u64,
    /// Cells that the design asks for.
    pub of: u64,
}

/// A constraint that a method lost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConstraintLoss {
    /// The method.
    pub method: String,
    /// The constraint.
    pub fact: String,
    /// Whether a model graded the answers.
    pub is_graded: bool,
    /// Whether its grades show that no answer has it, so that the gate fails.
    pub is_confirmed: bool,
}

/// What was edited, in as much detail as one phrase has room for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "what", rename_all = "snake_case")]
pub enum EditNote {
    /// Lines of one section were only removed: the first of them.
    Removed(String),
    /// Lines of one section were only added: the first of them.
    Added(String),
    /// A text changed here: in this place, or in several places of this file.
    Changed(String),
    /// A setting changed.
    Setting(String),
    /// Several edits: how many.
    Several(usize),
    /// Nothing: the baseline is this other method.
    OtherMethod(String),
}

/// How many answerers give this result. It is that of the first one, with the regressions of others if it has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnswererAgreement {
    /// Answerers whose own results are of this kind.
    pub same: usize,
    /// All answerers that are compared.
    pub of: usize,
}
