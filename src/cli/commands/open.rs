//! `compeval open`: shows the page of a result set in the browser.

use clap::Args;
use serde::Serialize;

use crate::cli::args::Common;
use crate::cli::browser::open_in_browser;
use crate::cli::failure::{Exit, Failure};
use crate::cli::format::shell_word;
use crate::cli::project::project_paths_of;
use crate::cli::terminal::Console;
use crate::results::{find_results, names};

#[derive(Debug, Args)]
pub(crate) struct OpenArgs {
    /// The result set [default: the newest]
    pub(crate) label: Option<String>,
}

#[derive(Serialize)]
struct OpenJson {
    page: String,
    /// Whether a browser was started.
    opened: bool,
}

pub(crate) fn run(common: &Common, args: &OpenArgs, console: &Console) -> Result<Exit, Failure> {
    let folder = find_results(&project_paths_of(common)?.results, args.label.as_deref(), false)?;
    let page = folder.file(names::HTML);
    if !page.is_file() {
        let label = folder.label();
        return Err(Failure::input(format!("the results `{label}` have no {}", names::HTML))
            .hinted(format!("compeval report {}   writes it", shell_word(&label))));
    }
    let opened = open_in_browser(page.as_os_str());
    let page = page.display().to_string();
    console.report(&OpenJson { page: page.clone(), opened }, || console.print(&page));
    if !opened {
        console.note("There is no browser here: open this file in yours.");
    }
    Ok(Exit::Done)
}
