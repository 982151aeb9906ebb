//! What the requests of sessions cost, and what the provider had to process again after their compactions. No model is
//! asked.
//!
//! Logs say how much input of each request the prompt cache served. The first request after a compaction has a new prefix:
//! what it wrote to the cache, or paid as plain input, is what the compaction made the provider process again. A session
//! whose counters or prices are unknown is left out with a reason ([`LeftOut`]), never counted as free.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use serde::{Serialize, Serializer};

use crate::import::{Conversation, Format, ModelStep};
use base::locale::Locale;
use base::say;
use base::units::{Tokens, Usage};

/// Dollars per million tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// Plain input.
    pub input: f64,
    /// Input read from the prompt cache.
    pub read: f64,
    /// Input written to it.
    pub write: f64,
    /// Input written to it for an hour.
    pub write_hour: f64,
    /// Output.
    pub output: f64,
}

/// The rates of a model for a request with so much input; `None` if no price is known.
pub type PriceOf<'p> = &'p dyn Fn(&str, Tokens) -> Option<Rates>;

/// Tokens and dollars of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct BillItem {
    /// Tokens.
    pub tokens: u64,
    /// What they cost.
    pub usd: f64,
}

impl BillItem {
    fn add(&mut self, tokens: u64, rate: f64) {
        self.tokens += tokens;
        self.usd += tokens as f64 * rate / 1e6;
    }
}

/// What requests cost at list prices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct TokenBill {
    /// Requests.
    pub requests: usize,
    /// Input that was neither read from the prompt cache nor written to it.
    pub input: BillItem,
    /// Input written to it.
    pub cache_write: BillItem,
    /// Input read from it.
    pub cache_read: BillItem,
    /// Output, as logged.
    pub output: BillItem,
}

impl TokenBill {
    /// Dollars of all kinds.
    pub fn usd(&self) -> f64 {
        self.uncached().usd + self.cache_read.usd + self.output.usd
    }

    /// All input that the cache did not serve.
    fn uncached(&self) -> BillItem {
        BillItem {
            tokens: self.input.tokens + self.cache_write.tokens,
            usd: self.input.usd + self.cache_write.usd,
        }
    }

    /// The bill of one request.
    fn of_request(step: &ModelStep, price_of: PriceOf<'_>) -> Result<TokenBill, LeftOut> {
        let Usage {
            input: Some(input),
            cached_input: Some(cached),
            output: Some(output),
            ..
        } = step.usage
        else {
            return Err(LeftOut::NoCacheCounters);
        };
        let model = step.model.as_deref().ok_or(LeftOut::NoModel)?;
        let rates = price_of(model, input).ok_or_else(|| LeftOut::NoPrice(model.to_owned()))?;
        let read = cached.0.min(input.0);
        let written = step.usage.cache_write.unwrap_or_default().0;
        let written = written.min(input.0 - read);
        let for_an_hour = step.usage.cache_write_hour.unwrap_or_default().0;
        let for_an_hour = for_an_hour.min(written);
        let mut request = TokenBill {
            requests: 1,
            ..TokenBill::default()
        };
        request.input.add(input.0 - read - written, rates.input);
        request.cache_write.add(written - for_an_hour, rates.write);
        request.cache_write.add(for_an_hour, rates.write_hour);
        request.cache_read.add(read, rates.read);
        request.output.add(output.0, rates.output);
        Ok(request)
    }
}

/// Why a session is in no figure. The words also fit a list of several sessions.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LeftOut {
    /// No request has counters.
    #[error("the log counts no tokens")]
    NoCounters,
    /// Some requests lack the count of the tokens that the cache served, or of the output.
    #[error("the log does not count cache reads and output of every request")]
    NoCacheCounters,
    /// The log names no model.
    #[error("the log names no model; price it with --price-as MODEL")]
    NoModel,
    /// The price of a model is unknown.
    #[error("no price is known for `{0}`; price it as another with --price-as MODEL")]
    NoPrice(String),
}

impl LeftOut {
    /// The reason in words.
    pub fn message(&self, locale: Locale) -> String {
        let chinese = match self {
            LeftOut::NoCounters => "日志未统计词元",
            LeftOut::NoCacheCounters => "日志未统计每次请求的缓存读取与输出",
            LeftOut::NoModel => "日志未写明模型；可用 --price-as MODEL 按某个模型计价",
            LeftOut::NoPrice(model) => {
                return say!(
                    locale,
                    "{self}",
                    "没有 `{model}` 的价格；可用 --price-as MODEL 按其他模型计价"
                );
            }
        };
        say!(locale, "{self}", "{chinese}")
    }
}

impl Serialize for LeftOut {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A session that is in no figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LeftOutSession {
    /// The session.
    pub session: String,
    /// Why.
    pub why: LeftOut,
}

/// A recorded compaction, and what the first request after it did not find in the cache.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Rewrite {
    /// The session.
    pub session: String,
    /// The message that follows the compaction.
    pub at: usize,
    /// When it happened, as logged.
    pub time: Option<String>,
    /// Tokens of that request that were written to the cache or charged as plain input.
    pub tokens: u64,
    /// What these cost.
    pub usd: f64,
}

/// What logs cost.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Economics {
    /// Sessions with counters and prices.
    pub sessions: usize,
    /// The other sessions.
    pub left_out: Vec<LeftOutSession>,
    /// What the sessions cost, at list prices.
    pub bill: TokenBill,
    /// Recorded compactions by what they rewrote, the worst first.
    pub rewrites: Vec<Rewrite>,
    /// Requests of these sessions whose tokens the logs do not count: they are in no figure.
    pub uncounted: usize,
    /// Whether output is counted in part only, as in logs of Claude Code.
    pub partial_output: bool,
}

/// The requests of one session, and where it was compacted.
#[derive(Clone, Debug)]
pub struct SessionSteps {
    file: String,
    session: String,
    is_output_partial: bool,
    steps: Vec<ModelStep>,
    uncounted: usize,
    /// The first request after each compaction, with its message and time.
    compactions: BTreeMap<usize, (usize, Option<String>)>,
}

impl SessionSteps {
    /// The requests that a log counts; `file` is its name.
    pub fn new(file: &str, conversation: &Conversation, format: Format) -> SessionSteps {
        let compactions = conversation.recorded.iter();
        SessionSteps {
            file: file.to_owned(),
            session: conversation.name_hint.clone(),
            is_output_partial: format.counts_output_in_part(),
            steps: conversation.steps.clone(),
            uncounted: conversation.uncounted,
            compactions: compactions
                .filter(|one| one.step > 0)
                .map(|one| (one.step, (one.message, one.time.clone())))
                .collect(),
        }
    }

    /// Removes the requests that an earlier log had.
    fn skip(&mut self, count: usize) {
        self.steps.drain(..count);
        self.compactions = std::mem::take(&mut self.compactions)
            .into_iter()
            .filter_map(|(step, at)| Some((step.checked_sub(count)?, at)))
            .collect();
    }

    /// The bill, and what the compactions rewrote.
    fn bill(&self, price_of: PriceOf<'_>) -> Result<(TokenBill, Vec<Rewrite>), LeftOut> {
        let (mut bill, mut rewrites) = (TokenBill::default(), Vec::new());
        for (at, step) in self.steps.iter().enumerate() {
            let request = TokenBill::of_request(step, price_of)?;
            bill += request;
            if let Some((message, time)) = self.compactions.get(&at) {
                let BillItem { tokens, usd } = request.uncached();
                rewrites.push(Rewrite {
                    session: self.session.clone(),
                    at: *message,
                    time: time.clone(),
                    tokens,
                    usd,
                });
            }
        }
        if bill.requests == 0 {
            return Err(LeftOut::NoCounters);
        }
        Ok((bill, rewrites))
    }
}

/// Adds up the logs. Requests that a log shares with an earlier one, by name, count once: a resumed or forked log begins
/// with the requests of the log that it continues. `price_of` gives the rates of a model for a request with so much input.
pub fn economics(mut logs: Vec<SessionSteps>, price_of: PriceOf<'_>) -> Economics {
    logs.sort_by(|a, b| (&a.file, &a.session).cmp(&(&b.file, &b.session)));
    let mut seen: HashSet<u64> = HashSet::new();
    let mut counted: Vec<Vec<u64>> = Vec::new();
    let mut found = Economics::default();
    for mut log in logs {
        let identities: Vec<u64> = log.steps.iter().map(identity).collect();
        let copied = identities.iter().take_while(|one| seen.contains(one));
        let copied = copied.count();
        log.skip(copied);
        seen.extend(&identities);
        if copied > 0 && log.steps.is_empty() {
            continue;
        }
        match log.bill(price_of) {
            Ok((bill, rewrites)) => {
                // A log that goes on with the whole of an earlier one is the same session.
                let goes_on = counted.iter().any(|one| identities.starts_with(one));
                found.sessions += usize::from(!goes_on);
                counted.push(identities);
                found.bill += bill;
                found.rewrites.extend(rewrites);
                found.uncounted += log.uncounted;
                found.partial_output |= log.is_output_partial;
            }
            Err(why) => found.left_out.push(LeftOutSession {
                session: log.session,
                why,
            }),
        }
    }
    found
        .rewrites
        .sort_by_key(|rewrite| Reverse(rewrite.tokens));
    found
}

impl std::ops::AddAssign for TokenBill {
    fn add_assign(&mut self, other: TokenBill) {
        self.requests += other.requests;
        for (item, more) in [
            (&mut self.input, other.input),
            (&mut self.cache_write, other.cache_write),
            (&mut self.cache_read, other.cache_read),
            (&mut self.output, other.output),
        ] {
            item.tokens += more.tokens;
            item.usd += more.usd;
        }
    }
}

/// A request that two logs have is the same if its counts and its time are.
fn identity(step: &ModelStep) -> u64 {
    let mut hasher = DefaultHasher::new();
    let tokens = [step.usage.input, step.usage.cached_input, step.usage.output]
        .map(|count| count.map(|n| n.0));
    (tokens, step.time.map(|time| time.as_nanosecond())).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn step(input: u64, read: u64, written: u64) -> ModelStep {
        ModelStep {
            model: Some(Arc::from("m")),
            time: None,
            usage: Usage {
                input: Some(Tokens(input)),
                cached_input: Some(Tokens(read)),
                cache_write: Some(Tokens(written)),
                cache_write_hour: None,
                output: Some(Tokens(100)),
                reasoning: None,
            },
        }
    }

    fn log(file: &str, steps: Vec<ModelStep>, compacted: &[usize]) -> SessionSteps {
        SessionSteps {
            file: file.to_owned(),
            session: file.to_owned(),
            is_output_partial: false,
            steps,
            uncounted: 0,
            compactions: compacted.iter().map(|at| (*at, (*at, None))).collect(),
        }
    }

    fn added(logs: Vec<SessionSteps>) -> Economics {
        let rates = Rates {
            input: 10.0,
            read: 1.0,
            write: 12.5,
            write_hour: 20.0,
            output: 50.0,
        };
        economics(logs, &|model, _| (model == "m").then_some(rates))
    }

    #[test]
    fn a_bill_has_each_kind_at_its_price_and_a_compaction_what_its_request_paid_anew() {
        let steps = vec![
            step(1_000, 0, 900),
            step(5_000, 1_000, 4_000),
            step(3_000, 500, 2_000),
        ];
        let found = added(vec![log("a", steps, &[2])]);
        assert_eq!((found.sessions, found.bill.requests), (1, 3));
        let bill = found.bill;
        let tokens =
            [bill.input, bill.cache_write, bill.cache_read, bill.output].map(|item| item.tokens);
        assert_eq!(tokens, [600, 6_900, 1_500, 300]);
        assert!((bill.usd() - 0.10875).abs() < 1e-9, "{}", bill.usd());
        let [rewrite] = &found.rewrites[..] else {
            panic!("{found:?}")
        };
        assert_eq!(rewrite.tokens, 2_500);
        assert!((rewrite.usd - 0.03).abs() < 1e-9, "{rewrite:?}");
    }

    #[test]
    fn requests_of_a_continued_log_count_once() {
        let first = vec![step(1_000, 0, 900), step(5_000, 1_000, 4_000)];
        let mut second = first.clone();
        second.push(step(3_000, 500, 2_000));
        let found = added(vec![log("b", second, &[2]), log("a", first, &[])]);
        assert_eq!((found.bill.requests, found.rewrites.len()), (3, 1));
    }

    #[test]
    fn what_is_unknown_is_left_out_and_never_free() {
        let mut without_cache = step(1_000, 0, 0);
        without_cache.usage.cached_input = None;
        let mut other = step(1_000, 0, 0);
        other.model = Some(Arc::from("x"));
        let found = added(vec![
            log("a", Vec::new(), &[]),
            log("b", vec![without_cache], &[]),
            log("c", vec![other], &[]),
        ]);
        let why: Vec<LeftOut> = found.left_out.into_iter().map(|one| one.why).collect();
        assert_eq!(
            why,
            [
                LeftOut::NoCounters,
                LeftOut::NoCacheCounters,
                LeftOut::NoPrice("x".to_owned())
            ]
        );
        assert_eq!(found.bill, TokenBill::default());
    }
}
