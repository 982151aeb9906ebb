//! The usage that a program reports, in the field names of any common SDK.

use serde_json::{Map, Value};

use crate::compress::CompressFault;
use base::units::{Tokens, Usage, Usd};

/// The usage that a program reports of its own requests. A figure that it does not report is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ProgramUsage {
    pub tokens: Usage,
    /// Requests to a model.
    pub calls: Option<u64>,
    /// Their cost, if the program knows it.
    pub cost: Option<Usd>,
}

// Paths to the same number in different SDKs, divided by `|`.

const INPUT: &str =
    "input_tokens|prompt_tokens|inputTokens|promptTokens|promptTokenCount|prompt_token_count|input";
const OUTPUT: &str = "output_tokens|completion_tokens|outputTokens|completionTokens|output";
/// Gemini counts thoughts beside the output, not in it.
const CANDIDATES: &str = "candidatesTokenCount|candidates_token_count";
const THOUGHTS: &str = "thoughtsTokenCount|thoughts_token_count";
/// Cache reads that the input includes.
const CACHED_OF_INPUT: &str = "prompt_tokens_details.cached_tokens|input_tokens_details.cached_tokens|\
    input_token_details.cache_read|cachedContentTokenCount|cached_content_token_count|cachedInputTokens|\
    cached_input_tokens|cache_read_tokens";
const WRITTEN_OF_INPUT: &str = "input_token_details.cache_creation|cache_write_tokens";
/// Cache reads that the input does not include.
const CACHED_BESIDE: &str = "cache_read_input_tokens|cacheRead";
const WRITTEN_BESIDE: &str = "cache_creation_input_tokens|cacheWrite";
const REASONING: &str = "completion_tokens_details.reasoning_tokens|output_tokens_details.reasoning_tokens|\
    output_token_details.reasoning|reasoningTokens|reasoning_tokens";
const CALLS: &str = "calls|requests";
const COST: &str = "cost|cost.total|cost_usd|accumulated_cost";

/// Reads `usage`.
///
/// # Errors
/// A value that is not a number or is negative, parts larger than the whole, and an object without any known name.
pub(super) fn read(value: Value) -> Result<ProgramUsage, CompressFault> {
    let Value::Object(object) = value else {
        return Err(CompressFault::contract("`usage` is no object", expected()));
    };
    let usage = ProgramUsage {
        tokens: read_tokens(&object)?,
        calls: read_count(&object, CALLS)?.map(|calls| calls.0),
        cost: read_cost(&object)?,
    };
    if usage == ProgramUsage::default() && !object.is_empty() {
        let keys: Vec<&str> = object.keys().map(String::as_str).collect();
        return Err(CompressFault::contract(
            format!(
                "`usage` has no count that is known, only {}",
                keys.join(", ")
            ),
            expected(),
        ));
    }
    Ok(usage.without_calls())
}

fn expected() -> &'static str {
    "{\"input_tokens\":N,\"output_tokens\":N}, or the usage object of an SDK"
}

impl ProgramUsage {
    /// Without calls to a model nothing was used. That is known though it is not reported.
    fn without_calls(self) -> ProgramUsage {
        if self.calls != Some(0) || self.tokens != Usage::default() {
            return self;
        }
        let none = Some(Tokens(0));
        let tokens = Usage {
            input: none,
            output: none,
            ..Usage::default()
        };
        ProgramUsage {
            tokens,
            cost: self.cost.or(Some(Usd(0.0))),
            ..self
        }
    }
}

fn read_tokens(object: &Map<String, Value>) -> Result<Usage, CompressFault> {
    let [cached_beside, written_beside] = [
        read_count(object, CACHED_BESIDE)?,
        read_count(object, WRITTEN_BESIDE)?,
    ];
    let beside = cached_beside.unwrap_or_default() + written_beside.unwrap_or_default();
    let input = read_count(object, INPUT)?.map(|input| input + beside);
    let (cached_input, cache_write) = (
        cached_beside.or(read_count(object, CACHED_OF_INPUT)?),
        written_beside.or(read_count(object, WRITTEN_OF_INPUT)?),
    );
    let (candidates, thoughts) = (
        read_count(object, CANDIDATES)?,
        read_count(object, THOUGHTS)?,
    );
    let output = read_count(object, OUTPUT)?
        .or(candidates.map(|output| output + thoughts.unwrap_or_default()));
    let reasoning = read_count(object, REASONING)?.or(thoughts);
    let parts = cached_input.unwrap_or_default() + cache_write.unwrap_or_default();
    if input.is_some_and(|input| parts > input) {
        let found = "`usage` reports more cached tokens than input tokens";
        return Err(CompressFault::contract(
            found,
            "cached tokens that are a part of the input",
        ));
    }
    if output
        .zip(reasoning)
        .is_some_and(|(output, reasoning)| reasoning > output)
    {
        let found = "`usage` reports more reasoning tokens than output tokens";
        return Err(CompressFault::contract(
            found,
            "reasoning tokens that are a part of the output",
        ));
    }
    Ok(Usage {
        input,
        cached_input,
        cache_write,
        output,
        reasoning,
        ..Usage::default()
    })
}

/// The first of these values that is neither absent nor null nor an object, with its path.
fn find<'o>(
    object: &'o Map<String, Value>,
    paths: &'static str,
) -> Option<(&'static str, &'o Value)> {
    paths.split('|').find_map(|path| {
        let mut keys = path.split('.');
        let first = object.get(keys.next()?)?;
        let value = keys.try_fold(first, |value, key| value.get(key))?;
        (!value.is_null() && !value.is_object()).then_some((path, value))
    })
}

fn read_count(
    object: &Map<String, Value>,
    paths: &'static str,
) -> Result<Option<Tokens>, CompressFault> {
    let Some((name, value)) = find(object, paths) else {
        return Ok(None);
    };
    let fault = || {
        CompressFault::contract(
            format!("`usage.{name}` is {value}"),
            "a whole number that is not negative",
        )
    };
    value.as_u64().map(Tokens).map(Some).ok_or_else(fault)
}

fn read_cost(object: &Map<String, Value>) -> Result<Option<Usd>, CompressFault> {
    let Some((name, value)) = find(object, COST) else {
        return Ok(None);
    };
    let amount = value.as_f64().filter(|usd| usd.is_finite() && *usd >= 0.0);
    amount.map(|usd| Some(Usd(usd))).ok_or_else(|| {
        CompressFault::contract(
            format!("`usage.{name}` is {value}"),
            "an amount in US dollars that is not negative",
        )
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn counts(value: Value) -> [Option<u64>; 5] {
        let Usage {
            input,
            cached_input,
            cache_write,
            output,
            reasoning,
            ..
        } = read(value).unwrap().tokens;
        [input, cached_input, cache_write, output, reasoning]
            .map(|tokens| tokens.map(|tokens| tokens.0))
    }

    #[test]
    fn every_sdk_is_read_to_the_same_counts() {
        let own = json!({"input_tokens": 90, "output_tokens": 7});
        assert_eq!(counts(own), [Some(90), None, None, Some(7), None]);
        let openai = json!({"prompt_tokens": 90, "completion_tokens": 7, "total_tokens": 97,
            "prompt_tokens_details": {"cached_tokens": 60}, "completion_tokens_details": {"reasoning_tokens": 5}});
        assert_eq!(counts(openai), [Some(90), Some(60), None, Some(7), Some(5)]);
        let anthropic = json!({"input_tokens": 20, "cache_read_input_tokens": 60, "cache_creation_input_tokens": 10,
            "output_tokens": 7, "service_tier": "standard"});
        assert_eq!(
            counts(anthropic),
            [Some(90), Some(60), Some(10), Some(7), None]
        );
        let langchain = json!({"input_tokens": 90, "output_tokens": 7, "total_tokens": 97,
            "input_token_details": {"cache_read": 60, "cache_creation": 10}, "output_token_details": {"reasoning": 5}});
        assert_eq!(
            counts(langchain),
            [Some(90), Some(60), Some(10), Some(7), Some(5)]
        );
        let gemini = json!({"promptTokenCount": 90, "cachedContentTokenCount": 60, "candidatesTokenCount": 2,
            "thoughtsTokenCount": 5});
        assert_eq!(counts(gemini), [Some(90), Some(60), None, Some(7), Some(5)]);
        let pi = json!({"input": 20, "output": 7, "cacheRead": 60, "cacheWrite": 10, "cost": {"total": 0.5}});
        assert_eq!(
            counts(pi.clone()),
            [Some(90), Some(60), Some(10), Some(7), None]
        );
        assert_eq!(read(pi).unwrap().cost, Some(Usd(0.5)));
    }

    #[test]
    fn wrong_usage_is_an_error_and_unreported_usage_stays_unknown() {
        let fault = |value: Value| read(value).unwrap_err().to_string();
        assert!(fault(json!({"input_tokens": -1})).contains("`usage.input_tokens` is -1"));
        assert!(fault(json!({"cost": -0.1})).contains("`usage.cost` is -0.1"));
        assert!(
            fault(json!({"prompt_tokens": 5, "cached_input_tokens": 6}))
                .contains("more cached tokens")
        );
        assert!(fault(json!({"tokens_in": 5})).contains("only tokens_in"));
        assert!(fault(json!([1])).contains("no object"));
        assert_eq!(read(json!({"calls": 2})).unwrap().tokens, Usage::default());
        let free = read(json!({"calls": 0})).unwrap();
        assert_eq!(
            (free.tokens.input, free.cost),
            (Some(Tokens(0)), Some(Usd(0.0)))
        );
    }
}
