//! `compeval run`: runs the matrix, writes results, prints the summary. `--sample` runs the sample project, which it writes
//! first.

mod args;
mod finish;
mod once;

pub(super) use args::RunArgs;
pub(super) use finish::print_results;

use std::path::{Path, PathBuf};

use crate::cli::args::Common;
use crate::cli::commands::{init, plan};
use crate::cli::failure::{Exit, Failure};
use crate::cli::project::folder;
use crate::cli::terminal::Console;
use crate::pipeline::{PIPELINE_FILE, find_pipeline};
use base::files::FileError;
use base::guarded;
use base::text::shell_word;
use sessions::import::read_log;

pub(crate) fn run(common: &Common, args: &RunArgs, console: &Console) -> Result<Exit, Failure> {
    if args.sample {
        return run_sample(common, args);
    }
    refuse_logs(common)?;
    if args.dry_run {
        let baseline = args.baseline(common, console)?;
        let planned = plan::PlanArgs {
            select: args.select.clone(),
            part: args.part.clone(),
            remote: args.remote.clone(),
            offline: args.offline,
            ..plan::PlanArgs::default()
        };
        let plan = plan::plan_project(common, &planned, baseline.as_ref(), console)?;
        plan::print(&plan, false, console);
        return Ok(Exit::Done);
    }
    once::run_once(common, args, console)
}

/// The folder of the sample.
const SAMPLE: &str = "compeval-sample";

/// Writes the sample project unless it is there, and runs it.
fn run_sample(common: &Common, args: &RunArgs) -> Result<Exit, Failure> {
    let place = PathBuf::from(SAMPLE);
    guarded::metadata(&place).map_err(|error| FileError::new("use", &place, error))?;
    if !place.join(PIPELINE_FILE).is_file() {
        init::write_starter(&place, false, common.locale.unwrap_or_default())?;
    }
    let common = Common {
        directory: Some(place),
        ..common.clone()
    };
    let args = RunArgs {
        sample: false,
        ..args.clone()
    };
    // Every command that the run suggests leads there.
    let console = Console::new(&common);
    run(&common, &args, &console)
}

/// Logs that are tried: the first that can be read is enough.
const TRIED: usize = 20;

/// Where there is no project, but logs of sessions, says how they become one.
fn refuse_logs(common: &Common) -> Result<(), Failure> {
    let here = folder(common);
    if common.config.is_some() || !here.is_dir() || find_pipeline(&here, None).is_ok() {
        return Ok(());
    }
    let Some(format) = format_of_logs(&here) else {
        return Ok(());
    };
    let place = if here == Path::new(".") {
        PathBuf::from("eval")
    } else {
        here.join("eval")
    };
    let eval = shell_word(&place.display().to_string());
    let language = common
        .locale
        .map_or("", |locale| locale.pick(" --locale en", " --locale zh"));
    let message = format!("there is no project here, but logs of sessions ({format})");
    Err(Failure::input(message).hinted(format!(
        "make a project of them:\n  compeval init {eval} --empty{language}\n  compeval -C {eval} fixture import ..\n  \
         compeval -C {eval} probes generate\n  compeval -C {eval} run"
    )))
}

/// The format of the first log in a folder.
fn format_of_logs(folder: &Path) -> Option<&'static str> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    files.retain(|path| {
        path.extension()
            .is_some_and(|end| end == "jsonl" || end == "json")
    });
    files.sort();
    let mut tried = files.iter().take(TRIED);
    let log = tried.find_map(|path| read_log(path, None).ok())?;
    Some(log.format.name())
}
