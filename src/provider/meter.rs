//! The meter: asked before every attempt, told after it what was used.

use crate::units::Usage;

/// Lets attempts through, or not. A run's budget is one.
pub trait Meter {
    /// What is set aside for an attempt under way.
    type Held;

    /// Sets aside what one more attempt may cost at worst; `None` if that is not allowed.
    fn admit(&self) -> Option<Self::Held>;

    /// Replaces what was set aside by what was used: `None` where nobody knows, as after a time-out.
    fn settle(&self, held: Self::Held, used: Option<&Usage>);
}

/// Lets everything through.
#[derive(Clone, Copy, Debug)]
pub struct Unmetered;

impl Meter for Unmetered {
    type Held = ();

    fn admit(&self) -> Option<()> {
        Some(())
    }

    fn settle(&self, (): (), _: Option<&Usage>) {}
}
