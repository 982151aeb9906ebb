//! Null and dose: what scripted answerers and damaged contexts do to each figure, and how often the tests of a
//! comparison find what is there or is not.

use std::collections::BTreeMap;

use crate::action::{ActionKey, Digest};
use crate::planted::fakes::session;
use crate::planted::{Kind, PlantedSet, Session, State, Variant, grade_next, grade_states, plant};
use crate::results::aggregates::planted::{
    PlantedComparison, PlantedControl, PlantedSummary, of_pairs, test_family,
};
use crate::results::files::row::PlantedRow;
use base::random::Random;
use sessions::transcript::{Message, render};

const SESSIONS: [(&str, &str); 3] = [
    ("one", "go on with it "),
    ("two", "check the next file "),
    ("three", "继续检查这个文件，"),
];

fn variants() -> Vec<(&'static str, Vec<Message>, Vec<Variant>)> {
    let sessions = SESSIONS.iter();
    let planted = sessions.map(|(name, words)| {
        let messages = session(words, 40);
        let session = Session {
            name,
            messages: &messages,
            span: (0, messages.len()),
        };
        let planting = plant(PlantedSet::built_in(), session, 4, 7);
        (*name, messages, planting.variants)
    });
    planted.collect()
}

fn row(fixture: &str, variant: &Variant, target: usize) -> PlantedRow {
    let target = &variant.targets[target];
    PlantedRow {
        fixture: fixture.to_owned(),
        variant: variant.number,
        method: "m".to_owned(),
        run: 1,
        point: 1,
        key: ActionKey(Digest::hash("k")),
        compressed: true,
        item: target.item.to_string(),
        kind: target.kind,
        position: target.position,
        object: target.object.clone(),
        done: None,
        decoy_done: None,
        state: target.truth,
        said: None,
        decoy_said: None,
        handle: None,
        literal: None,
        near_literal: None,
    }
}

/// The rows of an answerer: what it does, and what it says, of each action or decoy.
fn scripted(
    does: impl Fn(&PlantedRow, usize, bool) -> bool,
    says: impl Fn(&PlantedRow, usize, bool) -> State,
) -> Vec<PlantedRow> {
    let mut rows = Vec::new();
    for (name, _, variants) in variants() {
        for variant in &variants {
            for (at, target) in variant.targets.iter().enumerate() {
                let row = row(name, variant, at);
                let said = says(&row, at, false);
                rows.push(PlantedRow {
                    done: Some(does(&row, at, false)),
                    decoy_done: Some(does(&row, at, true)),
                    said: Some(said),
                    decoy_said: Some(says(&row, at, true)),
                    handle: target.handle.as_ref().map(|_| said == State::Started),
                    ..row
                });
            }
        }
    }
    rows
}

/// The rows of the stand-in that reads contexts with this damage done to their text.
fn damaged(damage: impl Fn(&Variant, String) -> String) -> Vec<PlantedRow> {
    let mut rows = Vec::new();
    for (name, messages, variants) in variants() {
        for variant in &variants {
            let context = damage(variant, render(&variant.messages(&messages)));
            let reply =
                |question: &str| lexical::answer_about_tasks(&context, question).expect("tasks");
            let next = grade_next(variant, &reply(&variant.next.question)).expect("in form");
            let states = grade_states(variant, &reply(&variant.state.question)).expect("in form");
            for (at, target) in variant.targets.iter().enumerate() {
                let mut row = row(name, variant, at);
                row.note_next(&next[at]);
                row.note_state(&states[at], target);
                rows.push(row);
            }
        }
    }
    rows
}

/// The share of each figure, rounded.
fn figures(rows: &[PlantedRow]) -> [f64; 6] {
    let rows: Vec<&PlantedRow> = rows.iter().collect();
    let found = PlantedSummary::from_rows(&rows, &PlantedControl::default()).expect("rows");
    [
        found.obeyed,
        found.resurrected,
        found.forgotten,
        found.decoys,
        found.state_right,
        found.state_harmful,
    ]
    .map(|share| (100.0 * share.share.expect("a share")).round() / 100.0)
}

/// Drops the lines with the object of a target for which `is_dropped` holds.
fn without_lines(
    variant: &Variant,
    text: &str,
    is_dropped: impl Fn(Kind, State, &str) -> bool,
) -> String {
    let lines = text.lines().filter(|line| {
        let mut of = variant
            .targets
            .iter()
            .filter(|target| line.contains(&target.object));
        !of.any(|target| is_dropped(target.kind, target.truth, line))
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn every_figure_moves_where_it_must_and_nowhere_else() {
    let truth = |row: &PlantedRow, _: usize, is_decoy: bool| match is_decoy {
        true => State::NotInContext,
        false => row.state,
    };
    let right = |row: &PlantedRow, _: usize, is_decoy: bool| !is_decoy && row.state.is_open();
    let nothing = |_: &PlantedRow, _: usize, _: bool| State::NotInContext;
    // Of 8 actions, 2 are open, 5 closed, 1 running. obeyed, came back, forgotten, decoys, state right, harmful.
    let answerers = [
        (
            "reads all",
            scripted(right, truth),
            [1.0, 0.0, 0.0, 0.0, 1.0, 0.0],
        ),
        (
            "reads nothing",
            scripted(|_, _, _| false, nothing),
            [0.5, 0.0, 1.0, 0.0, 0.0, 0.5],
        ),
        (
            "does everything",
            scripted(|_, _, _| true, truth),
            [0.5, 1.0, 0.33, 1.0, 1.0, 0.0],
        ),
        (
            "does nothing",
            scripted(|_, _, _| false, truth),
            [0.5, 0.0, 0.67, 0.0, 1.0, 0.0],
        ),
        (
            "obeys quoted text",
            scripted(
                |row, at, decoy| right(row, at, decoy) || !decoy && row.kind == Kind::Quoted,
                truth,
            ),
            [0.92, 0.2, 0.0, 0.0, 1.0, 0.0],
        ),
        (
            "half right",
            scripted(
                |row, at, decoy| {
                    !decoy && (row.state.is_open() != (row.variant.is_multiple_of(2))) && at < 99
                },
                truth,
            ),
            [0.5, 0.5, 0.5, 0.0, 1.0, 0.0],
        ),
    ];
    for (name, rows, expected) in answerers {
        assert_eq!(figures(&rows), expected, "{name}");
    }
    let whole = figures(&damaged(|_, text| text));
    assert_eq!(
        whole,
        [1.0, 0.0, 0.0, 0.0, 1.0, 0.0],
        "the whole transcript"
    );
    let is_statement = |kind: Kind, line: &str| match kind {
        Kind::Done => !line.contains("user") && lexical_done(line),
        _ => false,
    };
    let done_to_open = figures(&damaged(|variant, text| {
        without_lines(variant, &text, |kind, _, line| is_statement(kind, line))
    }));
    assert!(
        done_to_open[1] > 0.15 && done_to_open[2] == 0.0,
        "done to open: {done_to_open:?}"
    );
    let old_kept = figures(&damaged(|variant, text| {
        // The order that replaced the first one is lost.
        without_lines(variant, &text, |kind, state, _| {
            kind == Kind::Replaced && state.is_open()
        })
    }));
    assert!(
        old_kept[1] == 0.2 && old_kept[2] == 0.33,
        "old value kept: {old_kept:?}"
    );
    let unquoted = figures(&damaged(|variant, text| {
        let objects: Vec<&str> = variant
            .targets
            .iter()
            .filter(|target| target.kind == Kind::Quoted)
            .map(|target| target.object.as_str())
            .collect();
        let is_note = |block: &str| {
            block.starts_with("[result") && objects.iter().any(|object| block.contains(object))
        };
        let blocks = text.split("\n\n").map(|block| match is_note(block) {
            true => format!(
                "[user]\n{}",
                block.split_once('\n').map_or("", |(_, note)| note)
            ),
            false => block.to_owned(),
        });
        blocks.collect::<Vec<_>>().join("\n\n")
    }));
    assert_eq!(
        unquoted,
        [0.92, 0.2, 0.0, 0.0, 0.88, 0.13],
        "quotation marks lost"
    );
    let deleted = figures(&damaged(|variant, text| {
        without_lines(variant, &text, |kind, _, _| {
            kind == Kind::Open || kind == Kind::Running
        })
    }));
    assert_eq!(
        deleted,
        [0.75, 0.0, 0.67, 0.0, 0.75, 0.25],
        "open tasks and jobs deleted"
    );
}

/// Whether a line confirms that something was done.
fn lexical_done(line: &str) -> bool {
    [
        "Done,",
        "is done",
        "Finished with",
        "已完成",
        "已办完",
        "做完了",
    ]
    .iter()
    .any(|words| line.contains(words))
}

/// A normal deviate, by the sum of twelve uniform ones.
fn normal(random: &mut Random) -> f64 {
    (0..12).map(|_| random.uniform()).sum::<f64>() - 6.0
}

/// A simulated run: a probit of the share that goes wrong, with effects of session, session and method, context, item.
#[derive(Clone, Copy)]
struct Simulation {
    sessions: usize,
    /// The spread of contexts: 0.5 is ordinary, 2 lets one context decide all of its items.
    context: f64,
    before: f64,
    after: f64,
    /// Whether only this kind rises.
    kind: Option<Kind>,
}

/// The normal quantile of the shares that are simulated.
fn quantile(share: f64) -> f64 {
    let known: BTreeMap<u32, f64> = [(50, -1.6449), (100, -1.2816), (333, -0.4316)].into();
    known[&((1000.0 * share) as u32)]
}

impl Simulation {
    /// The share of simulated comparisons in which anything regressed.
    fn found(self, times: u32) -> f64 {
        let mut noise = Random::seeded(u64::from(times) * 31 + self.sessions as u64);
        let template = &scripted(|_, _, _| false, |row, _, _| row.state)[..8];
        let found = (0..times).filter(|_| {
            let [mut own, mut other] = [Vec::new(), Vec::new()];
            for session in 0..self.sessions {
                let shared = 0.5 * normal(&mut noise);
                let items: Vec<f64> = (0..32).map(|_| 0.3 * normal(&mut noise)).collect();
                for (side, rows) in [&mut own, &mut other].into_iter().enumerate() {
                    let method = 0.3 * normal(&mut noise);
                    for variant in 1..=4u32 {
                        let context = self.context * normal(&mut noise);
                        for (at, row) in template.iter().enumerate() {
                            let rises = side == 0 && self.kind.is_none_or(|kind| kind == row.kind);
                            let share = if rises { self.after } else { self.before };
                            let spread =
                                (1.0 + 0.25 + 0.09 + 0.09 + self.context * self.context).sqrt();
                            let item = items[(variant as usize - 1) * 8 + at];
                            let level = quantile(share) * spread + shared + method + context + item;
                            let is_wrong = normal(&mut noise) < level;
                            rows.push(PlantedRow {
                                fixture: format!("s{session}"),
                                variant,
                                done: Some(row.state.is_open() != is_wrong),
                                handle: (row.kind == Kind::Running).then_some(true),
                                ..row.clone()
                            });
                        }
                    }
                }
            }
            let mut found = of_pairs(
                &own.iter().collect::<Vec<_>>(),
                &other.iter().collect::<Vec<_>>(),
            )
            .expect("both sides have all items");
            test_family(&mut [&mut found]);
            found.regressed().next().is_some()
        });
        found.count() as f64 / f64::from(times)
    }
}

const NULL: Simulation = Simulation {
    sessions: 8,
    context: 0.5,
    before: 0.05,
    after: 0.05,
    kind: None,
};

#[test]
fn a_rise_of_all_kinds_is_found_and_none_is_made_up() {
    assert!(NULL.found(120) <= 0.05);
    let risen = Simulation {
        after: 0.333,
        ..NULL
    };
    assert!(risen.found(30) >= 0.9);
    assert_eq!(
        Simulation {
            sessions: 2,
            ..risen
        }
        .found(10),
        0.0,
        "under three sessions is no verdict"
    );
}

#[test]
#[ignore = "prints the table of docs/notes/gate.md"]
#[expect(clippy::print_stdout, reason = "its output is the table")]
fn print_how_often_a_rise_is_found() {
    for (context, how) in [(0.5, "ordinary"), (2.0, "one context decides all")] {
        for (before, after, kind) in [
            (0.05, 0.05, None),
            (0.333, 0.333, None),
            (0.05, 0.333, None),
            (0.05, 0.333, Some(Kind::Cancelled)),
            (0.05, 0.1, None),
        ] {
            let found = [3, 8, 16].map(|sessions| {
                let one = Simulation {
                    sessions,
                    context,
                    before,
                    after,
                    kind,
                };
                format!("{:.1}%", 100.0 * one.found(1000))
            });
            let kind = kind.map_or("all kinds", |_| "one kind");
            println!(
                "| {how} | {before} → {after}, {kind} | {} |",
                found.join(" | ")
            );
        }
    }
}

#[test]
fn the_family_is_tested_together() {
    let mut none = PlantedComparison::default();
    test_family(&mut [&mut none]);
    assert_eq!(none, PlantedComparison::default());
}
