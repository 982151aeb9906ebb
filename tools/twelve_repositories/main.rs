//! Tests whether the score and the figures predict success at work, with twelve repositories that have hidden checks, five
//! scripted workers, eight compressors and eleven harms. For each figure it prints Spearman's correlation with the success
//! of each worker. Answers and grades of the score are those of the rules that stand in for a model.
//!
//! `cargo run -p compeval-tools --bin twelve_repositories`
//!
//! Nothing here is random and no model is asked. The workers search values by fixed words and do not use the rules of the
//! figures. So the table shows whether a figure follows success if only facts decide about success. It shows
//! less about real agents.

#![allow(clippy::print_stdout, reason = "an example prints")]

mod compressors;
#[path = "../dose_response/ranks.rs"]
#[allow(dead_code, reason = "the other tool draws lines, too")]
mod ranks;
mod repositories;
mod worker;

use std::collections::{BTreeMap, BTreeSet};

use base::locale::Locale;
use compeval::action::Stage;
use compeval::judge::{CriterionId, Rubric, Scope, grade, read_reply};
use compeval::measure::{ContextProbe, share};
use compeval::probe::Probe;
use compeval::stand_in;
use compressors::{Compressor, Harm};
use lexical::facts::History;
use lexical::{ContextEntries, KnownReferences};
use ranks::spearman;
use repositories::{REPOSITORIES, Repository, Slot};
use serde_json::json;
use sessions::transcript::{count_tokens, fold_document};
use worker::{WORKERS, work};

const FIGURES: [&str; 9] = [
    "score",
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

/// A context: its figures, and for each of [`WORKERS`] whether the work with it succeeded.
struct Cell {
    figures: [f64; FIGURES.len()],
    successes: [bool; WORKERS.len()],
}

/// The overall score of the answer that rules give to a probe, graded by rules.
fn score(probe: &Probe, context: &str) -> Option<f64> {
    let reply = |stage, values: &[(&'static str, &str)]| {
        let values: BTreeMap<&str, _> = values
            .iter()
            .map(|(name, text)| (*name, (*text).into()))
            .collect();
        stand_in::reply(stage, &values)
    };
    let answer = reply(
        Stage::Answer,
        &[("context", context), ("question", &probe.question)],
    );
    let rubric = Rubric::built_in(Locale::En);
    let criteria = rubric.criteria_for(probe.kind, Scope::ByType);
    let ids: Vec<CriterionId> = criteria.iter().map(|one| one.id.clone()).collect();
    let request = json!({
        "probe_question": probe.question, "model_response": answer, "compacted_context": context,
        "rubric_criteria": ids,
        "ground_truth": {"expected_facts": probe.expected_facts, "superseded_facts": probe.superseded_facts},
    });
    let graded = reply(Stage::Judge, &[("request", &request.to_string())]);
    let scores = read_reply(&graded, &ids).ok()?;
    Some(grade(rubric, &scores).overall()?.value())
}

fn measure(repository: &Repository, context: &str) -> [f64; FIGURES.len()] {
    let session = repository.session();
    let history = History::new(&session);
    let (entries, folded) = (ContextEntries::from_text(context), fold_document(context));
    let probes: Vec<Probe> = Slot::ALL
        .iter()
        .filter_map(|slot| repository.probe(*slot))
        .collect();
    let scores = probes.iter().filter_map(|probe| score(probe, context));
    let read: Vec<_> = probes
        .iter()
        .map(|probe| ContextProbe::new(probe, history.paths()).read(&entries, &entries, &folded))
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
        mean(scores.collect()),
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
                cells.push(Cell {
                    figures: measure(repository, &context),
                    successes: WORKERS.map(|worker| work(worker, repository, &context).success),
                });
            }
        }
    }
    cells
}

/// Spearman's correlation of a figure with the success of a worker, over the pairs of compressor and harm. Each pair is the mean over
/// the twelve repositories. The sign is such that better is positive.
fn agreement(cells: &[Cell], figure: usize, worker: usize) -> Option<f64> {
    let sign = if HARMS.contains(&FIGURES[figure]) {
        -1.0
    } else {
        1.0
    };
    let arms = Compressor::ALL.len() * Harm::ALL.len();
    let mean = |arm: usize, of: &dyn Fn(&Cell) -> f64| {
        cells.iter().skip(arm).step_by(arms).map(of).sum::<f64>() / REPOSITORIES.len() as f64
    };
    let success = |cell: &Cell| f64::from(u8::from(cell.successes[worker]));
    let pair = |arm| {
        (
            sign * mean(arm, &|cell| cell.figures[figure]),
            mean(arm, &success),
        )
    };
    spearman(&(0..arms).map(pair).collect::<Vec<_>>())
}

fn main() {
    let cells = cells();
    println!("{} contexts.\n", cells.len());
    let names = WORKERS.map(|worker| worker.name).join(" | ");
    println!("| Spearman with success | {names} |");
    println!("|---|{}", "---:|".repeat(WORKERS.len()));
    let succeeded = |worker: usize| {
        let share = share(cells.iter().map(|cell| cell.successes[worker]));
        share.map_or("–".to_owned(), |share| format!("{:.0}%", 100.0 * share))
    };
    let row = |name: &str, cell: &dyn Fn(usize) -> String| {
        let texts: Vec<String> = (0..WORKERS.len()).map(cell).collect();
        println!("| {name} | {} |", texts.join(" | "));
    };
    row("(tasks that succeed)", &succeeded);
    for (at, name) in FIGURES.iter().enumerate() {
        row(name, &|worker| {
            agreement(&cells, at, worker).map_or("–".to_owned(), |rho| format!("{rho:+.2}"))
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_context_succeeds_and_sound_facts_follow_success() {
        for repository in &REPOSITORIES {
            let context = Compressor::Full.context(repository, Harm::None);
            let full = work(WORKERS[0], repository, &context);
            assert!(full.success && full.reads == 0, "{}", repository.name);
            let empty = work(WORKERS[0], repository, "");
            assert!(!empty.success, "{}", repository.name);
        }
        let cells = cells();
        let rho = |name: &str| {
            FIGURES
                .iter()
                .position(|figure| *figure == name)
                .and_then(|at| agreement(&cells, at, 0))
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
