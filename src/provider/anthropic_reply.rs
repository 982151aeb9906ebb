//! What Anthropic's Messages endpoint answers.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::api::{Completion, Operation, ReadFault};
use super::reading::{count, error_text, lenient, parse};
use crate::units::{Tokens, Usage};

/// A reply of this dialect, not yet judged to be an answer.
#[derive(Deserialize)]
pub(super) struct Reply<'a> {
    #[serde(default, deserialize_with = "lenient")]
    model: Option<String>,
    #[serde(default, borrow)]
    content: Option<Vec<&'a RawValue>>,
    #[serde(default, deserialize_with = "lenient")]
    stop_reason: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    stop_details: Option<StopDetails>,
    #[serde(default, deserialize_with = "lenient")]
    usage: Option<MessagesUsage>,
}

#[derive(Deserialize)]
struct StopDetails {
    #[serde(default, deserialize_with = "lenient")]
    category: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    explanation: Option<String>,
}

/// What this dialect says a call used.
#[derive(Deserialize)]
pub(super) struct MessagesUsage {
    #[serde(flatten)]
    whole: Counts,
    #[serde(default, deserialize_with = "lenient")]
    iterations: Option<Vec<Counts>>,
}

#[derive(Clone, Copy, Deserialize)]
struct Counts {
    #[serde(default, deserialize_with = "count")]
    input_tokens: Option<Tokens>,
    #[serde(default, deserialize_with = "count")]
    cache_creation_input_tokens: Option<Tokens>,
    #[serde(default, deserialize_with = "count")]
    cache_read_input_tokens: Option<Tokens>,
    #[serde(default, deserialize_with = "count")]
    output_tokens: Option<Tokens>,
}

impl Counts {
    /// `input_tokens` is only what follows the last breakpoint; what the cache wrote and read comes on top.
    fn usage(self) -> Usage {
        let cached =
            self.cache_read_input_tokens.unwrap_or_default() + self.cache_creation_input_tokens.unwrap_or_default();
        Usage {
            input: self.input_tokens.map(|n| n + cached).filter(|n| n.0 > 0),
            cached_input: self.cache_read_input_tokens,
            cache_write: self.cache_creation_input_tokens,
            output: self.output_tokens,
            reasoning: None,
        }
    }
}

#[derive(Deserialize)]
struct ContentBlock {
    #[serde(default, rename = "type", deserialize_with = "lenient")]
    kind: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    text: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    content: Option<String>,
}

/// Opens a body.
pub(super) fn open(body: &[u8]) -> Result<Reply<'_>, ReadFault> {
    #[derive(Deserialize)]
    struct Kind {
        #[serde(default, rename = "type")]
        kind: Value,
        #[serde(default)]
        error: Value,
    }
    let kind: Kind = parse(body)?;
    if kind.kind == "error" || !kind.error.is_null() {
        return Err(ReadFault::Upstream(error_text(&kind.error)));
    }
    parse(body)
}

impl MessagesUsage {
    /// Where a compaction ran, the top-level numbers leave it out: the iterations are summed.
    fn sum(&self) -> Usage {
        match self.iterations.as_deref() {
            None | Some([]) => self.whole.usage(),
            Some(iterations) => iterations.iter().map(|i| i.usage()).reduce(sum).unwrap_or_default(),
        }
    }
}

impl From<MessagesUsage> for Usage {
    fn from(usage: MessagesUsage) -> Usage {
        usage.sum()
    }
}

impl Reply<'_> {
    pub(super) fn usage(&self) -> Usage {
        self.usage.as_ref().map(MessagesUsage::sum).unwrap_or_default()
    }

    pub(super) fn completion(self, operation: Operation) -> Result<Completion, ReadFault> {
        let usage = self.usage();
        self.check_stop(operation)?;
        let raw = self.content.as_deref().ok_or_else(|| ReadFault::Malformed("it has no `content`".into()))?;
        let blocks: Vec<ContentBlock> = raw
            .iter()
            .map(|block| serde_json::from_str(block.get()))
            .collect::<Result<_, _>>()
            .map_err(|e| ReadFault::Malformed(format!("a content block: {e}")))?;
        if operation == Operation::Summarize {
            let (text, items) = compacted(&blocks, raw)?;
            return Ok(Completion { text, items: Some(items), model: self.model, usage });
        }
        let spoken = blocks.iter().filter(|b| b.kind.as_deref() == Some("text"));
        let text: String = spoken.filter_map(|b| b.text.as_deref()).collect();
        let text = text.trim().to_owned();
        if text.is_empty() {
            Err(ReadFault::Empty)
        } else {
            Ok(Completion { text, items: None, model: self.model, usage })
        }
    }

    fn check_stop(&self, operation: Operation) -> Result<(), ReadFault> {
        match (self.stop_reason.as_deref(), operation) {
            (Some("max_tokens" | "model_context_window_exceeded"), _) => Err(ReadFault::Truncated),
            (Some("refusal"), _) => {
                let details = self.stop_details.as_ref();
                Err(ReadFault::Refused(details.and_then(|d| d.explanation.clone().or_else(|| d.category.clone()))))
            }
            (Some("compaction"), Operation::Summarize) => Ok(()),
            (reason, Operation::Summarize) => Err(ReadFault::Malformed(format!(
                "no compaction took place: stop_reason `{}`",
                reason.unwrap_or("null")
            ))),
            (Some("tool_use"), _) => Err(ReadFault::Malformed("the model called a tool instead of answering".into())),
            _ => Ok(()),
        }
    }
}

/// The readable summary, and the block itself for the requests to come.
fn compacted(blocks: &[ContentBlock], raw: &[&RawValue]) -> Result<(String, String), ReadFault> {
    let mut found = blocks.iter().zip(raw).filter(|(block, _)| block.kind.as_deref() == Some("compaction"));
    let (block, raw) = found.next().ok_or_else(|| ReadFault::Malformed("it holds no compaction block".into()))?;
    match block.content.as_deref().filter(|text| !text.trim().is_empty()) {
        Some(text) => Ok((text.to_owned(), format!("[{}]", raw.get()))),
        None => Err(ReadFault::Empty),
    }
}

fn sum(a: Usage, b: Usage) -> Usage {
    use crate::units::add_known;
    Usage {
        input: add_known(a.input, b.input),
        cached_input: add_known(a.cached_input, b.cached_input),
        cache_write: add_known(a.cache_write, b.cache_write),
        output: add_known(a.output, b.output),
        reasoning: add_known(a.reasoning, b.reasoning),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(operation: Operation, body: &str) -> Result<Completion, ReadFault> {
        open(body.as_bytes())?.completion(operation)
    }

    #[test]
    fn the_text_is_found_by_type_and_the_prompt_is_all_three_counts() {
        let body = r#"{"type":"message","model":"m","stop_reason":"end_turn",
            "content":[{"type":"thinking","thinking":""},{"type":"text","text":"Oslo"}],
            "usage":{"input_tokens":10,"cache_creation_input_tokens":200,"cache_read_input_tokens":3000,"output_tokens":4}}"#;
        let completion = read(Operation::Generate, body).unwrap();
        assert_eq!(completion.text, "Oslo");
        assert_eq!(completion.usage.input, Some(Tokens(3210)));
        assert_eq!(completion.usage.cached_input, Some(Tokens(3000)));
        assert_eq!(completion.usage.output, Some(Tokens(4)));
    }

    #[test]
    fn a_block_is_kept_byte_for_byte_and_its_iterations_are_its_cost() {
        let block = r#"{"type":"compaction", "content":"code 4711","signature":"E\u0075"}"#;
        let body = format!(
            r#"{{"type":"message","content":[{{"type":"thinking"}},{block}],"stop_reason":"compaction",
            "usage":{{"input_tokens":0,"output_tokens":0,"iterations":[{{"type":"compaction","input_tokens":144,"output_tokens":276}}]}}}}"#
        );
        let completion = read(Operation::Summarize, &body).unwrap();
        assert_eq!(completion.items, Some(format!("[{block}]")));
        assert_eq!(completion.text, "code 4711");
        assert_eq!((completion.usage.input, completion.usage.output), (Some(Tokens(144)), Some(Tokens(276))));
    }

    #[test]
    fn a_compaction_that_did_not_take_place_is_no_answer() {
        let with = |reason: &str| format!(r#"{{"type":"message","content":[],"stop_reason":"{reason}"}}"#);
        assert_eq!(read(Operation::Summarize, &with("max_tokens")), Err(ReadFault::Truncated));
        assert!(matches!(read(Operation::Summarize, &with("end_turn")), Err(ReadFault::Malformed(_))));
        assert_eq!(read(Operation::Generate, &with("refusal")), Err(ReadFault::Refused(None)));
        assert_eq!(read(Operation::Generate, &with("end_turn")), Err(ReadFault::Empty));
    }
}
