//! Simulates changes that are the same in every fixture, because the method or the judge changed, or by chance.

use stats::{
    DifferenceTest, Paired, Regrading, RunValues, Verdict, regraded_answers, run_values, verdicts,
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
fn regraded(random: &mut Random, harsher: f64, answers: usize) -> Option<Regrading> {
    let mut grades =
        |level: f64| -> Vec<f64> { (0..answers).map(|_| graded(random, level)).collect() };
    Regrading::between(&grades(LEVEL), &grades(LEVEL - harsher))
}

/// In how many of the simulations a loss is found, and in how many of these it stands after answers were graded again,
/// in percent.
fn found_and_standing(
    lower_by: f64,
    harsher: f64,
    clusters: usize,
    simulations: usize,
) -> [f64; 2] {
    let mut random = Random::seeded(800 + clusters as u64);
    let (mut found, mut standing) = (0, 0);
    for _ in 0..simulations {
        let Some(test) = compared(&mut random, lower_by, clusters) else {
            continue;
        };
        let answers = regraded_answers(test.difference);
        let regrading = regraded(&mut random, harsher, answers);
        if test.verdict == Verdict::Regressed {
            found += 1;
            let stands = regrading.map(|regrading| test.unless_drifted(&regrading));
            standing += usize::from(stands.is_some_and(|test| test.has_verdict()));
        }
    }
    [percent(found, simulations), percent(standing, found.max(1))]
}

/// Prints the table, and returns whether its claims hold.
pub(crate) fn print_uniform(simulations: usize) -> bool {
    println!(
        "\nThe same change in every fixture, one method; a judge that is off by a point in one grade of four:\n"
    );
    print_row("", &CLUSTERS.map(|count| format!("{count:5}")));
    let row = |name: &str, lower_by, harsher, place: usize| {
        let found =
            CLUSTERS.map(|count| found_and_standing(lower_by, harsher, count, simulations)[place]);
        print_row(name, &found.map(|share| format!("{share:5.1}")));
        found
    };
    let lost = row("every answer a point worse: found", 1.0, 0.0, 0);
    let stands = row("    and it stands", 1.0, 0.0, 1);
    let half = row(
        "every answer half a point worse: of those found, stand",
        0.5,
        0.0,
        1,
    );
    let drift = row(
        "the judge a point harsher: of those found, stand",
        1.0,
        1.0,
        1,
    );
    let little = row(
        "the judge half a point harsher: of those found, stand",
        0.5,
        0.5,
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
        && all(stands, |share| share >= 95.0)
        && half[1..].iter().all(|share| *share >= 90.0)
        && all(drift, |share| share <= 3.0)
        && all(little, |share| share <= 3.0)
        && all(noise, |share| share <= 2.5)
}

/// The number of answers in a check of a judge on the run, and how many more of their changed copies must get less.
const CHECK: (usize, usize) = (20, 8);

/// How many of the changed copies are graded below and above the unchanged ones.
fn below_and_above(
    random: &mut Random,
    mut grade: impl FnMut(&mut Random, bool) -> f64,
) -> [usize; 2] {
    let mut counts = [0, 0];
    for _ in 0..CHECK.0 {
        let (unchanged, changed) = (grade(random, false), grade(random, true));
        counts[0] += usize::from(changed < unchanged);
        counts[1] += usize::from(changed > unchanged);
    }
    counts
}

/// Prints how often there is a warning about a judge, and returns whether the claims hold.
pub(crate) fn print_reading(simulations: usize) -> bool {
    println!(
        "\nTwenty answers, each also graded with a fact made false; the warnings, in percent:\n"
    );
    let mut random = Random::seeded(900);
    let mut row = |name: &str, grade: fn(&mut Random, bool) -> f64| {
        let failed = (0..simulations)
            .filter(|_| {
                let [below, above] = below_and_above(&mut random, grade);
                below < above + CHECK.1
            })
            .count();
        let warned = percent(failed, simulations);
        print_row(name, &[format!("{warned:5.1}")]);
        warned
    };
    // The mean of accuracy and completeness.
    fn reading(random: &mut Random, is_changed: bool, loss: f64) -> f64 {
        let level = if is_changed { LEVEL - loss } else { LEVEL };
        graded(random, level) + graded(random, level)
    }
    let sound = row("a false fact costs two points", |random, changed| {
        reading(random, changed, 2.0)
    });
    let mild = row("a false fact costs one point", |random, changed| {
        reading(random, changed, 1.0)
    });
    let blind = row("it does not notice", |random, changed| {
        reading(random, changed, 0.0)
    });
    let chance = row("it grades by chance", |random, _| {
        (random.uniform() * 6.0).floor()
    });
    let constant = row("it grades all alike", |_, _| LEVEL);
    sound <= 1.0 && mild <= 5.0 && [blind, chance, constant].iter().all(|share| *share >= 95.0)
}
