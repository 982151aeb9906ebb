//! A model of a file system that lost its power: what is on disk after some of the recorded changes.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

/// What is durable when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Semantics {
    /// The process is killed: everything that it wrote stays.
    Killed,
    /// Changes of names and lengths reach the disk in their order; a sync brings all before it.
    Ordered,
    /// A sync of a file brings its content and its name, and nothing else.
    Linux,
    /// A sync of a file brings its content, and only that of a folder the names in it.
    Posix,
}

/// A file or a folder, whatever its name is.
type Node = usize;

/// A recorded change, with nodes in the place of paths.
#[derive(Debug)]
enum Change {
    Name {
        folder: Node,
        name: String,
        node: Option<Node>,
    },
    Rename {
        from: (Node, String),
        to: (Node, String),
        node: Node,
    },
    Write {
        file: Node,
        offset: u64,
        data: Vec<u8>,
    },
    Truncate {
        file: Node,
        length: u64,
    },
    Sync {
        node: Node,
    },
    Printed(String),
}

/// All recorded changes, in their order.
#[derive(Debug)]
pub(crate) struct Recording {
    root: Node,
    folders: Vec<Node>,
    changes: Vec<Change>,
}

#[derive(Default)]
struct Names {
    nodes: usize,
    folders: Vec<Node>,
    entries: HashMap<(Node, String), Node>,
}

impl Names {
    fn new_node(&mut self) -> Node {
        self.nodes += 1;
        self.nodes
    }

    /// The folder that a path is in, and the name in it.
    fn place(&self, path: &Path) -> Option<(Node, String)> {
        let mut parts: Vec<String> = path
            .iter()
            .map(|part| part.to_string_lossy().into_owned())
            .collect();
        let name = parts.pop()?;
        let folder = parts
            .into_iter()
            .try_fold(0, |folder, part| self.entries.get(&(folder, part)).copied())?;
        Some((folder, name))
    }

    /// What has a path now; `None` of a file that was removed while it was open.
    fn node(&self, path: &Path) -> Option<Node> {
        if path.as_os_str().is_empty() {
            Some(0)
        } else {
            self.entries.get(&self.place(path)?).copied()
        }
    }
}

impl Recording {
    /// Reads what `write_recorder.c` wrote about the folder `root`.
    pub(crate) fn read(bytes: &[u8], root: &Path) -> Recording {
        let mut names = Names::default();
        names.folders.push(0);
        let (mut rest, mut changes) = (bytes, Vec::new());
        while !rest.is_empty() {
            let record = Record::take(&mut rest, root);
            changes.extend(record.change(&mut names));
        }
        Recording {
            root: 0,
            folders: names.folders,
            changes,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.changes.len()
    }

    /// The numbers that were acknowledged before a change.
    pub(crate) fn acknowledged(&self, until: usize) -> Vec<u64> {
        let lines = self.changes[..until]
            .iter()
            .filter_map(|change| match change {
                Change::Printed(text) => Some(
                    text.lines()
                        .filter_map(|line| line.trim().strip_prefix("ack ")?.parse().ok()),
                ),
                _ => None,
            });
        lines.flatten().collect()
    }

    /// Whether each change before `until` is on disk for certain.
    fn durable(&self, until: usize, semantics: Semantics) -> Vec<bool> {
        let mut durable = vec![semantics == Semantics::Killed; until];
        for (at, change) in self.changes[..until].iter().enumerate() {
            let Change::Sync { node } = change else {
                continue;
            };
            for (durable, before) in durable.iter_mut().zip(&self.changes[..at]) {
                *durable |= self.covers(*node, before, semantics);
            }
        }
        durable
    }

    /// Whether the sync of a node brings an earlier change to disk.
    fn covers(&self, synced: Node, change: &Change, semantics: Semantics) -> bool {
        let by_name = |folders: &[Node], node: Option<Node>| match semantics {
            Semantics::Killed | Semantics::Ordered => true,
            Semantics::Linux => node == Some(synced) || folders.contains(&synced),
            Semantics::Posix => folders.contains(&synced),
        };
        match change {
            Change::Name { folder, node, .. } => by_name(&[*folder], *node),
            Change::Rename { from, to, node } => by_name(&[from.0, to.0], Some(*node)),
            Change::Write { file, .. } | Change::Truncate { file, .. } => *file == synced,
            Change::Sync { .. } | Change::Printed(_) => true,
        }
    }

    /// Which changes before `until` a power loss left. `draw` decides about those that are not durable.
    pub(crate) fn left(
        &self,
        until: usize,
        semantics: Semantics,
        mut draw: impl FnMut(usize) -> usize,
    ) -> Vec<bool> {
        let mut left = self.durable(until, semantics);
        let last = left
            .iter()
            .rposition(|durable| *durable)
            .map_or(0, |last| last + 1);
        // where the order is kept, all changes up to one of them are left
        let ordered_to = last + draw(until - last + 1);
        let share = draw(4);
        for (at, left) in left.iter_mut().enumerate() {
            *left |= match semantics {
                Semantics::Ordered => at < ordered_to,
                _ => draw(4) < share,
            };
        }
        left
    }

    /// Writes the files that these changes make to a folder.
    pub(crate) fn materialize(&self, left: &[bool], to: &Path) {
        let mut names: BTreeMap<(Node, String), Node> = BTreeMap::new();
        let mut contents: HashMap<Node, Vec<u8>> = HashMap::new();
        for change in self
            .changes
            .iter()
            .zip(left)
            .filter(|(_, left)| **left)
            .map(|(change, _)| change)
        {
            match change {
                Change::Name {
                    folder,
                    name,
                    node: Some(node),
                } => drop(names.insert((*folder, name.clone()), *node)),
                Change::Name {
                    folder,
                    name,
                    node: None,
                } => drop(names.remove(&(*folder, name.clone()))),
                Change::Rename { from, to, node } => {
                    // where its first name was lost, the file has the new one all the same
                    names.remove(from);
                    names.insert(to.clone(), *node);
                }
                Change::Write { file, offset, data } => {
                    let (content, start) = (contents.entry(*file).or_default(), *offset as usize);
                    content.resize(content.len().max(start + data.len()), 0);
                    content[start..start + data.len()].copy_from_slice(data);
                }
                Change::Truncate { file, length } => contents
                    .entry(*file)
                    .or_default()
                    .resize(*length as usize, 0),
                Change::Sync { .. } | Change::Printed(_) => {}
            }
        }
        self.write_folder(self.root, &names, &contents, to);
    }

    fn write_folder(
        &self,
        folder: Node,
        names: &BTreeMap<(Node, String), Node>,
        contents: &HashMap<Node, Vec<u8>>,
        to: &Path,
    ) {
        std::fs::create_dir_all(to).expect("a folder");
        for ((_, name), node) in names.iter().filter(|((parent, _), _)| *parent == folder) {
            let path = to.join(name);
            if self.folders.contains(node) {
                self.write_folder(*node, names, contents, &path);
            } else {
                std::fs::write(path, contents.get(node).map_or(&[][..], Vec::as_slice))
                    .expect("a file");
            }
        }
    }
}

/// A record as it stands in the file.
struct Record {
    kind: u8,
    path: PathBuf,
    second: PathBuf,
    offset: u64,
    data: Vec<u8>,
}

impl Record {
    fn take(rest: &mut &[u8], root: &Path) -> Record {
        let mut bytes = |length: usize| {
            let (taken, after) = rest.split_at(length);
            *rest = after;
            taken.to_vec()
        };
        let kind = bytes(1)[0];
        let mut path = || {
            let length = u32::from_le_bytes(bytes(4).try_into().expect("a length"));
            let path = PathBuf::from(String::from_utf8(bytes(length as usize)).expect("a path"));
            path.strip_prefix(root)
                .map(Path::to_owned)
                .unwrap_or_default()
        };
        let (path, second) = (path(), path());
        let offset = u64::from_le_bytes(bytes(8).try_into().expect("an offset"));
        let length = u64::from_le_bytes(bytes(8).try_into().expect("a length"));
        Record {
            kind,
            path,
            second,
            offset,
            data: bytes(length as usize),
        }
    }

    fn change(self, names: &mut Names) -> Option<Change> {
        let Record {
            kind,
            path,
            second,
            offset,
            data,
        } = self;
        match kind {
            b'c' | b'm' => {
                let (folder, name) = names.place(&path)?;
                let node = names.new_node();
                if kind == b'm' {
                    names.folders.push(node);
                }
                names.entries.insert((folder, name.clone()), node);
                Some(Change::Name {
                    folder,
                    name,
                    node: Some(node),
                })
            }
            b'u' | b'd' => {
                let (folder, name) = names.place(&path)?;
                names.entries.remove(&(folder, name.clone()));
                Some(Change::Name {
                    folder,
                    name,
                    node: None,
                })
            }
            b'r' => {
                let (from, to) = (names.place(&path)?, names.place(&second)?);
                let node = names.entries.remove(&from)?;
                names.entries.insert(to.clone(), node);
                Some(Change::Rename { from, to, node })
            }
            b'w' => Some(Change::Write {
                file: names.node(&path)?,
                offset,
                data,
            }),
            b't' => Some(Change::Truncate {
                file: names.node(&path)?,
                length: offset,
            }),
            b's' => Some(Change::Sync {
                node: names.node(&path)?,
            }),
            _ => Some(Change::Printed(String::from_utf8_lossy(&data).into_owned())),
        }
    }
}
