//! What the gate detects and how often it fails for nothing, by the numbers of fixtures and of methods that changed.

use std::collections::BTreeMap;

use compeval_stats::{
    DifferenceTest, FamilyVerdicts, MethodDifferences, Paired, RunValues, Verdict, combined_runs, family_verdicts,
    run_values, verdicts,
};

use crate::model::{ASKED, Cluster, ITEMS, Random, SD, percent, print_row, run_side};

/// Sizes of the sets that a gate runs on.
const CLUSTERS: [usize; 4] = [3, 4, 8, 12];
/// Numbers of methods that changed.
const METHODS: [usize; 3] = [1, 3, 7];
/// Their quality before: the middle of the scale, where rounding to its ends hides least of a loss.
const MEAN: f64 = 3.0;

/// What becomes of the methods between the two sides of a gate.
#[derive(Clone, Copy)]
struct Edit {
    name: &'static str,
    /// What the first method loses, in points.
    first: f64,
    /// What each other one loses.
    others: f64,
    /// How many times as far the first method's sides lie apart.
    noise: f64,
}

impl Edit {
    const fn new(name: &'static str, first: f64, others: f64) -> Edit {
        Edit { name, first, others, noise: 1.0 }
    }
}

const UNCHANGED: Edit = Edit::new("false alarms: answered anew, none loses", 0.0, 0.0);
const NOISY: Edit = Edit { name: "false alarms: one method ten times as noisy", noise: 10.0, ..UNCHANGED };
const ONE_LOSES: Edit = Edit::new("one method loses 1.0", 1.0, 0.0);

const EDITS: [Edit; 5] =
    [UNCHANGED, NOISY, ONE_LOSES, Edit::new("all lose 0.3", 0.3, 0.3), Edit::new("all lose 0.5", 0.5, 0.5)];

/// What happened in a share of simulations, in percent.
#[derive(Clone, Copy, Default)]
struct Shares {
    /// Any regression, of the mean or in a family.
    failed: f64,
    /// The first method's overall regressed.
    named: f64,
}

fn shares(edit: &Edit, methods: usize, clusters: usize, simulations: usize) -> Shares {
    let mut random = Random::seeded(400 + clusters as u64);
    let (mut failed, mut named) = (0, 0);
    for _ in 0..simulations {
        let found = family_verdicts(&edited(&mut random, edit, methods, clusters));
        failed += usize::from(has_regression(&found));
        let first = found.methods.first().and_then(|method| method.overall);
        named += usize::from(first.is_some_and(|test| test.verdict == Verdict::Regressed));
    }
    Shares { failed: percent(failed, simulations), named: percent(named, simulations) }
}

fn has_regression(found: &FamilyVerdicts) -> bool {
    let of_methods = found.methods.iter().flat_map(|method| method.overall.iter().chain(&method.dimensions));
    of_methods.chain(&found.primary).any(|test| test.verdict == Verdict::Regressed)
}

/// The differences of so many methods after an edit, over clusters that they share.
fn edited(random: &mut Random, edit: &Edit, methods: usize, clusters: usize) -> Vec<MethodDifferences> {
    let mut pairs: Vec<EditedMethod> = (0..methods).map(|_| EditedMethod::default()).collect();
    for _ in 0..clusters {
        let cluster = Cluster::draw(random, Random::normal);
        for (place, method) in pairs.iter_mut().enumerate() {
            let (loss, noise) = if place == 0 { (edit.first, edit.noise) } else { (edit.others, 1.0) };
            let own = random.normal(SD.side * (noise * noise - 1.0).sqrt());
            let mut side = |mean: f64| {
                let latent = cluster.side(random, mean);
                run_side(random, &latent, &ITEMS)
            };
            let after = side(MEAN + own - loss);
            method.push(after, side(MEAN));
        }
    }
    pairs.iter().map(|method| method.differences(clusters)).collect()
}

/// A method's runs in each cluster, after and before.
#[derive(Default)]
struct EditedMethod {
    overall: Vec<(RunValues, RunValues)>,
    dimensions: [Vec<(RunValues, RunValues)>; ITEMS.len()],
}

impl EditedMethod {
    fn push(&mut self, after: Vec<RunValues>, before: Vec<RunValues>) {
        self.overall.push((combined_runs(&after), combined_runs(&before)));
        for (pairs, pair) in self.dimensions.iter_mut().zip(after.into_iter().zip(before)) {
            pairs.push(pair);
        }
    }

    fn differences(&self, clusters: usize) -> MethodDifferences {
        let graded = |pairs: &[_], items: usize| Some(Paired::between(pairs)?.with_graded_items(items * clusters));
        let dimensions = self.dimensions.iter().zip(ITEMS).enumerate();
        let dimensions: BTreeMap<usize, Paired> =
            dimensions.filter_map(|(place, (pairs, items))| Some((place, graded(pairs, items)?))).collect();
        MethodDifferences { overall: graded(&self.overall, ASKED), dimensions }
    }
}

/// Every edit by fixtures and methods. Whether there are at most 5% false alarms.
pub(crate) fn print_gate(simulations: usize) -> bool {
    println!("\nThe gate; percent of comparisons that it fails, by clusters, with 1, 3 and 7 methods that changed:\n");
    print_row("", &CLUSTERS.map(|count| format!("{count:17}")));
    let mut honest = true;
    for edit in &EDITS {
        let found = CLUSTERS.map(|count| METHODS.map(|methods| shares(edit, methods, count, simulations)));
        let row = |of: fn(&Shares) -> f64| {
            found.map(|by_methods| by_methods.each_ref().map(|shares| format!("{:5.1}", of(shares))).join(" "))
        };
        print_row(edit.name, &row(|shares| shares.failed));
        if edit.name == ONE_LOSES.name {
            print_row("    and its overall is named", &row(|shares| shares.named));
        }
        let is_quiet = edit.first > 0.0 || found.iter().flatten().all(|shares| shares.failed <= 5.0);
        honest &= is_quiet || edit.noise > 1.0;
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
        let test = |size: usize| {
            Some(*verdicts(&[Paired::between(pairs.get(..size)?)?.with_graded_items(ASKED * size)]).first()?)
        };
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
        (side(MEAN - loss), side(MEAN))
    };
    (0..LOOKS[2]).map(pair).collect()
}

pub(crate) fn print_until_decided(simulations: usize) -> bool {
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

/// Of the differences that one comparison names as detectable, the share that further comparisons detect, in percent.
/// Differences are normal here, since the ends of the scale would cut off what few clusters can detect.
fn detected(clusters: usize, simulations: usize) -> f64 {
    let mut random = Random::seeded(700 + clusters as u64);
    let test = |random: &mut Random, loss: f64| -> Option<DifferenceTest> {
        let value = |value: f64| run_values(&[[Some(value)]]);
        let pair = |_| (value(random.normal(DIFFERENCE_SD) - loss), value(0.0));
        let pairs: Vec<_> = (0..clusters).map(pair).collect();
        verdicts(&[Paired::between(&pairs)?]).into_iter().next()
    };
    let (mut named, mut found) = (0, 0);
    for _ in 0..simulations {
        // none is named that the scale could not show
        let Some(mdd) = test(&mut random, 0.0).and_then(|test| test.mdd) else { continue };
        named += 1;
        found += usize::from(test(&mut random, mdd).is_some_and(|test| test.verdict == Verdict::Regressed));
    }
    percent(found, named.max(1))
}

/// Of a difference over clusters, in points.
const DIFFERENCE_SD: f64 = 0.41;

/// Prints how often named differences are detected. Whether it is about 80%.
pub(crate) fn print_detectable(simulations: usize) -> bool {
    println!("\nThe smallest detectable difference of one comparison, detected by another, in percent, by clusters:\n");
    print_row("", &CLUSTERS.map(|count| format!("{count:5}")));
    let found = CLUSTERS.map(|count| detected(count, 4 * simulations));
    print_row("detected", &found.map(|share| format!("{share:5.1}")));
    found.iter().all(|share| (77.0..=84.0).contains(share))
}
