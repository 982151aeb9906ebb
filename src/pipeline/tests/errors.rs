//! Faults in `pipeline.toml`.

use insta::assert_snapshot;

use super::{Project, STAGES};

#[test]
fn an_unknown_key_is_shown_with_the_nearest() {
    assert_snapshot!(Project::with_settings("fixturs = \"fixtures\"\nprobes = \"probes\"").refusal(), @"");
}

#[test]
fn a_wrong_type_is_shown_at_the_value() {
    assert_snapshot!(Project::with_settings("judge_context = \"yes\"").refusal(), @"");
}

#[test]
fn a_key_without_its_table_is_told_where_it_belongs() {
    assert_snapshot!(Project::new(&format!("runs = 3\n{STAGES}")).refusal(), @"");
}

#[test]
fn broken_toml_is_shown_where_it_breaks() {
    assert_snapshot!(Project::new("[pipeline\nruns = 3").refusal(), @"");
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
    assert_snapshot!(Project::new(text).messages().join("\n"), @"");
}

#[test]
fn an_unknown_strategy_is_shown_with_the_nearest() {
    let text = STAGES.replace("strategy = \"full\"", "strategy = \"anchored\"");
    assert_snapshot!(Project::new(&text).refusal(), @"");
}

#[test]
fn a_key_the_strategy_does_not_take_is_shown_with_those_it_takes() {
    let text = STAGES
        .replace("strategy = \"full\"", "strategy = \"command\"\ncommand = [\"true\"]\ninputs = []\nprompt = \"p.md\"");
    assert_snapshot!(Project::new(&text).refusal(), @"");
}

#[test]
fn truncate_needs_a_size() {
    let text = STAGES.replace("strategy = \"full\"", "strategy = \"truncate\"");
    assert_snapshot!(Project::new(&text).refusal(), @"");
}

#[test]
fn two_methods_of_one_name_are_both_shown() {
    let text = format!("{STAGES}\n[[compress]]\nname = \"full\"\nstrategy = \"none\"\n");
    assert_snapshot!(Project::new(&text).refusal(), @"");
}

#[test]
fn numbers_out_of_range_are_told() {
    let text = STAGES.replace("name = \"agent\"", "name = \"agent\"\ntemperature = -0.5\nmax_output_tokens = 0\n");
    let text = text.replace("name = \"judge\"", "name = \"judge\"\nattempts = 0")
        + "[providers.x]\nkind = \"openai-chat\"\nbase_url = \"http://h\"\n[providers.x.limits]\nmax_attempts = 0\ntimeout_s = 0\nrequests_per_minute = -1\n";
    assert_snapshot!(Project::new(&text).messages().join("\n"), @"");
}

#[test]
fn a_missing_profile_is_told_with_the_nearest() {
    let text = format!("{STAGES}\n[profile.nightly.pipeline]\nruns = 5\n");
    let project = Project::new(&text).asking(|request| request.profile = Some("nightl".into()));
    assert_snapshot!(project.refusal(), @"");
}

#[test]
fn a_fault_in_a_profile_is_told_also_when_it_is_not_asked_for() {
    let text = format!("{STAGES}\n[profile.ci.pipeline]\nrun = 1\n");
    assert_snapshot!(Project::new(&text).refusal(), @"");
}

#[test]
fn prices_are_checked() {
    let text = format!("{STAGES}\n[prices.\"gpt\"]\ninput = 1\n[prices.\"opnai/gpt\"]\noutput = -1.0\n");
    assert_snapshot!(Project::new(&text).messages().join("\n"), @"");
}
