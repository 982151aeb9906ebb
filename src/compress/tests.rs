//! A method over two points: what is asked, what is read, and that the digests derived beforehand are those of the outputs.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;

use super::*;
use crate::action::{
    BuiltInStrategy, Computation, Digest, InputsDocument, Repetition, RequestTurn, Stage, Template,
    Work,
};
use base::locale::Locale;
use base::units::Tokens;
use models::{Completion, Dialect, Limits, ModelRef, ModelUse, Operation, ProviderSpec, Settings};
use proptest::prelude::{prop, prop_assert, prop_assert_eq, proptest};
use sessions::transcript::{Message, Role, ToolCall, estimate_tokens};

fn model_of(dialect: Dialect, endpoint: &str, model: &str) -> ModelUse {
    let provider = ProviderSpec {
        name: "p".into(),
        dialect,
        base_url: String::new(),
        api_key: None,
        endpoint: endpoint.into(),
        limits: Limits::default(),
        lane: Default::default(),
        key_place: None,
    };
    let reference = ModelRef {
        provider: "p".into(),
        model: model.into(),
    };
    ModelUse {
        reference,
        provider: Arc::new(provider),
        settings: Settings::default(),
        lane: Default::default(),
    }
}

fn method(strategy: Strategy) -> Method {
    Method {
        name: MethodName("m".into()),
        strategy,
        target_tokens: None,
    }
}

fn prompted(style: PromptStyle) -> Method {
    let template =
        Template::new("T:{{ transcript }} P:{{ previous_summary }}", VARIABLES).expect("compiles");
    let model = model_of(Dialect::OpenaiChat, "here", "m1");
    method(Strategy::Prompted {
        style,
        model,
        template,
        placement: PromptPlacement::Inline,
        shape: Shape::default(),
        extract: None,
    })
}

fn command() -> Method {
    method(Strategy::Command(CommandSpec {
        argv: vec!["x".into()],
        model: Some("big/one".into()),
        folder: ".".into(),
        files: Vec::new(),
        environment: Vec::new(),
        secrets: Vec::new(),
        identity: None,
        protocol: Protocol::default(),
        deterministic: false,
        timeout: std::time::Duration::from_secs(1),
    }))
}

fn vendor(operation: Operation) -> Method {
    let model = model_of(Dialect::Anthropic, "there", "m2");
    method(match operation {
        Operation::Compact => Strategy::Opaque { model },
        _ => Strategy::ProviderCompaction {
            model,
            template: None,
        },
    })
}

fn reply(text: &str, items: Option<&str>) -> Completion {
    Completion {
        text: text.into(),
        items: items.map(str::to_owned),
        calls: Vec::new(),
        truncated: false,
    }
}

fn work(method: &Method, previous: Option<Digest>, focus: Option<&str>) -> Work {
    let span = SpanText::from_messages(&[Message::text(Role::User, "new")]);
    let prefix = SpanText::from_messages(&[
        Message::text(Role::User, "old"),
        Message::text(Role::User, "new"),
    ]);
    let input = CompressInput {
        recorded: None,
        system: Some("be brief"),
        tools: "[]",
        offer: None,
        run: Some(2),
        span: &span,
        prefix: &prefix,
        kept: None,
        previous,
        target_tokens: method.target_tokens,
        focus_topic: focus,
        fixture_model: "",
        context_length: Some(8192),
        locale: Locale::En,
    };
    prepare(&method.strategy, &input).expect("work")
}

/// The text of the last prompt, or of the program's input, outputs taken from `known`.
fn text(work: &Work, known: &[(Digest, Arc<str>)]) -> String {
    let known: HashMap<_, _> = known.iter().cloned().collect();
    let resolve = |digest: &Digest| Ok::<_, Infallible>(known.get(digest).expect("known").clone());
    let text = match work {
        Work::Ask(request) | Work::Compute(Computation::StandIn(request)) => {
            match request.turns.last() {
                Some(RequestTurn::Text(_, prompt)) => prompt.text(&resolve),
                Some(RequestTurn::Messages(material) | RequestTurn::Items(material)) => {
                    material.text(&resolve)
                }
                _ => Ok("".into()),
            }
        }
        Work::Execute(program) => program.stdin.text(&resolve),
        Work::Compute(Computation::Strategy { messages, .. }) => messages.text(&resolve),
    };
    text.expect("resolves").to_string()
}

#[test]
fn anchored_hands_over_its_summary_and_regenerative_its_history() {
    for (style, second) in [
        (PromptStyle::Anchored, "T:[user]\nnew P:S1"),
        (
            PromptStyle::Regenerative,
            "T:[assistant]\nS1\n\n[user]\nnew P:",
        ),
    ] {
        let method = prompted(style);
        assert_eq!(text(&work(&method, None, None), &[]), "T:[user]\nnew P:");
        let first =
            read(&method, CompressOutput::Reply(&reply(" S1\n", None)), None).expect("read");
        let state = state_digest(&method, first.out).expect("state");
        assert_eq!(
            text(&work(&method, Some(state), None), &first.texts()),
            second
        );
    }
}

#[test]
fn workers_are_asked_the_same_as_a_process() {
    let mut method = command();
    let mut ask = |protocol: Protocol| {
        let Strategy::Command(spec) = &mut method.strategy else {
            panic!("a command")
        };
        spec.protocol = protocol;
        text(&work(&method, None, None), &[])
    };
    let one = ask(Protocol::default());
    let session = r#","system":"be brief","tools":[],"force":true,"reason":"manual","run":2}"#;
    assert!(one.ends_with(session), "{one}");
    let start_timeout = std::time::Duration::from_secs(1);
    assert_eq!(
        ask(Protocol::Lines {
            workers: std::num::NonZeroU32::MIN,
            start_timeout
        }),
        one
    );
}

#[test]
fn a_program_gets_the_protocol_and_its_state_back() {
    let method = command();
    let parse = |text: &str| serde_json::from_str::<serde_json::Value>(text).expect("json");
    let user = |content: &str| serde_json::json!({"role": "user", "content": content});
    let first = parse(&text(&work(&method, None, Some("say \"hi\"")), &[]));
    let expected = serde_json::json!({
        "version": 2, "messages": [user("new")], "previous": null, "all_messages": [user("old"), user("new")],
        "focus_topic": "say \"hi\"", "target_tokens": null, "model": "big/one", "fixture_model": null, "context_length": 8192,
        "system": "be brief", "tools": [], "force": true, "reason": "manual", "run": 2
    });
    assert_eq!(first, expected);
    let done = read(
        &method,
        CompressOutput::Bytes(br#"{"summary":"S","state":{"n":1}}"#),
        None,
    )
    .expect("read");
    let second = parse(&text(&work(&method, Some(done.out), None), &done.texts()));
    assert_eq!(
        second["previous"],
        serde_json::json!({"summary": "S", "state": {"n": 1}})
    );
}

#[test]
fn items_go_back_unchanged_before_the_new_messages() {
    for operation in [Operation::Compact, Operation::Summarize] {
        let method = vendor(operation);
        let items = "[ {\"type\": \"compaction\"} ]";
        let done = read(
            &method,
            CompressOutput::Reply(&reply("text", Some(items))),
            None,
        )
        .expect("read");
        let Work::Ask(request) = work(&method, Some(done.out), None) else {
            panic!("asks")
        };
        assert_eq!(request.operation, operation);
        let [RequestTurn::Items(back), RequestTurn::Messages(_)] = request.turns.as_slice() else {
            panic!("two turns")
        };
        assert_eq!(back.digest(), done.out);
        assert!(done.texts().contains(&(done.out, items.into())));
    }
}

#[test]
fn a_vendor_keeps_its_own_instructions_until_the_user_wishes_something() {
    let method = vendor(Operation::Summarize);
    let instructions = |focus| match work(&method, None, focus) {
        Work::Ask(request) => request.instructions,
        _ => None,
    };
    assert!(instructions(None).is_none());
    assert!(instructions(Some("the parser")).is_some());
}

#[test]
fn names_made_beforehand_are_the_names_of_what_is_read() {
    let outputs: [(Method, Completion, &[u8]); 5] = [
        (prompted(PromptStyle::Anchored), reply("S", None), b""),
        (vendor(Operation::Compact), reply("", Some("[1]")), b""),
        (vendor(Operation::Summarize), reply("S", Some("[1]")), b""),
        (
            command(),
            reply("", None),
            br#"{"messages":[{"role":"user","content":"S"}]}"#,
        ),
        (
            method(Strategy::Rule(BuiltInStrategy::None)),
            reply("", None),
            b"[]",
        ),
    ];
    for (method, completion, bytes) in outputs {
        let output = match &method.strategy {
            Strategy::Command(_) | Strategy::Rule(_) => CompressOutput::Bytes(bytes),
            _ => CompressOutput::Reply(&completion),
        };
        let done = read(&method, output, None).expect("read");
        assert_eq!(done.reference, context_ref(&method, done.out, None));
        let known: HashMap<_, _> = done.texts().into_iter().collect();
        if let Some(material) = done.reference.text() {
            assert_eq!(known.get(&material.digest()), done.context.text().as_ref());
        }
        assert_eq!(
            state_digest(&method, done.out).is_some_and(|state| known.contains_key(&state)),
            done.state.is_some()
        );
    }
}

#[test]
fn failures_of_a_method_are_distinguished() {
    fn fault(method: &Method, output: CompressOutput<'_>) -> String {
        read(method, output, None).expect_err("a fault").to_string()
    }
    let anchored = prompted(PromptStyle::Anchored);
    let blank = reply("```\n \n```", None);
    assert!(fault(&anchored, CompressOutput::Reply(&blank)).contains("returned nothing"));
    let bare = reply("", None);
    let opaque = vendor(Operation::Compact);
    assert!(fault(&opaque, CompressOutput::Reply(&bare)).contains("no compaction item"));
    assert!(fault(&anchored, CompressOutput::Bytes(b"{}")).contains("this kind of output"));
    let full = method(Strategy::Rule(BuiltInStrategy::Full));
    assert!(fault(&full, CompressOutput::Bytes(b"{")).contains("cannot be read"));
}

#[test]
fn a_target_or_a_name_changes_only_the_keys_it_should() {
    let key = |method: &Method| {
        InputsDocument::key_of(Stage::Compress, Repetition::NONE, &work(method, None, None))
    };
    let mut full = method(Strategy::Rule(BuiltInStrategy::Full));
    let before = key(&full);
    full.target_tokens = Some(Tokens(9));
    full.name = MethodName("other".into());
    assert_eq!(key(&full), before);
    let mut truncate = method(Strategy::Rule(BuiltInStrategy::Truncate));
    let before = key(&truncate);
    truncate.target_tokens = Some(Tokens(9));
    assert_ne!(key(&truncate), before);
}

const RULES: [BuiltInStrategy; 5] = [
    BuiltInStrategy::Full,
    BuiltInStrategy::None,
    BuiltInStrategy::Truncate,
    BuiltInStrategy::Mask,
    BuiltInStrategy::Extract,
];

#[test]
fn rules_compute_contexts_that_read_back() {
    let messages = vec![
        Message::text(Role::User, "Use port 8081."),
        Message::text(Role::Assistant, "Done."),
    ];
    for rule in RULES {
        let mut method = method(Strategy::Rule(rule));
        method.target_tokens = Some(Tokens(3));
        let Work::Compute(Computation::Strategy { target_tokens, .. }) = work(&method, None, None)
        else {
            panic!("computes")
        };
        let bytes = compute(rule, target_tokens, &messages, &estimate_tokens);
        let context = read(&method, CompressOutput::Bytes(&bytes), None)
            .expect("read")
            .context;
        match rule {
            BuiltInStrategy::Full | BuiltInStrategy::Recorded => assert_eq!(
                context,
                Context::Readable {
                    messages: messages.clone()
                }
            ),
            BuiltInStrategy::Truncate | BuiltInStrategy::Mask => {
                assert_eq!(context.text().as_deref(), Some("Done."))
            }
            BuiltInStrategy::None | BuiltInStrategy::Extract => {
                assert_eq!(context.text().as_deref(), Some(""))
            }
        }
    }
}

proptest! {
    #[test]
    fn rules_are_deterministic_and_read_back_whatever_was_said(
        turns in prop::collection::vec(("(\\PC|\n){0,80}", "\\PC{0,60}", "(\\PC|\n){0,80}"), 0..5),
        target in 0u64..200,
    ) {
        let mut messages = Vec::new();
        for (index, (text, command, output)) in turns.iter().enumerate() {
            let id = format!("c{index}");
            let mut call = Message::text(Role::Assistant, text);
            let arguments = serde_json::json!({ "command": command }).to_string();
            call.tool_calls.push(ToolCall::new(&id, "terminal", arguments));
            messages.extend([Message::text(Role::User, text), call, Message::result(&id, output)]);
        }
        for rule in RULES {
            let computed = || compute(rule, Some(Tokens(target)), &messages, &estimate_tokens);
            let bytes = computed();
            prop_assert_eq!(&bytes, &computed());
            prop_assert!(read(&method(Strategy::Rule(rule)), CompressOutput::Bytes(&bytes), None).is_ok());
        }
    }
}
