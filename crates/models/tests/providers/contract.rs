//! Every request that an adapter can build is one that the vendor's schema allows.

use base::message::{Message, Role, ToolCall};
use compeval_models::{
    Call, Completion, Dialect, HttpRequest, Operation, ProviderSpec, Turn, read, renumber_calls,
    request,
};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::{Value, json};

use super::calls::{
    ANTHROPIC_ITEMS, OPENAI_ITEMS, ask, compaction, from_items, generations, say, spec, steps,
    with_recorded_tools,
};

pub const OPENAI: &str = include_str!("../schemas/openai.schema.json");
pub const ANTHROPIC: &str = include_str!("../schemas/anthropic.schema.json");

/// Checks values against a definition of a schema.
fn validator(schema: &Value, definition: &str) -> impl Fn(&Value) -> Result<(), String> + use<> {
    let (mut schemas, mut compiler) = (boon::Schemas::new(), boon::Compiler::new());
    compiler
        .add_resource("urn:contract", schema.clone())
        .unwrap();
    let place = format!("urn:contract#/$defs/{definition}");
    let index = compiler.compile(&place, &mut schemas).unwrap();
    move |value| {
        schemas
            .validate(value, index)
            .map_err(|fault| fault.to_string())
    }
}

fn faults(document: &str, definition: &str, value: &Value) -> Vec<String> {
    let schema: Value = serde_json::from_str(document).unwrap();
    let mut faults: Vec<String> = validator(&schema, definition)(value)
        .err()
        .into_iter()
        .collect();
    // The vendor's schema lets unknown keys pass; a misspelt one would validate.
    if let Some(known) = schema["x-known-properties"][definition].as_array() {
        let unknown = value
            .as_object()
            .unwrap()
            .keys()
            .filter(|key| !known.contains(&json!(key)));
        faults.extend(unknown.map(|key| format!("unknown key `{key}`")));
    }
    faults
}

fn body(request: &HttpRequest) -> Value {
    serde_json::from_slice(&request.body).unwrap()
}

fn built(spec: &ProviderSpec, call: &Call) -> (HttpRequest, Value) {
    let request = request(spec, call).unwrap();
    let body = body(&request);
    (request, body)
}

#[track_caller]
pub fn allowed(document: &str, definition: &str, body: &Value) {
    assert_eq!(
        faults(document, definition, body),
        Vec::<String>::new(),
        "{body:#}"
    );
}

#[test]
fn chat_requests_are_allowed_and_say_only_what_was_configured() {
    let openai = spec(Dialect::OpenaiChat, "https://api.openai.com/v1");
    for call in generations() {
        let (request, body) = built(&openai, &call);
        assert_eq!(request.path, "/chat/completions");
        allowed(OPENAI, "CreateChatCompletionRequest", &body);
    }
    let (_, plain) = built(&openai, &generations()[0]);
    assert_eq!(
        plain,
        json!({"model": "m-1", "messages": [{"role": "user", "content": "hello"}], "stream": false})
    );
}

#[test]
fn chat_servers_get_the_limit_under_the_name_they_know() {
    let call = &generations()[1];
    let limits = |url: &str| {
        let (_, body) = built(&spec(Dialect::OpenaiChat, url), call);
        (
            body["max_tokens"].as_u64(),
            body["max_completion_tokens"].as_u64(),
        )
    };
    assert_eq!(limits("https://api.openai.com/v1"), (None, Some(400)));
    assert_eq!(
        limits("https://a.openai.azure.com/openai/v1"),
        (None, Some(400))
    );
    assert_eq!(limits("http://127.0.0.1:8080/v1"), (Some(400), None));
}

#[test]
fn routers_are_asked_to_leave_the_prompt_alone() {
    let (_, body) = built(
        &spec(Dialect::OpenaiChat, "https://openrouter.ai/api/v1"),
        &generations()[0],
    );
    assert_eq!(
        body["plugins"],
        json!([{"id": "context-compression", "enabled": false}])
    );
    assert_eq!(body["provider"], json!({"require_parameters": true}));
}

#[test]
fn a_recorded_history_keeps_its_whole_tool_calls() {
    let (_, body) = built(
        &spec(Dialect::OpenaiChat, "https://api.openai.com/v1"),
        &generations()[2],
    );
    let messages = body["messages"].as_array().unwrap();
    let roles: Vec<&str> = messages
        .iter()
        .map(|m| m["role"].as_str().unwrap())
        .collect();
    assert_eq!(
        roles,
        [
            "system",
            "user",
            "assistant",
            "tool",
            "assistant",
            "user",
            "user",
            "user"
        ]
    );
    assert_eq!(messages[2]["tool_calls"].as_array().unwrap().len(), 1);
    assert!(
        messages[2]["content"]
            .as_str()
            .unwrap()
            .contains("not json")
    );
}

#[test]
fn tools_of_a_recorded_session_are_declared_and_may_not_be_called() {
    let call = with_recorded_tools();
    let (_, chat) = built(
        &spec(Dialect::OpenaiChat, "https://api.openai.com/v1"),
        &call,
    );
    assert_eq!(
        (&chat["tool_choice"], &chat["tools"][1]["function"]["name"]),
        (&json!("none"), &json!("run"))
    );
    let (_, responses) = built(
        &spec(Dialect::OpenaiResponses, "https://api.openai.com/v1"),
        &call,
    );
    assert_eq!(
        (&responses["tool_choice"], &responses["tools"][0]["name"]),
        (&json!("none"), &json!("read"))
    );
    assert_eq!(responses.get("include"), None);
    let (_, body) = built(
        &spec(Dialect::Anthropic, "https://api.anthropic.com"),
        &call,
    );
    assert_eq!(
        (&body["tool_choice"], &body["tools"][1]["name"]),
        (&json!({"type": "none"}), &json!("run"))
    );
    let kinds = |at: usize| -> Vec<&str> {
        let content = body["messages"][at]["content"].as_array().unwrap();
        content
            .iter()
            .map(|block| block["type"].as_str().unwrap())
            .collect()
    };
    // The call whose arguments are not an object, and whose result comes too late, is text.
    assert_eq!(
        [kinds(0), kinds(1), kinds(2)],
        [vec!["text"], vec!["text", "tool_use"], vec!["tool_result"]]
    );
    assert_eq!(
        body["messages"][1]["content"][1]["input"],
        json!({"path": "a.rs"})
    );
    assert_eq!(body["messages"][2]["content"][0]["tool_use_id"], "c1");
}

#[test]
fn results_come_before_texts_at_anthropic() {
    let calls = vec![
        ToolCall::new("c.1", "read", "[]"),
        ToolCall::new("c2", "read", "{}"),
    ];
    let said = Message {
        tool_calls: calls,
        ..Message::text(Role::Assistant, "")
    };
    let messages = [
        Message::text(Role::User, "go"),
        said,
        Message::result("c.1", "a"),
        Message::result("c2", "b"),
    ];
    let turns = vec![
        Turn::Messages(messages.into()),
        say(Role::User, "Write the summary."),
    ];
    let (_, body) = built(
        &spec(Dialect::Anthropic, "https://api.anthropic.com"),
        &Call {
            turns,
            ..with_recorded_tools()
        },
    );
    let last = body["messages"].as_array().unwrap().last().unwrap();
    let kinds: Vec<&Value> = last["content"]
        .as_array()
        .unwrap()
        .iter()
        .map(|block| &block["type"])
        .collect();
    assert_eq!(kinds, ["tool_result", "text", "text"], "{body:#}");
}

#[test]
fn responses_requests_are_allowed_and_nothing_is_stored() {
    let openai = spec(Dialect::OpenaiResponses, "https://api.openai.com/v1");
    for call in generations().into_iter().chain([from_items(OPENAI_ITEMS)]) {
        let (request, body) = built(&openai, &call);
        assert_eq!(
            (request.path, &body["store"]),
            ("/responses", &json!(false))
        );
        assert!(body.get("truncation").is_none());
        allowed(OPENAI, "CreateResponse", &body);
    }
    let (request, body) = built(&openai, &compaction(Operation::Compact, OPENAI_ITEMS));
    assert_eq!(request.path, "/responses/compact");
    allowed(OPENAI, "CompactResponseMethodPublicBody", &body);
}

#[test]
fn anthropic_requests_are_allowed_under_their_version() {
    let anthropic = spec(Dialect::Anthropic, "https://api.anthropic.com");
    let compact = [
        compaction(Operation::Summarize, ANTHROPIC_ITEMS),
        from_items(ANTHROPIC_ITEMS),
    ];
    for call in generations().into_iter().chain(compact) {
        let (request, body) = built(&anthropic, &call);
        let old = call.settings.temperature.is_some();
        let version = if old { "2023-06-01" } else { "2026-10-21" };
        assert_eq!(request.headers[0], ("anthropic-version", version));
        allowed(
            ANTHROPIC,
            if old {
                "MessagesRequest_2023_06_01"
            } else {
                "MessagesRequest"
            },
            &body,
        );
    }
}

#[test]
fn compaction_at_anthropic_needs_its_beta_header_then_and_later() {
    let anthropic = spec(Dialect::Anthropic, "https://api.anthropic.com");
    let beta = ("anthropic-beta", "compact-2026-09-04");
    let (first, body) = built(
        &anthropic,
        &Call {
            operation: Operation::Summarize,
            ..generations()[2].clone()
        },
    );
    assert!(first.headers.contains(&beta));
    assert_eq!(body["compaction"]["type"], "summarize");
    let (later, body) = built(&anthropic, &from_items(ANTHROPIC_ITEMS));
    assert!(later.headers.contains(&beta));
    assert_eq!(body["messages"][0]["role"], "assistant");
    assert_eq!(
        body["messages"][0]["content"].as_array().unwrap().len(),
        1,
        "the block stands alone"
    );
    let (plain, _) = built(&anthropic, &generations()[0]);
    assert!(!plain.headers.contains(&beta));
}

#[test]
fn a_providers_items_go_back_byte_for_byte() {
    for (dialect, items) in [
        (Dialect::OpenaiResponses, OPENAI_ITEMS),
        (Dialect::Anthropic, ANTHROPIC_ITEMS),
    ] {
        let request = request(&spec(dialect, "https://x.test/v1"), &from_items(items)).unwrap();
        let sent = String::from_utf8(request.body.to_vec()).unwrap();
        for item in items.trim_matches(['[', ']']).split("}, {") {
            assert!(sent.contains(item.trim_matches(['{', '}'])), "{sent}");
        }
    }
}

#[test]
fn anthropic_is_reached_with_and_without_v1() {
    let path = |url: &str| {
        built(&spec(Dialect::Anthropic, url), &generations()[0])
            .0
            .path
    };
    assert_eq!(path("https://api.anthropic.com"), "/v1/messages");
    assert_eq!(path("https://api.anthropic.com/v1/"), "/messages");
}

#[test]
fn a_long_shared_prefix_ends_in_a_cache_breakpoint() {
    let (_, body) = built(
        &spec(Dialect::Anthropic, "https://api.anthropic.com"),
        &generations()[3],
    );
    let blocks = body["messages"][0]["content"].as_array().unwrap();
    assert_eq!(blocks.len(), 2);
    assert_eq!(blocks[0]["cache_control"], json!({"type": "ephemeral"}));
    assert!(blocks[1].get("cache_control").is_none());
    allowed(ANTHROPIC, "MessagesRequest", &body);
    let (_, short) = built(
        &spec(Dialect::Anthropic, "https://api.anthropic.com"),
        &generations()[2],
    );
    assert!(!short.to_string().contains("cache_control"));
}

#[test]
fn what_no_other_request_begins_with_is_not_written_to_a_prompt_cache() {
    let call = Call {
        prefix_uses: 1,
        ..generations()[3].clone()
    };
    let (_, body) = built(
        &spec(Dialect::Anthropic, "https://api.anthropic.com"),
        &call,
    );
    assert!(!body.to_string().contains("cache_control"));
    let (_, body) = built(
        &spec(Dialect::OpenaiChat, "https://api.openai.com/v1"),
        &call,
    );
    assert_eq!(body.get("prompt_cache_key"), None);
}

#[test]
fn openai_gets_one_cache_key_for_a_prefix_and_several_for_one_that_is_used_often() {
    let key = |dialect, url: &str, question: &str, prefix_uses| {
        let mut call = Call {
            prefix_uses,
            ..generations()[3].clone()
        };
        call.turns[2] = say(Role::User, question);
        let (_, body) = built(&spec(dialect, url), &call);
        let definition = match dialect {
            Dialect::OpenaiResponses => "CreateResponse",
            _ => "CreateChatCompletionRequest",
        };
        allowed(OPENAI, definition, &body);
        body.get("prompt_cache_key").map(Value::to_string)
    };
    for dialect in [Dialect::OpenaiChat, Dialect::OpenaiResponses] {
        let openai =
            |question: &str, uses| key(dialect, "https://api.openai.com/v1", question, uses);
        assert!(openai("a", 10).is_some());
        assert_eq!(openai("a", 10), openai("b", 10));
        let keys: std::collections::BTreeSet<_> =
            (0..60).map(|n| openai(&n.to_string(), 60)).collect();
        assert_eq!(keys.len(), 4);
        assert_eq!(
            key(dialect, "https://example.com/v1", "a", 10),
            None,
            "others may refuse an unknown field"
        );
    }
}

#[test]
fn what_an_endpoint_cannot_do_is_not_left_out() {
    let chat = spec(Dialect::OpenaiChat, "https://x.test/v1");
    let fault = |spec: &ProviderSpec, call: &Call| request(spec, call).unwrap_err().to_string();
    let foreign = fault(&chat, &from_items(OPENAI_ITEMS));
    assert!(
        foreign.contains("compacted by another provider"),
        "{foreign}"
    );
    for (dialect, operation) in [
        (Dialect::OpenaiChat, Operation::Compact),
        (Dialect::OpenaiResponses, Operation::Summarize),
        (Dialect::Anthropic, Operation::Compact),
    ] {
        let call = Call {
            operation,
            ..generations()[0].clone()
        };
        let fault = fault(&spec(dialect, "https://x.test/v1"), &call);
        let (kind, asked) = (dialect.name(), format!("{operation:?}"));
        assert!(fault.contains(kind) && fault.contains(&asked), "{fault}");
    }
    let broken = fault(&spec(Dialect::OpenaiResponses, "x"), &from_items("{}"));
    assert!(broken.contains("no JSON array"), "{broken}");
}

#[test]
fn the_schemas_do_refuse_what_is_wrong() {
    let misspelt =
        json!({"model": "m", "messages": [{"role": "user", "content": "x"}], "max_token": 1});
    assert!(!faults(OPENAI, "CreateChatCompletionRequest", &misspelt).is_empty());
    let warm = json!({"model": "m", "max_tokens": 1, "temperature": 0, "messages": [{"role": "user", "content": "x"}]});
    assert!(!faults(ANTHROPIC, "MessagesRequest", &warm).is_empty());
    assert!(faults(ANTHROPIC, "MessagesRequest_2023_06_01", &warm).is_empty());
}

fn any_message() -> impl Strategy<Value = Message> {
    let role = prop_oneof![
        Just(Role::System),
        Just(Role::User),
        Just(Role::Assistant),
        Just(Role::Tool)
    ];
    let call = ("[abc]", "[a-z_]{1,8}", "\\PC{0,8}")
        .prop_map(|(id, name, args)| ToolCall::new(id, name, args));
    let id = proptest::option::of("[abc]");
    (
        role,
        "\\PC{0,12}",
        proptest::collection::vec(call, 0..3),
        id,
    )
        .prop_map(|(role, text, calls, id)| Message {
            tool_calls: if role == Role::Assistant {
                calls
            } else {
                Vec::new()
            },
            tool_call_id: id.filter(|_| role == Role::Tool),
            ..Message::text(role, text)
        })
}

#[test]
fn any_history_however_torn_becomes_an_allowed_request() {
    let dialects = [
        (Dialect::OpenaiChat, OPENAI, "CreateChatCompletionRequest"),
        (Dialect::OpenaiResponses, OPENAI, "CreateResponse"),
        (Dialect::Anthropic, ANTHROPIC, "MessagesRequest"),
    ];
    let validators = dialects.map(|(dialect, document, definition)| {
        let schema = serde_json::from_str(document).unwrap();
        (
            spec(dialect, "https://api.openai.com/v1"),
            validator(&schema, definition),
        )
    });
    let mut runner = TestRunner::new_with_rng(
        Config::with_cases(64),
        TestRng::deterministic_rng(RngAlgorithm::ChaCha),
    );
    let histories = proptest::collection::vec(any_message(), 0..10);
    let outcome = runner.run(&histories, |history| {
        let turns = vec![Turn::Messages(history.into()), say(Role::User, "and now?")];
        let call = Call { turns, ..ask("") };
        for (spec, validator) in &validators {
            let body = body(&request(spec, &call).unwrap());
            let found = validator(&body);
            prop_assert!(found.is_ok(), "{found:?} in {body:#}");
        }
        Ok(())
    });
    outcome.unwrap();
}

/// Reads `reply`, which calls the tool. Returns the completion and the bodies of the first and the last step around it.
fn with_a_tool(dialect: Dialect, url: &str, reply: &Value) -> (Completion, [Value; 2]) {
    let body = reply.to_string();
    let completion = read(dialect, Operation::UseTools, body.as_bytes(), None).unwrap();
    assert_eq!(completion.calls.len(), 1, "{completion:?}");
    assert_eq!(completion.calls[0].name, "search");
    let items = renumber_calls(dialect, completion.items.as_deref().unwrap(), 1).unwrap();
    let bodies = steps(&items).map(|call| built(&spec(dialect, url), &call).1);
    (completion, bodies)
}

#[test]
fn a_conversation_with_a_tool_is_allowed_in_every_dialect() {
    let chat = json!({"choices": [{"finish_reason": "tool_calls", "message": {"role": "assistant", "content": null,
        "refusal": null, "annotations": [], "reasoning_content": "hm", "tool_calls": [
        {"id": "x1", "type": "function", "function": {"name": "search", "arguments": "{\"query\":\"port\"}"}}]}}]});
    let (_, [first, last]) = with_a_tool(Dialect::OpenaiChat, "https://api.openai.com/v1", &chat);
    for body in [&first, &last] {
        allowed(OPENAI, "CreateChatCompletionRequest", body);
    }
    assert_eq!(
        (first.get("tool_choice"), last["tool_choice"].as_str()),
        (None, Some("none"))
    );
    assert_eq!(last["messages"][1]["tool_calls"][0]["id"], "call_1");
    assert_eq!(last["messages"][1]["reasoning_content"], "hm");
    assert_eq!(
        last["messages"][2],
        json!({"role": "tool", "tool_call_id": "call_1", "content": "8081"})
    );

    let reasoning =
        json!({"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "gAA"});
    let responses = json!({"status": "completed", "output": [reasoning, {"id": "fc_1", "status": "completed",
        "type": "function_call", "call_id": "x1", "name": "search", "arguments": "{\"query\":\"port\"}"}]});
    let (_, [first, last]) = with_a_tool(
        Dialect::OpenaiResponses,
        "https://api.openai.com/v1",
        &responses,
    );
    for body in [&first, &last] {
        allowed(OPENAI, "CreateResponse", body);
    }
    assert_eq!(last["input"][1], reasoning);
    assert_eq!(
        (
            last["input"][2]["call_id"].clone(),
            last["input"][2].get("id")
        ),
        (json!("call_1"), None)
    );
    assert_eq!(
        last["input"][3],
        json!({"type": "function_call_output", "call_id": "call_1", "output": "8081"})
    );

    let thinking = json!({"type": "thinking", "thinking": "", "signature": "Es"});
    let messages = json!({"type": "message", "stop_reason": "tool_use", "content": [thinking,
        {"type": "tool_use", "id": "toolu_1", "name": "search", "input": {"query": "port"}}]});
    let (completion, [first, last]) =
        with_a_tool(Dialect::Anthropic, "https://api.anthropic.com", &messages);
    for body in [&first, &last] {
        allowed(ANTHROPIC, "MessagesRequest", body);
    }
    assert_eq!(completion.calls[0].arguments, r#"{"query":"port"}"#);
    assert_eq!(last["messages"][1]["content"][0], thinking);
    assert_eq!(last["messages"][1]["content"][1]["id"], "call_1");
    assert_eq!(last["messages"][2]["content"][0]["tool_use_id"], "call_1");
    assert_eq!(last["tool_choice"], json!({"type": "none"}));
}

#[test]
fn a_call_is_no_answer_where_no_tool_was_offered() {
    let chat = br#"{"choices":[{"message":{"content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f"}}]}}]}"#;
    assert!(read(Dialect::OpenaiChat, Operation::Generate, chat, None).is_err());
    let responses =
        br#"{"output":[{"type":"function_call","call_id":"a","name":"f","arguments":""}]}"#;
    assert!(
        read(
            Dialect::OpenaiResponses,
            Operation::Generate,
            responses,
            None
        )
        .is_err()
    );
    let messages = br#"{"type":"message","stop_reason":"tool_use","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]}"#;
    assert!(read(Dialect::Anthropic, Operation::Generate, messages, None).is_err());
}

#[test]
fn recorded_names_and_ids_are_made_fit_and_arguments_stay_as_they_were() {
    let calls = vec![
        ToolCall::new(
            "call.1/读",
            "functions.exec",
            r#"{"z":1,"a":123456789012345678901234567890}"#,
        ),
        ToolCall::new("x".repeat(80), "mcp__".repeat(20), "{}"),
    ];
    let messages = [
        Message::text(Role::User, "go"),
        Message {
            tool_calls: calls,
            ..Message::text(Role::Assistant, "")
        },
        Message::result("call.1/读", "a"),
        Message::result("x".repeat(80), "b"),
    ];
    let is_fit = |name: &str, most: usize| {
        (1..=most).contains(&name.len())
            && name
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
    };
    for (dialect, url) in [
        (Dialect::OpenaiChat, "https://api.openai.com/v1"),
        (Dialect::OpenaiResponses, "https://api.openai.com/v1"),
        (Dialect::Anthropic, "https://api.anthropic.com"),
    ] {
        let turns = vec![
            Turn::Messages(messages.clone().into()),
            say(Role::User, "Write the summary."),
        ];
        let call = Call {
            turns,
            ..with_recorded_tools()
        };
        let request = request(&spec(dialect, url), &call).unwrap();
        let text = String::from_utf8(request.body.to_vec()).unwrap();
        assert!(text.contains("123456789012345678901234567890"), "{text}");
        let (z, a) = (
            text.find("z\\\":1").or(text.find("\"z\":1")),
            text.find("a\\\":123").or(text.find("\"a\":123")),
        );
        assert!(z < a, "{text}");
        let body: Value = serde_json::from_str(&text).unwrap();
        let (names, asked, answered): (Vec<&str>, Vec<&str>, Vec<&str>) = match dialect {
            Dialect::OpenaiChat => {
                let calls = body["messages"][1]["tool_calls"].as_array().unwrap();
                let results = body["messages"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .filter_map(|m| m["tool_call_id"].as_str());
                (
                    calls
                        .iter()
                        .map(|c| c["function"]["name"].as_str().unwrap())
                        .collect(),
                    calls.iter().map(|c| c["id"].as_str().unwrap()).collect(),
                    results.collect(),
                )
            }
            Dialect::OpenaiResponses => {
                let items = body["input"].as_array().unwrap();
                let of = |kind: &str, key: &str| {
                    items
                        .iter()
                        .filter(|i| i["type"] == kind)
                        .map(|i| i[key].as_str().unwrap())
                        .collect::<Vec<_>>()
                };
                (
                    of("function_call", "name"),
                    of("function_call", "call_id"),
                    of("function_call_output", "call_id"),
                )
            }
            _ => {
                let blocks: Vec<&Value> = body["messages"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .flat_map(|m| m["content"].as_array().unwrap())
                    .collect();
                let of = |kind: &str, key: &str| {
                    blocks
                        .iter()
                        .filter(|b| b["type"] == kind)
                        .map(|b| b[key].as_str().unwrap())
                        .collect::<Vec<_>>()
                };
                (
                    of("tool_use", "name"),
                    of("tool_use", "id"),
                    of("tool_result", "tool_use_id"),
                )
            }
        };
        assert_eq!((names.len(), &asked), (2, &answered), "{dialect}");
        assert!(
            names.iter().all(|name| is_fit(name, 64)) && asked.iter().all(|id| is_fit(id, 40)),
            "{names:?} {asked:?}"
        );
    }
}
