//! Open book through the program: answerers that search for missing facts, that never search, or that misuse the
//! search.

#![cfg(unix)]

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::brain::Wanted;
use super::kills::damage;
use super::project::Project;
use super::server::{Asked, Reply, Server};

/// Words of each question in the bank, with its facts.
const FACTS: [(&str, &[&str]); 6] = [
    ("Which error number", &["4711"]),
    ("the workers count", &["count = 4"]),
    ("On which listen port", &["9091"]),
    ("Which file was changed", &["etc/harbor.toml"]),
    ("What is left", &["harbor-2", "15 minutes"]),
    ("Why was the retry limit", &["6 tries"]),
];
const ADMISSION: &str = "What was kept does not hold the answer.";

/// The project with an answerer that may search, by these settings.
pub(super) fn project(server: &Server, settings: &str) -> Project {
    let project = Project::new(server);
    project.edit(
        "pipeline.toml",
        "[[judge]]",
        &format!("[answer.recovery]\nresults = 8\n{settings}\n\n[[judge]]"),
    );
    project
}

/// The text that an answerer was given: the context, and what searches returned.
pub(super) fn material(asked: &Asked) -> String {
    let messages = asked.json["messages"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let texts = messages
        .iter()
        .filter(|message| message["role"] != "system" && message["role"] != "assistant");
    let texts: Vec<&str> = texts
        .filter_map(|message| message["content"].as_str())
        .collect();
    texts.join("\n")
}

pub(super) fn question(asked: &Asked) -> String {
    let (_, question) = asked.text.split_once("\nQuestion: ").expect("a question");
    question.lines().next().unwrap().to_owned()
}

pub(super) fn expected(question: &str) -> &'static [&'static str] {
    FACTS
        .iter()
        .find(|(words, _)| question.contains(words))
        .map_or(&[], |(_, facts)| facts)
}

/// The facts of the question that occur in the text given to the answerer.
pub(super) fn seen(asked: &Asked) -> Vec<&'static str> {
    let material = material(asked);
    expected(&question(asked))
        .iter()
        .copied()
        .filter(|fact| material.contains(fact))
        .collect()
}

pub(super) fn stated(facts: &[&str]) -> Reply {
    Reply::Text(if facts.is_empty() {
        ADMISSION.to_owned()
    } else {
        facts.join(", ")
    })
}

pub(super) fn may_search(asked: &Asked) -> bool {
    asked.json["tools"].is_array() && asked.json["tool_choice"] != "none"
}

/// A reply that calls tools, with reasoning and random ids as vendors give them.
pub(super) fn calls(asked: &Asked, calls: &[(&str, Value)]) -> Reply {
    let call = |(nth, (name, arguments)): (usize, &(&str, Value))| {
        json!({"id": format!("r{}-{nth}", asked.earlier), "type": "function",
            "function": {"name": name, "arguments": arguments.to_string()}})
    };
    let calls: Vec<Value> = calls.iter().enumerate().map(call).collect();
    let message = json!({"role": "assistant", "content": null, "reasoning_content": "I miss something.",
        "refusal": null, "tool_calls": calls});
    let reply = json!({"id": "x", "object": "chat.completion", "model": "small-1-2025",
        "choices": [{"index": 0, "finish_reason": "tool_calls", "message": message}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 10}});
    Reply::Raw(200, reply.to_string())
}

/// An answerer that searches by the question if it misses a fact.
pub(super) fn searches_when_it_misses(asked: &Asked) -> Reply {
    if asked.wanted != Wanted::Answer {
        return Reply::Sensible;
    }
    let (facts, question) = (seen(asked), question(asked));
    let is_first = !asked.text.contains("[message ");
    if may_search(asked) && is_first && facts.len() < expected(&question).len() {
        return calls(asked, &[("search", json!({"query": question}))]);
    }
    stated(&facts)
}

pub(super) type ByProbe = BTreeMap<(String, String), Value>;

/// The rows of the first run, by method and probe: from the context alone, and with a search.
pub(super) fn books(project: &Project, label: &str) -> (ByProbe, ByProbe) {
    let rows = project
        .rows(label)
        .into_iter()
        .filter(|row| row["run"] == 1);
    let (open, closed): (Vec<Value>, Vec<Value>) =
        rows.partition(|row| row["open_book"].is_object());
    let by_probe = |rows: Vec<Value>| -> ByProbe {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        rows.into_iter()
            .map(|row| ((text(&row["method"]), text(&row["probe"])), row))
            .collect()
    };
    (by_probe(closed), by_probe(open))
}

pub(super) fn returned(row: &Value) -> String {
    let searches = row["open_book"]["searches"].as_array().unwrap();
    searches
        .iter()
        .map(|search| search["returned"].as_str().unwrap())
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn an_answerer_that_searches_for_missing_facts_answers_as_from_the_whole() {
    let server = Server::start();
    server.script(searches_when_it_misses);
    let project = project(&server, "");
    let ended = project.expect(0, "run --label a --runs 1");
    let (closed, open) = books(&project, "a");
    assert_eq!(
        (closed.len(), open.len()),
        (5 * 7, 3 * 7),
        "what keeps everything has nothing to search"
    );
    let mut found = 0;
    for ((method, probe), row) in &open {
        let facts = expected(row["question"].as_str().unwrap());
        let context_and_found = row["facts"]
            .as_array()
            .unwrap()
            .iter()
            .all(|fact| fact["answered"] == true);
        let is_found = facts.iter().all(|fact| returned(row).contains(fact));
        if method == "nothing" && is_found && !facts.is_empty() {
            found += 1;
            assert_eq!(
                row["overall"],
                closed[&("full".to_owned(), probe.clone())]["overall"],
                "{probe}"
            );
            assert!(
                context_and_found && row["open_book"]["gold_found"] == true,
                "{row}"
            );
        }
    }
    assert!(found >= 5, "the search finds nearly all: {found}");

    // Facts that a search returned do not count as kept by the context.
    for row in open.values() {
        for fact in row["facts"].as_array().unwrap() {
            let is_in_excerpt = returned(row).contains(fact["fact"].as_str().unwrap());
            assert_eq!(fact["found"], is_in_excerpt, "{fact} {row}");
        }
    }
    assert!(closed.values().all(|row| {
        row["facts"]
            .as_array()
            .unwrap()
            .iter()
            .all(|fact| fact["found"].is_null())
    }));

    // Every step is an action of its own, which is found again. Methods with equal contexts share it.
    let row = &open[&("nothing".to_owned(), "port".to_owned())];
    assert_eq!(row["open_book"]["steps"].as_array().unwrap().len(), 1);
    assert!(
        project.keys("a").contains(
            &row["open_book"]["steps"][0]["key"]
                .as_str()
                .unwrap()
                .to_owned()
        )
    );
    let count = server.count();
    project.expect(0, "run --label again --runs 1");
    assert_eq!(server.count(), count, "all steps come from the cache");
    assert_eq!(project.rows("again"), project.rows("a"));

    let summary = project.result("a", "summary.json");
    let figures = &summary["methods"]["nothing"]["open_book"];
    assert_eq!(figures["answers"]["lost_not_searched"], 0);
    assert!(figures["gain"].as_f64().unwrap() > 2.0, "{figures}");
    assert!(summary["methods"]["full"]["open_book"].is_null());
    let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        flat(&ended.stdout).contains("within 1.0 of the whole transcript"),
        "{}",
        ended.stdout
    );
    let report = project.read("results/a/report.md");
    assert!(
        report.contains("Open book") && report.contains("lost: searched / not"),
        "{report}"
    );
    project
        .expect(
            0,
            "show harbor --label a --method nothing --probe port --open",
        )
        .stdout_says(&[
            "Search 1",
            "On which listen port",
            "[message 9 · assistant]",
            "lost in compression; found by searching",
            "next: compeval why harbor --method nothing --run 1 --probe port --label a --open",
        ]);
    assert!(
        project
            .read("results/a/report.html")
            .contains("lost in compression, found by searching")
    );
    project
        .expect(
            0,
            "why harbor --label a --method nothing --probe port --open",
        )
        .stdout_says(&["answer step 2"]);
    let plan = project.expect(0, "plan --runs 1 --json").json();
    assert_eq!(plan["stages"]["answer"]["stale"], 0);
}

#[test]
fn a_step_sends_back_what_was_said_with_calls_numbered_and_withdraws_the_tool() {
    let server = Server::start();
    server.script(|asked| match asked.wanted {
        Wanted::Answer if may_search(asked) => {
            calls(asked, &[("search", json!({"query": "listen port"}))])
        }
        Wanted::Answer => stated(&seen(asked)),
        _ => Reply::Sensible,
    });
    let project = project(&server, "calls = 2");
    project.expect(0, "run --label a --runs 1 --methods nothing --probes port");
    let asked: Vec<Value> = server
        .asked()
        .into_iter()
        .filter(|a| a.json["tools"].is_array())
        .map(|asked| asked.json)
        .collect();
    assert_eq!(asked.len(), 3, "two searches, then the answer");
    let last = asked
        .iter()
        .find(|request| request["tool_choice"] == "none")
        .expect("the tool is withdrawn");
    let messages = last["messages"].as_array().unwrap();
    let of = |role: &str| {
        messages
            .iter()
            .filter(|m| m["role"] == role)
            .collect::<Vec<_>>()
    };
    let ids: Vec<&Value> = of("assistant")
        .iter()
        .map(|m| &m["tool_calls"][0]["id"])
        .collect();
    assert_eq!(ids, ["call_1", "call_2"]);
    assert_eq!(
        of("tool")
            .iter()
            .map(|m| &m["tool_call_id"])
            .collect::<Vec<_>>(),
        ids
    );
    assert!(
        of("assistant")
            .iter()
            .all(|m| m["reasoning_content"] == "I miss something." && m.get("refusal").is_none())
    );
    // The judge sees the excerpts, without a label.
    let (_, open) = books(&project, "a");
    assert!(open.values().all(|row| row["overall"] == 5.0), "{open:?}");
    let judged = server
        .asked()
        .into_iter()
        .filter(|a| a.wanted == Wanted::Grades && a.text.contains("9091 now"));
    assert!(
        judged.clone().count() == 1 && judged.into_iter().all(|a| !a.text.contains("[message"))
    );
}

#[test]
fn without_a_search_the_judge_is_asked_the_same_and_the_scores_are_those_of_the_closed_book() {
    let server = Server::start();
    server.script(|asked| {
        if asked.wanted == Wanted::Answer {
            stated(&seen(asked))
        } else {
            Reply::Sensible
        }
    });
    let project = project(&server, "");
    project.expect(0, "run --label a --runs 1");
    let (closed, open) = books(&project, "a");
    for (place, row) in &open {
        assert_eq!(
            row["keys"]["judge"], closed[place]["keys"]["judge"],
            "{place:?}"
        );
        assert_eq!(row["overall"], closed[place]["overall"]);
        assert_eq!(
            (row["open_book"]["tokens"].clone(), row["answerer"].clone()),
            (json!(0), json!("agent+search"))
        );
    }
    let figures = &project.result("a", "summary.json")["methods"]["nothing"]["open_book"];
    assert_eq!(
        (&figures["gain"], &figures["answers"]["lost_not_searched"]),
        (&json!(0.0), &json!(6))
    );
}

#[test]
fn the_gain_is_what_was_dropped_and_found() {
    let all: Vec<&str> = FACTS
        .iter()
        .flat_map(|(_, facts)| facts.iter().copied())
        .collect();
    let server = Server::start();
    server.script(searches_when_it_misses);
    let project = project(&server, "");
    let text = project.read("pipeline.toml");
    let (head, rest) = text.split_once("[[compress]]").unwrap();
    let (_, stages) = rest.split_once("[[answer]]").unwrap();
    let arms = [
        ("dropped-0", 0),
        ("dropped-25", 2),
        ("dropped-50", 4),
        ("dropped-100", 7),
    ];
    let arm = |(name, dropped): (&str, usize)| {
        let kept = all.get(dropped..).unwrap().join("; ");
        let echo = format!("echo '{{\\\"summary\\\": \\\"Notes. {kept}\\\"}}'");
        format!(
            "[[compress]]\nname = \"{name}\"\nstrategy = \"command\"\ncommand = [\"sh\", \"-c\", \"{echo}\"]\n\n"
        )
    };
    let arms_text: String = arms.into_iter().map(arm).collect();
    project.write(
        "pipeline.toml",
        &format!("{head}{arms_text}[[answer]]{stages}"),
    );
    project.expect(0, "run --label a --runs 1");
    let (closed, open) = books(&project, "a");
    let answered = |row: &Value| -> Vec<String> {
        let facts = row["facts"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|fact| fact["answered"] == true);
        facts
            .map(|fact| fact["fact"].as_str().unwrap().to_owned())
            .collect()
    };
    for (name, dropped) in arms {
        let mut gain = 0;
        for ((_, probe), row) in open.iter().filter(|((method, _), _)| method == name) {
            let before = answered(&closed[&(name.to_owned(), probe.clone())]);
            let lost = |fact: &&str| !before.iter().any(|known| known == fact);
            let found: Vec<&str> = expected(row["question"].as_str().unwrap())
                .iter()
                .copied()
                .filter(lost)
                .filter(|fact| returned(row).contains(fact))
                .collect();
            assert_eq!(
                answered(row).len(),
                before.len() + found.len(),
                "{name} {probe}"
            );
            gain += found.len();
        }
        assert!(
            gain <= dropped && gain + 1 >= dropped,
            "{name}: {gain} of {dropped}"
        );
    }
}

#[test]
fn misuse_uses_up_searches_and_is_graded() {
    let server = Server::start();
    let project = project(&server, "calls = 2");
    for (label, wrong, said) in [
        (
            "other",
            calls_of("read_file", json!({"path": "a"})),
            "there is no tool `read_file`",
        ),
        (
            "empty",
            calls_of("search", json!({"query": " "})),
            "the query is empty",
        ),
        (
            "broken",
            calls_of("search", json!("x")),
            "the query is empty",
        ),
    ] {
        server.script(move |asked| match asked.wanted {
            Wanted::Answer if may_search(asked) => calls(asked, &wrong),
            Wanted::Answer => stated(&seen(asked)),
            _ => Reply::Sensible,
        });
        project.expect(
            0,
            &format!(
                "run --label {label} --runs 1 --methods nothing --probes port --refresh answer"
            ),
        );
        let (_, open) = books(&project, label);
        let row = open.values().next().unwrap();
        assert_eq!(
            row["open_book"]["searches"].as_array().unwrap().len(),
            2,
            "{label}"
        );
        assert!(
            returned(row).contains(said) && row["overall"].is_number(),
            "{row}"
        );
    }
    // An answerer that never stops calling is told once that no search is left. Then its text is its answer.
    server.script(|asked| match asked.wanted {
        Wanted::Answer if asked.json["tools"].is_array() => {
            calls(asked, &[("search", json!({"query": "port"}))])
        }
        _ => Reply::Sensible,
    });
    server.forget();
    project.expect(
        0,
        "run --label endless --runs 1 --methods nothing --probes port --refresh answer",
    );
    let (_, open) = books(&project, "endless");
    let row = open.values().next().unwrap();
    assert!(
        row["answer"].as_str().unwrap().contains("another search")
            && returned(row).contains("no searches are left")
    );
    assert_eq!(
        server
            .asked()
            .iter()
            .filter(|asked| asked.json["tools"].is_array())
            .count(),
        4
    );
    // More searches at once than are left.
    server.script(|asked| match asked.wanted {
        Wanted::Answer if may_search(asked) => {
            let query = || ("search", json!({"query": "port"}));
            calls(asked, &[query(), query(), query()])
        }
        Wanted::Answer => stated(&seen(asked)),
        _ => Reply::Sensible,
    });
    project.expect(
        0,
        "run --label many --runs 1 --methods nothing --probes port --refresh answer",
    );
    let (_, open) = books(&project, "many");
    let row = open.values().next().unwrap();
    assert!(
        returned(row).contains("no searches are left") && row["overall"] == 5.0,
        "{row}"
    );
}

fn calls_of(name: &'static str, arguments: Value) -> Vec<(&'static str, Value)> {
    vec![(name, arguments)]
}

#[test]
fn a_step_that_cannot_be_read_is_stale_to_a_plan_and_to_a_prune() {
    let server = Server::start();
    server.script(searches_when_it_misses);
    let project = project(&server, "");
    project.edit("pipeline.toml", "runs = 2", "runs = 1");
    project.expect(0, "run --label a");
    let note = "of the pipeline have no readable output";
    let prune = "cache prune --unreachable --dry-run";
    assert!(
        !project.expect(0, prune).stderr.contains(note),
        "all are cached"
    );
    let (_, open) = books(&project, "a");
    let row = &open[&("nothing".to_owned(), "port".to_owned())];
    damage(
        &project,
        row["open_book"]["steps"][0]["key"].as_str().unwrap(),
    );
    project
        .expect(0, prune)
        .says(&[&format!("1 action {note}")]);
    let counts = project.expect(0, "plan --json").json()["stages"]["answer"].clone();
    assert_eq!(counts["stale"], 1, "a run makes it again: {counts}");
}

#[test]
fn settings_are_checked_with_their_places() {
    let project = project(&Server::start(), "calls = 0\ncommand = [\"x\"]");
    let ended = project.expect(2, "check");
    ended.says(&["at least 1", "unknown key `command`"]);
}
