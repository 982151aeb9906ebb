//! The pack that is being written: created, or continued after its last whole frame.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use crate::cache::entry::FrameLocation;
use crate::cache::error::CacheError;
use crate::cache::packs::PackState;
use crate::cache::packs::folder::Layout;
use crate::cache::packs::frame::{FrameHeader, PackHeader};
use base::files::open_options;
use base::guarded;

/// A frame's place and its header.
type LocatedFrame = (FrameLocation, FrameHeader);

/// The pack that is being written.
#[derive(Debug)]
pub(crate) struct ActivePack {
    pub file: File,
    pub state: PackState,
}

impl ActivePack {
    pub(crate) fn create(layout: &Layout, id: u32) -> Result<ActivePack, CacheError> {
        let path = layout.pack(id);
        let (file, nonce) = create_file(&path, id).map_err(CacheError::io("create", &path))?;
        layout.sync_folder(&layout.packs())?;
        let len = PackHeader::LEN as u64;
        Ok(ActivePack {
            file,
            state: PackState { id, nonce, len },
        })
    }

    /// Continues a pack after its last whole frame; what follows is cut off.
    pub(super) fn resume(layout: &Layout, state: PackState) -> Result<ActivePack, CacheError> {
        let path = layout.pack(state.id);
        let file = open_cut(&path, state.len).map_err(CacheError::io("open", &path))?;
        Ok(ActivePack { file, state })
    }
}

/// Creates the file of a pack, where there is none yet: no pack is ever overwritten. Returns it with its nonce.
fn create_file(path: &Path, id: u32) -> io::Result<(File, u64)> {
    let header = PackHeader::new(id)?;
    let mut options = open_options(path);
    options.read(true).append(true).create_new(true);
    let mut file = guarded::open_with(&mut options, path)?;
    file.write_all(&header.encode())?;
    file.sync_data()?;
    Ok((file, header.nonce))
}

/// Opens a pack and cuts off everything after `good`.
fn open_cut(path: &Path, good: u64) -> io::Result<File> {
    let file = guarded::open_with(File::options().read(true).append(true), path)?;
    if file.metadata()?.len() > good {
        cut(path, good)?;
    }
    Ok(file)
}

/// Cuts a pack off after `len` bytes, durably. Windows does not let a file be shortened that is open for appending, so
/// it is opened again.
pub(crate) fn cut(path: &Path, len: u64) -> io::Result<()> {
    let file = guarded::open_with(File::options().write(true), path)?;
    file.set_len(len)?;
    file.sync_data()
}

/// Where frames will be once they are appended.
pub(super) fn locate(active: &ActivePack, frames: &[Vec<u8>]) -> io::Result<Vec<LocatedFrame>> {
    let mut offset = active.state.len;
    let mut located = Vec::with_capacity(frames.len());
    for frame in frames {
        let header =
            FrameHeader::decode(frame).map_err(|_| io::Error::other("a frame is malformed"))?;
        located.push((header.location(active.state.id, offset), header));
        offset += frame.len() as u64;
    }
    Ok(located)
}
