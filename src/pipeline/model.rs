//! The validated pipeline. One exists only if validation found no error.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::action::{Digest, Template};
use crate::answer::Answerer;
use crate::compress::Method;
use crate::judge::{JudgeSpec, Rubric, Scope, SelfTest, SelfTestDesign};
use crate::planted::Variant;
use crate::probe::{Bank, Probe};
use base::locale::Locale;
use base::named_enum;
use lexical::facts::History;
use models::{ModelRef, ModelUse, Price, ProviderName, ProviderSpec};
use sessions::transcript::{Fixture, Point};
use store::remote::DeclaredRemote;

/// A validated pipeline: declared values, resolved, with the command line applied.
#[derive(Clone, Debug)]
pub struct Pipeline {
    /// The folder of `pipeline.toml`, absolute. Paths in the file are relative to it.
    pub folder: PathBuf,
    /// `pipeline.toml` itself, absolute.
    pub file: PathBuf,
    /// Where result sets go, absolute.
    pub results: PathBuf,
    /// Where the store lies, absolute; `COMPEVAL_CACHE` moves it.
    pub cache: PathBuf,
    /// Where probe banks lie, absolute.
    pub probes: PathBuf,
    /// The cache that several machines share, as the file declares it.
    pub remote: DeclaredRemote,
    pub settings: PipelineSettings,
    /// The methods selected, in the order of the file; at least one.
    pub methods: Vec<Method>,
    /// The answerers, in the order of the file; at least one.
    pub answerers: Vec<Answerer>,
    /// Which answerers read the contexts of each method: parallel to `methods`, none of them empty.
    pub method_answerers: Vec<Vec<AnswererIx>>,
    /// The judges, in the order of the file; at least one.
    pub judges: Vec<JudgeSpec>,
    /// The cases that each judge is asked about before it grades.
    pub selftest: Arc<SelfTest>,
    /// How probes are generated; by the built-in rules where nothing is declared. `run` never generates.
    pub generator: Generator,
    /// What is graded, with which weights.
    pub rubric: Arc<Rubric>,
    /// The rubric's file, relative to the folder; `None` for the built-in one.
    pub rubric_path: Option<String>,
    /// The fixtures selected that have a selected probe, sorted by name; at least one.
    pub fixtures: Vec<LoadedFixture>,
    /// What is planted in the fixtures; `None` where nothing is.
    pub planted: Option<PlantedDesign>,
    /// Prices that the user declared. They take precedence over the table that ships with the program.
    pub prices: BTreeMap<ModelRef, Price>,
    /// All providers, declared and built in.
    pub providers: BTreeMap<ProviderName, Arc<ProviderSpec>>,
    /// The text files that inputs are made from (pipeline, prompts, rubric), each once. They explain why an input changed.
    pub sources: Vec<SourceFile>,
    /// The chains that this process runs if it runs a part; `None` is all of them.
    pub part: Option<BTreeSet<(FixtureIx, MethodIx)>>,
}

/// Indices are made by the matrix of a pipeline and used with the same pipeline alone.
///
/// # Panics
/// Each of these panics at an index of another pipeline.
impl Pipeline {
    pub fn fixture(&self, ix: FixtureIx) -> &LoadedFixture {
        &self.fixtures[ix.0]
    }

    pub fn method(&self, ix: MethodIx) -> &Method {
        &self.methods[ix.0]
    }

    pub fn answerer(&self, ix: AnswererIx) -> &Answerer {
        &self.answerers[ix.0]
    }

    pub fn judge(&self, ix: JudgeIx) -> &JudgeSpec {
        &self.judges[ix.0]
    }

    /// The models of all stages of the matrix.
    pub fn stage_models(&self) -> impl Iterator<Item = &ModelUse> {
        let methods = self.methods.iter();
        methods
            .filter_map(|method| method.strategy.model())
            .chain(self.answerers.iter().map(|answerer| &answerer.model))
            .chain(self.judges.iter().map(|judge| &judge.model))
    }
}

/// Settings of the whole pipeline.
#[derive(Clone, Debug, PartialEq)]
pub struct PipelineSettings {
    pub runs: Runs,
    /// Language of rubric and built-in prompts.
    pub locale: Locale,
    /// What the answerer is shown of the messages after the point.
    pub tail: TailMode,
    /// Whether the judge sees the compacted context.
    pub judge_context: bool,
    /// Whether judges grade some answers of the run again, with a fact made false.
    pub regrade: bool,
    /// Which criteria grade a probe.
    pub rubric_scope: Scope,
    /// The topic that compressions should focus on (`--focus-topic`).
    pub focus_topic: Option<Arc<str>>,
    /// Which cases the judges are tested with.
    pub selftest: SelfTestDesign,
}

/// How often each sampled step is repeated; each at least 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Runs {
    /// Compressions of each method; this is what `run` counts.
    pub compress: u32,
    /// Answers to each probe within a run.
    pub answer: u32,
    pub judge: u32,
}

impl Default for Runs {
    fn default() -> Runs {
        Runs {
            compress: 3,
            answer: 1,
            judge: 1,
        }
    }
}

named_enum! {
    /// What the answerer is shown of the transcript after the point.
    #[derive(Default)]
    pub enum TailMode {
        #[default]
        None = "none",
        /// All of it, word for word.
        Verbatim = "verbatim",
    }
}

/// A fixture with its bank.
#[derive(Clone, Debug)]
pub struct LoadedFixture {
    pub fixture: Arc<Fixture>,
    /// Its probes, all of them.
    pub bank: Arc<Bank>,
    /// The compression points: exclusive message indices in rising order; at least one.
    pub points: Vec<usize>,
    /// The probes selected at each point, parallel to `points`; at least one in all.
    pub selected: Vec<Vec<ProbeIx>>,
    /// The session with planted items, once for each variant; none unless the pipeline plants.
    pub variants: Vec<Arc<Variant>>,
    /// What must be equal for two results to be comparable.
    pub digests: FixtureDigests,
    /// The digest of what decides, besides the messages, which references a session knows: the patterns, and whether its
    /// log begins in the middle of the session.
    pub recorded: Digest,
    /// The fixture's file, relative to the folder.
    pub path: String,
    /// The digest of that file.
    pub file: Digest,
    /// The bank's file, relative to the folder.
    pub bank_path: String,
    /// The digest of that file.
    pub bank_file: Digest,
}

/// Digests of the material that methods are measured with. Remarks and reformatting change none of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FixtureDigests {
    pub transcript: Digest,
    pub points: Digest,
    /// The digest of the bank's probes.
    pub bank: Digest,
}

impl LoadedFixture {
    /// The text of the transcript, folded and indexed. It is as long as the transcript, so it is made only on demand.
    pub fn history(&self) -> History {
        History::new(&self.fixture.messages)
    }

    pub fn name(&self) -> &str {
        &self.fixture.name
    }

    /// The same session with planted items, its points moved accordingly. All items are before the first point.
    pub fn with_variant(&self, ix: VariantIx) -> LoadedFixture {
        let variant = self.variant(ix);
        let fixture = Fixture {
            messages: variant.messages(&self.fixture.messages),
            ..Fixture::clone(&self.fixture)
        };
        let points = self.points.iter().map(|point| point + variant.len());
        LoadedFixture {
            fixture: Arc::new(fixture),
            points: points.collect(),
            selected: vec![Vec::new(); self.points.len()],
            ..self.clone()
        }
    }

    /// # Panics
    /// It is an index of another fixture.
    pub fn variant(&self, ix: VariantIx) -> &Arc<Variant> {
        &self.variants[ix.0]
    }

    /// Index of the first message after the point.
    ///
    /// # Panics
    /// It is a point of another fixture.
    pub fn end(&self, point: PointIx) -> usize {
        self.points[point.0]
    }

    /// The probe at `index` of the bank.
    pub fn probe(&self, index: ProbeIx) -> Option<&Probe> {
        self.bank.probes.get(index.0)
    }
}

/// What is planted, and how often.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlantedDesign {
    /// The file of the items, relative to the folder; `None` for the built-in ones.
    pub path: Option<String>,
    /// The digest of everything that decides what is planted where.
    pub digest: Digest,
    pub variants: u32,
    /// Whether the planted sessions are all that is compressed and asked about.
    pub is_all: bool,
    /// Whether a comparison is tested (`[gate] planted`).
    pub is_tested: bool,
}

#[derive(Clone, Debug)]
pub struct Generator {
    pub model: ModelUse,
    /// The prompt (variable: `transcript`).
    pub template: Template,
    /// How many replies may break the contract before it gives up.
    pub attempts: u32,
}

/// A text file of the project, as read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// Relative to the pipeline's folder, with `/`.
    pub path: String,
    pub text: Arc<str>,
    pub digest: Digest,
}

impl SourceFile {
    pub fn new(path: impl Into<String>, text: impl Into<Arc<str>>) -> SourceFile {
        let text = text.into();
        SourceFile {
            path: path.into(),
            digest: Digest::hash(&*text),
            text,
        }
    }
}

macro_rules! indices {
    ($($(#[$doc:meta])* $name:ident),*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub usize);
    )*};
}
indices!(
    /// Index in [`Pipeline::fixtures`].
    FixtureIx,
    /// Index in [`Pipeline::methods`].
    MethodIx,
    /// Index in [`LoadedFixture::points`].
    PointIx,
    /// Index in the probes of a fixture's bank.
    ProbeIx,
    /// Index in [`LoadedFixture::variants`].
    VariantIx,
    /// Index in [`Pipeline::answerers`].
    AnswererIx,
    /// Index in [`Pipeline::judges`].
    JudgeIx
);

impl PointIx {
    /// The point's number, from 1, as people count.
    pub fn number(self) -> Point {
        Point(u32::try_from(self.0).unwrap_or(u32::MAX - 1) + 1)
    }
}
