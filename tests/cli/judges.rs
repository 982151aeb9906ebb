//! Judges on loopback that follow a rule instead of the ground truth: the self-test must find each of them.

use compeval::judge::{CaseKind, Dimension, Quality};
use serde_json::{Value, json};

use super::brain::{self, Wanted, case_of, graded, graded_by, material};
use super::matrix::SELFTEST;
use super::project::Project;
use super::server::{Asked, Reply, Server};

/// Makes `server` grade by `score`, which gets the request, and answer everything else by rules.
fn script(server: &Server, score: impl Fn(&Value) -> u64 + Send + Sync + 'static) {
    script_by(server, move |brief, _| score(brief));
}

/// Like [`script`], with a score for each dimension.
fn script_by(server: &Server, score: impl Fn(&Value, Dimension) -> u64 + Send + Sync + 'static) {
    server.script(move |asked| match (asked.wanted, material(&asked.text)) {
        (Wanted::Grades, Some(brief)) => {
            Reply::Text(graded_by(&brief, |dimension| score(&brief, dimension)).expect("criteria"))
        }
        _ => Reply::Sensible,
    });
}

/// Runs the self-test of a judge that grades by `score`: whether it passed, and what it says.
fn selftest_by(score: impl Fn(&Value, Dimension) -> u64 + Send + Sync + 'static) -> (bool, Value) {
    let server = Server::start();
    let project = Project::new(&server);
    script_by(&server, score);
    let ended = project.compeval("judge selftest --json");
    let judge = ended.json()["judges"][0].clone();
    assert_eq!(
        ended.code,
        i32::from(judge["may_grade"] != json!(true)),
        "{}",
        ended.stderr
    );
    assert_eq!(server.count(), SELFTEST, "one request for each answer");
    (judge["passed"] == json!(true), judge)
}

fn selftest(score: impl Fn(&Value) -> u64 + Send + Sync + 'static) -> (bool, Value) {
    selftest_by(move |brief, _| score(brief))
}

fn by_quality(right: u64, half: u64, wrong: u64) -> impl Fn(&Value, Dimension) -> u64 {
    move |brief, dimension| match brain::quality_of(case_of(brief).expect("a case"), dimension) {
        Some(Quality::Right) => right,
        Some(Quality::Half) => half,
        Some(Quality::Wrong) | None => wrong,
    }
}

/// The share of the expected facts that occur in the answer.
fn stated(brief: &Value) -> f64 {
    let said = brief["model_response"]
        .as_str()
        .unwrap_or("")
        .to_lowercase();
    let facts = brief["ground_truth"]["expected_facts"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let spellings = |fact: &Value| {
        fact.as_array()
            .cloned()
            .unwrap_or_else(|| vec![fact.clone()])
    };
    let stands = |fact: &&Value| {
        spellings(fact)
            .iter()
            .filter_map(Value::as_str)
            .any(|spelling| said.contains(&spelling.to_lowercase()))
    };
    facts.iter().filter(stands).count() as f64 / facts.len() as f64
}

#[test]
fn sound_and_lenient_and_harsh_judges_pass() {
    for (right, half, wrong) in [(5, 3, 0), (5, 4, 3), (3, 2, 1)] {
        let (passed, judge) = selftest_by(by_quality(right, half, wrong));
        assert!(passed, "{right} {half} {wrong}: {judge}");
        assert_eq!(
            (&judge["correct"], &judge["labels"]),
            (&json!(96), &json!(96))
        );
        assert_eq!(judge["dimensions"][0]["median_right"], json!(right as f64));
    }
}

#[test]
fn a_judge_that_compares_with_the_context_is_qualified_in_nothing() {
    let (passed, judge) = selftest(|brief| {
        // The share of the names and numbers of the answer that are in its context. An answer without any contradicts
        // nothing.
        let context = brief["compacted_context"].as_str().unwrap_or("").to_owned();
        let answer = brief["model_response"].as_str().unwrap_or("");
        let names: Vec<&str> = answer
            .split_whitespace()
            .map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()))
            .filter(|word| word.contains(|c: char| c.is_ascii_digit() || "/_".contains(c)))
            .collect();
        if names.iter().all(|name| context.contains(name)) {
            5
        } else {
            1
        }
    });
    assert!(!passed && judge["may_grade"] == json!(false), "{judge}");
    assert_eq!(unqualified(&judge).len(), 6, "{judge}");
}

fn unqualified(judge: &Value) -> Vec<&str> {
    let dimensions = judge["dimensions"].as_array().expect("dimensions");
    let failed = dimensions
        .iter()
        .filter(|result| result["qualified"] == json!(false));
    failed
        .filter_map(|result| result["dimension"].as_str())
        .collect()
}

#[test]
fn judges_that_look_for_facts_grade_nothing() {
    for (name, (passed, judge)) in [
        (
            "any",
            selftest(|brief| if stated(brief) > 0.0 { 5 } else { 0 }),
        ),
        (
            "all",
            selftest(|brief| if stated(brief) >= 1.0 { 5 } else { 0 }),
        ),
        ("share", selftest(|brief| (5.0 * stated(brief)) as u64)),
    ] {
        assert!(
            !passed && judge["may_grade"] == json!(false),
            "{name}: {judge}"
        );
        assert!(
            judge["failures"].to_string().contains("accuracy: "),
            "{name}: {judge}"
        );
    }
}

#[test]
fn inverting_and_indifferent_judges_fail_by_their_medians() {
    for (name, (passed, judge)) in [
        ("inverting", selftest_by(by_quality(0, 3, 5))),
        ("flat", selftest(|_| 4)),
    ] {
        assert!(
            !passed && judge["failures"][0].as_str().unwrap().contains("apart"),
            "{name}: {judge}"
        );
    }
}

#[test]
fn a_judge_that_follows_instructions_fails_by_them_alone() {
    let (passed, judge) = selftest_by(|brief, dimension| {
        let case = case_of(brief).expect("a case");
        if case.kind == CaseKind::Injection {
            5
        } else {
            brain::sound(case, dimension)
        }
    });
    assert!(!passed && judge["correct"] == json!(96), "{judge}");
    assert!(
        judge["failures"]
            .to_string()
            .contains("an instruction to the judge"),
        "{judge}"
    );
}

#[test]
fn a_dimension_in_which_the_judge_is_blind_leaves_overall_and_the_gate() {
    let server = Server::start();
    let project = Project::new(&server);
    script_by(&server, |brief, dimension| match case_of(brief) {
        Some(_) if dimension == Dimension::ContextAwareness => 3,
        Some(case) => brain::sound(case, dimension),
        None => (5.0 * stated(brief)) as u64,
    });
    let tested = project.expect(0, "judge selftest");
    for words in [
        "partly:",
        "context awareness",
        "not qualified",
        "context_awareness missed: ",
    ] {
        assert!(
            tested.stdout.contains(words),
            "`{words}` is missing in {}",
            tested.stdout
        );
    }
    project.expect(0, "run --label a --runs 1");
    let caveats = project.result("a", "manifest.json")["caveats"].clone();
    assert_eq!(
        caveats["unqualified"],
        json!([{"judge": "grader", "dimensions": ["context_awareness"]}])
    );
    let summary = project.result("a", "summary.json");
    let averaged = summary["overall_dimensions"].as_array().unwrap();
    assert!(
        averaged.len() > 1 && !averaged.contains(&json!("context_awareness")),
        "{averaged:?}"
    );
    assert_eq!(summary["excluded"][0]["reason"], "unqualified");
    let said =
        "overall and the gate do not count context: grader has not passed its self-test there";
    assert!(project.read("results/a/report.md").contains(said));
    project.expect(0, "run --label b --runs 1");
    let compared = project.expect(0, "compare a b --json").json();
    assert!(compared.to_string().contains("\"excluded\""), "{compared}");
}

/// A judge that never returns grades.
fn chatty(asked: &Asked) -> Reply {
    match asked.wanted {
        Wanted::Grades => Reply::Text("A fine answer, well done.".to_owned()),
        _ => Reply::Sensible,
    }
}

#[test]
fn a_judge_that_gives_no_grades_has_no_medians() {
    let server = Server::start();
    let project = Project::new(&server);
    server.script(chatty);
    project.edit("pipeline.toml", "max_in_flight = 16", "max_in_flight = 1");
    let judge = project.compeval("judge selftest --json").json()["judges"][0].clone();
    let dimensions = judge["dimensions"].as_array().expect("dimensions");
    assert!(
        dimensions
            .iter()
            .all(|dimension| dimension["median_right"].is_null()),
        "{judge}"
    );
    let page = project.compeval("judge selftest").stdout;
    assert!(
        page.contains("grader (") && page.contains("16 of 16"),
        "{page}"
    );
}

#[test]
fn a_judge_whose_replies_never_keep_the_contract_is_given_up_though_weak_ones_are_allowed() {
    let server = Server::start();
    let project = Project::new(&server);
    server.script(chatty);
    project.edit("pipeline.toml", "max_in_flight = 16", "max_in_flight = 1");
    project.edit(
        "pipeline.toml",
        "model = \"mock/judge-1\"",
        "model = \"mock/judge-1\"\nattempts = 2",
    );
    let given_up = "stopped: judge grader gets no more requests: 8 replies in a row are not in the right format";
    project
        .expect(5, "run --label a --runs 1 --allow-weak-judge -j 1")
        .says(&[given_up]);
    let asked = server.counts()[&Wanted::Grades];
    assert_eq!(asked, 8, "eight replies in all");
    assert!(project.rows("a").is_empty());

    // Its self-test is in the cache when its replies change, so the cells find out.
    server.script(|_| Reply::Sensible);
    project.expect(0, "judge selftest");
    server.forget();
    server.script(chatty);
    project
        .expect(5, "run --label a --runs 1 --allow-weak-judge -j 1")
        .says(&[given_up]);
    assert_eq!(server.counts()[&Wanted::Grades], 8);
    assert!(
        project
            .read("results/a/report.md")
            .contains("8 replies in a row are not in the right format")
    );

    server.script(|_| Reply::Sensible);
    project.expect(0, "run --label a --runs 1");
    assert!(
        !project.rows("a").is_empty(),
        "what was given up is asked again by the next run"
    );
}

#[test]
fn a_judge_that_breaks_the_format_in_every_cell_is_given_up_after_eight_replies_at_any_concurrency()
{
    let server = Server::start();
    let project = Project::new(&server);
    let breaks_cells = |asked: &Asked| match material(&asked.text) {
        Some(brief) if asked.wanted == Wanted::Grades && case_of(&brief).is_none() => chatty(asked),
        _ => Reply::Sensible,
    };
    let cells = || {
        let briefs = server
            .asked()
            .into_iter()
            .filter_map(|asked| material(&asked.text));
        briefs.filter(|brief| case_of(brief).is_none()).count()
    };
    server.script(breaks_cells);
    project.expect(5, "run --label a");
    assert_eq!(cells(), 8, "the self-test of the same run kept the format");
    server.forget();
    project.expect(5, "run --label a");
    assert_eq!(cells(), 8, "the self-test is in the cache");
}

#[test]
fn the_answers_of_a_run_are_no_cases_of_the_self_test() {
    // The loopback judge knows how good the answers of the self-test are. That must not help it elsewhere.
    let brief = json!({"probe_question": "Which port?", "model_response": "8081"});
    assert!(case_of(&brief).is_none() && brain::material("no request").is_none());
}

#[test]
fn ceiling_and_floor_that_are_graded_alike_are_a_warning_on_top_that_names_the_cause() {
    let server = Server::start();
    let project = Project::new(&server);
    script(&server, |_| 3);
    let run = "run --label a --runs 1 --allow-weak-judge";
    let ended = project.expect(0, run);
    let scale = project.result("a", "summary.json")["scale"].clone();
    assert_eq!(
        (&scale["cause"], &scale["difference"]),
        (&json!("judge"), &json!(0.0)),
        "{scale}"
    );
    let output = ended
        .stdout
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    let warning = output
        .find("the judge is the likely cause")
        .expect("the warning");
    assert!(
        warning < output.find("anchored").expect("the table"),
        "above all figures: {output}"
    );
    for report in ["results/a/report.md", "results/a/report.html"] {
        assert!(
            project
                .read(report)
                .contains("the judge is the likely cause"),
            "{report}"
        );
    }
    // A judge that sees the difference gets no warning. Without both ends of the scale nothing is checked.
    script(&server, |brief| {
        case_of(brief).map_or((5.0 * stated(brief)) as u64, |_| 3)
    });
    project.edit(
        "pipeline.toml",
        "model = \"mock/judge-1\"",
        "model = \"mock/judge-2\"",
    );
    project.expect(0, &format!("{run} --replace"));
    let scale = project.result("a", "summary.json")["scale"].clone();
    assert!(scale["difference"].as_f64().unwrap() > 1.0, "{scale}");
    assert!(
        !project
            .read("results/a/report.md")
            .contains("ceiling and floor")
    );
    project.expect(
        0,
        "run --label b --runs 1 --methods anchored --allow-weak-judge",
    );
    assert!(
        project
            .read("results/b/report.md")
            .contains("ceiling and floor: not checked")
    );
}

/// A bank in which no probe has expected facts, and one has no answer in the transcript.
const WITHOUT_FACTS: &str = r#"{
  "fixture": "harbor",
  "probes": [
    {"id": "why", "type": "decision", "question": "Why was the port moved?", "reference_answer": "Because it was taken."},
    {"id": "files", "type": "artifact", "question": "Which files were touched?", "reference_answer": "The configuration."},
    {"id": "owner", "type": "recall", "question": "Who owns the machine?", "answerable": false}
  ]
}"#;

#[test]
fn a_bank_without_facts_has_a_scale_and_what_to_suspect_is_unknown() {
    let server = Server::start();
    let project = Project::new(&server);
    project.write("probes/harbor.probes.json", WITHOUT_FACTS);
    script(&server, |_| 3);
    project.expect(0, "run --label a --runs 1 --allow-weak-judge");
    let summary = project.result("a", "summary.json");
    let scale = &summary["scale"];
    assert_eq!(
        (&scale["probes"], &scale["difference"], &scale["cause"]),
        (&json!(2), &json!(0.0), &Value::Null)
    );
    assert_eq!(summary["headline"]["kind"], "unscaled");
    let report = project.read("results/a/report.md");
    assert!(
        report.contains("without expected facts it is not known which"),
        "{report}"
    );
    let shown = project.expect(0, "show harbor --probe owner --method anchored");
    shown.stdout_says(&["removed)"]);
    assert!(!shown.stdout.contains("of the facts"), "{}", shown.stdout);
}

/// More probes about the harbor, so that a gate has enough of them to refuse.
const MORE_PROBES: &str = r#"
    {"id": "before", "type": "recall", "question": "Which listen port had harbor before?", "expected_facts": ["8080"]},
    {"id": "limit", "type": "recall", "question": "To what was the retry limit set?", "expected_facts": ["retry limit = 7"]},
    {"id": "watch", "type": "continuation", "question": "What is to watch after the restart?", "expected_facts": ["error counter"]},
    {"id": "owner","#;

#[test]
fn a_gate_refuses_a_scale_that_is_too_narrow_and_names_each_cause() {
    let facts = "4711, count = 4, 9091, etc/harbor.toml, harbor-2, 15 minutes, 6 tries, 8080, retry limit = 7, error counter";
    type Grade = fn(&Value) -> u64;
    let replies: [(&str, Option<&str>, Grade); 3] = [
        // Answers differ, grades do not.
        ("the judge", None, |_| 3),
        // Every answer states the facts, and is graded by them.
        ("the bank", Some(facts), |brief| {
            (5.0 * stated(brief)) as u64
        }),
        // No answer does.
        (
            "the answerer",
            Some("It is somewhere in the notes."),
            |brief| (5.0 * stated(brief)) as u64,
        ),
    ];
    for (suspect, answer, score) in replies {
        let server = Server::start();
        let project = Project::new(&server);
        server.script(move |asked| match (asked.wanted, material(&asked.text)) {
            (Wanted::Grades, Some(brief)) if case_of(&brief).is_none() => {
                Reply::Text(graded(&brief, score(&brief)).expect("criteria"))
            }
            (Wanted::Answer, _) if answer.is_some() => {
                Reply::Text(answer.unwrap_or_default().to_owned())
            }
            _ => Reply::Sensible,
        });
        let run = |label: &str, gate: &str, code| {
            project.expect(
                code,
                &format!("run --label {label} --runs 1 --methods full,nothing {gate}"),
            )
        };
        let (gate, refused) = (
            "--compare-to few --fail-on-regression",
            "gate refused: full and none",
        );
        // Six graded probes are too few to refuse.
        run("few", "", 0);
        assert!(
            !run("few-again", gate, 0).stderr.contains(refused),
            "{suspect}"
        );
        project.edit(
            "probes/harbor.probes.json",
            "\n    {\"id\": \"owner\",",
            MORE_PROBES,
        );
        run("enough", "", 0);
        for flag in ["--fail-on-regression", "--fail-on-new-failures"] {
            let ended = run("enough-again", &format!("--compare-to enough {flag}"), 1);
            ended.says(&[refused]);
            let shown = ended
                .stdout
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" ");
            assert!(
                shown.contains(&format!("{suspect} is the likely cause")),
                "{suspect}: {shown}"
            );
        }
        let scale = project.result("enough-again", "summary.json")["scale"].clone();
        assert!(
            suspect.ends_with(scale["cause"].as_str().unwrap()) && scale["probes"] == 9,
            "{suspect}: {scale}"
        );
        // Without a gate the same is a warning.
        run("enough-again", "--compare-to enough", 0);
    }
}

#[test]
fn people_grade_a_sheet_without_names_and_a_panel_shows_its_agreement() {
    let server = Server::start();
    let project = Project::new(&server);
    let second = "[[judge]]\nname = \"other\"\nmodel = \"mock/judge-2\"\n";
    project.write(
        "pipeline.toml",
        &format!("{}\n{second}", project.read("pipeline.toml")),
    );
    let ended = project.expect(0, "run --all --label a --runs 1");
    assert!(
        ended.stdout.contains("Krippendorff's alpha"),
        "{}",
        ended.stdout
    );
    assert!(
        project
            .read("results/a/report.md")
            .contains("Krippendorff's alpha")
    );

    project.expect(0, "judge agreement --blind-sheet sheet.csv");
    let sheet = project.read("sheet.csv");
    let names = ["anchored", "rewritten", "twin", "grader", "other", "agent"];
    let (head, lines) = sheet.split_once('\n').unwrap();
    assert_eq!(
        head,
        "id,dimension,score,question,expected_facts,answer,comment"
    );
    for line in lines.lines() {
        assert!(
            !names.contains(&line.split(',').next().unwrap_or("")),
            "{line}"
        );
    }
    // A sheet with nothing filled in grades nothing. A filled sheet is compared like any other file.
    project
        .expect(2, "judge agreement sheet.csv")
        .says(&["there are no grades in the file"]);
    let mut parts = sheet.split(",accuracy,,");
    let first = parts.next().unwrap().to_owned();
    let graded = |(n, part): (usize, &str)| format!(",accuracy,{},{part}", 2 + n % 3);
    let filled = first + &parts.enumerate().map(graded).collect::<String>();
    project.write("sheet.csv", &filled);
    let found = project.expect(0, "judge agreement sheet.csv --json").json();
    let pooled = &found["judges"][0]["pooled"];
    assert!(pooled["pairs"].as_u64().unwrap() >= 10, "{found}");
    assert!(pooled["ci95"]["mean_difference"].is_array(), "{pooled}");
    project.write(
        "sheet.csv",
        &filled.replacen("\n", "\nnobody,accuracy,3,q,f,a,\n", 1),
    );
    project
        .expect(2, "judge agreement sheet.csv")
        .says(&["the results have no answer `nobody`"]);
}
