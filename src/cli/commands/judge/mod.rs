//! `compeval judge`: what a judge grades, and whether it can be trusted. `judge grade` takes one request of the judge's contract
//! and prints its grades.

mod agreement;
mod selftest;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, Subcommand};
use serde_json::json;

use crate::cli::args::{BudgetArgs, Common};
use crate::cli::failure::{Exit, Failure, chain, stopped};
use crate::cli::project::{RemoteArgs, given_name, read_given};
use crate::cli::screen::print_failures;
use crate::cli::terminal::Console;
use crate::judge::{
    self, Case, CaseId, CriterionScore, Dimension, GradingRequest, Score, SelfTest,
};
use crate::pipeline::{Pipeline, Problems, SourceFile, list, suggest};
use crate::plan::selftest_grades;
use base::files::text_of;
use selftest::{ask_judges, judges_of};

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
        after_help = "Examples:\n  compeval judge selftest --judge-model openai/gpt-5.2 --max-cost 1\n  compeval judge selftest --remote fs:///srv/nightly    once, for all parts of a run"
    )]
    Selftest {
        /// Use this model
        #[arg(long, value_name = "MODEL")]
        judge_model: Option<String>,
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
        JudgeCommand::Grade(args) => run_grade(common, args, console),
        JudgeCommand::Selftest {
            judge_model,
            budget,
            remote,
        } => selftest::run(common, judge_model.as_deref(), budget, remote, console),
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

#[derive(Debug, Args)]
pub(crate) struct GradeArgs {
    /// A JSON object: probe_question, model_response, compacted_context, ground_truth, rubric_criteria; - reads it from
    /// standard input
    pub(crate) file: PathBuf,
    /// The judge, if the project has several
    #[arg(long, value_name = "NAME")]
    pub(crate) judge: Option<String>,
    /// Use this model
    #[arg(long, value_name = "MODEL")]
    pub(crate) judge_model: Option<String>,
    #[command(flatten)]
    pub(crate) budget: BudgetArgs,
}

fn run_grade(common: &Common, args: &GradeArgs, console: &Console) -> Result<Exit, Failure> {
    let request = read_request(common, &args.file)?;
    let mut pipeline = judges_of(common, args.judge_model.as_deref(), console)?;
    keep_judge(&mut pipeline, args.judge.as_deref())?;
    require_criteria(&pipeline, &request)?;
    if request.compacted_context.is_some() && !pipeline.settings.judge_context {
        console.warn(
            "not shown:",
            "`judge_context = false` keeps `compacted_context` from the judge",
        );
    }
    let case = Case::from_request(CaseId("request".to_owned()), request);
    pipeline.selftest = Arc::new(SelfTest::new(vec![case]));
    grade(&pipeline, &args.budget, console)
}

fn read_request(common: &Common, file: &Path) -> Result<GradingRequest, Failure> {
    let name = given_name(file);
    let text = text_of(Path::new(&name), read_given(common, file));
    let text = text.map_err(|error| Failure::input(chain(&error)))?;
    let source = SourceFile::new(name, text);
    GradingRequest::read(&source.text)
        .map_err(|fault| Problems::from_faults([fault], &source).into())
}

/// Keeps only the judge that grades: the one that is named, or the only one.
fn keep_judge(pipeline: &mut Pipeline, named: Option<&str>) -> Result<(), Failure> {
    let names: Vec<String> = pipeline
        .judges
        .iter()
        .map(|judge| judge.name.0.to_string())
        .collect();
    match named {
        Some(named) if !names.iter().any(|name| name == named) => {
            let hint = suggest(named, names.iter().map(String::as_str));
            return Err(Failure::input(format!("the project has no judge `{named}`")).hinted(hint));
        }
        Some(named) => pipeline.judges.retain(|judge| *judge.name.0 == *named),
        None if names.len() > 1 => {
            let names = list(names.iter().map(String::as_str));
            return Err(Failure::input("the project has several judges")
                .hinted(format!("--judge names one of {names}")));
        }
        None => {}
    }
    Ok(())
}

fn require_criteria(pipeline: &Pipeline, request: &GradingRequest) -> Result<(), Failure> {
    let Err(unknown) = pipeline.rubric.named(&request.rubric_criteria) else {
        return Ok(());
    };
    let known = pipeline
        .rubric
        .criteria()
        .iter()
        .map(|criterion| &*criterion.id.0);
    let hint = suggest(&unknown.0, known);
    Err(Failure::input(format!("the rubric has no criterion `{unknown}`")).hinted(hint))
}

fn grade(pipeline: &Pipeline, budget: &BudgetArgs, console: &Console) -> Result<Exit, Failure> {
    let asked = ask_judges(pipeline, budget, &RemoteArgs::default(), console)?;
    if let Some(grades) = selftest_grades(pipeline, &asked.store).first() {
        print(pipeline, grades, console);
        return Ok(Exit::Done);
    }
    print_failures(&asked.totals.failures, usize::MAX, console);
    Ok(stopped(&asked.outcome, console).unwrap_or(Exit::Incomplete))
}

/// The reply in the form of the contract, with the scores that follow from it.
fn print(pipeline: &Pipeline, grades: &[CriterionScore], console: &Console) {
    let scores = judge::grade(&pipeline.rubric, grades);
    let dimensions: BTreeMap<Dimension, f64> = scores
        .iter()
        .map(|(dimension, score)| (dimension, score.value()))
        .collect();
    let document = json!({
        "criterionResults": grades,
        "aggregateScore": scores.overall().map(Score::value),
        "dimensionScores": dimensions,
    });
    console.raw(format!("{document:#}\n").as_bytes());
}
