//! Sizes of the contexts that rules make. A rule needs no request, so a forecast applies it, and knows what answers and
//! judges will read.

use std::collections::HashMap;

use super::prepare::Action;
use crate::action::{ActionKey, Computation, InputValue, Work};
use crate::compress::{self, MethodName};
use crate::pipeline::Pipeline;
use base::tokens::count_tokens;
use sessions::transcript::Message;

/// The most times that a forecast applies rules. In a larger matrix, the mean of a method stands for its other
/// contexts.
const MOST_APPLIED: usize = 100;

/// The contexts that were made so far.
#[derive(Debug, Default)]
pub(super) struct RuleContexts {
    tokens: HashMap<ActionKey, f64>,
    /// The number of contexts of a method, and their tokens.
    sums: HashMap<MethodName, (f64, f64)>,
}

impl RuleContexts {
    /// Tokens of the context of an action; `None` if no rule makes it, or the rule has none for these messages.
    pub(super) fn tokens(&mut self, action: &Action, pipeline: &Pipeline) -> Option<f64> {
        if let Some(known) = self.tokens.get(&action.key) {
            return Some(*known);
        }
        let Work::Compute(computation) = &action.work else {
            return None;
        };
        let method = &action.task.method(pipeline)?.name;
        if self.tokens.len() >= MOST_APPLIED {
            return self
                .sums
                .get(method)
                .map(|(contexts, tokens)| tokens / contexts);
        }
        let tokens = apply(computation)?;
        self.tokens.insert(action.key, tokens);
        let (contexts, sum) = self.sums.entry(method.clone()).or_default();
        (*contexts, *sum) = (*contexts + 1.0, *sum + tokens);
        Some(tokens)
    }
}

fn apply(computation: &Computation) -> Option<f64> {
    let Computation::Strategy {
        rule,
        messages: InputValue::Text(_, json),
        target_tokens,
    } = computation
    else {
        return None;
    };
    let messages: Vec<Message> = serde_json::from_str(json).ok()?;
    let context = compress::compute(*rule, *target_tokens, &messages, &count_tokens).ok()?;
    let context: Vec<Message> = serde_json::from_slice(&context).ok()?;
    Some(
        context
            .iter()
            .map(|message| count_tokens(&message.countable_text()).0 as f64)
            .sum(),
    )
}
