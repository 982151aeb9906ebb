//! Frames on their way into a pack: what entries share is written once in a pack, and results of parsing share frames.
//!
//! Pushed packs contain frames of version 1, which are complete by themselves; a pack stores them as packed frames, and
//! both are read alike. Key, digest, usage, cost and models of an entry are in its own frame, so that
//! damage to a shared field costs the explanation of the entries that name it (`why`, `cache show`) and no output.
//! Numbers of fields are valid within one pack: code that rewrites or moves entries resolves their fields and shares
//! them again.

use super::explanation::EncodedProvenance;
use super::frame::{self, FrameContent, FrameHeader};
use super::shared_fields::{FieldNumbers, SharedFields};
use crate::cache::entry::ModelNames;
use crate::cache::entry::{EntryHeader, ParsedBody, clip};
use crate::digest::ActionKey;

/// An entry as it is between two packs.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::cache) struct PortableEntry {
    /// That of the frame it was read from, a reply or failure.
    header: FrameHeader,
    body: Vec<u8>,
    models: ModelNames,
    /// `None` where a shared field was lost.
    explanation: Option<EncodedProvenance>,
}

/// A frame on its way into a pack.
#[derive(Clone, Debug)]
pub(in crate::cache) enum PortableFrame {
    Entry(Box<PortableEntry>),
    Parsed(Vec<ParsedBody>),
    /// One that packs hold as it is.
    Other(Vec<u8>),
}

impl PortableFrame {
    /// Reads a frame of either version. `shared` has the fields of the pack that it is from.
    pub(in crate::cache) fn read(mut frame: Vec<u8>, shared: &SharedFields) -> PortableFrame {
        let Ok(header) = FrameHeader::decode(&frame) else { return PortableFrame::Other(frame) };
        match header.content {
            FrameContent::ParseResult(result) => {
                PortableFrame::Parsed(vec![ParsedBody::new(ActionKey(header.key), header.digest, result)])
            }
            FrameContent::ParseResults(results) => PortableFrame::Parsed(results),
            FrameContent::Reply(_) | FrameContent::Failure { .. } => match read_details(&header, &frame, shared) {
                Some((models, explanation)) => {
                    frame.drain(..header.head_len as usize);
                    PortableFrame::Entry(Box::new(PortableEntry { header, body: frame, models, explanation }))
                }
                None => PortableFrame::Other(frame),
            },
            _ => PortableFrame::Other(frame),
        }
    }

    fn is_failure(&self) -> bool {
        matches!(self, PortableFrame::Entry(entry) if entry.header.content.is_failure())
    }
}

/// The models of an entry, and what it was made from; `None` for the latter where a shared field was lost. `bytes` begin
/// with the header.
fn read_details(
    header: &FrameHeader,
    bytes: &[u8],
    shared: &SharedFields,
) -> Option<(ModelNames, Option<EncodedProvenance>)> {
    let (models, fields) = postcard::take_from_bytes(header.details(bytes)?).ok()?;
    Some((models, EncodedProvenance::decode(fields, shared)))
}

/// What an entry was made from.
pub(in crate::cache) enum EntryOrigin {
    Known(Box<EntryHeader>),
    /// A field that it shares is damaged, or was when its pack was rewritten.
    Lost,
}

/// Decodes all that is known of an entry from its header and the bytes of it; `None` if they are not those of an entry.
pub(in crate::cache) fn explained(header: &FrameHeader, head: &[u8], shared: &SharedFields) -> Option<EntryOrigin> {
    let (models, explanation) = read_details(header, head, shared)?;
    let known = explanation.zip(header.content.summary());
    let entry = known.and_then(|(explanation, summary)| explanation.header(*summary, models));
    Some(entry.map_or(EntryOrigin::Lost, |entry| EntryOrigin::Known(Box::new(entry))))
}

/// Frames as a pack gets them.
#[derive(Debug, Default)]
pub(in crate::cache) struct PackedFrames {
    pub(in crate::cache) frames: Vec<Vec<u8>>,
    /// Which of `frames` each given frame is in.
    pub(in crate::cache) places: Vec<usize>,
    parsed: Vec<ParsedBody>,
    /// The given frames that `parsed` are from.
    waiting: Vec<usize>,
}

/// Packs frames for a pack whose fields have these numbers.
pub(in crate::cache) fn pack(
    frames: Vec<PortableFrame>,
    numbers: &mut FieldNumbers,
) -> Result<PackedFrames, postcard::Error> {
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
        let PortableEntry { header, body, models, explanation } = self;
        let mut note = header.content.summary().map_or(Ok(Vec::new()), postcard::to_stdvec)?;
        if let FrameContent::Failure { class, message, .. } = &header.content {
            note = postcard::to_extend(&(clip(class), clip(message)), note)?;
        }
        note = postcard::to_extend(models, note)?;
        match explanation {
            None => note.push(0),
            Some(explanation) => note = explanation.encode(note, |field| numbers.number(field))?,
        }
        frame::packed_entry(header, body, &note)
    }
}
