//! The shared cache of a command: its settings from flags, environment and pipeline.

use std::collections::BTreeSet;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use crate::cli::args::REMOTE;
use crate::cli::failure::{Failure, new_key};
use crate::cli::notices::print_notice;
use crate::cli::terminal::Console;
use crate::entries::key_of;
use crate::evaluation::variable;
use crate::evaluation::{EvaluationError, Event, Listening, connect_remote, trusted_keys};
use store::remote::{
    DeclaredRemote, GivenRemote, RemoteEntries, RemoteError, RemoteMode, RemoteSettings, RemoteUrl,
    SharedCache, SigningKey, TrustedWriter,
};

/// The variable with the secret key.
pub(crate) const SIGNING_KEY: &str = "COMPEVAL_SIGNING_KEY";

/// The shared cache of a command.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct RemoteArgs {
    /// Share the cache at URL: fs:///FOLDER, s3://BUCKET/PREFIX, gs://…, az://…, https://… (or COMPEVAL_REMOTE)
    #[arg(long, value_name = "URL", help_heading = REMOTE)]
    pub(crate) remote: Option<String>,
    /// Use what this writer signed, "NAME PUBLIC-KEY"; repeatable (or COMPEVAL_TRUST, comma-separated)
    #[arg(long, value_name = "WRITER", help_heading = REMOTE)]
    pub(crate) trust: Vec<String>,
    /// `write` uploads what is made here, signed with the key in COMPEVAL_SIGNING_KEY (or COMPEVAL_REMOTE_MODE)
    #[arg(long, value_name = "MODE", value_parser = remote_modes(), help_heading = REMOTE)]
    pub(crate) remote_mode: Option<RemoteMode>,
}

/// The values of `--remote-mode`.
fn remote_modes() -> impl TypedValueParser<Value = RemoteMode> {
    let modes = RemoteMode::ALL.map(|mode| {
        PossibleValue::new(mode.name()).help(match mode {
            RemoteMode::Read => "Pull alone",
            RemoteMode::Write => "Pull and upload",
        })
    });
    PossibleValuesParser::new(modes).map(|name| RemoteMode::from_name(&name).unwrap_or_default())
}

impl RemoteArgs {
    /// These arguments for a command that uploads: a remote on its command line is written to, unless a mode is given.
    pub(crate) fn writing(&self) -> RemoteArgs {
        let is_meant = self.remote.is_some() && variable("COMPEVAL_REMOTE_MODE").is_none();
        let remote_mode = self.remote_mode.or(is_meant.then_some(RemoteMode::Write));
        RemoteArgs {
            remote_mode,
            ..self.clone()
        }
    }

    /// What flags and environment say.
    pub(crate) fn given(&self) -> Result<GivenRemote, Failure> {
        let (flag, url) = from_either("--remote", self.remote.clone(), "COMPEVAL_REMOTE");
        let url = url.map(|url| url.parse::<RemoteUrl>()).transpose();
        let url = url.map_err(|why| Failure::input(format!("{flag}: {why}")))?;
        let mode = match (self.remote_mode, variable("COMPEVAL_REMOTE_MODE")) {
            (Some(mode), _) => Some(mode),
            (None, None) => None,
            (None, Some(text)) => {
                let mode = RemoteMode::from_name(text.trim());
                Some(mode.ok_or_else(|| {
                    Failure::input("COMPEVAL_REMOTE_MODE: expected `read` or `write`")
                })?)
            }
        };
        let key = variable(SIGNING_KEY)
            .map(|text| SigningKey::parse(&text))
            .transpose();
        let key =
            key.map_err(|why| Failure::input(format!("{SIGNING_KEY}: {why}")).hinted(new_key()))?;
        let texts = match variable("COMPEVAL_REMOTE_TEXTS").as_deref().map(str::trim) {
            None => None,
            Some("true" | "1") => Some(true),
            Some("false" | "0") => Some(false),
            Some(_) => {
                return Err(Failure::input(
                    "COMPEVAL_REMOTE_TEXTS: expected `true` or `false`",
                ));
            }
        };
        let is_ci = is_ci();
        let is_named = self.remote.is_some();
        Ok(GivenRemote {
            url,
            trust: self.given_trust()?,
            mode,
            texts,
            key,
            is_named,
            is_ci,
        })
    }

    fn given_trust(&self) -> Result<Option<Vec<TrustedWriter>>, Failure> {
        let listed = variable("COMPEVAL_TRUST");
        let (name, writers) = match listed {
            Some(listed) if self.trust.is_empty() => (
                "COMPEVAL_TRUST",
                listed.split([',', '\n']).map(str::to_owned).collect(),
            ),
            _ => ("--trust", self.trust.clone()),
        };
        let written = writers.iter().filter(|text| !text.trim().is_empty());
        let writers = written
            .map(|text| text.parse::<TrustedWriter>())
            .collect::<Result<Vec<_>, _>>();
        let writers =
            writers.map_err(|why| Failure::input(format!("{name}: {why}")).hinted(new_key()))?;
        Ok(Some(writers).filter(|writers| !writers.is_empty()))
    }

    /// The public keys of the writers that are trusted.
    pub(crate) fn trusted(&self, declared: &DeclaredRemote) -> Result<BTreeSet<String>, Failure> {
        Ok(trusted_keys(&self.given()?, declared))
    }

    /// The shared cache of a run. One that cannot be connected to is a warning.
    pub(crate) fn connect_for_run(
        &self,
        declared: &DeclaredRemote,
        console: &Console,
    ) -> Result<Option<SharedCache>, Failure> {
        self.connect(declared, console, SharedCache::new)
    }

    /// The entries of the remote of a run, for a plan. One that cannot be connected to is a warning.
    pub(crate) fn connect_for_plan(
        &self,
        declared: &DeclaredRemote,
        console: &Console,
    ) -> Result<Option<RemoteEntries>, Failure> {
        let reading = RemoteArgs {
            remote_mode: Some(RemoteMode::Read),
            ..self.clone()
        };
        reading.connect(declared, console, |settings| {
            RemoteEntries::open(settings, key_of)
        })
    }

    fn connect<T>(
        &self,
        declared: &DeclaredRemote,
        console: &Console,
        open: impl FnOnce(RemoteSettings) -> Result<T, RemoteError>,
    ) -> Result<Option<T>, Failure> {
        let given = self.given()?;
        Ok(connect_remote(
            given,
            declared,
            &Listening::new(&mut |event: &Event<'_>| print_notice(event, console)),
            open,
        )?)
    }

    /// The shared cache, for a command that cannot work without one.
    pub(crate) fn required(&self, declared: &DeclaredRemote) -> Result<SharedCache, Failure> {
        let given = self.given()?;
        let is_ignored = given.ignores(declared);
        let Some(settings) = given.resolve(declared).map_err(EvaluationError::from)? else {
            let message = match is_ignored {
                true => "CI is set, so the remote of the pipeline is not used",
                false => "there is no remote",
            };
            let hint = "compeval … --remote fs:///srv/compeval, or COMPEVAL_REMOTE, or `remote` in [cache] of the pipeline";
            return Err(Failure::input(message).hinted(hint));
        };
        Ok(SharedCache::new(settings)?)
    }
}

/// The text of a flag or of a variable, with the name of the one that was used.
fn from_either(
    flag: &'static str,
    text: Option<String>,
    name: &'static str,
) -> (&'static str, Option<String>) {
    match text {
        Some(text) => (flag, Some(text)),
        None => (name, variable(name)),
    }
}

/// Whether this is a job of a continuous integration, which shares no folder with the next one.
pub(crate) fn is_ci() -> bool {
    variable("CI").is_some_and(|value| value != "false" && value != "0")
}
