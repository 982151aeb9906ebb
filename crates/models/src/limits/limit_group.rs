//! The limits that a provider enforces on one group of models: an estimator for each kind of limit.
//!
//! OpenAI limits each model, Anthropic each class of models, most others the account. All models of a group share its
//! estimators, so that what one learns serves the others.

use std::num::NonZeroU32;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use tokio::time::Instant;

use super::buckets::TokenDemand;
use super::headers::AnnouncedLimits;
use super::rate_estimator::{RateEstimator, Seconds};
use crate::classify::LimitKind;
use base::threads::lock;

/// The kind of limit of which nothing remains; `None` if there are several or none.
fn used_up(announced: &AnnouncedLimits) -> Option<LimitKind> {
    let windows = LimitKind::ALL.into_iter().zip(announced.all());
    let mut used_up = windows.filter(|(_, window)| window.remaining == Some(0));
    let (kind, _) = used_up.next()?;
    used_up.next().is_none().then_some(kind)
}

/// A request that a group admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ticket(u64);

/// The estimators of one group of models.
#[derive(Debug)]
pub(crate) struct LimitGroup {
    epoch: Instant,
    /// The number of processes that share the limits that the provider announces.
    sharers: NonZeroU32,
    estimators: Mutex<[RateEstimator; 4]>,
}

impl LimitGroup {
    /// `is_declared`: the user declared a request rate, so the start need not be slow.
    pub(crate) fn new(is_declared: bool, sharers: NonZeroU32) -> LimitGroup {
        let tokens = RateEstimator::for_tokens();
        let estimators = [
            RateEstimator::for_requests(is_declared),
            tokens.clone(),
            tokens.clone(),
            tokens,
        ];
        LimitGroup {
            epoch: Instant::now(),
            sharers,
            estimators: Mutex::new(estimators),
        }
    }

    fn estimators(&self) -> MutexGuard<'_, [RateEstimator; 4]> {
        // No code that can panic runs under this lock.
        lock(&self.estimators)
    }

    fn now(&self) -> Seconds {
        self.epoch.elapsed().as_secs_f64()
    }

    /// Admits a request, or says how long it has to wait.
    pub(crate) fn admit(&self, need: TokenDemand) -> Result<Ticket, Duration> {
        let (mut estimators, now) = (self.estimators(), self.now());
        let amounts = need.amounts().map(|amount| amount as f64);
        let waits = estimators
            .iter_mut()
            .zip(amounts)
            .map(|(estimator, amount)| estimator.wait(amount, now));
        // A wait of less than a nanosecond is none: it would be waited for again and again.
        let wait = Duration::try_from_secs_f64(waits.fold(0.0, f64::max)).unwrap_or(Duration::MAX);
        if !wait.is_zero() {
            return Err(wait);
        }
        let sent = estimators
            .iter_mut()
            .zip(amounts)
            .map(|(estimator, amount)| estimator.sent(amount, now));
        Ok(Ticket(sent.last().unwrap_or_default()))
    }

    /// How long refusals hold all requests back, if they do.
    pub(crate) fn blocked(&self) -> Option<Duration> {
        let now = self.now();
        let blocked = self
            .estimators()
            .iter()
            .filter_map(|estimator| estimator.blocked(now))
            .fold(0.0, f64::max);
        Duration::try_from_secs_f64(blocked)
            .ok()
            .filter(|blocked| !blocked.is_zero())
    }

    /// Records a reply, and the limits in its headers.
    pub(crate) fn succeeded(&self, ticket: Ticket, announced: &AnnouncedLimits) {
        self.announced(ticket, announced);
        let Ticket(id) = ticket;
        let now = self.now();
        self.estimators()
            .iter_mut()
            .for_each(|estimator| estimator.succeeded(id, now));
    }

    /// Records the limits in the headers of any reply to this request.
    pub(crate) fn announced(&self, Ticket(id): Ticket, announced: &AnnouncedLimits) {
        let (now, part) = (self.now(), 1.0 / f64::from(self.sharers.get()));
        for (estimator, window) in self.estimators().iter_mut().zip(announced.all()) {
            if let Some(limit) = window.limit.filter(|limit| *limit > 0) {
                let rest = window.remaining.zip(window.reset);
                let rest = rest.map(|(left, reset)| (left as f64, reset.as_secs_f64()));
                estimator.announced(id, limit as f64, rest, part, now);
            }
        }
    }

    /// Records that a limit of this kind refused a request. An unknown kind counts as requests.
    pub(crate) fn refused(
        &self,
        Ticket(id): Ticket,
        kind: Option<LimitKind>,
        asked: Option<Duration>,
        announced: &AnnouncedLimits,
    ) {
        let refused = kind
            .or_else(|| used_up(announced))
            .unwrap_or(LimitKind::Requests);
        let now = self.now();
        for (estimator, kind) in self.estimators().iter_mut().zip(LimitKind::ALL) {
            if kind == refused {
                estimator.refused(id, now, asked.map(|asked| asked.as_secs_f64()));
            } else if kind == LimitKind::Requests {
                estimator.ended();
            } else {
                // The request took no tokens.
                estimator.withdrawn(id);
            }
        }
    }

    /// Records that a request failed for another reason than a limit, and whether it may have taken tokens.
    pub(crate) fn failed(&self, Ticket(id): Ticket, took_tokens: bool) {
        for (estimator, kind) in self.estimators().iter_mut().zip(LimitKind::ALL) {
            if kind == LimitKind::Requests {
                estimator.ended();
            } else if !took_tokens {
                estimator.withdrawn(id);
            }
        }
    }

    /// Corrects the tokens reserved for a request to those it used.
    pub(crate) fn settle(&self, Ticket(id): Ticket, reserved: TokenDemand, used: TokenDemand) {
        let amounts = reserved.amounts().into_iter().zip(used.amounts());
        for (estimator, (reserved, used)) in self.estimators().iter_mut().zip(amounts) {
            estimator.settle(id, reserved as f64, used as f64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::headers::LimitWindow;
    use super::*;

    impl LimitGroup {
        /// The estimated limits per second, in the order of `LimitKind::ALL`.
        pub(in crate::limits) fn levels(&self) -> [Option<f64>; 4] {
            self.estimators().each_ref().map(RateEstimator::level)
        }
    }

    const NEED: TokenDemand = TokenDemand {
        input: 1000,
        output: 100,
    };

    #[tokio::test(start_paused = true)]
    async fn a_refusal_lowers_the_kind_of_limit_that_it_names() {
        let group = LimitGroup::new(true, NonZeroU32::MIN);
        let none = AnnouncedLimits::default();
        let tickets: Vec<Ticket> = (0..10).map(|_| group.admit(NEED).unwrap()).collect();
        tokio::time::advance(Duration::from_millis(100)).await;
        group.refused(tickets[9], Some(LimitKind::Input), None, &none);
        assert_eq!(group.levels(), [None, None, Some(9.0 * 1000.0), None]);
        let used_up = LimitWindow {
            remaining: Some(0),
            ..LimitWindow::default()
        };
        group.refused(
            tickets[8],
            None,
            None,
            &AnnouncedLimits {
                output: used_up,
                ..none
            },
        );
        assert_eq!(group.levels()[3], Some(8.0 * 100.0));
    }

    #[tokio::test(start_paused = true)]
    async fn refusals_before_anything_was_accepted_leave_one_request_a_second() {
        for refused in 2..4 {
            let group = LimitGroup::new(false, NonZeroU32::MIN);
            for _ in 0..refused {
                let ticket = loop {
                    match group.admit(NEED) {
                        Ok(ticket) => break ticket,
                        Err(wait) => tokio::time::advance(wait + Duration::from_millis(1)).await,
                    }
                };
                tokio::time::advance(Duration::from_millis(4)).await;
                group.refused(
                    ticket,
                    Some(LimitKind::Requests),
                    None,
                    &AnnouncedLimits::default(),
                );
            }
            let [level, ..] = group.levels();
            assert!(
                level.is_none_or(|level| level >= 1.0),
                "{level:?} after {refused}"
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_announced_limit_is_kept_to_at_once() {
        const MANY: usize = 1000;
        for (announced, at_once, seconds) in [
            ((3000, 2999, 0.02), MANY, 0.0),
            // What remains of this second: it is sent at an even rate.
            ((3000, 40, 1.0), 0, 1.0 / (50.0 * 0.985)),
            // What remains of this day, in which as good as nothing comes back within a minute.
            ((14_400, 10, 86_340.0), 10, 6.0),
            // Nothing was used yet.
            ((14_400, 14_399, 6.0), MANY, 0.0),
        ] {
            let group = LimitGroup::new(true, NonZeroU32::MIN);
            let first = group.admit(NEED).unwrap();
            let (limit, remaining, reset) = announced;
            let window = LimitWindow {
                limit: Some(limit),
                remaining: Some(remaining),
                reset: Some(Duration::from_secs_f64(reset)),
            };
            let announced = AnnouncedLimits {
                requests: window,
                ..AnnouncedLimits::default()
            };
            group.succeeded(first, &announced);
            let admitted = (0..MANY).take_while(|_| group.admit(NEED).is_ok()).count();
            assert_eq!(admitted, at_once, "{window:?}");
            let wait = group.admit(NEED).err().unwrap_or_default().as_secs_f64();
            assert!(
                (wait - seconds).abs() < 0.05 * seconds.max(0.01),
                "{window:?}: {wait}"
            );
        }
    }
}
