//! `compeval check --ping`: the smallest request to each model that the pipeline names, which shows whether its server,
//! key and name are right before a run is paid for.

use std::cell::Cell;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use crate::cli::failure::Failure;
use crate::cli::format::{display_width, left, money};
use crate::cli::terminal::{Console, TextStyle};
use crate::evaluation::{runtime, stage_models};
use crate::pipeline::Pipeline;
use base::message::Role;
use base::units::{Tokens, Usd};
use models::{
    AskFailure, Call, Client, ModelUse, Operation, Prices, ProviderSpec, RawReply, RetryPolicy,
    Settings, Turn, Unlimited, estimate,
};

/// The limit of the reply, the lowest that every vendor accepts.
const REPLY: Tokens = Tokens(16);
/// How long a provider may let the one request wait.
const PATIENCE: Duration = Duration::from_secs(20);

/// The outcome of a request to a model.
#[derive(Debug, Serialize)]
pub(super) struct Ping {
    /// `provider/model`.
    model: String,
    pub(super) ok: bool,
    /// From sending to the last byte; null without a reply.
    seconds: Option<f64>,
    /// What it cost; null where the price is unknown.
    usd: Option<Usd>,
    /// Why there was no reply, and what to do.
    message: Option<String>,
}

/// Asks each model of the pipeline once, one after the other. The built-in rules are not asked.
pub(super) fn ping_models(pipeline: &Pipeline) -> Result<Vec<Ping>, Failure> {
    let generators = pipeline.generators.iter().map(|generator| &generator.model);
    let mut asked: Vec<&ModelUse> = Vec::new();
    for model in stage_models(pipeline)
        .chain(generators)
        .filter(|model| model.is_asked())
    {
        if !asked.iter().any(|known| known.reference == model.reference) {
            asked.push(model);
        }
    }
    let prices = Prices::new(pipeline.prices.clone());
    let runtime = runtime()?;
    Ok(asked
        .into_iter()
        .map(|model| runtime.block_on(ping(model, &prices)))
        .collect())
}

async fn ping(model: &ModelUse, prices: &Prices) -> Ping {
    let mut spec = ProviderSpec::clone(&model.provider);
    spec.limits.max_attempts = 1;
    spec.limits.timeout = spec.limits.timeout.min(PATIENCE);
    spec.limits.give_up_after = None;
    let policy = RetryPolicy {
        longest_wait: PATIENCE,
        wait_budget: PATIENCE,
        ..RetryPolicy::default()
    };
    let name = spec.name.clone();
    let client = Client::new([Arc::new(spec)]).with_retry_policy(policy);
    let call = smallest_call(model);
    let expected = estimate(&call);
    let replied = &Cell::new(None);
    let asked = client.ask(&name, &call, expected, &Unlimited, |reply: &RawReply| {
        let usd = prices.cost_in(reply.lane, &model.reference, &reply.usage);
        replied.set(Some((reply.latency.as_secs_f64(), usd)));
        async { Ok::<(), Infallible>(()) }
    });
    let asked = asked.await;
    let message = match (asked, replied.get()) {
        // A reply of so few tokens may be cut off before it says anything: it was a reply all the same.
        (Ok(_), _) | (Err(_), Some(_)) => None,
        (Err(AskFailure::Call(failure)), None) => Some(match failure.hint {
            Some(hint) => format!("{} ({hint})", failure.message),
            None => failure.message,
        }),
        (Err(other), None) => Some(other.to_string()),
    };
    let (seconds, usd) = replied.get().unzip();
    Ping {
        model: model.reference.to_string(),
        ok: message.is_none(),
        seconds,
        usd: usd.flatten(),
        message,
    }
}

/// Asks for one word, with the settings of the stage, so that a setting which the model rejects is found, too.
fn smallest_call(model: &ModelUse) -> Call {
    Call {
        model: model.reference.model.clone(),
        operation: Operation::Generate,
        turns: vec![Turn::Text {
            role: Role::User,
            text: "Reply with the word: ok".into(),
        }],
        instructions: None,
        settings: Settings {
            max_output_tokens: Some(REPLY),
            ..model.settings.clone()
        },
        schema: None,
        tools: None,
        lane: model.lane.for_single_request(),
        prefix_uses: 1,
    }
}

/// A line for each model.
pub(super) fn print(pings: &[Ping], console: &Console) {
    if pings.is_empty() {
        return console.note("No model to ask: the built-in rules answer.");
    }
    let width = pings
        .iter()
        .map(|ping| display_width(&ping.model))
        .max()
        .unwrap_or(0);
    for ping in pings {
        console.print(&format!(
            "{}  {}",
            left(&ping.model, width),
            ping.outcome(console)
        ));
    }
}

/// A line for each model that did not reply, also with `--quiet`.
pub(super) fn print_failed(pings: &[Ping], console: &Console) {
    for ping in pings.iter().filter(|ping| !ping.ok) {
        console.eprint(&format!("{}  {}", ping.model, ping.outcome(console)));
    }
}

impl Ping {
    /// What came of it, in words.
    fn outcome(&self, console: &Console) -> String {
        let Ping {
            ok,
            seconds,
            usd,
            message,
            ..
        } = self;
        match ok {
            true => {
                let price = if usd.is_some() {
                    money(*usd)
                } else {
                    "its price is unknown".to_owned()
                };
                let time = seconds
                    .map(|seconds| format!("{seconds:.1} s, "))
                    .unwrap_or_default();
                format!("{}  {time}{price}", console.paint(TextStyle::Good, "ok"))
            }
            false => {
                let why = message.as_deref().unwrap_or("no reply");
                format!("{}  {why}", console.paint(TextStyle::Bad, "failed"))
            }
        }
    }
}
