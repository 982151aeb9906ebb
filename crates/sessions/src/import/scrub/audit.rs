//! Lists what still looks suspicious in a fixture, with its place. A finding is never shown in full.

use std::collections::HashSet;
use std::ops::Range;

use serde_json::Value;

use super::edit::unescaped;
use super::{personal, secrets, values};
use crate::transcript::Fixture;
use base::lazy_patterns;
use base::text::pattern;

/// What a place looks like.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, thiserror::Error)]
pub enum SuspicionKind {
    /// A secret of this kind.
    #[error("secret ({0})")]
    Secret(String),
    /// The account name in a home folder.
    #[error("account name in a path")]
    HomeFolder,
    /// An e-mail address.
    #[error("e-mail address")]
    Address,
    /// A mention of a person on a platform.
    #[error("mention of a person")]
    Mention,
    /// The name of a personal machine.
    #[error("name of a machine")]
    Machine,
    /// A public network address.
    #[error("public network address")]
    NetworkAddress,
    /// A tag of reasoning without its counterpart.
    #[error("reasoning tag")]
    Reasoning,
    /// A long text that looks random.
    #[error("long random string")]
    Random,
    /// A word in the position of a password.
    #[error("possible password")]
    Password,
}

impl SuspicionKind {
    /// Whether scrubbing would replace it: then a fixture must not be committed with it. The others are for a person
    /// to look at.
    pub fn is_certain(&self) -> bool {
        matches!(
            self,
            SuspicionKind::Secret(_)
                | SuspicionKind::HomeFolder
                | SuspicionKind::Address
                | SuspicionKind::Mention
        )
    }
}

/// A place that may contain a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suspicion {
    /// The message's index; `None` for a text of the fixture itself.
    pub message: Option<usize>,
    /// What it looks like.
    pub kind: SuspicionKind,
    /// The whole text, which is never shown.
    pub text: String,
}

impl Suspicion {
    /// Its first characters and its length.
    pub fn excerpt(&self) -> String {
        let length = self.text.chars().count();
        let shown: String = self.text.chars().take((length / 3).min(4)).collect();
        format!("{shown}… ({length} characters)")
    }
}

lazy_patterns! {
    MACHINE = pattern(
        r"\b[A-Za-z][A-Za-z0-9-]*(?:MacBook|iMac|Laptop|Desktop|ThinkPad|-PC|-mbp)[A-Za-z0-9-]*(?:\.(?:local|lan|home))?\b",
    );

    NETWORK = pattern(r"\b(?:[0-9]{1,3}\.){3}[0-9]{1,3}\b");

    RANDOM = pattern(r"[A-Za-z0-9_-]{32,}");
}

/// Everything suspicious in the fixture, message by message.
pub fn audit(fixture: &Fixture) -> Vec<Suspicion> {
    let mut suspicions = Vec::new();
    let mut look = |text: &str, message| add_suspicions(text, message, &mut suspicions);
    look(&fixture.description, None);
    look(&fixture.model, None);
    if !fixture.notes.is_null() {
        look(&fixture.notes.to_string(), None);
    }
    if !fixture.tools.is_empty() {
        look(&Value::from(fixture.tools.clone()).to_string(), None);
    }
    fixture
        .recorded
        .iter()
        .for_each(|one| look(&one.summary, None));
    let mut tools: HashSet<&str> = HashSet::new();
    for (index, message) in fixture.messages.iter().enumerate() {
        message.texts().for_each(|text| look(text, Some(index)));
        let called = message
            .tool_calls
            .iter()
            .map(|call| call.function.name.as_str());
        let new = called.filter(|name| tools.insert(name));
        new.for_each(|name| look(name, Some(index)));
    }
    suspicions
}

fn add_suspicions(text: &str, message: Option<usize>, suspicions: &mut Vec<Suspicion>) {
    let plain = unescaped(text);
    let mut all: Vec<(Range<usize>, SuspicionKind)> = Vec::new();
    all.extend(
        secrets::secrets_and_doubts(text)
            .into_iter()
            .map(|one| match one.is_doubtful {
                true => (one.range, SuspicionKind::Password),
                false => (one.range, SuspicionKind::Secret(one.kind.to_owned())),
            }),
    );
    all.extend(personal::find_homes(text).map(|name| (name.range(), SuspicionKind::HomeFolder)));
    all.extend(
        personal::find_addresses(&plain)
            .into_iter()
            .map(|range| (range, SuspicionKind::Address)),
    );
    all.extend(personal::find_reasoning_tags(text).map(|range| (range, SuspicionKind::Reasoning)));
    all.extend(personal::find_mentions(text).map(|range| (range, SuspicionKind::Mention)));
    all.extend(
        MACHINE
            .find_iter(&plain)
            .map(|name| (name.range(), SuspicionKind::Machine)),
    );
    let public = NETWORK
        .find_iter(&plain)
        .filter(|address| is_public(address.as_str()));
    all.extend(public.map(|address| (address.range(), SuspicionKind::NetworkAddress)));
    let random = RANDOM
        .find_iter(&plain)
        .filter(|run| is_random(run.as_str()));
    all.extend(random.map(|run| (run.range(), SuspicionKind::Random)));
    all.sort_by_key(|(range, _)| range.start);
    let mut end = 0;
    for (place, kind) in all {
        // A secret that also looks random is one thing.
        if place.start < end && end > 0 {
            continue;
        }
        end = place.end;
        let text = text.get(place).unwrap_or("").to_owned();
        suspicions.push(Suspicion {
            message,
            kind,
            text,
        });
    }
}

/// Whether this is an address in the public network, and not an example, a local address or a version number.
fn is_public(text: &str) -> bool {
    let parts: Vec<u8> = text
        .split('.')
        .filter_map(|part| part.parse().ok())
        .collect();
    let Ok([a, b, c, d]) = <[u8; 4]>::try_from(parts) else {
        return false;
    };
    let local = matches!(
        (a, b),
        (0 | 10 | 127, _) | (192, 168) | (169, 254) | (100, 64..=127) | (172, 16..=31)
    );
    let example = matches!((a, b, c), (192, 0, 2) | (198, 51, 100) | (203, 0, 113)) || a >= 224;
    let known = matches!(
        (a, b, c, d),
        (8, 8, 8, 8) | (8, 8, 4, 4) | (1, 1, 1, 1) | (1, 0, 0, 1) | (9, 9, 9, 9)
    );
    // Four small numbers are a version more often than an address.
    let version = [a, b, c, d].iter().all(|part| *part < 30);
    !(local || example || known || version)
}

/// Whether a run has letters of both cases and digits, about evenly spread, unlike a hash or an identifier.
fn is_random(run: &str) -> bool {
    let tests = [
        u8::is_ascii_uppercase,
        u8::is_ascii_lowercase,
        u8::is_ascii_digit,
    ];
    let mixed = tests.into_iter().all(|test| values::has_byte(run, test));
    let digits = run.bytes().filter(u8::is_ascii_digit).count();
    mixed && digits * 20 > run.len() && values::entropy(run) > 4.5 && !values::is_placeholder(run)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<SuspicionKind> {
        let mut suspicions = Vec::new();
        add_suspicions(text, None, &mut suspicions);
        suspicions.into_iter().map(|one| one.kind).collect()
    }

    #[test]
    fn what_scrubbing_would_replace_is_certain() {
        let secret = ["gh", "p_", "q7Rk2Zt9Lm4Xc8Vb3Nw6Ys1Hd5Jf0GpTaEuI"].concat();
        let text = format!("{secret} in /home/jdoe, ask j@corp.io");
        let found = kinds(&text);
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found.iter().all(SuspicionKind::is_certain));
        let mut list = Vec::new();
        add_suspicions(&text, None, &mut list);
        assert_eq!(list[0].excerpt(), "ghp_… (40 characters)");
    }

    #[test]
    fn a_mention_that_scrubbing_leaves_is_not_certain() {
        assert_eq!(kinds("ask <@U02ABCDEF|jane>"), [SuspicionKind::Mention]);
        assert_eq!(kinds("shell: cat <@12345 && ls"), []);
    }

    #[test]
    fn machines_and_addresses_are_for_a_person_to_see() {
        assert_eq!(
            kinds("ssh Janes-MacBook-Pro.local"),
            [SuspicionKind::Machine]
        );
        assert_eq!(
            kinds("from 93.184.216.34 and 10.0.0.7, v1.2.3.4"),
            [SuspicionKind::NetworkAddress]
        );
        assert_eq!(kinds("commit 5e667811b374954bb1a7119424ea70bf749eced6"), []);
    }
}
