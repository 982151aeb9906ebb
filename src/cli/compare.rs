//! `compeval compare`: two labels, or methods of them, with a verdict per dimension.

use super::args::{Common, CompareArgs, SelectArgs};
use super::console::Console;
use super::failure::{Exit, Failure};
use super::project::{Opening, read_project};
use super::publish::compare_sides;
use crate::report::comparison_table;

pub(crate) fn run(common: &Common, args: &CompareArgs, console: &Console) -> Result<Exit, Failure> {
    let pipeline = read_project(common, &SelectArgs::default(), Opening::default())?.pipeline;
    let (judged, comparison) = compare_sides(&pipeline.results, &args.a, &args.b, args.only_common)?;
    console.json(&comparison);
    console.say(&console.styled(&comparison_table(&comparison, judged.design().locale, console.width())));
    Ok(Exit::Done)
}
