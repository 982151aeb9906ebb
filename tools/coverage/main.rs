//! Simulates how often the 95% intervals of compeval cover the truth, how often its verdicts are wrong, and what its
//! gate detects.
//!
//! `cargo run --release -p compeval-tools --bin coverage [SIMULATIONS [SECTION …]]`, where a section is
//! `intervals`, `findings`, `gate`, `uniform`, `facts`, `detectable`, `reliability` or `looks`
//!
//! The random numbers have a fixed seed, so the same number of simulations always gives the same output. Scores come
//! from a model in which clusters (sessions), items (probes), compressions and answers all vary. They are rounded to
//! whole points between 0 and 5 like those of a judge, so they are not normal, although the intervals assume it.
//! Everything else is the library's own code.

#![allow(clippy::print_stdout)]

mod gate;
mod intervals;
mod model;
mod reliability;
mod uniform;

const SIMULATIONS: usize = 1_500;

/// A table and the claim that it checks.
struct Section {
    name: &'static str,
    claim: &'static str,
    /// Prints the table for a number of simulations, and returns whether the claim holds.
    print: fn(usize) -> bool,
}

const SECTIONS: [Section; 7] = [
    Section {
        name: "intervals",
        claim: "Every cluster t interval covers in 93 to 97%",
        print: intervals::print_coverage,
    },
    Section {
        name: "findings",
        claim: "No more than 5% false improvements, or false regressions",
        print: intervals::print_false_findings,
    },
    Section {
        name: "gate",
        claim: "No more than 5% false alarms of the gate",
        print: gate::print_gate,
    },
    Section {
        name: "uniform",
        claim: "Uniform changes found in 99%, drift recognised in 98%, no more than 2.5% false",
        print: uniform::print_uniform,
    },
    Section {
        name: "facts",
        claim: "No more than 2% of judges who read facts are warned of, and 95% of those who do not",
        print: uniform::print_false_facts,
    },
    Section {
        name: "detectable",
        claim: "Detectable differences are detected in 77 to 84%",
        print: gate::print_detectable,
    },
    Section {
        name: "reliability",
        claim: "No more than 2.5% false alarms of the reliability test",
        print: reliability::print_reliability,
    },
];

fn main() {
    let mut arguments = std::env::args().skip(1);
    let simulations = arguments
        .next()
        .and_then(|n| n.parse().ok())
        .filter(|n| *n > 0)
        .unwrap_or(SIMULATIONS);
    let wanted: Vec<String> = arguments.collect();
    let error = (0.95 * 0.05 / simulations as f64).sqrt() * 100.0;
    println!("{simulations} simulations; standard error of a coverage of 95%: {error:.1} points.");
    let is_wanted =
        |section: &&Section| wanted.is_empty() || wanted.iter().any(|name| name == section.name);
    let printed: Vec<(&str, bool)> = SECTIONS
        .iter()
        .filter(is_wanted)
        .map(|section| (section.claim, (section.print)(simulations)))
        .collect();
    println!();
    for (claim, held) in printed {
        println!("{claim}: {}.", if held { "yes" } else { "NO" });
    }
}
