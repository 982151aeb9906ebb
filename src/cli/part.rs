//! The part that this process runs, or the parts that it merges: their numbers, from flags and environment, and the
//! messages about them.

use std::num::NonZeroU32;

use clap::Args;
use serde::Serialize;

use crate::cli::args::PARTS;
use crate::cli::failure::{Exit, Failure};
use crate::cli::format::{Noun, count};
use crate::cli::terminal::{Console, TextStyle};
use crate::evaluation::{
    Ending, EvaluationOutcome, MergeCoverage, NumberedPart, PartOfRun, variable,
};
use crate::parts::{Engine, EngineError, PartArgument, PartNumber};

/// Which part of the matrix this process runs.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct PartArgs {
    /// Run part I of N and push it to the remote; `auto` and `auto/N` take I from the job array that started this process
    #[arg(long, value_name = "I/N", requires = "label", conflicts_with = "refresh", help_heading = PARTS)]
    pub(crate) part: Option<PartArgument>,
    /// Do not divide the providers' rate limits by N
    #[arg(long, requires = "part", help_heading = PARTS)]
    pub(crate) whole_limits: bool,
}

impl PartArgs {
    /// The part that this process runs, if it is to run one.
    pub(crate) fn number(&self) -> Result<Option<NumberedPart>, Failure> {
        let whole_limits = self.whole_limits;
        Ok(match self.part {
            None => None,
            Some(PartArgument::Number(number)) => Some(NumberedPart {
                number,
                engine: None,
                whole_limits,
            }),
            Some(PartArgument::Auto(count)) => {
                let (number, engine) =
                    Engine::part(variable, count).map_err(|error: EngineError| {
                        Failure::input(format!("--part auto: {error}"))
                    })?;
                Some(NumberedPart {
                    number,
                    engine: Some(engine),
                    whole_limits,
                })
            }
        })
    }

    /// Says that this process is a task of an array, where it would run the whole matrix all the same.
    pub(crate) fn mention_engine(&self, console: &Console) {
        if let Some((_, name)) = Engine::detect(variable).filter(|_| self.part.is_none()) {
            let text = format!(
                "{name} is set; this runs the whole matrix, and --part auto/N a part of it"
            );
            console.note(&console.labelled(TextStyle::Hint, "note:", text));
        }
    }
}

/// The number in `--parts N`.
pub(crate) fn count_of_parts(text: &str) -> Result<NonZeroU32, String> {
    let number = text
        .parse()
        .map_err(|_| "expected a number, as in --parts 8".to_owned())?;
    PartNumber::new(1, number)
        .map(PartNumber::count)
        .map_err(|fault| fault.to_string())
}

/// The JSON in a plan about a part of the matrix.
#[derive(Debug, Serialize)]
pub(crate) struct PartJson {
    #[serde(flatten)]
    number: PartNumber,
    chains: usize,
    chains_of_all: usize,
    /// Its part of the estimated work, from 0 to 1.
    share: f64,
    /// The work of the largest part, in means of all.
    largest_to_mean: f64,
}

impl PartJson {
    pub(crate) fn new(part: &PartOfRun) -> PartJson {
        PartJson {
            number: part.record.number,
            chains: part.chains(),
            chains_of_all: part.chains_of_all(),
            share: part.share(),
            largest_to_mean: part.largest_to_mean(),
        }
    }
}

/// The chains of a part, in words.
pub(crate) fn part_line(part: &PartOfRun) -> String {
    let (number, all) = (part.record.number, part.chains_of_all());
    match part.chains() {
        0 => format!(
            "Part {number} has nothing to do: the matrix has {all} chains, some of which stay together."
        ),
        chains => format!(
            "Part {number}: {chains} of {all} chains (a method on a fixture), {:.0}% of the estimated work; the \
             largest part has {:.2} times the mean.",
            part.share() * 100.0,
            part.largest_to_mean()
        ),
    }
}

/// Says which parts are unfinished or were run twice, and which judges failed their self-test in a part. Returns the
/// exit of the merge.
pub(crate) fn print_coverage(
    outcome: &EvaluationOutcome,
    coverage: &MergeCoverage,
    console: &Console,
) -> Exit {
    let mut exit = Exit::from(outcome.ending);
    let MergeCoverage {
        missing,
        incomplete,
        doubled,
        made_twice,
        ..
    } = coverage;
    if !doubled.is_empty() {
        console.warn("parts:", doubled_parts(doubled));
    }
    if *made_twice > 0 {
        let text = format!(
            "{} came out equal in two parts and was paid for in both; the output of the lower part is used",
            count(*made_twice, Noun::Action)
        );
        console.note(&console.labelled(TextStyle::Hint, "note:", text));
    }
    // Also where no cell is missing: what these paid is not counted.
    if !missing.is_empty() {
        console.warn(
            "parts:",
            format!(
                "these parts are not in the remote: {}",
                list_numbers(missing)
            ),
        );
    }
    if !incomplete.is_empty() {
        console.warn(
            "parts:",
            format!("these parts have work left: {}", list_numbers(incomplete)),
        );
    }
    if outcome.ending != Ending::Complete {
        console.eprint(&console.labelled(
            TextStyle::Hint,
            "hint:",
            merge_advice(outcome, coverage),
        ));
        // The merge asks no model: what is pending in it is missing.
        exit = if exit == Exit::Pending {
            Exit::Incomplete
        } else {
            exit.and(Exit::Incomplete)
        };
    } else if let Some(command) = part_command(coverage) {
        let text = format!(
            "no cell is missing without them; to count what they pay, run {command}, then merge again"
        );
        console.note(&console.labelled(TextStyle::Hint, "hint:", text));
    }
    let caveats = &outcome.manifest.caveats;
    if !caveats.weak_judges.is_empty() && !caveats.allow_weak_judge {
        console.error(
            "judge:",
            format!(
                "failed its self-test in a part: {}",
                caveats.weak_judges.join(", ")
            ),
        );
        exit = exit.and(Exit::Error);
    }
    exit
}

/// Says which parts ran in two processes at the same time.
fn doubled_parts(parts: &[PartNumber]) -> String {
    let these = if parts.len() == 1 {
        "this part"
    } else {
        "these parts"
    };
    let numbers = list_numbers(parts);
    format!(
        "{these} ran in two processes at the same time: {numbers}; what both processes paid is counted"
    )
}

fn list_numbers(parts: &[PartNumber]) -> String {
    parts
        .iter()
        .map(|part| part.index().to_string())
        .collect::<Vec<_>>()
        .join(", ")
}

/// What to do about missing cells.
fn merge_advice(outcome: &EvaluationOutcome, coverage: &MergeCoverage) -> String {
    let rest = "compeval run";
    let Some(command) = part_command(coverage) else {
        let label = &outcome.manifest.label;
        return format!(
            "no part of `{label}` is missing; `{rest}` asks for what its parts left out"
        );
    };
    format!("{command}, then merge again; or run what is left in one process: {rest}")
}

/// The command that runs the first unfinished part, and how the engine starts all of them; `None` if there is none.
fn part_command(coverage: &MergeCoverage) -> Option<String> {
    let unfinished = coverage.unfinished();
    let first = unfinished.first()?;
    let command = format!("compeval run --part {first}");
    let again = coverage
        .engine
        .and_then(|engine| engine.start_again(&unfinished));
    let again = again
        .map(|again| format!(" (of all: {again})"))
        .unwrap_or_default();
    Some(format!("{command}{again}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubled_parts_are_named_in_singular_and_plural() {
        let part = |index| PartNumber::new(index, 8).unwrap();
        let [one, several] = [
            doubled_parts(&[part(3)]),
            doubled_parts(&[part(3), part(5)]),
        ];
        assert!(
            one.starts_with("this part ran in two processes at the same time: 3; "),
            "{one}"
        );
        assert!(
            several.starts_with("these parts ran in two processes at the same time: 3, 5; "),
            "{several}"
        );
    }
}
