//! What a command may do with a remote: from flags and environment, and from the pipeline that was checked out.
//!
//! A pull request can change the pipeline, but must not choose where transcripts go or come from. So in CI the address and
//! the mode come only from flags and the environment. Elsewhere the pipeline is the user's own, and flags and environment
//! replace single settings of it.

use super::RemoteError;
use super::object::RemoteKey;
use super::url::RemoteUrl;
use base::named_enum;

named_enum! {
    /// Whether what a run uses is put into the remote.
    #[derive(Default)]
    pub enum RemoteMode {
        /// Entries are only pulled.
        #[default]
        Read = "read",
        /// Entries are pulled and put.
        Write = "write",
    }
}

impl RemoteMode {
    /// The mode of this name.
    pub fn from_name(name: &str) -> Option<RemoteMode> {
        RemoteMode::ALL.into_iter().find(|mode| mode.name() == name)
    }
}

/// The table `[cache]` of the pipeline.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeclaredRemote {
    /// The remote.
    pub url: Option<RemoteUrl>,
    /// Whether it is written.
    pub mode: Option<RemoteMode>,
}

/// Flags and environment.
#[derive(Clone, Debug, Default)]
pub struct GivenRemote {
    /// The remote.
    pub url: Option<RemoteUrl>,
    /// Whether it is written.
    pub mode: Option<RemoteMode>,
    /// The key of the codes in objects.
    pub key: Option<RemoteKey>,
    /// Whether the URL is on the command line.
    pub is_named: bool,
    /// Whether this is a CI job: a stranger may have written the pipeline.
    pub is_ci: bool,
}

/// What a command may do with a remote.
#[derive(Clone, Debug)]
pub struct RemoteSettings {
    /// The remote.
    pub url: RemoteUrl,
    /// Whether it is written.
    pub mode: RemoteMode,
    /// The key of the codes in objects.
    pub key: Option<RemoteKey>,
}

impl RemoteSettings {
    /// Whether what a run uses is put into the remote.
    pub fn is_written(&self) -> bool {
        self.mode == RemoteMode::Write
    }
}

impl GivenRemote {
    /// Where the remote is, if there is one.
    pub fn place<'s>(&'s self, declared: &'s DeclaredRemote) -> Option<&'s RemoteUrl> {
        self.url
            .as_ref()
            .or(declared.url.as_ref().filter(|_| !self.is_ci))
    }

    /// Whether the pipeline declares a remote that is not used, because this is a CI job that was given none.
    pub fn ignores(&self, declared: &DeclaredRemote) -> bool {
        self.is_ci && self.url.is_none() && declared.url.is_some()
    }

    /// The settings; `None` without a remote.
    ///
    /// # Errors
    /// If a remote is to be written that is only read.
    pub fn resolve(self, declared: &DeclaredRemote) -> Result<Option<RemoteSettings>, RemoteError> {
        let Some(url) = self.place(declared).cloned() else {
            return Ok(None);
        };
        let declared = declared.mode.filter(|_| !self.is_ci);
        let mode = self.mode.or(declared).unwrap_or_default();
        if mode == RemoteMode::Write && url.is_read_only() {
            return Err(RemoteError::ReadOnly);
        }
        let key = self.key;
        Ok(Some(RemoteSettings { url, mode, key }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Option<RemoteUrl> {
        Some(text.parse().unwrap())
    }

    #[test]
    fn in_ci_address_and_mode_come_from_flags_and_environment_alone() {
        let declared = DeclaredRemote {
            url: url("fs:///strange/place"),
            mode: Some(RemoteMode::Write),
        };
        let alone = GivenRemote {
            is_ci: true,
            ..GivenRemote::default()
        };
        assert!(alone.ignores(&declared));
        assert!(alone.resolve(&declared).unwrap().is_none());
        let given = |mode| GivenRemote {
            url: url("fs:///team/ci"),
            mode,
            is_ci: true,
            ..GivenRemote::default()
        };
        let settings = given(None).resolve(&declared).unwrap().unwrap();
        assert_eq!(settings.url.to_string(), "fs:///team/ci");
        assert!(!settings.is_written(), "the pipeline grants nothing");
        let settings = given(Some(RemoteMode::Write)).resolve(&DeclaredRemote {
            mode: Some(RemoteMode::Read),
            ..DeclaredRemote::default()
        });
        assert!(settings.unwrap().unwrap().is_written());
    }

    #[test]
    fn elsewhere_single_settings_are_replaced() {
        let declared = DeclaredRemote {
            url: url("fs:///srv/cache"),
            mode: Some(RemoteMode::Write),
        };
        let given = GivenRemote {
            url: url("fs:///other"),
            ..GivenRemote::default()
        };
        let settings = given.resolve(&declared).unwrap().unwrap();
        assert_eq!(settings.url.to_string(), "fs:///other");
        assert!(settings.is_written());
        let web = GivenRemote {
            url: url("https://host/x"),
            ..GivenRemote::default()
        };
        assert_eq!(web.resolve(&declared).unwrap_err(), RemoteError::ReadOnly);
        let nothing = GivenRemote::default().resolve(&DeclaredRemote::default());
        assert!(nothing.unwrap().is_none());
    }
}
