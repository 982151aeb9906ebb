//! Arguments that several commands take. Arguments of a single command are in its own file.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ColorChoice};

use crate::action::Stage;
use crate::results::Label;
use crate::scheduler::BudgetLimits;
use base::locale::Locale;
use base::units::Usd;
use models::Lane;

/// Headings of `--help`. Arguments of one command without a heading are under "Arguments" and "Options".
pub(crate) const SELECTION: &str = "Selection";
pub(crate) const MODELS: &str = "Models";
pub(crate) const LIMITS: &str = "Limits";
pub(crate) const OUTPUT: &str = "Output";
pub(crate) const PARTS: &str = "Parts";
pub(crate) const REMOTE: &str = "Shared cache";
const GLOBAL: &str = "Global options";

/// Options that every command accepts.
#[derive(Debug, Clone, Args)]
pub(crate) struct Common {
    /// Run in DIR instead of the current folder
    #[arg(short = 'C', long = "directory", value_name = "DIR", global = true, help_heading = GLOBAL)]
    pub(crate) directory: Option<PathBuf>,
    /// Read FILE instead of the nearest pipeline.toml
    #[arg(short = 'c', long = "config", value_name = "FILE", global = true, help_heading = GLOBAL)]
    pub(crate) config: Option<PathBuf>,
    /// Merge [profile.P] into the pipeline
    #[arg(long, value_name = "P", global = true, help_heading = GLOBAL)]
    pub(crate) profile: Option<String>,
    /// Print only JSON on standard output
    #[arg(long, global = true, help_heading = GLOBAL)]
    pub(crate) json: bool,
    /// Print only errors and the requested output: no progress, notes or warnings
    #[arg(short, long, global = true, conflicts_with = "verbose", help_heading = GLOBAL)]
    pub(crate) quiet: bool,
    /// Log actions to standard error; -vv logs each request
    #[arg(short, long, action = clap::ArgAction::Count, global = true, help_heading = GLOBAL)]
    pub(crate) verbose: u8,
    /// When to use colors; NO_COLOR also turns them off
    #[arg(long, value_name = "WHEN", default_value = "auto", global = true, help_heading = GLOBAL)]
    pub(crate) color: ColorChoice,
    /// Language of results and reports [default: that of the project]
    #[arg(long, value_name = "LANGUAGE", value_parser = one_of(&Locale::ALL, Locale::name), global = true, help_heading = GLOBAL)]
    pub(crate) locale: Option<Locale>,
    /// Do not draw progress bars
    #[arg(long, global = true, help_heading = GLOBAL)]
    pub(crate) no_progress: bool,
}

/// Reads one of these values by its name.
pub(crate) fn one_of<T: Copy + Send + Sync + 'static>(
    values: &'static [T],
    name: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T> {
    let names: Vec<&str> = values.iter().map(|value| name(*value)).collect();
    PossibleValuesParser::new(names).try_map(move |text| {
        let mut values = values.iter().copied();
        values.find(|value| name(*value) == text).ok_or("unknown")
    })
}

/// The stages of a run, which makes no probes.
const STAGES_OF_RUN: &[Stage] = &[Stage::Compress, Stage::Answer, Stage::Judge];

/// The value of `--stages` that asks for contexts alone.
pub(crate) const ONLY_COMPRESS: &str = "compress";

/// Which part of the matrix, with which models.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct SelectArgs {
    /// Only these fixtures
    #[arg(long, value_delimiter = ',', value_name = "NAMES", help_heading = SELECTION)]
    pub(crate) fixtures: Vec<String>,
    /// Only these methods
    #[arg(long, value_delimiter = ',', value_name = "NAMES", help_heading = SELECTION)]
    pub(crate) methods: Vec<String>,
    /// Stop after this stage; `compress` needs no banks, answerers or judges
    #[arg(long, value_name = "STAGE", value_parser = [ONLY_COMPRESS, "all"], help_heading = SELECTION)]
    pub(crate) stages: Option<String>,
    /// Only planted items: exact questions on tasks, rules and jobs put into the sessions; needs no banks and no judge
    #[arg(long, help_heading = SELECTION)]
    pub(crate) planted: bool,
    /// Only these probes
    #[arg(long, value_delimiter = ',', value_name = "IDS", help_heading = SELECTION)]
    pub(crate) probes: Vec<String>,
    /// Number of repetitions of each sampled action
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000), help_heading = SELECTION)]
    pub(crate) runs: Option<u32>,
    /// Model for all stages, as PROVIDER/MODEL
    #[arg(long, value_name = "MODEL", help_heading = MODELS)]
    pub(crate) model: Option<String>,
    /// Model that compresses
    #[arg(long, value_name = "MODEL", help_heading = MODELS, hide_short_help = true)]
    pub(crate) compressor_model: Option<String>,
    /// Model that answers
    #[arg(long, value_name = "MODEL", help_heading = MODELS, hide_short_help = true)]
    pub(crate) answer_model: Option<String>,
    /// Model that judges
    #[arg(long, value_name = "MODEL", help_heading = MODELS, hide_short_help = true)]
    pub(crate) judge_model: Option<String>,
    /// Topic that the compression should focus on
    #[arg(long, value_name = "TOPIC", help_heading = MODELS, hide_short_help = true)]
    pub(crate) focus_topic: Option<String>,
    /// How requests are sent: live, or (answers and grades) in batches, which cost half [default: live]
    #[arg(long, value_name = "LANE", value_parser = one_of(&Lane::ALL, Lane::name), help_heading = MODELS, hide_short_help = true)]
    pub(crate) lane: Option<Lane>,
    /// Name of the result set [default: a UTC timestamp]
    #[arg(long, value_name = "LABEL", value_parser = Label::new, help_heading = OUTPUT)]
    pub(crate) label: Option<Label>,
    /// Accept probe banks with facts that do not occur in the transcript
    #[arg(long, help_heading = SELECTION, hide_short_help = true)]
    pub(crate) allow_unproven: bool,
    /// Ignore cached outputs of this stage and replace them
    #[arg(long, value_name = "STAGE", value_parser = one_of(STAGES_OF_RUN, Stage::name), help_heading = SELECTION)]
    pub(crate) refresh: Vec<Stage>,
}

/// Limits of a command that sends requests.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct BudgetArgs {
    /// Stop before the cost exceeds this many US dollars
    #[arg(long, value_name = "USD", value_parser = amount, allow_negative_numbers = true, help_heading = LIMITS)]
    pub(crate) max_cost: Option<Usd>,
    /// Send at most this many requests
    #[arg(long, value_name = "N", help_heading = LIMITS)]
    pub(crate) max_requests: Option<u64>,
}

impl BudgetArgs {
    pub(crate) fn limits(&self) -> BudgetLimits {
        BudgetLimits {
            usd: self.max_cost,
            requests: self.max_requests,
        }
    }
}

/// Reads a name that is to be replaced wherever it stands.
pub(crate) fn handle(text: &str) -> Result<String, String> {
    match text.trim().chars().count() {
        0 | 1 => Err("it is too short to be distinguished from other words".to_owned()),
        _ => Ok(text.to_owned()),
    }
}

/// Reads an amount of money.
fn amount(text: &str) -> Result<Usd, String> {
    let usd = text.parse::<f64>().ok();
    let usd = usd.filter(|usd| usd.is_finite() && *usd >= 0.0);
    usd.map(Usd)
        .ok_or_else(|| "expected an amount of money: 0 or more".to_owned())
}
