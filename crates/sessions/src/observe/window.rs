//! Windows of turns and what happened in them; the controls on either side of a window.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde::Serialize;

use super::actions::SessionActions;
use crate::references::Lines;

/// The turns of a window.
pub const WINDOW_TURNS: usize = 20;
/// A window with fewer turns is not counted.
pub(super) const FEWEST_TURNS: usize = 10;
/// Turns between a window and its controls, and between a control and another compaction before it.
const DISTANCE: usize = 20;
/// Turns between the places that are tried for a placebo.
const PLACEBO_STEP: usize = 10;

/// Turns `from..until`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    pub(super) from: usize,
    pub(super) until: usize,
}

impl Window {
    /// From a turn up to the next of `borders`, which rise, the end of the session, or 20 turns on, whichever is first.
    pub(super) fn new(from: usize, borders: &[usize], end: usize) -> Window {
        let next = first_after(borders, from).unwrap_or(end);
        Window {
            from,
            until: next.min(end).min(from + WINDOW_TURNS).max(from),
        }
    }

    pub(super) fn turns(self) -> usize {
        self.until - self.from
    }

    /// The part of a list in the order of turns that belongs to its turns.
    fn part_of<T>(self, list: &[T], turn_of: fn(&T) -> usize) -> &[T] {
        let from = list.partition_point(|item| turn_of(item) < self.from);
        let until = list.partition_point(|item| turn_of(item) < self.until);
        list.get(from..until).unwrap_or_default()
    }

    /// The number of one of its turns, from 1.
    fn number_of(self, turn: usize) -> usize {
        turn + 1 - self.from
    }
}

/// The first of `borders`, which rise, after a turn.
fn first_after(borders: &[usize], turn: usize) -> Option<usize> {
    borders
        .get(borders.partition_point(|border| *border <= turn))
        .copied()
}

/// The last of `borders`, which rise, before a turn.
fn last_before(borders: &[usize], turn: usize) -> Option<usize> {
    let before = borders.partition_point(|border| *border < turn);
    borders.get(before.checked_sub(1)?).copied()
}

/// What happened in a window. `None` where no call of the window could be understood.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct WindowFigures {
    /// Turns of the assistant that were observed.
    pub turns: usize,
    /// Reads of files.
    pub reads: Option<usize>,
    /// Reads of a file that was also read before the window.
    pub reads_of_known_files: Option<usize>,
    /// Reads of lines that had been read and that nothing had changed.
    pub re_reads: Option<usize>,
    /// Tokens of the results of these reads, four characters per token.
    pub re_read_tokens: Option<u64>,
    /// Commands that failed as they had failed before.
    pub repeated_failures: Option<usize>,
    /// The turn, from 1, that first changes a file; `None` if none does.
    pub turns_to_edit: Option<usize>,
}

/// Lines that were read again though nothing had changed them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReRead {
    /// The file.
    pub path: String,
    /// First and last line; `None` where the whole file, or the end of it, was read.
    pub lines: Option<[u64; 2]>,
    /// The turn, from 1, after the compaction.
    pub turn: usize,
}

/// A command that failed with an error which it had failed with before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RepeatedFailure {
    /// The command.
    pub command: String,
    /// Its error.
    pub error: String,
    /// The turn, from 1, after the compaction.
    pub turn: usize,
}

/// A window between two controls: windows of the same session without a compaction, the nearest before and after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SurroundedWindow {
    /// The window itself.
    pub window: WindowFigures,
    /// The control before it.
    pub before: WindowFigures,
    /// The control after it.
    pub after: WindowFigures,
}

pub(super) struct WindowFindings {
    pub(super) figures: WindowFigures,
    pub(super) re_read: Vec<ReRead>,
    pub(super) repeated: Vec<RepeatedFailure>,
}

/// What happened in a window.
pub(super) fn findings(actions: &SessionActions, window: Window) -> WindowFindings {
    let from = window.from;
    let accesses = window.part_of(&actions.accesses, |access| access.turn);
    let reads = accesses.iter().filter(|access| access.is_read());
    let repeated_reads: Vec<_> = reads
        .clone()
        .filter(|read| actions.is_re_read(read, from))
        .collect();
    let re_read: Vec<ReRead> = repeated_reads
        .iter()
        .map(|read| ReRead {
            path: read.file.path.clone(),
            lines: bounds(read.file.lines),
            turn: window.number_of(read.turn),
        })
        .collect();
    let failures = window.part_of(&actions.failures, |failure| failure.turn);
    let repeated: Vec<RepeatedFailure> = failures
        .iter()
        .filter(|failure| failure.first < from)
        .map(|f| RepeatedFailure {
            command: f.command.clone(),
            error: f.shown.clone(),
            turn: window.number_of(f.turn),
        })
        .collect();
    let calls = actions
        .calls
        .get(window.from..window.until)
        .unwrap_or_default();
    let (made, known) = calls
        .iter()
        .fold((0, 0), |(made, known), (m, k)| (made + m, known + k));
    let is_known = made == 0 || known > 0;
    let edit = accesses.iter().find(|access| !access.is_read());
    let figures = WindowFigures {
        turns: window.turns(),
        reads: is_known.then(|| reads.clone().count()),
        reads_of_known_files: is_known.then(|| {
            reads
                .filter(|read| actions.is_known_file(read, from))
                .count()
        }),
        re_reads: is_known.then_some(re_read.len()),
        re_read_tokens: is_known
            .then(|| repeated_reads.iter().filter_map(|read| read.tokens).sum()),
        repeated_failures: is_known.then_some(repeated.len()),
        turns_to_edit: edit.map(|edit| window.number_of(edit.turn)),
    };
    WindowFindings {
        figures,
        re_read,
        repeated,
    }
}

fn bounds(lines: Lines) -> Option<[u64; 2]> {
    (lines.last != u64::MAX).then_some([lines.first, lines.last])
}

/// A window with its two controls; `None` where the session has no room for them. A control that followed another
/// compaction by fewer than 20 turns, or had one in it, would show the effects of that compaction.
pub(super) fn surrounded(
    actions: &SessionActions,
    window: Window,
    compactions: &[usize],
    start: usize,
) -> Option<SurroundedWindow> {
    let end = actions.turns.len();
    let (earlier, later) = (
        last_before(compactions, window.from),
        first_after(compactions, window.from),
    );
    let before = Window {
        from: window.from.checked_sub(DISTANCE + WINDOW_TURNS)?,
        until: window.from - DISTANCE,
    };
    let after = Window {
        from: window.until + DISTANCE,
        until: (window.until + DISTANCE + WINDOW_TURNS).min(end),
    };
    let has_room = before.from >= earlier.map_or(start, |border| border + DISTANCE).max(start)
        && after.until >= after.from + FEWEST_TURNS
        && later.is_none_or(|border| after.until <= border);
    has_room.then(|| SurroundedWindow {
        window: findings(actions, window).figures,
        before: findings(actions, before).figures,
        after: findings(actions, after).figures,
    })
}

/// Windows at which nothing happened, with their controls: at most as many as the session has compactions, at least one,
/// and at places that `seed` alone decides.
pub(super) fn placebos(
    actions: &SessionActions,
    compactions: &[usize],
    start: usize,
    seed: u64,
) -> Vec<SurroundedWindow> {
    let end = actions.turns.len();
    let mut places: Vec<usize> = (PLACEBO_STEP..end).step_by(PLACEBO_STEP).collect();
    places.retain(|from| is_quiet(*from, compactions));
    places.sort_by_key(|place| {
        let mut hasher = DefaultHasher::new();
        (seed, place).hash(&mut hasher);
        hasher.finish()
    });
    let windows = places.into_iter().map(|from| Window {
        from,
        until: (from + WINDOW_TURNS).min(end),
    });
    let long = windows.filter(|window| window.turns() >= FEWEST_TURNS);
    long.filter_map(|window| surrounded(actions, window, compactions, start))
        .take(compactions.len().max(1))
        .collect()
}

/// Whether there is no compaction in the window that begins at turn `from`, nor shortly before it.
fn is_quiet(from: usize, compactions: &[usize]) -> bool {
    let next = compactions.get(compactions.partition_point(|border| *border + DISTANCE <= from));
    next.is_none_or(|border| *border >= from + WINDOW_TURNS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn borders_are_found_as_by_a_look_at_each(
            mut borders in prop::collection::vec(0..80_usize, 0..8),
            turn in 0..80_usize,
        ) {
            borders.sort_unstable();
            let (after, before) = (borders.iter().filter(|at| **at > turn), borders.iter().filter(|at| **at < turn));
            prop_assert_eq!(first_after(&borders, turn), after.min().copied());
            prop_assert_eq!(last_before(&borders, turn), before.max().copied());
            let quiet = borders.iter().all(|at| at + DISTANCE <= turn || *at >= turn + WINDOW_TURNS);
            prop_assert_eq!(is_quiet(turn, &borders), quiet);
        }
    }
}
