//! What an entry was made from, as fields that it can share with others of its pack (`shared_fields`).
//!
//! ```text
//! 0    or:    1 | crc 4 of the fields | number of inputs | number of fields | fields
//! field: 0 | length | bytes    or: number of a shared field + 1
//! ```
//! The checksum covers the resolved fields: if a frame of shared fields was lost and its numbers were reused, an
//! explanation is lost, but never wrong.

use super::shared_fields::{FieldNumbers, SharedFields};
use crate::action::{Inputs, Repetition, Sources, Stage};
use crate::cache::entry::{EntryCoordinate, EntryMeta, EntrySummary, decode_tail};
use crate::cache::lookup::ModelNames;

/// The fields that every entry has, before those of inputs and sources.
const FIXED_FIELDS: usize = 9;

#[derive(Clone, Debug, PartialEq)]
pub(in crate::cache) struct EncodedProvenance {
    inputs: u32,
    fields: Vec<Vec<u8>>,
}

impl EncodedProvenance {
    pub(in crate::cache) fn from_meta(meta: &EntryMeta) -> Result<EncodedProvenance, postcard::Error> {
        let EntryMeta { attempts, request_id, coordinate, inputs, sources, .. } = meta;
        let mut fields = vec![
            postcard::to_stdvec(&(attempts, inputs.stage, inputs.schema, coordinate.point))?,
            postcard::to_stdvec(&(coordinate.repetition, inputs.repetition))?,
            postcard::to_stdvec(request_id)?,
            postcard::to_stdvec(&coordinate.fixture)?,
            postcard::to_stdvec(&coordinate.method)?,
            postcard::to_stdvec(&coordinate.probe)?,
            postcard::to_stdvec(&coordinate.answerer)?,
            postcard::to_stdvec(&coordinate.judge)?,
            meta.encode_tail()?,
        ];
        for input in &inputs.parts {
            fields.push(postcard::to_stdvec(input)?);
        }
        for source in &sources.0 {
            fields.push(postcard::to_stdvec(&source)?);
        }
        Ok(EncodedProvenance { inputs: inputs.parts.len() as u32, fields })
    }

    /// The whole meta of an entry; `None` if the fields are not those of one.
    pub(in crate::cache) fn meta(&self, summary: EntrySummary, models: ModelNames) -> Option<EntryMeta> {
        let (fixed, rest) = self.fields.split_first_chunk::<FIXED_FIELDS>()?;
        let (inputs, sources) = rest.split_at_checked(self.inputs as usize)?;
        let [numbers, repetitions, request_id, fixture, method, probe, answerer, judge, tail] = fixed;
        let (attempts, stage, schema, point): (u32, Stage, u16, Option<u32>) = decoded(numbers)?;
        let (repetition, of_inputs): (Repetition, Repetition) = decoded(repetitions)?;
        let (imported, lane) = decode_tail(tail).ok()?;
        let coordinate = EntryCoordinate {
            fixture: decoded(fixture)?,
            point,
            method: decoded(method)?,
            probe: decoded(probe)?,
            answerer: decoded(answerer)?,
            judge: decoded(judge)?,
            repetition,
        };
        let parts = inputs.iter().map(|input| decoded(input)).collect::<Option<_>>()?;
        Some(EntryMeta {
            stage: summary.stage,
            created: summary.created,
            dialect: summary.dialect,
            model: models.answered,
            requested_model: models.requested,
            usage: summary.usage,
            cost: summary.cost,
            latency_ms: summary.latency_ms,
            attempts,
            request_id: decoded(request_id)?,
            coordinate,
            inputs: Inputs { stage, schema, repetition: of_inputs, parts },
            sources: Sources(sources.iter().map(|source| decoded(source)).collect::<Option<_>>()?),
            imported,
            lane,
        })
    }

    /// Appends the fields to a note.
    pub(in crate::cache) fn encode(
        &self,
        mut note: Vec<u8>,
        numbers: &mut FieldNumbers,
    ) -> Result<Vec<u8>, postcard::Error> {
        note.push(1);
        note.extend_from_slice(&crc(&self.fields).to_le_bytes());
        note = postcard::to_extend(&(self.inputs, self.fields.len() as u32), note)?;
        for field in &self.fields {
            note = match numbers.number(field) {
                Some(number) => postcard::to_extend(&(number + 1), note)?,
                None => postcard::to_extend(&(0_u32, field), note)?,
            };
        }
        Ok(note)
    }

    /// Resolves the fields of a note; `None` where one was lost.
    pub(in crate::cache) fn decode(bytes: &[u8], shared: &SharedFields) -> Option<EncodedProvenance> {
        let (stored, rest) = bytes.strip_prefix(&[1])?.split_first_chunk::<4>()?;
        let ((inputs, count), mut rest): ((u32, u32), &[u8]) = postcard::take_from_bytes(rest).ok()?;
        let mut fields = Vec::new();
        for _ in 0..count {
            let (number, after): (u32, &[u8]) = postcard::take_from_bytes(rest).ok()?;
            rest = after;
            fields.push(match number.checked_sub(1) {
                Some(number) => shared.get(number)?.clone(),
                None => {
                    let (field, after): (Vec<u8>, &[u8]) = postcard::take_from_bytes(rest).ok()?;
                    rest = after;
                    field
                }
            });
        }
        (crc(&fields) == u32::from_le_bytes(*stored)).then_some(EncodedProvenance { inputs, fields })
    }
}

fn decoded<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    postcard::from_bytes(bytes).ok()
}

fn crc(fields: &[Vec<u8>]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    for field in fields {
        hasher.update(&(field.len() as u64).to_le_bytes());
        hasher.update(field);
    }
    hasher.finalize()
}
