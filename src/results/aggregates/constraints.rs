//! How often contexts still have, by literal rules, a constraint that was put into their sessions.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::contexts::have_same_points;
use super::shares::{FixtureCounts, Share, ShareDifference, count};
use crate::results::Ordered;
use crate::results::files::context_row::ConstraintRow;
use crate::results::result_set::ResultSet;

/// `constraints` of a method in `summary.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConstraintSummary {
    /// How many different rules were put into sessions.
    pub rules: usize,
    /// Over all compressions.
    #[serde(flatten)]
    pub all: ConstraintShares,
    /// By where the rule was put: `early`, `middle`, `late`.
    pub by_position: Ordered<ConstraintShares>,
    /// By the number of compressions that the rule has been through, from 1.
    pub by_compressions: Ordered<ConstraintShares>,
}

/// The share of contexts that have their rule.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConstraintShares {
    /// Contexts that have it word for word.
    pub literal: Share,
    /// Contexts that have it word for word, or its object and a prohibition in one sentence.
    pub near_literal: Share,
}

impl ConstraintShares {
    fn from_rows(rows: &[&ConstraintRow]) -> ConstraintShares {
        ConstraintShares {
            literal: Share::from_counts(counts(rows, |row| row.literal).values()),
            near_literal: Share::from_counts(counts(rows, |row| row.near_literal).values()),
        }
    }

    /// Groups rows by a key, in the order of the keys.
    fn by<K: Ord + ToString>(
        rows: &[&ConstraintRow],
        key: impl Fn(&ConstraintRow) -> K,
    ) -> Ordered<ConstraintShares> {
        let mut groups: BTreeMap<K, Vec<&ConstraintRow>> = BTreeMap::new();
        rows.iter()
            .for_each(|row| groups.entry(key(row)).or_default().push(row));
        groups
            .into_iter()
            .map(|(key, rows)| (key.to_string(), ConstraintShares::from_rows(&rows)))
            .collect()
    }
}

/// Counts the contexts that have their rule, of those that can be read.
fn counts<'r>(
    rows: &[&'r ConstraintRow],
    occurs: fn(&ConstraintRow) -> Option<bool>,
) -> FixtureCounts<&'r str> {
    let mut counts = FixtureCounts::new();
    let known = rows
        .iter()
        .filter_map(|row| Some((row.fixture.as_str(), occurs(row)?)));
    known.for_each(|(fixture, occurs)| count(&mut counts, fixture, occurs));
    counts
}

impl ConstraintSummary {
    /// Measures a method; `None` where no rule was put into a session, or no context can be read.
    pub(crate) fn new(set: &ResultSet, method: &str) -> Option<ConstraintSummary> {
        let rows: Vec<&ConstraintRow> = set
            .constraints
            .iter()
            .filter(|row| row.method == method && row.literal.is_some())
            .collect();
        rows.first()?;
        Some(ConstraintSummary {
            rules: rows
                .iter()
                .map(|row| &row.rule)
                .collect::<BTreeSet<_>>()
                .len(),
            all: ConstraintShares::from_rows(&rows),
            by_position: ConstraintShares::by(&rows, |row| row.position),
            by_compressions: ConstraintShares::by(&rows, |row| row.point),
        })
    }
}

/// How near-literal survival differs over the compressions that both sides made of the same sessions at the same
/// points. Empty if the two sides had different rules.
pub(crate) fn constraint_difference(
    [judged, baseline]: [(&ResultSet, &str); 2],
) -> ShareDifference {
    let rules = judged.0.design().constraints;
    if rules.is_none() || rules != baseline.0.design().constraints {
        return ShareDifference::default();
    }
    let [own, other] = [judged, baseline].map(|(set, method)| -> BTreeMap<_, &ConstraintRow> {
        let rows = set
            .constraints
            .iter()
            .filter(|row| row.method == method && row.near_literal.is_some());
        let rows = rows.filter(|row| have_same_points(judged.0, baseline.0, &row.fixture));
        rows.map(|row| {
            (
                (
                    row.fixture.as_str(),
                    row.point,
                    row.rule.as_str(),
                    row.position,
                ),
                row,
            )
        })
        .collect()
    });
    let (own, other): (Vec<&ConstraintRow>, Vec<&ConstraintRow>) = own
        .iter()
        .filter_map(|(place, row)| Some((*row, *other.get(place)?)))
        .unzip();
    let [now, before] = [&own, &other].map(|rows| counts(rows, |row| row.near_literal));
    let differences = now.iter().filter_map(|(fixture, (count, of))| {
        let (count_before, of_before) = before.get(fixture)?;
        Some(*count as f64 / *of as f64 - *count_before as f64 / *of_before as f64)
    });
    let differences: Vec<f64> = differences.collect();
    let [before, now] =
        [&other, &own].map(|rows| Some(ConstraintShares::from_rows(rows).near_literal));
    ShareDifference::new(before, now, &differences)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::{ActionKey, Digest};
    use crate::results::aggregates::contexts::fakes::set;
    use lexical::claims::RulePosition;

    fn row(
        fixture: &str,
        point: u32,
        position: RulePosition,
        [literal, near]: [bool; 2],
    ) -> ConstraintRow {
        ConstraintRow {
            fixture: fixture.into(),
            point,
            method: "m".into(),
            run: 1,
            key: ActionKey(Digest::hash("k")),
            compressed: true,
            rule: "r".into(),
            position,
            literal: Some(literal),
            near_literal: Some(near),
        }
    }

    #[test]
    fn shares_are_means_over_sessions_by_position_and_compressions() {
        use RulePosition::{Early, Late};
        let rows = vec![
            row("a", 1, Early, [false, true]),
            row("a", 1, Late, [true, true]),
            row("a", 2, Early, [false, false]),
            row("b", 1, Late, [false, false]),
            ConstraintRow {
                literal: None,
                near_literal: None,
                ..row("b", 2, Early, [true, true])
            },
        ];
        let set = ResultSet {
            constraints: rows,
            ..set(Vec::new())
        };
        let found = ConstraintSummary::new(&set, "m").expect("constraints");
        assert_eq!(
            (found.rules, found.all.near_literal.of),
            (1, 4),
            "what cannot be read is not lost"
        );
        assert_eq!(
            found.all.near_literal.share,
            Some(f64::midpoint(2.0 / 3.0, 0.0))
        );
        assert_eq!(
            found.by_position.keys().collect::<Vec<_>>(),
            ["early", "late"]
        );
        assert_eq!(found.by_position["late"].literal.share, Some(0.5));
        assert_eq!(found.by_compressions["2"].near_literal.share, Some(0.0));
        assert_eq!(ConstraintSummary::new(&set, "other"), None);
        assert_eq!(
            constraint_difference([(&set, "m"), (&set, "m")]),
            ShareDifference::default(),
            "rules are not known"
        );
    }
}
