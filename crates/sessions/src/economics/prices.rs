//! Prices as a simulation needs them, and what the tokens of a request cost at them.

use base::units::Usage;

/// The prices of a model, in dollars per million tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// Input that is neither read from the prompt cache nor written to it.
    pub input: f64,
    /// Input that is read from the prompt cache.
    pub read: f64,
    /// Input that is written to it for five minutes.
    pub write: f64,
    /// Input that is written to it for an hour.
    pub write_hour: f64,
    /// Output.
    pub output: f64,
}

/// What a model charges, and the size of its window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ModelPrice {
    /// The prices of a request.
    pub rates: Rates,
    /// The prices of a request with more than this many tokens of input; `None` if they are the same.
    pub long: Option<(u64, Rates)>,
    /// The most tokens of input; `None` if unknown.
    pub window: Option<u64>,
}

/// Dollars of the four kinds of tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct Dollars {
    /// Input outside the prompt cache.
    pub input: f64,
    /// Writes to it.
    pub cache_write: f64,
    /// Reads from it.
    pub cache_read: f64,
    /// Output.
    pub output: f64,
}

impl Dollars {
    pub(super) fn total(self) -> f64 {
        self.of_input() + self.output
    }

    /// All but the output.
    pub(super) fn of_input(self) -> f64 {
        self.input + self.cache_write + self.cache_read
    }
}

impl std::ops::AddAssign for Dollars {
    fn add_assign(&mut self, other: Dollars) {
        self.input += other.input;
        self.cache_write += other.cache_write;
        self.cache_read += other.cache_read;
        self.output += other.output;
    }
}

/// The tokens of a request, by what they cost. Each is in one of the fields only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RequestTokens {
    pub(super) plain: u64,
    pub(super) read: u64,
    pub(super) written: u64,
    pub(super) written_hour: u64,
    pub(super) output: u64,
}

impl RequestTokens {
    /// From reported usage. Input is plain unless the cache is reported to have served or stored it. `None` if input or
    /// output is unknown.
    pub(super) fn new(usage: &Usage) -> Option<RequestTokens> {
        let input = usage.input?.0;
        let read = usage.cached_input.unwrap_or_default().0.min(input);
        let all_written = usage.cache_write.unwrap_or_default().0.min(input - read);
        let written_hour = usage
            .cache_write_hour
            .unwrap_or_default()
            .0
            .min(all_written);
        Some(RequestTokens {
            plain: input - read - all_written,
            read,
            written: all_written - written_hour,
            written_hour,
            output: usage.output?.0,
        })
    }

    pub(super) fn input(self) -> u64 {
        self.plain + self.read + self.written + self.written_hour
    }

    /// Input that was not read from the cache.
    pub(super) fn uncached(self) -> u64 {
        self.input() - self.read
    }
}

impl ModelPrice {
    /// What a request costs.
    pub(super) fn cost(&self, tokens: RequestTokens) -> Dollars {
        let rates = self
            .long
            .filter(|(above, _)| tokens.input() > *above)
            .map_or(self.rates, |(_, rates)| rates);
        Dollars {
            input: usd(tokens.plain, rates.input),
            cache_write: usd(tokens.written, rates.write)
                + usd(tokens.written_hour, rates.write_hour),
            cache_read: usd(tokens.read, rates.read),
            output: usd(tokens.output, rates.output),
        }
    }
}

fn usd(tokens: u64, rate: f64) -> f64 {
    tokens as f64 * rate / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::units::Tokens;

    #[test]
    fn each_kind_of_tokens_has_its_price_and_a_long_request_another() {
        let rates = Rates {
            input: 5.0,
            read: 0.5,
            write: 6.25,
            write_hour: 10.0,
            output: 25.0,
        };
        let double = Rates {
            input: 10.0,
            read: 1.0,
            write: 12.5,
            write_hour: 20.0,
            output: 50.0,
        };
        let price = ModelPrice {
            rates,
            long: Some((3_000_000, double)),
            window: None,
        };
        let million = Some(Tokens(1_000_000));
        let usage = Usage {
            input: Some(Tokens(3_000_000)),
            cached_input: million,
            cache_write: million,
            cache_write_hour: Some(Tokens(500_000)),
            output: million,
            reasoning: None,
        };
        let cost = price.cost(RequestTokens::new(&usage).unwrap());
        assert_eq!(
            (cost.input, cost.cache_read, cost.cache_write, cost.output),
            (5.0, 0.5, 8.125, 25.0)
        );
        let longer = Usage {
            input: Some(Tokens(3_000_001)),
            ..usage
        };
        assert_eq!(
            price.cost(RequestTokens::new(&longer).unwrap()).cache_read,
            1.0
        );
        assert_eq!(
            RequestTokens::new(&Usage {
                output: None,
                ..usage
            }),
            None,
            "unknown is not free"
        );
    }
}
