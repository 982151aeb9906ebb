//! A crowd of calls against a provider with faults and limits of its own.

use std::convert::Infallible;
use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use compeval_models::{
    ApiKey, Client, Dialect, ProviderSpec, RawReply, RetryPolicy, Unlimited, estimate,
};
use futures::StreamExt;

use super::calls::{ask, spec};
use crate::simulator::limited::{Limit, ProviderLimit, Rule};
use crate::simulator::{Scenario, Simulator, Style};

fn client(spec: ProviderSpec) -> Client {
    let first_wait = Duration::from_micros(500);
    let policy = RetryPolicy {
        first_wait,
        longest_wait: Duration::from_millis(4),
        wait_budget: Duration::from_secs(60),
    };
    Client::with_keys([Arc::new(spec)], |_| ApiKey::new("sk-none-of-them"))
        .with_retry_policy(policy)
}

/// Asks `count` different questions, as many at once as the client allows. Returns how many failed.
async fn failures(client: &Client, count: usize) -> usize {
    let fails = async |index: usize| {
        let call = ask(&format!("question {index}"));
        let keep = |_: &RawReply| ready(Ok::<(), Infallible>(()));
        client
            .ask(&"sim".into(), &call, estimate(&call), &Unlimited, keep)
            .await
            .is_err()
    };
    let outcomes = futures::stream::iter((0..count).map(fails)).buffer_unordered(count);
    outcomes.filter(|failed| ready(*failed)).count().await
}

#[tokio::test]
async fn faults_leave_no_call_unanswered_and_no_answer_asked_for_twice() {
    for dialect in [
        Dialect::OpenaiChat,
        Dialect::OpenaiResponses,
        Dialect::Anthropic,
    ] {
        let simulator = Simulator::start(Scenario {
            server_errors: 0.1,
            malformed: 0.05,
            seed: 7,
            ..Scenario::default()
        });
        let client = client(spec(dialect, &simulator.url()));
        assert_eq!(failures(&client, 300).await, 0, "{dialect:?}");
        let counts = simulator.counts();
        assert_eq!(
            (counts.answered, counts.answered_again),
            (300, 0),
            "{dialect:?}"
        );
        assert!(counts.requests > 320, "some were repeated: {counts:?}");
    }
}

#[tokio::test]
async fn no_more_requests_are_in_flight_than_the_user_declared() {
    let simulator = Simulator::start(Scenario {
        latency: Duration::from_millis(2),
        ..Scenario::default()
    });
    let mut spec = spec(Dialect::OpenaiChat, &simulator.url());
    spec.limits.max_in_flight = Some(5);
    assert_eq!(failures(&client(spec), 40).await, 0);
    assert_eq!(simulator.counts().most_in_flight, 5);
}

#[tokio::test]
async fn a_provider_that_refuses_without_naming_a_limit_answers_every_call() {
    let limit = ProviderLimit::requests(Limit::new(Rule::Bucket(1000.0, 20.0)));
    let limited = Scenario {
        limits: vec![limit],
        ..Scenario::default()
    };
    let simulator = Simulator::start(limited);
    assert_eq!(
        failures(&client(spec(Dialect::OpenaiChat, &simulator.url())), 100).await,
        0
    );
    assert_eq!(simulator.counts().answered, 100);
}

#[tokio::test]
async fn calls_wait_for_a_provider_that_comes_back() {
    let simulator = Simulator::start(Scenario {
        style: Style::OpenAi,
        ..Scenario::default()
    });
    let client = client(spec(Dialect::OpenaiChat, &simulator.url()));
    assert_eq!(failures(&client, 1).await, 0);
    simulator.set_away(true);
    // While the provider is away, more requests reach it than there are calls.
    let returns = async {
        while simulator.counts().requests < 1 + 20 + 5 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        simulator.set_away(false);
    };
    let (failed, ()) = tokio::join!(failures(&client, 20), returns);
    assert_eq!(failed, 0);
}
