//! The wording of reasons.

use super::*;

fn part(text: &str) -> Input {
    Input {
        name: "".into(),
        digest: Digest::hash(text),
        text: Some(text.to_owned()),
    }
}

fn long(text: &str) -> Input {
    Input {
        text: None,
        ..part(text)
    }
}

fn change(name: &str, old: Option<Input>, new: Option<Input>) -> InputChange {
    InputChange {
        name: name.to_owned(),
        old,
        new,
    }
}

fn differs(name: &str) -> InputChange {
    change(name, Some(long("a")), Some(long("b")))
}

const OLD: &str = "Sum up.\nBe brief.\nKeep paths.\n";
const NEW: &str = "Sum up.\nBe very brief.\nKeep paths.\nKeep numbers.\n";

/// Sources with these texts of the prompt and the rubric.
fn sources(prompt: &str, rubric: &str) -> Vec<Source> {
    let source = |name: &'static str, path: &str, text: &str| Source {
        name: name.into(),
        path: Some(path.to_owned()),
        digest: Digest::hash(text),
    };
    vec![
        source("prompt", "prompts/anchored.md", prompt),
        source("rubric", "rubric.toml", rubric),
        source("fixture", "fixtures/debug.json", "fixture"),
        source("probe p1", "probes/debug.probes.json", "bank"),
    ]
}

/// The older or the newer side of `changes`.
fn document(
    changes: &[InputChange],
    side: fn(&InputChange) -> &Option<Input>,
    sources: Vec<Source>,
) -> InputsDocument {
    let mut document = InputsDocument {
        stage: Stage::Judge,
        schema: 1,
        repetition: Default::default(),
        inputs: Vec::new(),
        sources,
    };
    for change in changes {
        let Some(input) = side(change) else { continue };
        let number = input.text.as_deref().and_then(|text| text.parse().ok());
        match change.name.as_str() {
            "schema" => document.schema = number.unwrap(),
            "repetition" => document.repetition.judge = number.map(u32::from),
            name => document.inputs.push(Input {
                name: name.to_owned().into(),
                ..input.clone()
            }),
        }
    }
    document
}

/// How `changes` are worded, as `why: changed; changed`.
fn worded(changes: &[InputChange], old: &[Source]) -> String {
    let stored = |digest: &Digest| {
        [OLD, NEW, "a = 1\nb = 1\n", "a = 1\nb = 2\n"]
            .into_iter()
            .find(|text| Digest::hash(text) == *digest)
            .map(str::to_owned)
    };
    let reason = Reason::from(difference(
        &document(changes, |change| &change.old, old.to_vec()),
        &document(changes, |change| &change.new, same()),
    ));
    format!("{}: {}", reason.cause, reason.words(&stored).join("; "))
}

fn same() -> Vec<Source> {
    sources(NEW, "a = 1\nb = 2\n")
}

#[test]
fn an_edited_prompt_is_named_with_its_lines() {
    let old = sources(OLD, "a = 1\nb = 2\n");
    let edited = worded(&[differs("user prompt"), differs("sections")], &old);
    insta::assert_snapshot!(edited, @"prompt changed: prompts/anchored.md:2; prompts/anchored.md:4");
    let values = [
        differs("user prompt"),
        change("target_tokens", None, Some(part("2000"))),
    ];
    insta::assert_snapshot!(worded(&values, &old), @"prompt changed: prompts/anchored.md:2; prompts/anchored.md:4");
    let unknown = sources("gone", "a = 1\nb = 2\n");
    insta::assert_snapshot!(worded(&[differs("user prompt")], &unknown), @"prompt changed: prompts/anchored.md");
}

#[test]
fn a_prompt_whose_file_did_not_change_is_not_blamed() {
    let changes = [
        differs("user prompt"),
        change("target_tokens", Some(part("")), Some(part("2000"))),
    ];
    insta::assert_snapshot!(worded(&changes, &same()), @"setting: target_tokens: not set → 2000");
}

#[test]
fn models_and_settings_have_their_old_and_new_values() {
    let model = [
        change("endpoint", Some(part("lexical")), Some(part("openai"))),
        change("model", Some(part("lexical")), Some(part("gpt-5.2"))),
        change("repetition", Some(part("none")), Some(part("1"))),
    ];
    insta::assert_snapshot!(worded(&model, &same()), @"model: endpoint: lexical → openai; model: lexical → gpt-5.2");
    let warmer = [change("temperature", None, Some(part("0.5")))];
    insta::assert_snapshot!(worded(&warmer, &same()), @"setting: temperature: not set → 0.5");
    let rule = [change("rule", Some(part("full")), Some(part("truncate")))];
    insta::assert_snapshot!(worded(&rule, &same()), @"setting: strategy: full → truncate");
    insta::assert_snapshot!(worded(&[differs("variable TOKEN")], &same()), @"setting: variable TOKEN");
}

#[test]
fn what_a_setting_shows_or_hides_is_reported_by_its_name() {
    let came = |name| change(name, None, Some(long("x")));
    let hidden = [change("context", Some(long("x")), None), differs("request")];
    insta::assert_snapshot!(worded(&hidden, &same()), @"setting: judge_context: true → false");
    let fixed = [change("repetition", Some(part("none")), Some(part("1")))];
    insta::assert_snapshot!(worded(&fixed, &same()), @"setting: deterministic: true → false");
    let tail = [differs("context"), came("kept"), came("tail")];
    insta::assert_snapshot!(worded(&tail, &same()), @"setting: tail: none → verbatim");
    insta::assert_snapshot!(worded(&[differs("context"), differs("tail")], &same()), @"fixture span: fixtures/debug.json");
}

#[test]
fn when_a_model_replaces_the_built_in_rules_the_model_alone_has_changed() {
    let to_model = [
        change("endpoint", Some(part("lexical")), Some(part("anthropic"))),
        change("repetition", Some(part("none")), Some(part("1"))),
        change("rules", Some(part("2")), None),
        change("target_tokens", Some(part("2000")), None),
    ];
    insta::assert_snapshot!(worded(&to_model, &same()), @"model: endpoint: lexical → anthropic");
    let newer = [change("rules", Some(part("2")), Some(part("3")))];
    insta::assert_snapshot!(worded(&newer, &same()), @"schema version: rules: 2 → 3");
}

#[test]
fn each_kind_of_input_has_its_phrase() {
    let schema = [change("schema", Some(part("1")), Some(part("2")))];
    let cases = [
        schema.to_vec(),
        vec![differs("stdin"), differs("span"), differs("prefix")],
        vec![differs("messages 0")],
        vec![differs("question"), differs("request")],
        vec![differs("ground truth"), differs("request")],
        vec![differs("file tools/compress.py")],
        vec![differs("previous_summary")],
        vec![differs("items 0")],
        vec![differs("transcript"), differs("previous output")],
        vec![differs("answer"), differs("context"), differs("request")],
        vec![differs("context"), differs("found"), differs("request")],
        vec![differs("reply 1"), differs("results 2")],
        vec![change(
            "context_length",
            Some(part("1000")),
            Some(part("2000")),
        )],
    ];
    let lines: Vec<String> = cases
        .iter()
        .map(|changes| worded(changes, &same()))
        .collect();
    insta::assert_snapshot!(lines.join("\n"), @r"
    schema version: schema: 1 → 2
    fixture span: fixtures/debug.json
    fixture span: fixtures/debug.json
    probe text: probes/debug.probes.json: question of p1
    probe text: probes/debug.probes.json: ground truth of p1
    command input file: tools/compress.py
    upstream output changed: previous summary
    upstream output changed: previous compaction
    upstream output changed: previous output
    upstream output changed: answer; context
    upstream output changed: search results
    upstream output changed: earlier reply; search results
    fixture span: fixtures/debug.json: context_length: 1000 → 2000
    ");
}

#[test]
fn a_rubric_is_blamed_only_where_it_changed() {
    let changes = [
        differs("criteria"),
        differs("output schema"),
        differs("system rubric"),
        differs("request"),
    ];
    let edited = worded(&changes, &sources(NEW, "a = 1\nb = 1\n"));
    insta::assert_snapshot!(edited, @"rubric: rubric.toml:2");
    insta::assert_snapshot!(worded(&changes, &same()), @"setting: criteria that apply, by rubric_scope or the probe's type");
}

#[test]
fn of_several_changes_the_nearest_to_the_user_gives_the_reason() {
    let changes = [
        differs("context"),
        change("model", Some(part("a")), Some(part("b"))),
        differs("question"),
    ];
    let all = "model: model: a → b; probes/debug.probes.json: question of p1; context";
    assert_eq!(worded(&changes, &same()), all);
}

#[test]
fn a_failure_says_what_is_known_of_it() {
    let of = |reason: Reason| format!("{} {:?}", reason.cause, reason.words(&|_| None));
    let all = [
        StaleCause::NotCached.into(),
        Reason::failed("overloaded"),
        Reason::from(Vec::new()),
    ];
    insta::assert_snapshot!(all.map(of).join("\n"), @r#"
    not in the cache []
    failed last time ["overloaded"]
    not in the cache []
    "#);
}

#[test]
fn an_input_that_comes_or_goes_differs() {
    let came = [change("model", None, Some(part("m")))];
    let names = |old: &[InputChange], new: &[InputChange]| -> Vec<(String, bool, bool)> {
        let (old, new) = (
            document(old, |change| &change.new, Vec::new()),
            document(new, |change| &change.new, Vec::new()),
        );
        let changes = differing_inputs(&old, &new).into_iter();
        changes
            .map(|change| (change.name, change.old.is_some(), change.new.is_some()))
            .collect()
    };
    assert_eq!(names(&came, &came), []);
    assert_eq!(names(&[], &came), [("model".to_owned(), false, true)]);
    assert_eq!(names(&came, &[]), [("model".to_owned(), true, false)]);
}
