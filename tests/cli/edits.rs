//! What an edit costs: nothing for names, places, comments and limits; for a word of a prompt, only the actions that it
//! changes.

use super::brain::Wanted;
use super::project::Project;
use super::server::{Reply, Server};

fn finished() -> (Server, Project) {
    let server = Server::start();
    let project = Project::new(&server);
    project.expect(0, "run --label a");
    server.forget();
    (server, project)
}

#[test]
fn names_places_comments_and_limits_send_nothing() {
    let (server, project) = finished();
    project.edit(
        "pipeline.toml",
        "name     = \"anchored\"",
        "# the one we ship\nname     = \"standing\"",
    );
    project.edit("pipeline.toml", "prompts/anchored.md", "moved/notes.txt");
    project.write("moved/notes.txt", &project.read("prompts/anchored.md"));
    project.edit(
        "pipeline.toml",
        "max_in_flight = 16",
        "max_in_flight = 3\nrequests_per_minute = 60000\ntimeout_s = 20",
    );
    project.edit(
        "prompts/answer.md",
        "Answer from",
        "{# a remark that renders to nothing #}Answer from",
    );
    project.edit(
        "pipeline.toml",
        "name  = \"grader\"",
        "name  = \"examiner\"",
    );
    project.edit("pipeline.toml", "name   = \"agent\"", "name   = \"worker\"");
    project.expect(0, "run --label b");
    assert_eq!(server.count(), 0);
    let rows = project.rows("b");
    assert!(
        rows.iter()
            .any(|row| row["method"] == "standing" && row["judge"] == "examiner")
    );
}

#[test]
fn a_prompt_edit_that_leaves_the_output_as_it_was_stops_there() {
    let (server, project) = finished();
    project.edit("prompts/anchored.md", "working notes", "standing notes");
    project.expect(0, "run --label a --replace");
    assert_eq!(
        server.counts(),
        [(Wanted::Compression, 4)].into(),
        "one method, two points, two runs"
    );
}

#[test]
fn one_word_of_one_prompt_reasks_only_its_actions_and_what_then_differs() {
    let (server, project) = finished();
    let touched = "What is left to restart";
    server.script(move |asked| match asked.wanted {
        Wanted::Answer if asked.text.contains(touched) => {
            Reply::Text("Restart harbor-2; I do not know more.".into())
        }
        _ => Reply::Sensible,
    });
    project.edit(
        "prompts/answer.md",
        "and from nothing else",
        "and from nothing but it",
    );
    project.expect(0, "run --label a --replace");
    let sent = server.counts();
    assert_eq!(sent[&Wanted::Answer], 4 * 7 * 2, "every answer");
    assert_eq!(sent.get(&Wanted::Compression), None);
    let graded: Vec<_> = server
        .asked()
        .into_iter()
        .filter(|asked| asked.wanted == Wanted::Grades)
        .collect();
    assert!(
        graded.iter().all(|asked| asked.text.contains(touched)),
        "only the answers that differ are graded again"
    );
    assert_eq!(graded.len(), 4 * 2);
}

#[test]
fn more_runs_ask_only_for_the_new_ones() {
    let server = Server::start();
    let project = Project::new(&server);
    project.expect(0, "run --label a --runs 1");
    let first = server.count();
    project.expect(0, "run --label a --runs 2");
    let second = server.count() - first;
    assert_eq!(
        second,
        first - super::matrix::SELFTEST,
        "the second run alone, and no second self-test"
    );
}

#[test]
fn refresh_asks_a_stage_again_and_then_not_any_more() {
    let (server, project) = finished();
    project.expect(0, "run --label a --refresh answer");
    assert_eq!(server.counts(), [(Wanted::Answer, 4 * 7 * 2)].into());
    server.forget();
    project.expect(0, "run --label a");
    assert_eq!(server.count(), 0);
}

#[test]
fn a_refresh_that_is_stopped_continues_and_one_that_was_done_begins_anew() {
    const WHOLE: usize = 4 * 7;
    let server = Server::start();
    let project = Project::new(&server);
    project.expect(0, "run --label a --runs 1");
    let refresh = "run --label a --runs 1 --refresh answer";
    server.forget();
    let ended = project.expect(6, &format!("{refresh} --max-requests 5"));
    ended.stdout_says(&[&format!("next: compeval {refresh} --max-requests 5")]);
    let left = |label: &str| {
        let plan = project
            .expect(
                0,
                &format!("plan --label {label} --runs 1 --refresh answer --json"),
            )
            .json();
        plan["stages"]["answer"]["stale"].as_u64().unwrap()
    };
    let rest = WHOLE as u64 - 5;
    assert_eq!((left("a"), left("b")), (rest, rest), "under any label");
    project
        .expect(0, refresh)
        .says(&["this continues the --refresh in which the last run of `a` was stopped"]);
    assert_eq!(
        server.counts(),
        [(Wanted::Answer, WHOLE)].into(),
        "each answer is asked for once"
    );
    server.forget();
    let ended = project.expect(0, refresh);
    assert!(!ended.stderr.contains("this continues"), "{}", ended.stderr);
    assert_eq!(server.counts(), [(Wanted::Answer, WHOLE)].into());
}

#[test]
fn a_refresh_that_is_killed_continues() {
    let server = Server::start();
    let project = Project::new(&server);
    project.expect(0, "run --label a --runs 1");
    let refresh = "run --label a --runs 1 --refresh answer";
    server.forget();
    server.script(|_| Reply::Held);
    let mut running = project.start(refresh);
    server.wait_for(1);
    running.kill();
    server.let_go();
    project
        .expect(0, refresh)
        .says(&["this continues the --refresh"]);
}

#[test]
fn a_probe_that_is_added_asks_for_itself_alone() {
    let (server, project) = finished();
    let added = r#"    {"id": "proxy", "type": "decision", "question": "Why does the proxy matter for the port?", "expected_facts": ["8080"]},
    {"id": "left","#;
    project.edit("probes/harbor.probes.json", "    {\"id\": \"left\",", added);
    project.expect(0, "run --label a");
    assert!(
        server
            .asked()
            .iter()
            .all(|asked| asked.text.contains("Why does the proxy matter"))
    );
    assert_eq!(
        server.counts(),
        [(Wanted::Answer, 8), (Wanted::Grades, 8)].into()
    );
}

#[test]
fn a_refresh_with_the_same_output_is_reported_as_early_cutoff() {
    let (server, project) = finished();
    project.expect(0, "run --label a --all --refresh compress");
    assert!(
        server.counts().keys().eq([&Wanted::Compression]),
        "{:?}",
        server.counts()
    );
    let answers = &project.result("a", "manifest.json")["stages"]["answer"];
    assert!(answers["early_cutoff"].as_u64() > Some(0), "{answers}");
}
