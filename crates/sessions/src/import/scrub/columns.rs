//! Secrets below the name of their column: in the rows of a statement, and in tables.

use std::ops::Range;
use std::sync::LazyLock;

use regex::bytes;

use super::key_names::{HINTS, KeywordClass, class_of};
use super::rules::ascii;
use super::separators::value_at;
use super::shape::is_identifier;
use super::values::{FoundSecret, ValueSyntax, is_strong, push_if_secret};

/// `INSERT INTO users (name, password) VALUES ('bob', 'X')`: the value below the column.
pub(super) fn add_inserts(text: &str, found: &mut Vec<FoundSecret>) {
    static INSERT: LazyLock<Option<bytes::Regex>> = LazyLock::new(|| {
        ascii(r"(?i)\binto\s+\S+\s*\(([^()]{3,600})\)\s*values\s*((?:\([^()]{1,2000}\)[\s,]*)+)")
    });
    let is_insert = text.contains("INTO") || text.contains("into");
    let Some(regex) = INSERT.as_ref().filter(|_| is_insert) else {
        return;
    };
    for captures in regex.captures_iter(text.as_bytes()) {
        let (Some(columns), Some(rows)) = (captures.get(1), captures.get(2)) else {
            continue;
        };
        let classes: Vec<Option<KeywordClass>> = text
            .get(columns.range())
            .unwrap_or("")
            .split(',')
            .map(class_of)
            .collect();
        let mut at = rows.start();
        for row in text.get(rows.range()).unwrap_or("").split_inclusive(')') {
            let mut field = at + row.find('(').map_or(0, |open| open + 1);
            for (cell, class) in row
                .trim_start_matches([',', ' ', '\n', '('])
                .split(',')
                .zip(&classes)
            {
                if let Some(class) = class
                    && let Some((range, ValueSyntax::Quoted)) =
                        value_at(text, field, ValueSyntax::Bare)
                    && let Some(value) = text.get(range.clone())
                {
                    push_if_secret(text, *class, value, range, ValueSyntax::Quoted, found);
                }
                field += cell.len() + 1;
            }
            at += row.len();
        }
    }
}

/// Tables: a line of names, and below it rows with as many cells. As CSV, as consoles of databases print them, or of
/// Markdown. Only a value that can hardly be a word counts.
pub(super) fn add_tables(text: &str, found: &mut Vec<FoundSecret>) {
    let mut header: Option<Header> = None;
    let mut end = 0;
    for line in text.split_inclusive('\n') {
        let start = end;
        end += line.len();
        if header.is_some() && is_ruler(line) {
            continue;
        }
        let rows = header
            .as_ref()
            .map(|header| (header, cells(line, header.delimiter)));
        let Some((header, cells)) =
            rows.filter(|(header, cells)| header.classes.len() == cells.len())
        else {
            header = Header::of(line);
            continue;
        };
        for (class, cell) in header.classes.iter().zip(cells) {
            let value = line.get(cell.clone()).unwrap_or("");
            // A column of tokens may be one of words.
            let is_name = |class| class == KeywordClass::Token && is_identifier(value);
            let is_random = value.len() >= 6 && is_strong(value);
            if let Some(class) = class.filter(|class| is_random && !is_name(*class)) {
                let range = start + cell.start..start + cell.end;
                push_if_secret(text, class, value, range, ValueSyntax::Quoted, found);
            }
        }
    }
}

/// The names of the columns of a table, of which one at least names a secret.
struct Header {
    delimiter: char,
    /// `None` for a column of anything else.
    classes: Vec<Option<KeywordClass>>,
}

impl Header {
    fn of(line: &str) -> Option<Header> {
        const LONGEST: usize = 1000;
        let is_hinted = line.len() <= LONGEST && HINTS.as_ref()?.is_match(line);
        let delimiters = ['|', '\t', ',', ';'].into_iter().filter(|_| is_hinted);
        delimiters
            .filter(|delimiter| line.contains(*delimiter))
            .find_map(|delimiter| Header::with(line, delimiter))
    }

    fn with(line: &str, delimiter: char) -> Option<Header> {
        let cells = cells(line, delimiter).into_iter();
        let names: Vec<&str> = cells.filter_map(|cell| line.get(cell)).collect();
        let named = names.iter().filter(|name| !name.is_empty()).count();
        // Only frames leave the first and the last cell empty. Prose has a blank after a comma.
        let is_frame = delimiter == '|' && named + 2 == names.len();
        let is_prose = delimiter != '|' && line.contains(", ");
        // Tools write the number of a line before it, and a bar.
        let is_name = |name: &&str| {
            name.bytes().all(is_name_byte) && !name.starts_with(|c: char| c.is_ascii_digit())
        };
        let are_names = names.iter().all(is_name);
        let is_header = named >= 2 && (named == names.len() || is_frame) && are_names && !is_prose;
        let classes: Vec<Option<KeywordClass>> = names.into_iter().map(class_of).collect();
        (is_header && classes.iter().any(Option::is_some)).then_some(Header { delimiter, classes })
    }
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b' ')
}

/// The cells of a line, without blanks, quotes, and the number that a tool wrote before the line.
fn cells(line: &str, delimiter: char) -> Vec<Range<usize>> {
    let after = line
        .trim_start()
        .trim_start_matches(|c: char| c.is_ascii_digit());
    let is_numbered = after.len() < line.trim_start().len();
    let number_ends = ['→', '\t']
        .into_iter()
        .filter(|mark| is_numbered && *mark != delimiter);
    let rest = number_ends
        .filter_map(|mark| after.strip_prefix(mark))
        .next()
        .unwrap_or(line);
    let mut end = line.len() - rest.len();
    let split = rest.split(delimiter);
    split
        .map(|cell| {
            let start = end;
            end += cell.len() + delimiter.len_utf8();
            let quotes = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`');
            let value = cell.trim_matches(quotes);
            let before = cell.len() - cell.trim_start_matches(quotes).len();
            start + before..start + before + value.len()
        })
        .collect()
}

/// Whether a line only divides the names from the rows.
fn is_ruler(line: &str) -> bool {
    line.contains('-') && line.trim().chars().all(|c| "-+|:= ".contains(c))
}

#[cfg(test)]
mod tests {
    use super::super::passwords::passwords;

    #[test]
    fn values_below_the_name_of_a_secret_are_found() {
        let value = ["NeEP", "1ssoT^7"].concat();
        for table in [
            "user,password,role\napp,§,admin\n",
            "     1→user,password\n     2→\"app\",\"§\"\n",
            "| user | password |\n|---|---|\n| app | `§` |",
            " user | password \n------+----------\n app  | §\n(1 row)",
            "+------+----------+\n| user | password |\n+------+----------+\n| app  | § |\n",
            "id\tapi_key\n7\t§\n",
            "INSERT INTO t (a, password) VALUES (1, '§')",
        ] {
            let text = table.replace('§', &value);
            let found = passwords(&text);
            let values: Vec<&str> = found.iter().map(|one| &text[one.range.clone()]).collect();
            assert_eq!(values, [value.as_str()], "{text}");
        }
    }

    #[test]
    fn what_is_no_table_of_secrets_stays() {
        for text in [
            "token,lemma,pos\nrunning,run,VERB\nabbreviation2,abbr,NOUN\n",
            "user,password_length,role\napp,NeEP1ssoT7,admin\n",
            "user, password, role\nq7Rk2Zt9Lm, q7Rk2Zt9Lm, q7Rk2Zt9Lm\n",
            "| test | password |\n|---|---|\n| login | `None` |\n| login | required |",
            "password;\nq7Rk2Zt9Lm;\n",
            "   5|    pass\n   6|    \"\"\"q7Rk2Zt9Lm\"\"\"\n",
        ] {
            assert_eq!(passwords(text), [], "{text}");
        }
    }
}
