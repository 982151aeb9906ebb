//! The tree of a Claude Code session: which records the person went back from.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// The records of the main conversation, linked by `parentUuid`.
#[derive(Debug, Default)]
pub(super) struct ClaudeTree {
    index: HashMap<String, usize>,
    nodes: Vec<Node>,
}

#[derive(Debug)]
struct Node {
    parent: Option<usize>,
    /// A text that the person typed.
    prompt: bool,
    reply: bool,
    entries: Range<usize>,
}

/// What the tree needs to know of a record.
pub(super) struct Link<'a> {
    pub(super) uuid: &'a str,
    pub(super) parent: &'a str,
    pub(super) prompt: bool,
    pub(super) reply: bool,
    pub(super) entries: Range<usize>,
}

impl ClaudeTree {
    pub(super) fn knows(&self, uuid: &str) -> bool {
        self.index.contains_key(uuid)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The entries of a record.
    pub(super) fn entries_of(&self, uuid: &str) -> Range<usize> {
        let node = self.index.get(uuid).and_then(|at| self.nodes.get(*at));
        node.map_or(0..0, |node| node.entries.clone())
    }

    pub(super) fn add(&mut self, link: Link<'_>) {
        if link.uuid.is_empty() {
            return;
        }
        let parent = self.index.get(link.parent).copied();
        self.index.insert(link.uuid.to_owned(), self.nodes.len());
        self.nodes.push(Node { parent, prompt: link.prompt, reply: link.reply, entries: link.entries });
    }

    /// The entries on branches that a later prompt replaced: a record with several prompts below it continues with the
    /// one that leads to the last record. Branches made by parallel tool calls are none of these.
    pub(super) fn abandoned(&self) -> HashSet<usize> {
        let live = self.ancestors_of_last();
        let mut prompts: HashMap<usize, Vec<usize>> = HashMap::new();
        for (index, node) in self.nodes.iter().enumerate().filter(|(_, node)| node.prompt) {
            if let Some(parent) = node.parent {
                prompts.entry(parent).or_default().push(index);
            }
        }
        let forks = prompts.into_values().filter(|children| children.iter().any(|child| live.contains(child)));
        let left: HashSet<usize> = forks.flatten().filter(|child| !live.contains(child)).collect();
        if left.is_empty() { HashSet::new() } else { self.entries_below(&left) }
    }

    fn ancestors_of_last(&self) -> HashSet<usize> {
        let mut live = HashSet::new();
        let mut next = self.nodes.iter().rposition(|node| node.reply || node.prompt);
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
        // A prompt that nobody answered was taken back before it counted; what was answered is history too, but not
        // of the conversation that continued.
        below.iter().filter_map(|index| self.nodes.get(*index)).flat_map(|node| node.entries.clone()).collect()
    }
}
