//! Frames on their way into a pack: a field that entries share is written once in a pack, and parse results share
//! frames.
//!
//! Packs of a remote contain frames of version 1, which are complete by themselves; a local pack stores them as packed
//! frames, and both are read alike. Key, digest, usage, cost and models of an entry are in its own frame. So where a
//! shared field is damaged, the entries that name it cannot be explained (`why`, `cache show`), but no output is lost.
//! Numbers of fields are valid within one pack: code that rewrites or moves entries resolves their fields and shares
//! them again.

use super::frame::{self, FrameContent, FrameHeader};
use super::provenance::EncodedProvenance;
use super::shared_fields::{FieldNumbers, SharedFields};
use crate::cache::entry::{EntryHeader, ModelNames, ParsedBody, clip};
use crate::digest::ActionKey;

/// An entry that is moved from one pack to another.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PortableEntry {
    /// The header of the frame that it was read from, a reply or failure.
    header: FrameHeader,
    body: Vec<u8>,
    models: ModelNames,
    /// `None` where a shared field was lost.
    provenance: Option<EncodedProvenance>,
}

/// A frame on its way into a pack.
#[derive(Clone, Debug)]
pub(crate) enum PortableFrame {
    Entry(Box<PortableEntry>),
    Parsed(Vec<ParsedBody>),
    /// A frame that packs store as it is.
    Other(Vec<u8>),
}

impl PortableFrame {
    /// Reads a frame of either version. `shared` has the fields of the pack that it is from.
    pub(crate) fn read(mut frame: Vec<u8>, shared: &SharedFields) -> PortableFrame {
        let Ok(header) = FrameHeader::decode(&frame) else {
            return PortableFrame::Other(frame);
        };
        match header.content {
            FrameContent::ParseResult(result) => PortableFrame::Parsed(vec![ParsedBody::new(
                ActionKey(header.key),
                header.digest,
                result,
            )]),
            FrameContent::ParseResults(results) => PortableFrame::Parsed(results),
            FrameContent::Reply(_) | FrameContent::Failure { .. } => {
                match read_details(&header, &frame, shared) {
                    Some((models, provenance)) => {
                        frame.drain(..header.head_len as usize);
                        PortableFrame::Entry(Box::new(PortableEntry {
                            header,
                            body: frame,
                            models,
                            provenance,
                        }))
                    }
                    None => PortableFrame::Other(frame),
                }
            }
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

/// A header of an entry, decoded.
pub(crate) enum DecodedHeader {
    Whole(Box<EntryHeader>),
    /// A shared field is damaged, or was when the pack was rewritten.
    FieldLost,
}

/// Decodes the header of an entry. `head` are its bytes. `None` if it is not the header of an entry.
pub(crate) fn decode_header(
    header: &FrameHeader,
    head: &[u8],
    shared: &SharedFields,
) -> Option<DecodedHeader> {
    let (models, provenance) = read_details(header, head, shared)?;
    let known = provenance.zip(header.content.summary());
    let entry = known.and_then(|(provenance, summary)| provenance.header(*summary, models));
    Some(entry.map_or(DecodedHeader::FieldLost, |entry| {
        DecodedHeader::Whole(Box::new(entry))
    }))
}

/// Frames as they are written to a pack.
#[derive(Debug, Default)]
pub(crate) struct PackedFrames {
    pub frames: Vec<Vec<u8>>,
    /// Which of `frames` each given frame is in.
    pub places: Vec<usize>,
    parsed: Vec<ParsedBody>,
    /// Which given frames `parsed` came from.
    waiting: Vec<usize>,
}

/// Packs frames for a pack. `numbers` has the fields that its frames share already.
pub(crate) fn pack(
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
        let PortableEntry {
            header,
            body,
            models,
            provenance,
        } = self;
        let mut note = header
            .content
            .summary()
            .map_or(Ok(Vec::new()), postcard::to_stdvec)?;
        if let FrameContent::Failure { class, message, .. } = &header.content {
            note = postcard::to_extend(&(clip(class), clip(message)), note)?;
        }
        note = postcard::to_extend(models, note)?;
        match provenance {
            None => note.push(0),
            Some(provenance) => note = provenance.encode(note, |field| numbers.number(field))?,
        }
        frame::packed_entry(header, body, &note)
    }
}
