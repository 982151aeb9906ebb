//! Simulates how often intervals contain the truth, and how often equal sides are found to be different.

use stats::thresholds::MARGIN;
use stats::{
    Estimate, Paired, RunValues, Verdict, combined_runs, interval, level, rerun_interval,
    retention, verdicts,
};

use crate::model::{
    ASKED, Cluster, Draw, ITEMS, Random, expected, percent, print_row, run_side, values,
};

const CLUSTERS: [usize; 5] = [3, 5, 8, 12, 20];

/// The true value of an estimate: the mean over very many clusters.
fn truth(means: &[f64], draw: Draw, combine: fn(&[f64]) -> f64) -> f64 {
    let mut random = Random::seeded(7);
    let many = 100_000;
    (0..many)
        .map(|_| combine(&values(&mut random, means, draw)))
        .sum::<f64>()
        / f64::from(many)
}

fn difference(sides: &[f64]) -> f64 {
    match sides {
        [a, b, ..] => a - b,
        _ => f64::NAN,
    }
}

fn first(sides: &[f64]) -> f64 {
    sides.first().copied().unwrap_or(f64::NAN)
}

/// A line of the table: how often the interval contains the truth, in percent, and its median width.
struct Case {
    name: &'static str,
    means: &'static [f64],
    draw: Draw,
    combine: fn(&[f64]) -> f64,
    estimate: fn(&[f64]) -> Option<Estimate>,
}

impl Case {
    /// Prints the line, with the median widths if `widths` is set, and returns whether all shares are from 93 to 97.
    fn print(&self, simulations: usize, widths: bool) -> bool {
        let truth = match self.means {
            [a, b] if a == b => 0.0,
            means => truth(means, self.draw, self.combine),
        };
        let found: Vec<(f64, f64)> = CLUSTERS
            .iter()
            .map(|count| self.cover(*count, truth, simulations))
            .collect();
        let name = format!("{} (true {truth:.3})", self.name);
        print_row(
            &name,
            &found
                .iter()
                .map(|(share, _)| format!("{share:5.1}"))
                .collect::<Vec<_>>(),
        );
        if widths {
            let cells: Vec<String> = found
                .iter()
                .map(|(_, width)| format!("{width:5.2}"))
                .collect();
            print_row("    its median width, points", &cells);
        }
        found.iter().all(|(share, _)| (93.0..=97.0).contains(share))
    }

    fn cover(&self, clusters: usize, truth: f64, simulations: usize) -> (f64, f64) {
        let mut random = Random::seeded(clusters as u64);
        let one = |_| {
            let drawn =
                (0..clusters).map(|_| (self.combine)(&values(&mut random, self.means, self.draw)));
            (self.estimate)(&drawn.collect::<Vec<_>>())?.ci95
        };
        let intervals: Vec<_> = (0..simulations).filter_map(one).collect();
        let mut widths: Vec<f64> = intervals.iter().map(|ci| ci.width()).collect();
        widths.sort_by(f64::total_cmp);
        let covered = intervals.iter().filter(|ci| ci.contains(truth)).count();
        (
            percent(covered, simulations),
            widths.get(widths.len() / 2).copied().unwrap_or(f64::NAN),
        )
    }
}

/// The coverage of the re-run interval, whose true value is the mean over the drawn clusters.
fn rerun_coverage(clusters: usize, simulations: usize) -> f64 {
    let mut random = Random::seeded(100 + clusters as u64);
    let covered = (0..simulations).filter(|_| {
        let mut truth = 0.0;
        let mut sides = [Vec::new(), Vec::new()];
        for _ in 0..clusters {
            let cluster = Cluster::draw(&mut random, Random::normal);
            for (side, (mean, sign)) in sides.iter_mut().zip([(4.2, 1.0), (3.7, -1.0)]) {
                let latent = cluster.side(&mut random, mean);
                truth += sign * expected(&latent) / clusters as f64;
                side.extend(
                    run_side(&mut random, &latent, &ITEMS[..1])
                        .iter()
                        .map(RunValues::present),
                );
            }
        }
        let [a, b] = &sides;
        rerun_interval(a, Some(b)).is_ok_and(|found| found.ci95.contains(truth))
    });
    percent(covered.count(), simulations)
}

/// The coverage of Fieller's interval for a method at 3.7 between a floor at 1 and a ceiling at 4.2.
fn retention_coverage(clusters: usize, truth: f64, simulations: usize) -> f64 {
    let mut random = Random::seeded(200 + clusters as u64);
    let covered = (0..simulations).filter(|_| {
        let drawn = (0..clusters)
            .filter_map(|_| gain_and_span(&values(&mut random, &ARMS, Random::normal)));
        retention(&drawn.collect::<Vec<_>>())
            .ci95
            .is_some_and(|ci| ci.contains(truth))
    });
    percent(covered.count(), simulations)
}

const ARMS: [f64; 3] = [3.7, 1.0, 4.2];

fn gain_and_span(arms: &[f64]) -> Option<(f64, f64)> {
    match arms {
        [value, floor, ceiling] => Some((value - floor, ceiling - floor)),
        _ => None,
    }
}

fn true_retention() -> f64 {
    let span = |sides: &[f64]| gain_and_span(sides).map_or(f64::NAN, |(_, span)| span);
    truth(&ARMS, Random::normal, difference) / truth(&ARMS, Random::normal, span)
}

/// False findings in comparisons of equal sides, in percent of the comparisons.
#[derive(Default)]
struct FalseFindings {
    /// Some dimension moves up or down by 0.3 or more.
    moved: f64,
    /// Some dimension moves up by 0.3 or more.
    rose: f64,
    /// Overall or some dimension is found improved.
    improved: f64,
    /// Overall or some dimension is found regressed.
    regressed: f64,
}

fn false_findings(clusters: usize, simulations: usize) -> FalseFindings {
    let mut random = Random::seeded(300 + clusters as u64);
    let mut found = FalseFindings::default();
    let one = 100.0 / simulations as f64;
    for _ in 0..simulations {
        let Some((overall, dimensions)) = equal_sides(&mut random, clusters) else {
            continue;
        };
        let any = |verdict| {
            let judged = verdicts(std::slice::from_ref(&overall))
                .into_iter()
                .chain(verdicts(&dimensions));
            judged
                .into_iter()
                .any(|comparison| comparison.verdict == verdict)
        };
        let moves: Vec<f64> = dimensions
            .iter()
            .map(|paired| paired.estimate.center)
            .collect();
        found.moved += one * f64::from(u8::from(moves.iter().any(|d| d.abs() >= MARGIN - 1e-9)));
        found.rose += one * f64::from(u8::from(moves.iter().any(|d| *d >= MARGIN - 1e-9)));
        found.improved += one * f64::from(u8::from(any(Verdict::Improved)));
        found.regressed += one * f64::from(u8::from(any(Verdict::Regressed)));
    }
    found
}

/// Two sides with no true difference: the comparison of their overalls, and of each dimension.
fn equal_sides(random: &mut Random, clusters: usize) -> Option<(Paired, Vec<Paired>)> {
    let mut overall = Vec::new();
    let mut dimensions: Vec<Vec<(RunValues, RunValues)>> = vec![Vec::new(); ITEMS.len()];
    for _ in 0..clusters {
        let cluster = Cluster::draw(random, Random::normal);
        let mut side = || {
            let latent = cluster.side(random, 3.7);
            run_side(random, &latent, &ITEMS)
        };
        let (a, b) = (side(), side());
        overall.push((combined_runs(&a), combined_runs(&b)));
        for (dimension, pair) in dimensions.iter_mut().zip(a.into_iter().zip(b)) {
            dimension.push(pair);
        }
    }
    let graded = |(pairs, items): (&Vec<_>, &usize)| {
        Some(Paired::between(pairs)?.with_graded_items(items * clusters))
    };
    let dimensions: Option<Vec<Paired>> = dimensions.iter().zip(&ITEMS).map(graded).collect();
    Some((graded((&overall, &ASKED))?, dimensions?))
}

/// The lines of the table for cluster t intervals; the width is printed only for the first.
const CASES: [Case; 5] = [
    Case {
        name: "paired difference of medians",
        means: &[4.2, 3.7],
        draw: Random::normal,
        combine: difference,
        estimate: interval,
    },
    Case {
        name: "level of medians",
        means: &[3.7],
        draw: Random::normal,
        combine: first,
        estimate: level,
    },
    Case {
        name: "paired, no true difference",
        means: &[3.7, 3.7],
        draw: Random::normal,
        combine: difference,
        estimate: interval,
    },
    Case {
        name: "paired, skewed cluster effects",
        means: &[4.2, 3.7],
        draw: Random::skewed,
        combine: difference,
        estimate: interval,
    },
    Case {
        name: "level near the ceiling",
        means: &[4.6],
        draw: Random::normal,
        combine: first,
        estimate: level,
    },
];

pub(crate) fn print_coverage(simulations: usize) -> bool {
    println!("\nCoverage of nominal 95% intervals, in percent, by number of clusters:\n");
    print_row(
        "cluster t interval",
        &CLUSTERS.map(|count| format!("{count:5}")),
    );
    let mut held = true;
    for (place, case) in CASES.iter().enumerate() {
        held &= case.print(simulations, place == 0);
    }
    let rerun = CLUSTERS.map(|count| format!("{:5.1}", rerun_coverage(count, simulations)));
    print_row("re-run interval, difference", &rerun);
    let truth = true_retention();
    let kept =
        CLUSTERS.map(|count| format!("{:5.1}", retention_coverage(count, truth, simulations)));
    print_row(&format!("retention by Fieller (true {truth:.3})"), &kept);
    println!(
        "\nThe re-run interval with a single cluster: {:.1}.",
        rerun_coverage(1, simulations)
    );
    held
}

pub(crate) fn print_false_findings(simulations: usize) -> bool {
    println!(
        "\nSix correlated dimensions and no true difference; percent of comparisons in which:\n"
    );
    let found = CLUSTERS.map(|count| false_findings(count, simulations));
    print_row("", &CLUSTERS.map(|count| format!("{count:5}")));
    print_row(
        "some dimension moves by 0.3 or more",
        &found.each_ref().map(|f| format!("{:5.1}", f.moved)),
    );
    print_row(
        "some dimension moves up by 0.3 or more",
        &found.each_ref().map(|f| format!("{:5.1}", f.rose)),
    );
    print_row(
        "something is called improved",
        &found.each_ref().map(|f| format!("{:5.1}", f.improved)),
    );
    print_row(
        "something is called regressed",
        &found.each_ref().map(|f| format!("{:5.1}", f.regressed)),
    );
    found
        .iter()
        .all(|f| f.improved <= 5.0 && f.regressed <= 5.0)
}
