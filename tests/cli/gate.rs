//! The gate: what it detects with one, two and six methods, in some of the fixtures, and what a comparison says.

#![cfg(unix)]

use serde_json::{Value, json};

use super::brain::{self, Wanted, case_of, graded, material};
use super::project::{Ended, Project};
use super::server::{Reply, Server, with_finish};

const CODES: [&str; 4] = ["alpha", "beta", "gamma", "delta"];

/// Prints the sentences of a session that hold a code, without those that `tools/METHOD.drop` names. Fails on the
/// sessions that `tools/METHOD.crash` names.
const COMPRESSOR: &str = r#"input=$(cat)
for session in $(cat "tools/$1.crash"); do
  case "$input" in *"$session"*) echo "cannot compress $session" >&2; exit 3;; esac
done
kept=$(printf '%s' "$input" | grep -o 'The [a-z]* code is K[0-9]*-[a-z]*' | sort -u | grep -v -F -f "tools/$1.drop" | tr '\n' '.')
printf '{"summary":"Notes. %s"}\n' "$kept"
"#;

/// A project of short sessions with four facts each. Programs that lose what an option names compress them; the
/// built-in rules answer and grade.
pub fn sessions(methods: usize, fixtures: usize) -> Project {
    let project = Project::offline();
    for path in ["fixtures/harbor.json", "probes/harbor.probes.json"] {
        std::fs::remove_file(project.path(path)).expect("a file");
    }
    project.write("tools/compress.sh", COMPRESSOR);
    let mut pipeline = "[pipeline]\nruns = 1\nregrade = false\n\n[[answer]]\nname = \"agent\"\nmodel = \"lexical\"\n\n\
                        [[judge]]\nname = \"judge\"\nmodel = \"lexical\"\n"
        .to_owned();
    for method in 1..=methods {
        pipeline.push_str(&format!(
            "\n[[compress]]\nname = \"m{method}\"\nstrategy = \"command\"\ncommand = [\"sh\", \"tools/compress.sh\", \
             \"m{method}\"]\ninputs = [\"tools/compress.sh\", \"tools/m{method}.*\"]\n"
        ));
        project.write(&format!("tools/m{method}.drop"), "");
        project.write(&format!("tools/m{method}.crash"), "");
    }
    project.write("pipeline.toml", &pipeline);
    (1..=fixtures).for_each(|number| write_session(&project, number));
    project
}

fn write_session(project: &Project, number: usize) {
    let sentence = |code: &&str| format!("The {code} code is {}.", fact(number, code));
    let sentences: Vec<String> = CODES.iter().map(sentence).collect();
    let messages = json!([
        {"role": "user", "content": format!("Write down the codes of session-{number}.")},
        {"role": "assistant", "content": sentences.join(" ")},
        {"role": "user", "content": "Good. Then go on with the next step."},
        {"role": "assistant", "content": "I go on with it."},
    ]);
    let fixture = json!({"name": format!("s{number}"), "messages": messages, "points": [4]});
    let probe = |code: &&str| {
        json!({"id": code, "type": "recall", "question": format!("What is the {code} code?"),
               "expected_facts": [fact(number, code)]})
    };
    let bank = json!({"fixture": format!("s{number}"), "probes": CODES.iter().map(probe).collect::<Vec<_>>()});
    project.write(&format!("fixtures/s{number}.json"), &fixture.to_string());
    project.write(&format!("probes/s{number}.probes.json"), &bank.to_string());
}

fn fact(number: usize, code: &str) -> String {
    format!("K{number}-{code}")
}

/// Makes a method lose the first `count(session)` facts of each session.
pub fn lose(project: &Project, method: &str, fixtures: usize, count: impl Fn(usize) -> usize) {
    let lost = |number: usize| {
        CODES
            .iter()
            .take(count(number))
            .map(move |code| fact(number, code))
    };
    let words: Vec<String> = (1..=fixtures).flat_map(lost).collect();
    project.write(&format!("tools/{method}.drop"), &words.join("\n"));
}

pub fn compared(project: &Project, label: &str) -> Value {
    project.result(label, "summary.json")["comparison"].clone()
}

/// What was printed, without line breaks.
pub fn flat(ended: &Ended) -> String {
    format!("{} {}", ended.stdout, ended.stderr)
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}

#[test]
fn two_methods_that_both_lose_a_little_fail_by_their_mean() {
    let project = sessions(2, 6);
    project.expect(0, "run --all --label before");
    for method in ["m1", "m2"] {
        lose(&project, method, 6, |session| {
            1 + usize::from(session == 2 && method == "m1")
        });
    }
    let ended = project.expect(
        100,
        "run --all --label after --compare-to before --fail-on-regression",
    );
    ended.says(&["regressed: mean of 2 methods: overall −"]);
    let comparison = compared(&project, "after");
    assert_eq!(
        (&comparison["tested"], &comparison["primary"]["clusters"]),
        (&json!(2), &json!(6))
    );
    assert_eq!(comparison["primary"]["verdict"], "regressed");
}

#[test]
fn one_of_six_methods_that_lost_in_three_of_six_fixtures_fails_the_gate_and_both_figures_are_printed()
 {
    let project = sessions(6, 6);
    project.expect(0, "run --all --label before");
    lose(&project, "m4", 6, |session| {
        if session <= 3 { 2 + session % 2 } else { 0 }
    });
    let ended = project.expect(
        100,
        "run --all --label after --compare-to before --fail-on-regression",
    );
    let m4 = &compared(&project, "after")["methods"]["m4"];
    assert_eq!(m4["fixtures"]["changed"], json!(["s1", "s2", "s3"]));
    let (part, all) = (
        &m4["overall"]["difference"],
        &m4["overall"]["difference_all"],
    );
    assert!((part.as_f64().unwrap() - 2.0 * all.as_f64().unwrap()).abs() < 1e-9);
    assert!(
        flat(&ended).contains("on the 3 of 6 fixtures that changed: −"),
        "{}",
        ended.stdout
    );
    assert!(
        flat(&ended).contains("byte-identical contexts: 3 of 6."),
        "{}",
        ended.stdout
    );
    assert_eq!(m4["facts_lost"].as_array().unwrap().len(), 3 + 2 + 3);
}

#[test]
fn the_same_large_loss_in_all_of_four_fixtures_fails_the_gate() {
    let project = sessions(1, 4);
    project.expect(0, "run --all --label before");
    lose(&project, "m1", 4, |_| 4);
    project.expect(
        100,
        "run --all --label after --compare-to before --fail-on-regression",
    );
    let overall = &compared(&project, "after")["methods"]["m1"]["overall"];
    assert_eq!(
        (&overall["degenerate"], &overall["verdict"]),
        (&json!(true), &json!("regressed"))
    );
}

#[test]
fn a_loss_in_two_fixtures_is_reported_as_untestable() {
    let project = sessions(2, 6);
    project.expect(0, "run --all --label before");
    lose(
        &project,
        "m1",
        6,
        |session| if session <= 2 { 4 } else { 0 },
    );
    let ended = project.expect(
        0,
        "run --all --label after --compare-to before --fail-on-regression",
    );
    let text = flat(&ended);
    assert!(
        text.contains("m1 cannot be tested: it changed in 2 of 6 fixtures"),
        "{text}"
    );
    assert!(
        !text.contains("cannot show any difference"),
        "no second sentence about the same: {text}"
    );
    let comparison = compared(&project, "after");
    assert_eq!(comparison["tested"], 0);
    assert_eq!(
        comparison["methods"]["m1"]["overall"]["reason"],
        "few fixtures"
    );
}

#[test]
fn a_new_prompt_that_yields_the_same_context_is_no_change() {
    let project = sessions(1, 3);
    project.expect(0, "run --all --label before");
    project.write("tools/compress.sh", &format!("# a remark\n{COMPRESSOR}"));
    let ended = project.expect(
        0,
        "run --all --label after --compare-to before --fail-on-regression",
    );
    let m1 = &compared(&project, "after")["methods"]["m1"];
    assert_eq!(m1["fixtures"]["unchanged"], json!(["s1", "s2", "s3"]));
    assert_eq!(m1["edits"].as_array().unwrap().len(), 1, "{m1}");
    assert!(
        flat(&ended).contains("unchanged (same answers, same grades): m1"),
        "{}",
        ended.stdout
    );
}

#[test]
fn new_failures_are_listed_and_fail_on_demand_and_many_of_them_are_a_regression() {
    let project = sessions(1, 3);
    project.expect(0, "run --all --label before --runs 3");
    project.write("tools/m1.crash", "session-1");
    let lone = "run --all --label one --runs 3 --compare-to before --fail-on-regression";
    let ended = project.expect(5, lone);
    assert!(
        flat(&ended).contains("fail now but not in the baseline (3): s1 · run 1"),
        "{}",
        ended.stdout
    );
    assert_eq!(
        compared(&project, "one")["methods"]["m1"]["reliability"]["regressed"],
        false
    );
    let ended = project.compeval(&format!("{lone} --fail-on-new-failures"));
    ended.says(&["newly failing: m1 · s1 · run 2"]);
    project.write("tools/m1.crash", "session-1 session-2");
    let ended =
        project.compeval("run --all --label two --runs 3 --compare-to before --fail-on-regression");
    ended.says(&[
        "regressed: m1: failed 6 of 9 chains (fixture and run), in before 0 of 9, p 0.003",
    ]);
    let reliability = &compared(&project, "two")["methods"]["m1"]["reliability"];
    assert_eq!(
        (&reliability["failed"], &reliability["chains"]),
        (&json!(6), &json!(9))
    );
}

#[test]
fn a_run_of_some_fixtures_is_compared_on_what_both_sides_have() {
    let project = sessions(1, 4);
    project.expect(0, "run --all --label before");
    let ended = project.expect(
        0,
        "run --all --label some --fixtures s1,s2,s3 --compare-to before",
    );
    assert!(
        flat(&ended).contains("Only what both sides have is compared: 3 fixtures with 12 probes."),
        "{}",
        ended.stdout
    );
    assert_eq!(compared(&project, "some")["left_out"], 4);
    // Cells that were asked differently are still refused, unless they may be left out.
    project.edit(
        "probes/s2.probes.json",
        "What is the beta code?",
        "Which is the beta code?",
    );
    let ended = project.compeval("run --all --label other --fixtures s1,s2,s3 --compare-to before");
    ended.says(&[
        "the probes of fixture `s2`",
        "`--only-common` compares the cells that do match",
    ]);
    project.expect(
        0,
        "run --all --label other --fixtures s1,s2,s3 --compare-to before --only-common",
    );
    assert_eq!(compared(&project, "other")["probes"], 11);
    project.expect(0, "report other");
    assert_eq!(
        compared(&project, "other")["probes"],
        11,
        "the report compares what the run compared"
    );
}

#[test]
fn the_same_requests_with_other_grades_are_tested_and_lone_cells_and_served_models_are_named() {
    let server = Server::start();
    let project = sessions(1, 4);
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
    project.expect(0, "run --all --label before");

    // The provider moves the name to a harsher model: no key changes, but every grade does.
    server.script(|asked| {
        let brief = material(&asked.text)
            .filter(|brief| asked.wanted == Wanted::Grades && case_of(brief).is_none());
        let score = 1 + u64::from(asked.text.contains("K1-"));
        let said = brief
            .and_then(|brief| graded(&brief, score))
            .unwrap_or_else(|| brain::reply(&asked.json));
        Reply::Raw(
            200,
            with_finish(asked, &said, "stop").replace("small-1-2025", "small-1-2026"),
        )
    });
    let ended = project.expect(
        0,
        "run --all --label after --refresh judge --compare-to before --fail-on-regression",
    );
    assert!(
        flat(&ended).starts_with("No verdict: m1 ")
            && flat(&ended).contains("as the judge changed"),
        "{}",
        ended.stdout
    );
    let m1 = compared(&project, "after")["methods"]["m1"].clone();
    assert_eq!(
        m1["fixtures"]["asked_again"],
        json!(["s1", "s2", "s3", "s4"]),
        "{m1}"
    );
    assert_eq!(
        (&m1["fixtures"]["changed"], &m1["contexts"]["same"]),
        (&json!([]), &json!(4))
    );
    assert!(
        flat(&ended).contains("was served by `small-1-2026`, in the baseline by `small-1-2025`"),
        "{}",
        ended.stdout
    );

    // The cells of one session are lost: it is named, and the others are compared without it.
    server.script(|asked| {
        match asked.wanted == Wanted::Grades && asked.text.contains("K4-alpha") {
            true => Reply::Text("A fine answer.".to_owned()),
            false => Reply::Sensible,
        }
    });
    project.expect(
        5,
        "run --all --label lone --refresh judge --compare-to before",
    );
    let fixtures = compared(&project, "lone")["methods"]["m1"]["fixtures"].clone();
    assert_eq!(
        (&fixtures["one_sided"], &fixtures["not_comparable"]),
        (&json!(CODES.len()), &json!(["s4"]))
    );
    assert_eq!(
        fixtures["unchanged"],
        json!(["s1", "s2", "s3"]),
        "{fixtures}"
    );
}

#[test]
fn a_run_that_could_not_be_compared_is_refused_before_anything_is_sent() {
    let server = Server::start();
    let project = Project::new(&server);
    project.expect(0, "run --all --label before --runs 1");
    let prompt = project.read("prompts/answer.md");
    project.write("prompts/answer.md", &format!("{prompt}\nBe brief.\n"));
    server.forget();
    let run = "run --all --label after --runs 1 --compare-to before";
    let plan = "plan --label after --runs 1 --compare-to before";
    for line in [
        run.to_owned(),
        plan.to_owned(),
        format!("{run} --only-common"),
    ] {
        let refused = flat(&project.expect(2, &line));
        let words = [
            "the answerer (mock/small-1, with other settings or another prompt)",
            "nothing was sent",
        ];
        assert!(
            words.iter().all(|words| refused.contains(words)),
            "{line}: {refused}"
        );
    }
    assert_eq!(
        (server.count(), project.exists("results/after")),
        (0, false)
    );
    project.write("prompts/answer.md", &prompt);
    project.expect(0, plan);
    project.expect(0, run);
}

#[test]
fn the_sentence_says_with_how_many_labels_a_baseline_was_compared() {
    let project = sessions(1, 4);
    lose(&project, "m1", 4, |session| 2 + session % 2);
    project.expect(0, "run --all --label before");
    for (number, kept) in [(1, 4), (2, 3), (3, 2)] {
        lose(&project, "m1", 4, |_| 4 - kept);
        let label = ["a", "b", "c"][number - 1];
        let ended = project.expect(
            0,
            &format!("run --all --label {label} --compare-to ./results/before"),
        );
        let said = format!("baseline was compared with {number} labels so far");
        assert_eq!(
            flat(&ended).contains(&said),
            number > 1,
            "{label}: {}",
            ended.stdout
        );
        assert_eq!(compared(&project, label)["labels"], number);
    }
    // A label is counted once, and comparing again is no further label.
    project.expect(0, "run --all --label c --compare-to before");
    assert_eq!(compared(&project, "c")["labels"], 3);
    let compared = project.expect(0, "compare a before");
    assert!(flat(&compared).contains("compared with 3 labels"));
    project.expect(0, "labels rm b");
    let compared = project.expect(0, "compare a before");
    assert!(flat(&compared).contains("compared with 2 labels"));
}

#[test]
fn a_run_is_compared_again_with_the_results_that_it_was_compared_with() {
    let project = sessions(1, 4);
    project.expect(0, "run --label base");
    lose(&project, "m1", 4, |_| 3);
    project.expect(0, "run --label now --compare-to base:m1");
    let found = compared(&project, "now")["methods"].clone();
    project
        .expect(2, "run --label now --compare-to now")
        .says(&["`now` would be compared with itself"]);
    // Twice, other results take the label of the baseline; what was under a number has another one then.
    project.expect(0, "run --label base --replace");
    project.expect(0, "run --label later --compare-to base~1");
    lose(&project, "m1", 4, |_| 2);
    project.expect(0, "run --label base --replace");
    for (label, side) in [("now", "base~2:m1"), ("later", "base~2")] {
        project.expect(0, &format!("report {label}"));
        let again = compared(&project, label);
        assert_eq!(again["methods"], found, "{label}");
        assert_eq!(again["baseline"], side);
        assert_eq!(again["labels"], 2, "of the same baseline");
    }
    lose(&project, "m1", 4, |_| 1);
    project.expect(0, "run --label other --compare-to base");
    assert_eq!(
        compared(&project, "other")["labels"],
        1,
        "of another baseline"
    );
    project.expect(0, "labels rm base~2");
    project.expect(2, "report now").says(&[
        "not compared",
        "other results than those that were compared with, which are no longer there",
    ]);
}
