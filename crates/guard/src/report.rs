//! What the rules are told and what they say.

use serde::{Deserialize, Serialize};

/// What to do with a compacted history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Nothing was found.
    Pass,
    /// Something is suspicious.
    Warn,
    /// The summary cannot be read, so the rules about it were not applied.
    Unchecked,
    /// Keep the history: the summary is broken.
    Reject,
}

/// One thing that a rule found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The rule, one of [`kinds`](crate::kinds).
    pub kind: &'static str,
    /// [`Verdict::Reject`] or [`Verdict::Warn`].
    pub severity: Verdict,
    /// What is wrong.
    pub message: String,
    /// Where: the end of the summary, a message by its number, or a piece of the text.
    #[serde(rename = "where")]
    pub place: String,
}

/// What the rules found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The worst of the findings.
    pub verdict: Verdict,
    /// Everything that was found, in the order of [`kinds`](crate::kinds).
    pub findings: Vec<Finding>,
    /// The rules that had nothing to look at.
    pub not_applicable: Vec<&'static str>,
}

/// What is known of the compaction besides the messages.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Rules that are turned off.
    pub without: Vec<String>,
    /// The part of the tokens that must become free, from 0 to 1.
    pub least_freed: f64,
    /// The prompt that asked for the summary: its language and its headings are expected.
    pub prompt: Option<String>,
    /// Why the model stopped, in the provider's word.
    pub stop_reason: Option<String>,
    /// Whether the messages before begin in the middle of a session: what came earlier is unknown.
    pub begins_midway: bool,
    /// Whether the summary is opaque, as a vendor's encrypted item is.
    pub is_opaque: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            without: Vec::new(),
            least_freed: 0.2,
            prompt: None,
            stop_reason: None,
            begins_midway: false,
            is_opaque: false,
        }
    }
}

impl Finding {
    /// A finding of the rule that is applied, which is named later.
    pub(crate) fn new(
        severity: Verdict,
        message: impl Into<String>,
        place: impl Into<String>,
    ) -> Finding {
        Finding {
            kind: "",
            severity,
            message: message.into(),
            place: place.into(),
        }
    }

    /// What makes the summary unusable.
    pub(crate) fn reject(message: impl Into<String>, place: impl Into<String>) -> Finding {
        Finding::new(Verdict::Reject, message, place)
    }

    /// What is suspicious.
    pub(crate) fn warn(message: impl Into<String>, place: impl Into<String>) -> Finding {
        Finding::new(Verdict::Warn, message, place)
    }
}
