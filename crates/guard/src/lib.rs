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
mod report;

use base::message::Message;
use histories::Histories;
use report::Found;
pub use report::{Finding, Options, Report, Verdict};

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

#[cfg(test)]
mod tests;
