//! What an entry was made from, as fields that it can share with other entries of its pack (`shared_fields`).
//!
//! ```text
//! 0    or:    1 | crc 4 of the fields | number of fields | fields
//! field: 0 | length | bytes    or: number of a shared field + 1
//! ```
//! The first field is the origin of the entry. The checksum covers the resolved fields: if a frame of shared fields was
//! lost and its numbers were reused, this is detected.

use super::shared_fields::SharedFields;
use crate::cache::entry::{EntryHeader, EntrySummary, Field, ModelNames};

/// The origin of an entry and its fields, each encoded.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct EncodedProvenance {
    fields: Vec<Vec<u8>>,
}

impl EncodedProvenance {
    pub(crate) fn new(header: &EntryHeader) -> Result<EncodedProvenance, postcard::Error> {
        let mut fields = vec![postcard::to_stdvec(&header.origin)?];
        for field in &header.fields {
            // the content takes the rest of the field
            let mut bytes = postcard::to_stdvec(&field.text)?;
            bytes.extend(&field.content);
            fields.push(bytes);
        }
        Ok(EncodedProvenance { fields })
    }

    /// The whole header of an entry; `None` if the fields cannot be decoded.
    pub(crate) fn header(&self, summary: EntrySummary, models: ModelNames) -> Option<EntryHeader> {
        let EntrySummary {
            created,
            kind,
            usage,
            cost,
            latency_ms,
            place,
            format,
        } = summary;
        let (origin, fields) = self.fields.split_first()?;
        let origin: Option<String> = postcard::from_bytes(origin).ok()?;
        let fields = fields
            .iter()
            .map(|field| decode_field(field))
            .collect::<Option<_>>()?;
        Some(EntryHeader {
            kind,
            format,
            created,
            usage,
            cost,
            latency_ms,
            place,
            models,
            origin,
            fields,
        })
    }

    /// Appends the fields to a note. `number` returns the number of a field that entries share.
    pub(crate) fn encode(
        &self,
        mut note: Vec<u8>,
        mut number: impl FnMut(&[u8]) -> Option<u32>,
    ) -> Result<Vec<u8>, postcard::Error> {
        note.push(1);
        note.extend_from_slice(&crc(&self.fields).to_le_bytes());
        note = postcard::to_extend(&(self.fields.len() as u32), note)?;
        for field in &self.fields {
            note = match number(field) {
                Some(number) => postcard::to_extend(&(number + 1), note)?,
                None => postcard::to_extend(&(0_u32, field), note)?,
            };
        }
        Ok(note)
    }

    /// Resolves the fields of a note; `None` where one was lost.
    pub(crate) fn decode(bytes: &[u8], shared: &SharedFields) -> Option<EncodedProvenance> {
        let (stored, rest) = bytes.strip_prefix(&[1])?.split_first_chunk::<4>()?;
        let (count, mut rest): (u32, &[u8]) = postcard::take_from_bytes(rest).ok()?;
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
        (crc(&fields) == u32::from_le_bytes(*stored)).then_some(EncodedProvenance { fields })
    }
}

fn decode_field(bytes: &[u8]) -> Option<Field> {
    let (text, content) = postcard::take_from_bytes(bytes).ok()?;
    Some(Field {
        text,
        content: content.to_owned(),
    })
}

fn crc(fields: &[Vec<u8>]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    for field in fields {
        hasher.update(&(field.len() as u64).to_le_bytes());
        hasher.update(field);
    }
    hasher.finalize()
}
