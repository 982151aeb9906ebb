//! Frames on their way into a pack: what entries share is written once in a pack, and results of parsing share frames.
//!
//! Exports and remote segments contain frames of version 1, which are complete by themselves; a pack stores them as
//! packed frames, and both can be read. Key, digest, usage, cost and models of an entry are in its own frame, so that
//! damage to a shared field costs the explanation of the entries that name it (`why`, `cache show`) and no output.
//! Numbers of fields are valid within one pack: code that rewrites or moves entries resolves their fields and shares
//! them again.

use super::entry::{EntryMeta, EntrySummary, ParsedBody, clip};
use super::explanation::EncodedProvenance;
use super::frame::{self, CRC, Codec, FrameContent, FrameHeader, PACKED, StoredBody};
use super::lookup::ModelNames;
use super::shared_fields::{FieldNumbers, SharedFields};
use crate::action::{ActionKey, Digest};

/// An entry as it is between two packs.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PortableEntry {
    key: Digest,
    digest: Digest,
    codec: Codec,
    raw_len: u32,
    body_crc: u32,
    body: Vec<u8>,
    summary: EntrySummary,
    /// Class and message of a failure.
    failure: Option<(String, String)>,
    models: ModelNames,
    /// `None` where a shared field was lost.
    explanation: Option<EncodedProvenance>,
}

/// A frame on its way into a pack.
#[derive(Clone, Debug)]
pub(super) enum PortableFrame {
    Entry(Box<PortableEntry>),
    Parsed(Vec<ParsedBody>),
    /// One that packs hold as it is.
    Other(Vec<u8>),
}

impl PortableFrame {
    /// Reads a frame of either version. `shared` has the fields of the pack that it is from.
    pub(super) fn read(frame: Vec<u8>, shared: &SharedFields) -> PortableFrame {
        let Ok(header) = FrameHeader::decode(&frame) else { return PortableFrame::Other(frame) };
        match header.content {
            FrameContent::ParseResult(result) => {
                PortableFrame::Parsed(vec![ParsedBody::new(ActionKey(header.key), header.digest, result)])
            }
            FrameContent::ParseResults(results) => PortableFrame::Parsed(results),
            FrameContent::Reply(_) | FrameContent::Failure { .. } => match read_entry(&frame, header, shared) {
                Some(entry) => PortableFrame::Entry(Box::new(entry)),
                None => PortableFrame::Other(frame),
            },
            _ => PortableFrame::Other(frame),
        }
    }

    fn is_failure(&self) -> bool {
        matches!(self, PortableFrame::Entry(entry) if entry.failure.is_some())
    }
}

fn read_entry(frame: &[u8], header: FrameHeader, shared: &SharedFields) -> Option<PortableEntry> {
    let head = frame.get(..header.head_len as usize)?;
    let (note, _) = frame::note(head)?.split_last_chunk::<CRC>()?;
    let (summary, failure, details) = match header.content {
        FrameContent::Reply(summary) => (summary, None, postcard::take_from_bytes::<EntrySummary>(note).ok()?.1),
        FrameContent::Failure { summary, class, message } => {
            let (_, details): ((EntrySummary, String, String), _) = postcard::take_from_bytes(note).ok()?;
            (summary, Some((class, message)), details)
        }
        _ => return None,
    };
    let ((answered, requested), fields) = postcard::take_from_bytes(details).ok()?;
    let explanation = if head.starts_with(&PACKED) {
        EncodedProvenance::decode(fields, shared)
    } else {
        Some(EncodedProvenance::of(&EntryMeta::decode(summary, details).ok()?).ok()?)
    };
    Some(PortableEntry {
        key: header.key,
        digest: header.digest,
        codec: header.codec,
        raw_len: header.raw_len,
        body_crc: header.body_crc,
        body: frame.get(header.head_len as usize..)?.to_vec(),
        summary,
        failure,
        models: ModelNames { requested, answered },
        explanation,
    })
}

/// What an entry was made from.
pub(super) enum EntryOrigin {
    Known(Box<EntryMeta>),
    /// A field that it shares is damaged, or was when its pack was rewritten.
    Lost,
}

/// Decodes the meta of an entry from the bytes of its header; `None` if they are not those of an entry.
pub(super) fn explained(head: &[u8], shared: &SharedFields) -> Option<EntryOrigin> {
    if !head.starts_with(&PACKED) {
        return FrameHeader::meta(head).map(|meta| EntryOrigin::Known(Box::new(meta)));
    }
    let header = FrameHeader::decode(head).ok()?;
    let PortableEntry { summary, models, explanation, .. } = read_entry(head, header, shared)?;
    let meta = explanation.and_then(|explanation| explanation.meta(summary, models));
    Some(meta.map_or(EntryOrigin::Lost, |meta| EntryOrigin::Known(Box::new(meta))))
}

/// Frames as a pack gets them.
#[derive(Debug, Default)]
pub(super) struct PackedFrames {
    pub(super) frames: Vec<Vec<u8>>,
    /// Which of `frames` each given frame is in.
    pub(super) places: Vec<usize>,
    parsed: Vec<ParsedBody>,
    /// The given frames that `parsed` are from.
    waiting: Vec<usize>,
}

/// Packs frames for a pack whose fields have these numbers.
pub(super) fn pack(frames: Vec<PortableFrame>, numbers: &mut FieldNumbers) -> Result<PackedFrames, postcard::Error> {
    let mut packed = PackedFrames::default();
    for frame in frames {
        // whether a failure counts depends on the results before it
        if frame.is_failure() {
            packed.end_results()?;
        }
        packed.places.push(packed.frames.len());
        match frame {
            PortableFrame::Entry(entry) => packed.frames.push(entry.encode(numbers)?),
            PortableFrame::Other(bytes) => packed.frames.push(bytes),
            PortableFrame::Parsed(results) => {
                packed.parsed.extend(results);
                packed.waiting.push(packed.places.len() - 1);
            }
        }
    }
    packed.end_results()?;
    if let Some(new) = numbers.take_new() {
        packed.frames.insert(0, frame::fields(&new)?);
        packed.places.iter_mut().for_each(|place| *place += 1);
    }
    Ok(packed)
}

impl PackedFrames {
    /// Writes the results so far into a frame.
    fn end_results(&mut self) -> Result<(), postcard::Error> {
        for given in self.waiting.drain(..) {
            if let Some(place) = self.places.get_mut(given) {
                *place = self.frames.len();
            }
        }
        let parsed = std::mem::take(&mut self.parsed);
        if !parsed.is_empty() {
            self.frames.push(frame::parse_results(&parsed)?);
        }
        Ok(())
    }
}

impl PortableEntry {
    fn encode(&self, numbers: &mut FieldNumbers) -> Result<Vec<u8>, postcard::Error> {
        let mut note = match &self.failure {
            None => postcard::to_stdvec(&self.summary)?,
            Some((class, message)) => postcard::to_stdvec(&(self.summary, clip(class), clip(message)))?,
        };
        note = postcard::to_extend(&(&self.models.answered, &self.models.requested), note)?;
        match &self.explanation {
            None => note.push(0),
            Some(explanation) => note = explanation.encode(note, numbers)?,
        }
        let PortableEntry { key, digest, codec, raw_len, body_crc, body, .. } = self;
        let body = StoredBody { digest: *digest, codec: *codec, raw_len: *raw_len, crc: *body_crc, bytes: body };
        frame::packed_entry(*key, self.failure.is_some(), body, &note)
    }
}
