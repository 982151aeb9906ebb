//! The batch lane of a run: which requests are put into batches, when a batch is closed and submitted, and what becomes
//! of its lines.
//!
//! `lane` decides, called by the event loop when nothing is ready and nothing is under way, and `files` keeps what goes
//! through files; `submit` creates batches at
//! vendors and in files, `collect` polls them and stores their results, `import` reads those of files. Each step is in
//! the journal of the cache before the next is taken, so a process that is killed between any two of them leaves a batch
//! that the next one continues with. Batches of earlier processes and of this one are treated alike.

mod batch_creation_lock;
mod collect;
mod files;
mod import;
mod lane;
mod submit;
mod tracked;

pub use import::{ImportedBatch, ImportedResults, import_results};
pub(super) use lane::{BatchLane, Step};
pub(super) use tracked::{EndedLine, LineEnd, Waiting};
