//! Calls that fail: which are retried, which cells are left out, what ends a run, and what is reported.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::brain::{Wanted, graded, material};
use super::project::Project;
use super::server::{Asked, Reply, Server, with_finish};

const TOUCHED: &str = "Who owns the machine?";

fn touches(asked: &Asked, wanted: Wanted) -> bool {
    asked.wanted == wanted && asked.text.contains(TOUCHED)
}

/// Lets `regenerative` ask the model `small-9`, while all else asks another.
fn compress_with_another_model(project: &Project) {
    project.edit(
        "pipeline.toml",
        "strategy = \"regenerative\"\nmodel    = \"mock/small-1\"",
        "strategy = \"regenerative\"\nmodel    = \"mock/small-9\"",
    );
}

fn refusal(status: u16, code: &str, message: &str) -> Reply {
    Reply::Raw(
        status,
        json!({"error": {"message": message, "type": "invalid_request_error", "code": code}})
            .to_string(),
    )
}

fn failures(project: &Project) -> Vec<Value> {
    project.result("a", "manifest.json")["failures"]
        .as_array()
        .unwrap()
        .clone()
}

#[test]
fn an_unavailable_model_does_not_keep_others_from_being_asked() {
    let server = Server::start();
    let project = Project::new(&server);
    project.edit(
        "pipeline.toml",
        "model  = \"mock/small-1\"",
        "model  = \"mock/reader-1\"",
    );
    project.edit(
        "pipeline.toml",
        "max_in_flight = 16",
        "max_in_flight = 16\nmax_attempts  = 100",
    );
    let compressed = AtomicUsize::new(0);
    server.script(move |asked| match asked.wanted {
        Wanted::Compression => {
            compressed.fetch_add(1, Ordering::Relaxed);
            Reply::Sensible
        }
        // The model is back when all contexts are compressed.
        Wanted::Answer if compressed.load(Ordering::Relaxed) < 2 => Reply::Raw(500, String::new()),
        Wanted::Answer | Wanted::Grades => Reply::Sensible,
    });
    project.expect(
        0,
        "run --label a --runs 1 -j 2 --methods full,anchored,rewritten",
    );
    assert_eq!(project.rows("a").len(), 3 * 7);
}

#[test]
fn other_calls_are_sent_while_a_refused_call_waits() {
    let server = Server::start();
    let project = Project::new(&server);
    let answers = AtomicUsize::new(0);
    server.script(move |asked| match asked.wanted {
        Wanted::Answer if answers.fetch_add(1, Ordering::Relaxed) == 0 => Reply::Headed(
            vec![("retry-after", "2".into())],
            Box::new(Reply::Raw(429, "{}".into())),
        ),
        _ => Reply::Sensible,
    });
    // With one job, nothing else would be sent if the run waited for this call.
    project.expect(0, "run --label a --runs 1 -j 1 --methods full,anchored");
    let asked = server.asked();
    let answers = asked.iter().filter(|asked| asked.wanted == Wanted::Answer);
    let texts: Vec<&String> = answers.map(|asked| &asked.text).collect();
    assert_ne!(
        texts[0], texts[1],
        "another call is sent while the first waits"
    );
    assert_eq!(texts.iter().filter(|text| **text == texts[0]).count(), 2);
}

#[test]
fn a_failed_cell_is_reported_and_left_out_and_the_rest_goes_on() {
    let server = Server::start();
    let project = Project::new(&server);
    server.script(|asked| match touches(asked, Wanted::Answer) {
        true => refusal(
            400,
            "invalid_request_error",
            "this request is not understood",
        ),
        false => Reply::Sensible,
    });
    project.expect(5, "run --label a");
    let rows = project.rows("a");
    assert_eq!(
        rows.len(),
        5 * 6 * 2,
        "all cells but those of the probe that failed"
    );
    assert!(rows.iter().all(|row| row["probe"] != "owner"));
    let failed = failures(&project);
    assert_eq!(failed.len(), 4 * 2, "once per action");
    for failure in &failed {
        assert!(
            failure["message"]
                .as_str()
                .unwrap()
                .contains("this request is not understood"),
            "{failure}"
        );
        assert_eq!(
            (&failure["probe"], &failure["stage"]),
            (&json!("owner"), &json!("answer"))
        );
    }
    let asked = server
        .asked()
        .iter()
        .filter(|asked| touches(asked, Wanted::Answer))
        .count();
    assert_eq!(asked, 4 * 2, "what is wrong is not sent again");

    server.script(|_| Reply::Sensible);
    project.expect(0, "run --label a");
    assert_eq!(
        project.rows("a").len(),
        5 * 7 * 2,
        "running again fills the gaps"
    );
}

#[test]
fn a_wrong_key_stops_the_run_early_and_says_so() {
    let server = Server::start();
    let project = Project::new(&server);
    server.script(|_| refusal(401, "invalid_api_key", "Incorrect API key provided"));
    let ended = project.expect(5, "run --label a");
    ended.says(&[
        "every further call would fail the same way",
        "Incorrect API key provided",
    ]);
    assert!(
        server.count() <= 24,
        "{} requests were under way at most",
        server.count()
    );
}

#[test]
fn an_exhausted_account_stops_the_run_early() {
    let server = Server::start();
    let project = Project::new(&server);
    server.script(|asked| match asked.wanted {
        Wanted::Compression => {
            refusal(429, "insufficient_quota", "You exceeded your current quota")
        }
        _ => Reply::Sensible,
    });
    let ended = project.expect(5, "run --label a");
    ended.says(&[
        "every further call would fail the same way",
        "You exceeded your current quota",
    ]);
    let refused = server
        .asked()
        .iter()
        .filter(|asked| asked.wanted == Wanted::Compression)
        .count();
    assert!(refused <= 24, "{refused} requests were under way at most");
}

#[test]
fn an_unset_key_variable_is_named_before_anything_is_called() {
    let server = Server::start();
    let mut project = Project::new(&server);
    project.unset("MOCK_API_KEY");
    project.expect(2, "run --label a").says(&["MOCK_API_KEY"]);
    assert_eq!(server.count(), 0);
    project.expect(7, "run --label a --offline");
}

#[test]
fn a_prompt_longer_than_the_window_fails_its_cells_with_a_hint() {
    let server = Server::start();
    let project = Project::new(&server);
    server.script(|asked| match asked.wanted {
        Wanted::Compression if asked.text.contains("Keep the working notes") => refusal(
            400,
            "context_length_exceeded",
            "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens.",
        ),
        _ => Reply::Sensible,
    });
    project.expect(5, "run --label a --runs 1");
    let failed = failures(&project);
    assert_eq!(failed.len(), 1, "the second point waits for the first");
    let failure = &failed[0];
    assert_eq!(
        (&failure["method"], &failure["blame"]),
        (&json!("anchored"), &json!("method"))
    );
    assert!(
        failure["hint"].as_str().unwrap().contains("window"),
        "{failure}"
    );
    assert_eq!(project.rows("a").len(), 4 * 7, "the other methods");
}

#[test]
fn a_reply_cut_off_before_its_text_began_is_a_failed_cell_with_a_hint() {
    let server = Server::start();
    let project = Project::new(&server);
    server.script(|asked| match touches(asked, Wanted::Answer) {
        true => Reply::Raw(200, with_finish(asked, "<think>Who could own", "length")),
        false => Reply::Sensible,
    });
    project.expect(5, "run --label a --runs 1");
    let failed = failures(&project);
    assert_eq!(failed.len(), 4);
    assert!(
        failed
            .iter()
            .all(|f| f["hint"].as_str().unwrap().contains("max_output_tokens")),
        "{failed:?}"
    );
    assert!(
        server
            .asked()
            .iter()
            .filter(|asked| touches(asked, Wanted::Answer))
            .all(|asked| asked.earlier == 0)
    );
    server.forget();
    project.expect(5, "run --label a --runs 1");
    assert_eq!(
        server.count(),
        4,
        "what was cut off is never served as an output"
    );
}

#[test]
fn a_reply_of_reasoning_alone_is_a_failed_cell_and_the_message_names_the_reasoning() {
    let server = Server::start();
    let project = Project::new(&server);
    server.script(|asked| match touches(asked, Wanted::Answer) {
        true => Reply::Raw(
            200,
            with_finish(asked, "<think>Who could own it?</think>", "stop"),
        ),
        false => Reply::Sensible,
    });
    project
        .expect(5, "run --label a --runs 1")
        .says(&["the reply is empty, or has only reasoning"]);
}

#[test]
fn an_empty_compression_is_the_methods_fault_and_an_empty_answer_is_not() {
    for (wanted, blame) in [
        (Wanted::Compression, "method"),
        (Wanted::Answer, "infrastructure"),
    ] {
        let server = Server::start();
        let project = Project::new(&server);
        server.script(move |asked| match asked.wanted == wanted {
            true => Reply::Raw(200, with_finish(asked, " \n", "stop")),
            false => Reply::Sensible,
        });
        project.expect(5, "run --label a --runs 1");
        let failed = failures(&project);
        let is_so = |failure: &Value| failure["blame"] == blame;
        assert!(!failed.is_empty() && failed.iter().all(is_so), "{failed:?}");
    }
}

#[test]
fn a_prompt_that_ollama_cut_fails_its_cell_now_and_in_the_next_run() {
    let server = Server::start();
    let project = Project::new(&server);
    // Only prompts of some length are checked.
    project.write(
        "prompts/anchored.md",
        &format!(
            "{}{}",
            include_str!("data/anchored.md"),
            "Keep every single word. ".repeat(400)
        ),
    );
    let cut = |asked: &Asked| {
        with_finish(asked, "## Session intent\n- all is well", "stop")
            .replace("\"prompt_tokens\":", "\"prompt_tokens\":1,\"said\":")
    };
    let answers = move |fingerprint: &'static str| {
        move |asked: &Asked| match asked.wanted == Wanted::Compression {
            true => Reply::Raw(
                200,
                cut(asked).replace("\"object\":", &format!("{fingerprint}\"object\":")),
            ),
            false => Reply::Sensible,
        }
    };
    // At other providers the count is wrong more often than the prompt is cut.
    server.script(answers(""));
    project.expect(0, "run --label warned --runs 1");
    let caveats = project.result("warned", "manifest.json")["caveats"].to_string();
    assert!(
        caveats.contains("`mock/small-1` reports far fewer prompt tokens than were sent"),
        "{caveats}"
    );
    std::fs::remove_dir_all(project.path("cache")).unwrap();
    server.script(answers("\"system_fingerprint\":\"fp_ollama\","));
    project.expect(5, "run --label a --runs 1");
    let failed = failures(&project);
    assert!(!failed.is_empty());
    assert!(
        failed
            .iter()
            .all(|f| f["message"].as_str().unwrap().contains("cut the prompt")),
        "{failed:?}"
    );
    server.forget();
    project.expect(5, "run --label a --runs 1");
    assert!(
        server.count() >= failed.len(),
        "a reply to half a prompt is never served as an output"
    );
    let keys = |failed: &[Value]| {
        failed
            .iter()
            .map(|f| f["key"].to_string())
            .collect::<std::collections::BTreeSet<_>>()
    };
    assert_eq!(
        keys(&failures(&project)),
        keys(&failed),
        "the same actions fail again, none below them is reached"
    );
}

#[test]
fn a_malformed_body_is_asked_for_again_with_the_same_bytes() {
    let server = Server::start();
    let project = Project::new(&server);
    server.script(
        |asked| match touches(asked, Wanted::Answer) && asked.earlier == 0 {
            true => Reply::Raw(200, "{\"choices\":[".into()),
            false => Reply::Sensible,
        },
    );
    project.expect(0, "run --label a --runs 1 --methods full");
    assert_eq!(
        server
            .asked()
            .iter()
            .filter(|asked| touches(asked, Wanted::Answer))
            .count(),
        2
    );
    assert_eq!(project.result("a", "manifest.json")["retries"], 1);
}

#[test]
fn a_server_error_page_is_asked_for_again() {
    let server = Server::start();
    let project = Project::new(&server);
    server.script(
        |asked| match touches(asked, Wanted::Grades) && asked.earlier == 0 {
            true => Reply::Raw(502, "<html>Bad Gateway</html>".into()),
            false => Reply::Sensible,
        },
    );
    project.expect(0, "run --label a --runs 1 --methods full");
    assert_eq!(project.rows("a").len(), 7);
}

#[test]
fn a_judge_that_breaks_its_contract_is_asked_again_as_often_as_declared() {
    let server = Server::start();
    let project = Project::new(&server);
    project.edit(
        "pipeline.toml",
        "model = \"mock/judge-1\"",
        "model = \"mock/judge-1\"\nattempts = 2",
    );
    let breaks = |asked: &Asked| match asked.earlier {
        0 => Reply::Text("A fine answer, I would say four of five.".into()),
        _ => Reply::Sensible,
    };
    server.script(move |asked| {
        if touches(asked, Wanted::Grades) {
            breaks(asked)
        } else {
            Reply::Sensible
        }
    });
    project.expect(0, "run --label a --runs 1 --methods full");
    assert_eq!(
        server
            .asked()
            .iter()
            .filter(|asked| touches(asked, Wanted::Grades))
            .count(),
        2
    );

    server.forget();
    server.script(move |asked| match touches(asked, Wanted::Grades) {
        true => Reply::Text(
            r#"{"criterionResults":[{"criterionId":"accuracy_factual","score":9}]}"#.into(),
        ),
        false => Reply::Sensible,
    });
    project.expect(5, "run --label b --runs 1 --methods full --refresh judge");
    assert_eq!(
        server
            .asked()
            .iter()
            .filter(|asked| touches(asked, Wanted::Grades))
            .count(),
        2
    );
    assert_eq!(project.rows("b").len(), 6, "no score is made up");

    // The grade from before the refresh is not lost by it.
    server.forget();
    server.script(|_| Reply::Sensible);
    project.expect(0, "run --label c --runs 1 --methods full");
    assert_eq!(server.count(), 0);
}

#[test]
fn a_judge_that_gives_every_answer_the_same_score_is_named_and_nothing_is_graded() {
    let server = Server::start();
    let project = Project::new(&server);
    server.script(|asked| {
        let brief = material(&asked.text);
        brief
            .and_then(|brief| graded(&brief, 3))
            .map_or(Reply::Sensible, Reply::Text)
    });
    let ended = project.expect(1, "run --label a --runs 1");
    ended.says(&["grader"]);
    assert!(
        server.counts()[&Wanted::Grades] <= super::matrix::SELFTEST,
        "the self-test alone"
    );
    project.expect(0, "run --label a --runs 1 --allow-weak-judge");
    assert_eq!(project.rows("a").len(), 5 * 7);
}

#[test]
fn a_model_that_does_not_exist_is_reported_with_a_hint() {
    let server = Server::start();
    let project = Project::new(&server);
    server.script(|asked| match asked.json["model"] == "judge-1" {
        true => refusal(
            404,
            "model_not_found",
            "The model `judge-1` does not exist or you do not have access to it.",
        ),
        false => Reply::Sensible,
    });
    let ended = project.expect(5, "run --label a --runs 1");
    ended.says(&[
        "grader",
        "The model `judge-1` does not exist",
        "check the model's name",
    ]);
    let failed = failures(&project);
    assert!(
        failed[0]["hint"].as_str().unwrap().contains("name"),
        "{:?}",
        failed[0]
    );
    assert!(
        server.counts()[&Wanted::Grades] <= super::matrix::SELFTEST,
        "the judge is asked for its self-test alone"
    );
}

#[test]
fn a_model_that_is_unknown_is_given_up_once_and_the_others_go_on() {
    let server = Server::start();
    let project = Project::new(&server);
    compress_with_another_model(&project);
    project.edit("pipeline.toml", "max_in_flight = 16", "max_in_flight = 1");
    server.script(|asked| match asked.json["model"] == "small-9" {
        true => refusal(
            404,
            "model_not_found",
            "The model `small-9` does not exist.",
        ),
        false => Reply::Sensible,
    });
    let ended = project.expect(5, "run --label a -j 1");
    ended.says(&[
        "no more calls to mock/small-9, every further call would fail the same way: HTTP 404",
    ]);
    assert_eq!(
        ended.stderr.matches("no more calls to").count(),
        1,
        "{}",
        ended.stderr
    );
    let asked = server
        .asked()
        .iter()
        .filter(|asked| asked.json["model"] == "small-9")
        .count();
    assert_eq!(
        asked, 1,
        "two runs would be two, and each second point waits for its first"
    );
    assert_eq!(project.rows("a").len(), 4 * 7 * 2, "the other methods");
    let compress = project.result("a", "manifest.json")["stages"]["compress"].clone();
    // Two runs of two points each. One call is made and fails, one cell is not begun, and the second points depend on
    // them.
    assert_eq!(
        (
            &compress["failed"],
            &compress["skipped"],
            &compress["early_cutoff"]
        ),
        (&json!(1), &json!(1), &json!(0))
    );
    let settled = ["executed", "cached", "failed"].map(|what| compress[what].as_u64().unwrap());
    assert_eq!(
        compress["actions"],
        settled.iter().sum::<u64>(),
        "a skipped cell is no action"
    );
}

#[test]
fn a_model_that_fails_each_time_in_other_numbers_is_given_up_while_others_work() {
    let server = Server::start();
    let project = Project::new(&server);
    compress_with_another_model(&project);
    let free = AtomicUsize::new(0);
    server.script(move |asked| match asked.json["model"] == "small-9" {
        true => {
            let free = free.fetch_add(1, Ordering::Relaxed);
            let message = format!("it needs 7.5 GiB, and 5.{free} GiB are free (id 0{free:x}f)");
            Reply::Raw(500, json!({"error": {"message": message}}).to_string())
        }
        false => Reply::Sensible,
    });
    project.expect(5, "run --label a");
    let failures = failures(&project);
    assert!(!failures.is_empty());
    assert!(
        failures.iter().all(|failure| failure["class"] == "failing"),
        "{failures:?}"
    );
}

#[test]
fn a_judge_whose_self_test_was_not_completed_is_not_called_weak() {
    let server = Server::start();
    let project = Project::new(&server);
    server.script(|asked| {
        match asked.wanted == Wanted::Grades && asked.body.len().is_multiple_of(2) {
            true => refusal(400, "invalid_request_error", "not today"),
            false => Reply::Sensible,
        }
    });
    let ended = project.expect(5, "run --label a --runs 1");
    ended.says(&[
        "the self-test of judge grader did not complete",
        "not today",
    ]);
    assert!(
        !ended.stderr.contains("failed its self-test"),
        "{}",
        ended.stderr
    );
    assert!(project.rows("a").is_empty());
    assert_eq!(
        project.result("a", "manifest.json")["caveats"]["weak_judges"],
        json!([])
    );
    assert!(
        server.counts()[&Wanted::Answer] > 20,
        "what does not need the judge goes on"
    );
    project
        .expect(5, "judge selftest")
        .says(&["could not be asked about every case"]);

    server.forget();
    server.script(|_| Reply::Sensible);
    project.expect(0, "run --label a --runs 1");
    assert_eq!(project.rows("a").len(), 5 * 7);
    assert!(
        server
            .asked()
            .iter()
            .all(|asked| asked.wanted == Wanted::Grades),
        "the answers stand"
    );
}

#[test]
fn judges_that_share_requests_without_an_answer_are_both_untested() {
    let server = Server::start();
    let project = Project::new(&server);
    project.edit(
        "pipeline.toml",
        "[[judge]]",
        "[[judge]]\nname  = \"second\"\nmodel = \"mock/judge-1\"\n\n[[judge]]",
    );
    server.script(|asked| match asked.wanted == Wanted::Grades {
        true => refusal(400, "invalid_request_error", "not today"),
        false => Reply::Sensible,
    });
    let ended = project.expect(5, "run --label a --runs 1");
    ended.says(&[
        "the self-test of judge grader did not complete",
        "the self-test of judge second did not complete",
    ]);
    assert!(
        !ended.stderr.contains("failed its self-test"),
        "{}",
        ended.stderr
    );
    assert_eq!(
        project.result("a", "manifest.json")["caveats"]["weak_judges"],
        json!([])
    );
    assert!(
        server.counts()[&Wanted::Grades] <= super::matrix::SELFTEST,
        "one request for each case of both"
    );
    assert!(
        server.counts()[&Wanted::Answer] > 20,
        "what does not need the judges goes on"
    );
}

#[test]
fn a_judge_whose_first_eight_replies_cannot_be_read_is_not_asked_again() {
    let server = Server::start();
    let project = Project::new(&server);
    project.edit("pipeline.toml", "max_in_flight = 16", "max_in_flight = 1");
    let silent = |asked: &Asked| match asked.wanted == Wanted::Grades {
        true => Reply::Text("I would rather not say.".into()),
        false => Reply::Sensible,
    };
    project.edit(
        "pipeline.toml",
        "model = \"mock/judge-1\"",
        "model = \"mock/judge-1\"\nattempts = 1",
    );
    server.script(silent);
    project.expect(1, "run --label a --runs 1 -j 1");
    let asked = server.counts()[&Wanted::Grades];
    assert_eq!(asked, 8, "of {} cases", super::matrix::SELFTEST);
}

#[test]
fn an_unreachable_provider_gets_no_more_calls() {
    let project = Project::offline();
    project.edit(
        "pipeline.toml",
        "max_in_flight = 16",
        "max_in_flight = 2\nmax_attempts = 1",
    );
    let ended = project.expect(5, "run --label a");
    ended.says(&["no more calls to mock", "cannot connect"]);
    let sent = project.result("a", "manifest.json")["requests_sent"]
        .as_u64()
        .unwrap();
    assert!(
        sent <= 20,
        "{sent} requests were begun before the first came back"
    );
}

#[test]
fn a_prompt_that_could_fail_at_some_values_only_is_refused_before_anything_is_sent() {
    let server = Server::start();
    let project = Project::new(&server);
    project.edit(
        "prompts/anchored.md",
        "{{ transcript }}",
        "{% if transcript %}{{ 1 // 0 }}{% endif %}{{ transcript }}",
    );
    let refused = project.expect(2, "run --label a --runs 1 --methods anchored");
    refused.says(&["prompts/anchored.md", "`1 // 0` is not allowed"]);
    assert_eq!(server.count(), 0);
}

#[test]
fn a_question_that_always_meets_a_500_fails_alone_while_others_are_answered() {
    let server = Server::start();
    let project = Project::new(&server);
    project.edit(
        "pipeline.toml",
        "max_in_flight = 16",
        "max_in_flight = 4\nmax_attempts = 3",
    );
    server.script(|asked| {
        let is_bad =
            asked.wanted == Wanted::Answer && asked.text.contains("Which file was changed");
        if is_bad {
            Reply::Raw(500, "oops".into())
        } else {
            Reply::Sensible
        }
    });
    project.expect(5, "run --label a --runs 1 --methods full,anchored");
    let failures = project.result("a", "manifest.json")["failures"].clone();
    let failures = failures.as_array().unwrap();
    assert!(!failures.is_empty());
    assert!(
        failures
            .iter()
            .all(|failure| failure["class"] == "transient"),
        "{failures:?}"
    );
    assert!(project.rows("a").len() >= 12, "the others are graded");
}
