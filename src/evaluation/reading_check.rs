//! Does a judge read? Twenty answers of the run, all to its longest contexts, are graded again: as they are, and with one
//! expected fact made false wherever it is mentioned. A judge that reads grades the changed copy lower far more often
//! than higher; one that is lost in long contexts does not, and its grades in this run mean little.
//!
//! The answers are chosen by their contexts and digests, so a rename or another order sends nothing new.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::error::EvaluationError;
use super::event::Listening;
use super::recorder::RunKeys;
use super::regrade::{Regrader, name_of_answer, scores_of};
use crate::action::{ActionKey, Digest};
use crate::judge::Dimension;
use crate::pipeline::JudgeIx;
use crate::plan::{AnswerToRegrade, Task, regrading};
use crate::results::{AnswerScores, Design, ReadingCheck, ResultsFolder, Row};
use lexical::facts::with_false_value;

/// The lowest grade of an answer that can be used.
const GOOD: f64 = 3.0;
/// The maximum number of expected facts: with two, a false one is worth at least two points.
const MOST_FACTS: usize = 2;
/// How many answers are looked at to find those in which a fact can be made false.
const LOOKED_AT: usize = 8 * ReadingCheck::ANSWERS;

/// An answer as it is, and with a false fact.
type Pair = [Task; 2];

/// Checks each judge that is a model. With `only_known`, nothing is sent: grades that the cache does not have are missing.
///
/// # Errors
/// Rows cannot be read; the cache or a file cannot be written.
pub(super) fn check_reading(
    regrader: &Regrader<'_>,
    folder: &ResultsFolder,
    design: &Design,
    only_known: bool,
    listening: &Listening<'_>,
    keys: &mut RunKeys,
) -> Result<Vec<ReadingCheck>, EvaluationError> {
    let mut checks = Vec::new();
    let judges = regrader.pipeline.judges.iter().enumerate();
    for (at, judge) in judges.filter(|(_, judge)| judge.model.is_asked()) {
        let name = &*judge.name.0;
        let mut pairs = pairs(regrader, JudgeIx(at), name, folder, design)?;
        if only_known {
            pairs.retain(|pair| regrader.are_known(pair));
        }
        let mut check = ReadingCheck {
            judge: name.to_owned(),
            below: 0,
            above: 0,
            of: pairs.len(),
        };
        if pairs.len() < ReadingCheck::ANSWERS {
            checks.push(check);
            continue;
        }
        let grades = regrader.perform(&pairs.concat(), listening, keys)?;
        check.of = 0;
        for pair in grades.chunks(2) {
            let mut scores = pair
                .iter()
                .map(|output| mean_of_facts(&scores_of(regrader.pipeline, output.as_ref()?)?));
            let Some((unchanged, changed)) = scores.next().flatten().zip(scores.next().flatten())
            else {
                continue;
            };
            check.of += 1;
            check.below += usize::from(changed < unchanged);
            check.above += usize::from(changed > unchanged);
        }
        checks.push(check);
    }
    Ok(checks)
}

/// The answers that a judge grades in a check, at most as many as it needs.
fn pairs(
    regrader: &Regrader<'_>,
    judge: JudgeIx,
    name: &str,
    folder: &ResultsFolder,
    design: &Design,
) -> Result<Vec<Pair>, EvaluationError> {
    let mut found: BTreeMap<(Reverse<u64>, ActionKey), usize> = BTreeMap::new();
    for (place, row) in folder.rows()?.enumerate() {
        let row = row?;
        if row.judge == name && is_candidate(&row) {
            let size = Reverse(row.context_tokens.unwrap_or_default());
            found.entry((size, row.keys.answer)).or_insert(place);
        }
    }
    let places: Vec<usize> = found.into_values().take(LOOKED_AT).collect();
    let rows = folder.rows_in(&places.iter().copied().collect())?;
    let rows = places.iter().filter_map(|place| rows.get(place));
    Ok(rows
        .filter_map(|row| pair(regrader, judge, design, row))
        .take(ReadingCheck::ANSWERS)
        .collect())
}

fn pair(regrader: &Regrader<'_>, judge: JudgeIx, design: &Design, row: &Row) -> Option<Pair> {
    let probe = regrader.probe(row)?;
    let truths = [probe.expected_facts.as_slice(), &probe.superseded_facts].concat();
    let changed = probe
        .expected_facts
        .iter()
        .find_map(|fact| with_false_value(&row.answer, fact, &truths))?;
    let context = regrader.context(design, row)?;
    let name = name_of_answer(row);
    let task = |text: &str| {
        let answer = AnswerToRegrade {
            name: &name,
            probe,
            text,
            context: context.as_deref(),
        };
        // The unchanged answer is graded anew: its first grade may be a week old.
        let occasion = Digest::hash("does it read");
        regrading(regrader.pipeline, judge, answer, occasion).ok()
    };
    Some([task(&row.answer)?, task(&changed)?])
}

fn is_candidate(row: &Row) -> bool {
    row.judge_n == 1
        && row.open_book.is_none()
        && (1..=MOST_FACTS).contains(&row.facts.len())
        && mean_of_facts(&row.dimensions).is_some_and(|score| score >= GOOD)
}

/// The mean of the two dimensions that are about facts.
fn mean_of_facts(scores: &AnswerScores) -> Option<f64> {
    Some((scores.get(&Dimension::Accuracy)? + scores.get(&Dimension::Completeness)?) / 2.0)
}
