//! An amount that grows evenly.

/// Seconds since some fixed moment.
pub(crate) type Seconds = f64;

/// An amount that grows evenly up to a size. What is taken can be given back. More than the size is taken from a full
/// bucket, which is in debt then, so that no request is too large to be sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bucket {
    /// The amount that is added per second; if it is infinite, there is always enough.
    pub rate: f64,
    /// The most that it holds.
    pub size: f64,
    /// What it held at `at`.
    level: f64,
    at: Seconds,
}

impl Bucket {
    pub(crate) fn new(rate: f64, size: f64, level: f64, at: Seconds) -> Bucket {
        Bucket {
            rate,
            size,
            level,
            at,
        }
    }

    /// Changes rate and size; what is saved or owed stays.
    pub(super) fn set(&mut self, rate: f64, size: f64, now: Seconds) {
        *self = Bucket::new(rate, size, self.grown(now).min(size), now);
    }

    fn grown(&self, now: Seconds) -> f64 {
        self.level + (now - self.at).max(0.0) * self.rate
    }

    fn level(&self, now: Seconds) -> f64 {
        self.grown(now).min(self.size)
    }

    /// How long until this amount may be taken; 0 if at once.
    pub(crate) fn wait(&self, amount: f64, now: Seconds) -> Seconds {
        let missing = amount.min(self.size) - self.level(now);
        // A hair of rounding must not cost a timer tick.
        if missing <= 1e-6 {
            0.0
        } else {
            missing / self.rate
        }
    }

    /// Takes an amount, or gives some back if it is negative.
    pub(crate) fn take(&mut self, amount: f64, now: Seconds) {
        self.level = (self.level(now) - amount).min(self.size);
        self.at = self.at.max(now);
    }
}

impl Default for Bucket {
    fn default() -> Bucket {
        Bucket::new(f64::INFINITY, f64::INFINITY, f64::INFINITY, 0.0)
    }
}
