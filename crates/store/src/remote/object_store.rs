//! Buckets of object stores and web servers as remotes, through Apache OpenDAL, which only this file uses.
//!
//! Credentials come from the variables and files that each vendor's own tools read. Error messages of services are
//! shortened and redacted: some services repeat the request in them.

use std::ops::Range;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures::FutureExt;
use opendal::layers::{ConcurrentLimitLayer, RetryLayer, TimeoutLayer};
use opendal::services::{Azblob, Gcs, Http, S3};
use opendal::{Builder, Error, ErrorKind, HttpTransporter, OperationContext, Operator};
use opendal_http_transport_reqwest::ReqwestTransport;

use super::backend::{BackendFuture, ListedObject, Remote, RemoteError, WriteOutcome};
use super::index_objects::{self, CONCURRENT_REQUESTS};
use super::url::{BucketUrl, StoreKind};
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

/// A bucket, or the folder of a web server.
#[derive(Debug)]
struct Objects {
    url: String,
    operator: Operator,
    /// The hint for when access is denied.
    credentials: &'static str,
    /// The hint for when there is no such bucket.
    create: &'static str,
}

/// A prefix in a bucket.
#[derive(Debug)]
struct Bucket {
    objects: Objects,
    /// The same without credentials.
    anonymous: Operator,
}

/// A web server, which is only read.
#[derive(Debug)]
struct WebServer(Objects);

/// Opens a bucket. Sends nothing yet.
pub(super) fn open_bucket(at: &BucketUrl) -> Result<Box<dyn Remote>, RemoteError> {
    redact_secrets();
    let url = at.to_string();
    let (operators, credentials, create) = match at.store {
        StoreKind::S3 => (
            s3(at),
            "Check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_REGION, and what the key may do",
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
    let (operator, anonymous) = operators.map_err(|what| RemoteError::Setup {
        url: url.clone(),
        what,
    })?;
    Ok(Box::new(Bucket {
        objects: Objects {
            url,
            operator,
            credentials,
            create,
        },
        anonymous,
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
    let operator = operator(builder, Some(url)).map_err(|what| RemoteError::Setup {
        url: url.to_owned(),
        what,
    })?;
    let credentials = "Check COMPEVAL_REMOTE_TOKEN, if the server wants a bearer token";
    let create = "There is no cache of compeval, or nothing was pushed to it yet";
    Ok(Box::new(WebServer(Objects {
        url: url.to_owned(),
        operator,
        credentials,
        create,
    })))
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name)
        .ok()
        .filter(|value| !value.trim().is_empty())
}

fn redact_secrets() {
    for secret in SECRETS.into_iter().filter_map(variable) {
        redaction::add_key(&secret);
    }
}

/// An operator with credentials and one without.
type Operators = Result<(Operator, Operator), String>;

fn s3(at: &BucketUrl) -> Operators {
    let endpoint = variable("AWS_ENDPOINT_URL_S3").or_else(|| variable("AWS_ENDPOINT_URL"));
    // Other vendors take any region.
    let elsewhere = endpoint.as_ref().map(|_| "us-east-1".to_owned());
    let region = variable("AWS_REGION")
        .or_else(|| variable("AWS_DEFAULT_REGION"))
        .or(elsewhere);
    let region = region
        .ok_or("AWS_REGION is not set; it is the region of the bucket, such as eu-central-1")?;
    let endpoint = endpoint.as_deref();
    let anonymous = build_s3(at, endpoint, &region)
        .disable_config_load()
        .skip_signature();
    Ok((
        operator(build_s3(at, endpoint, &region), endpoint)?,
        operator(anonymous, endpoint)?,
    ))
}

fn build_s3(at: &BucketUrl, endpoint: Option<&str>, region: &str) -> S3 {
    let builder = S3::default()
        .bucket(&at.bucket)
        .root(&at.prefix)
        .region(region)
        .disable_ec2_metadata();
    match endpoint {
        Some(endpoint) => builder.endpoint(endpoint),
        None if at.bucket.contains('.') => builder,
        None => builder.enable_virtual_host_style(),
    }
}

fn gcs(at: &BucketUrl) -> Operators {
    let endpoint = variable("STORAGE_EMULATOR_HOST");
    let endpoint = endpoint.as_deref();
    // Outside of Google's machines the metadata server does not answer.
    let has_metadata = variable("GCE_METADATA_HOST").is_some();
    let named = if has_metadata {
        build_gcs(at, endpoint)
    } else {
        build_gcs(at, endpoint).disable_vm_metadata()
    };
    let anonymous = build_gcs(at, endpoint)
        .disable_vm_metadata()
        .disable_config_load()
        .skip_signature();
    Ok((operator(named, endpoint)?, operator(anonymous, endpoint)?))
}

fn build_gcs(at: &BucketUrl, endpoint: Option<&str>) -> Gcs {
    let builder = Gcs::default().bucket(&at.bucket).root(&at.prefix);
    match endpoint {
        Some(endpoint) => builder.endpoint(endpoint),
        None => builder,
    }
}

fn azblob(at: &BucketUrl) -> Operators {
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
    let (account, connection, endpoint) = (
        account.as_deref(),
        connection.as_deref(),
        endpoint.as_deref(),
    );
    let key = variable("AZURE_STORAGE_ACCOUNT_KEY").or_else(|| variable("AZURE_STORAGE_KEY"));
    let named = build_azblob(at, account, connection, endpoint)?
        .account_key(key.as_deref().unwrap_or_default())
        .sas_token(
            variable("AZURE_STORAGE_SAS_TOKEN")
                .as_deref()
                .unwrap_or_default()
                .trim_start_matches('?'),
        );
    let anonymous = build_azblob(at, account, connection, endpoint)?.skip_signature();
    let opened =
        operator(named, endpoint).and_then(|named| Ok((named, operator(anonymous, endpoint)?)));
    opened.map_err(|why| {
        if connection.is_some() {
            format!("AZURE_STORAGE_CONNECTION_STRING: {why}")
        } else {
            why
        }
    })
}

fn build_azblob(
    at: &BucketUrl,
    account: Option<&str>,
    connection: Option<&str>,
    endpoint: Option<&str>,
) -> Result<Azblob, String> {
    let builder = match connection {
        // the error may repeat the text
        Some(text) => Azblob::from_connection_string(text)
            .map_err(|_| "AZURE_STORAGE_CONNECTION_STRING is no connection string".to_owned())?,
        None => Azblob::default(),
    };
    let (account, endpoint) = (account.unwrap_or_default(), endpoint.unwrap_or_default());
    Ok(builder
        .container(&at.bucket)
        .root(&at.prefix)
        .endpoint(endpoint)
        .account_name(account))
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

/// Adds time-outs, retries and a limit on concurrent requests, from the inside out.
fn layered(operator: Operator) -> Operator {
    const TIMEOUT: Duration = Duration::from_secs(60);
    let retry = RetryLayer::new()
        .with_min_delay(Duration::from_millis(100))
        .with_factor(3.0)
        .with_max_times(4)
        .with_jitter();
    operator
        .layer(
            TimeoutLayer::new()
                .with_timeout(TIMEOUT)
                .with_io_timeout(TIMEOUT),
        )
        .layer(retry)
        .layer(ConcurrentLimitLayer::new(2 * CONCURRENT_REQUESTS))
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
    fn fault(&self, operation: &'static str, name: &str, error: &Error) -> RemoteError {
        let (url, hint) = (self.url.clone(), self.credentials);
        match error.kind() {
            ErrorKind::PermissionDenied if error.to_string().contains("RequestTimeTooSkewed") => {
                let what =
                    "the clock of this machine differs too much from that of the store".to_owned();
                RemoteError::Setup { url, what }
            }
            ErrorKind::NotFound | ErrorKind::RangeNotSatisfied => {
                RemoteError::NotFound(name.to_owned())
            }
            ErrorKind::PermissionDenied => RemoteError::Denied { url, hint },
            // the bucket itself
            ErrorKind::ConfigInvalid => self.missing(),
            // no credentials were found, or they could not be used
            _ if error.to_string().contains("reqsign::") => RemoteError::Denied { url, hint },
            _ => RemoteError::failed(operation, &url, cause(error)),
        }
    }

    fn missing(&self) -> RemoteError {
        RemoteError::Missing {
            url: self.url.clone(),
            hint: self.create.to_owned(),
        }
    }

    async fn read(&self, name: &str, range: Option<Range<u64>>) -> Result<Bytes, RemoteError> {
        let length = range
            .as_ref()
            .map(|range| range.end.saturating_sub(range.start));
        let read = match range {
            Some(range) => self.operator.read_with(name).range(range).await,
            None => self.operator.read(name).await,
        };
        let bytes = read
            .map_err(|error| self.fault("read", name, &error))?
            .to_bytes();
        match length {
            Some(length) if bytes.len() as u64 != length => {
                Err(RemoteError::NotFound(name.to_owned()))
            }
            _ => Ok(bytes),
        }
    }
}

impl Bucket {
    async fn list_now(&self, folder: &str) -> Result<Vec<ListedObject>, RemoteError> {
        let path = if folder.is_empty() {
            "/".to_owned()
        } else {
            format!("{folder}/")
        };
        let entries = match self.objects.operator.list(&path).await {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(self.objects.missing());
            }
            Err(error) => return Err(self.objects.fault("list", folder, &error)),
        };
        let listed = entries.into_iter().map(|entry| {
            let (name, metadata) = entry.into_parts();
            let written = metadata.last_modified().map(SystemTime::from);
            ListedObject {
                name: name.trim_matches('/').to_owned(),
                bytes: metadata.content_length(),
                written,
            }
        });
        // some stores list the folder itself
        Ok(listed
            .filter(|object| !object.name.is_empty() && object.name != folder)
            .collect())
    }

    async fn write_now(&self, name: &str, bytes: Bytes) -> Result<WriteOutcome, RemoteError> {
        let operator = &self.objects.operator;
        match operator
            .write_with(name, bytes.clone())
            .if_not_exists(true)
            .await
        {
            Ok(_) => Ok(WriteOutcome::Written),
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::ConditionNotMatch | ErrorKind::AlreadyExists
                ) =>
            {
                Ok(WriteOutcome::Exists)
            }
            Err(error) if lacks_conditional_writes(&error) => {
                // Objects are named by their content, so writing one twice changes nothing.
                if operator
                    .exists(name)
                    .await
                    .map_err(|error| self.objects.fault("read", name, &error))?
                {
                    return Ok(WriteOutcome::Exists);
                }
                self.replace_now(name, bytes)
                    .await
                    .map(|()| WriteOutcome::Written)
            }
            Err(error) => Err(self.objects.fault("write to", name, &error)),
        }
    }

    async fn replace_now(&self, name: &str, bytes: Bytes) -> Result<(), RemoteError> {
        let written = self.objects.operator.write(name, bytes).await;
        written
            .map(drop)
            .map_err(|error| self.objects.fault("write to", name, &error))
    }

    async fn check_private_now(&self) -> Result<(), RemoteError> {
        let what = if succeeds(self.anonymous.read_with(super::marker::OBJECT).range(0..1)).await {
            "its objects can be read"
        } else if succeeds(self.anonymous.list_with("/").limit(1)).await {
            "its objects can be listed"
        } else {
            return Ok(());
        };
        let hint = format!("Without credentials, {what}: block public access to the bucket");
        Err(RemoteError::Public {
            url: self.objects.url.clone(),
            hint,
        })
    }
}

/// Whether a request without credentials succeeds. A request that got no answer counts as refused: if there is no
/// connection, later requests fail, too.
async fn succeeds<T>(request: impl IntoFuture<Output = opendal::Result<T>>) -> bool {
    request.await.is_ok()
}

/// Whether the store does not support conditional writes.
fn lacks_conditional_writes(error: &Error) -> bool {
    error.kind() == ErrorKind::Unsupported || error.message().contains("NotImplemented")
}

impl Remote for Bucket {
    fn list<'a>(&'a self, folder: &'a str) -> BackendFuture<'a, Vec<ListedObject>> {
        self.list_now(folder).boxed()
    }

    fn read<'a>(&'a self, name: &'a str, range: Option<Range<u64>>) -> BackendFuture<'a, Bytes> {
        self.objects.read(name, range).boxed()
    }

    fn write_if_absent<'a>(
        &'a self,
        name: &'a str,
        bytes: Bytes,
    ) -> BackendFuture<'a, WriteOutcome> {
        self.write_now(name, bytes).boxed()
    }

    fn replace<'a>(&'a self, name: &'a str, bytes: Bytes) -> BackendFuture<'a, ()> {
        self.replace_now(name, bytes).boxed()
    }

    fn delete<'a>(&'a self, name: &'a str) -> BackendFuture<'a, ()> {
        let deleted = async move { self.objects.operator.delete(name).await };
        deleted
            .map(move |deleted| {
                deleted.map_err(|error| self.objects.fault("remove from", name, &error))
            })
            .boxed()
    }

    fn check_private<'a>(&'a self) -> BackendFuture<'a, ()> {
        self.check_private_now().boxed()
    }
}

impl WebServer {
    /// Reads the list that the last writer left. Web servers list nothing themselves.
    async fn list_now(&self, folder: &str) -> Result<Vec<ListedObject>, RemoteError> {
        match self.0.read(index_objects::LATEST, None).await {
            Ok(bytes) => index_objects::decode_latest(&bytes, folder, &self.0.url),
            Err(RemoteError::NotFound(_)) => Err(self.0.missing()),
            Err(error) => Err(error),
        }
    }

    fn refused<T: Send + 'static>(&self) -> BackendFuture<'_, T> {
        let what = "a web server is only read".to_owned();
        futures::future::ready(Err(RemoteError::Setup {
            url: self.0.url.clone(),
            what,
        }))
        .boxed()
    }
}

impl Remote for WebServer {
    fn list<'a>(&'a self, folder: &'a str) -> BackendFuture<'a, Vec<ListedObject>> {
        self.list_now(folder).boxed()
    }

    fn read<'a>(&'a self, name: &'a str, range: Option<Range<u64>>) -> BackendFuture<'a, Bytes> {
        self.0.read(name, range).boxed()
    }

    fn write_if_absent<'a>(&'a self, _: &'a str, _: Bytes) -> BackendFuture<'a, WriteOutcome> {
        self.refused()
    }

    fn replace<'a>(&'a self, _: &'a str, _: Bytes) -> BackendFuture<'a, ()> {
        self.refused()
    }

    fn delete<'a>(&'a self, _: &'a str) -> BackendFuture<'a, ()> {
        self.refused()
    }

    fn check_private<'a>(&'a self) -> BackendFuture<'a, ()> {
        self.refused()
    }
}

#[cfg(test)]
mod tests {
    use opendal::services::Memory;
    use opendal_layer_chaos::ChaosLayer;

    use super::*;

    fn bucket(operator: &Operator) -> Bucket {
        let url = "s3://bucket/x".to_owned();
        let objects = Objects {
            url,
            operator: layered(operator.clone()),
            credentials: "",
            create: "",
        };
        Bucket {
            objects,
            anonymous: operator.clone(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn requests_that_fail_now_and_then_are_retried() {
        const READS: usize = 500;
        let memory = Operator::new(Memory::default()).unwrap();
        let writer = bucket(&memory);
        writer
            .write_if_absent("packs/a", Bytes::from_static(b"0123456789"))
            .await
            .unwrap();
        let chaotic = memory.layer(ChaosLayer::new(0.03));
        let reader = bucket(&chaotic);
        let mut failed = 0;
        for _ in 0..READS {
            failed += usize::from(chaotic.read("packs/a").await.is_err());
            assert_eq!(
                reader.read("packs/a", Some(2..5)).await.unwrap().as_ref(),
                b"234"
            );
        }
        assert!(failed > 0, "there was no chaos");
    }

    #[tokio::test]
    async fn objects_are_listed_by_folder_and_never_written_twice() {
        let bucket = bucket(&Operator::new(Memory::default()).unwrap());
        let write = |name: &'static str, text: &'static str| {
            bucket.write_if_absent(name, Bytes::from_static(text.as_bytes()))
        };
        assert_eq!(
            write("packs/a", "first").await.unwrap(),
            WriteOutcome::Written
        );
        assert_eq!(
            write("packs/a", "second").await.unwrap(),
            WriteOutcome::Exists
        );
        assert_eq!(
            write("marker.json", "{}").await.unwrap(),
            WriteOutcome::Written
        );
        assert_eq!(
            bucket.read("packs/a", None).await.unwrap().as_ref(),
            b"first"
        );
        let names = async |folder: &'static str| {
            let mut names: Vec<_> = bucket
                .list(folder)
                .await
                .unwrap()
                .into_iter()
                .map(|object| object.name)
                .collect();
            names.sort();
            names
        };
        assert_eq!(names("packs").await, ["packs/a"]);
        assert_eq!(names("").await, ["marker.json", "packs"]);
        assert!(matches!(
            bucket.read("packs/a", Some(3..50)).await,
            Err(RemoteError::NotFound(_))
        ));
        assert!(matches!(
            bucket.read("packs/b", None).await,
            Err(RemoteError::NotFound(_))
        ));
        bucket.delete("packs/a").await.unwrap();
        bucket.delete("packs/a").await.unwrap();
        assert!(names("packs").await.is_empty());
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
