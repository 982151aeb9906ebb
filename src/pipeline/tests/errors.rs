//! Faults in `pipeline.toml`.

use insta::assert_snapshot;

use super::{Project, STAGES, listed};

#[test]
fn an_unknown_key_is_shown_with_the_nearest() {
    assert_snapshot!(Project::with_settings("fixturs = \"fixtures\"\nprobes = \"probes\"").refusal(), @r#"
    error: unknown key `fixturs`
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
    error: expected true or false, found a string
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
fn two_methods_of_one_name_are_both_shown() {
    let text = format!("{STAGES}\n[[compress]]\nname = \"full\"\nstrategy = \"none\"\n");
    assert_snapshot!(Project::new(&text).refusal(), @r#"
    error: two compress tables are named `full`
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
fn a_fault_in_a_profile_is_reported_also_when_it_is_not_asked_for() {
    let text = format!("{STAGES}\n[profile.ci.pipeline]\nrun = 1\n");
    assert_snapshot!(Project::new(&text).refusal(), @r"
    error: unknown key `run`
        ╭─[pipeline.toml:15:1]
     14 │ [profile.ci.pipeline]
     15 │ run = 1
        · ───
        ╰────
    help: did you mean `runs`?
    ");
}

#[test]
fn mistakes_are_placed_with_what_was_expected() {
    let strategy =
        |text: &str| Project::with_stages("strategy = \"full\"", &format!("strategy = {text}"));
    let projects = [
        Project::new(&format!("runs = 3\n{STAGES}")),
        Project::new("[pipeline\nruns = 3"),
        Project::with_settings("runs = 4294967295"),
        Project::with_settings("runs = { judge = 1001 }"),
        Project::with_settings("runs = { compress = 1000, answer = 1000, judge = 1000 }"),
        strategy("\"anchored\""),
        strategy("\"command\"\ncommand = [\"true\"]\ninputs = []\nprompt = \"p.md\""),
        strategy("\"truncate\""),
        Project::new(&format!("{STAGES}\n[profile.nightly.pipeline]\nruns = 5\n"))
            .asking(|request| request.profile = Some("nightl".into())),
    ];
    assert_snapshot!(listed(projects), @r"
    pipeline.toml:1:1: unknown key `runs` -> `runs` belongs under [pipeline]
    pipeline.toml:1:10: this is not TOML: unclosed table, expected `]` -> a line is key = value, [table] or [[table]]; texts are in quotes
    pipeline.toml:2:8: expected a number from 1 to 1000 for `runs`, found 4294967295
    pipeline.toml:2:18: expected a number from 1 to 1000 for `judge`, found 1001
    pipeline.toml:2:8: a cell has 1000000000 repetitions, and at most 10000 are allowed -> `compress`, `answer` and `judge` of `runs` multiply
    pipeline.toml:4:12: unknown strategy `anchored` -> did you mean `anchored-iterative`?
    pipeline.toml:7:1: the strategy `command` does not take `prompt` -> it takes `name`, `strategy`, `answerers`, `command`, `inputs`, `env`, `secrets`, `identity`, `deterministic`, `timeout_s`, `model`, `protocol`, `workers`, `start_timeout_s`, `target_tokens`
    pipeline.toml:4:12: the strategy `truncate` needs `target_tokens` -> add target_tokens = 2000, or how many of the newest tokens to keep
    there is no profile `nightl` in pipeline.toml -> did you mean `nightly`?
    ");
}

#[test]
fn numbers_that_are_not_finite_are_refused_at_their_place() {
    for number in ["inf", "-inf", "nan"] {
        let agent = Project::with_stages(
            "name = \"agent\"",
            &format!("name = \"agent\"\ntemperature = {number}"),
        );
        assert_eq!(
            agent.listed(),
            format!("pipeline.toml:8:15: expected a finite number, found the number {number}")
        );
        for table in [
            "providers.x.limits]\ntimeout_s",
            "prices.\"openai/gpt\"]\noutput",
        ] {
            let listed = Project::new(&format!("{STAGES}\n[{table} = {number}\n")).listed();
            assert!(
                listed.contains(&format!(
                    "expected a finite number, found the number {number}"
                )),
                "{listed}"
            );
        }
    }
}

#[test]
fn all_problems_come_at_once() {
    let stages = r#"
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
    let numbers = STAGES
        .replace(
            "name = \"agent\"",
            "name = \"agent\"\ntemperature = -0.5\nmax_output_tokens = 0\n",
        )
        .replace("name = \"judge\"", "name = \"judge\"\nattempts = 0")
        + r#"[providers.x]
kind = "openai-chat"
base_url = "http://h"
[providers.x.limits]
max_attempts = 0
timeout_s = 0
requests_per_minute = -1
"#;
    let prices =
        format!("{STAGES}\n[prices.\"gpt\"]\ninput = 1\n[prices.\"opnai/gpt\"]\noutput = -1.0\n");
    assert_snapshot!(listed([Project::new(stages), Project::new(&numbers), Project::new(&prices)]), @r#"
    pipeline.toml:3:10: unknown locale `de` -> known: `en`, `zh`
    pipeline.toml:4:21: expected a number from 1 to 1000 for `compress`, found 0
    pipeline.toml:4:24: unknown key `answers` -> did you mean `answer`?
    pipeline.toml:7:8: the name `a/b` holds '/' -> letters, digits, `-`, `_`, `.`, `+` and single blanks, 64 characters at most, beginning with a letter or digit: names become file names, JSON keys and words on the command line
    pipeline.toml:8:12: unknown strategy `sumarize` -> known: `anchored-iterative`, `regenerative`, `opaque`, `provider-compaction`, `command`, `truncate`, `mask`, `extract`, `recorded`, `full`, `none`
    pipeline.toml:12:12: the strategy `truncate` needs `target_tokens` -> add target_tokens = 2000, or how many of the newest tokens to keep
    pipeline.toml:13:1: the strategy `truncate` does not take `prompt` -> it takes `name`, `strategy`, `answerers`, `target_tokens`
    pipeline.toml:17:9: the model `gpt-5.2` has no provider -> write PROVIDER/MODEL; providers: `anthropic`, `lexical`, `ollama`, `openai`, `openai-responses`, `openrouter`
    pipeline.toml declares no [[judge]] table -> a pipeline has at least one [[compress]], and at least one [[answer]] and one [[judge]] or neither of the two
    pipeline.toml:8:15: expected a number of at least 0 for `temperature`, found -0.5
    pipeline.toml:9:21: expected a number of tokens, at least 1, found the number 0
    pipeline.toml:15:12: expected a number of at least 1 for `attempts`, found 0
    pipeline.toml:21:16: expected a number of at least 1 for `max_attempts`, found 0
    pipeline.toml:22:13: expected a number of seconds above 0, a day (86400) at most, found the number 0
    pipeline.toml:23:23: expected a whole number from 0 to 4294967295, found the number -1
    pipeline.toml:14:9: a price is for a model, and `gpt` names none -> write [prices."PROVIDER/MODEL"]
    pipeline.toml:16:9: unknown provider `opnai` in a price -> did you mean `openai`?
    pipeline.toml:16:9: the price of `opnai/gpt` needs `input` and `output` -> both in US dollars per million tokens; write 0 where a model is free
    pipeline.toml:17:10: expected a number of at least 0 for `output`, found -1
    "#);
}
