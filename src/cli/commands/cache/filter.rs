//! The selection of entries by stage, method, model, fixture and age, and ages as users write them (`30d`, `12h`).

use std::time::Duration;

use clap::Args;

use super::entry::model_of;
use crate::action::Stage;
use crate::cli::failure::Failure;
use crate::entries::{EntryMeta, EntryRecord};
use crate::pipeline::list;
use store::cache::{Record, now_ms};
use store::remote::RemoteUrl;

/// Which entries.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct CacheFilter {
    /// Only entries of this stage
    #[arg(long)]
    pub(crate) stage: Option<Stage>,
    /// Only entries made for this method
    #[arg(long)]
    pub(crate) method: Option<String>,
    /// Only entries answered by this model
    #[arg(long)]
    pub(crate) model: Option<String>,
    /// Only entries made for this fixture
    #[arg(long)]
    pub(crate) fixture: Option<String>,
    /// Only entries pulled from this remote
    #[arg(long, value_name = "URL")]
    pub(crate) remote: Option<RemoteUrl>,
    /// Only entries older than this (30d, 12h)
    #[arg(long, value_name = "AGE")]
    pub(crate) older_than: Option<String>,
}

/// Conditions on entries; all must hold.
#[derive(Debug)]
pub(super) struct EntryFilter {
    wanted: CacheFilter,
    /// Made before this time, in milliseconds since 1970.
    before: Option<u64>,
}

impl EntryFilter {
    pub(super) fn new(wanted: CacheFilter) -> Result<EntryFilter, Failure> {
        let age = wanted.older_than.as_deref().map(parse_age).transpose();
        let age = age.map_err(|why| Failure::input(format!("--older-than: {why}")))?;
        let before = age
            .map(|age| now_ms().saturating_sub(u64::try_from(age.as_millis()).unwrap_or(u64::MAX)));
        Ok(EntryFilter { before, wanted })
    }

    /// Whether a record meets the conditions that need no meta.
    pub(super) fn admits(&self, record: &Record) -> bool {
        self.wanted
            .stage
            .is_none_or(|stage| Some(stage) == record.stage())
            && self.before.is_none_or(|before| record.created < before)
    }

    /// That no entry meets the conditions, with the names that were required.
    pub(super) fn refusal(&self) -> String {
        let names = [
            &self.wanted.method,
            &self.wanted.model,
            &self.wanted.fixture,
        ];
        let names = names.into_iter().flatten().map(String::as_str);
        format!("No entry matches {}", list(names))
            .trim_end()
            .to_owned()
            + "."
    }

    /// Whether an entry has the required names.
    pub(super) fn admits_names(&self, meta: &EntryMeta) -> bool {
        let names = [
            (&self.wanted.method, method_of(meta)),
            (&self.wanted.fixture, meta.place.fixture()),
        ];
        names
            .into_iter()
            .all(|(wanted, name)| wanted.is_none() || wanted.as_deref() == name)
            && self
                .wanted
                .model
                .as_deref()
                .is_none_or(|model| is_model(model, meta))
            && self
                .wanted
                .remote
                .as_ref()
                .is_none_or(|remote| meta.imported.as_deref() == Some(remote.to_string().as_str()))
    }
}

/// The method that an entry was made for.
fn method_of(meta: &EntryMeta) -> Option<&str> {
    meta.place.cell().map(|cell| &*cell.method)
}

/// Whether `wanted` is the requested or the answering model, with or without its provider, or what made the entry.
fn is_model(wanted: &str, meta: &EntryMeta) -> bool {
    let names = [meta.model.as_deref(), meta.requested_model.as_deref()];
    names
        .into_iter()
        .flatten()
        .any(|name| is_named(wanted, name))
        || model_of(meta) == wanted
}

/// Whether `wanted` is this name, with or without its provider.
fn is_named(wanted: &str, name: &str) -> bool {
    name == wanted
        || name
            .split_once('/')
            .is_some_and(|(_, model)| model == wanted)
}

/// An age: a number and `s`, `m` (or `min`), `h`, `d` or `w`.
///
/// # Errors
/// What was expected.
fn parse_age(text: &str) -> Result<Duration, String> {
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
