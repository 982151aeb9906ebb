//! Simulates how often methods are found less reliable.

use stats::{FailureCounts, failure_tests};

use crate::model::{RUNS, Random, percent, print_row};

/// The number of methods of a simulated pipeline.
const METHODS: usize = 6;
/// The numbers of clusters that a gate runs on.
const CLUSTERS: [usize; 4] = [3, 5, 8, 12];

/// The factor of the failure rate of a cluster's chains: 2 for half of all clusters, 0 for the others.
fn hardness(random: &mut Random) -> f64 {
    if random.uniform() < 0.5 { 2.0 } else { 0.0 }
}

/// The chains of one method that fail with these mean rates on the two sides. A cluster is hard or easy for both sides.
fn chains(random: &mut Random, rates: [f64; 2], clusters: usize) -> Vec<FailureCounts> {
    let cluster = |_| {
        let hard = hardness(random);
        let [failed, baseline_failed] =
            rates.map(|rate| (0..RUNS).filter(|_| random.uniform() < rate * hard).count());
        FailureCounts {
            failed,
            chains: RUNS,
            baseline_failed,
            baseline_chains: RUNS,
        }
    };
    (0..clusters).map(cluster).collect()
}

/// How often any of six methods is found less reliable, and how often a plain comparison of rates would find it, both
/// in percent. The first method fails at these rates after and before; the others fail at the rate before.
fn reliability(rates: [f64; 2], clusters: usize, simulations: usize) -> [f64; 2] {
    let mut random = Random::seeded(500 + clusters as u64);
    let (mut tested, mut naive) = (0, 0);
    for _ in 0..simulations {
        let rates_of = |method| if method == 0 { rates } else { [rates[1]; 2] };
        let methods: Vec<_> = (0..METHODS)
            .map(|method| chains(&mut random, rates_of(method), clusters))
            .collect();
        tested += usize::from(failure_tests(&methods).iter().any(|test| test.regressed));
        let rose = |method: &Vec<FailureCounts>| {
            let sum = |of: fn(&FailureCounts) -> usize| method.iter().map(of).sum::<usize>();
            sum(|counts| counts.failed) > sum(|counts| counts.baseline_failed)
        };
        naive += usize::from(methods.iter().any(rose));
    }
    [tested, naive].map(|count| percent(count, simulations))
}

pub(crate) fn print_reliability(simulations: usize) -> bool {
    println!(
        "\nReliability of six methods, three runs; percent of comparisons in which any is called worse, by clusters:\n"
    );
    print_row(
        "chains that fail: before, and after of one method",
        &CLUSTERS.map(|count| format!("{count:5}")),
    );
    let mut honest = true;
    for (before, after) in [
        (0.005, 0.005),
        (0.02, 0.02),
        (0.10, 0.10),
        (0.02, 0.25),
        (0.02, 0.40),
    ] {
        let found = CLUSTERS.map(|count| reliability([after, before], count, simulations));
        let name = format!("{:.1}%, {:.1}%", 100.0 * before, 100.0 * after);
        print_row(&name, &found.map(|[tested, _]| format!("{tested:5.1}")));
        if before == after {
            print_row(
                "    if a higher rate were enough",
                &found.map(|[_, naive]| format!("{naive:5.1}")),
            );
            honest &= found.iter().all(|[tested, _]| *tested <= 2.5 + 0.8);
        }
    }
    honest
}
