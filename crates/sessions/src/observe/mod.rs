//! What sessions did after the compactions that the agents themselves made: re-reads, repeated failures, details that were
//! fetched again. Found in real logs, without probes, judge or model.
//!
//! A *window* is the 20 turns of the assistant from a compaction on; it ends early at the next compaction. Its two
//! *controls* are the nearest windows of the same session before and after it, each at least 20 turns away: what a
//! compaction changes is what differs from both, not the count after it.
//!
//! Invariants: what cannot be known is `None`, never 0; all texts are scrubbed as at import; a copy of a session counts
//! once. Nothing here reads files or prints.

mod actions;
mod difference;
mod fetched;
mod session;
mod window;

pub use difference::{
    LocalDifference, RateDifference, SESSIONS_FOR_INTERVAL, SideDifference, local_difference,
};
pub use fetched::ReferenceUses;
pub use session::{NotCounted, ObservedCompaction, SessionFindings, SessionNote, observe};
pub use window::{ReRead, RepeatedFailure, SurroundedWindow, WINDOW_TURNS, WindowFigures};

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

/// A session in the list of sessions.
#[derive(Clone, Debug, Serialize)]
pub struct ObservedSession {
    /// The name of the log.
    pub session: String,
    /// The log, as the caller names it.
    pub file: String,
    /// Its format.
    pub format: &'static str,
    /// Turns of the assistant.
    pub turns: usize,
    /// Compactions that its log records.
    pub compactions: usize,
    /// Counted compactions that have a control on both sides.
    pub with_controls: usize,
    /// The log of which it is a copy.
    pub copy_of: Option<String>,
    /// Why it is not counted.
    pub note: Option<SessionNote>,
}

/// How many of the counted compactions have a control on both sides.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct ControlCoverage {
    /// Compactions that are counted.
    pub counted: usize,
    /// Counted compactions with a control on both sides.
    pub with_controls: usize,
}

impl ControlCoverage {
    /// Whether at least half of them have: otherwise those that have may not be typical.
    pub fn is_enough(self) -> bool {
        self.with_controls > 0 && 2 * self.with_controls >= self.counted
    }
}

/// What was found in all logs.
#[derive(Clone, Debug, Default, Serialize)]
pub struct SessionObservation {
    /// The sessions, in the order of their logs.
    pub sessions: Vec<ObservedSession>,
    /// The compactions of all sessions.
    pub compactions: Vec<ObservedCompaction>,
    /// Compactions that count, and how many of these have a control on both sides.
    pub coverage: ControlCoverage,
    /// The differences that the counted compactions with controls show; `None` if these are too few.
    pub difference: Option<LocalDifference>,
    /// The same around turns at which nothing happened: it shows what differences occur by chance.
    pub placebo: Option<LocalDifference>,
    /// The file of each compaction, for commands.
    #[serde(skip)]
    pub files: Vec<String>,
}

impl SessionObservation {
    /// Reads, in the windows of the counted compactions, of files that had been read before.
    pub fn reads_of_known_files(&self) -> usize {
        self.counted_windows()
            .filter_map(|figures| figures.reads_of_known_files)
            .sum()
    }

    /// Those of them that read lines again that had not changed.
    pub fn re_reads(&self) -> usize {
        self.counted_windows()
            .filter_map(|figures| figures.re_reads)
            .sum()
    }

    fn counted_windows(&self) -> impl Iterator<Item = &WindowFigures> {
        self.compactions
            .iter()
            .filter(|one| one.not_counted.is_none())
            .map(|one| &one.figures)
    }
}

/// Combines sessions, each given with its file. A compaction that several sessions share, because one is a copy of
/// another, counts in the session where most turns follow it; among equals, in the first file by name.
pub fn combine(mut sessions: Vec<(String, SessionFindings)>) -> SessionObservation {
    sessions.sort_by(|(a, one), (b, other)| (a, &one.name).cmp(&(b, &other.name)));
    let copies = copies(&sessions);
    let best = best_copies(&sessions);
    let mut all = SessionObservation::default();
    let (mut surrounded, mut placebos) = (Vec::new(), Vec::new());
    for (place, (file, found)) in sessions.into_iter().enumerate() {
        let copy_of = copies.get(&place).cloned();
        let mut compactions = found.compactions;
        compactions.retain(|one| {
            copy_of.is_none()
                && best
                    .get(&one.identity)
                    .is_some_and(|(_, session)| *session == place)
        });
        let windows: Vec<SurroundedWindow> = compactions
            .iter()
            .filter_map(ObservedCompaction::surrounded)
            .collect();
        all.coverage.counted += compactions
            .iter()
            .filter(|one| one.not_counted.is_none())
            .count();
        all.coverage.with_controls += windows.len();
        all.sessions.push(ObservedSession {
            session: found.name,
            file: file.clone(),
            format: found.format.name(),
            turns: found.turns,
            compactions: compactions.len(),
            with_controls: windows.len(),
            copy_of: copy_of.clone(),
            note: found.note,
        });
        if copy_of.is_none() {
            surrounded.push(windows);
            placebos.push(found.placebos);
        }
        all.files.extend(compactions.iter().map(|_| file.clone()));
        all.compactions.extend(compactions);
    }
    if all.coverage.is_enough() {
        all.difference = local_difference(&surrounded);
        all.placebo = local_difference(&placebos);
    }
    all
}

/// The sessions that are copies, each with the file of one that goes on, or of the first that is equal.
fn copies(sessions: &[(String, SessionFindings)]) -> BTreeMap<usize, String> {
    let mut alike: HashMap<&[u64], Vec<usize>> = HashMap::new();
    for (place, (_, found)) in sessions.iter().enumerate() {
        let start = found.fingerprint.start();
        alike.entry(start).or_default().push(place);
    }
    let mut copies = BTreeMap::new();
    for places in alike.values() {
        for place in places {
            let Some((_, one)) = sessions.get(*place) else {
                continue;
            };
            let mut longer = places.iter().rev().filter_map(|other| {
                let (file, found) = sessions.get(*other)?;
                let is_copied = one.fingerprint.is_copied_in(&found.fingerprint);
                let is_back = found.fingerprint.is_copied_in(&one.fingerprint);
                (other != place && is_copied && (!is_back || other < place)).then_some(file)
            });
            if let Some(file) = longer.next_back() {
                copies.insert(*place, file.clone());
            }
        }
    }
    copies
}

/// For each compaction, by its identity: the most turns that follow it in a session, and which session that is.
fn best_copies(sessions: &[(String, SessionFindings)]) -> BTreeMap<u64, (usize, usize)> {
    let mut best: BTreeMap<u64, (usize, usize)> = BTreeMap::new();
    for (place, (_, found)) in sessions.iter().enumerate() {
        for one in &found.compactions {
            let entry = best
                .entry(one.identity)
                .or_insert((one.figures.turns, place));
            if one.figures.turns > entry.0 {
                *entry = (one.figures.turns, place);
            }
        }
    }
    best
}
