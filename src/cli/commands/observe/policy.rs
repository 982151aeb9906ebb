//! The flags of `observe --economics`: which policies of compaction are simulated, and at which prices.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::cli::args::Common;
use crate::cli::failure::Failure;
use crate::cli::project::given;
use crate::results::{ContextRow, names};
use base::fault::nearest;
use base::files::read_text;
use base::units::Tokens;
use models::{ModelRef, Price, Prices, known_models, listed_window};
use sessions::economics::{
    CompactionMethod, MeasuredContext, ModelPrice, PolicySettings, Rates, Trigger, measured_methods,
};

const ECONOMICS: &str = "Economics";

#[derive(Debug, Args)]
pub(crate) struct PolicyArgs {
    /// Show what the sessions cost, and what they would have cost if they had been compacted at other sizes
    #[arg(long, help_heading = ECONOMICS)]
    pub(crate) economics: bool,
    /// Also simulate the methods of a result set: its folder, or its contexts.jsonl
    #[arg(long, value_name = "PATH", requires = "economics", help_heading = ECONOMICS)]
    contexts: Option<PathBuf>,
    /// Also give the cost at this trigger: tokens (120000, 120k), or a share of the model's window (80%)
    #[arg(long, value_name = "SIZE", value_parser = trigger, requires = "economics", help_heading = ECONOMICS)]
    trigger: Option<Trigger>,
    /// Keep the newest TOKENS as they are at each simulated compaction [default: what the method keeps]
    #[arg(long, value_name = "TOKENS", value_parser = tokens, requires = "economics", help_heading = ECONOMICS)]
    keep_tail: Option<u64>,
    /// The instruction to compact stands before the history, so that the prompt cache does not serve the history to it
    #[arg(long, requires = "economics", help_heading = ECONOMICS)]
    instruction_first: bool,
    /// The provider keeps a prefix for MINUTES after its last use [default: 5, or 60 where the log says so]
    #[arg(long, value_name = "MINUTES", value_parser = minutes, requires = "economics", help_heading = ECONOMICS)]
    cache_minutes: Option<f64>,
    /// Price models that are not in the price list as this one, PROVIDER/MODEL or a model's name
    #[arg(long, value_name = "MODEL", value_parser = listed_model, requires = "economics", help_heading = ECONOMICS)]
    price_as: Option<ModelRef>,
}

impl PolicyArgs {
    pub(super) fn settings(&self) -> PolicySettings {
        PolicySettings {
            trigger: self.trigger,
            tail: self.keep_tail.unwrap_or(0),
            instruction_first: self.instruction_first,
            lifetime: self.cache_minutes.map(|minutes| 60.0 * minutes),
        }
    }

    /// The methods of the result set that is named.
    pub(super) fn methods(&self, common: &Common) -> Result<Vec<CompactionMethod>, Failure> {
        let Some(path) = &self.contexts else {
            return Ok(Vec::new());
        };
        let path = given(common, path);
        let file = if path.is_dir() {
            path.join(names::CONTEXTS)
        } else {
            path
        };
        let contexts = contexts_in(&file)?;
        let methods = measured_methods(&contexts);
        if methods.is_empty() {
            let hint = "run the project first; a folder of results has it beside cells.jsonl";
            return Err(Failure::input(format!(
                "there is no compression with a size in `{}`",
                file.display()
            ))
            .hinted(hint));
        }
        Ok(methods)
    }

    /// The price of a model that a log names.
    pub(super) fn price_of(&self, model: &str) -> Option<ModelPrice> {
        let listed = priced_model(model)
            .ok()
            .and_then(|model| model_price(&model));
        listed.or_else(|| model_price(self.price_as.as_ref()?))
    }
}

fn contexts_in(file: &Path) -> Result<Vec<MeasuredContext>, Failure> {
    let hint = "name the folder of a result set, such as results/LABEL, or its contexts.jsonl";
    let text = read_text(file).map_err(|error| Failure::input(error.to_string()).hinted(hint))?;
    let mut contexts = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let row: ContextRow = serde_json::from_str(line).map_err(|error| {
            let place = format!("{}:{}", file.display(), at + 1);
            Failure::input(format!(
                "{place}: expected one compression of a result set, found no such line: {error}"
            ))
            .hinted(hint)
        })?;
        // A method that kept everything compresses nothing at this size.
        let Some(tokens) = row.tokens.filter(|_| row.compressed) else {
            continue;
        };
        contexts.push(MeasuredContext {
            method: row.method,
            chain: format!("{} {}", row.run, row.fixture),
            point: row.point,
            replaced: row.replaced_tokens,
            tokens,
            seconds: row.seconds,
            usd: row.usd,
            calls: row.calls,
        });
    }
    Ok(contexts)
}

fn model_price(model: &ModelRef) -> Option<ModelPrice> {
    let prices = Prices::default();
    Some(ModelPrice {
        rates: rates_of(prices.price(model, Tokens(0))?),
        long: prices
            .long_request(model)
            .map(|(above, price)| (above.0, rates_of(price))),
        window: listed_window(&model.model).map(|window| window.0),
    })
}

fn rates_of(price: Price) -> Rates {
    Rates {
        input: price.input,
        read: price.cached_input.unwrap_or(price.input),
        write: price.cache_write.unwrap_or(price.input),
        write_hour: price.hour_write(),
        output: price.output,
    }
}

/// A model that has a price. Another one would price nothing, and the output would advise to name one.
fn listed_model(text: &str) -> Result<ModelRef, String> {
    let model = priced_model(text)?;
    if model_price(&model).is_some() {
        return Ok(model);
    }
    let known: Vec<String> = known_models().collect();
    let names: Vec<&str> = known
        .iter()
        .filter_map(|name| Some(name.split_once('/')?.1))
        .collect();
    let near = nearest(&model.model.0, &names).unwrap_or("claude-opus-4-6");
    Err(format!(
        "expected a model of the price list, such as {near}"
    ))
}

/// The price list knows models by their names alone.
fn priced_model(text: &str) -> Result<ModelRef, String> {
    let model = ModelRef::parse(text).or_else(|| ModelRef::parse(&format!("any/{text}")));
    model.ok_or_else(|| "expected a model, such as anthropic/claude-opus-4-6".to_owned())
}

fn trigger(text: &str) -> Result<Trigger, String> {
    let trigger = match text.strip_suffix('%') {
        None => tokens(text).ok().map(Trigger::Tokens),
        Some(percent) => {
            let share: Option<f64> = percent.trim().parse().ok();
            let share = share.filter(|share| *share > 0.0 && *share <= 100.0);
            share.map(|share| Trigger::Share(share / 100.0))
        }
    };
    trigger.ok_or_else(|| {
        "expected tokens, such as 120000 or 120k, or a share of the window, such as 80%".to_owned()
    })
}

fn tokens(text: &str) -> Result<u64, String> {
    let (digits, times) = text
        .strip_suffix(['k', 'K'])
        .map_or((text, 1), |digits| (digits, 1000));
    let number: Option<u64> = digits.trim().parse().ok().filter(|number| *number > 0);
    let number = number.and_then(|number| number.checked_mul(times));
    number.ok_or_else(|| "expected a number of tokens above 0, such as 20000 or 20k".to_owned())
}

fn minutes(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text
        .parse()
        .ok()
        .filter(|number: &f64| number.is_finite() && *number > 0.0);
    number.ok_or_else(|| "expected minutes above 0, such as 5 or 60".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_tokens_or_shares() {
        assert_eq!(trigger("120k"), Ok(Trigger::Tokens(120_000)));
        assert_eq!(trigger("80%"), Ok(Trigger::Share(0.8)));
        for wrong in [
            "0",
            "-1",
            "101%",
            "nan%",
            "a lot",
            "99999999999999999999k",
            "",
        ] {
            assert!(trigger(wrong).is_err(), "{wrong}");
        }
        assert!(minutes("5").is_ok() && minutes("inf").is_err() && minutes("0").is_err());
    }

    #[test]
    fn a_model_costs_what_the_list_says_by_its_name_alone() {
        let price = model_price(&priced_model("claude-opus-4-6").unwrap()).unwrap();
        assert_eq!(
            (
                price.rates.input,
                price.rates.read,
                price.rates.write,
                price.rates.write_hour
            ),
            (5.0, 0.5, 6.25, 10.0)
        );
        assert_eq!(
            model_price(&priced_model("anthropic/claude-opus-4-6").unwrap()),
            Some(price)
        );
        assert_eq!(model_price(&priced_model("nobody-knows").unwrap()), None);
        assert_eq!(
            listed_model("claude-opus-4-6"),
            priced_model("claude-opus-4-6")
        );
        assert_eq!(
            listed_model("claude-sonet-4-5"),
            Err("expected a model of the price list, such as claude-sonnet-4-5".to_owned())
        );
    }
}
