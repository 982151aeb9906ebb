//! The project at hand: the flags that select it, as requests to open it, and the cache that it shares.

use std::io;
use std::path::{Path, PathBuf};

use clap::Args;

use crate::cli::args::{Common, ONLY_COMPRESS, REMOTE, SelectArgs, one_of};
use crate::cli::failure::Failure;
use crate::cli::screen::{print_notice, print_warnings};
use crate::cli::terminal::Console;
use crate::entries::key_of;
use crate::evaluation::{
    self, Baseline, EvaluationError, Event, Listening, connect_remote, connect_shared,
    paths_of_project, variable,
};
use crate::pipeline::{
    Banks, MatrixSelection, OpenRequest, Opened, Overrides, Pipeline, ProjectPaths,
    declared_locale, find_pipeline, suggest,
};
use crate::results::{Label, previous};
use base::files::{read_any, read_stream};
use base::locale::Locale;
use base::say;
use store::cache::{CacheSnapshot, Store};
use store::remote::{
    DeclaredRemote, GivenRemote, RemoteEntries, RemoteKey, RemoteMode, RemoteUrl, SharedCache,
};

/// The folder a command works in.
pub(crate) fn folder(common: &Common) -> PathBuf {
    common
        .directory
        .clone()
        .unwrap_or_else(|| PathBuf::from("."))
}

/// A path as the user gave it: relative to the folder the command works in.
pub(crate) fn given(common: &Common, path: &Path) -> PathBuf {
    common
        .directory
        .as_ref()
        .map_or_else(|| path.to_owned(), |folder| folder.join(path))
}

/// The bytes of a file as the user gave it; `-` is standard input.
pub(crate) fn read_given(common: &Common, path: &Path) -> io::Result<Vec<u8>> {
    match path == Path::new("-") {
        true => read_stream(io::stdin().lock()),
        false => read_any(&given(common, path)),
    }
}

/// A file that a command reads, as messages name it.
pub(crate) fn given_name(path: &Path) -> String {
    match path == Path::new("-") {
        true => "standard input".to_owned(),
        false => path.display().to_string(),
    }
}

/// A result set as the user named it: a path is relative to the folder the command works in, a label is what it is.
pub(crate) fn given_results(common: &Common, name: &str) -> String {
    let is_path = name.contains(['/', '\\']);
    if is_path {
        given(common, Path::new(name))
            .to_string_lossy()
            .into_owned()
    } else {
        name.to_owned()
    }
}

/// Opens the project and prints its warnings.
pub(crate) fn open_project(request: &OpenRequest, console: &Console) -> Result<Pipeline, Failure> {
    let Opened {
        pipeline, warnings, ..
    } = read_project(request)?;
    print_warnings(console, &warnings);
    Ok(pipeline)
}

pub(crate) fn read_project(request: &OpenRequest) -> Result<Opened, Failure> {
    Ok(evaluation::open_project(request).map_err(EvaluationError::from)?)
}

/// The language of what a reader of results sees: the one on the command line, else that of the project, whether or not
/// it can be opened.
pub(crate) fn locale_of(common: &Common) -> Locale {
    let find = |config| find_pipeline(&folder(common), config).ok();
    let of_project = || {
        // Where the file that was named is not there, the project of the folder still has a language.
        let named = common.config.as_deref();
        let file = find(named).or_else(|| named.and_then(|_| find(None)))?;
        declared_locale(&file, common.profile.as_deref())
    };
    common.locale.or_else(of_project).unwrap_or_default()
}

/// The request to open the whole project.
pub(crate) fn open_request(common: &Common) -> Result<OpenRequest, Failure> {
    Ok(OpenRequest {
        file: find_pipeline(&folder(common), common.config.as_deref())?,
        profile: common.profile.clone(),
        ..OpenRequest::default()
    })
}

/// Opens the project to read its results, with banks that need not be there or hold.
pub(crate) fn project_of_results(common: &Common) -> Result<Pipeline, Failure> {
    let request = OpenRequest {
        allow_unproven: true,
        banks: Banks::IfThere,
        ..open_request(common)?
    };
    Ok(read_project(&request)?.pipeline)
}

/// The request to open what the flags select of the project.
pub(crate) fn selecting_request(
    common: &Common,
    select: &SelectArgs,
) -> Result<OpenRequest, Failure> {
    Ok(OpenRequest {
        selection: MatrixSelection {
            fixtures: non_empty(&select.fixtures),
            methods: non_empty(&select.methods),
            probes: non_empty(&select.probes),
        },
        overrides: Overrides {
            runs: select.runs,
            model: select.model.clone(),
            compressor_model: select.compressor_model.clone(),
            answer_model: select.answer_model.clone(),
            judge_model: select.judge_model.clone(),
            focus_topic: select.focus_topic.clone(),
            lane: select.lane,
        },
        allow_unproven: select.allow_unproven,
        planted: select.planted,
        compress_only: select.stages.as_deref() == Some(ONLY_COMPRESS),
        ..open_request(common)?
    })
}

/// The paths of the project, without validating its files.
pub(crate) fn project_paths_of(common: &Common) -> Result<ProjectPaths, Failure> {
    let file = find_pipeline(&folder(common), common.config.as_deref())?;
    Ok(paths_of_project(&file, common.profile.as_deref())?)
}

/// Refuses names of fixtures that the project does not have.
pub(crate) fn require_fixtures(paths: &ProjectPaths, names: &[String]) -> Result<(), Failure> {
    let Some(unknown) = names.iter().find(|name| !paths.files.contains_key(*name)) else {
        return Ok(());
    };
    let hint = suggest(unknown, paths.files.keys().map(String::as_str));
    Err(Failure::input(format!("there is no fixture `{unknown}`")).hinted(hint))
}

fn non_empty(names: &[String]) -> Option<Vec<String>> {
    (!names.is_empty()).then(|| names.to_vec())
}

/// Opens the cache for writing; `COMPEVAL_CACHE` moves it, which the pipeline has seen to.
pub(crate) fn open_store(cache: &Path, console: &Console) -> Result<Store, Failure> {
    Ok(evaluation::open_store(
        cache,
        &Listening::new(&mut |event: &Event<'_>| print_notice(event, console)),
    )?)
}

/// Prints the notices of the cache.
pub(crate) fn print_notices(store: &Store, console: &Console) {
    for notice in store.notices() {
        console.warn("cache:", notice);
    }
}

/// Opens the cache for reading, also while another process writes.
pub(crate) fn open_snapshot(cache: &Path) -> Result<CacheSnapshot, Failure> {
    Ok(evaluation::open_snapshot(cache)?)
}

/// The side of this name; of `previous` the newest complete results of another label than `own`, which is said.
pub(crate) fn named_side(
    results: &Path,
    side: &str,
    own: Option<&str>,
    is_planted: bool,
    console: &Console,
) -> Result<String, Failure> {
    if side != Label::PREVIOUS {
        return Ok(side.to_owned());
    }
    let label = previous(results, own, is_planted)?.to_string();
    console.note(&say!(
        console.locale,
        "using `{label}`, the newest complete results",
        "取用 `{label}`：最新的完整结果"
    ));
    Ok(label)
}

/// The baseline that `--compare-to` names for a run with this selection, if it is given.
pub(crate) fn baseline_of(
    common: &Common,
    side: Option<&str>,
    select: &SelectArgs,
    only_common: bool,
    console: &Console,
) -> Result<Option<Baseline>, Failure> {
    let Some(side) = side else { return Ok(None) };
    let results = project_paths_of(common)?.results;
    let own = select.label.as_ref().map(Label::as_str);
    let side = named_side(&results, side, own, select.planted, console)?;
    Ok(Some(Baseline { side, only_common }))
}

/// The shared cache of a command.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct RemoteArgs {
    /// Share the cache at URL: fs:///FOLDER, s3://BUCKET/PREFIX, gs://…, az://…, https://… (or COMPEVAL_REMOTE)
    #[arg(long, value_name = "URL", help_heading = REMOTE, hide_short_help = true)]
    pub(crate) remote: Option<String>,
    /// `write` also puts what is used and made into the remote (or COMPEVAL_REMOTE_MODE)
    #[arg(long, value_name = "MODE", value_parser = one_of(&RemoteMode::ALL, RemoteMode::name), help_heading = REMOTE, hide_short_help = true)]
    pub(crate) remote_mode: Option<RemoteMode>,
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
            (None, Some(text)) => {
                let mut modes = RemoteMode::ALL.into_iter();
                let mode = modes.find(|mode| mode.name() == text.trim());
                let why = "COMPEVAL_REMOTE_MODE: expected `read` or `write`";
                Some(mode.ok_or_else(|| Failure::input(why))?)
            }
            (mode, _) => mode,
        };
        // With a remote, an empty one is a secret that the CI job was not given.
        let secret = std::env::var("COMPEVAL_REMOTE_KEY").ok();
        let secret = secret.filter(|secret| url.is_some() || !secret.is_empty());
        let key = secret.map(|secret| {
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

/// Refuses a variable of compeval, or one that names a proxy, whose value is no text: a command that went on without it
/// would use another folder, check no codes, or go past the proxy.
pub(crate) fn check_variables() -> Result<(), Failure> {
    const PROXIES: [&str; 4] = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"];
    let is_read = |name: &String| {
        name.starts_with("COMPEVAL_") || PROXIES.contains(&&*name.to_ascii_uppercase())
    };
    let unreadable = std::env::vars_os().filter(|(_, value)| value.to_str().is_none());
    let mut names = unreadable.filter_map(|(name, _)| name.into_string().ok());
    match names.find(is_read) {
        Some(name) => Err(Failure::input(format!("the value of {name} is not UTF-8"))),
        None => Ok(()),
    }
}

/// Whether this is a job of a continuous integration, which shares no folder with the next one.
fn is_ci() -> bool {
    variable("CI").is_some_and(|value| value != "false" && value != "0")
}
