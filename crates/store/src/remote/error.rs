//! Why an operation on a remote failed. The texts contain no credentials: backends pass on kinds of errors and the
//! names of objects, and the console redacts keys.

use base::say;

/// Why an operation on a remote failed.
#[allow(missing_docs, reason = "each message says it")]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RemoteError {
    /// There is no such object, or it ends before the range.
    #[error("there is no object {0}")]
    NotFound(String),
    /// It is there, and is nothing that this program wrote.
    #[error("the object {object} is not read: {what}")]
    Refused { object: String, what: &'static str },
    /// The folder or bucket itself.
    #[error("{}", say!("{url} does not exist. {hint}", "{url} 不存在。{hint}"))]
    Missing { url: String, hint: String },
    #[error("{}", say!("access to {url} was denied. {hint}", "无权访问 {url}。{hint}"))]
    Denied { url: String, hint: &'static str },
    #[error("could not {operation} {url}: {what}")]
    Failed { operation: &'static str, url: String, what: String },
    /// The environment does not say what it must say.
    #[error("{}", say!("{url} cannot be used: {what}", "无法使用 {url}：{what}"))]
    Setup { url: String, what: String },
    #[error(
        "this compeval was built without object stores, so {0} cannot be used; the released programs have them, and so \
         has `cargo install compeval --features object-stores`"
    )]
    NotBuilt(String),
    /// Its objects are not those of this program.
    #[error(
        "{url} contains `{found}` and no cache of compeval. Nothing was written; name an empty prefix or folder of its own"
    )]
    Foreign { url: String, found: String },
    #[error("{url} has format {found}, and this program supports formats up to {known}; use a newer compeval")]
    NewerFormat { url: String, found: u64, known: u64 },
    #[error("{url} can be read by anybody, and entries contain transcripts; nothing was uploaded. {hint}")]
    Public { url: String, hint: String },
}

impl RemoteError {
    /// Something that is to be written cannot be encoded.
    pub(super) fn unencoded(object: &str, error: &postcard::Error) -> RemoteError {
        let what = format!("it cannot be encoded: {error}");
        RemoteError::Failed { operation: "write", url: object.to_owned(), what }
    }

    /// Whether the user has to change something before it can work.
    pub fn is_input(&self) -> bool {
        !matches!(self, RemoteError::NotFound(_) | RemoteError::Failed { .. } | RemoteError::Refused { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_without_object_stores_says_which_one_has_them() {
        let error = RemoteError::NotBuilt("s3://bucket/x".into());
        let text = error.to_string();
        assert!(text.contains("s3://bucket/x") && text.contains("--features object-stores"), "{text}");
        assert!(error.is_input());
    }
}
