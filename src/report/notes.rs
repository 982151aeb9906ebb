//! What must be said beside the figures: stand-ins, weak judges, confounds.

use super::changes::list;
use super::figures::{brackets, signed};
use super::words::{Words, fill};
use crate::results::{
    Comparison, Design, Judged, Manifest, MethodComparison, NarrowScaleCause, Reliability, Summary, blind_spots,
};

/// What no table may be printed without. That a run was offline is not among it: its results are the same.
pub(super) fn caveats(summary: &Summary, manifest: &Manifest, words: &Words) -> Vec<String> {
    let caveats = &manifest.caveats;
    let mut notes = Vec::new();
    if summary.lexical {
        notes.push(fill(words.lexical_note, &[&lexical_parts(&manifest.design, words)]));
    }
    let weak = if caveats.allow_weak_judge { words.weak_judge } else { words.weak_judge_stopped };
    notes.extend(caveats.weak_judges.iter().map(|judge| fill(weak, &[judge])));
    if caveats.allow_unproven {
        notes.push(words.unproven.to_owned());
    }
    if summary.uncommon_probes > 0 {
        notes.push(fill(words.uncommon, &[&summary.uncommon_probes.to_string()]));
    }
    let fixtures = summary.methods.iter().map(|(_, method)| method.overall.fixtures).max();
    match fixtures {
        Some(1) => notes.push(words.one_fixture.to_owned()),
        Some(2) => notes.push(words.few_fixtures.to_owned()),
        _ => {}
    }
    notes.extend(caveats.notes.iter().cloned());
    notes
}

/// What to know about ceiling and floor before any figure is read; `None` where they lie well apart.
pub(super) fn scale_warning(summary: &Summary, words: &Words) -> Option<String> {
    let scale = &summary.scale;
    let Some(difference) = scale.difference else { return Some(words.scale_unchecked.to_owned()) };
    let cause = match scale.cause? {
        NarrowScaleCause::Judge => words.narrow_by_judge,
        NarrowScaleCause::Bank => words.narrow_by_bank,
        NarrowScaleCause::Answerer => words.narrow_by_answerer,
    };
    let bound = scale.lower_bound.map(|bound| format!(" (≥ {})", signed(bound))).unwrap_or_default();
    Some(fill(words.narrow_scale, &[&signed(difference), &scale.probes.to_string(), &bound, cause]))
}

/// How far the judges of a panel agree; `None` with one judge.
pub(super) fn panel_agreement(summary: &Summary, words: &Words) -> Option<String> {
    let alpha = summary.judges.alpha?;
    let value = super::figures::ratio(alpha.value);
    Some(fill(words.alpha, &[&value, &alpha.pairs.to_string()]))
}

fn lexical_parts(design: &Design, words: &Words) -> String {
    let compressors = design.methods.iter().filter_map(|method| method.model.as_ref());
    let all = compressors.chain(&design.answerers).chain(&design.judges);
    let mut names: Vec<&str> = all.filter(|asked| asked.lexical).map(|asked| asked.name.as_str()).collect();
    names.dedup();
    names.join(match words.locale {
        crate::locale::Locale::En => ", ",
        crate::locale::Locale::Zh => "、",
    })
}

/// What a reader of the report should know besides.
pub(super) fn confounds(summary: &Summary, design: &Design, words: &Words) -> Vec<String> {
    let mut notes = vec![if design.judge_context { words.judge_sees } else { words.judge_blind }.to_owned()];
    notes.extend(families(design, words));
    if design.answerers.len() > 1 {
        notes.push(words.several_readers.to_owned());
    }
    let still: Vec<&str> = summary
        .methods
        .iter()
        .filter(|(_, m)| m.real_runs == Some(1.0) && summary.runs > 1)
        .map(|(name, _)| name)
        .collect();
    if !still.is_empty() {
        notes.push(fill(words.deterministic, &[&still.join(", ")]));
    }
    if summary.methods.iter().any(|(_, method)| method.retention.has_narrow_span()) {
        notes.push(words.narrow_span.to_owned());
    }
    notes.extend(panel_agreement(summary, words));
    if let Some(alpha) = summary.judges.alpha.filter(crate::stats::Coefficient::is_low_alpha) {
        notes.push(fill(words.low_alpha, &[&super::figures::ratio(alpha.value)]));
    }
    notes
}

/// Judges of one family with an answerer or compressor.
fn families(design: &Design, words: &Words) -> Vec<String> {
    let compressors = design.methods.iter().filter_map(|method| method.model.as_ref());
    let others: Vec<_> = compressors.chain(&design.answerers).filter(|asked| !asked.lexical).collect();
    let of = |judge: &crate::results::Asked| {
        let family = judge.family();
        let mut kin: Vec<&str> = others
            .iter()
            .filter(|other| !family.is_empty() && other.family() == family)
            .map(|other| &*other.model)
            .collect();
        kin.sort_unstable();
        kin.dedup();
        (!kin.is_empty()).then(|| fill(words.same_family, &[&judge.model, &kin.join(", ")]))
    };
    design.judges.iter().filter(|judge| !judge.lexical).filter_map(of).collect()
}

/// What must be said beside a comparison.
pub(super) fn about_comparison(comparison: &Comparison, words: &Words) -> Vec<String> {
    let mut notes = Vec::new();
    if comparison.lexical {
        notes.push(words.lexical_compared.to_owned());
    }
    if comparison.left_out > 0 {
        let figures = [comparison.fixtures.len(), comparison.probes, comparison.left_out].map(|n| n.to_string());
        notes.push(fill(words.compared, &figures.each_ref().map(String::as_str)));
    }
    notes.extend(list(words.edited_all, &comparison.edits, words));
    for (method, compared) in comparison.methods.iter() {
        if compared.fixtures.compared() == 0 {
            notes.push(fill(words.no_common_cell, &[method]));
        }
        notes.extend(if compared.is_untestable() {
            untestable(method, compared, words)
        } else {
            beyond_rerun(method, compared, words)
        });
        notes.extend(reliability(method, &compared.reliability, words));
    }
    notes.extend(blind(comparison, words));
    if !comparison.unmatched.is_empty() {
        notes.push(fill(words.unmatched, &[&comparison.unmatched.join(", ")]));
    }
    notes.extend(comparison.warnings.iter().cloned());
    notes
}

/// A method that changed in one or two fixtures: what these show.
fn untestable(method: &str, compared: &MethodComparison, words: &Words) -> Option<String> {
    let overall = compared.overall.as_ref()?;
    let (tested, all) = (overall.clusters.to_string(), (overall.clusters + overall.unchanged).to_string());
    let figures = [&signed(overall.difference), &brackets(overall.ci95_rerun)];
    Some(fill(words.untestable, &[method, &tested, &all, figures[0], figures[1]]))
}

fn reliability(method: &str, found: &Reliability, words: &Words) -> Vec<String> {
    let figures = [found.failed, found.chains, found.baseline_failed, found.baseline_chains].map(|n| n.to_string());
    let [failed, chains, base, base_chains] = &figures;
    let worse = found.regressed.then(|| fill(words.reliability, &[method, failed, chains, base, base_chains]));
    let new: Vec<String> = found.newly_failing.iter().map(ToString::to_string).collect();
    let count = new.len().to_string();
    let listed = (!new.is_empty()).then(|| fill(words.newly_failing, &[method, &count, &new.join("; ")]));
    worse.into_iter().chain(listed).collect()
}

/// The methods of which these fixtures hardly show a loss, or none at all.
fn blind(comparison: &Comparison, words: &Words) -> Vec<String> {
    let (hardly, never): (Vec<_>, Vec<_>) = blind_spots(comparison).into_iter().partition(|(_, mdd)| mdd.is_some());
    let sentence = |pattern, methods: Vec<(&str, Option<f64>)>| {
        let names: Vec<&str> = methods.into_iter().map(|(method, _)| method).collect();
        (!names.is_empty()).then(|| fill(pattern, &[words.overall, &names.join(", ")]))
    };
    sentence(words.nearly_blind, hardly).into_iter().chain(sentence(words.blind, never)).collect()
}

/// What is more than re-run noise on these fixtures, though not shown for others: a sentence a method.
fn beyond_rerun(method: &str, compared: &MethodComparison, words: &Words) -> Option<String> {
    let own = compared.overall.iter().map(|judged| (words.overall.to_owned(), judged));
    let all = own.chain(compared.dimensions.iter().map(|(id, judged)| (words.dimension_label(id), judged)));
    let found: Vec<(String, &Judged)> = all.filter(|(_, judged)| judged.is_beyond_rerun_noise()).collect();
    let fixtures = found.iter().map(|(_, judged)| judged.clusters).max()?.to_string();
    let of = |(what, judged): &(String, &Judged)| {
        let center = signed(judged.rerun_difference.unwrap_or(judged.difference));
        format!("{what} {center} {}", brackets(judged.ci95_rerun))
    };
    let list: Vec<String> = found.iter().map(of).collect();
    Some(fill(words.beyond_rerun, &[method, &fixtures, &list.join(", ")]))
}
