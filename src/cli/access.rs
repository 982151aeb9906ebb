//! The hosts and programs that a project uses, as text.

use crate::cli::terminal::{Console, TextStyle};
use crate::pipeline::ExternalAccess;

/// On one line.
pub(crate) fn access_line(access: &ExternalAccess, console: &Console) -> String {
    format!("{} {}", console.paint(TextStyle::Strong, "This project"), access.lines().join("; "))
}

/// As a list with a heading.
pub(crate) fn access_list(access: &ExternalAccess, console: &Console) -> String {
    let heading = console.paint(TextStyle::Strong, "This project:");
    [heading].into_iter().chain(access.lines().iter().map(|line| format!("  {line}"))).collect::<Vec<_>>().join("\n")
}
