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
pub use report::{Finding, Options, Report, Verdict};

/// A rule finds what is wrong; `None` if it had nothing to look at.
type Rule = fn(&Histories<'_>) -> Option<Vec<Finding>>;

/// The rules by their names, in the order in which findings are listed.
const RULES: [(&str, Rule); 13] = [
    ("empty", form::empty),
    ("cut_off", form::cut_off),
    ("protocol_text", form::protocol_text),
    ("no_smaller", histories::no_smaller),
    ("language", content::language),
    ("newest_request", content::newest_request),
    ("invented_order", content::invented_order),
    ("prompt_as_request", content::prompt_as_request),
    ("rule_lost", content::rule_lost),
    ("done_reopened", content::done_reopened),
    ("invented_references", content::invented_references),
    ("secret", content::secret),
    ("broken_messages", histories::broken_messages),
];

/// The names of the rules, in the order in which findings are listed.
pub fn kinds() -> [&'static str; RULES.len()] {
    RULES.map(|(kind, _)| kind)
}

/// Applies the rules to the history `before` a compaction and the one `after` it: the summary, messages that were kept, and
/// messages that were attached again.
///
/// # Errors
/// Says what was expected where these are not two histories of a session.
pub fn guard(before: &[Message], after: &[Message], options: &Options) -> Result<Report, String> {
    let histories = Histories::new(before, after, options)?;
    let mut without = options.without.iter();
    if let Some(unknown) = without.find(|kind| !kinds().contains(&kind.as_str())) {
        return Err(format!(
            "no rule is called `{unknown}`; the rules are {}",
            kinds().join(", ")
        ));
    }
    let (mut findings, mut not_applicable) = (Vec::new(), Vec::new());
    for (kind, rule) in RULES {
        if options.without.iter().any(|off| off == kind) {
            continue;
        }
        match rule(&histories) {
            Some(found) => {
                findings.extend(found.into_iter().map(|found| Finding { kind, ..found }))
            }
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
