//! Every documented reply, in the vendors' shapes and in those of the servers that resemble them.

use base::units::Tokens;
use compeval_models::{Billing, Completion, Dialect, Operation, ReadFault, read, read_billing};

use super::contract::{ANTHROPIC, OPENAI, allowed};

fn generated(dialect: Dialect, body: &str) -> Result<Completion, ReadFault> {
    read(dialect, Operation::Generate, body.as_bytes(), None)
}

const CHAT: &str = r#"{"id":"chatcmpl-9","object":"chat.completion","created":1790000000,"model":"gpt-5.4-mini-2026-03-17",
 "choices":[{"index":0,"finish_reason":"stop","logprobs":null,
   "message":{"role":"assistant","content":"{\"score\":4}","refusal":null,"annotations":[]}}],
 "usage":{"prompt_tokens":120,"completion_tokens":30,"total_tokens":150,
   "prompt_tokens_details":{"cached_tokens":64,"audio_tokens":0,"cache_write_tokens":8},
   "completion_tokens_details":{"reasoning_tokens":21,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}}}"#;

const RESPONSES: &str = r#"{"id":"resp_9","object":"response","created_at":1790000000,"model":"gpt-5.5-2026-04-23","status":"completed",
 "error":null,"incomplete_details":null,"instructions":null,"metadata":{},"parallel_tool_calls":true,"tool_choice":"auto","tools":[],"temperature":1,"top_p":1,
 "output":[{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gAAA"},
  {"type":"message","id":"msg_1","role":"assistant","status":"completed",
   "content":[{"type":"output_text","text":"it is ","annotations":[],"logprobs":[]},{"type":"output_text","text":"4711","annotations":[],"logprobs":[]}]}],
 "usage":{"input_tokens":40,"input_tokens_details":{"cached_tokens":32,"cache_write_tokens":0},"output_tokens":30,
  "output_tokens_details":{"reasoning_tokens":25},"total_tokens":70}}"#;

const COMPACTED: &str = r#"{"id":"resp_2","object":"response.compaction","created_at":1790000000,
 "output":[{"id":"msg_0","type":"message","status":"completed","role":"user","content":[{"type":"input_text","text":"4711"}]},
  {"id":"cmp_1","type":"compaction","encrypted_content":"gAAAopaque"}],
 "usage":{"input_tokens":139,"input_tokens_details":{"cached_tokens":0,"cache_write_tokens":0},"output_tokens":438,
  "output_tokens_details":{"reasoning_tokens":64},"total_tokens":577}}"#;

const MESSAGES: &str = r#"{"id":"msg_9","type":"message","role":"assistant","model":"claude-sonnet-5-5",
 "content":[{"type":"thinking","thinking":"","signature":"x"},{"type":"text","text":"4711"}],
 "stop_reason":"end_turn","stop_sequence":null,
 "usage":{"input_tokens":80,"output_tokens":40,"cache_creation_input_tokens":10,"cache_read_input_tokens":900}}"#;

const BLOCK: &str = r#"{"id":"msg_8","type":"message","role":"assistant","model":"claude-opus-5-5",
 "content":[{"type":"compaction","content":"The code is 4711.","signature":"EuYB"}],"stop_reason":"compaction","stop_sequence":null,
 "usage":{"input_tokens":0,"output_tokens":0,"iterations":[{"type":"compaction","input_tokens":144,"output_tokens":276}]}}"#;

#[test]
fn the_samples_are_what_the_vendors_promise() {
    for (document, definition, sample) in [
        (OPENAI, "CreateChatCompletionResponse", CHAT),
        (OPENAI, "Response", RESPONSES),
        (OPENAI, "CompactResource", COMPACTED),
        (ANTHROPIC, "MessageResponse", MESSAGES),
        (ANTHROPIC, "MessageResponse", BLOCK),
    ] {
        allowed(document, definition, &serde_json::from_str(sample).unwrap());
    }
}

#[test]
fn answers_are_read_with_model_and_usage() {
    let chat = generated(Dialect::OpenaiChat, CHAT).unwrap();
    let Billing { model, usage, .. } = read_billing(Dialect::OpenaiChat, CHAT.as_bytes());
    assert_eq!(
        (chat.text.as_str(), model.as_deref()),
        (r#"{"score":4}"#, Some("gpt-5.4-mini-2026-03-17"))
    );
    let counts = [
        usage.input,
        usage.cached_input,
        usage.cache_write,
        usage.output,
        usage.reasoning,
    ];
    assert_eq!(counts, [120, 64, 8, 30, 21].map(|n| Some(Tokens(n))));
    let responses = generated(Dialect::OpenaiResponses, RESPONSES).unwrap();
    let usage = read_billing(Dialect::OpenaiResponses, RESPONSES.as_bytes()).usage;
    assert_eq!(
        (responses.text.as_str(), usage.cached_input),
        ("it is 4711", Some(Tokens(32)))
    );
    let messages = generated(Dialect::Anthropic, MESSAGES).unwrap();
    let usage = read_billing(Dialect::Anthropic, MESSAGES.as_bytes()).usage;
    assert_eq!(
        (messages.text.as_str(), usage.input),
        ("4711", Some(Tokens(990)))
    );
}

#[test]
fn compactions_are_read_with_what_goes_back_later() {
    let compact = read(
        Dialect::OpenaiResponses,
        Operation::Compact,
        COMPACTED.as_bytes(),
        None,
    )
    .unwrap();
    assert!(compact.text.is_empty() && COMPACTED.contains(compact.items.as_deref().unwrap()));
    let usage = read_billing(Dialect::OpenaiResponses, COMPACTED.as_bytes()).usage;
    assert_eq!(usage.output, Some(Tokens(438)));
    let block = read(
        Dialect::Anthropic,
        Operation::Summarize,
        BLOCK.as_bytes(),
        None,
    )
    .unwrap();
    assert_eq!(block.text, "The code is 4711.");
    assert_eq!(
        block.items.as_deref(),
        Some(r#"[{"type":"compaction","content":"The code is 4711.","signature":"EuYB"}]"#)
    );
    assert_eq!(
        read_billing(Dialect::Anthropic, BLOCK.as_bytes())
            .usage
            .input,
        Some(Tokens(144))
    );
}

#[test]
fn a_call_of_a_tool_where_none_may_be_called_is_no_answer() {
    let call = r#"{"id":"c1","type":"function","function":{"name":"run","arguments":"{}"}}"#;
    let chat = format!(
        r#"{{"finish_reason":"tool_calls","message":{{"content":"Looking.","tool_calls":[{call}]}}}}"#
    );
    let responses = r#"{"status":"completed","output":[{"type":"function_call","call_id":"c1","name":"run","arguments":"{}"},
        {"type":"message","content":[{"type":"output_text","text":"Looking."}]}]}"#;
    let anthropic = r#"{"type":"message","stop_reason":"tool_use",
        "content":[{"type":"text","text":"Looking."},{"type":"tool_use","id":"c1","name":"run","input":{}}]}"#;
    for (dialect, body) in [
        (Dialect::OpenaiChat, chat_body(&chat).as_str()),
        (Dialect::OpenaiResponses, responses),
        (Dialect::Anthropic, anthropic),
    ] {
        assert_eq!(
            generated(dialect, body),
            Err(ReadFault::CalledTool("run".into()))
        );
        let called = read(dialect, Operation::UseTools, body.as_bytes(), None).unwrap();
        assert_eq!(called.calls[0].name, "run");
    }
}

fn chat_with(choice: &str) -> Result<Completion, ReadFault> {
    generated(Dialect::OpenaiChat, &chat_body(choice))
}

fn chat_body(choice: &str) -> String {
    format!(r#"{{"object":"chat.completion","choices":[{choice}]}}"#)
}

#[test]
fn compatible_servers_answer_in_their_own_ways() {
    let llama = r#"{"finish_reason":"stop","index":0,"message":{"role":"assistant","content":"<think>\nhm\n</think>\n\nblue"}}"#;
    assert_eq!(chat_with(llama).unwrap().text, "blue");
    let vllm = r#"{"finish_reason":"stop","stop_reason":null,"message":{"content":"blue","reasoning_content":"hm","tool_calls":[]}}"#;
    assert_eq!(chat_with(vllm).unwrap().text, "blue");
    let other = r#"{"finish_reason":"eos","message":{"content":"blue","reasoning":"hm"}}"#;
    assert_eq!(chat_with(other).unwrap().text, "blue");
    let usage = read_billing(Dialect::OpenaiChat, chat_body(other).as_bytes()).usage;
    assert_eq!((usage.input, usage.output), (None, None));
    let azure =
        r#"{"finish_reason":"stop","content_filter_results":{},"message":{"content":"blue"}}"#;
    assert_eq!(chat_with(azure).unwrap().text, "blue");
    let fenced = r#"{"finish_reason":"stop","message":{"content":"```json\n{}\n```"}}"#;
    assert_eq!(
        chat_with(fenced).unwrap().text,
        "```json\n{}\n```",
        "fences are the reader's business"
    );
}

#[test]
fn a_text_of_reasoning_alone_is_empty_in_every_dialect() {
    let chat = r#"{"choices":[{"finish_reason":"stop","message":{"content":"TEXT"}}]}"#;
    let responses = r#"{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"TEXT"}]}]}"#;
    let anthropic =
        r#"{"type":"message","stop_reason":"end_turn","content":[{"type":"text","text":"TEXT"}]}"#;
    for (dialect, body) in [
        (Dialect::OpenaiChat, chat),
        (Dialect::OpenaiResponses, responses),
        (Dialect::Anthropic, anthropic),
    ] {
        let with = |text: &str| generated(dialect, &body.replace("TEXT", text));
        assert_eq!(with(r"hm\n</think>\n\nblue").unwrap().text, "blue");
        for text in ["<think>hm</think>", r"hm\n</think>\n", "hm</think>"] {
            assert_eq!(with(text), Err(ReadFault::Empty), "{text}");
        }
    }
}

#[test]
fn half_a_character_does_not_cost_the_reply() {
    let cut = r#"{"finish_reason":"length","message":{"content":"blue \ud83d"}}"#;
    assert_eq!(chat_with(cut).unwrap().text, "blue \u{fffd}");
    let whole = r#"{"finish_reason":"stop","message":{"content":"blue \ud83d\ude00"}}"#;
    assert_eq!(chat_with(whole).unwrap().text, "blue \u{1f600}");
    let body = br#"{"choices":[],"usage":{"prompt_tokens":7},"note":"\udc00"}"#;
    assert_eq!(
        read_billing(Dialect::OpenaiChat, body).usage.input,
        Some(Tokens(7))
    );
}

#[test]
fn a_200_is_not_always_an_answer() {
    let router = r#"{"finish_reason":"error","message":{"content":""},"error":{"code":502,"message":"Provider disconnected"}}"#;
    assert_eq!(
        chat_with(router),
        Err(ReadFault::Upstream("Provider disconnected".into()))
    );
    let reasoned = r#"{"finish_reason":"length","message":{"content":""}}"#;
    assert_eq!(chat_with(reasoned), Err(ReadFault::Truncated));
    let error = r#"{"error":{"message":"model crashed","code":500}}"#;
    assert_eq!(
        generated(Dialect::OpenaiChat, error),
        Err(ReadFault::Upstream("model crashed".into()))
    );
    let incomplete =
        r#"{"status":"incomplete","incomplete_details":{"reason":"REASON"},"output":[]}"#;
    let with = |reason: &str| {
        generated(
            Dialect::OpenaiResponses,
            &incomplete.replace("REASON", reason),
        )
    };
    assert_eq!(with("max_output_tokens"), Err(ReadFault::Truncated));
    let said = r#"[{"type":"message","content":[{"type":"output_text","text":"It is"}]}]"#;
    let cut = incomplete
        .replace("REASON", "max_output_tokens")
        .replace("[]", said);
    assert!(
        generated(Dialect::OpenaiResponses, &cut)
            .is_ok_and(|cut| cut.truncated && cut.text == "It is")
    );
    let thought = r#"{"type":"message","content":[{"type":"thinking","thinking":"hm"}],"stop_reason":"max_tokens"}"#;
    assert_eq!(
        generated(Dialect::Anthropic, thought),
        Err(ReadFault::Truncated)
    );
    assert!(matches!(with("content_filter"), Err(ReadFault::Refused(_))));
    let refused = r#"{"status":"completed","output":[{"type":"message","content":[{"type":"refusal","refusal":"no"}]}]}"#;
    assert_eq!(
        generated(Dialect::OpenaiResponses, refused),
        Err(ReadFault::Refused(Some("no".into())))
    );
    let declined = r#"{"type":"message","content":[],"stop_reason":"refusal","stop_details":{"category":"bio","explanation":null}}"#;
    assert_eq!(
        generated(Dialect::Anthropic, declined),
        Err(ReadFault::Refused(Some("bio".into())))
    );
    let overloaded = r#"{"type":"error","error":{"type":"overloaded_error","message":"later"}}"#;
    assert_eq!(
        generated(Dialect::Anthropic, overloaded),
        Err(ReadFault::Upstream("later".into()))
    );
}

#[test]
fn what_the_built_in_rules_wrote_is_the_answer() {
    assert_eq!(generated(Dialect::Lexical, "[]").unwrap().text, "[]");
    let no_text = read(Dialect::Lexical, Operation::Generate, b"\xff", None);
    assert!(matches!(no_text, Err(ReadFault::Malformed(_))));
}

#[test]
fn no_body_is_too_odd_to_be_refused_in_words() {
    for dialect in [
        Dialect::OpenaiChat,
        Dialect::OpenaiResponses,
        Dialect::Anthropic,
    ] {
        for body in [
            "",
            "null",
            "[]",
            "{}",
            "7",
            "<html>",
            "{\"choices\":{}}",
            "{\"output\":7}",
            "{\"content\":\"x\"}",
            "\u{0}",
        ] {
            for operation in [
                Operation::Generate,
                Operation::Compact,
                Operation::Summarize,
            ] {
                let fault = read(dialect, operation, body.as_bytes(), None).unwrap_err();
                assert!(
                    matches!(fault, ReadFault::Malformed(_)),
                    "{dialect:?} {body}: {fault}"
                );
            }
        }
    }
}

#[test]
fn a_cut_prompt_is_noticed_and_a_short_or_unreported_one_is_not_judged() {
    let ollama = CHAT.replacen('{', "{\"system_fingerprint\":\"fp_ollama\",", 1);
    let sent = |body: &str, n| {
        read(
            Dialect::OpenaiChat,
            Operation::Generate,
            body.as_bytes(),
            Some(Tokens(n)),
        )
    };
    assert_eq!(
        sent(&ollama, 5000),
        Err(ReadFault::PromptCut {
            reported: 120,
            expected: 5000
        })
    );
    assert!(sent(&ollama, 500).is_ok() && sent(CHAT, 5000).is_ok());
    let silent = r#"{"choices":[{"finish_reason":"stop","message":{"content":"x"}}]}"#;
    assert!(
        compeval_models::read(
            Dialect::OpenaiChat,
            Operation::Generate,
            silent.as_bytes(),
            Some(Tokens(5000))
        )
        .is_ok()
    );
}

#[test]
fn usage_is_read_where_the_reply_is_no_answer() {
    let cut = CHAT.replace("\"stop\"", "\"length\"");
    assert!(generated(Dialect::OpenaiChat, &cut).is_ok_and(|completion| completion.truncated));
    assert_eq!(
        read_billing(Dialect::OpenaiChat, cut.as_bytes())
            .usage
            .output,
        Some(Tokens(30))
    );
    let odd = cut.replace("\"choices\":", "\"choices\":0,\"was\":");
    let billing = read_billing(Dialect::OpenaiChat, odd.as_bytes());
    assert_eq!(
        (billing.usage.output, billing.model.is_some()),
        (Some(Tokens(30)), true),
        "{odd}"
    );
    assert_eq!(
        read_billing(Dialect::Anthropic, b"<html>"),
        Billing::default()
    );
}

proptest::proptest! {
    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..64), cut in 0usize..300) {
        for dialect in [Dialect::OpenaiChat, Dialect::OpenaiResponses, Dialect::Anthropic] {
            proptest::prop_assert!(read(dialect, Operation::Generate, &bytes, None).is_err());
            for sample in [CHAT, RESPONSES, MESSAGES] {
                let broken = sample.as_bytes().get(..cut).unwrap_or_default();
                proptest::prop_assert!(read(dialect, Operation::Generate, broken, None).is_err());
            }
        }
    }
}
