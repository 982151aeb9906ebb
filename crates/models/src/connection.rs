//! A provider as the client uses it: its key, its account's rate limiter, and a limiter for each of its models.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use super::call::ErrorClass;
use super::classify::AttemptError;
use super::dialects::{HttpRequest, NEWER_VERSION, OLDER_VERSION};
use super::fields::{OptionalField, refused_field, without_fields};
use super::http::ApiKey;
use super::limits::{ConcurrencyLimit, LimitGroup, ProviderStatus, RateLimiter, TokenDemand};
use super::spec::{KeyPlace, Limits, ModelName, ProviderSpec, RatesPerMinute};
use base::threads::lock;
use base::units::{Tokens, Usage};

/// A provider that can be asked.
pub(super) struct ProviderConnection {
    pub spec: Arc<ProviderSpec>,
    pub key: Option<ApiKey>,
    pub key_place: KeyPlace,
    /// Shared by providers with the same address and key.
    pub account: Arc<Account>,
    models: Mutex<BTreeMap<ModelName, Arc<ModelConnection>>>,
    has_worked: Arc<AtomicBool>,
}

/// An account at a provider: an address and a key.
pub(super) struct Account {
    /// The limits that the user declared, over all models.
    pub limiter: RateLimiter,
    /// The limits that the provider enforces, by the name of the group.
    groups: Mutex<BTreeMap<String, Arc<LimitGroup>>>,
}

impl Account {
    pub(super) fn new(limits: &Limits) -> Account {
        let most = limits.max_in_flight.unwrap_or(Limits::DEFAULT_IN_FLIGHT);
        Account {
            limiter: RateLimiter::new(ConcurrencyLimit::declared(most), limits.rates),
            groups: Mutex::default(),
        }
    }

    fn group(&self, spec: &ProviderSpec, model: &ModelName) -> Arc<LimitGroup> {
        let mut groups = lock(&self.groups);
        let group = groups.entry(spec.limit_group(model)).or_insert_with(|| {
            Arc::new(LimitGroup::new(
                spec.limits.rates.requests.is_some(),
                spec.limits.sharers,
            ))
        });
        group.clone()
    }
}

/// One model of one provider.
pub(super) struct ModelConnection {
    /// The limits that the provider reported or enforced.
    pub limiter: RateLimiter,
    averages: Mutex<UsageAverages>,
    /// Has an owner more for each call that waits before it is sent again.
    delayed: Arc<()>,
    /// Optional fields that the model's server refuses.
    refused: Mutex<Vec<&'static OptionalField>>,
    /// Whether its server refused the newer version of Anthropic's API.
    wants_older_version: AtomicBool,
    /// Whether it has answered a request with a schema.
    pub takes_schema: AtomicBool,
    /// The last error, and how often it came in a row.
    repeated: Mutex<(String, u32)>,
}

/// Moving averages that turn an estimate into a reservation.
#[derive(Clone, Copy, Debug)]
struct UsageAverages {
    /// Reported input tokens per estimated one.
    input_ratio: f64,
    /// Reported output tokens of a reply.
    output: Option<f64>,
}

impl ProviderConnection {
    pub(super) fn new(
        spec: Arc<ProviderSpec>,
        key: Option<ApiKey>,
        account: Arc<Account>,
    ) -> ProviderConnection {
        let usual = || KeyPlace::usual(spec.dialect, &spec.base_url);
        ProviderConnection {
            key_place: spec.key_place.clone().unwrap_or_else(usual),
            spec,
            key,
            account,
            models: Mutex::default(),
            has_worked: Arc::default(),
        }
    }

    /// The status of every model used so far.
    pub(super) fn statuses(&self) -> Vec<ProviderStatus> {
        let models = lock(&self.models);
        let (_, account_waits) = self.account.limiter.status();
        let statuses = models.iter().map(|(name, model)| {
            let (in_flight, waits) = model.limiter.status();
            ProviderStatus {
                provider: self.spec.name.clone(),
                model: name.clone(),
                in_flight,
                waits: waits.or_else(|| account_waits.clone()),
            }
        });
        statuses.collect()
    }

    pub(super) fn model(&self, name: &ModelName) -> Arc<ModelConnection> {
        let mut models = lock(&self.models);
        if let Some(model) = models.get(name) {
            return model.clone();
        }
        let group = self.account.group(&self.spec, name);
        let model = Arc::new(ModelConnection::new(
            &self.spec.limits,
            group,
            &self.has_worked,
        ));
        models.insert(name.clone(), model.clone());
        model
    }
}

/// The stricter of two limits; `None` means no limit.
fn stricter<T: Ord>(a: Option<T>, b: Option<T>) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// The strictest limits among the providers that share an address and a key.
pub(super) fn shared_limits(spec: &ProviderSpec, all: &[Arc<ProviderSpec>]) -> Limits {
    let same = all
        .iter()
        .filter(|other| other.base_url == spec.base_url && other.api_key == spec.api_key);
    same.fold(spec.limits.clone(), |limits, other| Limits {
        rates: limits.rates.zip(other.limits.rates, stricter),
        max_in_flight: stricter(limits.max_in_flight, other.limits.max_in_flight),
        ..limits
    })
}

impl ModelConnection {
    fn new(
        limits: &Limits,
        group: Arc<LimitGroup>,
        has_worked: &Arc<AtomicBool>,
    ) -> ModelConnection {
        let concurrency = match limits.max_in_flight {
            Some(declared) => ConcurrencyLimit::declared(declared),
            None => ConcurrencyLimit::undeclared(Limits::DEFAULT_IN_FLIGHT),
        };
        let limiter = RateLimiter::new(concurrency, RatesPerMinute::default());
        ModelConnection {
            limiter: limiter.sharing_history(has_worked).within(group),
            averages: Mutex::new(UsageAverages {
                input_ratio: 1.2,
                output: None,
            }),
            delayed: Arc::default(),
            refused: Mutex::default(),
            wants_older_version: AtomicBool::default(),
            takes_schema: AtomicBool::default(),
            repeated: Mutex::default(),
        }
    }

    /// Learns that the server refuses an optional field of a request, or the version of the API, if that is what `error`
    /// says. Returns what the next request leaves out, renames or replaces.
    pub(super) fn learn(
        &self,
        error: &AttemptError,
        request: &HttpRequest,
    ) -> Option<&'static str> {
        if request.headers.contains(&NEWER_VERSION) && error.message.contains(NEWER_VERSION.0) {
            self.wants_older_version.store(true, Ordering::Relaxed);
            return Some(NEWER_VERSION.0);
        }
        let mut refused = lock(&self.refused);
        let takes_schema = self.takes_schema.load(Ordering::Relaxed);
        let field = refused_field(error, &request.body, &refused, takes_schema)?;
        if !refused.contains(&field) {
            refused.push(field);
        }
        Some(field.0)
    }

    /// A request without what the server refuses.
    pub(super) fn without_refused(&self, mut request: HttpRequest) -> HttpRequest {
        request.body = without_fields(request.body, &lock(&self.refused));
        let wants_older = self.wants_older_version.load(Ordering::Relaxed);
        let headers = request.headers.iter_mut();
        for version in headers.filter(|header| wants_older && **header == NEWER_VERSION) {
            *version = OLDER_VERSION;
        }
        request
    }

    /// Whether the model fails every request in the same way, although its provider works. That is no outage.
    pub(super) fn is_failing(&self, error: &AttemptError) -> bool {
        const MOST_ERRORS: u32 = 8;
        // A gateway says the same of a server that is being started again.
        const MOST_OF_A_GATEWAY: u32 = 16;
        // Requests may share a mistake while others are sound.
        const MOST_REFUSALS: u32 = 32;
        let most = match (error.class, error.status) {
            (ErrorClass::Transient, Some(500 | 501)) => MOST_ERRORS,
            (ErrorClass::Transient, Some(502 | 504 | 520..=530 | 408 | 409)) => MOST_OF_A_GATEWAY,
            (ErrorClass::Invalid, Some(_)) => MOST_REFUSALS,
            _ => return false,
        };
        // Ids and amounts differ from reply to reply.
        let words = error.message.split_whitespace();
        let kept = words.filter(|word| !word.contains(|letter: char| letter.is_ascii_digit()));
        let text = kept.collect::<Vec<_>>().join(" ");
        let mut repeated = lock(&self.repeated);
        if repeated.0 != text {
            *repeated = (text, 0);
        }
        repeated.1 += 1;
        repeated.1 >= most && self.limiter.answered() == 0 && self.limiter.has_worked()
    }

    /// Counts a call as delayed as long as the result lives.
    pub(super) fn delay(&self) -> Arc<()> {
        self.delayed.clone()
    }

    /// How many calls wait before they are sent again.
    pub(super) fn delayed(&self) -> usize {
        Arc::strong_count(&self.delayed) - 1
    }

    /// The tokens to reserve for a call: its estimate, corrected by earlier replies.
    pub(super) fn demand(&self, input: Tokens, max_output: Tokens) -> TokenDemand {
        let averages = *lock(&self.averages);
        let usual = averages
            .output
            .map_or(max_output.0, |usual| (usual * 1.1) as u64);
        TokenDemand {
            input: (input.0 as f64 * averages.input_ratio) as u64,
            output: usual.min(max_output.0),
        }
    }

    /// Updates the averages with the usage of a call.
    pub(super) fn observe(&self, estimated: Tokens, usage: &Usage) {
        const WEIGHT: f64 = 0.1;
        let mut averages = lock(&self.averages);
        if let Some(input) = usage.input.filter(|_| estimated.0 >= 50) {
            let ratio = (input.0 as f64 / estimated.0 as f64).clamp(0.5, 4.0);
            averages.input_ratio += WEIGHT * (ratio - averages.input_ratio);
        }
        if let Some(Tokens(output)) = usage.output {
            let usual = averages.output.unwrap_or(output as f64);
            averages.output = Some(usual + WEIGHT * (output as f64 - usual));
        }
    }
}
