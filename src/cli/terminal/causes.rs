//! Failures for people: each cause once, with the first place it befell.

use super::console::{Console, Meaning};
use crate::results::Failure;

/// A cause with the first failure it led to, and how many more.
type Cause<'f> = (&'f Failure, usize);

/// The distinct causes, in order of their first failures. Alike are those with the same message and hint.
fn causes(failures: &[Failure]) -> Vec<Cause<'_>> {
    let mut causes: Vec<Cause<'_>> = Vec::new();
    for failure in failures {
        let is_like = |(first, _): &Cause<'_>| (&first.message, &first.hint) == (&failure.message, &failure.hint);
        match causes.iter().position(is_like) {
            Some(known) => causes[known].1 += 1,
            None => causes.push((failure, 0)),
        }
    }
    causes
}

/// Tells the first `shown` causes. Returns how many failures have another one.
pub(crate) fn tell_causes(failures: &[Failure], shown: usize, console: &Console) -> usize {
    let causes = causes(failures);
    let (told, left) = causes.split_at(shown.min(causes.len()));
    for (failure, alike) in told {
        let hint = failure.hint.as_deref().map(|hint| format!(" ({hint})")).unwrap_or_default();
        let more = if *alike > 0 { format!(" and {alike} more") } else { String::new() };
        let word = console.paint(Meaning::Bad, "failed:");
        console.tell(&format!("{word} {}{more}: {}{hint}", failure.place, failure.message));
    }
    left.iter().map(|(_, alike)| 1 + alike).sum()
}
