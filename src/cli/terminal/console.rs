//! The console: data to standard output, the rest to standard error; colour and width decided once.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::sync::mpsc;
use std::time::Duration;

use anstyle::{AnsiColor, Style};

use super::controls::{escape_json, own_color, visible};
use crate::cli::args::{ColorChoice, Common};
use crate::report::{Ink, Styled};

/// Where the program speaks. The only place that prints, with `progress`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Console {
    json: bool,
    quiet: bool,
    colors: bool,
    /// Whether colours may go to standard output too.
    colored_output: bool,
    width: usize,
    progress: bool,
}

/// What a stretch of text means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// A heading.
    Strong,
    /// Less important.
    Dim,
    /// Done, better.
    Good,
    /// Failed, worse.
    Bad,
    /// Worth a look.
    Warning,
    /// What to type next.
    Hint,
}

impl Console {
    /// Decides by flags, `NO_COLOR` and terminals.
    pub(crate) fn new(common: &Common) -> Console {
        let colors = match common.color {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => {
                io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
            }
        };
        let colored_output = colors && (common.color == ColorChoice::Always || io::stdout().is_terminal());
        let width = comfy_table::Table::new().width().map_or(100, usize::from).max(60);
        let progress = !common.no_progress && !common.quiet && io::stderr().is_terminal();
        Console { json: common.json, quiet: common.quiet, colors, colored_output, width, progress }
    }

    /// Whether standard output is to hold JSON alone.
    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    /// Whether colours are wanted.
    pub(crate) fn colors(&self) -> bool {
        self.colors
    }

    /// Columns to write in.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// Whether live bars may be drawn.
    pub(crate) fn draws_progress(&self) -> bool {
        self.progress
    }

    /// `text`, marked by what it means if colours are wanted.
    pub(crate) fn paint(&self, meaning: Meaning, text: &str) -> String {
        if !self.colors {
            return text.to_owned();
        }
        let style = match meaning {
            Meaning::Strong => Style::new().bold(),
            Meaning::Dim => Style::new().dimmed(),
            Meaning::Good => Style::new().fg_color(Some(AnsiColor::Green.into())),
            Meaning::Bad => Style::new().fg_color(Some(AnsiColor::Red.into())),
            Meaning::Warning => Style::new().fg_color(Some(AnsiColor::Yellow.into())),
            Meaning::Hint => Style::new().fg_color(Some(AnsiColor::Cyan.into())),
        };
        let [begin, end] = [style.render().to_string(), style.render_reset().to_string()].map(|code| own_color(&code));
        format!("{begin}{text}{end}")
    }

    /// Lines with meaning, painted.
    pub(crate) fn styled(&self, text: &Styled) -> String {
        text.paint(|ink, stretch| match ink {
            Ink::Plain => stretch.to_owned(),
            Ink::Strong => self.paint(Meaning::Strong, stretch),
            Ink::Dim => self.paint(Meaning::Dim, stretch),
            Ink::Good => self.paint(Meaning::Good, stretch),
            Ink::Bad => self.paint(Meaning::Bad, stretch),
            Ink::Warning => self.paint(Meaning::Warning, stretch),
        })
    }

    /// Text for people: the result of a command. With `--json` it goes to standard error.
    pub(crate) fn print(&self, text: &str) {
        if self.json {
            self.eprint(text);
        } else {
            write_line(&mut io::stdout().lock(), &self.for_output(text));
        }
    }

    /// `text` as standard output can take it: controls visible, and without colours where that is no terminal.
    pub(crate) fn for_output<'t>(&self, text: &'t str) -> Cow<'t, str> {
        visible(text, self.colored_output)
    }

    /// A remark beside the result; not with `--quiet`.
    pub(crate) fn note(&self, text: &str) {
        if !self.quiet {
            self.eprint(text);
        }
    }

    /// Something that must be read.
    pub(crate) fn eprint(&self, text: &str) {
        write_line(&mut io::stderr().lock(), &self.for_errors(text));
    }

    /// `text` as standard error can take it.
    pub(crate) fn for_errors<'t>(&self, text: &'t str) -> Cow<'t, str> {
        visible(text, self.colors)
    }

    /// A JSON document on standard output, if the user asked for JSON.
    pub(crate) fn json(&self, value: &impl serde::Serialize) {
        if self.json {
            match serde_json::to_string_pretty(value) {
                Ok(text) => write_line(&mut io::stdout().lock(), &escape_json(&text)),
                Err(error) => self.eprint(&format!("error: failed to write JSON: {error}")),
            }
        }
    }

    /// Ends the process at once. The last words are left unsaid if nobody takes them in: a terminal may be held.
    pub(crate) fn leave(self, code: u8, words: &'static str) -> ! {
        const PATIENCE: Duration = Duration::from_millis(200);
        let (sender, is_said) = mpsc::channel();
        std::thread::spawn(move || {
            // Below the bars, where there are some.
            self.eprint(&format!("\n{words}"));
            sender.send(())
        });
        let _ = is_said.recv_timeout(PATIENCE);
        std::process::exit(i32::from(code))
    }

    /// Bytes as they are, on standard output.
    pub(crate) fn raw(&self, bytes: &[u8]) {
        write_bytes(&mut io::stdout().lock(), bytes);
    }
}

/// Exit code of a program whose reader went away.
const CLOSED_PIPE: i32 = 0;

fn write_line(out: &mut impl Write, text: &str) {
    let end = if text.ends_with('\n') { "" } else { "\n" };
    write_bytes(out, format!("{text}{end}").as_bytes());
}

fn write_bytes(out: &mut impl Write, bytes: &[u8]) {
    if let Err(error) = out.write_all(bytes).and_then(|()| out.flush())
        && error.kind() == io::ErrorKind::BrokenPipe
    {
        // Whoever reads has seen enough: `compeval cache ls | head` is no failure.
        std::process::exit(CLOSED_PIPE);
    }
}
