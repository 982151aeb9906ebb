//! An amount that grows evenly, and what headers announce: how much is left, counted down with each request, and how it
//! refills.

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

/// The share of an even rate that is used, and the seconds of it that may be sent at once, so that no second exceeds it.
const USED_SHARE: f64 = 0.985;
const BURST: Seconds = 0.01;

/// What may still be sent.
#[derive(Clone, Debug)]
pub(super) struct Budget {
    /// The request whose reply announced it.
    reply: u64,
    /// What is left. Its size is limited if it is not to be sent at once, but at an even rate.
    pub left: Bucket,
}

impl Budget {
    /// `limit` is the amount per minute, `rest` what is left of it, and the time until it is whole again; `part` is our
    /// part of both. `later` is the amount sent since the request whose reply this is.
    pub(super) fn new(
        reply: u64,
        limit: f64,
        rest: Option<(f64, Seconds)>,
        part: f64,
        later: f64,
        now: Seconds,
    ) -> Budget {
        let full = limit / 60.0;
        let rest = rest.map(|(left, reset)| {
            let refill = (limit - left).max(0.0) / reset;
            (left, if reset > 0.0 { refill } else { full })
        });
        // What is whole again so soon that the limit cannot refill is a window shorter than a minute, and what is left is
        // left of that.
        let left = match rest.filter(|(left, refill)| *left > full || *refill <= 1.5 * full) {
            Some((left, refill)) => {
                let refill = refill.clamp(full / 1e4, full);
                Bucket::new(refill * part, f64::INFINITY, left * part - later, now)
            }
            None => {
                let even = full * part;
                let most = (even * BURST).max(1.0);
                Bucket::new(even * USED_SHARE, most, -later, now)
            }
        };
        Budget { reply, left }
    }

    /// Whether a newer announcement says more than this one. One of the same even rate does not.
    pub(super) fn is_replaced_by(&self, newer: &Budget) -> bool {
        let (before, after) = (&self.left, &newer.left);
        let is_same =
            before.size.is_finite() && after.size == before.size && after.rate == before.rate;
        newer.reply >= self.reply && !is_same
    }
}
