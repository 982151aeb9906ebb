//! Spreads requests evenly over time.

/// Seconds since some fixed moment.
pub(crate) type Seconds = f64;

/// Seconds of a rate that may be sent at once.
const BURST: Seconds = 0.03;

/// Spreads an amount evenly, with bursts of some milliseconds and at least one request.
#[derive(Clone, Debug, Default)]
pub(super) struct Pacer {
    rate: f64,
    size: f64,
    filled: f64,
    at: Seconds,
}

impl Pacer {
    /// Changes the rate; what is saved or owed stays.
    pub(super) fn set(&mut self, rate: f64, mean: f64, now: Seconds) {
        let size = (rate * BURST).max(mean);
        let saved = if self.size == 0.0 || self.rate.is_infinite() {
            size
        } else {
            self.filled + (now - self.at).max(0.0) * self.rate
        };
        *self = Pacer {
            rate,
            size,
            filled: saved.min(size),
            at: now,
        };
    }

    pub(super) fn wait(&self, amount: f64) -> Seconds {
        let missing = amount.min(self.size) - self.filled;
        // A hair of rounding must not cost a timer tick.
        if self.rate.is_infinite() || missing <= 1e-6 {
            0.0
        } else {
            missing / self.rate
        }
    }

    /// Forgets what is saved, so that nothing may be sent at once.
    pub(super) fn drain(&mut self) {
        self.filled = self.filled.min(0.0);
    }

    pub(super) fn take(&mut self, amount: f64) {
        if self.rate.is_finite() {
            self.filled -= amount;
        }
    }
}

/// The rate per second that headers allow, from the limit per minute and, if they tell, from what remains of it and how long
/// it takes until it is whole again.
pub(super) fn announced_rate(limit: f64, rest: Option<(f64, Seconds)>) -> f64 {
    let per_second = limit / 60.0;
    let Some((remaining, reset)) = rest else {
        return per_second;
    };
    let refilled = (limit - remaining) / reset;
    if refilled > 1.5 * per_second {
        // No refill: what remains is of a window shorter than a minute.
        return per_second;
    }
    // The refill of a longer window, with its reserve spread over the next minute.
    per_second
        .min(refilled.max(0.0) + remaining / 60.0)
        .max(per_second / 1e4)
}
