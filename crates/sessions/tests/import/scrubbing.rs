//! The scrubber on whole fixtures.

use compeval_sessions::import::{SYSTEM_PLACEHOLDER, ScrubSettings, audit, scrub};
use compeval_sessions::transcript::{Fixture, Message, ParsedFixture, Role, ToolCall};
use proptest::prelude::*;

fn fixture(messages: Vec<Message>) -> Fixture {
    let text = serde_json::json!({"name": "f", "messages": messages}).to_string();
    serde_json::from_str(&text).expect("a fixture")
}

fn scrubbed(text: &str) -> String {
    let mut fixture = fixture(vec![Message::text(Role::User, text)]);
    scrub(&mut fixture, &ScrubSettings::default());
    fixture.messages[0].content.clone()
}

#[test]
fn known_secrets_are_replaced_elsewhere_the_longest_first() {
    let short = ["Xk7!m", "Q2pLz"].concat();
    let long = format!("{short}9vTr4Ws");
    let given = format!("password = \"{short}\"\npassword = \"{long}\"");
    let again = format!("see {long}, {short}; x{short}");
    let mut fixture = fixture(vec![
        Message::text(Role::User, given),
        Message::text(Role::User, again),
    ]);
    scrub(&mut fixture, &ScrubSettings::default());
    assert_eq!(
        fixture.messages[1].content,
        format!("see REDACTED_PASSWORD_2, REDACTED_PASSWORD_1; x{short}"),
        "a short one inside a longer word is part of that word"
    );
}

#[test]
fn all_accounts_that_occur_outside_of_paths_are_listed() {
    let names: Vec<String> = (100..300).map(|at| format!("jane{at}x")).collect();
    let homes: Vec<String> = names.iter().map(|name| format!("/home/{name}/a")).collect();
    let text = format!("{}\nBy {}. 1 + 2", homes.join(" "), names.join(", "));
    let mut fixture = fixture(vec![
        Message::text(Role::User, text),
        Message::text(Role::User, "/home/jo.doe /home/Jo_Doe /home/-_- JoDoe"),
    ]);
    let left = scrub(&mut fixture, &ScrubSettings::default()).left;
    assert_eq!(left.len(), 201);
    assert!(left.values().all(|count| *count == 1), "{left:?}");
    assert!(left.contains_key("Jo_Doe") && left.contains_key("jane299x"));
}

#[test]
fn the_summary_of_a_recorded_compaction_is_scrubbed_and_audited() {
    let text = serde_json::json!({
        "name": "f",
        "recorded": [{"at": 1, "summary": "Write to jane@corp.io."}],
        "messages": [{"role": "user", "content": "go"}],
    });
    assert_scrubbed_and_audited(text);
}

#[test]
fn the_names_of_tools_that_are_called_are_scrubbed_and_audited() {
    let function = serde_json::json!({"name": "jane@corp.io", "arguments": "{}"});
    let call = serde_json::json!({"id": "c", "type": "function", "function": function});
    assert_scrubbed_and_audited(serde_json::json!({
        "name": "f",
        "messages": [
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c", "content": "ok"},
        ],
    }));
}

fn assert_scrubbed_and_audited(text: serde_json::Value) {
    let mut fixture: Fixture = serde_json::from_value(text).expect("a fixture");
    assert!(audit(&fixture).iter().any(|found| found.kind.is_certain()));
    scrub(&mut fixture, &ScrubSettings::default());
    assert!(audit(&fixture).iter().all(|found| !found.kind.is_certain()));
}

#[test]
fn the_schemas_of_tools_are_scrubbed_and_audited() {
    let mut fixture = fixture(vec![Message::text(Role::User, "go")]);
    let function = serde_json::json!({"name": "mail", "description": "Writes to jane@corp.io.", "parameters": {}});
    fixture.tools = vec![serde_json::json!({"type": "function", "function": function})];
    assert!(audit(&fixture).iter().any(|found| found.kind.is_certain()));
    scrub(&mut fixture, &ScrubSettings::default());
    assert!(
        !fixture.tools[0].to_string().contains("jane@corp.io"),
        "{:?}",
        fixture.tools
    );
    assert!(audit(&fixture).iter().all(|found| !found.kind.is_certain()));
}

#[test]
fn a_handle_in_the_name_of_a_tool_is_replaced_in_its_calls_too() {
    let mut call = Message::text(Role::Assistant, "");
    call.tool_calls
        .push(ToolCall::new("1", "mcp__jdoe_notes__find", "{}"));
    let mut fixture = fixture(vec![
        Message::text(Role::User, "go"),
        call,
        Message::result("1", "x"),
    ]);
    let function =
        serde_json::json!({"name": "mcp__jdoe_notes__find", "description": "", "parameters": {}});
    fixture.tools = vec![serde_json::json!({"type": "function", "function": function})];
    scrub(
        &mut fixture,
        &ScrubSettings {
            handles: vec!["jdoe".into()],
            facts: Vec::new(),
        },
    );
    let name = "mcp__user_notes__find";
    assert_eq!(fixture.tools[0]["function"]["name"], name);
    assert_eq!(fixture.messages[1].tool_calls[0].function.name, name);
}

#[test]
fn the_name_of_the_model_is_scrubbed_and_audited() {
    let mut fixture = fixture(vec![Message::text(Role::User, "go")]);
    fixture.model = "/home/jdoe/models/qwen3-8b.gguf".to_owned();
    assert!(audit(&fixture).iter().any(|found| found.kind.is_certain()));
    scrub(&mut fixture, &ScrubSettings::default());
    assert_eq!(fixture.model, "/home/user/models/qwen3-8b.gguf");
    assert!(audit(&fixture).iter().all(|found| !found.kind.is_certain()));
}

#[test]
fn the_largest_number_in_a_log_leaves_numbers_for_replacements() {
    let given = format!(
        "see REDACTED_PASSWORD_{}; password = \"{}\"",
        u64::MAX,
        ["Xk7!m", "Q2pLz"].concat()
    );
    let text = scrubbed(&given);
    assert!(text.contains("\"REDACTED_PASSWORD_1\""), "{text}");
}

/// Sixty planted secrets, put together here so that no scanner trips on this file.
fn planted() -> Vec<(&'static str, String)> {
    let alnum = |n: usize| {
        "q7Rk2Zt9Lm4Xc8Vb3Nw6Ys1Hd5Jf0GpTaEuIoKlMzBv"
            .chars()
            .cycle()
            .take(n)
            .collect::<String>()
    };
    let hex = |n: usize| {
        "9f3a7c1e5b2d8046fa17ce39bd528e60"
            .chars()
            .cycle()
            .take(n)
            .collect::<String>()
    };
    let upper = |n: usize| {
        "Q7RK2ZT5LM4XC6VB3NWY"
            .chars()
            .cycle()
            .take(n)
            .collect::<String>()
    };
    let letters = |n: usize| {
        "qRkZtLmXcVbNwYsHdJfGpTaEuIo"
            .chars()
            .cycle()
            .take(n)
            .collect::<String>()
    };
    let join = |parts: &[&str]| parts.concat();
    vec![
        ("aws id", join(&["AK", "IA", &upper(16)])),
        ("aws temporary id", join(&["AS", "IA", &upper(16)])),
        ("google api", join(&["AI", "za", &alnum(35)])),
        ("google oauth", join(&["ya", "29.", &alnum(40)])),
        ("google client", join(&["GOC", "SPX-", &alnum(28)])),
        ("github classic", join(&["gh", "p_", &alnum(36)])),
        ("github server", join(&["gh", "s_", &alnum(36)])),
        (
            "github fine",
            join(&["github", "_pat_", &alnum(22), "_", &alnum(59)]),
        ),
        ("gitlab", join(&["gl", "pat-", &alnum(20)])),
        (
            "slack bot",
            join(&["xo", "xb-", "1234567890-1234567890-", &alnum(24)]),
        ),
        (
            "slack app",
            join(&["xa", "pp-1-A0123456789-1234567890-", &hex(40)]),
        ),
        (
            "slack hook",
            join(&[
                "https://hooks.sl",
                "ack.com/services/T0123ABCD/B0123ABCD/",
                &alnum(24),
            ]),
        ),
        ("stripe live", join(&["sk", "_live_", &alnum(24)])),
        ("stripe test", join(&["rk", "_test_", &alnum(24)])),
        ("stripe hook", join(&["wh", "sec_", &alnum(32)])),
        ("openai", join(&["s", "k-", &alnum(48)])),
        (
            "openai project",
            join(&["s", "k-proj-", &alnum(60), "_", &alnum(40)]),
        ),
        (
            "anthropic",
            join(&["s", "k-ant-api03-", &alnum(80), "-", &alnum(10), "AA"]),
        ),
        ("openrouter", join(&["s", "k-or-v1-", &hex(64)])),
        ("npm", join(&["np", "m_", &alnum(36)])),
        ("pypi", join(&["py", "pi-AgEIcHlwaS5vcmc", &alnum(70)])),
        ("rubygems", join(&["ruby", "gems_", &hex(48)])),
        ("crates", join(&["ci", "o", &alnum(32)])),
        ("docker", join(&["dck", "r_pat_", &alnum(27)])),
        ("telegram", join(&["123456", "7890:", "AA", &alnum(33)])),
        (
            "discord",
            join(&["M", &alnum(23), ".", &alnum(6), ".", &alnum(38)]),
        ),
        (
            "discord hook",
            join(&[
                "https://disc",
                "ord.com/api/webhooks/123456789012345678/",
                &alnum(60),
            ]),
        ),
        ("twilio", join(&["S", "K", &hex(32)])),
        ("sendgrid", join(&["S", "G.", &alnum(22), ".", &alnum(43)])),
        ("mailgun", join(&["ke", "y-", &hex(32)])),
        ("mailchimp", join(&[&hex(32), "-us", "12"])),
        (
            "jwt",
            join(&[
                "ey",
                "JhbGciOiJIUzI1NiJ9.",
                "eyJ",
                "zdWIiOiIxMjM0NTYifQ.",
                &alnum(43),
            ]),
        ),
        ("azure client", join(&["abc", "8Q~", &alnum(34)])),
        ("digitalocean", join(&["do", "p_v1_", &hex(64)])),
        ("heroku", join(&["HR", "KU-", &alnum(36)])),
        ("huggingface", join(&["h", "f_", &letters(34)])),
        ("vault", join(&["hv", "s.", &alnum(28)])),
        ("age", join(&["AGE-SEC", "RET-KEY-1", &upper(58)])),
        ("databricks", join(&["da", "pi", &hex(32)])),
        (
            "terraform",
            join(&[&alnum(14), ".atlas", "v1.", &alnum(64)]),
        ),
        ("pulumi", join(&["pu", "l-", &hex(40)])),
        ("doppler", join(&["dp", ".pt.", &alnum(43)])),
        ("supabase", join(&["sb", "p_", &hex(40)])),
        ("atlassian", join(&["ATAT", "T3", &alnum(100)])),
        ("groq", join(&["gs", "k_", &alnum(52)])),
        ("replicate", join(&["r", "8_", &alnum(37)])),
        (
            "langsmith",
            join(&["lsv", "2_pt_", &hex(32), "_", &hex(10)]),
        ),
        ("shopify", join(&["shp", "at_", &hex(32)])),
        ("linear", join(&["lin", "_api_", &alnum(40)])),
        ("notion", join(&["nt", "n_", &alnum(46)])),
        ("figma", join(&["fig", "d_", &alnum(40)])),
        ("airtable", join(&["pa", "t", &alnum(14), ".", &hex(64)])),
        ("newrelic", join(&["NR", "AK-", &upper(27)])),
        ("grafana", join(&["gl", "sa_", &alnum(32), "_", &hex(8)])),
        ("sentry", join(&["sntr", "ys_", &alnum(60)])),
        ("alibaba", join(&["LT", "AI", &alnum(20)])),
    ]
}

/// Secrets that are known by their place: the text, and the part of it that must be removed.
fn placed() -> Vec<(String, String)> {
    let value = ["v7Kq2", "Zr91LmX", "0vTb7Yw4"].concat();
    let long = format!("{value}{value}");
    let in_text = |text: &str, value: &str| (text.replace("SECRET", value), value.to_owned());
    vec![
        in_text("postgres://app:SECRET@db.internal:5432/main", &value),
        in_text("mongodb+srv://app:SECRET@cluster0.mongodb.net", &value),
        in_text("redis://:SECRET@cache:6379/0", &value),
        in_text("curl https://jane:SECRET@host.internal/x", &value),
        in_text("curl -u jane:SECRET https://host.internal", &value),
        in_text("Authorization: Bearer SECRET", &long),
        in_text("-H \"Authorization: Basic SECRET\"", &value),
        in_text("Cookie: sid=SECRET; theme=dark", &long),
        in_text("machine api.host.io login jane password SECRET", &value),
        in_text(
            "DefaultEndpointsProtocol=https;AccountName=x;AccountKey=SECRET",
            &format!("{long}{long}w=="),
        ),
        in_text("Server=db;Database=m;User Id=app;Password=SECRET;", &value),
        in_text("//registry.npmjs.org/:_authToken=SECRET", &long),
        in_text("DB_PASSWORD=SECRET", &value),
        in_text("{\"client_secret\": \"SECRET\"}", &value),
        in_text("{\\\"apiKey\\\": \\\"SECRET\\\"}", &value),
        in_text("数据库密码：SECRET", &value),
        in_text(
            "PrivateKey = SECRET",
            &format!("{}=", &format!("{long}{long}")[..43]),
        ),
        in_text(
            "https://x.blob.core.windows.net/c?sv=2022&sig=SECRET",
            &format!("{long}%3D"),
        ),
    ]
}

#[test]
fn every_kind_of_secret_is_removed_wherever_it_occurs() {
    for (kind, secret) in planted() {
        for frame in [
            "the key is {} as agreed",
            "{\"key\": \"{}\"}",
            "{\\\"key\\\": \\\"{}\\\"}",
            "https://api.host.io/v1?key={}&x=1",
            "-old\n+export KEY={}\n context",
            "用的是{}，别外传",
            "\u{1b}[32m{}\u{1b}[0m",
            "{\\\"env\\\": \\\"A=1\\n{}\\nB=2\\\"}",
        ] {
            let text = frame.replace("{}", &secret);
            let after = scrubbed(&text);
            assert!(!after.contains(&secret), "{kind} in {frame}: {after}");
            assert!(after.contains("REDACTED_"), "{kind} in {frame}: {after}");
            assert_eq!(scrubbed(&after), after, "{kind} in {frame}");
        }
    }
    assert!(planted().len() >= 30);
}

#[test]
fn secrets_known_by_their_place_are_removed() {
    for (text, secret) in placed() {
        let after = scrubbed(&text);
        assert!(!after.contains(&secret), "{text} -> {after}");
        assert_eq!(scrubbed(&after), after);
    }
}

#[test]
fn keys_over_several_lines_are_removed_as_a_whole() {
    let body = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7";
    let begin = ["-----BEGIN ", "RSA PRIVATE", " KEY-----"].concat();
    let end = ["-----END ", "RSA PRIVATE", " KEY-----"].concat();
    for newline in ["\n", "\r\n", "\\n", "\n+", "\n    "] {
        let block = [&begin, body, body, &end]
            .map(|line| line as &str)
            .join(newline);
        let after = scrubbed(&format!("key:{newline}{block}{newline}done"));
        assert!(
            !after.contains("MIIE") && after.contains("done"),
            "{newline:?}: {after}"
        );
        let cut_off = [&begin as &str, body, body].join(newline);
        assert!(!scrubbed(&cut_off).contains("MIIE"), "{newline:?}");
    }
}

#[test]
fn base64_that_contains_a_secret_is_removed() {
    // printf 'token: ' and a key of GitHub's form, in base64, put together from halves.
    let encoded = [
        "dG9rZW46IGdocF9xN1JrMlp0OUxtNFhjOFZi",
        "M053NllzMUhkNUpmMEdwVGFFdUlv",
    ]
    .concat();
    let after = scrubbed(&format!("data:\n  config: {encoded}\n"));
    assert!(!after.contains(&encoded), "{after}");
}

#[test]
fn one_string_gets_one_replacement_in_calls_and_results_alike() {
    let secret = ["gh", "p_", "q7Rk2Zt9Lm4Xc8Vb3Nw6Ys1Hd5Jf0GpTaEuI"].concat();
    let mut call = Message::text(Role::Assistant, "");
    call.tool_calls.push(ToolCall::new(
        "c",
        "run",
        format!("{{\"command\":\"login {secret} /home/jdoe/x\"}}"),
    ));
    let mut fixture = fixture(vec![
        call,
        Message::result("c", format!("ok {secret} in /home/jdoe/x")),
    ]);
    scrub(&mut fixture, &ScrubSettings::default());
    let arguments = &fixture.messages[0].tool_calls[0].function.arguments;
    assert_eq!(
        arguments,
        "{\"command\":\"login REDACTED_GITHUB_TOKEN_1 /home/user/x\"}"
    );
    assert_eq!(
        fixture.messages[1].content,
        "ok REDACTED_GITHUB_TOKEN_1 in /home/user/x"
    );
}

#[test]
fn the_ten_steps_leave_a_fixture_that_reads() {
    let mut call = Message::text(Role::Assistant, "<think>I should look</think>");
    call.tool_calls.push(ToolCall::new("c", "run", "{}"));
    let mut fixture = fixture(vec![
        Message::text(Role::System, "You are AcmeBot, built for Jane."),
        Message::text(Role::System, "AGENTS"),
        Message::text(Role::User, "hi <@4711>, write to jane@corp.io"),
        Message::text(Role::Assistant, "<think>nothing else</think>"),
        call,
        Message::result("c", "x".repeat(5000)),
        Message::result("zz", "nobody asked"),
        Message::text(Role::User, "JANE wants more"),
    ]);
    fixture.points = vec![6, 8];
    let settings = ScrubSettings {
        handles: vec!["jane".into()],
        facts: vec![],
    };
    let report = scrub(&mut fixture, &settings);
    let text = serde_json::to_string(&fixture).expect("JSON");
    let read = ParsedFixture::read(&text).expect("sound").fixture;
    assert_eq!(read.messages[0].content, SYSTEM_PLACEHOLDER);
    assert_eq!(
        read.messages[1].content,
        "hi <@user>, write to contributor@example.com"
    );
    assert_eq!(read.messages.len(), 5);
    assert_eq!(read.messages[4].content, "user wants more");
    assert_eq!(read.points, [4, 5]);
    assert_eq!(read.extra["outputs_cut_to"], 2000);
    assert_eq!(report.paraphrase, Some(1));
    insta::assert_snapshot!(report.replaced.iter().map(|(k, n)| format!("{n} {k}")).collect::<Vec<_>>().join("\n"), @r"
    3 personal handle
    1 e-mail address or author
    2 reasoning block
    1 mention
    2 system prompt
    1 empty assistant message
    1 result without call
    1 long tool output
    ");
}

#[test]
fn at_least_97_of_100_secrets_are_removed_and_at_most_2_of_100_other_texts_change() {
    let measured = super::scrubbing_settings::measure();
    assert!(
        measured.secrets >= 200 && measured.settings >= 40 && measured.decoys >= 100,
        "{measured:?}"
    );
    assert!(
        measured.removed_share() >= 0.97,
        "{:.3}: {:#?}",
        measured.removed_share(),
        measured.missed
    );
    assert!(
        measured.harmed_share() <= 0.02,
        "{:.3}: {:#?}",
        measured.harmed_share(),
        measured.harmed
    );
}

#[test]
fn a_word_that_may_be_a_password_stays_and_is_listed() {
    let mut fixture = fixture(vec![Message::text(
        Role::User,
        "the wifi password is swordfish.",
    )]);
    scrub(&mut fixture, &ScrubSettings::default());
    assert_eq!(
        fixture.messages[0].content,
        "the wifi password is swordfish."
    );
    let listed: Vec<String> = audit(&fixture)
        .iter()
        .map(|found| found.kind.to_string())
        .collect();
    assert_eq!(listed, ["possible password"]);
}

#[test]
fn a_password_is_removed_wherever_it_is_repeated_but_not_inside_longer_words() {
    let password = ["Sommer", "2024!"].concat();
    let text = format!("DB_PASSWORD={password}\nthen {password} again, and x{password}");
    assert_eq!(
        scrubbed(&text),
        format!("DB_PASSWORD=REDACTED_PASSWORD_1\nthen REDACTED_PASSWORD_1 again, and x{password}")
    );
}

fn anything() -> impl Strategy<Value = String> {
    let pieces = prop_oneof![
        "\\PC{0,12}",
        Just("/home/jdoe/src".to_owned()),
        Just("C:\\\\Users\\\\Jane\\\\x".to_owned()),
        Just("jane.doe@corp.io".to_owned()),
        Just("<think>".to_owned()),
        Just("</think>".to_owned()),
        Just("<@123>".to_owned()),
        Just("password=".to_owned()),
        Just("\n".to_owned()),
        Just("Author: J <j@x.io>".to_owned()),
        "[A-Za-z0-9+/]{16,40}",
        (0..56_usize).prop_map(|index| planted()[index].1.clone()),
    ];
    proptest::collection::vec(pieces, 0..8).prop_map(|pieces| pieces.concat())
}

fn messages() -> impl Strategy<Value = Vec<Message>> {
    let one = (0..4_u8, anything(), anything());
    proptest::collection::vec(one, 1..6).prop_map(|list| {
        let mut messages = Vec::new();
        for (index, (kind, text, other)) in list.into_iter().enumerate() {
            match kind {
                0 => messages.push(Message::text(Role::User, text)),
                1 => messages.push(Message::text(Role::Assistant, text)),
                2 => messages.push(Message::text(Role::System, text)),
                _ => {
                    let id = format!("c{index}");
                    let mut call = Message::text(Role::Assistant, text);
                    let arguments = serde_json::json!({ "text": other }).to_string();
                    call.tool_calls
                        .push(ToolCall::new(id.clone(), "run", arguments));
                    messages.extend([call, Message::result(id, other)]);
                }
            }
        }
        messages
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn scrubbing_twice_changes_nothing_and_pairs_stay_pairs(messages in messages()) {
        let mut once = fixture(messages);
        let settings = ScrubSettings { handles: vec!["jane doe".into()], facts: vec![] };
        scrub(&mut once, &settings);
        let mut twice = once.clone();
        let report = scrub(&mut twice, &settings);
        prop_assert_eq!(&twice, &once);
        prop_assert!(report.replaced.is_empty(), "{:?}", report.replaced);
        let mut open: Vec<&str> = Vec::new();
        for message in &once.messages {
            match &message.tool_call_id {
                Some(id) => {
                    let at = open.iter().position(|call| call == id);
                    prop_assert!(at.is_some());
                    open.remove(at.unwrap_or(0));
                }
                None => {
                    prop_assert!(open.is_empty());
                    open = message.tool_calls.iter().map(|call| call.id.as_str()).collect();
                }
            }
            for call in &message.tool_calls {
                prop_assert!(serde_json::from_str::<serde_json::Value>(&call.function.arguments).is_ok());
            }
        }
        prop_assert!(open.is_empty());
    }
}

/// Secrets in prose and on command lines, and words beside them that are none. `@` stands for the secret.
#[test]
fn a_secret_goes_in_any_notation_and_the_facts_beside_it_stay() {
    let secret = ["h0rse-", "Battery7"].concat();
    for text in [
        "user deploy and password @",
        "wifi: guest / @ (password)",
        "export DB_PASSWORD=@ && ./run.sh",
        "I changed the admin password to @ so you can log in.",
        "gpg --batch --passphrase @ -d x.gpg",
        "管理员密码改成了 @ 。",
    ] {
        let found = scrubbed(&text.replace('@', &secret));
        assert!(!found.contains(&secret), "{text}: {found}");
    }
    let token = ["fjgvq4.", "k7bn7xj8b7tfq7xk"].concat();
    let joined = scrubbed(&format!("kubeadm join 10.0.0.1:6443 --token {token} --v=5"));
    assert!(
        !joined.contains(&token) && joined.ends_with("--v=5"),
        "{joined}"
    );
    for fact in [
        "token => 401",
        "auth process completed",
        "echo \"=== PWD ===\" && pwd",
        "user name and password fields",
        "the map (password) is empty",
        "mysql -u root -p",
        "TOKEN_LIMIT = 4096",
        "密码长度至少 8 位",
    ] {
        assert_eq!(scrubbed(fact), fact);
    }
}
