//! The cost of a chain, estimated only from the design: the sizes of the messages, and declared lengths. The cache has
//! better data, but it differs from part to part, and so would the assignment.

use crate::action::BuiltInStrategy;
use crate::compress::{Method, Strategy};
use crate::pipeline::{Chain, LoadedFixture, Matrix, Pipeline, PointIx, TailMode};
use models::ModelUse;
use sessions::transcript::estimate_tokens;

/// The fixed cost of a request, in input tokens: the round trip.
const CALL: u64 = 1000;
/// The cost of an output token, in input tokens: writing is about this much slower than reading, and this much more
/// expensive.
const OUTPUT: u64 = 5;
const QUESTION: u64 = 300;
const GRADING: u64 = 1500;
const SUMMARY: u64 = 900;
const ANSWER: u64 = 200;
const GRADES: u64 = 350;
/// A request costs this many times as much as a rule, or the built-in model, takes for the same texts.
const LOCAL: u64 = 100;

/// The sizes of a fixture in tokens.
pub(super) struct FixtureSizes {
    /// Tokens before each message; the last number is that of all messages.
    before: Vec<u64>,
}

impl FixtureSizes {
    pub(super) fn from_loaded(loaded: &LoadedFixture) -> FixtureSizes {
        let (mut before, mut all) = (vec![0], 0);
        for message in &loaded.fixture.messages {
            all += estimate_tokens(&message.countable_text()).0;
            before.push(all);
        }
        FixtureSizes { before }
    }

    fn between(&self, from: usize, to: usize) -> u64 {
        self.before[to].saturating_sub(self.before[from])
    }
}

/// The cost of all repetitions of a chain, in input tokens.
pub(super) fn chain_cost(
    pipeline: &Pipeline,
    matrix: &Matrix,
    chain: Chain,
    sizes: &FixtureSizes,
) -> u64 {
    let (loaded, method) = (
        pipeline.fixture(chain.fixture),
        pipeline.method(chain.method),
    );
    let runs = u64::from(matrix.runs().compress);
    let mut cost = 0;
    for cell in matrix.compressions(chain) {
        let until = loaded.end(cell.point);
        let all = sizes.between(loaded.fixture.start(), until);
        let span = match cell.point.0.checked_sub(1) {
            Some(before) => sizes.between(loaded.end(PointIx(before)), until),
            None => all,
        };
        let context = context_size(method, all);
        let compressions = if method.strategy.is_deterministic() {
            1
        } else {
            runs
        };
        cost += compressions * compression_cost(method, span, all, context);
        let tail = match pipeline.settings.tail {
            TailMode::Verbatim => sizes.between(until, loaded.fixture.messages.len()),
            TailMode::None => 0,
        };
        for answer in matrix.answers(cell) {
            cost += runs
                * call_cost(
                    &pipeline.answerer(answer.answerer).model,
                    context + tail + QUESTION,
                    ANSWER,
                );
            let shown = if pipeline.settings.judge_context {
                context
            } else {
                0
            };
            let judges: u64 = pipeline
                .judges
                .iter()
                .map(|judge| call_cost(&judge.model, shown + GRADING, GRADES))
                .sum();
            cost += runs * u64::from(matrix.runs().judge) * judges;
        }
    }
    cost
}

fn call_cost(model: &ModelUse, input: u64, output: u64) -> u64 {
    let cost = CALL + input + OUTPUT * reply_tokens(model, output);
    if model.is_asked() { cost } else { cost / LOCAL }
}

/// The usual length of a reply, unless a lower one is declared.
fn reply_tokens(model: &ModelUse, usual: u64) -> u64 {
    model
        .settings
        .max_output_tokens
        .map_or(usual, |most| most.0.min(usual))
}

fn compression_cost(method: &Method, span: u64, all: u64, context: u64) -> u64 {
    match (&method.strategy, method.strategy.model()) {
        (_, Some(model)) => call_cost(model, span + context, context),
        (Strategy::Command(_), None) => CALL + span + OUTPUT * context,
        (_, None) => all / LOCAL,
    }
}

/// The size of a context that replaces `all` tokens.
fn context_size(method: &Method, all: u64) -> u64 {
    let asked = method.target_tokens.map(|target| target.0);
    match &method.strategy {
        Strategy::Rule(BuiltInStrategy::Full) => all,
        Strategy::Rule(BuiltInStrategy::None) => 0,
        Strategy::Rule(_) => asked.unwrap_or(all / 2).min(all),
        strategy => asked.unwrap_or_else(|| {
            strategy
                .model()
                .map_or(SUMMARY, |model| reply_tokens(model, SUMMARY))
        }),
    }
}
