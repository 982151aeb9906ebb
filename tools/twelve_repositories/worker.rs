//! A scripted worker: it fills its slots from the context by their keys, reads the session again for a few slots that
//! it does not find, makes the change, and cleans up.

use crate::repositories::{Repository, Slot};

/// The maximum number of slots that the worker may read again.
const READS: usize = 2;

/// The outcome of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) success: bool,
    /// The number of slots that were read again.
    pub(crate) reads: usize,
}

/// Works on the repository; the worker knows only `context` of the session.
pub(crate) fn work(repository: &Repository, context: &str) -> Outcome {
    let mut reads = 0;
    let mut fill = |slot: Slot| match look_up(repository, slot, context) {
        Some(value) => Some(value),
        None if reads < READS => {
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
    let kept = look_up(repository, Slot::Forbidden, context);
    if kept.as_deref() != Some(repository.forbidden) {
        files.remove(repository.forbidden);
    }
    Outcome {
        success: repository.passes(&files, &commands),
        reads,
    }
}

/// The value in the last line with the words of a slot; `None` if the line denies it.
fn look_up(repository: &Repository, slot: Slot, context: &str) -> Option<String> {
    let key = repository.key(slot);
    let sentence = context.split(['\n']).rfind(|line| line.contains(key))?;
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
