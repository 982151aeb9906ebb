//! Long texts, a screen at a time: through `$PAGER` or `less` where standard output is a terminal.

use std::io::{self, IsTerminal, Write};
use std::process::{Command, Stdio};

use super::console::Console;
use super::project::ProcessEnvironment;
use crate::pipeline::Environment;

/// Rows of a terminal that does not say how many it has.
const USUAL_ROWS: usize = 24;

/// Prints `text` as a result; a long one through a pager where somebody sits before it.
pub(crate) fn page(console: &Console, text: &str) {
    let is_read = io::stdout().is_terminal() && io::stdin().is_terminal() && !console.is_json();
    if !is_read || text.lines().count() < rows() || through_pager(&console.for_output(text)).is_err() {
        console.say(text);
    }
}

fn rows() -> usize {
    let told = ProcessEnvironment.var("LINES").and_then(|lines| lines.parse().ok());
    told.or_else(|| terminal_size::terminal_size_of(io::stdout()).map(|(_, rows)| usize::from(rows.0)))
        .filter(|rows| *rows > 0)
        .unwrap_or(USUAL_ROWS)
}

/// Hands the text to the pager and waits for its end. An error if there is none; then nothing was printed.
fn through_pager(text: &str) -> io::Result<()> {
    let wanted = ProcessEnvironment.var("PAGER").unwrap_or_else(|| "less".to_owned());
    let mut words = wanted.split_whitespace();
    let program = words.next().ok_or(io::ErrorKind::NotFound)?;
    let mut command = Command::new(program);
    command.args(words).stdin(Stdio::piped());
    if ProcessEnvironment.var("LESS").is_none() {
        // colours as they are, no page for what fits, and the text stays on the screen
        command.env("LESS", "FRX");
    }
    let mut pager = command.spawn()?;
    if let Some(mut input) = pager.stdin.take() {
        // A reader who has seen enough closes the pipe: that is no failure.
        let _ = input.write_all(text.as_bytes());
    }
    pager.wait().map(drop)
}
