//! What the logs themselves show: the bill by kind of token, what each compaction made the provider write again, and
//! whether the arithmetic of the simulation reproduces that bill.

use std::collections::BTreeMap;

use serde::Serialize;

use super::prices::{Dollars, RequestTokens};
use super::prompt_cache::{PromptCache, Request};
use super::reasons::MOST_ERROR;
use super::steps::{PricedSession, SessionSteps};
use crate::import::Format;
use stats::median;

/// Tokens and dollars of the requests that logs count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct TokenBill {
    /// Requests.
    pub requests: usize,
    /// Input that was neither read from the prompt cache nor written to it.
    pub input: u64,
    /// Input written to it.
    pub cache_write: u64,
    /// Input read from it.
    pub cache_read: u64,
    /// Output, as logged.
    pub output: u64,
    /// What they cost.
    pub usd: Dollars,
}

impl TokenBill {
    pub(super) fn add(&mut self, session: &PricedSession) {
        for step in &session.steps.steps {
            let tokens = step.tokens;
            self.requests += 1;
            self.input += tokens.plain;
            self.cache_write += tokens.written + tokens.written_hour;
            self.cache_read += tokens.read;
            self.output += tokens.output;
            self.usd += session.cost(step.model, tokens);
        }
    }

    /// Dollars of all kinds.
    pub fn total_usd(&self) -> f64 {
        self.usd.total()
    }
}

/// A compaction, and what the first request after it did not find in the cache.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Rewrite {
    /// The log, as the caller names it.
    pub file: String,
    /// The session.
    pub session: String,
    /// The message that follows the compaction.
    pub at: usize,
    /// When it happened, as logged.
    pub time: Option<String>,
    /// Tokens of the first request after it that were written to the cache or charged as plain input.
    pub tokens: u64,
    /// What these cost; null without a price.
    pub usd: Option<f64>,
}

/// The rewrites of a session, in order.
pub(super) fn rewrites(steps: &SessionSteps, priced: Option<&PricedSession>) -> Vec<Rewrite> {
    let rewrites = steps.compactions.iter().filter_map(|compaction| {
        let step = steps.steps.get(compaction.step)?;
        let new = RequestTokens {
            read: 0,
            output: 0,
            ..step.tokens
        };
        Some(Rewrite {
            file: steps.file.clone(),
            session: steps.session.clone(),
            at: compaction.at,
            time: compaction.time.clone(),
            tokens: step.tokens.uncached(),
            usd: priced.map(|session| session.cost(step.model, new).total()),
        })
    });
    rewrites.collect()
}

/// How far the computed bill of a session is from the logged one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SessionError {
    /// The log.
    pub file: String,
    /// The session.
    pub session: String,
    /// Its format.
    pub format: &'static str,
    /// Tokens that the cache served, as logged and as computed.
    pub cache_read: [u64; 2],
    /// Tokens that it did not serve, likewise.
    pub uncached: [u64; 2],
    /// Σ|computed − logged| / Σ logged over requests, in dollars of input.
    pub error: f64,
}

/// How far the computed bills of the sessions of one format are off: its agent and its provider decide what a cache can
/// serve.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FormatError {
    /// The format.
    pub format: &'static str,
    /// Its sessions.
    pub sessions: usize,
    /// The median of their errors.
    pub median_error: f64,
    /// Whether its sessions are simulated under other policies.
    pub holds: bool,
}

/// The computed bills of sessions beside the logged ones.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct BackTest {
    /// Each session, the worst first.
    pub sessions: Vec<SessionError>,
    /// Each format, by name.
    pub formats: Vec<FormatError>,
}

impl BackTest {
    pub(super) fn new(mut sessions: Vec<SessionError>) -> BackTest {
        sessions.sort_by(|a, b| {
            b.error
                .total_cmp(&a.error)
                .then_with(|| a.file.cmp(&b.file))
        });
        let mut by_format: BTreeMap<&'static str, Vec<f64>> = BTreeMap::new();
        for session in &sessions {
            by_format
                .entry(session.format)
                .or_default()
                .push(session.error);
        }
        let formats = by_format.into_iter().filter_map(|(format, errors)| {
            let median_error = median(&errors)?;
            Some(FormatError {
                format,
                sessions: errors.len(),
                median_error,
                holds: median_error <= MOST_ERROR,
            })
        });
        BackTest {
            formats: formats.collect(),
            sessions,
        }
    }

    /// Whether simulations of a format's sessions can be relied on.
    pub(super) fn holds(&self, format: Format) -> bool {
        self.formats
            .iter()
            .any(|one| one.format == format.name() && one.holds)
    }
}

/// Computes what the cache served of each request from the sizes, times and compactions of the log, and compares it with
/// the counters. A request is computed only from what came before it: the size of the system prompt, for one, from the
/// start of the session and earlier compactions.
pub(super) fn back_test(session: &PricedSession, lifetime: Option<f64>) -> Option<SessionError> {
    let (first, rest) = session.steps.steps.split_first()?;
    let mut cache = PromptCache::new(first.tokens, first.model, lifetime);
    let is_start = !session.steps.begins_midway && first.tokens.read > 0;
    let mut fixed: Vec<f64> = is_start
        .then_some(first.tokens.read as f64)
        .into_iter()
        .collect();
    let (mut error_usd, mut logged_usd) = (0.0, 0.0);
    let (mut cache_read, mut uncached) = ([0; 2], [0; 2]);
    let mut before = first.tokens.input();
    for (place, step) in rest.iter().enumerate() {
        let context = step.tokens.input();
        let is_compacted = session.steps.compaction_before(place + 1).is_some();
        let known = median(&fixed).unwrap_or(0.0) as u64;
        let shared = if is_compacted || is_reset(before, context) {
            known
        } else {
            before.min(context)
        };
        let writes = session.writes.get(step.model).copied().unwrap_or(false);
        let request = Request {
            context,
            shared,
            output: 0,
            gap: step.gap,
            model: step.model,
            writes,
        };
        let computed = cache.serve(request);
        let logged = RequestTokens {
            output: 0,
            ..step.tokens
        };
        cache.note_lifetime(logged);
        if is_compacted && logged.read > 0 {
            fixed.push(logged.read as f64);
        }
        let usd = session.cost(step.model, logged).of_input();
        error_usd += (session.cost(step.model, computed).of_input() - usd).abs();
        logged_usd += usd;
        for ((read, rest), tokens) in cache_read
            .iter_mut()
            .zip(&mut uncached)
            .zip([logged, computed])
        {
            *read += tokens.read;
            *rest += tokens.uncached();
        }
        before = context;
    }
    let error = if logged_usd > 0.0 {
        error_usd / logged_usd
    } else if error_usd > 0.0 {
        1.0
    } else {
        0.0
    };
    Some(SessionError {
        file: session.steps.file.clone(),
        session: session.steps.session.clone(),
        format: session.steps.format.name(),
        cache_read,
        uncached,
        error,
    })
}

/// Whether the history was thrown away without a compaction: the person started over in the same session.
pub(super) fn is_reset(before: u64, now: u64) -> bool {
    now * 2 < before
}
