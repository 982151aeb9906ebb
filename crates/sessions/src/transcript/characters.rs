//! Chinese numerals.

use std::borrow::Cow;
use std::ops::Range;

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
