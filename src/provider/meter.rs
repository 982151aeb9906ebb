//! The meter: asked before every attempt, told after it what is to be paid.

use std::future::Future;

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

    /// Takes back what was set aside for an attempt that is not made after all.
    fn give_back(&self, held: Self::Held);

    /// Ends once no further attempt is wanted. One that is under way is not disturbed.
    fn called_off(&self) -> impl Future<Output = ()>;
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

    fn give_back(&self, (): ()) {}

    async fn called_off(&self) {
        std::future::pending().await
    }
}
