//! The tokens of a request, under the names that vendors and agents give them.

use serde_json::Value;

use super::content::tokens_at;
use base::units::{Tokens, Usage};

/// The first count at these JSON pointers.
fn first(usage: &Value, pointers: &[&str]) -> Option<Tokens> {
    pointers
        .iter()
        .find_map(|pointer| tokens_at(usage, pointer))
}

/// The counts of one request. What a log calls the input is with or without the tokens that the cache served: the name
/// of the count of the cache tells which. Output is with or without reasoning: the same.
pub(super) fn usage_of(usage: &Value) -> Usage {
    let beside = ["/cache_read_input_tokens", "/cacheRead", "/cache/read"];
    let within = [
        "/cached_input_tokens",
        "/cached_tokens",
        "/cached",
        "/cachedContentTokenCount",
        "/prompt_tokens_details/cached_tokens",
        "/input_tokens_details/cached_tokens",
    ];
    let written_beside = [
        "/cache_creation_input_tokens",
        "/cacheWrite",
        "/cache/write",
    ];
    let read_beside = first(usage, &beside);
    let written = first(usage, &written_beside);
    let input = [
        "/input_tokens",
        "/prompt_tokens",
        "/input",
        "/promptTokenCount",
    ];
    let thoughts = first(usage, &["/thoughts", "/thoughtsTokenCount"]);
    let apart = thoughts.or_else(|| usage.get("cache").and(tokens_at(usage, "/reasoning")));
    let counted_within = first(usage, &["/reasoning", "/reasoning_output_tokens"]);
    let output = [
        "/output_tokens",
        "/completion_tokens",
        "/output",
        "/candidatesTokenCount",
    ];
    Usage {
        input: first(usage, &input)
            .map(|plain| plain + read_beside.unwrap_or_default() + written.unwrap_or_default()),
        cached_input: read_beside.or_else(|| first(usage, &within)),
        cache_write: written.or_else(|| tokens_at(usage, "/extra/cache_creation_input_tokens")),
        cache_write_hour: tokens_at(usage, "/cache_creation/ephemeral_1h_input_tokens"),
        output: first(usage, &output).map(|output| output + apart.unwrap_or_default()),
        reasoning: apart.or(counted_within),
    }
}
