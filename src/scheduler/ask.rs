//! Asking a model: the request is put together, sent until its reply keeps the contract of its stage, and kept.

use std::cell::Cell;
use std::time::Instant;

use bytes::Bytes;

use super::budget::BudgetLease;
use super::doors::Doors;
use super::errand::Errand;
use super::perform::{Fresh, NoOutput, Performer, Raw};
use super::shelf::OutputUnavailable;
use crate::action::{Digest, Request, RequestTurn};
use crate::answer;
use crate::cache::{Lookup, Status};
use crate::plan::Action;
use crate::provider::{
    AskFailure, Call, CallFailure, Dialect, ErrorClass, ModelRef, RawReply, Turn, context_window, estimate,
    longest_reply,
};
use crate::results::Blame;
use crate::transcript::Message;
use crate::units::Tokens;

/// Splits a text where dialects join turns of one speaker again: at the last blank line of what requests share, its
/// first `shared` bytes. A provider's prompt cache ends at a turn.
fn at_paragraph(text: &str, shared: usize) -> (Option<&str>, &str) {
    const BLANK_LINE: &str = "\n\n";
    let end = text.get(..shared).filter(|shared| shared.len() < text.len()).and_then(|text| text.rfind(BLANK_LINE));
    match end.map(|end| (&text[..end], &text[end + BLANK_LINE.len()..])) {
        Some((before, after)) if !before.trim().is_empty() => (Some(before), after),
        _ => (None, text),
    }
}

impl Performer<'_> {
    /// Asks a model, again if its reply breaks the contract of the stage.
    pub(super) async fn ask(
        &self,
        errand: &Errand,
        action: &Action,
        request: &Request,
        doors: &Doors,
    ) -> Result<Fresh, NoOutput> {
        let call = self.call(errand, action, request)?;
        let model = ModelRef { provider: request.provider.clone(), model: request.model.clone() };
        let expected @ (input, _) = estimate(&call);
        self.fits_window(errand, action, &model, input)?;
        let tokens = (input, self.longest_reply(&model, &call));
        let lease = BudgetLease::new(self.budget, self.prices, &model, tokens).behind(doors, request);
        let mut attempt = 1;
        loop {
            let kept = &Cell::new(None);
            let keep = |reply: &RawReply| {
                let raw = self.raw_of(&model, reply);
                async move { self.keep(errand, action, &raw).await.map(|record| kept.set(Some(record))) }
            };
            let asked = self.client.ask(&request.provider, &call, expected, &lease, keep).await;
            let completion = match asked {
                Ok((_, completion)) => completion,
                Err(AskFailure::Store(error)) => return Err(error.into()),
                Err(AskFailure::BudgetExhausted) => return Err(NoOutput::OverBudget(lease.word())),
                Err(AskFailure::Cancelled) => return Err(NoOutput::CalledOff),
                Err(AskFailure::Call(failure)) => {
                    return Err(self.call_failed(errand, action, (request, doors), failure).await);
                }
            };
            match errand.read_reply(&self.preparer, &completion) {
                Ok(output) => {
                    self.outputs.note_model(errand.requested_model(action), completion.model);
                    let cost = self.prices.cost(&model, &completion.usage);
                    return Ok(self.fresh(kept.take(), completion.usage, cost, output));
                }
                Err(fault) => {
                    self.note_unreadable(kept.take(), &fault.to_string());
                    if attempt >= errand.attempts {
                        let message = format!("{fault} ({attempt} replies)");
                        return Err(self.failure(errand, action, errand.blame_for(&fault), None, message, None).into());
                    }
                    attempt += 1;
                }
            }
        }
    }

    /// Refuses early what the model's window cannot hold.
    fn fits_window(&self, errand: &Errand, action: &Action, model: &ModelRef, input: Tokens) -> Result<(), NoOutput> {
        let provider = self.preparer.pipeline().providers.get(&model.provider);
        match provider.and_then(|provider| context_window(provider, &model.model)) {
            Some(window) if input > window => {
                let message =
                    format!("about {} tokens are to be sent, and {model} takes {} at most", input.0, window.0);
                let hint = "compress harder, move the point, or use a model with a larger window".to_owned();
                Err(self.failure(errand, action, Blame::Method, Some(ErrorClass::TooLong), message, Some(hint)).into())
            }
            _ => Ok(()),
        }
    }

    /// The tokens that the reply to a call takes at most.
    fn longest_reply(&self, model: &ModelRef, call: &Call) -> Tokens {
        let provider = self.preparer.pipeline().providers.get(&model.provider);
        let dialect = provider.map_or(Dialect::OpenaiChat, |provider| provider.dialect);
        longest_reply(dialect, &model.model, call.settings.max_output_tokens)
    }

    fn call(&self, errand: &Errand, action: &Action, request: &Request) -> Result<Call, NoOutput> {
        let resolve = |digest: &Digest| errand.resolve(self.outputs, digest);
        let output_unavailable = |error: OutputUnavailable| self.output_unavailable(errand, action, &error);
        let mut turns = Vec::new();
        for turn in &request.turns {
            let turn = match turn {
                RequestTurn::Text(role, prompt) => {
                    let (text, shared) = prompt.text_until(answer::QUESTION, &resolve).map_err(output_unavailable)?;
                    let (shared, own) = at_paragraph(&text, shared);
                    turns.extend(shared.map(|text| Turn::Text { role: *role, text: text.into() }));
                    Turn::Text { role: *role, text: own.into() }
                }
                RequestTurn::Items(material) => Turn::Items(material.text(&resolve).map_err(output_unavailable)?),
                RequestTurn::Messages(material) => {
                    let json = material.text(&resolve).map_err(output_unavailable)?;
                    let messages: Vec<Message> = serde_json::from_str(&json).map_err(|e| {
                        let message = format!("the messages cannot be read: {e}");
                        self.failure(errand, action, Blame::Infrastructure, None, message, None)
                    })?;
                    Turn::Messages(messages.into())
                }
            };
            turns.push(turn);
        }
        let instructions = match &request.instructions {
            Some(prompt) => Some(prompt.text(&resolve).map_err(output_unavailable)?),
            None => None,
        };
        Ok(Call {
            model: request.model.clone(),
            operation: request.operation,
            turns,
            instructions,
            settings: request.settings.clone(),
            schema: request.schema.as_ref().map(|shape| shape.schema().clone()),
        })
    }

    fn raw_of(&self, model: &ModelRef, reply: &RawReply) -> Raw {
        let usage = reply.usage;
        Raw {
            body: reply.body.clone(),
            dialect: Some(reply.dialect),
            model: reply.model.clone(),
            usage,
            cost: self.prices.cost(model, &usage),
            latency_ms: u64::try_from(reply.latency.as_millis()).unwrap_or(u64::MAX),
            attempts: reply.attempts,
            request_id: reply.request_id.clone(),
        }
    }

    async fn call_failed(
        &self,
        errand: &Errand,
        action: &Action,
        (request, doors): (&Request, &Doors),
        failure: CallFailure,
    ) -> NoOutput {
        // A reply that arrived and is no answer stays to be looked at. Read by itself it might pass for one: that its
        // prompt was cut, for one, shows only beside the request.
        let kept = self.store.find(&action.key).filter(|record| record.status == Status::Unread);
        self.note_unreadable(kept, &failure.message);
        let mut raw = Raw::local(Bytes::new(), None, Instant::now());
        (raw.attempts, raw.cost) = (failure.attempts, None);
        let CallFailure { class, message, hint, .. } = failure;
        let blame = if class == ErrorClass::TooLong { Blame::Method } else { Blame::Infrastructure };
        let failure = self.failure(errand, action, blame, Some(class), message, hint);
        // before anything is waited for: what waits for its turn would fail alike
        doors.note(request, &failure);
        let meta = self.meta(errand, action, &raw);
        match self.store.fail(action.key, &meta, class.name(), &failure.message).await {
            Ok(_) => failure.into(),
            Err(error) => error.into(),
        }
    }
}
