//! Inputs: the named values that determine an action's output. Their hash is the action's key. They are stored with the
//! output as one document, to explain later why an action is stale.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::Stage;
use super::template::Prompt;
use super::value::InputValue;
use super::work::{Computation, ModelRequest, Program, RULES, RequestTurn, Work};
use models::ToolOffer;
use store::{ActionKey, Digest, DigestBuilder};

/// Which repetition an action belongs to, as a path: compression, answer of it, judgement of that answer, each from 1.
/// A deterministic action has none, so that all repetitions share one key and one execution.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Repetition {
    pub compress: Option<u32>,
    pub answer: Option<u32>,
    pub judge: Option<u32>,
}

impl Repetition {
    pub const NONE: Repetition = Repetition {
        compress: None,
        answer: None,
        judge: None,
    };
}

impl fmt::Display for Repetition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers: Vec<String> = [self.compress, self.answer, self.judge]
            .into_iter()
            .flatten()
            .map(|n| n.to_string())
            .collect();
        if numbers.is_empty() {
            return f.write_str("none");
        }
        f.write_str(&numbers.join("."))
    }
}

/// What an action was made from. It is stored with the output as one JSON document, makes the key, and explains later
/// what has changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputsDocument {
    pub stage: Stage,
    /// Version of how the stage makes its work (`Stage::schema`).
    pub schema: u16,
    pub repetition: Repetition,
    /// The inputs, in the order in which the work lists them.
    pub inputs: Vec<Input>,
    /// The files that they were made from. They are not hashed: moving a file makes nothing stale.
    pub sources: Vec<Source>,
}

/// One named input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Input {
    pub name: Cow<'static, str>,
    pub digest: Digest,
    /// The text itself, where it is short and not a secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// A file, or a built-in text, that inputs were made from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// `prompt`, `rubric`, `fixture`, or `probe ID` for a bank.
    pub name: Cow<'static, str>,
    /// The path in the project; `None` for a built-in text.
    pub path: Option<String>,
    pub digest: Digest,
}

impl Source {
    /// What people call it: its path, or that it is built in.
    pub fn label(&self) -> String {
        self.path
            .clone()
            .unwrap_or_else(|| format!("built-in {}", self.name))
    }
}

/// Texts of more bytes are not stored with the inputs.
const SHORT: usize = 160;

impl InputsDocument {
    /// Collects the inputs of `work`.
    pub fn new(
        stage: Stage,
        repetition: Repetition,
        work: &Work,
        sources: Vec<Source>,
    ) -> InputsDocument {
        let mut inputs = Vec::new();
        visit(work, &mut |name, digest, text| {
            let text = text.filter(|t| t.len() <= SHORT).map(str::to_owned);
            inputs.push(Input { name, digest, text });
        });
        InputsDocument {
            stage,
            schema: stage.schema(),
            repetition,
            inputs,
            sources,
        }
    }

    pub fn key(&self) -> ActionKey {
        let mut builder = key_builder(self.stage, self.schema, self.repetition);
        for input in &self.inputs {
            builder.field(&input.name, input.digest.0);
        }
        ActionKey(builder.finish())
    }

    /// The same key as `InputsDocument::new(..).key()`, without storing the inputs: a plan computes a hundred thousand of
    /// them.
    pub fn key_of(stage: Stage, repetition: Repetition, work: &Work) -> ActionKey {
        let mut builder = key_builder(stage, stage.schema(), repetition);
        visit(work, &mut |name, digest, _| {
            _ = builder.field(&name, digest.0)
        });
        ActionKey(builder.finish())
    }

    /// The input of this name, if there is one.
    pub fn input(&self, name: &str) -> Option<&Input> {
        self.inputs.iter().find(|input| input.name == name)
    }
}

/// Begins the key of a memo, which is made of outputs and can be made again at any time; the caller adds what else it
/// is made of. `schema` is the version of how `kind` is made; the version of the program is part of the key.
pub fn memo_key(kind: &str, schema: u16) -> DigestBuilder {
    let mut builder = kind_builder(kind, schema);
    builder.field("program", env!("CARGO_PKG_VERSION"));
    builder
}

fn kind_builder(kind: &str, schema: u16) -> DigestBuilder {
    let mut builder = DigestBuilder::new("compeval action v1");
    builder
        .field("stage", kind)
        .field("schema", schema.to_le_bytes());
    builder
}

/// Begins a key. The caller adds the parts, each with its name and its digest.
fn key_builder(stage: Stage, schema: u16, repetition: Repetition) -> DigestBuilder {
    let mut builder = kind_builder(stage.name(), schema);
    for (name, number) in [
        ("compress", repetition.compress),
        ("answer", repetition.answer),
        ("judge", repetition.judge),
    ] {
        if let Some(number) = number {
            builder.field(name, number.to_le_bytes());
        }
    }
    builder.field("parts", "");
    builder
}

/// Receives the name, the digest and, where it is in memory, the text of each input.
trait Visitor: FnMut(Cow<'static, str>, Digest, Option<&str>) {}
impl<F: FnMut(Cow<'static, str>, Digest, Option<&str>)> Visitor for F {}

/// Visits every input of `work` once. Key and explanation both come from this function, so they cannot disagree.
fn visit(work: &Work, part: &mut impl Visitor) {
    match work {
        Work::Ask(request) => visit_request(request, false, part),
        Work::Execute(program) => visit_program(program, part),
        Work::Compute(computation) => visit_computation(computation, part),
    }
}

/// Visits a request. If it is computed by the stand-in for a model, the rules and all values are inputs, too.
fn visit_request(request: &ModelRequest, is_computed: bool, part: &mut impl Visitor) {
    let mut text = |name: &'static str, text: &str| visit_text(name, text, part);
    text("endpoint", &request.endpoint.0);
    text("model", &request.model.0);
    if is_computed {
        text("rules", RULES);
    }
    let settings = &request.settings;
    if request.operation != models::Operation::Generate {
        text("operation", &format!("{:?}", request.operation));
    }
    if let Some(limit) = settings.max_output_tokens {
        text("max_output_tokens", &limit.0.to_string());
    }
    if let Some(temperature) = settings.temperature {
        text("temperature", &temperature.to_string());
    }
    if let Some(effort) = &settings.effort {
        text("effort", effort);
    }
    if let Some(occasion) = &request.occasion {
        part("occasion".into(), *occasion, None);
    }
    if let Some(schema) = &request.schema {
        part("output schema".into(), schema.digest(), None);
    }
    if let Some(ToolOffer { tools, is_open }) = &request.tools {
        for tool in tools.iter() {
            let declared =
                serde_json::json!([tool.name, tool.description, tool.parameters, is_open])
                    .to_string();
            let name = if tools.len() == 1 {
                "tool".into()
            } else {
                format!("tool {}", tool.name).into()
            };
            part(name, Digest::hash(&declared), Some(&declared));
        }
    }
    for (index, turn) in request.turns.iter().enumerate() {
        visit_turn(index, turn, is_computed, part);
    }
    if let Some(prompt) = &request.instructions {
        visit_prompt("instructions".into(), prompt, is_computed, part);
    }
}

fn visit_turn(index: usize, turn: &RequestTurn, all_values: bool, part: &mut impl Visitor) {
    match turn {
        RequestTurn::Text(role, prompt) => {
            // The role is in the name, so that moving a text to another role changes the key.
            visit_prompt(
                format!("{} {}", role.name(), prompt.name()).into(),
                prompt,
                all_values,
                part,
            );
        }
        RequestTurn::Messages(value) => {
            visit_value(format!("messages {index}").into(), value, part)
        }
        RequestTurn::Items(value) => visit_value(format!("items {index}").into(), value, part),
        RequestTurn::Reply(value) => visit_value(format!("reply {index}").into(), value, part),
        RequestTurn::Results(value) => visit_value(format!("results {index}").into(), value, part),
    }
}

fn visit_prompt(
    name: Cow<'static, str>,
    prompt: &Prompt,
    all_values: bool,
    part: &mut impl Visitor,
) {
    part(name, prompt.skeleton_digest(), None);
    if all_values {
        for (name, value) in prompt.values() {
            visit_value((*name).into(), value, part);
        }
    } else {
        for (name, value) in prompt.used() {
            visit_value(name.into(), value, part);
        }
    }
}

fn visit_value(name: Cow<'static, str>, value: &InputValue, part: &mut impl Visitor) {
    match value {
        InputValue::Text(digest, text) => part(name, *digest, Some(text)),
        InputValue::Output(digest) => part(name, *digest, None),
        InputValue::Composed(composed) => {
            part(name, value.digest(), None);
            for (inner, value) in composed.parts() {
                visit_value(inner.into(), value, part);
            }
        }
    }
}

fn visit_text(name: &'static str, text: &str, part: &mut impl Visitor) {
    part(name.into(), Digest::hash(text), Some(text));
}

fn visit_program(program: &Program, part: &mut impl Visitor) {
    let argv = serde_json::Value::from(program.argv.clone()).to_string();
    visit_text("command", &argv, part);
    for (path, digest) in &program.files {
        part(format!("file {path}").into(), *digest, None);
    }
    for (name, value) in &program.environment {
        let mut builder = DigestBuilder::new("variable");
        if let Some(value) = value {
            builder.field("value", value.0);
        }
        part(format!("variable {name}").into(), builder.finish(), None);
    }
    if let Some(identity) = &program.identity {
        visit_text("identity", identity, part);
    }
    visit_value("stdin".into(), &program.stdin, part);
}

fn visit_computation(computation: &Computation, part: &mut impl Visitor) {
    let (rule, messages, target_tokens) = match computation {
        Computation::Strategy {
            rule,
            messages,
            target_tokens,
        } => (*rule, messages, target_tokens),
        Computation::StandIn(request) => return visit_request(request, true, part),
    };
    visit_text("rule", rule.name(), part);
    visit_text("rules", RULES, part);
    visit_value("messages".into(), messages, part);
    if let Some(target) = target_tokens {
        visit_text("target_tokens", &target.0.to_string(), part);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::action::BuiltInStrategy;
    use crate::action::Template;
    use base::units::Tokens;
    use models::{Operation, Settings};
    use sessions::transcript::Role;

    fn request(model: &str, prompt: &str, transcript: &str, limit: Option<u64>) -> Work {
        let template = Template::new(prompt, &["transcript"]).expect("a valid template");
        let prompt = template
            .fill("prompt", vec![("transcript", transcript.into())])
            .expect("it renders");
        Work::Ask(ModelRequest {
            provider: "p".into(),
            endpoint: "e".into(),
            model: model.into(),
            operation: Operation::Generate,
            turns: vec![RequestTurn::Text(Role::User, prompt)],
            instructions: None,
            settings: Settings {
                max_output_tokens: limit.map(Tokens),
                ..Settings::default()
            },
            schema: None,
            tools: None,
            lane: Default::default(),
            occasion: None,
        })
    }

    fn key(work: &Work) -> ActionKey {
        InputsDocument::key_of(Stage::Compress, Repetition::NONE, work)
    }

    #[test]
    fn only_the_keys_of_built_in_rules_contain_the_version_of_the_rules() {
        let names_rules = |work: &Work| {
            let mut has_rules = false;
            visit(work, &mut |name, _, text| {
                has_rules |= name == "rules" && text == Some(RULES)
            });
            has_rules
        };
        let asked = request("m", "Sum up {{ transcript }}", "T", None);
        assert!(!names_rules(&asked));
        let Work::Ask(mut request) = asked else {
            panic!("asks")
        };
        request.endpoint = "lexical".into();
        assert!(names_rules(&Work::request(request)));
        let computed = Computation::Strategy {
            rule: BuiltInStrategy::Extract,
            messages: "[]".into(),
            target_tokens: None,
        };
        assert!(names_rules(&Work::Compute(computed)));
    }

    #[test]
    fn one_key_of_each_kind_is_pinned() {
        let ask = request("m", "Sum up: {{ transcript }}", "text", Some(9));
        let program = Work::Execute(Program {
            argv: vec!["python3".into(), "c.py".into()],
            files: vec![("c.py".into(), Digest::hash("code"))],
            environment: vec![("FLAG".into(), None)],
            identity: None,
            stdin: "{}".into(),
        });
        let rule = Work::Compute(Computation::Strategy {
            rule: BuiltInStrategy::Full,
            messages: "[]".into(),
            target_tokens: None,
        });
        let keys = [ask, program, rule].map(|work| key(&work).0.short());
        assert_eq!(keys, ["46cc81bf6d12", "c48e482d5ffc", "f407e59bd786"]);
    }

    #[test]
    fn the_name_of_the_provider_is_not_in_the_key() {
        let mut renamed = request("m", "{{ transcript }}", "t", None);
        let plain = key(&renamed);
        if let Work::Ask(request) = &mut renamed {
            request.provider = "other".into();
        }
        assert_eq!(key(&renamed), plain);
    }

    #[test]
    fn an_occasion_is_in_the_key() {
        let mut again = request("m", "{{ transcript }}", "t", None);
        let plain = key(&again);
        if let Work::Ask(request) = &mut again {
            request.occasion = Some(Digest::hash("today"));
        }
        assert_ne!(key(&again), plain);
    }

    proptest! {
        #[test]
        fn every_determining_field_changes_the_key(
            a in ("[a-z]{1,4}", "[a-z ]{0,6}", "[a-z]{0,6}", proptest::option::of(1_u64..9)),
            b in ("[a-z]{1,4}", "[a-z ]{0,6}", "[a-z]{0,6}", proptest::option::of(1_u64..9)),
        ) {
            let of = |(model, prompt, transcript, limit): &(String, String, String, Option<u64>)| {
                request(model, &format!("{prompt}|{{{{ transcript }}}}"), transcript, *limit)
            };
            let (one, two) = (of(&a), of(&b));
            prop_assert_eq!(key(&one) == key(&two), a == b);
            prop_assert_eq!(InputsDocument::new(Stage::Compress, Repetition::NONE, &one, Vec::new()).key(), key(&one));
        }

        #[test]
        fn stage_and_repetition_are_in_the_key(n in 1_u32..5, m in 1_u32..5) {
            let work = request("m", "{{ transcript }}", "t", None);
            let repetition = |n| Repetition { compress: Some(n), ..Repetition::NONE };
            let of = |stage, repetition| InputsDocument::key_of(stage, repetition, &work);
            prop_assert_eq!(of(Stage::Compress, repetition(n)) == of(Stage::Compress, repetition(m)), n == m);
            prop_assert_ne!(of(Stage::Compress, repetition(n)), of(Stage::Answer, repetition(n)));
            prop_assert_ne!(of(Stage::Compress, repetition(n)), of(Stage::Compress, Repetition { answer: Some(n), ..Repetition::NONE }));
        }
    }
}
