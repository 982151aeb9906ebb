//! Tests whether the figures predict success at work, with twelve repositories that have hidden checks, a scripted
//! worker, eight compressors and eleven harms. For each figure it prints Spearman's correlation with success, and the
//! success by thirds of the figure.
//!
//! `cargo run -p compeval-tools --bin twelve_repositories`
//!
//! Nothing here is random and no model is asked. The worker searches values by fixed words and does not use the rules
//! of the figures. So the table shows whether a figure follows success if only facts decide about success. It shows
//! less about real agents.

#![allow(clippy::print_stdout, reason = "an example prints")]

mod compressors;
#[path = "../dose_response/ranks.rs"]
#[allow(dead_code, reason = "the other tool draws lines, too")]
mod ranks;
mod repositories;
mod worker;

use std::collections::BTreeSet;

use compeval::measure::{ContextProbe, share};
use compressors::{Compressor, Harm};
use lexical::facts::History;
use lexical::{ContextEntries, KnownReferences};
use ranks::spearman;
use repositories::{REPOSITORIES, Repository, Slot};
use sessions::transcript::{count_tokens, fold_document};
use worker::work;

const FIGURES: [&str; 8] = [
    "kept",
    "placed",
    "sound",
    "denied",
    "stale",
    "contradicted",
    "invented",
    "constraints",
];

/// The figures for which higher is worse.
const HARMS: [&str; 4] = ["denied", "stale", "contradicted", "invented"];

/// A context: its figures, and whether the work with it succeeded.
struct Cell {
    figures: [f64; FIGURES.len()],
    success: bool,
    reads: usize,
}

fn measure(repository: &Repository, context: &str) -> [f64; FIGURES.len()] {
    let session = repository.session();
    let history = History::new(&session);
    let (entries, folded) = (ContextEntries::from_text(context), fold_document(context));
    let probes = Slot::ALL.iter().filter_map(|slot| repository.probe(*slot));
    let read: Vec<_> = probes
        .map(|probe| ContextProbe::new(&probe, history.paths()).read(&entries, &entries, &folded))
        .collect();
    let facts = || read.iter().flat_map(|facts| &facts.facts);
    let of = |what: fn(&compeval::measure::FactInContext) -> bool| {
        share(facts().map(what)).unwrap_or(0.0)
    };
    let mean = |values: Vec<f64>| values.iter().sum::<f64>() / values.len().max(1) as f64;
    let known = KnownReferences::new(&session, session.len());
    let tokens = count_tokens(context);
    let rule = read.get(
        Slot::ALL
            .iter()
            .position(|slot| *slot == Slot::Forbidden)
            .unwrap_or(0),
    );
    let has_rule =
        rule.is_some_and(|facts| facts.facts.iter().all(|fact| fact.present && !fact.denied));
    [
        of(|fact| fact.present),
        of(|fact| fact.present && fact.placed != Some(false)),
        mean(read.iter().filter_map(|facts| facts.sound()).collect()),
        of(|fact| fact.denied),
        mean(read.iter().map(|facts| facts.stale.len() as f64).collect()),
        of(|fact| fact.contradicted),
        known
            .invented_in(&history, &entries, &BTreeSet::new())
            .per_1000_tokens(tokens)
            .unwrap_or(0.0),
        f64::from(u8::from(has_rule)),
    ]
}

fn cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    for repository in &REPOSITORIES {
        for compressor in Compressor::ALL {
            for harm in Harm::ALL {
                let context = compressor.context(repository, harm);
                let outcome = work(repository, &context);
                let figures = measure(repository, &context);
                cells.push(Cell {
                    figures,
                    success: outcome.success,
                    reads: outcome.reads,
                });
            }
        }
    }
    cells
}

/// Spearman's correlation of a figure with success, over the pairs of compressor and harm. Each pair is the mean over
/// the twelve repositories. The sign is such that better is positive.
fn agreement(cells: &[Cell], figure: usize) -> Option<f64> {
    let sign = if HARMS.contains(&FIGURES[figure]) {
        -1.0
    } else {
        1.0
    };
    let arms = Compressor::ALL.len() * Harm::ALL.len();
    let mean = |arm: usize, of: &dyn Fn(&Cell) -> f64| {
        cells.iter().skip(arm).step_by(arms).map(of).sum::<f64>() / REPOSITORIES.len() as f64
    };
    let success = |cell: &Cell| f64::from(u8::from(cell.success));
    let pair = |arm| {
        (
            sign * mean(arm, &|cell| cell.figures[figure]),
            mean(arm, &success),
        )
    };
    spearman(&(0..arms).map(pair).collect::<Vec<_>>())
}

/// The shares of success for figures in the lowest, middle and highest third of the range.
fn calibration(cells: &[Cell], figure: usize) -> String {
    let top = cells
        .iter()
        .map(|cell| cell.figures[figure])
        .fold(0.0, f64::max)
        .max(f64::MIN_POSITIVE);
    let thirds = [(0.0, 1.0 / 3.0), (1.0 / 3.0, 2.0 / 3.0), (2.0 / 3.0, 1.1)].map(|(low, high)| {
        let within = cells
            .iter()
            .filter(|cell| (low..high).contains(&(cell.figures[figure] / top)));
        let outcomes: Vec<bool> = within.map(|cell| cell.success).collect();
        share(outcomes.iter().copied()).map_or("–".to_owned(), |share| {
            format!("{:.0}% of {}", 100.0 * share, outcomes.len())
        })
    });
    thirds.join(" | ")
}

fn main() {
    let cells = cells();
    let successes = cells.iter().filter(|cell| cell.success).count();
    let reads: usize = cells.iter().map(|cell| cell.reads).sum();
    println!(
        "{} contexts, {successes} successes, {reads} reads of the session.\n",
        cells.len()
    );
    println!("| figure | Spearman with success | low third | middle | high third |");
    println!("|---|---:|---:|---:|---:|");
    for (at, name) in FIGURES.iter().enumerate() {
        let rho = agreement(&cells, at).map_or("–".to_owned(), |rho| format!("{rho:+.2}"));
        println!("| {name} | {rho} | {} |", calibration(&cells, at));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_context_succeeds_and_sound_facts_follow_success() {
        for repository in &REPOSITORIES {
            let full = work(
                repository,
                &Compressor::Full.context(repository, Harm::None),
            );
            assert!(full.success && full.reads == 0, "{}", repository.name);
            assert!(!work(repository, "").success, "{}", repository.name);
        }
        let cells = cells();
        let rho = |name: &str| {
            FIGURES
                .iter()
                .position(|figure| *figure == name)
                .and_then(|at| agreement(&cells, at))
        };
        assert!(rho("sound") >= Some(0.5), "{:?}", rho("sound"));
        assert!(
            rho("sound") > rho("kept"),
            "{:?} {:?}",
            rho("sound"),
            rho("kept")
        );
    }
}
