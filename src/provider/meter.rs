//! The meter: asked before every attempt, told after it what is to be paid.

use crate::units::Usage;

/// What an attempt is to be paid with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bill<'u> {
    /// Nothing: it never arrived, or was turned away.
    Free,
    /// What the reply says; a number it leaves out is unknown.
    Reported(&'u Usage),
    /// Nobody knows: it arrived and was never answered, as after a time-out.
    Unknown,
}

/// Lets attempts through, or not. A run's budget is one.
pub trait Meter {
    /// What is set aside for an attempt under way.
    type Held;

    /// Sets aside what one more attempt may cost at worst; `None` if that is not allowed.
    fn admit(&self) -> Option<Self::Held>;

    /// Replaces what was set aside by what is to be paid.
    fn settle(&self, held: Self::Held, bill: Bill<'_>);
}

/// Lets everything through.
#[derive(Clone, Copy, Debug)]
pub struct Unmetered;

impl Meter for Unmetered {
    type Held = ();

    fn admit(&self) -> Option<()> {
        Some(())
    }

    fn settle(&self, (): (), _: Bill<'_>) {}
}
