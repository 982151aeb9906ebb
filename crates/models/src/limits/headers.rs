//! What response headers say about waiting and limits. Pure: the time of reading is an argument.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use crate::classify::duration;
use crate::spec::PerKind;
use base::redaction::redact;

/// The few headers of a reply that are read; names in lower case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Headers(BTreeMap<String, String>);

/// One limit as a provider announces it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LimitWindow {
    pub limit: Option<u64>,
    /// What was left at the time of the reply.
    pub remaining: Option<u64>,
    /// How long until the window is whole again.
    pub reset: Option<Duration>,
}

/// The limits that a reply announces.
pub(crate) type AnnouncedLimits = PerKind<LimitWindow>;

/// A wait that is longer is a moment, in seconds since 1970.
const THIRTY_YEARS: Duration = Duration::from_secs(1_000_000_000);

impl Headers {
    /// Keeps the headers that matter here, without keys.
    pub(crate) fn new<'a>(all: impl Iterator<Item = (&'a str, &'a str)>) -> Headers {
        let prefixes = [
            "retry-after",
            "x-ratelimit-",
            "anthropic-ratelimit-",
            "x-should-retry",
            "x-request-id",
            "request-id",
            "date",
        ];
        let lower =
            all.map(|(name, value)| (name.to_ascii_lowercase(), redact(value.trim()).into_owned()));
        Headers(
            lower
                .filter(|(name, _)| prefixes.iter().any(|prefix| name.starts_with(prefix)))
                .collect(),
        )
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// The provider's id of the request.
    pub(crate) fn request_id(&self) -> Option<&str> {
        self.get("x-request-id").or_else(|| self.get("request-id"))
    }

    /// Whether the provider itself says that a retry may help.
    pub(crate) fn should_retry(&self) -> Option<bool> {
        match self.get("x-should-retry")? {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        }
    }

    /// The time `now` by the provider's clock, which times in the headers refer to, where ours differs from it noticeably:
    /// a machine that slept may be hours behind. The headers arrived at `arrived`, by our clock.
    pub(crate) fn providers_time(&self, arrived: SystemTime, now: SystemTime) -> SystemTime {
        /// The header has whole seconds and may have been under way for some.
        const TOLERANCE: Duration = Duration::from_secs(10);
        let Some(date) = self
            .get("date")
            .and_then(|text| httpdate::parse_http_date(text).ok())
        else {
            return now;
        };
        let corrected = match date.duration_since(arrived) {
            Ok(ahead) if ahead > TOLERANCE => now.checked_add(ahead),
            Err(behind) if behind.duration() > TOLERANCE => now.checked_sub(behind.duration()),
            _ => None,
        };
        corrected.unwrap_or(now)
    }

    /// How long the provider asks to wait: `retry-after-ms`, `retry-after` in seconds, with a unit or as a date, else the
    /// longest reset of a limit that is used up.
    pub(crate) fn wait(&self, now: SystemTime) -> Option<Duration> {
        let millis = self
            .get("retry-after-ms")
            .and_then(seconds)
            .map(|thousandfold| thousandfold / 1000);
        let asked = millis.or_else(|| {
            let text = self.get("retry-after")?;
            // A moment in place of a time, in seconds or in milliseconds.
            let since_1970 = seconds(text).filter(|wait| *wait > THIRTY_YEARS);
            let since_1970 = since_1970.map(|moment| match moment > 100 * THIRTY_YEARS {
                true => moment / 1000,
                false => moment,
            });
            let until = since_1970.and_then(|moment| SystemTime::UNIX_EPOCH.checked_add(moment));
            let until = until.map(|moment| moment.duration_since(now).unwrap_or_default());
            until
                .or_else(|| seconds(text))
                .or_else(|| duration(text))
                .or_else(|| until_date(text, now))
        });
        asked.or_else(|| {
            let windows = self.announced(now).all().into_iter();
            let used_up = windows.filter(|w| w.remaining == Some(0));
            used_up.filter_map(|w| w.reset).max()
        })
    }

    /// The limits announced, in OpenAI's or Anthropic's style.
    pub(crate) fn announced(&self, now: SystemTime) -> AnnouncedLimits {
        let [requests, tokens, project, input, output] = [
            "requests",
            "tokens",
            "project-tokens",
            "input-tokens",
            "output-tokens",
        ]
        .map(|kind| self.window(kind, now));
        let both = [tokens, project].into_iter();
        let stricter = both.min_by_key(|window| window.limit.unwrap_or(u64::MAX));
        AnnouncedLimits {
            requests,
            tokens: stricter.unwrap_or_default(),
            input,
            output,
        }
    }

    fn window(&self, kind: &str, now: SystemTime) -> LimitWindow {
        let [limit, remaining, reset] = ["limit", "remaining", "reset"].map(|name| {
            self.get(&format!("x-ratelimit-{name}-{kind}"))
                .or_else(|| self.get(&format!("anthropic-ratelimit-{kind}-{name}")))
        });
        let time = |text| {
            duration(text)
                .or_else(|| seconds(text))
                .or_else(|| until_timestamp(text, now))
        };
        LimitWindow {
            limit: limit.and_then(|text| text.parse().ok()),
            remaining: remaining.and_then(|text| text.parse().ok()),
            reset: reset.and_then(time),
        }
    }
}

/// Seconds, perhaps with a fraction; negative, infinite or unreadable ones say nothing.
fn seconds(text: &str) -> Option<Duration> {
    Duration::try_from_secs_f64(text.trim().parse().ok()?).ok()
}

fn until_date(text: &str, now: SystemTime) -> Option<Duration> {
    let date = httpdate::parse_http_date(text).ok()?;
    date.duration_since(now).ok()
}

fn until_timestamp(text: &str, now: SystemTime) -> Option<Duration> {
    let at: jiff::Timestamp = text.parse().ok()?;
    Some(SystemTime::from(at).duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    fn headers(list: &[(&str, &str)]) -> Headers {
        Headers::new(list.iter().copied())
    }

    fn wait(list: &[(&str, &str)]) -> Option<Duration> {
        headers(list).wait(at(784_111_777))
    }

    #[test]
    fn waits_are_read_in_the_vendors_order() {
        let ms = Duration::from_millis;
        assert_eq!(
            wait(&[("Retry-After", "7"), ("retry-after-ms", "1500.5")]),
            Some(Duration::from_micros(1_500_500))
        );
        assert_eq!(wait(&[("retry-after", "0.25")]), Some(ms(250)));
        assert_eq!(wait(&[("retry-after", "2s")]), Some(ms(2000)));
        assert_eq!(wait(&[("retry-after", "1m 30s")]), Some(ms(90_000)));
        assert_eq!(wait(&[("retry-after", "20 seconds")]), Some(ms(20_000)));
        assert_eq!(
            wait(&[("retry-after", "2000000000")]),
            Some(Duration::from_secs(2_000_000_000 - 784_111_777))
        );
        assert_eq!(wait(&[("retry-after", "784111778500")]), Some(ms(1500)));
        assert_eq!(
            wait(&[("retry-after", "Sun, 06 Nov 1994 08:49:40 GMT")]),
            Some(ms(3000))
        );
        let both = [
            ("x-ratelimit-remaining-tokens", "0"),
            ("x-ratelimit-reset-tokens", "6m0.5s"),
        ];
        assert_eq!(wait(&both), Some(ms(360_500)));
        let left = [
            ("x-ratelimit-remaining-tokens", "9"),
            ("x-ratelimit-reset-tokens", "6m0s"),
        ];
        assert_eq!(wait(&left), None);
    }

    #[test]
    fn a_wait_that_cannot_be_read_is_unknown() {
        for odd in [
            "-1",
            "inf",
            "NaN",
            "soon",
            "",
            "1e400",
            "Sun, 06 Nov 1994 08:49:30 GMT",
        ] {
            assert_eq!(wait(&[("retry-after", odd)]), None, "{odd}");
        }
        for odd in ["", "5", "m", "1x", "1.2.3s", "-1s"] {
            assert_eq!(duration(odd), None, "{odd}");
        }
    }

    #[test]
    fn times_are_read_by_the_clock_of_the_provider() {
        let reply = headers(&[
            ("date", "Sun, 06 Nov 1994 08:49:37 GMT"),
            ("retry-after", "Sun, 06 Nov 1994 08:49:40 GMT"),
            ("anthropic-ratelimit-requests-limit", "50"),
            ("anthropic-ratelimit-requests-reset", "1994-11-06T08:49:47Z"),
        ]);
        let (date, hours) = (784_111_777, 7200);
        for clock in [date - hours, date, date + 3, date + hours] {
            // The body took five seconds more; the wait counts from when it was read.
            let now = reply.providers_time(at(clock), at(clock + 5));
            let expected = if clock == date + 3 {
                date + 8
            } else {
                date + 5
            };
            assert_eq!(now, at(expected), "{clock}");
            assert_eq!(
                reply.announced(now).requests.reset,
                Some(Duration::from_secs(date + 10 - expected))
            );
        }
        assert_eq!(reply.wait(at(date)), Some(Duration::from_secs(3)));
        assert_eq!(headers(&[]).providers_time(at(1), at(2)), at(2));
    }

    #[test]
    fn both_styles_of_limits_are_read() {
        let openai = headers(&[
            ("x-ratelimit-limit-requests", "500"),
            ("x-ratelimit-remaining-requests", "499"),
            ("x-ratelimit-reset-requests", "120ms"),
            ("x-ratelimit-limit-tokens", "200000"),
            ("x-ratelimit-limit-project-tokens", "150000"),
        ])
        .announced(at(0));
        let window = LimitWindow {
            limit: Some(500),
            remaining: Some(499),
            reset: Some(Duration::from_millis(120)),
        };
        assert_eq!(openai.requests, window);
        assert_eq!(openai.tokens.limit, Some(150_000));
        let anthropic = headers(&[
            ("anthropic-ratelimit-input-tokens-limit", "40000"),
            ("anthropic-ratelimit-input-tokens-remaining", "0"),
            (
                "anthropic-ratelimit-input-tokens-reset",
                "1970-01-01T00:00:09Z",
            ),
        ]);
        let window = LimitWindow {
            limit: Some(40_000),
            remaining: Some(0),
            reset: Some(Duration::from_secs(8)),
        };
        assert_eq!(anthropic.announced(at(1)).input, window);
        assert_eq!(anthropic.wait(at(1)), Some(Duration::from_secs(8)));
    }
}
