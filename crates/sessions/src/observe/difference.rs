//! All sessions together: copies taken out, and the difference between compactions and controls.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::Serialize;

use super::session::{ObservedCompaction, SessionFindings};
use super::window::{ControlWindow, WindowFigures};
use stats::{Interval, interval};

/// Sessions with counted compactions from which on a difference is given.
pub const SESSIONS_FOR_INTERVAL: usize = 8;

/// A session as it is listed.
#[derive(Clone, Debug, Serialize)]
pub struct ObservedSession {
    pub session: String,
    /// The log, as the caller names it.
    pub file: String,
    pub format: &'static str,
    pub turns: usize,
    pub compactions: usize,
    pub controls: usize,
    /// `own`, or `others` where the session has no point far from its compactions.
    pub controls_from: Option<&'static str>,
    /// The log of which it is a copy.
    pub copy_of: Option<String>,
    pub note: Option<&'static str>,
}

/// How a rate after compactions differs from the rate at controls; means over sessions.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct RateDifference {
    pub after: f64,
    pub control: f64,
    pub difference: f64,
    pub ci95: Option<Interval>,
}

/// The difference per session.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Difference {
    pub sessions: usize,
    pub re_reads_per_turn: Option<RateDifference>,
    pub repeated_failures_per_turn: Option<RateDifference>,
}

/// What was found in all logs.
#[derive(Clone, Debug, Serialize)]
pub struct SessionObservation {
    pub sessions: Vec<ObservedSession>,
    pub compactions: Vec<ObservedCompaction>,
    pub controls: Vec<ControlWindow>,
    /// `None` below [`SESSIONS_FOR_INTERVAL`].
    pub difference: Option<Difference>,
    /// Sessions with counted compactions and with controls.
    pub compared_sessions: usize,
    /// The file of each compaction, for commands.
    #[serde(skip)]
    pub files: Vec<String>,
}

struct Listed {
    row: ObservedSession,
    files_read: usize,
    compactions: Vec<ObservedCompaction>,
    controls: Vec<ControlWindow>,
}

/// Puts sessions together, each with its file. What was copied from one session into another counts where most turns
/// follow it, at first occurrence among equals, so the order of the files does not matter beyond that.
pub fn combine(mut sessions: Vec<(String, SessionFindings)>) -> SessionObservation {
    sessions.sort_by(|(a, one), (b, other)| (a, &one.name).cmp(&(b, &other.name)));
    let best = best_copies(&sessions);
    let mut seen_sessions: HashMap<u64, String> = HashMap::new();
    let mut seen_controls = HashSet::new();
    let mut listed: Vec<Listed> = Vec::new();
    for (place, (file, found)) in sessions.into_iter().enumerate() {
        let copy_of = seen_sessions.get(&found.digest).cloned();
        seen_sessions.entry(found.digest).or_insert_with(|| file.clone());
        let mut compactions = found.compactions;
        compactions.retain(|one| copy_of.is_none() && best.get(&one.identity).is_some_and(|(_, best)| *best == place));
        let mut controls = found.controls;
        controls.retain(|control| seen_controls.insert(control.identity));
        let row = ObservedSession {
            session: found.name,
            file,
            format: found.format.name(),
            turns: found.turns,
            compactions: compactions.len(),
            controls: controls.len(),
            controls_from: None,
            copy_of,
            note: found.note,
        };
        listed.push(Listed { row, files_read: found.files_read, compactions, controls });
    }
    let pairs = paired_rates(&mut listed);
    let compared_sessions = pairs.len();
    let mut all = SessionObservation {
        sessions: Vec::new(),
        compactions: Vec::new(),
        controls: Vec::new(),
        difference: difference(&pairs),
        compared_sessions,
        files: Vec::new(),
    };
    for one in listed {
        all.files.extend(one.compactions.iter().map(|_| one.row.file.clone()));
        all.compactions.extend(one.compactions);
        all.controls.extend(one.controls);
        all.sessions.push(one.row);
    }
    all
}

/// For each compaction the session in which most turns follow it.
fn best_copies(sessions: &[(String, SessionFindings)]) -> BTreeMap<u64, (usize, usize)> {
    let mut best: BTreeMap<u64, (usize, usize)> = BTreeMap::new();
    for (place, (_, found)) in sessions.iter().enumerate() {
        for one in &found.compactions {
            let entry = best.entry(one.identity).or_insert((one.figures.turns, place));
            if one.figures.turns > entry.0 {
                *entry = (one.figures.turns, place);
            }
        }
    }
    best
}

/// Re-reads and repeated failures per turn.
type Rates = [f64; 2];

/// For each session with counted compactions its rates after them and at its controls, or at those of similar sessions.
fn paired_rates(listed: &mut [Listed]) -> Vec<(Rates, Rates)> {
    let others: Vec<(&'static str, usize, Vec<WindowFigures>)> = listed
        .iter()
        .filter(|one| one.compactions.is_empty() && one.row.copy_of.is_none() && !one.controls.is_empty())
        .map(|one| (one.row.format, one.files_read, one.controls.iter().map(|c| c.figures).collect()))
        .collect();
    let mut pairs = Vec::new();
    for one in listed {
        let counted = one.compactions.iter().filter(|compaction| compaction.not_counted.is_none());
        let Some(after) = rates(counted.map(|compaction| compaction.figures)) else { continue };
        let own = rates(one.controls.iter().map(|control| control.figures));
        let similar = others.iter().filter(|(format, files, _)| {
            *format == one.row.format && *files * 2 >= one.files_read && *files <= one.files_read * 2
        });
        let (control, from) = match own {
            Some(own) => (Some(own), "own"),
            None => (rates(similar.flat_map(|(_, _, figures)| figures.iter().copied())), "others"),
        };
        one.row.controls_from = control.map(|_| from);
        pairs.extend(control.map(|control| (after, control)));
    }
    pairs
}

fn rates(windows: impl Iterator<Item = WindowFigures>) -> Option<Rates> {
    let (mut turns, mut re_reads, mut failures) = (0, 0, 0);
    for window in windows {
        if let (Some(read), Some(failed)) = (window.re_reads, window.repeated_failures) {
            turns += window.turns;
            re_reads += read;
            failures += failed;
        }
    }
    let per_turn = |count: usize| count as f64 / turns as f64;
    (turns > 0).then(|| [per_turn(re_reads), per_turn(failures)])
}

fn difference(pairs: &[(Rates, Rates)]) -> Option<Difference> {
    if pairs.len() < SESSIONS_FOR_INTERVAL {
        return None;
    }
    let rate = |of: fn(&Rates) -> f64| {
        let of_sessions =
            |side: fn(&(Rates, Rates)) -> &Rates| -> Vec<f64> { pairs.iter().map(|pair| of(side(pair))).collect() };
        let (after, control) = (of_sessions(|pair| &pair.0), of_sessions(|pair| &pair.1));
        let differences: Vec<f64> = after.iter().zip(&control).map(|(after, control)| after - control).collect();
        let estimate = interval(&differences)?;
        Some(RateDifference {
            after: interval(&after)?.center,
            control: interval(&control)?.center,
            difference: estimate.center,
            ci95: estimate.ci95,
        })
    };
    Some(Difference {
        sessions: pairs.len(),
        re_reads_per_turn: rate(|[re_reads, _]| *re_reads),
        repeated_failures_per_turn: rate(|[_, failures]| *failures),
    })
}
