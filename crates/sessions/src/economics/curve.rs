//! Cost against threshold: no single best value, but the range of thresholds that cost about the same.

use serde::Serialize;

use super::method::LifeCycle;
use super::simulate::SimulatedSession;
use super::steps::PricedSession;
use stats::median;

/// Thresholds of a curve.
const POINTS: usize = 24;
/// The lowest, unless system prompt and tools alone would take more than half of it.
const LOWEST: f64 = 20_000.0;
/// Such a simulation cannot tell costs within this share of the least apart.
const FLAT: f64 = 0.02;

/// What sessions cost together at one threshold.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CostPoint {
    /// The history before a request of more tokens is compacted; smaller windows lower the threshold.
    pub threshold: u64,
    /// What they cost.
    #[serde(flatten)]
    pub cost: SimulatedSession,
}

/// The thresholds that cost no more than 2% above the least.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct FlatRegion {
    /// The lowest of them.
    pub from: u64,
    /// The highest; null if it is the highest that was simulated, at which only windows force compactions.
    pub to: Option<u64>,
    /// The one in the middle, at which figures of the method are given.
    pub middle: u64,
    /// Dollars of the least.
    pub least_usd: f64,
}

/// Cost by threshold.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CostCurve {
    /// The points, by rising threshold.
    pub points: Vec<CostPoint>,
    /// The thresholds that cost about the least.
    pub flat: FlatRegion,
}

impl CostCurve {
    /// `None` without points.
    pub(super) fn new(points: Vec<CostPoint>) -> Option<CostCurve> {
        let least = points
            .iter()
            .min_by(|a, b| a.cost.usd.total_cmp(&b.cost.usd))?;
        let most = least.cost.usd * (1.0 + FLAT);
        let at = points
            .iter()
            .position(|point| point.threshold == least.threshold)?;
        let lower = points
            .get(..at)?
            .iter()
            .rev()
            .take_while(|point| point.cost.usd <= most)
            .count();
        let higher = points
            .get(at + 1..)?
            .iter()
            .take_while(|point| point.cost.usd <= most)
            .count();
        let (first, last) = (at - lower, at + higher);
        let flat = FlatRegion {
            from: points.get(first)?.threshold,
            to: points
                .get(last)
                .filter(|_| last + 1 < points.len())
                .map(|point| point.threshold),
            middle: points.get(first.midpoint(last))?.threshold,
            least_usd: least.cost.usd,
        };
        Some(CostCurve { points, flat })
    }

    /// Whether the flat region begins at the lowest threshold. Then only the loss of information, which has no price
    /// here, speaks against a lower one.
    pub fn is_least_at_lowest(&self) -> bool {
        self.points
            .first()
            .is_some_and(|point| point.threshold == self.flat.from)
    }

    /// The point in the middle of the flat region.
    pub fn middle(&self) -> Option<&CostPoint> {
        self.points
            .iter()
            .find(|point| point.threshold == self.flat.middle)
    }

    /// The course of a session in the middle of the flat region; `None` if nothing is compacted there.
    pub(super) fn life(&self, growth: Option<f64>) -> Option<LifeCycle> {
        let SimulatedSession {
            compactions,
            freed,
            left,
            ..
        } = self.middle()?.cost;
        if compactions == 0 {
            return None;
        }
        let (freed, floor) = (
            freed as f64 / compactions as f64,
            left as f64 / compactions as f64,
        );
        Some(LifeCycle {
            freed,
            ..LifeCycle::new(self.flat.middle as f64, floor, growth)
        })
    }
}

/// The thresholds to simulate: from the lowest to the size that the largest session would reach without a compaction, by
/// equal factors. Empty where no session grows beyond the lowest.
pub(super) fn thresholds(sessions: &[PricedSession]) -> Vec<u64> {
    let largest = sessions.iter().map(uncompacted_size).max().unwrap_or(0) as f64;
    let fixed: Vec<f64> = sessions
        .iter()
        .map(|session| session.fixed as f64)
        .collect();
    let lowest = LOWEST.max(2.0 * median(&fixed).unwrap_or(0.0));
    if largest <= lowest {
        return Vec::new();
    }
    let factor = (largest / lowest).powf(1.0 / (POINTS - 1) as f64);
    let exact = (0..POINTS).map(|at| lowest * factor.powi(at as i32));
    let mut rounded: Vec<u64> = exact
        .map(|exact| ((exact / 1000.0).ceil() * 1000.0) as u64)
        .collect();
    rounded.dedup();
    rounded
}

/// The size of the largest request if nothing had been compacted, as far as the model's window allows.
fn uncompacted_size(session: &PricedSession) -> u64 {
    let (mut size, mut largest, mut before) = (0, 0, 0);
    for (place, step) in session.steps.steps.iter().enumerate() {
        let logged = step.tokens.input();
        let is_first = place == 0 || super::history::is_reset(before, logged);
        size = match session.steps.compaction_before(place) {
            Some(_) => size,
            None if is_first => logged,
            None => (size + logged).saturating_sub(before),
        };
        let window = session
            .prices
            .get(step.model)
            .and_then(|price| price.window)
            .unwrap_or(u64::MAX);
        largest = largest.max(size.min(window));
        before = logged;
    }
    largest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(costs: &[f64]) -> CostCurve {
        let point = |(at, usd): (usize, &f64)| CostPoint {
            threshold: 1000 * (at as u64 + 1),
            cost: SimulatedSession {
                usd: *usd,
                ..Default::default()
            },
        };
        CostCurve::new(costs.iter().enumerate().map(point).collect()).unwrap()
    }

    #[test]
    fn a_flat_region_is_what_lies_within_two_percent_around_the_least() {
        let found = curve(&[1.01, 2.0, 1.015, 1.0, 1.02, 1.021, 3.0]).flat;
        assert_eq!(
            (found.from, found.to, found.middle),
            (3000, Some(5000), 4000),
            "the first is apart from it"
        );
        assert_eq!(found.least_usd, 1.0);
        let open = curve(&[3.0, 2.0, 1.0, 1.0]).flat;
        assert_eq!(
            (open.from, open.to),
            (3000, None),
            "no threshold is too high"
        );
        assert_eq!(CostCurve::new(Vec::new()), None);
    }
}
