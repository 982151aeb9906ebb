//! What the user sees while and after a command runs: lines, tables, progress. Long texts go through `$PAGER` or `less`, a
//! screen at a time, where standard output is a terminal.

mod console;
mod progress;

pub(super) use crate::report::{TextStyle, labelled, paint};
pub(super) use console::{Console, LogWriter, own_color, typed_again};
pub(super) use progress::Progress;

use std::io::{self, IsTerminal, Write};
use std::process::{Child, Command, Stdio};

use crate::evaluation::variable;
use base::redaction::redact;

/// Rows of a terminal that does not say how many it has.
const USUAL_ROWS: usize = 24;

/// Prints `text` to standard output; a text that fills the screen of a terminal goes through a pager, if one starts.
pub(crate) fn page(console: &Console, text: &str) {
    let end = if text.ends_with('\n') { "" } else { "\n" };
    let text = format!("{text}{end}");
    let text = console.for_output(&text);
    let is_paged = io::stdout().is_terminal() && io::stdin().is_terminal() && !console.is_json;
    if is_paged
        && text.lines().count() >= rows()
        && let Ok(mut pager) = pager()
    {
        pass_on(&mut pager, &text);
        // standard input is closed first, so that the pager learns that this was all; its own end is no business of ours
        let _ = pager.wait();
        return;
    }
    console.raw(text.as_bytes());
}

fn rows() -> usize {
    let declared = variable("LINES").and_then(|lines| lines.parse().ok());
    declared
        .or_else(|| {
            terminal_size::terminal_size_of(io::stdout()).map(|(_, rows)| usize::from(rows.0))
        })
        .filter(|rows| *rows > 0)
        .unwrap_or(USUAL_ROWS)
}

/// A pager that waits for text.
fn pager() -> io::Result<Child> {
    let wanted = variable("PAGER").unwrap_or_else(|| "less".to_owned());
    let mut words = wanted.split_whitespace();
    let program = words.next().ok_or(io::ErrorKind::NotFound)?;
    let mut command = Command::new(program);
    command.args(words).stdin(Stdio::piped());
    if variable("LESS").is_none() {
        // colours as they are, no page for what fits, and the text stays on the screen
        command.env("LESS", "FRX");
    }
    command.spawn()
}

/// Gives the pager the text. A reader who has seen enough closes the pipe: that is not a failure.
fn pass_on(pager: &mut Child, text: &str) {
    if let Some(input) = &mut pager.stdin {
        let _ = input.write_all(redact(text).as_bytes());
    }
}
