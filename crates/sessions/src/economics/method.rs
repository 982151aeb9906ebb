//! Methods of compaction as a bill sees them: how large a context they leave, what their own request costs, and how the
//! size grows from one compaction to the next.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::steps::PricedSession;
use stats::median;

/// The name of the method that compacts as the sessions' own compactions did.
pub const AS_RECORDED: &str = "as recorded";

/// The size of the context that a method leaves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ContextSize {
    /// The size of the whole next request, as logs show it.
    Whole(u64),
    /// The size of what stands for the replaced messages: a line over their tokens.
    Line {
        /// Tokens where nothing is replaced.
        start: f64,
        /// Further tokens per replaced token, from 0 to 1.
        slope: f64,
    },
}

/// What the request of a compaction costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RequestCost {
    /// No model is asked.
    Free,
    /// Dollars per replaced token, as measured.
    Measured(f64),
    /// It is priced like another request of the session, with this many tokens of output.
    Priced {
        /// Tokens of the summary.
        output: u64,
    },
}

/// A method, as far as a bill shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct CompactionMethod {
    /// Its name.
    pub name: String,
    /// The context that it leaves.
    pub size: ContextSize,
    /// What it costs to make it.
    pub cost: RequestCost,
    /// Seconds of one compaction; `None` if unknown.
    pub seconds: Option<f64>,
    /// Tokens by which its context grows from one compaction of a session to the next; `None` if sessions have only
    /// one.
    pub growth: Option<f64>,
    /// The most replaced tokens that it was measured on; `None` if its size comes from sessions.
    pub largest: Option<u64>,
}

impl CompactionMethod {
    /// Tokens of the request that follows a compaction of `context`, with `fixed` tokens of system prompt and tools, and
    /// the newest `tail` tokens kept.
    pub(super) fn after(&self, context: u64, fixed: u64, tail: u64) -> u64 {
        match self.size {
            ContextSize::Whole(size) => (size + tail).min(context),
            ContextSize::Line { start, slope } => {
                let replaced = context.saturating_sub(fixed + tail);
                let size = (start + slope * replaced as f64).clamp(0.0, replaced as f64);
                context - replaced + size as u64
            }
        }
    }

    /// The method that keeps everything.
    pub(super) fn none() -> CompactionMethod {
        let size = ContextSize::Line {
            start: 0.0,
            slope: 1.0,
        };
        let name = "none".to_owned();
        CompactionMethod {
            name,
            size,
            cost: RequestCost::Free,
            seconds: None,
            growth: None,
            largest: None,
        }
    }

    /// The method that the sessions themselves used; `None` where no log records a compaction.
    pub(super) fn recorded<'s>(
        sessions: impl IntoIterator<Item = &'s PricedSession>,
    ) -> Option<CompactionMethod> {
        let (mut sizes, mut outputs, mut growths) = (Vec::new(), Vec::new(), Vec::new());
        for session in sessions {
            let session_sizes = recorded_sizes(session);
            growths.extend(
                session_sizes
                    .windows(2)
                    .filter_map(|pair| Some(pair.get(1)? - pair.first()?)),
            );
            sizes.extend(session_sizes);
            outputs.extend(
                session
                    .steps
                    .compactions
                    .iter()
                    .filter_map(|compaction| Some(compaction.summary? as f64)),
            );
        }
        let size = median(&sizes)?;
        let output = median(&outputs).unwrap_or(ASSUMED_OUTPUT);
        Some(CompactionMethod {
            name: AS_RECORDED.to_owned(),
            size: ContextSize::Whole(size as u64),
            cost: RequestCost::Priced {
                output: output as u64,
            },
            seconds: None,
            growth: median(&growths),
            largest: None,
        })
    }
}

/// Tokens of a summary if no log has a readable one.
const ASSUMED_OUTPUT: f64 = 2000.0;

/// The sizes of the contexts that the compactions of a session left.
fn recorded_sizes(session: &PricedSession) -> Vec<f64> {
    let sizes = session.steps.compactions.iter().filter_map(|compaction| {
        let next = session.steps.steps.get(compaction.step)?.tokens.input();
        Some(compaction.recorded_after.unwrap_or(next) as f64)
    });
    sizes.collect()
}

/// A compression of a result set.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredContext {
    /// The method.
    pub method: String,
    /// The history, by fixture and run; its compressions share it.
    pub chain: String,
    /// The compression point, from 1.
    pub point: u32,
    /// Tokens that it replaced.
    pub replaced: u64,
    /// Tokens that it left.
    pub tokens: u64,
    /// Seconds that it took.
    pub seconds: Option<f64>,
    /// Dollars that it cost; `None` if unknown.
    pub usd: Option<f64>,
    /// Requests to a model.
    pub calls: u32,
}

/// Whether contexts keep all or nothing. Such methods are references to measure others by, not policies.
fn is_reference(contexts: &[&MeasuredContext]) -> bool {
    contexts.iter().all(|one| one.tokens == 0)
        || contexts.iter().all(|one| one.tokens >= one.replaced)
}

/// The methods of a result set, by name; without those that keep all or nothing.
pub fn measured_methods(contexts: &[MeasuredContext]) -> Vec<CompactionMethod> {
    let mut by_method: BTreeMap<&str, Vec<&MeasuredContext>> = BTreeMap::new();
    for context in contexts.iter().filter(|context| context.replaced > 0) {
        by_method.entry(&context.method).or_default().push(context);
    }
    by_method.retain(|_, contexts| !is_reference(contexts));
    by_method
        .into_iter()
        .map(|(name, contexts)| measured_method(name, &contexts))
        .collect()
}

fn measured_method(name: &str, contexts: &[&MeasuredContext]) -> CompactionMethod {
    let cost = if contexts.iter().all(|context| context.calls == 0) {
        RequestCost::Free
    } else {
        let per_token = median_of(contexts, |one| Some(one.usd? / one.replaced as f64));
        let output =
            median_of(contexts, |one| Some(one.tokens as f64)).unwrap_or(ASSUMED_OUTPUT) as u64;
        per_token.map_or(RequestCost::Priced { output }, RequestCost::Measured)
    };
    CompactionMethod {
        name: name.to_owned(),
        size: line_through(contexts),
        cost,
        seconds: median_of(contexts, |one| one.seconds),
        growth: floor_growth(contexts.iter().copied()),
        largest: contexts.iter().map(|context| context.replaced).max(),
    }
}

/// The median of one number over the contexts that have it.
fn median_of(
    contexts: &[&MeasuredContext],
    number: fn(&MeasuredContext) -> Option<f64>,
) -> Option<f64> {
    median(
        &contexts
            .iter()
            .filter_map(|context| number(context))
            .collect::<Vec<f64>>(),
    )
}

/// The line through sizes by replaced tokens. Its slope is the median of those between any two points (Theil 1950),
/// which one odd fixture cannot turn.
fn line_through(contexts: &[&MeasuredContext]) -> ContextSize {
    /// More add time and change nothing.
    const MOST: usize = 400;
    let thinned = contexts.iter().step_by(contexts.len() / MOST + 1);
    let points: Vec<[f64; 2]> = thinned
        .map(|one| [one.replaced as f64, one.tokens as f64])
        .collect();
    let mut slopes = Vec::new();
    for (place, [x, y]) in points.iter().enumerate() {
        let later = points
            .iter()
            .skip(place + 1)
            .filter(|[other, _]| (other - x).abs() >= 1.0);
        slopes.extend(later.map(|[other, size]| (size - y) / (other - x)));
    }
    let ratios: Vec<f64> = points.iter().map(|[x, y]| y / x).collect();
    let through_origin = median(&ratios).unwrap_or(1.0).min(1.0);
    let Some(slope) = median(&slopes) else {
        return ContextSize::Line {
            start: 0.0,
            slope: through_origin,
        };
    };
    let slope = slope.clamp(0.0, 1.0);
    let starts: Vec<f64> = points.iter().map(|[x, y]| y - slope * x).collect();
    ContextSize::Line {
        start: median(&starts).unwrap_or(0.0).max(0.0),
        slope,
    }
}

/// The median growth of the context between consecutive points of a history.
fn floor_growth<'c>(contexts: impl Iterator<Item = &'c MeasuredContext>) -> Option<f64> {
    let mut chains: BTreeMap<&str, BTreeMap<u32, u64>> = BTreeMap::new();
    for context in contexts {
        chains
            .entry(&context.chain)
            .or_default()
            .insert(context.point, context.tokens);
    }
    let mut growths = Vec::new();
    for sizes in chains.values() {
        let pairs = sizes
            .iter()
            .filter_map(|(point, size)| Some((*size, *sizes.get(&(point + 1))?)));
        growths.extend(pairs.map(|(size, next)| next as f64 - size as f64));
    }
    median(&growths)
}

/// The course of a session from compaction to compaction.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LifeCycle {
    /// Tokens at which the history is compacted.
    pub trigger: f64,
    /// Tokens that a compaction frees.
    pub freed: f64,
    /// Tokens that are left after it.
    pub floor: f64,
    /// Tokens by which the floor rises each time; null with one compaction a session.
    pub growth: Option<f64>,
    /// Compactions until the floor has reached the trigger and nothing is freed any more; null where the floor does not
    /// rise, or its growth is unknown.
    pub cycles: Option<u64>,
}

impl LifeCycle {
    /// From the size at which compactions happen, the size that the first leaves, and the growth of the latter.
    pub fn new(trigger: f64, floor: f64, growth: Option<f64>) -> LifeCycle {
        let room = (trigger - floor).max(0.0);
        let cycles = growth
            .filter(|growth| *growth > 0.0)
            .map(|growth| (room / growth).ceil() as u64);
        LifeCycle {
            trigger,
            freed: room,
            floor,
            growth,
            cycles,
        }
    }
}
