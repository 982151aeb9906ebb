//! Wrong input gets a clear error and exit code 2, and no provider is called. The wordings are tested where they are
//! made.

use super::project::Project;
use super::server::Server;

/// A mistake, and what its error message must contain.
type Case = (&'static str, fn(&Project), &'static [&'static str]);

const CASES: &[Case] = &[
    (
        "malformed TOML",
        |p| p.edit("pipeline.toml", "[pipeline]", "[pipeline"),
        &["pipeline.toml"],
    ),
    (
        "an unknown key",
        |p| p.edit("pipeline.toml", "runs = 2", "rnus = 2"),
        &["rnus", "runs", "pipeline.toml:2"],
    ),
    (
        "an unknown strategy",
        |p| p.edit("pipeline.toml", "anchored-iterative", "anchored-iterativ"),
        &["anchored-iterativ", "anchored-iterative"],
    ),
    (
        "a provider of no kind",
        |p| p.edit("pipeline.toml", "openai-chat", "openai-chatt"),
        &["openai-chatt"],
    ),
    (
        "a model with no provider",
        |p| p.edit("pipeline.toml", "mock/judge-1", "mok/judge-1"),
        &["mok", "mock", "pipeline.toml:"],
    ),
    (
        "a base_url without scheme",
        |p| p.edit("pipeline.toml", "\"http://", "\""),
        &["no scheme", "base_url"],
    ),
    (
        "a key in the file",
        |p| {
            p.edit(
                "pipeline.toml",
                "api_key_env = \"MOCK_API_KEY\"",
                "api_key = \"sk-ant-12345678\"",
            )
        },
        &["api_key", "api_key_env"],
    ),
    (
        "a fixture of broken JSON",
        |p| {
            p.edit(
                "fixtures/harbor.json",
                "\"messages\": [",
                "\"messages\": [,",
            )
        },
        &["harbor.json:"],
    ),
    (
        "an orphan tool result",
        |p| {
            p.edit(
                "fixtures/harbor.json",
                "\"tool_call_id\": \"call_2\"",
                "\"tool_call_id\": \"call_9\"",
            )
        },
        &["call_9", "harbor.json:"],
    ),
    (
        "a repeated call id",
        |p| {
            p.edit(
                "fixtures/harbor.json",
                "{\"id\": \"call_2\"",
                "{\"id\": \"call_1\"",
            )
        },
        &["call_1", "harbor.json:"],
    ),
    (
        "a point out of range",
        |p| p.edit("fixtures/harbor.json", "[6, 13]", "[6, 99]"),
        &["99", "harbor.json:"],
    ),
    (
        "a bank of no fixture",
        |p| {
            p.edit(
                "probes/harbor.probes.json",
                "\"fixture\": \"harbor\"",
                "\"fixture\": \"harbour\"",
            )
        },
        &["harbour", "harbor.probes.json"],
    ),
    (
        "an unknown probe type",
        |p| {
            p.edit(
                "probes/harbor.probes.json",
                "\"type\": \"decision\"",
                "\"type\": \"decisions\"",
            )
        },
        &["decisions", "decision", "harbor.probes.json:"],
    ),
    (
        "a fact that is no text",
        |p| p.edit("probes/harbor.probes.json", "[\"6 tries\"]", "[6]"),
        &["harbor.probes.json:"],
    ),
    (
        "a fact that occurs nowhere",
        |p| p.edit("probes/harbor.probes.json", "6 tries", "60 tries"),
        &["60 tries", "harbor.probes.json:"],
    ),
    (
        "a probe at no point",
        |p| p.edit("probes/harbor.probes.json", "\"point\": 1", "\"point\": 3"),
        &["3", "harbor.probes.json:"],
    ),
    (
        "a repeated probe",
        |p| {
            p.edit(
                "probes/harbor.probes.json",
                "\"id\": \"file\"",
                "\"id\": \"port\"",
            )
        },
        &["port", "harbor.probes.json:"],
    ),
    (
        "an unknown variable in a template",
        |p| p.edit("prompts/answer.md", "{{ question }}", "{{ qestion }}"),
        &["qestion", "question", "answer.md:"],
    ),
    (
        "a prompt that is not there",
        |p| p.edit("pipeline.toml", "prompts/answer.md", "prompts/anwser.md"),
        &["anwser.md"],
    ),
    (
        "a rubric of no weight",
        |p| {
            p.edit(
                "pipeline.toml",
                "runs = 2",
                "runs = 2\nrubric = \"rubric.toml\"",
            );
            let rubric = std::fs::read_to_string(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/assets/rubric/en.toml"
            ))
            .unwrap();
            let (first, rest) = rubric.split_once("weight").unwrap();
            let (_, rest) = rest.split_once('\n').unwrap();
            p.write("rubric.toml", &format!("{first}weight = -1.0\n{rest}"));
        },
        &["weight", "rubric.toml:"],
    ),
    (
        "two methods of one name",
        |p| p.edit("pipeline.toml", "\"twin\"", "\"full\""),
        &["full", "pipeline.toml:"],
    ),
    (
        "no method at all",
        |p| p.write("pipeline.toml", "[pipeline]\nruns = 1\n"),
        &["compress"],
    ),
];

#[test]
fn wrong_input_is_named_with_its_place_and_nothing_is_called() {
    let server = Server::start();
    let mut wrong = Vec::new();
    for (what, spoil, words) in CASES {
        let project = Project::new(&server);
        spoil(&project);
        let ended = project.compeval("run --label a");
        let flat = ended
            .stderr
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        let missing: Vec<_> = words.iter().filter(|word| !flat.contains(**word)).collect();
        if ended.code != 2 || !missing.is_empty() {
            wrong.push(format!(
                "{what}: exit {}, missing {missing:?} in\n{}",
                ended.code, ended.stderr
            ));
        }
        assert!(!project.exists("results/a"), "{what}: nothing is begun");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(server.count(), 0);
}

#[test]
fn an_unproven_fact_goes_through_if_the_user_says_so() {
    let server = Server::start();
    let project = Project::new(&server);
    project.edit("probes/harbor.probes.json", "6 tries", "60 tries");
    project.expect(0, "run --label a --runs 1 --allow-unproven");
}

#[test]
fn a_selection_of_nothing_exits_with_4() {
    let server = Server::start();
    let project = Project::new(&server);
    let second = |text: String| {
        text.replace("\"harbor\"", "\"quay\"")
            .replace("\"port\"", "\"dock\"")
    };
    project.write(
        "fixtures/quay.json",
        &second(project.read("fixtures/harbor.json")),
    );
    project.write(
        "probes/quay.probes.json",
        &second(project.read("probes/harbor.probes.json")),
    );
    project.expect(4, "run --label a --fixtures harbor --probes dock");
    assert_eq!(server.count(), 0);
}

#[test]
fn a_name_that_selects_nothing_known_is_reported_with_the_nearest_one() {
    let server = Server::start();
    let project = Project::new(&server);
    project
        .expect(2, "run --label a --methods fulll")
        .says(&["fulll", "did you mean `full`"]);
    project
        .expect(2, "run --label a --fixtures harbour")
        .says(&["harbour", "did you mean `harbor`"]);
    assert_eq!(server.count(), 0);
}

#[test]
fn labels_and_flags_are_checked_before_anything_is_called() {
    let server = Server::start();
    let project = Project::new(&server);
    for arguments in [
        "run --label ../a",
        "run --label a --max-cost -1",
        "run --runs 0",
        "run --profile nightly",
        "run --no-such-flag",
    ] {
        project.expect(2, arguments);
    }
    assert_eq!(server.count(), 0);
}

#[test]
fn outside_a_project_it_says_what_to_do() {
    let server = Server::start();
    let project = Project::new(&server);
    std::fs::remove_file(project.path("pipeline.toml")).unwrap();
    project.expect(2, "run").says(&["pipeline.toml", "init"]);
}

#[test]
fn a_file_in_the_place_of_the_cache_is_reported_with_what_to_do() {
    let mut project = Project::offline();
    project.write("some.txt", "no cache");
    project.set("COMPEVAL_CACHE", "some.txt");
    for command in ["run", "plan", "cache ls"] {
        project
            .expect(2, command)
            .says(&["some.txt is a file, not a folder", "COMPEVAL_CACHE"]);
    }
}

#[test]
fn an_error_of_the_project_leaves_the_cache_as_it_is() {
    let server = Server::start();
    let project = Project::new(&server);
    project.expect(0, "run --label a");
    std::fs::remove_dir_all(project.path("cache/index")).unwrap();
    let bank = project.read("probes/harbor.probes.json");
    project.write("probes/harbor.probes.json", "{");
    project
        .expect(2, "run --label a")
        .says(&["harbor.probes.json"]);
    assert!(!project.exists("cache/index"));
    project.write("probes/harbor.probes.json", &bank);
    project
        .expect(0, "run --label a")
        .says(&["rebuilt from the packs"]);
}

#[test]
fn a_refused_run_creates_no_cache() {
    let project = Project::offline();
    for refused in ["--label a/b", "--compare-to none", "--max-cost 1"] {
        project.expect(2, &format!("run {refused}"));
        assert!(!project.exists("cache"), "{refused}");
    }
}

#[test]
fn an_unknown_command_gets_the_known_ones() {
    let project = Project::offline();
    project.expect(2, "labels frobnicate").says(&[
        "error: unrecognized subcommand 'frobnicate'",
        "help: commands: ls, rm, protect",
    ]);
    project
        .expect(2, "lables")
        .says(&["help: did you mean `labels`?"]);
    // The most similar of several.
    for (typed, meant) in [("chekc", "check"), ("comprae", "compare")] {
        project
            .expect(2, typed)
            .says(&[&format!("help: did you mean `{meant}`?")]);
    }
}
