//! The budget of a call's attempts: reserved before each, settled after it.

use std::future::Future;

use super::spec::Lane;
use base::units::Usage;

/// What an attempt cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptCost<'u> {
    /// Nothing: it was not sent, or was rejected.
    Free,
    /// The usage in the reply, at the price of the lane; a count that it leaves out is unknown.
    Reported(&'u Usage, Lane),
    /// Unknown: the model may have worked on it, and the reply never arrived, as after a time-out.
    Unknown,
}

/// Admits attempts or refuses them. A run's budget implements it.
pub trait AttemptBudget {
    /// The amount set aside for one attempt.
    type Reservation;

    /// Sets aside what one more attempt may cost at most; `None` if the budget does not allow it.
    fn reserve(&self) -> Option<Self::Reservation>;

    /// Replaces a reservation by the actual cost.
    fn settle(&self, reservation: Self::Reservation, cost: AttemptCost<'_>);

    /// Returns the reservation of an attempt that is not made after all.
    fn release(&self, reservation: Self::Reservation);

    /// How many replies to the same request could not be used before this call: they count as replies to it.
    fn unusable_before(&self) -> u32 {
        0
    }

    /// Completes once no further attempt is wanted. An attempt in flight is not interrupted.
    fn cancelled(&self) -> impl Future<Output = ()>;
}

/// A budget that admits every attempt and cancels none.
#[derive(Clone, Copy, Debug)]
pub struct Unlimited;

impl AttemptBudget for Unlimited {
    type Reservation = ();

    fn reserve(&self) -> Option<()> {
        Some(())
    }

    fn settle(&self, (): (), _: AttemptCost<'_>) {}

    fn release(&self, (): ()) {}

    async fn cancelled(&self) {
        std::future::pending().await
    }
}
