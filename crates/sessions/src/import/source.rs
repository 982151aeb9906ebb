//! Reads the bytes of a log as records: JSON lines streamed one at a time, or one document. Damaged records are
//! counted.

use std::collections::VecDeque;
use std::io::{self, BufRead, Read};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::conversation::ImportIssue;
use super::detect::LogShape;
use base::text::without_half_surrogates;

/// Longer lines are skipped: no message is that long, and the tree of one must fit in memory.
pub(super) const LINE_LIMIT: usize = 32 << 20;
/// The most places of a file that are listed because they cannot be read. Of a large file of something else they would
/// fill the memory.
const MOST_LOSSES: usize = 1000;
/// Longer documents are refused.
pub(super) const DOCUMENT_LIMIT: u64 = 128 << 20;

/// The records of one file.
pub(super) struct Records {
    pub(super) file: PathBuf,
    pub(super) shape: LogShape,
    reader: Box<dyn BufRead>,
    line: u64,
    done: bool,
    losses: Vec<ImportIssue>,
    /// Places that could not be read and are not among `losses`.
    unlisted: usize,
    /// Records read ahead, with their line numbers.
    ahead: VecDeque<(u64, Value)>,
    /// The rest of the list that was read last.
    items: std::vec::IntoIter<Value>,
}

impl Records {
    pub(super) fn new(file: &Path, shape: LogShape, reader: Box<dyn BufRead>) -> Records {
        let (losses, ahead, items) = (Vec::new(), VecDeque::new(), Vec::new().into_iter());
        Records {
            file: file.to_owned(),
            shape,
            reader,
            line: 0,
            done: false,
            losses,
            unlisted: 0,
            ahead,
            items,
        }
    }

    /// How many places could not be read.
    pub(super) fn loss_count(&self) -> usize {
        self.losses.len() + self.unlisted
    }

    /// The places that could not be read; of very many the first, and the number of the others.
    pub(super) fn into_losses(mut self) -> Vec<ImportIssue> {
        if self.unlisted > 0 {
            let message = format!("{} more places could not be read", self.unlisted);
            self.losses.push(ImportIssue::of_file(&self.file, message));
        }
        self.losses
    }

    /// Notes something at the current line that could not be read.
    pub(super) fn note_loss(&mut self, message: impl Into<String>) {
        if self.losses.len() >= MOST_LOSSES {
            self.unlisted += 1;
            return;
        }
        let line = (self.line > 0).then_some(self.line);
        self.losses.push(ImportIssue {
            file: self.file.clone(),
            line,
            message: message.into(),
        });
    }

    /// Reads up to `count` records ahead, for a look at them.
    pub(super) fn look_ahead(&mut self, count: usize) -> (LogShape, Vec<&Value>) {
        while self.ahead.len() < count {
            let Some(value) = self.read_value() else {
                break;
            };
            self.ahead.push_back((self.line, value));
        }
        (
            self.shape,
            self.ahead.iter().map(|(_, value)| value).collect(),
        )
    }

    /// The next record; for a document the whole of it.
    pub(super) fn next(&mut self) -> Option<Value> {
        if let Some((line, value)) = self.ahead.pop_front() {
            self.line = line;
            return Some(value);
        }
        self.read_value()
    }

    fn read_value(&mut self) -> Option<Value> {
        match self.shape {
            LogShape::Lines => self.next_line_value(),
            LogShape::Document if !self.done => self.read_document(),
            LogShape::Document | LogShape::Text => None,
        }
    }

    /// The next record, or the next item of a list.
    pub(super) fn next_item(&mut self) -> Option<Value> {
        loop {
            if let Some(item) = self.items.next() {
                return Some(item);
            }
            let items = match self.next()? {
                Value::Array(items) => items,
                other => vec![other],
            };
            self.items = items.into_iter();
        }
    }

    fn next_line_value(&mut self) -> Option<Value> {
        loop {
            let text = self.next_text()?;
            let trimmed = text.trim_start_matches('\u{feff}').trim();
            if trimmed.is_empty() {
                continue;
            }
            match parse(trimmed) {
                Ok(value) => return Some(value),
                Err(error) => self.note_bad_line(&error),
            }
        }
    }

    fn note_bad_line(&mut self, error: &serde_json::Error) {
        let what = if error.is_eof() {
            "the line is cut off"
        } else {
            "the line is no JSON"
        };
        let error = error.to_string();
        let reason = error.split(" at line ").next().unwrap_or(&error);
        self.note_loss(format!(
            "{what} ({reason}); expected one JSON value a line; it was skipped"
        ));
    }

    /// The next line as text. One that is too long is counted and skipped.
    pub(super) fn next_text(&mut self) -> Option<String> {
        loop {
            let mut bytes = Vec::new();
            match read_bounded(&mut self.reader, &mut bytes) {
                Ok(0) => return None,
                Ok(length) => {
                    self.line += 1;
                    if length <= LINE_LIMIT {
                        return Some(self.decode(bytes));
                    }
                    let limit = LINE_LIMIT >> 20;
                    self.note_loss(format!(
                        "the line is longer than {limit} MB; it was skipped"
                    ));
                }
                Err(error) => {
                    self.note_loss(format!("reading stopped after this line: {error}"));
                    return None;
                }
            }
        }
    }

    fn decode(&mut self, bytes: Vec<u8>) -> String {
        String::from_utf8(bytes).unwrap_or_else(|error| {
            let at = error.utf8_error().valid_up_to();
            self.note_loss(format!(
                "invalid UTF-8 at byte {at}; the bytes were replaced by U+FFFD"
            ));
            String::from_utf8_lossy(error.as_bytes()).into_owned()
        })
    }

    fn read_document(&mut self) -> Option<Value> {
        self.done = true;
        let mut bytes = Vec::new();
        if let Err(error) = self
            .reader
            .by_ref()
            .take(DOCUMENT_LIMIT + 1)
            .read_to_end(&mut bytes)
        {
            self.note_loss(format!("reading stopped: {error}"));
        }
        let text = self.decode(bytes);
        let text = text.trim_start_matches('\u{feff}').trim();
        match parse(text) {
            Ok(value) => Some(value),
            // Several values: these were lines after all.
            Err(error)
                if error.to_string().starts_with("trailing characters") && error.line() > 1 =>
            {
                self.shape = LogShape::Lines;
                self.reader = Box::new(io::Cursor::new(text.to_owned()));
                self.next_line_value()
            }
            Err(error) => self.salvage(text, &error),
        }
    }

    /// Reads the part before the damage, with its brackets closed.
    fn salvage(&mut self, text: &str, error: &serde_json::Error) -> Option<Value> {
        self.line = error.line() as u64;
        let reason = error.to_string();
        let reason = reason.split(" at line ").next().unwrap_or(&reason);
        let column = error.column();
        let start: usize = text
            .split_inclusive('\n')
            .take(error.line().saturating_sub(1))
            .map(str::len)
            .sum();
        let damage = if error.is_eof() {
            text.len()
        } else {
            (start + column).saturating_sub(1).min(text.len())
        };
        let value =
            close_brackets(text, damage).and_then(|closed| serde_json::from_str(&closed).ok());
        let kept = if value.is_some() {
            "everything before it was read"
        } else {
            "nothing could be read"
        };
        self.note_loss(format!(
            "the JSON document is damaged at column {column} ({reason}); {kept}"
        ));
        value
    }
}

/// The name of the conversations of `file`: its stem, in characters that are allowed in file names everywhere.
pub(super) fn stem_of(file: &Path) -> String {
    let name = file
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    let stem = name
        .split('.')
        .find(|part| !part.is_empty())
        .unwrap_or("log");
    plain_name(stem)
}

/// The most characters of a name in a project.
pub(super) const LONGEST_NAME: usize = 64;

/// `text` in letters, digits, `-` and `_`, as a name in a project; never empty.
pub(super) fn plain_name(text: &str) -> String {
    let mapped: String = text
        .chars()
        .map(|c| {
            if c.is_alphanumeric() || c == '_' {
                c
            } else {
                '-'
            }
        })
        .take(LONGEST_NAME)
        .collect();
    let trimmed = mapped.trim_start_matches(['-', '_']).trim_end_matches('-');
    if trimmed.is_empty() {
        "log".to_owned()
    } else {
        trimmed.to_owned()
    }
}

/// Reads to the end of a line and returns its length. Of a line over the limit, `into` never holds more than one buffer
/// beyond the limit.
fn read_bounded(reader: &mut impl BufRead, into: &mut Vec<u8>) -> io::Result<usize> {
    let mut length = 0;
    loop {
        let available = reader.fill_buf()?;
        if available.is_empty() {
            return Ok(length);
        }
        let end = available.iter().position(|&byte| byte == b'\n');
        let used = end.map_or(available.len(), |at| at + 1);
        if length <= LINE_LIMIT {
            into.extend(available.iter().take(used));
        } else {
            into.clear();
        }
        length += used;
        reader.consume(used);
        if end.is_some() {
            return Ok(length);
        }
    }
}

/// Parses JSON; halves of surrogate pairs, which models and cut strings leave behind, become U+FFFD.
fn parse(text: &str) -> Result<Value, serde_json::Error> {
    serde_json::from_str(&without_half_surrogates(text))
}

/// The text up to the last complete value before `damage`, with the open brackets closed.
fn close_brackets(text: &str, damage: usize) -> Option<String> {
    let mut open: Vec<u8> = Vec::new();
    let mut last: Option<(usize, Vec<u8>)> = None;
    let (mut in_string, mut escaped) = (false, false);
    for (at, &byte) in text.as_bytes().iter().enumerate().take(damage) {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => in_string = true,
            b'{' => open.push(b'}'),
            b'[' => open.push(b']'),
            b'}' | b']' => {
                open.pop();
                last = Some((at + 1, open.clone()));
            }
            b',' => last = Some((at, open.clone())),
            _ => {}
        }
    }
    let (end, open) = last?;
    let mut closed = text.get(..end)?.to_owned();
    closed.extend(open.iter().rev().map(|&byte| char::from(byte)));
    Some(closed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    fn records(shape: LogShape, bytes: &[u8]) -> (Vec<Value>, Vec<ImportIssue>) {
        let mut records = Records::new(
            Path::new("a.jsonl"),
            shape,
            Box::new(Cursor::new(bytes.to_vec())),
        );
        let values = std::iter::from_fn(|| records.next()).collect();
        (values, records.into_losses())
    }

    #[test]
    fn broken_lines_are_counted_and_the_rest_is_read() {
        let (values, losses) = records(
            LogShape::Lines,
            b"\xef\xbb\xbf{\"a\":1}\r\n\nnope\n{\"a\":\"\xff\"}\n{\"a\":",
        );
        assert_eq!(values.len(), 2);
        let lines: Vec<Option<u64>> = losses.iter().map(|loss| loss.line).collect();
        assert_eq!(lines, [Some(3), Some(4), Some(5)]);
        assert!(
            losses[0].message.contains("no JSON") && losses[2].message.contains("cut off"),
            "{losses:?}"
        );
    }

    #[test]
    fn a_line_that_never_ends_is_skipped_without_being_held() {
        let mut bytes = vec![b'x'; LINE_LIMIT + 5];
        bytes.extend(b"\n{\"a\":1}\n");
        let (values, losses) = records(LogShape::Lines, &bytes);
        assert_eq!((values.len(), losses.len()), (1, 1));
        assert_eq!(losses[0].line, Some(1));
    }

    #[test]
    fn a_damaged_document_is_read_up_to_the_damage() {
        let (values, losses) = records(
            LogShape::Document,
            b"{\"m\":[{\"a\":\"x, y\"},{\"a\":2},{\"a\":\"cut of",
        );
        assert_eq!(values[0]["m"].as_array().map(Vec::len), Some(2));
        assert_eq!(values[0]["m"][1]["a"], 2);
        assert_eq!(losses.len(), 1);
        assert!(records(LogShape::Document, b"{").0.is_empty());
    }

    #[test]
    fn half_surrogates_do_not_cost_a_line() {
        let (values, losses) = records(
            LogShape::Lines,
            br#"{"a":"x\ud83d y \ud83d\ude00 \\ud83d"}"#,
        );
        assert_eq!(values[0]["a"], "x\u{fffd} y \u{1f600} \\ud83d");
        assert_eq!(losses, []);
    }
}
