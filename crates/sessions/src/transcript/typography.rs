//! Typographic differences that do not change the meaning, each with the guard that keeps it from joining different
//! things.
//!
//! | rule | same | guard |
//! |---|---|---|
//! | thousands | `1,204` `1_204` `1 204` (non-breaking) | whole groups of three, outside brackets; an ASCII space never |
//! | hyphens | all kinds | hyphen and space are one between letters only: that is a matter of the search, not of folding |
//! | quotes | all kinds | |
//! | marks | backticks, paired `**` | a lone `*` or `_` stays, and so does a mark between two letters |
//! | units | `25%` `25 percent`, `5s` `5 seconds` | a closed table; no letter or digit before; not "the 5s", "1990s" |
//! | calls | `load_config()` | names with `_`, `.` or inner capitals |
//! | numerals | 三个 `3个` | before a measure word; not after 第, a digit or a numeral; never 一次 |
//! | blanks | `端口8080` `端口 8080` | beside a Chinese or Japanese character; never before a sign (`温度 -5`) |
//! | conventions | dates, versions, exit codes and so on | [`super::conventions`] |
//!
//! `docs/notes/figures.md` has the figures; the variants and near misses behind them are tests of `compeval-lexical`, in
//! `facts/variants_tests.rs`.

use std::borrow::Cow;
use std::ops::Range;

use memchr::memmem;

use base::text::{around, beside};
use base::words::{WordList, is_han, is_kana, is_word};

use super::conventions::{TextReplacement, numeral, value_of_numeral};
use super::conventions::{edits_of_conventions, magnitudes_as_written};

/// A set of the rules that have a guard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TypographyRules(u8);

impl TypographyRules {
    const CALLS: TypographyRules = TypographyRules(1);
    const THOUSANDS: TypographyRules = TypographyRules(2);
    const UNITS: TypographyRules = TypographyRules(4);
    const NUMERALS: TypographyRules = TypographyRules(8);
    const CONVENTIONS: TypographyRules = TypographyRules(16);
    /// Texts are compared as they are.
    pub const NONE: TypographyRules = TypographyRules(0);
    /// All rules.
    pub const ALL: TypographyRules = TypographyRules(31);

    /// All sets of rules, the full one first.
    pub fn subsets() -> impl Iterator<Item = TypographyRules> {
        (0..=TypographyRules::ALL.0).rev().map(TypographyRules)
    }

    fn has(self, rule: TypographyRules) -> bool {
        self.0 & rule.0 != 0
    }
}

/// Edits of a text as written, before case and spaces are normalized.
pub(super) fn edits_of_written(text: &str, rules: TypographyRules) -> Vec<TextReplacement> {
    let mut edits = Vec::new();
    if rules.has(TypographyRules::CONVENTIONS) {
        edits.extend(magnitudes_as_written(text));
    }
    if rules.has(TypographyRules::CALLS) {
        let calls = memmem::find_iter(text.as_bytes(), b"()").filter(|at| is_call(text, *at));
        edits.extend(calls.map(|at| (at..at + 2, Cow::Borrowed(""))));
    }
    if rules.has(TypographyRules::THOUSANDS) && !text.is_ascii() {
        for space in NON_BREAKING {
            for (at, found) in text.match_indices(space) {
                if is_first_of_thousands(text, at, space) {
                    let groups = groups(text.get(at..).unwrap_or(""), space);
                    let step = found.len() + 3;
                    edits.extend((0..groups).map(|n| {
                        (
                            at + n * step..at + n * step + found.len(),
                            Cow::Borrowed(""),
                        )
                    }));
                }
            }
        }
    }
    edits
}

/// Spaces that keep a number on one line: non-breaking, figure and narrow.
const NON_BREAKING: [&str; 3] = ["\u{a0}", "\u{2007}", "\u{202f}"];

/// Edits of a text after the typographic ones: they remove blanks between a Chinese or Japanese character and another
/// character, a letter, a digit or a mark. Such a blank, or a line break, is a matter of style, except before a sign.
pub(super) fn edits_of_blanks(text: &str) -> Vec<TextReplacement> {
    if text.is_ascii() {
        return Vec::new();
    }
    let blanks =
        memchr::memchr_iter(b' ', text.as_bytes()).filter(|at| is_blank_of_style(text, *at));
    blanks.map(|at| (at..at + 1, Cow::Borrowed(""))).collect()
}

fn is_blank_of_style(text: &str, at: usize) -> bool {
    let [before, after] = beside(text, &(at..at + 1));
    before.zip(after).is_some_and(|(before, after)| {
        is_ideograph(before) && may_be_beside_blank(after)
            || is_ideograph(after) && may_be_beside_blank(before)
    })
}

fn may_be_beside_blank(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, ',' | ':' | ';' | '!' | '?' | '(' | ')' | '\'')
}

/// Whether the separator at `at` is the first of a number written in thousands.
fn is_first_of_thousands(text: &str, at: usize, separator: &str) -> bool {
    let before = text.get(..at).unwrap_or("");
    let digits = before.len() - before.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    let start = at - digits;
    (1..=3).contains(&digits)
        && !continues_number(text, start)
        && joins_thousands(text, start, at, separator)
}

/// Whether the name before the `()` at `at` is spelled like a name in code.
fn is_call(text: &str, at: usize) -> bool {
    let (before, after) = around(text, &(at..at + 2));
    let name = before
        .rsplit(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | ':')))
        .next()
        .unwrap_or("");
    let inner = name.trim_matches(['_', '.', ':']);
    let goes_on = after.starts_with(|c: char| c.is_alphanumeric() || c == '_')
        || after
            .strip_prefix('.')
            .is_some_and(|next| next.starts_with(char::is_alphanumeric));
    let is_code = name.contains('_')
        || inner.contains('.')
        || inner.chars().skip(1).any(|c| c.is_ascii_uppercase());
    !inner.is_empty() && is_code && !goes_on && !name.ends_with('.')
}

/// Edits of a normalized text.
pub(super) fn edits_of_normalized(text: &str, rules: TypographyRules) -> Vec<TextReplacement> {
    let conventions = rules.has(TypographyRules::CONVENTIONS);
    let edits = if conventions {
        edits_of_conventions(text)
    } else {
        Vec::new()
    };
    let mut scan = Scan {
        text,
        rules,
        edits,
        bold: None,
    };
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        at = match byte {
            b'`' => scan.edit_backticks(at),
            b'*' => scan.edit_asterisks(at),
            b'"' => scan.replace(at..at + 1, "'"),
            b'\\' => scan.edit_backslashes(at),
            b'0'..=b'9' => scan.edit_number(at),
            0x80.. => scan.edit_wide(at),
            _ => at + 1,
        };
    }
    scan.edits
}

struct Scan<'t> {
    text: &'t str,
    rules: TypographyRules,
    edits: Vec<TextReplacement>,
    /// The place of a `**` that may begin bold text.
    bold: Option<usize>,
}

/// The longest bold stretch, in bytes: marks further apart belong to two different things.
const LONGEST_BOLD: usize = 400;

impl<'t> Scan<'t> {
    fn replace(&mut self, range: Range<usize>, with: &'static str) -> usize {
        let end = range.end;
        self.edits.push((range, Cow::Borrowed(with)));
        end
    }

    fn before(&self, at: usize) -> Option<char> {
        self.text.get(..at).unwrap_or("").chars().next_back()
    }

    fn rest(&self, at: usize) -> &'t str {
        self.text.get(at..).unwrap_or("")
    }

    /// Replaces an escaped quote together with its backslashes: JSON that was cut cannot be parsed.
    fn edit_backslashes(&mut self, at: usize) -> usize {
        let rest = self.rest(at).trim_start_matches('\\');
        let end = self.text.len() - rest.len();
        if rest.starts_with('"') {
            self.replace(at..end + 1, "'")
        } else {
            end
        }
    }

    /// Removes backticks, except those that keep two words apart.
    fn edit_backticks(&mut self, at: usize) -> usize {
        let rest = self.rest(at).trim_start_matches('`');
        let end = self.text.len() - rest.len();
        let parts = self.before(at).is_some_and(is_word)
            && rest.starts_with(|c: char| is_word(c) || is_mark(c));
        if parts || rest.starts_with(is_mark) {
            return end;
        }
        // a fence on a line of its own leaves one blank, not two
        let follows_blank = self.before(at).is_none_or(|c| c == ' ');
        let range = match rest.as_bytes().first() {
            Some(b' ') if follows_blank => at..end + 1,
            None if follows_blank && at > 0 => at - 1..end,
            _ => at..end,
        };
        self.replace(range, "")
    }

    /// Removes `**` where two of them enclose a stretch, as in Markdown.
    fn edit_asterisks(&mut self, at: usize) -> usize {
        let rest = self.rest(at).trim_start_matches('*');
        let end = self.text.len() - rest.len();
        if end - at != 2 {
            return end;
        }
        let (before, after) = (self.before(at), rest.chars().next());
        let closes = before
            .is_some_and(|c| !c.is_whitespace() && !matches!(c, '(' | '[' | '{' | '='))
            && !after.is_some_and(is_word);
        match self.bold.take() {
            Some(open) if closes && at - open <= LONGEST_BOLD => {
                self.replace(open..open + 2, "");
                self.replace(at..end, "");
            }
            _ => {
                let opens = !before.is_some_and(is_word)
                    && after.is_some_and(|c| !c.is_whitespace() && !is_mark(c));
                self.bold = opens.then_some(at);
            }
        }
        end
    }

    /// Joins the thousands of a number, and gives the unit after it its long form.
    fn edit_number(&mut self, at: usize) -> usize {
        let digits = digits(self.rest(at));
        let mut end = at + digits;
        for (separator, name) in [(b',', ","), (b'_', "_")] {
            let may_begin = (1..=3).contains(&digits) && !continues_number(self.text, at);
            if may_begin && self.text.as_bytes().get(end) == Some(&separator) {
                let groups = groups(self.rest(end), name);
                if groups > 0 && joins_thousands(self.text, at, end, name) {
                    if self.rules.has(TypographyRules::THOUSANDS) {
                        let separators = (0..groups).map(|n| end + 4 * n);
                        self.edits
                            .extend(separators.map(|at| (at..at + 1, Cow::Borrowed(""))));
                    }
                    end += 4 * groups;
                    break;
                }
            }
        }
        if self.rest(end).starts_with('.') {
            let fraction = digits_after(self.rest(end), 1);
            end += if fraction > 0 { 1 + fraction } else { 0 };
        }
        if self.rules.has(TypographyRules::UNITS)
            && may_have_unit(self.text, at)
            && let Some((length, unit)) = unit(
                self.text.get(..at).unwrap_or(""),
                self.text.get(at..end).unwrap_or(""),
                self.rest(end),
            )
        {
            return self.replace(end..end + length, unit);
        }
        end
    }

    /// Replaces quotes, hyphens and numerals beyond ASCII.
    fn edit_wide(&mut self, at: usize) -> usize {
        let Some(c) = self.rest(at).chars().next() else {
            return at + 1;
        };
        let end = at + c.len_utf8();
        match c {
            '‘' | '’' | '‚' | '‛' | '“' | '”' | '„' | '‟' | '′' | '″' | '‹' | '›' | '«' | '»'
            | '「' | '」' | '『' | '』' => self.replace(at..end, "'"),
            '\u{2010}' | '\u{2011}' | '\u{2012}' | '\u{2013}' | '\u{2043}' | '\u{2212}' => {
                self.replace(at..end, "-")
            }
            // soft hyphen, zero-width blanks and joiners, byte order mark
            '\u{ad}' | '\u{200b}'..='\u{200d}' | '\u{2060}' | '\u{feff}' => {
                self.replace(at..end, "")
            }
            _ if numeral(c).is_some() => self.edit_numeral(at),
            _ => end,
        }
    }

    /// Turns a Chinese numeral before a measure word into digits, and gives a unit of time after it its long form.
    fn edit_numeral(&mut self, at: usize) -> usize {
        let run: String = self
            .rest(at)
            .chars()
            .take_while(|c| numeral(*c).is_some())
            .collect();
        let end = at + run.len();
        let counts = self
            .before(at)
            .is_none_or(|c| !(c.is_ascii_alphanumeric() || "第几数多上余来.".contains(c)));
        let rest = self.rest(end);
        let measure = MEASURES.iter().find(|measure| rest.starts_with(*measure));
        if !self.rules.has(TypographyRules::NUMERALS)
            || !counts
            || measure.is_none()
            || (run == "一" && rest.starts_with('次'))
        {
            return end;
        }
        let Some(value) = value_of_numeral(&run) else {
            return end;
        };
        self.edits.push((at..end, Cow::Owned(value.to_string())));
        match unit("", &run, rest).filter(|_| self.rules.has(TypographyRules::UNITS)) {
            Some((length, unit)) => self.replace(end..end + length, unit),
            None => end,
        }
    }
}

/// How many ASCII digits `text` begins with.
fn digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

fn digits_after(text: &str, skip: usize) -> usize {
    text.get(skip..).map_or(0, digits)
}

/// How many groups of a separator and exactly three digits `text` begins with.
fn groups(text: &str, separator: &str) -> usize {
    let mut rest = text;
    let mut groups = 0;
    while let Some(group) = rest
        .strip_prefix(separator)
        .filter(|group| digits(group) == 3)
    {
        groups += 1;
        rest = group.get(3..).unwrap_or("");
    }
    groups
}

/// Whether the number from `start`, whose first group ends at `end`, is a whole number, and not a list in brackets. It does
/// not look at what is before the number, as [`continues_number`] does.
fn joins_thousands(text: &str, start: usize, end: usize, separator: &str) -> bool {
    let (before, rest) = around(text, &(start..end));
    let after = rest
        .get(groups(rest, separator) * (separator.len() + 3)..)
        .unwrap_or("");
    let cut_after = after.starts_with('_')
        || after
            .strip_prefix(separator)
            .is_some_and(|next| digits(next) > 0)
        || digits(after) > 0;
    groups(rest, separator) > 0 && !cut_after && !is_in_brackets(before, after)
}

/// Whether the number from `start` continues a name or another number. Callers check this first, so that a long list of
/// numbers is not read to its end from each of them.
fn continues_number(text: &str, start: usize) -> bool {
    let mut back = text.get(..start).unwrap_or("").chars().rev();
    match back.next() {
        Some(c) if is_word(c) => true,
        Some('.' | ',' | '\u{a0}' | '\u{2007}' | '\u{202f}') => {
            back.next().is_some_and(|c| c.is_ascii_digit())
        }
        _ => false,
    }
}

/// How many characters before a number are searched for a bracket.
const BRACKET: usize = 120;

/// Whether the number between these texts is an item of a list: in square or curly brackets, among the arguments of a
/// call, or in parentheses with nothing but numbers. A remark in parentheses is not a list.
fn is_in_brackets(before: &str, after: &str) -> bool {
    let mut depth = 0;
    let near = before.char_indices().rev().take(BRACKET);
    for (at, c) in near {
        match c {
            ')' | ']' | '}' => depth += 1,
            '(' | '[' | '{' if depth > 0 => depth -= 1,
            '[' | '{' => return true,
            '(' => {
                let (outside, inside) = around(before, &(at..at + 1));
                let is_call = outside.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
                let rest = after.split(')').next().unwrap_or("");
                return is_call || !inside.chars().chain(rest.chars()).any(char::is_alphabetic);
            }
            _ => {}
        }
    }
    false
}

/// Whether the number at `at` may have a unit: it is not the end of a name, a path, a format or another number.
fn may_have_unit(text: &str, at: usize) -> bool {
    let mut back = text.get(..at).unwrap_or("").chars().rev();
    match back.next() {
        Some('-') => !back.next().is_some_and(is_word),
        Some(c) => !is_word(c) && !matches!(c, '%' | '/' | '\\' | '.'),
        None => true,
    }
}

/// Spellings of units, each with its long form. `m`, `k` and `d` stand for too many things.
const UNITS: [(&[&str], &str); 15] = [
    (&["%", "percent", "pct"], " percent"),
    (&["s", "sec", "secs", "second", "seconds"], " seconds"),
    (
        &["ms", "msec", "msecs", "millisecond", "milliseconds"],
        " milliseconds",
    ),
    (
        &["us", "μs", "usec", "usecs", "microsecond", "microseconds"],
        " microseconds",
    ),
    (&["ns", "nanosecond", "nanoseconds"], " nanoseconds"),
    (&["min", "mins", "minute", "minutes"], " minutes"),
    (&["h", "hr", "hrs", "hour", "hours"], " hours"),
    (&["kb", "kilobyte", "kilobytes"], " kilobytes"),
    (&["mb", "megabyte", "megabytes"], " megabytes"),
    (&["gb", "gigabyte", "gigabytes"], " gigabytes"),
    (&["tb", "terabyte", "terabytes"], " terabytes"),
    (&["kib", "kibibyte", "kibibytes"], " kibibytes"),
    (&["mib", "mebibyte", "mebibytes"], " mebibytes"),
    (&["gib", "gibibyte", "gibibytes"], " gibibytes"),
    (&["tib", "tebibyte", "tebibytes"], " tebibytes"),
];

/// Chinese units, the longer of two that begin alike first.
const CHINESE_UNITS: [(&str, &str); 7] = [
    ("毫秒", " milliseconds"),
    ("微秒", " microseconds"),
    ("纳秒", " nanoseconds"),
    ("秒钟", " seconds"),
    ("秒", " seconds"),
    ("分钟", " minutes"),
    ("小时", " hours"),
];

/// The unit that `after` begins with, perhaps after a space, or after a hyphen if the unit is written out: its length
/// with that, and its long form.
fn unit(before: &str, number: &str, after: &str) -> Option<(usize, &'static str)> {
    let spaced = usize::from(after.starts_with([' ', '-']));
    let rest = after.get(spaced..)?;
    if let Some((spelling, long)) = CHINESE_UNITS
        .iter()
        .find(|(spelling, _)| rest.starts_with(spelling))
    {
        return Some((spaced + spelling.len(), long));
    }
    let length = match rest.strip_prefix('%') {
        Some(_) => 1,
        None if rest.starts_with("per cent") => "per cent".len(),
        None => rest
            .find(|c: char| !(c.is_ascii_lowercase() || c == 'μ'))
            .unwrap_or(rest.len()),
    };
    let word = rest.get(..length)?;
    let next = rest.get(length..)?;
    let long = match word {
        "per cent" => " percent",
        _ => {
            UNITS
                .iter()
                .find(|(spellings, _)| spellings.contains(&word))?
                .1
        }
    };
    let joined = next.starts_with(is_word)
        || next.starts_with(['.', '-']) && next.chars().nth(1).is_some_and(is_word);
    let points = long == " percent" && next.trim_start_matches(['-', ' ']).starts_with("point");
    let plural = spaced == 0
        && word == "s"
        && (is_decade(number) || ["the ", "'"].iter().any(|w| before.ends_with(w)));
    let pronoun = spaced == 1 && word == "us";
    let part_of_name = after.starts_with('-')
        && !long
            .get(1..)
            .is_some_and(|long| long.starts_with(word) && word.len() > 3);
    (!part_of_name && !joined && !points && !plural && !pronoun).then_some((spaced + length, long))
}

fn is_decade(number: &str) -> bool {
    number.len() == 4
        && number.ends_with('0')
        && (number.starts_with("19") || number.starts_with("20"))
}

/// Measure words. A numeral before one is a number.
const MEASURES: WordList = WordList(
    "个 次 条 项 种 行 秒 毫秒 微秒 纳秒 分钟 小时 天 周 份 台 位 页 步 轮 处 倍 遍 批 组 张 家 字节 名 段 层 列 例 类 块 人",
);

/// Whether `c` combines with the character before it.
fn is_mark(c: char) -> bool {
    !c.is_ascii() && unicode_normalization::char::canonical_combining_class(c) != 0
}

/// Whether `c` is a Chinese or Japanese character. (Korean, which clings to words too, has blanks between them.)
fn is_ideograph(c: char) -> bool {
    is_han(c) || is_kana(c) || matches!(c, '\u{3005}'..='\u{3007}')
}

#[cfg(test)]
mod tests {
    use crate::transcript::fold;

    fn same(left: &str, right: &str) {
        assert_eq!(fold(left), fold(right), "{left} and {right}");
    }

    fn different(left: &str, right: &str) {
        assert_ne!(fold(left), fold(right), "{left} and {right}");
    }

    #[test]
    fn thousands_are_joined_only_where_they_are_a_whole_number() {
        same("1,204 rows", "1204 rows");
        same("about 12,345,678.", "about 12345678.");
        same("1_204 rows", "1204 rows");
        same("1\u{a0}204\u{a0}511 rows", "1204511 rows");
        same("(about 1,204 rows)", "(about 1204 rows)");
        for (list, joined) in [
            ("[1,204]", "[1204]"),
            ("f(1,204)", "f(1204)"),
            ("(1,204)", "(1204)"),
            ("1 204", "1204"),
        ] {
            different(list, joined);
        }
        for list in [
            "1,20",
            "1,2045",
            "1234,567",
            "x1,204",
            "0.1,204",
            "1,204,5",
            "8080,8081",
            "a_1_000",
        ] {
            assert_eq!(fold(list), list);
        }
    }

    #[test]
    fn hyphens_quotes_and_marks_are_one() {
        same("re\u{2011}run \u{2212}5", "re-run -5");
        same("“it’s” «so» 「是」", "'it's' 'so' '是'");
        same(
            "the port is `8080`, **not** `8081`",
            "the port is 8080, not 8081",
        );
        same("```\ncode\n```", "code");
        for kept in [
            "2 * 3",
            "a_b _c_",
            "2**8 + 3**4",
            "f(**kwargs,**options)",
            "foo`s",
        ] {
            assert_eq!(fold(kept), kept);
        }
    }

    #[test]
    fn units_take_one_form_only_behind_a_number_of_their_own() {
        same("25%", "25 percent");
        same("25 per cent", "25％");
        same("5s", "5 seconds");
        same("1.5 h", "1.5 hours");
        same("5秒", "5 s");
        same("100MB/s", "100 megabytes/s");
        for (left, right) in [
            ("the 5s", "the 5 seconds"),
            ("1990s", "1990 seconds"),
            ("5m", "5 minutes"),
            ("5k", "5 kilobytes"),
            ("v5s", "v5 seconds"),
            ("25% points", "25 percent points"),
            ("25 percentage points", "25% points"),
            ("gave 5 us", "gave 5 microseconds"),
            ("%5s", "%5 seconds"),
            ("logs/5s", "logs/5 seconds"),
        ] {
            different(left, right);
        }
        same("timeout 1800s", "timeout 1800 seconds");
        same("a 30-second timeout", "a 30 seconds timeout");
        same("2TB", "2 terabytes");
        for kept in ["a 5-second-hand car", "5-s", "3-min-heap", "30-secondary"] {
            assert_eq!(fold(kept), kept);
        }
    }

    #[test]
    fn parentheses_of_calls_go_with_names_of_code_alone() {
        same(
            "load_config() and a.run() and loadConfig()",
            "load_config and a.run and loadConfig",
        );
        different("main()", "main");
        different("load_config()()", "load_config");
        assert_eq!(fold("it.iter().map"), "it.iter().map");
    }

    #[test]
    fn blanks_beside_chinese_are_a_matter_of_style() {
        same("端口 8080 已占用", "端口8080已占用");
        same("使用 `Redis` 缓存", "使用Redis缓存");
        same("连接\n超时, 重试 (3 次)", "连接超时，重试（三次）");
        same("超时 30 秒", "超时30秒");
        same("接続 が タイムアウト", "接続がタイムアウト");
        for kept in [
            "温度 -5",
            "선택 포트 8080",
            "用 --all 选",
            "在 /etc 下",
            "a 8080",
        ] {
            assert!(fold(kept).contains(' '), "{kept}");
        }
        same("connection\u{200b} refused\u{feff}", "connection refused");
    }

    #[test]
    fn chinese_numerals_count_before_measure_words() {
        same("共三个文件，十二秒", "共3个文件,12秒");
        same("一百零五条", "105条");
        same("两万三千行", "23000行");
        for kept in [
            "第三个",
            "运行一次",
            "2三个",
            "两三个",
            "三百五个",
            "几十个",
            "十分好",
        ] {
            assert_eq!(fold(kept), kept);
        }
    }
}
