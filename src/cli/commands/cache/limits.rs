//! Ages and sizes as people type them: `30d`, `12h`, `2GB`, `500MB`.

use std::time::Duration;

/// An age: a number and `s`, `m` (or `min`), `h`, `d` or `w`.
///
/// # Errors
/// What was expected, in a sentence.
pub(super) fn parse_age(text: &str) -> Result<Duration, String> {
    let units = [("s", 1.0), ("min", 60.0), ("m", 60.0), ("h", 3600.0), ("d", 86_400.0), ("w", 604_800.0)];
    let seconds = parse(text, &units).ok_or_else(|| {
        format!("`{text}` is no age: expected a number and a unit (s, m, h, d, w), such as 30d or 12h")
    })?;
    Duration::try_from_secs_f64(seconds).map_err(|_| format!("`{text}` is too long for an age"))
}

/// A size in bytes: a number and `B`, `KB`, `MB`, `GB`, `TB` (powers of 1000) or `KiB`, `MiB`, `GiB`, `TiB`.
///
/// # Errors
/// What was expected, in a sentence.
pub(super) fn parse_size(text: &str) -> Result<u64, String> {
    const KI: f64 = 1024.0;
    let units = [
        ("kib", KI),
        ("mib", KI * KI),
        ("gib", KI * KI * KI),
        ("tib", KI * KI * KI * KI),
        ("kb", 1e3),
        ("mb", 1e6),
        ("gb", 1e9),
        ("tb", 1e12),
        ("k", 1e3),
        ("m", 1e6),
        ("g", 1e9),
        ("t", 1e12),
        ("b", 1.0),
    ];
    let bytes = parse(text, &units).filter(|bytes| *bytes < u64::MAX as f64).ok_or_else(|| {
        format!("`{text}` is no size: expected a number and a unit (B, KB, MB, GB, TB), such as 2GB or 500MB")
    })?;
    Ok(bytes as u64)
}

/// A number that is finite and not negative, times its unit.
fn parse(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let lower = text.trim().to_ascii_lowercase();
    let (number, factor) = units.iter().find_map(|(unit, factor)| Some((lower.strip_suffix(unit)?, factor)))?;
    let number = number.trim();
    let is_plain = number.starts_with(|c: char| c.is_ascii_digit()) && !number.contains(['e', 'n', 'i']);
    let number: f64 = number.parse().ok().filter(|_| is_plain)?;
    Some(number * factor)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ages_and_sizes_read_as_they_are_typed() {
        let ages = ["30d", "12h", "90m", "45 min", "1.5h", "2W", "0s"];
        let seconds = ages.map(|age| parse_age(age).unwrap().as_secs());
        assert_eq!(seconds, [2_592_000, 43_200, 5400, 2700, 5400, 1_209_600, 0]);
        let sizes = ["2GB", "500MB", "1.5 kb", "10b", "1KiB", "2g", "0B"];
        assert_eq!(
            sizes.map(|size| parse_size(size).unwrap()),
            [2_000_000_000, 500_000_000, 1500, 10, 1024, 2_000_000_000, 0]
        );
    }

    #[test]
    fn what_is_none_gets_a_sentence() {
        for bad in ["", "30", "d", "-3d", "1e3d", "infd", "nand", "30x", "3d4h"] {
            assert!(parse_age(bad).unwrap_err().contains("30d or 12h"), "{bad:?}");
        }
        for bad in ["", "GB", "-1GB", "99999999999999999TB", "2 XB", "5"] {
            assert!(parse_size(bad).unwrap_err().contains("2GB or 500MB"), "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn nothing_a_user_types_panics(text in "\\PC{0,12}") {
            let _ = (parse_age(&text), parse_size(&text));
        }
    }
}
