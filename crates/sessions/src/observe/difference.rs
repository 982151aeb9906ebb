//! What compactions change: the window after each of them, compared with its two controls.
//!
//! Re-reads grow through a session, as they must: there is more and more that can be read again. And sessions have phases.
//! So a window is compared with its own neighbours: with the nearest control before it, and with the nearest one after
//! it. A trend moves the two differences in opposite directions, and a change of phase moves only one of them; a
//! compaction moves both. An effect that lasts beyond the window looks like a change of phase, and is not found.

use serde::Serialize;

use super::window::{SurroundedWindow, WindowFigures};
use stats::{Interval, interval, mean_of};

/// The fewest sessions for which a difference is given.
pub const SESSIONS_FOR_INTERVAL: usize = 8;

/// How a rate in windows differs from the rate in their controls; means over sessions of means over their windows.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct RateDifference {
    /// Sessions that have a rate on all three sides.
    pub sessions: usize,
    /// The rate in the windows.
    pub rate: f64,
    /// The rate in the windows minus that in the control before each.
    pub before: SideDifference,
    /// The rate in the windows minus that in the control after each.
    pub after: SideDifference,
    /// The smaller of the two, if both intervals lie on the same side of 0; else nothing was shown.
    pub finding: Option<f64>,
}

/// The difference from one of the two controls.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct SideDifference {
    /// The mean over sessions.
    pub difference: f64,
    /// Its 95% interval; `None` with too few sessions.
    pub ci95: Option<Interval>,
}

impl SideDifference {
    /// From the differences of sessions.
    fn new(differences: impl Iterator<Item = f64>) -> Option<SideDifference> {
        let estimate = interval(&differences.collect::<Vec<f64>>())?;
        Some(SideDifference {
            difference: estimate.center,
            ci95: estimate.ci95,
        })
    }

    /// On which side of 0 the interval lies; `None` where it does not exclude 0.
    fn sign(self) -> Option<f64> {
        self.ci95
            .filter(|ci| !ci.contains(0.0))
            .map(|ci| ci.low().signum())
    }
}

/// The differences of all rates; each is null where too few sessions have it.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct LocalDifference {
    /// Reads of unchanged lines that were read before, per turn.
    pub re_reads_per_turn: Option<RateDifference>,
    /// The same per read of a file that was read before.
    pub re_reads_per_known_read: Option<RateDifference>,
    /// Commands that fail as they failed before, per turn.
    pub repeated_failures_per_turn: Option<RateDifference>,
}

/// A rate of a window; `None` if nothing could have happened in it.
type Rate = fn(&WindowFigures) -> Option<f64>;

fn re_reads(figures: &WindowFigures) -> Option<f64> {
    share(figures.re_reads?, figures.reads_of_known_files?)
}

fn re_reads_per_turn(figures: &WindowFigures) -> Option<f64> {
    share(figures.re_reads?, figures.turns)
}

fn repeated_failures(figures: &WindowFigures) -> Option<f64> {
    share(figures.repeated_failures?, figures.turns)
}

/// A part as a share; `None` of nothing.
pub(super) fn share(part: usize, whole: usize) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// The differences over sessions, each given by its windows; `None` below [`SESSIONS_FOR_INTERVAL`].
pub fn local_difference(sessions: &[Vec<SurroundedWindow>]) -> Option<LocalDifference> {
    let mut per_turn = rate_difference(sessions, re_reads_per_turn);
    let mut per_read = rate_difference(sessions, re_reads);
    // Each of the two rates has a blind side: who reads only whole files has the same share of re-reads everywhere, and
    // who reads less of what is new has a higher one without reading more again.
    if let (Some(turn), Some(read)) = (&mut per_turn, &mut per_read) {
        turn.finding = turn.finding.filter(|found| !read.points_against(*found));
        let shown = turn.finding.map(f64::signum);
        read.finding = read.finding.filter(|found| shown == Some(found.signum()));
    }
    let rates = LocalDifference {
        re_reads_per_turn: per_turn,
        re_reads_per_known_read: per_read,
        repeated_failures_per_turn: rate_difference(sessions, repeated_failures),
    };
    (rates.re_reads_per_turn.is_some() || rates.repeated_failures_per_turn.is_some())
        .then_some(rates)
}

impl RateDifference {
    /// Whether either difference lies on the other side of 0 than a finding of another rate.
    fn points_against(&self, finding: f64) -> bool {
        let sides = [self.before, self.after];
        sides.iter().any(|side| side.difference * finding < 0.0)
    }
}

/// A rate of one session: in its windows, and minus that in the controls before and after them.
struct SessionRate {
    rate: f64,
    before: f64,
    after: f64,
}

impl SessionRate {
    fn new(windows: &[SurroundedWindow], rate: Rate) -> Option<SessionRate> {
        let rates = windows
            .iter()
            .filter_map(|one| Some([rate(&one.window)?, rate(&one.before)?, rate(&one.after)?]));
        let rates: Vec<[f64; 3]> = rates.collect();
        Some(SessionRate {
            rate: mean_of(rates.iter().map(|[within, ..]| *within))?,
            before: mean_of(rates.iter().map(|[within, before, _]| within - before))?,
            after: mean_of(rates.iter().map(|[within, _, after]| within - after))?,
        })
    }
}

fn rate_difference(sessions: &[Vec<SurroundedWindow>], rate: Rate) -> Option<RateDifference> {
    let rates: Vec<SessionRate> = sessions
        .iter()
        .filter_map(|windows| SessionRate::new(windows, rate))
        .collect();
    if rates.len() < SESSIONS_FOR_INTERVAL {
        return None;
    }
    let before = SideDifference::new(rates.iter().map(|session| session.before))?;
    let after = SideDifference::new(rates.iter().map(|session| session.after))?;
    let rate = mean_of(rates.iter().map(|session| session.rate))?;
    Some(RateDifference {
        sessions: rates.len(),
        rate,
        before,
        after,
        finding: finding(before, after),
    })
}

/// The smaller difference of two that both exclude 0 on the same side.
fn finding(before: SideDifference, after: SideDifference) -> Option<f64> {
    let is_shown = before.sign()? == after.sign()?;
    let smaller = if before.difference.abs() <= after.difference.abs() {
        before
    } else {
        after
    };
    is_shown.then_some(smaller.difference)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(re_reads: usize) -> WindowFigures {
        let known = Some(10);
        WindowFigures {
            turns: 20,
            reads: known,
            reads_of_known_files: known,
            re_reads: Some(re_reads),
            ..Default::default()
        }
    }

    /// Ten sessions with these re-reads before, in and after a window, a little more in every other one.
    fn sessions([before, within, after]: [usize; 3]) -> Vec<Vec<SurroundedWindow>> {
        let one = |number: usize| {
            let window = figures(within + number % 2);
            vec![SurroundedWindow {
                window,
                before: figures(before),
                after: figures(after + usize::from(number < 3)),
            }]
        };
        (0..10).map(one).collect()
    }

    fn re_reads_of(sessions: &[Vec<SurroundedWindow>]) -> RateDifference {
        local_difference(sessions)
            .unwrap()
            .re_reads_per_known_read
            .unwrap()
    }

    #[test]
    fn a_rise_that_ends_with_the_window_is_a_finding() {
        let found = re_reads_of(&sessions([2, 6, 2]));
        assert!(
            (found.before.difference - 0.45).abs() < 1e-9
                && (found.after.difference - 0.42).abs() < 1e-9
        );
        assert!(
            (found.finding.unwrap() - 0.42).abs() < 1e-9,
            "the smaller one"
        );
        assert_eq!(
            re_reads_of(&sessions([8, 2, 8])).finding.map(f64::signum),
            Some(-1.0)
        );
    }

    #[test]
    fn a_trend_and_a_change_of_phase_are_not_findings() {
        assert_eq!(re_reads_of(&sessions([1, 4, 8])).finding, None);
        assert_eq!(
            re_reads_of(&sessions([2, 6, 6])).finding,
            None,
            "it stays as it became"
        );
    }

    #[test]
    fn the_two_rates_of_re_reads_see_what_the_other_cannot() {
        // Whole files: each known read is a re-read, in and around the windows.
        let mut whole = sessions([2, 6, 2]);
        let all = whole.iter_mut().flatten();
        all.flat_map(|one| [&mut one.window, &mut one.before, &mut one.after])
            .for_each(|figures| figures.reads_of_known_files = figures.re_reads);
        let found = local_difference(&whole).unwrap();
        assert!(
            found
                .re_reads_per_turn
                .unwrap()
                .finding
                .is_some_and(|rate| rate > 0.0)
        );
        // As many re-reads as ever, among fewer reads.
        let mut fewer = sessions([4, 4, 4]);
        let windows = fewer.iter_mut().flatten();
        windows.for_each(|one| one.window.reads_of_known_files = Some(5));
        let found = local_difference(&fewer).unwrap();
        let rates = [found.re_reads_per_turn, found.re_reads_per_known_read];
        assert!(rates.iter().all(|rate| rate.unwrap().finding.is_none()));
    }

    #[test]
    fn too_few_sessions_and_windows_without_reads_give_nothing() {
        assert!(local_difference(&sessions([2, 6, 2])[..7]).is_none());
        let mut unknown = sessions([2, 6, 2]);
        unknown
            .iter_mut()
            .flatten()
            .for_each(|one| one.before.re_reads = None);
        assert!(local_difference(&unknown).is_none());
    }
}
