//! Runs the program as users do: the binary in a project of its own, against a provider on loopback.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]
#![allow(unreachable_pub, reason = "helpers of tests")]
#![allow(
    clippy::disallowed_methods,
    reason = "scratch files need no atomic write"
)]

#[path = "../support/brain.rs"]
mod brain;
#[cfg(feature = "object-stores")]
#[path = "../support/bucket.rs"]
mod bucket;
#[path = "../support/loopback.rs"]
mod loopback;

mod batch_server;
mod project;
mod server;

mod bad_input;
mod batch_kills;
mod batches;
mod blanks;
mod blinding;
mod budgets;
mod cache_cli;
mod chinese;
#[cfg(unix)]
mod commands;
mod comparison_page;
mod data_page;
#[cfg(unix)]
mod disk;
mod drift;
mod edits;
mod endings;
mod failures;
#[cfg(target_os = "linux")]
mod faults;
mod first_run;
mod flags;
mod formats;
mod gate;
mod golden;
mod guard;
mod imports;
mod judges;
mod junit;
mod kills;
mod labels;
mod lanes;
#[cfg(unix)]
mod links;
mod little_input;
mod matrix;
#[cfg(feature = "object-stores")]
mod object_stores;
mod observe;
mod open;
#[cfg(unix)]
mod open_book;
#[cfg(unix)]
mod open_book_steps;
mod overclaim;
mod parts;
mod plan;
mod planted;
mod programs;
mod prompt_caches;
mod prompt_placement;
mod readme;
mod report_html;
mod resources;
#[cfg(unix)]
mod row_cache;
mod secrets;
mod shapes;
#[cfg(unix)]
mod shared_cache;
#[cfg(unix)]
mod signals;
mod suggestions;
mod superseded;
mod task_tokens;
#[cfg(unix)]
mod terminal;
mod tools_cli;
mod truncated;
mod vendors;
#[cfg(unix)]
mod why;
