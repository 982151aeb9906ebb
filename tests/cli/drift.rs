//! Answers that are judged again: those of the baseline for each verdict, and those of the run with a fact made false.

#![cfg(unix)]

use serde_json::{Value, json};

use super::brain::{Wanted, case_of, graded, material};
use super::gate::{compared, lose, sessions};
use super::project::{Ended, Project};
use super::server::{Asked, Reply, Server, wait_until};

/// How many answers are judged again: all of the baseline.
const REGRADED: usize = 16;

/// A project whose judge is the server, with a baseline `before` in which every answer got `score`.
fn project(server: &Server, methods: usize, score: u64) -> Project {
    let project = sessions(methods, 4);
    let provider = format!(
        "[providers.mock]\nkind = \"openai-chat\"\nbase_url = \"{}\"\n\n[[answer]]",
        server.url()
    );
    project.edit("pipeline.toml", "[[answer]]", &provider);
    project.edit(
        "pipeline.toml",
        "\"judge\"\nmodel = \"lexical\"",
        "\"judge\"\nmodel = \"mock/judge-1\"",
    );
    server.script(move |asked| all_get(asked, score));
    project.expect(0, "run --all --label before");
    project
}

/// A judge that gives every answer this score and passes its self-test.
fn all_get(asked: &Asked, score: u64) -> Reply {
    let brief = material(&asked.text).filter(|brief| case_of(brief).is_none());
    brief
        .and_then(|brief| graded(&brief, score))
        .map_or(Reply::Sensible, Reply::Text)
}

/// A judge that gives answers from edited contexts `edited`, and all others `others`.
fn by_context(asked: &Asked, edited: u64, others: u64) -> Reply {
    let is_edited = asked.text.contains("Minutes.");
    all_get(asked, if is_edited { edited } else { others })
}

/// An edit that changes all contexts and loses nothing.
fn edit_contexts(project: &Project) {
    project.edit("tools/compress.sh", "Notes.", "Minutes.");
}

fn grades_asked(server: &Server) -> usize {
    server
        .asked()
        .iter()
        .filter(|asked| asked.wanted == Wanted::Grades)
        .count()
}

fn flat(ended: &Ended) -> String {
    format!("{} {}", ended.stdout, ended.stderr)
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}

fn verdict(project: &Project, label: &str) -> (Value, Value, Value) {
    let m1 = compared(project, label)["methods"]["m1"].clone();
    (
        m1["overall"]["verdict"].clone(),
        m1["overall"]["reason"].clone(),
        m1["drift"]["status"].clone(),
    )
}

#[test]
fn a_judge_that_became_harsher_is_no_regression() {
    let server = Server::start();
    let project = project(&server, 1, 4);
    edit_contexts(&project);
    server.script(|asked| all_get(asked, 3));
    let before = grades_asked(&server);
    let run = "run --all --label after --compare-to before --fail-on-regression";
    let ended = project.expect(0, run);
    assert_eq!(
        grades_asked(&server) - before,
        16 + REGRADED,
        "each new answer, and each of the baseline"
    );
    let found = (json!("no evidence"), json!("judge drift"), json!("checked"));
    assert_eq!(verdict(&project, "after"), found);
    let regraded = compared(&project, "after")["methods"]["m1"]["drift"]["overall"].clone();
    assert_eq!(
        regraded,
        json!({"answers": 16, "shift": -1.0, "variance": 0.0})
    );
    assert!(
        flat(&ended).contains("16 answers of the baseline, graded again, moved by −1.00"),
        "{}",
        ended.stdout
    );
    ended.says(&[
        "gate: m1: overall −1.00",
        "the judge changed or may have, no verdict",
    ]);
    let stages = project.result("after", "manifest.json")["stages"].clone();
    assert_eq!(
        (&stages["regrade"]["executed"], &stages["regrade"]["cells"]),
        (&json!(16), &json!(16))
    );

    // Nothing is asked twice, and a command that sends nothing knows the result.
    let before = grades_asked(&server);
    project.expect(0, run);
    assert_eq!(verdict(&project, "after"), found);
    project.expect(0, "report after");
    assert_eq!(verdict(&project, "after"), found);
    let ended = project.expect(0, "compare after before --all");
    assert!(
        flat(&ended).contains("no evidence (judge drift)"),
        "{}",
        ended.stdout
    );
    assert_eq!(grades_asked(&server), before);
    // Other grades make another check.
    project.expect(
        0,
        "run --all --label after --refresh judge --compare-to before",
    );
    assert_eq!(grades_asked(&server) - before, 55 + 16 + REGRADED);
    assert_eq!(verdict(&project, "after"), found);
}

#[test]
fn a_loss_that_the_judge_does_not_explain_stays_a_loss() {
    let server = Server::start();
    let project = project(&server, 2, 4);
    edit_contexts(&project);
    server.script(|asked| by_context(asked, 3, 4));
    let plan = project.expect(0, "plan --label after --compare-to before");
    assert!(
        flat(&plan).contains("at most 180 more requests"),
        "{}",
        plan.stderr
    );
    let ended = project.expect(
        100,
        "run --all --label after --compare-to before --fail-on-regression",
    );
    ended.says(&["regressed: m1: overall −1.00"]);
    assert_eq!(
        verdict(&project, "after"),
        (json!("regressed"), Value::Null, json!("checked"))
    );
    let comparison = compared(&project, "after");
    assert_eq!(
        comparison["methods"]["m2"]["drift"]["overall"]["shift"],
        0.0
    );
    assert_eq!(
        comparison["drift"]["overall"]["answers"], REGRADED,
        "the mean has a check of its own; both methods have the same answers in the baseline"
    );
    assert!(
        flat(&ended).contains("which does not explain the verdict"),
        "{}",
        ended.stdout
    );
}

#[test]
fn what_was_not_judged_again_is_said_to_be_unchecked() {
    let server = Server::start();
    let project = project(&server, 1, 4);
    edit_contexts(&project);
    server.script(|asked| all_get(asked, 3));
    // The grades are made without a baseline, so nothing was judged again; `compare` sends nothing.
    project.expect(0, "run --all --label after");
    let sent = grades_asked(&server);
    let ended = project.expect(0, "compare after before --all");
    assert!(
        flat(&ended).contains("drift not checked"),
        "{}",
        ended.stdout
    );
    assert!(
        flat(&ended).contains("m1: drift not checked: `run --compare-to`"),
        "{}",
        ended.stdout
    );
    // Neither does a run whose grades are all in the cache: its judge was not asked today.
    project.expect(
        100,
        "run --all --label after --compare-to before --fail-on-regression",
    );
    let found = (json!("regressed"), Value::Null, json!("unchecked"));
    assert_eq!(verdict(&project, "after"), found);
    assert_eq!(grades_asked(&server), sent);
    // The budget ends in the middle: 16 grades, and 3 of the baseline.
    edit_again(&project);
    let run = "run --all --label later --compare-to before --fail-on-regression";
    project.expect(100, &format!("{run} --max-requests 19"));
    assert_eq!(
        (grades_asked(&server) - sent, verdict(&project, "later")),
        (19, found)
    );
}

/// Another edit that changes all contexts and loses nothing.
fn edit_again(project: &Project) {
    project.edit("tools/compress.sh", "Minutes.", "Hours.");
}

#[test]
fn rules_do_not_change_and_contexts_that_are_gone_are_not_guessed() {
    let project = sessions(1, 4);
    project.expect(0, "run --all --label before");
    lose(&project, "m1", 4, |_| 2);
    project.expect(
        100,
        "run --all --label after --compare-to before --fail-on-regression",
    );
    assert_eq!(
        verdict(&project, "after"),
        (json!("regressed"), Value::Null, Value::Null)
    );
}

/// The facts of a session as a judge may see them.
fn states_the_fact(asked: &Asked) -> Option<bool> {
    let brief = material(&asked.text).filter(|brief| case_of(brief).is_none())?;
    let fact = brief["ground_truth"]["expected_facts"][0]
        .as_str()?
        .to_owned();
    Some(brief["model_response"].as_str()?.contains(&fact))
}

#[test]
fn a_judge_that_does_not_read_facts_is_the_first_warning_of_the_report() {
    let server = Server::start();
    let project = sessions(1, 6);
    let provider = format!(
        "[providers.mock]\nkind = \"openai-chat\"\nbase_url = \"{}\"\n\n[[answer]]",
        server.url()
    );
    project.edit("pipeline.toml", "[[answer]]", &provider);
    project.edit(
        "pipeline.toml",
        "\"judge\"\nmodel = \"lexical\"",
        "\"judge\"\nmodel = \"mock/judge-1\"",
    );
    project.edit("pipeline.toml", "regrade = false", "regrade = true");
    let checked =
        |label: &str| project.result(label, "manifest.json")["caveats"]["reading"].clone();
    let plan = project.expect(0, "plan");
    assert!(
        plan.stdout
            .contains("and at most 40 more that check the judges"),
        "{}",
        plan.stdout
    );

    // A judge that reads the facts: 24 answers, and twenty of them again and with a false code.
    server.script(|asked| match states_the_fact(asked) {
        Some(false) => all_get(asked, 1),
        _ => all_get(asked, 5),
    });
    let before = grades_asked(&server);
    project.expect(0, "run --all --label reads");
    let own = |asked: &Asked| states_the_fact(asked).is_some();
    assert_eq!(
        server
            .asked()
            .iter()
            .skip(before)
            .filter(|asked| own(asked))
            .count(),
        24 + 40
    );
    assert_eq!(
        checked("reads"),
        json!([{"judge": "judge", "below": 20, "above": 0, "of": 20}])
    );
    assert!(
        !project
            .read("results/reads/report.md")
            .contains("hardly reads")
    );
    let asked = server.asked();
    let false_in_three = asked.iter().skip(before).filter(|asked| {
        let own = ["K1-", "K2-", "K3-"].map(|code| format!("\"{code}"));
        states_the_fact(asked) == Some(false) && own.iter().any(|code| asked.text.contains(code))
    });
    let in_three = false_in_three.count();
    // It is cached like all others.
    let before = grades_asked(&server);
    project.expect(0, "run --all --label again");
    assert_eq!(
        (grades_asked(&server), checked("again")),
        (before, checked("reads"))
    );

    // A judge that gives all answers the same grade.
    server.script(|asked| all_get(asked, 5));
    project.expect(0, "run --all --label likes --refresh judge");
    assert_eq!(
        checked("likes"),
        json!([{"judge": "judge", "below": 0, "above": 0, "of": 20}])
    );
    let report = project.read("results/likes/report.md");
    let warning = report
        .find("may not read what it grades: of 20 answers of this run")
        .expect("the warning");
    assert!(warning < report.find("| ").expect("a table"), "{report}");

    // With another name of the method nothing is sent, and a part of the matrix is checked by what the cache has.
    let before = grades_asked(&server);
    project.expect(0, "plan --exit-code");
    project.edit("pipeline.toml", "name = \"m1\"", "name = \"renamed\"");
    project.expect(0, "run --all --label renamed");
    assert_eq!(checked("renamed")[0]["of"], 20);
    project.expect(0, "run --all --label few --fixtures s1,s2,s3");
    assert_eq!(
        (&checked("few")[0]["of"], grades_asked(&server)),
        (&json!(in_three), before)
    );
    assert!(
        project
            .read("results/few/report.md")
            .contains("was not checked on answers of this run")
    );
    project.edit("pipeline.toml", "regrade = true", "regrade = false");
    let before = grades_asked(&server);
    project.expect(0, "run --all --label off");
    assert_eq!(
        (grades_asked(&server), checked("off")),
        (before, Value::Null)
    );
}

#[test]
fn ctrl_c_during_the_check_of_a_judge_also_leaves_the_other_checks_to_the_next_run() {
    let server = Server::start();
    let project = sessions(1, 6);
    let provider = format!(
        "[providers.mock]\nkind = \"openai-chat\"\nbase_url = \"{}\"\n\n[[answer]]",
        server.url()
    );
    project.edit("pipeline.toml", "[[answer]]", &provider);
    let judges = "\"judge\"\nmodel = \"mock/judge-1\"\n\n[[judge]]\nname = \"other\"\nmodel = \"mock/judge-2\"";
    project.edit("pipeline.toml", "\"judge\"\nmodel = \"lexical\"", judges);
    project.edit("pipeline.toml", "regrade = false", "regrade = true");
    let checks = |model: &str| {
        let asked = server.asked();
        let of_model = asked.iter().filter(|asked| asked.json["model"] == model);
        of_model
            .filter(|asked| states_the_fact(asked) == Some(false))
            .count()
    };
    server.script(|asked| match states_the_fact(asked) {
        Some(false) => Reply::Held,
        _ => all_get(asked, 5),
    });
    let mut running = project.start("run --all --label a");
    wait_until(|| checks("judge-1") > 0);
    running.interrupt();
    running.wait_for_words("stopping");
    server.let_go();
    let ended = running.end();
    assert_eq!(
        (ended.code, checks("judge-2")),
        (130, 0),
        "{}",
        ended.stderr
    );
    ended.says(&["interrupted while the judges were checked"]);
    assert_eq!(project.result("a", "manifest.json")["outcome"], "complete");

    project.expect(0, "run --all --label a");
    let checked = project.result("a", "manifest.json")["caveats"]["reading"].clone();
    let of: Vec<&Value> = checked
        .as_array()
        .expect("checks")
        .iter()
        .map(|check| &check["of"])
        .collect();
    assert_eq!(of, [&json!(20), &json!(20)]);
}
