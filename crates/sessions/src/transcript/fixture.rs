//! The fixture file: its fields, reading it with a place for every fault, the tools of its session, and the compression
//! points at which its transcript may be cut.
//!
//! Spans: messages as one readable text.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write as _;
use std::ops::Range;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use base::fault::{Fault, place_of};
use base::message::{Message, Role, Unpaired, unpaired};
use base::units::Tokens;

/// The words in a tool output that mark a cut.
pub const CUT_MARK: &str = " characters in the original ...]";

/// A scrubbed transcript snapshot. Unknown keys are kept and ignored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Fixture {
    /// Equals the file's stem.
    pub name: String,
    /// What happened in the session, in a sentence or two.
    #[serde(default)]
    pub description: String,
    /// The model that worked in the session, as the log named it.
    #[serde(default)]
    pub model: String,
    /// The context window of that model in tokens, if known.
    #[serde(default)]
    pub context_length: Option<u64>,
    /// Kinds of task, for breakdowns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Compression points: exclusive message indices in rising order; none means one at the end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub points: Vec<usize>,
    /// The number of messages to which the session was cut, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truncated_to: Option<u64>,
    /// Where the agent itself compacted its history: exclusive message indices in rising order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub compactions: Vec<usize>,
    /// The contexts that the agent went on with after these compactions, where the log has their summaries.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recorded: Vec<RecordedContext>,
    /// Whether the log began in the middle of a session, so that the agent knew more than the messages say.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub begins_midway: bool,
    /// The schemas of the tools that the agent declared to its model, in OpenAI's shape, where the log has them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<serde_json::Value>,
    /// The transcript.
    pub messages: Vec<Message>,
    /// Remarks of whoever made the fixture.
    #[serde(default, skip_serializing_if = "serde_json::Value::is_null")]
    pub notes: serde_json::Value,
    /// Keys this program does not know.
    #[serde(flatten)]
    pub extra: serde_json::Map<String, serde_json::Value>,
}

/// What a product's own compaction made of the history before it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RecordedContext {
    /// The index of the message that follows the compaction.
    pub at: usize,
    /// The summary that the product wrote.
    pub summary: String,
    /// The messages before it that stayed as they are: ranges of indices, in order, each with its end excluded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<[usize; 2]>,
}

impl Fixture {
    /// The context that the product itself had before message `end`: its newest summary, what it kept beside it, and the
    /// messages since; `None` where no recorded compaction is before `end`.
    pub fn recorded_context(&self, end: usize) -> Option<Vec<Message>> {
        let last = self.recorded.iter().rev().find(|one| one.at <= end)?;
        let mut context = vec![Message::text(Role::User, last.summary.as_str())];
        let since = [last.at, end];
        for [from, to] in last.kept.iter().chain([&since]) {
            context.extend_from_slice(self.messages.get(*from..*to).unwrap_or_default());
        }
        Some(context)
    }

    /// The compression points in effect: those declared, or the end of the transcript.
    pub fn effective_points(&self) -> Vec<usize> {
        if self.points.is_empty() {
            vec![self.messages.len()]
        } else {
            self.points.clone()
        }
    }

    /// The leading system message, which is kept aside.
    pub fn system(&self) -> Option<&str> {
        let leading = self.messages.get(..self.start())?.first()?;
        Some(&leading.content)
    }

    /// Index of the first message that is compressed: a leading system message is kept aside.
    pub fn start(&self) -> usize {
        start_of(&self.messages)
    }
}

/// How many messages at the beginning are kept aside: a leading system message.
pub(crate) fn start_of(messages: &[Message]) -> usize {
    let first = messages.first();
    usize::from(first.is_some_and(|first| first.role == Role::System))
}

/// A fixture with the place of each of its messages in the text it was read from.
#[derive(Clone, Debug)]
pub struct ParsedFixture {
    /// The fixture.
    pub fixture: Fixture,
    /// Byte range of each message in the text.
    pub places: Vec<Range<usize>>,
}

#[derive(Deserialize)]
struct FixtureOutline<'a> {
    #[serde(borrow)]
    messages: Vec<&'a RawValue>,
    #[serde(borrow, default)]
    points: Option<&'a RawValue>,
}

impl ParsedFixture {
    /// Reads a fixture from the text of its file.
    ///
    /// # Errors
    /// All faults of structure: broken JSON, unpaired or repeated tool calls, points out of range.
    pub fn read(text: &str) -> Result<ParsedFixture, Vec<Fault>> {
        // A list would be taken for the fields in their order.
        if let Some(at) = text
            .find(|c: char| !c.is_whitespace())
            .filter(|at| text.get(*at..).is_some_and(|rest| rest.starts_with('[')))
        {
            let help =
                "a list of messages is a log: `compeval fixture import` makes a fixture of it";
            let help = format!("{}; {help}", shape());
            return Err(vec![Fault::at(
                at..at + 1,
                "expected an object, found a list",
                help,
            )]);
        }
        let outline: FixtureOutline<'_> =
            serde_json::from_str(text).map_err(|e| vec![json_fault(text, 0, &e)])?;
        let places: Vec<_> = outline
            .messages
            .iter()
            .map(|raw| place_of(text, raw.get()))
            .collect();
        let mut faults: Vec<_> = outline
            .messages
            .iter()
            .zip(&places)
            .filter_map(|(raw, place)| {
                serde_json::from_str::<Message>(raw.get())
                    .err()
                    .map(|e| json_fault(text, place.start, &e))
            })
            .collect();
        if !faults.is_empty() {
            return Err(faults);
        }
        let fixture: Fixture =
            serde_json::from_str(text).map_err(|e| vec![json_fault(text, 0, &e)])?;
        faults.extend(pair_faults(&fixture.messages, &places));
        let points_place = outline.points.map_or(0..0, |raw| place_of(text, raw.get()));
        faults.extend(point_faults(&fixture, points_place));
        if faults.is_empty() {
            Ok(ParsedFixture { fixture, places })
        } else {
            Err(faults)
        }
    }
}

fn shape() -> &'static str {
    "a fixture is JSON with `name` and `messages` in OpenAI's chat shape"
}

fn json_fault(text: &str, offset: usize, error: &serde_json::Error) -> Fault {
    Fault::json(text, offset, error, shape())
}

fn pair_faults(messages: &[Message], places: &[Range<usize>]) -> Vec<Fault> {
    let fault = |at: usize, message: String, help: &str| {
        Fault::at(places.get(at).cloned().unwrap_or(0..0), message, help)
    };
    let unpaired = unpaired(messages).into_iter();
    let mut faults: Vec<Fault> = unpaired
        .map(|Unpaired { at, id, is_call }| match is_call {
            true => fault(
                at,
                format!("tool call `{id}` in message {at} has no result before the next message"),
                "add the result right after the call, or remove the call",
            ),
            false => fault(
                at,
                format!("message {at} is a tool result for `{id}`, but no open call before it has that id"),
                "a result directly follows the assistant message that makes the call; remove the orphan or restore its call",
            ),
        })
        .collect();
    let mut seen: HashSet<&str> = HashSet::new();
    for (at, message) in messages.iter().enumerate() {
        for call in message
            .tool_calls
            .iter()
            .filter(|call| !seen.insert(&call.id))
        {
            let message = format!("tool call id `{}` is used twice", call.id);
            faults.push(fault(at, message, "ids are unique within a fixture"));
        }
    }
    faults
}

fn point_faults(fixture: &Fixture, place: Range<usize>) -> Vec<Fault> {
    let len = fixture.messages.len();
    if len == fixture.start() {
        let help = "a fixture needs at least one message after the system message";
        return vec![Fault::at(
            place,
            "the fixture has no messages to compress",
            help,
        )];
    }
    let mut faults = Vec::new();
    let mut before = fixture.start();
    for &point in &fixture.points {
        if point <= before || point > len {
            faults.push(Fault::at(
                place.clone(),
                format!(
                    "point {point} is out of range or order: expected {} to {len}",
                    before + 1
                ),
                "points are exclusive message indices in rising order, after the system message",
            ));
        } else if !is_boundary(&fixture.messages, point) {
            faults.push(Fault::at(
                place.clone(),
                format!("point {point} parts a tool call from its result"),
                "move the point to just before an assistant or user message",
            ));
        }
        before = before.max(point);
    }
    faults
}

/// The tool schemas of a session in OpenAI's shape: those that were recorded, else a stub for each tool that is called,
/// with the arguments that occur. Stubs are sorted by name, so that equal sessions have equal ones.
pub fn tool_schemas(fixture: &Fixture) -> Vec<Value> {
    if !fixture.tools.is_empty() {
        return fixture.tools.clone();
    }
    let mut tools: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
    for call in fixture
        .messages
        .iter()
        .flat_map(|message| &message.tool_calls)
    {
        let properties = tools.entry(&call.function.name).or_default();
        // A call with broken arguments still names its tool.
        for (name, value) in call.arguments().unwrap_or_default() {
            properties
                .entry(name)
                .or_insert_with(|| json!({ "type": json_type(&value) }));
        }
    }
    let stubs = tools.into_iter().map(|(name, properties)| {
        let parameters = json!({ "type": "object", "properties": properties });
        json!({ "type": "function", "function": { "name": name, "description": "", "parameters": parameters } })
    });
    stubs.collect()
}

fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null | Value::String(_) => "string",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The 1-based number of a compression point within its fixture, that is its compression cycle.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct Point(pub u32);

/// Whether cutting before `messages[at]` keeps every tool call with its results.
///
/// Results directly follow their call, so a cut is safe exactly where the next message is not a result.
pub fn is_boundary(messages: &[Message], at: usize) -> bool {
    at <= messages.len() && messages.get(at).is_none_or(|next| next.role != Role::Tool)
}

/// For each of the rising shares of the tokens from `start` on, the first place after it at which the messages can be
/// cut. Shares that one message passes together have one place.
pub fn points_at_shares(
    messages: &[Message],
    start: usize,
    shares: impl IntoIterator<Item = f64>,
    count: &dyn Fn(&Message) -> Tokens,
) -> Vec<usize> {
    let sizes: Vec<u64> = messages
        .iter()
        .skip(start)
        .map(|message| count(message).0)
        .collect();
    let total: u64 = sizes.iter().sum();
    let mut places = Vec::new();
    let mut since = 0;
    let mut shares = shares.into_iter().peekable();
    for (at, size) in (start + 1..).zip(sizes) {
        since += size;
        if shares
            .peek()
            .is_some_and(|share| since as f64 >= share * total as f64)
            && is_boundary(messages, at)
        {
            places.push(at);
            while shares
                .next_if(|share| since as f64 >= share * total as f64)
                .is_some()
            {}
        }
    }
    places
}

/// The ends of this many spans of about equal tokens, the last at the end of the transcript. A transcript with fewer
/// turns has fewer spans.
pub fn ends_of_spans(
    messages: &[Message],
    start: usize,
    spans: u32,
    count: &dyn Fn(&Message) -> Tokens,
) -> Vec<usize> {
    let shares = (1..spans).map(|span| f64::from(span) / f64::from(spans));
    let mut ends = points_at_shares(messages, start, shares, count);
    ends.retain(|at| *at < messages.len());
    if messages.len() > start {
        ends.push(messages.len());
    }
    ends
}

/// Writes messages as one text, a headed block each:
///
/// ```text
/// [user]
/// fix the parser
///
/// [assistant]
/// Looking first.
/// [call terminal] {"command":"ls"}
///
/// [result terminal]
/// a.py
/// ```
pub fn render(messages: &[Message]) -> String {
    let mut names: HashMap<&str, &str> = HashMap::new();
    let mut text = String::new();
    for message in messages {
        if !text.is_empty() {
            text.push_str("\n\n");
        }
        let called = message.tool_call_id.as_deref().and_then(|id| names.get(id));
        match (message.role, called) {
            (Role::Tool, Some(name)) => write_line(&mut text, &format!("[result {name}]")),
            (Role::Tool, None) => write_line(&mut text, "[result]"),
            (role, _) => write_line(&mut text, &format!("[{}]", role.name())),
        }
        text.push_str(message.content.trim_end());
        for call in &message.tool_calls {
            names.insert(&call.id, &call.function.name);
            if !text.ends_with('\n') {
                text.push('\n');
            }
            // Writing to a string cannot fail.
            let _ = write!(
                text,
                "[call {}] {}",
                call.function.name, call.function.arguments
            );
        }
    }
    text
}

fn write_line(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::message::ToolCall;

    #[test]
    fn recorded_schemas_win_and_calls_make_stubs() {
        let text = r#"{"name":"a","messages":[{"role":"user","content":"go"}]}"#;
        let mut fixture = ParsedFixture::read(text).unwrap().fixture;
        let mut call = Message::text(Role::Assistant, "");
        call.tool_calls
            .push(ToolCall::new("c2", "write", "not json"));
        call.tool_calls
            .push(ToolCall::new("c1", "read", r#"{"path":"a.rs","line":3}"#));
        fixture.messages.push(call);
        let stubs = tool_schemas(&fixture);
        assert_eq!(stubs.len(), 2);
        assert_eq!(stubs[0]["function"]["name"], "read");
        assert_eq!(
            stubs[0]["function"]["parameters"]["properties"]["line"],
            json!({"type": "integer"})
        );
        fixture.tools = vec![json!({"type": "function"})];
        assert_eq!(tool_schemas(&fixture), fixture.tools);
    }

    fn faults(json: &str) -> Vec<String> {
        ParsedFixture::read(json)
            .expect_err("a fault")
            .into_iter()
            .map(|f| f.message)
            .collect()
    }

    #[test]
    fn a_sound_fixture_keeps_unknown_keys() {
        let text = r#"{"name":"a","messages":[{"role":"user","content":"hi"}],"mood":"calm"}"#;
        let parsed = ParsedFixture::read(text).expect("sound");
        assert_eq!(parsed.fixture.effective_points(), [1]);
        assert_eq!(
            &text[parsed.places[0].clone()],
            r#"{"role":"user","content":"hi"}"#
        );
        assert_eq!(
            serde_json::to_value(&parsed.fixture).unwrap()["mood"],
            "calm"
        );
    }

    #[test]
    fn broken_json_is_placed_on_its_line() {
        let text = "{\"name\":\"a\",\n \"messages\":[\n  {\"role\":\"usr\",\"content\":\"hi\"}]}";
        let fault = &ParsedFixture::read(text).expect_err("a fault")[0];
        assert!(
            fault.message.contains("unknown variant `usr`"),
            "{}",
            fault.message
        );
        assert_eq!(text[..fault.place.start].matches('\n').count(), 2);
    }

    #[test]
    fn a_list_of_messages_is_told_to_be_a_log() {
        let fault = &ParsedFixture::read(" [{\"role\": \"user\"}]").expect_err("a fault")[0];
        assert_eq!(fault.message, "expected an object, found a list");
        assert!(
            fault
                .help
                .as_ref()
                .is_some_and(|help| help.contains("fixture import"))
        );
    }

    #[test]
    fn orphans_repeats_and_bad_points_are_named() {
        let orphan = r#"{"name":"a","messages":[{"role":"user","content":"x"},{"role":"tool","tool_call_id":"c9","content":"y"}]}"#;
        assert!(faults(orphan)[0].contains("`c9`"));
        let open = r#"{"name":"a","messages":[{"role":"assistant","content":"","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"user","content":"x"}]}"#;
        assert!(faults(open)[0].contains("has no result"));
        let range = r#"{"name":"a","points":[2],"messages":[{"role":"user","content":"x"}]}"#;
        assert!(faults(range)[0].contains("out of range"));
    }

    #[test]
    fn spans_have_about_equal_tokens_and_part_no_call_from_its_result() {
        let mut call = Message::text(Role::Assistant, "x");
        call.tool_calls.push(ToolCall::new("1", "run", "{}"));
        let mut messages = vec![Message::text(Role::User, "x"); 9];
        messages.splice(4..6, [call, Message::result("1", "x")]);
        let ends = |spans| ends_of_spans(&messages, 0, spans, &|_| Tokens(1));
        assert_eq!(ends(3), [3, 6, 9]);
        assert_eq!(
            ends(2),
            [6, 9],
            "the half ends between a call and its result"
        );
        assert_eq!(ends(1), [9]);
        assert_eq!(ends(100).len(), 8);
        assert_eq!(
            ends_of_spans(&messages[..1], 1, 4, &|_| Tokens(1)),
            [0_usize; 0]
        );
    }
}

#[cfg(test)]
mod span_tests {
    use super::*;
    use base::message::ToolCall;

    #[test]
    fn renders_calls_and_results_by_name() {
        let mut call = Message::text(Role::Assistant, "Look.");
        call.tool_calls
            .push(ToolCall::new("c1", "terminal", r#"{"command":"ls"}"#));
        let text = render(&[
            Message::text(Role::User, "go"),
            call,
            Message::result("c1", "a.py\n"),
        ]);
        assert_eq!(
            text,
            "[user]\ngo\n\n[assistant]\nLook.\n[call terminal] {\"command\":\"ls\"}\n\n[result terminal]\na.py"
        );
    }
}
