//! `observe --economics` on sessions with known counters: the bill, the back-test, and what is left out and why.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::chinese::{english, text_of_page, words_of};
use super::project::{Ended, Project};

/// What is missing or wrong in a log.
#[derive(Clone, Copy, Default)]
struct Lacking {
    counters: bool,
    times: bool,
    start: bool,
    /// The provider's cache serves nothing, though it should.
    cache: bool,
}

/// A session of Claude Code with this many requests, each 4,000 tokens longer than the one before. Before every tenth
/// request the history is compacted to 15,000 tokens, of which 6,000 are still in the cache.
fn session(requests: u64, model: &str, lacking: Lacking) -> String {
    let mut log = String::new();
    let mut before = String::new();
    let mut link = |mut record: Value, uuid: &str, second: u64| {
        let parent = if before.is_empty() && lacking.start {
            "earlier"
        } else {
            &before
        };
        record["uuid"] = json!(uuid);
        record["parentUuid"] = if parent.is_empty() {
            Value::Null
        } else {
            json!(parent)
        };
        record["sessionId"] = json!("s");
        if !lacking.times {
            record["timestamp"] = json!(format!(
                "2026-01-{:02}T10:{:02}:{:02}Z",
                requests % 28 + 1,
                second / 60,
                second % 60
            ));
        }
        writeln!(log, "{record}").unwrap();
        uuid.clone_into(&mut before);
    };
    let mut size = 6_000;
    link(
        json!({"type": "user", "message": {"role": "user", "content": "go"}}),
        "start",
        0,
    );
    for at in 0..requests {
        let is_compacted = at > 0 && at % 10 == 0;
        let read = if is_compacted { 6_000 } else { size };
        size = if is_compacted { 15_000 } else { size + 4_000 };
        if is_compacted {
            let boundary = json!({"type": "system", "subtype": "compact_boundary", "compactMetadata": {"trigger": "auto"}});
            link(boundary, &format!("c{at}"), 10 * at);
            let content = "The summary. ".repeat(300);
            let summary = json!({"type": "user", "isCompactSummary": true, "message": {"role": "user", "content": content}});
            link(summary, &format!("d{at}"), 10 * at);
        }
        let read = if lacking.cache { 0 } else { read };
        let mut message = json!({"role": "assistant", "id": format!("m{at}"), "model": model, "content": format!("step {at}")});
        if !lacking.counters {
            message["usage"] = json!({"input_tokens": 0, "cache_read_input_tokens": read,
                "cache_creation_input_tokens": size - read, "output_tokens": 200});
        }
        link(
            json!({"type": "assistant", "message": message}),
            &format!("a{at}"),
            10 * at + 5,
        );
        let next =
            json!({"type": "user", "message": {"role": "user", "content": format!("go on {at}")}});
        link(next, &format!("u{at}"), 10 * at + 6);
    }
    log
}

/// Demands that the output holds each of these.
fn shows(ended: &Ended, words: &[&str]) {
    let all = format!("{} {}", ended.stdout, ended.stderr);
    let flat = all.split_whitespace().collect::<Vec<_>>().join(" ");
    for word in words {
        assert!(flat.contains(word), "`{word}` is missing in:\n{all}");
    }
}

const MODEL: &str = "claude-opus-4-6";

fn economics(project: &Project, arguments: &str) -> Value {
    project
        .expect(0, &format!("observe --economics {arguments} --json"))
        .json()["economics"]
        .clone()
}

#[test]
fn eight_sessions_give_a_bill_a_back_test_and_cost_against_threshold() {
    let project = Project::offline();
    for number in 0..8 {
        // A session of another length is on another day, so that it is another session.
        project.write(
            &format!("logs/{number}.jsonl"),
            &session(30 + number, MODEL, Lacking::default()),
        );
    }
    let found = economics(&project, "logs");
    assert_eq!(
        (&found["sessions"], &found["withheld"]),
        (&json!(8), &Value::Null),
        "{found}"
    );
    assert!(
        found["back_test"]["formats"][0]["median_error"]
            .as_f64()
            .unwrap()
            < 0.02,
        "{}",
        found["back_test"]
    );
    assert_eq!(found["rewrites"][0]["tokens"], 9_000);
    let recorded = &found["methods"][0];
    assert_eq!(
        (&recorded["method"], &recorded["life"]["floor"]),
        (&json!("as recorded"), &json!(15_000.0)),
        "{recorded}"
    );
    assert_eq!(recorded["difference"]["clusters"], 8, "{recorded}");
    let ended = project.expect(0, "observe --economics logs --trigger 30k --html page.html");
    shows(
        &ended,
        &[
            "8 sessions, 268 requests: $",
            "The worst 3 of 23 recorded compactions made the provider process 27,000 tokens again",
            "claude-code: 0.0% in 8 sessions",
            "Cost against threshold; flat is where it is within 2% of the least",
            "At your trigger as recorded: $",
            "Accounting only",
            "count output in part only",
        ],
    );
    let page = project.read("page.html");
    assert!(
        page.contains("<svg ") && page.contains("fill-opacity") && !page.contains("<script"),
        "a plot without a script"
    );
}

#[test]
fn methods_of_a_result_set_are_simulated_too() {
    let project = Project::offline();
    let row = |point: u64, method: &str, calls: u64| {
        let digest = "0".repeat(64);
        json!({"fixture": "f", "point": point, "method": method, "run": 1, "key": digest, "context": digest,
            "tokens": 300 + 100 * point, "replaced_tokens": 5_000 * point, "seconds": 2.0, "usd": 0.01, "calls": calls})
    };
    let rows = [
        row(1, "summary", 1),
        row(2, "summary", 1),
        row(1, "rules", 0),
        row(2, "rules", 0),
    ];
    project.write(
        "results/set/contexts.jsonl",
        &rows.map(|row| format!("{row}\n")).concat(),
    );
    for number in 0..2 {
        project.write(
            &format!("logs/{number}.jsonl"),
            &session(30 + number, MODEL, Lacking::default()),
        );
    }
    let found = economics(&project, "logs --contexts results/set");
    let names: Vec<&str> = found["methods"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["method"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["as recorded", "rules", "summary"]);
    assert_eq!(found["methods"][2]["life"]["growth"], 100.0);
    assert!(
        found["methods"][1]["curve"]["points"][0]["compaction_usd"] == 0.0,
        "rules cost nothing"
    );
    let ended = project.compeval("observe --economics logs --contexts results/set");
    shows(&ended, &["its sizes here are extrapolated"]);
    shows(
        &project.expect(2, "observe --economics logs --contexts logs/0.jsonl"),
        &["logs/0.jsonl:1: expected one compression"],
    );
    shows(
        &project.expect(2, "observe --economics logs --contexts nowhere"),
        &["name the folder of a result set"],
    );
    project.write("empty.jsonl", "");
    shows(
        &project.expect(2, "observe --economics logs --contexts empty.jsonl"),
        &["there is no compression"],
    );
}

#[test]
fn what_cannot_be_simulated_is_said_with_its_reason() {
    let project = Project::offline();
    let lacking = Lacking::default();
    project.write(
        "logs/counters.jsonl",
        &session(
            12,
            MODEL,
            Lacking {
                counters: true,
                ..lacking
            },
        ),
    );
    project.write(
        "logs/uncounted.jsonl",
        &session(
            15,
            MODEL,
            Lacking {
                counters: true,
                ..lacking
            },
        ),
    );
    project.write(
        "logs/times.jsonl",
        &session(
            13,
            MODEL,
            Lacking {
                times: true,
                ..lacking
            },
        ),
    );
    project.write("logs/model.jsonl", &session(14, "mystery-1", lacking));
    project.write(
        "logs/text.jsonl",
        "{\"nothing\": \"known\"}\n{\"nothing\": \"known\"}\n",
    );
    project.write("logs/notes.txt", "no log at all");
    project.write("logs/list.json", "[1, 2, 3]");
    let ended = project.expect(0, "observe --economics logs");
    shows(
        &ended,
        &[
            "left out: counters, uncounted: the log counts no tokens",
            "left out: times: the log has no times",
            "left out: model: no price is known for `mystery-1`; price it as another with --price-as MODEL",
            "Other policies were not simulated: no session has counters, times and prices",
            "1 file of other formats",
            "text.jsonl` is in no known format",
        ],
    );
    project.expect(0, "observe --economics logs --html left-out.html");
    let page = project.read("left-out.html");
    assert!(
        page.contains("left out: model: no price is known for `mystery-1`"),
        "{page}"
    );
    assert!(
        page.contains("left out: counters, uncounted: the log counts no tokens"),
        "{page}"
    );
    let priced = economics(&project, "logs/model.jsonl --price-as claude-opus-4-6");
    assert_eq!(
        (&priced["sessions"], &priced["left_out"]),
        (&json!(1), &json!([]))
    );

    project.write(
        "midway/a.jsonl",
        &session(
            25,
            MODEL,
            Lacking {
                start: true,
                ..lacking
            },
        ),
    );
    assert_eq!(
        economics(&project, "midway")["sessions"],
        1,
        "a log from the middle counts from there"
    );
    project.write(
        "odd/a.jsonl",
        &session(
            25,
            MODEL,
            Lacking {
                cache: true,
                ..lacking
            },
        ),
    );
    let odd = project.expect(0, "observe --economics odd");
    project.expect(0, "observe --economics odd --html odd.html");
    assert!(
        project
            .read("odd.html")
            .contains("in 1 session, too far off to simulate")
    );
    shows(
        &odd,
        &[
            "too far off to simulate",
            "more than 10% off the logged one",
            "0 of",
        ],
    );
    assert!(
        !odd.stdout.contains("Cost against threshold"),
        "{}",
        odd.stdout
    );
    project.write("talk/readme.txt", "nothing");
    shows(
        &project.expect(4, "observe --economics talk"),
        &["0 sessions, 0 requests"],
    );
    for wrong in [
        "--trigger 0",
        "--trigger 120%",
        "--cache-minutes 0",
        "--keep-tail x",
        "--price-as mystery-1",
    ] {
        shows(
            &project.expect(2, &format!("observe --economics midway {wrong}")),
            &["expected"],
        );
    }
    shows(
        &project.expect(2, "observe midway --trigger 20k"),
        &["--economics"],
    );
}

#[test]
fn a_clock_that_went_back_is_reported() {
    let project = Project::offline();
    let log = session(25, MODEL, Lacking::default());
    // One request is logged an hour early, as after a change of the machine's clock.
    project.write("logs/a.jsonl", &log.replace("T10:01:25Z", "T09:01:25Z"));
    let found = economics(&project, "logs");
    assert_eq!(
        found["clock_faults"],
        json!({"sessions": 1, "requests": 2}),
        "{found}"
    );
    assert_eq!(
        found["as_recorded"]["expiries"], 0,
        "an hour that never passed expires nothing"
    );
    let said = "In 1 session the clock went back: how long 2 requests came after the one before is not known";
    shows(
        &project.expect(0, "observe --economics logs --html page.html"),
        &[said],
    );
    assert!(project.read("page.html").contains(said));
    project.write("right/a.jsonl", &log);
    assert!(
        !project
            .expect(0, "observe --economics right")
            .stdout
            .contains("clock")
    );
}

#[test]
fn the_bill_and_its_page_are_in_chinese_where_that_was_chosen() {
    let project = Project::offline();
    let lacking = Lacking::default();
    for number in 0..8 {
        project.write(
            &format!("logs/{number}.jsonl"),
            &session(30 + number, MODEL, lacking),
        );
    }
    project.write(
        "logs/8.jsonl",
        &session(
            12,
            MODEL,
            Lacking {
                counters: true,
                ..lacking
            },
        ),
    );
    project.write(
        "logs/9.jsonl",
        &session(
            13,
            MODEL,
            Lacking {
                times: true,
                ..lacking
            },
        ),
    );
    project.write("logs/91.jsonl", &session(14, "mystery", lacking));
    project.write(
        "back/a.jsonl",
        &session(25, MODEL, lacking).replace("T10:01:25Z", "T09:01:25Z"),
    );
    project.write(
        "odd/a.jsonl",
        &session(
            25,
            MODEL,
            Lacking {
                cache: true,
                ..lacking
            },
        ),
    );
    project.write("short/a.jsonl", &session(9, MODEL, lacking));
    let path = project.path(".").display().to_string();
    // Names of flags and models, and what the logs quote.
    let own = words_of(&format!(
        "{path} price contexts trigger model mystery opus summary logs back odd short the page"
    ));
    for (folder, flags) in [
        ("logs", "--trigger 30k"),
        ("back", ""),
        ("odd", ""),
        ("short", ""),
    ] {
        let ended = project.expect(
            0,
            &format!("observe --economics {folder} {flags} --html page.html --locale zh"),
        );
        let terminal = format!("{} {}", ended.stdout, ended.stderr);
        assert_eq!(english(&terminal, &own), Vec::<String>::new(), "{terminal}");
        let page = project.read("page.html");
        let text = text_of_page(&page);
        assert_eq!(
            english(&text, &own),
            Vec::<String>::new(),
            "{folder}: {text}"
        );
        assert!(
            page.contains("lang=\"zh-Hans\"") && text.contains("个会话"),
            "{text}"
        );
    }
}
