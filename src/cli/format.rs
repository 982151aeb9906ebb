//! Numbers in words, the same everywhere.

use base::units::Usd;

/// A number with its noun in singular or plural: `1 action`, `3 actions`, `2 entries`.
pub(crate) fn count<N: TryInto<u64>>(number: N, noun: &str) -> String {
    let number = number.try_into().unwrap_or(u64::MAX);
    match noun.strip_suffix('y') {
        _ if number == 1 => format!("1 {noun}"),
        Some(stem) => format!("{number} {stem}ies"),
        None => format!("{number} {noun}s"),
    }
}

/// Dollars; what is unknown is a dash, never 0.
pub(crate) fn money(usd: Option<Usd>) -> String {
    match usd {
        None => "$–".to_owned(),
        Some(Usd(0.0)) => "$0".to_owned(),
        Some(Usd(amount)) if amount < 0.01 => format!("${amount:.4}"),
        Some(Usd(amount)) => format!("${amount:.2}"),
    }
}

/// What something cost, in a sentence.
pub(crate) fn cost(usd: Option<Usd>) -> String {
    if usd.is_some() { money(usd) } else { "cost unknown".to_owned() }
}

/// A word as a shell takes it.
pub(crate) fn shell_word(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
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

/// A number in four characters or so; unknown is a dash.
pub(crate) fn short(number: Option<u64>) -> String {
    match number {
        None => "–".to_owned(),
        Some(n @ 0..=999) => n.to_string(),
        Some(n @ 1000..=9949) => format!("{:.1}k", n as f64 / 1e3),
        Some(n @ 9950..=999_499) => format!("{:.0}k", n as f64 / 1e3),
        Some(n) => format!("{:.1}M", n as f64 / 1e6),
    }
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

/// A quantity with as many digits as mean something: `120`, `8.3`, `0.25`.
pub(crate) fn amount(number: f64) -> String {
    match number {
        n if n >= 9.95 => format!("{n:.0}"),
        n if n >= 0.995 => format!("{n:.1}"),
        n => format!("{n:.2}"),
    }
}

/// A share as a percentage; unknown is a dash.
pub(crate) fn percent(share: Option<f64>) -> String {
    share.map_or("–".to_owned(), |share| format!("{:.0}%", share * 100.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_money_is_a_dash() {
        assert_eq!(
            [money(None), money(Some(Usd(0.0))), money(Some(Usd(0.004))), money(Some(Usd(1.5)))],
            ["$–", "$0", "$0.0040", "$1.50"]
        );
    }

    #[test]
    fn words_survive_a_shell() {
        let words = ["--label=a", "two words", "it's", ""].map(shell_word);
        assert_eq!(words, ["--label=a", "'two words'", r"'it'\''s'", "''"]);
    }

    #[test]
    fn sizes_and_ages_have_their_largest_unit() {
        assert_eq!(
            [size(999), size(1234), size(56_789_000), size(2_000_000_000)],
            ["999 B", "1.2 KB", "57 MB", "2.0 GB"]
        );
        assert_eq!([short(None), short(Some(12)), short(Some(1234)), short(Some(56_789))], ["–", "12", "1.2k", "57k"]);
        assert_eq!([age(5), age(200), age(7300), age(200_000)], ["5 s", "3 min", "2 h", "2 d"]);
    }

    #[test]
    fn times_read_well() {
        assert_eq!(
            [duration(0.05), duration(90.0), duration(200.0), duration(9000.0)],
            ["0.05 s", "90 s", "4 min", "2.5 h"]
        );
    }
}
