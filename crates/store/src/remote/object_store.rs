//! Buckets of object stores and web servers as remotes, through Apache OpenDAL, which only this file uses.
//!
//! Credentials come from the variables and files that each vendor's own tools read. Error messages of services are
//! shortened and redacted: some services repeat the request in them.

use std::time::Duration;

use bytes::Bytes;
use futures::{FutureExt, TryStreamExt};
use opendal::layers::{RetryLayer, TimeoutLayer};
use opendal::services::{Azblob, Gcs, Http, S3};
use opendal::{Builder, Error, ErrorKind, HttpTransporter, OperationContext, Operator};
use opendal_http_transport_reqwest::ReqwestTransport;

use super::settings::{BucketUrl, StoreKind};
use super::{MAX_OBJECT, Remote, RemoteError, RemoteFuture};
use base::http::{self, Route};
use base::redaction;
use base::text::{one_line, shortened};

/// The variables that hold secrets, and the ids that vendors put beside them.
const SECRETS: [&str; 10] = [
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AZURE_CLIENT_SECRET",
    "AZURE_STORAGE_ACCOUNT_KEY",
    "AZURE_STORAGE_BEARER_TOKEN",
    "AZURE_STORAGE_CONNECTION_STRING",
    "AZURE_STORAGE_KEY",
    "AZURE_STORAGE_SAS_TOKEN",
    "COMPEVAL_REMOTE_TOKEN",
];

/// An object of this size is read beside others, and a larger one alone, so that many of them do not fill the memory.
const SMALL: u64 = 1 << 20;

/// A prefix in a bucket, or the folder of a web server, which is only read.
#[derive(Debug)]
struct Objects {
    url: String,
    operator: Operator,
    /// The hint for when access is denied.
    credentials: &'static str,
    /// The hint for when there is no such bucket.
    create: &'static str,
    /// Held while a large object is read.
    large: tokio::sync::Mutex<()>,
}

/// Opens a bucket. Sends nothing yet.
pub(super) fn open_bucket(at: &BucketUrl) -> Result<Box<dyn Remote>, RemoteError> {
    redact_secrets();
    let url = at.to_string();
    let (operator, credentials, create) = match at.store {
        StoreKind::S3 => (
            s3(at),
            "Check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_REGION, and what the key may do: without s3:ListBucket \
             S3 refuses to say that an object is missing",
            "Create the bucket, or correct its name, AWS_REGION or AWS_ENDPOINT_URL",
        ),
        StoreKind::GoogleCloudStorage => (
            gcs(at),
            "Check the file of GOOGLE_APPLICATION_CREDENTIALS, and what its account may do",
            "Create the bucket, or correct its name",
        ),
        StoreKind::AzureBlobs => (
            azblob(at),
            "Check AZURE_STORAGE_ACCOUNT_NAME, AZURE_STORAGE_ACCOUNT_KEY or the other AZURE variables, and the roles",
            "Create the container, or correct its name or AZURE_STORAGE_ACCOUNT_NAME",
        ),
    };
    let operator = operator.map_err(|what| unusable(&url, &what))?;
    Ok(Box::new(Objects {
        url,
        operator,
        credentials,
        create,
        large: tokio::sync::Mutex::default(),
    }))
}

/// Opens a web server. Sends nothing yet.
pub(super) fn open_web_server(url: &str) -> Result<Box<dyn Remote>, RemoteError> {
    redact_secrets();
    let (scheme, rest) = url.split_once("://").unwrap_or(("https", url));
    let (host, root) = rest.split_once('/').unwrap_or((rest, ""));
    let mut builder = Http::default()
        .endpoint(&format!("{scheme}://{host}"))
        .root(root);
    if let Some(token) = variable("COMPEVAL_REMOTE_TOKEN") {
        builder = builder.token(&token);
    }
    let operator = operator(builder, Some(url)).map_err(|what| unusable(url, &what))?;
    let credentials = "Check COMPEVAL_REMOTE_TOKEN, if the server wants a bearer token";
    Ok(Box::new(Objects {
        url: url.to_owned(),
        operator,
        credentials,
        create: "Correct the address",
        large: tokio::sync::Mutex::default(),
    }))
}

fn unusable(url: &str, what: &str) -> RemoteError {
    RemoteError::Input(format!("{url} cannot be used: {what}"))
}

fn variable(name: &str) -> Option<String> {
    let value = std::env::var(name).ok()?;
    (!value.trim().is_empty()).then_some(value)
}

fn redact_secrets() {
    for secret in SECRETS.into_iter().filter_map(variable) {
        redaction::add_key(&secret);
    }
}

fn s3(at: &BucketUrl) -> Result<Operator, String> {
    let endpoint = variable("AWS_ENDPOINT_URL_S3").or_else(|| variable("AWS_ENDPOINT_URL"));
    // Other vendors take any region.
    let elsewhere = endpoint.as_ref().map(|_| "us-east-1".to_owned());
    let region = variable("AWS_REGION")
        .or_else(|| variable("AWS_DEFAULT_REGION"))
        .or(elsewhere);
    let region = region
        .ok_or("AWS_REGION is not set; it is the region of the bucket, such as eu-central-1")?;
    let endpoint = endpoint.as_deref();
    let builder = S3::default()
        .bucket(&at.bucket)
        .root(&at.prefix)
        .region(&region)
        .disable_ec2_metadata();
    let builder = match endpoint {
        Some(endpoint) => builder.endpoint(endpoint),
        None if at.bucket.contains('.') => builder,
        None => builder.enable_virtual_host_style(),
    };
    operator(builder, endpoint)
}

fn gcs(at: &BucketUrl) -> Result<Operator, String> {
    let mut builder = Gcs::default().bucket(&at.bucket).root(&at.prefix);
    let endpoint = variable("STORAGE_EMULATOR_HOST");
    if let Some(endpoint) = &endpoint {
        builder = builder.endpoint(endpoint);
    }
    // Outside of Google's machines the metadata server does not answer.
    if variable("GCE_METADATA_HOST").is_none() {
        builder = builder.disable_vm_metadata();
    }
    operator(builder, endpoint.as_deref())
}

fn azblob(at: &BucketUrl) -> Result<Operator, String> {
    let account =
        variable("AZURE_STORAGE_ACCOUNT_NAME").or_else(|| variable("AZURE_STORAGE_ACCOUNT"));
    let in_account = account
        .as_ref()
        .map(|name| format!("https://{name}.blob.core.windows.net"));
    let connection = variable("AZURE_STORAGE_CONNECTION_STRING");
    let endpoint = variable("AZURE_STORAGE_ENDPOINT").or(in_account);
    if endpoint.is_none() && connection.is_none() {
        return Err(
            "neither AZURE_STORAGE_ACCOUNT_NAME nor AZURE_STORAGE_CONNECTION_STRING is set"
                .to_owned(),
        );
    }
    let builder = match &connection {
        // the error may repeat the text
        Some(text) => Azblob::from_connection_string(text)
            .map_err(|_| "AZURE_STORAGE_CONNECTION_STRING is no connection string".to_owned())?,
        None => Azblob::default(),
    };
    let key = variable("AZURE_STORAGE_ACCOUNT_KEY").or_else(|| variable("AZURE_STORAGE_KEY"));
    let token = variable("AZURE_STORAGE_SAS_TOKEN").unwrap_or_default();
    let builder = builder
        .container(&at.bucket)
        .root(&at.prefix)
        .endpoint(endpoint.as_deref().unwrap_or_default())
        .account_name(account.as_deref().unwrap_or_default())
        .account_key(key.as_deref().unwrap_or_default())
        .sas_token(token.trim_start_matches('?'));
    operator(builder, endpoint.as_deref()).map_err(|why| match connection {
        Some(_) => format!("AZURE_STORAGE_CONNECTION_STRING: {why}"),
        None => why,
    })
}

/// An operator that sends its requests to `endpoint`, or to that of the vendor.
fn operator(builder: impl Builder, endpoint: Option<&str>) -> Result<Operator, String> {
    let client = http::client(endpoint.map_or(Route::Outside, Route::from_url))?;
    let transport = HttpTransporter::new(ReqwestTransport::new(client));
    let operator = Operator::new(builder).map_err(|error| short(error.message()))?;
    Ok(layered(operator.with_context(
        OperationContext::new().with_http_transport(transport),
    )))
}

/// Adds time-outs and retries, from the inside out.
fn layered(operator: Operator) -> Operator {
    const TIMEOUT: Duration = Duration::from_secs(10);
    let retry = RetryLayer::new()
        .with_min_delay(Duration::from_millis(100))
        .with_factor(3.0)
        .with_max_times(3)
        .with_jitter();
    operator
        .layer(
            TimeoutLayer::new()
                .with_timeout(TIMEOUT)
                .with_io_timeout(TIMEOUT),
        )
        .layer(retry)
}

/// The beginning of a service's message, without keys.
fn short(text: &str) -> String {
    const MOST: usize = 200;
    shortened(&one_line(&redaction::redact(text)), MOST)
}

/// The message of the last source of an error, which is the most specific.
fn cause(error: &Error) -> String {
    let mut text = error.message().to_owned();
    let mut source = std::error::Error::source(error);
    while let Some(deeper) = source {
        text = deeper.to_string();
        source = deeper.source();
    }
    short(&text)
}

impl Objects {
    fn fault(&self, operation: &'static str, error: &Error) -> RemoteError {
        let url = &self.url;
        match error.kind() {
            ErrorKind::PermissionDenied if error.to_string().contains("RequestTimeTooSkewed") => {
                let what = "the clock of this machine differs too much from that of the store";
                unusable(url, what)
            }
            ErrorKind::PermissionDenied => RemoteError::denied(url, self.credentials),
            // the bucket itself
            ErrorKind::NotFound | ErrorKind::ConfigInvalid => {
                RemoteError::missing(url, self.create)
            }
            // no credentials were found, or they could not be used
            _ if error.to_string().contains("reqsign::") => {
                RemoteError::denied(url, self.credentials)
            }
            _ => RemoteError::failed(operation, url, cause(error)),
        }
    }

    async fn get_now(&self, name: &str) -> Result<Option<Bytes>, RemoteError> {
        let opened = async {
            let reader = self.operator.reader(name).await?;
            let mut stream = reader.into_stream(..).await?;
            Ok::<_, Error>((stream.try_next().await?, stream))
        };
        let (mut chunk, mut stream) = match opened.await {
            Ok(opened) => opened,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(self.fault("read", &error)),
        };
        let (mut object, mut alone) = (Vec::new(), None);
        while let Some(bytes) = chunk {
            let length = (object.len() + bytes.len()) as u64;
            if length > MAX_OBJECT {
                return Err(RemoteError::Refused("it is too large"));
            }
            if length > SMALL && alone.is_none() {
                alone = Some(self.large.lock().await);
            }
            object.extend_from_slice(&bytes.to_bytes());
            chunk = stream
                .try_next()
                .await
                .map_err(|error| self.fault("read", &error))?;
        }
        Ok(Some(object.into()))
    }

    async fn put_now(&self, name: &str, bytes: Bytes, replaces: bool) -> Result<bool, RemoteError> {
        let put = self
            .operator
            .write_with(name, bytes.clone())
            .if_not_exists(!replaces);
        match put.await {
            Ok(_) => Ok(true),
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::ConditionNotMatch | ErrorKind::AlreadyExists
                ) =>
            {
                Ok(false)
            }
            Err(error) if !replaces && lacks_conditional_writes(&error) => {
                let exists = self.operator.exists(name).await;
                if exists.map_err(|error| self.fault("read", &error))? {
                    return Ok(false);
                }
                let written = self.operator.write(name, bytes).await;
                written.map_err(|error| self.fault("write to", &error))?;
                Ok(true)
            }
            Err(error) => Err(self.fault("write to", &error)),
        }
    }
}

/// Whether the store does not support conditional writes.
fn lacks_conditional_writes(error: &Error) -> bool {
    error.kind() == ErrorKind::Unsupported || error.message().contains("NotImplemented")
}

impl Remote for Objects {
    fn get<'a>(&'a self, name: &'a str) -> RemoteFuture<'a, Option<Bytes>> {
        self.get_now(name).boxed()
    }

    fn put<'a>(&'a self, name: &'a str, bytes: Bytes, replaces: bool) -> RemoteFuture<'a, bool> {
        self.put_now(name, bytes, replaces).boxed()
    }
}

#[cfg(test)]
mod tests {
    use opendal::services::Memory;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    fn bucket(operator: &Operator) -> Objects {
        Objects {
            url: "s3://bucket/x".to_owned(),
            operator: layered(operator.clone()),
            credentials: "",
            create: "",
            large: tokio::sync::Mutex::default(),
        }
    }

    /// Answers the first request with 503 and the next with "first", and gives its address.
    async fn failing_once() -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            for (status, body) in [("503 Service Unavailable", "busy"), ("200 OK", "first")] {
                let (mut stream, _) = listener.accept().await.unwrap();
                let request = stream.read(&mut [0; 4096]).await.unwrap();
                assert!(request > 0, "a request is sent");
                let length = body.len();
                let head =
                    format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {length}");
                let reply = format!("{head}\r\n\r\n{body}");
                stream.write_all(reply.as_bytes()).await.unwrap();
            }
        });
        format!("http://{address}/cache")
    }

    #[tokio::test]
    async fn a_request_that_fails_once_is_sent_again() {
        let server = open_web_server(&failing_once().await).unwrap();
        assert_eq!(server.get("ab/c").await.unwrap().unwrap(), "first");
    }

    #[tokio::test]
    async fn an_object_that_is_there_stays_until_it_is_replaced() {
        let bucket = bucket(&Operator::new(Memory::default()).unwrap());
        assert!(bucket.put("ab/c", "first".into(), false).await.unwrap());
        assert!(!bucket.put("ab/c", "second".into(), false).await.unwrap());
        assert_eq!(bucket.get("ab/c").await.unwrap().unwrap(), "first");
        bucket.put("ab/c", "third".into(), true).await.unwrap();
        assert_eq!(bucket.get("ab/c").await.unwrap().unwrap(), "third");
        assert_eq!(bucket.get("ab/d").await.unwrap(), None);
    }

    #[tokio::test]
    async fn large_objects_are_read_one_at_a_time_and_too_large_ones_not_at_all() {
        let bucket = bucket(&Operator::new(Memory::default()).unwrap());
        for (name, length) in [("ab/large", 2 * SMALL), ("ab/larger", MAX_OBJECT + 1)] {
            let bytes = vec![7; length as usize];
            bucket.put(name, bytes.into(), true).await.unwrap();
        }
        let (one, other) = tokio::join!(bucket.get("ab/large"), bucket.get("ab/large"));
        assert_eq!(one.unwrap().unwrap().len() as u64, 2 * SMALL);
        assert_eq!(other.unwrap().unwrap().len() as u64, 2 * SMALL);
        let refused = bucket.get("ab/larger").await;
        assert!(matches!(refused, Err(RemoteError::Refused(_))));
    }

    #[test]
    fn messages_of_services_are_short_and_without_keys() {
        redaction::add_key("hunter2hunter2hunter2");
        let message = short(&format!(
            "the key\n hunter2hunter2hunter2 {}",
            "x".repeat(500)
        ));
        assert!(
            message.len() < 260 && !message.contains("hunter2") && message.starts_with("the key "),
            "{message}"
        );
    }
}
