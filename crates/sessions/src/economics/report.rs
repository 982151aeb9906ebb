//! Combines all logs: what they cost, and what they would cost under other policies, or why nothing is said about
//! these.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};

use serde::Serialize;

use super::curve::{CostCurve, CostPoint, thresholds};
use super::history::{BackTest, Rewrite, TokenBill, back_test, rewrites};
use super::method::{CompactionMethod, LifeCycle};
use super::prices::ModelPrice;
use super::reasons::{LeftOutSession, Withheld};
use super::simulate::{Policy, SimulatedSession, Trigger, simulate};
use super::steps::{PricedSession, SessionSteps};
use crate::observe::{ObservedCompaction, SESSIONS_FOR_INTERVAL};
use base::locale::localized;
use stats::{Estimate, interval, mean_of};

/// The user's settings for the policies to simulate. Where one is not set, the logs decide.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PolicySettings {
    /// A trigger to simulate besides the thresholds.
    pub trigger: Option<Trigger>,
    /// Tokens of the newest messages that stay as they are.
    pub tail: u64,
    /// The instruction to compact stands in front of the history, or in another system prompt.
    pub instruction_first: bool,
    /// Seconds for which the provider keeps a prefix.
    pub lifetime: Option<f64>,
}

/// A method under every threshold.
#[derive(Clone, Debug, Serialize)]
pub struct MethodEconomics {
    /// The method.
    pub method: String,
    /// Cost by threshold.
    pub curve: CostCurve,
    /// The cost at the trigger that the user named.
    pub at_trigger: Option<SimulatedSession>,
    /// The course of a session in the middle of the flat region; null where nothing is compacted there.
    pub life: Option<LifeCycle>,
    /// What logs would have cost there minus what they cost as recorded, as a share of the latter: mean over logs. Null
    /// with fewer than 8 logs.
    pub difference: Option<Estimate>,
    /// The most replaced tokens that the method was measured on; sizes beyond it are extrapolated. Null for sizes from
    /// logs.
    pub largest_measured: Option<u64>,
}

/// Requests before which a clock was set back, or had returned from that. Their gap is unknown, and the cache counts as
/// kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ClockFaults {
    /// Sessions with such a request.
    pub sessions: usize,
    /// The requests.
    pub requests: usize,
}

/// What logs cost, and what they would have cost.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Economics {
    /// Sessions with counters and prices.
    pub sessions: usize,
    /// Those of them whose format passes the back-test; other policies are simulated for these only.
    pub simulated: usize,
    /// The sessions without counters or prices.
    pub left_out: Vec<LeftOutSession>,
    /// What the sessions cost, at list prices.
    pub bill: TokenBill,
    /// The computed bill of the simulated sessions. It includes the requests of recorded compactions, which no log
    /// counts.
    pub as_recorded: SimulatedSession,
    /// Recorded compactions by what they rewrote, the worst first.
    pub rewrites: Vec<Rewrite>,
    /// The computed bill beside the logged one.
    pub back_test: BackTest,
    /// Tokens read again after a compaction beyond those of the controls, as a mean; null where no compaction has
    /// controls.
    pub refetch: Option<f64>,
    /// Methods, unless nothing may be said.
    pub methods: Vec<MethodEconomics>,
    /// Why nothing is said about other policies.
    pub withheld: Option<Withheld>,
    /// Clocks that were set back.
    pub clock_faults: ClockFaults,
    /// Whether output is counted in part only, as in logs of Claude Code.
    pub partial_output: bool,
}

/// Removes the requests that a log shares with an earlier one, by name: a resumed or forked log begins with the
/// requests of the log that it continues.
pub fn without_copies(
    mut logs: Vec<Result<SessionSteps, LeftOutSession>>,
) -> Vec<Result<SessionSteps, LeftOutSession>> {
    logs.sort_by(|a, b| place_of(a).cmp(&place_of(b)));
    let mut seen: HashSet<u64> = HashSet::new();
    for steps in logs.iter_mut().flatten() {
        let copied = steps
            .steps
            .iter()
            .take_while(|step| seen.contains(&step.identity))
            .count();
        seen.extend(steps.steps.iter().map(|step| step.identity));
        steps.skip(copied);
    }
    logs.retain(|log| log.as_ref().map_or(true, |steps| steps.steps.len() > 1));
    logs
}

fn place_of(log: &Result<SessionSteps, LeftOutSession>) -> (&str, &str) {
    match log {
        Ok(steps) => (&steps.file, &steps.session),
        Err(left_out) => (&left_out.file, &left_out.session),
    }
}

/// Combines the logs. `contexts` are methods of a result set; `compactions` are those of the same logs, which show what
/// is read again after them.
pub fn economics(
    logs: Vec<Result<SessionSteps, LeftOutSession>>,
    contexts: Vec<CompactionMethod>,
    compactions: &[ObservedCompaction],
    settings: PolicySettings,
    price_of: &dyn Fn(&str) -> Option<ModelPrice>,
) -> Economics {
    let mut economics = Economics {
        refetch: refetch(compactions),
        ..Economics::default()
    };
    let sessions = economics.add_logs(logs, price_of);
    economics
        .rewrites
        .sort_by_key(|rewrite| Reverse(rewrite.tokens));
    economics.sessions = sessions.len();
    sessions
        .iter()
        .for_each(|session| economics.bill.add(session));
    economics.clock_faults = clock_faults(&sessions);
    economics.partial_output = sessions
        .iter()
        .any(|session| session.steps.format.counts_output_in_part());
    let tested = sessions
        .iter()
        .filter_map(|one| back_test(one, settings.lifetime));
    economics.back_test = BackTest::new(tested.collect());
    let kept = sessions
        .into_iter()
        .filter(|session| economics.back_test.holds(session.steps.format));
    let sessions: Vec<PricedSession> = kept.collect();
    economics.simulated = sessions.len();
    let recorded = CompactionMethod::recorded(&sessions);
    let simulation = Simulation {
        sessions,
        recorded,
        settings,
        refetch: economics.refetch,
    };
    let as_recorded = simulation.as_recorded();
    as_recorded
        .iter()
        .for_each(|session| economics.as_recorded += *session);
    economics.withheld = withheld(&economics, &simulation, contexts.is_empty());
    if economics.withheld.is_none() {
        let methods = simulation.recorded.clone().into_iter().chain(contexts);
        economics.methods = methods
            .filter_map(|method| simulation.method_economics(&method, &as_recorded))
            .collect();
    }
    economics
}

impl Economics {
    /// What the figures do not say, in the language of messages.
    pub fn caveat() -> &'static str {
        localized(
            "Accounting only: an agent that is compacted elsewhere acts differently afterwards.",
            "仅为核算：如果在别处压缩，智能体之后的行为会不同。",
        )
    }

    /// The names of the sessions that are left out, by the reason in the language of messages.
    pub fn left_out_by_reason(&self) -> BTreeMap<String, Vec<&str>> {
        let mut by_reason: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for one in &self.left_out {
            by_reason
                .entry(one.why.message())
                .or_default()
                .push(&one.session);
        }
        by_reason
    }

    /// Adds what the logs show by themselves, and returns the sessions with prices.
    fn add_logs(
        &mut self,
        logs: Vec<Result<SessionSteps, LeftOutSession>>,
        price_of: &dyn Fn(&str) -> Option<ModelPrice>,
    ) -> Vec<PricedSession> {
        let mut sessions = Vec::new();
        for log in logs {
            match log.map(|steps| (steps.prices(price_of), steps)) {
                Err(left_out) => self.left_out.push(left_out),
                Ok((Err(why), steps)) => {
                    self.rewrites.extend(rewrites(&steps, None));
                    self.left_out.push(steps.left_out(why));
                }
                Ok((Ok(prices), steps)) => {
                    let priced = PricedSession::new(steps, prices);
                    self.rewrites.extend(rewrites(&priced.steps, Some(&priced)));
                    sessions.push(priced);
                }
            }
        }
        sessions
    }
}

/// Why nothing is said about other policies.
fn withheld(
    economics: &Economics,
    simulation: &Simulation,
    has_no_contexts: bool,
) -> Option<Withheld> {
    if economics.sessions == 0 {
        Some(Withheld::NoSession)
    } else if simulation.sessions.is_empty() {
        Some(Withheld::BackTest)
    } else if simulation.recorded.is_none() && has_no_contexts {
        Some(Withheld::NoMethod)
    } else if thresholds(&simulation.sessions).is_empty() {
        Some(Withheld::NoGrowth)
    } else {
        None
    }
}

fn clock_faults(sessions: &[PricedSession]) -> ClockFaults {
    let faults = sessions
        .iter()
        .map(|session| session.steps.clock_faults())
        .filter(|requests| *requests > 0);
    faults.fold(ClockFaults::default(), |all, requests| ClockFaults {
        sessions: all.sessions + 1,
        requests: all.requests + requests,
    })
}

/// The mean excess of tokens read again in the windows after compactions over their controls; at least 0.
fn refetch(compactions: &[ObservedCompaction]) -> Option<f64> {
    let counted = compactions.iter().filter(|one| one.not_counted.is_none());
    let excess = counted.filter_map(|one| {
        let (before, after) = (one.control_before?, one.control_after?);
        let control = (before.re_read_tokens? + after.re_read_tokens?) as f64 / 2.0;
        Some(one.figures.re_read_tokens? as f64 - control)
    });
    mean_of(excess).map(|mean| mean.max(0.0))
}

struct Simulation {
    sessions: Vec<PricedSession>,
    recorded: Option<CompactionMethod>,
    settings: PolicySettings,
    refetch: Option<f64>,
}

impl Simulation {
    fn policy<'p>(&self, trigger: Trigger, method: &'p CompactionMethod) -> Policy<'p> {
        Policy {
            trigger,
            method,
            tail: self.settings.tail,
            instruction_last: !self.settings.instruction_first,
            lifetime: self.settings.lifetime,
            refetch: self.refetch.unwrap_or(0.0) as u64,
        }
    }

    /// What each session costs as it was recorded.
    fn as_recorded(&self) -> Vec<SimulatedSession> {
        let never = CompactionMethod::none();
        let method = self.recorded.as_ref().unwrap_or(&never);
        let policy = Policy {
            tail: 0,
            instruction_last: true,
            ..self.policy(Trigger::AsLogged, method)
        };
        self.sessions
            .iter()
            .map(|session| simulate(session, &policy))
            .collect()
    }

    fn simulate(&self, trigger: Trigger, method: &CompactionMethod) -> Vec<SimulatedSession> {
        let is_recorded = self
            .recorded
            .as_ref()
            .is_some_and(|recorded| recorded.name == method.name);
        let simulated = self.sessions.iter().map(|session| {
            let of_session = CompactionMethod::recorded([session]).filter(|_| is_recorded);
            simulate(
                session,
                &self.policy(trigger, of_session.as_ref().unwrap_or(method)),
            )
        });
        simulated.collect()
    }

    /// The sum over all sessions.
    fn total(&self, trigger: Trigger, method: &CompactionMethod) -> SimulatedSession {
        let mut total = SimulatedSession::default();
        self.simulate(trigger, method)
            .into_iter()
            .for_each(|session| total += session);
        total
    }

    fn method_economics(
        &self,
        method: &CompactionMethod,
        as_recorded: &[SimulatedSession],
    ) -> Option<MethodEconomics> {
        let points = thresholds(&self.sessions).into_iter().map(|threshold| {
            let cost = self.total(Trigger::Tokens(threshold), method);
            CostPoint { threshold, cost }
        });
        let curve = CostCurve::new(points.collect())?;
        let simulated = self.simulate(Trigger::Tokens(curve.flat.middle), method);
        Some(MethodEconomics {
            method: method.name.clone(),
            at_trigger: self
                .settings
                .trigger
                .map(|trigger| self.total(trigger, method)),
            life: curve.life(method.growth),
            difference: self.difference(&simulated, as_recorded),
            largest_measured: method.largest,
            curve,
        })
    }

    /// The relative difference of each log; a log and its sub-agents are one cluster.
    fn difference(
        &self,
        simulated: &[SimulatedSession],
        as_recorded: &[SimulatedSession],
    ) -> Option<Estimate> {
        let mut by_file: BTreeMap<&str, [f64; 2]> = BTreeMap::new();
        for ((session, simulated), recorded) in self.sessions.iter().zip(simulated).zip(as_recorded)
        {
            let [simulated_usd, recorded_usd] = by_file.entry(&session.steps.file).or_default();
            *simulated_usd += simulated.usd;
            *recorded_usd += recorded.usd;
        }
        let costs = by_file
            .into_values()
            .filter(|[_, recorded]| *recorded > 0.0);
        let shares: Vec<f64> = costs
            .map(|[simulated, recorded]| simulated / recorded - 1.0)
            .collect();
        interval(&shares).filter(|_| shares.len() >= SESSIONS_FOR_INTERVAL)
    }
}
