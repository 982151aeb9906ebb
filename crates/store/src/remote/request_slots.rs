//! The order of requests: the newest one is sent first. So cells that were started are finished before others are
//! started, and the first results of a run do not wait for all of its pulls.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// A limited number of requests under way.
#[derive(Debug)]
pub(super) struct RequestSlots(Mutex<SlotQueue>);

#[derive(Debug)]
struct SlotQueue {
    free: usize,
    /// The newest last.
    waiting: Vec<oneshot::Sender<()>>,
}

/// The right to send a request, until it is dropped.
#[derive(Debug)]
pub(super) struct RequestSlot<'t>(&'t RequestSlots);

impl RequestSlots {
    pub(super) fn new(free: usize) -> RequestSlots {
        RequestSlots(Mutex::new(SlotQueue {
            free,
            waiting: Vec::new(),
        }))
    }

    fn lock(&self) -> MutexGuard<'_, SlotQueue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) async fn take(&self) -> RequestSlot<'_> {
        let waits = {
            let mut state = self.lock();
            if state.free > 0 {
                state.free -= 1;
                None
            } else {
                let (sender, receiver) = oneshot::channel();
                state.waiting.push(sender);
                Some(receiver)
            }
        };
        if let Some(receiver) = waits {
            let mut waiting = WaitingRequest {
                slots: self,
                receiver,
            };
            // The sender is dropped only after it was used.
            let _ = (&mut waiting.receiver).await;
        }
        RequestSlot(self)
    }
}

/// A request that waits for a slot. If it is given up just after it was handed one, the slot goes to the next.
struct WaitingRequest<'t> {
    slots: &'t RequestSlots,
    receiver: oneshot::Receiver<()>,
}

impl Drop for WaitingRequest<'_> {
    fn drop(&mut self) {
        // From here on it is handed none.
        self.receiver.close();
        if self.receiver.try_recv().is_ok() {
            drop(RequestSlot(self.slots));
        }
    }
}

impl Drop for RequestSlot<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        while let Some(next) = state.waiting.pop() {
            if next.send(()).is_ok() {
                return;
            }
        }
        state.free += 1;
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[test]
    fn the_newest_is_next_and_one_that_gave_up_is_passed_over() {
        let slots = RequestSlots::new(1);
        let first = slots.take().now_or_never().expect("a slot");
        let (mut second, mut third, mut fourth) = (
            Box::pin(slots.take()),
            Box::pin(slots.take()),
            Box::pin(slots.take()),
        );
        for waiting in [&mut second, &mut third, &mut fourth] {
            assert!(waiting.now_or_never().is_none());
        }
        drop(fourth);
        drop(first);
        assert!((&mut second).now_or_never().is_none());
        let slot = (&mut third).now_or_never().expect("a slot");
        drop(slot);
        drop((&mut second).now_or_never().expect("a slot"));
        drop(slots.take().now_or_never().expect("all are free"));
    }

    #[test]
    fn a_request_that_is_given_up_after_it_was_handed_a_slot_passes_it_on() {
        let slots = RequestSlots::new(1);
        let first = slots.take().now_or_never().expect("a slot");
        let (mut second, mut third) = (Box::pin(slots.take()), Box::pin(slots.take()));
        for waiting in [&mut second, &mut third] {
            assert!(waiting.now_or_never().is_none());
        }
        drop(first);
        drop(third);
        drop((&mut second).now_or_never().expect("a slot"));
        drop(slots.take().now_or_never().expect("all are free"));
    }
}
