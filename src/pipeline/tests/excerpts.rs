//! Faults in files without line breaks, as programs write them.

use insta::assert_snapshot;

use super::{BANK, Project, STAGES, render};
use crate::pipeline::{Problem, Problems, SourceFile};

fn file(text: &str) -> SourceFile {
    SourceFile::new("long.json", text)
}

fn drawn(problem: Problem) -> String {
    render(&Problems(vec![problem]))
}

#[test]
fn a_bank_in_one_line_is_cut_to_the_text_around_the_place() {
    let bank = BANK
        .replace("\"now\"", "\"now\", \"ponit\": 2")
        .replace('\n', "")
        .replace("  ", "");
    assert_snapshot!(Project::new(STAGES).file("probes/tiny.probes.json", &bank).refusal(), @r#"
    error: unknown key `ponit` in a probe
       ╭─[probes/tiny.probes.json:1:155]
     1 │ …expected_facts": ["8080"]},{"id": "now", "ponit": 2, "type": "recall", "question": "Which…
       ·                                           ───────
       ╰────
    help: did you mean `point`?
    "#);
}

#[test]
fn a_very_long_line_is_cut_to_one_line() {
    let line = format!(
        "[{}]",
        (0..9000)
            .map(|n| format!("{n:04}"))
            .collect::<Vec<_>>()
            .join(",")
    );
    let text = format!("{{\n\"a\": {line},\n\"b\": {line},\n\"c\": 1}}\n");
    let file = file(&text);
    let at = text.find("8999").unwrap();
    assert_snapshot!(drawn(Problem::error("the last").at(&file, at..at + 4)), @r#"
    error: the last
       ╭─[long.json:2:45002]
     1 │ {
     2 │ …82,8983,8984,8985,8986,8987,8988,8989,8990,8991,8992,8993,8994,8995,8996,8997,8998,8999],
       ·                                                                                     ────
     3 │ "b": [0000,0001,0002,0003,0004,0005,0006,0007,0008,0009,0010,0011,0012,0013,0014,0015,001…
       ╰────
    "#);
    assert_snapshot!(drawn(Problem::error("all of it").label(&file, 7..7 + line.len(), "this list")), @r#"
    error: all of it
       ╭─[long.json:2:6]
     1 │ {
     2 │ "a": [0000,0001,0002,0003,0004,0005,0006,000…91,8992,8993,8994,8995,8996,8997,8998,8999],
       ·      ─────────────────────────────────────────┬─────────────────────────────────────────
       ·                                               ╰── this list
     3 │ "b": [0000,0001,0002,0003,0004,0005,0006,0007,0008,0009,0010,0011,0012,0013,0014,0015,001…
       ╰────
    "#);
    let first = text.find("0007").unwrap();
    let twice = Problem::error("two places")
        .label(&file, first..first + 4, "here")
        .label(&file, at..at + 4, "there");
    assert_snapshot!(drawn(twice), @r#"
    error: two places
       ╭─[long.json:2:42]
     1 │ {
     2 │ …0003,0004,0005,0006,0007,0008,0009,0010,001…1,8992,8993,8994,8995,8996,8997,8998,8999],
       ·                      ──┬─                                                         ──┬─
       ·                        │                                                            ╰── there
       ·                        ╰── here
     3 │ "b": [0000,0001,0002,0003,0004,0005,0006,0007,0008,0009,0010,0011,0012,0013,0014,0015,001…
       ╰────
    "#);
}

#[test]
fn columns_count_characters_and_wide_ones_take_their_room() {
    let text = format!("\"{}X{}\"", "界".repeat(300), "界".repeat(300));
    let at = text.find('X').unwrap();
    let rendered = drawn(Problem::error("odd").at(&file(&text), at..at + 1));
    assert_snapshot!(rendered, @r#"
    error: odd
       ╭─[long.json:1:302]
     1 │ …界界界界界界界界界界界界界界界界界界界界界界X界界界界界界界界界界界界界界界界界界界界界界…
       ·                                              ─
       ╰────
    "#);
    let end = text.len();
    assert!(
        drawn(Problem::error("at the end").at(&file(&text), end..end)).contains("long.json:1:604")
    );
}
