//! The only transport: sends bytes, reads every body to its end, and is the only code that reads a key.
//!
//! It makes one attempt. Whether another one follows is decided by the client's retry loop, so reqwest itself repeats
//! nothing, and it follows no redirects, which could carry a key to another host. Only HTTP/1.1 is spoken: over HTTP/2 all
//! calls would share one connection and the server's limit of streams. This machine is never reached through a proxy.
//!
//! A body is read whole before it is looked at, because a caller stores it as it came; only the results of batches are
//! handed on line by line. A body of more than 16 MB is refused. Of those above 1 MB, one at a time is in memory: its
//! permit travels with the reply until the caller has stored it. Keys that a server echoes are masked in every body.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use bytes::{Bytes, BytesMut};
use memchr::memchr;
pub(super) use reqwest::Method;
use reqwest::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderValue};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::call::ErrorClass;
use super::classify::{AttemptError, Delivery, classify};
use super::dialects::HttpRequest;
use super::limits::Headers;
use super::spec::{ApiKeyVariable, KeyPlace, ProviderName, address};
use base::http::{Route, client, proxy_for, root_cause};
use base::redaction::{self, redact_bytes};

/// A key. It has no `Debug`, `Display` or `Serialize`: it can be sent and nothing else.
pub struct ApiKey(String);

impl ApiKey {
    /// Takes a key; blanks around it are dropped, and an empty text is not a key. From here on the key is redacted from
    /// everything that is stored or printed.
    pub fn new(text: &str) -> Option<ApiKey> {
        let text = text.trim();
        (!text.is_empty()).then(|| {
            redaction::add_key(text);
            ApiKey(text.to_owned())
        })
    }

    /// Reads the key from the environment.
    pub fn from_environment(variable: &ApiKeyVariable) -> Option<ApiKey> {
        // A key of other bytes is set, too: what it becomes here is refused where it is sent.
        ApiKey::new(&std::env::var_os(&*variable.0)?.to_string_lossy())
    }

    /// A mark that distinguishes keys: too short to reveal anything of one.
    pub(super) fn fingerprint(&self) -> u32 {
        crc32fast::hash(self.0.as_bytes())
    }
}

/// The error of a declared key that is not set.
pub(super) fn missing_key(provider: &ProviderName, variable: &ApiKeyVariable) -> AttemptError {
    let message = format!("provider `{provider}` has no key: {variable} is not set");
    AttemptError::new(ErrorClass::Auth, message)
        .with_hint(format!("set {variable} to the provider's API key"))
}

/// A request as the transport sends it.
pub(super) struct Exchange<'r> {
    pub method: Method,
    /// Below the base URL, with a leading slash.
    pub path: &'r str,
    /// Without a question mark; empty for none.
    pub query: &'r str,
    pub content_type: &'r str,
    pub key_place: &'r KeyPlace,
    pub headers: &'r [(&'static str, &'static str)],
    pub body: Bytes,
}

impl<'r> Exchange<'r> {
    /// A request to a model.
    pub(super) fn new(request: &'r HttpRequest, key_place: &'r KeyPlace) -> Exchange<'r> {
        Exchange {
            method: Method::POST,
            path: request.path,
            query: "",
            content_type: "application/json",
            key_place,
            headers: &request.headers,
            body: request.body.clone(),
        }
    }
}

/// A reply of any status.
pub(super) struct HttpReply {
    pub status: u16,
    pub headers: Headers,
    pub body: Bytes,
    /// The permit that a large body needs to be in memory.
    pub memory: Option<Arc<OwnedSemaphorePermit>>,
    /// When it was read, by the provider's clock where ours differs from it.
    pub at: SystemTime,
}

impl HttpReply {
    /// The error of a reply whose status is not 2xx.
    pub(super) fn refusal(&self) -> Option<AttemptError> {
        if (200..300).contains(&self.status) {
            return None;
        }
        let delivery = Delivery::from_status(self.status);
        let mut fault = AttemptError {
            delivery,
            ..classify(self.status, &self.body)
        };
        fault.wait = self.headers.wait(self.at).or(fault.wait);
        fault.should_retry = self.headers.should_retry().or(fault.should_retry);
        if let Some(id) = self.headers.request_id() {
            fault.message = format!("{} (request {id})", fault.message);
        }
        Some(fault)
    }
}

/// The longest body that is read. The longest replies of models have some hundred thousand tokens of a few bytes.
const MAX_BODY: usize = 16 << 20;
/// Longer bodies are read one at a time, each until it is stored. So memory is bounded in bytes, and not only by the number
/// of requests in flight.
const LARGE_BODY: usize = 1 << 20;

/// Sends requests, over connections that it keeps open.
pub(super) struct Http {
    /// One client for each route.
    clients: [OnceLock<Result<reqwest::Client, String>>; 3],
    /// One permit, for the one large body that may be in memory.
    large: Arc<Semaphore>,
}

impl Http {
    pub(super) fn new() -> Http {
        Http {
            clients: Default::default(),
            large: Arc::new(Semaphore::new(1)),
        }
    }

    /// Builds the client for this address. That takes some hundredths of a second, too long for the time between the
    /// admission of a request and its departure.
    pub(super) fn warm_up(&self, base_url: &str) -> Result<(), AttemptError> {
        self.client(base_url).map(|_| ())
    }

    /// Sends `request` and reads the whole reply.
    pub(super) async fn send(
        &self,
        base_url: &str,
        request: &Exchange<'_>,
        key: Option<&ApiKey>,
        timeout: Duration,
    ) -> Result<HttpReply, AttemptError> {
        let response = self.begin(base_url, request, key, timeout).await?;
        self.read(response, timeout).await
    }

    /// Sends `request` and hands the lines of the reply to `each` as they arrive, some at a time. An error of `each` ends
    /// the reading.
    pub(super) async fn lines<E>(
        &self,
        base_url: &str,
        request: &Exchange<'_>,
        key: Option<&ApiKey>,
        timeout: Duration,
        mut each: impl AsyncFnMut(Vec<Bytes>) -> Result<(), E>,
    ) -> Result<Result<(), E>, AttemptError> {
        const AT_ONCE: usize = 256;
        let mut response = self.begin(base_url, request, key, timeout).await?;
        if !response.status().is_success() {
            let reply = self.read(response, timeout).await?;
            return Err(reply.refusal().unwrap_or_else(too_large));
        }
        let (mut rest, mut lines, mut is_over) = (BytesMut::new(), Vec::new(), false);
        while !is_over {
            match response.chunk().await.map_err(|e| fault(e, timeout))? {
                Some(chunk) => rest.extend_from_slice(&chunk),
                None => {
                    is_over = true;
                    rest.extend_from_slice(b"\n");
                }
            }
            while let Some(end) = memchr(b'\n', &rest) {
                let line = rest.split_to(end + 1).freeze();
                if !line.trim_ascii().is_empty() {
                    lines.push(without_keys(line));
                }
            }
            if rest.len() > MAX_BODY {
                return Err(too_large());
            }
            let is_due = lines.len() >= AT_ONCE || (is_over && !lines.is_empty());
            if is_due && let Err(error) = each(std::mem::take(&mut lines)).await {
                return Ok(Err(error));
            }
        }
        Ok(Ok(()))
    }

    async fn begin(
        &self,
        base_url: &str,
        request: &Exchange<'_>,
        key: Option<&ApiKey>,
        timeout: Duration,
    ) -> Result<reqwest::Response, AttemptError> {
        let client = self.client(base_url)?;
        let mut url = address(base_url, request.path);
        if !request.query.is_empty() {
            url = format!(
                "{url}{}{}",
                if url.contains('?') { '&' } else { '?' },
                request.query
            );
        }
        if let (KeyPlace::Parameter(name), Some(key), Ok(mut with_key)) =
            (request.key_place, key, url::Url::parse(&url))
        {
            with_key.query_pairs_mut().append_pair(name, &key.0);
            url = with_key.into();
        }
        let mut builder = client.request(request.method.clone(), url).timeout(timeout);
        if request.method == Method::POST {
            let content_type = HeaderValue::from_str(request.content_type);
            let content_type =
                content_type.unwrap_or(HeaderValue::from_static("application/octet-stream"));
            builder = builder
                .header(CONTENT_TYPE, content_type)
                .body(request.body.clone());
            // The transport names no length of an empty body, and servers may demand one.
            if request.body.is_empty() {
                builder = builder.header(CONTENT_LENGTH, HeaderValue::from_static("0"));
            }
        }
        for (name, value) in request.headers {
            builder = builder.header(*name, *value);
        }
        if let (KeyPlace::Header(name), Some(key)) = (request.key_place, key) {
            builder = builder.header(name, key_value(name, key)?);
        }
        builder.send().await.map_err(|e| fault(e, timeout))
    }

    async fn read(
        &self,
        mut response: reqwest::Response,
        timeout: Duration,
    ) -> Result<HttpReply, AttemptError> {
        let (status, arrived) = (response.status().as_u16(), SystemTime::now());
        let known = response
            .headers()
            .iter()
            .filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)));
        let headers = Headers::new(known);
        let announced = response
            .content_length()
            .and_then(|length| usize::try_from(length).ok())
            .unwrap_or(0);
        if announced > MAX_BODY {
            return Err(too_large());
        }
        let (mut body, mut memory) = (BytesMut::with_capacity(announced.min(LARGE_BODY)), None);
        while let Some(chunk) = response.chunk().await.map_err(|e| fault(e, timeout))? {
            if body.len() + chunk.len() > LARGE_BODY && memory.is_none() {
                // Never closed, so there is always a permit.
                memory = self.large.clone().acquire_owned().await.ok().map(Arc::new);
                body.reserve(announced.saturating_sub(body.len()));
            }
            body.extend_from_slice(&chunk);
            if body.len() > MAX_BODY {
                return Err(too_large());
            }
        }
        let body = without_keys(body.freeze());
        let at = headers.providers_time(arrived, SystemTime::now());
        Ok(HttpReply {
            status,
            headers,
            body,
            memory,
            at,
        })
    }

    fn client(&self, base_url: &str) -> Result<&reqwest::Client, AttemptError> {
        let unusable = |why| AttemptError {
            delivery: Delivery::NotSent,
            ..AttemptError::new(ErrorClass::Unreachable, why)
        };
        proxy_for(base_url).map_err(unusable)?;
        let route = Route::from_url(base_url);
        let built = self.clients[route as usize].get_or_init(|| client(route));
        built.as_ref().map_err(|e| {
            AttemptError::new(
                ErrorClass::Invalid,
                format!("the HTTP client cannot start: {e}"),
            )
        })
    }
}

/// The value of the header with the key.
fn key_value(header: &str, key: &ApiKey) -> Result<HeaderValue, AttemptError> {
    let bearer = if header.eq_ignore_ascii_case("authorization") {
        "Bearer "
    } else {
        ""
    };
    let mut value = HeaderValue::from_str(&format!("{bearer}{}", key.0)).map_err(|_| {
        AttemptError::new(
            ErrorClass::Auth,
            "the API key holds characters that no header can carry",
        )
    })?;
    value.set_sensitive(true);
    Ok(value)
}

/// The error of a body that is too long. The same request would get it again.
fn too_large() -> AttemptError {
    let message = format!("the reply is longer than {} MB", MAX_BODY >> 20);
    AttemptError {
        should_retry: Some(false),
        ..AttemptError::new(ErrorClass::Malformed, message)
    }
}

/// Some gateways echo what they were sent; a key must not reach the cache.
fn without_keys(body: Bytes) -> Bytes {
    match redact_bytes(&body) {
        Cow::Owned(redacted) => redacted.into(),
        Cow::Borrowed(_) => body,
    }
}

fn fault(error: reqwest::Error, timeout: Duration) -> AttemptError {
    let error = error.without_url();
    if error.is_builder() {
        let hint = "base_url must be a full address such as https://api.example.com/v1";
        let fault = AttemptError::new(
            ErrorClass::Invalid,
            format!("the address is unusable: {}", root_cause(&error)),
        );
        return AttemptError {
            delivery: Delivery::NotSent,
            ..fault.with_hint(hint)
        };
    }
    if error.is_timeout() && !error.is_connect() {
        let message = format!("no complete reply within {} s", timeout.as_secs_f64());
        let hint = "raise timeout_s in the provider's limits; where it is a server of your own, also set \
                    max_in_flight there to what it works on at once: what waits inside the server counts as time";
        return AttemptError::new(ErrorClass::Transient, message).with_hint(hint);
    }
    if error.is_connect() {
        let message = format!("cannot connect: {}", root_cause(&error));
        let proxy = error.url().and_then(|url| proxy_for(url.as_str()).ok()?);
        let hint = match proxy {
            Some(proxy) => format!("is the proxy running that {} names?", proxy.variable),
            None => "is the server running, and base_url its address?".to_owned(),
        };
        let fault = AttemptError::new(ErrorClass::Transient, message);
        return AttemptError {
            delivery: Delivery::NotSent,
            ..fault.with_hint(hint)
        };
    }
    let message = if error.is_body() || error.is_decode() {
        format!("the reply broke off: {}", root_cause(&error))
    } else {
        format!("the connection failed: {}", root_cause(&error))
    };
    AttemptError::new(ErrorClass::Transient, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_variable_is_no_key() {
        assert!(ApiKey::new(" \n").is_none());
        assert!(ApiKey::new(" k ").is_some_and(|key| key.0 == "k"));
        assert!(ApiKey::from_environment(&ApiKeyVariable("COMPEVAL_TEST_UNSET".into())).is_none());
    }

    #[test]
    fn a_key_that_no_header_can_carry_is_refused_without_being_shown() {
        let key = ApiKey("line\nbreak-secret".to_owned());
        let fault = key_value("authorization", &key).unwrap_err();
        assert_eq!(fault.class, ErrorClass::Auth);
        assert!(!format!("{fault:?}").contains("secret"));
    }

    #[test]
    fn keys_are_marked_so_that_no_log_shows_them() {
        let key = ApiKey("sk-secret".to_owned());
        for header in ["authorization", "api-key", "Ocp-Apim-Subscription-Key"] {
            let value = key_value(header, &key).unwrap();
            assert!(!format!("{value:?}").contains("secret"));
        }
    }
}
