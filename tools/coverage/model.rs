//! The simulated scores: clusters, items, sides, runs and judges.

use stats::{RunValues, run_values};

pub(crate) const RUNS: usize = 3;
/// For each dimension, the number of items out of ten that measure it. There are as many as the judge has dimensions,
/// which this crate does not know.
pub(crate) const ITEMS: [usize; 6] = [10, 7, 3, 10, 5, 10];
/// The weights of the two criteria of a dimension.
pub(crate) const WEIGHTS: [f64; 2] = [0.6, 0.4];
/// The number of items of a cluster.
pub(crate) const ASKED: usize = 10;
/// Standard deviations, in points: cluster, item, side × cluster, side × item, run, answer, criterion.
pub(crate) const SD: Spread = Spread {
    cluster: 0.4,
    item: 0.9,
    side: 0.2,
    side_item: 0.45,
    run: 0.3,
    answer: 0.3,
    criterion: 0.4,
};

#[derive(Clone, Copy)]
pub(crate) struct Spread {
    pub(crate) cluster: f64,
    pub(crate) item: f64,
    pub(crate) side: f64,
    pub(crate) side_item: f64,
    pub(crate) run: f64,
    pub(crate) answer: f64,
    pub(crate) criterion: f64,
}

/// Random numbers, and normal ones made from them by the method of Box and Muller.
pub(crate) struct Random {
    numbers: base::random::Random,
    spare: Option<f64>,
}

impl Random {
    pub(crate) fn seeded(seed: u64) -> Random {
        Random {
            numbers: base::random::Random::seeded(seed),
            spare: None,
        }
    }

    /// A number from 0 (excluded) to 1.
    pub(crate) fn uniform(&mut self) -> f64 {
        self.numbers.uniform() + f64::EPSILON / 4.0
    }

    /// A normal number with mean 0 and this standard deviation.
    pub(crate) fn normal(&mut self, sd: f64) -> f64 {
        if let Some(spare) = self.spare.take() {
            return spare * sd;
        }
        let (radius, angle) = (
            (-2.0 * self.uniform().ln()).sqrt(),
            std::f64::consts::TAU * self.uniform(),
        );
        self.spare = Some(radius * angle.sin());
        radius * angle.cos() * sd
    }

    /// A number with mean 0 and this standard deviation, whose distribution has a long upper tail.
    pub(crate) fn skewed(&mut self, sd: f64) -> f64 {
        (-self.uniform().ln() - 1.0) * sd
    }
}

/// How the effects of clusters are drawn.
pub(crate) type Draw = fn(&mut Random, f64) -> f64;

/// A cluster: the qualities of its items, which are the same for all sides.
pub(crate) struct Cluster {
    items: Vec<f64>,
    draw: Draw,
}

impl Cluster {
    pub(crate) fn draw(random: &mut Random, draw: Draw) -> Cluster {
        let shared = draw(random, SD.cluster);
        Cluster {
            items: (0..ASKED)
                .map(|_| shared + random.normal(SD.item))
                .collect(),
            draw,
        }
    }

    /// The latent quality of each item on one side, before it is run.
    pub(crate) fn side(&self, random: &mut Random, mean: f64) -> Vec<f64> {
        let own = (self.draw)(random, SD.side);
        self.items
            .iter()
            .map(|item| mean + item + own + random.normal(SD.side_item))
            .collect()
    }
}

/// The scores of one side on one cluster: for each dimension, the run values of a table of items × runs.
pub(crate) fn run_side(
    random: &mut Random,
    latent: &[f64],
    dimensions: &[usize],
) -> Vec<RunValues> {
    let shifts: Vec<f64> = (0..RUNS).map(|_| random.normal(SD.run)).collect();
    let mut tables: Vec<Vec<Vec<Option<f64>>>> = dimensions.iter().map(|_| Vec::new()).collect();
    for (place, item) in latent.iter().enumerate() {
        let answers: Vec<f64> = shifts
            .iter()
            .map(|shift| item + shift + random.normal(SD.answer))
            .collect();
        for (table, _) in tables
            .iter_mut()
            .zip(dimensions)
            .filter(|(_, items)| place < **items)
        {
            table.push(
                answers
                    .iter()
                    .map(|answer| Some(score(random, *answer)))
                    .collect(),
            );
        }
    }
    tables.iter().map(|table| run_values(table)).collect()
}

/// The score of a judge: the weighted sum of two criteria, each rounded to a whole point of the scale.
fn score(random: &mut Random, answer: f64) -> f64 {
    WEIGHTS
        .iter()
        .map(|weight| {
            weight
                * (answer + random.normal(SD.criterion))
                    .round()
                    .clamp(0.0, 5.0)
        })
        .sum()
}

/// The expected score of an item over all runs. It is computed from the probability of each rounding, not simulated.
pub(crate) fn expected(latent: &[f64]) -> f64 {
    let sd = (SD.run.powi(2) + SD.answer.powi(2) + SD.criterion.powi(2)).sqrt();
    let of_item = |x: &f64| -> f64 {
        (0..5)
            .map(|step| normal_cdf((x - f64::from(step) - 0.5) / sd))
            .sum()
    };
    latent.iter().map(of_item).sum::<f64>() / latent.len() as f64
}

/// The formula 7.1.26 of Abramowitz and Stegun, whose error is at most 1.5e-7.
fn normal_cdf(x: f64) -> f64 {
    let z = x.abs() / std::f64::consts::SQRT_2;
    let t = 1.0 / (1.0 + 0.3275911 * z);
    let terms = [
        1.061405429,
        -1.453152027,
        1.421413741,
        -0.284496736,
        0.254829592,
    ];
    let tail = terms.iter().fold(0.0, |sum, term| (sum + term) * t) * (-z * z).exp();
    if x < 0.0 {
        tail / 2.0
    } else {
        1.0 - tail / 2.0
    }
}

/// The cluster values of several sides, on one drawn cluster.
pub(crate) fn values(random: &mut Random, means: &[f64], draw: Draw) -> Vec<f64> {
    let cluster = Cluster::draw(random, draw);
    let side = |mean: &f64| {
        let latent = cluster.side(random, *mean);
        run_side(random, &latent, &ITEMS[..1])
            .first()
            .and_then(RunValues::cluster_value)
    };
    means.iter().filter_map(side).collect()
}

/// `count` out of `of`, in percent.
pub(crate) fn percent(count: usize, of: usize) -> f64 {
    100.0 * count as f64 / of as f64
}

/// Prints one line of a table.
pub(crate) fn print_row(name: &str, cells: &[String]) {
    println!("| {name:<58} | {} |", cells.join(" | "));
}
