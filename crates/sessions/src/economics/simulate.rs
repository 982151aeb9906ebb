//! Replays the requests of a session under a policy.

use super::history::is_reset;
use super::method::{CompactionMethod, RequestCost};
use super::prices::RequestTokens;
use super::prompt_cache::{PromptCache, Request};
use super::steps::{PricedSession, Step};

/// When a history is compacted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Trigger {
    /// Before a request of more tokens.
    Tokens(u64),
    /// Before a request of more than this share of the model's window. Without a known window, never.
    Share(f64),
    /// Where the log records a compaction, with the size that it left.
    AsLogged,
}

/// A policy of compaction.
#[derive(Clone, Copy, Debug)]
pub struct Policy<'p> {
    /// When to compact.
    pub trigger: Trigger,
    /// The method.
    pub method: &'p CompactionMethod,
    /// Tokens of the newest messages that stay as they are.
    pub tail: u64,
    /// Whether the instruction to compact comes after the history, so that the cache serves the history once more.
    pub instruction_last: bool,
    /// Seconds for which the provider keeps a prefix; `None`: as the log shows.
    pub lifetime: Option<f64>,
    /// Tokens that the agent reads again after a compaction.
    pub refetch: u64,
}

/// What a session costs under a policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct SimulatedSession {
    /// All requests, those of the compactions included.
    pub usd: f64,
    /// Only the requests of the compactions.
    pub compaction_usd: f64,
    /// Seconds that the compactions take; 0 if unknown.
    pub compaction_seconds: f64,
    /// Compactions.
    pub compactions: u64,
    /// Tokens of the first requests after compactions that the cache did not serve.
    pub rewritten: u64,
    /// Requests before which the cache had expired.
    pub expiries: u64,
    /// Tokens of these requests.
    pub expired: u64,
    /// Tokens read again after compactions.
    pub refetched: u64,
    /// Tokens that compactions freed.
    pub freed: u64,
    /// Tokens that were left after compactions.
    pub left: u64,
}

impl std::ops::AddAssign for SimulatedSession {
    fn add_assign(&mut self, other: SimulatedSession) {
        self.usd += other.usd;
        self.compaction_usd += other.compaction_usd;
        self.compaction_seconds += other.compaction_seconds;
        self.compactions += other.compactions;
        self.rewritten += other.rewritten;
        self.expiries += other.expiries;
        self.expired += other.expired;
        self.refetched += other.refetched;
        self.freed += other.freed;
        self.left += other.left;
    }
}

/// Replays a session. Between two requests the same tokens are appended as in the log. After a logged compaction these
/// are the tokens beyond the context that it left, as far as the log tells the two apart.
pub fn simulate(session: &PricedSession, policy: &Policy<'_>) -> SimulatedSession {
    let Some((first, rest)) = session.steps.steps.split_first() else {
        return SimulatedSession::default();
    };
    let mut replay = Replay {
        session,
        policy,
        cache: PromptCache::new(first.tokens, first.model, policy.lifetime),
        context: first.tokens.input(),
        refetch: 0,
        totals: SimulatedSession {
            usd: session.cost(first.model, first.tokens).total(),
            ..Default::default()
        },
    };
    let mut before = *first;
    for (place, step) in rest.iter().enumerate() {
        replay.step(place + 1, &before, step);
        before = *step;
    }
    replay.totals
}

struct Replay<'s> {
    session: &'s PricedSession,
    policy: &'s Policy<'s>,
    cache: PromptCache,
    context: u64,
    /// Tokens that will have been read again by the next request.
    refetch: u64,
    totals: SimulatedSession,
}

/// A request before the policy is applied to it.
#[derive(Clone, Copy)]
struct Next {
    context: u64,
    shared: u64,
}

/// A compaction that would free less than one part in this many of the context is not made.
const LEAST_FREED: u64 = 10;

impl Replay<'_> {
    fn step(&mut self, place: usize, before: &Step, step: &Step) {
        let logged = step.tokens.input();
        let mut next = self.next(place, before.tokens.input(), logged);
        let mut gap = step.gap;
        let after = match self.policy.trigger {
            Trigger::AsLogged => self.session.steps.compaction_before(place).map(|_| logged),
            _ => self.compacted(next.context, step.model),
        };
        let is_expired = self.cache.has_expired(gap);
        let mut expired = next.context;
        if let Some(after) = after {
            let whole = match self.policy.trigger {
                Trigger::AsLogged => before.tokens.input() + before.tokens.output,
                _ => next.context,
            };
            let whole = Next {
                context: whole,
                shared: next.shared.max(self.context.min(whole)),
            };
            if self.compact(whole, after, step) {
                // Its request came in between.
                expired = whole.context;
                gap = gap.map(|_| 0.0);
            } else {
                expired = after;
            }
            next = Next {
                context: after,
                shared: self.session.fixed,
            };
        }
        if is_expired {
            self.totals.expiries += 1;
            self.totals.expired += expired;
        }
        let served = self.charge(next, step.tokens.output, gap, step.model);
        if after.is_some() {
            self.totals.rewritten += served.uncached();
        }
        self.cache.note_lifetime(step.tokens);
        self.context = next.context;
    }

    /// The request as it would be without a compaction before it.
    fn next(&mut self, place: usize, before: u64, logged: u64) -> Next {
        let refetch = std::mem::take(&mut self.refetch);
        let fixed = self.session.fixed;
        if self.policy.trigger == Trigger::AsLogged {
            return Next {
                context: logged,
                shared: if is_reset(before, logged) {
                    fixed
                } else {
                    before.min(logged)
                },
            };
        }
        if let Some(compaction) = self.session.steps.compaction_before(place) {
            let appended = compaction
                .recorded_after
                .map_or(0, |after| logged.saturating_sub(after));
            return Next {
                context: self.context + appended + refetch,
                shared: self.context,
            };
        }
        if is_reset(before, logged) {
            return Next {
                context: logged,
                shared: fixed,
            };
        }
        let grown = (self.context + logged)
            .saturating_sub(before)
            .max(fixed.min(logged));
        Next {
            context: grown + refetch,
            shared: self.context.min(grown),
        }
    }

    /// The size of the context after a compaction, if the policy makes one here.
    fn compacted(&self, context: u64, model: usize) -> Option<u64> {
        let window = self
            .session
            .prices
            .get(model)
            .and_then(|price| price.window);
        let trigger = match self.policy.trigger {
            Trigger::Tokens(tokens) => tokens.min(window.unwrap_or(u64::MAX)),
            Trigger::Share(share) => {
                window.map_or(u64::MAX, |window| (window as f64 * share.min(1.0)) as u64)
            }
            Trigger::AsLogged => return None,
        };
        let after = self
            .policy
            .method
            .after(context, self.session.fixed, self.policy.tail);
        (context > trigger && (context - after) * LEAST_FREED >= context).then_some(after)
    }

    /// Makes a compaction, and returns whether its request was served from the cache of the session.
    fn compact(&mut self, whole: Next, after: u64, step: &Step) -> bool {
        let Policy {
            method,
            tail,
            instruction_last,
            trigger,
            refetch,
            ..
        } = *self.policy;
        let before = self.totals.usd;
        let is_served = match method.cost {
            RequestCost::Free => false,
            RequestCost::Measured(per_token) => {
                self.totals.usd +=
                    per_token * whole.context.saturating_sub(self.session.fixed + tail) as f64;
                false
            }
            RequestCost::Priced { output } if instruction_last => {
                self.charge(whole, output, step.gap, step.model);
                true
            }
            RequestCost::Priced { output } => {
                let tokens = RequestTokens {
                    plain: whole.context,
                    output,
                    ..RequestTokens::default()
                };
                self.totals.usd += self.session.cost(step.model, tokens).total();
                false
            }
        };
        self.totals.compaction_usd += self.totals.usd - before;
        self.totals.compaction_seconds += method.seconds.unwrap_or(0.0);
        self.totals.compactions += 1;
        self.totals.freed += whole.context.saturating_sub(after);
        self.totals.left += after;
        // What was read again after a logged compaction is in the log.
        if trigger != Trigger::AsLogged {
            self.refetch = refetch;
            self.totals.refetched += refetch;
        }
        is_served
    }

    fn charge(&mut self, next: Next, output: u64, gap: Option<f64>, model: usize) -> RequestTokens {
        let writes = self.session.writes.get(model).copied().unwrap_or(false);
        let Next { context, shared } = next;
        let served = self.cache.serve(Request {
            context,
            shared,
            output,
            gap,
            model,
            writes,
        });
        self.totals.usd += self.session.cost(model, served).total();
        served
    }
}
