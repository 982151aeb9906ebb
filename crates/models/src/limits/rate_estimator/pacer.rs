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

    pub(super) fn take(&mut self, amount: f64) {
        if self.rate.is_finite() {
            self.filled -= amount;
        }
    }
}
