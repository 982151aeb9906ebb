//! The warnings about a remote that was read.

use super::index::{RemoteIndex, UnusedSegments};
use crate::cache::now_ms;

/// A clock that is ahead by more than this is reported.
const CLOCK_TOLERANCE_MS: u64 = 3_600_000;

pub(super) fn unused_warnings(unused: &UnusedSegments, url: &str) -> Vec<String> {
    let UnusedSegments { untrusted, damaged, newer, foreign, pruned, lists } = unused;
    let segments = |count: u64| if count == 1 { "1 segment".to_owned() } else { format!("{count} segments") };
    let mut warnings = Vec::new();
    if !untrusted.is_empty() {
        let keys: Vec<String> = untrusted.iter().map(|(key, count)| format!("{key} ({count})")).collect();
        let all = segments(untrusted.values().sum());
        let text =
            format!("{all} in {url} are of writers that are not in `trust` and are not used: {}", keys.join(", "));
        warnings.push(text);
    }
    for (name, what) in damaged {
        warnings.push(format!("the segment {name} in {url} is damaged and is not used: {what}"));
    }
    if *newer > 0 {
        let all = segments(*newer);
        warnings.push(format!("{all} in {url} are of a newer version of compeval and are not used; update compeval"));
    }
    if *foreign > 0 {
        let all = segments(*foreign);
        warnings.push(format!("{all} in {url} were signed for another remote and copied here; they are not used"));
    }
    if *pruned > 0 {
        let all = segments(*pruned);
        let text = format!("{all} in {url} were deleted by a prune and are there again; they are not used");
        warnings.push(text);
    }
    if *lists > 0 {
        let text =
            format!("{lists} lists of pruned segments in {url} are damaged or of writers that are not in `trust`");
        warnings.push(text);
    }
    warnings
}

pub(super) fn clock_warning(index: &RemoteIndex) -> Option<String> {
    let newest = index.segments.last()?;
    let ahead = newest.created.saturating_sub(now_ms());
    let name = &newest.writer.name;
    let text = || {
        format!(
            "the clock of {name} or of this machine is wrong: a segment was written {} min from now",
            ahead / 60_000
        )
    };
    (ahead > CLOCK_TOLERANCE_MS).then(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::Digest;
    use crate::remote::index::Segment;
    use crate::remote::{SigningKey, TrustedWriter};

    #[test]
    fn a_clock_that_is_an_hour_ahead_is_reported() {
        let writer = TrustedWriter { name: "ci".into(), key: SigningKey::generate().unwrap().0.public() };
        let warning = |ahead: u64| {
            let created = now_ms() + ahead;
            let segment = Segment { name: Digest::of("a"), writer: writer.clone(), created, entries: Vec::new() };
            clock_warning(&RemoteIndex { segments: vec![segment], ..RemoteIndex::default() })
        };
        assert!(warning(3_000_000).is_none());
        assert!(
            warning(7_200_000).is_some_and(|text| text.contains("the clock of ci") && text.contains("min from now"))
        );
    }
}
