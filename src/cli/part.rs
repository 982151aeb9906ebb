//! The part of the matrix that a process runs: its flag, and what is printed about it.

use clap::Args;
use serde::Serialize;

use crate::cli::args::PARTS;
use crate::evaluation::PartOfRun;
use crate::parts::PartNumber;

/// Which part of the matrix this process runs.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct PartArgs {
    /// Run part I of N and put what it makes into the remote; `run --remote URL --offline` makes the results of all parts
    #[arg(long, value_name = "I/N", requires = "label", conflicts_with = "refresh", help_heading = PARTS)]
    pub(crate) part: Option<PartNumber>,
}

/// The JSON in a plan about a part of the matrix.
#[derive(Debug, Serialize)]
pub(crate) struct PartJson {
    #[serde(flatten)]
    number: PartNumber,
    chains: usize,
    chains_of_all: usize,
}

impl PartJson {
    pub(crate) fn new(part: &PartOfRun) -> PartJson {
        PartJson {
            number: part.number,
            chains: part.chains,
            chains_of_all: part.chains_of_all,
        }
    }
}

/// The chains of a part, in words.
pub(crate) fn part_line(part: &PartOfRun) -> String {
    let (number, all) = (part.number, part.chains_of_all);
    match part.chains {
        0 => format!(
            "Part {number} has nothing to do: the matrix has {all} chains, some of which stay together."
        ),
        chains => format!("Part {number}: {chains} of {all} chains (a method on a fixture)."),
    }
}
