//! How far methods are apart, and where: a row under the table of scores, and a sentence.

use super::numbers::score;
use super::translation::{Translation, fill};
use crate::judge::Dimension;
use crate::results::{MethodGap, OVERALL, Ordered};

/// The row of gaps: its name, `overall`, each dimension; `None` where there are under two methods.
pub(super) fn gap_row(gaps: &Ordered<MethodGap>, tr: &Translation) -> Option<Vec<String>> {
    let overall = gaps.get(OVERALL)?;
    let dimensions =
        Dimension::ALL.map(|dimension| score(gaps.get(dimension.name()).map(|gap| gap.points)));
    Some(
        [tr.gap.to_owned(), score(Some(overall.points))]
            .into_iter()
            .chain(dimensions)
            .collect(),
    )
}

/// Where methods differ most and least; `None` for under two methods.
pub(super) fn gaps_sentence(gaps: &Ordered<MethodGap>, tr: &Translation) -> Option<String> {
    let gaps: Vec<(Dimension, &MethodGap)> = Dimension::ALL
        .into_iter()
        .filter_map(|dimension| Some((dimension, gaps.get(dimension.name())?)))
        .collect();
    let (widest, of) = gaps.iter().copied().reduce(|one, next| {
        if next.1.points > one.1.points {
            next
        } else {
            one
        }
    })?;
    if of.is_small() {
        return Some(tr.gaps_all_small.to_owned());
    }
    let widest = fill(
        tr.gap_widest,
        &[
            widest.label(tr.locale),
            &score(Some(of.points)),
            &of.best,
            &of.worst,
        ],
    );
    let small = gaps.iter().filter(|(_, gap)| gap.is_small());
    let small: Vec<&str> = small
        .map(|(dimension, _)| dimension.label(tr.locale))
        .collect();
    Some(match small.as_slice() {
        [] => format!("{widest}{}", tr.gaps_none_small),
        small => format!(
            "{widest}{}",
            fill(tr.gaps_small, &[&small.join(tr.and_comma)])
        ),
    })
}
