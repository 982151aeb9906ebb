//! The order of requests: the newest one is sent first. So cells that were started are finished before others are
//! started, and the first results of a run do not wait for all of its pulls.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// A number of requests under way.
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
        RequestSlots(Mutex::new(SlotQueue { free, waiting: Vec::new() }))
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
        if let Some(turn) = waits {
            // The sender is dropped after it was used alone.
            let _ = turn.await;
        }
        RequestSlot(self)
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
        let turns = RequestSlots::new(1);
        let first = turns.take().now_or_never().expect("a turn");
        let (mut second, mut third, mut fourth) =
            (Box::pin(turns.take()), Box::pin(turns.take()), Box::pin(turns.take()));
        for waiting in [&mut second, &mut third, &mut fourth] {
            assert!(waiting.now_or_never().is_none());
        }
        drop(fourth);
        drop(first);
        assert!((&mut second).now_or_never().is_none());
        let turn = (&mut third).now_or_never().expect("a turn");
        drop(turn);
        drop((&mut second).now_or_never().expect("a turn"));
        drop(turns.take().now_or_never().expect("all are free"));
    }
}
