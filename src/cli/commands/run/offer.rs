//! A run where there is no project: a folder of session logs can become one, any other can get the sample. `--sample` writes
//! the sample and runs it wherever the user is.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cli::args::Common;
use crate::cli::failure::{Exit, Failure};
use crate::cli::project::folder;
use crate::cli::terminal::Console;
use crate::pipeline::find_pipeline;
use base::files::FileError;
use base::guarded;
use base::text::shell_word;
use sessions::import::read_log;

/// Logs that are tried: the first that can be read is enough.
const TRIED: usize = 20;

/// Offers to create a project if there is none: a person is asked, a script gets the commands. Returns how the run
/// ends; `None` if there is a project, or is one now.
pub(super) fn offer_project(common: &Common, console: &Console) -> Result<Option<Exit>, Failure> {
    let here = folder(common);
    if common.config.is_some() || !here.is_dir() || find_pipeline(&here, None).is_ok() {
        return Ok(None);
    }
    match format_of_logs(&here) {
        Some(format) => offer_import(common, &here, format, console).map(Some),
        None => offer_sample(common, &here, console),
    }
}

/// Offers a project made of the logs in this folder.
fn offer_import(
    common: &Common,
    here: &Path,
    format: &str,
    console: &Console,
) -> Result<Exit, Failure> {
    let place = if here == Path::new(".") {
        PathBuf::from("eval")
    } else {
        here.join("eval")
    };
    guarded::metadata(&place).map_err(|error| FileError::new("use", &place, error))?;
    let eval = place.display().to_string();
    let init = init_words(common, &eval, "--empty");
    let import = ["-C", &eval, "fixture", "import", ".."];
    let what = format!("there is no project here, but logs of sessions ({format})");
    if console.is_interactive() {
        console.eprint(&format!("{what}."));
        if !console
            .confirm(&format!("Make a project of them in {eval}?"))
            .map_err(unread)?
        {
            return Ok(Exit::BadInput);
        }
        let is_new = place.symlink_metadata().is_err();
        let exit = run_each(&[&init, &import])?;
        if exit != Exit::Done && is_new && list_folder(&place.join("fixtures")).is_empty() {
            remove_project(&place, &init, console);
        }
        return Ok(exit);
    }
    let commands: [&[&str]; 4] = [
        &init,
        &import,
        &["-C", &eval, "probes", "generate"],
        &["-C", &eval, "run"],
    ];
    let lines: Vec<String> = commands.map(command_line).into();
    Err(Failure::input(what).hinted(format!("make a project of them:\n  {}", lines.join("\n  "))))
}

/// Removes the project that `init` has just written, in which nothing could be imported.
fn remove_project(place: &Path, init: &[&str], console: &Console) {
    let shown = place.display();
    if let Err(fault) = std::fs::remove_dir_all(place) {
        tracing::warn!("{shown} could not be removed: {fault}");
        return;
    }
    let text = format!(
        "{shown} was removed because it has no session; to import one anyway:\n  {}\n  compeval -C {} fixture import LOG…",
        command_line(init),
        shell_word(&shown.to_string())
    );
    console.eprint(&console.help_line(text));
}

/// Offers the sample project in this folder; then the run continues. A script gets the error of every command.
fn offer_sample(common: &Common, here: &Path, console: &Console) -> Result<Option<Exit>, Failure> {
    if !console.is_interactive() {
        return Ok(None);
    }
    let place = here.canonicalize().unwrap_or_else(|_| here.to_owned());
    console.eprint("There is no project here, and no log of a session.");
    let question = format!(
        "Write the sample project into {} and run it offline?",
        place.display()
    );
    if !console.confirm(&question).map_err(unread)? {
        return Ok(None);
    }
    let exit = write_sample(common, here)?;
    Ok((exit != Exit::Done).then_some(exit))
}

/// Writes the sample project into a folder.
pub(super) fn write_sample(common: &Common, place: &Path) -> Result<Exit, Failure> {
    run_each(&[&init_words(common, &place.display().to_string(), "--quiet")])
}

/// The arguments that make a project in the language of this command.
fn init_words<'a>(common: &Common, place: &'a str, flag: &'a str) -> Vec<&'a str> {
    let mut words = vec!["init", place, flag];
    if let Some(locale) = common.locale {
        words.extend(["--locale", locale.pick("en", "zh")]);
    }
    words
}

/// Runs this program once for each list of arguments, until one fails and has said why. Returns how that one ended.
fn run_each(commands: &[&[&str]]) -> Result<Exit, Failure> {
    let program = std::env::current_exe().map_err(unstarted)?;
    for words in commands {
        let exit = Exit::from_status(
            Command::new(&program)
                .args(*words)
                .status()
                .map_err(unstarted)?,
        );
        if exit != Exit::Done {
            return Ok(exit);
        }
    }
    Ok(Exit::Done)
}

pub(super) fn unstarted(error: io::Error) -> Failure {
    Failure::error(format!("compeval could not be started again: {error}"))
}

fn command_line(words: &[&str]) -> String {
    let words = words.iter().map(|word| shell_word(word));
    ["compeval".to_owned()]
        .into_iter()
        .chain(words)
        .collect::<Vec<_>>()
        .join(" ")
}

fn unread(error: io::Error) -> Failure {
    Failure::error(format!("the answer could not be read: {error}"))
}

/// The format of the first log in a folder.
fn format_of_logs(folder: &Path) -> Option<&'static str> {
    let mut files = list_folder(folder);
    files.retain(|path| {
        path.extension()
            .is_some_and(|end| end == "jsonl" || end == "json")
    });
    let log = files
        .iter()
        .take(TRIED)
        .find_map(|path| read_log(path, None).ok())?;
    Some(log.format.name())
}

fn list_folder(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<_> = entries.map(|entry| entry.path()).collect();
    files.sort();
    files
}

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
