//! A corpus for the scrubber: secrets in the settings in which session logs show them, and texts without secrets.
//!
//! The settings are files with one text per line, `§` in place of the secret, and `\n` for a line break. The secrets
//! are put together here, so that no scanner trips on this repository, and none was ever in use.

use compeval_sessions::import::{ScrubSettings, audit, scrub};
use compeval_sessions::transcript::{Fixture, Message, Role};

const PASSWORDS: &str = include_str!("passwords.txt");
const TOKENS: &str = include_str!("tokens.txt");
const DECOYS: &str = include_str!("decoys.txt");

/// What the scrubber did with the corpus.
#[derive(Debug, Default)]
pub(crate) struct Measured {
    pub(crate) settings: usize,
    pub(crate) secrets: usize,
    /// Texts from which the secret was not removed.
    pub(crate) missed: Vec<String>,
    /// Of these, those that the audit lists.
    pub(crate) listed: usize,
    pub(crate) decoys: usize,
    /// Texts without a secret from which something was removed, with what became of them.
    pub(crate) harmed: Vec<String>,
}

impl Measured {
    pub(crate) fn removed_share(&self) -> f64 {
        1.0 - self.missed.len() as f64 / self.secrets as f64
    }

    pub(crate) fn harmed_share(&self) -> f64 {
        self.harmed.len() as f64 / self.decoys as f64
    }
}

/// Passwords as people choose them: words, words with digits, phrases, keyboard rows.
fn passwords() -> Vec<String> {
    let joined = |parts: &[&str]| parts.concat();
    vec![
        joined(&["hun", "ter2"]),
        joined(&["correct-horse", "-battery"]),
        joined(&["Tr0ub", "4dor&3"]),
        joined(&["Sommer", "2024!"]),
        joined(&["let", "mein"]),
        joined(&["p@ss", "w0rd"]),
        joined(&["dra", "gon"]),
        joined(&["qwe", "rty123"]),
        joined(&["S3c", "r3t!"]),
        joined(&["sword", "fish"]),
        joined(&["Wel", "come1"]),
        joined(&["Blue", "$ky77"]),
        joined(&["ilove", "you"]),
        joined(&["mysecret", "password"]),
        joined(&["M1xed", "_Case-99"]),
        joined(&["zaq12", "wsx"]),
        joined(&["trust", "no1"]),
        joined(&["kakao", "#55"]),
    ]
}

/// Tokens as machines make them.
fn tokens() -> Vec<String> {
    let letters = ["q7Rk2Zt9Lm4Xc8Vb3N", "w6Ys1Hd5Jf0GpTaEuIoKlMzBv"].concat();
    let part = |range: std::ops::Range<usize>| letters.get(range).unwrap_or_default().to_owned();
    let hex = ["9f3a7c1e5b2d8046", "fa17ce39bd528e60"].concat();
    vec![
        part(0..40),
        part(5..29),
        hex,
        part(3..20) + "_" + &part(20..40),
        ["gh", "p_", &part(0..36)].concat(),
    ]
}

/// The texts of a file, each filled with `each` of the secrets in turn, and with the secret that it was filled with.
fn filled(
    settings: &str,
    secrets: &[String],
    each: usize,
    step: (usize, usize),
) -> Vec<(String, String)> {
    let lines = settings.lines().filter(|line| !line.is_empty()).enumerate();
    let fill = |(index, line): (usize, &str)| {
        let chosen = (0..each)
            .filter_map(move |turn| secrets.get((index * step.0 + turn * step.1) % secrets.len()));
        let line = line.to_owned();
        chosen
            .map(move |secret| (unfolded(&line).replace('§', secret), secret.clone()))
            .collect::<Vec<_>>()
    };
    lines.flat_map(fill).collect()
}

/// The text of a line, which writes line breaks, tabs and escape characters as JSON does. A text that is JSON stays as
/// it is.
pub(crate) fn unfolded(line: &str) -> String {
    if line.starts_with("\"{") {
        return line.to_owned();
    }
    line.replace("\\r", "\r")
        .replace("\\n", "\n")
        .replace("\\t", "\t")
        .replace("\\u001b", "\u{1b}")
}

fn fixture(text: &str) -> Fixture {
    let messages = vec![Message::text(Role::User, text)];
    serde_json::from_value(serde_json::json!({"name": "f", "messages": messages}))
        .expect("a fixture")
}

/// A text after scrubbing.
#[allow(dead_code, reason = "the example does without")]
pub(crate) fn scrubbed(text: &str) -> String {
    let mut fixture = fixture(text);
    scrub(&mut fixture, &ScrubSettings::default());
    fixture
        .messages
        .first()
        .map(|message| message.content.clone())
        .unwrap_or_default()
}

/// Scrubs every text of the corpus in a fixture of its own.
pub(crate) fn measure() -> Measured {
    let mut all = filled(PASSWORDS, &passwords(), 3, (5, 7));
    all.extend(filled(TOKENS, &tokens(), 2, (1, 2)));
    let mut measured = Measured {
        secrets: all.len(),
        ..Measured::default()
    };
    measured.settings = PASSWORDS
        .lines()
        .chain(TOKENS.lines())
        .filter(|line| !line.is_empty())
        .count();
    for (text, secret) in &all {
        let mut fixture = fixture(text);
        scrub(&mut fixture, &ScrubSettings::default());
        let after = fixture
            .messages
            .first()
            .map(|message| message.content.clone())
            .unwrap_or_default();
        if after.contains(secret.as_str()) {
            measured.listed += usize::from(!audit(&fixture).is_empty());
            measured.missed.push(text.clone());
        }
    }
    for line in DECOYS.lines().filter(|line| !line.is_empty()) {
        let mut fixture = fixture(&unfolded(line));
        scrub(&mut fixture, &ScrubSettings::default());
        let after = fixture
            .messages
            .first()
            .map(|message| message.content.clone())
            .unwrap_or_default();
        measured.decoys += 1;
        if after.contains("REDACTED_") {
            measured.harmed.push(format!("{line} -> {after}"));
        }
    }
    measured
}
