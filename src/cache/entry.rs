//! Entries: what is stored about an action besides its body.
//!
//! `EntryMeta` is everything, in the header of the entry's frame. `Record` is the part that plans and runs read for every
//! action; the sled tree holds it, so it stays small (200 bytes at most) and has no inputs and sources.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::action::{ActionKey, Digest, DigestBuilder, Inputs, Repetition, Sources, Stage};
use base::units::{Usage, Usd};
use models::{Dialect, Lane};

/// Everything about an entry besides its body.
#[derive(Clone, Debug, PartialEq)]
pub struct EntryMeta {
    pub stage: Stage,
    /// Milliseconds since 1970 (UTC).
    pub created: u64,
    /// The dialect of the body; `None` for programs and built-in rules.
    pub dialect: Option<Dialect>,
    /// The model that answered, as the provider names it.
    pub model: Option<String>,
    pub requested_model: Option<String>,
    pub usage: Usage,
    /// `None` if the price is unknown.
    pub cost: Option<Usd>,
    /// From start to last byte.
    pub latency_ms: u64,
    /// Including the last one.
    pub attempts: u32,
    /// The provider's id of the request.
    pub request_id: Option<String>,
    /// The place in the matrix for which the action first ran.
    pub coordinate: EntryCoordinate,
    pub inputs: Inputs,
    pub sources: Sources,
    /// The export that it came from; `None` for an entry made here. Who imports believes the author of the file, so an
    /// imported entry stays recognizable.
    pub imported: Option<ImportOrigin>,
    /// How the request was sent, at which price.
    pub lane: Lane,
}

/// The file that an entry was imported from, or the remote and the pack that it was pulled from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ImportOrigin {
    /// The path as the user gave it, or the URL of the remote.
    pub file: String,
    /// The digest at the file's end, which covers all of it, or the name of the pack.
    pub digest: Digest,
    /// Who signed the pack. Encoded after everything else and only if there is one: versions without remotes read
    /// such an entry as an imported one.
    #[serde(skip)]
    pub writer: Option<Writer>,
}

/// Who signed a pulled entry.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Writer {
    /// As the project that pulled it named the key.
    pub name: String,
    /// The public key, as text. The cache compares it and never interprets it.
    pub key: String,
}

impl ImportOrigin {
    /// Stands on disk where an entry has a lane and no origin: no file has this name.
    const NONE: ImportOrigin = ImportOrigin { file: String::new(), digest: Digest([0; 32]), writer: None };
}

/// The tail of an entry's header: in this order on disk, after the summary.
type MetaDetails = (Option<String>, Option<String>, u32, Option<String>, EntryCoordinate, Inputs, Sources);

impl EntryMeta {
    pub(super) fn summary(&self) -> EntrySummary {
        EntrySummary {
            created: self.created,
            stage: self.stage,
            usage: self.usage,
            cost: self.cost,
            latency_ms: self.latency_ms,
            coordinate: self.coordinate.digest(self.stage),
            dialect: self.dialect,
        }
    }

    /// The digests under which texts may be stored for this entry: those of its sources and inputs.
    pub fn texts(&self) -> impl Iterator<Item = Digest> {
        let sources = self.sources.0.values().map(|source| source.digest);
        sources.chain(self.inputs.parts.iter().map(|(_, part)| part.digest))
    }

    /// Encodes what the summary lacks. The origin of an imported entry is appended, and after an origin, which may be
    /// none, a lane other than the live one: other entries have the bytes that they had before there were either.
    pub(super) fn encode_details(&self) -> Result<Vec<u8>, postcard::Error> {
        let mut details = postcard::to_stdvec(&(
            &self.model, &self.requested_model, self.attempts, &self.request_id, &self.coordinate, &self.inputs,
            &self.sources,
        ))?;
        details.extend(self.encode_tail()?);
        Ok(details)
    }

    /// Encodes what only some entries have.
    pub(super) fn encode_tail(&self) -> Result<Vec<u8>, postcard::Error> {
        let mut tail = Vec::new();
        let writer = self.imported.as_ref().and_then(|origin| origin.writer.as_ref());
        if self.lane != Lane::Live || writer.is_some() {
            let origin = self.imported.clone().unwrap_or(ImportOrigin::NONE);
            tail.extend(postcard::to_stdvec(&(origin, self.lane))?);
        } else if let Some(origin) = &self.imported {
            tail.extend(postcard::to_stdvec(origin)?);
        }
        if let Some(writer) = writer {
            tail.extend(postcard::to_stdvec(writer)?);
        }
        Ok(tail)
    }

    /// Decodes only the first two fields of the details: the models that answered and that were requested.
    pub(super) fn decode_models(details: &[u8]) -> Option<(Option<String>, Option<String>)> {
        Some(postcard::take_from_bytes(details).ok()?.0)
    }

    pub(super) fn decode(summary: EntrySummary, details: &[u8]) -> Result<EntryMeta, postcard::Error> {
        let (details, origin): (MetaDetails, &[u8]) = postcard::take_from_bytes(details)?;
        let (model, requested_model, attempts, request_id, coordinate, inputs, sources) = details;
        let (imported, lane) = decode_tail(origin)?;
        let EntrySummary { created, stage, usage, cost, latency_ms, coordinate: _, dialect } = summary;
        Ok(EntryMeta {
            stage,
            created,
            dialect,
            model,
            requested_model,
            usage,
            cost,
            latency_ms,
            attempts,
            request_id,
            coordinate,
            inputs,
            sources,
            imported,
            lane,
        })
    }
}

/// Decodes what only some entries have: where they come from, the lane, the writer.
pub(super) fn decode_tail(bytes: &[u8]) -> Result<(Option<ImportOrigin>, Lane), postcard::Error> {
    if bytes.is_empty() {
        return Ok((None, Lane::Live));
    }
    let (origin, rest): (ImportOrigin, &[u8]) = postcard::take_from_bytes(bytes)?;
    let (lane, rest) = if rest.is_empty() { (Lane::Live, rest) } else { postcard::take_from_bytes(rest)? };
    let writer = if rest.is_empty() { None } else { Some(postcard::from_bytes(rest)?) };
    let origin = Some(origin).filter(|origin| *origin != ImportOrigin::NONE);
    Ok((origin.map(|origin| ImportOrigin { writer, ..origin }), lane))
}

/// The head of an entry's header: all that a scan of headers decodes, without an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct EntrySummary {
    pub(super) created: u64,
    pub(super) stage: Stage,
    pub(super) usage: Usage,
    pub(super) cost: Option<Usd>,
    pub(super) latency_ms: u64,
    pub(super) coordinate: Digest,
    pub(super) dialect: Option<Dialect>,
}

/// A place in the matrix, by names. It explains an entry and is not part of its key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct EntryCoordinate {
    pub fixture: Option<String>,
    /// The compression point, from 1.
    pub point: Option<u32>,
    pub method: Option<String>,
    pub probe: Option<String>,
    pub answerer: Option<String>,
    pub judge: Option<String>,
    pub repetition: Repetition,
}

impl EntryCoordinate {
    /// Identifies this place for a stage; the latest action of a place is stored under it.
    pub fn digest(&self, stage: Stage) -> Digest {
        let mut builder = DigestBuilder::new("compeval coordinate v1");
        builder.field("stage", stage.name());
        let names = [
            ("fixture", &self.fixture),
            ("method", &self.method),
            ("probe", &self.probe),
            ("answerer", &self.answerer),
            ("judge", &self.judge),
        ];
        for (name, value) in names {
            if let Some(value) = value {
                builder.field(name, value);
            }
        }
        let Repetition { compress, answer, judge } = self.repetition;
        let numbers = [("point", self.point), ("c", compress), ("a", answer), ("j", judge)];
        for (name, value) in numbers {
            if let Some(value) = value {
                builder.field(name, value.to_le_bytes());
            }
        }
        builder.finish()
    }
}

/// The result of parsing a stored body. `parser` is the version of the parser that gave it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ParseResult {
    Output {
        /// Digest of the parsed output: what later actions depend on.
        out: Digest,
        /// Digest of the method's state, if it has one.
        state: Option<Digest>,
        parser: u16,
    },
    /// The body has no usable output. It is stored for inspection and never used.
    Malformed { parser: u16, fault: String },
}

impl ParseResult {
    /// The result that a status came from; `None` if the body was not parsed.
    pub(super) fn from_status(status: &EntryStatus) -> Option<ParseResult> {
        match status {
            EntryStatus::Unparsed | EntryStatus::Failed { .. } => None,
            EntryStatus::Output { out, state, parser } => {
                Some(ParseResult::Output { out: *out, state: *state, parser: *parser })
            }
            EntryStatus::Malformed { parser, fault } => {
                Some(ParseResult::Malformed { parser: *parser, fault: fault.to_string() })
            }
        }
    }
}

/// The result of parsing the body of an entry, as it is stored with others in a frame.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct ParsedBody {
    pub(super) key: ActionKey,
    /// The beginning of the digest of the body.
    raw: [u8; 8],
    pub(super) result: ParseResult,
}

impl ParsedBody {
    pub(super) fn new(key: ActionKey, raw: Digest, result: ParseResult) -> ParsedBody {
        ParsedBody { key, raw: prefix_of(&raw), result }
    }

    /// Whether it is about the body of a record.
    pub(super) fn is_of(&self, record: &Record) -> bool {
        prefix_of(&record.raw) == self.raw
    }
}

/// The first bytes of a digest.
pub(super) fn prefix_of(digest: &Digest) -> [u8; 8] {
    let [a, b, c, d, e, f, g, h, ..] = digest.0;
    [a, b, c, d, e, f, g, h]
}

/// Why an entry was removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum RemovalReason {
    Pruned,
    Damaged,
}

/// A day in UTC, counted from 1970-01-01: the resolution of the time of last use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Day(pub u32);

impl Day {
    const MILLISECONDS: u64 = 86_400_000;

    /// The day of a time in milliseconds since 1970.
    pub fn of_ms(ms: u64) -> Day {
        Day(u32::try_from(ms / Day::MILLISECONDS).unwrap_or(u32::MAX))
    }

    pub fn today() -> Day {
        Day::of_ms(now_ms())
    }
}

/// The time in milliseconds since 1970 (UTC). A clock before 1970 counts as 1970.
pub fn now_ms() -> u64 {
    u64::try_from(base::clock::now().as_millisecond()).unwrap_or(0)
}

/// Where a frame is: the pack's number and the range in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct FrameLocation {
    pub pack: u32,
    pub offset: u64,
    /// Bytes before the body.
    pub head: u32,
    /// Bytes of the body as stored.
    pub body: u32,
}

impl FrameLocation {
    /// Bytes of the whole frame.
    #[expect(clippy::len_without_is_empty, reason = "no frame is empty")]
    pub fn len(&self) -> u64 {
        u64::from(self.head) + u64::from(self.body)
    }

    /// The offset of the first byte after the frame.
    pub fn end(&self) -> u64 {
        self.offset.saturating_add(self.len())
    }
}

/// What an entry can be used for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum EntryStatus {
    /// The body has not been parsed, or the result was lost.
    Unparsed,
    /// The body was parsed; see `ParseResult`.
    Output { out: Digest, state: Option<Digest>, parser: u16 },
    /// The body has no usable output and is never used.
    Malformed { parser: u16, fault: Arc<str> },
    /// There is no body: the last attempt failed permanently.
    Failed { class: Arc<str>, message: Arc<str> },
}

impl From<&ParseResult> for EntryStatus {
    fn from(reading: &ParseResult) -> EntryStatus {
        match reading {
            ParseResult::Output { out, state, parser } => {
                EntryStatus::Output { out: *out, state: *state, parser: *parser }
            }
            ParseResult::Malformed { parser, fault } => {
                EntryStatus::Malformed { parser: *parser, fault: clip(fault).into() }
            }
        }
    }
}

/// Cuts a fault or a failure message to the 400 bytes that frames store.
pub(super) fn clip(text: &str) -> &str {
    clip_to(text, 400)
}

/// Cuts a text to so many bytes at most.
pub(super) fn clip_to(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

/// What the sled tree holds of an entry.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    pub key: ActionKey,
    pub location: FrameLocation,
    pub raw: Digest,
    /// Bytes of the body, decompressed.
    pub raw_len: u32,
    pub status: EntryStatus,
    /// Milliseconds since 1970 (UTC).
    pub created: u64,
    pub stage: Stage,
    pub usage: Usage,
    pub cost: Option<Usd>,
    pub latency_ms: u64,
    pub dialect: Option<Dialect>,
}

/// The fields of a record on disk, in this order.
type RecordFields = (FrameLocation, Digest, u32, EntryStatus, u64, Stage, Usage, Option<Usd>, u64, Option<Dialect>);

impl Record {
    const VERSION: u8 = 1;

    pub fn stored_bytes(&self) -> u64 {
        self.location.len()
    }

    pub fn created_day(&self) -> Day {
        Day::of_ms(self.created)
    }

    /// Whether there is a body that has, or may have, an output.
    pub fn is_usable(&self) -> bool {
        matches!(self.status, EntryStatus::Unparsed | EntryStatus::Output { .. })
    }

    pub fn is_failed(&self) -> bool {
        matches!(self.status, EntryStatus::Failed { .. })
    }

    /// Encodes the value for the sled tree: version and fields.
    pub(super) fn encode(&self) -> Result<Vec<u8>, postcard::Error> {
        let Record { key: _, location, raw, raw_len, status, created, stage, usage, cost, latency_ms, dialect } = self;
        let fields = (location, raw, raw_len, status, created, stage, usage, cost, latency_ms, dialect);
        postcard::to_extend(&fields, vec![Record::VERSION])
    }

    /// Decodes a value of the tree; `None` if it is of another version.
    pub(super) fn decode(key: ActionKey, bytes: &[u8]) -> Option<Record> {
        let fields = bytes.strip_prefix(&[Record::VERSION])?;
        let stored: RecordFields = postcard::from_bytes(fields).ok()?;
        let (location, raw, raw_len, status, created, stage, usage, cost, latency_ms, dialect) = stored;
        Some(Record { key, location, raw, raw_len, status, created, stage, usage, cost, latency_ms, dialect })
    }
}
