//! Scripted workers: each fills its slots from the context by their keys, reads the session again for a few slots that
//! it does not find, makes the change, and cleans up.

use crate::repositories::{Repository, Slot};

/// How a worker reads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Worker {
    pub(crate) name: &'static str,
    /// The most slots that it reads again.
    reads: usize,
    /// Of several lines about a slot, it believes the first; others believe the last.
    believes_first: bool,
}

/// The workers. The usual one stands first.
pub(crate) const WORKERS: [Worker; 5] = [
    worker("last line wins", 2, false),
    worker("first line wins", 2, true),
    worker("no re-reads", 0, false),
    worker("3 re-reads", 3, false),
    worker("5 re-reads", 5, false),
];

const fn worker(name: &'static str, reads: usize, believes_first: bool) -> Worker {
    Worker {
        name,
        reads,
        believes_first,
    }
}

/// The outcome of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) success: bool,
    /// The number of slots that were read again.
    pub(crate) reads: usize,
}

/// Works on the repository; the worker knows only `context` of the session.
pub(crate) fn work(worker: Worker, repository: &Repository, context: &str) -> Outcome {
    let mut reads = 0;
    let mut fill = |slot: Slot| match look_up(worker, repository, slot, context) {
        Some(value) => Some(value),
        None if reads < worker.reads => {
            reads += 1;
            Some(repository.fact(slot).to_owned())
        }
        None => None,
    };
    let slots = [Slot::Path, Slot::Flag, Slot::Value, Slot::NextStep].map(&mut fill);
    let mut files = repository.files();
    let mut commands = Vec::new();
    if let [Some(path), Some(flag), Some(value), Some(next)] = &slots {
        files
            .entry(path.clone())
            .or_default()
            .push_str(&repository.change(value, flag));
        commands.push(next.clone());
    }
    // The worker does not read a ban again, because it does not know that there is one.
    let kept = look_up(worker, repository, Slot::Forbidden, context);
    if kept.as_deref() != Some(repository.forbidden) {
        files.remove(repository.forbidden);
    }
    Outcome {
        success: repository.passes(&files, &commands),
        reads,
    }
}

/// The value in the line with the words of a slot that the worker believes; `None` if the line denies it.
fn look_up(worker: Worker, repository: &Repository, slot: Slot, context: &str) -> Option<String> {
    let key = repository.key(slot);
    let mut lines = context.lines().filter(|line| line.contains(key));
    let sentence = if worker.believes_first {
        lines.next()
    } else {
        lines.next_back()
    }?;
    let (_, after) = sentence.split_once(key)?;
    if after.trim_start().starts_with("not ")
        || after.contains(" is not ")
        || sentence.contains("was rejected")
    {
        return None;
    }
    let words = after
        .split_whitespace()
        .map(|word| word.trim_matches(['.', ',', ':', '`']));
    let is_of_kind = |word: &&str| match slot {
        Slot::Path | Slot::Forbidden => word.contains('/'),
        Slot::Flag => word.starts_with("--"),
        Slot::Value => word.bytes().all(|byte| byte.is_ascii_digit()) && !word.is_empty(),
        Slot::NextStep => *word == "make",
    };
    let mut words = words.skip_while(|word| !is_of_kind(word));
    let first = words.next()?.to_owned();
    match slot {
        Slot::NextStep => Some(format!("{first} {}", words.next()?)),
        _ => Some(first),
    }
}
