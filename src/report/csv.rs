//! The graded cells as CSV: a line for each cell, with the same names as in `cells.jsonl`.

use serde_json::{Map, Value};

use crate::judge::Dimension;
use crate::results::Row;

/// The first columns; the dimensions come next, then the others in alphabetical order.
const LEADING: [&str; 10] = [
    "label", "fixture", "point", "method", "run", "probe", "type", "question", "answer", "overall",
];

/// The header line.
///
/// # Errors
/// Only those of the `csv` crate's buffer.
pub fn csv_header(first: &Row) -> Result<Vec<u8>, csv::Error> {
    write_line(columns("", first).into_iter().map(|(name, _)| name))
}

/// The line of one row.
///
/// # Errors
/// Only those of the `csv` crate's buffer.
pub fn csv_line(label: &str, row: &Row) -> Result<Vec<u8>, csv::Error> {
    write_line(columns(label, row).into_iter().map(|(_, cell)| cell))
}

/// The columns of a row: the label, then the keys of `cells.jsonl`. An object gives a column for each of its keys, such
/// as `usd.answer`, and so does `context_facts` if it is null. Each dimension is a column of its own name. Lists are
/// JSON.
fn columns(label: &str, row: &Row) -> Vec<(String, String)> {
    let mut columns = vec![("label".to_owned(), label.to_owned())];
    // `Row` has no key that JSON cannot write.
    let Ok(Value::Object(fields)) = serde_json::to_value(row) else {
        return columns;
    };
    for (key, value) in fields {
        match value {
            Value::Object(scores) if key == "dimensions" => {
                columns.extend(Dimension::ALL.map(|dimension| {
                    let name = dimension.name();
                    (
                        name.to_owned(),
                        cell_text(scores.get(name).unwrap_or(&Value::Null)),
                    )
                }));
            }
            Value::Null if key == "context_facts" => {
                columns.extend(
                    ["facts", "stale"].map(|part| (format!("{key}.{part}"), String::new())),
                );
            }
            Value::Object(group) => columns.extend(grouped(&key, &group)),
            value => columns.push((key, cell_text(&value))),
        }
    }
    let leading = LEADING
        .into_iter()
        .chain(Dimension::ALL.map(Dimension::name));
    columns.sort_by_cached_key(|(name, _)| {
        leading
            .clone()
            .position(|key| key == name)
            .unwrap_or(usize::MAX)
    });
    columns
}

fn grouped(key: &str, group: &Map<String, Value>) -> Vec<(String, String)> {
    group
        .iter()
        .map(|(part, value)| (format!("{key}.{part}"), cell_text(value)))
        .collect()
}

fn cell_text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text_cell(text),
        other => other.to_string(),
    }
}

/// A text as a cell. A spreadsheet would compute one that begins like a formula, so it gets an apostrophe in front.
fn text_cell(text: &str) -> String {
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    if is_formula {
        format!("'{text}")
    } else {
        text.to_owned()
    }
}

fn write_line(cells: impl Iterator<Item = String>) -> Result<Vec<u8>, csv::Error> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(cells.collect::<Vec<_>>())?;
    writer
        .into_inner()
        .map_err(|error| csv::Error::from(error.into_error()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::fakes::row;

    #[test]
    fn no_text_of_a_model_is_a_formula() {
        let mut row = row("f", "m", 1, &[(Dimension::Accuracy, 4.0)]);
        row.answer = "=HYPERLINK(\"http://a\")".to_owned();
        row.question = "+1 and -1".to_owned();
        row.overall = Some(-1.0);
        let line = String::from_utf8(csv_line("l", &row).unwrap()).unwrap();
        assert!(
            line.contains("\"'=HYPERLINK(") && line.contains("'+1 and -1"),
            "{line}"
        );
        assert!(line.contains(",-1.0,"), "numbers stay numbers: {line}");
    }
}
