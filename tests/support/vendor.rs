//! What vendors send: limits in headers, and good answers in each dialect.

use std::time::Duration;

use serde_json::{Value, json};

use super::Style;
use super::limited::Unit;

/// The headers for each unit: its limit per minute, what remains, and the seconds until it is whole.
pub fn announced(style: Style, limits: &[(Unit, [f64; 3])]) -> Vec<(&'static str, String)> {
    let mut list = Vec::new();
    for (unit, [per_minute, remains, seconds]) in limits {
        let [limit, remaining, reset] = match (style, unit) {
            (Style::Silent, _) => continue,
            (Style::OpenAi, Unit::Requests) => [
                "x-ratelimit-limit-requests",
                "x-ratelimit-remaining-requests",
                "x-ratelimit-reset-requests",
            ],
            (Style::OpenAi, Unit::InputTokens) => [
                "x-ratelimit-limit-tokens",
                "x-ratelimit-remaining-tokens",
                "x-ratelimit-reset-tokens",
            ],
            (Style::Anthropic, Unit::Requests) => [
                "anthropic-ratelimit-requests-limit",
                "anthropic-ratelimit-requests-remaining",
                "anthropic-ratelimit-requests-reset",
            ],
            (Style::Anthropic, Unit::InputTokens) => [
                "anthropic-ratelimit-input-tokens-limit",
                "anthropic-ratelimit-input-tokens-remaining",
                "anthropic-ratelimit-input-tokens-reset",
            ],
        };
        let whole = Duration::from_secs_f64(seconds.max(0.0));
        list.push((limit, format!("{}", *per_minute as u64)));
        list.push((remaining, format!("{}", *remains as u64)));
        list.push((
            reset,
            if style == Style::OpenAi {
                format!("{}ms", whole.as_millis())
            } else {
                timestamp(whole)
            },
        ));
    }
    list
}

/// The body of a 429. A limit on requests is not named, like on the servers that say least.
pub fn refusal(unit: Option<Unit>) -> String {
    let error = match unit {
        Some(Unit::InputTokens) => json!({"message": "slow down", "type": "input_tokens"}),
        Some(Unit::Requests) | None => {
            json!({"message": "slow down", "code": "rate_limit_exceeded"})
        }
    };
    json!({ "error": error }).to_string()
}

fn timestamp(after: Duration) -> String {
    let at = std::time::SystemTime::now() + after;
    let at: jiff::Timestamp = at.try_into().expect("a time of our days");
    format!("{at:.0}")
}

pub fn retry_after(
    style: Style,
    wait: Option<f64>,
    mut headers: Vec<(&'static str, String)>,
) -> Vec<(&'static str, String)> {
    headers.extend(wait.map(|wait| match style {
        Style::OpenAi => ("retry-after-ms", format!("{:.3}", wait * 1000.0)),
        Style::Silent | Style::Anthropic => ("retry-after", format!("{wait:.3}")),
    }));
    headers
}

/// A good answer in the dialect of `path`, with usage counted as a quarter of the bytes.
pub fn reply(path: &str, request: &[u8], text: &str) -> String {
    let (input, output) = (request.len() / 4, text.len() / 4 + 1);
    let value: Value = if path.ends_with("/chat/completions") {
        json!({"id": "c", "object": "chat.completion", "created": 0, "model": "sim-1",
            "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}],
            "usage": {"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output}})
    } else if path.ends_with("/responses/compact") {
        json!({"id": "r", "object": "response.compaction", "created_at": 0,
            "output": [{"type": "compaction", "id": "cmp_1", "encrypted_content": format!("gAAA{input}")}],
            "usage": {"input_tokens": input, "output_tokens": output, "total_tokens": input + output}})
    } else if path.ends_with("/responses") {
        json!({"id": "r", "object": "response", "model": "sim-1", "status": "completed",
            "output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}],
            "usage": {"input_tokens": input, "output_tokens": output, "total_tokens": input + output}})
    } else if request
        .windows(12)
        .any(|part| part == b"\"compaction\"" as &[u8])
        && request
            .windows(11)
            .any(|part| part == b"\"summarize\"" as &[u8])
    {
        json!({"id": "m", "type": "message", "role": "assistant", "model": "sim-1", "stop_reason": "compaction",
            "content": [{"type": "compaction", "content": text, "signature": "EuYB"}],
            "usage": {"input_tokens": 0, "output_tokens": 0,
                "iterations": [{"type": "compaction", "input_tokens": input, "output_tokens": output}]}})
    } else {
        json!({"id": "m", "type": "message", "role": "assistant", "model": "sim-1", "stop_reason": "end_turn",
            "content": [{"type": "text", "text": text}],
            "usage": {"input_tokens": input, "output_tokens": output}})
    };
    value.to_string()
}
