//! How far methods lie apart, and where: a row under the table of scores, and two sentences.

use super::numbers::score;
use super::translation::{Translation, fill};
use crate::judge::Dimension;
use crate::results::{MethodFindings, MethodGap, OVERALL, OrderCheck};

/// The row of gaps: its name, `overall`, each dimension; `None` where there are under two methods.
pub(super) fn gap_row(findings: &MethodFindings, tr: &Translation) -> Option<Vec<String>> {
    let overall = findings.gaps.get(OVERALL)?;
    let dimensions = Dimension::ALL.map(|dimension| score(findings.gaps.get(dimension.name()).map(|gap| gap.points)));
    Some([tr.gap.to_owned(), score(Some(overall.points))].into_iter().chain(dimensions).collect())
}

/// Where methods differ most and least, and whether their order holds; empty for under two methods.
pub(super) fn findings_sentences(findings: &MethodFindings, tr: &Translation) -> Vec<String> {
    distances(findings, tr).into_iter().chain(order(findings, tr)).collect()
}

fn distances(findings: &MethodFindings, tr: &Translation) -> Option<String> {
    let gaps: Vec<(Dimension, &MethodGap)> = Dimension::ALL
        .into_iter()
        .filter_map(|dimension| Some((dimension, findings.gaps.get(dimension.name())?)))
        .collect();
    let (widest, of) =
        gaps.iter().copied().reduce(|one, next| if next.1.points > one.1.points { next } else { one })?;
    if of.is_small() {
        return Some(tr.gaps_all_small.to_owned());
    }
    let widest = fill(tr.gap_widest, &[widest.label(tr.locale), &score(Some(of.points)), &of.best, &of.worst]);
    let small = gaps.iter().filter(|(_, gap)| gap.is_small());
    let small: Vec<&str> = small.map(|(dimension, _)| dimension.label(tr.locale)).collect();
    Some(match small.as_slice() {
        [] => format!("{widest}{}", tr.gaps_none_small),
        small => format!("{widest}{}", fill(tr.gaps_small, &[&small.join(tr.and_comma)])),
    })
}

fn order(findings: &MethodFindings, tr: &Translation) -> Option<String> {
    let checks = [(&findings.by_length, tr.lengths), (&findings.by_kind, tr.kinds)];
    let known: Vec<(&OrderCheck, &str)> =
        checks.into_iter().filter_map(|(check, name)| Some((check.as_ref()?, name))).collect();
    // Where no method leads by 0.3, there is no order that could change.
    findings.gaps.get(OVERALL).filter(|gap| !gap.is_small())?;
    if known.is_empty() {
        return Some(tr.order_unknown.to_owned());
    }
    let reversed: Vec<&str> = known.iter().flat_map(|(check, _)| &check.reversed).map(String::as_str).collect();
    let compared = known.iter().map(|(check, name)| fill(name, &[&check.groups.to_string()]));
    let compared = compared.collect::<Vec<_>>().join(tr.and_comma);
    Some(match reversed.as_slice() {
        [] => fill(tr.order_holds, &[&compared]),
        reversed => fill(tr.order_changes, &[&reversed.join(tr.and_comma), &compared]),
    })
}
