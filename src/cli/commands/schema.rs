//! `compeval schema`: the JSON Schemas of the files that users write.

use clap::Args;
use clap::builder::PossibleValuesParser;
use serde_json::Value;

use crate::cli::failure::{Exit, Failure};
use crate::cli::terminal::Console;
use crate::pipeline::SCHEMAS;

#[derive(Debug, Args)]
pub(crate) struct SchemaArgs {
    /// The kind of file
    #[arg(value_parser = PossibleValuesParser::new(SCHEMAS.map(|(name, _)| name)))]
    pub(crate) file: String,
}

pub(crate) fn run(args: &SchemaArgs, console: &Console) -> Result<Exit, Failure> {
    let make = SCHEMAS.iter().find(|(name, _)| *name == args.file).map(|(_, make)| make);
    console.raw(format!("{:#}\n", make.map_or(Value::Null, |make| make())).as_bytes());
    Ok(Exit::Done)
}
