//! The main result of a result set as values. `report` puts it into a sentence.

use serde::{Deserialize, Serialize};

use base::locale::Locale;
use stats::{Interval, NoEvidenceReason, Verdict};

/// `headline` in JSON: the main result, and the sentence that states it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Headline {
    /// The result; `kind` and `values` are stable.
    #[serde(flatten)]
    pub result: MainResult,
    /// The language of `text`.
    pub locale: Locale,
    /// The sentence; its wording may change between versions.
    pub text: String,
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
    Sample,
    /// What methods keep of the score of the whole transcript.
    Retention(MainLevels),
    /// Scores, where retention is not defined.
    Scores(MainLevels),
    /// Nothing was measured.
    Empty,
    /// Against a baseline: something got better and nothing worse.
    Improved(MainChange),
    /// Something got worse and nothing better.
    Regressed(MainChange),
    /// Some methods got better and some worse.
    Mixed(MainChange),
    /// Something changed, if only what fails or is answered, but neither an improvement nor a regression was shown.
    NoEvidence(MainChange),
    /// The same answers with the same grades; where nothing is answered, the same contexts.
    Unchanged(MainChange),
}

/// A method with its main figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MethodLevel {
    /// The method.
    pub method: String,
    /// Its retention or score.
    pub value: f64,
    /// 95% interval; null on one fixture, and where all fixtures have the same value.
    pub ci95: Option<Interval>,
    /// Tokens of a context as a share of those it replaces.
    pub tokens: Option<f64>,
}

/// Methods by their figure, without ceiling and floor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MainLevels {
    /// The method with the highest figure.
    pub best: MethodLevel,
    /// Methods that are not clearly below the best one, because intervals overlap or there are none. Highest first.
    pub indistinguishable: Vec<MethodLevel>,
    /// Methods below the best one, highest first.
    pub lower: Vec<MethodLevel>,
    /// The number of fixtures in the figure of the best method.
    pub fixtures: usize,
}

/// What a comparison shows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MainChange {
    /// What it is compared with.
    pub baseline: String,
    /// Methods with a verdict, and dimensions that regressed although the method's `overall` did not; if there are none, the methods that changed. Regressions come first, then the largest differences.
    pub methods: Vec<MethodChange>,
    /// The mean over the methods that changed, if it has a verdict that no method has.
    pub mean: Option<MethodChange>,
    /// Methods that fail more often than in the baseline.
    pub less_reliable: Vec<String>,
    /// Other methods with a chain that fails now and did not fail in the baseline.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub newly_failing: Vec<String>,
    /// Other methods of which only one side has the grades of some probes, where nothing else changed or a whole fixture
    /// cannot be compared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub one_sided: Vec<String>,
    /// Constraints of the user that contexts of the baseline have and most of this side lost.
    pub constraints_lost: Vec<ConstraintLoss>,
    /// How many methods changed without a verdict and are not in `methods`.
    pub no_evidence: usize,
    /// How many methods have the same answers with the same grades.
    pub unchanged: usize,
    /// What was edited; null if no edit is known.
    pub edit: Option<EditNote>,
    /// How the tokens of the contexts of `methods` changed against the baseline: 0.75 is 75% more.
    pub tokens: Option<f64>,
    /// Whether a changed judge would explain a verdict of `methods` or `mean`, and this was not checked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub drift_unchecked: bool,
    /// How many labels were compared with the baseline, this one included.
    #[serde(default)]
    pub labels: usize,
    /// Whether built-in rules stood in for a model.
    pub lexical: bool,
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
