//! An object store on loopback. It implements the part of S3 that a remote needs, in memory, and counts, waits and
//! fails as a test demands.

#![allow(dead_code, reason = "each test and bench uses a part")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Method, Response, Uri};

use super::loopback::LoopbackServer;

/// The one bucket.
pub const BUCKET: &str = "evals";
/// The one key that may use it.
pub const KEY_ID: &str = "AKIATESTKEYID";

/// An object.
#[derive(Clone, Debug)]
pub struct Stored {
    pub bytes: Bytes,
    pub written: SystemTime,
}

/// What a store holds and how it answers.
pub struct Contents {
    pub objects: BTreeMap<String, Stored>,
    /// Whether requests need no key.
    pub is_public: bool,
    /// How many of the next requests are answered with a 503.
    pub failures: usize,
    /// The status and code that answer every request.
    pub refuses_all: Option<(u16, &'static str)>,
    /// Whether every request is answered with a 503 the first time that it is sent.
    pub refuses_first: bool,
    refused: BTreeSet<String>,
    /// Whether every request is answered with a 503.
    pub is_away: bool,
    /// How many more requests are answered before `is_away` becomes true.
    pub away_after: Option<usize>,
    pub latency: Duration,
    /// Method and path of every request, and the length of its answer in bytes.
    pub asked: Vec<(String, u64)>,
    /// Keys in a page of a list.
    pub page: usize,
}

/// A running store; it ends when dropped.
pub struct ObjectStore {
    http: LoopbackServer,
    contents: Arc<Mutex<Contents>>,
}

impl ObjectStore {
    pub fn start() -> ObjectStore {
        let contents = Contents {
            objects: BTreeMap::new(),
            is_public: false,
            failures: 0,
            refuses_all: None,
            refuses_first: false,
            refused: BTreeSet::new(),
            is_away: false,
            away_after: None,
            latency: Duration::ZERO,
            asked: Vec::new(),
            page: 1000,
        };
        let contents = Arc::new(Mutex::new(contents));
        let http =
            LoopbackServer::start(Router::new().fallback(answer).with_state(contents.clone()));
        ObjectStore { http, contents }
    }

    /// The address of its API.
    pub fn endpoint(&self) -> String {
        self.http.url()
    }

    pub fn contents(&self) -> MutexGuard<'_, Contents> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The names of the objects that begin with `prefix`.
    pub fn names(&self, prefix: &str) -> Vec<String> {
        self.contents()
            .objects
            .keys()
            .filter(|name| name.starts_with(prefix))
            .cloned()
            .collect()
    }

    /// Requests since the last call.
    pub fn take_asked(&self) -> Vec<(String, u64)> {
        std::mem::take(&mut self.contents().asked)
    }
}

async fn answer(
    State(contents): State<Arc<Mutex<Contents>>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response<Body> {
    let lock = || contents.lock().unwrap_or_else(PoisonError::into_inner);
    let latency = lock().latency;
    tokio::time::sleep(latency).await;
    let mut contents = lock();
    let (status, headers, body) = reply(&mut contents, &method, &uri, &headers, body);
    contents
        .asked
        .push((format!("{method} {uri}"), body.len() as u64));
    let mut response = Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(name, value);
    }
    let body = if method == Method::HEAD {
        Body::empty()
    } else {
        Body::from(body)
    };
    response.body(body).expect("a response")
}

type Answer = (u16, Vec<(&'static str, String)>, Bytes);

fn error(status: u16, code: &str) -> Answer {
    let text = format!(
        "<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>{code}</Message></Error>"
    );
    (
        status,
        vec![("content-type", "application/xml".into())],
        text.into(),
    )
}

fn reply(
    contents: &mut Contents,
    method: &Method,
    uri: &Uri,
    headers: &HeaderMap,
    body: Bytes,
) -> Answer {
    if let Some(left) = contents.away_after {
        contents.is_away |= left == 0;
        contents.away_after = left.checked_sub(1);
    }
    if contents.is_away || contents.failures > 0 {
        contents.failures = contents.failures.saturating_sub(1);
        return error(503, "SlowDown");
    }
    if let Some((status, code)) = contents.refuses_all {
        return error(status, code);
    }
    let range = headers
        .get("range")
        .and_then(|range| range.to_str().ok())
        .unwrap_or_default();
    if contents.refuses_first && contents.refused.insert(format!("{method} {uri} {range}")) {
        return error(503, "SlowDown");
    }
    let path = decoded(uri.path());
    let (bucket, name) = path
        .trim_start_matches('/')
        .split_once('/')
        .unwrap_or((path.trim_start_matches('/'), ""));
    let authorization = headers
        .get("authorization")
        .and_then(|value| value.to_str().ok());
    match authorization {
        None if contents.is_public && method == Method::GET => {}
        None => return error(403, "AccessDenied"),
        Some(text) if text.contains(&format!("Credential={KEY_ID}/")) => {}
        Some(_) => return error(403, "InvalidAccessKeyId"),
    }
    if bucket != BUCKET {
        return error(404, "NoSuchBucket");
    }
    let pairs = uri
        .query()
        .unwrap_or_default()
        .split('&')
        .filter_map(|pair| pair.split_once('='));
    let query: BTreeMap<String, String> = pairs
        .map(|(name, value)| (name.to_owned(), decoded(value)))
        .collect();
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    match *method {
        Method::GET if name.is_empty() => list(contents, &query),
        Method::GET | Method::HEAD => read(contents, name, header("range")),
        Method::PUT
            if header("if-none-match") == Some("*") && contents.objects.contains_key(name) =>
        {
            error(412, "PreconditionFailed")
        }
        Method::PUT => {
            contents.objects.insert(
                name.to_owned(),
                Stored {
                    bytes: body,
                    written: SystemTime::now(),
                },
            );
            (200, vec![("etag", "\"1\"".into())], Bytes::new())
        }
        Method::DELETE => {
            contents.objects.remove(name);
            (204, Vec::new(), Bytes::new())
        }
        Method::POST => delete(contents, &body),
        _ => error(405, "MethodNotAllowed"),
    }
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let digit = |byte: Option<u8>| {
            byte.and_then(|byte| (byte as char).to_digit(16))
                .unwrap_or(0) as u8
        };
        bytes.push(if byte == b'%' {
            digit(rest.next()) << 4 | digit(rest.next())
        } else {
            byte
        });
    }
    String::from_utf8(bytes).expect("UTF-8")
}

fn read(contents: &Contents, name: &str, range: Option<&str>) -> Answer {
    let Some(object) = contents.objects.get(name) else {
        return error(404, "NoSuchKey");
    };
    let written = httpdate::fmt_http_date(object.written);
    let mut headers = vec![("last-modified", written), ("etag", "\"1\"".to_owned())];
    let all = object.bytes.len();
    let Some((from, to)) = range.and_then(|range| range.strip_prefix("bytes=")?.split_once('-'))
    else {
        return (200, headers, object.bytes.clone());
    };
    let from: usize = from.parse().unwrap_or(0);
    let to = to.parse::<usize>().map_or(all, |last| last + 1).min(all);
    if from >= to {
        return error(416, "InvalidRange");
    }
    headers.push(("content-range", format!("bytes {from}-{}/{all}", to - 1)));
    (206, headers, object.bytes.slice(from..to))
}

fn list(contents: &Contents, query: &BTreeMap<String, String>) -> Answer {
    let text = |name: &str| query.get(name).map(String::as_str).unwrap_or_default();
    let (prefix, delimiter, after) = (
        text("prefix"),
        text("delimiter"),
        text("continuation-token"),
    );
    let most = text("max-keys")
        .parse()
        .unwrap_or(contents.page)
        .min(contents.page);
    let (mut keys, mut folders, mut next) = (String::new(), Vec::<String>::new(), None);
    let below = contents
        .objects
        .iter()
        .filter(|(name, _)| name.starts_with(prefix) && name.as_str() > after);
    let mut count = 0;
    for (name, object) in below {
        let rest = &name[prefix.len()..];
        let folder = (!delimiter.is_empty())
            .then(|| rest.split_once(delimiter))
            .flatten();
        let folder = folder.map(|(folder, _)| format!("{prefix}{folder}{delimiter}"));
        if folder.is_some() && folder.as_ref() == folders.last() {
            continue;
        }
        if count == most {
            break;
        }
        count += 1;
        next = Some(name.clone());
        match folder {
            Some(folder) => folders.push(folder),
            None => {
                let written =
                    jiff::Timestamp::try_from(object.written).expect("a time of our days");
                keys += &format!(
                    "<Contents><Key>{name}</Key><LastModified>{written:.3}</LastModified><ETag>\"1\"</ETag>\
                     <Size>{}</Size></Contents>",
                    object.bytes.len()
                );
            }
        }
    }
    let is_cut = contents
        .objects
        .keys()
        .any(|name| name.starts_with(prefix) && next.as_ref().is_some_and(|n| name > n));
    let folders: String = folders
        .iter()
        .map(|folder| format!("<CommonPrefixes><Prefix>{folder}</Prefix></CommonPrefixes>"))
        .collect();
    let token = next.filter(|_| is_cut && count == most);
    let token = token.map_or(String::new(), |next| {
        format!("<NextContinuationToken>{next}</NextContinuationToken>")
    });
    let is_truncated = !token.is_empty();
    let body = format!(
        "<?xml version=\"1.0\"?><ListBucketResult><IsTruncated>{is_truncated}</IsTruncated>{token}{keys}{folders}\
         </ListBucketResult>"
    );
    (
        200,
        vec![("content-type", "application/xml".into())],
        body.into(),
    )
}

fn delete(contents: &mut Contents, body: &[u8]) -> Answer {
    let text = String::from_utf8_lossy(body);
    let mut deleted = String::new();
    for part in text.split("<Key>").skip(1) {
        let name = part.split("</Key>").next().unwrap_or_default();
        contents.objects.remove(name);
        deleted += &format!("<Deleted><Key>{name}</Key></Deleted>");
    }
    (
        200,
        Vec::new(),
        format!("<?xml version=\"1.0\"?><DeleteResult>{deleted}</DeleteResult>").into(),
    )
}
