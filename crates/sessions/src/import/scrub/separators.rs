//! Finds what follows the name of a secret: a separator and a value, in the notations of code, settings, command lines,
//! tables and prose.

use std::ops::Range;

use super::key_names::{KeywordClass, class_of_word, words};
use super::rules::compiled;
use super::values::{ValueSyntax, is_strong};
use base::lazy_patterns;
use base::text::{first_bytes, last_bytes};

/// Where a value is, and how it is written.
pub(super) type ValuePlace = (Range<usize>, ValueSyntax);

/// The most bytes of a quoted value.
const LONGEST_VALUE: usize = 600;
/// The most characters of a bare value.
const LONGEST_BARE: usize = 300;
/// The most bytes that are read before or after a key or a value to find out what it belongs to.
const NEAR: usize = 1024;
/// The most bytes of a row of a table before the key.
const LONGEST_ROW: usize = 64 << 10;

/// From this length a random word after a key name counts as a secret.
const LONG_WORD: usize = 20;

/// The value after a key, if one follows.
pub(super) fn value_after(
    text: &str,
    key: &Range<usize>,
    class: KeywordClass,
) -> Option<ValuePlace> {
    let name = text.get(key.clone())?;
    let before = text.get(..key.start)?;
    let is_quoted = starts_literal(text.get(key.end..)?);
    let at = end_of_key(text, key.end, is_quoted);
    let gap = after_blanks(text, at);
    let after = tail(text, gap);
    if after.starts_with("==") {
        return compared(text, gap);
    }
    if let Some(sign) = ["=>", ":=", "?=", "->", "：", "＝"]
        .iter()
        .find(|sign| after.starts_with(**sign))
    {
        return value_at(text, gap + sign.len(), ValueSyntax::Bare);
    }
    if after.starts_with("!=") {
        return None;
    }
    // In an address inside another one.
    if let Some(value) = after.strip_prefix("%3D").filter(|_| gap == at) {
        let end = value
            .find(|c: char| !is_unreserved(c))
            .unwrap_or(value.len());
        return Some((gap + 3..gap + 3 + end, ValueSyntax::Tight));
    }
    // Defaults: `env.DB_PASSWORD || "X"`, `${DB_PASSWORD:-X}`.
    if let Some(sign) = ["||", "??", "or "]
        .iter()
        .find(|sign| gap > at && after.starts_with(**sign))
    {
        let is_literal = after
            .get(sign.len()..)
            .is_some_and(|tail| starts_literal(tail.trim_start()));
        return value_at(text, gap + sign.len(), ValueSyntax::Bare).filter(|_| is_literal);
    }
    if let Some(tail) = after.strip_prefix(":-").filter(|_| before.ends_with("${")) {
        let end = first_bytes(tail, LONGEST_VALUE).find('}')?;
        return Some((gap + 2..gap + 2 + end, ValueSyntax::Tight));
    }
    if after.starts_with('=') {
        let is_tight = gap == at && !after.starts_with("= ") && !after.starts_with("=\t");
        let syntax = if is_tight {
            ValueSyntax::Tight
        } else {
            ValueSyntax::Bare
        };
        return value_at(text, gap + 1, syntax);
    }
    if after.starts_with(':') && !after.starts_with("://") {
        return after_colon(text, gap, is_quoted);
    }
    let is_flag = name.starts_with('-');
    if is_flag && is_quoted {
        let next = after_blanks(text, gap + 1);
        return value_at(text, next, ValueSyntax::Tight).filter(|_| after.starts_with(','));
    }
    if is_flag && gap > at {
        return value_at(text, gap, ValueSyntax::Tight);
    }
    if after.starts_with('|') {
        return table_cell(text, last_line(last_bytes(before, LONGEST_ROW)), gap);
    }
    if is_quoted && after.starts_with(',') {
        return argument(text, key, gap);
    }
    if after.starts_with('(') && gap == at {
        return called(text, name, gap);
    }
    if gap == at {
        return None;
    }
    let line = last_line(last_bytes(before, NEAR));
    in_prose(text, line, gap, class, is_quoted)
}

/// The literal that a name is compared with by the `=` at `sign`; `"=== PWD ===" && pwd` has none.
fn compared(text: &str, sign: usize) -> Option<ValuePlace> {
    let length = tail(text, sign)
        .bytes()
        .take_while(|byte| *byte == b'=')
        .count();
    let (range, notation) = value_at(text, sign + length, ValueSyntax::Bare)?;
    let value = text.get(range.clone())?;
    let is_literal = notation == ValueSyntax::Quoted && !value.contains([' ', '&', '|']);
    is_literal.then_some((range, notation))
}

/// Whether a character stands for itself in an address.
fn is_unreserved(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-._~".contains(c)
}

fn starts_literal(text: &str) -> bool {
    text.starts_with(['"', '\'', '`'])
}

fn last_line(text: &str) -> &str {
    text.rsplit('\n').next().unwrap_or("")
}

fn tail(text: &str, at: usize) -> &str {
    text.get(at..).unwrap_or("")
}

fn after_blanks(text: &str, at: usize) -> usize {
    at + text
        .as_bytes()
        .iter()
        .skip(at)
        .take_while(|byte| matches!(byte, b' ' | b'\t'))
        .count()
}

/// The end of a key with the quotes, brackets, marks or note around it.
fn end_of_key(text: &str, end: usize, is_quoted: bool) -> usize {
    if is_quoted {
        let bracket = after_blanks(text, end + 1);
        return if tail(text, bracket).starts_with(']') {
            bracket + 1
        } else {
            end + 1
        };
    }
    let is_markdown = ["**", "__"]
        .iter()
        .any(|mark| tail(text, end).starts_with(mark));
    let at = if is_markdown { end + 2 } else { end };
    // `password (root): X`, `token for the bot is X`.
    after_note(text, at)
}

fn after_colon(text: &str, colon: usize, is_quoted: bool) -> Option<ValuePlace> {
    let start = colon + 1;
    let start = start
        + tail(text, start)
            .chars()
            .take_while(|c| matches!(c, ':' | '*' | '_'))
            .count();
    let is_tight = !is_quoted && tail(text, start).starts_with(|c: char| !c.is_whitespace());
    // In `a:b` a bare word is a value of a flag or a field; `::` is a path.
    if is_tight && tail(text, colon).starts_with("::") {
        return None;
    }
    match after_type(text, start) {
        Some(typed) => value_at(text, typed, ValueSyntax::Bare)
            .filter(|(_, notation)| *notation == ValueSyntax::Quoted),
        None => value_at(text, start, ValueSyntax::Bare).or_else(|| block_scalar(text, start)),
    }
}

/// The cell after the `bar`, in a row of a table that begins with `line`.
fn table_cell(text: &str, line: &str, bar: usize) -> Option<ValuePlace> {
    let cell = text
        .get(bar + 1..)?
        .split(['|', '\n'])
        .next()
        .unwrap_or("")
        .trim();
    let is_row = line.trim_start().starts_with('|');
    let is_word = !cell.is_empty() && !cell.contains(' ');
    value_at(text, bar + 1, ValueSyntax::Bare).filter(|_| is_row && is_word)
}

/// `the password is X`, `set password X`: the value after a blank and perhaps a verb, on a line that begins with
/// `line`.
fn in_prose(
    text: &str,
    line: &str,
    gap: usize,
    class: KeywordClass,
    is_quoted: bool,
) -> Option<ValuePlace> {
    const AFTER: [&str; 23] = [
        "as ",
        "was changed from ",
        "was changed to ",
        "changed from ",
        "changed to ",
        "stays ",
        "remains ",
        "is set to ",
        "was set to ",
        "set to ",
        "is now ",
        "is: ",
        "is ",
        "was ",
        "to ",
        "of ",
        "will be ",
        "lautet: ",
        "lautet ",
        "ist: ",
        "ist ",
        "è ",
        "é ",
    ];
    const BEFORE: [&str; 9] = [
        "setenv", "env", "arg", "setx", "set", "export", "with", "using", "use",
    ];
    let after = text.get(gap..)?;
    let begins = |verb: &&&str| {
        let start = after.get(..verb.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(verb))
    };
    if let Some(verb) = AFTER.iter().find(begins) {
        return value_at(text, gap + verb.len(), ValueSyntax::Prose);
    }
    let last = line
        .split_whitespace()
        .next_back()
        .unwrap_or("")
        .to_ascii_lowercase();
    let is_alone = line
        .trim_matches([' ', '\t', '-', '*', '#', '>'])
        .is_empty();
    let is_setting = BEFORE.contains(&last.as_str()) || is_alone || last.ends_with(',');
    let is_literal = starts_literal(after) && class != KeywordClass::Token;
    let word = after.split_whitespace().next().unwrap_or("");
    let is_random = word.len() >= LONG_WORD && is_strong(word);
    let is_value =
        !is_quoted && (is_literal || is_setting || is_random || class == KeywordClass::Password);
    value_at(text, gap, ValueSyntax::Prose).filter(|_| is_value)
}

/// Past ` (root)` and ` for the admin user`, where a separator follows.
fn after_note(text: &str, at: usize) -> usize {
    let line = first_bytes(tail(text, at), NEAR)
        .split('\n')
        .next()
        .unwrap_or("");
    let trimmed = line.trim_start_matches([' ', '\t']);
    for (open, close) in [('(', ')'), ('（', '）')] {
        if let Some(note) = trimmed.strip_prefix(open)
            && let Some(end) = note.find(close).filter(|end| *end < 40)
            && note
                .get(end + close.len_utf8()..)
                .is_some_and(|tail| tail.trim_start().starts_with([':', '=', '：']))
        {
            return at + (line.len() - trimmed.len()) + open.len_utf8() + end + close.len_utf8();
        }
    }
    let prefix = [
        "for ",
        "of ",
        "on ",
        "is generated for ",
        "was generated for ",
        "generated for ",
    ]
    .iter()
    .find(|word| trimmed.starts_with(**word));
    let Some(_) = prefix else { return at };
    let end = trimmed.find([':', '=']).or_else(|| trimmed.find(" is "));
    match end.filter(|end| *end < 48) {
        Some(end)
            if !trimmed
                .get(..end)
                .unwrap_or("")
                .contains(['"', '(', '{', ',', '.', ';']) =>
        {
            at + (line.len() - trimmed.len()) + end
        }
        _ => at,
    }
}

/// Past a type annotation, as in `password: str = "X"`.
fn after_type(text: &str, at: usize) -> Option<usize> {
    lazy_patterns! {
        TYPED = compiled(
            r"^[ \t]*[&*]?(?:'[a-z]+ )?[A-Za-z_][\w.:]*(?:<[^=\n]{0,40}>|\[[^=\n]{0,40}\])?(?:[ \t]*\|[ \t]*\w+)?[ \t]*(?::?=)[ \t]*",
        );
    }
    let end = at + TYPED.find(first_bytes(text.get(at..)?, NEAR))?.end();
    // What looks like `= ` may be the padding of base64.
    let is_padding = text
        .get(end..)
        .is_none_or(|rest| rest.is_empty() || rest.starts_with(['=', '\n']));
    (!is_padding).then_some(end)
}

/// A block of YAML: `password: |` and the value on the next line.
fn block_scalar(text: &str, at: usize) -> Option<ValuePlace> {
    lazy_patterns! {
        BLOCK = compiled(r"^[ \t]*[|>][+-]?[ \t]*\n[ \t]+([^\s]+)[ \t]*(?:\n|$)");
    }
    let value = BLOCK.captures(text.get(at..)?)?.get(1)?;
    Some((at + value.start()..at + value.end(), ValueSyntax::Bare))
}

/// `("password", "X")`: the argument after a quoted key, alone with it between brackets.
fn argument(text: &str, key: &Range<usize>, comma: usize) -> Option<ValuePlace> {
    const VERBS: [&str; 13] = [
        "fill", "type", "send", "set", "put", "add", "update", "insert", "append", "define", "env",
        "getenv", "get",
    ];
    let before = text.get(..key.start)?;
    let (range, notation) = value_at(text, comma + 1, ValueSyntax::Bare)?;
    let after = text.get(range.end + 1..)?.trim_start();
    let value = text.get(range.clone())?;
    let is_pair = notation == ValueSyntax::Quoted && after.starts_with([')', ',']);
    let called = before
        .trim_end_matches(['#', '.', '[', '"', '\'', ' '])
        .strip_suffix('(')?;
    let verb = called
        .rsplit(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .next()
        .unwrap_or("")
        .to_ascii_lowercase();
    let is_setter = VERBS.iter().any(|known| verb.starts_with(known));
    (is_pair && (is_setter || is_strong(value))).then_some((range, notation))
}

/// `.password("X")`, `setPassword('X')`; not `get_password("prompt")`.
fn called(text: &str, name: &str, bracket: usize) -> Option<ValuePlace> {
    const VERBS: [&str; 5] = ["set", "with", "use", "new", "add"];
    let words = words(name.rsplit('.').next().unwrap_or(name));
    let first = words.first()?.as_str();
    let is_setter =
        words.len() == 1 || VERBS.contains(&first) || class_of_word(first, "").is_some();
    let (range, notation) = value_at(text, bracket + 1, ValueSyntax::Bare)?;
    let after = text.get(range.end + 1..)?.trim_start();
    let is_literal = notation == ValueSyntax::Quoted && after.starts_with(')');
    let value = text.get(range.clone())?;
    (is_setter && is_literal && !value.contains(' ') && !value.ends_with(':'))
        .then_some((range, notation))
}

/// The value that begins at `at`, quoted or bare.
pub(super) fn value_at(text: &str, at: usize, notation: ValueSyntax) -> Option<ValuePlace> {
    let rest = text.get(at..)?;
    let start = at + rest.len() - rest.trim_start_matches([' ', '\t']).len();
    let start = start + wrapper(text.get(start..)?);
    let rest = text.get(start..)?;
    let prefix = rest
        .bytes()
        .take(2)
        .take_while(|byte| b"bBrRuUfFnNlL@$".contains(byte))
        .count();
    for skip in [0, prefix] {
        let Some(literal) = rest.get(skip..) else {
            continue;
        };
        for (open, close) in [
            ("\"\"\"", "\"\"\""),
            ("\"", "\""),
            ("'", "'"),
            ("`", "`"),
            ("“", "”"),
            ("「", "」"),
            ("‘", "’"),
            ("**", "**"),
        ] {
            let Some(inside) = literal.strip_prefix(open) else {
                continue;
            };
            let end = first_bytes(inside, LONGEST_VALUE + close.len()).find(close)?;
            if inside.get(..end)?.contains('\n') {
                return None;
            }
            let begin = start + skip + open.len();
            return Some((begin..begin + end, ValueSyntax::Quoted));
        }
    }
    // All characters before the end are ASCII, so they are counted as bytes.
    let length = rest
        .chars()
        .take(LONGEST_BARE)
        .take_while(|c| {
            c.is_ascii() && !c.is_whitespace() && !matches!(c, '"' | '\'' | '`' | '<' | '>' | '\\')
        })
        .count();
    if ["|", ">", "|-", ">-", "|+", ">+"].contains(&rest.get(..length).unwrap_or("")) {
        return None;
    }
    let range = cut_value(text, start..start + length, notation == ValueSyntax::Tight);
    (!range.is_empty()).then_some((range, notation))
}

/// The length of a call that only wraps the literal after it, as `new String(` and `String::from(`.
fn wrapper(value: &str) -> usize {
    lazy_patterns! {
        WRAPPER = compiled(
            r"^(?:new )?(?:String::from|Some|str|bytes|SecretStr|(?:Secret|Secure)?String(?:::new)?|Buffer\.from)\(\s*[bru]?[\x22'`]",
        );
    }
    WRAPPER.find(value).map_or(0, |found| found.end() - 1)
}

/// A bare value up to where the notation around it continues: `&` of a query, `;` of a connection string, a comma.
pub(super) fn cut_value(text: &str, range: Range<usize>, is_tight: bool) -> Range<usize> {
    let value = text.get(range.clone()).unwrap_or("");
    let before = last_bytes(text.get(..range.start).unwrap_or(""), NEAR);
    let token = before
        .rsplit(|c: char| c.is_whitespace() || c == '"')
        .next()
        .unwrap_or("");
    let is_query = token.contains(['?', '&']);
    let is_connection = token.contains(';') || value.contains(';') && value.contains('=');
    let end = value.char_indices().find_map(|(at, c)| {
        let next = value.get(at + 1..).and_then(|rest| rest.chars().next());
        let ends = match c {
            '&' => is_query,
            '#' => is_query,
            ';' => is_connection || next.is_none() || !is_tight,
            ',' => {
                next.is_none()
                    || !is_tight
                    || value.get(at + 1..).is_some_and(|rest| rest.contains('='))
            }
            _ => false,
        };
        ends.then_some(at)
    });
    range.start..range.start + end.unwrap_or(value.len())
}

/// The range without the blanks, punctuation and brackets around the value.
pub(super) fn trimmed(text: &str, range: Range<usize>) -> Range<usize> {
    let value = text.get(range.clone()).unwrap_or("");
    let start = range.start + value.len() - value.trim_start().len();
    let mut inside = value.trim();
    loop {
        let mut chars = inside.chars();
        let Some(last) = chars.next_back() else { break };
        let open = match last {
            ')' => Some('('),
            ']' => Some('['),
            '}' => Some('{'),
            _ => None,
        };
        let is_punctuation = matches!(last, '.' | ',' | ';' | ':' | '\\' | '"' | '\'' | '`' | '|');
        let is_unbalanced = open.is_some_and(|open| !chars.as_str().contains(open));
        if !is_punctuation && !is_unbalanced {
            break;
        }
        inside = chars.as_str();
    }
    start..start + inside.len()
}
