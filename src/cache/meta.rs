//! What is known about an entry besides its body.

use serde::{Deserialize, Serialize};

use crate::action::{Digest, DigestBuilder, Inputs, Replica, Sources, Stage};
use crate::provider::Dialect;
use crate::units::{Usage, Usd};

/// What is known about an entry besides its body.
#[derive(Clone, Debug, PartialEq)]
pub struct Meta {
    /// The stage it belongs to.
    pub stage: Stage,
    /// When it came, in milliseconds since 1970 (UTC).
    pub created: u64,
    /// The dialect its body is to be read in; `None` for programs and computations.
    pub dialect: Option<Dialect>,
    /// The model that answered, as the provider names it.
    pub model: Option<String>,
    /// The model that was asked.
    pub requested_model: Option<String>,
    /// What the call used.
    pub usage: Usage,
    /// What it cost; `None` where no price is known.
    pub cost: Option<Usd>,
    /// From start to last byte, in milliseconds.
    pub latency_ms: u64,
    /// Attempts made, the last included.
    pub attempts: u32,
    /// The provider's id of the request.
    pub request_id: Option<String>,
    /// The place in the matrix it was first made for.
    pub coordinate: Coordinate,
    /// The inputs that make its key.
    pub inputs: Inputs,
    /// What the inputs were made from.
    pub sources: Sources,
}

/// A place in the matrix, by names. It explains an entry; it is no part of its key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Coordinate {
    /// The fixture.
    pub fixture: Option<String>,
    /// The number of the compression point, from 1.
    pub point: Option<u32>,
    /// The compression method.
    pub method: Option<String>,
    /// The probe.
    pub probe: Option<String>,
    /// The answerer.
    pub answerer: Option<String>,
    /// The judge.
    pub judge: Option<String>,
    /// The repetition.
    pub replica: Replica,
}

impl Coordinate {
    /// The name of this place for a stage, by which the latest action there is found.
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
        let Replica { compress, answer, judge } = self.replica;
        let numbers = [("point", self.point), ("c", compress), ("a", answer), ("j", judge)];
        for (name, value) in numbers {
            if let Some(value) = value {
                builder.field(name, value.to_le_bytes());
            }
        }
        builder.finish()
    }
}

/// What reading a kept body gave.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reading {
    /// An output.
    Output {
        /// Digest of the output as read: what later actions depend on.
        out: Digest,
        /// Digest of the state that comes with it, if it has one.
        state: Option<Digest>,
        /// Version of the reading rules.
        reader: u16,
    },
    /// Nothing that can be used. The body is kept to be looked at, and is never served.
    Unreadable {
        /// Version of the reading rules.
        reader: u16,
        /// Why.
        fault: String,
    },
}

/// Why an entry is no longer there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Removal {
    /// The user pruned it.
    Pruned,
    /// It was found damaged and set aside.
    Damaged,
}

/// A day in UTC, counted from 1970-01-01: as exact as the last use of an entry is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Day(pub u32);

impl Day {
    const MILLISECONDS: u64 = 86_400_000;

    /// The day of a time in milliseconds since 1970.
    pub fn of_ms(ms: u64) -> Day {
        Day(u32::try_from(ms / Day::MILLISECONDS).unwrap_or(u32::MAX))
    }

    /// Today.
    pub fn today() -> Day {
        let now = jiff::Timestamp::now().as_millisecond();
        Day::of_ms(u64::try_from(now).unwrap_or(0))
    }
}

/// What a scan of frame headers reads of every entry: nothing that allocates.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Brief {
    pub(super) created: u64,
    pub(super) stage: Stage,
    pub(super) usage: Usage,
    pub(super) cost: Option<Usd>,
    pub(super) latency_ms: u64,
    pub(super) coordinate: Digest,
    pub(super) dialect: Option<Dialect>,
}

type Details = (Option<String>, Option<String>, u32, Option<String>, Coordinate, Inputs, Sources);

impl Meta {
    pub(super) fn brief(&self) -> Brief {
        Brief {
            created: self.created,
            stage: self.stage,
            usage: self.usage,
            cost: self.cost,
            latency_ms: self.latency_ms,
            coordinate: self.coordinate.digest(self.stage),
            dialect: self.dialect,
        }
    }

    /// The digests by which texts may have been kept for this entry: of its sources and of its inputs.
    pub fn texts(&self) -> impl Iterator<Item = Digest> {
        let sources = self.sources.0.values().map(|source| source.digest);
        sources.chain(self.inputs.parts.iter().map(|(_, part)| part.digest))
    }

    /// The rest, as bytes.
    pub(super) fn details(&self) -> Result<Vec<u8>, postcard::Error> {
        postcard::to_stdvec(&(
            &self.model,
            &self.requested_model,
            self.attempts,
            &self.request_id,
            &self.coordinate,
            &self.inputs,
            &self.sources,
        ))
    }

    /// Of the rest only the models that answered and were asked, which come first.
    pub(super) fn models(details: &[u8]) -> Option<(Option<String>, Option<String>)> {
        Some(postcard::take_from_bytes(details).ok()?.0)
    }

    pub(super) fn from_parts(brief: Brief, details: &[u8]) -> Result<Meta, postcard::Error> {
        let (model, requested_model, attempts, request_id, coordinate, inputs, sources): Details =
            postcard::from_bytes(details)?;
        let Brief { created, stage, usage, cost, latency_ms, coordinate: _, dialect } = brief;
        Ok(Meta {
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
        })
    }
}
