//! The URL of a remote, and what a command may do with it: from flags and environment, and from the pipeline that was
//! checked out.
//!
//! A pull request can change the pipeline, but must not choose where transcripts go or come from. So in CI the address and
//! the mode come only from flags and the environment. Elsewhere the pipeline is the user's own, and flags and environment
//! replace single settings of it.

use std::fmt;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::str::FromStr;

use super::RemoteError;
use crate::digest::RemoteKey;
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

/// Where a remote is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RemoteUrl {
    /// A folder of this machine or of a file server.
    Folder(PathBuf),
    /// A bucket of an object store.
    Bucket(BucketUrl),
    /// A web server, which is only read: scheme, host and path, without a slash at the end.
    Web(String),
}

/// A prefix in a bucket of an object store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketUrl {
    /// The service.
    pub store: StoreKind,
    /// The name of the bucket or container.
    pub bucket: String,
    /// Without slashes at its ends; empty for the whole bucket.
    pub prefix: String,
}

named_enum! {
    /// The object stores, by the schemes of their URLs.
    pub enum StoreKind {
        /// Amazon S3, and services with its protocol.
        S3 = "s3",
        /// Google Cloud Storage.
        GoogleCloudStorage = "gs",
        /// Azure Blob Storage.
        AzureBlobs = "az",
    }
}

// Why a text is not the URL of a remote. The texts do not repeat it: it may contain credentials.
const SCHEME: &str = "a remote is fs:///FOLDER, s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, az://CONTAINER/PREFIX, or https://HOST/PATH, \
     which is only read";
const CREDENTIALS: &str =
    "credentials do not belong in the URL of a remote; set them in the environment";
const RELATIVE: &str = "a folder needs an absolute path: fs:///srv/compeval";
const BUCKET: &str =
    "expected the name of a bucket and a prefix of letters, digits, `-`, `_`, `.` and `/`";
const PLAIN_HTTP: &str = "http:// is for servers of this machine alone; use https://";

impl RemoteUrl {
    /// Whether nothing can be written to it.
    pub fn is_read_only(&self) -> bool {
        matches!(self, RemoteUrl::Web(_))
    }
}

impl FromStr for RemoteUrl {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<RemoteUrl, &'static str> {
        let (scheme, rest) = text.trim().split_once("://").ok_or(SCHEME)?;
        match scheme {
            "fs" if rest.starts_with('/') => return Ok(RemoteUrl::Folder(PathBuf::from(rest))),
            "fs" => return Err(RELATIVE),
            _ if rest.contains(['@', '?', '#']) => return Err(CREDENTIALS),
            _ => {}
        }
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        let path = path.trim_matches('/');
        let is_safe = path.is_empty()
            || path
                .split('/')
                .all(|part| !matches!(part, "" | "." | "..") && is_plain(part));
        if let Some(store) = StoreKind::ALL
            .into_iter()
            .find(|store| store.name() == scheme)
        {
            if host.is_empty() || !is_plain(host) || !is_safe {
                return Err(BUCKET);
            }
            return Ok(RemoteUrl::Bucket(BucketUrl {
                store,
                bucket: host.to_owned(),
                prefix: path.to_owned(),
            }));
        }
        let name = host.split(':').next().unwrap_or_default();
        let is_near = name == "localhost"
            || name
                .parse()
                .is_ok_and(|address: Ipv4Addr| address.is_loopback());
        match scheme {
            "http" if !is_near => Err(PLAIN_HTTP),
            "http" | "https" if name.is_empty() || host.chars().any(char::is_whitespace) => {
                Err(SCHEME)
            }
            "http" | "https" => Ok(RemoteUrl::Web(
                format!("{scheme}://{host}/{path}")
                    .trim_end_matches('/')
                    .to_owned(),
            )),
            _ => Err(SCHEME),
        }
    }
}

fn is_plain(text: &str) -> bool {
    text.chars()
        .all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
}

impl fmt::Display for RemoteUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RemoteUrl::Folder(path) => write!(f, "fs://{}", path.display()),
            RemoteUrl::Bucket(bucket) => fmt::Display::fmt(bucket, f),
            RemoteUrl::Web(url) => f.write_str(url),
        }
    }
}

impl fmt::Display for BucketUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let slash = if self.prefix.is_empty() { "" } else { "/" };
        write!(f, "{}://{}{slash}{}", self.store, self.bucket, self.prefix)
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

    #[test]
    fn a_url_names_a_place_and_no_credentials() {
        for url in [
            "fs:///srv/cache",
            "s3://bucket",
            "s3://bucket/team/evals",
            "gs://b/x",
            "az://c",
            "https://host/a",
            "http://127.0.0.1:9000/a",
        ] {
            assert_eq!(url.parse::<RemoteUrl>().unwrap().to_string(), url);
        }
        assert_eq!(
            "s3://bucket/x/".parse::<RemoteUrl>().unwrap().to_string(),
            "s3://bucket/x"
        );
        let refused = |text: &str| text.parse::<RemoteUrl>().unwrap_err();
        for text in [
            "s3://KEY:secret@bucket/x",
            "s3://bucket/x?X-Amz-Signature=1",
            "https://me:secret@host/x",
        ] {
            assert_eq!(refused(text), CREDENTIALS);
        }
        assert_eq!(refused("fs://srv/cache"), RELATIVE);
        for text in [
            "s3://",
            "s3:///x",
            "s3://bucket/../x",
            "gs://bucket/a//b",
            "az://a b",
        ] {
            assert_eq!(refused(text), BUCKET, "{text}");
        }
        for text in ["http://example.com/x", "http://127.example.com/x"] {
            assert_eq!(refused(text), PLAIN_HTTP);
        }
        for text in ["/srv/cache", "ftp://host/x", "", "https:///x"] {
            assert_eq!(refused(text), SCHEME);
        }
    }
}
