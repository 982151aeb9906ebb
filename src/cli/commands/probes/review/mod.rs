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
use base::locale::localized;
use base::say;
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
        console.note(localized("Every probe is reviewed.", "所有问题都已审阅。"));
        console.next(next.command("run"));
        return Ok(Exit::Done);
    }
    if args.open {
        let (counts, left) = page::review(review, console)?;
        return Ok(conclude(counts, left, console));
    }
    if !console.is_interactive() {
        let hint = localized(
            "run it in a terminal, or in a browser with --open; --json lists what is to be reviewed",
            "请在终端中运行，或用 --open 在浏览器中运行；--json 列出待审内容",
        );
        return Err(
            Failure::input(localized("a review needs a terminal", "审阅需要终端")).hinted(hint),
        );
    }
    terminal::review(&mut review, console)?;
    Ok(conclude(review.counts, review.left(), console))
}

fn conclude(counts: ReviewCounts, left: usize, console: &Console) -> Exit {
    console.note(&say!(
        "{counts}, {} left",
        "{counts}，剩余 {}",
        count(left, Noun::Question)
    ));
    console.next(CommandLine::current().of_project().command(if left > 0 {
        "probes review"
    } else {
        "run"
    }));
    Exit::Done
}
