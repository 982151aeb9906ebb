//! The selection of entries by stage, method, fixture, remote and age, and ages as users write them (`30d`, `12h`).

use std::time::Duration;

use clap::Args;

use crate::action::Stage;
use crate::entries::{EntryMeta, EntryRecord};
use store::cache::{Record, now_ms};
use store::remote::RemoteUrl;

/// Which entries; all conditions must hold.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct CacheFilter {
    /// Only entries of this stage
    #[arg(long)]
    pub(crate) stage: Option<Stage>,
    /// Only entries made for this method
    #[arg(long)]
    pub(crate) method: Option<String>,
    /// Only entries made for this fixture
    #[arg(long)]
    pub(crate) fixture: Option<String>,
    /// Only entries pulled from this remote
    #[arg(long, value_name = "URL")]
    pub(crate) remote: Option<RemoteUrl>,
    /// Only entries older than this (30d, 12h)
    #[arg(long, value_name = "AGE", value_parser = parse_age)]
    pub(crate) older_than: Option<Duration>,
}

impl CacheFilter {
    /// Whether a record meets the conditions that need no meta.
    pub(super) fn admits(&self, record: &Record) -> bool {
        let is_old = |age: Duration| {
            let age = u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
            record.created < now_ms().saturating_sub(age)
        };
        self.stage.is_none_or(|stage| Some(stage) == record.stage())
            && self.older_than.is_none_or(is_old)
    }

    /// Whether an entry has the required names.
    pub(super) fn admits_names(&self, meta: &EntryMeta) -> bool {
        let remote = self.remote.as_ref().map(ToString::to_string);
        let method = meta.place.cell().map(|cell| &*cell.method);
        let names = [
            (&self.method, method),
            (&self.fixture, meta.place.fixture()),
            (&remote, meta.imported.as_deref()),
        ];
        names
            .into_iter()
            .all(|(wanted, name)| wanted.is_none() || wanted.as_deref() == name)
    }
}

/// An age: a number and `s`, `m` (or `min`), `h`, `d` or `w`.
///
/// # Errors
/// What was expected.
pub(super) fn parse_age(text: &str) -> Result<Duration, String> {
    let units = [
        ("s", 1.0),
        ("min", 60.0),
        ("m", 60.0),
        ("h", 3600.0),
        ("d", 86_400.0),
        ("w", 604_800.0),
    ];
    let lower = text.trim().to_ascii_lowercase();
    let mut parts = units
        .iter()
        .filter_map(|(unit, factor)| Some((lower.strip_suffix(unit)?.trim(), factor)));
    // `f64` would also read exponents and infinity.
    let seconds = parts.find_map(|(number, factor)| {
        let is_plain = number.starts_with(|c: char| c.is_ascii_digit())
            && number.chars().all(|c| c.is_ascii_digit() || c == '.');
        let number: f64 = number.parse().ok().filter(|_| is_plain)?;
        Some(number * factor)
    });
    let seconds = seconds.ok_or_else(|| {
        format!("`{text}` is not an age: expected a number and a unit (s, m, h, d, w), such as 30d or 12h")
    })?;
    Duration::try_from_secs_f64(seconds).map_err(|_| format!("`{text}` is too long for an age"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ages_are_parsed() {
        let ages = ["30d", "12h", "90m", "45 min", "1.5h", "2W", "0s"];
        let seconds = ages.map(|age| parse_age(age).unwrap().as_secs());
        assert_eq!(seconds, [2_592_000, 43_200, 5400, 2700, 5400, 1_209_600, 0]);
    }

    #[test]
    fn a_wrong_age_gets_an_example() {
        for bad in ["", "30", "d", "-3d", "1e3d", "infd", "nand", "30x", "3d4h"] {
            assert!(
                parse_age(bad).unwrap_err().contains("30d or 12h"),
                "{bad:?}"
            );
        }
    }

    proptest! {
        #[test]
        fn nothing_a_user_types_panics(text in "\\PC{0,12}") {
            let _ = parse_age(&text);
        }
    }
}
