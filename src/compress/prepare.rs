//! Turns a strategy and the inputs of a point into work. This is the only `match` over strategies that makes work.

use super::prompts::{COMPACTION, EARLIER_SUMMARY, SESSION_SYSTEM, SUMMARY_REQUEST};
use super::shape::{Kept, SpanText};
use super::spec::{CommandSpec, PromptPlacement, PromptStyle, Strategy};
use crate::action::{
    BuiltInStrategy, ComposedValue, Computation, Digest, INSTRUCTIONS, InputValue, ModelRequest,
    Program, Prompt, RequestTurn, Template, TemplateFault, Variable, Work,
};
use base::locale::Locale;
use base::units::Tokens;
use models::{ModelUse, Operation, ToolOffer};
use sessions::import::SYSTEM_PLACEHOLDER;
use sessions::transcript::{Message, Role};

/// The inputs of a compression at one point.
#[derive(Clone, Copy, Debug)]
pub struct CompressInput<'a> {
    /// The leading system message of the session.
    pub system: Option<&'a str>,
    /// The schemas of the session's tools, as a JSON array.
    pub tools: &'a str,
    /// The session's tools as a model gets them; `None` if it has none.
    pub offer: Option<&'a ToolOffer>,
    /// The run; `None` where one execution serves all.
    pub run: Option<u32>,
    pub span: &'a SpanText,
    /// All messages before the point, a leading system message left out.
    pub prefix: &'a SpanText,
    /// The context that the product itself had at the point; `None` if its log has no compaction before it.
    pub recorded: Option<&'a [Message]>,
    /// The history as the method's shape cuts it; `None` if the method keeps nothing.
    pub kept: Option<&'a Kept>,
    /// The digest of the state that the point before left, if the strategy keeps state and there was one.
    pub previous: Option<Digest>,
    /// The size of the context that the method is to make, if it has one.
    pub target_tokens: Option<Tokens>,
    /// The topic of the coming work, in the user's words.
    pub focus_topic: Option<&'a str>,
    /// The model of the session, as its log named it; empty if unknown.
    pub fixture_model: &'a str,
    /// The context window of that model in tokens.
    pub context_length: Option<u64>,
    /// The language of built-in instructions.
    pub locale: Locale,
}

/// The work of compressing one point by a strategy.
pub fn prepare(strategy: &Strategy, input: &CompressInput<'_>) -> Result<Work, TemplateFault> {
    if input.kept.is_some_and(|kept| kept.is_span_empty) {
        return Ok(Work::Compute(unchanged(input.previous)));
    }
    match strategy {
        Strategy::Prompted {
            style,
            model,
            template,
            placement,
            ..
        } => {
            let turns = match placement {
                PromptPlacement::Inline => prompt_inline(*style, template, input),
                PromptPlacement::System => prompt_as_system(template, input),
                PromptPlacement::Last => prompt_last(template, input),
            };
            // The stand-in reads no tools, so its key is not made of them.
            let tools = input.offer.filter(|_| strategy.declares_tools());
            Ok(Work::request(ModelRequest {
                tools: tools.cloned(),
                ..ModelRequest::new(model, Operation::Generate, turns?)
            }))
        }
        Strategy::Opaque { model } => {
            let mut request = compaction(model, Operation::Compact, input);
            if let Some(RequestTurn::Text(_, system)) = session_system(input.system, input.locale)?
            {
                request.instructions = Some(system);
            }
            Ok(Work::request(request))
        }
        Strategy::ProviderCompaction {
            model, template, ..
        } => vendor_compaction(model, template.as_ref(), input),
        Strategy::Command(command) => Ok(Work::Execute(program(command, input))),
        Strategy::Rule(rule) => Ok(Work::Compute(computation(*rule, input))),
    }
}

/// Sends the prompt alone, which inserts the transcript.
fn prompt_inline(
    style: PromptStyle,
    template: &Template,
    input: &CompressInput<'_>,
) -> Result<Vec<RequestTurn>, TemplateFault> {
    let (transcript, previous) = match (style, input.previous) {
        (_, None) => (input.span.text.clone(), InputValue::from("")),
        (PromptStyle::Anchored, Some(previous)) => {
            (input.span.text.clone(), InputValue::Output(previous))
        }
        (PromptStyle::Regenerative, Some(previous)) => (
            previous_and_span(previous, input.span),
            InputValue::from(""),
        ),
    };
    let prompt = fill(template, input, transcript, previous)?;
    Ok(vec![RequestTurn::Text(Role::User, prompt)])
}

/// Sends the prompt as the system message, then the conversation, then a request for the summary. A prompt that does
/// not insert the previous summary gets it at the beginning of the conversation.
fn prompt_as_system(
    template: &Template,
    input: &CompressInput<'_>,
) -> Result<Vec<RequestTurn>, TemplateFault> {
    let (system, earlier) = prompt_and_earlier(template, input)?;
    let messages =
        (!inserts(&system, "transcript")).then(|| RequestTurn::Messages(input.span.json.clone()));
    let mut turns = vec![RequestTurn::Text(Role::System, system)];
    turns.extend(earlier);
    turns.extend(messages);
    turns.push(RequestTurn::Text(
        Role::User,
        SUMMARY_REQUEST
            .get(input.locale)
            .fill("request", Vec::new())?,
    ));
    Ok(turns)
}

/// Work without a request where nothing new is to be summarised: the summary of the point before, if there is one,
/// stays.
fn unchanged(previous: Option<Digest>) -> Computation {
    let messages = match previous {
        None => InputValue::from("[]"),
        Some(previous) => ComposedValue::builder()
            .literal("[{\"role\":\"user\",\"content\":")
            .string("previous output", InputValue::Output(previous))
            .literal("}]")
            .build(),
    };
    Computation::Strategy {
        rule: BuiltInStrategy::Full,
        messages,
        target_tokens: None,
    }
}

/// Sends the conversation as the agent has it, with its tools declared, then the prompt. Agents that compact like this
/// reuse their prompt cache.
fn prompt_last(
    template: &Template,
    input: &CompressInput<'_>,
) -> Result<Vec<RequestTurn>, TemplateFault> {
    let (prompt, earlier) = prompt_and_earlier(template, input)?;
    let mut turns = Vec::new();
    turns.extend(session_system(input.system, input.locale)?);
    if input.previous.is_some() {
        let before = input
            .kept
            .map(|kept| kept.before.as_slice())
            .unwrap_or_default();
        if !before.is_empty() {
            turns.push(RequestTurn::Messages(
                super::compute::json_of(before).into(),
            ));
        }
    }
    turns.extend(earlier);
    if !inserts(&prompt, "transcript") {
        let conversation = input.kept.map_or(input.span, |kept| &kept.conversation);
        turns.push(RequestTurn::Messages(conversation.json.clone()));
    }
    turns.push(RequestTurn::Text(Role::User, prompt));
    Ok(turns)
}

/// The prompt, and the message with the previous summary if there is one that the prompt does not insert.
fn prompt_and_earlier(
    template: &Template,
    input: &CompressInput<'_>,
) -> Result<(Prompt, Option<RequestTurn>), TemplateFault> {
    let summary = input
        .previous
        .map_or(InputValue::from(""), InputValue::Output);
    let span = input.span.text.clone();
    let prompt = fill(template, input, span, summary.clone())?;
    let is_apart = input.previous.is_some() && !inserts(&prompt, "previous_summary");
    let earlier = is_apart.then(|| earlier_summary(summary, input.locale));
    Ok((prompt, earlier.transpose()?))
}

/// The session's own system message as the first turn of a request; `None` if it has none or one that was scrubbed away.
///
/// # Errors
/// A message that is no template's value.
pub fn session_system(
    system: Option<&str>,
    locale: Locale,
) -> Result<Option<RequestTurn>, TemplateFault> {
    let Some(system) = system.filter(|system| says_something(system)) else {
        return Ok(None);
    };
    let system = SESSION_SYSTEM
        .get(locale)
        .fill("session system", vec![("system", system.into())])?;
    Ok(Some(RequestTurn::Text(Role::System, system)))
}

fn says_something(system: &str) -> bool {
    !system.is_empty() && system != SYSTEM_PLACEHOLDER
}

/// Whether a prompt inserts a variable.
fn inserts(prompt: &Prompt, name: &str) -> bool {
    prompt.used().any(|(variable, _)| variable == name)
}

/// The message that begins a conversation which goes on from a summary.
fn earlier_summary(previous: InputValue, locale: Locale) -> Result<RequestTurn, TemplateFault> {
    let text = EARLIER_SUMMARY
        .get(locale)
        .fill("earlier summary", vec![("previous_summary", previous)])?;
    Ok(RequestTurn::Text(Role::User, text))
}

/// The span with the last output before it, as the assistant's own message of an ordinary history.
fn previous_and_span(previous: Digest, span: &SpanText) -> InputValue {
    ComposedValue::builder()
        .literal("[assistant]\n")
        .raw("previous output", InputValue::Output(previous))
        .literal("\n\n")
        .raw("span", span.text.clone())
        .build()
}

/// The prompt with its values. No template can insert the instructions: only rules that stand in for a model read them.
fn fill(
    template: &Template,
    input: &CompressInput<'_>,
    transcript: InputValue,
    previous: InputValue,
) -> Result<Prompt, TemplateFault> {
    let mut values = vec![("transcript", transcript), ("previous_summary", previous)];
    values.extend(instruction_values(input));
    values.push((INSTRUCTIONS, template.text().into()));
    template.fill("prompt", values)
}

fn instruction_values(input: &CompressInput<'_>) -> [(Variable, InputValue); 2] {
    // The target is the size of the whole context: the summary gets what the kept messages leave of it.
    let kept = input.kept.map_or(0, |kept| kept.tokens.0);
    let target = input
        .target_tokens
        .map(|t| t.0.saturating_sub(kept).to_string())
        .unwrap_or_default();
    [
        ("focus_topic", input.focus_topic.unwrap_or_default().into()),
        ("target_tokens", target.into()),
    ]
}

/// The request for a vendor's compaction: the items that it returned before, then the new messages.
fn compaction(model: &ModelUse, operation: Operation, input: &CompressInput<'_>) -> ModelRequest {
    let previous = input
        .previous
        .map(|state| RequestTurn::Items(InputValue::Output(state)));
    let turns = previous
        .into_iter()
        .chain([RequestTurn::Messages(input.span.json.clone())])
        .collect();
    ModelRequest::new(model, operation, turns)
}

/// The vendor's own instructions stay in force unless the method has a prompt, or the user asked for what only
/// instructions can carry.
fn vendor_compaction(
    model: &ModelUse,
    template: Option<&Template>,
    input: &CompressInput<'_>,
) -> Result<Work, TemplateFault> {
    let needs_instructions =
        input.focus_topic.is_some_and(|topic| !topic.is_empty()) || input.target_tokens.is_some();
    let template = template
        .cloned()
        .or_else(|| needs_instructions.then(|| COMPACTION.get(input.locale)));
    let mut request = compaction(model, Operation::Summarize, input);
    if let Some(template) = template {
        request.instructions = Some(template.fill("prompt", instruction_values(input).to_vec())?);
    }
    Ok(Work::request(request))
}

fn program(command: &CommandSpec, input: &CompressInput<'_>) -> Program {
    Program {
        argv: command.argv.clone(),
        files: command.files.clone(),
        environment: command.environment.clone(),
        identity: command.identity.clone(),
        stdin: program_input(command, input),
    }
}

/// The JSON object on a program's standard input: the messages, and what an agent's own compactor would know. The
/// compression is always forced, as by a command of the user, whatever the size of the history.
fn program_input(command: &CommandSpec, input: &CompressInput<'_>) -> InputValue {
    let previous = input
        .previous
        .map_or(InputValue::from("null"), InputValue::Output);
    let mut builder = ComposedValue::builder()
        .literal("{\"version\":2,\"messages\":")
        .raw("span", input.span.json.clone())
        .literal(",\"previous\":")
        .raw("previous", previous)
        .literal(",\"all_messages\":")
        .raw("prefix", input.prefix.json.clone());
    let target = input.target_tokens.map(|tokens| tokens.0);
    let fields = [
        ("focus_topic", Field::text(input.focus_topic)),
        ("target_tokens", Field::Json(number(target))),
        ("model", Field::text(command.model.as_deref())),
        ("fixture_model", Field::text(Some(input.fixture_model))),
        ("context_length", Field::Json(number(input.context_length))),
        ("system", Field::text(input.system)),
        ("tools", Field::Json(input.tools.into())),
    ];
    for (name, value) in fields {
        builder = builder.literal(&format!(",\"{name}\":"));
        builder = match value {
            Field::Json(json) => builder.raw(name, json),
            Field::Text(text) => builder.string(name, text),
        };
    }
    builder = builder.literal(",\"force\":true,\"reason\":\"manual\"");
    if let Some(run) = input.run {
        let run = number(Some(run.into()));
        builder = builder.literal(",\"run\":").raw("run", run);
    }
    builder.literal("}").build()
}

/// The value of a field on a program's standard input.
enum Field {
    Json(InputValue),
    Text(InputValue),
}

impl Field {
    /// A text, or `null` for none.
    fn text(text: Option<&str>) -> Field {
        match text.unwrap_or_default() {
            "" => Field::Json("null".into()),
            text => Field::Text(text.into()),
        }
    }
}

fn number(number: Option<u64>) -> InputValue {
    InputValue::from(number.map_or("null".to_owned(), |number| number.to_string()))
}

fn computation(rule: BuiltInStrategy, input: &CompressInput<'_>) -> Computation {
    let target_tokens = match rule {
        BuiltInStrategy::Truncate | BuiltInStrategy::Extract | BuiltInStrategy::Mask => {
            input.target_tokens
        }
        BuiltInStrategy::Recorded | BuiltInStrategy::Full | BuiltInStrategy::None => None,
    };
    let messages = match (rule, input.recorded) {
        (BuiltInStrategy::Recorded, Some(recorded)) => super::compute::json_of(recorded).into(),
        _ => input.prefix.json.clone(),
    };
    Computation::Strategy {
        rule,
        messages,
        target_tokens,
    }
}
