//! Sessions whose bill can be computed by hand.

use std::path::Path;

use base::units::{Tokens, Usage};
use jiff::Timestamp;

use super::*;
use crate::import::{Conversation, Format, ModelStep, RecordedCompaction, read_bytes};

/// Dollars per million tokens: input 10, read 1, written 12.5, for an hour 20, output 50.
fn price(_: &str) -> Option<ModelPrice> {
    let rates = Rates {
        input: 10.0,
        read: 1.0,
        write: 12.5,
        write_hour: 20.0,
        output: 50.0,
    };
    Some(ModelPrice {
        rates,
        long: None,
        window: Some(200_000),
    })
}

/// A request of `input` tokens, of which `read` came from the cache and the rest was written, `second` seconds after
/// the start.
fn step(second: i64, input: u64, read: u64) -> ModelStep {
    ModelStep {
        model: Some("m".into()),
        time: Timestamp::from_second(second).ok(),
        usage: Usage {
            input: Some(Tokens(input)),
            cached_input: Some(Tokens(read)),
            cache_write: Some(Tokens(input - read)),
            cache_write_hour: Some(Tokens(0)),
            output: Some(Tokens(100)),
            reasoning: None,
        },
    }
}

fn conversation(steps: Vec<ModelStep>) -> Conversation {
    Conversation {
        name_hint: "s".to_owned(),
        steps,
        ..Conversation::default()
    }
}

/// A session that grows by 10,000 tokens per request, every 10 seconds, with a cache that works as assumed.
fn growing(requests: u64) -> Conversation {
    let one = |at: u64| step(10 * at as i64, 10_000 * (at + 1), 10_000 * at);
    conversation((0..requests).map(one).collect())
}

/// The same, compacted to 20,000 tokens before every fifth request, with 5,000 of them still in the cache.
fn compacted(requests: u64) -> Conversation {
    let size = |at: u64| {
        if at < 5 {
            10_000 * (at + 1)
        } else {
            20_000 + 10_000 * (at % 5)
        }
    };
    let one = |at: u64| {
        let is_first = at > 0 && at.is_multiple_of(5);
        let read = if is_first {
            5_000
        } else {
            at.checked_sub(1).map_or(5_000, size)
        };
        step(10 * at as i64, size(at), read)
    };
    let recorded = (1..requests)
        .filter(|at| at.is_multiple_of(5))
        .map(|at| RecordedCompaction {
            message: at as usize,
            step: at as usize,
            time: Some("2026-01-02T10:00:00Z".to_owned()),
            summary: Some("x".repeat(4_000)),
            ..RecordedCompaction::default()
        });
    Conversation {
        recorded: recorded.collect(),
        ..conversation((0..requests).map(one).collect())
    }
}

fn steps_of(conversation: &Conversation) -> Result<SessionSteps, LeftOut> {
    log("a", conversation).map_err(|left_out| left_out.why)
}

fn priced(conversation: &Conversation) -> PricedSession {
    let steps = steps_of(conversation).unwrap();
    let prices = steps.prices(&price).unwrap();
    PricedSession::new(steps, prices)
}

type Log = Result<SessionSteps, LeftOutSession>;

fn log(file: &str, conversation: &Conversation) -> Log {
    let named = Conversation {
        name_hint: file.to_owned(),
        ..conversation.clone()
    };
    SessionSteps::new(file, &named, Format::ClaudeCode)
}

fn economics_of(logs: Vec<Log>) -> Economics {
    economics(logs, Vec::new(), &[], PolicySettings::default(), &price)
}

fn method(size: ContextSize, cost: RequestCost) -> CompactionMethod {
    CompactionMethod {
        name: "method".to_owned(),
        size,
        cost,
        seconds: Some(2.0),
        growth: Some(1000.0),
        largest: None,
    }
}

fn policy(trigger: Trigger, method: &CompactionMethod) -> Policy<'_> {
    Policy {
        trigger,
        method,
        tail: 0,
        instruction_last: true,
        lifetime: None,
        refetch: 0,
    }
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-9
}

#[test]
fn the_bill_is_by_kind_of_token_and_the_back_test_finds_it_again() {
    let found = economics_of(vec![log("a", &growing(4))]);
    // Written 10,000 four times, read 0 + 10,000 + 20,000 + 30,000, output 400.
    assert_eq!(
        (
            found.bill.cache_write,
            found.bill.cache_read,
            found.bill.output
        ),
        (40_000, 60_000, 400)
    );
    assert!(close(found.bill.total_usd(), 0.5 + 0.06 + 0.02));
    assert_eq!(found.back_test.sessions[0].error, 0.0);
    assert_eq!(found.withheld, Some(Withheld::NoMethod));
}

#[test]
fn a_pause_costs_a_rewrite_where_the_log_shows_how_long_a_prefix_is_kept() {
    let mut idle = growing(4);
    idle.steps[2] = step(1000, 30_000, 0);
    idle.steps[3] = step(1010, 40_000, 30_000);
    assert_eq!(
        economics_of(vec![log("a", &idle)]).back_test.sessions[0].error,
        0.0
    );
    let as_logged = simulate(
        &priced(&idle),
        &policy(Trigger::AsLogged, &CompactionMethod::none()),
    );
    assert_eq!((as_logged.expiries, as_logged.expired), (1, 30_000));
    for step in &mut idle.steps {
        step.usage.cache_write_hour = step.usage.cache_write;
    }
    assert!(
        economics_of(vec![log("a", &idle)]).back_test.sessions[0].error > 0.3,
        "kept for an hour it would have been read"
    );
}

#[test]
fn a_clock_that_was_set_back_leaves_the_time_between_requests_unknown() {
    let gaps = |seconds: [i64; 5]| -> Vec<Option<f64>> {
        let mut session = growing(5);
        for (step, second) in session.steps.iter_mut().zip(seconds) {
            step.time = Timestamp::from_second(second).ok();
        }
        steps_of(&session)
            .unwrap()
            .steps
            .iter()
            .map(|step| step.gap)
            .collect()
    };
    let ten = Some(10.0);
    assert_eq!(gaps([0, 10, 20, 30, 40]), [None, ten, ten, ten, ten]);
    assert_eq!(
        gaps([4000, 4010, 400, 4020, 4030]),
        [None, ten, None, None, ten],
        "one wrong time makes two wrong gaps"
    );
    assert_eq!(
        gaps([4000, 4010, 400, 410, 420]),
        [None, ten, None, ten, ten],
        "a clock that was set right goes on"
    );
    assert_eq!(
        gaps([10, 20, 19, 29, 39]),
        [None, ten, Some(0.0), ten, ten],
        "records written in another order"
    );

    let mut back = growing(5);
    back.steps[2].time = Timestamp::from_second(-4000).ok();
    let found = economics_of(vec![log("a", &back), log("b", &growing(4))]);
    assert_eq!(
        found.clock_faults,
        ClockFaults {
            sessions: 1,
            requests: 2
        }
    );
    assert_eq!(
        found.back_test.sessions[0].error, 0.0,
        "nothing expired in between"
    );
}

#[test]
fn a_compaction_costs_its_request_and_what_is_written_behind_the_system_prompt() {
    let mut session = growing(4);
    session.steps[0] = step(0, 10_000, 4_000);
    let session = priced(&session);
    let to_ten_thousand = method(
        ContextSize::Whole(10_000),
        RequestCost::Priced { output: 1000 },
    );
    let under = simulate(&session, &policy(Trigger::Tokens(25_000), &to_ten_thousand));
    // Before the third request the history is 30,000 tokens, 20,000 of them in the cache; it becomes 10,000, of which the
    // system prompt's 4,000 are still there. The fourth is 20,000 again.
    assert_eq!(
        (under.compactions, under.freed, under.left, under.rewritten),
        (1, 20_000, 10_000, 6_000)
    );
    let request = (20_000.0 * 1.0 + 10_000.0 * 12.5 + 1000.0 * 50.0) / 1e6;
    assert!(close(under.compaction_usd, request));
    let written: f64 = 6_000.0 + 10_000.0 + 6_000.0 + 10_000.0;
    let read: f64 = 4_000.0 + 10_000.0 + 4_000.0 + 10_000.0;
    assert!(close(
        under.usd,
        request + (written * 12.5 + read + 400.0 * 50.0) / 1e6
    ));
    assert!(close(under.compaction_seconds, 2.0));
    let first = Policy {
        instruction_last: false,
        ..policy(Trigger::Tokens(25_000), &to_ten_thousand)
    };
    assert!(close(
        simulate(&session, &first).compaction_usd,
        (30_000.0 * 10.0 + 1000.0 * 50.0) / 1e6
    ));
    let again = Policy {
        refetch: 3_000,
        ..policy(Trigger::Tokens(25_000), &to_ten_thousand)
    };
    let more = simulate(&session, &again).usd - under.usd;
    assert!(
        close(more, 3_000.0 * 12.5 / 1e6),
        "what is read again is written with the next request"
    );
    let share = simulate(&session, &policy(Trigger::Share(0.125), &to_ten_thousand));
    assert_eq!(share, under, "an eighth of 200,000");
}

#[test]
fn a_compaction_that_frees_next_to_nothing_is_not_made() {
    let session = priced(&growing(4));
    let useless = method(
        ContextSize::Line {
            start: 0.0,
            slope: 0.95,
        },
        RequestCost::Free,
    );
    assert_eq!(
        simulate(&session, &policy(Trigger::Tokens(15_000), &useless)).compactions,
        0
    );
    let free = method(
        ContextSize::Line {
            start: 1000.0,
            slope: 0.1,
        },
        RequestCost::Free,
    );
    let under = simulate(&session, &policy(Trigger::Tokens(35_000), &free));
    assert_eq!(
        (under.compactions, under.left, under.compaction_usd),
        (1, 5_000, 0.0)
    );
    let measured = method(ContextSize::Whole(5_000), RequestCost::Measured(1e-6));
    let paid = simulate(&session, &policy(Trigger::Tokens(35_000), &measured));
    assert!(close(paid.compaction_usd, 0.04));
}

#[test]
fn recorded_compactions_are_ranked_and_give_a_method() {
    let found = economics_of(vec![log("a", &compacted(12))]);
    assert_eq!(
        found
            .rewrites
            .iter()
            .map(|one| one.tokens)
            .collect::<Vec<u64>>(),
        [15_000, 15_000]
    );
    assert!(close(found.rewrites[0].usd.unwrap(), 15_000.0 * 12.5 / 1e6));
    assert_eq!(
        (found.back_test.sessions[0].error, &found.withheld),
        (0.0, &None)
    );
    let method = &found.methods[0];
    assert_eq!(method.method, "as recorded");
    assert!(method.difference.is_none(), "one log has no interval");
    let recorded = CompactionMethod::recorded(&[priced(&compacted(12))]).unwrap();
    assert_eq!(
        (recorded.size, recorded.growth),
        (ContextSize::Whole(20_000), Some(0.0)),
        "both floors are the same"
    );
    assert_eq!(recorded.cost, RequestCost::Priced { output: 1000 });
    let first = method.curve.points.first().unwrap();
    assert!(first.cost.compactions > method.curve.points.last().unwrap().cost.compactions);
}

#[test]
fn a_cache_that_does_not_work_as_assumed_is_not_simulated() {
    let mut odd = compacted(12);
    for step in odd.steps.iter_mut().skip(1) {
        step.usage.cache_write = step.usage.input;
        step.usage.cached_input = Some(Tokens(0));
    }
    let alone = economics_of(vec![log("odd", &odd)]);
    assert!(alone.back_test.formats[0].median_error > 0.5 && !alone.back_test.formats[0].holds);
    assert!(alone.methods.is_empty() && alone.withheld == Some(Withheld::BackTest));
    assert_eq!(
        alone.rewrites.len(),
        2,
        "what is logged is shown all the same"
    );
}

#[test]
fn a_difference_needs_eight_logs() {
    let logs = |count: u64| -> Vec<Log> {
        let one = |at: u64| log(&format!("log {at}"), &compacted(12 + at));
        (0..count).map(one).collect()
    };
    assert!(economics_of(logs(7)).methods[0].difference.is_none());
    let difference = economics_of(logs(8)).methods[0].difference.unwrap();
    assert_eq!(difference.clusters, 8);
    assert!(difference.ci95.is_some());
}

#[test]
fn a_session_with_unknown_numbers_is_left_out_with_a_reason() {
    let with = |change: fn(&mut ModelStep)| {
        let mut session = growing(4);
        session.steps.iter_mut().for_each(change);
        steps_of(&session).err()
    };
    assert_eq!(
        steps_of(&conversation(Vec::new())).err(),
        Some(LeftOut::NoCounters)
    );
    assert_eq!(steps_of(&growing(1)).err(), Some(LeftOut::TooShort));
    assert_eq!(with(|step| step.time = None), Some(LeftOut::NoTimes));
    assert_eq!(
        with(|step| step.usage.cached_input = None),
        Some(LeftOut::NoCacheCounters)
    );
    assert_eq!(
        with(|step| step.usage.output = None),
        Some(LeftOut::NoCacheCounters)
    );
    assert_eq!(with(|step| step.model = None), Some(LeftOut::NoModel));
    let left = economics(
        vec![log("a", &compacted(12))],
        Vec::new(),
        &[],
        PolicySettings::default(),
        &|_| None,
    );
    assert_eq!(left.left_out[0].why, LeftOut::NoPrice("m".to_owned()));
    assert_eq!(
        (left.rewrites[0].tokens, left.rewrites[0].usd),
        (15_000, None),
        "tokens need no price"
    );
    assert_eq!(left.withheld, Some(Withheld::NoSession));
}

#[test]
fn a_log_that_continues_another_counts_only_its_own_requests() {
    let (first, longer) = (compacted(7), compacted(12));
    let logs = without_copies(vec![log("b", &longer), log("a", &first), log("c", &first)]);
    let requests = |log: &Log| log.as_ref().unwrap().steps.len();
    assert_eq!(
        logs.iter().map(requests).collect::<Vec<usize>>(),
        [7, 5],
        "the copy is gone"
    );
    let continued = logs[1].as_ref().unwrap();
    assert!(continued.begins_midway && continued.steps[0].gap.is_none());
    assert_eq!(
        continued
            .compactions
            .iter()
            .map(|one| one.step)
            .collect::<Vec<usize>>(),
        [3]
    );
}

#[test]
fn sizes_and_costs_of_a_result_set_become_a_method() {
    let context = |point: u32, replaced: u64, tokens: u64, calls: u32| MeasuredContext {
        method: "summary".to_owned(),
        chain: "f".to_owned(),
        point,
        replaced,
        tokens,
        seconds: Some(3.0),
        usd: Some(replaced as f64 * 2e-6),
        calls,
    };
    let rows = [
        context(1, 10_000, 2_000, 1),
        context(2, 20_000, 3_000, 1),
        context(3, 30_000, 4_000, 1),
    ];
    let methods = measured_methods(&rows);
    assert_eq!(
        methods[0].size,
        ContextSize::Line {
            start: 1000.0,
            slope: 0.1
        }
    );
    assert_eq!(
        (methods[0].growth, methods[0].largest),
        (Some(1000.0), Some(30_000))
    );
    assert!(matches!(methods[0].cost, RequestCost::Measured(usd) if close(usd, 2e-6)));
    assert_eq!(
        methods[0].after(50_000, 5_000, 5_000),
        15_000,
        "4,000 × .1 + 1,000, and what stays"
    );
    assert!(
        measured_methods(&[context(1, 10_000, 0, 0)]).is_empty(),
        "nothing is kept"
    );
    assert!(
        measured_methods(&[context(1, 10_000, 10_000, 0)]).is_empty(),
        "all is kept"
    );
    let rule = measured_methods(&[context(1, 10_000, 2_000, 0)]);
    assert_eq!((rule[0].cost, rule[0].growth), (RequestCost::Free, None));
    assert_eq!(
        rule[0].size,
        ContextSize::Line {
            start: 0.0,
            slope: 0.2
        }
    );
    let cycles = LifeCycle::new(100_000.0, 20_000.0, Some(1500.0)).cycles;
    assert_eq!(
        (cycles, LifeCycle::new(100.0, 20.0, Some(-1.0)).cycles),
        (Some(54), None)
    );
}

/// The token counts of the steps of a log.
fn counted(name: &str, text: &str) -> Vec<[Option<u64>; 5]> {
    let log = read_bytes(Path::new(name), text.as_bytes().to_vec(), None).unwrap();
    let kinds = |step: &ModelStep| {
        let usage = step.usage;
        let kinds = [
            usage.input,
            usage.cached_input,
            usage.cache_write,
            usage.cache_write_hour,
            usage.output,
        ];
        kinds.map(|tokens| tokens.map(|tokens| tokens.0))
    };
    log.conversations
        .iter()
        .flat_map(|one| &one.steps)
        .map(kinds)
        .collect()
}

#[test]
fn every_format_keeps_the_kinds_of_tokens_apart() {
    let claude = |id: &str, usage: &str| {
        format!(
            r#"{{"type":"assistant","uuid":"{id}","sessionId":"s","parentUuid":null,"timestamp":"2026-01-02T10:00:00Z","message":{{"role":"assistant","id":"m","model":"claude-x","content":"hi","usage":{usage}}}}}"#
        )
    };
    let one = r#"{"input_tokens":3,"cache_creation_input_tokens":20,"cache_read_input_tokens":100,"output_tokens":1,"cache_creation":{"ephemeral_1h_input_tokens":20}}"#;
    let last = one.replace("\"output_tokens\":1", "\"output_tokens\":9");
    let text = format!("{}\n{}\n", claude("a", one), claude("b", &last));
    assert_eq!(
        counted("a.jsonl", &text),
        [[Some(123), Some(100), Some(20), Some(20), Some(9)]],
        "once a message"
    );
    let part = |read: u64| {
        format!(
            r#"{{"type":"message","input_tokens":1,"cache_creation_input_tokens":2,"cache_read_input_tokens":{read},"output_tokens":4}}"#
        )
    };
    let advisor =
        r#"{"type":"advisor_message","input_tokens":900,"output_tokens":5,"model":"other"}"#;
    let several = format!(
        r#"{{"input_tokens":2,"cache_creation_input_tokens":4,"cache_read_input_tokens":210,"output_tokens":8,"iterations":[{},{advisor},{}]}}"#,
        part(100),
        part(110)
    );
    let counts = counted("a.jsonl", &format!("{}\n", claude("a", &several)));
    assert_eq!(
        counts,
        [
            [Some(103), Some(100), Some(2), None, Some(4)],
            [Some(113), Some(110), Some(2), None, Some(4)]
        ]
    );

    let event = |total: u64| {
        format!(
            r#"{{"timestamp":"2026-01-02T10:00:00Z","type":"event_msg","payload":{{"type":"token_count","info":{{"total_token_usage":{{"total_tokens":{total}}},"last_token_usage":{{"input_tokens":120,"cached_input_tokens":100,"output_tokens":9}}}}}}}}"#
        )
    };
    let codex = format!(
        "{}\n{}\n{}\n{}\n",
        r#"{"timestamp":"2026-01-02T10:00:00Z","type":"session_meta","payload":{"id":"s"}}"#,
        r#"{"timestamp":"2026-01-02T10:00:00Z","type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"hi"}]}}"#,
        event(129),
        event(129)
    );
    assert_eq!(
        counted("a.jsonl", &codex),
        [[Some(120), Some(100), None, None, Some(9)]],
        "reported twice, made once"
    );

    let pi = concat!(
        r#"{"type":"session","id":"s","timestamp":"2026-01-02T10:00:00Z","cwd":"/p"}"#,
        "\n",
        r#"{"type":"message","id":"a","timestamp":"2026-01-02T10:00:00Z","message":{"role":"assistant","model":"m","content":[{"type":"text","text":"hi"}],"usage":{"input":3,"output":9,"cacheRead":100,"cacheWrite":20}}}"#,
        "\n",
        r#"{"type":"message","id":"b","timestamp":"2026-01-02T10:00:00Z","message":{"role":"assistant","model":"m","content":[{"type":"text","text":"no"}],"usage":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0}}}"#,
        "\n",
    );
    assert_eq!(
        counted("a.jsonl", pi),
        [[Some(123), Some(100), Some(20), None, Some(9)]],
        "an aborted request has none"
    );

    let gemini = r#"{"sessionId":"s","projectHash":"p","messages":[{"id":"a","type":"gemini","content":"hi","timestamp":"2026-01-02T10:00:00Z","model":"g","tokens":{"input":120,"output":5,"cached":100,"thoughts":4}}]}"#;
    assert_eq!(
        counted("a.json", gemini),
        [[Some(120), Some(100), None, None, Some(9)]]
    );

    let atif = r#"{"schema_version":"ATIF-v1.4","session_id":"s","agent":{"name":"a","version":"1","model_name":"m"},"steps":[{"step_id":1,"timestamp":"2026-01-02T10:00:00Z","source":"agent","message":"hi","metrics":{"prompt_tokens":123,"completion_tokens":9,"cached_tokens":100}}]}"#;
    assert_eq!(
        counted("a.json", atif),
        [[Some(123), Some(100), None, None, Some(9)]]
    );

    let opencode = r#"{"info":{"id":"s"},"messages":[{"info":{"role":"assistant","modelID":"m","time":{"completed":1700000000000},"tokens":{"input":3,"output":5,"reasoning":4,"cache":{"read":100,"write":20}}},"parts":[{"type":"text","text":"hi"}]}]}"#;
    assert_eq!(
        counted("a.json", opencode),
        [[Some(123), Some(100), Some(20), None, Some(9)]]
    );
}
