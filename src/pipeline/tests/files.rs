//! Faults in the files a pipeline names: prompts, rubric, fixtures, banks, inputs of programs.

use insta::assert_snapshot;

use super::{BANK, FIXTURE, Project, STAGES, listed, render, warnings_of};

fn prompted(prompt: &str) -> Project {
    let text = STAGES.replace(
        "strategy = \"full\"",
        "strategy = \"anchored-iterative\"\nmodel = \"lexical\"\nprompt = \"prompts/own.md\"",
    );
    Project::new(&text).file("prompts/own.md", prompt)
}

#[test]
fn mistakes_are_placed_with_what_was_expected() {
    let fixture = |from: &str, to: &str| {
        Project::new(STAGES).file("fixtures/tiny.json", &FIXTURE.replace(from, to))
    };
    let bank = |from: &str, to: &str| {
        Project::new(STAGES).file("probes/tiny.probes.json", &BANK.replace(from, to))
    };
    let orphan = "{\"role\": \"tool\", \"tool_call_id\": \"c7\", \"content\": \"ok\"}";
    let projects = [
        prompted("Sum it up.\n\n{{ previous_summary }}\n{{ transcrpt }}\n"),
        prompted("Sum it up.\n{{ previous_summary }}\n"),
        prompted("").without("prompts/own.md"),
        fixture(
            "\"content\": \"Make it 9090.\"",
            "\"content\" \"Make it 9090.\"",
        ),
        fixture(
            "{\"role\": \"user\", \"content\": \"Make it 9090.\"}",
            orphan,
        ),
        fixture("\"tiny\"", "\"small\""),
        Project::new(STAGES).file("probes/tinny.probes.json", BANK),
        bank("\"point\": 1", "\"point\": 3"),
        bank("\"decision\"", "\"decission\""),
        program("inputs = [\"tools/c.py\", \"agent\"]"),
    ];
    assert_snapshot!(listed(projects), @r#"
    prompts/own.md:4:4: unknown variable `transcrpt`; this prompt may use `transcript`, `previous_summary`, `focus_topic`, `target_tokens` -> a prompt inserts variables, {{ name }}, and tests them for emptiness, {% if name %}; nothing else
    prompts/own.md:1:1: this prompt does not insert {{ transcript }} -> add a line with {{ transcript }} where its text belongs; for a prompt that expects the conversation before it, set placement = "system"
    pipeline.toml:6:10: cannot read the prompt prompts/own.md: there is no such file -> paths are relative to the folder of the pipeline
    fixtures/tiny.json:7:32: expected `:` -> a fixture is JSON with `name` and `messages` in OpenAI's chat shape
    fixtures/tiny.json:3:13: point 2 parts a tool call from its result -> move the point to just before an assistant or user message
    fixtures/tiny.json:7:5: message 2 is a tool result for `c7`, but no open call before it has that id -> a result directly follows the assistant message that makes the call; remove the orphan or restore its call
    fixtures/tiny.json:2:11: the fixture in fixtures/tiny.json is named `small`, its file `tiny` -> name and file stem are the same: change one of them
    probes/tinny.probes.json is a bank for the fixture `tinny`, which does not exist -> did you mean `tiny`?
    probes/tiny.probes.json:4:48: probe `first` is asked at point 3, but the fixture has 2 -> give a point from 1 to 2, or leave it out for the last
    probes/tiny.probes.json:6:27: unknown probe type `decission` -> did you mean `decision`?
    pipeline.toml:6:25: no file matches `agent` -> it is a folder: write `agent/**` for all that lies in it
    "#);
}

#[test]
fn a_prompt_without_its_transcript_is_an_error_with_the_line_to_add() {
    let forgetful = prompted("Sum up: {{ transcript }}").refusal();
    assert!(
        forgetful.contains("does not insert {{ previous_summary }}"),
        "the fixture has two points: {forgetful}"
    );
    assert!(
        prompted("{{ previous_summary }} {{ transcript }}")
            .open()
            .is_ok()
    );
}

#[test]
fn a_rubric_without_weight_is_shown_in_the_rubric() {
    let rubric = include_str!("../../../assets/rubric/en.toml");
    let zero = rubric.lines().map(|line| {
        if line.starts_with("weight") {
            "weight = 0.0"
        } else {
            line
        }
    });
    let zero = zero.collect::<Vec<_>>().join("\n");
    let project = Project::with_settings("rubric = \"rubric.toml\"").file("rubric.toml", &zero);
    let problems = project.refusal();
    assert!(
        problems.contains("rubric.toml:") && problems.contains("weight"),
        "{problems}"
    );
    assert!(
        Project::with_settings("rubric = \"rubric.toml\"")
            .file("rubric.toml", rubric)
            .open()
            .is_ok()
    );
}

#[test]
fn a_fixture_without_a_bank_is_left_out_and_reported() {
    let lonely = FIXTURE.replace("\"tiny\"", "\"lonely\"");
    let opened = Project::new(STAGES)
        .file("fixtures/lonely.json", &lonely)
        .opened();
    assert_eq!(opened.pipeline.fixtures.len(), 1);
    assert_snapshot!(render(&warnings_of(&opened)), @r"
    warning: the fixture `lonely` has no bank and is left out
    help: write probes/lonely.probes.json, or let a model: `compeval probes generate lonely`
    ");
}

fn program(keys: &str) -> Project {
    let strategy =
        format!("strategy = \"command\"\ncommand = [\"python3\", \"tools/c.py\"]\n{keys}");
    let text = STAGES.replace("strategy = \"full\"", &strategy);
    Project::new(&text)
        .file("tools/c.py", "print()")
        .file("agent/a/b.py", "b")
        .file("agent/c.py", "c")
}

fn spec(project: &Project) -> crate::compress::CommandSpec {
    match project.opened().pipeline.methods.remove(0).strategy {
        crate::compress::Strategy::Command(spec) => spec,
        other => panic!("{other:?}"),
    }
}

#[test]
fn inputs_are_listed_sorted_and_digested_once() {
    let spec = spec(
        &program("inputs = [\"tools/c.py\", \"agent/**/*.py\", \"tools/*\"]\nenv = [\"B\", \"A\"]")
            .variable("A", "1"),
    );
    let paths: Vec<&str> = spec.files.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(paths, ["agent/a/b.py", "agent/c.py", "tools/c.py"]);
    assert_eq!(spec.files[2].1, crate::action::Digest::hash("print()"));
    let set: Vec<(&str, bool)> = spec
        .environment
        .iter()
        .map(|(name, value)| (name.as_str(), value.is_some()))
        .collect();
    assert_eq!(set, [("A", true), ("B", false)]);
}

#[test]
fn a_command_without_inputs_is_warned_of() {
    assert_eq!(warnings_of(&program("").opened()).0.len(), 1);
}

#[test]
fn a_program_that_is_not_here_is_warned_of() {
    let project = program("inputs = []").variable("PATH", "/nowhere");
    assert_eq!(
        warnings_of(&project.opened()).0[0].message(),
        "there is no program `python3` here"
    );
}

#[test]
fn what_a_run_writes_is_no_input() {
    let project = program("inputs = [\"**/*\"]")
        .file("cache/x", "x")
        .file("results/a/cells.jsonl", "");
    assert!(
        spec(&project)
            .files
            .iter()
            .all(|(path, _)| !path.starts_with("cache/") && !path.starts_with("results/"))
    );
}

#[test]
fn a_fact_that_occurs_nowhere_is_an_error_unless_allowed() {
    let unproven = BANK.replace("[\"8080\"]", "[\"8088\"]");
    let project = Project::new(STAGES).file("probes/tiny.probes.json", &unproven);
    assert_snapshot!(project.refusal(), @r#"
    error: probe `first`: expected fact "8088" occurs nowhere before its point
       ╭─[probes/tiny.probes.json:4:106]
     3 │   "probes": [
     4 │ …": "recall", "point": 1, "question": "Which port at first?", "expected_facts": ["8088"]},
       ·                                                                                  ──────
     5 │     {"id": "now", "type": "recall", "question": "Which port now?", "expected_facts": ["90…
       ╰────
    help: quote the transcript, add the spelling it uses, or write "literal": false for a paraphrase; `run` continues with --allow-unproven
    "#);
    assert!(
        project
            .asking(|request| request.allow_unproven = true)
            .open()
            .is_ok()
    );
}

#[test]
fn a_fact_given_away_is_a_warning_of_run_and_an_error_of_check() {
    let given = BANK.replace("Which port now?", "Is the port 9090 now?");
    let project = Project::new(STAGES).file("probes/tiny.probes.json", &given);
    let is_reported = |problem: &crate::pipeline::Problem| problem.message().contains("9090");
    assert!(project.opened().warnings.0.iter().any(is_reported));
    let strict = project.asking(|request| request.strict = true).messages();
    assert!(
        strict.iter().any(|message| message.contains("9090")),
        "{strict:?}"
    );
}

#[test]
fn fixtures_too_large_to_review_are_a_warning_of_check_alone() {
    let large = |name: &str, lines: usize| {
        FIXTURE
            .replace("Noted: 8080.", &"Noted: 8080. ".repeat(lines))
            .replace("\"tiny\"", &format!("\"{name}\""))
    };
    let sizes = |opened: &crate::pipeline::Opened| -> Vec<String> {
        let messages = warnings_of(opened)
            .0
            .into_iter()
            .map(|problem| problem.message().to_owned());
        messages.filter(|message| message.contains(" KB")).collect()
    };
    let mut project = Project::new(STAGES).file("fixtures/tiny.json", &large("tiny", 12_000));
    project.request.strict = true;
    let of_one = "fixtures/tiny.json has 156 KB, more than people review: 150 KB";
    assert_eq!(sizes(&project.opened()), [of_one]);
    for name in ["tinya", "tinyb", "tinyc"] {
        project = project.file(&format!("fixtures/{name}.json"), &large(name, 9_000));
        project = project.file(
            &format!("probes/{name}.probes.json"),
            &BANK.replace("\"tiny\"", &format!("\"{name}\"")),
        );
    }
    let of_all = "the fixtures have 508 KB together, more than people review: 500 KB";
    assert_eq!(sizes(&project.opened()), [of_one, of_all]);
    let of_run = project.asking(|request| request.strict = false);
    assert_eq!(sizes(&of_run.opened()), Vec::<String>::new());
}
