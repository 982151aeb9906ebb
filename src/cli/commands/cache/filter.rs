//! Which entries a command is about.

use std::collections::BTreeSet;

use clap::Args;

use super::entry::model_of;
use super::limits::parse_age;
use crate::action::Stage;
use crate::cache::{Meta, Record};
use crate::cli::args::StageArg;
use crate::cli::failure::Failure;
use crate::pipeline::suggest;

/// Which entries.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct CacheFilter {
    /// Of this stage
    #[arg(long)]
    pub(crate) stage: Option<StageArg>,
    /// Made for this method
    #[arg(long)]
    pub(crate) method: Option<String>,
    /// Answered by this model
    #[arg(long)]
    pub(crate) model: Option<String>,
    /// Made for this fixture
    #[arg(long)]
    pub(crate) fixture: Option<String>,
    /// Older than this (30d, 12h)
    #[arg(long, value_name = "AGE")]
    pub(crate) older_than: Option<String>,
}

/// Which entries; all conditions must hold.
#[derive(Debug, Default)]
pub(super) struct Filter {
    stage: Option<Stage>,
    method: Option<String>,
    model: Option<String>,
    fixture: Option<String>,
    /// Came before this time, in milliseconds since 1970.
    before: Option<u64>,
}

/// Now, in milliseconds since 1970 (UTC).
pub(crate) fn now_ms() -> u64 {
    u64::try_from(jiff::Timestamp::now().as_millisecond()).unwrap_or(0)
}

impl Filter {
    /// The filter of some flags.
    pub(super) fn new(args: &CacheFilter) -> Result<Filter, Failure> {
        let age = args.older_than.as_deref().map(parse_age).transpose();
        let age = age.map_err(|why| Failure::input(format!("--older-than: {why}")))?;
        let before =
            |age: std::time::Duration| now_ms().saturating_sub(u64::try_from(age.as_millis()).unwrap_or(u64::MAX));
        Ok(Filter {
            stage: args.stage.map(|stage| stage.stage()),
            method: args.method.clone(),
            model: args.model.clone(),
            fixture: args.fixture.clone(),
            before: age.map(before),
        })
    }

    /// Whether names are asked for, which stand in metas alone.
    pub(super) fn names_anything(&self) -> bool {
        self.method.is_some() || self.model.is_some() || self.fixture.is_some()
    }

    /// Whether a record may be meant.
    pub(super) fn admits(&self, record: &Record) -> bool {
        self.stage.is_none_or(|stage| stage == record.stage) && self.before.is_none_or(|before| record.created < before)
    }

    /// Whether the names are those asked for.
    pub(super) fn admits_names(&self, meta: &Meta) -> bool {
        let is = |wanted: &Option<String>, name: &Option<String>| wanted.is_none() || wanted == name;
        is(&self.method, &meta.coordinate.method)
            && is(&self.fixture, &meta.coordinate.fixture)
            && self.model.as_deref().is_none_or(|model| is_model(model, meta))
    }

    /// What to say where nothing was found: for each name that no entry has, the nearest one.
    pub(super) fn advice(&self, names: &Names) -> Option<String> {
        let parts = [
            ("method", &self.method, &names.methods),
            ("model", &self.model, &names.models),
            ("fixture", &self.fixture, &names.fixtures),
        ];
        let unknown = parts.into_iter().find_map(|(what, wanted, known)| {
            let wanted = wanted.as_ref().filter(|wanted| !known.contains(*wanted))?;
            let hint = suggest(wanted, known.iter().map(String::as_str));
            Some(format!("no entry has the {what} `{wanted}`; {hint}"))
        });
        unknown.filter(|_| !names.fixtures.is_empty() || !names.models.is_empty())
    }
}

/// Whether `wanted` names the model that was asked or that answered, with or without its provider.
fn is_model(wanted: &str, meta: &Meta) -> bool {
    let names = [meta.model.as_deref(), meta.requested_model.as_deref()];
    let bare = |name: &str| name.split_once('/').is_some_and(|(_, model)| model == wanted);
    names.into_iter().flatten().any(|name| name == wanted || bare(name)) || model_of(meta) == wanted
}

/// The names that entries have.
#[derive(Debug, Default)]
pub(super) struct Names {
    methods: BTreeSet<String>,
    models: BTreeSet<String>,
    fixtures: BTreeSet<String>,
}

impl Names {
    /// Takes note of an entry's names.
    pub(super) fn note(&mut self, meta: &Meta) {
        let keep = |set: &mut BTreeSet<String>, name: &Option<String>| {
            if let Some(name) = name.as_ref().filter(|name| !set.contains(*name)) {
                set.insert(name.clone());
            }
        };
        keep(&mut self.methods, &meta.coordinate.method);
        keep(&mut self.fixtures, &meta.coordinate.fixture);
        keep(&mut self.models, &meta.requested_model);
        keep(&mut self.models, &meta.model);
    }
}
