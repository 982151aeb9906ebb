//! Faults in `pipeline.toml`.

use insta::assert_snapshot;

use super::{Project, STAGES};

#[test]
fn an_unknown_key_is_shown_with_the_nearest() {
    assert_snapshot!(Project::with_settings("fixturs = \"fixtures\"\nprobes = \"probes\"").refusal(), @r#"
     × unknown key `fixturs`
      ╭─[pipeline.toml:2:1]
    1 │ [pipeline]
    2 │ fixturs = "fixtures"
      · ───────
    3 │ probes = "probes"
      ╰────
     help: did you mean `fixtures`?
    "#);
}

#[test]
fn a_wrong_type_is_shown_at_the_value() {
    assert_snapshot!(Project::with_settings("judge_context = \"yes\"").refusal(), @r#"
     × expected true or false, found a string
      ╭─[pipeline.toml:2:17]
    1 │ [pipeline]
    2 │ judge_context = "yes"
      ·                 ──┬──
      ·                   ╰── expected true or false
    3 │
      ╰────
    "#);
}

#[test]
fn a_key_without_its_table_is_told_where_it_belongs() {
    assert_snapshot!(Project::new(&format!("runs = 3\n{STAGES}")).refusal(), @r"
     × unknown key `runs`
      ╭─[pipeline.toml:1:1]
    1 │ runs = 3
      · ────
    2 │
      ╰────
     help: `runs` belongs under [pipeline]
    ");
}

#[test]
fn broken_toml_is_shown_where_it_breaks() {
    assert_snapshot!(Project::new("[pipeline\nruns = 3").refusal(), @r"
     × this is not TOML: unclosed table, expected `]`
      ╭─[pipeline.toml:1:10]
    1 │ [pipeline
      ·          ▲
    2 │ runs = 3
      ╰────
    ");
}

#[test]
fn all_problems_come_at_once() {
    let text = r#"
[pipeline]
locale = "de"
runs = { compress = 0, answers = 2 }

[[compress]]
name = "a/b"
strategy = "sumarize"

[[compress]]
name = "cut"
strategy = "truncate"
prompt = "prompts/x.md"

[[answer]]
name = "agent"
model = "gpt-5.2"
"#;
    assert_snapshot!(Project::new(text).messages().join("\n"), @r"
    unknown locale `de`
    a number of runs is at least 1
    unknown key `answers`
    the name `a/b` holds '/'
    the strategy `truncate` needs `target_tokens`
    the strategy `truncate` does not take `prompt`
    the model `gpt-5.2` has no provider
    pipeline.toml declares no [[judge]] table
    ");
}

#[test]
fn repetitions_have_a_limit() {
    let refused = |runs: &str| Project::new(&format!("[pipeline]\nruns = {runs}\n{STAGES}")).messages();
    assert_eq!(refused("4294967295"), ["a number of runs is at most 1000"]);
    assert_eq!(refused("{ judge = 1001 }"), ["a number of judgements is at most 1000"]);
}

#[test]
fn an_unknown_strategy_is_shown_with_the_nearest() {
    let text = STAGES.replace("strategy = \"full\"", "strategy = \"anchored\"");
    assert_snapshot!(Project::new(&text).refusal(), @r#"
     × unknown strategy `anchored`
      ╭─[pipeline.toml:4:12]
    3 │ name = "full"
    4 │ strategy = "anchored"
      ·            ──────────
    5 │
      ╰────
     help: did you mean `anchored-iterative`?
    "#);
}

#[test]
fn a_key_the_strategy_does_not_take_is_shown_with_those_it_takes() {
    let text = STAGES
        .replace("strategy = \"full\"", "strategy = \"command\"\ncommand = [\"true\"]\ninputs = []\nprompt = \"p.md\"");
    assert_snapshot!(Project::new(&text).refusal(), @r#"
     × the strategy `command` does not take `prompt`
      ╭─[pipeline.toml:7:1]
    6 │ inputs = []
    7 │ prompt = "p.md"
      · ──────
    8 │
      ╰────
     help: it takes `command`, `model`, `inputs`, `env`, `deterministic`, `timeout_s`,
           `target_tokens`, `artifact_index`
    "#);
}

#[test]
fn truncate_needs_a_size() {
    let text = STAGES.replace("strategy = \"full\"", "strategy = \"truncate\"");
    assert_snapshot!(Project::new(&text).refusal(), @r#"
     × the strategy `truncate` needs `target_tokens`
      ╭─[pipeline.toml:4:12]
    3 │ name = "full"
    4 │ strategy = "truncate"
      ·            ──────────
    5 │
      ╰────
     help: add target_tokens = 2000, or how many of the newest tokens to keep
    "#);
}

#[test]
fn two_methods_of_one_name_are_both_shown() {
    let text = format!("{STAGES}\n[[compress]]\nname = \"full\"\nstrategy = \"none\"\n");
    assert_snapshot!(Project::new(&text).refusal(), @r#"
     × two compress tables are named `full`
      ╭─[pipeline.toml:3:8]
    2 │ [[compress]]
    3 │ name = "full"
      ·        ───┬──
      ·           ╰── first here
    4 │ strategy = "full"
      ╰────
       ╭─[pipeline.toml:15:8]
    14 │ [[compress]]
    15 │ name = "full"
       ·        ───┬──
       ·           ╰── again here
    16 │ strategy = "none"
       ╰────
     help: names identify results: use a different one
    "#);
}

#[test]
fn numbers_out_of_range_are_told() {
    let text = STAGES.replace("name = \"agent\"", "name = \"agent\"\ntemperature = -0.5\nmax_output_tokens = 0\n");
    let text = text.replace("name = \"judge\"", "name = \"judge\"\nattempts = 0")
        + "[providers.x]\nkind = \"openai-chat\"\nbase_url = \"http://h\"\n[providers.x.limits]\nmax_attempts = 0\ntimeout_s = 0\nrequests_per_minute = -1\n";
    assert_snapshot!(Project::new(&text).messages().join("\n"), @r"
    temperature is 0 or more
    max_output_tokens is at least 1
    attempts is at least 1
    a limit is at least 1
    a time-out is a number of seconds above 0, a day (86400) at most
    expected a whole number from 0 to 4294967295, found the number -1
    ");
}

#[test]
fn a_missing_profile_is_told_with_the_nearest() {
    let text = format!("{STAGES}\n[profile.nightly.pipeline]\nruns = 5\n");
    let project = Project::new(&text).asking(|request| request.profile = Some("nightl".into()));
    assert_snapshot!(project.refusal(), @r"
    × there is no profile `nightl` in pipeline.toml
    help: did you mean `nightly`?
    ");
}

#[test]
fn a_fault_in_a_profile_is_told_also_when_it_is_not_asked_for() {
    let text = format!("{STAGES}\n[profile.ci.pipeline]\nrun = 1\n");
    assert_snapshot!(Project::new(&text).refusal(), @r"
     × unknown key `run`
       ╭─[pipeline.toml:15:1]
    14 │ [profile.ci.pipeline]
    15 │ run = 1
       · ───
       ╰────
     help: did you mean `runs`?
    ");
}

#[test]
fn prices_are_checked() {
    let text = format!("{STAGES}\n[prices.\"gpt\"]\ninput = 1\n[prices.\"opnai/gpt\"]\noutput = -1.0\n");
    assert_snapshot!(Project::new(&text).messages().join("\n"), @r"
    a price is for a model, and `gpt` names none
    unknown provider `opnai` in a price
    the price of `opnai/gpt` needs `input` and `output`
    a price is 0 or more
    ");
}
