//! Old and new values that only the layout tells apart: in tables with a column for each, and in diffs.
//!
//! Rules that read words cannot see that a value is in the column `before`. So a word that says it is put before the value.

/// Headers of columns with old values.
const OLD: [&str; 12] = [
    "before",
    "was",
    "old",
    "old value",
    "previous",
    "previously",
    "former",
    "from",
    "旧",
    "旧值",
    "之前",
    "原值",
];
/// Headers of columns with new values.
const NEW: [&str; 13] = [
    "after",
    "is",
    "now",
    "new",
    "new value",
    "current",
    "currently",
    "to",
    "新",
    "新值",
    "之后",
    "现在",
    "现值",
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ValueState {
    Old,
    New,
}

impl ValueState {
    fn from_header(header: &str) -> Option<ValueState> {
        let header = header.trim().trim_matches(['*', '`', ' ']).to_lowercase();
        if OLD.contains(&header.as_str()) {
            return Some(ValueState::Old);
        }
        NEW.contains(&header.as_str()).then_some(ValueState::New)
    }

    fn word(self) -> &'static str {
        match self {
            ValueState::Old => "previously ",
            ValueState::New => "now ",
        }
    }
}

/// The text with `previously` before the values in columns of old values and before removed lines of diffs, and `now`
/// before the new values and the added lines.
pub(super) fn mark_states(text: &str) -> String {
    if !text.contains(['|', '+']) {
        return text.to_owned();
    }
    let lines: Vec<&str> = text.lines().collect();
    let mut columns: Vec<Option<ValueState>> = Vec::new();
    let mut marked = Vec::with_capacity(lines.len());
    for (at, line) in lines.iter().enumerate() {
        let is_row = line.trim_start().starts_with('|');
        if !is_row {
            columns.clear();
        }
        if is_row && columns.is_empty() {
            columns = cells(line).map(ValueState::from_header).collect();
            let both = [ValueState::Old, ValueState::New]
                .iter()
                .all(|state| columns.contains(&Some(*state)));
            if !both {
                columns.fill(None);
            }
            marked.push((*line).to_owned());
        } else if is_row && columns.iter().any(Option::is_some) {
            marked.push(mark_row(line, &columns));
        } else {
            let state = diff_state(&lines, at).filter(|_| !is_row);
            marked.push(format!("{}{line}", state.map_or("", ValueState::word)));
        }
    }
    marked.join("\n")
}

/// The cells of a row of a Markdown table.
fn cells(row: &str) -> impl Iterator<Item = &str> {
    let row = row.trim();
    let row = row.strip_prefix('|').unwrap_or(row);
    row.strip_suffix('|').unwrap_or(row).split('|')
}

fn mark_row(row: &str, columns: &[Option<ValueState>]) -> String {
    let marked = cells(row).enumerate().map(|(at, cell)| {
        let state = columns
            .get(at)
            .copied()
            .flatten()
            .filter(|_| cell.contains(char::is_alphanumeric));
        format!(" {}{} ", state.map_or("", ValueState::word), cell.trim())
    });
    format!("|{}|", marked.collect::<Vec<_>>().join("|"))
}

/// The state of line `at` if it is a removed or added line of a diff: its block of `-` or `+` lines has a block of the
/// other mark beside it. A list uses only one of them.
fn diff_state(lines: &[&str], at: usize) -> Option<ValueState> {
    let line = lines.get(at)?;
    let (mark, other) = if diff_mark(line)? == '-' {
        ('-', '+')
    } else {
        ('+', '-')
    };
    if line.starts_with("---") || line.starts_with("+++") {
        return None;
    }
    let after = lines
        .iter()
        .skip(at)
        .find(|line| diff_mark(line) != Some(mark));
    let before = lines
        .iter()
        .take(at)
        .rev()
        .find(|line| diff_mark(line) != Some(mark));
    let is_diff = [after, before]
        .into_iter()
        .flatten()
        .any(|line| diff_mark(line) == Some(other));
    is_diff.then_some(if mark == '-' {
        ValueState::Old
    } else {
        ValueState::New
    })
}

fn diff_mark(line: &str) -> Option<char> {
    line.chars().next().filter(|c| matches!(c, '-' | '+'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_and_diffs_get_words() {
        let table = "| key | before | after |\n|---|---|---|\n| port | 8080 | 9090 |";
        assert!(mark_states(table).ends_with("| port | previously 8080 | now 9090 |"));
        let open = "| key | before | after\n|---|---|---\n| port | 8080 | 9090";
        assert!(mark_states(open).ends_with("| port | previously 8080 | now 9090 |"));
        assert_eq!(
            mark_states("-limit = 1\n+limit = 2"),
            "previously -limit = 1\nnow +limit = 2"
        );
        for plain in [
            "- one\n- two",
            "a | b",
            "| before | size |\n|---|---|\n| 1 | 2 |",
            "+1 from Ann\n+1 from Bo",
        ] {
            assert_eq!(mark_states(plain), plain);
        }
    }
}
