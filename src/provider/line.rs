//! The way to one provider: its key, its account's gate, and a gate for each model.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use super::gate::Gate;
use super::http::ApiKey;
use super::pace::Pace;
use super::rates::{Need, PerMinute};
use super::spec::{Limits, ModelName, ProviderSpec};
use super::standing::Standing;
use crate::units::{Tokens, Usage};

/// A provider that can be asked.
pub(super) struct Line {
    pub spec: Arc<ProviderSpec>,
    pub key: Option<ApiKey>,
    /// What the user allowed, over all models; shared by providers with the same address and key.
    pub account: Arc<Gate>,
    lanes: Mutex<BTreeMap<ModelName, Arc<Lane>>>,
    has_worked: Arc<AtomicBool>,
}

/// One model of one provider.
pub(super) struct Lane {
    /// What the provider allows, as far as it told.
    pub gate: Gate,
    habits: Mutex<Habits>,
}

/// Moving averages that turn an estimate into a reservation.
#[derive(Clone, Copy, Debug)]
struct Habits {
    /// Reported input tokens per estimated one.
    input_ratio: f64,
    /// Tokens of a reply.
    output: Option<f64>,
}

impl Line {
    pub(super) fn new(spec: Arc<ProviderSpec>, key: Option<ApiKey>, account: Arc<Gate>) -> Line {
        Line { spec, key, account, lanes: Mutex::default(), has_worked: Arc::default() }
    }

    /// How its models are doing.
    pub(super) fn standings(&self) -> Vec<Standing> {
        let lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        let account = self.account.view();
        let standing = |(model, lane): (&ModelName, &Arc<Lane>)| {
            let view = lane.gate.view();
            let strict = |a: Option<u64>, b: Option<u64>| a.min(b).or(a).or(b);
            let (told, declared) = (view.allowed, account.allowed);
            let together = strict(told.tokens, declared.tokens);
            let input = strict(told.input, declared.input);
            Standing {
                provider: self.spec.name.clone(),
                model: model.clone(),
                sent: view.sent,
                in_flight: view.in_flight,
                requests_per_minute: strict(told.requests, declared.requests),
                tokens: if together.is_some() { view.used.total() } else { view.used.input },
                tokens_per_minute: together.or(input),
                account_requests_per_minute: declared.requests,
                account_tokens_per_minute: if together.is_some() { declared.tokens } else { declared.input },
                waits: view.waits.or_else(|| account.waits.clone()),
            }
        };
        lanes.iter().map(standing).collect()
    }

    pub(super) fn lane(&self, model: &ModelName) -> Arc<Lane> {
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lane) = lanes.get(model) {
            return lane.clone();
        }
        let lane = Arc::new(Lane::new(&self.spec.limits, &self.has_worked));
        lanes.insert(model.clone(), lane.clone());
        lane
    }
}

/// The gate of an account: the user's numbers, as they stand.
pub(super) fn account(limits: &Limits) -> Gate {
    let rates = PerMinute {
        requests: limits.requests_per_minute.map(u64::from),
        tokens: limits.tokens_per_minute,
        input: limits.input_tokens_per_minute,
        output: limits.output_tokens_per_minute,
    };
    Gate::new(Pace::declared(limits.max_in_flight.unwrap_or(Limits::DEFAULT_IN_FLIGHT)), rates)
}

/// The strictest limits among the providers that share an address and a key.
pub(super) fn shared_limits(spec: &ProviderSpec, all: &[Arc<ProviderSpec>]) -> Limits {
    fn strict<T: Ord>(a: Option<T>, b: Option<T>) -> Option<T> {
        match (a, b) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }
    let same = all.iter().filter(|other| other.base_url == spec.base_url && other.api_key == spec.api_key);
    same.fold(spec.limits.clone(), |limits, other| Limits {
        requests_per_minute: strict(limits.requests_per_minute, other.limits.requests_per_minute),
        tokens_per_minute: strict(limits.tokens_per_minute, other.limits.tokens_per_minute),
        input_tokens_per_minute: strict(limits.input_tokens_per_minute, other.limits.input_tokens_per_minute),
        output_tokens_per_minute: strict(limits.output_tokens_per_minute, other.limits.output_tokens_per_minute),
        max_in_flight: strict(limits.max_in_flight, other.limits.max_in_flight),
        ..limits
    })
}

impl Lane {
    fn new(limits: &Limits, has_worked: &Arc<AtomicBool>) -> Lane {
        let pace = match limits.max_in_flight {
            Some(declared) => Pace::declared(declared),
            None => Pace::undeclared(Limits::DEFAULT_IN_FLIGHT),
        };
        let habits = Habits { input_ratio: 1.2, output: None };
        let gate = Gate::new(pace, PerMinute::default()).of_provider(has_worked);
        let at_once = limits.max_in_flight.unwrap_or(0);
        let gate = if limits.requests_per_minute.is_some() { gate } else { gate.beginning_carefully(at_once) };
        Lane { gate, habits: Mutex::new(habits) }
    }

    /// What to reserve for a call: its estimate in the light of earlier replies.
    pub(super) fn need(&self, (input, max_output): (Tokens, Tokens)) -> Need {
        let habits = *self.habits.lock().unwrap_or_else(PoisonError::into_inner);
        let usual = habits.output.map_or(max_output.0, |usual| (usual * 1.1) as u64);
        Need { input: (input.0 as f64 * habits.input_ratio) as u64, output: usual.min(max_output.0) }
    }

    /// Learns from what a call used.
    pub(super) fn observe(&self, estimated: Tokens, usage: &Usage) {
        const WEIGHT: f64 = 0.1;
        let mut habits = self.habits.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(input) = usage.input.filter(|_| estimated.0 >= 50) {
            let ratio = (input.0 as f64 / estimated.0 as f64).clamp(0.5, 4.0);
            habits.input_ratio += WEIGHT * (ratio - habits.input_ratio);
        }
        if let Some(Tokens(output)) = usage.output {
            let usual = habits.output.unwrap_or(output as f64);
            habits.output = Some(usual + WEIGHT * (output as f64 - usual));
        }
    }
}
