//! Plans count what a run sends, and say why.

use serde_json::Value;

use super::batch_server::{BatchServer, Vendor};
use super::batches;
use super::brain::Wanted;
use super::project::Project;
use super::server::{Reply, Server};

const OWN: &str = "--methods full,anchored,rewritten,nothing";

fn plan(project: &Project, arguments: &str) -> Value {
    project
        .expect(0, &format!("plan --json {arguments}"))
        .json()
}

fn requests(plan: &Value) -> usize {
    plan["estimate"]["requests"].as_u64().unwrap() as usize
}

#[test]
fn a_plan_counts_what_a_run_sends_and_calls_nobody() {
    let server = Server::start();
    let mut project = Project::new(&server);
    project.unset("MOCK_API_KEY");
    let before = plan(&project, OWN);
    let all = plan(&project, "");
    assert_eq!(server.count(), 0);
    project.set("MOCK_API_KEY", super::project::KEY);
    project.expect(0, &format!("run --label a {OWN}"));
    assert_eq!(requests(&before), server.count(), "{before:#}");
    let counts = server.counts();
    let waiting = |stage: &str| {
        let stage = &before["stages"][stage];
        (stage["stale"].as_u64().unwrap() + stage["blocked"].as_u64().unwrap()) as usize
    };
    assert_eq!(waiting("answer"), counts[&Wanted::Answer]);
    assert_eq!(
        waiting("judge") + waiting("selftest"),
        counts[&Wanted::Grades]
    );
    assert!(
        requests(&all) >= server.count(),
        "with a twin that may share, the count is an upper bound"
    );

    let after = plan(&project, OWN);
    assert_eq!(requests(&after), 0);
    assert_eq!(after["reasons"], Value::Array(vec![]));
    for stage in ["compress", "answer", "judge", "selftest"] {
        let stage = &after["stages"][stage];
        assert_eq!(
            (&stage["stale"], &stage["blocked"]),
            (&Value::from(0), &Value::from(0))
        );
        assert_eq!(stage["actions"], stage["cached"]);
    }
}

#[test]
fn the_judges_copy_of_a_context_counts_with_its_own_tokens_also_once_it_is_in_the_cache() {
    let project = Project::empty();
    project.expect(0, "init . --quiet");
    project.edit("pipeline.toml", "[planted]\nenabled = true", "");
    let tokens = || {
        let plan = plan(
            &project,
            "--model openai/gpt-5.2 --methods extract,truncate",
        );
        plan["estimate"]["input_tokens"].as_f64().unwrap()
    };
    let before = tokens();
    project.expect(0, "run --label a --stages compress --quiet");
    let after = tokens();
    // The extract is far below its target. What differs is the frame of a question, which is assumed before.
    assert!(
        (after / before - 1.0).abs() < 0.02,
        "{before} before, {after} after"
    );
}

#[test]
fn exit_code_7_says_that_work_is_pending() {
    let server = Server::start();
    let project = Project::new(&server);
    project.expect(7, "plan --exit-code");
    project.expect(0, "plan");
    project.expect(0, "run --label a");
    project.expect(0, "plan --exit-code");
}

#[test]
fn a_plan_says_why_with_the_line_of_the_prompt() {
    let server = Server::start();
    let project = Project::new(&server);
    project.expect(0, "run --label a");
    project.edit(
        "prompts/anchored.md",
        "## Current state",
        "## Present state",
    );
    let plan = plan(&project, "");
    let reasons = plan["reasons"].as_array().unwrap();
    let reason = reasons
        .iter()
        .find(|reason| reason["stage"] == "compress")
        .unwrap();
    assert_eq!(reason["method"], "anchored");
    assert!(
        reason["why"].as_str().unwrap().contains("prompt changed"),
        "{reason}"
    );
    let changed = reason["changed"].to_string();
    assert!(changed.contains("prompts/anchored.md:17"), "{changed}");
    assert_eq!(reason["actions"], 2, "the second point waits for the first");
    let output = project.expect(0, "plan");
    assert!(
        output.stdout.starts_with("32 requests: "),
        "what it costs is said first: {}",
        output.stdout
    );
    assert!(
        output.stdout.contains("prompt changed")
            && output.stdout.contains("prompts/anchored.md:17"),
        "{}",
        output.stdout
    );
}

#[test]
fn a_plan_says_what_has_changed_since_a_baseline() {
    let server = Server::start();
    let project = Project::new(&server);
    project.expect(0, "run --label a");
    let same = project.expect(0, "plan --compare-to a");
    same.stdout_says(&["No changes found since a."]);
    project.edit(
        "prompts/anchored.md",
        "## Current state",
        "## Present state",
    );
    let pending = project.expect(0, "plan --compare-to a").stdout;
    assert!(!pending.contains("No changes found"), "{pending}");
    project.expect(0, "run --label b");
    let plan = plan(&project, "--compare-to a");
    assert_eq!(plan["reasons"], Value::Array(vec![]), "all is cached");
    let since = plan["since_baseline"].as_array().unwrap();
    let prompt = since
        .iter()
        .find(|group| group["stage"] == "compress")
        .unwrap();
    assert_eq!(
        (&prompt["method"], &prompt["why"]),
        (&"anchored".into(), &"prompt changed".into())
    );
    let changed = prompt["changed"].to_string();
    assert!(changed.contains("prompts/anchored.md:17"), "{changed}");
    let text = project.expect(0, "plan --label c --compare-to");
    text.stdout_says(&[
        "No changes found since b.",
        "next: compeval run --label c --compare-to b",
    ]);
    text.says(&["using `b`, the newest complete results"]);
    let text = project.expect(0, "plan --compare-to a");
    text.stdout_says(&["since a: ", "prompt changed (prompts/anchored.md:17"]);
    // What was selected stays selected, and the place of the project is named once.
    let text = project.expect(
        0,
        "--directory . plan --methods anchored,nothing --exit-code --runs=1",
    );
    text.stdout_says(&["next: compeval -C . run --methods anchored,nothing --runs=1"]);
    // The run that is named next is not refused.
    project.edit("probes/harbor.probes.json", "What is left to", "What is to");
    let text = project.expect(0, "plan --label c --compare-to a");
    text.stdout_says(&["next: compeval run --label c --compare-to a --only-common"]);
    project.expect(2, "run --label c --compare-to a");
    project.expect(0, "run --label c --compare-to a --only-common");
}

#[test]
fn what_has_changed_since_a_baseline_may_be_in_an_open_batch() {
    let server = BatchServer::start(Vendor::OpenAi);
    let project = batches::project(&server);
    project.expect(0, "run --label a --runs 1");
    project.edit(
        "prompts/anchored.md",
        "## Current state",
        "## Present state",
    );
    project.expect(7, "run --label b --runs 1 --lane batch");
    let plan = plan(&project, "--runs 1 --compare-to a");
    let submitted = &plan["stages"]["answer"]["submitted"];
    let mut since = plan["since_baseline"].as_array().unwrap().iter();
    let answers = since.find(|group| group["stage"] == "answer").unwrap();
    assert_eq!(
        (&answers["why"], &answers["actions"]),
        (&"upstream output changed".into(), submitted)
    );
}

#[test]
fn a_plan_can_be_read_while_a_run_goes_on() {
    let server = Server::start();
    let project = Project::new(&server);
    server.script(|asked| {
        if asked.wanted == Wanted::Answer {
            Reply::Held
        } else {
            Reply::Sensible
        }
    });
    let running = project.start("run --label a --runs 1 -j 4");
    server.wait_for(8);
    let plan = plan(&project, "--runs 1");
    assert!(requests(&plan) > 0);
    server.let_go();
    let ended = running.end();
    assert_eq!(ended.code, 0, "{}", ended.stderr);
}

#[test]
fn what_a_declared_window_cannot_hold_is_reported_before_and_never_sent() {
    let server = Server::start();
    let project = Project::new(&server);
    project.edit(
        "pipeline.toml",
        "model    = \"mock/small-1\"",
        "model    = \"narrow/small-1\"",
    );
    let narrow = format!(
        "\n[providers.narrow]\nkind = \"openai-chat\"\nbase_url = \"{}\"\nlimits = {{ context_window = 120 }}\n",
        server.url()
    );
    project.write("pipeline.toml", &(project.read("pipeline.toml") + &narrow));
    let plan = plan(&project, "--runs 1 --methods full,anchored");
    let groups = plan["too_long"].as_array().unwrap();
    let of = |stage: &str| groups.iter().find(|group| group["stage"] == stage);
    let compress = of("compress").unwrap_or_else(|| panic!("{plan}"));
    assert_eq!(
        (&compress["method"], &compress["window"]),
        (&"anchored".into(), &120.into())
    );
    assert!(compress["longest"].as_u64().unwrap() > 120);
    let output = project
        .expect(0, "plan --runs 1 --methods full,anchored")
        .stdout;
    assert!(
        output.contains("Too long") && output.contains("use a model with a larger context window"),
        "{output}"
    );

    project.expect(5, "run --label a --runs 1 --methods full,anchored");
    assert!(
        server
            .asked()
            .iter()
            .all(|asked| asked.wanted != Wanted::Compression),
        "what is too long is not sent"
    );
    let failures = project.result("a", "manifest.json")["failures"].to_string();
    assert!(
        failures.contains("accepts at most 120") && failures.contains("larger window"),
        "{failures}"
    );
}

#[test]
fn after_going_back_an_edit_is_reported_by_what_was_in_use_last() {
    let server = Server::start();
    let project = Project::new(&server);
    let prompts = ["prompts/anchored.md", "prompts/answer.md"];
    let before = prompts.map(|path| project.read(path));
    project.expect(0, "run --label a");
    project.edit(
        "prompts/anchored.md",
        "Keep the working notes",
        "Keep some working notes",
    );
    project.edit("prompts/answer.md", "Answer from", "Reply from");
    project.expect(0, "run --label a --replace");
    prompts
        .iter()
        .zip(&before)
        .for_each(|(path, text)| project.write(path, text));
    server.forget();
    project.expect(0, "run --label a --replace");
    assert_eq!(server.count(), 0);
    project.edit("prompts/anchored.md", "## Files created", "## Files made");
    project.edit("prompts/answer.md", "Question:", "The question:");
    let output = project.expect(0, "plan").stdout;
    assert!(
        output.contains("anchored.md:12") && output.contains("answer.md:6"),
        "{output}"
    );
    for wrong in [
        "anchored.md:1 ",
        "anchored.md:1\n",
        "anchored.md:1,",
        "answer.md:1",
        "not in the cache",
    ] {
        assert!(!output.contains(wrong), "`{wrong}`\n{output}");
    }
    prompts
        .iter()
        .zip(&before)
        .for_each(|(path, text)| project.write(path, text));
    project.edit("prompts/anchored.md", "working notes", "standing notes");
    project.expect(0, "run --label a --all --replace");
    let answers = &project.result("a", "manifest.json")["stages"]["answer"];
    assert!(answers["early_cutoff"].as_u64() > Some(0), "{answers}");
}

#[test]
fn a_plan_says_the_smallest_change_that_so_many_fixtures_find() {
    let project = Project::offline();
    assert_eq!(
        project.expect(0, "plan --json").json()["smallest_change"],
        Value::Null
    );
    let printed = project.expect(0, "plan").stdout;
    assert!(
        printed.contains("Verdict: none with 1 fixture"),
        "{printed}"
    );
    for number in 1..=5 {
        for (folder, end) in [("fixtures", ".json"), ("probes", ".probes.json")] {
            let text = project.read(&format!("{folder}/harbor{end}"));
            project.write(
                &format!("{folder}/harbor{number}{end}"),
                &text.replacen("\"harbor\"", &format!("\"harbor{number}\""), 1),
            );
        }
    }
    let change = project.expect(0, "plan --json").json()["smallest_change"].clone();
    assert!(
        change.as_f64().is_some_and(|points| points > 0.3),
        "{change}"
    );
    let printed = project.expect(0, "plan").stdout;
    assert!(
        printed.contains("Verdict: 6 fixtures find a difference of"),
        "{printed}"
    );
    let contexts = project.expect(0, "plan --stages compress").stdout;
    assert!(!contexts.contains("Verdict"), "{contexts}");
}
