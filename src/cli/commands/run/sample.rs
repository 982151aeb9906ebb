//! `compeval run --sample`: the sample project, written and run wherever the user is.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::process::Command;

use crate::cli::args::Common;
use crate::cli::failure::{Exit, Failure};
use crate::cli::project::folder;
use crate::pipeline::find_pipeline;
use base::files::FileError;
use base::guarded;

use super::offer::{unstarted, write_sample};

/// The folder of the sample.
const FOLDER: &str = "compeval-sample";

/// Writes the sample project unless it is there, and runs it by the same command line in its folder, so that every
/// command that the run suggests leads there.
pub(super) fn run_sample(common: &Common) -> Result<Exit, Failure> {
    let place = folder(common).join(FOLDER);
    let place: PathBuf = place
        .components()
        .filter(|part| *part != std::path::Component::CurDir)
        .collect();
    guarded::metadata(&place).map_err(|error| FileError::new("use", &place, error))?;
    if !place.join("pipeline.toml").is_file() || find_pipeline(&place, None).is_err() {
        let exit = write_sample(common, &place)?;
        if exit != Exit::Done {
            return Ok(exit);
        }
    }
    let mut command = Command::new(std::env::current_exe().map_err(unstarted)?);
    command
        .arg("-C")
        .arg(&place)
        .args(without_place(std::env::args_os().skip(1)));
    run_in_its_place(&mut command)
}

/// The arguments without `--sample` and the folder to work in.
fn without_place(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut kept = Vec::new();
    let mut arguments = arguments;
    while let Some(argument) = arguments.next() {
        let text = argument.to_string_lossy();
        if text == "--directory" {
            arguments.next();
        } else if let Some(at) = short_directory(&text) {
            // The flags before it in the same argument are kept.
            kept.extend(text.get(..at).filter(|_| at > 1).map(OsString::from));
            if at + 1 == text.len() {
                arguments.next();
            }
        } else if argument != OsStr::new("--sample") && !text.starts_with("--directory=") {
            kept.push(argument);
        }
    }
    kept
}

/// Where the `C` of `-C` is in an argument of short options, such as `-qC`. Its value follows, or is the next argument.
fn short_directory(argument: &str) -> Option<usize> {
    let letters = argument
        .strip_prefix('-')
        .filter(|letters| !letters.starts_with('-'))?;
    let at = letters.find(|letter| !matches!(letter, 'n' | 'q' | 'v'))?;
    letters.get(at..)?.starts_with('C').then_some(at + 1)
}

/// Runs a command as this process.
#[cfg(unix)]
fn run_in_its_place(command: &mut Command) -> Result<Exit, Failure> {
    Err(unstarted(std::os::unix::process::CommandExt::exec(command)))
}

/// Runs a command, and ends as it does.
#[cfg(not(unix))]
fn run_in_its_place(command: &mut Command) -> Result<Exit, Failure> {
    Ok(Exit::from_status(command.status().map_err(unstarted)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_is_kept_but_for_the_place() {
        let typed = [
            "-C",
            "x",
            "run",
            "--sample",
            "--runs",
            "2",
            "-Cy",
            "--directory=z",
            "--label",
            "a",
        ];
        let kept = without_place(typed.into_iter().map(OsString::from));
        assert_eq!(kept, ["run", "--runs", "2", "--label", "a"]);
        let typed = ["run", "-qC", "x", "-vvCy", "-q", "-cC", "--sample", "-C=z"];
        let kept = without_place(typed.into_iter().map(OsString::from));
        assert_eq!(kept, ["run", "-q", "-vv", "-q", "-cC"]);
    }
}
