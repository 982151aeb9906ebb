//! Batches through the program: what is submitted is collected once, whatever happens in between.

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use serde_json::Value;

use super::batch_server::{BatchServer, Behaviour, Fate, Vendor, identity};
use super::project::{PRICES, Project};
#[cfg(unix)]
use super::server::wait_until;

pub const VENDORS: [Vendor; 2] = [Vendor::OpenAi, Vendor::Anthropic];

/// The project, whose provider is a vendor with batches.
pub fn project(server: &BatchServer) -> Project {
    let project = Project::offline();
    let kind = if server.vendor() == Vendor::OpenAi {
        "openai-chat"
    } else {
        "anthropic"
    };
    project.edit("pipeline.toml", "openai-chat", kind);
    project.edit("pipeline.toml", "http://127.0.0.1:9/v1", &server.url());
    project.edit(
        "pipeline.toml",
        "max_in_flight = 16",
        "max_in_flight = 16\nbatch_poll_s = 0.02",
    );
    project.write("pipeline.toml", &(project.read("pipeline.toml") + PRICES));
    project
}

fn usd(project: &Project, label: &str) -> f64 {
    project.result(label, "manifest.json")["usd"]
        .as_f64()
        .expect("a known cost")
}

/// The scores and the cost of a live run of the same project.
pub fn live(vendor: Vendor) -> (Vec<Value>, f64) {
    let server = BatchServer::start(vendor);
    let project = project(&server);
    project.expect(0, "run --label a --runs 1");
    (project.unpriced_rows("a"), usd(&project, "a"))
}

fn open_batches(project: &Project) -> Vec<Value> {
    project.expect(0, "batch ls --json").json()["batches"]
        .as_array()
        .expect("a list")
        .clone()
}

#[test]
fn a_run_that_waits_has_the_scores_of_a_live_one_for_less() {
    for vendor in VENDORS {
        let server = BatchServer::start(vendor);
        let project = project(&server);
        let ended = project.expect(0, "run --label a --runs 1 --lane batch --wait");
        let (expected, live_usd) = live(vendor);
        assert!(
            project.unpriced_rows("a") == expected,
            "{vendor:?}\n{}",
            ended.stderr
        );
        assert_eq!(server.billed_twice(), 0);
        assert!(
            usd(&project, "a") < live_usd * 0.95,
            "answers and grades cost half"
        );
        let book = server.book();
        let (batches, live) = (book.batches.clone(), book.live);
        drop(book);
        assert_eq!(batches.len(), 2, "answers, then grades");
        assert!(
            batches.iter().map(|batch| batch.lines.len()).sum::<usize>() > 40,
            "most requests"
        );
        assert!(live > 0, "compressions and the self-test");
        assert_eq!(
            project.result("a", "manifest.json")["requests_sent"],
            server.book().requests()
        );
        match vendor {
            Vendor::OpenAi => assert_eq!(server.book().files_deleted, 4),
            Vendor::Anthropic => assert!(batches.iter().all(|batch| batch.is_deleted)),
        }
        let listed = project.expect(0, "cache ls --stage judge --json").stdout;
        assert!(listed.replace(' ', "").contains("\"lane\":\"batch\""));
        project.expect(0, "run --label a --runs 1");
        assert_eq!(server.book().batches.len(), 2);
        assert_eq!(server.book().live, live, "nothing is asked again");
        assert!(open_batches(&project).is_empty());
    }
}

#[test]
fn without_wait_each_run_collects_what_has_ended() {
    for vendor in VENDORS {
        let server = BatchServer::start(vendor);
        let project = project(&server);
        let ended = project.expect(7, "run --label a --runs 1 --lane batch");
        ended.says(&["waiting: 1 open batch with"]);
        let printed = project.expect(0, "plan --runs 1 --lane batch").stdout;
        assert!(printed.contains("in open batches"), "{printed}");
        let plan = project.expect(0, "plan --runs 1 --json").json();
        let submitted = plan["stages"]["answer"]["submitted"]
            .as_u64()
            .expect("submitted actions");
        assert_eq!(
            (submitted, &plan["stages"]["answer"]["stale"]),
            (server.book().batches[0].lines.len() as u64, &0.into())
        );
        let [open] = open_batches(&project).try_into().expect("one batch");
        assert_eq!(open["requests"], submitted);
        let kept = project.expect(0, "cache prune --older-than 0s");
        assert_eq!(
            open_batches(&project).len(),
            1,
            "a prune keeps it\n{}",
            kept.stderr
        );
        project.expect(0, "cache verify");
        assert_eq!(open_batches(&project).len(), 1);

        // The first poll finds the batch in progress. A run with another lane does not send its requests again either.
        project.expect(7, "run --label c --runs 1 --lane live --methods full");
        let mut runs = 1;
        while project.compeval("run --label a --runs 1 --lane batch").code == 7 {
            runs += 1;
            assert!(runs < 12, "it never ends");
        }
        assert!(project.unpriced_rows("a") == live(vendor).0, "{vendor:?}");
        assert!(open_batches(&project).is_empty());
        let book = server.book();
        let twice = |(_, body): &&(String, Value)| {
            book.billed
                .get(&body.to_string())
                .is_some_and(|times| *times > 1)
        };
        assert_eq!(book.batches[0].lines.iter().filter(twice).count(), 0);
    }
}

#[test]
fn no_request_waits_for_a_batch_that_fills_a_prompt_cache() {
    let server = BatchServer::start(Vendor::Anthropic);
    let project = project(&server);
    let long = format!(
        "Find out why. {}",
        "There is much to read here. ".repeat(400)
    );
    project.edit("fixtures/harbor.json", "Find out why.", &long);
    project.expect(0, "run --label a --runs 1 --lane batch --wait");
    assert_eq!(server.book().batches.len(), 2, "answers, then grades");
}

#[test]
fn an_edit_while_a_batch_is_open_loses_nothing() {
    for vendor in VENDORS {
        let server = BatchServer::start(vendor);
        let project = project(&server);
        project.expect(7, "run --label a --runs 1 --lane batch");
        let before = project.read("pipeline.toml");
        // Neither the answerer nor its provider exists any more.
        let edited = before
            .replace("[providers.mock", "[providers.other")
            .replace("\"mock/", "\"other/");
        project.write(
            "pipeline.toml",
            &edited.replace("prompts/answer.md", "prompts/other.md"),
        );
        let prompt = project.read("prompts/answer.md");
        project.write("prompts/other.md", &format!("Briefly.\n{prompt}"));
        let mut polls = 0;
        while open_batches(&project)
            .iter()
            .any(|batch| batch["provider"] == "mock")
        {
            project.compeval("run --label b --runs 1 --methods nothing");
            polls += 1;
            assert!(polls < 5, "it is never collected");
        }
        project.write("pipeline.toml", &before);
        project.expect(0, "run --label a --runs 1");
        assert!(project.unpriced_rows("a") == live(vendor).0);
        assert_eq!(
            server.billed_twice(),
            0,
            "the edit asked other requests, and none of the first again"
        );
    }
}

#[test]
fn lines_without_a_result_are_submitted_again_and_others_fail() {
    for vendor in VENDORS {
        let server = BatchServer::start(vendor);
        let project = project(&server);
        server.book().behaviour.fates =
            Arc::new(
                |body, attempt| match (body.to_string().len() % 6, attempt) {
                    (0, 1) => Fate::Missing,
                    (1, 1) => Fate::Expired,
                    (2, 1 | 2) => Fate::Error(429),
                    (3, 1) => Fate::Error(500),
                    (4, _) => Fate::Twice,
                    _ => Fate::Sensible,
                },
            );
        project.expect(0, "run --label a --runs 1 --lane batch --wait");
        assert!(project.unpriced_rows("a") == live(vendor).0, "{vendor:?}");
        assert_eq!(server.billed_twice(), 0);

        let server = BatchServer::start(vendor);
        let project = self::project(&server);
        server.book().behaviour.fates =
            Arc::new(|body, _| match body.to_string().contains("error number") {
                true => Fate::Error(400),
                false => Fate::Sensible,
            });
        let ended = project.expect(5, "run --label a --runs 1 --lane batch --wait");
        ended.says(&["so it is"]);
        assert!(open_batches(&project).is_empty());
    }
}

#[test]
fn lines_that_are_always_cancelled_fail_after_as_many_batches_as_others() {
    for vendor in VENDORS {
        let server = BatchServer::start(vendor);
        let project = project(&server);
        project.edit(
            "pipeline.toml",
            "batch_poll_s",
            "max_attempts = 3\nbatch_poll_s",
        );
        let fates = |body: &Value, _| match body.to_string().contains("Who owns the machine?") {
            true => Fate::Cancelled,
            false => Fate::Sensible,
        };
        server.book().behaviour.fates = Arc::new(fates);
        let ended = project.expect(5, "run --label a --runs 1 --lane batch --wait");
        ended.says(&["3 batches ended without a reply to it", "cancel"]);
        let book = server.book();
        let cancelled = book.batches.iter().filter(|batch| {
            let mut lines = batch.lines.iter();
            lines.any(|(_, body)| fates(body, 1) == Fate::Cancelled)
        });
        assert_eq!(cancelled.count(), 3, "{vendor:?}");
    }
}

#[test]
fn what_the_vendors_limit_has_no_room_for_waits_for_smaller_batches() {
    let server = BatchServer::start(Vendor::OpenAi);
    let project = project(&server);
    server.book().behaviour.most_open = 9;
    let ended = project.expect(0, "run --label a --runs 1 --lane batch --wait");
    ended.says(&["is over a limit of the account", "90,000 enqueued tokens"]);
    assert!(project.unpriced_rows("a") == live(Vendor::OpenAi).0);
    assert_eq!(server.billed_twice(), 0);
    let book = server.book();
    let sizes: Vec<usize> = book.batches.iter().map(|batch| batch.lines.len()).collect();
    assert!(
        sizes.iter().filter(|lines| **lines > 9).count() <= 4,
        "{sizes:?}"
    );
    drop(book);

    // No room at all: nothing fails, and a later run goes on.
    let server = BatchServer::start(Vendor::OpenAi);
    let project = self::project(&server);
    server.book().behaviour.most_open = 0;
    let ended = project.expect(7, "run --label a --runs 1 --lane batch --wait");
    ended.says(&["is over a limit of the account"]);
    server.book().behaviour.most_open = usize::MAX;
    project.expect(0, "run --label a --runs 1 --lane batch --wait");
    assert!(project.unpriced_rows("a") == live(Vendor::OpenAi).0);
}

/// The fate of a line at a vendor that gives some replies late.
fn some_late(body: &Value, _: u8) -> Fate {
    if body.to_string().len().is_multiple_of(3) {
        Fate::Late
    } else {
        Fate::Sensible
    }
}

#[test]
fn results_that_lack_replies_are_read_again() {
    for vendor in VENDORS {
        let server = BatchServer::start(vendor);
        let project = project(&server);
        server.book().behaviour = Behaviour {
            fates: Arc::new(some_late),
            readings: 2,
            ..Behaviour::default()
        };
        project.expect(0, "run --label a --runs 1 --lane batch --wait");
        assert!(project.unpriced_rows("a") == live(vendor).0, "{vendor:?}");
        assert_eq!((server.billed_twice(), server.book().batches.len()), (0, 2));
    }
}

#[test]
fn replies_that_never_come_fail_their_cells_and_only_another_run_pays_again() {
    for vendor in VENDORS {
        let server = BatchServer::start(vendor);
        let project = project(&server);
        let ended_ago = Some(Duration::from_secs(24 * 3600));
        server.book().behaviour = Behaviour {
            fates: Arc::new(some_late),
            readings: usize::MAX,
            ended_ago,
            ..Behaviour::default()
        };
        let ended = project.expect(5, "run --label a --runs 1 --lane batch --wait");
        ended.says(&["it may be billed", "pay for it again"]);
        assert!(open_batches(&project).is_empty());
        assert_eq!(server.billed_twice(), 0);
        assert!(
            !server.book().calls.contains(&"delete"),
            "the provider's support may look for what is missing"
        );
        server.book().behaviour = Behaviour::default();
        project.expect(0, "run --label a --runs 1 --lane batch --wait");
        assert!(project.unpriced_rows("a") == live(vendor).0, "{vendor:?}");
        assert!(server.billed_twice() > 0);
    }
}

#[test]
fn a_batch_that_is_refused_as_a_whole_fails_its_cells_and_costs_nothing() {
    for vendor in VENDORS {
        let server = BatchServer::start(vendor);
        let project = project(&server);
        server.book().behaviour.refuses = true;
        project
            .expect(5, "run --label a --runs 1 --lane batch --wait")
            .says(&["so it is"]);
        assert!(open_batches(&project).is_empty());
        assert_eq!(
            project.result("a", "manifest.json")["requests_sent"],
            server.book().requests()
        );
        server.book().behaviour.refuses = false;
        project.expect(0, "run --label a --runs 1 --lane batch --wait");
        assert!(project.unpriced_rows("a") == live(vendor).0, "{vendor:?}");
    }
}

#[test]
fn results_that_the_vendor_has_deleted_fail_their_cells_and_only_another_run_pays_again() {
    for vendor in VENDORS {
        let server = BatchServer::start(vendor);
        let project = project(&server);
        server.book().behaviour.deletes_results = true;
        project
            .expect(5, "run --label a --runs 1 --lane batch --wait")
            .says(&["it may be billed", "pay for it again"]);
        assert_eq!(server.book().batches.len(), 1);
        assert!(open_batches(&project).is_empty());
        server.book().behaviour.deletes_results = false;
        project.expect(0, "run --label a --runs 1 --lane batch --wait");
        assert!(project.unpriced_rows("a") == live(vendor).0, "{vendor:?}");
        assert_eq!(server.book().batches.len(), 3);
    }
}

#[test]
fn a_line_that_was_answered_without_a_reply_is_not_sent_again_in_the_same_run() {
    for vendor in VENDORS {
        let server = BatchServer::start(vendor);
        let project = project(&server);
        server.book().behaviour.fates =
            Arc::new(
                |body, _| match body.to_string().contains("Who owns the machine?") {
                    true => Fate::Empty,
                    false => Fate::Sensible,
                },
            );
        project
            .expect(5, "run --label a --runs 1 --lane batch --wait")
            .says(&["it may be billed"]);
        assert_eq!(server.billed_twice(), 0, "{vendor:?}");
    }
}

#[test]
fn a_refresh_that_takes_several_runs_asks_everything_once() {
    let server = BatchServer::start(Vendor::OpenAi);
    let project = project(&server);
    project.expect(0, "run --label a --runs 1");
    let (rows, live) = (project.unpriced_rows("a"), server.book().live);
    let refresh = || {
        let runs = (0..12).map(|_| {
            project
                .compeval("run --label b --runs 1 --lane batch --refresh answer --refresh judge")
                .code
        });
        runs.take_while(|code| *code == 7).count()
    };
    assert!((3..12).contains(&refresh()), "answers, then grades");
    let sent = server.book().live - live;
    assert_eq!(server.book().batches.len(), 2);
    assert!(
        sent <= super::matrix::SELFTEST,
        "the self-test alone: {sent} of {live}"
    );
    assert!(project.unpriced_rows("b") == rows);
    assert!((3..12).contains(&refresh()));
    assert_eq!(server.book().batches.len(), 4, "a new wish begins anew");
    assert_eq!(server.book().live - live, 2 * sent);
}

#[test]
fn a_grade_that_breaks_the_contract_is_asked_again_live() {
    for vendor in VENDORS {
        let server = BatchServer::start(vendor);
        let project = project(&server);
        server.book().behaviour.fates =
            Arc::new(|body, _| match body.to_string().contains("<material>") {
                true => Fate::Text("I would rather not say."),
                false => Fate::Sensible,
            });
        project.expect(0, "run --label a --runs 1 --lane batch --wait");
        assert!(project.unpriced_rows("a") == live(vendor).0, "{vendor:?}");
        assert_eq!(server.book().batches.len(), 2, "no second batch of grades");
    }
}

/// Whether a request is for a grade of one certain answer.
fn is_spoiled(body: &Value) -> bool {
    let body = body.to_string();
    body.contains("<material>") && body.contains("Who owns the machine?")
}

/// From now on the requests for that grade get this text: in a batch at once, live after more than so many of them.
fn spoil(server: &BatchServer, text: &'static str, least: u8) {
    let fate = move |body: &Value, times: u8, least: u8| match is_spoiled(body) && times > least {
        true => Fate::Text(text),
        false => Fate::Sensible,
    };
    server.book().behaviour = Behaviour {
        fates: Arc::new(move |body, attempt| fate(body, attempt, 0)),
        live_fates: Arc::new(move |body, times| fate(body, times, least)),
        ..Behaviour::default()
    };
}

/// How often each line of a batch with a request for that grade was billed.
fn billed_if_spoiled(server: &BatchServer) -> Vec<u32> {
    let book = server.book();
    let lines = book.batches.iter().flat_map(|batch| &batch.lines);
    let spoiled = lines.filter(|(_, body)| is_spoiled(body));
    spoiled
        .map(|(_, body)| book.billed[&identity(body)])
        .collect()
}

#[test]
fn a_reply_of_a_batch_that_cannot_be_used_is_the_first_of_three() {
    // One is empty, the other breaks the contract of the stage.
    for (vendor, text) in [
        (Vendor::OpenAi, ""),
        (Vendor::Anthropic, "I would rather not say."),
    ] {
        let server = BatchServer::start(vendor);
        let project = project(&server);
        spoil(&server, text, 0);
        project.expect(5, "run --label a --runs 1 --lane batch --wait");
        let billed = billed_if_spoiled(&server);
        assert!(
            !billed.is_empty() && billed.iter().all(|times| *times == 3),
            "{vendor:?}: {billed:?}"
        );
    }
}

#[test]
fn a_refresh_whose_replies_cannot_be_used_keeps_the_outputs_before() {
    // One is empty, the other breaks the contract of the stage.
    for (vendor, text) in [
        (Vendor::OpenAi, ""),
        (Vendor::Anthropic, "I would rather not say."),
    ] {
        let server = BatchServer::start(vendor);
        let project = project(&server);
        project.expect(0, "run --label a --runs 1");
        spoil(&server, text, 1);
        project.expect(
            5,
            "run --label b --runs 1 --lane batch --wait --refresh judge",
        );
        let billed = billed_if_spoiled(&server);
        assert!(
            !billed.is_empty() && billed.iter().all(|times| *times == 1 + 3),
            "{vendor:?}: {billed:?}"
        );
        let requests = server.book().requests();
        project.expect(0, "run --label c --runs 1");
        assert_eq!(
            server.book().requests(),
            requests,
            "{vendor:?}: nothing is asked again"
        );
        assert!(
            project.unpriced_rows("c") == project.unpriced_rows("a"),
            "{vendor:?}"
        );
    }
}

#[test]
fn outputs_survive_a_refresh_that_another_run_collects_and_one_that_reaches_no_provider() {
    let server = BatchServer::start(Vendor::OpenAi);
    let project = project(&server);
    project.expect(0, "run --label a --runs 1");
    server.book().behaviour.fates =
        Arc::new(
            |body, _| match body.to_string().contains("Who owns the machine?") {
                true => Fate::Text(""),
                false => Fate::Sensible,
            },
        );
    project.expect(7, "run --label b --runs 1 --lane batch --refresh answer");
    let mut polls = 0;
    while !open_batches(&project).is_empty() {
        // No cell of this run waits for the batch.
        project.compeval("run --label c --runs 1 --methods nothing");
        polls += 1;
        assert!(polls < 5, "it is never collected");
    }
    drop(server);
    // The answers of the batch were not read yet: a request that fails must not mark them as unusable.
    project.edit(
        "pipeline.toml",
        "batch_poll_s",
        "max_attempts = 1\nbatch_poll_s",
    );
    let ended = project.compeval("run --label d --runs 1 --refresh answer");
    assert_ne!(ended.code, 0, "{}", ended.stderr);
    project.expect(0, "run --label e --runs 1 --offline");
    assert!(project.unpriced_rows("e") == project.unpriced_rows("a"));
}

#[test]
fn a_batch_whose_creation_was_not_confirmed_is_found() {
    for vendor in VENDORS {
        let server = BatchServer::start(vendor);
        let project = project(&server);
        server.book().behaviour = Behaviour {
            lost_answers: 2,
            ..Behaviour::default()
        };
        project.expect(0, "run --label a --runs 1 --lane batch --wait");
        assert!(project.unpriced_rows("a") == live(vendor).0, "{vendor:?}");
        assert_eq!((server.billed_twice(), server.book().batches.len()), (0, 2));
    }
}

#[test]
fn the_time_in_which_a_batch_may_turn_up_begins_after_its_upload() {
    let server = BatchServer::start(Vendor::OpenAi);
    let project = project(&server);
    server.book().behaviour.latency = Duration::from_millis(20);
    project.expect(7, "run --label a --runs 1 --lane batch");
    let [open] = open_batches(&project).try_into().expect("one batch");
    let created = UNIX_EPOCH + Duration::from_millis(open["created"].as_u64().expect("a time"));
    assert!(
        Some(created) >= server.book().uploaded,
        "a slow upload takes nothing of it"
    );
}

#[test]
fn an_open_batch_counts_against_the_budget_of_a_later_run() {
    let server = BatchServer::start(Vendor::OpenAi);
    let project = project(&server);
    server.book().behaviour.polls = 1_000_000;
    project.expect(7, "run --label a --runs 1 --lane batch");
    let [open] = open_batches(&project).try_into().expect("one batch");
    let reserved = open["reserved_usd"].as_f64().expect("a price");
    let sent = server.book().live;
    project.edit("pipeline.toml", "prompts/answer.md", "prompts/other.md");
    project.write(
        "prompts/other.md",
        &format!("Briefly.\n{}", project.read("prompts/answer.md")),
    );
    project.expect(7, &format!("run --label b --runs 1 --max-cost {reserved}"));
    assert_eq!(server.book().live, sent, "all of it is reserved");

    project
        .expect(2, "batch cancel nonsense")
        .says(&["batch ls"]);
    let nonce = open["nonce"].as_str().expect("a nonce");
    project.expect(0, &format!("batch cancel {nonce}"));
    assert!(server.book().batches[0].is_cancelled);
    server.book().behaviour.polls_of_cancelled = 0;
    project.expect(0, "run --label b --runs 1");
    assert!(open_batches(&project).is_empty());
}

#[test]
fn two_caches_with_one_account_keep_their_batches_apart() {
    let server = BatchServer::start(Vendor::Anthropic);
    let latency = Duration::from_millis(150);
    server.book().behaviour = Behaviour {
        lost_answers: 3,
        latency,
        ..Behaviour::default()
    };
    let projects = [(); 2].map(|()| project(&server));
    let running = projects
        .each_ref()
        .map(|project| project.start("run --label a --runs 1 --lane batch --wait"));
    let expected = live(Vendor::Anthropic).0;
    for (running, project) in running.into_iter().zip(&projects) {
        let ended = running.end();
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        assert!(project.unpriced_rows("a") == expected);
    }
    assert_eq!(
        server.book().batches.len(),
        4,
        "two each, none of them submitted again"
    );
}

#[cfg(unix)]
#[test]
fn a_run_that_a_second_ctrl_c_ends_during_a_call_of_the_batch_api_is_interrupted() {
    let server = BatchServer::start(Vendor::OpenAi);
    let project = project(&server);
    server.book().behaviour.latency = Duration::from_secs(60);
    let mut running = project.start("run --label a --runs 1 --lane batch --wait");
    wait_until(|| server.book().calls.contains(&"upload"));
    running.interrupt();
    running.wait_for_words("stopping");
    running.interrupt();
    let ended = running.end();
    assert_eq!(ended.code, 130, "{}", ended.stderr);
    assert_eq!(
        project.result("a", "manifest.json")["outcome"],
        "interrupted"
    );
}

#[test]
fn parts_have_no_batches() {
    let server = BatchServer::start(Vendor::OpenAi);
    let project = project(&server);
    project
        .expect(2, "run --label a --part 1/2 --lane batch")
        .says(&["in batches"]);
    assert_eq!(server.book().live, 0);
}
