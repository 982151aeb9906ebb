//! What the user sees while and after a command runs: lines, tables, progress, a pager; and the keys that end it.

mod board;
mod causes;
mod console;
mod grid;
mod hearing;
mod interrupts;
mod pager;
mod progress;
mod traffic;

pub(super) use board::Pulse;
pub(super) use causes::tell_causes;
pub(super) use console::{Console, Meaning};
pub(super) use grid::{Column, count, grid, number};
pub(super) use hearing::Hearing;
pub(super) use interrupts::Interrupts;
pub(super) use pager::{Pages, page};
pub(super) use progress::{Progress, selftest_cases};
