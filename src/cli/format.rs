//! How numbers are printed with their nouns and units, the same in all commands.

use serde::Serialize;
use serde_json::{Value, json};

use crate::judge::Dimension;
use crate::report::known;
use base::locale::Locale;
pub(crate) use base::text::{count, short};
pub(crate) use base::units::money;
use base::units::{Tokens, Usd};

/// A value as JSON with more fields; alone they are what is left of a value that has none.
pub(crate) fn with_fields(value: &impl Serialize, fields: Value) -> Value {
    let (value, Value::Object(fields)) = (json!(value), fields) else {
        return json!(value);
    };
    match value {
        Value::Object(mut object) => {
            object.extend(fields);
            Value::Object(object)
        }
        _ => Value::Object(fields),
    }
}

/// A dimension of the rubric: in English its name in files.
pub(crate) fn dimension_name(locale: Locale, dimension: Dimension) -> &'static str {
    locale.pick(dimension.name(), dimension.label(Locale::Zh))
}

/// What something cost, in a sentence.
pub(crate) fn cost(usd: Option<Usd>) -> String {
    usd.map_or_else(|| "cost unknown".to_owned(), |usd| usd.to_string())
}

/// Seconds as people say them.
pub(crate) fn duration(seconds: f64) -> String {
    if seconds < 1.0 {
        return format!("{seconds:.2} s");
    }
    let whole = seconds.round() as u64;
    match whole {
        0..=119 => format!("{whole} s"),
        120..=7199 => format!("{} min", whole.div_ceil(60)),
        _ => format!("{:.1} h", seconds / 3600.0),
    }
}

/// Bytes as people say them.
pub(crate) fn size(bytes: u64) -> String {
    let units = [(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "KB")];
    let bytes_f = bytes as f64;
    match units.iter().find(|(unit, _)| bytes_f >= *unit) {
        Some((unit, name)) if bytes_f / unit < 9.95 => format!("{:.1} {name}", bytes_f / unit),
        Some((unit, name)) => format!("{:.0} {name}", bytes_f / unit),
        None => format!("{bytes} B"),
    }
}

/// A number of tokens in four characters or so; unknown is a dash.
pub(crate) fn short_tokens(tokens: Option<Tokens>) -> String {
    short(tokens.map(|tokens| tokens.0))
}

/// A span of time in its largest unit: `5 s`, `3 min`, `2 h`, `4 d`.
pub(crate) fn age(seconds: u64) -> String {
    match seconds {
        0..=59 => format!("{seconds} s"),
        60..=3599 => format!("{} min", seconds / 60),
        3600..=86_399 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// A share as a percentage; unknown is a dash.
pub(crate) fn percent(share: Option<f64>) -> String {
    known(share, |share| format!("{:.0}%", share * 100.0))
}

/// A number with `digits` decimals, a dash where it is not known.
pub(crate) fn number(value: Option<f64>, digits: usize) -> String {
    known(value, |value| {
        let text = format!("{value:.digits$}");
        match text.strip_prefix('-') {
            // A small value that is shown as zero has no sign.
            Some(zero) if !zero.contains(|c: char| ('1'..='9').contains(&c)) => zero.to_owned(),
            _ => text,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::fitted;

    #[test]
    fn zero_has_no_sign() {
        let shown = [-0.000_4, -0.0, -0.000_6, 0.1].map(|value| number(Some(value), 3));
        assert_eq!(shown, ["0.000", "0.000", "-0.001", "0.100"]);
    }

    #[test]
    fn sizes_and_ages_have_their_largest_unit() {
        assert_eq!(
            [size(999), size(1234), size(56_789_000), size(2_000_000_000)],
            ["999 B", "1.2 KB", "57 MB", "2.0 GB"]
        );
        assert_eq!(
            [
                short(None),
                short(Some(12)),
                short(Some(1234)),
                short(Some(56_789))
            ],
            ["–", "12", "1.2k", "57k"]
        );
        assert_eq!(
            [age(5), age(200), age(7300), age(200_000)],
            ["5 s", "3 min", "2 h", "2 d"]
        );
    }

    #[test]
    fn a_chinese_character_takes_two_columns() {
        assert_eq!(
            [
                fitted("评审组", 6),
                fitted("评审组", 5),
                fitted("judges", 5)
            ],
            ["评审组", "评审…", "judg…"]
        );
    }

    #[test]
    fn times_read_well() {
        assert_eq!(
            [
                duration(0.05),
                duration(90.0),
                duration(200.0),
                duration(9000.0)
            ],
            ["0.05 s", "90 s", "4 min", "2.5 h"]
        );
    }
}
