//! `compeval run`: runs the matrix, writes results, prints the summary.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use super::args::{Common, RunArgs, StageArg};
use super::console::{Console, Meaning};
use super::engine::{Orders, drive, used_providers};
use super::failure::{Exit, Failure};
use super::project::{Opening, open_project, open_store, tell_notices};
use super::record::Recorder;
use crate::action::Stage;
use crate::pipeline::Pipeline;
use crate::plan;
use crate::provider::{ClientEvent, ModelUse, Prices};
use crate::results::{Design, Label, Manifest, Outcome, ResultsFolder};
use crate::scheduler::{Allowance, Ended};
use crate::units::Usd;

/// Requests, retries and slow-downs, as the client tells them.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    pub(crate) sent: AtomicU64,
    pub(crate) retries: AtomicU64,
    pub(crate) rate_limited: AtomicU64,
}

impl Traffic {
    fn hear(&self, event: &ClientEvent) {
        let counter = match event {
            ClientEvent::Sent { .. } => &self.sent,
            ClientEvent::Retrying { .. } => &self.retries,
            ClientEvent::RateLimited { .. } => &self.rate_limited,
            ClientEvent::Answered { .. } | ClientEvent::Paused { .. } => return,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

impl StageArg {
    /// The stage it names.
    pub(crate) fn stage(self) -> Stage {
        match self {
            StageArg::Probes => Stage::Probes,
            StageArg::Compress => Stage::Compress,
            StageArg::Answer => Stage::Answer,
            StageArg::Judge => Stage::Judge,
        }
    }
}

pub(crate) fn run(common: &Common, args: &RunArgs, console: &Console) -> Result<Exit, Failure> {
    let opening = Opening { needs_keys: !args.offline, ..Opening::default() };
    let pipeline = open_project(common, &args.select, opening, console)?;
    let prices = Prices::new(pipeline.prices.clone());
    let allowance = allowance(args, &pipeline, &prices)?;
    let label = label(args)?;
    let orders = Orders {
        allowance,
        offline: args.offline,
        allow_weak_judge: args.allow_weak_judge,
        refresh: args.select.refresh.iter().map(|stage| stage.stage()).collect(),
        jobs: args.jobs,
    };
    let folder = ResultsFolder::of(&pipeline.results, &label);
    let store = open_store(&pipeline.cache, console)?;
    let (began, started) = (Instant::now(), jiff::Timestamp::now());
    let mut manifest = Manifest::begin(label.as_str(), &started.to_string(), Design::of(&pipeline));
    manifest.files = pipeline.sources.iter().map(|source| (source.path.clone(), source.digest)).collect();
    folder.write_manifest(&manifest)?;
    for source in &pipeline.sources {
        store.text(source.digest, &source.text);
    }
    for prompt in plan::prompts(&pipeline) {
        store.text(prompt.digest, prompt.text.unwrap_or_default());
    }
    let traffic = Arc::new(Traffic::default());
    let heard = traffic.clone();
    let mut recorder = Recorder::new(folder.begin_rows()?);
    let ended = drive(&pipeline, &store, &orders, move |event| heard.hear(event), &mut recorder)?;
    let exit = exit_of(&ended, &recorder, console);
    manifest.requests_sent = traffic.sent.load(Ordering::Relaxed);
    manifest.retries = traffic.retries.load(Ordering::Relaxed);
    manifest.rate_limited = traffic.rate_limited.load(Ordering::Relaxed);
    recorder.finish(&mut manifest)?;
    manifest.outcome = outcome_of(exit);
    manifest.ended = Some(jiff::Timestamp::now().to_string());
    manifest.wall_s = began.elapsed().as_secs_f64();
    folder.write_manifest(&manifest)?;
    store.sync()?;
    tell_notices(&store, console);
    Ok(exit)
}

fn label(args: &RunArgs) -> Result<Label, Failure> {
    match &args.select.label {
        Some(text) => Label::new(text).map_err(|error| Failure::input(error.to_string())),
        None => Ok(Label::of_time(jiff::Timestamp::now())),
    }
}

/// What may be spent. Money can be limited only where every price is known.
fn allowance(args: &RunArgs, pipeline: &Pipeline, prices: &Prices) -> Result<Allowance, Failure> {
    let Some(limit) = args.max_cost else { return Ok(Allowance { usd: None, requests: args.max_requests }) };
    if !limit.is_finite() || limit < 0.0 {
        return Err(Failure::input(format!("--max-cost {limit} is no amount of money: expected 0 or more")));
    }
    let unknown: Vec<String> = models(pipeline)
        .filter(|model| !model.is_lexical() && prices.price(&model.reference, crate::units::Tokens(0)).is_none())
        .map(|model| model.reference.to_string())
        .collect();
    if let Some(model) = unknown.first() {
        let message = format!("--max-cost cannot be kept: the price of `{model}` is not known");
        let hint = format!(
            "declare it in {}: [prices.\"{model}\"] with input and output in USD per million tokens",
            pipeline.file.display()
        );
        return Err(Failure::input(message).hinted(hint));
    }
    Ok(Allowance { usd: Some(Usd(limit)), requests: args.max_requests })
}

/// All models in use.
pub(crate) fn models(pipeline: &Pipeline) -> impl Iterator<Item = &ModelUse> {
    let compressors = pipeline.methods.iter().filter_map(|method| method.strategy.model());
    compressors
        .chain(pipeline.answerers.iter().map(|answerer| &answerer.model))
        .chain(pipeline.judges.iter().map(|judge| &judge.model))
}

/// How the run ended, in words and as an exit.
fn exit_of(ended: &Ended, recorder: &Recorder, console: &Console) -> Exit {
    let mut exit = Exit::Done;
    let mut say = |what: &str| console.tell(&format!("{} {what}", console.paint(Meaning::Warning, "stopped:")));
    if let Some(why) = &ended.hopeless {
        say(&format!("every further call would fail the same way: {why}"));
    }
    if let Some(reached) = ended.budget {
        say(&format!("{reached}; run again with a larger budget to go on where this ended"));
        exit = exit.and(Exit::Budget);
    }
    if ended.interrupted {
        say("interrupted; what was finished is kept, and running again goes on from there");
        exit = exit.and(Exit::Interrupted);
    }
    if !recorder.failures().is_empty() {
        exit = exit.and(Exit::Incomplete);
    } else if ended.held_back > 0 && exit == Exit::Done {
        exit = Exit::Pending;
    }
    exit
}

fn outcome_of(exit: Exit) -> Outcome {
    match exit {
        Exit::Done | Exit::Regression => Outcome::Complete,
        Exit::Budget => Outcome::Budget,
        Exit::Pending => Outcome::Pending,
        Exit::Interrupted => Outcome::Interrupted,
        Exit::Incomplete | Exit::Error | Exit::BadInput | Exit::EmptySelection => Outcome::Incomplete,
    }
}
