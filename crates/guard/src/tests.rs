use super::*;
use base::message::{Role, ToolCall};

fn user(text: &str) -> Message {
    Message::text(Role::User, text)
}

fn assistant(text: &str) -> Message {
    Message::text(Role::Assistant, text)
}

/// A session of some thousand tokens.
fn before() -> Vec<Message> {
    let mut messages = vec![Message::text(Role::System, "You are a coding agent.")];
    messages.push(user(
        "Please move the cache into src/cache/store.rs. Do not touch legacy_config.toml, ever.",
    ));
    for step in 0..40 {
        let mut call = assistant(&format!(
            "Step {step}: I look at how the pool drains in src/pool.rs and why it waits."
        ));
        call.tool_calls.push(ToolCall::new(
            format!("c{step}"),
            "read",
            format!("{{\"path\":\"src/mod_{step}.rs\"}}"),
        ));
        messages.push(call);
        messages.push(Message::result(
            format!("c{step}"),
            format!("fn retry_count_{step}() {{}}\nerror E{step}\n").repeat(12),
        ));
    }
    messages.push(user(
        "Now make the retry limit in src/pool.rs configurable by RETRY_LIMIT.",
    ));
    messages
}

const SOUND: &str = "1. Primary Request:\n   The user asked to move the cache into `src/cache/store.rs` without touching legacy_config.toml, and now wants \
    the retry limit in src/pool.rs configurable by RETRY_LIMIT.\n\n2. Done:\n   - The pool was read: it drains (see `src/pool.rs`).\n\n\
    3. Next Step:\n   Add RETRY_LIMIT to the pool and run the tests";

fn report(after: &str) -> Report {
    guard(&before(), &[user(after)], &Options::default()).unwrap()
}

fn kinds(report: &Report) -> Vec<(&'static str, Verdict)> {
    report
        .findings
        .iter()
        .map(|finding| (finding.kind, finding.severity))
        .collect()
}

#[test]
fn sound_summaries_pass_however_they_are_written() {
    for sound in [
        SOUND.to_owned(),
        format!("This session is being continued from a previous conversation that ran out of context.\n{SOUND}\n\nIf you need specific details from before compaction, read the full transcript at: /x"),
        format!("<summary>\n{SOUND}\n</summary>"),
        format!("[CONTEXT SUMMARY]: {}", SOUND.replace('\n', " ")),
        format!("[CONTEXT SUMMARY]: {SOUND}"),
        format!("Here is a summary of the conversation to date: {}", SOUND.replace('\n', " ")),
        "{\"goal\": \"RETRY_LIMIT in src/pool.rs\", \"rules\": [\"legacy_config.toml stays\"]}".to_owned(),
        format!("{SOUND}\n\n```rust\nfn retry_limit() {{\n```"),
        format!("{SOUND}\n\n| file | state |\n| --- | --- |\n| src/pool.rs | open |"),
        "Note to yourself: you were making RETRY_LIMIT configurable in src/pool.rs; legacy_config.toml must stay as it is.".to_owned(),
        format!("{SOUND}\n- src/pool.rs\n- src/cache/store.rs"),
        format!("{SOUND}\n(as in `state\n= 1`). The pool is next."),
        format!("{SOUND}\n- the pool drains;\n- the cache waits;"),
        format!("{SOUND}\nThe prompt says `<think>` and \"as an AI\" in its tests."),
        format!("{SOUND}\n<analysis>\nread it all\n</analysis>"),
        format!("{SOUND}\n- Only src/pool.rs differs from what we started with"),
        format!("{SOUND}\n- regex in src/pool.rs: `^\\d{{4}}-(`"),
        format!("<state_snapshot>\n<overall_goal>\n{SOUND}\n</overall_goal>\n<recent_actions>\nread\n</recent_actions>\n</state_snapshot>"),
        format!("{SOUND}\n- The pool drains.\n- The store is moved.\n- The cache waits.\n- See `src/pool.rs`"),
        format!("{SOUND}\n- The pool drains.\n- The store is moved.\n- The cache waits.\n- Its tests pass again"),
        format!("{SOUND}\nHe said \"the pool drains.\""),
        format!("1. **First**: read\n1. Primary Request and Intent:\n{SOUND}\n8. Current Work:\nThe pool"),
    ] {
        let report = report(&sound);
        assert_eq!(report.verdict, Verdict::Pass, "{sound}\n{:?}", report.findings);
    }
    let chinese = [
        user("请把缓存移到 src/cache/store.rs，不要改动 legacy_config.toml。"),
        assistant(&"我先看一下连接池为什么会等待。".repeat(60)),
        user("现在让 src/pool.rs 的重试上限可以用 RETRY_LIMIT 配置。"),
    ];
    let after = [user(
        "用户要求把缓存移到 src/cache/store.rs，legacy_config.toml 不得改动；现在要让 src/pool.rs 的重试上限可以用 RETRY_LIMIT 配置。连接池的等待已经查明，下一步是增加配置并运行测试",
    )];
    let report = guard(&chinese, &after, &Options::default()).unwrap();
    assert_eq!(report.verdict, Verdict::Pass, "{:?}", report.findings);
}

#[test]
fn damaged_summaries_are_rejected_by_the_rule_for_the_damage() {
    for (kind, after) in [
        ("empty", "".to_owned()),
        ("empty", " \n--\n".to_owned()),
        ("empty", "I'm sorry, but I can't help with that.".to_owned()),
        ("empty", "I cannot summarize this conversation.".to_owned()),
        ("empty", "[CONTEXT SUMMARY]: I cannot summarize this conversation.".to_owned()),
        ("empty", "[CONTEXT COMPACTION — REFERENCE ONLY] Earlier turns, for reference:\n## Historical Task Snapshot\nUser asked (deterministic, from compacted turns): 'RETRY_LIMIT in src/pool.rs'\n\nI'm sorry, but I can't help with that.".to_owned()),
        ("empty", "N/A".to_owned()),
        ("empty", "Error: context deadline exceeded".to_owned()),
        ("empty", "抱歉，我无法总结这段对话。".to_owned()),
        ("cut_off", format!("{SOUND}\n\n```rust\nfn retry_limit() {{")),
        ("cut_off", format!("<summary>\n{SOUND}")),
        ("cut_off", format!("{SOUND} and the")),
        ("cut_off", format!("{SOUND},")),
        ("cut_off", format!("{SOUND}\n4. ")),
        ("cut_off", format!("{SOUND}\n## Open Questions")),
        ("cut_off", format!("{SOUND}\n| src/pool.rs | op")),
        ("cut_off", format!("{SOUND} in `src/po")),
        ("cut_off", format!("{SOUND} (as in **step")),
        ("cut_off", format!("{SOUND} and the conf")),
        ("cut_off", format!("{SOUND}\n- src/pool.rs has \"retry")),
        ("cut_off", format!("{SOUND}\n- the pool —")),
        ("cut_off", format!("{SOUND}\n- the pool drains e")),
        ("cut_off", format!("{SOUND}\n- the pool waits for a")),
        ("cut_off", format!("{SOUND}\n- the pool drains and waits;")),
        ("cut_off", format!("{{\n  \"goal\": \"{}\",\n  \"rules\": [\n    \"never touch it\"", SOUND.replace('\n', " "))),
        ("cut_off", format!("1. **First**: read\n1. Primary Request and Intent:\n{SOUND}")),
        ("cut_off", format!("## Constraints & Preferences\n{SOUND}")),
        ("protocol_text", format!("<think>Perhaps</think>\n{SOUND}")),
        ("protocol_text", format!("{SOUND}\n<tool_call>\n{{}}\n</tool_call>")),
        ("protocol_text", format!("As an AI, I keep it short. {SOUND}")),
        ("protocol_text", format!("<|im_start|>assistant\n{SOUND}")),
        ("language", "Пользователь попросил перенести кэш и сделать предел повторов настраиваемым через RETRY_LIMIT в src/pool.rs, не трогая legacy_config.toml. Дальше нужно добавить настройку и запустить тесты".to_owned()),
        ("language", "用户要求把缓存移到新的位置，并让重试上限 RETRY_LIMIT 可以配置，legacy_config.toml 不得改动。连接池的等待已经查明，下一步是增加配置并运行全部测试".to_owned()),
        ("newest_request", "The user wants the cache in src/cache/store.rs, and legacy_config.toml stays as it is. The next step is the test of the store".to_owned()),
        ("invented_order", SOUND.replace("The user asked", "The user wants deploy_to_prod.sh run on staging-7.example.com. The user asked")),
    ] {
        let report = report(&after);
        assert_eq!(report.verdict, Verdict::Reject, "{kind}: {after}\n{:?}", report.findings);
        assert!(report.findings.iter().any(|found| found.kind == kind && found.severity == Verdict::Reject), "{kind}: {after}\n{:?}", report.findings);
    }
    let long = report(
        &before()
            .iter()
            .map(|message| message.content.replace("Step", "step"))
            .collect::<Vec<_>>()
            .join("\n"),
    );
    assert!(
        kinds(&long).contains(&("no_smaller", Verdict::Reject)),
        "{long:?}"
    );
}

#[test]
fn what_is_only_suspicious_is_a_warning() {
    let todo = |status: &str| {
        let mut call = assistant("");
        call.tool_calls.push(ToolCall::new(
            "t",
            "TodoWrite",
            format!(
                "{{\"todos\":[{{\"content\":\"Write the store tests\",\"status\":\"{status}\"}}]}}"
            ),
        ));
        call
    };
    let mut done = before();
    done.splice(2..2, [todo("completed"), Message::result("t", "ok")]);
    let mut with_chinese = before();
    with_chinese.insert(1, assistant(&"我先看一下连接池为什么会等待。".repeat(10)));
    for (kind, before, after) in [
        (
            "newest_request",
            before(),
            "The cache moves; legacy_config.toml stays. Next: the limit of retries of the pool becomes configurable".to_owned(),
        ),
        (
            "newest_request",
            with_chinese,
            "用户要求移动缓存，legacy_config.toml 不得改动；现在要让连接池的重试上限可以配置，下一步是增加配置并运行测试".to_owned(),
        ),
        ("cut_off", before(), format!("{SOUND}\n- the third axis is y")),
        ("cut_off", before(), format!("{SOUND}\n- started: pnpm dev &")),
        ("cut_off", before(), format!("{SOUND}\n- see crates/new-york/")),
        (
            "rule_lost",
            before(),
            SOUND.replace("legacy_config.toml", "the old files"),
        ),
        (
            "prompt_as_request",
            before(),
            SOUND.replace(
                "2. Done",
                "The user asked me to create a detailed summary of the conversation.\n\n2. Done",
            ),
        ),
        (
            "done_reopened",
            done,
            SOUND.replace("   Add RETRY", "   Write the store tests, and add RETRY"),
        ),
        (
            "invented_references",
            before(),
            format!(
                "{SOUND} with src/a_new.rs, lib/other_name.py, core/third_one.go and CONFIG_PATH_TWO"
            ),
        ),
        (
            "secret",
            before(),
            format!(
                "{SOUND} with the key sk-proj-{}",
                "a1B2c3D4e5F6g7H8i9J0".repeat(2)
            ),
        ),
    ] {
        let report = guard(&before, &[user(&after)], &Options::default()).unwrap();
        assert!(
            kinds(&report).contains(&(kind, Verdict::Warn)),
            "{kind}: {:?}",
            report.findings
        );
        assert_ne!(
            report.verdict,
            Verdict::Reject,
            "{kind}: {:?}",
            report.findings
        );
    }
}

#[test]
fn messages_that_a_provider_would_refuse_are_rejected() {
    let before = before();
    let kept = before.last().unwrap().clone();
    let broken = |after: &[Message]| guard(&before, after, &Options::default()).unwrap();
    let orphan = broken(&[user(SOUND), before[3].clone(), kept.clone()]);
    assert!(
        kinds(&orphan).contains(&("broken_messages", Verdict::Reject)),
        "{orphan:?}"
    );
    let without_result = broken(&[user(SOUND), before[2].clone(), kept.clone()]);
    assert!(
        kinds(&without_result).contains(&("broken_messages", Verdict::Reject)),
        "{without_result:?}"
    );
    let sound = broken(&[
        before[0].clone(),
        user(SOUND),
        before[2].clone(),
        before[3].clone(),
        kept,
    ]);
    assert_eq!(sound.verdict, Verdict::Pass, "{sound:?}");
}

#[test]
fn an_opaque_summary_is_unchecked_and_what_was_cut_off_by_its_limit_is_rejected() {
    let before = before();
    let kept = [before.last().unwrap().clone()];
    let opaque = Options {
        is_opaque: true,
        ..Options::default()
    };
    let report = guard(&before, &kept, &opaque).unwrap();
    assert_eq!(
        (report.verdict, report.findings.len()),
        (Verdict::Unchecked, 0)
    );
    assert!(
        report.not_applicable.contains(&"empty") && report.not_applicable.contains(&"no_smaller")
    );
    let stopped = Options {
        stop_reason: Some("length".to_owned()),
        ..Options::default()
    };
    assert_eq!(
        guard(&before, &[user(SOUND)], &stopped).unwrap().verdict,
        Verdict::Reject
    );
    let off = Options {
        without: vec!["cut_off".to_owned()],
        ..stopped
    };
    assert_eq!(
        guard(&before, &[user(SOUND)], &off).unwrap().verdict,
        Verdict::Pass
    );
}

#[test]
fn what_are_no_two_histories_is_an_error_that_says_what_was_expected() {
    let system = [Message::text(Role::System, "You are an agent.")];
    for (before, after) in [
        (vec![], vec![user(SOUND)]),
        (before(), vec![]),
        (system.to_vec(), vec![user(SOUND)]),
        (vec![user("a")], before()),
    ] {
        let error = guard(&before, &after, &Options::default()).unwrap_err();
        assert!(error.contains("expected"), "{error}");
    }
    let unknown = Options {
        without: vec!["x".to_owned()],
        ..Options::default()
    };
    assert!(
        guard(&before(), &[user(SOUND)], &unknown)
            .unwrap_err()
            .contains("no rule is called `x`")
    );
}

#[test]
fn sound_summaries_that_look_odd_are_not_rejected() {
    for end in [
        "- https://example.com/docs/new-york/",
        "- the choice fell on option A",
        "- the suite is test_suite_a",
        "- Die Prüfung steht noch an",
        "- Er nennt es „Vorrat“",
        "- 还要参与",
        "- the interval is [0, 1)",
        "- the screen has 27\"",
        "### Next step: rerun the tests and check the pool",
        "```html\n<template>\n```\n- done",
        "| file | state\n|---|---\n| src/pool.rs | done",
        "Discoveries: the pool waits for its own lock",
        "- the bot is described as an AI assistant, and how <think> blocks are stripped is open",
    ] {
        let report = report(&format!("{SOUND}\n{end}"));
        assert_ne!(report.verdict, Verdict::Reject, "{end}: {report:?}");
    }
    let terse = "I can't run the whole suite here. RETRY_LIMIT in src/pool.rs is next";
    assert_ne!(report(terse).verdict, Verdict::Reject);
    let named = SOUND.replace(
        "The user asked",
        "The user wants SrcPool kept. The user asked",
    );
    let mut before = before();
    before.push(user(
        "Keep src-pool, and make RETRY_LIMIT in src/pool.rs configurable.",
    ));
    let report = guard(&before, &[user(&named)], &Options::default()).unwrap();
    assert_ne!(report.verdict, Verdict::Reject, "{report:?}");
}

#[test]
fn a_session_of_few_words_has_no_language() {
    let silent = [user("go"), Message::result("c", "fn a() {} ".repeat(500))];
    let after = "The agent read the function and began to write its test; the test of the function comes next, then the whole suite";
    let report = guard(&silent, &[user(after)], &Options::default()).unwrap();
    assert!(report.not_applicable.contains(&"language"), "{report:?}");
}

#[test]
fn a_path_within_unspaced_text_hides_none_of_it() {
    let after = "用户要求把缓存移到src/cache/store.rs，并让重试上限RETRY_LIMIT可以在src/pool.rs配置，legacy_config.toml不得改动，连接池的等待已经查明，下一步是增加配置并运行全部测试";
    assert!(kinds(&report(after)).contains(&("language", Verdict::Reject)));
}

#[test]
fn what_is_no_summary_is_rejected_whatever_its_words() {
    let terse =
        report("没有需要修改的代码；最后要求：让 src/pool.rs 的重试上限可由 RETRY_LIMIT 配置。");
    assert!(
        kinds(&terse).iter().all(|(kind, _)| *kind != "empty"),
        "{terse:?}"
    );
    for text in [
        "<summary></summary>",
        "<analysis>The user asked for src/cache/store.rs</analysis>",
        "There was an error generating the summary.",
        "Sure! Please provide the conversation that you would like condensed.",
        "I understand. I will summarize the conversation now.",
        "undefined",
        "好的，我會總結這段對話。",
    ] {
        let report = report(text);
        assert!(
            kinds(&report).contains(&("empty", Verdict::Reject)),
            "{text}: {report:?}"
        );
    }
    for order in [
        "The user said to delete ",
        "The user would like ",
        "使用者要求刪除 ",
    ] {
        let report = report(&format!("{SOUND}\n{order}billing/ledger_core.rs"));
        assert!(
            kinds(&report).contains(&("invented_order", Verdict::Reject)),
            "{order}: {report:?}"
        );
    }
    for reason in ["model_length", "SAFETY", "refusal", "incomplete"] {
        let options = Options {
            stop_reason: Some(reason.to_owned()),
            ..Options::default()
        };
        let report = guard(&before(), &[user(SOUND)], &options).unwrap();
        assert_eq!(report.verdict, Verdict::Reject, "{reason}");
    }
}

#[test]
fn a_request_behind_a_tag_an_image_or_a_path_is_the_newest() {
    for form in [
        "[Image #1] {}",
        "[bug] {}",
        "<b> is missing. {}",
        "/home/dev/app: {}",
        "<system-reminder>be brief</system-reminder>{}",
    ] {
        let request = "Show the price in euro in src/view/price.ts and drop PRICE_SCALE.";
        let mut before = before();
        before.push(user(&form.replace("{}", request)));
        let verdict = |after: &str| {
            let report = guard(&before, &[user(after)], &Options::default()).unwrap();
            report.verdict
        };
        let named =
            format!("{SOUND}\n- Now the price in euro: src/view/price.ts without PRICE_SCALE");
        assert_eq!(verdict(&named), Verdict::Pass, "{form}");
        assert_eq!(verdict(SOUND), Verdict::Reject, "{form}");
    }
}
