//! The literal rules on hard cases: a table to which they were tuned, and one that was written first and is held out.
//!
//! `cargo test -p compeval-lexical claims::literal_cases_tests -- --nocapture` prints how often each rule is right, by
//! direction. `docs/notes/figures.md` has the shares before any rule was changed for these tables.

use std::collections::BTreeMap;

use super::abstains;
use super::currency::stated_as_current;
use super::rule::{Rule, RuleFinder};
use crate::facts::{Fact, FactFinder, Topic};
use base::locale::Locale;
use sessions::transcript::fold_document;

const TUNED: &str = include_str!("literal_cases.txt");
const HELD_OUT: &str = include_str!("literal_held_out.txt");

/// One line of a table.
struct LiteralCase<'t> {
    holds: &'t str,
    kind: &'t str,
    value: &'t str,
    other: &'t str,
    text: String,
}

impl<'t> LiteralCase<'t> {
    fn from_line(line: &'t str) -> LiteralCase<'t> {
        let columns: Vec<&str> = line.split('\t').collect();
        let [holds, kind, value, other, text] = columns[..] else {
            panic!("five columns: {line}")
        };
        LiteralCase {
            holds,
            kind,
            value,
            other,
            text: text.replace('⏎', "\n"),
        }
    }

    fn outcome(&self) -> &'static str {
        let finder = |text: &str| {
            FactFinder::new(&Fact {
                spellings: vec![text.to_owned()],
            })
        };
        match self.kind {
            "fact" => {
                let fact = Fact {
                    spellings: vec![self.value.to_owned()],
                };
                let topic = Topic::new(self.other, std::slice::from_ref(&fact));
                let is_present = topic.has(&FactFinder::new(&fact), &fold_document(&self.text));
                if is_present { "present" } else { "absent" }
            }
            "old" => {
                let stated =
                    stated_as_current(&self.text, &[finder(self.value)], &[finder(self.other)]);
                if stated == [true] {
                    "current"
                } else {
                    "former"
                }
            }
            "admission" => {
                if abstains(&self.text) {
                    "admits"
                } else {
                    "asserts"
                }
            }
            _ => {
                let language = if self.other == "zh" {
                    Locale::Zh
                } else {
                    Locale::En
                };
                let rule = Rule {
                    language,
                    text: format!("rule on {}", self.value),
                    object: self.value.to_owned(),
                };
                let survival =
                    RuleFinder::new(&rule).survival(&self.text, &fold_document(&self.text));
                if survival.near_literal {
                    "kept"
                } else {
                    "lost"
                }
            }
        }
    }
}

/// How many cases of each direction are right, and how many there are. Prints the shares and the wrong cases.
#[expect(clippy::print_stdout, reason = "docs/notes quotes the figures")]
fn shares(title: &str, table: &str) -> BTreeMap<String, (usize, usize)> {
    let mut shares: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        let case = LiteralCase::from_line(line);
        let outcome = case.outcome();
        let is_right = outcome == case.holds;
        if !is_right {
            println!("  {} taken for {outcome}: {line}", case.holds);
        }
        let positive = matches!(case.holds, "present" | "former" | "admits" | "kept");
        for name in [
            case.holds,
            if positive {
                "all that hold"
            } else {
                "all that do not"
            },
        ] {
            let share = shares.entry(name.to_owned()).or_default();
            share.0 += usize::from(is_right);
            share.1 += 1;
        }
    }
    for (name, (right, all)) in &shares {
        println!(
            "{title:<9} {name:<16} {right:>3} of {all:>3}  {:>5.1}%",
            100.0 * *right as f64 / *all as f64
        );
    }
    shares
}

#[test]
fn hard_cases_are_read_rightly_in_each_direction() {
    for (title, table) in [("tuned", TUNED), ("held out", HELD_OUT)] {
        let shares = shares(title, table);
        for direction in ["all that hold", "all that do not"] {
            let (right, all) = shares[direction];
            assert!(
                right * 10 >= all * 9,
                "{title}, {direction}: {right} of {all}"
            );
        }
    }
}
