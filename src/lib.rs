//! compeval: after an agent's history was compressed, can the agent still do its work?
//!
//! The library behind the program of the same name. Other programs can run what it runs ([`evaluation`]), and read what
//! it writes and reads: fixtures ([`sessions::transcript`]), result folders ([`results`]) and their statistics ([`stats`]).
//! [`cli::main`] is the program itself. The other modules are public for the tests, benches and examples alone and may
//! change at any time.
//!
//! This runs the whole matrix of the sample project, offline, and reads its scores:
//!
//! ```
//! use compeval::evaluation::{Event, Request, evaluate};
//! use compeval::results::{Label, Outcome};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let folder = tempfile::tempdir()?;
//! for (path, text) in compeval::pipeline::starter_files() {
//!     let file = folder.path().join(path);
//!     std::fs::create_dir_all(file.parent().unwrap_or(folder.path()))?;
//!     std::fs::write(file, text)?;
//! }
//!
//! let request = Request { label: Some(Label::new("first")?), ..Request::new(folder.path())? };
//! let mut steps = 0;
//! let outcome = evaluate(request, &mut |event| steps += usize::from(matches!(event, Event::Step { .. })))?;
//!
//! assert_eq!(outcome.ending, Outcome::Complete);
//! assert!(steps > 0 && outcome.folder.path().join("cells.jsonl").exists());
//! let summary = outcome.summary.ok_or("a part of a matrix has no summary")?;
//! for (method, scores) in &summary.methods {
//!     println!("{method}: {} cells judged", scores.cells.judged);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! The path of data:
//!
//! 1. [`pipeline::open`] reads `pipeline.toml`, fixtures and probe banks into a checked [`pipeline::Pipeline`], or into
//!    all problems in them. Its matrix has every coordinate: fixture, method, run, point, probe, answerer, judge.
//! 2. [`plan::Frontier`] walks the matrix and returns each [`plan::Task`] whose inputs are known. [`plan::Action`]
//!    has an [`action::Work`] made of it, with the functions of [`compress`], [`answer`] and [`judge`]. The hash of its
//!    [`action::InputsDocument`] is its [`action::ActionKey`].
//! 3. The key is looked up in the [`store::cache`]. A stale action is executed by [`scheduler::Executor`]: it asks a model through
//!    [`models::Client`], starts the user's program, or applies a rule ([`stand_in`], [`compress::compute()`]). The raw
//!    output is on disk before it is read. The digest of the output as read makes more tasks ready.
//! 4. For every judged cell [`measure`] finds where facts were lost, and the scheduler emits a [`results::Row`].
//!    [`results::summarize`] and [`results::compare()`] compute medians, intervals and verdicts with [`stats`];
//!    [`report`] makes tables and pages of them.
//!
//! `run`, `plan`, an offline run, `why` and `cache prune --unreachable` drive the same walk, so an estimate cannot
//! disagree with a run. `docs/ARCHITECTURE.md` shows which module may import which.

pub mod cli;
#[allow(missing_docs)]
pub mod evaluation;
pub mod results;

#[doc(hidden)]
#[allow(missing_docs)]
pub mod action;
#[doc(hidden)]
#[allow(missing_docs)]
pub mod answer;
#[doc(hidden)]
#[allow(missing_docs)]
pub mod compress;
#[doc(hidden)]
#[allow(missing_docs)]
pub mod entries;
#[doc(hidden)]
#[allow(missing_docs)]
pub mod judge;
#[doc(hidden)]
#[allow(missing_docs)]
pub mod measure;
#[doc(hidden)]
#[allow(missing_docs)]
pub mod parts;
#[doc(hidden)]
#[allow(missing_docs)]
pub mod pipeline;
#[doc(hidden)]
#[allow(missing_docs)]
pub mod plan;
pub mod planted;
#[doc(hidden)]
#[allow(missing_docs)]
pub mod probe;
#[doc(hidden)]
#[allow(missing_docs)]
pub mod report;
#[doc(hidden)]
#[allow(missing_docs)]
pub mod scheduler;
#[doc(hidden)]
#[allow(missing_docs)]
pub mod stand_in;
