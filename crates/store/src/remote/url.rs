//! The URL of a remote.

use std::fmt;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::str::FromStr;

use base::named_enum;

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
