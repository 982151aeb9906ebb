//! Arguments that several commands take. Those of one command stand in its own file.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use crate::action::Stage;
use crate::cli::failure::Failure;
use crate::provider::{ModelUse, Prices};
use crate::scheduler::BudgetLimits;
use crate::units::{Tokens, Usd};

/// Flags that every command takes.
#[derive(Debug, Clone, Args)]
pub(crate) struct Common {
    /// Work in DIR instead of the current folder
    #[arg(short = 'C', long = "directory", value_name = "DIR", global = true)]
    pub(crate) directory: Option<PathBuf>,
    /// Use this pipeline file instead of the nearest pipeline.toml
    #[arg(short = 'c', long = "config", value_name = "FILE", global = true)]
    pub(crate) config: Option<PathBuf>,
    /// Lay [profile.P] over the pipeline
    #[arg(long, value_name = "P", global = true)]
    pub(crate) profile: Option<String>,
    /// Print JSON alone on standard output
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Say less
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Log what happens; twice for more
    #[arg(short, long, action = clap::ArgAction::Count, global = true)]
    pub(crate) verbose: u8,
    /// When to use colours (NO_COLOR is heeded)
    #[arg(long, value_name = "WHEN", default_value = "auto", global = true)]
    pub(crate) color: ColorChoice,
    /// Draw no progress bars
    #[arg(long, global = true)]
    pub(crate) no_progress: bool,
}

/// When to use colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorChoice {
    /// On a terminal.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Which part of the matrix, with which models.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct SelectArgs {
    /// Only these fixtures
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub(crate) fixtures: Vec<String>,
    /// Only these methods
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub(crate) methods: Vec<String>,
    /// Only these probes
    #[arg(long, value_delimiter = ',', value_name = "IDS")]
    pub(crate) probes: Vec<String>,
    /// Repetitions of everything that is sampled
    #[arg(long, value_name = "N")]
    pub(crate) runs: Option<u32>,
    /// Use this model in all stages (provider/model)
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Use this model to compress
    #[arg(long, value_name = "MODEL")]
    pub(crate) compressor_model: Option<String>,
    /// Use this model to answer
    #[arg(long, value_name = "MODEL")]
    pub(crate) answer_model: Option<String>,
    /// Use this model to judge
    #[arg(long, value_name = "MODEL")]
    pub(crate) judge_model: Option<String>,
    /// A topic the compression shall focus on
    #[arg(long, value_name = "TOPIC")]
    pub(crate) focus_topic: Option<String>,
    /// Name of the result set [default: a UTC timestamp]
    #[arg(long, value_name = "LABEL")]
    pub(crate) label: Option<String>,
    /// Let a bank whose facts occur nowhere literally go through
    #[arg(long)]
    pub(crate) allow_unproven: bool,
    /// Ignore what is cached of a stage, then replace it
    #[arg(long, value_name = "STAGE")]
    pub(crate) refresh: Vec<StageArg>,
}

/// A stage by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum StageArg {
    /// Probe generation.
    Probes,
    /// Compression.
    Compress,
    /// Answers.
    Answer,
    /// Grades.
    Judge,
}

impl StageArg {
    /// The stage it names.
    pub(crate) fn stage(self) -> Stage {
        match self {
            StageArg::Probes => Stage::Probes,
            StageArg::Compress => Stage::Compress,
            StageArg::Answer => Stage::Answer,
            StageArg::Judge => Stage::Judge,
        }
    }
}

/// Limits of a command that sends requests.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct BudgetArgs {
    /// Spend at most this much, in US dollars
    #[arg(long, value_name = "USD")]
    pub(crate) max_cost: Option<f64>,
    /// Send at most this many requests
    #[arg(long, value_name = "N")]
    pub(crate) max_requests: Option<u64>,
}

impl BudgetArgs {
    /// What may be spent on `models`. Money can be limited only where every price is known; `file` is where one can
    /// be declared.
    pub(crate) fn allowance<'m>(
        &self,
        models: impl Iterator<Item = &'m ModelUse>,
        prices: &Prices,
        file: &Path,
    ) -> Result<BudgetLimits, Failure> {
        let requests = self.max_requests;
        let Some(limit) = self.max_cost else { return Ok(BudgetLimits { usd: None, requests }) };
        if !limit.is_finite() || limit < 0.0 {
            return Err(Failure::input(format!("--max-cost {limit} is no amount of money: expected 0 or more")));
        }
        let is_unknown = |model: &&ModelUse| !model.is_lexical() && prices.price(&model.reference, Tokens(0)).is_none();
        let mut models = models;
        if let Some(model) = models.find(is_unknown) {
            let model = &model.reference;
            let message = format!("--max-cost cannot be kept: the price of `{model}` is not known");
            let hint = format!(
                "declare it in {}: [prices.\"{model}\"] with input and output in USD per million tokens",
                file.display()
            );
            return Err(Failure::input(message).hinted(hint));
        }
        Ok(BudgetLimits { usd: Some(Usd(limit)), requests })
    }
}
