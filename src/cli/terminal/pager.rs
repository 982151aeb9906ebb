//! Long texts, a screen at a time: through `$PAGER` or `less` where standard output is a terminal.

use std::io::{self, IsTerminal, Write};
use std::process::{Child, Command, Stdio};

use super::console::Console;
use crate::evaluation::variable;
use base::redaction::redact;

/// Rows of a terminal that does not say how many it has.
const USUAL_ROWS: usize = 24;

/// Prints `text` to standard output; a long text on a terminal goes through a pager.
pub(crate) fn page(console: &Console, text: &str) {
    let mut pages = Pages::new(console);
    let end = if text.ends_with('\n') { "" } else { "\n" };
    pages.write(&format!("{text}{end}"));
    pages.end();
}

/// A result that is printed as it comes. On a terminal, output is buffered until it fills the screen; then a
/// pager is started.
pub(crate) struct Pages<'c> {
    console: &'c Console,
    state: PagerState,
}

enum PagerState {
    Direct,
    /// Not printed yet: it may fit the screen.
    Buffered(String),
    Pager(Child),
}

impl<'c> Pages<'c> {
    pub(crate) fn new(console: &'c Console) -> Pages<'c> {
        let is_read = io::stdout().is_terminal() && io::stdin().is_terminal() && !console.is_json;
        Pages {
            console,
            state: if is_read {
                PagerState::Buffered(String::new())
            } else {
                PagerState::Direct
            },
        }
    }

    /// Prints what comes next, lines whole. Returns false once the reader has closed the pipe.
    pub(crate) fn write(&mut self, text: &str) -> bool {
        let text = self.console.for_output(text);
        match &mut self.state {
            PagerState::Direct => {
                self.console.raw(text.as_bytes());
                return Console::is_read();
            }
            PagerState::Pager(pager) => return pass_on(pager, &text),
            PagerState::Buffered(buffered) => {
                buffered.push_str(&text);
                if buffered.lines().count() >= rows() {
                    return self.start_pager();
                }
            }
        }
        true
    }

    /// Passes the buffer to a pager, or to standard output if no pager starts.
    fn start_pager(&mut self) -> bool {
        let PagerState::Buffered(buffered) = std::mem::replace(&mut self.state, PagerState::Direct)
        else {
            return true;
        };
        match pager() {
            Ok(mut pager) => {
                let is_read = pass_on(&mut pager, &buffered);
                self.state = PagerState::Pager(pager);
                is_read
            }
            Err(_) => {
                self.console.raw(buffered.as_bytes());
                true
            }
        }
    }

    /// Prints the rest and waits for the pager.
    pub(crate) fn end(self) {
        match self.state {
            PagerState::Direct => {}
            PagerState::Buffered(buffered) => self.console.raw(buffered.as_bytes()),
            PagerState::Pager(mut pager) => {
                // standard input is closed first, so that the pager learns that this was all; its own end is no
                // business of ours
                let _ = pager.wait();
            }
        }
    }
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

/// Gives the pager some text. A reader who has seen enough closes the pipe: that is not a failure.
fn pass_on(pager: &mut Child, text: &str) -> bool {
    pager
        .stdin
        .as_mut()
        .is_some_and(|input| input.write_all(redact(text).as_bytes()).is_ok())
}
