//! `manifest.json`: what ran, and what it took. Times and facts of the machine stand here alone.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Add;

use serde::{Deserialize, Serialize};

use super::corrections::{Regradings, Tried};
use super::design::Design;
use super::failure::FailedAction;
use crate::action::{ActionKey, Digest, StageName};
use crate::judge::{Dimension, SelfTestDesign};
use crate::parts::PartRecord;
use base::units::{Tokens, Usage, Usd, add_known};

/// The version of the format of a results folder. Older ones are read, newer ones refused.
///
/// 2: `cut_off` and `held_back` of a stage became `early_cutoff` and `skipped`.
/// 3: `reliability` of a comparison in `summary.json` counts chains, a fixture in a run each; it counted cells.
/// 4: the keys of the actions are in `keys.txt`; they were in the manifest.
pub const FORMAT: u32 = 4;

/// What ran, with what outcome, and what it took.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// The format of the folder.
    pub format: u32,
    /// The version of the program that wrote it.
    pub version: String,
    /// The label; a set that was replaced has another one than it was written under.
    pub label: String,
    /// When the run began, RFC 3339 in UTC.
    pub started: String,
    /// When it ended; `None` while it runs, and after a crash.
    pub ended: Option<String>,
    /// How it ended.
    pub outcome: Outcome,
    /// The git commit that was checked out in the project's repository; `None` outside of one. Files may differ from it:
    /// their digests are in `files`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The pipeline as resolved, with the digests of fixtures, points, banks, prompts and rubric.
    pub design: Design,
    /// Text files of the project that went into it: path relative to the pipeline, and digest.
    pub files: BTreeMap<String, Digest>,
    /// Models as the providers named them in their replies, by `provider/model` as asked.
    pub models: BTreeMap<String, BTreeSet<String>>,
    /// What each stage did.
    pub stages: BTreeMap<StageName, StageCounts>,
    /// Requests sent, attempts that failed included.
    pub requests_sent: u64,
    /// Attempts after the first.
    pub retries: u64,
    /// Times that a provider said to slow down.
    pub rate_limited: u64,
    /// What providers reported of all replies to this run, those included that came to nothing. What nobody
    /// reported is null.
    pub usage: Usage,
    /// What this run cost, replies that came to nothing included; null where a price is unknown.
    pub usd: Option<Usd>,
    /// Of that, what no result stands on.
    #[serde(default)]
    pub unused: Unused,
    /// Dollars that providers' prompt caches saved, as far as prices are known.
    #[serde(default)]
    pub saved_by_prompt_cache: Usd,
    /// How long it took, in seconds.
    pub wall_s: f64,
    /// Every action that failed, once.
    pub failures: Vec<FailedAction>,
    /// What decided which cases the judges were tested with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selftest: Option<SelfTestDesign>,
    /// What was expected before the run, beside what came.
    pub forecast: Option<ForecastTotals>,
    /// What must be printed on every report.
    pub caveats: Caveats,
    /// Against what it was compared (`--compare-to`), to be compared again when the report is made anew.
    pub compared_to: Option<String>,
    /// What that comparison may leave out.
    #[serde(default)]
    pub compared_scope: ComparisonScope,
    /// Whether fixtures were added until there was a verdict: it is tested at the level of such a look.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub until_decided: bool,
    /// The numbers of tries that its verdicts are corrected for.
    #[serde(default, skip_serializing_if = "Tried::is_empty")]
    pub tried: Tried,
    /// What the judges gave answers of the baseline again, where a change of theirs would explain a verdict.
    #[serde(default, skip_serializing_if = "Regradings::is_empty")]
    pub regradings: Regradings,
    /// Every action that the result stands on, those of judges' self-tests included, up to format 3.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub keys: BTreeSet<ActionKey>,
    /// The other files, as a run of the same rows can take them over; `None` of a set that cannot be taken over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made: Option<MadeFiles>,
    /// Which part of the matrix it is; `None` of all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<PartRecord>,
    /// The parts that it was merged from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub merged: Vec<MergedPart>,
    /// The exports that some of these came from: their authors are believed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub imported: Vec<ImportedEntries>,
    /// The writers of those of these that were pulled from a shared cache.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub writers: Vec<WriterEntries>,
    /// The digests of the bodies of these.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pulled: BTreeMap<ActionKey, Digest>,
    /// The shared cache that the run used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote: Option<RemoteUse>,
}

/// The files of a set beside its manifest, and what they were made from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MadeFiles {
    /// Identifies the rows of all contexts in their order, and how they were made into files.
    pub source: Digest,
    /// The digest of each file, by its name.
    pub files: BTreeMap<String, Digest>,
}

/// Entries that a result stands on and that one writer signed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WriterEntries {
    /// The name that the project has for the writer.
    pub name: String,
    /// The writer's public key.
    pub key: String,
    /// How many entries.
    pub entries: u64,
}

/// The shared cache that a run used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoteUse {
    /// The address as the pipeline gives it.
    pub url: String,
    /// Identifies the list of packs when the run began.
    pub list: Digest,
    /// How many packs.
    pub packs: u64,
    /// Entries that this run pulled.
    pub pulled: u64,
    /// Entries that this run uploaded.
    pub uploaded: u64,
}

/// A part that results were merged from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MergedPart {
    /// Its number, its assignment, its engine.
    #[serde(flatten)]
    pub record: PartRecord,
    /// When its last run began, RFC 3339 in UTC.
    pub started: String,
    /// When it ended; `None` of one that was killed, or still runs.
    pub ended: Option<String>,
    /// How it ended.
    pub outcome: Outcome,
    /// How long it took, in seconds.
    pub wall_s: f64,
    /// Requests that it sent.
    pub requests_sent: u64,
    /// What it cost; null where a price is unknown.
    pub usd: Option<Usd>,
}

impl MergedPart {
    /// The part of a manifest; `None` if it is of none.
    pub fn new(manifest: &Manifest) -> Option<MergedPart> {
        Some(MergedPart {
            record: manifest.part?,
            started: manifest.started.clone(),
            ended: manifest.ended.clone(),
            outcome: manifest.outcome,
            wall_s: manifest.wall_s,
            requests_sent: manifest.requests_sent,
            usd: manifest.usd,
        })
    }
}

/// Entries that a result stands on and that were imported from one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportedEntries {
    /// The path of the file as it was given.
    pub file: String,
    /// The digest of the file.
    pub digest: Digest,
    /// How many entries.
    pub entries: u64,
}

/// What may be left out of a comparison; each also what those before it allow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ComparisonScope {
    /// Nothing: both sides measured the same fixtures and probes.
    #[default]
    All,
    /// Fixtures and probes that one side did not select (`run --fixtures`).
    Selected,
    /// Also what the two sides measured differently (`--only-common`).
    Common,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// It has not ended, or crashed.
    #[default]
    Running,
    /// All cells are judged.
    Complete,
    /// Some cells failed or are missing.
    Incomplete,
    /// A budget stopped it.
    Budget,
    /// Offline, with work pending.
    Pending,
    /// The user stopped it.
    Interrupted,
}

/// What a stage did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageCounts {
    /// Coordinates of the matrix at this stage: many may need one action.
    pub cells: u64,
    /// Distinct actions that were settled: executed, cached or failed.
    pub actions: u64,
    /// Actions that asked a model or computed something in this run.
    pub executed: u64,
    /// Actions found in the cache.
    pub cached: u64,
    /// Actions that failed, by whosever fault.
    pub failed: u64,
    /// Of the cached actions, those that stand because an edit above them left an output as it was: early cutoff.
    #[serde(default, alias = "cut_off")]
    pub early_cutoff: u64,
    /// Cells that were not begun: offline, over budget, interrupted, provider unavailable, weak judge. The cells that
    /// depend on them are not counted here.
    #[serde(default, alias = "held_back")]
    pub skipped: u64,
    /// What prompt caches could have served and did; left out where no provider reports of one.
    #[serde(default, skip_serializing_if = "PromptCacheTokens::is_empty")]
    pub prompt_cache: PromptCacheTokens,
}

/// Input tokens of the executed actions of a stage, for what providers' prompt caches could do and did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PromptCacheTokens {
    /// All, of the providers that report of a prompt cache.
    pub input: Tokens,
    /// Estimated: those that begin a request and had begun an earlier one of this run.
    pub repeated: Tokens,
    /// Those that prompt caches served, as reported.
    pub served: Tokens,
}

impl Add for PromptCacheTokens {
    type Output = PromptCacheTokens;
    fn add(self, other: PromptCacheTokens) -> PromptCacheTokens {
        PromptCacheTokens {
            input: self.input + other.input,
            repeated: self.repeated + other.repeated,
            served: self.served + other.served,
        }
    }
}

impl PromptCacheTokens {
    pub fn is_empty(&self) -> bool {
        *self == PromptCacheTokens::default()
    }

    pub fn count(&mut self, usage: &Usage, repeated: Tokens) {
        let Some((input, served)) = usage.input.zip(usage.cached_input) else { return };
        self.input += input;
        self.repeated += Tokens(repeated.0.min(input.0));
        self.served += served;
    }
}

/// What was paid for and no result stands on: replies that were malformed, cut off, refused, or broke the contract.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Unused {
    /// How many such replies.
    pub replies: u64,
    /// What providers reported of them.
    pub usage: Usage,
    /// What they cost; null where a price is unknown.
    pub usd: Option<Usd>,
    /// Requests that were never answered, besides: whether they are billed nobody knows.
    pub unanswered: u64,
}

/// What was expected before the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ForecastTotals {
    /// Requests to models.
    pub requests: u64,
    /// Tokens of what they send.
    pub input_tokens: u64,
    /// Tokens of what they get back.
    pub output_tokens: u64,
    /// Dollars; null where a price is unknown.
    pub usd: Option<Usd>,
    /// How long the run takes, in seconds.
    pub seconds: f64,
}

/// A judge that failed its self-test in some dimensions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnqualifiedJudge {
    /// Its name.
    pub judge: String,
    /// The dimensions, in the order of tables.
    pub dimensions: Vec<Dimension>,
}

/// How a judge graded answers of the run once a fact in them was made false.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FalseFactCheck {
    /// Its name.
    pub judge: String,
    /// How many it graded lower in the mean of accuracy and completeness.
    pub lower: usize,
    /// How many there were.
    pub of: usize,
}

impl FalseFactCheck {
    /// Answers of a whole check, and of one with few of them.
    pub const SIZES: [usize; 2] = [20, 10];

    /// How many a judge who reads facts grades lower.
    pub fn needed(&self) -> usize {
        if self.of > 10 { 17 } else { 8 }
    }

    /// Whether the judge hardly reads facts.
    pub fn is_failed(&self) -> bool {
        self.lower < self.needed()
    }
}

/// What must be printed on every report.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Caveats {
    /// No request was sent and no program started.
    pub offline: bool,
    /// Judges that failed their self-test.
    pub weak_judges: Vec<String>,
    /// Such judges were used all the same (`--allow-weak-judge`).
    #[serde(default)]
    pub allow_weak_judge: bool,
    /// Judges that are not qualified in some dimensions, which leave `overall` and the gate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unqualified: Vec<UnqualifiedJudge>,
    /// Judges that were checked on answers of the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub false_facts: Vec<FalseFactCheck>,
    /// Facts that occur nowhere were let pass.
    pub allow_unproven: bool,
    /// Sessions in another language than the one that judges are tested in.
    #[serde(default)]
    pub other_language: usize,
    /// Other remarks, as sentences.
    pub notes: Vec<String>,
}

impl Manifest {
    /// Adds what another part of the same results sent and paid.
    pub fn add_spending(&mut self, other: &Manifest) {
        // A part without replies has nothing to report, which is not the same as an unknown number.
        if !other.has_spent() {
            return;
        }
        let is_first = !self.has_spent();
        self.requests_sent += other.requests_sent;
        self.retries += other.retries;
        self.rate_limited += other.rate_limited;
        self.usage = if is_first { other.usage } else { self.usage + other.usage };
        self.usd = if is_first { other.usd } else { add_known(self.usd, other.usd) };
        let (unused, added) = (self.unused, other.unused);
        self.unused = Unused {
            replies: unused.replies + added.replies,
            usage: if is_first { added.usage } else { unused.usage + added.usage },
            usd: if is_first { added.usd } else { add_known(unused.usd, added.usd) },
            unanswered: unused.unanswered + added.unanswered,
        };
    }

    /// Also true of a run that sent nothing and collected the batches of an earlier one.
    fn has_spent(&self) -> bool {
        self.requests_sent > 0 || self.usage != Usage::default()
    }

    /// The manifest of a run that begins.
    pub fn begin(label: &str, started: &str, design: Design) -> Manifest {
        let stages = StageName::OF_RUN.into_iter().map(|stage| (stage, StageCounts::default())).collect();
        Manifest {
            format: FORMAT,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            label: label.to_owned(),
            started: started.to_owned(),
            ended: None,
            outcome: Outcome::Running,
            commit: None,
            design,
            files: BTreeMap::new(),
            models: BTreeMap::new(),
            stages,
            requests_sent: 0,
            retries: 0,
            rate_limited: 0,
            usage: Usage::default(),
            usd: None,
            unused: Unused::default(),
            saved_by_prompt_cache: Usd(0.0),
            wall_s: 0.0,
            failures: Vec::new(),
            forecast: None,
            selftest: None,
            caveats: Caveats::default(),
            compared_to: None,
            compared_scope: ComparisonScope::All,
            until_decided: false,
            tried: Tried::default(),
            regradings: Regradings::default(),
            keys: BTreeSet::new(),
            made: None,
            part: None,
            merged: Vec::new(),
            imported: Vec::new(),
            writers: Vec::new(),
            pulled: BTreeMap::new(),
            remote: None,
        }
    }

    /// Whether another run came to the same results: the manifests differ at most in what the runs took, and when.
    pub fn has_same_results(&self, other: &Manifest) -> bool {
        self.without_run() == other.without_run()
    }

    fn without_run(&self) -> Manifest {
        let begun = Manifest::begin(&self.label, "", self.design.clone());
        Manifest {
            started: begun.started,
            ended: begun.ended,
            commit: begun.commit,
            stages: begun.stages,
            requests_sent: begun.requests_sent,
            retries: begun.retries,
            rate_limited: begun.rate_limited,
            usage: begun.usage,
            usd: begun.usd,
            unused: begun.unused,
            saved_by_prompt_cache: begun.saved_by_prompt_cache,
            wall_s: begun.wall_s,
            forecast: begun.forecast,
            made: begun.made,
            remote: begun.remote,
            ..self.clone()
        }
    }

    /// The share of actions that came from the cache, of all that were due and not left alone, from 0 to 1; `None`
    /// where there was none.
    pub fn cached_share(&self) -> Option<f64> {
        let (cached, done) = self.stages.values().fold((0, 0), |(cached, done), stage| {
            (cached + stage.cached, done + stage.cached + stage.executed + stage.failed)
        });
        (done > 0).then(|| cached as f64 / done as f64)
    }
}
