//! The pack that is being written: created, or continued after its last whole frame. What is cut off is set aside.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::cache::entry::FrameLocation;
use crate::cache::error::CacheError;
use crate::cache::index::scan::PackState;
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
    pub id: u32,
    pub nonce: u64,
    pub len: u64,
    /// How much of it the flushed tree has.
    pub(super) flushed: u64,
}

impl ActivePack {
    pub(crate) fn create(layout: &Layout, id: u32) -> Result<ActivePack, CacheError> {
        let path = layout.pack(id);
        let (file, nonce) = create_file(&path, id).map_err(CacheError::io("create", &path))?;
        layout.sync_folder(&layout.packs())?;
        let len = PackHeader::LEN as u64;
        Ok(ActivePack {
            file,
            id,
            nonce,
            len,
            flushed: len,
        })
    }

    /// Continues a pack after its last whole frame; what follows is cut off.
    pub(super) fn resume(layout: &Layout, state: PackState) -> Result<ActivePack, CacheError> {
        let path = layout.pack(state.id);
        let file = open_cut(&path, state.good).map_err(CacheError::io("open", &path))?;
        let PackState {
            id,
            nonce,
            good: len,
            ..
        } = state;
        Ok(ActivePack {
            file,
            id,
            nonce,
            len,
            flushed: len,
        })
    }

    /// The pack to continue with after a scan.
    pub(super) fn after_scan(
        layout: &Layout,
        packs: &[PackState],
        notices: &mut Vec<String>,
    ) -> Result<ActivePack, CacheError> {
        let Some(last) = packs.last() else {
            return ActivePack::create(layout, 1);
        };
        if last.good < last.len {
            let kept = copy_damaged(layout, last.id, last.good, last.len)?;
            notices.push(format!(
                "{}: the last {} bytes are not a whole entry and were cut off (a copy is in {})",
                layout.pack(last.id).display(),
                last.len - last.good,
                kept.display()
            ));
        }
        ActivePack::resume(layout, *last)
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
    let mut offset = active.len;
    let mut located = Vec::with_capacity(frames.len());
    for frame in frames {
        let header =
            FrameHeader::decode(frame).map_err(|_| io::Error::other("a frame is malformed"))?;
        located.push((header.location(active.id, offset), header));
        offset += frame.len() as u64;
    }
    Ok(located)
}

/// Copies a range of a pack into the folder for damaged data.
pub(crate) fn copy_damaged(
    layout: &Layout,
    id: u32,
    from: u64,
    to: u64,
) -> Result<PathBuf, CacheError> {
    let folder = layout.damaged();
    guarded::create_folder(&folder)?;
    let path = folder.join(format!("{id:08}-{from}.bin"));
    copy_range(&layout.pack(id), from, to, &path).map_err(CacheError::io("write", &path))?;
    Ok(path)
}

fn copy_range(source: &Path, from: u64, to: u64, target: &Path) -> io::Result<()> {
    let mut source = guarded::open(source)?;
    source.seek(SeekFrom::Start(from))?;
    let mut options = open_options(target);
    options.write(true).create(true).truncate(true);
    let mut target = guarded::open_with(&mut options, target)?;
    io::copy(&mut source.take(to.saturating_sub(from)), &mut target)?;
    target.sync_data()
}
