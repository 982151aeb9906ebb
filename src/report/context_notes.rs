//! The notes on what contexts and answers say by literal rules.

use super::numbers::share;
use super::translation::{Translation, fill};
use crate::results::{LiteralCheck, MethodSummary, Summary};

/// The most invented references that are named of a method.
const NAMED_REFERENCES: usize = 3;

/// What contexts say that their transcripts do not have, and of how many contexts that cannot be known.
pub(super) fn invented_references(summary: &Summary, tr: &Translation) -> Vec<String> {
    let of = |(name, method): (&String, &MethodSummary)| -> Option<String> {
        let found = method.invented.as_ref().filter(|found| found.count > 0 && !method.is_anchor())?;
        let named = found.references.iter().take(NAMED_REFERENCES);
        let names: Vec<String> = named.map(|reference| format!("`{}`", reference.replace('`', "'"))).collect();
        let rate = format!("{:.1}", found.per_1000_tokens?);
        Some(fill(tr.invented_part, &[name, &found.count.to_string(), &rate, &names.join(tr.and_comma)]))
    };
    let parts: Vec<String> = summary.methods.iter().filter_map(of).collect();
    let warning = (!parts.is_empty()).then(|| fill(tr.invented_note, &[&parts.join(tr.locale.pick("; ", "；"))]));
    let readable = summary.methods.values().filter_map(|method| method.invented.as_ref());
    let midway = readable.max_by_key(|found| found.begun_midway).filter(|found| found.begun_midway > 0);
    let midway = midway.map(|found| {
        let [some, all] = [found.begun_midway, found.begun_midway + found.contexts].map(|number| number.to_string());
        fill(tr.invented_midway, &[&some, &all])
    });
    warning.into_iter().chain(midway).collect()
}

/// The methods of whose answers judges and literal rules disagree.
pub(super) fn literal_checks(summary: &Summary, tr: &Translation) -> Option<String> {
    let of = |(name, method): (&String, &MethodSummary)| -> Option<String> {
        let found = method.literal_check.filter(LiteralCheck::differs)?;
        let [judge, literal] = [found.judge, found.literal].map(|part| share(Some(part)));
        Some(fill(tr.literal_check_part, &[name, &judge, &literal, &found.answers.to_string()]))
    };
    let parts: Vec<String> = summary.methods.iter().filter_map(of).collect();
    (!parts.is_empty()).then(|| fill(tr.literal_check, &[&parts.join(tr.locale.pick("; ", "；"))]))
}
