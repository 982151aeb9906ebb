//! Why a call to a remote failed. The texts contain no credentials: they have kinds of errors and the names of objects,
//! and the console redacts keys.

/// Why a call to a remote failed.
#[allow(missing_docs, reason = "each message says it")]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RemoteError {
    /// An object that this program did not write. It counts as missing.
    #[error("{what}")]
    Refused { what: &'static str },
    /// The folder or bucket itself.
    #[error("{url} does not exist. {hint}")]
    Missing { url: String, hint: String },
    #[error("access to {url} was denied. {hint}")]
    Denied { url: String, hint: &'static str },
    #[error("could not {operation} {url}: {what}")]
    Failed {
        operation: &'static str,
        url: String,
        what: String,
    },
    /// A setting in the environment is missing or wrong.
    #[error("{url} cannot be used: {what}")]
    Setup { url: String, what: String },
    #[error(
        "this compeval was built without object stores, so {_0} cannot be used; the released programs have them, and so \
         has `cargo install compeval --features object-stores`"
    )]
    NotBuilt(String),
}

impl RemoteError {
    pub(super) fn failed(
        operation: &'static str,
        url: &str,
        what: impl Into<String>,
    ) -> RemoteError {
        RemoteError::Failed {
            operation,
            url: url.to_owned(),
            what: what.into(),
        }
    }

    /// Whether the user has to change something before it can work.
    pub fn is_input(&self) -> bool {
        !matches!(
            self,
            RemoteError::Failed { .. } | RemoteError::Refused { .. }
        )
    }
}
