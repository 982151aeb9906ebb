//! What headers announce: how much is left, counted down with each request, and how it refills.

use super::pacer::Seconds;

/// The share of an even rate that is used, and the seconds of it that may be sent at once, so that no second exceeds it.
const USED_SHARE: f64 = 0.985;
const BURST: Seconds = 0.01;

/// A limit as the headers of a reply announce it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Announced {
    /// The amount per minute.
    pub limit: f64,
    /// What is left of it, and the time until it is whole again.
    pub rest: Option<(f64, Seconds)>,
}

/// What may still be sent.
#[derive(Clone, Debug)]
pub(super) struct Budget {
    /// The request whose reply announced it.
    reply: u64,
    left: f64,
    /// The most that is left at an even rate; `None` if what is left may be sent at once.
    most: Option<f64>,
    /// The amount that is added per second, from `at`.
    refill: f64,
    at: Seconds,
    /// The amount per second that the budget allows in the next minute.
    pub per_second: f64,
}

impl Budget {
    /// `later` is the amount sent since the request whose reply this is.
    pub(super) fn new(
        reply: u64,
        Announced { limit, rest }: Announced,
        part: f64,
        later: f64,
        now: Seconds,
    ) -> Budget {
        let full = limit / 60.0;
        let rest = rest.map(|(left, reset)| {
            let is_reset = reset > 0.0;
            (
                left,
                if is_reset {
                    (limit - left).max(0.0) / reset
                } else {
                    full
                },
            )
        });
        // What is whole again so soon that the limit cannot refill is a window shorter than a minute, and what is left is
        // left of that.
        match rest.filter(|(left, refill)| *left > full || *refill <= 1.5 * full) {
            Some((left, refill)) => {
                let refill = refill.clamp(full / 1e4, full);
                Budget {
                    reply,
                    left: left * part - later,
                    most: None,
                    refill: refill * part,
                    at: now,
                    per_second: full.min(refill + left / 60.0) * part,
                }
            }
            None => Budget {
                reply,
                left: -later,
                most: Some((full * part * BURST).max(1.0)),
                refill: full * part * USED_SHARE,
                at: now,
                per_second: full * part,
            },
        }
    }

    /// Whether a newer announcement says more than this one. One of the same even rate does not.
    pub(super) fn is_replaced_by(&self, newer: &Budget) -> bool {
        let is_same = self.most.is_some() && newer.most == self.most && newer.refill == self.refill;
        newer.reply >= self.reply && !is_same
    }

    fn left(&self, now: Seconds) -> f64 {
        let left = self.left + (now - self.at).max(0.0) * self.refill;
        self.most.map_or(left, |most| left.min(most))
    }

    pub(super) fn wait(&self, amount: f64, now: Seconds) -> Seconds {
        let needed = self.most.map_or(amount, |most| amount.min(most));
        let missing = needed - self.left(now);
        // A hair of rounding must not cost a timer tick.
        if missing <= 1e-6 {
            0.0
        } else {
            missing / self.refill
        }
    }

    pub(super) fn take(&mut self, amount: f64, now: Seconds) {
        self.left = self.left(now) - amount;
        self.at = self.at.max(now);
    }
}
