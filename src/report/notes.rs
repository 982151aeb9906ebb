//! The sentences of reports: caveats, confounds, changes. The same in terminal, Markdown and page.

use super::context_notes::{invented_references, literal_checks};
use super::numbers::{UNKNOWN, brackets, count, score, share, share_with_interval, signed, usd};
use super::scant_notes::scant_input;
use super::translation::{Translation, fill};
use crate::action::BuiltInStrategy;
use crate::measure::RecallCaveat;
use crate::results::{
    Comparison, CostChange, CostChanges, Design, Differences, DriftCheck, ExcludedDimension, ExclusionReason,
    FEWEST_PROBES, Flip, IdenticalContexts, LostConstraint, Manifest, MethodComparison, MethodSummary, ModelInfo,
    NarrowScaleCause, NeededPoints, ProbeFact, Reliability, Share, ShareDifference, Summary, Weakest,
    underpowered_methods,
};
use stats::thresholds::MARGIN;
use stats::{Coefficient, DifferenceTest, NoEvidenceReason, Regrading};

/// Warnings that accompany every table. That a run was offline is not one of them: its results are the same.
pub(super) fn caveats(summary: &Summary, manifest: &Manifest, tr: &Translation) -> Vec<String> {
    let caveats = &manifest.caveats;
    let mut notes = Vec::new();
    if summary.lexical {
        notes.push(fill(tr.lexical_note, &[&lexical_parts(&manifest.design, tr)]));
        if manifest.design.answerers.iter().any(|answerer| answerer.lexical) {
            notes.push(tr.lexical_answers.to_owned());
        }
    }
    let weak = if caveats.allow_weak_judge { tr.weak_judge } else { tr.weak_judge_stopped };
    notes.extend(caveats.weak_judges.iter().map(|judge| fill(weak, &[judge])));
    notes.extend(excluded_dimensions(&summary.excluded, tr));
    if caveats.allow_unproven {
        notes.push(tr.unproven.to_owned());
    }
    if summary.uncommon_probes > 0 {
        notes.push(fill(tr.uncommon, &[&summary.uncommon_probes.to_string()]));
    }
    notes.extend(truncated_replies(summary, &manifest.design, tr));
    notes.extend(scant_input(summary, manifest, tr));
    notes.extend(invented_references(summary, tr));
    notes.extend(literal_checks(summary, tr));
    notes.extend(above_full(summary, tr));
    notes.extend(summary.methods.iter().filter_map(|(name, method)| kept_user_messages(name, method, tr)));
    notes.extend(summary.needed_points.iter().filter_map(|points| points_note(points, tr)));
    notes.extend(identical_contexts(summary, tr));
    notes.extend(caveats.notes.iter().cloned());
    notes
}

/// Methods that a judge grades clearly above the whole transcript in a dimension.
fn above_full(summary: &Summary, tr: &Translation) -> Option<String> {
    if summary.probes < FEWEST_PROBES {
        return None;
    }
    let ceiling = |answerer: &str| {
        summary
            .methods
            .values()
            .find(|method| method.strategy == BuiltInStrategy::Full.name() && method.answerer == answerer)
    };
    let of = |(name, method): (&String, &MethodSummary)| -> Option<Vec<String>> {
        let full = ceiling(&method.answerer).filter(|_| !method.is_anchor())?;
        let above = method.dimensions.iter().filter_map(|(dimension, level)| {
            let difference = level.median? - full.dimensions.get(dimension)?.median?;
            let label = tr.dimension_label(dimension);
            (difference >= MARGIN).then(|| format!("{name} {label} {}", signed(difference)))
        });
        Some(above.collect())
    };
    let above: Vec<String> = summary.methods.iter().filter_map(of).flatten().collect();
    (!above.is_empty()).then(|| fill(tr.above_full, &[&above.join(separator(tr))]))
}

/// Whether a vendor keeps messages of the user word for word.
pub(super) fn keeps_user_messages(summary: &Summary) -> bool {
    summary.methods.values().any(|method| method.compression.user_share > Some(0.0))
}

/// How much of what a method replaces a vendor keeps as the user's own messages; `None` where that is nothing.
fn kept_user_messages(name: &str, method: &MethodSummary, tr: &Translation) -> Option<String> {
    let kept = method.compression.user_share.filter(|share| *share > 0.0)?;
    Some(fill(tr.user_kept_note, &[&share(Some(kept)), name]))
}

/// Warnings without which the figures mislead: judges that failed their self-test, a scale that measures nothing.
pub(super) fn critical_warnings(summary: &Summary, manifest: &Manifest, tr: &Translation) -> Vec<String> {
    let caveats = &manifest.caveats;
    let weak = if caveats.allow_weak_judge { tr.weak_judge } else { tr.weak_judge_stopped };
    let judges = caveats.weak_judges.iter().map(|judge| fill(weak, &[judge]));
    let scale = scale_warning(summary, manifest, tr).filter(|_| summary.scale.difference.is_some());
    let checks = caveats.false_facts.iter().filter(|check| check.is_failed()).map(|check| {
        let figures = [check.of, check.lower, check.needed()].map(|number| number.to_string());
        fill(tr.false_facts, &[&check.judge, &figures[0], &figures[1], &figures[2]])
    });
    checks.chain(judges).chain(scale).collect()
}

/// The methods that kept all that they were to replace somewhere; `None` where all compressed everywhere.
pub(super) fn not_compressed_line(summary: &Summary, tr: &Translation) -> Option<String> {
    let part = |(name, method): (&String, &MethodSummary)| {
        let apart = method.not_compressed.as_ref()?;
        let [contexts, of] = [apart.contexts, apart.of].map(|number| number.to_string());
        Some(fill(tr.not_compressed_part, &[name, &contexts, &of]))
    };
    let parts: Vec<String> = summary.methods.iter().filter_map(part).collect();
    (!parts.is_empty()).then(|| fill(tr.not_compressed_line, &[&parts.join(separator(tr))]))
}

/// Which dimensions leave `overall`, and why.
fn excluded_dimensions(excluded: &[ExcludedDimension], tr: &Translation) -> Vec<String> {
    let note = |ExcludedDimension { dimension, reason }: &ExcludedDimension| {
        let name = dimension.label(tr.locale);
        match reason {
            ExclusionReason::Unqualified { judges } => fill(tr.unqualified, &[name, &judges.join(", ")]),
            ExclusionReason::NarrowScale { difference, probes } => {
                fill(tr.narrow_dimension, &[name, &signed(*difference), &probes.to_string()])
            }
        }
    };
    excluded.iter().map(note).collect()
}

/// The share of truncated answers of each answerer's methods, and how they were treated.
fn truncated_replies(summary: &Summary, design: &Design, tr: &Translation) -> Vec<String> {
    let note = |asked: &ModelInfo| {
        let own = summary.methods.iter().filter(|(_, method)| method.answerer == asked.name);
        let cut = own.filter_map(|(name, method)| Some((name, method.truncated_share.filter(|share| *share > 0.0)?)));
        let shares: Vec<String> = cut.map(|(name, part)| format!("{name} {}", share(Some(part)))).collect();
        let what = if asked.fails_truncated() { tr.truncated_failed } else { tr.truncated_graded };
        (!shares.is_empty()).then(|| fill(tr.truncated_replies, &[&shares.join(", "), what]))
    };
    design.answerers.iter().filter_map(note).collect()
}

/// Whether there are answerers; otherwise there are only contexts.
pub(super) fn has_answers(design: &Design) -> bool {
    !design.answerers.is_empty()
}

/// On which points the recall rests, where that is not all of them.
fn points_note(found: &NeededPoints, tr: &Translation) -> Option<String> {
    let left_out: usize = found.left_out.values().sum();
    let reason = |(why, count): (&RecallCaveat, &usize)| {
        let pattern = match why {
            RecallCaveat::Short => tr.needed_short,
            RecallCaveat::AfterCompaction => tr.needed_after_compaction,
            RecallCaveat::Cut => tr.needed_cut,
            RecallCaveat::FewMessages => tr.needed_few_messages,
            RecallCaveat::NothingNeeded => tr.needed_nothing,
        };
        fill(pattern, &[&count.to_string()])
    };
    let reasons = found.left_out.iter().map(reason).collect::<Vec<_>>().join("; ");
    if left_out == 0 {
        return None;
    }
    let has_figures = found.left_out.keys().any(|why| *why != RecallCaveat::NothingNeeded);
    Some(match found.without_verdict {
        true if !has_figures => fill(tr.needed_nowhere, &[&reasons]),
        true => fill(tr.needed_without_verdict, &[&reasons]),
        false => {
            let all = (found.points + left_out).to_string();
            fill(tr.needed_points, &[&found.points.to_string(), &all, &found.fixtures.to_string(), &reasons])
        }
    })
}

/// Methods that do not differ, and settings that changed nothing.
fn identical_contexts(summary: &Summary, tr: &Translation) -> Vec<String> {
    let of = |found: &IdenticalContexts| {
        let ([a, b], contexts) = (&found.methods, found.contexts.to_string());
        match found.settings.as_slice() {
            [] => fill(tr.identical_contexts, &[a, b, &contexts]),
            settings => fill(tr.setting_changed_nothing, &[a, b, &contexts, &settings.join(", ")]),
        }
    };
    summary.identical_contexts.iter().map(of).collect()
}

/// A warning to read before any figure, where ceiling and floor are too close or unknown.
pub(super) fn scale_warning(summary: &Summary, manifest: &Manifest, tr: &Translation) -> Option<String> {
    if !has_answers(&manifest.design) {
        return None;
    }
    let scale = &summary.scale;
    let Some(difference) = scale.difference else { return Some(tr.scale_unchecked.to_owned()) };
    let cause = match scale.cause? {
        NarrowScaleCause::Judge => tr.narrow_by_judge,
        NarrowScaleCause::Bank => tr.narrow_by_bank,
        NarrowScaleCause::Answerer => tr.narrow_by_answerer,
    };
    let bound = scale.lower_bound.map(|bound| format!(" (≥ {})", signed(bound))).unwrap_or_default();
    Some(fill(tr.narrow_scale, &[&signed(difference), &scale.probes.to_string(), &bound, cause]))
}

/// What tokens/task means; `None` where nothing is answered.
pub(super) fn task_formula(summary: &Summary, manifest: &Manifest, tr: &Translation) -> Option<String> {
    let mut ratios: Vec<String> =
        summary.methods.iter().map(|(_, method)| format!("{:.2}", method.economy.cached_price_ratio)).collect();
    ratios.sort();
    ratios.dedup();
    let is_measured = summary.methods.values().any(|method| method.economy.refetch_is_measured);
    let measured = if is_measured { tr.refetch_measured } else { "" };
    has_answers(&manifest.design).then(|| fill(tr.task_formula, &[&ratios.join(", ")]) + measured)
}

/// How far the judges of a panel agree; `None` with one judge.
pub(super) fn panel_agreement(summary: &Summary, tr: &Translation) -> Option<String> {
    let alpha = summary.judges.alpha?;
    Some(fill(tr.alpha, &[&score(alpha.value), &alpha.pairs.to_string()]))
}

fn lexical_parts(design: &Design, tr: &Translation) -> String {
    let compressors = design.methods.iter().filter_map(|method| method.model.as_ref());
    let all = compressors.chain(&design.answerers).chain(&design.judges);
    let mut names: Vec<&str> = all.filter(|asked| asked.lexical).map(|asked| asked.name.as_str()).collect();
    names.dedup();
    names.join(separator(tr))
}

fn separator(tr: &Translation) -> &'static str {
    tr.locale.pick(", ", "、")
}

/// Properties of the design that affect how scores can be compared.
pub(super) fn confounds(summary: &Summary, design: &Design, tr: &Translation) -> Vec<String> {
    let mut notes = Vec::new();
    if has_answers(design) {
        notes.push(if design.judge_context { tr.judge_sees } else { tr.judge_blind }.to_owned());
    }
    notes.extend(families(design, tr));
    if design.answerers.len() > 1 {
        notes.push(tr.several_answerers.to_owned());
    }
    let deterministic: Vec<&str> = summary
        .methods
        .iter()
        .filter(|(_, m)| m.real_runs == Some(1.0) && summary.runs > 1)
        .map(|(name, _)| name.as_str())
        .collect();
    if !deterministic.is_empty() {
        notes.push(fill(tr.deterministic, &[&deterministic.join(", ")]));
    }
    if summary.methods.iter().any(|(_, method)| method.retention.has_narrow_span()) {
        notes.push(tr.narrow_span.to_owned());
    }
    notes.extend(variance(summary, tr));
    notes.extend(panel_agreement(summary, tr));
    if let Some(alpha) = summary.judges.alpha.filter(Coefficient::is_low_alpha) {
        notes.push(fill(tr.low_alpha, &[&score(alpha.value)]));
    }
    notes
}

/// Which repetitions the scores of a method vary with.
fn variance(summary: &Summary, tr: &Translation) -> Option<String> {
    let shares: Vec<String> = (summary.variance_shares.iter())
        .map(|(name, share)| format!("{} {:.0}%", tr.variance_component(name), 100.0 * share))
        .collect();
    (!shares.is_empty()).then(|| fill(tr.variance, &[&shares.join(separator(tr))]))
}

/// Where a method is weakest, in a sentence; `None` for ceiling and floor, which are not tuned, and where nothing was
/// graded.
pub(super) fn weakest(name: &str, method: &MethodSummary, tr: &Translation) -> Option<String> {
    let Weakest { dimension, probe_type, heading } = &method.weakest;
    let dimension = dimension.as_ref().filter(|_| !method.is_anchor())?;
    let mut parts =
        vec![fill(tr.weakest_dimension, &[&tr.dimension_label(&dimension.name), &score(Some(dimension.value))])];
    let kind =
        probe_type.iter().map(|kind| fill(tr.weakest_type, &[tr.probe_type(&kind.name), &score(Some(kind.value))]));
    let heading = heading.iter().filter_map(|found| {
        let kept = method.economy.survival_by_heading.get(&found.name)?;
        let lost = [kept.of - kept.count, kept.of].map(|n| n.to_string());
        Some(fill(tr.weakest_heading, &[&found.name, &share(Some(1.0 - found.value)), &lost[0], &lost[1]]))
    });
    parts.extend(kind.chain(heading));
    Some(fill(tr.weakest, &[name, &parts.join(separator(tr))]))
}

/// Judges that belong to the model family of an answerer or compressor.
fn families(design: &Design, tr: &Translation) -> Vec<String> {
    let compressors = design.methods.iter().filter_map(|method| method.model.as_ref());
    let others: Vec<_> = compressors.chain(&design.answerers).filter(|asked| !asked.lexical).collect();
    let of = |judge: &ModelInfo| {
        let family = judge.family();
        let mut related: Vec<&str> = others
            .iter()
            .filter(|other| !family.is_empty() && other.family() == family)
            .map(|other| &*other.model)
            .collect();
        related.sort_unstable();
        related.dedup();
        (!related.is_empty()).then(|| fill(tr.same_family, &[&judge.model, &related.join(", ")]))
    };
    design.judges.iter().filter(|judge| !judge.lexical).filter_map(of).collect()
}

/// Warnings that accompany a comparison.
pub(super) fn comparison_notes(comparison: &Comparison, tr: &Translation) -> Vec<String> {
    let mut notes = Vec::new();
    if comparison.lexical {
        notes.push(tr.lexical_compared.to_owned());
    }
    if comparison.left_out > 0 {
        let figures = [comparison.fixtures.len(), comparison.probes, comparison.left_out].map(|n| n.to_string());
        notes.push(fill(tr.compared, &figures.each_ref().map(String::as_str)));
    }
    notes.extend(several_tries(comparison, tr));
    if comparison.confirms {
        notes.push(tr.confirms.to_owned());
    }
    if comparison.single_run {
        notes.push(tr.single_run.to_owned());
    }
    if comparison.until_decided {
        notes.push(tr.until_decided.to_owned());
    }
    notes.extend(excluded_dimensions(&comparison.excluded, tr));
    notes.extend(list(tr.edited_all, &comparison.edits, tr));
    notes.extend(mean_drift(comparison, tr));
    for (method, compared) in comparison.methods.iter() {
        if !compared.has_common_part() {
            notes.push(fill(tr.no_common_cell, &[method]));
        }
        notes.extend(if compared.is_untestable() {
            untestable(method, compared, tr)
        } else {
            beyond_rerun(method, compared, tr)
        });
        notes.extend(compared.unequal_tokens.map(|tokens| {
            let [own, other] = tokens.map(|tokens| count(Some(tokens)));
            fill(tr.unequal_tokens, &[method, &own, &other])
        }));
        notes.extend(method_drift(method, compared, tr));
        notes.extend(reliability(method, &compared.reliability, tr));
    }
    notes.extend(blind(comparison, tr));
    if !comparison.unmatched.is_empty() {
        notes.push(fill(tr.unmatched, &[&comparison.unmatched.join(", ")]));
    }
    notes.extend(comparison.warnings.iter().cloned());
    notes
}

/// The methods of which other designs were compared with the baseline before.
fn several_tries(comparison: &Comparison, tr: &Translation) -> Option<String> {
    let tried = |(name, method): (&String, &MethodComparison)| {
        let tried = method.overall.or(method.needed)?.tried.filter(|tried| *tried > 1)?;
        Some(format!("{name} ({tried})"))
    };
    let methods: Vec<String> = comparison.methods.iter().filter_map(tried).collect();
    (!methods.is_empty()).then(|| fill(tr.tried, &[&comparison.baseline, &methods.join(", ")]))
}

/// What regrading said of the judge, where its change would explain verdicts of a method.
fn method_drift(method: &str, compared: &MethodComparison, tr: &Translation) -> Option<String> {
    let lost = differences(compared, tr).filter(|(_, test)| is_judge_drift(test));
    drift(method, compared.drift.as_ref()?, &lost.map(|(what, _)| what).collect::<Vec<_>>(), tr)
}

/// The same of the mean over methods.
fn mean_drift(comparison: &Comparison, tr: &Translation) -> Option<String> {
    let lost = comparison.primary.iter().filter(|test| is_judge_drift(test)).map(|_| tr.overall.to_owned());
    let name = fill(tr.primary, &[&comparison.tested.to_string()]);
    drift(&name, comparison.drift.as_ref()?, &lost.collect::<Vec<_>>(), tr)
}

fn is_judge_drift(test: &DifferenceTest) -> bool {
    test.reason == Some(NoEvidenceReason::JudgeDrift)
}

fn drift(name: &str, check: &DriftCheck, lost: &[String], tr: &Translation) -> Option<String> {
    let regraded = match check {
        DriftCheck::Unchecked => return Some(fill(tr.drift_unchecked, &[name])),
        DriftCheck::Checked(regraded) => regraded,
    };
    let Regrading { answers, shift } = regraded.overall?;
    let (answers, shift) = (answers.to_string(), signed(shift));
    Some(match lost.is_empty() {
        true => fill(tr.no_drift, &[name, &answers, &shift]),
        false => fill(tr.drift_found, &[name, &answers, &shift, &lost.join(", ")]),
    })
}

/// The effect on the one or two fixtures in which a method changed.
fn untestable(method: &str, compared: &MethodComparison, tr: &Translation) -> Option<String> {
    let overall = compared.overall.as_ref()?;
    let (tested, all) = (overall.clusters.to_string(), (overall.clusters + overall.unchanged).to_string());
    let figures = [&signed(overall.difference), &brackets(overall.ci95_rerun)];
    Some(fill(tr.untestable, &[method, &tested, &all, figures[0], figures[1]]))
}

fn reliability(method: &str, found: &Reliability, tr: &Translation) -> Vec<String> {
    let figures = [found.failed, found.chains, found.baseline_failed, found.baseline_chains].map(|n| n.to_string());
    let [failed, chains, base, base_chains] = &figures;
    let worse = found.regressed.then(|| fill(tr.reliability, &[method, failed, chains, base, base_chains]));
    let new: Vec<String> = found.newly_failing.iter().map(ToString::to_string).collect();
    let count = new.len().to_string();
    let listed = (!new.is_empty()).then(|| fill(tr.newly_failing, &[method, &count, &new.join("; ")]));
    worse.into_iter().chain(listed).collect()
}

/// The methods for which the fixtures cannot show a loss, or only a large one.
fn blind(comparison: &Comparison, tr: &Translation) -> Vec<String> {
    let (hardly, never): (Vec<_>, Vec<_>) =
        underpowered_methods(comparison).into_iter().partition(|(_, mdd)| mdd.is_some());
    let sentence = |pattern, methods: Vec<(&str, Option<f64>)>| {
        let names: Vec<&str> = methods.into_iter().map(|(method, _)| method).collect();
        (!names.is_empty()).then(|| fill(pattern, &[tr.overall, &names.join(", ")]))
    };
    sentence(tr.nearly_blind, hardly).into_iter().chain(sentence(tr.blind, never)).collect()
}

/// Differences beyond re-run noise on these fixtures that are not significant for other sessions.
fn beyond_rerun(method: &str, compared: &MethodComparison, tr: &Translation) -> Option<String> {
    let found: Vec<(String, &DifferenceTest)> =
        differences(compared, tr).filter(|(_, judged)| judged.is_beyond_rerun_noise()).collect();
    let fixtures = found.iter().map(|(_, judged)| judged.clusters).max()?.to_string();
    let text = |(what, judged): &(String, &DifferenceTest)| {
        let center = signed(judged.rerun_difference.unwrap_or(judged.difference));
        format!("{what} {center} {}", brackets(judged.ci95_rerun))
    };
    let list: Vec<String> = found.iter().map(text).collect();
    Some(fill(tr.beyond_rerun, &[method, &fixtures, &list.join(", ")]))
}

/// The maximum number of entries that a sentence lists; `summary.json` has all of them.
const MAX_LISTED: usize = 5;

/// What changed for a method: edits, and their effects on contexts, probes and facts.
pub(super) fn method_changes(compared: &MethodComparison, tr: &Translation) -> Vec<String> {
    let mut notes: Vec<String> = tested_fixtures(compared, tr).into_iter().chain(cost_changes(compared, tr)).collect();
    let fixtures = &compared.fixtures;
    let lists = [
        (tr.asked_again, &fixtures.asked_again),
        (tr.edited, &compared.edits),
        (tr.not_comparable, &fixtures.not_comparable),
        (tr.only_judged, &fixtures.only_judged),
        (tr.only_baseline, &fixtures.only_baseline),
    ];
    notes.extend(lists.into_iter().filter_map(|(pattern, entries)| list(pattern, entries, tr)));
    if let Some(contexts) = compared.differences.contexts.filter(|found| found.compared > 0 && fixtures.tested() > 0) {
        notes.push(fill(tr.same_contexts, &[&contexts.same.to_string(), &contexts.compared.to_string()]));
    }
    let (better, worse): (Vec<&Flip>, Vec<&Flip>) =
        compared.differences.flipped.iter().partition(|flip| flip.after > flip.before);
    let flips = |flips: Vec<&Flip>| flips.into_iter().map(flip).collect::<Vec<_>>();
    notes.extend(list(tr.good_to_bad, &flips(worse), tr));
    notes.extend(list(tr.bad_to_good, &flips(better), tr));
    let facts = |facts: &[ProbeFact]| facts.iter().map(fact).collect::<Vec<_>>();
    notes.extend(list(tr.facts_lost, &facts(&compared.differences.facts_lost), tr));
    notes.extend(list(tr.facts_gained, &facts(&compared.differences.facts_gained), tr));
    let lost = |lost: &LostConstraint| format!("{} {}/{}", fact(&lost.fact), lost.lost, lost.chains);
    let constraints: Vec<String> = compared.constraints_lost.iter().map(lost).collect();
    notes.extend(list(tr.constraints_lost, &constraints, tr));
    let Differences { overclaim, fabrication, constraints, .. } = &compared.differences;
    notes.extend(share_change(tr.overclaim_change, overclaim, tr));
    notes.extend(share_change(tr.fabrication_change, fabrication, tr));
    notes.extend(share_change(tr.constraint_change, constraints, tr));
    notes
}

/// `tokens 1,884 → 3,303 (+75%), tokens/task 62,000 → 51,000 (−18%)`: what a method takes on both sides, where it
/// differs.
fn cost_changes(compared: &MethodComparison, tr: &Translation) -> Option<String> {
    let CostChanges { tokens, tokens_per_task, usd: dollars, seconds } = &compared.costs;
    let figures: [(&str, &CostChange, FormatFigure); 4] = [
        (tr.context_tokens, tokens, count),
        (tr.tokens_per_task, tokens_per_task, count),
        (tr.cost, dollars, usd),
        // Under a second the figure says more about the machine than about the method.
        (tr.seconds, seconds, |value| {
            value.map_or_else(|| UNKNOWN.to_owned(), |value| format!("{:.1}", value.max(1.0)))
        }),
    ];
    let texts: Vec<String> = figures
        .into_iter()
        .filter_map(|(name, change, text)| Some(format!("{name} {}", change_text(change, text)?)))
        .collect();
    (!texts.is_empty()).then(|| texts.join(tr.locale.pick(", ", "，")) + tr.locale.pick(".", "。"))
}

/// Writes a figure of a table.
type FormatFigure = fn(Option<f64>) -> String;

/// `1,884 → 3,303 (+75%)`; `None` where a side is unknown, or both look the same.
pub(super) fn change_text(change: &CostChange, text: FormatFigure) -> Option<String> {
    let part = change.relative().filter(|part| part.abs() >= 0.005)?;
    let (before, after) = (text(change.before), text(change.after));
    let part = format!("{:+.0}%", 100.0 * part).replace('-', "−");
    (before != after).then(|| format!("{before} → {after} ({part})"))
}

/// How a share differs; `None` where it does not or there is nothing to count.
fn share_change(pattern: &str, found: &ShareDifference, tr: &Translation) -> Option<String> {
    let has_answers = [&found.before, &found.after].into_iter().flatten().any(|share| share.of > 0);
    if !has_answers || !found.is_any() {
        return None;
    }
    let side = |side: &Option<Share>| {
        side.as_ref().map_or_else(|| tr.not_recorded.to_owned(), |share| share_with_interval(share, tr))
    };
    let sides = [side(&found.before), side(&found.after)];
    let points = |share: f64| format!("{:+.1}", 100.0 * share).replace('-', "−");
    let interval = found.ci95.map(|ci| format!(" [{}, {}]", points(ci.low()), points(ci.high())));
    let difference = found.difference.map(|difference| points(difference) + &interval.unwrap_or_default());
    let change = fill(pattern, &[&sides[0], &sides[1]]);
    Some(change + &difference.map(|difference| fill(tr.share_difference, &[&difference])).unwrap_or_default())
}

/// The changes on the page: the mean over methods, then each method with a change.
pub(super) fn comparison_changes(comparison: &Comparison, tr: &Translation) -> Vec<(String, Vec<String>)> {
    let primary = comparison.primary.as_ref().map(|primary| {
        let verdict = tr.verdict(primary);
        let figures = format!("{} {} {verdict}", signed(primary.difference), brackets(primary.ci95));
        (fill(tr.primary, &[&comparison.tested.to_string()]), vec![figures])
    });
    let needed = |compared: &MethodComparison| {
        let judged = compared.needed.filter(|judged| judged.reason != Some(NoEvidenceReason::Unchanged))?;
        let verdict = tr.verdict(&judged);
        Some(format!("{} {} {} {verdict}", tr.needed, signed(judged.difference), brackets(judged.ci95)))
    };
    let methods = comparison.methods.iter().map(|(name, compared)| {
        let notes: Vec<String> = needed(compared).into_iter().chain(method_changes(compared, tr)).collect();
        (name.to_owned(), notes)
    });
    let unchanged = unchanged(comparison, tr).map(|sentence| (String::new(), vec![sentence]));
    let changed = methods.filter(|(_, notes)| !notes.is_empty());
    primary.into_iter().chain(changed).chain(unchanged).collect()
}

/// The methods of which nothing changed.
pub(super) fn unchanged(comparison: &Comparison, tr: &Translation) -> Option<String> {
    let is_unchanged = |compared: &MethodComparison| !is_changed(compared) && compared.has_common_part();
    let names: Vec<&str> = comparison
        .methods
        .iter()
        .filter(|(_, compared)| is_unchanged(compared))
        .map(|(name, _)| name.as_str())
        .collect();
    let has_grades = comparison.methods.iter().any(|(_, compared)| compared.fixtures.compared() > 0);
    let word = if has_grades { tr.unchanged } else { tr.unchanged_contexts };
    (!names.is_empty()).then(|| format!("{word}: {}", names.join(", ")))
}

/// When a difference gets a verdict.
pub(super) fn margins(comparison: &Comparison, tr: &Translation) -> String {
    let any = |of: fn(&MethodComparison) -> bool| comparison.methods.iter().any(|(_, compared)| of(compared));
    match (any(|compared| compared.overall.is_some()), any(|compared| compared.needed.is_some())) {
        (true, true) => format!("{} {}", tr.margin, tr.needed_margin),
        (false, true) => tr.needed_margin_alone.to_owned(),
        (_, false) => tr.margin.to_owned(),
    }
}

/// `on the 4 of 8 fixtures that changed: −1.00; on all: −0.50`; nothing where all of them changed.
fn tested_fixtures(compared: &MethodComparison, tr: &Translation) -> Option<String> {
    let overall = compared.overall.as_ref().filter(|overall| overall.clusters > 0 && overall.unchanged > 0)?;
    let (tested, all) = (overall.clusters.to_string(), (overall.clusters + overall.unchanged).to_string());
    Some(fill(tr.tested_fixtures, &[&tested, &all, &signed(overall.difference), &signed(overall.difference_all)]))
}

/// The differences of a method with their labels: overall, then by dimension.
pub(super) fn differences<'c>(
    compared: &'c MethodComparison,
    tr: &'c Translation,
) -> impl Iterator<Item = (String, &'c DifferenceTest)> {
    let overall = compared.overall.iter().map(|judged| (tr.overall.to_owned(), judged));
    let needed = compared.needed.iter().map(|judged| (tr.needed.to_owned(), judged));
    overall.chain(compared.dimensions.iter().map(|(id, judged)| (tr.dimension_label(id), judged))).chain(needed)
}

/// Whether a comparison has something to say of a method: a score, or its contexts, changed.
pub(super) fn is_changed(compared: &MethodComparison) -> bool {
    let is_tested = |judged: &DifferenceTest| judged.reason != Some(NoEvidenceReason::Unchanged);
    let has_recall = compared.needed.as_ref().is_some_and(is_tested);
    compared.fixtures.tested() > 0 || has_recall || compared.differences.constraints.is_any()
}

/// A sentence with a count and a list; `None` for an empty list.
fn list(pattern: &str, entries: &[String], tr: &Translation) -> Option<String> {
    let mut shown: Vec<String> = entries.iter().take(MAX_LISTED).cloned().collect();
    if entries.len() > MAX_LISTED {
        shown.push(fill(tr.and_more, &[&(entries.len() - MAX_LISTED).to_string()]));
    }
    (!entries.is_empty()).then(|| fill(pattern, &[&entries.len().to_string(), &shown.join("; ")]))
}

pub(super) fn place(fixture: &str, point: u32, probe: &str) -> String {
    if point > 1 { format!("{fixture} · {point} · {probe}") } else { format!("{fixture} · {probe}") }
}

fn flip(flip: &Flip) -> String {
    let place = place(&flip.fixture, flip.point, &flip.probe);
    format!("{place} {} → {}", score(Some(flip.before)), score(Some(flip.after)))
}

fn fact(fact: &ProbeFact) -> String {
    format!("{} ({})", fact.fact, place(&fact.fixture, fact.point, &fact.probe))
}
