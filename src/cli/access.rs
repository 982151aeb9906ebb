//! The hosts and programs that a project uses, as text.

use crate::cli::terminal::{Console, TextStyle};
use crate::pipeline::ExternalAccess;
use base::locale::word;

/// On one line.
pub(crate) fn access_line(access: &ExternalAccess, console: &Console) -> String {
    format!(
        "{} {}",
        console.paint(TextStyle::Strong, word("This project", "本项目")),
        access.lines().join(word("; ", "；"))
    )
}

/// As a list with a heading.
pub(crate) fn access_list(access: &ExternalAccess, console: &Console) -> String {
    let heading = console.paint(TextStyle::Strong, word("This project:", "本项目："));
    [heading].into_iter().chain(access.lines().iter().map(|line| format!("  {line}"))).collect::<Vec<_>>().join("\n")
}
