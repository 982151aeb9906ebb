//! What cannot be said because there is little input: few probes or fixtures, one run, banks without tags, sessions in a
//! language that judges were not tested in.

use super::translation::{Translation, fill};
use crate::results::{Manifest, Summary};
use base::locale::Locale;

/// Probes under which a note says how few they are: as many as a bank should have.
const FEW_PROBES: usize = 8;

/// A sentence for each thing that is missing.
pub(super) fn scant_input(summary: &Summary, manifest: &Manifest, tr: &Translation) -> Vec<String> {
    let is_answered = !manifest.design.answerers.is_empty();
    let fixtures = summary.methods.iter().map(|(_, method)| method.overall.fixtures).max();
    let few_fixtures = match fixtures {
        Some(1) => Some(tr.one_fixture.to_owned()),
        Some(2) => Some(tr.few_fixtures.to_owned()),
        _ => None,
    };
    let few_probes = match summary.probes {
        0 => None,
        1 => Some(tr.one_probe.to_owned()),
        few if few < FEW_PROBES => Some(fill(tr.few_probes, &[&few.to_string()])),
        _ => None,
    };
    let has_one_run = summary.comparison.is_none() && manifest.design.has_one_sample();
    let has_constraints = summary.methods.values().any(|method| method.economy.constraints_kept.is_some());
    [
        few_fixtures,
        few_probes.filter(|_| is_answered),
        has_one_run.then(|| tr.single_run.to_owned()),
        (is_answered && !has_constraints).then(|| tr.no_constraints.to_owned()),
        other_language(manifest, tr),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Sessions in a language that no case of the judges' self-test was in.
fn other_language(manifest: &Manifest, tr: &Translation) -> Option<String> {
    let design = &manifest.design;
    let count = manifest.caveats.other_language;
    let is_graded_by_model = design.judges.iter().any(|judge| !judge.lexical);
    let (tested, other) = match design.locale {
        Locale::En => (tr.english, tr.chinese),
        Locale::Zh => (tr.chinese, tr.english),
    };
    let figures = [&count.to_string(), &design.fixtures.len().to_string()];
    (count > 0 && is_graded_by_model).then(|| fill(tr.other_language, &[figures[0], figures[1], other, tested]))
}
