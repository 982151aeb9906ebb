//! What compeval stores about an action besides its output, and how the store keeps it.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::action::{
    ActionKey, Digest, DigestBuilder, InputPart, Inputs, Repetition, SourceRef, Sources, Stage,
};
use base::units::{Usage, Usd};
use models::{Dialect, Lane};
use store::cache::{Damage, EntryHeader, EntryStatus, Field, Lookup, ModelNames, Record, Tag};

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
    /// Milliseconds from the start to the last byte.
    pub latency_ms: u64,
    /// Attempts, including the last one.
    pub attempts: u32,
    /// The provider's id of the request.
    pub request_id: Option<String>,
    /// The place in the matrix for which the action first ran.
    pub coordinate: EntryCoordinate,
    pub inputs: Inputs,
    pub sources: Sources,
    /// The URL of the remote that it was pulled from; `None` for an entry made here.
    pub imported: Option<String>,
    /// How the request was sent, at which price.
    pub lane: Lane,
}

/// The numbers of an entry: one field of its header.
#[derive(Serialize, Deserialize)]
struct Numbers {
    attempts: u32,
    lane: Lane,
    stage: Stage,
    schema: u16,
    point: Option<u32>,
    repetition: Repetition,
    input_repetition: Repetition,
    /// How many of the fields that follow the names are inputs. The others are sources.
    inputs: u32,
}

/// The fields before those of inputs and sources: the numbers, the request's id and five names.
const FIXED_FIELDS: usize = 7;

impl EntryMeta {
    /// The header that the store keeps.
    pub fn header(&self) -> EntryHeader {
        let names = ModelNames {
            answered: self.model.clone(),
            requested: self.requested_model.clone(),
        };
        EntryHeader {
            kind: Tag(self.stage as u8),
            format: self.dialect.map(|dialect| Tag(dialect as u8)),
            created: self.created,
            usage: self.usage,
            cost: self.cost,
            latency_ms: self.latency_ms,
            place: self.coordinate.digest(self.stage),
            models: names,
            origin: self.imported.clone(),
            fields: self.fields(),
        }
    }

    fn fields(&self) -> Vec<Field> {
        let EntryCoordinate {
            fixture,
            point,
            method,
            probe,
            answerer,
            judge,
            repetition,
        } = &self.coordinate;
        let numbers = Numbers {
            attempts: self.attempts,
            lane: self.lane,
            stage: self.inputs.stage,
            schema: self.inputs.schema,
            point: *point,
            repetition: *repetition,
            input_repetition: self.inputs.repetition,
            inputs: self.inputs.parts.len() as u32,
        };
        let mut fields = vec![encode(&numbers, None), encode(&self.request_id, None)];
        for name in [fixture, method, probe, answerer, judge] {
            fields.push(encode(name, None));
        }
        for (name, part) in &self.inputs.parts {
            fields.push(encode(&(name, &part.text), Some(part.digest)));
        }
        for (name, source) in &self.sources.0 {
            fields.push(encode(&(name, &source.path), Some(source.digest)));
        }
        fields
    }

    /// Reads a header; `None` if it is not one that this program wrote.
    pub fn from_header(header: EntryHeader) -> Option<EntryMeta> {
        let EntryHeader {
            kind,
            format,
            created,
            usage,
            cost,
            latency_ms,
            place: _,
            models,
            origin,
            fields,
        } = header;
        let (fixed, rest) = fields.split_first_chunk::<FIXED_FIELDS>()?;
        let [numbers, request_id, fixture, method, probe, answerer, judge] = fixed;
        let numbers: Numbers = decode(numbers)?;
        let (inputs, sources) = rest.split_at_checked(numbers.inputs as usize)?;
        let parts = inputs.iter().map(decode_input).collect::<Option<_>>()?;
        let Numbers {
            attempts,
            lane,
            stage,
            schema,
            point,
            repetition,
            input_repetition,
            inputs: _,
        } = numbers;
        Some(EntryMeta {
            stage: stage_of(kind)?,
            created,
            dialect: match format {
                Some(tag) => Some(dialect_of(tag)?),
                None => None,
            },
            model: models.answered,
            requested_model: models.requested,
            usage,
            cost,
            latency_ms,
            attempts,
            request_id: decode(request_id)?,
            coordinate: EntryCoordinate {
                fixture: decode(fixture)?,
                point,
                method: decode(method)?,
                probe: decode(probe)?,
                answerer: decode(answerer)?,
                judge: decode(judge)?,
                repetition,
            },
            inputs: Inputs {
                stage,
                schema,
                repetition: input_repetition,
                parts,
            },
            sources: Sources(sources.iter().map(decode_source).collect::<Option<_>>()?),
            imported: origin,
            lane,
        })
    }
}

/// The key of an entry, by the inputs that its header names.
pub fn key_of(header: &EntryHeader) -> Option<ActionKey> {
    EntryMeta::from_header(header.clone()).map(|meta| meta.inputs.key())
}

fn encode(value: &impl Serialize, text: Option<Digest>) -> Field {
    // Texts and numbers: encoding them cannot fail.
    let content =
        postcard::to_stdvec(value).unwrap_or_else(|error| unreachable!("plain data: {error}"));
    Field { text, content }
}

fn decode<T: serde::de::DeserializeOwned>(field: &Field) -> Option<T> {
    postcard::from_bytes(&field.content).ok()
}

fn decode_input(field: &Field) -> Option<(Cow<'static, str>, InputPart)> {
    let (name, text): (String, Option<String>) = decode(field)?;
    Some((
        name.into(),
        InputPart {
            digest: field.text?,
            text,
        },
    ))
}

fn decode_source(field: &Field) -> Option<(Cow<'static, str>, SourceRef)> {
    let (name, path): (String, Option<String>) = decode(field)?;
    Some((
        name.into(),
        SourceRef {
            digest: field.text?,
            path,
        },
    ))
}

fn stage_of(tag: Tag) -> Option<Stage> {
    Stage::ALL.get(usize::from(tag.0)).copied()
}

fn dialect_of(tag: Tag) -> Option<Dialect> {
    Dialect::ALL.get(usize::from(tag.0)).copied()
}

/// A record of the store, as compeval reads it.
pub trait EntryRecord {
    /// The stage of the action; `None` if this program has no such stage.
    fn stage(&self) -> Option<Stage>;

    /// The name of that stage.
    fn stage_name(&self) -> &'static str {
        self.stage().map_or("unknown", Stage::name)
    }

    /// The format of the body.
    fn body_format(&self) -> BodyFormat;
}

/// The format of a stored body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyFormat {
    /// The output of a program or of built-in rules.
    Local,
    /// A provider's reply.
    Reply(Dialect),
    /// A format that this program does not know.
    Unknown,
}

impl EntryRecord for Record {
    fn stage(&self) -> Option<Stage> {
        stage_of(self.kind)
    }

    fn body_format(&self) -> BodyFormat {
        match self.format {
            None => BodyFormat::Local,
            Some(tag) => dialect_of(tag).map_or(BodyFormat::Unknown, BodyFormat::Reply),
        }
    }
}

/// A cache of compeval's entries.
pub trait EntryLookup: Lookup {
    /// All that is known of an entry.
    ///
    /// # Errors
    /// `Damage` if the entry differs from what was written.
    fn meta(&self, record: &Record) -> Result<EntryMeta, Damage> {
        EntryMeta::from_header(self.header(record)?)
            .ok_or_else(|| record.unreadable("its header cannot be read"))
    }

    /// How many replies to an action a batch has brought that could not be used: none or one. The action is then requested
    /// live, and that reply counts as its first.
    fn unusable_in_batch(&self, key: &ActionKey) -> u32 {
        let record = self.find(key);
        // That a reply could not be used may not be noted yet.
        let unusable = record.filter(|record| {
            matches!(
                record.status,
                EntryStatus::Unparsed | EntryStatus::Malformed { .. }
            )
        });
        let meta = unusable.and_then(|record| self.meta(&record).ok());
        u32::from(meta.is_some_and(|meta| meta.lane == Lane::Batch))
    }
}

impl<L: Lookup> EntryLookup for L {}

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
        let Repetition {
            compress,
            answer,
            judge,
        } = self.repetition;
        let numbers = [
            ("point", self.point),
            ("c", compress),
            ("a", answer),
            ("j", judge),
        ];
        for (name, value) in numbers {
            if let Some(value) = value {
                builder.field(name, value.to_le_bytes());
            }
        }
        builder.finish()
    }
}
