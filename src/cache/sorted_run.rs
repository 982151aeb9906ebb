//! Sorted runs: the immutable files of the index. Each has the keys of one flush, or of several that were merged, in order.
//!
//! ```text
//! blocks | list of blocks | length of the list 4 | crc of the list 4 | magic 8
//! block: { key length 1 | 0 if removed, else value length + 1 (varint) | key | value }… | crc 4
//! ```
//! The list has the first key, the place and the length of each block; it is all of a run that stays in memory. Every
//! byte is covered by a checksum, so a run is right or refused.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::iter::Peekable;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::error::IndexFault;
use super::pack::read_at;
use crate::files::open_options;

/// A block is closed when it reaches this length: one read finds a key.
const BLOCK: usize = 4 << 10;
const MAGIC: [u8; 8] = *b"CEvRUN01";
const CRC: usize = 4;
/// Length and checksum of the list, and the magic.
const TAIL: usize = 16;

/// A key and its value; `None` where an older run's value was removed.
pub(super) type Entry = (Vec<u8>, Option<Vec<u8>>);

/// A block: its first key, and where it is.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Block {
    first: Box<[u8]>,
    offset: u64,
    len: u32,
}

/// An open run.
#[derive(Debug)]
pub(super) struct SortedRun {
    file: File,
    blocks: Vec<Block>,
    /// Bytes on disk.
    pub(super) len: u64,
}

impl SortedRun {
    /// Opens a run that must have this length.
    pub(super) fn open(path: &Path, len: u64) -> Result<SortedRun, IndexFault> {
        let file = File::open(path).map_err(IndexFault::broken)?;
        let found = file.metadata().map_err(IndexFault::broken)?.len();
        let end = found.checked_sub(TAIL as u64).filter(|_| found == len).ok_or_else(|| damaged("another length"))?;
        let mut tail = [0; TAIL];
        read_at(&file, &mut tail, end).map_err(IndexFault::broken)?;
        let [a, b, c, d, e, f, g, h, magic @ ..] = tail;
        let (listed, crc) = (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h]));
        let start = end.checked_sub(u64::from(listed)).filter(|_| magic == MAGIC);
        let start = start.ok_or_else(|| damaged("another end"))?;
        let mut list = vec![0; listed as usize];
        read_at(&file, &mut list, start).map_err(IndexFault::broken)?;
        let blocks: Vec<Block> = postcard::from_bytes(&list).map_err(IndexFault::broken)?;
        let inside = |block: &Block| block.offset.checked_add(u64::from(block.len)).is_some_and(|to| to <= start);
        if crc32fast::hash(&list) != crc || !blocks.iter().all(inside) {
            return Err(damaged("a list of blocks that does not match its checksum"));
        }
        Ok(SortedRun { file, blocks, len })
    }

    /// What the run says about a key: its value, or that it was removed.
    pub(super) fn get(&self, key: &[u8]) -> Result<Option<Option<Vec<u8>>>, IndexFault> {
        let Some(at) = self.block_of(key) else { return Ok(None) };
        let Some(block) = self.blocks.get(at) else { return Ok(None) };
        let bytes = self.read(block)?;
        let mut rest = &bytes[..];
        while let Some((found, value)) = next_entry(&mut rest)? {
            if found == key {
                return Ok(Some(value.map(<[u8]>::to_vec)));
            }
            if found > key {
                break;
            }
        }
        Ok(None)
    }

    /// The block that has a key, if any has.
    fn block_of(&self, key: &[u8]) -> Option<usize> {
        self.blocks.partition_point(|block| &*block.first <= key).checked_sub(1)
    }

    fn read(&self, block: &Block) -> Result<Vec<u8>, IndexFault> {
        let mut bytes = vec![0; block.len as usize];
        read_at(&self.file, &mut bytes, block.offset).map_err(IndexFault::broken)?;
        let Some((covered, crc)) = bytes.split_last_chunk::<CRC>() else { return Err(damaged("an empty block")) };
        if crc32fast::hash(covered) != u32::from_le_bytes(*crc) {
            return Err(damaged("a block that does not match its checksum"));
        }
        bytes.truncate(bytes.len() - CRC);
        Ok(bytes)
    }

    /// The entries from the first whose key is not below `from`.
    pub(super) fn entries(
        self: Arc<SortedRun>,
        from: &[u8],
    ) -> impl Iterator<Item = Result<Entry, IndexFault>> + use<> {
        let from = from.to_vec();
        let first = self.block_of(&from).unwrap_or(0);
        let blocks = (first..self.blocks.len()).map(move |at| match self.blocks.get(at) {
            Some(block) => all_entries(&self.read(block)?),
            None => Ok(Vec::new()),
        });
        let entries = blocks.flat_map(|block| match block {
            Ok(entries) => entries.into_iter().map(Ok).collect::<Vec<_>>(),
            Err(fault) => vec![Err(fault)],
        });
        entries.skip_while(move |entry| entry.as_ref().is_ok_and(|(key, _)| *key < from))
    }
}

fn damaged(what: &str) -> IndexFault {
    IndexFault::broken(format!("a file of it has {what}"))
}

fn all_entries(mut bytes: &[u8]) -> Result<Vec<Entry>, IndexFault> {
    let mut entries = Vec::new();
    while let Some((key, value)) = next_entry(&mut bytes)? {
        entries.push((key.to_vec(), value.map(<[u8]>::to_vec)));
    }
    Ok(entries)
}

/// Takes the next entry of a block; `None` at its end.
fn next_entry<'b>(rest: &mut &'b [u8]) -> Result<Option<(&'b [u8], Option<&'b [u8]>)>, IndexFault> {
    let Some((key_len, after)) = rest.split_first() else { return Ok(None) };
    let (value_len, after): (u32, &[u8]) = postcard::take_from_bytes(after).map_err(IndexFault::broken)?;
    let cut = || damaged("an entry that is cut off");
    let (key, after) = after.split_at_checked(usize::from(*key_len)).ok_or_else(cut)?;
    let (value, after) = after.split_at_checked(value_len.saturating_sub(1) as usize).ok_or_else(cut)?;
    *rest = after;
    Ok(Some((key, (value_len > 0).then_some(value))))
}

/// Writes a run, whose keys come in order.
pub(super) struct RunWriter {
    file: BufWriter<File>,
    blocks: Vec<Block>,
    /// The block that is being filled.
    block: Vec<u8>,
    first: Vec<u8>,
    offset: u64,
}

impl RunWriter {
    pub(super) fn create(path: &Path) -> io::Result<RunWriter> {
        let file = open_options(path).write(true).create(true).truncate(true).open(path)?;
        let file = BufWriter::with_capacity(1 << 20, file);
        Ok(RunWriter { file, blocks: Vec::new(), block: Vec::new(), first: Vec::new(), offset: 0 })
    }

    pub(super) fn push(&mut self, key: &[u8], value: Option<&[u8]>) -> io::Result<()> {
        let key_len = u8::try_from(key.len()).map_err(io::Error::other)?;
        let value_len = value.map_or(Ok(0), |value| u32::try_from(value.len() + 1)).map_err(io::Error::other)?;
        if self.block.is_empty() {
            self.first = key.to_vec();
        }
        self.block.push(key_len);
        self.block = postcard::to_extend(&value_len, std::mem::take(&mut self.block)).map_err(io::Error::other)?;
        self.block.extend_from_slice(key);
        self.block.extend_from_slice(value.unwrap_or_default());
        if self.block.len() >= BLOCK { self.end_block() } else { Ok(()) }
    }

    fn end_block(&mut self) -> io::Result<()> {
        if self.block.is_empty() {
            return Ok(());
        }
        let crc = crc32fast::hash(&self.block);
        self.block.extend_from_slice(&crc.to_le_bytes());
        self.file.write_all(&self.block)?;
        let len = u32::try_from(self.block.len()).map_err(io::Error::other)?;
        self.blocks.push(Block { first: std::mem::take(&mut self.first).into(), offset: self.offset, len });
        self.offset += u64::from(len);
        self.block.clear();
        Ok(())
    }

    /// Ends the run and makes it durable. Returns its length.
    pub(super) fn finish(mut self) -> io::Result<u64> {
        self.end_block()?;
        let list = postcard::to_stdvec(&self.blocks).map_err(io::Error::other)?;
        let listed = u32::try_from(list.len()).map_err(io::Error::other)?;
        self.file.write_all(&list)?;
        self.file.write_all(&listed.to_le_bytes())?;
        self.file.write_all(&crc32fast::hash(&list).to_le_bytes())?;
        self.file.write_all(&MAGIC)?;
        let file = self.file.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.sync_data()?;
        Ok(self.offset + list.len() as u64 + TAIL as u64)
    }
}

type Source<'s> = Peekable<Box<dyn Iterator<Item = Result<Entry, IndexFault>> + 's>>;

/// Several sorted sources as one: of equal keys, the one in the last source counts.
pub(super) struct Merged<'s>(Vec<Source<'s>>);

impl<'s> Merged<'s> {
    /// `sources`: the oldest first.
    pub(super) fn new(sources: Vec<Box<dyn Iterator<Item = Result<Entry, IndexFault>> + 's>>) -> Merged<'s> {
        Merged(sources.into_iter().map(Iterator::peekable).collect())
    }
}

impl Iterator for Merged<'_> {
    type Item = Result<Entry, IndexFault>;

    fn next(&mut self) -> Option<Result<Entry, IndexFault>> {
        let mut least: Option<Vec<u8>> = None;
        for source in &mut self.0 {
            match source.peek() {
                // a fault ends everything, so nothing after it is believed
                Some(Err(_)) => return source.next(),
                Some(Ok((key, _))) if least.as_ref().is_none_or(|least| key < least) => least = Some(key.clone()),
                _ => {}
            }
        }
        let least = least?;
        let mut newest = None;
        for source in &mut self.0 {
            if let Some(entry) = source.next_if(|entry| entry.as_ref().is_ok_and(|(key, _)| *key == least)) {
                newest = Some(entry);
            }
        }
        newest
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    type Table = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

    fn table() -> impl Strategy<Value = Table> {
        let key = prop::collection::vec(0..4u8, 1..5);
        let value = prop::option::of(prop::collection::vec(any::<u8>(), 0..900));
        prop::collection::btree_map(key, value, 0..60)
    }

    fn written(path: &Path, table: &Table) -> Arc<SortedRun> {
        let mut writer = RunWriter::create(path).unwrap();
        for (key, value) in table {
            writer.push(key, value.as_deref()).unwrap();
        }
        let len = writer.finish().unwrap();
        Arc::new(SortedRun::open(path, len).unwrap())
    }

    fn list(entries: impl Iterator<Item = Result<Entry, IndexFault>>) -> Vec<Entry> {
        entries.map(Result::unwrap).collect()
    }

    proptest! {
        #[test]
        fn a_run_has_what_was_written(table in table(), from in prop::collection::vec(0..4u8, 0..4)) {
            let dir = tempfile::tempdir().unwrap();
            let run = written(&dir.path().join("run"), &table);
            for key in table.keys().chain([&from]) {
                prop_assert_eq!(run.get(key).unwrap(), table.get(key).cloned());
            }
            let expected: Vec<Entry> = table.range(from.clone()..).map(|(k, v)| (k.clone(), v.clone())).collect();
            prop_assert_eq!(list(run.entries(&from)), expected);
        }

        #[test]
        fn of_merged_runs_the_last_counts(older in table(), newer in table()) {
            let dir = tempfile::tempdir().unwrap();
            let runs = [written(&dir.path().join("a"), &older), written(&dir.path().join("b"), &newer)];
            let sources = runs.into_iter().map(|run| Box::new(run.entries(&[])) as _).collect();
            let mut expected = older;
            expected.extend(newer);
            prop_assert_eq!(list(Merged::new(sources)), expected.into_iter().collect::<Vec<_>>());
        }
    }

    #[test]
    fn any_flipped_byte_and_any_missing_end_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run");
        let table: Table = (0..120u8).map(|n| (vec![n], Some(vec![n; 40]))).collect();
        let len = written(&path, &table).len;
        let whole = std::fs::read(&path).unwrap();
        let read = |bytes: &[u8]| -> Result<Vec<Entry>, IndexFault> {
            std::fs::write(&path, bytes).unwrap();
            Arc::new(SortedRun::open(&path, len)?).entries(&[]).collect()
        };
        assert_eq!(read(&whole).unwrap().len(), 120);
        for at in (0..whole.len()).step_by(3).chain(whole.len() - 30..whole.len()) {
            let mut flipped = whole.clone();
            flipped[at] ^= 4;
            assert!(read(&flipped).is_err(), "byte {at}");
        }
        for length in (0..whole.len()).step_by(31) {
            assert!(read(&whole[..length]).is_err(), "{length} bytes");
        }
    }

    #[test]
    fn the_bytes_of_a_run_are_pinned() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run");
        written(&path, &[(vec![1, 2], Some(vec![7, 8, 9])), (vec![3], None)].into());
        let bytes: String = std::fs::read(&path).unwrap().iter().map(|byte| format!("{byte:02x}")).collect();
        insta::assert_snapshot!(bytes, @"020401020708090100038ef7102901020102000e060000006abfde5c43457652554e3031");
    }
}
