//! The URL of a remote.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// Where a remote is: a folder of this machine or of a file server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteUrl(pub(super) PathBuf);

/// Why a text is not the URL of a remote. The texts do not repeat it: it may contain credentials.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    #[error("a remote is a folder: fs:///FOLDER")]
    Scheme,
    #[error("object stores are not supported yet: a remote is a folder, which may be on a file server, fs:///FOLDER")]
    ObjectStore,
    #[error("credentials do not belong in the URL of a remote; set them in the environment")]
    Credentials,
    #[error("a folder needs an absolute path: fs:///srv/compeval")]
    Relative,
}

impl FromStr for RemoteUrl {
    type Err = UrlError;
    fn from_str(text: &str) -> Result<RemoteUrl, UrlError> {
        let (scheme, rest) = text.trim().split_once("://").ok_or(UrlError::Scheme)?;
        match scheme {
            "fs" if rest.starts_with('/') => Ok(RemoteUrl(PathBuf::from(rest))),
            "fs" => Err(UrlError::Relative),
            "s3" | "gs" | "az" if rest.contains(['@', '?']) => Err(UrlError::Credentials),
            "s3" | "gs" | "az" => Err(UrlError::ObjectStore),
            _ => Err(UrlError::Scheme),
        }
    }
}

impl fmt::Display for RemoteUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "fs://{}", self.0.display())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_a_folder_and_no_credentials() {
        assert_eq!("fs:///srv/cache".parse::<RemoteUrl>().unwrap().to_string(), "fs:///srv/cache");
        let refused = |text: &str| text.parse::<RemoteUrl>().unwrap_err();
        assert_eq!(refused("s3://KEY:secret@bucket/x"), UrlError::Credentials);
        assert_eq!(refused("s3://bucket/x?X-Amz-Signature=1"), UrlError::Credentials);
        assert_eq!(refused("s3://bucket/x"), UrlError::ObjectStore);
        assert_eq!(refused("fs://srv/cache"), UrlError::Relative);
        for text in ["/srv/cache", "ftp://host/x", ""] {
            assert_eq!(refused(text), UrlError::Scheme);
        }
    }
}
