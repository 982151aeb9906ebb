//! `run --until-decided`: fixtures are added until the comparison has a verdict.

use super::args::RunArgs;
use super::once::conclude;
use crate::cli::args::Common;
use crate::cli::failure::{Exit, Failure};
use crate::cli::format::{Noun, count};
use crate::cli::project::label_of;
use crate::cli::screen::Screen;
use crate::cli::terminal::{Console, TextStyle};
use crate::evaluation::{Event, Request, evaluate, looks};
use crate::results::{Comparison, Manifest};
use crate::scheduler::BudgetLimits;
use base::locale::localized;
use base::say;
use base::units::Usd;

pub(super) fn run_until_decided(
    common: &Common,
    args: &RunArgs,
    console: &Console,
) -> Result<Exit, Failure> {
    let label = label_of(&args.select)?;
    let looks = looks(
        &args.request(common, &Screen::new(console), console)?,
        &label,
    )?;
    let most = looks.most();
    let mut before: Option<Manifest> = None;
    for size in looks.sizes.iter().copied() {
        let mut screen = Screen::new(console);
        let mut look = args.request(common, &screen, console)?;
        let is_first = before.is_none();
        look.label = Some(label.clone());
        look.project.selection.fixtures = Some(looks.fixtures(size));
        look.replace &= is_first;
        look.limits = left(look.limits, before.as_ref());
        let look = Request {
            look_before: before.take(),
            ..look
        };
        let outcome = evaluate(look, &mut |event| match event {
            // Warnings about the project are the same at each look.
            Event::Opened { .. } if !is_first => {}
            event => screen.on_event(event),
        })?;
        let exit = Exit::from(outcome.ending);
        let comparison = outcome
            .summary
            .as_ref()
            .and_then(|summary| summary.comparison.as_ref());
        if size == most || exit != Exit::Done || comparison.is_none_or(Comparison::has_verdict) {
            return conclude(outcome, exit, common, args, console);
        }
        let line = say!(
            "no verdict after {} of at most {most}; continuing",
            "{} 之后仍无结论（至多 {most}），继续",
            count(size, Noun::Fixture)
        );
        console.note(&console.labelled(TextStyle::Hint, localized("look:", "查看："), line));
        before = Some(outcome.manifest);
    }
    Ok(Exit::Done)
}

/// The budget that is left after the earlier looks.
fn left(limits: BudgetLimits, before: Option<&Manifest>) -> BudgetLimits {
    let Some(before) = before else { return limits };
    let spent = before.usd.unwrap_or_default().0;
    BudgetLimits {
        usd: limits.usd.map(|limit| Usd((limit.0 - spent).max(0.0))),
        requests: limits
            .requests
            .map(|limit| limit.saturating_sub(before.requests_sent)),
    }
}
