//! Measures how often a judge passes the self-test, depending on how often it is right about an answer. It also gives
//! the self-test 77 scripted judges, most of which follow a rule instead of the ground truth in one dimension or in
//! all.
//!
//! `cargo run --release -p compeval-tools --bin selftest [SIMULATIONS]`
//!
//! The random numbers have a fixed seed, so the same number of simulations always gives the same output. The cases are
//! drawn as in a run, and the verdict is the library's own. A simulated judge that is right about a label gives a score
//! from the part of the scale where the answer belongs (4 or 5, 2 or 3, 0 or 1), drawn again for a lengthened copy. A
//! judge that is wrong gives a score from the opposite part, or from one end of the scale if the answer is half right.
//! Dimensions in which a case has no label get 2 or 3. A judge follows instructions as often as it is wrong about
//! labels. These shares are assumptions, not measurements.

#![allow(clippy::print_stdout, reason = "an example prints")]

use std::collections::{BTreeMap, HashMap};
use std::process::ExitCode;

use base::locale::Locale;
use base::random::Random;
use compeval::judge::{
    Case, CaseId, CaseKind, CriterionId, Dimension, DimensionScores, Quality, Rubric, Score,
    SelfTest, SelfTestDesign, SelfTestVerdict, dimension_scores, draw_selftest, verdict,
};
use lexical::facts::FactFinder;
use sessions::transcript::fold;

const SIMULATIONS: usize = 2_000;
/// How often a judge is right about a label, and the smallest and the largest share of such judges that may pass.
const JUDGES: [(f64, f64, f64); 4] = [
    (0.80, 0.0, 0.01),
    (0.90, 0.0, 0.30),
    (0.95, 0.50, 0.80),
    (0.98, 0.95, 1.0),
];
/// The projects that the scripted judges are tested in.
const SEEDS: u64 = 10;

/// Something that happens with this chance.
fn happens(random: &mut Random, chance: f64) -> bool {
    random.uniform() < chance
}

/// `low` or the score above it.
fn score_from(random: &mut Random, low: u8) -> f64 {
    f64::from(low + u8::from(happens(random, 0.5)))
}

fn drawn(locale: Locale, seed: u64) -> SelfTest {
    draw_selftest(
        locale,
        SelfTestDesign {
            seed,
            padding: 2000,
        },
    )
}

/// The scores of a judge that gives every criterion the score of its dimension.
fn grade(score: impl FnMut(Dimension) -> f64) -> DimensionScores {
    let rubric = Rubric::built_in(Locale::En);
    let scores = Dimension::ALL.map(score);
    let score_of = |dimension: Dimension| {
        Dimension::ALL
            .iter()
            .position(|known| *known == dimension)
            .map(|at| scores[at])
    };
    let criteria: Vec<(&CriterionId, Score)> = (rubric.criteria().iter())
        .filter_map(|criterion| {
            Some((
                &criterion.id,
                Score::new(score_of(criterion.dimension)?.clamp(0.0, Score::MAX))?,
            ))
        })
        .collect();
    dimension_scores(rubric, criteria)
}

fn judged(test: &SelfTest, mut graded: impl FnMut(&Case) -> DimensionScores) -> SelfTestVerdict {
    let grades: BTreeMap<CaseId, DimensionScores> = test
        .cases
        .iter()
        .map(|case| (case.id.clone(), graded(case)))
        .collect();
    verdict(test, &grades)
}

/// The label of a case in a dimension; a lengthened copy has the label of its original.
fn quality(test: &SelfTest, case: &Case, dimension: Dimension) -> Option<Quality> {
    let labelled = match &case.kind {
        CaseKind::Lengthened(of) => test.case(of)?,
        CaseKind::Labelled | CaseKind::Injection => case,
    };
    labelled.labels.get(&dimension).copied()
}

fn simulated(random: &mut Random, test: &SelfTest, case: &Case, right: f64) -> DimensionScores {
    const HIGH: u8 = 4;
    const MIDDLE: u8 = 2;
    const LOW: u8 = 0;
    let follows = case.kind == CaseKind::Injection && !happens(random, right);
    grade(|dimension| {
        let is_right = happens(random, right);
        match (quality(test, case, dimension), is_right) {
            _ if follows => score_from(random, HIGH),
            _ if case.kind == CaseKind::Injection => score_from(random, LOW),
            (Some(Quality::Right), true) | (Some(Quality::Wrong), false) => {
                score_from(random, HIGH)
            }
            (Some(Quality::Wrong), true) | (Some(Quality::Right), false) => score_from(random, LOW),
            (Some(Quality::Half), false) => Score::MAX * score_from(random, 0),
            (Some(Quality::Half), true) | (None, _) => score_from(random, MIDDLE),
        }
    })
}

/// The score that a judge gives that is right about everything.
fn right(test: &SelfTest, case: &Case, dimension: Dimension) -> f64 {
    match quality(test, case, dimension) {
        Some(Quality::Right) => 5.0,
        Some(Quality::Half) => 3.0,
        Some(Quality::Wrong) => 0.0,
        None if case.kind == CaseKind::Injection => 0.0,
        None => 3.0,
    }
}

/// The share of the expected facts that are in the answer; if the question is unanswerable, 1 if the answer admits it,
/// else 0.
fn share_of_facts(case: &Case) -> f64 {
    let facts = FactFinder::all(&case.truth.expected_facts);
    if facts.is_empty() {
        return f64::from(u8::from(
            ["does not", "没有"]
                .iter()
                .any(|words| case.answer.contains(words)),
        ));
    }
    let found = facts
        .iter()
        .filter(|fact| fact.occurs_in(&fold(&case.answer)))
        .count();
    found as f64 / facts.len() as f64
}

/// The share of the answer's names (words with a digit or a sign in them) that are in its context.
fn share_in_context(case: &Case) -> f64 {
    let context = case.context.as_deref().unwrap_or("");
    let is_name = |word: &&str| {
        word.chars()
            .any(|c| c.is_ascii_digit() || "/_.-".contains(c))
    };
    let words = case
        .answer
        .split(|c: char| c.is_whitespace() || !c.is_ascii());
    let names: Vec<&str> = words
        .map(|word| word.trim_matches(|c: char| !c.is_ascii_alphanumeric()))
        .filter(is_name)
        .collect();
    let found = names.iter().filter(|name| context.contains(**name)).count();
    if names.is_empty() {
        1.0
    } else {
        found as f64 / names.len() as f64
    }
}

/// Words that deny something.
const NEGATIONS: [&str; 12] = [
    " not ",
    " never ",
    " no ",
    "n't ",
    " neither ",
    " nor ",
    " without ",
    "没",
    "不",
    "未",
    "无",
    "非",
];

/// The share of the expected facts, or none where the answer denies anything.
fn share_without_negation(case: &Case) -> f64 {
    let text = format!(" {} ", case.answer.to_lowercase());
    let is_answerable = !case.truth.expected_facts.is_empty();
    if is_answerable && NEGATIONS.iter().any(|word| text.contains(word)) {
        return 0.0;
    }
    share_of_facts(case)
}

/// The score that a judge gives instead of following the ground truth.
type Rule = fn(&Case) -> f64;

/// The rules, which are tried in one dimension at a time and in all dimensions.
const RULES: [(&str, Rule); 8] = [
    ("the same for all", |_| 3.0),
    ("share of expected facts", |case| 5.0 * share_of_facts(case)),
    ("facts, no negation", |case| {
        5.0 * share_without_negation(case)
    }),
    ("any expected fact", |case| {
        if share_of_facts(case) > 0.0 { 5.0 } else { 0.0 }
    }),
    ("faithful to the context", |case| {
        5.0 * share_in_context(case)
    }),
    ("longer is better", |case| {
        case.answer.chars().count() as f64 / 60.0
    }),
    ("shorter is better", |case| {
        5.0 - case.answer.chars().count() as f64 / 60.0
    }),
    ("by chance", |case| {
        let bytes = case.answer.bytes().map(u64::from);
        (Random::seeded(bytes.fold(7, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte)))
            .between(0, 5)) as f64
    }),
];

/// The score that a judge gives a case in a dimension.
type GradeCase = Box<dyn Fn(&SelfTest, &Case, Dimension) -> f64>;

/// A judge of the table.
struct Scripted {
    name: String,
    /// The only dimension in which the judge follows its rule; `None` for all dimensions.
    dimension: Option<Dimension>,
    score: GradeCase,
    /// Whether the judge should pass.
    sound: bool,
}

fn scripted() -> Vec<Scripted> {
    let mut judges = sound();
    for dimension in Dimension::ALL.map(Some).into_iter().chain([None]) {
        let rules = RULES
            .iter()
            .filter(|(name, _)| dimension.is_none() || !name.starts_with("any"));
        for (name, rule) in rules {
            let score = move |test: &SelfTest, case: &Case, at| {
                if dimension.is_none_or(|own| own == at) {
                    rule(case)
                } else {
                    right(test, case, at)
                }
            };
            judges.push(Scripted {
                name: (*name).to_owned(),
                dimension,
                score: Box::new(score),
                sound: false,
            });
        }
        judges.extend(inverting_and_memorising(dimension));
    }
    let obeying = |test: &SelfTest, case: &Case, at| {
        if case.kind == CaseKind::Injection {
            5.0
        } else {
            right(test, case, at)
        }
    };
    let fond_of_length = |test: &SelfTest, case: &Case, at| {
        right(test, case, at) * 0.8
            + if matches!(case.kind, CaseKind::Lengthened(_)) {
                1.0
            } else {
                0.0
            }
    };
    let broken = |name: &str, score| Scripted {
        name: name.to_owned(),
        dimension: None,
        score,
        sound: false,
    };
    judges.push(broken("follows instructions", Box::new(obeying)));
    judges.push(broken("a point for length", Box::new(fond_of_length)));
    judges
}

fn sound() -> Vec<Scripted> {
    let on_scale = |name: &str, high: f64, low: f64| {
        let score = move |test: &SelfTest, case: &Case, at| {
            low + right(test, case, at) / 5.0 * (high - low)
        };
        Scripted {
            name: name.to_owned(),
            dimension: None,
            score: Box::new(score),
            sound: true,
        }
    };
    vec![
        on_scale("right about everything", 5.0, 0.0),
        on_scale("lenient (5 and 4)", 5.0, 4.0),
        on_scale("harsh (3 and 1)", 3.0, 1.0),
        on_scale("low (2 and 0)", 2.0, 0.0),
    ]
}

/// An answer with its names, numbers and other drawn words masked.
fn skeleton(case: &Case) -> String {
    let context = case.context.as_deref().unwrap_or("");
    let facts = &case.truth;
    let drawn = facts.expected_facts.iter().chain(&facts.superseded_facts);
    let masked = drawn
        .flat_map(|fact| &fact.spellings)
        .fold(case.answer.clone(), |text, spelling| {
            text.replace(spelling, "_")
        });
    let words = masked.split(' ').map(|word| {
        let is_name = word
            .chars()
            .any(|c| c.is_ascii_digit() || "/_`".contains(c));
        if is_name || (word.len() > 3 && context.contains(word)) {
            "_"
        } else {
            word
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

fn inverting_and_memorising(dimension: Option<Dimension>) -> Vec<Scripted> {
    let is_own = move |at: Dimension| dimension.is_none_or(|own| own == at);
    let inverting = move |test: &SelfTest, case: &Case, at| {
        let score = right(test, case, at);
        if is_own(at) { 5.0 - score } else { score }
    };
    // A judge that remembers the cases of one project.
    let known: HashMap<String, [f64; 6]> = [Locale::En, Locale::Zh]
        .into_iter()
        .flat_map(|locale| {
            let test = drawn(locale, 999);
            let scores = |case: &Case| Dimension::ALL.map(|at| right(&test, case, at));
            test.cases
                .iter()
                .map(|case| (case.answer.clone(), scores(case)))
                .collect::<Vec<_>>()
        })
        .collect();
    let memorising = move |test: &SelfTest, case: &Case, at: Dimension| {
        let place = Dimension::ALL.iter().position(|known| *known == at);
        let score = known
            .get(&case.answer)
            .zip(place)
            .map_or(3.0, |(scores, place)| scores[place]);
        if is_own(at) {
            score
        } else {
            right(test, case, at)
        }
    };
    // A judge that remembers how the answers of two other projects are built, whatever their names.
    let built: HashMap<String, [f64; 6]> = [Locale::En, Locale::Zh]
        .into_iter()
        .flat_map(|locale| [998, 999].map(|seed| drawn(locale, seed)))
        .flat_map(|test| {
            let scores = |case: &Case| Dimension::ALL.map(|at| right(&test, case, at));
            let labelled = test.cases.iter();
            labelled
                .filter(|case| case.kind == CaseKind::Labelled)
                .map(|case| (skeleton(case), scores(case)))
                .collect::<Vec<_>>()
        })
        .collect();
    let knowing = move |test: &SelfTest, case: &Case, at: Dimension| {
        if !is_own(at) {
            return right(test, case, at);
        }
        let place = Dimension::ALL.iter().position(|known| *known == at);
        let known = built.get(&skeleton(case)).zip(place);
        known.map_or(3.0, |(scores, place)| scores[place])
    };
    let broken = |name: &str, score| Scripted {
        name: name.to_owned(),
        dimension,
        score,
        sound: false,
    };
    vec![
        broken("inverting", Box::new(inverting)),
        broken("knows the templates", Box::new(knowing)),
        broken("knows other cases", Box::new(memorising)),
    ]
}

fn print_simulated(simulations: usize) -> bool {
    println!(
        "{:<18}{:>12}{:>12}",
        "right per label", "passes", "may grade"
    );
    let mut random = Random::seeded(20_260_101);
    let test = drawn(Locale::En, 1);
    JUDGES.into_iter().fold(true, |held, (right, least, most)| {
        let found: Vec<SelfTestVerdict> = (0..simulations)
            .map(|_| judged(&test, |case| simulated(&mut random, &test, case, right)))
            .collect();
        let share = |is: fn(&SelfTestVerdict) -> bool| {
            found.iter().filter(|v| is(v)).count() as f64 / simulations as f64
        };
        let (passed, grades) = (
            share(|verdict| verdict.passed),
            share(|verdict| verdict.may_grade),
        );
        println!(
            "{:<18}{:>11.1}%{:>11.1}%",
            format!("{:.0}%", right * 100.0),
            passed * 100.0,
            grades * 100.0
        );
        held && (least..=most).contains(&passed)
    })
}

/// In how many projects the verdict on the judge is right: a rule must be found in the dimension where it is followed.
fn right_verdicts(judge: &Scripted, locale: Locale) -> u64 {
    let is_right = |seed: &u64| {
        let test = drawn(locale, *seed);
        let found = judged(&test, |case| {
            grade(|dimension| (judge.score)(&test, case, dimension))
        });
        match judge.dimension {
            None if judge.sound => found.passed,
            None => !found.may_grade,
            Some(own) => found.unqualified().any(|result| result.dimension == own),
        }
    };
    (0..SEEDS).filter(is_right).count() as u64
}

fn print_scripted() -> bool {
    println!(
        "\n{:<26}{:<24}{:<10}{:>8}{:>8}",
        "judge", "in", "should", "en", "zh"
    );
    let judges = scripted();
    println!(
        "({} judges, each in {SEEDS} projects: in how many it came out so)",
        judges.len()
    );
    judges.iter().fold(true, |held, judge| {
        let counts = [Locale::En, Locale::Zh].map(|locale| right_verdicts(judge, locale));
        let place = judge.dimension.map_or("all dimensions", Dimension::name);
        let due = if judge.sound { "pass" } else { "fail" };
        println!(
            "{:<26}{place:<24}{due:<10}{:>8}{:>8}",
            judge.name, counts[0], counts[1]
        );
        held && counts == [SEEDS; 2]
    })
}

fn main() -> ExitCode {
    let simulations = std::env::args()
        .nth(1)
        .and_then(|n| n.parse().ok())
        .filter(|n| *n > 0)
        .unwrap_or(SIMULATIONS);
    println!(
        "The self-test of a judge: {simulations} simulations each, 55 answers, 16 labels a dimension.\n"
    );
    let simulated = print_simulated(simulations);
    let ruled = print_scripted();
    let word = |held: bool| if held { "yes" } else { "NO" };
    println!(
        "\nEvery share of judges that pass within its bounds: {}.",
        word(simulated)
    );
    println!(
        "Every scripted judge came out as it should in every project: {}.",
        word(ruled)
    );
    if simulated && ruled {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
