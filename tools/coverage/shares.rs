//! Simulates verdicts on shares of what was needed later: false alarms, and how often changes are found.

use compeval_stats::{Paired, RunValues, Verdict, run_values, share_verdicts};

use crate::model::{Random, percent, print_row};

/// The numbers of clusters that are compared.
const CLUSTERS: [usize; 4] = [3, 4, 8, 12];
/// The number of details of a session, few or many. If there are few, equal changes happen by chance.
const DETAILS: [usize; 2] = [3, 20];
/// The share of the details that contexts have.
const KEPT: f64 = 0.6;

/// How one side differs from the other.
#[derive(Clone, Copy)]
enum Change {
    /// Both sides keep each detail by chance; the probability on this side is lower by this much.
    ByChance(f64),
    /// Every session loses exactly this share.
    Equal(f64),
}

fn regressed(change: Change, clusters: usize, details: usize, simulations: usize) -> f64 {
    let mut random = Random::seeded(900 + (clusters * details) as u64);
    let found = (0..simulations).filter(|_| {
        let pairs: Vec<(RunValues, RunValues)> = (0..clusters)
            .map(|_| pair(&mut random, change, details))
            .collect();
        let tests = Paired::between(&pairs)
            .map(|paired| share_verdicts(&[paired]))
            .unwrap_or_default();
        tests.iter().any(|test| test.verdict == Verdict::Regressed)
    });
    percent(found.count(), simulations)
}

/// The shares of details that contexts of one session have, after and before.
fn pair(random: &mut Random, change: Change, details: usize) -> (RunValues, RunValues) {
    let mut share = |kept: f64| {
        let count = (0..details).filter(|_| random.uniform() < kept).count();
        count as f64 / details as f64
    };
    let before = share(KEPT);
    let after = match change {
        Change::ByChance(loss) => share(KEPT - loss),
        Change::Equal(loss) => before - loss,
    };
    let value = |share: f64| run_values(&[[Some(share)]]);
    (value(after), value(before))
}

/// Prints the regressions of every change by clusters, and returns whether there are at most 2.5% false alarms.
pub(crate) fn print_shares(simulations: usize) -> bool {
    println!(
        "\nShares with 3 and with 20 details a session; percent of comparisons with a regression, by clusters:\n"
    );
    print_row("", &CLUSTERS.map(|count| format!("{count:11}")));
    let mut honest = true;
    let changes = [
        ("nothing lost", Change::ByChance(0.0)),
        ("0.15 lost by chance", Change::ByChance(0.15)),
        ("0.30 lost by chance", Change::ByChance(0.3)),
        ("0.15 lost in every session", Change::Equal(0.15)),
        ("0.30 lost in every session", Change::Equal(0.3)),
        ("0.50 lost in every session", Change::Equal(0.5)),
    ];
    for (name, change) in changes {
        let found = CLUSTERS.map(|clusters| {
            DETAILS.map(|details| regressed(change, clusters, details, simulations))
        });
        print_row(
            name,
            &found.map(|shares| shares.map(|share| format!("{share:5.1}")).join(" ")),
        );
        let is_null = matches!(change, Change::ByChance(loss) if loss == 0.0);
        honest &= !is_null || found.iter().flatten().all(|share| *share <= 2.5);
    }
    honest
}
