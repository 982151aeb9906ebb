//! How a reply ended, and what it holds then: the same for every dialect, because servers borrow one another's words.
//!
//! The list of words is open. Only an end that is known to be good makes a reply whole: a word that nobody knows ends it
//! as broken, and the fault shows the word.

use super::reasoning::without_reasoning;
use crate::call::{Completion, Operation, ReadFault};
use crate::signs::has_any;
use base::message::Function;
use base::words::WordList;

/// How a reply ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Whole,
    /// By a token limit or at the end of the window.
    Cut,
    /// The model or a filter declined.
    Declined,
    /// The server gave up, or nobody knows.
    Broken,
}

/// The words that the name of a good end is made of: OpenAI, Anthropic, Gemini, vLLM, TGI, Ollama, Cohere, Mistral. Divided
/// by blanks.
const WHOLE: WordList = WordList(
    "stop stopped stopping finish finished reason end ended eos eot eom of turn text message token by sequence str \
     string word words natural naturally normal normally complete completed done success successfully ok null none tool \
     tools call calls use function reached found id endoftext endofturn",
);

/// Parts of the words of other ends; the first that occurs counts. A context is either too small for the reply (Anthropic)
/// or full (Bedrock).
const PARTS: [(Ending, &str); 3] = [
    (
        Ending::Broken,
        "malformed|timelimit|ratelimit|unexpected|memory",
    ),
    (
        Ending::Declined,
        "filter|safe|sensitive|prohibit|refus|declin|recitation|block|pii|redact|language|toxic|moderat|guardrail|policy|violat|\
         flagged|inspection|censor|harm|abus|risk|hate|violen|sexual|copyright|offensive|jailbreak|inappropriate|illegal|\
         forbidden|compliance|security",
    ),
    (
        Ending::Cut,
        "length|token|context|limit|truncat|max|window|budget|cutoff|toolong|ranout|cachefull",
    ),
];

/// Reads a vendor's word for the end of a reply; no word is a good end.
pub(crate) fn ending(word: Option<&str>) -> Ending {
    let words = words_of(word.unwrap_or(""));
    let is_good = |word: &String| WHOLE.has(word);
    if words.iter().all(is_good) {
        return Ending::Whole;
    }
    let plain = words.concat();
    let part = PARTS.iter().find(|(_, parts)| has_any(&plain, parts));
    part.map_or(Ending::Broken, |(ending, _)| *ending)
}

/// Whether the word for the end of a reply says that it calls a tool. Without a call, what the model meant to say is lost.
fn announces_call(word: &str) -> bool {
    let words = words_of(word);
    let is_of_call = |word: &String| matches!(&**word, "tool" | "tools" | "function");
    words.iter().any(is_of_call)
}

/// The words of a name in lower case, however they are joined: `FinishReason.END_TURN`, `endTurn`.
fn words_of(name: &str) -> Vec<String> {
    let mut apart = String::with_capacity(name.len());
    let mut is_lower = false;
    for c in name.chars() {
        if is_lower && c.is_uppercase() {
            apart.push(' ');
        }
        is_lower = c.is_lowercase();
        apart.push(if c.is_alphanumeric() { c } else { ' ' });
    }
    let words = apart.to_lowercase();
    words.split_whitespace().map(str::to_owned).collect()
}

/// What a reply says: its text with reasoning still in it, the calls beside it, and the word with which it ended.
pub(crate) struct Said<'a> {
    pub text: &'a str,
    pub calls: Vec<Function>,
    pub end: Option<&'a str>,
}

impl Said<'_> {
    /// The answer; `items` makes what goes back with the calls.
    pub(crate) fn completion(
        self,
        operation: Operation,
        items: impl FnOnce() -> Result<String, ReadFault>,
    ) -> Result<Completion, ReadFault> {
        let word = self.end.unwrap_or_default();
        let truncated = match ending(self.end) {
            Ending::Whole => false,
            Ending::Cut => true,
            Ending::Declined => return Err(ReadFault::Refused(Some(word.replace('_', " ")))),
            Ending::Broken => {
                return Err(ReadFault::Upstream(format!(
                    "the reply ended with `{word}`"
                )));
            }
        };
        let text = without_reasoning(self.text);
        match self.calls.first() {
            Some(call) if operation != Operation::UseTools => {
                return Err(ReadFault::CalledTool(call.name.clone()));
            }
            // A call that was cut off cannot be made.
            Some(_) if !truncated => {
                return Ok(Completion {
                    items: Some(items()?),
                    calls: self.calls,
                    ..Completion::text(text, false)
                });
            }
            _ => {}
        }
        match called_in(text) {
            Some(name) => Err(ReadFault::CalledTool(name)),
            None if text.is_empty() && truncated => Err(ReadFault::Truncated),
            None if text.is_empty() => Err(ReadFault::Empty),
            None if announces_call(word) => Err(ReadFault::Upstream(format!(
                "the reply ended with `{word}` and has no call"
            ))),
            None => Ok(Completion::text(text, truncated)),
        }
    }
}

/// How models write a call where the server does not take it out of the text: Hermes and Qwen, Llama, Mistral, DeepSeek,
/// GLM, Kimi, gpt-oss, InternLM, MiniMax, Anthropic, LM Studio, Cohere, Google.
const CALLS: WordList = WordList(
    "<tool_call <toolcall <tool_use <function_call <function= <invoke <|tool_call \
    <|python_tag|> <|action_start|> <|channel|>commentary <｜tool▁call <minimax:tool_call \
    <longcat_tool_call <｜DSML｜ <|START_ACTION|> [TOOL_CALLS] [TOOL_REQUEST] ✿FUNCTION✿ ```tool_code",
);

/// The name of the tool that a text calls, if the text ends in a call: markup at the beginning of a line and nothing of
/// prose after it, or JSON alone, or a list of Python calls. Markup in a code block is only shown.
fn called_in(text: &str) -> Option<String> {
    let mut is_fenced = false;
    let mut begins = text.split_inclusive('\n').scan(0, |at, line| {
        let begin = *at;
        *at += line.len();
        is_fenced ^= line.trim_start().starts_with("```");
        let is_shown = is_fenced && !line.trim_start().starts_with("```");
        Some((begin, line.trim_start(), is_shown))
    });
    let marked = begins
        .find(|(_, line, is_shown)| !is_shown && CALLS.iter().any(|mark| line.starts_with(mark)));
    if let Some((begin, ..)) = marked {
        let call = text.get(begin..)?;
        return call
            .ends_with(['>', '}', ']', ')', '✿', '`'])
            .then(|| name_in(call));
    }
    // A step of ReAct: two lines and nothing after the input. A whole trace is only shown.
    let step = text.rsplit_once("\nAction Input:");
    let step = step.filter(|(_, input)| !has_any(input, "\nObservation:|\nFinal Answer:|\n```"));
    let named = step.and_then(|(before, _)| before.lines().last()?.strip_prefix("Action:"));
    if let Some(name) = named {
        return Some(name.trim().to_owned());
    }
    let python = text.strip_prefix('[').filter(|_| text.ends_with(")]"));
    if let Some((name, _)) = python.and_then(|calls| calls.split_once('(')) {
        let is_name = name
            .chars()
            .all(|c| c.is_alphanumeric() || matches!(c, '_' | '.'));
        return (is_name && !name.is_empty()).then(|| name.to_owned());
    }
    let fenced = text
        .strip_prefix("```")
        .and_then(|text| text.strip_suffix("```"));
    let json = fenced.map_or(text, |text| text.strip_prefix("json").unwrap_or(text));
    let value: serde_json::Value = serde_json::from_str(json).ok()?;
    let call = value.get("tool_calls").unwrap_or(&value);
    let call = call.get(0).unwrap_or(call);
    let call = call.get("function").unwrap_or(call);
    let has_arguments = ["arguments", "parameters", "input", "args"]
        .iter()
        .any(|key| call.get(key).is_some());
    let name = ["name", "tool_name", "tool"]
        .iter()
        .find_map(|key| call.get(key)?.as_str());
    name.filter(|_| has_arguments).map(str::to_owned)
}

/// The name in a call's markup; the beginning of the markup where none is found.
fn name_in(call: &str) -> String {
    const BEFORE: [&str; 8] = [
        "\"name\"",
        "\"tool_name\"",
        "tool_code\nprint(",
        "name=",
        "function=",
        "to=functions.",
        "FUNCTION✿",
        "[TOOL_CALLS]",
    ];
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    let after = BEFORE
        .iter()
        .find_map(|mark| Some(call.split_once(mark)?.1));
    let name = after.map(|rest| rest.trim_start_matches([':', ' ', '"', '\'']));
    let name: String = name
        .unwrap_or("")
        .chars()
        .take_while(|c| is_name(*c))
        .collect();
    if name.is_empty() {
        call.chars().take_while(|c| *c != '\n').take(40).collect()
    } else {
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_good_ends_are_whole() {
        for (ending_of, words) in [
            (
                Ending::Whole,
                "end_of_text stop_token end_of_turn normal stop STOP eos end_turn EOS_TOKEN COMPLETE stop_sequence tool_use done eos-found FinishReason.STOP STOPPED_BY_EOS eos_reached natural completed_normally stopSequence <|endoftext|>",
            ),
            (
                Ending::Cut,
                "max maximum_tokens context_window budget_exceeded MAX_OUTPUT_TOKENS max_length token_limit length_limit context_length_exceeded truncated ERROR_LIMIT model_context_window_exceeded max-tokens too_long kv_cache_full ran_out_of_space",
            ),
            (
                Ending::Declined,
                "HARM_CATEGORY censored high_risk copyright jailbreak contentFilter RECITATION SPII blocklist IMAGE_SAFETY ERROR_TOXIC guardrail_intervened refusal content_policy_violation input_moderation pii_detected redacted LANGUAGE",
            ),
            (
                Ending::Broken,
                "OTHER MALFORMED_FUNCTION_CALL aborted timeout interrupted engine_overloaded FINISH_REASON_UNSPECIFIED time_limit unknown repetition incomplete out_of_memory stopped_early",
            ),
        ] {
            for word in words.split(' ') {
                assert_eq!(ending(Some(word)), ending_of, "{word}");
            }
        }
        assert_eq!(ending(None), Ending::Whole);
    }

    #[test]
    fn an_end_that_announces_a_call_is_not_whole_without_one() {
        let said = |end, operation| {
            let said = Said {
                text: "I look into the file.",
                calls: Vec::new(),
                end: Some(end),
            };
            said.completion(operation, || Ok("[]".to_owned()))
        };
        for end in ["tool_calls", "tool_use", "function_call", "TOOL_CALL"] {
            for operation in [Operation::Generate, Operation::UseTools] {
                assert!(
                    matches!(said(end, operation), Err(ReadFault::Upstream(_))),
                    "{end}"
                );
            }
        }
        assert!(said("stop", Operation::UseTools).is_ok());
    }

    #[test]
    fn a_call_written_as_text_is_no_answer_and_one_that_is_shown_is() {
        for call in [
            "<tool_call>\n{\"name\": \"read\", \"arguments\": {}}\n</tool_call>",
            "I look.\n<function=read>{\"path\": 1}</function>",
            "[TOOL_CALLS]read{\"path\": \"a\"}",
            "<|python_tag|>{\"name\":\"read\",\"parameters\":{}}",
            "<invoke name=\"read\">\n</invoke>",
            "<|channel|>commentary to=functions.read <|message|>{}",
            "{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}",
            "[{\"name\": \"read\", \"parameters\": {}}]",
            "{\"tool_calls\": [{\"function\": {\"name\": \"read\", \"arguments\": \"{}\"}}]}",
            "✿FUNCTION✿: read\n✿ARGS✿: {}",
            "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"read\">\n</｜DSML｜function_calls>",
            "<|START_ACTION|>[{\"tool_name\": \"read\", \"parameters\": {}}]<|END_ACTION|>",
            "```tool_code\nprint(read(path=\"a\"))\n```",
            "[read(path=\"a\", line=3)]",
            "```json\n{\"name\": \"read\", \"arguments\": {}}\n```",
            "{\"type\": \"tool_use\", \"name\": \"read\", \"input\": {}}",
            "{\"tool\": \"read\", \"args\": {}}",
            "Thought: I look.\nAction: read\nAction Input: {\"path\": \"a\"}",
        ] {
            assert_eq!(called_in(call).as_deref(), Some("read"), "{call}");
        }
        for answer in [
            "The template begins with `<tool_call>`.",
            "```\n<tool_call>\n{\"name\": \"read\"}\n</tool_call>\n```",
            "<tool_call> is the tag that the parser looks for.",
            "{\"name\": \"read\"}",
            "[see the log](a) and [the test (b)]",
            "I look.\n```json\n{\"name\": \"read\", \"arguments\": {}}\n```",
            "Action: read\nAction Input: a\nObservation: 4711\nFinal Answer: 4711",
            "Action: read\nAction Input: a\nFinal Answer: 4711",
            "It went so:\n```\nAction: read\nAction Input: a\n```\nand found 4711.",
            "",
        ] {
            assert_eq!(called_in(answer), None, "{answer}");
        }
    }
}
