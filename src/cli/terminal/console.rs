//! The console: data goes to standard output, everything else to standard error. Color is decided once.
//!
//! Replies of models, errors of providers, file names and fixtures are printed, and any of them may hold sequences that
//! move the cursor, rename the window or write the clipboard (OSC 52), or bidirectional controls that show one text
//! and paste another. So no control character but the line break and the tab reaches a stream, whether or not it
//! is a terminal: they are shown as visible escapes. Colours of our own are written with [`MARK`] in place of the escape
//! character until the last step, which distinguishes them from an escape character that came with a text.

use std::borrow::Cow;
use std::fmt;
use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};
use std::sync::{OnceLock, mpsc};
use std::time::Duration;

use clap::ColorChoice;

use crate::cli::args::Common;
use crate::report::{
    COLOR_MARK as MARK, Section, TextStyle, TextTable, labelled, styled_sections, wrap_lines,
};
use base::files::typed_words;
use base::locale::Locale;
use base::redaction::redact_bytes;
use base::text::{is_shown_escaped, shell_word};

/// Columns of what is printed into a file or a pipe.
const UNKNOWN_WIDTH: usize = 100;

/// Standard output and standard error. Only this file, `progress` and the pager print. By default text without color, JSON or
/// progress, for output before the arguments are parsed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Console {
    /// Whether standard output holds only JSON.
    pub(crate) is_json: bool,
    /// Whether to print nothing but errors and requested data.
    pub(crate) is_quiet: bool,
    pub(crate) colors: bool,
    /// Whether colours may go to standard output too.
    colored_output: bool,
    /// Whether to draw live bars.
    pub(crate) draws_progress: bool,
    /// The folder and the file of the project, as flags; empty where commands find it without them.
    place: &'static str,
    /// The language of what a reader of results sees: the one on the command line, else that of the project.
    pub(crate) locale: Locale,
}

impl Console {
    /// Decides by flags, `NO_COLOR`, `TERM` and terminals.
    pub(crate) fn new(common: &Common, locale: Locale) -> Console {
        // A dumb terminal, such as the shell of an editor, shows control sequences as text.
        let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let draws = io::stderr().is_terminal() && !is_dumb;
        let colors = match common.color {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => draws && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty()),
        };
        let colored_output =
            colors && (common.color == ColorChoice::Always || io::stdout().is_terminal());
        let draws_progress = !common.no_progress && !common.quiet && draws;
        Console {
            is_json: common.json,
            is_quiet: common.quiet,
            colors,
            colored_output,
            draws_progress,
            // There is one console for the whole process.
            place: Box::leak(place_flags(common).into_boxed_str()),
            locale,
        }
    }

    /// Columns of the terminal as it is now: it may have been resized during a run.
    pub(crate) fn width(&self) -> usize {
        width_of(terminal_size::terminal_size_of(io::stdout()))
    }

    /// The same; `None` for a file or a pipe, which have no width.
    pub(crate) fn columns(&self) -> Option<usize> {
        io::stdout().is_terminal().then(|| self.width())
    }

    /// The same; wider than any line for a file or a pipe.
    pub(crate) fn whole_width(&self) -> usize {
        self.columns().unwrap_or(usize::MAX)
    }

    /// Sentences as a terminal shows them: broken between words. A file or a pipe gets whole lines, which scripts search.
    pub(crate) fn prose(&self, text: &str) -> String {
        self.columns()
            .map_or_else(|| text.to_owned(), |columns| wrap_lines(text, columns))
    }

    /// The same for standard error, which may be a file beside a terminal.
    pub(crate) fn error_prose(&self, text: &str) -> String {
        match io::stderr().is_terminal() {
            true => wrap_lines(
                text,
                width_of(terminal_size::terminal_size_of(io::stderr())),
            ),
            false => text.to_owned(),
        }
    }

    /// A table in the width of the terminal.
    pub(crate) fn table(&self, table: &TextTable) -> String {
        table.render(self.width()).trim_end().to_owned()
    }

    /// Sections in the width of the terminal. A file or a pipe gets whole lines, which scripts search.
    pub(crate) fn document(&self, sections: &[Section]) -> String {
        let text = styled_sections(sections, self.whole_width());
        text.trim_end().to_owned()
    }

    /// The result of a command as text; with `--json` it goes to standard error.
    pub(crate) fn print(&self, text: &str) {
        if self.is_json {
            self.eprint(text);
        } else {
            output(&line(&self.for_output(text)));
        }
    }

    /// What a command did, as [`Console::print`] prints it; dropped by `--quiet`.
    pub(crate) fn inform(&self, text: &str) {
        if !self.is_quiet {
            self.print(text);
        }
    }

    /// `text` as standard output can take it: controls visible, and without colours where that is not a terminal.
    pub(crate) fn for_output<'t>(&self, text: &'t str) -> Cow<'t, str> {
        visible(text, self.colored_output)
    }

    /// A note on standard error; dropped by `--quiet`.
    pub(crate) fn note(&self, text: &str) {
        if !self.is_quiet {
            self.eprint(text);
        }
    }

    /// An error or a warning on standard error, also with `--quiet`.
    pub(crate) fn eprint(&self, text: &str) {
        let _ = write_bytes(&mut io::stderr().lock(), &line(&visible(text, self.colors)));
    }

    /// Sentences after a word in a style, as [`Console::error_prose`] breaks them.
    pub(crate) fn labelled_prose(
        &self,
        style: TextStyle,
        label: &str,
        text: impl fmt::Display,
    ) -> String {
        self.error_prose(&labelled(style, label, text))
    }

    /// The line that says what to do about an error.
    pub(crate) fn help_line(&self, text: impl fmt::Display) -> String {
        self.labelled_prose(TextStyle::Hint, "help:", text)
    }

    /// The command to type next, on standard error; dropped by `--quiet`.
    pub(crate) fn next(&self, command: impl fmt::Display) {
        self.note(&self.next_line(Locale::En, command));
    }

    /// The command to type next. It names the project where this one did.
    pub(crate) fn next_line(&self, locale: Locale, command: impl fmt::Display) -> String {
        let here = format!("compeval{} ", self.place);
        let command = command.to_string();
        let command = match command.contains(self.place) {
            true => command,
            false => command.replacen("compeval ", &here, 1),
        };
        labelled(TextStyle::Hint, locale.pick("next:", "下一步："), command)
    }

    /// A warning after a word, on standard error.
    pub(crate) fn warn(&self, label: &str, text: impl fmt::Display) {
        self.eprint(&self.labelled_prose(TextStyle::Warning, label, text));
    }

    /// An error after a word, on standard error.
    pub(crate) fn error(&self, label: &str, text: impl fmt::Display) {
        self.eprint(&self.labelled_prose(TextStyle::Bad, label, text));
    }

    /// The result of a command: `json` if the user asked for JSON, else what `print` prints.
    pub(crate) fn report(&self, json: &impl serde::Serialize, print: impl FnOnce()) {
        if self.is_json {
            self.json(json)
        } else {
            print()
        }
    }

    /// A JSON document on standard output, if the user asked for JSON.
    pub(crate) fn json(&self, value: &impl serde::Serialize) {
        if self.is_json {
            match serde_json::to_string_pretty(value) {
                Ok(text) => output(&line(&escape_json(&text))),
                Err(error) => self.eprint(&format!("error: failed to write JSON: {error}")),
            }
        }
    }

    /// Exits at once. The message is dropped if the terminal does not accept it in time: it may be stopped.
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
        output(bytes);
    }

    /// Why standard output could not be written, if that happened; then the command failed, whatever else it did. A
    /// reader who has seen enough and closes the pipe is not a failure: `compeval cache ls | head`.
    pub(crate) fn output_error() -> Option<&'static io::Error> {
        OUTPUT_ERROR
            .get()
            .filter(|error| error.kind() != io::ErrorKind::BrokenPipe)
    }
}

/// The flags that say where the project is, each after a space.
fn place_flags(common: &Common) -> String {
    let given = [("-C", &common.directory), ("-c", &common.config)];
    let flags = given.into_iter().filter_map(|(flag, place)| {
        let place = place.as_ref()?.display().to_string();
        Some(format!(" {flag} {}", shell_word(&place)))
    });
    flags.collect()
}

/// The words of this command as they were typed, each as one word of a shell, without those `left_out`, and without the
/// place of the project: that is put into every command that is shown.
pub(crate) fn typed_again(left_out: &[&str]) -> Vec<String> {
    let (mut typed, mut kept) = (typed_words(), Vec::new());
    while let Some(word) = typed.next() {
        if ["-C", "-c", "--directory", "--config"].contains(&word.as_str()) {
            typed.next();
            continue;
        }
        let mut places = ["-C", "-c", "--directory=", "--config="].iter();
        if !places.any(|flag| word.starts_with(flag)) && !left_out.contains(&word.as_str()) {
            kept.push(shell_word(&word));
        }
    }
    kept
}

/// The first error of standard output. After it nothing more is written: the reader has an incomplete text.
static OUTPUT_ERROR: OnceLock<io::Error> = OnceLock::new();

/// The width of lines on a terminal of this size.
fn width_of(size: Option<(terminal_size::Width, terminal_size::Height)>) -> usize {
    size.map_or(UNKNOWN_WIDTH, |(columns, _)| usize::from(columns.0))
        .clamp(60, 140)
}

fn line(text: &str) -> Vec<u8> {
    let end = if text.ends_with('\n') { "" } else { "\n" };
    format!("{text}{end}").into_bytes()
}

fn output(bytes: &[u8]) {
    if OUTPUT_ERROR.get().is_none()
        && let Err(error) = write_bytes(&mut io::stdout().lock(), bytes)
    {
        let _ = OUTPUT_ERROR.set(error);
    }
}

/// Standard error for the log, which is written past the console.
pub(crate) struct LogWriter;

impl Write for LogWriter {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        io::stderr().lock().write_all(&redact_bytes(line))?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().lock().flush()
    }
}

fn write_bytes(out: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    out.write_all(&redact_bytes(bytes))
        .and_then(|()| out.flush())
}

/// Escape sequences that come from us, written so that [`visible`] lets colours among them through.
pub(crate) fn own_color(text: &str) -> String {
    text.replace('\u{1b}', MARK.encode_utf8(&mut [0; 4]))
}

/// Text that is safe to print: controls visible, colours of our own switched on or left out.
pub(crate) fn visible(text: &str, colors: bool) -> Cow<'_, str> {
    if !text.chars().any(|c| c == MARK || is_shown_escaped(c)) {
        return text.into();
    }
    let mut shown = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        rest = rest.get(c.len_utf8()..).unwrap_or_default();
        if c == MARK {
            if let Some((code, after)) = color_code(rest) {
                if colors {
                    let _ = write!(shown, "\u{1b}[{code}m");
                }
                rest = after;
            }
        } else if is_shown_escaped(c) {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    shown.into()
}

/// JSON with the controls escaped that JSON itself leaves as they are: DEL, C1, and those that change the direction of
/// text. What is left of C0 is layout.
pub(crate) fn escape_json(json: &str) -> Cow<'_, str> {
    let is_raw = |c: char| c >= '\u{7f}' && is_shown_escaped(c);
    if !json.chars().any(is_raw) {
        return json.into();
    }
    let mut escaped = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        if is_raw(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(escaped, "\\u{unit:04x}");
            }
        } else {
            escaped.push(c);
        }
    }
    escaped.into()
}

/// The code of a colour sequence whose [`MARK`] was just read, and what follows it.
fn color_code(text: &str) -> Option<(&str, &str)> {
    let (code, after) = text.strip_prefix('[')?.split_once('m')?;
    code.chars()
        .all(|c| c.is_ascii_digit() || c == ';')
        .then_some((code, after))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nothing_that_steers_a_terminal_gets_through() {
        assert_eq!(
            visible("a\u{1b}]52;c;aGk=\u{7}b", true),
            "a\\u{1b}]52;c;aGk=\\u{7}b"
        );
        assert_eq!(
            visible("x\u{9b}2J\u{202e}y\r", true),
            "x\\u{9b}2J\\u{202e}y\\r"
        );
        assert_eq!(visible("two\n\tlines", true), "two\n\tlines");
    }

    #[test]
    fn colours_of_our_own_come_through_and_nothing_else_behind_their_mark() {
        let red = format!("{MARK}[31mbad{MARK}[0m");
        assert_eq!(visible(&red, true), "\u{1b}[31mbad\u{1b}[0m");
        assert_eq!(visible(&red, false), "bad");
        assert_eq!(
            visible(&format!("{MARK}[2J{MARK}]52;c;x"), true),
            "[2J]52;c;x"
        );
    }

    #[test]
    fn json_keeps_its_value() {
        let text = "a\u{9b}\u{202e}\u{1b}\u{7f}\u{e0041}";
        let json = serde_json::to_string(text).unwrap();
        let escaped = escape_json(&json);
        assert!(!escaped.chars().any(is_shown_escaped));
        assert_eq!(serde_json::from_str::<String>(&escaped).unwrap(), text);
    }

    proptest! {
        #[test]
        fn no_escape_character_is_ever_left_without_colors(text in "[\\PC\u{1b}\u{FDD0}\\[0-9;m\u{9b}]{0,40}") {
            prop_assert!(!visible(&text, false).chars().any(|c| c == MARK || is_shown_escaped(c)));
        }
    }
}
