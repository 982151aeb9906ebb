//! The prompt cache of a provider, as far as a bill shows it. The longest prefix that a request shares with the one
//! before it is read from the cache, if that one was recent enough; the rest is written, or charged as plain input.

use super::prices::RequestTokens;

/// How long a provider keeps a prefix after its last use, in seconds, where the log does not say that it is an hour.
pub(super) const FIVE_MINUTES: f64 = 300.0;
/// The longer time that Anthropic sells.
pub(super) const HOUR: f64 = 3600.0;

/// What the next request finds in the cache.
#[derive(Clone, Copy, Debug)]
pub(super) struct PromptCache {
    /// Tokens of the last request.
    length: u64,
    model: usize,
    /// Whether it was written for an hour.
    is_long: bool,
    /// Seconds that the user set; otherwise the log decides.
    lifetime: Option<f64>,
}

/// A request before it is charged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    /// All of its input.
    pub(super) context: u64,
    /// Tokens of the prefix that it shares with the request before it.
    pub(super) shared: u64,
    pub(super) output: u64,
    pub(super) gap: Option<f64>,
    pub(super) model: usize,
    /// Whether its provider charges for writes.
    pub(super) writes: bool,
}

impl PromptCache {
    /// The cache after the first request.
    pub(super) fn new(first: RequestTokens, model: usize, lifetime: Option<f64>) -> PromptCache {
        PromptCache {
            length: first.input(),
            model,
            is_long: first.written_hour > 0,
            lifetime,
        }
    }

    /// Whether everything in it has expired by the time of a request. An unknown gap counts as short.
    pub(super) fn has_expired(&self, gap: Option<f64>) -> bool {
        let as_logged = if self.is_long { HOUR } else { FIVE_MINUTES };
        gap.is_some_and(|gap| gap > self.lifetime.unwrap_or(as_logged))
    }

    /// The tokens of a request by how they are charged; the cache then holds the request.
    pub(super) fn serve(&mut self, request: Request) -> RequestTokens {
        let is_gone = self.has_expired(request.gap) || request.model != self.model;
        let read = if is_gone {
            0
        } else {
            request.shared.min(self.length).min(request.context)
        };
        let rest = request.context - read;
        self.length = request.context;
        self.model = request.model;
        let (plain, written, written_hour) = match (request.writes, self.is_long) {
            (false, _) => (rest, 0, 0),
            (true, false) => (0, rest, 0),
            (true, true) => (0, 0, rest),
        };
        RequestTokens {
            plain,
            read,
            written,
            written_hour,
            output: request.output,
        }
    }

    /// Notes for how long a logged request was written.
    pub(super) fn note_lifetime(&mut self, logged: RequestTokens) {
        if logged.written + logged.written_hour > 0 {
            self.is_long = logged.written_hour > 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(context: u64, shared: u64, gap: f64) -> Request {
        Request {
            context,
            shared,
            output: 0,
            gap: Some(gap),
            model: 0,
            writes: true,
        }
    }

    fn cache(hour: bool) -> PromptCache {
        let first = RequestTokens {
            written_hour: u64::from(hour),
            plain: 100,
            ..RequestTokens::default()
        };
        PromptCache::new(first, 0, None)
    }

    #[test]
    fn a_prefix_is_read_until_it_expires_and_the_rest_is_written() {
        let mut five = cache(false);
        let served = five.serve(request(150, 100, 299.0));
        assert_eq!((served.read, served.written), (100, 50));
        assert_eq!(five.serve(request(160, 150, 301.0)).read, 0, "expired");
        assert_eq!(
            five.serve(request(170, 160, 1.0)).read,
            160,
            "and written again"
        );
        let mut hour = cache(true);
        let served = hour.serve(request(150, 90, 3000.0));
        assert_eq!(
            (served.read, served.written, served.written_hour),
            (90, 0, 60)
        );
        let set = PromptCache {
            lifetime: Some(10.0),
            ..cache(true)
        };
        assert!(set.has_expired(Some(11.0)) && !set.has_expired(None));
    }

    #[test]
    fn another_model_reads_nothing_and_a_provider_without_writes_charges_input() {
        let mut cache = cache(false);
        let served = cache.serve(Request {
            model: 1,
            writes: false,
            ..request(150, 100, 1.0)
        });
        assert_eq!((served.plain, served.read, served.written), (150, 0, 0));
    }
}
