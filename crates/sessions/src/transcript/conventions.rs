//! Conventions that write the same thing in different ways: dates, versions, exit codes, lists in braces.
//!
//! | convention | same | guard |
//! |---|---|---|
//! | dates | `2024-03-17`, `March 17, 2024`, `17 Mar 2024`, `2024年3月17日` | no name, path or number around; no `5 may` |
//! | magnitudes | `12k`, `12,000`; `1.2M`, `1.2 million`; `3万` | whole numbers; `M` in upper case, `k` without a space |
//! | versions | `2.4.1`, `v2.4.1`, `version 2.4.1`; `name@2.4.1`, `name==2.4.1`, `"name": "2.4.1"` | a point in it |
//! | exit codes | `exit code 3`, `exits with code 3`, `exit status: 3` | |
//! | braces | `src/{a,b}.rs`, `src/a.rs src/b.rs` | a path before or after |
//! | percent | 百分之三十, `30%` | |

use std::borrow::Cow;
use std::ops::Range;

use regex::{Captures, Regex};

use base::lazy_patterns;
use base::text::{around, pattern};
use base::words::{WordList, is_word};

const MONTHS: WordList = WordList(
    "january february march april may june july august september october november december",
);

lazy_patterns! {
    ISO_DATE = pattern(r"(?P<y>\d{4})[-/](?P<m>\d{1,2})[-/](?P<d>\d{1,2})");

    CHINESE_DATE = pattern(r"(?:(?P<y>\d{4}) ?年 ?)?(?P<m>\d{1,2}) ?月 ?(?P<d>\d{1,2}) ?[日号]");

    MONTH_FIRST = pattern(
        r"(?P<m>jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)(?P<rest>[a-z]*)\.? (?P<d>\d{1,2})(?:st|nd|rd|th)?(?:,? (?P<y>\d{4}))?",
    );

    DAY_FIRST = pattern(
        r"(?P<d>\d{1,2})(?:st|nd|rd|th)? (?:of )?(?P<m>jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)(?P<rest>[a-z]*)\.?(?:,? (?P<y>\d{4}))?",
    );

    LETTER_MAGNITUDE = pattern(r"(?P<n>\d{1,6}(?:\.\d{1,3})?)(?P<u>[kKM])");

    WORD_MAGNITUDE = pattern(r"(?P<n>\d{1,6}(?:\.\d{1,6})?) ?(?P<u>thousand|million|billion|万|亿)");

    VERSION = pattern(r"(?P<mark>v|version:? |ver\.? )(?P<n>\d+)(?P<point>\.\d)?");

    PINNED = pattern(r#"[a-z0-9_)\]](?P<mark>@|==|["'] ?: ?["'])[\^~v]?\d+\.\d"#);

    EXIT = pattern(
        r"exit(?:s|ed|ing)?(?: with)?(?: an?)?(?:[ _]?(?:exit )?(?:code|status))(?: (?:of|is|was))?(?: ?[:=])? ?(?P<n>\d{1,3})|exit(?:s|ed) (?:with )?(?P<bare>\d{1,3})",
    );

    BRACES = pattern(r"(?P<before>[\w./~@+-]*)\{(?P<items>[\w./@+-]+(?:, ?[\w./@+-]+)+)\}(?P<after>[\w./@+-]*)");

    PERCENT = pattern(r"百分之 ?(?P<n>\d+(?:\.\d+)?|[零〇一二两三四五六七八九十百]+)");
}

/// Edits of a text as written: `k` and `M` after a number, where case matters.
pub(super) fn magnitudes_as_written(text: &str) -> impl Iterator<Item = TextReplacement> {
    LETTER_MAGNITUDE.captures_iter(text).filter_map(|found| {
        let factor = if found["u"].eq_ignore_ascii_case("k") {
            1_000
        } else {
            1_000_000
        };
        let range = alone(text, found.get(0)?.range())?;
        Some((range, Cow::Owned(product(&found["n"], factor)?)))
    })
}

/// The edit for what a pattern found in a text.
type Convention = fn(&str, &Captures<'_>) -> Option<TextReplacement>;

/// Edits of a normalized text.
pub(super) fn edits_of_conventions(text: &str) -> Vec<TextReplacement> {
    let mut edits = Vec::new();
    let mut add = |pattern: &Regex, edit: Convention| {
        let found = pattern.captures_iter(text);
        edits.extend(found.filter_map(|found| edit(text, &found)));
    };
    if text.bytes().any(|byte| byte.is_ascii_digit()) {
        for dates in [&ISO_DATE, &CHINESE_DATE, &MONTH_FIRST, &DAY_FIRST] {
            add(dates, date);
        }
        add(&WORD_MAGNITUDE, magnitude);
        add(&VERSION, version);
        add(&PINNED, pin);
        add(&EXIT, exit);
    }
    if text.contains('{') {
        add(&BRACES, braces);
    }
    if !text.is_ascii() {
        add(&PERCENT, percent);
    }
    edits
}

/// The range, if no name, path or number continues at its ends.
fn alone(text: &str, range: Range<usize>) -> Option<Range<usize>> {
    let (before, after) = around(text, &range);
    let (before, mut ahead) = (before.chars().next_back(), after.chars());
    let (after, beyond) = (ahead.next(), ahead.next());
    let joins_before =
        before.is_some_and(|c| is_word(c) || matches!(c, '-' | '/' | '.' | '\\' | '@' | '#'));
    let joins_after = after.is_some_and(|c| is_word(c) || matches!(c, '-' | '/' | '\\'))
        || after == Some('.') && beyond.is_some_and(is_word);
    (!joins_before && !joins_after).then_some(range)
}

/// A number times `factor`, where that is a whole number.
fn product(number: &str, factor: u64) -> Option<String> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let scale = 10u64.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let digits: u64 = format!("{whole}{fraction}").parse().ok()?;
    let scaled = digits.checked_mul(factor)?;
    scaled
        .is_multiple_of(scale)
        .then(|| (scaled / scale).to_string())
}

fn date(text: &str, found: &Captures<'_>) -> Option<TextReplacement> {
    let year = number_in(found, "y");
    let (named, rest) = (
        found.name("m")?.as_str(),
        found.name("rest").map_or("", |rest| rest.as_str()),
    );
    let spelled = MONTHS
        .iter()
        .position(|month| month.starts_with(named))
        .filter(|_| found.name("rest").is_some());
    let month = match spelled {
        Some(at) => {
            let name = MONTHS.iter().nth(at)?;
            let is_whole = name.get(named.len()..)? == rest
                || rest.is_empty()
                || (named == "sep" && rest == "t");
            // "it may 5 times" is not a date
            is_whole
                .then_some(at)
                .filter(|_| year.is_some() || name != "may")?
        }
        None => number_in(found, "m")?.checked_sub(1)?,
    };
    let day = number_in(found, "d").filter(|day| (1..=31).contains(day))?;
    let whole = found.get(0)?;
    let end = if whole.as_str().ends_with('.') {
        whole.end() - 1
    } else {
        whole.end()
    };
    let range = alone(text, whole.start()..end)?;
    let name = MONTHS.iter().nth(month)?;
    Some((
        range,
        Cow::Owned(year.map_or(format!("{name} {day}"), |year| {
            format!("{name} {day} {year}")
        })),
    ))
}

fn number_in(found: &Captures<'_>, name: &str) -> Option<usize> {
    found.name(name)?.as_str().parse().ok()
}

fn magnitude(text: &str, found: &Captures<'_>) -> Option<TextReplacement> {
    let factor = match &found["u"] {
        "thousand" => 1_000,
        "million" => 1_000_000,
        "billion" => 1_000_000_000,
        "万" => 10_000,
        _ => 100_000_000,
    };
    let range = found.get(0)?.range();
    if text.get(range.end..)?.starts_with(['一', '万', '亿']) {
        return None;
    }
    Some((
        alone(text, range)?,
        Cow::Owned(product(&found["n"], factor)?),
    ))
}

/// Removes the mark before a version with a point; `version 7` becomes `v7`.
fn version(text: &str, found: &Captures<'_>) -> Option<TextReplacement> {
    let mark = found.name("mark")?;
    let before = text.get(..mark.start())?.chars().next_back();
    if before.is_some_and(|c| is_word(c) || matches!(c, '-' | '/' | '.' | '@' | '\\' | '\'')) {
        return None;
    }
    match found.name("point") {
        Some(_) => Some((mark.range(), "".into())),
        None if mark.as_str() == "v" => None,
        None => Some((mark.range(), "v".into())),
    }
}

/// Separates a name from its version.
fn pin(_: &str, found: &Captures<'_>) -> Option<TextReplacement> {
    Some((found.name("mark")?.range(), " ".into()))
}

fn exit(text: &str, found: &Captures<'_>) -> Option<TextReplacement> {
    let code = found.name("n").or_else(|| found.name("bare"))?;
    Some((
        alone(text, found.get(0)?.range())?,
        Cow::Owned(format!("exit code {}", code.as_str())),
    ))
}

/// The most paths that one list in braces stands for.
const MOST_ITEMS: usize = 16;

fn braces(_: &str, found: &Captures<'_>) -> Option<TextReplacement> {
    let (before, after) = (&found["before"], &found["after"]);
    let items: Vec<&str> = found["items"]
        .split(',')
        .map(str::trim)
        .take(MOST_ITEMS + 1)
        .collect();
    let is_path = before.contains('/') || after.starts_with(['/', '.']) && !before.is_empty();
    if !is_path || items.len() > MOST_ITEMS {
        return None;
    }
    let paths: Vec<String> = items
        .iter()
        .map(|item| format!("{before}{item}{after}"))
        .collect();
    Some((found.get(0)?.range(), Cow::Owned(paths.join(" "))))
}

fn percent(_: &str, found: &Captures<'_>) -> Option<TextReplacement> {
    let number = &found["n"];
    let value = if number.is_ascii() {
        number.to_owned()
    } else {
        value_of_numeral(number)?.to_string()
    };
    Some((
        found.get(0)?.range(),
        Cow::Owned(format!("{value} percent")),
    ))
}

/// A byte range and its replacement.
pub(super) type TextReplacement = (Range<usize>, Cow<'static, str>);

/// The value of a Chinese numeral character.
pub fn numeral(c: char) -> Option<u32> {
    Some(match c {
        '零' | '〇' => 0,
        '一' => 1,
        '二' | '两' => 2,
        '三' => 3,
        '四' => 4,
        '五' => 5,
        '六' => 6,
        '七' => 7,
        '八' => 8,
        '九' => 9,
        '十' => 10,
        '百' => 100,
        '千' => 1000,
        '万' => 10_000,
        _ => return None,
    })
}

/// The value of a numeral up to 99,999,999 written out in full; `None` if it can be read in two ways (两三, 三百五).
pub fn value_of_numeral(run: &str) -> Option<u32> {
    let (high, low) = run
        .split_once('万')
        .map_or((None, run), |(high, low)| (Some(high), low));
    let low_value = if low.is_empty() && high.is_some() {
        Some(0)
    } else {
        below_ten_thousand(low)
    };
    let high_value = high.map_or(Some(0), |high| {
        below_ten_thousand(high).filter(|value| *value > 0)
    })?;
    if high.is_some() && !low.is_empty() && low_value? < 1000 && !low.starts_with('零') {
        return None;
    }
    Some(high_value * 10_000 + low_value?)
}

fn below_ten_thousand(text: &str) -> Option<u32> {
    let (mut sum, mut digit, mut unit, mut zero) = (0, None, 10_000, false);
    for c in text.chars() {
        match numeral(c)? {
            0 if digit.is_none() => zero = true,
            value @ 1..=9 if digit.is_none() => digit = Some(value),
            value @ (10 | 100 | 1000) if value < unit => {
                sum += digit.take().or((value == 10 && sum == 0).then_some(1))? * value;
                (unit, zero) = (value, false);
            }
            _ => return None,
        }
    }
    match digit {
        Some(digit) if matches!(unit, 10 | 10_000) || zero => Some(sum + digit),
        Some(_) => None,
        None => (!text.is_empty() && (sum > 0 || text == "零" || text == "〇")).then_some(sum),
    }
}

#[cfg(test)]
mod tests {
    use crate::transcript::fold;

    #[test]
    fn conventions_are_one_and_what_only_looks_like_them_stays() {
        for (left, right) in [
            ("due 2024-03-17.", "due March 17th, 2024."),
            ("2024年3月17日", "17 Mar. 2024"),
            ("12k rows", "12,000 rows"),
            ("1.2M rows", "1.2 million rows"),
            ("3万行", "30000行"),
            ("version 2.4.1", "v2.4.1"),
            ("react@18.2.0", "react 18.2.0"),
            ("exits with code 3", "exit status: 3"),
            ("src/{a,b}.rs", "src/a.rs src/b.rs"),
            ("百分之三十", "30%"),
            (r#"{"a": "say \"hi\""#, r#"{"a": "say "hi""#),
        ] {
            assert_eq!(fold(left), fold(right), "{left} and {right}");
        }
        for kept in [
            "logs/2024-03-17.log",
            "12 km",
            "1.2 m",
            "app-v2.4.1",
            "it may 5 times",
            "{a, b}",
            "12.3456k",
            "a (b, c)",
            "2024-13-17 or 2024-03-32",
        ] {
            assert_eq!(fold(kept), kept);
        }
    }
}
