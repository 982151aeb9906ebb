//! Windows of turns and what happened in them; controls.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use serde::Serialize;

use super::actions::SessionActions;
use crate::references::Lines;
use crate::transcript::Message;

pub const WINDOW_TURNS: usize = 20;
/// A window with fewer turns is not counted.
pub(super) const FEWEST_TURNS: usize = 10;
const CONTROL_STEP: usize = 10;
/// Turns between a control and any compaction.
const CONTROL_DISTANCE: usize = 20;

/// Turns `from..until`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    pub(super) from: usize,
    pub(super) until: usize,
}

impl Window {
    /// From a turn to the next of `borders`, the end of the session, or 20 turns on.
    pub(super) fn new(from: usize, borders: &[usize], end: usize) -> Window {
        let next = borders.iter().copied().find(|border| *border > from).unwrap_or(end);
        Window { from, until: next.min(end).min(from + WINDOW_TURNS).max(from) }
    }

    pub(super) fn turns(self) -> usize {
        self.until - self.from
    }

    pub(super) fn has(self, turn: usize) -> bool {
        (self.from..self.until).contains(&turn)
    }
}

/// What happened in a window. `None` where no call of the window could be understood.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct WindowFigures {
    /// Turns of the assistant that were observed.
    pub turns: usize,
    pub reads: Option<usize>,
    pub re_reads: Option<usize>,
    pub repeated_failures: Option<usize>,
    /// The turn, from 1, that first changes a file; `None` if none does.
    pub turns_to_edit: Option<usize>,
}

/// Lines that were read again though nothing had changed them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReRead {
    pub path: String,
    /// First and last line; `None` where the whole file, or the end of it, was read.
    pub lines: Option<[u64; 2]>,
    /// The turn, from 1, after the compaction.
    pub turn: usize,
}

/// A command that failed with an error which it had failed with before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RepeatedFailure {
    pub command: String,
    pub error: String,
    pub turn: usize,
}

/// A window at an ordinary point of a session.
#[derive(Clone, Debug, Serialize)]
pub struct ControlWindow {
    pub session: String,
    pub format: &'static str,
    /// The message it begins with.
    pub at: usize,
    #[serde(flatten)]
    pub figures: WindowFigures,
    /// The same in all copies of a session.
    #[serde(skip)]
    pub(super) identity: u64,
}

pub(super) struct WindowFindings {
    pub(super) figures: WindowFigures,
    pub(super) re_read: Vec<ReRead>,
    pub(super) repeated: Vec<RepeatedFailure>,
}

/// What happened in a window.
pub(super) fn findings(actions: &SessionActions, window: Window) -> WindowFindings {
    let Window { from, .. } = window;
    let since = |turn: usize| turn + 1 - from;
    let reads: Vec<_> = actions.reads.iter().filter(|read| window.has(read.turn)).collect();
    let again = reads.iter().filter(|read| actions.is_re_read(read, from));
    let re_read: Vec<ReRead> = again
        .map(|read| ReRead { path: read.path.clone(), lines: bounds(read.lines), turn: since(read.turn) })
        .collect();
    let before: HashSet<_> =
        actions.failures.iter().filter(|f| f.turn < from).map(|f| (&f.command, &f.error)).collect();
    let failures = actions.failures.iter().filter(|failure| window.has(failure.turn));
    let repeated: Vec<RepeatedFailure> = failures
        .filter(|failure| before.contains(&(&failure.command, &failure.error)))
        .map(|f| RepeatedFailure { command: f.command.clone(), error: f.shown.clone(), turn: since(f.turn) })
        .collect();
    let calls = actions.calls.get(window.from..window.until).unwrap_or_default();
    let (made, known) = calls.iter().fold((0, 0), |(made, known), (m, k)| (made + m, known + k));
    let is_known = made == 0 || known > 0;
    let edit = actions.edits.iter().copied().find(|turn| *turn >= from);
    let figures = WindowFigures {
        turns: window.turns(),
        reads: is_known.then_some(reads.len()),
        re_reads: is_known.then_some(re_read.len()),
        repeated_failures: is_known.then_some(repeated.len()),
        turns_to_edit: edit.filter(|turn| window.has(*turn)).map(since),
    };
    WindowFindings { figures, re_read, repeated }
}

fn bounds(lines: Lines) -> Option<[u64; 2]> {
    (lines.last != u64::MAX).then_some([lines.first, lines.last])
}

/// Windows at every tenth turn that is far from all compactions, outside the part copied from another session.
pub(super) fn controls(
    messages: &[Message],
    actions: &SessionActions,
    compactions: &[usize],
    copied: usize,
) -> Vec<(usize, WindowFigures, u64)> {
    let end = actions.turns.len();
    let is_far = |turn: &usize| compactions.iter().all(|other| turn.abs_diff(*other) >= CONTROL_DISTANCE);
    let points = (CONTROL_STEP..end).step_by(CONTROL_STEP).filter(is_far);
    let measured = points.filter_map(|turn| {
        let at = actions.turns.get(turn).copied().filter(|at| *at >= copied)?;
        let window = Window::new(turn, compactions, end);
        let figures = findings(actions, window).figures;
        (figures.turns >= FEWEST_TURNS).then(|| (at, figures, identity(messages, at)))
    });
    measured.collect()
}

/// A number that is the same at the same place of all copies of a session.
pub(super) fn identity(messages: &[Message], at: usize) -> u64 {
    const BEFORE: usize = 20;
    let mut hasher = DefaultHasher::new();
    for message in messages.iter().take(at).skip(at.saturating_sub(BEFORE)) {
        message.content.hash(&mut hasher);
        message.tool_calls.iter().for_each(|call| call.function.arguments.hash(&mut hasher));
    }
    hasher.finish()
}
