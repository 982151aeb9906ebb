//! The shape of `pipeline.toml`: one plain struct a table, every value with its place.
//!
//! Unknown keys and values of the wrong type are reported together with all other problems; serde stops at the first. A
//! profile is merged in: tables by key, arrays of tables by `name`. Only this file uses the `toml` crate.

use std::collections::BTreeMap;
use std::ops::Range;

use serde_json::{Map as JsonMap, Value, json};
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::model::SourceFile;
use super::problem::{Problem, Problems, suggest};

/// A value, where it stands, and where its key stands (for an item of a list: where the item stands).
#[derive(Clone, Debug)]
pub(super) struct Located<T> {
    pub(super) value: T,
    pub(super) place: Range<usize>,
    pub(super) key: Range<usize>,
}

/// What can stand behind a key.
pub(super) trait ReadToml: Sized {
    /// What a list of such values is called.
    const LIST: &'static str = "a list of strings";

    /// Whether a profile's value is merged in rather than put in its place.
    const MERGES: bool = false;

    /// What `read` accepts, as a JSON Schema.
    fn schema() -> Value;

    /// Reads the value, or reports a problem.
    fn read(value: &Spanned<DeValue<'_>>, reader: &mut TomlReader<'_>) -> Option<Self>;

    /// The name by which a profile addresses it in an array of tables.
    fn name(&self) -> Option<&str> {
        None
    }

    /// Lays a profile's value over this one.
    fn merge(&mut self, top: Self) {
        *self = top;
    }
}

pub(super) struct TomlReader<'a> {
    file: &'a SourceFile,
    problems: &'a mut Problems,
}

type Key<'i> = Spanned<DeString<'i>>;

impl TomlReader<'_> {
    fn mistyped<T>(&mut self, value: &Spanned<DeValue<'_>>, expected: &str) -> Option<T> {
        let found = match value.get_ref() {
            DeValue::Integer(number) => &format!("the number {}", number.as_str()),
            DeValue::Array(_) => "a list",
            DeValue::Boolean(_) => "true or false",
            other => &format!("a {}", other.type_str()),
        };
        let problem = Problem::error(format!("expected {expected}, found {found}"));
        self.problems.push(problem.label(self.file, value.span(), format!("expected {expected}")));
        None
    }

    fn unknown_key(&mut self, key: &Key<'_>, known: &[&str]) {
        let name: &str = key.get_ref();
        let is_misplaced = PipelineTable::KEYS.contains(&name) && known.contains(&"pipeline");
        let suggestion = || suggest(name, known.iter().copied());
        let help = if is_misplaced { format!("`{name}` belongs under [pipeline]") } else { suggestion() };
        self.problems.push(Problem::error(format!("unknown key `{name}`")).help(help).at(self.file, key.span()));
    }

    fn placed<T: ReadToml>(&mut self, key: Range<usize>, value: &Spanned<DeValue<'_>>) -> Option<Located<T>> {
        Some(Located { value: T::read(value, self)?, place: value.span(), key })
    }
}

macro_rules! table {
    ($(#[$meta:meta])* $name:ident $(by $key:ident)? { $($(#[doc = $doc:literal])* $field:ident: $type:ty),* $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default)]
        pub(in crate::pipeline) struct $name {
            $($(#[doc = $doc])* pub(in crate::pipeline) $field: Option<Located<$type>>),*
        }

        impl $name {
            pub(in crate::pipeline) const KEYS: &[&str] = &[$(stringify!($field)),*];

            fn of(table: &DeTable<'_>, reader: &mut TomlReader<'_>) -> $name {
                let mut read = $name::default();
                for (key, value) in table {
                    match &**key.get_ref() {
                        $(stringify!($field) => read.$field = reader.placed(key.span(), value),)*
                        _ => reader.unknown_key(key, $name::KEYS),
                    }
                }
                read
            }

            /// The keys that are written, with their places.
            #[allow(dead_code, reason = "few tables are checked key by key")]
            pub(in crate::pipeline) fn written(&self) -> Vec<(&'static str, Range<usize>)> {
                let mut keys = Vec::new();
                $(keys.extend(self.$field.as_ref().map(|placed| (stringify!($field), placed.key.clone())));)*
                keys
            }
        }

        impl ReadToml for $name {
            const LIST: &'static str = "an array of tables (a header in double brackets)";
            const MERGES: bool = true;

            fn schema() -> Value {
                let mut properties = JsonMap::new();
                $(properties.insert(stringify!($field).to_owned(), described::<$type>(&[$($doc),*]));)*
                json!({ "type": "object", "properties": properties, "additionalProperties": false })
            }

            fn read(value: &Spanned<DeValue<'_>>, reader: &mut TomlReader<'_>) -> Option<$name> {
                match value.get_ref() {
                    DeValue::Table(table) => Some($name::of(table, reader)),
                    _ => reader.mistyped(value, "a table"),
                }
            }

            $(fn name(&self) -> Option<&str> {
                self.$key.as_ref().map(|name| name.value.as_str())
            })?

            fn merge(&mut self, top: $name) {
                $(merge(&mut self.$field, top.$field);)*
            }
        }
    };
}

/// The schema of a key with its documentation, which editors show.
fn described<T: ReadToml>(documentation: &[&str]) -> Value {
    let mut schema = T::schema();
    if !documentation.is_empty() {
        schema["description"] = documentation.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ").into();
    }
    schema
}

fn merge<T: ReadToml>(base: &mut Option<Located<T>>, top: Option<Located<T>>) {
    match (base, top) {
        (Some(base), Some(top)) if T::MERGES => base.value.merge(top.value),
        (base, Some(top)) => *base = Some(top),
        (_, None) => {}
    }
}

table! {
    /// Everything that can be declared, and that a profile can override.
    Declared {
        /// Settings of the whole.
        pipeline: PipelineTable,
        /// A cache that several machines share.
        cache: CacheTable,
        /// Endpoints: built-in ones with other settings, or new ones.
        providers: Map<ProviderTable>,
        /// Who writes probes; used by `compeval probes generate` alone.
        probes: TableArray<StructuredReplyTable>,
        /// The methods to compare.
        compress: TableArray<CompressTable>,
        /// Who answers from the compressed contexts.
        answer: TableArray<AnswerTable>,
        /// Who grades the answers.
        judge: TableArray<StructuredReplyTable>,
        /// Rules of the user that are put into sessions and looked for in the contexts.
        constraints: ConstraintsTable,
        /// US dollars per million tokens, by `PROVIDER/MODEL`.
        prices: Map<PriceTable>,
    }
}

table! {
    CacheTable {
        /// fs:///FOLDER, s3://BUCKET/PREFIX, gs://…, az://… or https://…. In CI, COMPEVAL_REMOTE names it.
        remote: String,
        /// The writers whose entries are used: "NAME PUBLIC-KEY".
        trust: StringList,
        /// "write": upload what is made here, signed with the key in COMPEVAL_SIGNING_KEY. Default: "read".
        remote_mode: String,
        /// Whether source texts (prompts, transcripts) are uploaded, too. Default: false.
        remote_texts: bool,
    }
}

table! {
    /// `[pipeline]`
    PipelineTable {
        /// A folder, or a list of globs. Default: "fixtures".
        fixtures: FixturePaths,
        /// The folder of the banks, NAME.probes.json for the fixture NAME. Default: "probes".
        probes: String,
        /// Where result sets are written. Default: "results".
        results: String,
        /// Whether result sets have cells.jsonl.zst in place of cells.jsonl. Default: where they have more than 25,000 rows.
        compress_rows: bool,
        /// Where outputs are stored. Default: "cache"; COMPEVAL_CACHE overrides it.
        cache: String,
        /// Repetitions: a number, or compressions, answers per compression and judgements per answer. Default: 3.
        runs: RunsTable,
        /// Language of the rubric, the built-in prompts and the report. Default: "en".
        locale: String,
        /// A rubric file in place of the built-in one.
        rubric: String,
        /// "verbatim": the answerer also gets the messages after the point. Default: "none".
        tail: String,
        /// Whether judges get the compressed context. Default: true.
        judge_context: bool,
        /// "all": every criterion on every probe. Default: "by-type".
        rubric_scope: String,
        /// Whether paths may lead out of the folder of this file. Default: false.
        allow_outside: bool,
    }
}

table! {
    /// `[providers.NAME]`
    ProviderTable {
        /// The API dialect.
        kind: String,
        /// The root of its API.
        base_url: String,
        /// The NAME of the variable that holds the key; never the key.
        api_key_env: String,
        /// What cache keys call this endpoint. Default: kind and base_url.
        identity: String,
        /// Whether a key may go over http:// to another machine. Default: false.
        insecure: bool,
        /// How requests are sent: "live", "flex" (OpenAI), "batch" (answers and grades) or "file". Default: "live".
        lane: String,
        /// Rates and limits of requests.
        limits: LimitsTable,
    }
}

table! {
    /// `[providers.NAME.limits]`
    LimitsTable {
        /// Requests per minute. No default.
        requests_per_minute: u32,
        /// Input and output tokens per minute. No default.
        tokens_per_minute: u64,
        /// Input tokens per minute. No default.
        input_tokens_per_minute: u64,
        /// Output tokens per minute. No default.
        output_tokens_per_minute: u64,
        /// Models that share the provider's limits: each entry names some, separated by commas. Default: at OpenAI each
        /// model has its own, at Anthropic each class of models, elsewhere the account.
        limit_groups: StringList,
        /// Requests at once. Default: 64, approached step by step.
        max_in_flight: u32,
        /// Attempts per action. Default: 6.
        max_attempts: u32,
        /// Seconds for one reply. Default: 180; in the flex lane at least 900.
        timeout_s: f64,
        /// Whether a request goes live where the flex lane has no capacity for it. Default: false.
        flex_fallback: bool,
        /// Seconds until a batch is polled again; each wait is longer than the one before, up to 40 times this. Default: 15.
        batch_poll_s: f64,
        /// Input tokens that the open batches of one model may have together: the vendor's limit of its queue. No default.
        batch_queue_tokens: u64,
        /// The longest prompt in tokens. Default: from the price table.
        context_window: u64,
    }
}

table! {
    /// `[[compress]]`
    CompressTable by name {
        /// Its name in results.
        name: String,
        /// How it compresses.
        strategy: String,
        /// PROVIDER/MODEL, or lexical.
        model: String,
        /// A template file. Default: the built-in one.
        prompt: String,
        /// "system": the prompt is the system message, and the conversation follows it. Default: "inline".
        placement: String,
        /// Sent to the model if set.
        max_output_tokens: u64,
        /// The requested size.
        target_tokens: u64,
        /// The newest tool results that `mask` keeps. Default: 10.
        keep_results: u32,
        /// Sent to the model if set.
        temperature: f64,
        /// Reasoning effort in the provider's own word; sent if set.
        effort: String,
        /// How its requests are sent: "live", "flex", "batch" or "file"; in a batch each point of a session takes up to a day.
        /// Default: as the provider says, but never in a batch or a file.
        lane: String,
        /// Appends a list of files, failed commands, decisions, demands and open tasks. Default: false.
        artifact_index: bool,
        /// Names of the [[answer]] tables that answer from it. Default: all.
        answerers: StringList,
        /// Program and arguments, started without a shell.
        command: StringList,
        /// Files and globs whose content makes old outputs stale.
        inputs: StringList,
        /// The variables that the program sees besides PATH and HOME.
        env: StringList,
        /// Whether one execution serves all runs. Default: false.
        deterministic: bool,
        /// Seconds for one execution. Default: 180.
        timeout_s: f64,
    }
}

table! {
    /// `[[answer]]`
    AnswerTable by name {
        /// Its name in results.
        name: String,
        /// PROVIDER/MODEL, or lexical.
        model: String,
        /// A template file. Default: the built-in one.
        prompt: String,
        /// Sent to the model if set.
        max_output_tokens: u64,
        /// Sent to the model if set.
        temperature: f64,
        /// Reasoning effort in the provider's own word; sent if set.
        effort: String,
        /// How its requests are sent: "live", "flex", "batch" or "file". Default: as the provider says.
        lane: String,
        /// What happens to an answer that the token limit cut off. Default: "grade".
        truncated_replies: String,
    }
}

table! {
    /// `[[judge]]` and `[[probes]]`: a model that is asked for a reply in a format.
    StructuredReplyTable by name {
        /// Its name in results.
        name: String,
        /// PROVIDER/MODEL, or lexical.
        model: String,
        /// A template file. Default: the built-in one.
        prompt: String,
        /// Sent to the model if set.
        max_output_tokens: u64,
        /// Sent to the model if set.
        temperature: f64,
        /// Reasoning effort in the provider's own word; sent if set.
        effort: String,
        /// How its requests are sent: "live", "flex", "batch" or "file". Default: as the provider says.
        lane: String,
        /// How often it is asked for a reply in the right format. Default: 3.
        attempts: u32,
    }
}

table! {
    /// `[constraints]`
    ConstraintsTable {
        /// Whether rules are put into the sessions, which takes more compressions. Default: false.
        enabled: bool,
        /// A file of rules in place of the built-in set.
        set: String,
    }
}

table! {
    /// `[prices."PROVIDER/MODEL"]`
    PriceTable {
        /// Required.
        input: f64,
        /// Input that the provider served from its prompt cache.
        cached_input: f64,
        /// Input that the provider wrote into its prompt cache.
        cache_write: f64,
        /// Required.
        output: f64,
        /// What all of these cost in the flex lane, as a part of the live price. Default: 0.5.
        flex: f64,
        /// What all of these cost in a batch, as a part of the live price. Default: 0.5.
        batch: f64,
    }
}

table! {
    /// `runs = { .. }`; a bare number is the first of them, the others 1.
    RunsByStage {
        /// Compressions.
        compress: u32,
        /// Answers per compression.
        answer: u32,
        /// Judgements per answer.
        judge: u32,
    }
}

/// `runs`, in either form.
#[derive(Clone, Debug, Default)]
pub(super) struct RunsTable(pub(super) RunsByStage);

impl ReadToml for RunsTable {
    const MERGES: bool = true;

    fn schema() -> Value {
        json!({ "anyOf": [u32::schema(), RunsByStage::schema()] })
    }

    fn read(value: &Spanned<DeValue<'_>>, reader: &mut TomlReader<'_>) -> Option<RunsTable> {
        match value.get_ref() {
            DeValue::Table(table) => Some(RunsTable(RunsByStage::of(table, reader))),
            DeValue::Integer(_) => {
                let number = |value: u32, at: Range<usize>| Some(Located { value, place: at.clone(), key: at });
                let runs = u32::read(value, reader)?;
                let (compress, one) = (number(runs, value.span()), number(1, value.span()));
                Some(RunsTable(RunsByStage { compress, answer: one.clone(), judge: one }))
            }
            _ => reader.mistyped(value, "a number of runs, or a table of `compress`, `answer` and `judge`"),
        }
    }

    fn merge(&mut self, top: RunsTable) {
        self.0.merge(top.0);
    }
}

macro_rules! scalar {
    ($type:ty, $expected:literal, $schema:tt, $pattern:pat => $read:expr) => {
        impl ReadToml for $type {
            fn schema() -> Value {
                json!($schema)
            }

            fn read(value: &Spanned<DeValue<'_>>, reader: &mut TomlReader<'_>) -> Option<$type> {
                let found: Option<$type> = match value.get_ref() {
                    $pattern => $read,
                    _ => None,
                };
                found.or_else(|| reader.mistyped(value, $expected))
            }
        }
    };
}

scalar!(String, "a string", { "type": "string" }, DeValue::String(text) => Some(text.to_string()));
scalar!(bool, "true or false", { "type": "boolean" }, DeValue::Boolean(yes) => Some(*yes));
scalar!(u32, "a whole number from 0 to 4294967295", { "type": "integer", "minimum": 0, "maximum": (u32::MAX) },
    DeValue::Integer(n) => u32::from_str_radix(n.as_str(), n.radix()).ok());
scalar!(u64, "a whole number from 0 up", { "type": "integer", "minimum": 0 },
    DeValue::Integer(n) => u64::from_str_radix(n.as_str(), n.radix()).ok());

impl ReadToml for f64 {
    fn schema() -> Value {
        json!({ "type": "number" })
    }

    fn read(value: &Spanned<DeValue<'_>>, reader: &mut TomlReader<'_>) -> Option<f64> {
        let number = match value.get_ref() {
            DeValue::Float(float) => float.as_str().parse().ok(),
            DeValue::Integer(integer) => integer.as_str().parse().ok(),
            _ => None,
        };
        number.filter(|n: &f64| n.is_finite()).or_else(|| reader.mistyped(value, "a finite number"))
    }
}

/// A list of strings, each with its place.
pub(super) type StringList = Vec<Located<String>>;

/// The variants of a stage, in the order of the file.
pub(super) type TableArray<T> = Vec<Located<T>>;

impl<T: ReadToml> ReadToml for Vec<Located<T>> {
    const MERGES: bool = T::MERGES;

    fn schema() -> Value {
        json!({ "type": "array", "items": T::schema() })
    }

    fn read(value: &Spanned<DeValue<'_>>, reader: &mut TomlReader<'_>) -> Option<Vec<Located<T>>> {
        let items = value.get_ref().as_array().or_else(|| reader.mistyped(value, T::LIST))?;
        Some(items.iter().filter_map(|item| reader.placed(item.span(), item)).collect())
    }

    fn merge(&mut self, top: Vec<Located<T>>) {
        for item in top {
            let same = |base: &&mut Located<T>| base.value.name().is_some() && base.value.name() == item.value.name();
            match self.iter_mut().find(same) {
                Some(base) => base.value.merge(item.value),
                None => self.push(item),
            }
        }
    }
}

/// A folder, or a list of globs.
#[derive(Clone, Debug)]
pub(super) enum FixturePaths {
    Folder(String),
    Globs(StringList),
}

impl ReadToml for FixturePaths {
    fn schema() -> Value {
        json!({ "anyOf": [String::schema(), StringList::schema()] })
    }

    fn read(value: &Spanned<DeValue<'_>>, reader: &mut TomlReader<'_>) -> Option<FixturePaths> {
        match value.get_ref() {
            DeValue::String(text) => Some(FixturePaths::Folder(text.to_string())),
            DeValue::Array(_) => StringList::read(value, reader).map(FixturePaths::Globs),
            _ => reader.mistyped(value, "a folder, or a list of globs"),
        }
    }
}

/// Tables by a name that the user chooses.
pub(super) type Map<T> = BTreeMap<String, Located<T>>;

impl<T: ReadToml> ReadToml for Map<T> {
    const MERGES: bool = true;

    fn schema() -> Value {
        json!({ "type": "object", "additionalProperties": T::schema() })
    }

    fn read(value: &Spanned<DeValue<'_>>, reader: &mut TomlReader<'_>) -> Option<Map<T>> {
        let table = value.get_ref().as_table().or_else(|| reader.mistyped(value, "a table of named tables"))?;
        let entry = |(key, value): (&Key<'_>, &Spanned<DeValue<'_>>)| {
            Some((key.get_ref().to_string(), reader.placed(key.span(), value)?))
        };
        Some(table.iter().filter_map(entry).collect())
    }

    fn merge(&mut self, top: Map<T>) {
        for (name, value) in top {
            let mut base = self.remove(&name);
            merge(&mut base, Some(value));
            self.extend(base.map(|value| (name, value)));
        }
    }
}

/// Reads `pipeline.toml`, and all profiles for their faults; merges in the one selected. `None`: this is not TOML.
pub(super) fn read(file: &SourceFile, profile: Option<&str>, problems: &mut Problems) -> Option<Declared> {
    let mut root = parse(file, problems)?;
    let profiles = root.remove("profile");
    let mut reader = TomlReader { file, problems };
    let mut declared = Declared::of(&root, &mut reader);
    let profiles: Map<Declared> = profiles.and_then(|value| Map::read(&value, &mut reader)).unwrap_or_default();
    match profile.map(|name| (name, profiles.get(name))) {
        None => {}
        Some((_, Some(top))) => declared.merge(top.value.clone()),
        Some((name, None)) => {
            let help = match profiles.is_empty() {
                true => format!("{} declares no profiles; one begins with [profile.{name}]", file.path),
                false => suggest(name, profiles.keys().map(String::as_str)),
            };
            problems.push(Problem::error(format!("there is no profile `{name}` in {}", file.path)).help(help));
        }
    }
    Some(declared)
}

fn parse<'f>(file: &'f SourceFile, problems: &mut Problems) -> Option<DeTable<'f>> {
    let (root, faults) = DeTable::parse_recoverable(&file.text);
    for fault in &faults {
        let problem = Problem::error(format!("this is not TOML: {}", fault.message()));
        problems.push(problem.at(file, fault.span().unwrap_or(0..0)));
    }
    faults.is_empty().then(|| root.into_inner())
}

pub(super) mod rules;
pub(super) mod strings;
