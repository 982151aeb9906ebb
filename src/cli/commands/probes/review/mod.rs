//! `compeval probes review`: a person decides about each probe, and about messages in the user's own words.
//!
//! Every decision is written before the next question, so a review can be stopped at any time and continued later. The
//! bank marks what is reviewed.

mod card;
mod page;
mod session;
mod terminal;

use clap::Args;
use serde_json::json;

use crate::cli::args::Common;
use crate::cli::command_line::CommandLine;
use crate::cli::failure::{Exit, Failure};
use crate::cli::format::{Noun, count};
use crate::cli::project::project_paths_of;
use crate::cli::terminal::Console;
use card::Card;
use session::{Review, ReviewCounts};

#[derive(Debug, Args)]
pub(crate) struct ReviewArgs {
    /// Only these fixtures
    pub(crate) fixtures: Vec<String>,
    /// Also probes that were reviewed before
    #[arg(long)]
    pub(crate) all: bool,
    /// Review on a local page that opens in a browser
    #[arg(long)]
    pub(crate) open: bool,
}

pub(super) fn run(common: &Common, args: &ReviewArgs, console: &Console) -> Result<Exit, Failure> {
    let mut review = Review::open(project_paths_of(common)?, &args.fixtures, args.all)?;
    if console.is_json {
        let cards = (0..review.items.len())
            .map(|at| review.card(at))
            .collect::<Result<Vec<Card>, _>>()?;
        console.json(&json!({ "pending": cards }));
        return Ok(Exit::Done);
    }
    let next = CommandLine::current().of_project();
    if review.items.is_empty() {
        console.note("Every probe is reviewed.");
        console.next(next.command("run"));
        return Ok(Exit::Done);
    }
    if args.open {
        let (counts, left) = page::review(review, console)?;
        return Ok(conclude(counts, left, console));
    }
    if !console.is_interactive() {
        let hint = "run it in a terminal, or in a browser with --open; --json lists what is to be reviewed";
        return Err(Failure::input("a review needs a terminal").hinted(hint));
    }
    terminal::review(&mut review, console)?;
    Ok(conclude(review.counts, review.left(), console))
}

fn conclude(counts: ReviewCounts, left: usize, console: &Console) -> Exit {
    console.note(&format!("{counts}, {} left", count(left, Noun::Question)));
    console.next(CommandLine::current().of_project().command(if left > 0 {
        "probes review"
    } else {
        "run"
    }));
    Exit::Done
}
