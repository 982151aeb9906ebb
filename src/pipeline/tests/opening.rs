//! What opens, and as what.

use super::{BANK, FIXTURE, Project, STAGES, render};
use crate::judge::Scope;
use crate::pipeline::{
    MatrixSelection, OpenError, OpenRequest, Runs, TailMode, find_pipeline, open, starter_files,
};
use base::locale::Locale;

fn runs(text: &str) -> Runs {
    Project::with_settings(text).opened().pipeline.settings.runs
}

#[test]
fn runs_is_a_number_or_a_table() {
    assert_eq!(
        runs(""),
        Runs {
            compress: 3,
            answer: 1,
            judge: 1
        }
    );
    assert_eq!(
        runs("runs = 1_0"),
        Runs {
            compress: 10,
            answer: 1,
            judge: 1
        }
    );
    assert_eq!(
        runs("runs = { compress = 2, judge = 4 }"),
        Runs {
            compress: 2,
            answer: 1,
            judge: 4
        }
    );
    assert_eq!(
        runs("[pipeline.runs]\nanswer = 2"),
        Runs {
            compress: 3,
            answer: 2,
            judge: 1
        }
    );
    let refused = Project::with_settings("runs = \"three\"").messages();
    assert_eq!(
        refused,
        [
            "expected a number of runs, or a table of `compress`, `answer` and `judge`, found a string"
        ]
    );
    let overridden = Project::with_settings("runs = { compress = 2, judge = 4 }");
    let overridden = overridden
        .asking(|request| request.overrides.runs = Some(7))
        .opened();
    assert_eq!(
        overridden.pipeline.settings.runs,
        Runs {
            compress: 7,
            answer: 1,
            judge: 4
        }
    );
}

#[test]
fn settings_have_their_defaults_and_their_words() {
    let plain = Project::new(STAGES).opened().pipeline;
    let settings = &plain.settings;
    assert_eq!(
        (settings.locale, settings.tail, settings.judge_context),
        (Locale::En, TailMode::None, true)
    );
    assert_eq!(
        (settings.rubric_scope, settings.focus_topic.clone()),
        (Scope::ByType, None)
    );
    assert!(
        plain.cache.ends_with("cache")
            && plain.results.ends_with("results")
            && plain.probes.ends_with("probes")
    );
    let words = "locale = \"zh\"\ntail = \"verbatim\"\njudge_context = false\nrubric_scope = \"all\"\nresults = \"out\"";
    let set = Project::with_settings(words)
        .variable("COMPEVAL_CACHE", "/elsewhere")
        .opened()
        .pipeline;
    assert_eq!(
        (set.settings.locale, set.settings.tail),
        (Locale::Zh, TailMode::Verbatim)
    );
    assert_eq!(
        (set.settings.judge_context, set.settings.rubric_scope),
        (false, Scope::All)
    );
    assert_eq!(set.cache, std::path::Path::new("/elsewhere"));
    assert!(set.results.ends_with("out"));
}

#[test]
fn a_profile_merges_by_key_and_arrays_by_name() {
    let text = format!(
        r#"{STAGES}
[pipeline]
runs = {{ compress = 3, answer = 2 }}
[providers.mine]
kind = "openai-chat"
base_url = "http://localhost:1/v1"
[providers.mine.limits]
max_in_flight = 8
max_attempts = 2
[profile.ci.pipeline]
runs = {{ compress = 1 }}
[profile.ci.providers.mine.limits]
max_in_flight = 2
[[profile.ci.answer]]
name = "agent"
model = "mine/small"
[[profile.ci.compress]]
name = "none"
strategy = "none"
"#
    );
    let plain = Project::new(&text).opened().pipeline;
    let ci = Project::new(&text)
        .asking(|request| request.profile = Some("ci".into()))
        .opened()
        .pipeline;
    assert_eq!((plain.settings.runs.compress, plain.methods.len()), (3, 1));
    assert_eq!(
        ci.settings.runs,
        Runs {
            compress: 1,
            answer: 2,
            judge: 1
        }
    );
    assert_eq!(
        ci.methods.iter().map(|m| &*m.name.0).collect::<Vec<_>>(),
        ["full", "none"]
    );
    let limits = &ci.answerers[0].model.provider.limits;
    assert_eq!((limits.max_in_flight, limits.max_attempts), (Some(2), 2));
    assert_eq!(plain.answerers[0].model.reference.to_string(), "lexical");
}

#[test]
fn a_value_of_a_profile_keeps_its_place() {
    let text = format!("{STAGES}\n[profile.ci.pipeline]\nlocale = \"xx\"\n");
    let project = Project::new(&text).asking(|request| request.profile = Some("ci".into()));
    let Err(OpenError::Problems(problems)) = project.open() else {
        panic!("a fault")
    };
    let line = text
        .lines()
        .position(|line| line.contains("xx"))
        .expect("the line")
        + 1;
    assert_eq!(problems.0[0].position(), Some(("pipeline.toml", line, 10)));
}

fn selecting(fixtures: &[&str], methods: &[&str], probes: &[&str]) -> Project {
    let list = |names: &[&str]| {
        (!names.is_empty()).then(|| names.iter().map(|name| (*name).to_owned()).collect())
    };
    let text = format!("{STAGES}\n[[compress]]\nname = \"none\"\nstrategy = \"none\"\n");
    let project = Project::new(&text)
        .file("fixtures/other.json", &FIXTURE.replace("tiny", "other"))
        .file(
            "probes/other.probes.json",
            &BANK
                .replace("tiny", "other")
                .replace("\"why\"", "\"whence\""),
        );
    project.asking(|request| {
        request.selection = MatrixSelection {
            fixtures: list(fixtures),
            methods: list(methods),
            probes: list(probes),
        };
    })
}

#[test]
fn a_selection_keeps_what_it_names() {
    let all = selecting(&[], &[], &[]).opened().pipeline;
    assert_eq!((all.fixtures.len(), all.methods.len()), (2, 2));
    let some = selecting(&["tiny"], &["none"], &["first"])
        .opened()
        .pipeline;
    assert_eq!((some.fixtures.len(), some.methods.len()), (1, 1));
    let probes: Vec<usize> = some.fixtures[0].selected.iter().map(Vec::len).collect();
    assert_eq!(probes, [1, 0]);
    let one = selecting(&[], &[], &["whence"]).opened().pipeline;
    assert_eq!(
        one.fixtures.iter().map(|f| f.name()).collect::<Vec<_>>(),
        ["other"]
    );
}

#[test]
fn an_unknown_name_in_a_selection_is_reported_with_the_nearest() {
    let project = selecting(&["tinny"], &["nona"], &[]);
    assert_eq!(
        project.messages(),
        [
            "--methods: there is no method `nona`",
            "--fixtures: there is no fixture `tinny`"
        ]
    );
    assert!(
        selecting(&[], &[], &["frist"])
            .refusal()
            .contains("did you mean `first`?")
    );
}

#[test]
fn nothing_left_is_its_own_kind_of_error() {
    let elsewhere = selecting(&["tiny"], &[], &["whence"]).open();
    assert!(
        matches!(elsewhere, Err(OpenError::Empty(empty)) if empty.message().contains("--fixtures and --probes"))
    );
    let no_bank = Project::new(STAGES)
        .without("probes/tiny.probes.json")
        .open();
    assert!(matches!(no_bank, Err(OpenError::Empty(empty)) if empty.message().contains("`tiny`")));
    let named = selecting(&["tiny"], &[], &[])
        .without("probes/tiny.probes.json")
        .open();
    let why = "nothing is selected by --fixtures, and there is no bank for `tiny`";
    assert!(
        matches!(named, Err(OpenError::Empty(empty)) if empty.message() == why && empty.advice().unwrap().contains("probes generate"))
    );
}

#[test]
fn remarks_and_layout_change_no_digest() {
    let digests = |fixture: &str| {
        Project::new(STAGES)
            .file("fixtures/tiny.json", fixture)
            .opened()
            .pipeline
            .fixtures[0]
            .digests
    };
    let plain = digests(FIXTURE);
    assert_eq!(
        plain,
        digests(&FIXTURE.replace("\"points\"", "\"notes\": \"mine\",\n\n \"points\""))
    );
    assert_ne!(
        plain.transcript,
        digests(&FIXTURE.replace("It is 9090 now.", "Now it is 9090.")).transcript
    );
    assert_ne!(
        plain.points,
        digests(&FIXTURE.replace("[2, 4]", "[1, 4]")).points
    );
}

#[test]
fn sources_hold_what_inputs_are_made_from() {
    let text = STAGES.replace(
        "name = \"judge\"",
        "name = \"judge\"\nprompt = \"prompts/judge.md\"",
    );
    let opened = Project::new(&text)
        .file("prompts/judge.md", "{{ request }}")
        .opened();
    let paths: Vec<&str> = opened
        .pipeline
        .sources
        .iter()
        .map(|source| source.path.as_str())
        .collect();
    assert_eq!(paths, ["pipeline.toml", "prompts/judge.md"]);
    assert_eq!(
        opened.pipeline.judges[0].template.path.as_deref(),
        Some("prompts/judge.md")
    );
}

#[test]
fn a_new_project_runs_as_it_is_and_passes_every_check() {
    let mut project = Project::new("");
    project.files = starter_files()
        .map(|(path, text)| (path.to_owned(), text.to_owned()))
        .into();
    project.request.strict = true;
    let opened = project.opened();
    assert!(
        opened.warnings.is_empty() && opened.missing_keys.is_empty(),
        "{}",
        render(&opened.warnings)
    );
    assert_eq!(opened.pipeline.methods.len(), 7);
    project.request.profile = Some("quick".into());
    assert_eq!(project.opened().pipeline.settings.runs.compress, 1);
}

#[test]
fn what_the_shipped_pipeline_shows_in_comments_is_true() {
    let mut project = Project::new("").file("tools/compress.py", "");
    project
        .files
        .extend(starter_files().map(|(path, text)| (path.to_owned(), text.to_owned())));
    let is_example = |line: &str| line.starts_with("# [") || line.contains(" = ");
    let uncomment = |line: &str| match line.strip_prefix("# ") {
        Some(example) if is_example(line) => example.to_owned(),
        _ => line.to_owned(),
    };
    let text: Vec<String> = project.files["pipeline.toml"]
        .lines()
        .map(uncomment)
        .collect();
    let pipeline = project
        .file("pipeline.toml", &text.join("\n"))
        .opened()
        .pipeline;
    assert_eq!(
        pipeline.methods.last().map(|method| &*method.name.0),
        Some("mine")
    );
    assert!(pipeline.providers.contains_key(&"local".into()));
}

#[test]
fn the_shipped_project_is_sound() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let file = find_pipeline(&root.join("src"), None).expect("the shipped pipeline");
    let request = OpenRequest {
        file,
        strict: true,
        ..OpenRequest::default()
    };
    match open(&request, &|_: &str| None) {
        Ok(opened) => {
            assert!(opened.pipeline.fixtures.len() >= 3 && opened.pipeline.methods.len() >= 5)
        }
        Err(OpenError::Problems(problems)) => panic!("{}", render(&problems)),
        Err(OpenError::Empty(empty)) => panic!("{empty}"),
    }
}

#[test]
fn the_shipped_prompt_is_the_built_in_one() {
    let built_in = crate::compress::built_in(crate::compress::PromptStyle::Anchored, Locale::En);
    assert_eq!(
        include_str!("../../../prompts/anchored.md"),
        built_in.text()
    );
}
