//! Opening a cache, whatever happened to it: the index is compared with the packs, brought up to them or made anew
//! from them, and a torn tail is cut off.

use std::fs;
use std::path::PathBuf;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use super::catalogue::{Catalogue, PackState, read_pack_header};
use super::error::{CacheError, IndexFault};
use super::index::Index;
use super::layout::{Found, Layout};
use super::pack::{PackHeader, Packs};
use super::proven::Proven;
use super::scanner::{Found as Stretch, Scanner};
use super::writer::{Core, Source, Tail, lost};

/// Opens the folder for writing. The caller holds its lock.
pub(super) fn open(layout: Layout, found: Found) -> Result<Core, CacheError> {
    let mut notices = Vec::new();
    if found == Found::Unlabelled {
        notices.push(format!("{}: the FORMAT file was lost or damaged; it was written again", layout.root().display()));
    }
    layout.establish()?;
    sweep(&layout)?;
    let packs = Packs::new(layout.clone());
    if let Some(proven) = prove(&layout, &packs)? {
        let tail = Tail::after(&layout, &proven.tables.packs, &mut notices)?;
        return Ok(Core::new(layout, packs, Source::Proven(proven), tail, notices));
    }
    let on_disk = states(&layout, &packs)?;
    let resumed = indexed(&layout, &packs, &on_disk)
        .and_then(|(index, state)| Ok((index, Tail::resume(&layout, state).map_err(|error| error.to_string())?)));
    let (index, tail) = match resumed {
        Ok((index, tail)) => (index, tail),
        Err(reason) => {
            let (index, catalogue) = remake(&layout, &packs)?;
            let tail = Tail::after(&layout, &catalogue.packs, &mut notices)?;
            tell(&layout, &reason, &catalogue, &mut notices);
            (index, tail)
        }
    };
    Ok(Core::new(layout, packs, Source::Index(index), tail, notices))
}

/// Reads a small cache through, if it has an index to go on with. What cannot be read is not proven.
fn prove(layout: &Layout, packs: &Packs) -> Result<Option<Proven>, CacheError> {
    if !layout.index().join("db").exists() {
        return Ok(None);
    }
    Ok(Proven::read(&layout.pack_ids()?, packs).unwrap_or(None))
}

/// Why the index must be made anew; `None` where there is nothing to tell.
struct Reason(Option<String>);

impl<T: Into<String>> From<T> for Reason {
    fn from(text: T) -> Reason {
        Reason(Some(text.into()))
    }
}

/// The index, if it agrees with the packs but for what was appended last, and the newest pack up to its last good frame.
fn indexed(layout: &Layout, packs: &Packs, on_disk: &[PackState]) -> Result<(Index, PackState), Reason> {
    if !layout.index().join("db").exists() {
        return Err(if on_disk.is_empty() { Reason(None) } else { "it was missing".into() });
    }
    let index = Index::open(&layout.index()).map_err(|fault| fault.text().to_owned())?;
    let known = index.packs().map_err(|fault| fault.text().to_owned())?;
    let Some((newest, older)) = on_disk.split_last() else { return Err("the packs are gone".into()) };
    let (last_known, older_known) = match known.split_last() {
        Some((last, rest)) if last.id == newest.id => (*last, rest),
        // the newest pack was begun, and nothing of it indexed yet
        _ => (PackState { good: PackHeader::LEN as u64, ..*newest }, known.as_slice()),
    };
    let agree = |a: &PackState, b: &PackState| a.id == b.id && a.generation == b.generation && a.good == b.len;
    let older_agree = older.len() == older_known.len() && older_known.iter().zip(older).all(|(a, b)| agree(a, b));
    let grown = last_known.generation == newest.generation && last_known.good <= newest.len;
    if !older_agree || !grown {
        return Err("the packs are not those it was made of".into());
    }
    let good = replay(&index, packs, last_known, newest.len)?;
    Ok((index, PackState { good, ..*newest }))
}

/// Indexes the frames behind those that are indexed. Answers where the last good one ends.
fn replay(index: &Index, packs: &Packs, known: PackState, len: u64) -> Result<u64, Reason> {
    if known.good == len {
        return Ok(len);
    }
    let file = packs.file(known.id).map_err(|e| e.to_string())?;
    let mut scanner = Scanner::new(known.id, &file, known.good, len);
    let mut frames = Vec::new();
    let mut good = known.good;
    while let Some(found) = scanner.next().map_err(|e| e.to_string())? {
        match found {
            Stretch::Frame(at, header) => {
                good = at.end();
                frames.push((at, header));
            }
            Stretch::Damaged { what, .. } => return Err(what.into()),
            Stretch::Torn { .. } => {}
        }
    }
    let state = PackState { good, ..known };
    index.append(&frames, state).and_then(|()| index.flush()).map_err(|fault| fault.text().to_owned())?;
    Ok(good)
}

/// The packs as they are on disk. A newest pack without a whole header was being begun, and is begun again.
fn states(layout: &Layout, packs: &Packs) -> Result<Vec<PackState>, CacheError> {
    let mut states = Vec::new();
    for id in layout.pack_ids()? {
        let read = || {
            let file = packs.file(id)?;
            let len = file.metadata()?.len();
            let header = read_pack_header(&file, len)?;
            // a damaged header agrees with no index, so that the pack is scanned
            let generation = header.map_or(u32::MAX, |header| header.generation);
            std::io::Result::Ok(PackState { id, generation, good: len, len })
        };
        states.push(read().map_err(CacheError::io("read", &layout.pack(id)))?);
    }
    if let Some(last) = states.last().filter(|last| last.len < PackHeader::LEN as u64).copied() {
        states.pop();
        let path = layout.pack(last.id);
        packs.forget(last.id);
        fs::remove_file(&path).map_err(CacheError::io("remove", &path))?;
    }
    Ok(states)
}

/// Removes what an interrupted rewrite or rebuild left behind.
fn sweep(layout: &Layout) -> Result<(), CacheError> {
    remove_folder(&fresh_index(layout))?;
    let folder = layout.packs();
    for entry in fs::read_dir(&folder).map_err(CacheError::io("list", &folder))? {
        let path = entry.map_err(CacheError::io("list", &folder))?.path();
        if path.extension().is_some_and(|extension| extension == "rewrite") {
            fs::remove_file(&path).map_err(CacheError::io("remove", &path))?;
        }
    }
    Ok(())
}

fn fresh_index(layout: &Layout) -> PathBuf {
    layout.root().join("index.new")
}

fn remove_folder(path: &std::path::Path) -> Result<(), CacheError> {
    match fs::remove_dir_all(path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(CacheError::io("remove", path)(e)),
        _ => Ok(()),
    }
}

/// Makes the index anew beside the old one and puts it in its place; the old one stays as `index.bad-<time>`.
fn remake(layout: &Layout, packs: &Packs) -> Result<(Index, Catalogue), CacheError> {
    let catalogue = Catalogue::scan(layout, packs)?;
    let fresh = fresh_index(layout);
    remove_folder(&fresh)?;
    let failed = |fault: IndexFault| CacheError::Index { path: layout.index(), what: fault.text().to_owned() };
    let index = Index::open(&fresh).map_err(failed)?;
    index.fill(&catalogue).map_err(failed)?;
    drop(index);
    set_old_aside(layout)?;
    fs::rename(&fresh, layout.index()).map_err(CacheError::io("rename", &fresh))?;
    layout.sync_folder(layout.root())?;
    let index = Index::open(&layout.index()).map_err(failed)?;
    Ok((index, catalogue))
}

const BAD: &str = "index.bad-";

/// Renames the index out of the way. Only the newest such folder is kept.
fn set_old_aside(layout: &Layout) -> Result<(), CacheError> {
    remove_bad(layout)?;
    let old = layout.index();
    if !old.exists() {
        return Ok(());
    }
    let time = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%S").to_string();
    let bad = layout.root().join(format!("{BAD}{time}"));
    fs::rename(&old, &bad).map_err(CacheError::io("rename", &old))
}

fn remove_bad(layout: &Layout) -> Result<(), CacheError> {
    let root = layout.root();
    for entry in fs::read_dir(root).map_err(CacheError::io("list", root))? {
        let entry = entry.map_err(CacheError::io("list", root))?;
        if entry.file_name().to_string_lossy().starts_with(BAD) {
            remove_folder(&entry.path())?;
        }
    }
    Ok(())
}

fn tell(layout: &Layout, reason: &Reason, catalogue: &Catalogue, notices: &mut Vec<String>) {
    if let Some(why) = &reason.0 {
        notices.push(format!(
            "{}: the index was made again from the packs, {} entries ({why})",
            layout.root().display(),
            catalogue.records.len()
        ));
    }
    let damage = catalogue.damage.iter();
    notices.extend(damage.map(|damage| format!("{damage}. `compeval cache verify` sets it aside")));
}

impl Tail {
    /// The pack to go on with, given what a scan found.
    fn after(layout: &Layout, packs: &[PackState], notices: &mut Vec<String>) -> Result<Tail, CacheError> {
        let Some(last) = packs.last() else { return Tail::begin(layout, 1) };
        if last.good < last.len {
            let kept = keep_aside(layout, last.id, last.good, last.len)?;
            notices.push(format!(
                "{}: the last {} bytes are no whole entry and were cut off (a copy is in {})",
                layout.pack(last.id).display(),
                last.len - last.good,
                kept.display()
            ));
        }
        Tail::resume(layout, *last)
    }
}

/// Copies a stretch of a pack into the folder of damaged ones.
pub(super) fn keep_aside(layout: &Layout, id: u32, from: u64, to: u64) -> Result<PathBuf, CacheError> {
    use std::io::{Read, Seek, SeekFrom};
    let folder = layout.damaged();
    fs::create_dir_all(&folder).map_err(CacheError::io("create", &folder))?;
    let path = folder.join(format!("{id:08}-{from}.bin"));
    let copy = || {
        let mut source = fs::File::open(layout.pack(id))?;
        source.seek(SeekFrom::Start(from))?;
        let mut target = fs::File::create(&path)?;
        std::io::copy(&mut source.take(to.saturating_sub(from)), &mut target)?;
        target.sync_data()
    };
    copy().map_err(CacheError::io("write", &path))?;
    Ok(path)
}

impl Core {
    /// Opens the index, where the packs were read through instead. The caller holds the tail, so nothing is written
    /// meanwhile.
    pub(super) fn open_index(&self, tail: &mut Tail) -> Result<(), CacheError> {
        let mut proven = self.proven.write().unwrap_or_else(PoisonError::into_inner);
        let Some(Proven { tables, .. }) = &*proven else { return Ok(()) };
        match indexed(&self.layout, &self.packs, &tables.packs) {
            Ok((index, state)) => {
                let is_good = state.good == tail.len && !lost(&index, tables);
                *self.index.write().unwrap_or_else(PoisonError::into_inner) = Some(index);
                if !is_good {
                    self.rebuild(tail, "entries are missing from it")?;
                }
            }
            Err(Reason(why)) => self.rebuild(tail, why.as_deref().unwrap_or("it was missing"))?,
        }
        self.audited.store(true, Ordering::Release);
        *proven = None;
        Ok(())
    }

    /// Makes the index anew while the store is open. The caller holds the tail, so nothing is written meanwhile.
    pub(super) fn rebuild(&self, tail: &mut Tail, why: &str) -> Result<(), CacheError> {
        let entries = self.replace_index(tail)?;
        self.notice(format!(
            "{}: the index was made again from the packs, {entries} entries ({why})",
            self.layout.root().display()
        ));
        Ok(())
    }

    fn replace_index(&self, tail: &mut Tail) -> Result<usize, CacheError> {
        tail.file.sync_data().map_err(CacheError::io("write to", &self.layout.pack(tail.id)))?;
        let mut place = self.index.write().unwrap_or_else(PoisonError::into_inner);
        // not dropped: a store that stopped on damage may do so again when it closes
        std::mem::forget(place.take());
        let (index, catalogue) = remake(&self.layout, &self.packs)?;
        *place = Some(index);
        self.rebuilds.fetch_add(1, Ordering::AcqRel);
        Ok(catalogue.records.len())
    }

    /// Writes the index anew because it takes much more room than its records need.
    pub(super) fn shrink_index(&self, tail: &mut Tail) -> Result<(), CacheError> {
        tail.file.sync_data().map_err(CacheError::io("write to", &self.layout.pack(tail.id)))?;
        let mut place = self.index.write().unwrap_or_else(PoisonError::into_inner);
        drop(place.take());
        let (index, _) = remake(&self.layout, &self.packs)?;
        *place = Some(index);
        remove_bad(&self.layout)
    }
}
