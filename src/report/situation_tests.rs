//! Designed situations, each with its sentence: none may contradict an interval that is printed beside it.

use crate::judge::Dimension;
use crate::report::headline;
use crate::report::styled::wrap_lines;
use crate::results::fakes::{NO_LINES, design, row};
use crate::results::*;
use stats::{DifferenceTest, Separation, Verdict};

/// The dimensions that the situations grade.
const DIMENSIONS: [Dimension; 3] = [
    Dimension::Accuracy,
    Dimension::Completeness,
    Dimension::Continuity,
];
const PROBES: u32 = 10;
const RUNS: u32 = 3;

/// One side: methods with their strategies, on a number of fixtures.
#[derive(Clone)]
struct Side {
    methods: Vec<(&'static str, &'static str)>,
    fixtures: usize,
    runs: u32,
    /// The level of a method in a fixture and a dimension; `None` where the cells are missing.
    level: fn(&str, usize, usize) -> Option<f64>,
    /// How much runs vary.
    noise: f64,
    tokens: u64,
}

impl Side {
    fn new(
        methods: &[(&'static str, &'static str)],
        fixtures: usize,
        level: fn(&str, usize, usize) -> Option<f64>,
    ) -> Side {
        Side {
            methods: methods.to_vec(),
            fixtures,
            runs: RUNS,
            level,
            noise: 0.15,
            tokens: 200,
        }
    }

    fn design(&self) -> Design {
        let names: Vec<String> = (1..=self.fixtures).map(|n| format!("f{n}")).collect();
        let fixtures: Vec<(&str, u32)> = names.iter().map(|name| (name.as_str(), PROBES)).collect();
        design(&self.methods, &fixtures, self.runs)
    }

    fn set(&self, label: &str) -> ResultSet {
        self.set_of(Manifest::begin(label, "t", self.design()), label)
    }

    fn set_of(&self, manifest: Manifest, seed: &str) -> ResultSet {
        let mut rows = Vec::new();
        for (method, _) in &self.methods {
            for fixture in 0..self.fixtures {
                for run in 1..=self.runs {
                    rows.extend(self.rows(method, fixture, run, seed));
                }
            }
        }
        ResultSet::gather(manifest, rows.into_iter().map(Ok::<Row, FolderError>)).unwrap()
    }

    fn rows(&self, method: &str, fixture: usize, run: u32, seed: &str) -> Vec<Row> {
        let of_probe = |probe: u32| {
            let mut scores = Vec::new();
            for (place, dimension) in DIMENSIONS.into_iter().enumerate() {
                let level = (self.level)(method, fixture, place)?;
                let noise = wobble(&[seed, method, &format!("{fixture} {place} {run} {probe}")]);
                scores.push((dimension, (level + self.noise * noise).clamp(0.0, 5.0)));
            }
            Some(Row {
                probe: format!("p{probe}"),
                context_tokens: Some(self.tokens),
                ..row(&format!("f{}", fixture + 1), method, run, &scores)
            })
        };
        // Half of the answers of a cell without a level are not graded.
        (1..=PROBES).filter_map(of_probe).collect()
    }
}

/// A number from −1 to 1 that the parts decide.
fn wobble(parts: &[&str]) -> f64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in parts.iter().flat_map(|part| part.bytes().chain([0])) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash ^= hash >> 29;
    hash = hash.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (hash >> 33) as f64 / f64::from(u32::MAX >> 2) - 1.0
}

/// How hard a fixture is, which is the same for all methods.
fn ease(fixture: usize) -> f64 {
    [3.9, 2.2, 3.4, 1.9, 4.0, 2.8, 3.1, 2.5]
        .get(fixture % 8)
        .copied()
        .unwrap_or(3.0)
}

/// What one method does in one fixture differently from another.
fn own(method: &str, fixture: usize) -> f64 {
    0.12 * wobble(&[method, &fixture.to_string()])
}

const TWO: &[(&str, &str)] = &[("alpha", "command"), ("beta", "command")];
const THREE: &[(&str, &str)] = &[
    ("alpha", "command"),
    ("beta", "command"),
    ("gamma", "command"),
];
const EIGHT: &[(&str, &str)] = &[
    ("m1", "command"),
    ("m2", "command"),
    ("m3", "command"),
    ("m4", "command"),
    ("m5", "command"),
    ("m6", "command"),
    ("m7", "command"),
    ("m8", "command"),
];
const SCALED: &[(&str, &str)] = &[
    ("alpha", "command"),
    ("beta", "command"),
    ("full", "full"),
    ("none", "none"),
];
const LONG: &[(&str, &str)] = &[
    ("anchored-iterative-with-artifact-index", "command"),
    ("regenerative-with-large-budget-of-tokens", "command"),
    ("sliding-window-of-the-newest-messages", "command"),
];

fn anchor(method: &str, fixture: usize) -> Option<f64> {
    match method {
        "full" => Some(4.4 + 0.05 * own("full", fixture)),
        "none" => Some(0.4),
        _ => None,
    }
}

fn equal(method: &str, fixture: usize, _: usize) -> Option<f64> {
    anchor(method, fixture).or(Some(ease(fixture) + own(method, fixture)))
}

fn apart(method: &str, fixture: usize, _: usize) -> Option<f64> {
    let loss = match method {
        "beta" => 0.8,
        "gamma" => 0.5,
        _ => 0.0,
    };
    anchor(method, fixture).or(Some(ease(fixture) - loss + own(method, fixture)))
}

fn one_lower(method: &str, fixture: usize, _: usize) -> Option<f64> {
    let loss = if method == "m8" { 0.14 } else { 0.0 };
    Some(ease(fixture) - loss + own(method, fixture))
}

fn constant(method: &str, _: usize, _: usize) -> Option<f64> {
    Some(if method == "beta" { 3.0 } else { 4.0 })
}

fn same(_: &str, _: usize, _: usize) -> Option<f64> {
    Some(3.5)
}

fn above_full(method: &str, fixture: usize, _: usize) -> Option<f64> {
    match method {
        "alpha" => Some(4.9),
        _ => equal(method, fixture, 0),
    }
}

fn near_full(method: &str, fixture: usize, _: usize) -> Option<f64> {
    match method {
        "alpha" => Some(4.4 + 0.4 * own("alpha", fixture)),
        _ => equal(method, fixture, 0),
    }
}

fn unscaled(method: &str, fixture: usize, _: usize) -> Option<f64> {
    match method {
        "full" | "none" => Some(2.0 + 0.1 * own(method, fixture)),
        _ => equal(method, fixture, 0),
    }
}

fn half_graded(method: &str, fixture: usize, _: usize) -> Option<f64> {
    fixture
        .is_multiple_of(2)
        .then(|| ease(fixture) + own(method, fixture))
}

fn gain(method: &str, fixture: usize, _: usize) -> Option<f64> {
    Some(ease(fixture) + 0.8 + own(method, fixture))
}

fn loss_of_all(method: &str, fixture: usize, _: usize) -> Option<f64> {
    Some(ease(fixture) - 0.8 + own(method, fixture))
}

fn loss_in_one(method: &str, fixture: usize, dimension: usize) -> Option<f64> {
    let loss = if dimension == 2 { 0.75 } else { -0.1 };
    Some(ease(fixture) - loss + own(method, fixture))
}

fn two_up_one_down(method: &str, fixture: usize, dimension: usize) -> Option<f64> {
    let gain = if dimension == 2 { -0.7 } else { 0.6 };
    Some(ease(fixture) + gain + own(method, fixture))
}

fn small_loss(method: &str, fixture: usize, _: usize) -> Option<f64> {
    Some(ease(fixture) - 0.15 + own(method, fixture))
}

fn uneven_small_loss(method: &str, fixture: usize, _: usize) -> Option<f64> {
    let loss = [0.05, 0.5, 0.1, 0.4, 0.3, 0.2, 0.45, 0.15][fixture % 8];
    Some(ease(fixture) - loss + own(method, fixture))
}

fn collapse(method: &str, fixture: usize, _: usize) -> Option<f64> {
    let collapsed = method == "alpha" && fixture == 0;
    Some(if collapsed {
        0.6
    } else {
        ease(fixture) + own(method, fixture)
    })
}

fn collapse_beside_gain(method: &str, fixture: usize, _: usize) -> Option<f64> {
    match method {
        "beta" => gain(method, fixture, 0),
        _ => collapse(method, fixture, 0),
    }
}

fn missing_of_one(method: &str, fixture: usize, _: usize) -> Option<f64> {
    let is_missing = matches!(method, "gamma" | "m5") && fixture % 2 == 1;
    (!is_missing).then(|| ease(fixture) + own(method, fixture))
}

fn one_of_eight_loses(method: &str, fixture: usize, _: usize) -> Option<f64> {
    let loss = if method == "m5" { 1.5 } else { 0.0 };
    Some(ease(fixture) - loss + own(method, fixture))
}

fn mixed(method: &str, fixture: usize, _: usize) -> Option<f64> {
    let change = if method == "alpha" { 0.8 } else { -0.8 };
    Some(ease(fixture) + change + own(method, fixture))
}

/// A situation with its name.
struct Situation {
    name: &'static str,
    judged: Side,
    baseline: Option<Side>,
    edit: fn(&mut Manifest),
}

fn alone(name: &'static str, judged: Side) -> Situation {
    Situation {
        name,
        judged,
        baseline: None,
        edit: |_| {},
    }
}

/// Methods at other levels than in the baseline, where all are equal.
fn changed(
    name: &'static str,
    methods: &[(&'static str, &'static str)],
    fixtures: usize,
    level: fn(&str, usize, usize) -> Option<f64>,
) -> Situation {
    Situation {
        baseline: Some(Side::new(methods, fixtures, equal)),
        ..alone(name, Side::new(methods, fixtures, level))
    }
}

fn situations() -> Vec<Situation> {
    let quiet = |side: Side| Side { noise: 0.0, ..side };
    let once = |side: Side| Side { runs: 1, ..side };
    let of = Side::new;
    let mut all = vec![
        alone("two methods .8 apart, 8 fixtures", of(TWO, 8, apart)),
        alone("two methods .8 apart, 3 fixtures", of(TWO, 3, apart)),
        alone("two methods .8 apart, 2 fixtures", of(TWO, 2, apart)),
        alone("two methods .8 apart, 1 fixture", of(TWO, 1, apart)),
        alone("two equal methods", of(TWO, 8, equal)),
        alone("three methods apart", of(THREE, 8, apart)),
        alone("three equal methods, 3 fixtures", of(THREE, 3, equal)),
        alone("eight equal methods, 8 fixtures", of(EIGHT, 8, equal)),
        alone("eight equal methods, 3 fixtures", of(EIGHT, 3, equal)),
        alone("one of eight a little lower", of(EIGHT, 8, one_lower)),
        alone("one of eight far lower", of(EIGHT, 8, one_of_eight_loses)),
        alone("every fixture the same", quiet(of(TWO, 8, constant))),
        alone(
            "every fixture the same, 3 fixtures",
            quiet(of(TWO, 3, constant)),
        ),
        alone("methods without any difference", quiet(of(TWO, 8, same))),
        alone("with full and none", of(SCALED, 8, apart)),
        alone("above the whole transcript", of(SCALED, 8, above_full)),
        alone("about at the whole transcript", of(SCALED, 8, near_full)),
        alone("full and none alike", of(SCALED, 8, unscaled)),
        alone("half of the cells failed", of(TWO, 8, half_graded)),
        alone(
            "cells of one of three missing",
            of(THREE, 8, missing_of_one),
        ),
        alone("long names", of(LONG, 8, equal)),
        alone("one run", once(of(TWO, 8, apart))),
        Situation {
            edit: |manifest| manifest.design.answerers[0].lexical = true,
            ..alone("built-in rules", of(TWO, 8, apart))
        },
        changed("a gain, 8 fixtures", TWO, 8, gain),
        changed("a gain, 3 fixtures", TWO, 3, gain),
        changed("a gain, 1 fixture", TWO, 1, gain),
        changed("a loss, 8 fixtures", TWO, 8, loss_of_all),
        changed("a loss of eight methods", EIGHT, 8, loss_of_all),
        changed("a loss in one dimension", TWO, 8, loss_in_one),
        changed("a gain in two and a loss in one", TWO, 8, two_up_one_down),
        changed("a small sure loss", TWO, 8, small_loss),
        changed("a small uneven loss", TWO, 8, uneven_small_loss),
        changed("one collapsed fixture of 8", TWO, 8, collapse),
        changed("one collapsed fixture of 3", TWO, 3, collapse),
        changed("a collapse beside a gain", TWO, 8, collapse_beside_gain),
        changed("missing cells of one of three", THREE, 8, missing_of_one),
        changed("missing cells of one of eight", EIGHT, 8, missing_of_one),
        changed("one of eight loses", EIGHT, 8, one_of_eight_loses),
        changed("one up, one down", TWO, 8, mixed),
        changed("half of the cells failed, compared", TWO, 8, half_graded),
        changed("noise", TWO, 8, equal),
        changed("noise, 3 fixtures", TWO, 3, equal),
        changed("noise of eight methods", EIGHT, 8, equal),
        changed("a loss, with long names", LONG, 8, loss_of_all),
    ];
    let longer = Side {
        tokens: 300,
        ..of(TWO, 8, gain)
    };
    all.push(Situation {
        baseline: Some(of(TWO, 8, equal)),
        ..alone("a gain with more tokens", longer)
    });
    let sides = [
        ("a method gone", TWO, THREE),
        ("a method added", THREE, TWO),
    ];
    for (name, judged, baseline) in sides {
        all.push(Situation {
            baseline: Some(of(baseline, 8, equal)),
            ..alone(name, of(judged, 8, equal))
        });
    }
    all
}

/// What a situation gives: the summary, its manifest, and the sentence.
fn outcome(situation: &Situation) -> (Summary, Manifest, Headline) {
    let Situation {
        judged,
        baseline,
        edit,
        name,
    } = situation;
    let mut manifest = Manifest::begin("now", "t", judged.design());
    edit(&mut manifest);
    let set = judged.set_of(manifest.clone(), name);
    let before = baseline.as_ref().map(|side| side.set("before"));
    let comparison = before.as_ref().map(|before| {
        let side = |set| crate::results::Side { set, method: None };
        compare(side(&set), side(before), ComparisonScope::All, &NO_LINES).unwrap()
    });
    let mut summary = summarize(&set, comparison);
    let found = headline(&summary, &manifest);
    summary.headline = Some(found.clone());
    (summary, manifest, found)
}

/// The clause that begins with, or contains, these words.
fn clause<'t>(text: &'t str, words: &str) -> Option<&'t str> {
    text.split("; ")
        .flat_map(|part| part.split(". "))
        .find(|part| part.to_lowercase().contains(words))
}

/// Whether a clause names a method, or says that it names only some.
fn names(clause: Option<&str>, method: &str) -> bool {
    clause.is_some_and(|clause| {
        let words = clause.split(|c: char| !(c.is_alphanumeric() || c == '-'));
        words.clone().any(|word| word == method) || clause.contains(" more")
    })
}

fn excludes_zero(test: &DifferenceTest) -> bool {
    test.ci95.is_some_and(|ci| !ci.contains(0.0))
}

/// What the sentence denies although an interval shows it, or claims although one denies it.
fn contradictions(summary: &Summary, found: &Headline) -> Vec<String> {
    let text = format!("{} {}", found.text, found.more).to_lowercase();
    let mut wrong = Vec::new();
    let mut check = |is_right: bool, what: String| {
        if !is_right {
            wrong.push(what);
        }
    };
    match &found.result {
        MainResult::Levels => {
            let ranking = summary.ranking.as_ref().expect("a ranking");
            let best = &summary.methods[&ranking.best];
            let below = clause(&text, "below it:");
            let inseparable = clause(&text, "not separable");
            let is_ordered = ranking.above_full.is_empty() && ranking.fixtures >= 3;
            for other in ranking.others.iter().filter(|_| is_ordered) {
                let is_apart = other.separation == Separation::Apart;
                let sure = other.ci95.is_none_or(|ci| ci.high() < 0.0);
                check(
                    !is_apart || sure,
                    format!("{} is below it by chance", other.method),
                );
                check(
                    !is_apart || names(below, &other.method),
                    format!("{} is not said to be below", other.method),
                );
                let is_named = inseparable.is_some_and(|c| names(Some(c), &other.method));
                check(
                    !(is_apart && is_named) || inseparable.is_some_and(|c| c.contains(" more")),
                    format!("{} is called not separable", other.method),
                );
            }
            check(
                is_ordered || below.is_none(),
                "an order without evidence".to_owned(),
            );
            check(
                text.contains("above the whole transcript") != ranking.above_full.is_empty(),
                "above full".to_owned(),
            );
            check(
                best.retention.ci95.is_some() || !text.contains("score (95%"),
                "an interval without one".to_owned(),
            );
        }
        MainResult::Change { .. } => {
            let comparison = summary.comparison.as_ref().expect("a comparison");
            let [smaller, _] = changes_without_verdict(comparison, summary);
            let regressed = clause(&text, "regressed");
            let improved = clause(&text, "improved");
            let nothing = text.starts_with("no evidence") || text.starts_with("unchanged");
            for (method, compared) in &comparison.methods {
                let tests = compared.overall.iter().chain(compared.dimensions.values());
                for test in tests {
                    match test.verdict {
                        Verdict::Regressed => {
                            check(names(regressed, method), format!("{method} regressed"));
                        }
                        Verdict::Improved => {
                            check(names(improved, method), format!("{method} improved"));
                        }
                        Verdict::NoEvidence => {}
                    }
                }
                let sure = compared.overall.filter(|test| {
                    excludes_zero(test) && test.p_adjusted.is_some_and(|p| p <= 0.05)
                });
                check(
                    !(nothing && sure.is_some()),
                    format!("{method}: no evidence, by its interval"),
                );
                let within = compared.overall.and_then(|test| test.within_margin);
                let small = clause(&text, "smaller than 0.3");
                let is_small = smaller.iter().any(|one| one.method == *method);
                check(
                    !(is_small
                        && within == Some(false)
                        && small.is_some_and(|c| {
                            names(Some(c), method)
                                && !c.contains(" more")
                                && !c.contains("possibly by")
                        })),
                    format!("{method} may have changed by 0.3"),
                );
            }
            for method in &comparison.absent {
                check(
                    names(clause(&text, "missing here"), method),
                    format!("{method} is gone"),
                );
            }
            for one in &comparison.collapsed {
                check(
                    names(clause(&text, "collapsed"), &one.method) && text.contains(&one.fixture),
                    format!("{} collapsed", one.fixture),
                );
            }
            for (gap, ..) in not_comparable(comparison, summary) {
                check(
                    names(clause(&text, "not comparable"), gap),
                    format!("{gap} has gaps"),
                );
            }
            let losses = comparison.changes_with_verdict(Verdict::Regressed);
            let is_worse = !losses.is_empty() || !comparison.collapsed.is_empty();
            check(!(nothing && is_worse), "nothing, beside a loss".to_owned());
        }
        _ => {}
    }
    wrong
}

#[test]
fn no_sentence_contradicts_an_interval_beside_it() {
    let all = situations();
    assert!(all.len() >= 40);
    let mut wrong = Vec::new();
    for situation in &all {
        let (summary, _, found) = outcome(situation);
        let lines = wrap_lines(&found.text, 80).lines().count();
        if lines > 2 {
            wrong.push(format!("{}: {lines} lines", situation.name));
        }
        let found = contradictions(&summary, &found);
        wrong.extend(
            found
                .into_iter()
                .map(|what| format!("{}: {what}", situation.name)),
        );
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_same_rows_are_unchanged() {
    let side = Side::new(TWO, 8, equal);
    let (now, before) = (
        side.set_of(Manifest::begin("now", "t", side.design()), "s"),
        side.set("s"),
    );
    let of = |set| crate::results::Side { set, method: None };
    let comparison = compare(of(&now), of(&before), ComparisonScope::All, &NO_LINES).unwrap();
    let summary = summarize(&now, Some(comparison));
    let found = headline(&summary, &now.manifest);
    assert_eq!(found.text, "Unchanged: the same answers and grades as s.");
}
