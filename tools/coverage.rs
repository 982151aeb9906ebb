//! How often the 95% intervals of compeval cover the truth, how often its verdicts are wrong, and what its gate detects,
//! by simulation.
//!
//! `cargo run --release --example coverage [SIMULATIONS]`
//!
//! Seeded: the same number of simulations always prints the same. Scores come from a model in which clusters (sessions),
//! items (probes), compressions and answers all vary, and are rounded to whole points between 0 and 5 as a judge's are;
//! so they are not normal, and the intervals do not know it. Everything else is the library's own code.

#![allow(clippy::print_stdout)]

use stats::thresholds::MARGIN;
use stats::{
    DifferenceTest, Estimate, FailureCounts, FamilyVerdicts, MethodDifferences, Paired, RunValues, Verdict,
    combined_runs, failure_tests, family_verdicts, interval, level, rerun_interval, retention, run_values, verdicts,
};

const CLUSTERS: [usize; 5] = [3, 5, 8, 12, 20];
const SIMULATIONS: usize = 1_500;
const RUNS: usize = 3;
/// Items that measure each of six dimensions, out of ten.
const ITEMS: [usize; 6] = [10, 7, 3, 10, 5, 10];
/// Weights of the two criteria of a dimension.
const WEIGHTS: [f64; 2] = [0.6, 0.4];
/// Standard deviations, in points: cluster, item, side × cluster, side × item, run, answer, criterion.
const SD: Spread =
    Spread { cluster: 0.4, item: 0.9, side: 0.2, side_item: 0.45, run: 0.3, answer: 0.3, criterion: 0.4 };

struct Spread {
    cluster: f64,
    item: f64,
    side: f64,
    side_item: f64,
    run: f64,
    answer: f64,
    criterion: f64,
}

/// Random numbers: splitmix64 (Steele, Lea and Flood 2014), and normal ones from it by Box and Muller.
struct Random {
    state: u64,
    spare: Option<f64>,
}

impl Random {
    fn seeded(seed: u64) -> Random {
        Random { state: seed, spare: None }
    }

    /// From 0 (excluded) to 1.
    fn uniform(&mut self) -> f64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64 + f64::EPSILON / 4.0
    }

    /// Mean 0 and this standard deviation.
    fn normal(&mut self, sd: f64) -> f64 {
        if let Some(spare) = self.spare.take() {
            return spare * sd;
        }
        let (radius, angle) = ((-2.0 * self.uniform().ln()).sqrt(), std::f64::consts::TAU * self.uniform());
        self.spare = Some(radius * angle.sin());
        radius * angle.cos() * sd
    }

    /// Mean 0 and this standard deviation, with a long upper tail.
    fn skewed(&mut self, sd: f64) -> f64 {
        (-self.uniform().ln() - 1.0) * sd
    }
}

/// How the effects of clusters are drawn.
type Draw = fn(&mut Random, f64) -> f64;

/// A cluster: what its items have in common for all sides.
struct Cluster {
    items: Vec<f64>,
    draw: Draw,
}

impl Cluster {
    fn draw(random: &mut Random, draw: Draw) -> Cluster {
        let shared = draw(random, SD.cluster);
        Cluster { items: (0..10).map(|_| shared + random.normal(SD.item)).collect(), draw }
    }

    /// One side's latent quality for each item, before it is run.
    fn side(&self, random: &mut Random, mean: f64) -> Vec<f64> {
        let own = (self.draw)(random, SD.side);
        self.items.iter().map(|item| mean + item + own + random.normal(SD.side_item)).collect()
    }
}

/// What one side scores on one cluster, for each dimension: the run values of a table of items × runs.
fn run_side(random: &mut Random, latent: &[f64], dimensions: &[usize]) -> Vec<RunValues> {
    let shifts: Vec<f64> = (0..RUNS).map(|_| random.normal(SD.run)).collect();
    let mut tables: Vec<Vec<Vec<Option<f64>>>> = dimensions.iter().map(|_| Vec::new()).collect();
    for (place, item) in latent.iter().enumerate() {
        let answers: Vec<f64> = shifts.iter().map(|shift| item + shift + random.normal(SD.answer)).collect();
        for (table, _) in tables.iter_mut().zip(dimensions).filter(|(_, items)| place < **items) {
            table.push(answers.iter().map(|answer| Some(score(random, *answer))).collect());
        }
    }
    tables.iter().map(|table| run_values(table)).collect()
}

/// A judge's score: two criteria, each rounded to a whole point of the scale, weighted.
fn score(random: &mut Random, answer: f64) -> f64 {
    WEIGHTS.iter().map(|weight| weight * (answer + random.normal(SD.criterion)).round().clamp(0.0, 5.0)).sum()
}

/// The expected score of an item over all its runs: the chance of each rounding, summed. No simulation.
fn expected(latent: &[f64]) -> f64 {
    let sd = (SD.run.powi(2) + SD.answer.powi(2) + SD.criterion.powi(2)).sqrt();
    let of_item = |x: &f64| -> f64 { (0..5).map(|step| normal_cdf((x - f64::from(step) - 0.5) / sd)).sum() };
    latent.iter().map(of_item).sum::<f64>() / latent.len() as f64
}

/// Abramowitz and Stegun 7.1.26, good to 1.5e-7.
fn normal_cdf(x: f64) -> f64 {
    let z = x.abs() / std::f64::consts::SQRT_2;
    let t = 1.0 / (1.0 + 0.3275911 * z);
    let terms = [1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592];
    let tail = terms.iter().fold(0.0, |sum, term| (sum + term) * t) * (-z * z).exp();
    if x < 0.0 { tail / 2.0 } else { 1.0 - tail / 2.0 }
}

/// The cluster values of several sides, on one drawn cluster.
fn values(random: &mut Random, means: &[f64], draw: Draw) -> Vec<f64> {
    let cluster = Cluster::draw(random, draw);
    let side = |mean: &f64| {
        let latent = cluster.side(random, *mean);
        run_side(random, &latent, &ITEMS[..1]).first().and_then(RunValues::cluster_value)
    };
    means.iter().filter_map(side).collect()
}

/// What an estimate aims at: the mean over very many clusters.
fn truth(means: &[f64], draw: Draw, combine: fn(&[f64]) -> f64) -> f64 {
    let mut random = Random::seeded(7);
    let many = 100_000;
    (0..many).map(|_| combine(&values(&mut random, means, draw))).sum::<f64>() / f64::from(many)
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

fn percent(count: usize, of: usize) -> f64 {
    100.0 * count as f64 / of as f64
}

fn print_row(name: &str, cells: &[String]) {
    println!("| {name:<58} | {} |", cells.join(" | "));
}

/// One line of coverage: how often the interval holds the truth, in percent, and its median width.
struct Case {
    name: &'static str,
    means: &'static [f64],
    draw: Draw,
    combine: fn(&[f64]) -> f64,
    estimate: fn(&[f64]) -> Option<Estimate>,
}

impl Case {
    /// Prints the line, with the median widths if asked for, and says whether all of it lies within 93 to 97.
    fn print(&self, simulations: usize, widths: bool) -> bool {
        let truth = match self.means {
            [a, b] if a == b => 0.0,
            means => truth(means, self.draw, self.combine),
        };
        let found: Vec<(f64, f64)> = CLUSTERS.iter().map(|count| self.cover(*count, truth, simulations)).collect();
        let name = format!("{} (true {truth:.3})", self.name);
        print_row(&name, &found.iter().map(|(share, _)| format!("{share:5.1}")).collect::<Vec<_>>());
        if widths {
            let cells: Vec<String> = found.iter().map(|(_, width)| format!("{width:5.2}")).collect();
            print_row("    its median width, points", &cells);
        }
        found.iter().all(|(share, _)| (93.0..=97.0).contains(share))
    }

    fn cover(&self, clusters: usize, truth: f64, simulations: usize) -> (f64, f64) {
        let mut random = Random::seeded(clusters as u64);
        let one = |_| {
            let drawn = (0..clusters).map(|_| (self.combine)(&values(&mut random, self.means, self.draw)));
            (self.estimate)(&drawn.collect::<Vec<_>>())?.ci95
        };
        let intervals: Vec<_> = (0..simulations).filter_map(one).collect();
        let mut widths: Vec<f64> = intervals.iter().map(|ci| ci.width()).collect();
        widths.sort_by(f64::total_cmp);
        let covered = intervals.iter().filter(|ci| ci.contains(truth)).count();
        (percent(covered, simulations), widths.get(widths.len() / 2).copied().unwrap_or(f64::NAN))
    }
}

/// Coverage of the re-run interval, whose truth is that of the very clusters drawn.
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
                side.extend(run_side(&mut random, &latent, &ITEMS[..1]).iter().map(RunValues::present));
            }
        }
        let [a, b] = &sides;
        rerun_interval(a, Some(b)).is_ok_and(|found| found.ci95.contains(truth))
    });
    percent(covered.count(), simulations)
}

/// Coverage of Fieller's interval: a method at 3.7 between a floor at 1 and a ceiling at 4.2.
fn retention_coverage(clusters: usize, truth: f64, simulations: usize) -> f64 {
    let mut random = Random::seeded(200 + clusters as u64);
    let covered = (0..simulations).filter(|_| {
        let drawn = (0..clusters).filter_map(|_| gain_and_span(&values(&mut random, &ARMS, Random::normal)));
        retention(&drawn.collect::<Vec<_>>()).ci95.is_some_and(|ci| ci.contains(truth))
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

/// What comparisons of a side with an equal one come to, in percent of them.
#[derive(Default)]
struct FalseFindings {
    /// some dimension moves up or down by 0.3 or more
    moved: f64,
    /// some dimension moves up by as much
    rose: f64,
    /// overall or some dimension is called improved
    improved: f64,
    /// or regressed
    regressed: f64,
}

fn false_findings(clusters: usize, simulations: usize) -> FalseFindings {
    let mut random = Random::seeded(300 + clusters as u64);
    let mut found = FalseFindings::default();
    let one = 100.0 / simulations as f64;
    for _ in 0..simulations {
        let Some((overall, dimensions)) = equal_sides(&mut random, clusters) else { continue };
        let any = |verdict| {
            let judged = verdicts(std::slice::from_ref(&overall)).into_iter().chain(verdicts(&dimensions));
            judged.into_iter().any(|comparison| comparison.verdict == verdict)
        };
        let moves: Vec<f64> = dimensions.iter().map(|paired| paired.estimate().center).collect();
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
    let dimensions: Option<Vec<Paired>> = dimensions.iter().map(|pairs| Paired::between(pairs)).collect();
    Some((Paired::between(&overall)?, dimensions?))
}

/// The lines of the table that are cluster t intervals; only the paired one with its width.
const CASES: [Case; 5] = [
    Case {
        name: "paired difference of medians",
        means: &[4.2, 3.7],
        draw: Random::normal,
        combine: difference,
        estimate: interval,
    },
    Case { name: "level of medians", means: &[3.7], draw: Random::normal, combine: first, estimate: level },
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
    Case { name: "level near the ceiling", means: &[4.6], draw: Random::normal, combine: first, estimate: level },
];

fn print_coverage(simulations: usize) -> bool {
    println!("\nCoverage of nominal 95% intervals, in percent, by number of clusters:\n");
    print_row("cluster t interval", &CLUSTERS.map(|count| format!("{count:5}")));
    let mut held = true;
    for (place, case) in CASES.iter().enumerate() {
        held &= case.print(simulations, place == 0);
    }
    let rerun = CLUSTERS.map(|count| format!("{:5.1}", rerun_coverage(count, simulations)));
    print_row("re-run interval, difference", &rerun);
    let truth = true_retention();
    let kept = CLUSTERS.map(|count| format!("{:5.1}", retention_coverage(count, truth, simulations)));
    print_row(&format!("retention by Fieller (true {truth:.3})"), &kept);
    println!("\nThe re-run interval with a single cluster: {:.1}.", rerun_coverage(1, simulations));
    held
}

fn print_false_findings(simulations: usize) -> bool {
    println!("\nSix correlated dimensions and no true difference; percent of comparisons in which:\n");
    let found = CLUSTERS.map(|count| false_findings(count, simulations));
    print_row("", &CLUSTERS.map(|count| format!("{count:5}")));
    print_row("some dimension moves by 0.3 or more", &found.each_ref().map(|f| format!("{:5.1}", f.moved)));
    print_row("some dimension moves up by 0.3 or more", &found.each_ref().map(|f| format!("{:5.1}", f.rose)));
    print_row("something is called improved", &found.each_ref().map(|f| format!("{:5.1}", f.improved)));
    print_row("something is called regressed", &found.each_ref().map(|f| format!("{:5.1}", f.regressed)));
    found.iter().all(|f| f.improved <= 5.0 && f.regressed <= 5.0)
}

/// Methods of a simulated pipeline.
const METHODS: usize = 6;
/// Sizes of the sets that a gate runs on.
const GATE_CLUSTERS: [usize; 4] = [3, 5, 8, 12];

/// Their quality before: the middle of the scale, where rounding to its ends hides least of a loss.
const GATE_MEAN: f64 = 3.0;

/// What becomes of the methods between the two sides of a gate: the loss of each in points.
struct Edit {
    name: &'static str,
    losses: [f64; METHODS],
}

const EDITS: [Edit; 5] = [
    Edit { name: "false alarms: six methods answered anew, none loses", losses: [0.0; METHODS] },
    Edit { name: "one of six loses 0.9", losses: [0.9, 0.0, 0.0, 0.0, 0.0, 0.0] },
    Edit { name: "all six lose 0.3", losses: [0.3; METHODS] },
    // rounding and the ends of the scale take 0.018 of it
    Edit { name: "all six lose 0.3 in their scores (0.318 before rounding)", losses: [0.3 + 0.018; METHODS] },
    Edit { name: "all six lose 0.5", losses: [0.5; METHODS] },
];

/// How often the gate fails, in percent: any regression, by the primary test or in a family.
fn gate_failures(losses: &[f64], clusters: usize, simulations: usize) -> f64 {
    let mut random = Random::seeded(400 + clusters as u64);
    let failed = (0..simulations).filter(|_| has_regression(&family_verdicts(&edited(&mut random, losses, clusters))));
    percent(failed.count(), simulations)
}

fn has_regression(found: &FamilyVerdicts) -> bool {
    let of_methods = found.methods.iter().flat_map(|method| method.overall.iter().chain(&method.dimensions));
    of_methods.chain(&found.primary).any(|test| test.verdict == Verdict::Regressed)
}

/// The differences of methods that lose so many points each, over clusters that they share.
fn edited(random: &mut Random, losses: &[f64], clusters: usize) -> Vec<MethodDifferences> {
    let mut overall: Vec<Vec<(RunValues, RunValues)>> = vec![Vec::new(); losses.len()];
    let mut dimensions: Vec<Vec<Vec<(RunValues, RunValues)>>> = vec![vec![Vec::new(); ITEMS.len()]; losses.len()];
    for _ in 0..clusters {
        let cluster = Cluster::draw(random, Random::normal);
        for ((loss, overall), dimensions) in losses.iter().zip(&mut overall).zip(&mut dimensions) {
            let mut side = |mean: f64| {
                let latent = cluster.side(random, mean);
                run_side(random, &latent, &ITEMS)
            };
            let (after, before) = (side(GATE_MEAN - loss), side(GATE_MEAN));
            overall.push((combined_runs(&after), combined_runs(&before)));
            for (pairs, pair) in dimensions.iter_mut().zip(after.into_iter().zip(before)) {
                pairs.push(pair);
            }
        }
    }
    let paired = |(overall, dimensions): (&Vec<_>, &Vec<Vec<_>>)| MethodDifferences {
        overall: Paired::between(overall),
        dimensions: dimensions.iter().filter_map(|pairs| Paired::between(pairs)).collect(),
    };
    overall.iter().zip(&dimensions).map(paired).collect()
}

fn print_gate(simulations: usize) -> bool {
    println!("\nThe gate, six methods changed on every cluster; percent of comparisons that it fails, by clusters:\n");
    print_row("", &GATE_CLUSTERS.map(|count| format!("{count:5}")));
    let mut honest = true;
    for (place, edit) in EDITS.iter().enumerate() {
        let found = GATE_CLUSTERS.map(|count| gate_failures(&edit.losses, count, simulations));
        print_row(edit.name, &found.map(|share| format!("{share:5.1}")));
        honest &= place > 0 || found.iter().all(|share| *share <= 5.0);
    }
    for (name, loss) in [("one method alone, unchanged in quality", 0.0), ("one method alone, loses 0.9", 0.9)] {
        let found = GATE_CLUSTERS.map(|count| gate_failures(&[loss], count, simulations));
        print_row(name, &found.map(|share| format!("{share:5.1}")));
        honest &= loss > 0.0 || found.iter().all(|share| *share <= 5.0);
    }
    honest
}

/// Sizes at which a growing set is looked at.
const LOOKS: [usize; 3] = [4, 8, 12];

/// Of comparisons that are looked at while clusters are added, with this loss: how many end with a verdict, in percent,
/// and after how many clusters on average; and how many of the last size have one if looked at only then.
fn until_decided(loss: f64, simulations: usize) -> [f64; 3] {
    let mut random = Random::seeded(600);
    let (mut decided, mut clusters, mut at_once) = (0, 0, 0);
    for _ in 0..simulations {
        let pairs = overalls(&mut random, loss);
        let test = |size: usize| Some(*verdicts(&[Paired::between(pairs.get(..size)?)?]).first()?);
        let has_verdict = |test: &DifferenceTest| test.verdict != Verdict::NoEvidence;
        let stop = LOOKS.into_iter().find(|size| test(*size).is_some_and(|test| has_verdict(&test.at_look())));
        decided += usize::from(stop.is_some());
        clusters += stop.unwrap_or(LOOKS[2]);
        at_once += usize::from(test(LOOKS[2]).is_some_and(|test| has_verdict(&test)));
    }
    [percent(decided, simulations), clusters as f64 / simulations as f64, percent(at_once, simulations)]
}

/// The overalls of a method before and after an edit that loses so much, on as many clusters as the last look has.
fn overalls(random: &mut Random, loss: f64) -> Vec<(RunValues, RunValues)> {
    let pair = |_| {
        let cluster = Cluster::draw(random, Random::normal);
        let mut side = |mean: f64| {
            let latent = cluster.side(random, mean);
            combined_runs(&run_side(random, &latent, &ITEMS))
        };
        (side(GATE_MEAN - loss), side(GATE_MEAN))
    };
    (0..LOOKS[2]).map(pair).collect()
}

fn print_until_decided(simulations: usize) -> bool {
    println!("\nOne method, looked at after 4, 8 and 12 clusters (--until-decided), or after 12 at once:\n");
    print_row("true loss", &["verdict".to_owned(), "clusters".to_owned(), "at once".to_owned()]);
    let mut honest = true;
    for loss in [0.0, 0.3, 0.4, 0.5, 0.6, 0.9] {
        let [decided, clusters, at_once] = until_decided(loss, simulations);
        let cells = [format!("{decided:6.1}%"), format!("{clusters:8.1}"), format!("{at_once:6.1}%")];
        print_row(&format!("{loss:.1}"), &cells);
        honest &= loss > 0.0 || decided <= 5.0;
    }
    honest
}

/// How likely the chains of a cluster fail: half of all clusters twice as hard as the mean, the others not at all.
fn hardness(random: &mut Random) -> f64 {
    if random.uniform() < 0.5 { 2.0 } else { 0.0 }
}

/// Chains of one method that fail with these mean rates on the two sides, over clusters that are hard or easy for both.
fn chains(random: &mut Random, rates: [f64; 2], clusters: usize) -> Vec<FailureCounts> {
    let cluster = |_| {
        let hard = hardness(random);
        let [failed, baseline_failed] = rates.map(|rate| (0..RUNS).filter(|_| random.uniform() < rate * hard).count());
        FailureCounts { failed, chains: RUNS, baseline_failed, baseline_chains: RUNS }
    };
    (0..clusters).map(cluster).collect()
}

/// How often any of six methods is called less reliable, and how often a plain comparison of rates would do so, in
/// percent. The first method fails at these rates after and before, the others at the rate before.
fn reliability(rates: [f64; 2], clusters: usize, simulations: usize) -> [f64; 2] {
    let mut random = Random::seeded(500 + clusters as u64);
    let (mut tested, mut naive) = (0, 0);
    for _ in 0..simulations {
        let rates_of = |method| if method == 0 { rates } else { [rates[1]; 2] };
        let methods: Vec<_> = (0..METHODS).map(|method| chains(&mut random, rates_of(method), clusters)).collect();
        tested += usize::from(failure_tests(&methods).iter().any(|test| test.regressed));
        let rose = |method: &Vec<FailureCounts>| {
            let sum = |of: fn(&FailureCounts) -> usize| method.iter().map(of).sum::<usize>();
            sum(|counts| counts.failed) > sum(|counts| counts.baseline_failed)
        };
        naive += usize::from(methods.iter().any(rose));
    }
    [tested, naive].map(|count| percent(count, simulations))
}

fn print_reliability(simulations: usize) -> bool {
    println!(
        "\nReliability of six methods, three runs; percent of comparisons in which any is called worse, by clusters:\n"
    );
    print_row("chains that fail: before, and after of one method", &GATE_CLUSTERS.map(|count| format!("{count:5}")));
    let mut honest = true;
    for (before, after) in [(0.005, 0.005), (0.02, 0.02), (0.10, 0.10), (0.02, 0.25), (0.02, 0.40)] {
        let found = GATE_CLUSTERS.map(|count| reliability([after, before], count, simulations));
        let name = format!("{:.1}%, {:.1}%", 100.0 * before, 100.0 * after);
        print_row(&name, &found.map(|[tested, _]| format!("{tested:5.1}")));
        if before == after {
            print_row("    if a higher rate were enough", &found.map(|[_, naive]| format!("{naive:5.1}")));
            honest &= found.iter().all(|[tested, _]| *tested <= 2.5 + 0.8);
        }
    }
    honest
}

fn main() {
    let simulations = std::env::args().nth(1).and_then(|n| n.parse().ok()).filter(|n| *n > 0).unwrap_or(SIMULATIONS);
    let error = (0.95 * 0.05 / simulations as f64).sqrt() * 100.0;
    println!("{simulations} simulations; standard error of a coverage of 95%: {error:.1} points.");
    let covered = print_coverage(simulations);
    let honest = print_false_findings(simulations);
    let alert = print_gate(simulations) & print_reliability(simulations);
    let patient = print_until_decided(simulations);
    let word = |held: bool| if held { "yes" } else { "NO" };
    println!("\nEvery cluster t interval covers in 93 to 97%: {}.", word(covered));
    println!("No more than 5% false improvements, or false regressions: {}.", word(honest));
    println!("No more than 5% false alarms of the gate, and 2.5% of the reliability test: {}.", word(alert));
    println!("No more than 5% false verdicts where fixtures are added until there is one: {}.", word(patient));
}
