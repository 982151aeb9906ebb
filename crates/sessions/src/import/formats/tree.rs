//! The records of a log as a tree: each names the one before it, and a session may have gone back to an earlier one.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// Records by their ids, each with its parent and its entries.
#[derive(Debug, Default)]
pub(super) struct RecordTree {
    index: HashMap<String, usize>,
    nodes: Vec<(Option<usize>, Range<usize>)>,
}

impl RecordTree {
    /// The place of a record.
    pub(super) fn find(&self, id: &str) -> Option<usize> {
        self.index.get(id).copied()
    }

    /// How many records have an id.
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The place of the record before one.
    pub(super) fn parent(&self, place: usize) -> Option<usize> {
        self.nodes.get(place)?.0
    }

    /// The entries of a record.
    pub(super) fn entries_of(&self, id: &str) -> Option<Range<usize>> {
        let (_, entries) = self.nodes.get(self.find(id)?)?;
        Some(entries.clone())
    }

    /// Adds a record; its parent is one of those before it.
    pub(super) fn add(&mut self, id: &str, parent: Option<usize>, entries: Range<usize>) {
        self.index.insert(id.to_owned(), self.nodes.len());
        self.nodes.push((parent, entries));
    }

    /// A record and all that it follows.
    pub(super) fn way_to(&self, place: Option<usize>) -> HashSet<usize> {
        // A parent is before its child, so this ends.
        std::iter::successors(place, |at| self.parent(*at)).collect()
    }

    /// The entries of some records.
    pub(super) fn entries(&self, is_wanted: impl Fn(usize) -> bool) -> HashSet<usize> {
        let wanted = self.nodes.iter().enumerate();
        let wanted = wanted.filter(|(place, _)| is_wanted(*place));
        wanted
            .flat_map(|(_, (_, entries))| entries.clone())
            .collect()
    }
}
