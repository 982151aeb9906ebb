//! What a command may do with a remote: from flags and environment, and from the pipeline that was checked out.
//!
//! A pull request can change the pipeline, but must not choose where transcripts go or which writers are trusted. So in
//! CI the remote, the trusted writers and the right to write come only from flags and the environment, and the pipeline
//! can only restrict them. Elsewhere the pipeline is the user's own, and flags and environment replace single settings
//! of it.

use std::collections::BTreeSet;

use super::keys::{SigningKey, TrustedWriter};
use super::pack::PartOrigin;
use super::signed::Trust;
use super::url::RemoteUrl;
use crate::digest::Digest;
use base::named_enum;

named_enum! {
    /// Whether entries made here are uploaded.
    #[derive(Default)]
    pub enum RemoteMode {
        /// Entries are only pulled.
        #[default]
        Read = "read",
        /// Entries are pulled and uploaded.
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
    /// Whose entries are used.
    pub trust: Option<Vec<TrustedWriter>>,
    /// Whether entries are uploaded.
    pub mode: Option<RemoteMode>,
    /// Whether source texts are uploaded, too.
    pub texts: Option<bool>,
}

/// Flags and environment.
#[derive(Debug, Default)]
pub struct GivenRemote {
    /// The remote.
    pub url: Option<RemoteUrl>,
    /// Whose entries are used.
    pub trust: Option<Vec<TrustedWriter>>,
    /// Whether entries are uploaded.
    pub mode: Option<RemoteMode>,
    /// Whether source texts are uploaded, too.
    pub texts: Option<bool>,
    /// The key that signs.
    pub key: Option<SigningKey>,
    /// Whether the URL is on the command line.
    pub is_named: bool,
    /// Whether this is a CI job: a stranger may have written the pipeline.
    pub is_ci: bool,
}

/// What a command may do with a remote.
#[derive(Debug)]
pub struct RemoteSettings {
    /// The remote.
    pub url: RemoteUrl,
    /// Whose entries are used.
    pub trust: Vec<TrustedWriter>,
    /// Whether entries made here are uploaded.
    pub mode: RemoteMode,
    /// The key that they are signed with; without one they are not signed.
    pub key: Option<SigningKey>,
    /// Whether packs that nobody signed are used and written: the user named this folder on the command line.
    pub unsigned: bool,
    /// Whether source texts are uploaded, too.
    pub texts: bool,
    /// Names the division of the work into parts. Entries that these parts made come first.
    pub assignment: Option<Digest>,
    /// The part that is run here, from 1.
    pub part: Option<u32>,
}

impl RemoteSettings {
    /// Whether entries made here are uploaded.
    pub fn is_written(&self) -> bool {
        self.mode == RemoteMode::Write
    }

    /// The part of a run in which entries are made here.
    pub(super) fn part_origin(&self) -> Option<PartOrigin> {
        let (assignment, index) = self.assignment.zip(self.part)?;
        Some(PartOrigin { assignment, index })
    }

    /// Whose signatures are accepted.
    pub(super) fn trust(&self) -> Trust {
        let own = self.key.as_ref().map(SigningKey::public);
        Trust {
            writers: self.trust.clone(),
            own,
            unsigned: self.unsigned,
        }
    }
}

/// Settings that do not fit together.
#[allow(missing_docs, reason = "each message says it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    #[error("uploading to the remote needs a signing key, and COMPEVAL_SIGNING_KEY is not set")]
    NoKey,
    #[error("a web server is only read; upload to the folder or bucket that it serves")]
    ReadOnly,
}

impl GivenRemote {
    /// The writers that are trusted, whether or not there is a remote.
    pub fn trusted(&self, declared: &DeclaredRemote) -> Vec<TrustedWriter> {
        match (&self.trust, &declared.trust) {
            (Some(given), Some(declared)) if self.is_ci => {
                let keys: BTreeSet<_> = declared.iter().map(|writer| writer.key).collect();
                given
                    .iter()
                    .filter(|writer| keys.contains(&writer.key))
                    .cloned()
                    .collect()
            }
            (Some(given), _) => given.clone(),
            (None, Some(declared)) if !self.is_ci => declared.clone(),
            (None, _) => Vec::new(),
        }
    }

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
    /// If entries are to be uploaded, and there is no key to sign them with or the remote is only read.
    pub fn resolve(
        self,
        declared: &DeclaredRemote,
    ) -> Result<Option<RemoteSettings>, SettingsError> {
        let trust = self.trusted(declared);
        let Some(url) = self.place(declared).cloned() else {
            return Ok(None);
        };
        let is_narrowed = self.is_ci && declared.mode == Some(RemoteMode::Read);
        let mode = self
            .mode
            .or(declared.mode.filter(|_| !self.is_ci))
            .filter(|_| !is_narrowed)
            .unwrap_or_default();
        let texts = match (self.texts, declared.texts) {
            (given, declared) if self.is_ci => given == Some(true) && declared != Some(false),
            (given, declared) => given.or(declared) == Some(true),
        };
        let unsigned = self.is_named && matches!(url, RemoteUrl::Folder(_));
        let key = match (mode, self.key) {
            (RemoteMode::Read, _) => None,
            (RemoteMode::Write, _) if url.is_read_only() => return Err(SettingsError::ReadOnly),
            (RemoteMode::Write, None) if !unsigned => return Err(SettingsError::NoKey),
            (RemoteMode::Write, key) => key,
        };
        Ok(Some(RemoteSettings {
            url,
            trust,
            mode,
            key,
            unsigned,
            texts,
            assignment: None,
            part: None,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn writer(name: &str, key: &SigningKey) -> TrustedWriter {
        TrustedWriter {
            name: name.into(),
            key: key.public(),
        }
    }

    fn key() -> SigningKey {
        SigningKey::generate().unwrap().0
    }

    fn url(text: &str) -> Option<RemoteUrl> {
        Some(text.parse().unwrap())
    }

    #[test]
    fn in_ci_the_pipeline_only_narrows() {
        let (ci, stranger) = (key(), key());
        let declared = DeclaredRemote {
            url: url("fs:///strange/place"),
            trust: Some(vec![writer("ci", &ci), writer("stranger", &stranger)]),
            mode: Some(RemoteMode::Write),
            texts: Some(true),
        };
        let alone = GivenRemote {
            is_ci: true,
            key: Some(key()),
            ..GivenRemote::default()
        };
        assert!(alone.ignores(&declared) && alone.trusted(&declared).is_empty());
        assert!(alone.resolve(&declared).unwrap().is_none());

        let given = |mode| GivenRemote {
            url: url("fs:///team/ci"),
            trust: Some(vec![writer("ci", &ci), writer("alice", &key())]),
            mode,
            key: Some(key()),
            texts: None,
            is_named: false,
            is_ci: true,
        };
        let settings = given(None).resolve(&declared).unwrap().unwrap();
        assert_eq!(settings.url.to_string(), "fs:///team/ci");
        assert_eq!(settings.trust, [writer("ci", &ci)]);
        assert!(
            settings.key.is_none() && !settings.texts,
            "the pipeline grants nothing"
        );
        let narrow = DeclaredRemote {
            mode: Some(RemoteMode::Read),
            ..DeclaredRemote::default()
        };
        assert!(
            given(Some(RemoteMode::Write))
                .resolve(&narrow)
                .unwrap()
                .unwrap()
                .key
                .is_none()
        );
        assert!(
            given(Some(RemoteMode::Write))
                .resolve(&declared)
                .unwrap()
                .unwrap()
                .key
                .is_some()
        );
    }

    #[test]
    fn elsewhere_single_settings_are_replaced() {
        let ci = key();
        let declared = DeclaredRemote {
            url: url("fs:///srv/cache"),
            trust: Some(vec![writer("ci", &ci)]),
            mode: Some(RemoteMode::Write),
            texts: None,
        };
        let settings = GivenRemote {
            url: url("fs:///other"),
            key: Some(key()),
            ..GivenRemote::default()
        };
        let settings = settings.resolve(&declared).unwrap().unwrap();
        assert_eq!(
            (settings.url.to_string().as_str(), settings.trust.len()),
            ("fs:///other", 1)
        );
        assert!(settings.key.is_some());
        assert_eq!(
            GivenRemote::default().resolve(&declared).unwrap_err(),
            SettingsError::NoKey
        );
        let named = |text| GivenRemote {
            url: url(text),
            is_named: true,
            ..GivenRemote::default()
        };
        assert_eq!(
            named("s3://bucket/x").resolve(&declared).unwrap_err(),
            SettingsError::NoKey
        );
        let unsigned = named("fs:///mine").resolve(&declared).unwrap().unwrap();
        assert!(unsigned.unsigned && unsigned.is_written() && unsigned.key.is_none());
        assert!(
            GivenRemote::default()
                .resolve(&DeclaredRemote::default())
                .unwrap()
                .is_none()
        );
    }
}
