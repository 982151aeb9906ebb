//! The shared cache of a command: its settings from flags, environment and pipeline.

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use crate::cli::args::REMOTE;
use crate::cli::failure::Failure;
use crate::cli::screen::print_notice;
use crate::cli::terminal::Console;
use crate::entries::key_of;
use crate::evaluation::{Event, Listening, connect_remote, connect_shared, variable};
use store::remote::{
    DeclaredRemote, GivenRemote, RemoteEntries, RemoteKey, RemoteMode, RemoteUrl, SharedCache,
};

/// The shared cache of a command.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct RemoteArgs {
    /// Share the cache at URL: fs:///FOLDER, s3://BUCKET/PREFIX, gs://…, az://…, https://… (or COMPEVAL_REMOTE)
    #[arg(long, value_name = "URL", help_heading = REMOTE)]
    pub(crate) remote: Option<String>,
    /// `write` also puts what is used and made into the remote (or COMPEVAL_REMOTE_MODE)
    #[arg(long, value_name = "MODE", value_parser = remote_modes(), help_heading = REMOTE)]
    pub(crate) remote_mode: Option<RemoteMode>,
}

/// The values of `--remote-mode`.
fn remote_modes() -> impl TypedValueParser<Value = RemoteMode> {
    let modes = RemoteMode::ALL.map(|mode| {
        PossibleValue::new(mode.name()).help(match mode {
            RemoteMode::Read => "Pull alone",
            RemoteMode::Write => "Pull and put",
        })
    });
    PossibleValuesParser::new(modes).map(|name| RemoteMode::from_name(&name).unwrap_or_default())
}

impl RemoteArgs {
    /// These arguments for a command whose outputs others need: a remote on its command line is written, unless a mode is
    /// given.
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
        let (name, url) = match &self.remote {
            Some(url) => ("--remote", Some(url.clone())),
            None => ("COMPEVAL_REMOTE", variable("COMPEVAL_REMOTE")),
        };
        let url = url.map(|url| url.parse::<RemoteUrl>()).transpose();
        let url = url.map_err(|why| Failure::input(format!("{name}: {why}")))?;
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
        let key = variable("COMPEVAL_REMOTE_KEY").map(|secret| {
            RemoteKey::from_secret(&secret).ok_or_else(|| {
                let least = RemoteKey::LEAST;
                Failure::input(format!(
                    "COMPEVAL_REMOTE_KEY: expected a secret of at least {least} characters"
                ))
            })
        });
        Ok(GivenRemote {
            url,
            mode,
            key: key.transpose()?,
            is_named: self.remote.is_some(),
            is_ci: is_ci(),
        })
    }

    /// The shared cache of a command. One that cannot be connected to is a warning.
    pub(crate) fn connect(
        &self,
        declared: &DeclaredRemote,
        console: &Console,
    ) -> Result<Option<SharedCache>, Failure> {
        let mut print = |event: &Event<'_>| print_notice(event, console);
        let listening = Listening::new(&mut print);
        Ok(connect_shared(self.given()?, declared, &listening)?)
    }

    /// The entries of the remote, for a plan. One that cannot be connected to is a warning.
    pub(crate) fn connect_for_plan(
        &self,
        declared: &DeclaredRemote,
        console: &Console,
    ) -> Result<Option<RemoteEntries>, Failure> {
        let given = GivenRemote {
            mode: Some(RemoteMode::Read),
            ..self.given()?
        };
        let mut print = |event: &Event<'_>| print_notice(event, console);
        let listening = Listening::new(&mut print);
        Ok(connect_remote(given, declared, &listening, |settings| {
            RemoteEntries::open(settings, key_of)
        })?)
    }
}

/// Whether this is a job of a continuous integration, which shares no folder with the next one.
pub(crate) fn is_ci() -> bool {
    variable("CI").is_some_and(|value| value != "false" && value != "0")
}
