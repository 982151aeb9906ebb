//! Constraints of the user that contexts of the baseline have, and that most contexts of the judged side lost.
//!
//! One lost prohibition can cost more than a lower score, so it fails the gate by itself. Literal rules overlook one
//! rewording in ten: of twelve reworded constraints, at least one looks lost in 72% of contexts. So the gate fails only
//! if a judge graded the answers, too, and found the constraint in none of them; otherwise the loss is a warning. A
//! grade is one of all facts of a probe: a good grade for one rule of two does not say which of them the answer has.

use std::collections::BTreeMap;

use serde::Serialize;

use super::changes::{ComparedVariants, ProbeFact};
use crate::action::ActionKey;
use crate::judge::Dimension;
use crate::results::result_set::ResultSet;
use crate::results::result_set::grade::{Grade, equal_range};
use stats::thresholds::GOOD;

/// A fact of a probe with the tag `constraint` that most chains of the baseline have and most chains of the judged side
/// lack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LostConstraint {
    /// The constraint.
    #[serde(flatten)]
    pub fact: ProbeFact,
    /// Distinct chains (compressions of the fixture) whose context lacks it.
    pub lost: usize,
    /// All distinct chains.
    pub chains: usize,
    /// Whether a model graded answers of these chains.
    pub is_graded: bool,
    /// Whether its grades show that the constraint is in none of them: then the gate fails.
    pub is_confirmed: bool,
}

/// The constraints that a method lost, in the order of the matrix. A constraint that a judge finds in an answer is not
/// lost.
pub(super) fn lost_constraints(matched: &ComparedVariants<'_>) -> Vec<LostConstraint> {
    matched
        .probes
        .iter()
        .flat_map(|(probe, other)| lost_of_probe(matched, *probe, *other))
        .collect()
}

fn lost_of_probe(
    matched: &ComparedVariants<'_>,
    probe: usize,
    other: usize,
) -> Vec<LostConstraint> {
    let known = matched.judged.probes.get(probe);
    let Some((known, at)) = known.zip(matched.judged.probe_place(probe)) else {
        return Vec::new();
    };
    let is_qualified = !matched.excluded.contains(&Dimension::Completeness);
    let judged = chains(matched.judged, matched.pair.a.place, probe, is_qualified);
    let baseline = chains(matched.baseline, matched.pair.b.place, other, is_qualified);
    let mut losses = Vec::new();
    for (fact, name) in known.facts.iter().enumerate() {
        let kept = baseline.iter().filter(|chain| chain.has(fact)).count();
        let lost: Vec<&JudgedChain> = judged.iter().filter(|chain| chain.lacks(fact)).collect();
        let findings: Vec<JudgeFinding> = lost.iter().filter_map(|chain| chain.finding).collect();
        if 2 * kept > baseline.len()
            && 2 * lost.len() > judged.len()
            && !findings.contains(&JudgeFinding::Found)
        {
            let (at, name) = (at.clone(), name.clone());
            let is_graded = !findings.is_empty();
            losses.push(LostConstraint {
                fact: ProbeFact { at, fact: name },
                lost: lost.len(),
                chains: judged.len(),
                is_graded,
                is_confirmed: is_graded && !findings.contains(&JudgeFinding::Unclear),
            });
        }
    }
    losses
}

/// What grades say of a constraint that the context lost. If they differ, the last one of this order counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum JudgeFinding {
    /// The answer does not have it.
    NotFound,
    /// They do not say.
    Unclear,
    /// The answer has it, in other words.
    Found,
}

/// The grade from which an answer has all facts of its probe.
const COMPLETE: f64 = 4.5;

impl JudgeFinding {
    /// From a grade in completeness for a probe with so many facts.
    fn from_grade(completeness: Option<f64>, facts: usize) -> JudgeFinding {
        match completeness {
            Some(score) if score < GOOD => JudgeFinding::NotFound,
            Some(score) if facts == 1 || score >= COMPLETE => JudgeFinding::Found,
            _ => JudgeFinding::Unclear,
        }
    }
}

/// One compression on which a probe was asked, however many runs share it.
#[derive(Clone, Debug, Default)]
struct JudgedChain {
    /// By answer and expected fact, whether the context has the fact; `None` if the context cannot be read.
    present: Vec<Vec<Option<bool>>>,
    /// What the grades of judges that are models say; `None` if there are none.
    finding: Option<JudgeFinding>,
}

impl JudgedChain {
    fn has(&self, fact: usize) -> bool {
        self.present
            .iter()
            .any(|facts| facts.get(fact) == Some(&Some(true)))
    }

    fn lacks(&self, fact: usize) -> bool {
        let mut known = self
            .present
            .iter()
            .filter_map(|facts| facts.get(fact).copied().flatten())
            .peekable();
        known.peek().is_some() && known.all(|is_present| !is_present)
    }
}

/// The distinct chains of a probe with the tag `constraint`; none of another. `is_qualified` is whether grades in
/// completeness count.
fn chains(set: &ResultSet, variant: usize, probe: usize, is_qualified: bool) -> Vec<JudgedChain> {
    let answers = equal_range(set.answers(variant), |measured| measured.at.probe, probe);
    let mut chains: BTreeMap<Option<ActionKey>, JudgedChain> = BTreeMap::new();
    for measured in answers.iter().filter(|measured| measured.is_constraint) {
        let grades = equal_range(
            set.grades(variant),
            |grade| grade.at.cell(),
            measured.at.cell(),
        );
        let compression = grades.first().map(|grade| grade.keys[0]);
        let chain = chains.entry(compression).or_default();
        chain.present.push(
            measured
                .facts
                .iter()
                .map(|fact| fact.is_present())
                .collect(),
        );
        for grade in grades
            .iter()
            .filter(|grade| grade.at == measured.at && is_by_model(set, grade))
        {
            let completeness = grade
                .dimensions
                .get(&Dimension::Completeness)
                .copied()
                .filter(|_| is_qualified);
            chain.finding = chain.finding.max(Some(JudgeFinding::from_grade(
                completeness,
                measured.facts.len(),
            )));
        }
    }
    chains.into_values().collect()
}

/// Whether a model gave the grade. The built-in rules cannot judge what literal rules overlook.
fn is_by_model(set: &ResultSet, grade: &Grade) -> bool {
    set.design()
        .judges
        .get(grade.judge)
        .is_some_and(|judge| !judge.lexical)
}

#[cfg(test)]
mod tests {
    use super::JudgeFinding::{Found, NotFound, Unclear};
    use super::*;

    #[test]
    fn a_grade_for_several_facts_does_not_say_which_of_them_an_answer_has() {
        let of = |score: f64, facts: usize| JudgeFinding::from_grade(Some(score), facts);
        assert_eq!([of(2.4, 1), of(2.5, 1)], [NotFound, Found]);
        assert_eq!(
            [of(2.4, 2), of(2.5, 2), of(4.4, 2), of(4.6, 2)],
            [NotFound, Unclear, Unclear, Found]
        );
        assert_eq!(
            JudgeFinding::from_grade(None, 1),
            Unclear,
            "a judge that is not qualified in completeness"
        );
    }
}
