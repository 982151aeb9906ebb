//! The command line as typed: close to the flags, nothing resolved.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use super::budget_args::BudgetArgs;

/// After an agent's history was compressed, can the agent still do its work?
#[derive(Debug, Parser)]
#[command(name = "compeval", version, max_term_width = 100, propagate_version = true, disable_help_subcommand = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) command: Command,
}

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

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Write a project that runs
    Init(InitArgs),
    /// Validate everything without calling anyone
    Check,
    /// Say what would run, what is cached, and why each stale group is stale
    Plan(PlanArgs),
    /// Run the matrix, write results, print the summary
    Run(RunArgs),
    /// Compare two labels: a verdict for each dimension
    Compare(CompareArgs),
    /// Write report.md and report.html again
    Report(ReportArgs),
    /// Show one cell, whole
    Show(ShowArgs),
    /// Explain a score: the chain of actions behind it
    Why(ShowArgs),
    /// Look at, prune, verify and move the cache
    #[command(subcommand)]
    Cache(CacheCommand),
    /// Make fixtures from real session logs
    #[command(subcommand)]
    Fixture(FixtureCommand),
    /// Generate probe banks
    #[command(subcommand)]
    Probes(ProbesCommand),
    /// Examine a judge
    #[command(subcommand)]
    Judge(JudgeCommand),
    /// Print a completion script
    Completions {
        /// The shell to complete for
        shell: clap_complete::Shell,
    },
}

#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// Where to write it
    #[arg(default_value = ".")]
    pub(crate) dir: PathBuf,
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

#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    #[command(flatten)]
    pub(crate) select: SelectArgs,
    /// Exit with 7 if work is pending
    #[arg(long)]
    pub(crate) exit_code: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) select: SelectArgs,
    /// Compare with this label or results folder
    #[arg(long, value_name = "LABEL")]
    pub(crate) compare_to: Option<String>,
    /// Exit with 100 if a dimension regressed
    #[arg(long, requires = "compare_to")]
    pub(crate) fail_on_regression: bool,
    #[command(flatten)]
    pub(crate) budget: BudgetArgs,
    /// Send no request and start no program
    #[arg(long)]
    pub(crate) offline: bool,
    /// Go on with a judge that fails its self-test
    #[arg(long)]
    pub(crate) allow_weak_judge: bool,
    /// At most this many actions at once
    #[arg(short, long, value_name = "N")]
    pub(crate) jobs: Option<usize>,
    /// Only say what would run (= plan)
    #[arg(short = 'n', long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// LABEL, LABEL:METHOD or a results folder
    pub(crate) a: String,
    /// LABEL, LABEL:METHOD or a results folder
    pub(crate) b: String,
    /// Compare only the cells that match
    #[arg(long)]
    pub(crate) only_common: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// The result set
    #[arg(required_unless_present = "reference")]
    pub(crate) label: Option<String>,
    /// Print the published reference table beside the measured one
    #[arg(long)]
    pub(crate) reference: bool,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct ShowArgs {
    /// The fixture
    pub(crate) fixture: String,
    /// The method
    #[arg(long)]
    pub(crate) method: Option<String>,
    /// The run, from 1
    #[arg(long)]
    pub(crate) run: Option<u32>,
    /// The compression point, from 1
    #[arg(long)]
    pub(crate) point: Option<u32>,
    /// The probe
    #[arg(long)]
    pub(crate) probe: Option<String>,
    /// The result set [default: the newest]
    #[arg(long)]
    pub(crate) label: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CacheCommand {
    /// List entries
    Ls(CacheFilter),
    /// Show one entry: output and provenance
    Show {
        /// A unique prefix of its key
        key: String,
        /// Print the stored bytes alone
        #[arg(long)]
        raw: bool,
        /// List the inputs too
        #[arg(long)]
        inputs: bool,
    },
    /// Compare two entries input by input
    Diff {
        /// A unique key prefix
        a: String,
        /// A unique key prefix
        b: String,
    },
    /// Sum up by stage, model and age
    Stats,
    /// Remove entries and give their space back
    Prune(PruneArgs),
    /// Re-hash everything
    Verify,
    /// Write entries to one file
    Export {
        /// The file to write
        file: PathBuf,
        /// Only what this result set stands on
        #[arg(long)]
        label: Option<String>,
    },
    /// Add the entries of an exported file
    Import {
        /// The file to read
        file: PathBuf,
    },
}

/// Which entries.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct CacheFilter {
    /// Of this stage
    #[arg(long)]
    pub(crate) stage: Option<StageArg>,
    /// Made for this method
    #[arg(long)]
    pub(crate) method: Option<String>,
    /// Answered by this model
    #[arg(long)]
    pub(crate) model: Option<String>,
    /// Made for this fixture
    #[arg(long)]
    pub(crate) fixture: Option<String>,
    /// Older than this (30d, 12h)
    #[arg(long, value_name = "AGE")]
    pub(crate) older_than: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct PruneArgs {
    /// What the current pipeline does not reach and no label in results/ names
    #[arg(long)]
    pub(crate) unreachable: bool,
    /// What is older than this (30d, 12h)
    #[arg(long, value_name = "AGE")]
    pub(crate) older_than: Option<String>,
    /// The least recently used, until the cache takes no more than this on disk (2GB, 500MB)
    #[arg(long, value_name = "SIZE")]
    pub(crate) max_size: Option<String>,
    /// What is of this stage
    #[arg(long)]
    pub(crate) stage: Option<StageArg>,
    /// What this model answered
    #[arg(long)]
    pub(crate) model: Option<String>,
    /// Only say what would go
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum FixtureCommand {
    /// Read session logs, scrub them, write fixtures
    Import(ImportArgs),
    /// Scrub fixtures again
    Scrub {
        /// Fixture files
        #[arg(required = true)]
        paths: Vec<PathBuf>,
        /// Personal handles to replace
        #[arg(long = "handle", value_name = "NAME")]
        handles: Vec<String>,
    },
    /// A table over all fixtures
    Stats,
}

#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// Log files or folders
    #[arg(required = true)]
    pub(crate) paths: Vec<PathBuf>,
    /// Read the logs as this format instead of detecting it
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<String>,
    /// A compression point every N tokens
    #[arg(long, value_name = "N")]
    pub(crate) every_tokens: Option<u64>,
    /// A compression point where the log itself was compacted
    #[arg(long)]
    pub(crate) at_compactions: bool,
    /// One compression point at the end
    #[arg(long = "final")]
    pub(crate) at_end: bool,
    /// Personal handles to replace
    #[arg(long = "handle", value_name = "NAME")]
    pub(crate) handles: Vec<String>,
    /// The fixture's name [default: from the file's name]
    #[arg(long)]
    pub(crate) name: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ProbesCommand {
    /// Generate probe banks from the truncated spans
    Generate {
        /// Only these fixtures
        fixtures: Vec<String>,
        /// Use this model
        #[arg(long)]
        model: Option<String>,
        /// Replace banks that exist; a model that was asked the same before is not asked again
        #[arg(long)]
        force: bool,
        #[command(flatten)]
        budget: BudgetArgs,
    },
}

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
