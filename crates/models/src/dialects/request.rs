//! A request that is ready to send, and why one cannot be built.

use bytes::Bytes;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::call::{Call, Operation};
use crate::spec::{Dialect, Lane};

/// A request ready to send, made once: every retry sends these bytes. All operations are a POST.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpRequest {
    /// The path below the provider's base URL, with a leading slash.
    pub path: &'static str,
    /// Headers besides the key and the content type.
    pub headers: Vec<(&'static str, &'static str)>,
    /// The bytes of the body.
    pub body: Bytes,
}

/// Why a call cannot be put into a dialect.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuildFault {
    /// The dialect knows no such operation.
    #[error("an endpoint of kind `{}` cannot do this ({operation:?})", dialect.name())]
    Unsupported {
        /// The dialect of the endpoint.
        dialect: Dialect,
        /// What was asked of it.
        operation: Operation,
    },
    /// Items that belong to another dialect.
    #[error("items compacted by another provider cannot be sent to an endpoint of kind `{}`", _0.name())]
    ForeignItems(Dialect),
    /// Items that are not what a provider returns.
    #[error("the stored items to send back are no JSON array: {_0}")]
    Items(String),
    /// There is nothing to send.
    #[error("the conversation to send is empty")]
    Empty,
    /// A value that JSON cannot hold.
    #[error("the request could not be written as JSON: {_0}")]
    Json(String),
}

/// The service tier of a request of the flex lane, in OpenAI's dialects.
pub(crate) fn service_tier(call: &Call) -> Option<&'static str> {
    (call.lane == Lane::Flex).then(|| Lane::Flex.name())
}

pub(crate) fn write_body(value: &impl Serialize) -> Result<Bytes, BuildFault> {
    /// Most bodies fit, so they do not move while they grow.
    const USUAL: usize = 16 << 10;
    let mut bytes = Vec::with_capacity(USUAL);
    serde_json::to_writer(&mut bytes, value).map_err(|e| BuildFault::Json(e.to_string()))?;
    Ok(bytes.into())
}

/// The elements of a JSON array, each byte for byte.
pub(crate) fn elements(array: &str) -> Result<Vec<&RawValue>, BuildFault> {
    serde_json::from_str(array).map_err(|e| BuildFault::Items(e.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_keep_their_bytes() {
        let array = r#"[ {"b" : 1.50,"a":"\u00e9"} , 2]"#;
        let texts: Vec<&str> = elements(array).unwrap().iter().map(|e| e.get()).collect();
        assert_eq!(texts, [r#"{"b" : 1.50,"a":"\u00e9"}"#, "2"]);
    }
}
