//! `compeval judge`: what a judge grades, and whether it can be trusted.

mod agreement;
mod grade;
mod selftest;

use std::path::PathBuf;

use clap::Subcommand;

use grade::GradeArgs;

use crate::cli::args::{BudgetArgs, Common};
use crate::cli::failure::{Exit, Failure};
use crate::cli::remote::RemoteArgs;
use crate::cli::terminal::Console;

#[derive(Debug, Subcommand)]
pub(crate) enum JudgeCommand {
    /// Compare the judge with human grades
    #[command(
        after_help = "Examples:\n  compeval judge agreement --blind-sheet sheet.csv    then fill in the column `score`\n  compeval judge agreement sheet.csv"
    )]
    Agreement {
        /// A sheet of --blind-sheet with scores, or a CSV file: fixture, point, method, run, probe, criterion, score
        #[arg(value_name = "FILE", required_unless_present = "blind_sheet")]
        labels: Option<PathBuf>,
        /// The result set [default: the newest of a run that has ended]
        #[arg(long)]
        label: Option<String>,
        /// Write answers, without names, for people to grade
        #[arg(long, value_name = "FILE", conflicts_with = "labels")]
        blind_sheet: Option<PathBuf>,
    },
    /// Grade one answer from a JSON object, and print the grades as JSON
    #[command(
        after_help = "Examples:\n  compeval judge grade request.json\n  jq -c .[0] published-examples.json | compeval judge grade -"
    )]
    Grade(GradeArgs),
    /// Let the judge grade answers of known quality
    #[command(
        after_help = "Examples:\n  compeval judge selftest --judge-model openai/gpt-5.2 --max-cost 1\n  compeval judge selftest --cases published-examples.json\n  compeval judge selftest --remote fs:///srv/nightly    once, for all parts of a run"
    )]
    Selftest {
        /// Use this model
        #[arg(long, value_name = "MODEL")]
        judge_model: Option<String>,
        /// Grade the cases of FILE instead: a JSON list of judge requests with labels
        #[arg(long, value_name = "FILE", conflicts_with = "remote")]
        cases: Option<PathBuf>,
        #[command(flatten)]
        budget: BudgetArgs,
        /// With --remote, the replies are pushed there: the parts of a run need them
        #[command(flatten)]
        remote: RemoteArgs,
    },
}

pub(crate) fn run(
    common: &Common,
    command: &JudgeCommand,
    console: &Console,
) -> Result<Exit, Failure> {
    match command {
        JudgeCommand::Grade(args) => grade::run(common, args, console),
        JudgeCommand::Selftest {
            judge_model,
            cases,
            budget,
            remote,
        } => selftest::run(
            common,
            judge_model.as_deref(),
            budget,
            cases.as_deref(),
            remote,
            console,
        ),
        JudgeCommand::Agreement {
            labels,
            label,
            blind_sheet,
        } => match (labels, blind_sheet) {
            (_, Some(sheet)) => agreement::write_sheet(common, sheet, label.as_deref(), console),
            (Some(labels), None) => agreement::run(common, labels, label.as_deref(), console),
            (None, None) => Err(Failure::input("no file of human grades is named")),
        },
    }
}
