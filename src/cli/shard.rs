//! The shard that this process runs: its number from flags and environment, and its part of the matrix in words.

use clap::Args;
use serde::Serialize;

use crate::cli::args::SHARDS;
use crate::cli::failure::Failure;
use crate::cli::terminal::{Console, TextStyle};
use crate::evaluation::{NumberedPart, PartOfRun, variable};
use crate::shard::{Engine, EngineError, Shard, ShardArgument};

/// Which part of the matrix this process runs.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ShardArgs {
    /// Run part I of N; `auto` and `auto/N` take I from the job array that started this process
    #[arg(long, value_name = "I/N", requires = "label", conflicts_with = "refresh", help_heading = SHARDS)]
    pub(crate) shard: Option<ShardArgument>,
    /// Do not divide the providers' rate limits by N
    #[arg(long, requires = "shard", help_heading = SHARDS)]
    pub(crate) whole_limits: bool,
}

impl ShardArgs {
    /// The shard that this process runs, if it is to run one.
    pub(crate) fn number(&self) -> Result<Option<NumberedPart>, Failure> {
        let of = |shard, engine| NumberedPart { shard, engine, whole_limits: self.whole_limits };
        Ok(match self.shard {
            None => None,
            Some(ShardArgument::Number(shard)) => Some(of(shard, None)),
            Some(ShardArgument::Auto(count)) => {
                let found = Engine::shard(variable, count)
                    .map_err(|error: EngineError| Failure::input(format!("--shard auto: {error}")))?;
                Some(of(found.0, Some(found.1)))
            }
        })
    }

    /// Says that this process is a task of an array, where it would run the whole matrix all the same.
    pub(crate) fn mention_engine(&self, console: &Console) {
        if let Some((_, name)) = Engine::detect(variable).filter(|_| self.shard.is_none()) {
            let text = format!("{name} is set; this runs the whole matrix, and --shard auto/N a part of it");
            console.note(&console.labelled(TextStyle::Hint, "note:", text));
        }
    }
}

/// The part of a plan about its shard.
#[derive(Debug, Serialize)]
pub(crate) struct ShardJson {
    #[serde(flatten)]
    shard: Shard,
    chains: usize,
    chains_of_all: usize,
    /// Its part of the estimated work, from 0 to 1.
    share: f64,
    /// The work of the largest shard, in means of all.
    largest_to_mean: f64,
}

impl ShardJson {
    pub(crate) fn new(part: &PartOfRun) -> ShardJson {
        ShardJson {
            shard: part.record.shard,
            chains: part.chains(),
            chains_of_all: part.chains_of_all(),
            share: part.share(),
            largest_to_mean: part.largest_to_mean(),
        }
    }
}

/// The part of the matrix of a shard, in words.
pub(crate) fn part_line(part: &PartOfRun) -> String {
    let (shard, all) = (part.record.shard, part.chains_of_all());
    match part.chains() {
        0 => format!("Shard {shard} has nothing to do: the matrix has {all} chains, some of which stay together."),
        chains => format!(
            "Shard {shard}: {chains} of {all} chains (a method on a fixture), {:.0}% of the estimated work; the \
             largest shard has {:.2} times the mean.",
            part.share() * 100.0,
            part.largest_to_mean(),
        ),
    }
}
