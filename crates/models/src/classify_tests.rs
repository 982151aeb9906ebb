use super::*;
use ErrorClass::{
    Auth, Invalid, NotFound, Overloaded, Quota, RateLimited, Refused, TooLong, Transient,
};

/// Status, body, class, and a part of the message.
const SHAPES: &[(u16, &str, ErrorClass, &str)] = &[
    (
        400,
        r#"{"error":{"message":"{'error': '/chat/completions: Invalid model name passed in model=gpt-x. Call `/v1/models` to view available models for your key.'}","type":"None","param":"None","code":"400"}}"#,
        NotFound,
        "Invalid model name",
    ),
    (
        400,
        r#"{"detail":"Unknown model: llama-9"}"#,
        NotFound,
        "Unknown model",
    ),
    (
        400,
        r#"{"error":{"message":"Model Not Exist","type":"invalid_request_error"}}"#,
        NotFound,
        "Model Not Exist",
    ),
    (
        400,
        r#"{"object":"error","message":"Invalid model: x","type":"invalid_model"}"#,
        NotFound,
        "Invalid model",
    ),
    (
        400,
        r#"{"error":{"message":"Not in this region","code":"model_not_available"}}"#,
        NotFound,
        "Not in this region",
    ),
    (
        400,
        r#"{"message":"The provided model identifier is invalid."}"#,
        NotFound,
        "identifier is invalid",
    ),
    (
        400,
        r#"{"error":{"message":"Budget has been exceeded!","type":"budget_exceeded"}}"#,
        Quota,
        "Budget has been",
    ),
    (
        429,
        r#"{"error":{"message":"No deployments available for selected model, Try again in 5 seconds.","code":"429"}}"#,
        RateLimited,
        "Try again in 5",
    ),
    (
        400,
        r#"{"message":"Malformed input request: expected maxLength: 100000, actual: 120000, please reformat your input and try again."}"#,
        TooLong,
        "expected maxLength",
    ),
    (
        400,
        r#"{"message":"The input or output tokens must be reduced in order to run successfully"}"#,
        TooLong,
        "must be reduced",
    ),
    (
        400,
        r#"{"message":"The prompt length 9000 > session_len 4096"}"#,
        TooLong,
        "session_len",
    ),
    (
        400,
        r#"{"error":{"message":"请求的文本长度超出限制"}}"#,
        TooLong,
        "超出限制",
    ),
    (
        500,
        r#"{"error_code":336007,"error_msg":"the max input characters is 11200"}"#,
        TooLong,
        "max input",
    ),
    (
        400,
        r#"{"status":{"code":"40003","message":"Text too long"},"result":null}"#,
        TooLong,
        "Text too long",
    ),
    (
        503,
        r#"{"detail":"Input too long"}"#,
        TooLong,
        "Input too long",
    ),
    (
        400,
        r#"{"error":{"message":"max is 8192","type":"invalid_request_error","code":"context_length_exceeded"}}"#,
        TooLong,
        "max is 8192",
    ),
    (
        400,
        r#"{"error":{"message":"bad value","param":"seed","code":"unsupported_value"}}"#,
        Invalid,
        "unsupported_value: bad value",
    ),
    (
        400,
        r#"{"error":{"message":"filtered","type":null,"code":"content_filter","innererror":{}}}"#,
        Refused,
        "filtered",
    ),
    (
        400,
        r#"{"error":{"message":"Invalid 'tools[3].function.description': string too long. Expected a string with maximum length 1024.","code":"string_above_max_length"}}"#,
        Invalid,
        "string too long",
    ),
    (
        400,
        r#"{"error":{"message":"Invalid 'messages[1].content': string too long. Expected a string with maximum length 10485760.","code":"string_above_max_length"}}"#,
        TooLong,
        "string too long",
    ),
    (
        401,
        r#"{"error":{"message":"wrong key","code":"invalid_api_key"}}"#,
        Auth,
        "wrong key",
    ),
    (
        403,
        r#"{"type":"error","error":{"type":"permission_error","message":"not yours"}}"#,
        Auth,
        "not yours",
    ),
    (
        404,
        r#"{"error":{"message":"no such model","code":"model_not_found"}}"#,
        NotFound,
        "no such model",
    ),
    (
        429,
        r#"{"error":{"message":"slow down","type":"tokens","code":"rate_limit_exceeded"}}"#,
        RateLimited,
        "slow down",
    ),
    (
        429,
        r#"{"error":{"message":"Request too large for gpt-x in organization org-1 on tokens per min (TPM): Limit 30000, Requested 34567. The input or output tokens must be reduced in order to run successfully.","type":"tokens","code":"rate_limit_exceeded"}}"#,
        Invalid,
        "Requested 34567",
    ),
    (
        429,
        r#"{"error":{"message":"quota","type":"insufficient_quota","code":"insufficient_quota"}}"#,
        Quota,
        "quota",
    ),
    (
        500,
        r#"{"error":{"message":"oops","type":"server_error"}}"#,
        Transient,
        "oops",
    ),
    (
        400,
        r#"{"error":{"message":"Failed to validate JSON. Please adjust your prompt.","type":"invalid_request_error","code":"json_validate_failed"}}"#,
        ErrorClass::Malformed,
        "Failed to validate",
    ),
    (
        402,
        r#"{"type":"error","error":{"type":"billing_error","message":"pay"}}"#,
        Quota,
        "pay",
    ),
    (
        409,
        r#"{"type":"error","error":{"type":"conflict_error","message":"busy"}}"#,
        Transient,
        "busy",
    ),
    (
        400,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 9 tokens > 8 maximum"}}"#,
        TooLong,
        "9 tokens > 8",
    ),
    (
        413,
        r#"{"type":"error","error":{"type":"request_too_large","message":"32 MB"}}"#,
        TooLong,
        "32 MB",
    ),
    (
        429,
        r#"{"type":"error","error":{"type":"rate_limit_error","message":"wait"}}"#,
        RateLimited,
        "wait",
    ),
    (
        429,
        r#"{"type":"error","error":{"type":"rate_limit_error","message":"cap","details":{"error_code":"enforced_spend_limit_reached"}}}"#,
        Quota,
        "cap",
    ),
    (
        400,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"x","details":{"error_code":"compaction_block_misplaced"}}}"#,
        Invalid,
        "compaction_block_misplaced",
    ),
    (
        529,
        r#"{"type":"error","error":{"type":"overloaded_error","message":"later"}}"#,
        Overloaded,
        "later",
    ),
    (
        529,
        r#"{"type":"error","error":{"type":"overloaded_error","message":"later","details":{"error_code":"compaction_unavailable"}}}"#,
        Overloaded,
        "later",
    ),
    (
        504,
        r#"{"type":"error","error":{"type":"timeout_error","message":"slow"}}"#,
        Transient,
        "slow",
    ),
    (
        400,
        r#"{"error":{"code":400,"message":"too big","type":"exceed_context_size_error","n_prompt_tokens":9000,"n_ctx":4096}}"#,
        TooLong,
        "too big",
    ),
    (
        503,
        r#"{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}"#,
        Overloaded,
        "Loading model",
    ),
    (
        400,
        r#"{"error":{"message":"This model's maximum context length is 8 tokens","type":"BadRequestError","code":400}}"#,
        TooLong,
        "maximum",
    ),
    (
        404,
        r#"{"error":"model 'x' not found"}"#,
        NotFound,
        "model 'x' not found",
    ),
    (
        402,
        r#"{"error":{"code":402,"message":"no credits"},"user_id":null}"#,
        Quota,
        "no credits",
    ),
    (
        429,
        r#"{"error":{"message":"limit","type":"throttling_error","code":"429"}}"#,
        RateLimited,
        "throttling_error: limit",
    ),
    (
        400,
        r#"[{"error":{"code":400,"message":"API key not valid.","status":"INVALID_ARGUMENT"}}]"#,
        Auth,
        "API key",
    ),
    (
        422,
        r#"{"detail":[{"loc":["body"],"msg":"field required"}]}"#,
        Invalid,
        "field required",
    ),
    (
        502,
        "<html><body>Bad Gateway</body></html>",
        Transient,
        "<html>",
    ),
    (524, "", Transient, "(empty body)"),
    (308, "", Invalid, "HTTP 308"),
    (408, "null", Transient, "HTTP 408"),
];

#[test]
fn every_documented_error_has_its_class_and_keeps_its_words() {
    for (status, body, class, words) in SHAPES {
        let fault = classify(*status, body.as_bytes());
        assert_eq!(fault.class, *class, "{status} {body}");
        assert!(fault.message.contains(words), "{}", fault.message);
    }
}

#[test]
fn reasons_to_slow_down_are_distinguished() {
    let throttle = |status, message: &str| {
        classify(
            status,
            format!(r#"{{"error":{{"message":"{message}"}}}}"#).as_bytes(),
        )
        .throttle
    };
    assert_eq!(throttle(429, "requests per minute"), Some(Throttle::Rate));
    assert_eq!(
        throttle(429, "Too many concurrent requests"),
        Some(Throttle::Concurrency)
    );
    assert_eq!(throttle(529, "later"), Some(Throttle::Overloaded));
    assert_eq!(throttle(500, "oops"), None);
}

#[test]
fn a_wait_may_stand_in_the_body() {
    let google =
        r#"{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","details":[{"retryDelay":"17s"}]}}"#;
    assert_eq!(
        classify(429, google.as_bytes()).wait,
        Some(Duration::from_secs(17))
    );
    for (message, millis) in [
        (
            "Rate limit reached for m. Please try again in 2.5s. Visit the page.",
            2500,
        ),
        ("You exceeded the quota. Please retry in 37.5s.", 37_500),
        ("Too many requests, retry after 1m30s", 90_000),
        ("Please try again in 800ms.", 800),
        ("Please try again in 7m12.5s.", 432_500),
        ("Please wait 20 seconds", 20_000),
        ("Please wait for 1 minute, then go on", 60_000),
        ("Try again in 5 seconds. Passed model=m", 5000),
        (
            "litellm: {\"details\": [{\"retryDelay\": \"37s\"}]}",
            37_000,
        ),
    ] {
        let body = json!({"error": {"message": message}}).to_string();
        let wait = classify(429, body.as_bytes()).wait;
        assert_eq!(wait, Some(Duration::from_millis(millis)), "{message}");
    }
    for innocent in [
        "Please wait, the model is loading",
        "We retry after 3 more attempts",
        "Try again in a new session of 20 seconds",
        "A limit of 20 seconds per request",
        "Please wait for 2 slots",
    ] {
        let body = json!({"error": {"message": innocent}}).to_string();
        assert_eq!(classify(429, body.as_bytes()).wait, None, "{innocent}");
    }
    let loading = r#"{"error":{"message":"Loading model","type":"unavailable_error"}}"#;
    assert!(classify(503, loading.as_bytes()).wait.is_some());
}

#[test]
fn the_window_is_named_where_the_server_names_it() {
    let body = r#"{"error":{"type":"exceed_context_size_error","message":"x","n_prompt_tokens":9000,"n_ctx":4096}}"#;
    assert!(
        classify(400, body.as_bytes())
            .hint
            .unwrap()
            .contains("9000 tokens, the window 4096")
    );
    let both = r#"{"error":{"message":"This model's maximum context length is 8192 tokens. However, you requested 9100 tokens (8100 in the messages, 1000 in the completion).","type":"BadRequestError","code":400}}"#;
    assert!(
        classify(400, both.as_bytes())
            .hint
            .unwrap()
            .contains("prompt and max_output_tokens")
    );
}

#[test]
fn a_request_larger_than_the_limit_of_a_minute_is_not_sent_again() {
    let body = r#"{"error":{"message":"Request too large for gpt-x on tokens per min (TPM): Limit 3, Requested 4.","type":"tokens","code":"rate_limit_exceeded"}}"#;
    for status in [413, 429] {
        let fault = classify(status, body.as_bytes());
        assert_eq!(
            (fault.class, fault.throttle),
            (ErrorClass::Invalid, None),
            "{status}"
        );
        assert!(
            !fault.is_retryable()
                && fault
                    .hint
                    .unwrap()
                    .contains("than the account may use a minute"),
            "{status}"
        );
    }
}

#[test]
fn the_providers_word_on_retrying_stands_above_the_status() {
    let mut fault = classify(500, b"");
    assert!(fault.is_retryable());
    fault.should_retry = Some(false);
    assert!(!fault.is_retryable());
    let mut auth = classify(401, b"");
    auth.should_retry = Some(true);
    assert!(!auth.is_retryable());
}

#[test]
fn an_error_in_a_200_counts_as_the_status_that_it_names() {
    let class = |body: &str| upstream(ReadFault::Upstream("no".into()), body.as_bytes()).class;
    for body in [
        r#"{"error":{"message":"quota","code":402}}"#,
        r#"{"error":{"message":"quota","code":"402"}}"#,
    ] {
        assert_eq!(class(body), ErrorClass::Quota, "{body}");
    }
    assert_eq!(
        class(r#"{"choices":[{"error":{"message":"quota","code":402}}]}"#),
        ErrorClass::Quota
    );
    let slow = upstream(
        ReadFault::Upstream("no".into()),
        br#"{"error":{"message":"slow down","code":429}}"#,
    );
    assert!(
        slow.class == ErrorClass::RateLimited && slow.throttle.is_none() && slow.is_retryable()
    );
    for body in [
        r#"{"error":{"message":"no"}}"#,
        r#"{"error":{"message":"no","code":7}}"#,
        "{}",
    ] {
        assert_eq!(class(body), ErrorClass::Transient, "{body}");
    }
    let fault = upstream(
        ReadFault::Upstream("no".into()),
        br#"{"error":{"message":"no","code":402}}"#,
    );
    assert!(
        !fault.is_retryable()
            && !fault.took_no_tokens()
            && fault.message.contains("answered with an error")
    );
}

#[test]
fn errors_that_gateways_wrap_are_read_as_those_behind_them() {
    for (status, body, class, words) in [
        (
            400,
            r#"{"error":"{\"error\":{\"message\":\"nine over eight\",\"code\":\"context_length_exceeded\"}}"}"#,
            TooLong,
            "nine over eight",
        ),
        (
            400,
            r#"{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"error\":{\"message\":\"prompt is too long: 9 tokens\"}}"}}}"#,
            TooLong,
            "prompt is too long",
        ),
        (
            400,
            r#"{"error":{"message":"litellm.BadRequestError: {\"error\":{\"code\":\"content_filter\",\"message\":\"m\"}}"}}"#,
            Refused,
            "litellm",
        ),
        (
            400,
            r#"[{"errors":[{"code":"insufficient_balance","message":"m"}]}]"#,
            Quota,
            "m",
        ),
        (
            400,
            r#"{"error":"insufficient_quota","message":"pay first"}"#,
            Quota,
            "pay first",
        ),
        (
            400,
            r#""{\"message\":\"Input is too long for requested model.\"}""#,
            TooLong,
            "too long",
        ),
        (
            403,
            r#"{"detail":{"code":"moderation_blocked","message":"no"}}"#,
            Refused,
            "no",
        ),
    ] {
        let fault = classify(status, body.as_bytes());
        assert_eq!(fault.class, class, "{status} {body}");
        assert!(fault.message.contains(words), "{}", fault.message);
    }
}

#[test]
fn the_words_of_more_servers_are_known() {
    for (status, class, messages) in [
        (
            400,
            Invalid,
            &[
                "stop up to 4 sequences; the list is limited to them",
                "The input image is beyond what this tool call may name",
                "Not enough tools are declared for this prompt",
                "top_p: more than one token source was given",
                "There are too many stop sequences in the prompt parameters",
                "max_tokens is above the allowed maximum",
                "max_tokens must be no more than 8192",
                "top_logprobs must be no more than 20",
                "stop sequences must be no more than 4",
                "The maximum tokens you requested exceeds the model limit of 4096. Try again with a maximum tokens value that is lower than 4096.",
                "`max_new_tokens` must be strictly positive and at most 8192",
                "Input should be greater than 0 (max_tokens)",
                "Input should be greater than 0 (top_k)",
                "tools.0.custom.input_schema: input schema exceeds the maximum allowed size",
            ][..],
        ),
        (
            400,
            TooLong,
            &[
                "Please reduce the length of the messages or completion. Current length is 9000 while limit is 8192",
                "Prompt contains 40000 tokens, too large for model with 32768 maximum context length",
                "This request has 9000 tokens, more than the 8192 that this model takes",
                "Requested tokens (5000) exceed context window of 4096",
                "Exceeded max_seq_len of 4096",
                "inference input too long",
                "The number of tokens in your request is above the allowed maximum",
                "Prompt is 9000 tokens, but the model only has room for 4096",
                "The context of 9000 is bigger than the configured n_ctx 4096",
                "Sum of input tokens and max_tokens should be smaller than 262144",
                "This model only supports prompts with up to 32768 tokens",
                "消息总长度超过限制",
                "number of input tokens must be no more than 8192, got 9000",
                "Input of 9000 tokens > limit 8192",
                "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4000 `inputs` tokens",
                "The number of tokens exceeds the model's maximum tokens of 4096",
                "Input should be shorter: it exceeds the context window",
                "入力が長すぎます",
            ],
        ),
        (
            400,
            Refused,
            &[
                "input new_sensitive",
                "The request was rejected because it was considered high risk",
                "Request blocked by content safety",
                "A jailbreak was detected",
            ],
        ),
        (
            403,
            Quota,
            &[
                "Not enough credits: please top up",
                "Your free trial has expired",
                "The account is in arrears",
                "Sorry, your account balance is insufficient",
                "Key limit exceeded (total limit). Manage it in the settings",
            ],
        ),
        (
            400,
            Auth,
            &["API key expired. Please renew it.", "Authentication failed"],
        ),
        (
            403,
            Auth,
            &[
                "Missing scopes: model.request",
                "Bearer Token has expired",
                "The security token included in the request is invalid.",
                "Your account may not balance loads",
            ],
        ),
        (
            400,
            NotFound,
            &[
                "Invocation of model ID anthropic.claude-sonnet-4 with on-demand throughput isn't supported. Retry with an inference profile.",
            ],
        ),
        (
            429,
            RateLimited,
            &[
                "Limited to 1000 API calls / minute",
                "No throughput is left",
            ],
        ),
        (
            429,
            Quota,
            &[
                "You have hit the limit of 200 requests in 24 hours",
                "No more requests today",
                "limit: 100000 tokens/day",
                "Weekly limit reached, resets Monday",
                "You are using a Trial key, which is limited to 1000 API calls / month.",
            ],
        ),
    ] {
        for message in messages {
            let body = json!({"error": {"message": message}}).to_string();
            assert_eq!(classify(status, body.as_bytes()).class, class, "{message}");
        }
    }
}

#[test]
fn a_403_about_a_text_is_no_verdict_on_the_key() {
    for (body, class) in [
        (
            r#"{"code":"The caller does not have permission to execute the specified operation","error":"Content violates usage guidelines. Team: 1f2e, API key ID: 9a8b, Failed check: SAFETY_CHECK_TYPE_BIO"}"#,
            Refused,
        ),
        (
            "<html><p>You don't have permission to access this resource.</p></html>",
            Invalid,
        ),
        (
            "\n<HTML><H1>Access Denied</H1> Your IP address: 1.2.3.4</HTML>",
            Invalid,
        ),
        (
            r#"{"error":"The caller does not have permission: API key ID: 9a8b"}"#,
            Auth,
        ),
        (
            r#"{"error":"Your account was suspended: it violates the usage guidelines"}"#,
            Auth,
        ),
        (
            r#"{"error":{"message":"Access denied: <key> may not be used here"}}"#,
            Auth,
        ),
    ] {
        assert_eq!(classify(403, body.as_bytes()).class, class, "{body}");
    }
    let page = "<html><title>401 Authorization Required</title></html>";
    assert_eq!(classify(401, page.as_bytes()).class, Auth);
}

#[test]
fn an_error_in_a_200_counts_as_the_word_that_it_has() {
    for (body, class) in [
        (r#"{"code":"InvalidApiKey","message":"no such key"}"#, Auth),
        (r#"{"error":"Rate limit exceeded, slow down"}"#, RateLimited),
        (
            r#"{"error":"Unexpected endpoint or method. (POST /chat/completions)"}"#,
            NotFound,
        ),
        (
            r#"{"base_resp":{"status_code":1004,"status_msg":"login fail: Please carry the API secret key"}}"#,
            Auth,
        ),
        (r#"{"error":"Unexpected end of the stream"}"#, Transient),
        (
            r#"{"status":"error","statusCode":402,"message":"m"}"#,
            Quota,
        ),
        (
            r#"{"base_resp":{"status_code":1008,"status_msg":"insufficient balance"}}"#,
            Quota,
        ),
        (
            r#"{"error":{"code":"model_not_found","message":"m"}}"#,
            NotFound,
        ),
        (
            r#"{"errors":[{"message":"The service is temporarily unavailable"}]}"#,
            Overloaded,
        ),
        (
            r#"{"error":{"message":"Invalid model output, retry"}}"#,
            Transient,
        ),
        (
            r#"{"error":{},"code":"rate_limit","message":"m"}"#,
            RateLimited,
        ),
        (
            r#"{"error":{"type":"context_length_exceeded","message":"m"}}"#,
            TooLong,
        ),
        (
            r#"{"error":"{\"code\":\"content_filter\",\"message\":\"m\"}"}"#,
            Refused,
        ),
    ] {
        let fault = upstream(ReadFault::Upstream("no".into()), body.as_bytes());
        assert_eq!(fault.class, class, "{body}");
    }
}
