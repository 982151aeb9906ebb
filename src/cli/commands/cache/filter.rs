//! The selection of entries by stage, method, model, fixture and age, and ages as users write them (`30d`, `12h`).

use std::collections::BTreeSet;
use std::time::Duration;

use clap::Args;

use super::entry::model_of;
use crate::action::Stage;
use crate::cli::failure::Failure;
use crate::entries::{EntryMeta, EntryRecord};
use crate::pipeline::suggest;
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

    /// Advice if nothing was found: the nearest name for the first one that no entry has.
    pub(super) fn advice(&self, names: &EntryNames) -> Option<String> {
        let parts = [
            ("method", &self.wanted.method, &names.methods),
            ("model", &self.wanted.model, &names.models),
            ("fixture", &self.wanted.fixture, &names.fixtures),
        ];
        let of = match (self.wanted.stage, self.before) {
            (None, None) => "",
            (Some(_), None) => " of this stage",
            (None, Some(_)) => " of this age",
            (Some(_), Some(_)) => " of this stage and age",
        };
        let unknown = parts.into_iter().find_map(|(what, wanted, known)| {
            let wanted = wanted
                .as_ref()
                .filter(|wanted| !known.iter().any(|name| is_named(wanted, name)))?;
            let hint = suggest(wanted, known.iter().map(String::as_str));
            Some(format!("no entry{of} has the {what} `{wanted}`; {hint}"))
        });
        unknown.filter(|_| !names.fixtures.is_empty() || !names.models.is_empty())
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

/// The names that occur in entries.
#[derive(Debug, Default)]
pub(super) struct EntryNames {
    methods: BTreeSet<String>,
    models: BTreeSet<String>,
    fixtures: BTreeSet<String>,
}

impl EntryNames {
    pub(super) fn add(&mut self, meta: &EntryMeta) {
        add_name(&mut self.methods, method_of(meta));
        add_name(&mut self.fixtures, meta.place.fixture());
        add_name(&mut self.models, meta.requested_model.as_deref());
        add_name(&mut self.models, meta.model.as_deref());
        if meta.requested_model.is_none() {
            add_name(&mut self.models, Some(model_of(meta).as_str()));
        }
    }
}

/// Adds a name; most are known already, and cost no copy.
fn add_name(names: &mut BTreeSet<String>, name: Option<&str>) {
    if let Some(name) = name.filter(|name| !names.contains(*name)) {
        names.insert(name.to_owned());
    }
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
    fn advice_names_only_the_conditions_that_were_given() {
        let names = EntryNames {
            models: ["mock/small-1".to_owned()].into(),
            ..EntryNames::default()
        };
        let cases = [
            (None, None, "no entry has"),
            (Some(Stage::Judge), None, "no entry of this stage has"),
            (None, Some("1h"), "no entry of this age has"),
            (
                Some(Stage::Judge),
                Some("1h"),
                "no entry of this stage and age has",
            ),
        ];
        for (stage, age, words) in cases {
            let (model, older_than) = (Some("mock/small-2".to_owned()), age.map(str::to_owned));
            let wanted = CacheFilter {
                stage,
                model,
                older_than,
                ..CacheFilter::default()
            };
            let advice = EntryFilter::new(wanted).unwrap().advice(&names).unwrap();
            assert!(
                advice.starts_with(&format!("{words} the model `mock/small-2`")),
                "{advice}"
            );
        }
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
