//! How providers limit requests. Times are seconds since some moment, so that the loopback server and the simulation in
//! virtual time share this.

#![allow(dead_code, reason = "each test and bench uses a part")]

use std::collections::{BTreeMap, VecDeque};

/// How a limit counts.
#[derive(Clone, Copy, Debug)]
pub enum Rule {
    /// The most in any period, and the length of the period in seconds.
    Sliding(f64, f64),
    /// The most in each period, its length in seconds, and how many seconds ago the first one began.
    Fixed(f64, f64, f64),
    /// The amount that is added per second, and the most that the bucket holds.
    Bucket(f64, f64),
}

/// What a refusal says about waiting.
#[derive(Clone, Copy, Debug)]
pub enum Asks {
    Nothing,
    Seconds(f64),
    Exactly,
}

/// A limit as its server is configured.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    pub rule: Rule,
    pub asks: Asks,
    /// Whether refused requests count too.
    pub counts_refused: bool,
    /// The second from which the limit is multiplied, and the factor.
    pub change: Option<(f64, f64)>,
}

impl Limit {
    pub fn new(rule: Rule) -> Limit {
        Limit {
            rule,
            asks: Asks::Nothing,
            counts_refused: false,
            change: None,
        }
    }

    pub fn asking(self, asks: Asks) -> Limit {
        Limit { asks, ..self }
    }

    fn factor(&self, now: f64) -> f64 {
        self.change
            .filter(|(at, _)| now >= *at)
            .map_or(1.0, |(_, factor)| factor)
    }

    /// The most that passes until `end`, at no more than `fastest` per second.
    pub fn allowed(&self, end: f64, fastest: f64) -> f64 {
        let rule = |rule: Rule, factor: f64, from: f64, end: f64| match rule {
            Rule::Sliding(most, period) => factor * most / period * (end - from),
            Rule::Bucket(rate, size) => {
                factor * rate * (end - from) + if from == 0.0 { size } else { 0.0 }
            }
            Rule::Fixed(most, period, began) => {
                let (mut at, mut sum) = (from, 0.0);
                while at < end {
                    let next = (((at + began) / period).floor() + 1.0) * period - began;
                    sum += (factor * most).min(fastest * (next.min(end) - at));
                    at = next;
                }
                sum
            }
        };
        let change = self.change.filter(|(at, _)| *at < end);
        let allowed = match change {
            Some((at, factor)) => rule(self.rule, 1.0, 0.0, at) + rule(self.rule, factor, at, end),
            None => rule(self.rule, 1.0, 0.0, end),
        };
        allowed.min(fastest * end)
    }
}

/// A limit at work.
#[derive(Clone, Debug)]
pub struct Limiter {
    pub limit: Limit,
    counted: VecDeque<(f64, f64)>,
    sum: f64,
    period: f64,
    level: Option<f64>,
    at: f64,
}

impl Limiter {
    pub fn new(limit: Limit) -> Limiter {
        Limiter {
            limit,
            counted: VecDeque::new(),
            sum: 0.0,
            period: f64::NAN,
            level: None,
            at: 0.0,
        }
    }

    fn count(&mut self, amount: f64, now: f64) {
        match self.limit.rule {
            Rule::Sliding(..) => {
                self.counted.push_back((now, amount));
                self.sum += amount;
            }
            Rule::Fixed(..) => self.sum += amount,
            Rule::Bucket(..) => self.level = self.level.map(|level| level - amount),
        }
    }

    /// Whether `amount` passes at `now`, and the wait if not.
    fn look(&mut self, amount: f64, now: f64) -> (bool, f64) {
        let factor = self.limit.factor(now);
        match self.limit.rule {
            Rule::Sliding(most, period) => {
                while self
                    .counted
                    .front()
                    .is_some_and(|(at, _)| now - at > period)
                {
                    self.sum -= self.counted.pop_front().map_or(0.0, |(_, amount)| amount);
                }
                let oldest = self
                    .counted
                    .front()
                    .map_or(0.0, |(at, _)| at + period - now);
                (self.sum + amount <= most * factor + 1e-9, oldest)
            }
            Rule::Fixed(most, period, began) => {
                let nth = ((now + began) / period).floor();
                if nth != self.period {
                    (self.period, self.sum) = (nth, 0.0);
                }
                (
                    self.sum + amount <= most * factor + 1e-9,
                    (nth + 1.0) * period - began - now,
                )
            }
            Rule::Bucket(rate, size) => {
                let level = self.level.unwrap_or(size) + (now - self.at) * rate * factor;
                self.at = now;
                self.level = Some(level.min(size));
                (
                    level >= amount.min(size),
                    (amount.min(size) - level) / (rate * factor),
                )
            }
        }
    }

    /// What headers announce: the limit per minute, what remains, and the seconds until it is whole again.
    pub fn announced(&mut self, now: f64) -> (f64, f64, f64) {
        let (_, wait) = self.look(0.0, now);
        let factor = self.limit.factor(now);
        // A window longer than a minute is announced with its whole limit, as vendors do for days.
        let announced = |most: f64, period: f64| most * factor * (60.0 / period).max(1.0);
        match self.limit.rule {
            Rule::Sliding(most, period) => (
                announced(most, period),
                (most * factor - self.sum).max(0.0),
                wait.max(0.0),
            ),
            Rule::Fixed(most, period, _) => (
                announced(most, period),
                (most * factor - self.sum).max(0.0),
                wait,
            ),
            Rule::Bucket(rate, size) => {
                let level = self.level.unwrap_or(size);
                (
                    rate * factor * 60.0,
                    level.max(0.0),
                    (size - level) / (rate * factor),
                )
            }
        }
    }
}

/// The unit that a limit counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Requests,
    InputTokens,
}

/// A limit of a provider.
#[derive(Clone, Copy, Debug)]
pub struct ProviderLimit {
    pub unit: Unit,
    /// Whether each model has the limit for itself; otherwise the account has.
    pub is_per_model: bool,
    pub limit: Limit,
}

impl ProviderLimit {
    /// A limit on the requests of the account.
    pub fn requests(limit: Limit) -> ProviderLimit {
        ProviderLimit {
            unit: Unit::Requests,
            is_per_model: false,
            limit,
        }
    }
}

/// Why a request was refused, and what the refusal says about waiting.
#[derive(Clone, Copy, Debug)]
pub struct Refusal {
    pub unit: Option<Unit>,
    pub wait: Option<f64>,
}

/// All limits of a provider at work.
#[derive(Clone, Debug, Default)]
pub struct Limiters {
    limits: Vec<ProviderLimit>,
    at_work: BTreeMap<(usize, String), Limiter>,
    /// The share of requests refused at random.
    pub noise: f64,
}

impl Limiters {
    pub fn new(limits: &[ProviderLimit], noise: f64) -> Limiters {
        Limiters {
            limits: limits.to_vec(),
            at_work: BTreeMap::new(),
            noise,
        }
    }

    fn of(&mut self, model: &str) -> impl Iterator<Item = (Unit, &mut Limiter)> {
        let scope = |limit: &ProviderLimit| {
            if limit.is_per_model {
                model.to_owned()
            } else {
                String::new()
            }
        };
        let keys: Vec<(usize, String)> = self.limits.iter().map(scope).enumerate().collect();
        for key in &keys {
            let limiter = || Limiter::new(self.limits[key.0].limit);
            self.at_work.entry(key.clone()).or_insert_with(limiter);
        }
        let units = &self.limits;
        self.at_work
            .iter_mut()
            .filter(move |(key, _)| keys.contains(key))
            .map(|(key, l)| (units[key.0].unit, l))
    }

    /// Takes a request, or refuses it. `dice` is a random number from 0 to 1.
    pub fn take(&mut self, model: &str, input: f64, dice: f64, now: f64) -> Result<(), Refusal> {
        if dice < self.noise {
            return Err(Refusal {
                unit: None,
                wait: Some(1.0),
            });
        }
        let amount = |unit: Unit| if unit == Unit::Requests { 1.0 } else { input };
        let mut refusal = None;
        for (unit, limiter) in self.of(model) {
            let (passes, wait) = limiter.look(amount(unit), now);
            if !passes {
                let wait = match limiter.limit.asks {
                    Asks::Nothing => None,
                    Asks::Seconds(seconds) => Some(seconds),
                    Asks::Exactly => Some(wait.max(0.001)),
                };
                refusal = Some(Refusal {
                    unit: Some(unit),
                    wait,
                });
            }
        }
        for (unit, limiter) in self.of(model) {
            if refusal.is_none() || limiter.limit.counts_refused {
                limiter.count(amount(unit), now);
            }
        }
        refusal.map_or(Ok(()), Err)
    }

    /// What headers announce: for each unit the limit per minute, what remains, and the seconds until it is whole.
    pub fn announced(&mut self, model: &str, now: f64) -> Vec<(Unit, [f64; 3])> {
        self.of(model)
            .map(|(unit, limiter)| (unit, limiter.announced(now).into()))
            .collect()
    }
}

/// When requests arrived, in seconds.
#[derive(Clone, Debug, Default)]
pub struct Arrivals {
    pub accepted: Vec<f64>,
    /// Input tokens of the accepted ones.
    pub input: Vec<f64>,
    pub refused: Vec<f64>,
}

impl Arrivals {
    /// The amount accepted until `end`, and the share of requests refused.
    pub fn until(&self, end: f64, unit: Unit) -> (f64, f64) {
        let accepted = self.accepted.iter().filter(|at| **at <= end).count();
        let refused = self.refused.iter().filter(|at| **at <= end).count();
        let amount = match unit {
            Unit::Requests => accepted as f64,
            Unit::InputTokens => self
                .accepted
                .iter()
                .zip(&self.input)
                .filter(|(at, _)| **at <= end)
                .map(|(_, n)| n)
                .sum(),
        };
        (amount, refused as f64 / (accepted + refused).max(1) as f64)
    }
}

/// Pseudo-random numbers.
#[derive(Clone, Debug)]
pub struct Dice(pub u64);

impl Dice {
    /// A number from 0 to 1.
    pub fn roll(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}
