//! What is done to a file.

/// What a call does to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FileAction {
    /// Makes it, where no file was.
    Create,
    /// Writes the whole file, whether it exists or not.
    Write,
    /// Changes a part of it.
    Change,
    /// Looks at it.
    Read,
    /// Removes it.
    Delete,
}

/// A file named by a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileOperation {
    /// The action.
    pub action: FileAction,
    /// The path as written in the call, without the lines that may follow it.
    pub path: String,
    /// The path that the file had before, where the call renames it.
    pub renamed_from: Option<String>,
}

impl FileOperation {
    /// An operation that renames nothing.
    pub fn new(action: FileAction, path: &str) -> FileOperation {
        FileOperation {
            action,
            path: without_lines(path.strip_prefix("file://").unwrap_or(path)).to_owned(),
            renamed_from: None,
        }
    }

    /// A file with another path than before: the old one goes, and the new one comes.
    pub fn rename(from: &str, to: &str) -> [FileOperation; 2] {
        let old = FileOperation::new(FileAction::Delete, from);
        let new = FileOperation {
            renamed_from: Some(old.path.clone()),
            ..FileOperation::new(FileAction::Write, to)
        };
        [old, new]
    }
}

/// The name of the file at a path of Unix or Windows.
pub(super) fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

/// The path without the range of lines, or the view of the file, that some tools let follow it: `a.rs:30-75`,
/// `a.rs:conflicts`, `a.rs#L3`.
pub fn without_lines(path: &str) -> &str {
    let name = path.rfind(['/', '\\']).map_or(0, |at| at + 1);
    let Some(tail) = path.get(name..) else {
        return path;
    };
    let Some(at) = tail.find([':', '#']).filter(|at| *at > 1) else {
        return path;
    };
    let is_range = |c: char| c.is_alphanumeric() || matches!(c, ',' | '-' | '+' | ':' | '_');
    let (file, lines) = tail.split_at(at);
    if file.contains('.') && lines.len() > 1 && lines.chars().skip(1).all(is_range) {
        path.get(..name + at).unwrap_or(path)
    } else {
        path
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_after_a_path_are_no_part_of_it() {
        for path in [
            "a/b.md:301",
            "a/b.md:30-75",
            "a/b.md:conflicts",
            "a/b.md#L3",
        ] {
            assert_eq!(without_lines(path), "a/b.md", "{path}");
        }
        assert_eq!(without_lines(r"C:\x\b.md"), r"C:\x\b.md");
    }
}
