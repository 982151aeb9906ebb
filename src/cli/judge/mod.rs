//! `compeval judge`: whether a judge can be trusted.

mod agreement;
mod agreement_table;
mod labels;
mod selftest;

use super::args::{Common, JudgeCommand};
use super::console::Console;
use super::failure::{Exit, Failure};

pub(crate) fn run(common: &Common, command: &JudgeCommand, console: &Console) -> Result<Exit, Failure> {
    match command {
        JudgeCommand::Selftest { judge_model, budget } => {
            selftest::run(common, judge_model.as_deref(), budget, console)
        }
        JudgeCommand::Agreement { labels, label } => agreement_table::run(common, labels, label.as_deref(), console),
    }
}
