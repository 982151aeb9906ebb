//! The current time, for records and names. A clock that is wrong or was never set does not stop a run.

use std::time::SystemTime;

use jiff::Timestamp;

/// The system time, clamped to the years 1970 to 9999.
pub fn now() -> Timestamp {
    at(SystemTime::now())
}

/// Whether the clock shows a time before 1970. With such a clock sled and rustls panic.
pub fn is_before_1970() -> bool {
    SystemTime::now() < SystemTime::UNIX_EPOCH
}

/// The moment that an RFC 3339 text names, to compare it with others; `None`, which is before all of them, for another
/// text. The texts themselves do not sort like times, because a fraction of a second has as many digits as it needs.
pub fn moment(text: &str) -> Option<Timestamp> {
    text.parse().ok()
}

fn at(time: SystemTime) -> Timestamp {
    let is_early = time < SystemTime::UNIX_EPOCH;
    let time = Timestamp::try_from(time).ok().filter(|_| !is_early);
    time.unwrap_or(if is_early {
        Timestamp::UNIX_EPOCH
    } else {
        Timestamp::MAX
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn times_sort_by_when_they_are() {
        let sorted = [
            "",
            "2026-01-02T03:04:05Z",
            "2026-01-02T03:04:05.25Z",
            "2026-01-02T03:04:05.3Z",
        ];
        assert!(sorted.is_sorted_by(|a, b| moment(a) < moment(b)));
    }

    #[test]
    fn times_out_of_range_are_clamped() {
        let year = Duration::from_secs(31_557_600);
        assert_eq!(at(SystemTime::UNIX_EPOCH - year), Timestamp::UNIX_EPOCH);
        assert_eq!(at(SystemTime::UNIX_EPOCH + 28_000 * year), Timestamp::MAX);
        assert_eq!(
            at(SystemTime::UNIX_EPOCH + 30 * year)
                .strftime("%Y")
                .to_string(),
            "2000"
        );
    }
}
