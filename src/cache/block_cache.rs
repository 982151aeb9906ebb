//! The blocks of the index that were read last, verified: keys are digests, so any block may be the next, and reading one
//! takes ten times as long as searching it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes of blocks in memory.
const MOST: usize = 32 << 20;

/// The run and the number of a block.
type Place = (u32, u32);

#[derive(Debug, Default)]
pub(super) struct BlockCache(Mutex<Generations>);

/// What was used since a certain moment, and what was used in the time before it.
#[derive(Debug, Default)]
struct Generations {
    young: HashMap<Place, Arc<[u8]>>,
    old: HashMap<Place, Arc<[u8]>>,
    young_bytes: usize,
}

impl BlockCache {
    /// A block, which `read` gives where it is not in memory.
    pub(super) fn get<E>(
        &self,
        place: Place,
        read: impl FnOnce() -> Result<Option<Arc<[u8]>>, E>,
    ) -> Result<Option<Arc<[u8]>>, E> {
        let mut generations = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(block) = generations.young.get(&place) {
            return Ok(Some(block.clone()));
        }
        let found = generations.old.remove(&place);
        drop(generations);
        let block = match found {
            Some(block) => block,
            None => match read()? {
                Some(block) => block,
                None => return Ok(None),
            },
        };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(place, block.clone());
        Ok(Some(block))
    }
}

impl Generations {
    fn insert(&mut self, place: Place, block: Arc<[u8]>) {
        self.young_bytes += block.len();
        self.young.insert(place, block);
        if self.young_bytes > MOST / 2 {
            self.old = std::mem::take(&mut self.young);
            self.young_bytes = 0;
        }
    }
}
