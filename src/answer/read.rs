//! Reads outputs: a reply to an answer, and what the user's own search returns, `{"excerpts": [{"text": "…"}]}`, best first.
//!
//! Every excerpt must occur in the archive: a search that invents a message would give its method facts that no agent
//! could have found.

use std::sync::Arc;

use serde_json::Value;

use super::Recovery;
use super::exchange::{Archive, Excerpt};
use crate::action::Digest;
use base::text::shortened;
use lexical::search::{Ranking, excerpt};
use models::ReadFault;
use sessions::transcript::{Message, estimate_tokens};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The words, without white space around them; never empty.
    pub text: Arc<str>,
    /// The digest of the text, which the store keeps as `out`.
    pub out: Digest,
    /// Whether the token limit cut it off.
    pub truncated: bool,
}

/// Reads a reply's text. One that the token limit cut off is read like any other: whether it is graded is a setting,
/// and a setting of what is done with outputs must not change what is stored.
pub fn read(reply: &str, truncated: bool) -> Result<Answer, ReadFault> {
    let text = reply.trim();
    if text.is_empty() {
        return Err(ReadFault::Empty);
    }
    Ok(Answer {
        text: text.into(),
        out: Digest::hash(text),
        truncated,
    })
}

/// Why the output of a search cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SearchFault {
    #[error(
        "the search returned nothing; where no message matches it is to return {{\"excerpts\":[]}}"
    )]
    Nothing,
    #[error(
        "the search broke its protocol: {found}; expected {{\"excerpts\":[{{\"text\":\"…\"}}]}}"
    )]
    Contract {
        /// What was there instead.
        found: String,
    },
    #[error("excerpt {number} of the search stands in no message of the archive: {text:?}")]
    Invented {
        /// The number of the excerpt, from 1.
        number: usize,
        /// How it begins.
        text: String,
    },
    #[error("the search returned {found} excerpts, and {allowed} were asked for")]
    TooMany { found: usize, allowed: u32 },
}

/// Reads the output of a search in `archive`. Longer excerpts than were asked for are cut.
///
/// # Errors
/// An output that is empty or breaks the protocol; an excerpt that stands in no message.
pub fn read_excerpts(
    recovery: &Recovery,
    archive: Archive<'_>,
    stdout: &[u8],
) -> Result<Vec<Excerpt>, SearchFault> {
    if stdout.iter().all(u8::is_ascii_whitespace) {
        return Err(SearchFault::Nothing);
    }
    let output: Value = serde_json::from_slice(stdout).map_err(|error| SearchFault::Contract {
        found: format!("it is no JSON ({error})"),
    })?;
    let list = output["excerpts"]
        .as_array()
        .ok_or_else(|| SearchFault::Contract {
            found: "there is no list `excerpts`".to_owned(),
        })?;
    if list.len() > recovery.results as usize {
        return Err(SearchFault::TooMany {
            found: list.len(),
            allowed: recovery.results,
        });
    }
    let texts: Vec<String> = archive
        .messages
        .iter()
        .map(Message::countable_text)
        .collect();
    let excerpts = (1..).zip(list).map(|(number, value)| {
        let text = value["text"]
            .as_str()
            .or(value.as_str())
            .map(str::trim)
            .filter(|text| !text.is_empty());
        let text = text.ok_or_else(|| SearchFault::Contract {
            found: format!("excerpt {number} has no `text`"),
        })?;
        let at = texts.iter().position(|whole| whole.contains(text));
        let at = at.ok_or_else(|| SearchFault::Invented {
            number,
            text: shortened(text, 80),
        })?;
        let text = excerpt(
            text,
            &Ranking::default(),
            recovery.excerpt_tokens.0,
            |part| estimate_tokens(part).0,
        );
        Ok(archive.excerpt(at, text))
    });
    excerpts.collect()
}

/// The digest of the results of a search.
pub fn excerpts_digest(excerpts: &[Excerpt]) -> Digest {
    Digest::of_json(
        &excerpts
            .iter()
            .map(|excerpt| (excerpt.message, &excerpt.text))
            .collect::<Vec<_>>(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::SearchProtocol;
    use base::locale::Locale;
    use base::units::Tokens;
    use sessions::transcript::Role;

    fn excerpts_of(stdout: &str) -> Result<Vec<Excerpt>, SearchFault> {
        let recovery = Recovery {
            closed: "a".into(),
            calls: 2,
            results: 2,
            excerpt_tokens: Tokens(6),
            protocol: SearchProtocol::Tool,
            command: None,
            locale: Locale::En,
        };
        let messages = [
            Message::text(Role::User, "the port is 8081"),
            Message::text(Role::Assistant, "noted"),
        ];
        read_excerpts(
            &recovery,
            Archive {
                messages: &messages,
                start: Some(1),
            },
            stdout.as_bytes(),
        )
    }

    #[test]
    fn excerpts_are_found_in_the_archive() {
        let excerpts =
            excerpts_of(r#"{"excerpts":[{"text":"port is 8081"},"noted"]}"#).expect("sound");
        let labelled: Vec<_> = excerpts
            .iter()
            .map(|excerpt| (&*excerpt.label, &*excerpt.text))
            .collect();
        assert_eq!(
            labelled,
            [
                ("message 2 · user", "port is 8081"),
                ("message 3 · assistant", "noted")
            ]
        );
        assert_eq!(excerpts_of(r#"{"excerpts":[]}"#), Ok(Vec::new()));
    }

    #[test]
    fn every_breach_is_named() {
        assert_eq!(excerpts_of(" \n"), Err(SearchFault::Nothing));
        for (stdout, part) in [
            ("Traceback", "no JSON"),
            ("[]", "no list `excerpts`"),
            (r#"{"excerpts":[{"text":""}]}"#, "excerpt 1 has no `text`"),
            (
                r#"{"excerpts":["noted","the port is 9999"]}"#,
                "excerpt 2 of the search stands in no message",
            ),
            (
                r#"{"excerpts":["noted","noted","noted"]}"#,
                "3 excerpts, and 2",
            ),
        ] {
            let fault = excerpts_of(stdout).expect_err("a fault").to_string();
            assert!(fault.contains(part), "{fault}");
        }
    }

    #[test]
    fn space_around_an_answer_is_no_part_of_it() {
        assert_eq!(read(" 8080\n", false), read("8080", false));
        assert_eq!(read(" \n", true), Err(ReadFault::Empty));
    }
}
