//! Sample result sets of any size, from a fixed seed.

use std::collections::BTreeMap;
use std::rc::Rc;

use base::locale::Locale;
use compeval::action::{ActionKey, Digest};
use compeval::judge::{Rubric, Scope};
use compeval::pipeline::{FixtureDigests, Runs, TailMode};
use compeval::probe::{Probe, ProbeType};
use compeval::report::html::{self, ContextKey, PageInput, PageMethod, PageSession, ReadContext};
use compeval::report::{Block, Section, TextStyle, TextTable};
use compeval::results::{
    ComparisonScope, Design, FixtureInfo, Manifest, MethodInfo, ModelInfo, ProbeInfo, ResultSet,
    Row, RubricInfo, Side, Summary, TextEdit, compare, summarize,
};
use models::Settings;
use sessions::transcript::{Message, Role};

use super::cell::{CellPosition, row, with_search};

/// Name, strategy, share of facts kept, tokens kept.
pub(crate) const METHODS: [(&str, &str, f64, u64); 6] = [
    ("full", "full", 0.98, 21_400),
    ("anchored", "anchored-iterative", 0.72, 1_900),
    ("anchored+index", "anchored-iterative", 0.81, 2_300),
    ("regenerative", "regenerative", 0.60, 2_050),
    ("truncate-2k", "truncate", 0.41, 2_000),
    ("none", "none", 0.03, 0),
];
const FIXTURES: [&str; 6] = [
    "checkout-flaky-test",
    "migrate-to-sqlite",
    "auth-token-rotation",
    "csv-import-memory",
    "图表导出",
    "docs-search",
];

/// The size of a sample, and a string that all of its texts contain.
pub(crate) struct SampleOptions {
    pub(crate) fixtures: usize,
    pub(crate) points: u32,
    pub(crate) probes: u32,
    pub(crate) runs: u32,
    pub(crate) locale: Locale,
    pub(crate) injection: &'static str,
    /// Whether it is compared with a baseline.
    pub(crate) compared: bool,
    /// Whether each question is answered a second time with a search.
    pub(crate) searched: bool,
}

impl Default for SampleOptions {
    fn default() -> SampleOptions {
        SampleOptions {
            fixtures: 4,
            points: 3,
            probes: 8,
            runs: 3,
            locale: Locale::En,
            injection: "",
            compared: true,
            searched: false,
        }
    }
}

/// The input of a page, owned.
pub(crate) struct Sample {
    locale: Locale,
    injection: &'static str,
    label: String,
    banks: BTreeMap<String, Vec<Probe>>,
    pub(crate) rows: Vec<Row>,
    summary: Summary,
    manifest: Manifest,
    pub(crate) contexts: BTreeMap<ContextKey, String>,
    sessions: BTreeMap<String, Session>,
}

/// A session that says the facts of its bank, ten messages before each point.
struct Session {
    messages: Vec<Message>,
    points: Vec<usize>,
}

impl Session {
    fn new(bank: &[Probe], options: &SampleOptions) -> Session {
        let roles = [
            Role::User,
            Role::Assistant,
            Role::Tool,
            Role::Assistant,
            Role::Assistant,
        ];
        let said = |n: usize| {
            let facts = bank
                .iter()
                .filter(|probe| probe.point.map_or(0, |point| point.0 as usize) == n / 10 + 1);
            let facts = facts
                .flat_map(|probe| &probe.expected_facts)
                .skip(n % 10)
                .step_by(10);
            let facts: Vec<&str> = facts.map(|fact| fact.name()).collect();
            format!("message {n}: {}{}", facts.join(", "), options.injection)
        };
        let count = options.points as usize * 10;
        let messages: Vec<Message> = (0..count)
            .map(|n| Message::text(roles[n % 5], said(n)))
            .collect();
        Session {
            messages,
            points: (1..=options.points as usize)
                .map(|point| point * 10)
                .collect(),
        }
    }

    fn of_page(&self) -> PageSession<'_> {
        PageSession {
            messages: &self.messages,
            start: 0,
            points: &self.points,
        }
    }
}

/// Reproducible pseudorandom numbers.
pub(crate) struct Xorshift(u64);

impl Xorshift {
    pub(crate) fn next(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

fn read_context(text: &str) -> ReadContext<'_> {
    Rc::new(|| Some(Some(text.to_owned())))
}

pub(crate) fn render(input: &PageInput<'_>) -> String {
    html::render(input)
}

impl Sample {
    pub(crate) fn new(options: &SampleOptions) -> Sample {
        let mut random = Xorshift(0x9e37_79b9_7f4a_7c15);
        let banks: BTreeMap<String, Vec<Probe>> = fixtures(options)
            .into_iter()
            .map(|(name, n)| (name, bank(n, options)))
            .collect();
        let mut contexts = BTreeMap::new();
        let rows = rows(options, &banks, 0.0, &mut random, Some(&mut contexts));
        let design = design(options, &banks);
        let set = |label: &str, rows: &[Row]| {
            let manifest = Manifest::begin(label, "2026-01-01T00:00:00Z", design.clone());
            ResultSet::gather(manifest, rows.iter().cloned().map(Ok))
                .expect("rows fit their design")
        };
        let now = set("tuned-prompt", &rows);
        let comparison = options.compared.then(|| {
            let baseline = set(
                "main",
                &self::rows(options, &banks, -0.3, &mut Xorshift(77), None),
            );
            let side = |set| Side { set, method: None };
            compare(
                side(&now),
                side(&baseline),
                ComparisonScope::All,
                &|path, _, _| TextEdit::unknown(path),
            )
            .expect("comparable")
        });
        let summary = summarize(&now, comparison);
        let label = format!("tuned-prompt{}", options.injection);
        Sample {
            locale: options.locale,
            injection: options.injection,
            label,
            sessions: banks
                .iter()
                .map(|(name, bank)| (name.clone(), Session::new(bank, options)))
                .collect(),
            banks,
            rows,
            summary,
            manifest: now.manifest.clone(),
            contexts,
        }
    }

    /// The input from a results folder alone.
    pub(crate) fn input_of_folder(&self) -> PageInput<'_> {
        PageInput::new(
            &self.manifest,
            &self.summary,
            Rubric::built_in(self.locale),
            &self.rows,
        )
    }

    pub(crate) fn input(&self) -> PageInput<'_> {
        let injected = |text: &str| format!("{text}{}", self.injection);
        let pair = |name: &str, value: &str| (injected(name), injected(value));
        let cells = self.rows.len().to_string();
        PageInput {
            label: self.label.clone(),
            locale: self.locale,
            facts: vec![
                pair("fixtures", "4"),
                pair("runs", "3"),
                pair("cells", &cells),
                pair("version", "0.1.0"),
            ],
            front: vec![
                Block::Sentence(TextStyle::Bad, injected("Regressed: `anchored` −0.50.")),
                Block::Sentence(TextStyle::Plain, injected("One run.")),
                Block::Sentence(
                    TextStyle::Warning,
                    injected("The judge passed 9 of 12 pairs of its self-test; 11 are needed."),
                ),
            ],
            sections: [
                "overview",
                "changes-in-detail",
                "scores",
                "failures",
                "compressions",
            ]
            .map(|id| self.section(id))
            .into(),
            methods: METHODS
                .iter()
                .map(|(name, strategy, ..)| self.method(name, strategy))
                .collect(),
            rubric: Rubric::built_in(self.locale),
            banks: self
                .banks
                .iter()
                .map(|(name, probes)| (name.as_str(), probes.as_slice()))
                .collect(),
            rows: &self.rows,
            contexts: self
                .contexts
                .iter()
                .map(|(place, text)| (place.clone(), read_context(text)))
                .collect(),
            sessions: self
                .sessions
                .iter()
                .map(|(name, session)| (name.as_str(), session.of_page()))
                .collect(),
            ..self.input_of_folder()
        }
    }

    fn method(&self, name: &str, strategy: &str) -> PageMethod {
        PageMethod {
            name: format!("{name}{}", self.injection),
            label: String::new(),
            strategy: strategy.to_owned(),
        }
    }

    /// A section with each kind of block.
    fn section(&self, id: &'static str) -> Section {
        let injected = |text: &str| format!("{text}{}", self.injection);
        let row = ["anchored", "0.80 0.70–0.90"];
        let row = row.map(|text| vec![(TextStyle::Plain, injected(text))]);
        Section {
            id,
            title: injected(id),
            blocks: vec![
                Block::Table(TextTable {
                    header: vec![injected("method"), injected("tokens")],
                    rows: vec![row.into()],
                    ..TextTable::default()
                }),
                Block::List(vec![injected("probes from good to bad (1): `login` · p1.")]),
                Block::Lines(injected("lost"), vec![injected("login · p1 4.00 → 0.00")]),
                Block::Diff(injected("p.md:3"), vec![injected("-## State")], 0),
                Block::Sentence(TextStyle::Dim, injected("Of the exact details.")),
            ],
        }
    }
}

fn fixtures(options: &SampleOptions) -> Vec<(String, usize)> {
    FIXTURES
        .iter()
        .take(options.fixtures)
        .enumerate()
        .map(|(n, name)| (format!("{name}{}", options.injection), n))
        .collect()
}

fn kind(n: u32) -> ProbeType {
    ProbeType::ALL[n as usize % ProbeType::ALL.len()]
}

fn bank(fixture: usize, options: &SampleOptions) -> Vec<Probe> {
    let injection = options.injection;
    let probe = |point: u32, n: u32| {
        let (port, file) = (
            8000 + 10 * n + point,
            format!("src/part{n}/store{fixture}.rs"),
        );
        let question = match kind(n) {
            ProbeType::Recall => {
                format!(
                    "Which port did the service of step {n} listen on in the end, and where is it set?"
                )
            }
            ProbeType::Artifact => {
                format!("Which file was changed for step {n}, and what was changed in it?")
            }
            ProbeType::Continuation => {
                format!("What still fails after step {n}, and what is to be done about it next?")
            }
            ProbeType::Decision => {
                format!("Why was the retry limit of step {n} lowered, and to what?")
            }
        };
        let json = serde_json::json!({
            "id": format!("{}-{point}-{n}{injection}", kind(n).name()), "type": kind(n).name(), "point": point,
            "question": format!("{question}{injection}"),
            "expected_facts": [format!("port {port}"), [file.clone(), format!("{file}:12")], format!("retry_limit = {n}{injection}")],
            "superseded_facts": [format!("port {}", port + 500)],
            "reference_answer": format!("It listens on port {port}; see {file}.{injection}"),
            "tags": if n.is_multiple_of(5) { vec![format!("constraint{injection}")] } else { vec![] },
        });
        serde_json::from_value(json).expect("a probe")
    };
    (1..=options.points)
        .flat_map(|point| (1..=options.probes).map(move |n| (point, n)))
        .map(|(p, n)| probe(p, n))
        .collect()
}

fn rows(
    options: &SampleOptions,
    banks: &BTreeMap<String, Vec<Probe>>,
    shift: f64,
    random: &mut Xorshift,
    mut contexts: Option<&mut BTreeMap<ContextKey, String>>,
) -> Vec<Row> {
    let mut rows = Vec::new();
    for (n, (fixture, _)) in fixtures(options).into_iter().enumerate() {
        for (m, run) in (0..METHODS.len()).flat_map(|m| (1..=options.runs).map(move |run| (m, run)))
        {
            for point in 1..=options.points {
                let (name, _, keep, _) = METHODS[m];
                // What keeps nothing is deterministic: its runs share all actions.
                let executed = if name == "none" { 1 } else { run };
                let key = ActionKey(Digest::hash(format!(
                    "{fixture} {name} {executed} {point} {shift}"
                )));
                let gain = shift
                    * (f64::from(u8::from(name.contains("index")))
                        - f64::from(u8::from(name == "truncate-2k")));
                let keep =
                    (keep + gain - 0.06 * f64::from(point - 1) + 0.02 * n as f64).clamp(0.0, 1.0);
                let at = CellPosition {
                    options,
                    fixture: &fixture,
                    method: m,
                    run,
                    point,
                    key,
                    keep,
                };
                let asked = banks[&fixture]
                    .iter()
                    .filter(|probe| probe.point.is_some_and(|p| p.0 == point));
                let mut text = format!(
                    "# Session summary of {fixture}\n\n## Intent\nKeep the service running.{}\n",
                    options.injection
                );
                for probe in asked {
                    rows.push(row(at, probe, random, &mut text));
                    let searched = rows.last().filter(|_| options.searched && name != "full");
                    rows.extend(searched.map(|closed| with_search(at, closed, random)));
                }
                if let Some(contexts) = contexts
                    .as_deref_mut()
                    .filter(|_| point != 2 || name != "regenerative")
                {
                    contexts.insert(
                        (key, format!("{name}{}", options.injection), point),
                        if name == "none" { String::new() } else { text },
                    );
                }
            }
        }
    }
    rows
}

fn asked(name: &str, injection: &str) -> ModelInfo {
    ModelInfo {
        name: format!("{name}{injection}"),
        model: "openai/gpt-5.2".into(),
        endpoint: "openai".into(),
        settings: Settings::default(),
        prompt: None,
        prompt_path: None,
        lexical: false,
        recovery: None,
    }
}

fn design(options: &SampleOptions, banks: &BTreeMap<String, Vec<Probe>>) -> Design {
    let rubric = Rubric::built_in(options.locale);
    let method = |(name, strategy, ..): &(&str, &str, f64, u64)| MethodInfo {
        name: format!("{name}{}", options.injection),
        strategy: (*strategy).into(),
        model: None,
        settings: Default::default(),
        deterministic: false,
        readers: vec![format!("agent{}", options.injection)],
    };
    Design {
        runs: Runs {
            compress: options.runs,
            answer: 1,
            judge: 1,
        },
        locale: options.locale,
        tail: TailMode::None,
        judge_context: true,
        focus_topic: None,
        methods: METHODS.iter().map(method).collect(),
        answerers: vec![ModelInfo {
            recovery: options.searched.then(|| serde_json::json!({ "calls": 2 })),
            ..asked("agent", options.injection)
        }],
        judges: vec![asked("judge", options.injection)],
        rubric: RubricInfo {
            digest: rubric.digest(),
            scope: Scope::ByType,
            criteria: rubric.criteria().to_vec(),
        },
        planted: None,
        fixtures: fixtures(options)
            .iter()
            .map(|(name, _)| fixture(name, &banks[name]))
            .collect(),
    }
}

fn fixture(name: &str, bank: &[Probe]) -> FixtureInfo {
    let digest = Digest::hash(name);
    let probe = |probe: &Probe| ProbeInfo {
        point: probe.point.map_or(1, |point| point.0),
        id: probe.id.to_string(),
        kind: probe.kind,
        digest: Digest::hash(probe.id.to_string()),
    };
    FixtureInfo {
        name: name.into(),
        tags: vec!["debugging".into()],
        digests: FixtureDigests {
            transcript: digest,
            points: digest,
            bank: digest,
        },
        probes: bank.iter().map(probe).collect(),
    }
}
