//! The sentences of reports on one result set: warnings, confounds, input that is too small, and what a search adds. They
//! are the same in the terminal, in Markdown and on the page.

use std::collections::BTreeMap;
use std::fmt::Display;

use super::figures::{score, share, signed};
use super::planted::left_alone;
use super::translation::{Translation, fill, first_of, joined};
use crate::action::BuiltInStrategy;
use crate::results::{
    Design, ExcludedDimension, ExclusionReason, Manifest, MethodSummary, NarrowScaleCause,
    OpenBookSummary, Summary,
};
use base::locale::Locale;

/// The warnings among the notes of a report. Critical warnings are not among them, because reports show these first.
pub(super) fn warnings(summary: &Summary, manifest: &Manifest, tr: &Translation) -> Vec<String> {
    // A scale that is known to be narrow is critical.
    let scale = scale_warning(summary, manifest, tr).filter(|_| summary.scale.difference.is_none());
    let caveats = caveats(summary, manifest, tr);
    scale.into_iter().chain(caveats).collect()
}

/// What restricts the figures. That a run was offline does not, because its results are the same.
fn caveats(summary: &Summary, manifest: &Manifest, tr: &Translation) -> Vec<String> {
    let caveats = &manifest.caveats;
    let mut notes = Vec::new();
    if summary.lexical {
        let parts = lexical_parts(&manifest.design, tr);
        notes.push(fill(tr.lexical_note, &[&parts]));
        if manifest.design.answerers.iter().any(|one| one.lexical) {
            notes.push(tr.lexical_answers.to_owned());
        }
    }
    let unchecked = caveats.reading.iter().filter(|check| !check.is_done());
    notes.extend(unchecked.map(|check| fill(tr.not_checked, &[&check.judge, &check.of])));
    notes.extend(excluded_dimensions(&summary.excluded, tr));
    if caveats.allow_unproven {
        notes.push(tr.unproven.to_owned());
    }
    if summary.uncommon_probes > 0 {
        notes.push(fill(tr.uncommon, &[&summary.uncommon_probes]));
    }
    notes.extend(truncated_replies(summary, &manifest.design, tr));
    notes.extend(scant_input(summary, manifest, tr));
    notes.extend(invented_references(summary, tr));
    let methods = summary.methods.iter();
    notes.extend(methods.filter_map(|(name, method)| kept_user_messages(name, method, tr)));
    notes.extend(identical_contexts(summary, tr));
    notes.extend(caveats.notes.iter().cloned());
    notes
}

/// How much of what a method replaces the vendor keeps as messages of the user; `None` if it keeps none.
fn kept_user_messages(name: &str, method: &MethodSummary, tr: &Translation) -> Option<String> {
    let kept = method.compression.user_share.filter(|share| *share > 0.0)?;
    Some(fill(tr.user_kept_note, &[&share(Some(kept)), &name]))
}

/// Warnings without which the figures mislead: judges that failed their self-test, a scale that measures nothing.
pub(super) fn critical_warnings(
    summary: &Summary,
    manifest: &Manifest,
    tr: &Translation,
) -> Vec<String> {
    let caveats = &manifest.caveats;
    let weak = if caveats.allow_weak_judge {
        tr.weak_judge
    } else {
        tr.weak_judge_stopped
    };
    let judges = caveats.weak_judges.iter().map(|judge| fill(weak, &[judge]));
    let scale = scale_warning(summary, manifest, tr).filter(|_| summary.scale.difference.is_some());
    let checks = caveats
        .reading
        .iter()
        .filter(|check| check.is_failed())
        .map(|check| {
            let figures: [&dyn Display; 4] = [&check.judge, &check.of, &check.below, &check.above];
            fill(tr.hardly_reads, &figures)
        });
    let on_full = summary.judges.on_full.iter();
    let on_full = on_full.filter(|check| check.differs()).map(|check| {
        let shares = [check.complete, check.literal].map(|part| share(Some(part)));
        let figures: [&dyn Display; 4] = [&check.judge, &shares[0], &shares[1], &check.answers];
        fill(tr.rules_differ, &figures)
    });
    checks.chain(on_full).chain(judges).chain(scale).collect()
}

/// The methods that compressed nothing in some contexts; `None` if there are no such methods.
pub(super) fn not_compressed_line(summary: &Summary, tr: &Translation) -> Option<String> {
    let parts = summary.methods.iter().filter_map(|(name, method)| {
        let left_out = method.not_compressed.as_ref()?;
        let figures: [&dyn Display; 3] = [name, &left_out.contexts, &left_out.of];
        Some(fill(tr.not_compressed_part, &figures))
    });
    let parts = joined(parts, tr.comma)?;
    Some(fill(tr.not_compressed_line, &[&parts]))
}

/// Which dimensions `overall` leaves out, and why: one note for all that the same judges are not qualified in, which may be
/// all six.
pub(super) fn excluded_dimensions(excluded: &[ExcludedDimension], tr: &Translation) -> Vec<String> {
    let mut unqualified: BTreeMap<&[String], Vec<&str>> = BTreeMap::new();
    let mut narrow = Vec::new();
    for ExcludedDimension { dimension, reason } in excluded {
        let name = dimension.label(tr.locale);
        match reason {
            ExclusionReason::Unqualified { judges } => {
                unqualified.entry(judges).or_default().push(name)
            }
            ExclusionReason::NarrowScale { difference, probes } => {
                let difference = signed(*difference);
                narrow.push(fill(tr.narrow_dimension, &[&name, &difference, probes]));
            }
        }
    }
    let unqualified = unqualified.iter().map(|(judges, names)| {
        fill(
            tr.unqualified,
            &[&names.join(tr.comma), &judges.join(tr.comma)],
        )
    });
    unqualified.chain(narrow).collect()
}

/// The share of truncated answers of each answerer's methods.
fn truncated_replies(summary: &Summary, design: &Design, tr: &Translation) -> Vec<String> {
    let notes = design.answerers.iter().filter_map(|answerer| {
        let methods = summary
            .methods
            .iter()
            .filter(|(_, method)| method.answerer == answerer.name);
        let shares = methods.filter_map(|(name, method)| {
            let part = method.truncated_share.filter(|share| *share > 0.0);
            part.map(|part| format!("{name} {}", share(Some(part))))
        });
        let shares = joined(shares, tr.comma)?;
        Some(fill(tr.truncated_replies, &[&shares]))
    });
    notes.collect()
}

/// Methods whose contexts are identical, and settings that changed nothing.
fn identical_contexts(summary: &Summary, tr: &Translation) -> Vec<String> {
    let notes = summary.identical_contexts.iter().map(|found| {
        let ([a, b], contexts) = (&found.methods, &found.contexts);
        let settings = joined(found.settings.iter().cloned(), tr.comma);
        let idle = settings.map(|settings| fill(tr.setting_changed_nothing, &[&settings]));
        fill(
            tr.identical_contexts,
            &[a, b, contexts, &idle.unwrap_or_default()],
        )
    });
    notes.collect()
}

/// A warning if ceiling and floor are too close together, or if that is not known.
fn scale_warning(summary: &Summary, manifest: &Manifest, tr: &Translation) -> Option<String> {
    if !manifest.design.has_answers() {
        return None;
    }
    let scale = &summary.scale;
    let Some(difference) = scale.difference else {
        return Some(tr.scale_unchecked.to_owned());
    };
    if !scale.is_narrow() {
        return None;
    }
    let cause = match scale.cause {
        Some(NarrowScaleCause::Judge) => tr.narrow_by_judge,
        Some(NarrowScaleCause::Bank) => tr.narrow_by_bank,
        Some(NarrowScaleCause::Answerer) => tr.narrow_by_answerer,
        Some(NarrowScaleCause::FewProbes) => tr.narrow_by_chance,
        None => tr.narrow_by_unknown,
    };
    let bound = scale
        .lower_bound
        .map(|bound| format!(" (≥ {})", signed(bound)))
        .unwrap_or_default();
    let figures: [&dyn Display; 4] = [&signed(difference), &scale.probes, &bound, &cause];
    Some(fill(tr.narrow_scale, &figures))
}

/// How well the judges of a panel agree; `None` with one judge.
fn panel_agreement(summary: &Summary, tr: &Translation) -> Option<String> {
    let alpha = summary.judges.alpha?;
    let low = alpha.is_low_alpha().then_some(tr.low_alpha);
    let figures: [&dyn Display; 3] = [&score(alpha.value), &alpha.pairs, &low.unwrap_or_default()];
    Some(fill(tr.alpha, &figures))
}

fn lexical_parts(design: &Design, tr: &Translation) -> String {
    let all = design.compressors_and_answerers().chain(&design.judges);
    let mut names: Vec<&str> = all
        .filter(|model| model.lexical)
        .map(|model| model.name.as_str())
        .collect();
    names.dedup();
    names.join(tr.comma)
}

/// Properties of the design that affect how scores can be compared.
pub(super) fn confounds(summary: &Summary, design: &Design, tr: &Translation) -> Vec<String> {
    let mut notes = Vec::new();
    if design.has_answers() {
        notes.push(
            if design.judge_context {
                tr.judge_sees
            } else {
                tr.judge_blind
            }
            .to_owned(),
        );
    }
    notes.extend(families(design, tr));
    if design.answerers.len() > 1 {
        notes.push(tr.several_answerers.to_owned());
    }
    let methods = summary.methods.iter();
    let deterministic = methods.filter(|(_, m)| m.real_runs == Some(1.0) && summary.runs > 1);
    let deterministic = joined(deterministic.map(|(name, _)| name.clone()), tr.comma);
    notes.extend(deterministic.map(|names| fill(tr.deterministic, &[&names])));
    notes.extend(variance(summary, tr));
    notes.extend(panel_agreement(summary, tr));
    notes
}

/// How the variance of the scores of a method divides over its sources.
fn variance(summary: &Summary, tr: &Translation) -> Option<String> {
    let shares = (summary.variance_shares.iter())
        .map(|(name, share)| format!("{} {:.0}%", tr.variance_component(name), 100.0 * share));
    Some(fill(tr.variance, &[&joined(shares, tr.comma)?]))
}

/// Judges that belong to the model family of an answerer or compressor.
fn families(design: &Design, tr: &Translation) -> Vec<String> {
    let others: Vec<_> = design
        .compressors_and_answerers()
        .filter(|model| !model.lexical)
        .collect();
    let notes = design
        .judges
        .iter()
        .filter(|judge| !judge.lexical)
        .filter_map(|judge| {
            let family = judge.family();
            let mut related: Vec<&str> = others
                .iter()
                .filter(|other| !family.is_empty() && other.family() == family)
                .map(|other| &*other.model)
                .collect();
            related.sort_unstable();
            related.dedup();
            (!related.is_empty())
                .then(|| fill(tr.same_family, &[&judge.model, &related.join(tr.comma)]))
        });
    notes.collect()
}

/// The maximum number of invented references of a method that are named.
const NAMED_REFERENCES: usize = 3;

/// References in contexts that their transcripts do not have, and for how many contexts this cannot be known.
fn invented_references(summary: &Summary, tr: &Translation) -> Vec<String> {
    let parts = summary.methods.iter().filter_map(|(name, method)| {
        let found = method
            .invented
            .as_ref()
            .filter(|found| found.count > 0 && !method.is_anchor())?;
        let named = found.references.iter().take(NAMED_REFERENCES);
        let names: Vec<String> = named
            .map(|reference| format!("`{}`", reference.replace('`', "'")))
            .collect();
        let rate = format!("{:.1}", found.per_1000_tokens?);
        let names = names.join(tr.comma);
        Some(fill(tr.invented_part, &[name, &found.count, &rate, &names]))
    });
    let parts = joined(parts, tr.semicolon);
    let warning = parts.map(|parts| fill(tr.invented_note, &[&parts]));
    let readable = summary
        .methods
        .values()
        .filter_map(|method| method.invented.as_ref());
    let midway = readable
        .max_by_key(|found| found.begun_midway)
        .filter(|found| found.begun_midway > 0);
    let midway = midway.map(|found| {
        let all = found.begun_midway + found.contexts;
        fill(tr.invented_midway, &[&found.begun_midway, &all])
    });
    warning.into_iter().chain(midway).collect()
}

/// The number of probes that a bank should have; if there are fewer, a note says so.
const FEW_PROBES: usize = 8;

/// A sentence for each kind of input that is missing or too small.
fn scant_input(summary: &Summary, manifest: &Manifest, tr: &Translation) -> Vec<String> {
    let is_answered = manifest.design.has_answers();
    let few_probes = match summary.probes {
        0 => None,
        1 => Some(tr.one_probe.to_owned()),
        few if few < FEW_PROBES => Some(fill(tr.few_probes, &[&few])),
        _ => None,
    };
    let has_one_run = summary.comparison.is_none() && manifest.design.has_one_sample();
    let has_constraints = summary
        .methods
        .values()
        .any(|method| method.economy.constraints_kept.is_some());
    [
        few_probes.filter(|_| is_answered),
        has_one_run.then(|| tr.single_run.to_owned()),
        (is_answered && !has_constraints).then(|| tr.no_constraints.to_owned()),
        other_language(manifest, tr),
        left_alone(summary, tr),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The number of sessions in a language that the self-test of the judges did not cover.
fn other_language(manifest: &Manifest, tr: &Translation) -> Option<String> {
    let design = &manifest.design;
    let count = manifest.caveats.other_language;
    let is_graded_by_model = design.judges.iter().any(|judge| !judge.lexical);
    let (tested, other) = match design.locale {
        Locale::En => (tr.english, tr.chinese),
        Locale::Zh => (tr.chinese, tr.english),
    };
    let figures: [&dyn Display; 4] = [&count, &design.fixtures.len(), &other, &tested];
    (count > 0 && is_graded_by_model).then(|| fill(tr.other_language, &figures))
}

/// If the score of searching alone is within this many points of the whole transcript, open scores measure the archive
/// and not the method.
const NEAR_FULL: f64 = 1.0;

/// The maximum number of methods that the line on open book names.
const NAMED_METHODS: usize = 3;

/// Open book in one line: what methods gain by searching, and whether searching alone does as well as the whole
/// transcript.
pub(super) fn open_book_line(summary: &Summary, tr: &Translation) -> Option<String> {
    let gains = answered(summary).filter(|(_, method, _)| !method.is_anchor());
    let gains = gains.map(|(name, _, open)| {
        let [closed, open] = [&open.closed, &open.open].map(|level| score(level.median));
        format!("{name} {closed} → {open}")
    });
    let gains: Vec<String> = gains.collect();
    let shown = joined(first_of(&gains, NAMED_METHODS, tr, Clone::clone), tr.comma)?;
    let line = fill(tr.open_book_line, &[&shown]);
    joined([line].into_iter().chain(archive_sentence(summary, tr)), " ")
}

/// The methods that were also answered with a search.
fn answered(
    summary: &Summary,
) -> impl Iterator<Item = (&String, &MethodSummary, &OpenBookSummary)> + Clone {
    summary
        .methods
        .iter()
        .filter_map(|(name, method)| Some((name, method, method.open_book.as_ref()?)))
}

/// Whether a search without any context scores near the whole transcript. If it was not measured, the sentence says so.
pub(super) fn archive_sentence(summary: &Summary, tr: &Translation) -> Option<String> {
    answered(summary).next()?;
    let Some((_, floor, alone)) =
        answered(summary).find(|(_, method, _)| method.is(BuiltInStrategy::None))
    else {
        return Some(tr.archive_unmeasured.to_owned());
    };
    let alone = alone.open.median?;
    let full = (summary.methods.values())
        .find(|method| method.answerer == floor.answerer && method.is(BuiltInStrategy::Full));
    match full.and_then(|full| full.overall.median) {
        None => Some(tr.full_unmeasured.to_owned()),
        Some(full) if full - alone > NEAR_FULL => None,
        Some(full) => Some(fill(
            tr.archive_alone,
            &[&score(Some(alone)), &score(Some(full))],
        )),
    }
}
