//! Simulates changes that are the same in every fixture, because the method or the judge changed, or by chance.

use stats::{
    DifferenceTest, Paired, REGRADED_ANSWERS, Regrading, RunValues, Verdict, run_values, verdicts,
};

use crate::model::{ASKED, Random, WEIGHTS, percent, print_row};

const CLUSTERS: [usize; 4] = [3, 4, 8, 12];
/// The quality of all answers, in points.
const LEVEL: f64 = 4.0;
/// The share of grades in which the judge is wrong by a point, half of them up and half of them down.
const SLIPS: f64 = 0.25;

/// The score of an answer of this quality: the weighted sum of two criteria that are graded independently.
fn graded(random: &mut Random, quality: f64) -> f64 {
    let mut criterion = || {
        let slip = random.uniform();
        let off = if slip < SLIPS / 2.0 {
            1.0
        } else {
            -f64::from(slip < SLIPS)
        };
        (quality + off).clamp(0.0, 5.0)
    };
    WEIGHTS.iter().map(|weight| weight * criterion()).sum()
}

/// The test of a comparison in which every answer is graded lower by `lower_by`, because it is worse or the judge is
/// harsher.
fn compared(random: &mut Random, lower_by: f64, clusters: usize) -> Option<DifferenceTest> {
    let mut side = |level: f64| -> RunValues {
        let rows: Vec<[Option<f64>; 1]> =
            (0..ASKED).map(|_| [Some(graded(random, level))]).collect();
        run_values(&rows)
    };
    let pairs: Vec<_> = (0..clusters)
        .map(|_| (side(LEVEL - lower_by), side(LEVEL)))
        .collect();
    verdicts(&[Paired::between(&pairs)?.with_graded_items(ASKED * clusters)])
        .into_iter()
        .next()
}

/// Answers of the baseline that are graded again by a judge that became harsher by this much.
fn regraded(random: &mut Random, harsher: f64) -> Option<Regrading> {
    let mut grades = |level: f64| -> Vec<f64> {
        (0..REGRADED_ANSWERS)
            .map(|_| graded(random, level))
            .collect()
    };
    Regrading::between(&grades(LEVEL), &grades(LEVEL - harsher))
}

/// In how many of the simulations a loss is found, and in how many of these the judge is said to be the cause, in
/// percent.
fn found_and_blamed(lower_by: f64, harsher: f64, clusters: usize, simulations: usize) -> [f64; 2] {
    let mut random = Random::seeded(800 + clusters as u64);
    let (mut found, mut blamed) = (0, 0);
    for _ in 0..simulations {
        let Some(test) = compared(&mut random, lower_by, clusters) else {
            continue;
        };
        let regrading = regraded(&mut random, harsher);
        if test.verdict == Verdict::Regressed {
            found += 1;
            blamed +=
                usize::from(regrading.is_some_and(|regrading| regrading.explains(test.difference)));
        }
    }
    [percent(found, simulations), percent(blamed, found.max(1))]
}

/// Prints the table, and returns whether its claims hold.
pub(crate) fn print_uniform(simulations: usize) -> bool {
    println!(
        "\nThe same change in every fixture, one method; a judge that is off by a point in one grade of four:\n"
    );
    print_row("", &CLUSTERS.map(|count| format!("{count:5}")));
    let row = |name: &str, lower_by, harsher, place: usize| {
        let found =
            CLUSTERS.map(|count| found_and_blamed(lower_by, harsher, count, simulations)[place]);
        print_row(name, &found.map(|share| format!("{share:5.1}")));
        found
    };
    let lost = row("every answer a point worse: found", 1.0, 0.0, 0);
    let falsely = row("    and the judge is blamed", 1.0, 0.0, 1);
    let drift = row(
        "the judge a point harsher: drift is recognised",
        1.0,
        1.0,
        1,
    );
    let noise = row(
        "nothing changed but the judge's slips: false alarms",
        0.0,
        0.0,
        0,
    );
    let all = |found: [f64; 4], holds: fn(f64) -> bool| found.into_iter().all(holds);
    all(lost, |share| share >= 99.0)
        && all(drift, |share| share >= 98.0)
        && all(falsely, |share| share <= 1.0)
        && all(noise, |share| share <= 2.5)
}

/// Sizes of a check of a judge on answers of the run, and how many answers must be graded lower.
const CHECKS: [(usize, usize); 2] = [(20, 17), (10, 8)];
/// The maximum number of facts of an answer in which one fact is made false.
const MOST_FACTS: f64 = 4.0;

/// How many answers are graded lower in accuracy and completeness if one of their facts is false. A judge that checks
/// facts lowers the grade by the share of this fact; another judge does not notice it.
fn graded_lower(random: &mut Random, answers: usize, reads_facts: bool) -> usize {
    let mut is_lower = || {
        let facts = 1.0
            + (random.uniform() * MOST_FACTS)
                .floor()
                .min(MOST_FACTS - 1.0);
        let loss = if reads_facts { LEVEL / facts } else { 0.0 };
        let before = graded(random, LEVEL) + graded(random, LEVEL);
        graded(random, LEVEL - loss) + graded(random, LEVEL - loss) < before
    };
    (0..answers).filter(|_| is_lower()).count()
}

/// Prints how often there is a warning about a judge, and returns whether the claims hold.
pub(crate) fn print_false_facts(simulations: usize) -> bool {
    println!("\nAnswers with one fact made false, of 20 and of 10; the warnings, in percent:\n");
    let mut random = Random::seeded(900);
    let mut row = |name: &str, reads_facts| {
        let warned = CHECKS.map(|(answers, needed)| {
            let failed = (0..simulations)
                .filter(|_| graded_lower(&mut random, answers, reads_facts) < needed)
                .count();
            percent(failed, simulations)
        });
        print_row(name, &warned.map(|share| format!("{share:5.1}")));
        warned
    };
    let read = row(
        "a judge who reads facts, off by a point in one grade of four",
        true,
    );
    let blind = row("a judge who does not", false);
    read.iter().all(|share| *share <= 2.0) && blind.iter().all(|share| *share >= 95.0)
}
