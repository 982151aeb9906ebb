//! What tokens cost: a table that ships with the program, and the user's own prices above it.
//!
//! Unknown stays unknown: a model without a price, or a call without usage, has no cost.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use super::dialects::DEFAULT_MAX_TOKENS;
use super::spec::{Dialect, Lane, ModelName, ModelRef, ProviderSpec};
use base::units::{Tokens, Usage, Usd};

/// Prices of one model in US dollars per million tokens.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Price {
    /// Input, in dollars per million tokens.
    pub input: f64,
    /// Input tokens read from the provider's prompt cache; without it they cost what input costs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_input: Option<f64>,
    /// Input tokens written to the prompt cache; without it they cost what input costs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<f64>,
    /// Output, in dollars per million tokens.
    pub output: f64,
    /// The factor on all of these in a batch; without it [`REDUCED`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<f64>,
}

impl Price {
    /// The price of input tokens that are written to the prompt cache for an hour. Only Anthropic offers that, at twice the
    /// price of input. Where writing to the cache costs nothing extra, this does not either.
    pub fn hour_write(&self) -> f64 {
        const TIMES: f64 = 2.0;
        self.cache_write
            .map_or(self.input, |write| write.max(TIMES * self.input))
    }
}

/// The factor on the live price for batches, at both vendors. The community table lists batch prices
/// of most models, each of them half the live one.
const REDUCED: f64 = 0.5;

/// The prices of models, in dollars per million tokens.
#[derive(Clone, Debug, Default)]
pub struct Prices {
    overrides: BTreeMap<ModelRef, Price>,
}

#[derive(Deserialize)]
struct PriceTable {
    models: BTreeMap<String, PriceEntry>,
}

#[derive(Deserialize)]
struct PriceEntry {
    #[serde(flatten)]
    price: Price,
    max_input_tokens: Option<Tokens>,
    max_output_tokens: Option<Tokens>,
    above: Option<PriceTier>,
}

/// The rates of a request whose input exceeds `tokens`.
#[derive(Deserialize)]
struct PriceTier {
    tokens: Tokens,
    #[serde(flatten)]
    price: Price,
}

/// Read on first use. The file is part of the program and a test reads it, so a fault in it leaves an empty table rather
/// than a panic.
static TABLE: LazyLock<BTreeMap<String, PriceEntry>> = LazyLock::new(|| {
    let table: Result<PriceTable, _> = serde_json::from_str(include_str!("../assets/prices.json"));
    table.map(|table| table.models).unwrap_or_default()
});

impl Prices {
    /// The built-in table, and the user's own prices, which come first.
    pub fn new(overrides: BTreeMap<ModelRef, Price>) -> Prices {
        Prices { overrides }
    }

    /// The price of a request with `input` tokens; `None` if it is unknown.
    pub fn price(&self, model: &ModelRef, input: Tokens) -> Option<Price> {
        if let Some(price) = self.overrides.get(model) {
            return Some(*price);
        }
        entry(&model.model.0).map(|entry| entry.price(input))
    }

    /// The price of a model in a lane, as a fraction of its live price.
    pub fn lane_ratio(&self, model: &ModelRef, lane: Lane) -> f64 {
        let known = self.price(model, Tokens(0));
        match lane {
            Lane::Live => 1.0,
            Lane::Batch => known.and_then(|price| price.batch).unwrap_or(REDUCED),
        }
    }

    /// The cost of a live call; `None` without a price or without the provider's counts of input and output. Cached tokens
    /// that were not reported are charged as ordinary ones.
    pub fn cost(&self, model: &ModelRef, usage: &Usage) -> Option<Usd> {
        let (input, output) = (usage.input?, usage.output?);
        let price = self.price(model, input)?;
        let cached = usage.cached_input.unwrap_or_default().0;
        let written = usage.cache_write.unwrap_or_default().0;
        let kept_long = usage.cache_write_hour.unwrap_or_default().0.min(written);
        let plain = input.0.saturating_sub(cached).saturating_sub(written);
        let millionths = plain as f64 * price.input
            + cached as f64 * price.cached_input.unwrap_or(price.input)
            + (written - kept_long) as f64 * price.cache_write.unwrap_or(price.input)
            + kept_long as f64 * price.hour_write()
            + output.0 as f64 * price.output;
        Some(Usd(millionths / 1e6))
    }

    /// The amount that the prompt cache saved on a live call; `None` if the cost is unknown. Negative if writing to the
    /// cache cost more than reading from it saved.
    pub fn saved_by_cache(&self, model: &ModelRef, usage: &Usage) -> Option<f64> {
        let uncached = Usage {
            cached_input: None,
            cache_write: None,
            cache_write_hour: None,
            ..*usage
        };
        Some(self.cost(model, &uncached)?.0 - self.cost(model, usage)?.0)
    }

    /// The most that a request of at most these tokens can cost.
    pub fn worst_case(&self, model: &ModelRef, input: Tokens, output: Tokens) -> Option<Usd> {
        let price = self.price(model, input)?;
        let per_input = price
            .input
            .max(price.cache_write.unwrap_or(0.0))
            .max(price.hour_write());
        Some(Usd((input.0 as f64 * per_input
            + output.0 as f64 * price.output)
            / 1e6))
    }
}

/// The most input tokens that the model takes at a provider, as the user declared it, else as the table says; `None` if
/// unknown.
pub fn context_window(provider: &ProviderSpec, model: &ModelName) -> Option<Tokens> {
    provider
        .limits
        .context_window
        .or_else(|| entry(&model.0)?.max_input_tokens)
}

/// Assumed where the maximum length of a model's replies is unknown.
const LONGEST_KNOWN: Tokens = Tokens(32_768);

/// The most tokens that a reply may be billed for: the limit that the request carries, else the longest that the
/// table says the model writes.
pub fn longest_reply(dialect: Dialect, model: &ModelName, limit: Option<Tokens>) -> Tokens {
    let sent = limit.or_else(|| (dialect == Dialect::Anthropic).then_some(DEFAULT_MAX_TOKENS));
    sent.or_else(|| entry(&model.0)?.max_output_tokens)
        .unwrap_or(LONGEST_KNOWN)
}

impl PriceEntry {
    fn price(&self, input: Tokens) -> Price {
        match &self.above {
            Some(tier) if input > tier.tokens => tier.price,
            _ => self.price,
        }
    }
}

/// The table's entry for a model as any provider may spell it: after a vendor's prefix (`openai/gpt-5.2`), or with
/// the date of a snapshot that the table does not list.
fn entry(model: &str) -> Option<&'static PriceEntry> {
    let bare = model.rsplit('/').next().unwrap_or(model);
    TABLE.get(bare).or_else(|| TABLE.get(without_date(bare)?))
}

fn without_date(model: &str) -> Option<&str> {
    ["-0000-00-00", "-00000000"].into_iter().find_map(|form| {
        let (name, tail) = model.split_at_checked(model.len().checked_sub(form.len())?)?;
        let alike = tail
            .chars()
            .zip(form.chars())
            .all(|(c, f)| if f == '0' { c.is_ascii_digit() } else { c == f });
        alike.then_some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Dialect, Limits};
    use proptest::prelude::*;

    fn model(text: &str) -> ModelRef {
        ModelRef::parse(text).unwrap()
    }

    fn usage(input: u64, cached: u64, written: u64, output: u64) -> Usage {
        Usage {
            input: Some(Tokens(input)),
            cached_input: Some(Tokens(cached)),
            cache_write: Some(Tokens(written)),
            cache_write_hour: None,
            output: Some(Tokens(output)),
            reasoning: None,
        }
    }

    fn cents(usd: Option<Usd>) -> i64 {
        (usd.unwrap().0 * 100.0).round() as i64
    }

    #[test]
    fn a_dated_name_has_the_price_of_its_family() {
        let dated = [
            ("anthropic/claude-sonnet-4-20250514", 3.0),
            ("anthropic/claude-opus-4-1-20250805", 15.0),
            ("anthropic/claude-3-7-sonnet-20250219", 3.0),
        ];
        for (name, input) in dated {
            let price = Prices::default().price(&model(name), Tokens(0));
            assert_eq!(price.map(|price| price.input), Some(input), "{name}");
        }
    }

    #[test]
    fn the_table_reads_and_every_price_is_a_price() {
        assert!(TABLE.len() > 100);
        for (name, entry) in TABLE.iter() {
            let price = entry.price(Tokens(0));
            assert!(price.input >= 0.0 && price.output >= price.input, "{name}");
            assert!(
                price
                    .cached_input
                    .is_none_or(|cached| cached <= price.input),
                "{name}"
            );
        }
    }

    #[test]
    fn cached_written_and_plain_tokens_have_their_own_rates() {
        let prices = Prices::default();
        let cost = |usage| cents(prices.cost(&model("anthropic/claude-opus-4-6"), &usage));
        assert_eq!(cost(usage(1_000_000, 0, 0, 0)), 500);
        assert_eq!(
            cost(usage(1_000_000, 0, 1_000_000, 0)),
            625,
            "writing costs 1.25 times"
        );
        let kept_an_hour = |hour| Usage {
            cache_write_hour: Some(Tokens(hour)),
            ..usage(1_000_000, 0, 1_000_000, 0)
        };
        assert_eq!(
            cost(kept_an_hour(1_000_000)),
            1000,
            "and twice as much for an hour"
        );
        assert_eq!(
            cost(kept_an_hour(500_000)),
            813,
            "each part at its own price"
        );
        assert_eq!(cost(usage(1_000_000, 1_000_000, 0, 0)), 50);
        assert_eq!(
            cost(usage(1_000_000, 500_000, 100_000, 100_000)),
            200 + 25 + 63 + 250
        );
        let saved = prices.saved_by_cache(
            &model("anthropic/claude-opus-4-6"),
            &usage(1_000_000, 1_000_000, 0, 0),
        );
        assert!((saved.unwrap() - 4.5).abs() < 1e-9);
    }

    #[test]
    fn a_long_request_is_billed_at_the_higher_rate_as_a_whole() {
        let prices = Prices::default();
        let per_million = |input| {
            prices
                .price(&model("openai/gpt-5.6-sol"), Tokens(input))
                .unwrap()
                .input
        };
        assert_eq!((per_million(272_000), per_million(272_001)), (4.0, 8.0));
    }

    #[test]
    fn unknown_stays_unknown_and_the_built_in_rules_are_free() {
        let prices = Prices::default();
        assert_eq!(
            prices.cost(&model("ollama/qwen3:8b"), &usage(1, 0, 0, 1)),
            None
        );
        let unreported = Usage {
            output: None,
            ..usage(10, 0, 0, 0)
        };
        assert_eq!(prices.cost(&model("openai/gpt-5.2"), &unreported), None);
    }

    #[test]
    fn a_window_is_what_the_user_declared_or_the_table_lists() {
        let declared = |context_window| ProviderSpec {
            name: "p".into(),
            dialect: Dialect::OpenaiChat,
            base_url: String::new(),
            api_key: None,
            endpoint: "p".into(),
            limits: Limits {
                context_window,
                ..Limits::default()
            },
            lane: Default::default(),
            key_place: None,
        };
        let window = |own, model: &str| context_window(&declared(own), &model.into());
        assert_eq!(window(None, "gpt-5.2"), Some(Tokens(272_000)));
        assert_eq!(window(Some(Tokens(8192)), "gpt-5.2"), Some(Tokens(8192)));
        assert_eq!(window(Some(Tokens(8192)), "qwen3:8b"), Some(Tokens(8192)));
        assert_eq!(window(None, "qwen3:8b"), None);
    }

    #[test]
    fn models_are_found_as_routers_and_snapshots_spell_them() {
        let prices = Prices::default();
        let plain = prices.price(&model("openai/gpt-5.2"), Tokens(0));
        for name in [
            "openrouter/openai/gpt-5.2",
            "openai/gpt-5.2-2027-01-31",
            "x/gpt-5.2-20270131",
        ] {
            assert_eq!(prices.price(&model(name), Tokens(0)), plain, "{name}");
        }
        assert_eq!(
            prices.price(&model("openai/gpt-5.2-unheard-of"), Tokens(0)),
            None
        );
    }

    #[test]
    fn the_users_own_price_stands_above_the_table() {
        let declared = Price {
            input: 1.0,
            cached_input: None,
            cache_write: None,
            output: 2.0,
            batch: Some(0.4),
        };
        let prices = Prices::new(BTreeMap::from([(model("openai/gpt-5.2"), declared)]));
        assert_eq!(
            cents(prices.cost(
                &model("openai/gpt-5.2"),
                &usage(1_000_000, 500_000, 0, 1_000_000)
            )),
            300
        );
        let ratio = |name| prices.lane_ratio(&model(name), Lane::Batch);
        assert_eq!(
            (ratio("openai/gpt-5.2"), ratio("openai/gpt-5.1")),
            (0.4, 0.5),
            "half where the user declares nothing"
        );
    }

    #[test]
    fn a_reply_is_as_long_as_was_asked_for_or_as_the_model_can() {
        let longest = |dialect, model: &str, limit: Option<u64>| {
            longest_reply(dialect, &model.into(), limit.map(Tokens)).0
        };
        assert_eq!(longest(Dialect::OpenaiChat, "gpt-5.2", Some(700)), 700);
        assert_eq!(longest(Dialect::OpenaiChat, "gpt-5.2", None), 128_000);
        assert_eq!(longest(Dialect::OpenaiChat, "gpt-4o-mini", None), 16_384);
        assert_eq!(longest(Dialect::OpenaiChat, "nobody-knows", None), 32_768);
        assert_eq!(
            longest(Dialect::Anthropic, "claude-opus-4-6", None),
            8192,
            "what is sent where no limit is set"
        );
    }

    proptest! {
        #[test]
        fn no_call_costs_more_than_its_worst_case(
            input in 0u64..2_000_000, cached in 0u64..1_000_000, written in 0u64..1_000_000, output in 0u64..100_000,
        ) {
            let prices = Prices::default();
            let cached = cached.min(input);
            let written = written.min(input - cached);
            let hour = Some(Tokens(written / 2));
            let usage = Usage { cache_write_hour: hour, ..usage(input, cached, written, output) };
            for name in ["openai/gpt-5.6-sol", "anthropic/claude-opus-4-6", "google/gemini-2.5-pro"] {
                let worst = prices.worst_case(&model(name), Tokens(input), Tokens(output)).unwrap();
                prop_assert!(prices.cost(&model(name), &usage).unwrap().0 <= worst.0 + 1e-9);
            }
        }

        #[test]
        fn no_name_of_a_model_panics(name in "\\PC{0,20}") {
            let _ = entry(&name);
        }
    }
}
