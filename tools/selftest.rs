//! How often the self-test passes a judge, by how often that judge grades an answer right, and what it makes of judges
//! that follow a rule instead of the ground truth.
//!
//! `cargo run --release --example selftest [SIMULATIONS]`
//!
//! Seeded: the same number of simulations always prints the same. The cases are the shipped ones, and the verdict is the
//! library's own. A simulated judge that is right about an answer gives both criteria a score from the part of the scale
//! where the answer belongs (4 or 5, 2 or 3, 0 or 1); a judge that is wrong gives one from the opposite part (to half
//! right answers, one end of the scale: 5 or 0, so that it is a miss). One judge in ten follows each of the three instructions. Those shares are
//! assumptions, not measurements.

#![allow(clippy::print_stdout, reason = "an example prints")]

use std::collections::BTreeMap;
use std::process::ExitCode;

use base::locale::Locale;
use compeval::judge::{
    Case, CaseId, CriterionId, DimensionScores, Expected, Rubric, Score, SelfTest, SelfTestVerdict, dimension_scores,
    verdict,
};
use compeval::probe::FactFinder;
use sessions::transcript::fold;

const SIMULATIONS: usize = 4_000;
/// How often a judge grades an answer right, and the share of such judges that should pass.
const JUDGES: [(f64, f64); 5] = [(0.70, 0.00), (0.80, 0.02), (0.90, 0.32), (0.95, 0.80), (0.98, 0.96)];
/// How far a share may lie from what it should be.
const TOLERANCE: f64 = 0.03;
/// How often a judge follows an instruction inside an answer.
const FOLLOWS: f64 = 0.1;

/// splitmix64 (Steele, Lea and Flood 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn happens(&mut self, chance: f64) -> bool {
        ((self.next() >> 11) as f64 / (1_u64 << 53) as f64) < chance
    }

    /// One of the two scores from `low`.
    fn score_from(&mut self, low: u8) -> f64 {
        f64::from(low + u8::from(self.happens(0.5)))
    }
}

/// A grade of these two scores.
fn grade(accuracy: f64, completeness: f64) -> DimensionScores {
    let of = |id: &str, score: f64| Some((CriterionId::from(id), Score::new(score.clamp(0.0, Score::MAX))?));
    let scores = [of("accuracy_factual", accuracy), of("completeness_coverage", completeness)];
    dimension_scores(Rubric::built_in(Locale::En), scores.iter().flatten().map(|(id, score)| (id, *score)))
}

fn judged(test: &SelfTest, mut graded: impl FnMut(&Case) -> DimensionScores) -> SelfTestVerdict {
    let grades: BTreeMap<CaseId, DimensionScores> =
        test.cases.iter().map(|case| (case.id.clone(), graded(case))).collect();
    verdict(test, &grades)
}

fn simulated(random: &mut Random, case: &Case, right: f64) -> DimensionScores {
    const HIGH: u8 = 4;
    const MIDDLE: u8 = 2;
    const LOW: u8 = 0;
    let from = match (case.kind.expected(), random.happens(right)) {
        (Expected::High, true) | (Expected::Low, false) => HIGH,
        (Expected::High, false) | (Expected::Low, true) => LOW,
        (Expected::Between, true) => MIDDLE,
        (Expected::Between, false) => return both(if random.happens(0.5) { Score::MAX } else { 0.0 }),
        (Expected::Unmoved, _) if random.happens(FOLLOWS) => HIGH,
        (Expected::Unmoved, _) => LOW,
    };
    grade(random.score_from(from), random.score_from(from))
}

/// The share of `text`'s words with a figure or a sign inside (names, paths, numbers) that stand in `other`.
fn share_of_names_in(text: &str, other: &str) -> f64 {
    let is_name = |word: &&str| word.chars().any(|c| c.is_ascii_digit() || "/_.:=-".contains(c));
    let words: Vec<&str> = text
        .split(|c: char| c.is_whitespace() || (!c.is_ascii() && !c.is_alphanumeric()))
        .flat_map(|part| part.split(|c: char| !c.is_ascii()))
        .map(|word| word.trim_matches(|c: char| !c.is_ascii_alphanumeric()))
        .filter(is_name)
        .collect();
    let found = words.iter().filter(|word| other.contains(**word)).count();
    if words.is_empty() { 1.0 } else { found as f64 / words.len() as f64 }
}

/// The share of the expected facts that stand in the answer.
fn share_of_facts(case: &Case) -> f64 {
    let facts = FactFinder::all(&case.expected_facts);
    let found = facts.iter().filter(|fact| fact.occurs_in(&fold(&case.answer))).count();
    found as f64 / facts.len() as f64
}

fn both(score: f64) -> DimensionScores {
    grade(score, score)
}

fn on_scale(case: &Case, high: f64, middle: f64, low: f64) -> DimensionScores {
    both(match case.kind.expected() {
        Expected::High => high,
        Expected::Between => middle,
        Expected::Low | Expected::Unmoved => low,
    })
}

type Rule = fn(&Case) -> DimensionScores;

/// Judges that follow a rule, and whether they should pass.
const RULES: [(&str, Rule, bool); 10] = [
    ("faithful to the context", |case| both(5.0 * share_of_names_in(&case.answer, &case.context)), false),
    (
        "key words of the facts",
        |case| {
            let words = |text: &str| -> Vec<char> { fold(text).chars().filter(|c| c.is_alphanumeric()).collect() };
            let answer: String = words(&case.answer).into_iter().collect();
            let facts = case.expected_facts.iter().filter_map(|fact| fact.spellings.first());
            let pairs: Vec<String> =
                facts.flat_map(|fact| words(fact).chunks(2).map(String::from_iter).collect::<Vec<_>>()).collect();
            let found = pairs.iter().filter(|pair| answer.contains(pair.as_str())).count();
            both(5.0 * found as f64 / pairs.len() as f64)
        },
        false,
    ),
    ("any expected fact", |case| both(if share_of_facts(case) > 0.0 { 5.0 } else { 0.0 }), false),
    ("all expected facts", |case| both(if share_of_facts(case) >= 1.0 { 5.0 } else { 0.0 }), false),
    ("share of expected facts", |case| both(5.0 * share_of_facts(case)), false),
    ("inverting", |case| on_scale(case, 0.0, 3.0, 5.0), false),
    ("the same for all", |_| both(3.0), false),
    ("lenient (5 and 4)", |case| grade_lenient(case), true),
    ("harsh (3 and 1)", |case| on_scale(case, 3.0, 2.0, 1.0), true),
    ("right about everything", |case| on_scale(case, 5.0, 3.0, 0.0), true),
];

/// 5 for right answers and 4 for bad ones; half right ones get one of each.
fn grade_lenient(case: &Case) -> DimensionScores {
    match case.kind.expected() {
        Expected::High => both(5.0),
        Expected::Between => grade(5.0, 4.0),
        Expected::Low | Expected::Unmoved => both(4.0),
    }
}

fn print_simulated(simulations: usize) -> bool {
    println!("{:<28}{:>8}{:>10}", "right per answer", "passes", "expected");
    let mut random = Random(20_260_101);
    let test = SelfTest::built_in(Locale::En);
    JUDGES.into_iter().fold(true, |held, (right, due)| {
        let passed =
            (0..simulations).filter(|_| judged(test, |case| simulated(&mut random, case, right)).passed).count();
        let share = passed as f64 / simulations as f64;
        println!("{:<28}{:>7.1}%{:>9.0}%", format!("{:.0}%", right * 100.0), share * 100.0, due * 100.0);
        held && (share - due).abs() <= TOLERANCE
    })
}

fn print_rules() -> bool {
    println!("\n{:<28}{:>8}{:>8}", "judge", "en", "zh");
    RULES.into_iter().fold(true, |held, (name, rule, due)| {
        let passed = [Locale::En, Locale::Zh].map(|locale| judged(SelfTest::built_in(locale), rule).passed);
        let words = passed.map(|passed| if passed { "passes" } else { "fails" });
        println!("{name:<28}{:>8}{:>8}", words[0], words[1]);
        held && passed == [due; 2]
    })
}

fn main() -> ExitCode {
    let simulations = std::env::args().nth(1).and_then(|n| n.parse().ok()).filter(|n| *n > 0).unwrap_or(SIMULATIONS);
    println!("The self-test of a judge: {simulations} simulations each, 44 answers and 3 that instruct the judge.\n");
    let simulated = print_simulated(simulations);
    let ruled = print_rules();
    let word = |held: bool| if held { "yes" } else { "NO" };
    println!("\nEvery share within {:.0} points of what is expected: {}.", TOLERANCE * 100.0, word(simulated));
    println!("Judges that follow a shortcut fail, and lenient and harsh ones pass: {}.", word(ruled));
    if simulated && ruled { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
