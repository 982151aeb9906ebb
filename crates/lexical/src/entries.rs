//! The entries of a context: the sentences, bullets, rows and values that each say one thing, with what stands above
//! them.
//!
//! Headings, lead-ins, header rows and the keys of JSON belong to the entries below them: "## Port" over "- 9090" says
//! what 9090 is. Verbatim text is cut by the same rule as a summary.

use serde_json::Value;

use crate::claims::statements;
use sessions::transcript::fold;

/// One statement of a context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContextEntry {
    /// As written.
    pub text: String,
    /// Folded for the search of facts.
    pub folded: String,
    /// The headings, lead-ins, header rows or keys above it, folded.
    pub lead: String,
}

/// The statements of a context, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContextEntries {
    list: Vec<ContextEntry>,
    /// The sentences, for the rules that tell current values from former ones.
    statements: String,
}

/// A line of at least this many characters may have been broken for its width.
const WRAPPED_LINE: usize = 60;

impl ContextEntries {
    /// Cuts `text`, a context as written.
    pub fn from_text(text: &str) -> ContextEntries {
        let mut reader = EntryReader::default();
        if !reader.read_json(text) {
            text.lines().for_each(|line| reader.read_line(line));
            reader.end_paragraph();
        }
        ContextEntries {
            list: reader.entries,
            statements: statements(text),
        }
    }

    /// The entries, in order.
    pub fn list(&self) -> &[ContextEntry] {
        &self.list
    }

    /// All sentences, folded, a line each.
    pub fn statements(&self) -> &str {
        &self.statements
    }
}

#[derive(Default)]
struct EntryReader {
    entries: Vec<ContextEntry>,
    /// Headings, by level.
    headings: Vec<(usize, String)>,
    /// The last line that ends in a colon, for the bullets below it.
    lead_in: String,
    /// The bullets above the present line, by indentation.
    bullets: Vec<(usize, String)>,
    header_row: Option<String>,
    paragraph: String,
}

impl EntryReader {
    fn read_line(&mut self, line: &str) {
        let bare = line.trim();
        let indentation = line.len() - line.trim_start().len();
        if !bare.starts_with('|') {
            self.header_row = None;
        }
        if indentation == 0 && !bare.is_empty() && bullet(bare).is_none() {
            self.bullets.clear();
        }
        if bare.is_empty() {
            self.end_paragraph();
        } else if let Some(heading) = heading(bare) {
            self.end_paragraph();
            self.headings.retain(|(level, _)| *level < heading.0);
            self.headings.push((heading.0, heading.1.to_owned()));
            (self.lead_in, self.bullets) = (String::new(), Vec::new());
        } else if bare.starts_with('|') {
            self.end_paragraph();
            self.read_row(bare);
        } else if let Some(bullet) = bullet(bare) {
            self.end_paragraph();
            self.bullets.retain(|(outer, _)| *outer < indentation);
            self.push(bullet);
            self.bullets.push((indentation, bullet.to_owned()));
        } else if !self.read_json(bare) {
            self.read_prose(bare);
        }
    }

    /// Reads a line of a paragraph. It continues the line before only if that one is long and this one begins in lower
    /// case.
    fn read_prose(&mut self, line: &str) {
        let goes_on = self
            .paragraph
            .rsplit('\n')
            .next()
            .is_some_and(|last| last.chars().count() >= WRAPPED_LINE)
            && line.starts_with(|c: char| c.is_lowercase() || matches!(c, '`' | '('));
        if !goes_on {
            self.end_paragraph();
        }
        if !self.paragraph.is_empty() {
            self.paragraph.push('\n');
        }
        self.paragraph.push_str(line);
    }

    fn end_paragraph(&mut self) {
        let paragraph = std::mem::take(&mut self.paragraph);
        if paragraph.is_empty() {
            return;
        }
        let is_lead = paragraph
            .trim_end_matches(['*', '`'])
            .ends_with([':', '：']);
        self.lead_in.clear();
        sentences(&paragraph).for_each(|sentence| self.push(sentence));
        if is_lead {
            self.lead_in = paragraph;
        }
    }

    fn read_row(&mut self, row: &str) {
        match &self.header_row {
            None => self.header_row = Some(row.to_owned()),
            Some(_) if row.chars().all(|c| matches!(c, '|' | '-' | ':' | ' ')) => {}
            Some(_) => self.push(row),
        }
    }

    fn push(&mut self, text: &str) {
        let headings = self.headings.iter().map(|(_, heading)| heading.as_str());
        let bullets = self.bullets.iter().map(|(_, bullet)| bullet.as_str());
        let above: Vec<&str> = headings
            .chain([self.lead_in.as_str()])
            .chain(bullets)
            .chain(self.header_row.as_deref())
            .collect();
        self.entries.push(ContextEntry {
            text: text.to_owned(),
            folded: fold(text),
            lead: fold(&above.join("\n")),
        });
    }

    /// Whether `text` is JSON; then each value of it is an entry under its keys.
    fn read_json(&mut self, text: &str) -> bool {
        let bare = text.trim();
        let value = bare
            .starts_with(['{', '['])
            .then(|| serde_json::from_str::<Value>(bare).ok())
            .flatten();
        value.inspect(|value| self.read_value(value, "")).is_some()
    }

    fn read_value(&mut self, value: &Value, path: &str) {
        match value {
            Value::Object(map) => map
                .iter()
                .for_each(|(key, value)| self.read_value(value, &format!("{path} {key}"))),
            Value::Array(items) => items.iter().for_each(|item| self.read_value(item, path)),
            Value::String(text) => {
                let lead = fold(path);
                let inner = ContextEntries::from_text(text).list;
                self.entries.extend(inner.into_iter().map(|entry| {
                    let lead = format!("{lead} {}", entry.lead);
                    ContextEntry { lead, ..entry }
                }));
            }
            Value::Number(_) | Value::Bool(_) => {
                let text = value.to_string();
                self.entries.push(ContextEntry {
                    folded: fold(&text),
                    text,
                    lead: fold(path),
                });
            }
            Value::Null => {}
        }
    }
}

fn heading(line: &str) -> Option<(usize, &str)> {
    let text = line.trim_start_matches('#');
    let level = line.len() - text.len();
    let is_bold = line.len() > 4 && line.starts_with("**") && line.ends_with("**");
    if is_bold {
        return Some((7, line.trim_matches('*')));
    }
    ((1..=6).contains(&level) && text.starts_with(' ')).then(|| (level, text.trim()))
}

fn bullet(line: &str) -> Option<&str> {
    let number = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let rest = if number.len() < line.len() {
        number.strip_prefix(['.', ')'])
    } else {
        line.strip_prefix(['-', '*', '•'])
    };
    rest.and_then(|rest| rest.strip_prefix(' ')).map(str::trim)
}

/// Sentences that may go on in the next line and be of one word, unlike those of [`base::words::sentences`]: an entry is
/// one statement, however it is broken or short.
fn sentences(text: &str) -> impl Iterator<Item = &str> {
    let parts = text.split_inclusive(['。', '！', '？']).flat_map(|part| {
        let mut ends: Vec<usize> = [". ", "! ", "? ", ".\n"]
            .iter()
            .flat_map(|stop| part.match_indices(stop).map(|(at, _)| at + 1))
            .collect();
        ends.sort_unstable();
        ends.push(part.len());
        let mut start = 0;
        ends.into_iter()
            .filter_map(move |end| part.get(std::mem::replace(&mut start, end)..end))
            .collect::<Vec<_>>()
    });
    parts.map(str::trim).filter(|sentence| !sentence.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_above_belongs_to_an_entry() {
        let text = "# Ports\nThe service:\n- main\n  - 9090\n- other\n\n| key | value |\n|---|---|\n| port | 9090 |\n\nOne. Two\nthree";
        let entries: Vec<(String, String)> = ContextEntries::from_text(text)
            .list
            .into_iter()
            .map(|entry| (entry.folded, entry.lead))
            .collect();
        let of = |text: &str| {
            entries
                .iter()
                .find(|(folded, _)| folded == text)
                .map(|(_, lead)| lead.as_str())
        };
        assert_eq!(of("9090"), Some("ports the service: main"));
        assert_eq!(
            of("| port | 9090 |"),
            Some("ports the service: | key | value |")
        );
        assert!(of("one.").is_some() && of("two").is_some() && of("three").is_some());
        let json = ContextEntries::from_text(
            r#"{"service": {"port": 9090, "notes": ["it is down. It was up"]}}"#,
        );
        assert!(
            json.list
                .iter()
                .any(|entry| entry.folded == "9090" && entry.lead == "service port")
        );
        assert_eq!(json.list.len(), 3, "{json:?}");
    }

    #[test]
    fn a_line_broken_for_its_width_is_one_sentence() {
        let text = "The port of the service that the proxy stands in front of is\nstill 9090";
        assert_eq!(ContextEntries::from_text(text).list.len(), 1);
    }
}
