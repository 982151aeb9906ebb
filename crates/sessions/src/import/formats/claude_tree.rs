//! The tree of a Claude Code session: which records the person went back from.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// The records of the main conversation, linked by `parentUuid`.
#[derive(Debug, Default)]
pub(super) struct ClaudeTree {
    index: HashMap<String, usize>,
    nodes: Vec<Node>,
}

/// A record of the tree.
#[derive(Debug)]
pub(super) struct Node {
    /// The place of its parent.
    pub(super) parent: Option<usize>,
    /// Whether it is a text that the person typed.
    pub(super) is_prompt: bool,
    pub(super) is_reply: bool,
    pub(super) entries: Range<usize>,
}

impl ClaudeTree {
    /// The place of a record.
    pub(super) fn find(&self, uuid: &str) -> Option<usize> {
        self.index.get(uuid).copied()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The entries of a record.
    pub(super) fn entries_of(&self, uuid: &str) -> Range<usize> {
        let node = self.find(uuid).and_then(|at| self.nodes.get(at));
        node.map_or(0..0, |node| node.entries.clone())
    }

    /// Adds a record, if it has an id.
    pub(super) fn add(&mut self, uuid: &str, node: Node) {
        if !uuid.is_empty() {
            self.index.insert(uuid.to_owned(), self.nodes.len());
            self.nodes.push(node);
        }
    }

    /// The entries on branches that a later prompt replaced: a record with several prompts below it continues with the
    /// one that leads to the last record. Branches made by parallel tool calls are not abandoned.
    pub(super) fn abandoned(&self) -> HashSet<usize> {
        let live = self.ancestors_of_last();
        let mut prompts: HashMap<usize, Vec<usize>> = HashMap::new();
        for (index, node) in self
            .nodes
            .iter()
            .enumerate()
            .filter(|(_, node)| node.is_prompt)
        {
            if let Some(parent) = node.parent {
                prompts.entry(parent).or_default().push(index);
            }
        }
        let forks = prompts
            .into_values()
            .filter(|children| children.iter().any(|child| live.contains(child)));
        let left: HashSet<usize> = forks
            .flatten()
            .filter(|child| !live.contains(child))
            .collect();
        if left.is_empty() {
            HashSet::new()
        } else {
            self.entries_below(&left)
        }
    }

    fn ancestors_of_last(&self) -> HashSet<usize> {
        let mut live = HashSet::new();
        let mut next = self
            .nodes
            .iter()
            .rposition(|node| node.is_reply || node.is_prompt);
        // A parent is before its child in the table, so this ends.
        while let Some(index) = next {
            live.insert(index);
            next = self.nodes.get(index).and_then(|node| node.parent);
        }
        live
    }

    fn entries_below(&self, roots: &HashSet<usize>) -> HashSet<usize> {
        let mut below: HashSet<usize> = HashSet::new();
        for (index, node) in self.nodes.iter().enumerate() {
            if roots.contains(&index) || node.parent.is_some_and(|parent| below.contains(&parent)) {
                below.insert(index);
            }
        }
        // An unanswered prompt was taken back before it counted; an answered one is history, but not of the
        // conversation that continued.
        below
            .iter()
            .filter_map(|index| self.nodes.get(*index))
            .flat_map(|node| node.entries.clone())
            .collect()
    }
}
