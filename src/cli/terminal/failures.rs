//! Prints failures grouped by cause.

use super::console::Console;
use crate::results::FailedAction;
use base::locale::word;
use base::say;

/// The first failure with a cause, and the number of further ones.
type Cause<'f> = (&'f FailedAction, usize);

/// Groups failures by message and hint, in the order of the first of each group.
fn causes(failures: &[FailedAction]) -> Vec<Cause<'_>> {
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

/// Prints the first `shown` causes. Returns the number of failures with other causes.
pub(crate) fn print_failures(failures: &[FailedAction], shown: usize, console: &Console) -> usize {
    let causes = causes(failures);
    let (printed, left) = causes.split_at(shown.min(causes.len()));
    for (failure, alike) in printed {
        let hint = failure.hint.as_deref().map(|hint| format!(" ({hint})")).unwrap_or_default();
        let more = if *alike > 0 { say!(" and {alike} more", " 等，另有 {alike} 个") } else { String::new() };
        console.error(word("failed:", "失败："), format_args!("{}{more}: {}{hint}", failure.place, failure.message));
    }
    left.iter().map(|(_, alike)| 1 + alike).sum()
}
