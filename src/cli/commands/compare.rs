//! `compeval compare`: two labels, or methods of them, with a verdict per dimension.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use crate::cli::args::Common;
use crate::cli::commands::run::print_results;
use crate::cli::failure::{Exit, Failure};
use crate::cli::format::with_fields;
use crate::cli::project::{given, named_side, open_snapshot, project_of_results};
use crate::cli::terminal::Console;
use crate::evaluation::{compare_sides, comparison_page, text_edits_in};
use crate::report::headline;
use crate::results::{ComparisonScope, Label, summarize};
use base::files::write_private;
use base::say;

#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// What is judged: LABEL, LABEL:METHOD, with several answerers LABEL:METHOD/ANSWERER, or the path of a results folder, as ./FOLDER
    #[arg(default_value = Label::PREVIOUS, hide_default_value = true)]
    pub(crate) a: String,
    /// The baseline, named in the same way; a side you leave out defaults to the newest complete results other than the one you named
    #[arg(default_value = Label::PREVIOUS, hide_default_value = true)]
    pub(crate) b: String,
    /// Print every table, not one screen
    #[arg(long)]
    pub(crate) all: bool,
    /// Compare only the cells that both have
    #[arg(long)]
    pub(crate) only_common: bool,
    /// Write a page to FILE that shows the cells of both side by side
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
}

pub(crate) fn run(common: &Common, args: &CompareArgs, console: &Console) -> Result<Exit, Failure> {
    let pipeline = project_of_results(common)?;
    let scope = if args.only_common {
        ComparisonScope::Common
    } else {
        ComparisonScope::All
    };
    // Without a readable cache the comparison still says which files changed, not in which lines.
    let cache = open_snapshot(&pipeline.cache).ok();
    let lines = text_edits_in(cache.as_ref());
    let a = named_side(&pipeline.results, &args.a, None, false, console)?;
    let b = named_side(
        &pipeline.results,
        &args.b,
        Some(label_in(&a)),
        false,
        console,
    )?;
    let (folder, judged, compared) =
        compare_sides(&pipeline, &a, &b, scope, &lines, common.locale)?;
    let comparison = &compared.comparison;
    let mut summary = summarize(&judged, Some(comparison.clone()));
    // Where a side names a method, only this one is wanted.
    summary.methods.retain(|name, _| {
        comparison.methods.contains_key(name) || comparison.unmatched.contains(name)
    });
    summary.headline = Some(headline(&summary, &judged.manifest));
    if let Some(file) = &args.html {
        let file = given(common, file);
        let sides = (&folder, &judged);
        let page = comparison_page(&pipeline, sides, &compared, &summary, cache.as_ref())?;
        write_private(&file, page)?;
        let file = file.display();
        console.note(&say!(console.locale, "wrote {file}", "已写入 {file}"));
    }
    let fields = json!({ "headline": summary.headline });
    console.json(&with_fields(comparison, fields));
    print_results(&summary, &judged.manifest, args.all, console);
    Ok(Exit::Done)
}

/// The label in the name of a side: what is after the last slash of a path, and before the method.
fn label_in(side: &str) -> &str {
    let name = side.trim_end_matches(['/', '\\']);
    let folder = name.rsplit(['/', '\\']).next().unwrap_or(name);
    folder.split(':').next().unwrap_or(folder)
}
