//! Sorted runs: what the index holds. Each has the keys of one flush, or of several that were merged, in order, in blocks.
//! Where each block begins is in the catalog, in the same form: a fence, and the offset.
//!
//! ```text
//! block: { key length 1 | 0 if removed, else value length + 1 (varint) | key | value }… | crc 4
//! ```

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::iter::Peekable;
use std::path::Path;
use std::sync::Arc;

use super::catalog::FenceBlocks;
use crate::cache::error::{IndexFault, IndexResult};
use crate::cache::packs::pack::read_at;
use base::files::open_options;

/// A block is not longer than this, unless a single entry is.
const BLOCK: usize = 4000;
/// The same of a block of fences.
const FENCE_BLOCK: usize = 400;
const CRC: usize = 4;

/// A key and its value; `None` where an older run's value was removed.
pub(in crate::cache) type SortedRunEntry = (Vec<u8>, Option<Vec<u8>>);

/// A run: a file that is written once and read block by block.
///
/// No block is kept in memory here. Keys are digests, so any block may be the next; those that are in use are in the
/// memory that the system has to spare for files.
#[derive(Clone, Debug)]
pub(in crate::cache) struct SortedRun {
    file: Arc<File>,
    pub(in crate::cache) number: u32,
    /// Bytes of its blocks.
    pub(in crate::cache) len: u64,
    fences: Arc<[Fence]>,
}

/// Where a block begins.
#[derive(Debug)]
struct Fence {
    /// A key above all in the block before it and not above its own first.
    key: Box<[u8]>,
    offset: u64,
}

impl SortedRun {
    /// Opens a run of so many blocks with its fences.
    pub(in crate::cache) fn open(
        path: &Path,
        (number, len, blocks): (u32, u64, u32),
        stored: &FenceBlocks,
    ) -> IndexResult<SortedRun> {
        let mut fences: Vec<Fence> = Vec::new();
        for block in stored {
            let mut rest = covered(block)?;
            while let Some((key, offset)) = next_entry(&mut rest)? {
                let offset = postcard::from_bytes(offset.unwrap_or_default()).map_err(IndexFault::broken)?;
                fences.push(Fence { key: key.into(), offset });
            }
        }
        let is_rising = fences.is_sorted_by(|a, b| a.key < b.key && a.offset < b.offset);
        let is_inside =
            fences.first().is_none_or(|first| first.offset == 0) && fences.last().is_none_or(|l| l.offset < len);
        if !is_rising || !is_inside || fences.len() != blocks as usize {
            return Err(damaged("a part without its beginnings"));
        }
        let file = open_whole(path, len).map_err(IndexFault::broken)?;
        Ok(SortedRun { file: Arc::new(file), number, len, fences: fences.into() })
    }

    /// Number, length and blocks, by which it is opened again.
    pub(super) fn shape(&self) -> (u32, u64, u32) {
        (self.number, self.len, u32::try_from(self.fences.len()).unwrap_or(u32::MAX))
    }

    /// Its fences as the catalog stores them.
    pub(super) fn fences(&self) -> IndexResult<FenceBlocks> {
        let (mut blocks, mut block) = (Vec::new(), BlockBuilder::default());
        for fence in &*self.fences {
            let offset = postcard::to_stdvec(&fence.offset).map_err(IndexFault::broken)?;
            let entry = encode_entry(&fence.key, Some(&offset))?;
            if block.is_full_with(&entry, FENCE_BLOCK) {
                blocks.extend(block.finish());
            }
            block.0.extend(entry);
        }
        blocks.extend(block.finish());
        Ok(blocks)
    }

    /// The block that a key would be in.
    fn place(&self, key: &[u8]) -> Option<usize> {
        self.fences.partition_point(|fence| *fence.key <= *key).checked_sub(1)
    }

    fn block(&self, number: usize) -> IndexResult<Vec<u8>> {
        let start = self.fences.get(number).ok_or_else(|| damaged("a block that is missing"))?.offset;
        let end = self.fences.get(number + 1).map_or(self.len, |next| next.offset);
        let mut block = vec![0; usize::try_from(end - start).map_err(IndexFault::broken)?];
        read_at(&self.file, &mut block, start).map_err(IndexFault::broken)?;
        Ok(block)
    }

    /// What the run says about a key: its value, or that it was removed.
    pub(in crate::cache) fn get(&self, key: &[u8]) -> IndexResult<Option<Option<Vec<u8>>>> {
        let found = self.first_from(key)?;
        Ok(found.filter(|(found, _)| found == key).map(|(_, value)| value))
    }

    /// The first entry whose key is not below `from`.
    pub(super) fn first_from(&self, from: &[u8]) -> IndexResult<Option<SortedRunEntry>> {
        for number in self.place(from).unwrap_or(0)..self.fences.len() {
            let block = self.block(number)?;
            let mut rest = covered(&block)?;
            while let Some((key, value)) = next_entry(&mut rest)? {
                if key >= from {
                    return Ok(Some((key.to_vec(), value.map(<[u8]>::to_vec))));
                }
            }
        }
        Ok(None)
    }

    /// The entries from the first whose key is not below `from`.
    pub(in crate::cache) fn entries(
        &self,
        from: &[u8],
    ) -> IndexResult<impl Iterator<Item = IndexResult<SortedRunEntry>> + use<>> {
        let (run, numbers) = (self.clone(), self.place(from).unwrap_or(0)..self.fences.len());
        let read = move |number| all_entries(&run.block(number)?);
        let entries = numbers.flat_map(move |number| match read(number) {
            Ok(entries) => entries.into_iter().map(Ok).collect::<Vec<_>>(),
            Err(fault) => vec![Err(fault)],
        });
        let from = from.to_vec();
        Ok(entries.skip_while(move |entry| entry.as_ref().is_ok_and(|(key, _)| *key < from)))
    }
}

/// Opens a file that must have `len` bytes.
fn open_whole(path: &Path, len: u64) -> io::Result<File> {
    let file = File::open(path)?;
    if file.metadata()?.len() == len { Ok(file) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

/// A block that is being filled.
#[derive(Default)]
struct BlockBuilder(Vec<u8>);

impl BlockBuilder {
    /// Whether an entry must begin the next block.
    fn is_full_with(&self, entry: &[u8], limit: usize) -> bool {
        !self.0.is_empty() && self.0.len() + entry.len() + CRC > limit
    }

    /// The block with its checksum, and the next one is begun; `None` of an empty one.
    fn finish(&mut self) -> Option<Vec<u8>> {
        let block = std::mem::take(&mut self.0);
        (!block.is_empty()).then(|| with_checksum(block))
    }
}

fn damaged(what: &str) -> IndexFault {
    IndexFault::broken(format!("it has {what}"))
}

/// Appends the checksum.
pub(super) fn with_checksum(mut bytes: Vec<u8>) -> Vec<u8> {
    let crc = crc32fast::hash(&bytes);
    bytes.extend_from_slice(&crc.to_le_bytes());
    bytes
}

/// What is before the checksum; `None` if they do not match.
pub(in crate::cache) fn verified(bytes: &[u8]) -> Option<&[u8]> {
    let (covered, crc) = bytes.split_last_chunk::<CRC>()?;
    (crc32fast::hash(covered) == u32::from_le_bytes(*crc)).then_some(covered)
}

/// The block without its checksum, which is verified.
fn covered(block: &[u8]) -> IndexResult<&[u8]> {
    verified(block).ok_or_else(|| damaged("a block that does not match its checksum"))
}

fn all_entries(block: &[u8]) -> IndexResult<Vec<SortedRunEntry>> {
    let mut entries = Vec::new();
    let mut rest = covered(block)?;
    while let Some((key, value)) = next_entry(&mut rest)? {
        entries.push((key.to_vec(), value.map(<[u8]>::to_vec)));
    }
    Ok(entries)
}

/// An entry, in its block.
type EntryRef<'b> = (&'b [u8], Option<&'b [u8]>);

/// Takes the next entry of a block; `None` at its end.
fn next_entry<'b>(rest: &mut &'b [u8]) -> IndexResult<Option<EntryRef<'b>>> {
    let Some((key_len, after)) = rest.split_first() else { return Ok(None) };
    let (value_len, after): (u32, &[u8]) = postcard::take_from_bytes(after).map_err(IndexFault::broken)?;
    let cut = || damaged("an entry that is cut off");
    let (key, after) = after.split_at_checked(usize::from(*key_len)).ok_or_else(cut)?;
    let (value, after) = after.split_at_checked(value_len.saturating_sub(1) as usize).ok_or_else(cut)?;
    *rest = after;
    Ok(Some((key, (value_len > 0).then_some(value))))
}

/// Writes a run, whose keys come in order.
pub(in crate::cache) struct SortedRunWriter {
    file: BufWriter<File>,
    number: u32,
    len: u64,
    fences: Vec<Fence>,
    block: BlockBuilder,
    last: Vec<u8>,
}

impl SortedRunWriter {
    pub(in crate::cache) fn create(path: &Path, number: u32) -> IndexResult<SortedRunWriter> {
        let file = open_options(path).read(true).write(true).create(true).truncate(true).open(path);
        let file = BufWriter::with_capacity(1 << 18, file.map_err(IndexFault::broken)?);
        let block = BlockBuilder::default();
        Ok(SortedRunWriter { file, number, len: 0, fences: Vec::new(), block, last: Vec::new() })
    }

    pub(in crate::cache) fn push(&mut self, key: &[u8], value: Option<&[u8]>) -> IndexResult<()> {
        let entry = encode_entry(key, value)?;
        if self.block.is_full_with(&entry, BLOCK) {
            self.end_block().map_err(IndexFault::broken)?;
        }
        if self.block.0.is_empty() {
            self.fences.push(Fence { key: fence(&self.last, key), offset: self.len });
        }
        self.block.0.extend(entry);
        key.clone_into(&mut self.last);
        Ok(())
    }

    fn end_block(&mut self) -> io::Result<()> {
        let Some(block) = self.block.finish() else { return Ok(()) };
        self.len += block.len() as u64;
        self.file.write_all(&block)
    }

    /// Writes everything to disk.
    pub(in crate::cache) fn finish(mut self) -> IndexResult<SortedRun> {
        self.end_block().map_err(IndexFault::broken)?;
        let file = self.file.into_inner().map_err(|error| IndexFault::broken(error.into_error()))?;
        file.sync_data().map_err(IndexFault::broken)?;
        Ok(SortedRun { file: Arc::new(file), number: self.number, len: self.len, fences: self.fences.into() })
    }
}

fn encode_entry(key: &[u8], value: Option<&[u8]>) -> IndexResult<Vec<u8>> {
    let key_len = u8::try_from(key.len()).map_err(IndexFault::broken)?;
    let value_len = value.map_or(Ok(0), |value| u32::try_from(value.len() + 1)).map_err(IndexFault::broken)?;
    let mut entry = postcard::to_extend(&value_len, vec![key_len]).map_err(IndexFault::broken)?;
    entry.extend_from_slice(key);
    entry.extend_from_slice(value.unwrap_or_default());
    Ok(entry)
}

/// The shortest beginning of `first` that is above `last`.
fn fence(last: &[u8], first: &[u8]) -> Box<[u8]> {
    let shared = last.iter().zip(first).take_while(|(a, b)| a == b).count();
    first.get(..=shared).unwrap_or(first).into()
}

type Source<'s> = Peekable<Box<dyn Iterator<Item = Result<SortedRunEntry, IndexFault>> + 's>>;

/// Several sorted sources as one: of equal keys, the one in the last source counts.
pub(in crate::cache) struct Merged<'s>(Vec<Source<'s>>);

impl<'s> Merged<'s> {
    /// `sources`: the oldest first.
    pub(in crate::cache) fn new(
        sources: Vec<Box<dyn Iterator<Item = Result<SortedRunEntry, IndexFault>> + 's>>,
    ) -> Merged<'s> {
        Merged(sources.into_iter().map(Iterator::peekable).collect())
    }
}

impl Iterator for Merged<'_> {
    type Item = Result<SortedRunEntry, IndexFault>;

    fn next(&mut self) -> Option<Result<SortedRunEntry, IndexFault>> {
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

    type TestTable = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

    fn table() -> impl Strategy<Value = TestTable> {
        let key = prop::collection::vec(0..4u8, 1..5);
        let value = prop::option::of(prop::collection::vec(any::<u8>(), 0..3000));
        prop::collection::btree_map(key, value, 0..60)
    }

    fn written(dir: &Path, number: u32, table: &TestTable) -> SortedRun {
        let mut writer = SortedRunWriter::create(&dir.join(number.to_string()), number).unwrap();
        for (key, value) in table {
            writer.push(key, value.as_deref()).unwrap();
        }
        writer.finish().unwrap()
    }

    fn list(entries: impl Iterator<Item = IndexResult<SortedRunEntry>>) -> Vec<SortedRunEntry> {
        entries.map(Result::unwrap).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn runs_have_what_was_written(
            older in table(), newer in table(), from in prop::collection::vec(0..4u8, 0..4),
        ) {
            let dir = tempfile::tempdir().unwrap();
            let mut runs = [written(dir.path(), 1, &older), written(dir.path(), 2, &newer)];
            for is_opened_again in [false, true] {
                for (run, table) in runs.iter().zip([&older, &newer]) {
                    for key in table.keys().chain([&from]) {
                        prop_assert_eq!(run.get(key).unwrap(), table.get(key).cloned());
                    }
                    let expected: Vec<SortedRunEntry> =
                        table.range(from.clone()..).map(|(k, v)| (k.clone(), v.clone())).collect();
                    prop_assert_eq!(run.first_from(&from).unwrap(), expected.first().cloned());
                    prop_assert_eq!(list(run.entries(&from).unwrap()), expected);
                }
                let sources = runs.iter().map(|run| Box::new(run.entries(&[]).unwrap()) as _).collect();
                let mut merged = older.clone();
                merged.extend(newer.clone());
                prop_assert_eq!(list(Merged::new(sources)), merged.into_iter().collect::<Vec<_>>());
                if !is_opened_again {
                    let stored = runs.each_ref().map(|run| (run.shape(), run.fences().unwrap()));
                    drop(runs);
                    runs = stored.map(|(shape, fences)| {
                        SortedRun::open(&dir.path().join(shape.0.to_string()), shape, &fences).unwrap()
                    });
                }
            }
        }
    }

    #[test]
    fn any_flipped_byte_and_any_missing_end_of_a_block_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let table: TestTable = (0..50u8).map(|n| (vec![n], Some(vec![n; 10]))).collect();
        let run = written(dir.path(), 1, &table);
        let whole = run.block(0).unwrap();
        assert_eq!(run.len, whole.len() as u64);
        for at in 0..whole.len() {
            let mut flipped = whole.to_vec();
            flipped[at] ^= 4;
            assert!(all_entries(&flipped).is_err(), "byte {at}");
            assert!(all_entries(&whole[..at]).is_err(), "{at} bytes");
        }
        assert_eq!(all_entries(&whole).unwrap().len(), 50);
    }

    #[test]
    fn the_bytes_of_a_block_are_pinned() {
        let dir = tempfile::tempdir().unwrap();
        let run = written(dir.path(), 1, &[(vec![1, 2], Some(vec![7, 8, 9])), (vec![3], None)].into());
        let block = run.block(0).unwrap();
        let bytes: String = block.iter().map(|byte| format!("{byte:02x}")).collect();
        insta::assert_snapshot!(bytes, @"020401020708090100038ef71029");
    }
}
