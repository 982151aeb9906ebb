//! The design of a result set: the pipeline as resolved, with the digests that make two result sets comparable.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::action::{BuiltInStrategy, Digest, Template};
use crate::answer::Recovery;
use crate::compress::Method;
use crate::judge::{Criterion, Scope};
use crate::pipeline::{
    AnswererIx, FixtureDigests, LoadedFixture, Pipeline, PointIx, ProbeIx, Runs, TailMode,
};
use crate::probe::ProbeType;
use base::locale::Locale;
use models::{Endpoint, ModelUse, Settings};

/// What was measured, and by which models. The order of its lists is the order of tables.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Design {
    /// How often each stage repeats its work.
    pub runs: Runs,
    /// Language of rubric, built-in prompts and reports.
    pub locale: Locale,
    /// What the answerer saw after the point.
    pub tail: TailMode,
    /// Whether judges saw the compacted context.
    pub judge_context: bool,
    /// The topic that compressions focus on.
    pub focus_topic: Option<String>,
    /// The methods that compress, ceiling and floor among them.
    pub methods: Vec<MethodInfo>,
    /// The models that answered the probes; empty if only contexts were made.
    pub answerers: Vec<ModelInfo>,
    /// The models that graded the answers; several are a panel.
    pub judges: Vec<ModelInfo>,
    /// The rubric that answers were graded by.
    pub rubric: RubricInfo,
    /// The transcripts and their probes.
    pub fixtures: Vec<FixtureInfo>,
    /// What is planted in the transcripts; absent where nothing is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub planted: Option<PlantedInfo>,
}

/// What is planted, and who is asked about it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlantedInfo {
    /// The digest of everything that decides what is planted where.
    pub items: Digest,
    pub variants: u32,
    /// Whether a comparison is tested.
    pub is_tested: bool,
    /// The model that is asked; null where only contexts are made.
    pub answerer: Option<ModelInfo>,
}

impl PlantedInfo {
    /// What makes replies about planted items incomparable with those of another side, as in "the answerer".
    pub(crate) fn differences(&self, other: &PlantedInfo) -> Vec<&'static str> {
        let same_answerer = match (&self.answerer, &other.answerer) {
            (Some(own), Some(other)) => own.is_same(other),
            (own, other) => own.is_some() == other.is_some(),
        };
        let all = [
            (self.items == other.items, "what is planted in the sessions"),
            (same_answerer, "the answerer of planted items"),
        ];
        let differing = all.into_iter().filter(|(is_same, _)| !is_same);
        differing.map(|(_, what)| what).collect()
    }
}

/// A method of the pipeline, with everything that decides its contexts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MethodInfo {
    /// Its name, unique in the pipeline.
    pub name: String,
    /// Its strategy, as a pipeline writes it.
    pub strategy: String,
    /// The model that compresses, if one does.
    pub model: Option<ModelInfo>,
    /// What else decides its contexts, by the names of the pipeline; see [`Method::settings`].
    pub settings: Map<String, Value>,
    /// Whether one compression serves all runs.
    pub deterministic: bool,
    /// The names of the answerers that answer from its contexts.
    pub readers: Vec<String>,
}

/// A method with one of its answerers: what a table has a line for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MethodVariant {
    /// The method's name; with several answerers `METHOD/ANSWERER`.
    pub key: String,
    /// Place in [`Design::methods`].
    pub method: usize,
    /// The answerer's name; empty where nobody reads the method.
    pub answerer: String,
}

/// A model with its settings and prompt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelInfo {
    /// Its name in the pipeline, which no comparison looks at.
    pub name: String,
    /// `provider/model`.
    pub model: String,
    /// The identity of its endpoint, as in cache keys. If it differs, a comparison warns but is not refused.
    pub endpoint: Endpoint,
    /// What is sent with each request: temperature, limits, effort.
    pub settings: Settings,
    /// The digest of the prompt's text; `None` if there is no prompt.
    pub prompt: Option<Digest>,
    /// The prompt's file; `None` for a built-in one.
    pub prompt_path: Option<String>,
    /// The built-in rules answer in place of a model: every report says so.
    pub lexical: bool,
    /// How an answerer may search in its second answers ([`Recovery::settings`]); `None` if it may not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery: Option<Value>,
}

/// The parts of the rubric that grades depend on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RubricInfo {
    /// The digest of everything in it that can change a score.
    pub digest: Digest,
    /// Which criteria grade a probe.
    pub scope: Scope,
    /// Its criteria, with their weights, so that panels can be averaged without the rubric's file.
    pub criteria: Vec<Criterion>,
}

/// A fixture with the probes that were selected from its bank.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FixtureInfo {
    /// Its name, unique in the pipeline.
    pub name: String,
    /// Kinds of task that figures are broken down by.
    pub tags: Vec<String>,
    /// The digests of its messages, points and bank.
    pub digests: FixtureDigests,
    /// The probes asked, in the order of the matrix.
    pub probes: Vec<ProbeInfo>,
}

/// A probe as it was asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProbeInfo {
    /// The number of its point, from 1.
    pub point: u32,
    /// Its id, unique in the bank.
    pub id: String,
    /// What it tests: `recall`, `decision` and so on.
    #[serde(rename = "type")]
    pub kind: ProbeType,
    /// The digest of the probe and of the message index at which it is asked.
    pub digest: Digest,
}

impl Design {
    /// The design of everything that `pipeline` selects.
    pub fn from_pipeline(pipeline: &Pipeline) -> Design {
        let settings = &pipeline.settings;
        let methods = pipeline.methods.iter().zip(&pipeline.method_answerers);
        let answerers: Vec<ModelInfo> =
            (pipeline.answerers.iter().filter(|a| a.recovery.is_none()))
                .map(|a| ModelInfo {
                    recovery: recovery_of(pipeline, &a.name.0),
                    ..ModelInfo::new(&a.name.0, &a.model, Some(&a.template))
                })
                .collect();
        let is_planted_alone = (pipeline.planted.as_ref()).is_some_and(|planted| planted.is_all);
        Design {
            runs: settings.runs,
            locale: settings.locale,
            tail: settings.tail,
            judge_context: settings.judge_context,
            focus_topic: settings.focus_topic.as_deref().map(str::to_owned),
            methods: methods
                .map(|(method, readers)| match is_planted_alone {
                    true => MethodInfo::new(method, Vec::new()),
                    false => MethodInfo::new(method, reader_names(pipeline, readers)),
                })
                .collect(),
            // Where planted items are all that is asked about, no question of a bank is answered.
            answerers: if is_planted_alone {
                Vec::new()
            } else {
                answerers.clone()
            },
            judges: (pipeline.judges.iter())
                .map(|j| ModelInfo::new(&j.name.0, &j.model, Some(&j.template)))
                .collect(),
            rubric: RubricInfo {
                digest: pipeline.rubric.digest(),
                scope: settings.rubric_scope,
                criteria: pipeline.rubric.criteria().to_vec(),
            },
            fixtures: pipeline
                .fixtures
                .iter()
                .map(FixtureInfo::from_loaded)
                .collect(),
            planted: pipeline.planted.as_ref().map(|planted| PlantedInfo {
                items: planted.digest,
                variants: planted.variants,
                is_tested: planted.is_tested,
                answerer: answerers.first().cloned(),
            }),
        }
    }

    /// The method of this name.
    pub fn method(&self, name: &str) -> Option<&MethodInfo> {
        self.methods.iter().find(|method| method.name == name)
    }

    /// What a table calls a method with one of its answerers: `METHOD`, or `METHOD/ANSWERER` if there are several.
    pub fn variant_name(&self, method: &str, answerer: &str) -> String {
        if self.answerers.len() > 1 {
            format!("{method}/{answerer}")
        } else {
            method.to_owned()
        }
    }

    /// The lines of a table: each method with each answerer that reads its contexts.
    pub fn variants(&self) -> Vec<MethodVariant> {
        let mut variants = Vec::new();
        for (method, info) in self.methods.iter().enumerate() {
            if info.readers.is_empty() {
                variants.push(MethodVariant {
                    key: info.name.clone(),
                    method,
                    answerer: String::new(),
                });
            }
            variants.extend(info.readers.iter().map(|answerer| MethodVariant {
                key: self.variant_name(&info.name, answerer),
                method,
                answerer: answerer.clone(),
            }));
        }
        variants
    }

    /// The fixture of this name.
    pub fn fixture(&self, name: &str) -> Option<&FixtureInfo> {
        self.fixtures.iter().find(|fixture| fixture.name == name)
    }

    /// The models that compress, then those that answer.
    pub(crate) fn compressors_and_answerers(&self) -> impl Iterator<Item = &ModelInfo> {
        let methods = self.methods.iter();
        methods
            .filter_map(|method| method.model.as_ref())
            .chain(&self.answerers)
    }

    /// Whether it has answerers; otherwise only contexts are made.
    pub fn has_answers(&self) -> bool {
        !self.answerers.is_empty()
    }

    /// Whether the built-in rules stood in for a model anywhere.
    pub fn is_lexical(&self) -> bool {
        let planted = self.planted.iter();
        self.compressors_and_answerers()
            .chain(&self.judges)
            .chain(planted.filter_map(|planted| planted.answerer.as_ref()))
            .any(|asked| asked.lexical)
    }

    /// Whether the built-in rules did all of the compressing, all of the answering or all of the grading that models do.
    pub fn is_dry_run(&self) -> bool {
        let compressors = self.methods.iter().filter_map(|one| one.model.as_ref());
        let planted = self
            .planted
            .iter()
            .filter_map(|planted| planted.answerer.as_ref());
        let answerers = self.answerers.iter().chain(planted);
        let stages: [Vec<&ModelInfo>; 3] = [
            compressors.collect(),
            answerers.collect(),
            self.judges.iter().collect(),
        ];
        let mut stages = stages.iter();
        stages.any(|asked| !asked.is_empty() && asked.iter().all(|asked| asked.lexical))
    }

    /// Whether no built-in rules stood in for a model that compresses or answers.
    pub fn is_answered_by_models(&self) -> bool {
        self.has_answers() && self.compressors_and_answerers().all(|asked| !asked.lexical)
    }

    /// Whether models are asked, and only once each, so that chance between repetitions cannot be seen.
    pub fn has_one_sample(&self) -> bool {
        let mut all = self.compressors_and_answerers().chain(&self.judges);
        self.runs.compress == 1 && all.any(|asked| !asked.lexical)
    }

    /// How many cells of the judge stage there should be, including those of answers with a search.
    pub fn cells(&self) -> u64 {
        self.methods
            .iter()
            .map(|method| self.cells_of(method))
            .sum()
    }

    fn cells_of(&self, method: &MethodInfo) -> u64 {
        let probes: u64 = self
            .fixtures
            .iter()
            .map(|fixture| fixture.probes.len() as u64)
            .sum();
        let runs = [self.runs.compress, self.runs.answer, self.runs.judge].map(u64::from);
        let searching = self
            .answerers
            .iter()
            .filter(|info| info.recovery.is_some() && method.readers.contains(&info.name));
        let open = if method.is_ceiling() {
            0
        } else {
            searching.count()
        };
        let lists = [
            probes,
            (method.readers.len() + open) as u64,
            self.judges.len() as u64,
        ];
        runs.into_iter().chain(lists).fold(1, u64::saturating_mul)
    }
}

/// The names of those of these answerers that answer without a search.
fn reader_names(pipeline: &Pipeline, readers: &[AnswererIx]) -> Vec<String> {
    let closed = readers
        .iter()
        .filter_map(|ix| pipeline.answerers.get(ix.0))
        .filter(|a| a.recovery.is_none());
    closed.map(|answerer| answerer.name.0.to_string()).collect()
}

/// How the answerer of this name may search in its second answers.
fn recovery_of(pipeline: &Pipeline, closed: &str) -> Option<Value> {
    let all = pipeline
        .answerers
        .iter()
        .filter_map(|answerer| answerer.recovery.as_ref());
    all.filter(|recovery| *recovery.closed == *closed)
        .map(Recovery::settings)
        .next()
}

impl MethodInfo {
    fn new(method: &Method, readers: Vec<String>) -> MethodInfo {
        let (model, template) = (method.strategy.model(), method.strategy.template());
        MethodInfo {
            name: method.name.to_string(),
            strategy: method.strategy.name().to_owned(),
            model: model.map(|model| ModelInfo::new(&method.name.0, model, template)),
            settings: method.settings(),
            deterministic: method.strategy.is_deterministic(),
            readers,
        }
    }

    /// What it keeps verbatim besides its summary, as in `20k`.
    pub fn kept(&self) -> Option<&str> {
        self.settings.get("kept")?.as_str()
    }

    /// Whether it keeps everything: the ceiling.
    pub fn is_ceiling(&self) -> bool {
        self.strategy == BuiltInStrategy::Full.name()
    }

    /// Whether it keeps nothing: the floor.
    pub fn is_floor(&self) -> bool {
        self.strategy == BuiltInStrategy::None.name()
    }

    /// Whether it is the ceiling or the floor: not a candidate, but an end of the scale for candidates.
    pub fn is_anchor(&self) -> bool {
        self.is_ceiling() || self.is_floor()
    }
}

impl ModelInfo {
    fn new(name: &str, model: &ModelUse, template: Option<&Template>) -> ModelInfo {
        ModelInfo {
            name: name.to_owned(),
            model: model.reference.to_string(),
            endpoint: model.provider.endpoint.clone(),
            settings: model.settings.clone(),
            prompt: template.map(|template| Digest::hash(template.text())),
            prompt_path: template.and_then(|template| template.path.clone()),
            lexical: !model.is_asked(),
            recovery: None,
        }
    }

    /// Whether both are the same for a comparison: in model, settings and prompt, not in name and endpoint.
    pub fn is_same(&self, other: &ModelInfo) -> bool {
        (self.model_id(), &self.settings, self.prompt)
            == (other.model_id(), &other.settings, other.prompt)
    }

    /// The model without the provider's name, which means something only in its pipeline.
    fn model_id(&self) -> &str {
        self.model
            .split_once('/')
            .map_or(self.model.as_str(), |(_, model)| model)
    }

    /// The vendor's model family, from the beginning of the name: `gpt`, `claude`, `qwen`.
    pub fn family(&self) -> String {
        let name = self.model.rsplit('/').next().unwrap_or(&self.model);
        name.chars()
            .take_while(char::is_ascii_alphabetic)
            .collect::<String>()
            .to_lowercase()
    }
}

impl FixtureInfo {
    fn from_loaded(loaded: &LoadedFixture) -> FixtureInfo {
        let probes = loaded
            .selected
            .iter()
            .enumerate()
            .flat_map(|(point, selected)| {
                selected
                    .iter()
                    .filter_map(move |ix| ProbeInfo::new(loaded, PointIx(point), *ix))
            });
        FixtureInfo {
            name: loaded.name().to_owned(),
            tags: loaded.fixture.tags.clone(),
            digests: loaded.digests,
            probes: probes.collect(),
        }
    }
}

impl ProbeInfo {
    fn new(loaded: &LoadedFixture, point: PointIx, ix: ProbeIx) -> Option<ProbeInfo> {
        let probe = loaded.probe(ix)?;
        let asked_at = loaded.points.get(point.0)?;
        let json = serde_json::to_string(&(asked_at, probe)).ok()?;
        Some(ProbeInfo {
            point: point.number().0,
            id: probe.id.to_string(),
            kind: probe.kind,
            digest: Digest::hash(json),
        })
    }
}
