//! `compeval judge`: whether a judge can be trusted.

mod agreement;
mod agreement_table;
mod labels;
mod selftest;

use std::path::PathBuf;

use clap::Subcommand;

use crate::cli::args::{BudgetArgs, Common};
use crate::cli::failure::{Exit, Failure};
use crate::cli::terminal::Console;

#[derive(Debug, Subcommand)]
pub(crate) enum JudgeCommand {
    /// Compare the judge with human grades
    Agreement {
        /// CSV: fixture, point, method, run, probe, criterion, score
        labels: PathBuf,
        /// The result set [default: the newest]
        #[arg(long)]
        label: Option<String>,
    },
    /// Grade pairs whose order is known
    Selftest {
        /// Use this model
        #[arg(long)]
        judge_model: Option<String>,
        #[command(flatten)]
        budget: BudgetArgs,
    },
}

pub(crate) fn run(common: &Common, command: &JudgeCommand, console: &Console) -> Result<Exit, Failure> {
    match command {
        JudgeCommand::Selftest { judge_model, budget } => {
            selftest::run(common, judge_model.as_deref(), budget, console)
        }
        JudgeCommand::Agreement { labels, label } => agreement_table::run(common, labels, label.as_deref(), console),
    }
}
