//! What vendors say: limits in headers, and good answers in each dialect.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::Style;

/// A bucket on real time.
pub struct Level {
    pub per_minute: f64,
    pub size: f64,
    pub level: f64,
    at: Instant,
}

impl Level {
    pub fn new(per_minute: f64, burst_s: f64) -> Level {
        let size = (per_minute / 60.0 * burst_s).max(1.0);
        Level { per_minute, size, level: size, at: Instant::now() }
    }

    pub fn refill(&mut self) {
        let passed = self.at.elapsed().as_secs_f64();
        self.at = Instant::now();
        self.level = (self.level + passed * self.per_minute / 60.0).min(self.size);
    }

    pub fn until(&self, level: f64) -> Duration {
        Duration::from_secs_f64(((level - self.level) * 60.0 / self.per_minute).max(0.0))
    }
}

pub fn announced(style: Style, levels: [Option<&mut Level>; 2]) -> Vec<(&'static str, String)> {
    let mut list = Vec::new();
    let names = match style {
        Style::Silent => return list,
        Style::OpenAi => [
            ["x-ratelimit-limit-requests", "x-ratelimit-remaining-requests", "x-ratelimit-reset-requests"],
            ["x-ratelimit-limit-tokens", "x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"],
        ],
        Style::Anthropic => [
            [
                "anthropic-ratelimit-requests-limit",
                "anthropic-ratelimit-requests-remaining",
                "anthropic-ratelimit-requests-reset",
            ],
            [
                "anthropic-ratelimit-tokens-limit",
                "anthropic-ratelimit-tokens-remaining",
                "anthropic-ratelimit-tokens-reset",
            ],
        ],
    };
    for (level, [limit, remaining, reset]) in levels.into_iter().zip(names) {
        let Some(level) = level else { continue };
        level.refill();
        let whole = level.until(level.size);
        list.push((limit, format!("{}", level.per_minute)));
        list.push((remaining, format!("{}", level.level.max(0.0) as u64)));
        list.push((reset, if style == Style::OpenAi { format!("{}ms", whole.as_millis()) } else { timestamp(whole) }));
    }
    list
}

fn timestamp(after: Duration) -> String {
    let at = std::time::SystemTime::now() + after;
    let at: jiff::Timestamp = at.try_into().expect("a time of our days");
    format!("{at:.0}")
}

pub fn retry_after(
    style: Style,
    wait: Duration,
    mut headers: Vec<(&'static str, String)>,
) -> Vec<(&'static str, String)> {
    match style {
        Style::Silent => {}
        Style::OpenAi => headers.push(("retry-after-ms", format!("{:.3}", wait.as_secs_f64() * 1000.0))),
        Style::Anthropic => headers.push(("retry-after", format!("{:.3}", wait.as_secs_f64()))),
    }
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
    } else if request.windows(12).any(|part| part == b"\"compaction\"" as &[u8])
        && request.windows(11).any(|part| part == b"\"summarize\"" as &[u8])
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
