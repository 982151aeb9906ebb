//! Says whether a compacted history may replace the one that it was made from.
//!
//! [`guard`] is one pure function: it looks at the messages before and after, without a network or a model. Each rule is
//! made so that it leaves a sound summary alone; what is only suspicious is a warning. A rule that had nothing to look at is
//! listed as not applicable, which is not the same as passed.
//!
//! ```
//! use base::message::{Message, Role};
//! use compeval_guard::{Options, Verdict, guard};
//!
//! let before: Vec<Message> = (0..40)
//!     .map(|step| Message::text(Role::User, format!("Step {step}: move the cache into src/cache.rs, and test it.")))
//!     .collect();
//! let after = [Message::text(Role::User, "I'm sorry, but I can't help with that.")];
//! let report = guard(&before, &after, &Options::default()).expect("two histories");
//! assert_eq!((report.verdict, report.findings[0].kind), (Verdict::Reject, "empty"));
//! ```

mod content;
mod form;
mod histories;
mod prose;

use serde::Serialize;

use base::message::Message;
use histories::Histories;

/// What to do with a compacted history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
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
    /// The rule, one of [`Options::KINDS`].
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
    /// Everything that was found, in the order of [`Options::KINDS`].
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

impl Options {
    /// The rules, in the order in which findings are listed.
    pub const KINDS: [&str; 13] = [
        "empty",
        "cut_off",
        "protocol_text",
        "no_smaller",
        "language",
        "newest_request",
        "invented_order",
        "prompt_as_request",
        "rule_lost",
        "done_reopened",
        "invented_references",
        "secret",
        "broken_messages",
    ];
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

/// What a rule says: `None` if it had nothing to look at.
type Found = Option<Vec<Finding>>;

/// Applies the rules to the history `before` a compaction and the one `after` it: the summary, messages that were kept, and
/// messages that were attached again.
///
/// # Errors
/// Says what was expected where these are not two histories of a session.
pub fn guard(before: &[Message], after: &[Message], options: &Options) -> Result<Report, String> {
    let histories = Histories::new(before, after, options)?;
    let rules: [fn(&Histories<'_>) -> Found; Options::KINDS.len()] = [
        form::empty,
        form::cut_off,
        form::protocol_text,
        histories::no_smaller,
        content::language,
        content::newest_request,
        content::invented_order,
        content::prompt_as_request,
        content::rule_lost,
        content::done_reopened,
        content::invented_references,
        content::secret,
        histories::broken_messages,
    ];
    let (mut findings, mut not_applicable) = (Vec::new(), Vec::new());
    for (kind, rule) in Options::KINDS.into_iter().zip(rules) {
        if options.without.iter().any(|off| off == kind) {
            continue;
        }
        match rule(&histories) {
            Some(found) => findings.extend(found),
            None => not_applicable.push(kind),
        }
    }
    let worst = findings.iter().map(|finding| finding.severity).max();
    let unread = if options.is_opaque {
        Verdict::Unchecked
    } else {
        Verdict::Pass
    };
    Ok(Report {
        verdict: worst.unwrap_or(Verdict::Pass).max(unread),
        findings,
        not_applicable,
    })
}

impl Finding {
    fn new(
        kind: &'static str,
        severity: Verdict,
        message: impl Into<String>,
        place: impl Into<String>,
    ) -> Finding {
        Finding {
            kind,
            severity,
            message: message.into(),
            place: place.into(),
        }
    }
}

#[cfg(test)]
mod tests;
