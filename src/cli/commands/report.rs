//! `compeval report`: writes report.md and report.html of a label again, or opens its page.

use std::ffi::OsStr;
use std::process::{Command, Stdio};

use clap::Args;
use serde_json::json;

use crate::cli::args::Common;
use crate::cli::commands::cell::{chosen_results, note_partial};
use crate::cli::commands::run::print_results;
use crate::cli::failure::{Exit, Failure, not_as_json};
use crate::cli::format::count;
use crate::cli::project::{open_snapshot, project_of_results, project_paths_of};
use crate::cli::terminal::{Console, TextStyle, paint};
use crate::evaluation::{compared_to_baseline, publish, variable};
use crate::report::{csv_header, csv_line, reference, styled_sections};
use crate::results::{ResultSet, ResultsFolder, lock_reports, names};
use base::text::{escape_controls, shell_word};
use store::cache::Lookup;

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// The result set [default: that of the newest run that has ended]
    pub(crate) label: Option<String>,
    /// Open report.html in the browser without rewriting it [default: the newest finished run]
    #[arg(long, conflicts_with = "csv")]
    pub(crate) open: bool,
    /// Print published scores of other methods, which were not measured here
    #[arg(long, exclusive = true)]
    pub(crate) reference: bool,
    /// Print the graded cells as CSV; rewrite no file
    #[arg(long)]
    pub(crate) csv: bool,
    /// Print every table, not one screen
    #[arg(long, conflicts_with_all = ["csv", "open"])]
    pub(crate) all: bool,
}

pub(crate) fn run(common: &Common, args: &ReportArgs, console: &Console) -> Result<Exit, Failure> {
    if args.open {
        return open(common, args.label.as_deref(), console);
    }
    if args.reference {
        let text = styled_sections(&reference(console.locale), console.width());
        console.print(&text);
        return Ok(Exit::Done);
    }
    if console.is_json && args.csv {
        return Err(not_as_json("--csv"));
    }
    let pipeline = project_of_results(common)?;
    let folder = chosen_results(common, &pipeline.results, args.label.as_deref(), console)?;
    if args.csv {
        return print_csv(&folder, console);
    }
    let _files = lock_reports(&folder)?;
    let mut set = ResultSet::read(&folder)?;
    set.manifest.chosen_locale = common.locale;
    note_partial(common, &folder, &set.manifest, console);
    let snapshot = open_snapshot(&pipeline.cache)?;
    let mut gone = folder.keys()?;
    gone.retain(|key| snapshot.find_usable(key).is_none());
    if !gone.is_empty() {
        let outputs = count(gone.len() as u64, "output");
        let text = format!(
            "the cache no longer has {outputs} of this run: the page lacks the contexts among them"
        );
        console.warn("cache:", text);
    }
    let (compared, refused) = match compared_to_baseline(&pipeline, &set, &snapshot) {
        Ok(compared) => (compared.map(|found| found.comparison), None),
        Err(refusal) => (None, Some(refusal)),
    };
    let summary = publish(&pipeline, &folder, &set, compared, &snapshot)?;
    folder.sync()?;
    console.json(&summary);
    if !console.is_quiet {
        print_results(&summary, &set.manifest, args.all, console);
    }
    for name in [names::MARKDOWN, names::HTML] {
        console.inform(&format!(
            "{} {}",
            paint(TextStyle::Dim, console.locale.pick("wrote", "已写入")),
            folder.file(name).display()
        ));
    }
    let Some(refusal) = refused else {
        return Ok(Exit::Done);
    };
    if let Some(baseline) = &set.manifest.compared_to {
        let text = format!("the files have no comparison with `{baseline}`");
        console.warn("not compared:", text);
    }
    Err(refusal.into())
}

fn open(common: &Common, label: Option<&str>, console: &Console) -> Result<Exit, Failure> {
    let paths = project_paths_of(common)?;
    let folder = chosen_results(common, &paths.results, label, console)?;
    let page = folder.file(names::HTML);
    if !page.is_file() {
        let label = folder.label();
        let write = format!("compeval report {}", shell_word(&label));
        return Err(
            Failure::input(format!("the results `{label}` have no {}", names::HTML))
                .hinted(format!("`{write}` writes it")),
        );
    }
    let opened = open_in_browser(page.as_os_str());
    let page = page.display().to_string();
    console.report(&json!({ "page": page, "opened": opened }), || {
        console.print(&page)
    });
    if !opened {
        console.note("There is no browser here: open this file in yours.");
    }
    Ok(Exit::Done)
}

/// Opens a file or an address; whether a browser was started. A browser may run for hours, so this does not wait for
/// it.
fn open_in_browser(address: &OsStr) -> bool {
    programs().into_iter().any(|mut program| {
        let silent = program
            .arg(address)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        silent.spawn().is_ok()
    })
}

/// The programs to try, in order. `BROWSER` is a list of them, as in other tools.
fn programs() -> Vec<Command> {
    if let Some(list) = variable("BROWSER") {
        return std::env::split_paths(&list)
            .filter(|program| !program.as_os_str().is_empty())
            .map(Command::new)
            .collect();
    }
    if cfg!(windows) {
        // It takes the path as it is: `cmd /C start` would interpret `&` and `%` in it.
        let mut handler = Command::new("rundll32");
        handler.arg("url.dll,FileProtocolHandler");
        return vec![handler];
    }
    if cfg!(target_os = "macos") {
        return vec![Command::new("open")];
    }
    let has_screen = ["DISPLAY", "WAYLAND_DISPLAY"]
        .iter()
        .any(|name| variable(name).is_some());
    if has_screen {
        vec![Command::new("xdg-open")]
    } else {
        Vec::new()
    }
}

/// The cells as they are read: a result set may be larger than memory.
fn print_csv(folder: &ResultsFolder, console: &Console) -> Result<Exit, Failure> {
    let label = folder.manifest()?.label;
    // A file or a pipe gets the texts of models as they are; a terminal would do what their control characters say.
    let print = |line: Vec<u8>| match console.columns() {
        None => console.raw(&line),
        Some(_) => console.raw(escape_controls(&String::from_utf8_lossy(&line)).as_bytes()),
    };
    for (number, row) in folder.rows()?.enumerate() {
        let row = row?;
        if number == 0 {
            print(csv_header(&row).map_err(csv_failure)?);
        }
        print(csv_line(&label, &row).map_err(csv_failure)?);
    }
    Ok(Exit::Done)
}

fn csv_failure(error: csv::Error) -> Failure {
    Failure::error(format!("the rows could not be written as CSV: {error}"))
}
