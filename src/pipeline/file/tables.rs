//! The shape of `pipeline.toml`: its tables, and how a profile is merged into them.

use std::ops::Range;
use std::time::Duration;

use serde_json::{Map as JsonMap, Value, json};

use super::{
    DeTable, DeValue, Key, Located, Map, Problem, Problems, ReadToml, SourceFile, Spanned,
    StringList, TableArray, TomlReader, Word, described, merge, parse, ranged, suggest,
};
use crate::compress::{PromptPlacement, StrategyKind, Tail};
use crate::judge::Scope;
use crate::pipeline::TailMode;
use base::locale::Locale;
use base::units::Tokens;
use models::{Dialect, Lane};
use store::remote::RemoteMode;

table! {
    /// Everything that can be declared, and that a profile can override.
    Declared {
        /// Settings of the whole pipeline.
        pipeline: PipelineTable,
        /// A cache that several machines share.
        cache: CacheTable,
        /// Endpoints: built-in ones with other settings, or new ones.
        providers: Map<ProviderTable>,
        /// Who writes probes; used by `compeval probes generate` alone.
        probes: ProbesTable,
        /// The methods to compare.
        compress: TableArray<CompressTable>,
        /// Who answers from the compressed contexts.
        answer: TableArray<AnswerTable>,
        /// Who grades the answers.
        judge: TableArray<JudgeTable>,
        /// Tasks, rules and jobs that are put into sessions and asked about exactly, without a judge.
        planted: PlantedTable,
        /// What verdicts are given on.
        gate: GateTable,
        /// US dollars per million tokens, by `PROVIDER/MODEL`.
        prices: Map<PriceTable>,
    }
}

table! {
    CacheTable {
        /// fs:///FOLDER, s3://BUCKET/PREFIX, gs://…, az://… or https://…. In CI, COMPEVAL_REMOTE names it.
        remote: String,
        /// "write": also put there what is used and made here. Default: "read".
        remote_mode: RemoteMode,
    }
}

table! {
    /// `[pipeline]`
    PipelineTable {
        /// The folder of the recorded sessions, NAME.json each. Default: "fixtures".
        fixtures: String,
        /// The folder of the banks, NAME.probes.json for the fixture NAME. Default: "probes".
        probes: String,
        /// Where result sets are written. Default: "results".
        results: String,
        /// Where outputs are stored. Default: "cache"; COMPEVAL_CACHE overrides it.
        cache: String,
        /// Repetitions: a number, or compressions, answers per compression and judgements per answer. Default: 3.
        runs: RunsTable,
        /// The model of all stages that name none, as PROVIDER/MODEL.
        model: String,
        /// Language of the rubric, the built-in prompts and the report. Default: "en".
        locale: Locale,
        /// A rubric file in place of the built-in one.
        rubric: String,
        /// "verbatim": the answerer also gets the messages after the point. Default: "none".
        tail: TailMode,
        /// Whether judges get the compressed context. Default: true.
        judge_context: bool,
        /// Whether judges are checked on answers of each run in which a fact is made false: 20 requests a judge. Default: true.
        regrade: bool,
        /// "all": every criterion on every probe. Default: "by-type".
        rubric_scope: Scope,
        /// A number that decides with which names and figures the judges are tested. Default: 0; `init` draws one.
        selftest_seed: u64,
        /// Whether paths may lead out of the folder of this file. Default: false.
        allow_outside: bool,
    }
}

table! {
    /// `[providers.NAME]`
    ProviderTable {
        /// The API dialect.
        kind: Dialect,
        /// The root of its API.
        base_url: String,
        /// The NAME of the variable that holds the key; never the key.
        api_key_env: String,
        /// The header in which the key goes to a gateway, such as "Ocp-Apim-Subscription-Key". Default: what is usual there.
        key_header: String,
        /// The parameter of the address in which the key goes, in place of a header.
        key_parameter: String,
        /// What cache keys call this endpoint. Default: kind and base_url.
        identity: String,
        /// Whether a key may go over http:// to another machine. Default: false.
        insecure: bool,
        /// How requests are sent: "live" or "batch" (answers and grades). Default: "live".
        lane: Lane,
        /// Rates and limits of requests.
        limits: LimitsTable,
    }
}

table! {
    /// `[providers.NAME.limits]`
    LimitsTable {
        /// Requests per minute. No default.
        requests_per_minute: u32 in 1..,
        /// Input and output tokens per minute. No default.
        tokens_per_minute: u64 in 1..,
        /// Input tokens per minute. No default.
        input_tokens_per_minute: u64 in 1..,
        /// Output tokens per minute. No default.
        output_tokens_per_minute: u64 in 1..,
        /// Models that share the provider's limits: each entry names some, separated by commas. Default: at OpenAI each
        /// model has its own, at Anthropic each class of models, elsewhere the account.
        limit_groups: StringList,
        /// Requests at once. Default: 64, approached step by step.
        max_in_flight: u32 in 1..,
        /// Attempts per action. Default: 6.
        max_attempts: u32 in 1..,
        /// Seconds for one reply. Default: 180.
        timeout_s: Duration,
        /// Seconds that a model may leave all calls unanswered before they fail; a longer pause that it asks for ends them at once.
        /// Default: 600.
        give_up_after_s: Duration,
        /// Seconds until a batch is polled again; each wait is longer than the one before, up to 40 times this. Default: 15.
        batch_poll_s: Duration,
        /// The longest prompt in tokens. Default: from the price table.
        context_window: Tokens,
    }
}

table! {
    /// The keys of every table that asks a model.
    ModelKeys {
        /// PROVIDER/MODEL, or lexical; a program gets it as written. Default: `model` under [pipeline].
        model: String,
        /// A template file for the user's message. Default: the built-in one.
        prompt: String,
        /// Sent to the model if set.
        max_output_tokens: Tokens,
        /// Sent to the model if set.
        temperature: f64 in 0.0..,
        /// Reasoning effort in the provider's own word; sent if set.
        effort: String,
        /// How its requests are sent; in a batch each point of a session takes up to a day. Default: as the provider says, but
        /// compressions never in a batch.
        lane: Lane,
    }
}

table! {
    /// The keys of a method that starts a program.
    ProgramKeys {
        /// Program and arguments, started without a shell.
        command: StringList,
        /// Files and globs whose content makes old outputs stale.
        inputs: StringList,
        /// Variables that the program sees besides PATH and HOME; their values make old outputs stale.
        env: StringList,
        /// Variables with keys, which the program sees, too. Their values are redacted, and no output depends on them.
        secrets: StringList,
        /// What cache keys call the account or server behind the secrets. Not set: nothing.
        identity: String,
        /// Whether the same input always gives the same output, so that one execution serves all runs. Default: false.
        deterministic: bool,
        /// Seconds for one execution. Default: 180.
        timeout_s: Duration,
    }
}

table! {
    /// `[[compress]]`
    CompressTable by name {
        /// Its name in results.
        name: String,
        /// How it compresses.
        strategy: StrategyKind,
        /// "inline" (default): the prompt inserts {{ transcript }}. "system": the prompt is the system message, and the
        /// conversation follows it. "last": the conversation as the agent has it, with its system message and tools, then the
        /// prompt as the user's last message; a reply that calls a tool fails its cell.
        placement: PromptPlacement,
        /// How many of the oldest messages stay, at least.
        keep_head: u32 in 1..,
        /// The newest messages that stay: tokens, "30%" of the tokens, or "20 messages".
        keep_tail: TailValue,
        /// The newest messages of the user that stay, in tokens.
        keep_user: Tokens,
        /// "files": a list of the files and what was done to them after the summary, those that it does not name, in a tenth
        /// of `target_tokens`.
        append: Appendix,
        /// The tag of the reply that the summary stands in: "summary" for the last <summary>…</summary> that is in no other.
        /// Default: the whole reply.
        extract: String,
        /// The requested size.
        target_tokens: Tokens,
        /// Names of the [[answer]] tables that answer from it. Default: all.
        answerers: StringList,
        /// "lines": workers that answer one request after the other. Default: a process for each request.
        protocol: ProtocolName,
        /// The most workers at a time. Default: as many as there are processors, at most 4.
        workers: u32 in 1..,
        /// Seconds in which a worker must be ready. Default: 120.
        start_timeout_s: Duration,
    } with { ask: ModelKeys, program: ProgramKeys }
}

table! {
    /// `[[answer]]`
    AnswerTable by name {
        /// Its name in results.
        name: String,
        /// Answers each question a second time, with a search in what the context replaced.
        recovery: RecoveryTable,
    } with { ask: ModelKeys }
}

table! {
    /// `[answer.recovery]`
    RecoveryTable {
        /// Searches that an answer may ask for. Default: 2.
        calls: u32 in 1..,
        /// Messages that a search returns at most. Default: 4.
        results: u32 in 1..,
        /// Tokens of each of them at most. Default: 600.
        excerpt_tokens: Tokens,
    }
}

table! {
    /// `[gate]`
    GateTable {
        /// Whether planted items that go wrong more often fail the gate. Default: true.
        planted: bool,
    }
}

table! {
    /// `[[judge]]`
    JudgeTable by name {
        /// Its name in results.
        name: String,
        /// How often it is asked for a reply in the right format. Default: 3.
        attempts: u32 in 1..,
    } with { ask: ModelKeys }
}

table! {
    /// `[probes]`
    ProbesTable {
        /// How often it is asked for a reply in the right format. Default: 3.
        attempts: u32 in 1..,
    } with { ask: ModelKeys }
}

table! {
    /// `[planted]`
    PlantedTable {
        /// Whether items are planted: for each variant one compression and two short requests. Default: false.
        enabled: bool,
        /// A file of items in place of the built-in ones.
        set: String,
        /// How often each session gets one item of each kind. Default: 4.
        variants: u32 in 1..=100,
    }
}

table! {
    /// `[prices."PROVIDER/MODEL"]`
    PriceTable {
        /// Required.
        input: f64 in 0.0..,
        /// Input that the provider served from its prompt cache.
        cached_input: f64 in 0.0..,
        /// Input that the provider wrote into its prompt cache.
        cache_write: f64 in 0.0..,
        /// Required.
        output: f64 in 0.0..,
        /// What all of these cost in a batch, as a part of the live price. Default: 0.5.
        batch: f64 in 0.0..=1.0,
    }
}

table! {
    /// `runs = { .. }`; a bare number is the first of them, the others 1.
    RunsByStage {
        /// Compressions.
        compress: u32 in 1..=MOST_RUNS,
        /// Answers per compression.
        answer: u32 in 1..=MOST_RUNS,
        /// Judgements per answer.
        judge: u32 in 1..=MOST_RUNS,
    }
}

/// The most repetitions of one thing: far beyond use, and a matrix of them still fits in memory.
const MOST_RUNS: u32 = 1000;

/// `runs`, in either form.
#[derive(Clone, Debug)]
pub(crate) struct RunsTable(pub RunsByStage);

impl ReadToml for RunsTable {
    const MERGES: bool = true;

    fn schema() -> Value {
        json!({ "anyOf": [u32::schema(), RunsByStage::schema()] })
    }

    fn read(value: &Spanned<DeValue<'_>>, reader: &mut TomlReader<'_>) -> Option<RunsTable> {
        match value.get_ref() {
            DeValue::Table(table) => Some(RunsTable(RunsByStage::from_table(table, reader))),
            DeValue::Integer(_) => {
                let runs: Located<u32> = reader.placed(value.span(), value)?;
                let one = Some(Located {
                    value: 1,
                    ..runs.clone()
                });
                let is_sound = reader.admits(&runs, &(1..=MOST_RUNS));
                is_sound.then_some(RunsTable(RunsByStage {
                    compress: Some(runs),
                    answer: one.clone(),
                    judge: one,
                    ..RunsByStage::NOTHING
                }))
            }
            _ => reader.mistyped(
                value,
                "a number of runs, or a table of `compress`, `answer` and `judge`",
            ),
        }
    }

    fn merge(&mut self, top: RunsTable) {
        self.0.merge(top.0);
    }
}

/// `keep_tail`, in any form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TailValue(pub Tail);

impl ReadToml for TailValue {
    fn schema() -> Value {
        json!({ "anyOf": [u64::schema(), { "type": "string", "pattern": "^[0-9]+( messages|%)$" }] })
    }

    fn read(value: &Spanned<DeValue<'_>>, reader: &mut TomlReader<'_>) -> Option<TailValue> {
        let expected = "a number of tokens, \"30%\" or \"20 messages\"";
        match value.get_ref() {
            DeValue::Integer(_) => Some(TailValue(Tail::Tokens(Tokens::read(value, reader)?))),
            DeValue::String(text) => {
                let percent = text
                    .strip_suffix('%')
                    .and_then(|number| number.trim().parse().ok());
                let messages = text
                    .strip_suffix("messages")
                    .and_then(|number| number.trim().parse().ok());
                let percent = percent
                    .filter(|percent| (1..=100).contains(percent))
                    .map(Tail::Percent);
                match percent.or(messages.map(Tail::Messages)) {
                    Some(tail) => Some(TailValue(tail)),
                    None => reader.mistyped(value, expected),
                }
            }
            _ => reader.mistyped(value, expected),
        }
    }
}

/// `append`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Appendix {
    Files,
}

impl Word for Appendix {
    fn words() -> Vec<(&'static str, Appendix)> {
        vec![("files", Appendix::Files)]
    }
}

/// `protocol`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProtocolName {
    Lines,
}

impl Word for ProtocolName {
    fn words() -> Vec<(&'static str, ProtocolName)> {
        vec![("lines", ProtocolName::Lines)]
    }
}

/// Reads `pipeline.toml`, reports the faults of all profiles, and merges the selected one. `None` if it is not TOML.
pub(crate) fn read(
    file: &SourceFile,
    profile: Option<&str>,
    problems: &mut Problems,
) -> Option<Declared> {
    let mut root = parse(file, problems)?;
    let profiles = root.remove("profile");
    let mut reader = TomlReader {
        file,
        problems,
        settings: &PipelineTable::keys(),
        key: "",
    };
    let mut declared = Declared::from_table(&root, &mut reader);
    let profiles: Map<Declared> = profiles
        .and_then(|value| Map::read(&value, &mut reader))
        .unwrap_or_default();
    match profile.map(|name| (name, profiles.get(name))) {
        None => {}
        Some((_, Some(top))) => declared.merge(top.value.clone()),
        Some((name, None)) => {
            let help = match profiles.is_empty() {
                true => format!(
                    "{} declares no profiles; one begins with [profile.{name}]",
                    file.path
                ),
                false => suggest(name, profiles.keys().map(String::as_str)),
            };
            problems.push(
                Problem::error(format!("there is no profile `{name}` in {}", file.path)).help(help),
            );
        }
    }
    Some(declared)
}

/// Where a table says how it compresses, or else where it begins.
pub(in crate::pipeline) fn strategy_place(table: &Located<CompressTable>) -> &Range<usize> {
    let strategy = table.value.strategy.as_ref();
    strategy.map_or(&table.place, |strategy| &strategy.place)
}
