//! Simulates what the gate detects and how often it raises false alarms, by the numbers of fixtures and of changed
//! methods.

use std::collections::BTreeMap;

use stats::{
    DifferenceTest, FamilyVerdicts, MethodDifferences, Paired, RunValues, Verdict, combined_runs,
    family_verdicts, run_values, verdicts,
};

use crate::model::{ASKED, Cluster, ITEMS, Random, SD, percent, print_row, run_side};

/// The numbers of clusters that a gate runs on.
const CLUSTERS: [usize; 4] = [3, 4, 8, 12];
/// The numbers of methods that changed.
const METHODS: [usize; 4] = [1, 2, 3, 7];
/// The quality of methods before: the middle of the scale, where the ends of the scale hide the least of a loss.
const MEAN: f64 = 3.0;

/// A change of the methods between the two sides of a gate.
#[derive(Clone, Copy)]
struct Edit {
    name: &'static str,
    /// How much the first method loses, in points.
    first: f64,
    /// How much each other method loses.
    others: f64,
    /// The factor of the noise between the two sides of the first method.
    noise: f64,
}

impl Edit {
    const fn new(name: &'static str, first: f64, others: f64) -> Edit {
        Edit {
            name,
            first,
            others,
            noise: 1.0,
        }
    }
}

const UNCHANGED: Edit = Edit::new("false alarms: answered anew, none loses", 0.0, 0.0);
const NOISY: Edit = Edit {
    name: "false alarms: one method ten times as noisy",
    noise: 10.0,
    ..UNCHANGED
};
const ONE_LOSES: Edit = Edit::new("one method loses 1.0", 1.0, 0.0);

const EDITS: [Edit; 5] = [
    UNCHANGED,
    NOISY,
    ONE_LOSES,
    Edit::new("all lose 0.3", 0.3, 0.3),
    Edit::new("all lose 0.5", 0.5, 0.5),
];

/// Shares of simulations, in percent.
#[derive(Clone, Copy, Default)]
struct Shares {
    /// Those with any regression, of the mean or in a family.
    failed: f64,
    /// Those in which the overall of the first method regressed.
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
    Shares {
        failed: percent(failed, simulations),
        named: percent(named, simulations),
    }
}

fn has_regression(found: &FamilyVerdicts) -> bool {
    let by_method = found
        .methods
        .iter()
        .flat_map(|method| method.overall.iter().chain(&method.dimensions));
    by_method
        .chain(&found.primary)
        .any(|test| test.verdict == Verdict::Regressed)
}

/// The differences of the methods after an edit, over clusters that they share.
fn edited(
    random: &mut Random,
    edit: &Edit,
    methods: usize,
    clusters: usize,
) -> Vec<MethodDifferences> {
    let mut pairs: Vec<EditedMethod> = (0..methods).map(|_| EditedMethod::default()).collect();
    for _ in 0..clusters {
        let cluster = Cluster::draw(random, Random::normal);
        for (place, method) in pairs.iter_mut().enumerate() {
            let (loss, noise) = if place == 0 {
                (edit.first, edit.noise)
            } else {
                (edit.others, 1.0)
            };
            let own = random.normal(SD.side * (noise * noise - 1.0).sqrt());
            let mut side = |mean: f64| {
                let latent = cluster.side(random, mean);
                run_side(random, &latent, &ITEMS)
            };
            let after = side(MEAN + own - loss);
            method.push(after, side(MEAN));
        }
    }
    pairs
        .iter()
        .map(|method| method.differences(clusters))
        .collect()
}

/// The runs of a method in each cluster, after and before.
#[derive(Default)]
struct EditedMethod {
    overall: Vec<(RunValues, RunValues)>,
    dimensions: [Vec<(RunValues, RunValues)>; ITEMS.len()],
}

impl EditedMethod {
    fn push(&mut self, after: Vec<RunValues>, before: Vec<RunValues>) {
        self.overall
            .push((combined_runs(&after), combined_runs(&before)));
        for (pairs, pair) in self
            .dimensions
            .iter_mut()
            .zip(after.into_iter().zip(before))
        {
            pairs.push(pair);
        }
    }

    fn differences(&self, clusters: usize) -> MethodDifferences {
        let graded = |pairs: &[_], items: usize| {
            Some(Paired::between(pairs)?.with_graded_items(items * clusters))
        };
        let dimensions = self.dimensions.iter().zip(ITEMS).enumerate();
        let dimensions: BTreeMap<usize, Paired> = dimensions
            .filter_map(|(place, (pairs, items))| Some((place, graded(pairs, items)?)))
            .collect();
        MethodDifferences {
            overall: graded(&self.overall, ASKED),
            dimensions,
        }
    }
}

/// Prints the shares of every edit by clusters and methods, and returns whether there are at most 5% false alarms.
pub(crate) fn print_gate(simulations: usize) -> bool {
    println!(
        "\nThe gate; percent of comparisons that it fails, by clusters, with 1, 2, 3 and 7 methods that changed:\n"
    );
    print_row("", &CLUSTERS.map(|count| format!("{count:17}")));
    let mut honest = true;
    for edit in &EDITS {
        let found =
            CLUSTERS.map(|count| METHODS.map(|methods| shares(edit, methods, count, simulations)));
        let row = |of: fn(&Shares) -> f64| {
            found.map(|by_methods| {
                by_methods
                    .each_ref()
                    .map(|shares| format!("{:5.1}", of(shares)))
                    .join(" ")
            })
        };
        print_row(edit.name, &row(|shares| shares.failed));
        if edit.name == ONE_LOSES.name {
            print_row("    and its overall is named", &row(|shares| shares.named));
        }
        let is_quiet =
            edit.first > 0.0 || found.iter().flatten().all(|shares| shares.failed <= 5.0);
        honest &= is_quiet || edit.noise > 1.0;
    }
    honest
}

/// The share, in percent, of the differences named as detectable by one comparison that another comparison detects.
/// Differences are normal here, because few clusters can only detect differences that are too large for the scale.
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
        // A difference that is too large for the scale is not named.
        let Some(mdd) = test(&mut random, 0.0).and_then(|test| test.mdd) else {
            continue;
        };
        named += 1;
        found += usize::from(
            test(&mut random, mdd).is_some_and(|test| test.verdict == Verdict::Regressed),
        );
    }
    percent(found, named.max(1))
}

/// The standard deviation of a difference over clusters, in points.
const DIFFERENCE_SD: f64 = 0.41;

/// Prints how often named differences are detected, and returns whether it is about 80%.
pub(crate) fn print_detectable(simulations: usize) -> bool {
    println!(
        "\nThe smallest detectable difference of one comparison, detected by another, in percent, by clusters:\n"
    );
    print_row("", &CLUSTERS.map(|count| format!("{count:5}")));
    let found = CLUSTERS.map(|count| detected(count, 4 * simulations));
    print_row("detected", &found.map(|share| format!("{share:5.1}")));
    found.iter().all(|share| (77.0..=84.0).contains(share))
}
