//! `compeval report`: writes report.md and report.html of a label again, or opens its page.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use crate::cli::args::{Common, SelectArgs};
use crate::cli::browser::open_in_browser;
use crate::cli::commands::cell::note_partial;
use crate::cli::commands::result_index::write_result_index;
use crate::cli::commands::run::print_results;
use crate::cli::failure::{Exit, Failure};
use crate::cli::format::shell_word;
use crate::cli::project::{ProjectOptions, given, open_snapshot, project_paths_of, read_project};
use crate::cli::terminal::{Console, TextStyle};
use crate::evaluation::publish;
use crate::report::{csv_header, csv_line, junit, reference_table};
use crate::results::{ResultsFolder, SetError, find_results, lock_reports, names};
use base::files::write_whole;
use base::locale::{Locale, word};
use base::say;

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// The result set
    #[arg(required_unless_present_any = ["reference", "open"])]
    pub(crate) label: Option<String>,
    /// Open report.html, as it is, in the browser, with a switch to other result sets; without a label that of the newest
    #[arg(long, conflicts_with_all = ["reference", "csv", "junit"])]
    pub(crate) open: bool,
    /// Print the published reference table next to the measured one
    #[arg(long)]
    pub(crate) reference: bool,
    /// Report the incomplete results of the label
    #[arg(long, requires = "label", conflicts_with = "open")]
    pub(crate) partial: bool,
    /// Print the graded cells as CSV; rewrite no file
    #[arg(long, requires = "label", conflicts_with = "reference")]
    pub(crate) csv: bool,
    /// Print every table, not one screen
    #[arg(long, requires = "label", conflicts_with = "csv")]
    pub(crate) all: bool,
    /// Write the scores to FILE as JUnit XML: a test for each method and dimension
    #[arg(long, value_name = "FILE", requires = "label", conflicts_with = "csv")]
    pub(crate) junit: Option<PathBuf>,
}

pub(crate) fn run(common: &Common, args: &ReportArgs, console: &Console) -> Result<Exit, Failure> {
    if args.open {
        return open(common, args.label.as_deref(), console);
    }
    let Some(label) = &args.label else {
        console.print(&console.styled(&reference_table(Locale::En, console.width())));
        return Ok(Exit::Done);
    };
    let select = SelectArgs { allow_unproven: true, ..SelectArgs::default() };
    let pipeline = read_project(common, &select, ProjectOptions::default())?.pipeline;
    let folder = find_results(&pipeline.results, Some(label), args.partial)?;
    if args.csv {
        return print_csv(&folder, console);
    }
    let _files = lock_reports(&folder)?;
    let (manifest, rows) = (folder.manifest()?, folder.few_rows().map_err(SetError::from)?);
    folder.show_reference(args.reference)?;
    note_partial(&folder, &manifest, console);
    let snapshot = rows.is_some().then(|| open_snapshot(&pipeline.cache)).transpose()?;
    let published = publish(&pipeline, &folder, manifest, rows.zip(snapshot.as_ref()), args.reference)?;
    folder.sync()?;
    if let Some(file) = &args.junit {
        write_whole(&given(common, file), junit(&published.summary, published.manifest.wall_s))?;
    }
    console.json(&published.summary);
    if !console.is_quiet {
        print_results(&published.summary, &published.manifest, args.all, console);
    }
    if args.reference {
        let table = reference_table(published.manifest.design.locale.of_report(), console.width());
        console.inform(&format!("\n{}", console.styled(&table)));
    }
    for name in [names::MARKDOWN, names::HTML] {
        console.inform(&format!(
            "{} {}",
            console.paint(TextStyle::Dim, word("wrote", "已写入")),
            folder.file(name).display()
        ));
    }
    published.refused.map_or(Ok(Exit::Done), |refusal| Err(refusal.into()))
}

#[derive(Serialize)]
struct OpenJson {
    page: String,
    /// Whether a browser was started.
    opened: bool,
}

fn open(common: &Common, label: Option<&str>, console: &Console) -> Result<Exit, Failure> {
    let paths = project_paths_of(common)?;
    let folder = find_results(&paths.results, label, false)?;
    let page = folder.file(names::HTML);
    if !page.is_file() {
        let label = folder.label();
        return Err(Failure::input(say!("the results `{label}` have no {}", "结果 `{label}` 没有 {}", names::HTML))
            .hinted(say!("compeval report {}   writes it", "compeval report {}   写出该文件", shell_word(&label))));
    }
    let shown = write_result_index(&paths.results, &folder.label()).unwrap_or(page);
    let opened = open_in_browser(shown.as_os_str());
    let page = shown.display().to_string();
    console.report(&OpenJson { page: page.clone(), opened }, || console.print(&page));
    if !opened {
        console.note(word(
            "There is no browser here: open this file in yours.",
            "此处没有浏览器：请在您的浏览器中打开该文件。",
        ));
    }
    Ok(Exit::Done)
}

/// The cells as they are read: a result set may be larger than memory.
fn print_csv(folder: &ResultsFolder, console: &Console) -> Result<Exit, Failure> {
    let label = folder.manifest()?.label;
    let fault = |error: csv::Error| {
        Failure::error(say!("the rows could not be written as CSV: {error}", "无法将各行写为 CSV：{error}"))
    };
    for (number, row) in folder.rows()?.enumerate() {
        let row = row.map_err(SetError::from)?;
        if number == 0 {
            console.raw(&csv_header(&row).map_err(fault)?);
        }
        console.raw(&csv_line(&label, &row).map_err(fault)?);
    }
    Ok(Exit::Done)
}
