//! compeval: after an agent's history was compressed, can the agent still do its work?
//!
//! The library behind the program of the same name. Its rooms, from the ground up, and the path that data takes through
//! them:
//!
//! 1. [`pipeline::open`] reads `pipeline.toml`, fixtures and probe banks into a checked [`pipeline::Pipeline`], or into
//!    all that is wrong with them. [`pipeline::Matrix`] counts out every coordinate: fixture, method, run, point, probe,
//!    answerer, judge.
//! 2. [`plan::Frontier`] walks the matrix and says which [`plan::Task`] is ready. [`plan::Preparer`] makes an
//!    [`action::Work`] of it by the pure functions of [`compress`], [`answer`] and [`judge`]; its named
//!    [`action::Inputs`] hashed are its [`action::ActionKey`].
//! 3. [`plan::look_up`] looks the key up in the [`cache`]. What is there is used. What is stale, [`scheduler::Performer`]
//!    does: it asks a model through [`provider::Client`], starts the user's program, or applies a rule ([`lexical`],
//!    [`compress::compute()`]). The raw output is on disk before it is read; reading it gives a digest; the frontier
//!    settles the task, and more become ready.
//! 4. Of every judged cell, [`measure`] says where facts were lost, and the loop tells it as a [`results::Row`].
//!    [`results::summarize`] and [`results::compare()`] go from rows to medians, intervals and verdicts by [`stats`], and
//!    [`report`] words them.
//! 5. [`cli`] is the program: the only room that prints.
//!
//! `run`, `plan`, an offline run, `why` and `cache prune --unreachable` drive the same walk, so a forecast cannot
//! disagree with a run. The rooms' own pages say what each is for, what always holds in it, and what is deliberately
//! absent; `ARCHITECTURE.md` shows the whole.

// On the ground, for everyone.
pub mod files;
mod threads;
pub mod units;
pub mod locale;
pub mod fault;
pub mod transcript;
pub mod stats;

pub mod import;
pub mod provider;
pub mod action;
pub mod cache;
pub mod probe;
pub mod compress;
pub mod answer;
pub mod judge;
pub mod measure;
pub mod lexical;
pub mod pipeline;
pub mod plan;
pub mod results;
pub mod report;
pub mod scheduler;
pub mod cli;
