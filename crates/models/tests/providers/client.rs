//! The client over real HTTP: what is retried, stored and reported.

use std::convert::Infallible;
use std::future::ready;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base::units::Tokens;
use compeval_models::{
    ApiKey, AskFailure, AttemptBudget, AttemptCost, Call, CallFailure, Client, Completion, Dialect,
    ErrorClass, Limits, ProviderSpec, RatesPerMinute, RawReply, RequestCounts, RetryPolicy,
    Unlimited, estimate,
};

use super::calls::{ask, spec};
use crate::simulator::{Scripted, Simulator, reply};

const KEY: &str = "sk-very-secret-0815";
/// The estimate of the shortest question.
const EXPECTED: (Tokens, Tokens) = (Tokens(1), Tokens(1024));

fn good() -> Scripted {
    Scripted::new(200, reply("/chat/completions", b"", "4711")).header("x-request-id", "req_7")
}

fn quick() -> RetryPolicy {
    let first_wait = Duration::from_micros(200);
    RetryPolicy {
        first_wait,
        longest_wait: Duration::from_millis(1),
        wait_budget: Duration::from_secs(60),
    }
}

fn client_of(spec: ProviderSpec) -> Client {
    Client::with_keys([Arc::new(spec)], |_| ApiKey::new(KEY)).with_retry_policy(quick())
}

fn client(simulator: &Simulator) -> Client {
    client_of(spec(
        Dialect::OpenaiChat,
        &format!("{}/v1", simulator.url()),
    ))
}

async fn asked(client: &Client, call: &Call) -> Result<(RawReply, Completion), CallFailure> {
    let keep = |_: &RawReply| ready(Ok::<(), Infallible>(()));
    client
        .ask(&"sim".into(), call, estimate(call), &Unlimited, keep)
        .await
        .map_err(|failure| match failure {
            AskFailure::Call(failure) => failure,
            AskFailure::Store(never) | AskFailure::OverBudget(never) => match never {},
            AskFailure::Cancelled => unreachable!("nothing is metered here"),
        })
}

/// Asks a provider that answers with `script`. Returns the outcome and the number of requests that arrived.
async fn ask_scripted(
    script: Vec<Scripted>,
) -> (Result<(RawReply, Completion), CallFailure>, usize) {
    let simulator = Simulator::scripted(script);
    let outcome = asked(&client(&simulator), &ask("q")).await;
    (outcome, simulator.seen().len())
}

#[tokio::test]
async fn an_answer_says_who_gave_it_and_how() {
    let (outcome, sent) = ask_scripted(vec![good()]).await;
    let (raw, completion) = outcome.unwrap();
    assert_eq!(
        (completion.text.as_str(), raw.model.as_deref(), sent),
        ("4711", Some("sim-1"), 1)
    );
    assert_eq!(
        (raw.request_id.as_deref(), raw.attempts),
        (Some("req_7"), 1)
    );
}

#[tokio::test]
async fn after_a_failure_that_may_pass_the_same_bytes_are_sent_again() {
    let broken = Scripted {
        broken_off: true,
        ..Scripted::new(200, "{\"choices\":[")
    };
    let upstream = r#"{"choices":[{"finish_reason":"error","message":{"content":""},"error":{"message":"gone"}}]}"#;
    let empty = r#"{"choices":[{"finish_reason":"stop","message":{"content":""}}]}"#;
    for spoiled in [
        Scripted::new(500, "<html>"),
        Scripted::new(502, ""),
        Scripted::new(529, "{}"),
        Scripted::new(408, ""),
        Scripted::new(429, "{}"),
        Scripted::new(429, "{}").header("retry-after-ms", "1"),
        Scripted::new(400, "{}").header("x-should-retry", "true"),
        Scripted::new(200, "<html>hello</html>"),
        Scripted::new(200, upstream),
        Scripted::new(200, empty),
        broken,
    ] {
        let simulator = Simulator::scripted([spoiled.clone(), good()]);
        let (raw, _) = asked(&client(&simulator), &ask("q"))
            .await
            .unwrap_or_else(|e| panic!("{e} after {spoiled:?}"));
        let seen = simulator.seen();
        assert_eq!((raw.attempts, seen.len()), (2, 2), "{spoiled:?}");
        assert_eq!(seen[0].body, seen[1].body);
    }
}

#[tokio::test]
async fn after_a_failure_that_cannot_pass_nothing_is_sent_again() {
    let refused = r#"{"choices":[{"finish_reason":"stop","message":{"content":null,"refusal":"I will not"}}]}"#;
    let cut = r#"{"choices":[{"finish_reason":"length","message":{"content":""}}]}"#;
    let quota = r#"{"error":{"message":"quota","code":"insufficient_quota"}}"#;
    for (reply, class) in [
        (Scripted::new(400, "{}"), ErrorClass::Invalid),
        (Scripted::new(401, "{}"), ErrorClass::Auth),
        (Scripted::new(404, "{}"), ErrorClass::NotFound),
        (Scripted::new(413, "{}"), ErrorClass::TooLong),
        (Scripted::new(429, quota), ErrorClass::Quota),
        (
            Scripted::new(500, "{}").header("x-should-retry", "false"),
            ErrorClass::Transient,
        ),
        (
            Scripted::new(307, "").header("location", "http://127.0.0.1:1/"),
            ErrorClass::Invalid,
        ),
        (Scripted::new(200, refused), ErrorClass::Refused),
        (Scripted::new(200, cut), ErrorClass::Truncated),
    ] {
        let (outcome, sent) = ask_scripted(vec![reply, good()]).await;
        let failure = outcome.unwrap_err();
        assert_eq!(
            (failure.class, failure.attempts, sent),
            (class, 1, 1),
            "{failure}"
        );
    }
}

#[tokio::test]
async fn a_model_that_always_times_out_is_given_up_while_another_works() {
    for (status, class) in [
        (504, ErrorClass::Failing),
        (530, ErrorClass::Failing),
        (409, ErrorClass::Failing),
        (503, ErrorClass::Overloaded),
    ] {
        let failures = (0..40).map(|_| Scripted::new(status, ""));
        let simulator = Simulator::scripted(std::iter::once(good()).chain(failures));
        let client = client(&simulator);
        asked(&client, &ask("q")).await.unwrap();
        let other = Call {
            model: "other".into(),
            ..ask("q")
        };
        let mut last = None;
        for _ in 0..3 {
            last = asked(&client, &other).await.err();
        }
        assert_eq!(last.map(|failure| failure.class), Some(class), "{status}");
    }
}

#[tokio::test]
async fn a_key_that_has_worked_is_not_blamed_for_a_403() {
    let denied = || Scripted::new(403, r#"{"error":"permission denied for this content"}"#);
    let unauthorized = Scripted::new(401, "{}");
    let simulator = Simulator::scripted([denied(), good(), denied(), unauthorized]);
    let client = client(&simulator);
    for class in [
        Some(ErrorClass::Auth),
        None,
        Some(ErrorClass::Invalid),
        Some(ErrorClass::Auth),
    ] {
        let failure = asked(&client, &ask("q")).await.err();
        assert_eq!(failure.map(|failure| failure.class), class);
    }
}

#[tokio::test]
async fn tokens_reserved_for_a_refused_request_are_returned_and_those_of_a_server_error_are_not() {
    let broken = Scripted::new(500, "{}").header("x-should-retry", "false");
    let refused = [400, 401, 404].map(|status| (Scripted::new(status, "{}"), true));
    for (failed, returns) in refused.into_iter().chain([(broken, false)]) {
        let simulator = Simulator::scripted([failed.clone(), good()]);
        let limits = Limits {
            rates: RatesPerMinute {
                tokens: Some(6000),
                ..RatesPerMinute::default()
            },
            max_in_flight: Some(64),
            ..Limits::default()
        };
        let client = client_of(ProviderSpec {
            limits,
            ..spec(Dialect::OpenaiChat, &format!("{}/v1", simulator.url()))
        });
        asked(&client, &ask("q")).await.unwrap_err();
        // What is reserved for one request is the limit of ten seconds.
        let next = tokio::time::timeout(Duration::from_secs(2), asked(&client, &ask("q"))).await;
        assert_eq!(
            next.is_ok_and(|answered| answered.is_ok()),
            returns,
            "{failed:?}"
        );
    }
}

#[tokio::test]
async fn attempts_are_bounded_and_the_last_failure_is_reported() {
    let error =
        || Scripted::new(500, r#"{"error":{"message":"oops"}}"#).header("x-request-id", "req_9");
    let (outcome, sent) = ask_scripted((0..9).map(|_| error()).collect()).await;
    let failure = outcome.unwrap_err();
    assert_eq!((failure.attempts, sent), (6, 6));
    assert_eq!(failure.message, "HTTP 500: oops (request req_9)");
}

#[tokio::test]
async fn an_empty_reply_that_is_paid_is_asked_for_three_times() {
    let empty = |output: u32| {
        let usage = format!(r#"{{"prompt_tokens":8,"completion_tokens":{output}}}"#);
        let choices = r#"[{"finish_reason":"stop","message":{"content":""}}]"#;
        Scripted::new(200, format!(r#"{{"choices":{choices},"usage":{usage}}}"#))
    };
    for (output, expected) in [(50, 3), (0, 6)] {
        let (outcome, sent) = ask_scripted((0..9).map(|_| empty(output)).collect()).await;
        let failure = outcome.unwrap_err();
        assert_eq!(
            (failure.class, failure.attempts, sent),
            (ErrorClass::Empty, expected, expected as usize)
        );
    }
}

#[tokio::test]
async fn a_provider_that_always_says_try_again_at_once_is_given_up() {
    for (status, header) in [
        (503, "retry-after"),
        (429, "retry-after-ms"),
        (529, "retry-after"),
    ] {
        let refusal =
            || Scripted::new(status, r#"{"error":{"message":"busy"}}"#).header(header, "0");
        let simulator =
            Simulator::scripted(std::iter::once(good()).chain((0..200).map(|_| refusal())));
        let policy = RetryPolicy {
            wait_budget: Duration::from_millis(300),
            ..RetryPolicy::default()
        };
        let mut spec = spec(Dialect::OpenaiChat, &format!("{}/v1", simulator.url()));
        spec.limits.max_attempts = 2;
        let client = client_of(spec).with_retry_policy(policy);
        asked(&client, &ask("q")).await.unwrap();
        asked(&client, &ask("q")).await.unwrap_err();
        assert!(
            simulator.seen().len() < 15,
            "{status}: {} requests",
            simulator.seen().len()
        );
    }
}

#[tokio::test]
async fn an_announced_wait_beyond_the_limit_ends_all_calls_with_a_message() {
    let last = good()
        .header("x-ratelimit-limit-requests", "10")
        .header("x-ratelimit-remaining-requests", "0")
        .header("x-ratelimit-reset-requests", "999999h");
    let simulator = Simulator::scripted(vec![last, good()]);
    let client = client(&simulator);
    asked(&client, &ask("q")).await.unwrap();
    for _ in 0..2 {
        let failure = asked(&client, &ask("q")).await.unwrap_err();
        assert_eq!(failure.class, ErrorClass::RateLimited);
        assert!(
            failure.message.contains("s, and a call waits 60 s at most"),
            "{failure}"
        );
    }
    assert_eq!(simulator.seen().len(), 1, "nothing is sent in vain");
}

#[tokio::test]
async fn every_successful_body_is_kept_before_it_is_read() {
    let simulator = Simulator::scripted([
        Scripted::new(500, "x"),
        Scripted::new(200, "not json"),
        good(),
    ]);
    let kept = Mutex::new(Vec::new());
    let keep = |reply: &RawReply| {
        kept.lock()
            .unwrap()
            .push(String::from_utf8(reply.body.to_vec()).unwrap());
        ready(Ok::<(), Infallible>(()))
    };
    assert!(
        client(&simulator)
            .ask(&"sim".into(), &ask("q"), EXPECTED, &Unlimited, keep)
            .await
            .is_ok()
    );
    let kept = kept.into_inner().unwrap();
    assert_eq!(kept.len(), 2);
    assert_eq!(kept[0], "not json");
}

#[tokio::test]
async fn a_reply_that_cannot_be_kept_ends_the_call() {
    let simulator = Simulator::scripted([good(), good()]);
    let outcome = client(&simulator)
        .ask(&"sim".into(), &ask("q"), EXPECTED, &Unlimited, |_| {
            ready(Err("disk full"))
        })
        .await;
    assert_eq!(outcome.err(), Some(AskFailure::Store("disk full")));
    assert_eq!(simulator.seen().len(), 1);
}

#[tokio::test]
async fn a_prompt_that_ollama_cut_fails_and_a_low_count_of_others_is_a_warning() {
    let body = r#"{"choices":[{"finish_reason":"stop","message":{"content":"?"}}],"usage":{"prompt_tokens":2048}}"#;
    let ollama = body.replacen('{', r#"{"system_fingerprint":"fp_ollama","#, 1);
    let simulator = Simulator::scripted([Scripted::new(200, ollama), Scripted::new(200, body)]);
    let call = ask(&"many words here ".repeat(3000));
    let failure = asked(&client(&simulator), &call).await.unwrap_err();
    assert_eq!(failure.class, ErrorClass::TooLong);
    assert!(failure.message.contains("2048"), "{failure}");
    let (reply, _) = asked(&client(&simulator), &call).await.unwrap();
    assert!(
        reply
            .usage_warning
            .is_some_and(|warning| warning.contains("far fewer prompt tokens"))
    );
}

#[tokio::test]
async fn a_hanging_request_times_out() {
    let slow = Scripted {
        latency: Duration::from_secs(60),
        ..good()
    };
    let simulator = Simulator::scripted([slow]);
    let mut spec = spec(Dialect::OpenaiChat, &simulator.url());
    spec.limits = Limits {
        timeout: Duration::from_millis(5),
        max_attempts: 1,
        ..Limits::default()
    };
    let failure = asked(&client_of(spec), &ask("q")).await.unwrap_err();
    assert_eq!(failure.class, ErrorClass::Transient);
    assert_eq!(failure.message, "no complete reply within 0.005 s");
}

#[tokio::test]
async fn a_closed_port_is_unreachable_and_an_address_without_scheme_invalid() {
    let closed = ClosedPort::new();
    let failure = asked(
        &client_of(spec(Dialect::OpenaiChat, &closed.url())),
        &ask("q"),
    )
    .await;
    let failure = failure.unwrap_err();
    assert_eq!(
        (failure.class, failure.attempts),
        (ErrorClass::Unreachable, 6)
    );
    assert!(failure.message.starts_with("cannot connect: "), "{failure}");
    let scheme = asked(
        &client_of(spec(Dialect::OpenaiChat, "localhost:1234/v1")),
        &ask("q"),
    )
    .await
    .unwrap_err();
    assert_eq!(
        (scheme.class, scheme.attempts),
        (ErrorClass::Invalid, 1),
        "{scheme}"
    );
}

/// A port that refuses connections. The socket holds it without listening, since the simulator of another test could get a
/// released port.
struct ClosedPort(tokio::net::TcpSocket);

impl ClosedPort {
    fn new() -> Self {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind(([127, 0, 0, 1], 0).into()).unwrap();
        Self(socket)
    }

    fn url(&self) -> String {
        format!("http://{}/v1", self.0.local_addr().unwrap())
    }
}

/// A budget that remembers how each attempt was billed.
#[derive(Default)]
struct Bills(Mutex<Vec<&'static str>>);

impl AttemptBudget for Bills {
    type Reservation = ();
    type Refusal = Infallible;

    fn reserve(&self) -> Result<(), Infallible> {
        Ok(())
    }

    fn settle(&self, (): (), cost: AttemptCost<'_>) {
        let name = match cost {
            AttemptCost::Free => "free",
            AttemptCost::Reported(..) => "reported",
            AttemptCost::Unknown => "unknown",
        };
        self.0.lock().unwrap().push(name);
    }

    fn release(&self, (): ()) {}

    async fn cancelled(&self) {
        std::future::pending().await
    }
}

/// A budget that cancels every wait after the first attempt.
struct OnceOnly(tokio::sync::watch::Sender<bool>);

impl AttemptBudget for OnceOnly {
    type Reservation = ();
    type Refusal = Infallible;

    fn reserve(&self) -> Result<(), Infallible> {
        Ok(())
    }

    fn settle(&self, (): (), _: AttemptCost<'_>) {
        self.0.send_replace(true);
    }

    fn release(&self, (): ()) {}

    async fn cancelled(&self) {
        let _ = self.0.subscribe().wait_for(|is_over| *is_over).await;
    }
}

#[tokio::test]
async fn a_cancelled_call_does_not_wait() {
    let keep = |_: &RawReply| ready(Ok::<(), Infallible>(()));
    let simulator =
        Simulator::scripted([Scripted::new(429, "").header("retry-after", "50"), good()]);
    let budget = OnceOnly(tokio::sync::watch::Sender::new(false));
    let asked = client(&simulator)
        .ask(&"sim".into(), &ask("q"), EXPECTED, &budget, keep)
        .await;
    assert_eq!(
        (asked.unwrap_err(), simulator.seen().len()),
        (AskFailure::Cancelled, 1)
    );
}

#[tokio::test]
async fn only_what_may_have_been_worked_on_is_billed() {
    let keep = |_: &RawReply| ready(Ok::<(), Infallible>(()));
    let broken = Scripted {
        broken_off: true,
        ..Scripted::new(200, "{")
    };
    let timed_out = Scripted::new(504, "");
    let simulator = Simulator::scripted([
        Scripted::new(503, ""),
        timed_out,
        broken,
        Scripted::new(200, "not json"),
        good(),
    ]);
    let bills = Bills::default();
    assert!(
        client(&simulator)
            .ask(&"sim".into(), &ask("q"), EXPECTED, &bills, keep)
            .await
            .is_ok()
    );
    assert_eq!(
        *bills.0.lock().unwrap(),
        ["free", "unknown", "unknown", "reported", "reported"]
    );

    let closed = ClosedPort::new();
    let bills = Bills::default();
    let away = client_of(spec(Dialect::OpenaiChat, &closed.url()));
    assert!(
        away.ask(&"sim".into(), &ask("q"), EXPECTED, &bills, keep)
            .await
            .is_err()
    );
    assert_eq!(
        *bills.0.lock().unwrap(),
        ["free"; 6],
        "a connection that is refused costs nothing"
    );
}

#[tokio::test]
async fn a_key_travels_in_its_header_and_nowhere_else() {
    let echo = format!(r#"{{"error":{{"message":"Incorrect API key provided: {KEY}"}}}}"#);
    for (dialect, header, value) in [
        (
            Dialect::OpenaiChat,
            "authorization",
            format!("Bearer {KEY}"),
        ),
        (
            Dialect::OpenaiResponses,
            "authorization",
            format!("Bearer {KEY}"),
        ),
        (Dialect::Anthropic, "x-api-key", KEY.to_owned()),
    ] {
        let simulator = Simulator::scripted([Scripted::new(401, echo.clone())]);
        let failure = asked(&client_of(spec(dialect, &simulator.url())), &ask("q"))
            .await
            .unwrap_err();
        assert!(!format!("{failure:?}").contains("secret"), "{failure:?}");
        let seen = &simulator.seen()[0];
        assert_eq!(seen.headers[header], value);
        assert!(
            !String::from_utf8_lossy(&seen.body).contains("secret") && !seen.uri.contains("secret")
        );
    }
}

#[tokio::test]
async fn a_successful_body_that_echoes_the_key_loses_it() {
    let simulator = Simulator::scripted([Scripted::new(
        200,
        reply("/chat/completions", b"", &format!("it is {KEY}!")),
    )]);
    let (raw, completion) = asked(&client(&simulator), &ask("q")).await.unwrap();
    assert_eq!(completion.text, format!("it is {}!", "*".repeat(KEY.len())));
    assert!(!String::from_utf8_lossy(&raw.body).contains("secret"));
}

#[tokio::test]
async fn a_missing_key_is_named_and_nothing_is_sent() {
    let simulator = Simulator::scripted([good()]);
    let client = Client::with_keys(
        [Arc::new(spec(Dialect::OpenaiChat, &simulator.url()))],
        |_| ApiKey::new(" "),
    );
    assert_eq!(
        client.missing_key(&"sim".into()).map(|v| &*v.0),
        Some("SIM_KEY")
    );
    let failure = asked(&client, &ask("q")).await.unwrap_err();
    assert_eq!(
        (failure.class, simulator.seen().len()),
        (ErrorClass::Auth, 0)
    );
    assert!(failure.message.contains("SIM_KEY"));
}

#[tokio::test]
async fn a_client_counts_what_happens() {
    let slow_down = Scripted::new(429, "{}").header("retry-after-ms", "1");
    let simulator = Simulator::scripted([slow_down, good()]);
    let counts = Arc::new(RequestCounts::default());
    let client = client(&simulator).with_counts(counts.clone());
    assert!(asked(&client, &ask("q")).await.is_ok());
    let counted = [&counts.sent, &counts.rate_limited, &counts.retries];
    assert_eq!(
        counted.map(|count| count.load(Ordering::Relaxed)),
        [2, 1, 1]
    );
}

#[tokio::test]
async fn a_proxy_that_knows_only_the_older_version_of_anthropics_api_is_asked_in_it() {
    let refusal = |message: &str| {
        let error = format!(r#"{{"type":"invalid_request_error","message":"{message}"}}"#);
        Scripted::new(400, format!(r#"{{"type":"error","error":{error}}}"#))
    };
    let answer = || Scripted::new(200, reply("/messages", b"", "4711"));
    let versions = async |script: Vec<Scripted>| {
        let simulator = Simulator::scripted(script);
        let spec = spec(Dialect::Anthropic, &format!("{}/v1", simulator.url()));
        let client = client_of(spec);
        let answered = [
            asked(&client, &ask("Which code?")).await.is_ok(),
            asked(&client, &ask("Which code?")).await.is_ok(),
        ];
        let versions = simulator.seen().into_iter().map(|seen| {
            let version = seen.headers["anthropic-version"].to_str().unwrap();
            version.to_owned()
        });
        (answered, versions.collect::<Vec<_>>())
    };
    let old = refusal("anthropic-version: 2026-10-21 is not a valid version");
    let (answered, seen) = versions(vec![old, answer(), answer()]).await;
    assert_eq!(answered, [true, true]);
    assert_eq!(seen, ["2026-10-21", "2023-06-01", "2023-06-01"]);
    for other in [
        "model: this version of the model is unknown",
        "messages: the version must not be empty",
        "max_tokens: not a valid value",
    ] {
        let (answered, seen) = versions(vec![refusal(other), answer()]).await;
        assert_eq!(answered, [false, true], "{other}");
        assert_eq!(seen, ["2026-10-21", "2026-10-21"], "{other}");
    }
}

#[tokio::test]
async fn azures_version_stays_in_the_address() {
    let simulator = Simulator::scripted([good()]);
    let url = format!(
        "{}/openai/deployments/d?api-version=2025-01-01",
        simulator.url()
    );
    assert!(
        asked(&client_of(spec(Dialect::OpenaiChat, &url)), &ask("q"))
            .await
            .is_ok()
    );
    assert_eq!(
        simulator.seen()[0].uri,
        "/openai/deployments/d/chat/completions?api-version=2025-01-01"
    );
}
