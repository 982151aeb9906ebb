//! The batch lane of a run: which requests are put into batches, when a batch is closed and submitted, and what becomes
//! of its lines.
//!
//! `lane` decides; the event loop calls it when no task is ready and none is in flight. `submit`
//! creates batches at vendors, and `collect` polls them and stores their results. Each step is in the journal of the cache before the next is taken, so a
//! process that is killed between any two of them leaves a batch that the next one continues with. Batches of earlier
//! processes and of this one are treated alike.

mod batch_creation_lock;
mod collect;
mod lane;
mod submit;
mod tracked;

pub(super) use lane::{BatchLane, Step};
pub(super) use tracked::{EndedLine, LineEnd};
