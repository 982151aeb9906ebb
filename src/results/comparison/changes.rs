//! What changed between the two sides of a method: fixtures, contexts, probes, facts and constraints of the user.
//!
//! A fixture is *unchanged* if each cell that both sides have was made from the same answer and judgement and has the
//! same recorded grades. The key of the compression does not matter: a reworded prompt that yields the same context
//! changed nothing. Grades are compared besides keys, because a stage that was asked again (`--refresh`) replaces outputs
//! under the same key. Such a fixture is *asked again*, and is tested like a changed one.
//!
//! A fixture in which a method broke down while it held in the others is told apart: a mean over fixtures hides that.
//! Simulated over falls from 4 to 0, 1 and 2 in one of 3 to 8 fixtures, the rule finds all of them, and reports .1% where
//! nothing fell.
//!
//! One lost prohibition can cost more than a lower score, so it fails the gate by itself. Literal rules overlook one
//! rewording in ten: of twelve reworded constraints, at least one looks lost in 72% of contexts. So the gate fails only
//! if a judge graded the answers, too, and found the constraint in none of them; otherwise the loss is a warning. A
//! grade is one of all facts of a probe: a good grade for one rule of two does not say which of them the answer has.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::{Deserialize, Serialize};

use crate::action::ActionKey;
use crate::judge::Dimension;
use crate::results::aggregates::Answers;
use crate::results::aggregates::contexts::same_contexts;
use crate::results::aggregates::shares::{ShareDifference, share_differences};
use crate::results::result_set::scores::{Grade, equal_range};
use crate::results::result_set::{ProbePlace, ResultSet, VariantRef};
use crate::results::worst::LossCause;
use stats;
use stats::thresholds::{GOOD, MIN_FLIP};

/// The fixtures of a pair of methods by what became of their common cells.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FixtureChanges {
    /// At least one cell has another answer or judgement.
    pub changed: Vec<String>,
    /// The same actions have other grades: they were asked again.
    pub asked_again: Vec<String>,
    /// The same answers, judgements and grades.
    pub unchanged: Vec<String>,
    /// No cell in common.
    pub not_comparable: Vec<String>,
    /// Probes all of whose cells only one side has: the other failed, or compressed nothing there.
    pub one_sided: usize,
}

impl FixtureChanges {
    /// How many fixtures are tested.
    pub fn tested(&self) -> usize {
        self.changed.len() + self.asked_again.len()
    }

    /// How many fixtures have a cell on both sides.
    pub fn compared(&self) -> usize {
        self.tested() + self.unchanged.len()
    }

    /// Whether the tests include this fixture. They include those that changed, or all if none did.
    pub fn has_part_in_tests(&self, fixture: &str) -> bool {
        self.tested() == 0 || self.is_tested(fixture)
    }

    /// Whether the fixture has no cell that both sides have.
    pub(super) fn is_not_comparable(&self, fixture: &str) -> bool {
        self.not_comparable.iter().any(|lone| lone == fixture)
    }

    fn is_tested(&self, fixture: &str) -> bool {
        let mut tested = self.changed.iter().chain(&self.asked_again);
        tested.any(|known| known == fixture)
    }
}

/// What became different for a method, as far as its rows show it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Differences {
    /// How many contexts are byte for byte the same; null where no compression is on both sides.
    pub contexts: Option<SameContexts>,
    /// Probes that went from good to bad or back, the largest step first.
    pub flipped: Vec<Flip>,
    /// Expected facts that were in the context of most answers and no longer are.
    pub facts_lost: Vec<ProbeFact>,
    /// Expected facts that are in the context of most answers and were not before.
    pub facts_gained: Vec<ProbeFact>,
    /// The share of answers that assert another value, of those whose context lost every expected fact.
    pub overclaim: ShareDifference,
    /// The share of answers to unanswerable probes that assert something.
    pub fabrication: ShareDifference,
    /// The share of recorded answers that the token limit cut off, without those that failed for it; null on both sides if
    /// there are none.
    pub truncated: ShareDifference,
}

/// How many contexts are the same on both sides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SameContexts {
    /// Byte for byte the same.
    pub same: usize,
    /// How many both sides have: one for each fixture, point and run.
    pub compared: usize,
}

/// A probe that was answered well on one side and badly on the other.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Flip {
    /// The probe.
    #[serde(flatten)]
    pub at: ProbePlace,
    /// Its score in the baseline: the mean over the dimensions that are compared of the mean over runs.
    pub before: f64,
    /// Its score on the judged side, computed in the same way.
    pub after: f64,
    /// What lost it, as far as its facts show it.
    pub cause: Option<LossCause>,
}

/// An expected fact of a probe.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProbeFact {
    /// The probe.
    #[serde(flatten)]
    pub at: ProbePlace,
    /// The fact as rows name it.
    pub fact: String,
}

/// Two methods that are compared, with the probes that are the same on both sides.
#[derive(Clone, Copy)]
pub(crate) struct ComparedVariants<'s> {
    pub judged: VariantRef<'s>,
    pub baseline: VariantRef<'s>,
    /// The places of these probes: on the judged side, and in the baseline.
    pub probes: &'s BTreeMap<usize, usize>,
    /// Dimensions that are not compared.
    pub excluded: &'s BTreeSet<Dimension>,
}

/// A cell within a probe: run, answer, judgement, judge.
type CellAt = (u32, u32, u32, usize);

type ProbeGrades<'s> = HashMap<CellAt, &'s Grade>;

/// The cells of a fixture that both sides have: whether there are any, and how they differ.
#[derive(Clone, Copy, Default)]
struct CommonCells {
    any: bool,
    other_keys: bool,
    other_grades: bool,
}

impl<'s> ComparedVariants<'s> {
    /// Sorts the fixtures by what became of them.
    pub(super) fn fixture_changes(&self) -> FixtureChanges {
        let (judged, baseline) = (by_probe(&self.judged), by_probe(&self.baseline));
        let mut changes = FixtureChanges::default();
        let mut fixtures: BTreeMap<usize, CommonCells> = BTreeMap::new();
        for (probe, other) in self.probes {
            let Some(at) = self.judged.set.probes.get(*probe) else {
                continue;
            };
            let common = fixtures.entry(at.fixture).or_default();
            let none = ProbeGrades::new();
            let own = judged.get(probe).unwrap_or(&none);
            let theirs = baseline.get(other).unwrap_or(&none);
            let both = own.iter();
            let both = both.filter_map(|(cell, grade)| Some((grade, theirs.get(cell)?)));
            for (grade, earlier) in both {
                common.any = true;
                common.other_keys |= grade.keys[1..] != earlier.keys[1..];
                common.other_grades |= !grade.is_graded_like(earlier);
            }
            changes.one_sided += usize::from(own.is_empty() != theirs.is_empty());
        }
        for (fixture, common) in fixtures {
            let list = match (common.any, common.other_keys, common.other_grades) {
                (false, ..) => &mut changes.not_comparable,
                (true, true, _) => &mut changes.changed,
                (true, false, true) => &mut changes.asked_again,
                (true, false, false) => &mut changes.unchanged,
            };
            list.extend(self.judged.set.fixture_name(fixture).map(str::to_owned));
        }
        changes
    }

    pub(crate) fn differences(&self) -> Differences {
        let mut differences = Differences {
            contexts: self.same_contexts(),
            ..Differences::default()
        };
        for (probe, other) in self.probes {
            differences.flipped.extend(self.flip(*probe, *other));
            self.compare_facts(*probe, *other, &mut differences);
        }
        [
            differences.overclaim,
            differences.fabrication,
            differences.truncated,
        ] = self.share_differences();
        // stable: probes that moved by the same stay in the order of the matrix
        let step = |flip: &Flip| (flip.after - flip.before).abs();
        let flipped = &mut differences.flipped;
        flipped.sort_by(|a, b| step(b).total_cmp(&step(a)));
        differences
    }

    /// The judged set and the baseline, each with the name of its method.
    pub(crate) fn methods(&self) -> [(&'s ResultSet, &'s str); 2] {
        [self.judged, self.baseline].map(|side| (side.set, side.method.name.as_str()))
    }

    /// Overclaims, fabrications and truncated answers on the probes that both sides asked.
    fn share_differences(&self) -> [ShareDifference; 3] {
        let judged = self.probes.keys().copied().collect();
        let baseline = self.probes.values().copied().collect();
        let after = Answers::new(self.judged.set, self.judged.place, &judged);
        let before = Answers::new(self.baseline.set, self.baseline.place, &baseline);
        let (own, theirs) = (&self.judged.set.scores, &self.baseline.set.scores);
        let fixtures = self.probes.iter().filter_map(|(probe, other)| {
            Some((own.fixture_of(*probe)?, theirs.fixture_of(*other)?))
        });
        let fixtures: BTreeMap<usize, usize> = fixtures.collect();
        share_differences([&after, &before], &fixtures)
    }

    /// Counts the contexts that are the same, by their digests.
    fn same_contexts(&self) -> Option<SameContexts> {
        let same = same_contexts(self.methods());
        (!same.is_empty()).then(|| SameContexts {
            same: same.iter().filter(|same| **same).count(),
            compared: same.len(),
        })
    }

    /// How many probes of a fixture have a lower score than in the baseline, and how many have one there.
    fn fallen_probes(&self, fixture: &str) -> (usize, usize) {
        let of_fixture = (self.probes.iter())
            .filter(|(probe, _)| self.judged.fixture_of(**probe) == Some(fixture))
            .filter(|(_, other)| score(&self.baseline, **other, self.excluded).is_some());
        let scored = of_fixture
            .clone()
            .filter_map(|(own, other)| self.scores(*own, *other));
        let fallen = scored.filter(|(after, before)| after < before);
        (fallen.count(), of_fixture.count())
    }

    /// The scores of a probe that has one on both sides: now, and in the baseline.
    fn scores(&self, probe: usize, other: usize) -> Option<(f64, f64)> {
        let after = score(&self.judged, probe, self.excluded)?;
        Some((after, score(&self.baseline, other, self.excluded)?))
    }

    fn flip(&self, probe: usize, other: usize) -> Option<Flip> {
        let (after, before) = self.scores(probe, other)?;
        let is_flip = (after >= GOOD) != (before >= GOOD) && (after - before).abs() >= MIN_FLIP;
        let known = self.judged.set.probes.get(probe).filter(|_| is_flip)?;
        let facts = known.facts.len();
        Some(Flip {
            at: self.judged.set.probe_place(probe)?,
            before,
            after,
            cause: self.cause(probe, other, facts),
        })
    }

    /// What lost a probe: the compression, if its contexts no longer have a fact.
    fn cause(&self, probe: usize, other: usize, facts: usize) -> Option<LossCause> {
        let is_lost = (0..facts).any(|fact| {
            is_mostly_held(&self.judged, probe, fact) == Some(false)
                && is_mostly_held(&self.baseline, other, fact) == Some(true)
        });
        let mut answers = self.judged.answers_to(probe).iter();
        let is_made_up = answers.any(|measured| measured.fabricated == Some(true));
        match facts {
            _ if is_lost => Some(LossCause::Compression),
            _ if is_made_up => Some(LossCause::MadeUp),
            0 => None,
            _ => Some(LossCause::Answerer),
        }
    }

    fn compare_facts(&self, probe: usize, other: usize, differences: &mut Differences) {
        let known = self.judged.set.probes.get(probe);
        let Some((known, at)) = known.zip(self.judged.set.probe_place(probe)) else {
            return;
        };
        for (fact, name) in known.facts.iter().enumerate() {
            let now = is_mostly_held(&self.judged, probe, fact);
            let before = is_mostly_held(&self.baseline, other, fact);
            let list = match (before, now) {
                (Some(true), Some(false)) => &mut differences.facts_lost,
                (Some(false), Some(true)) => &mut differences.facts_gained,
                _ => continue,
            };
            let (at, fact) = (at.clone(), name.clone());
            list.push(ProbeFact { at, fact });
        }
    }
}

fn by_probe<'s>(side: &VariantRef<'s>) -> HashMap<usize, ProbeGrades<'s>> {
    let mut probes: HashMap<usize, ProbeGrades<'_>> = HashMap::new();
    for grade in side.grades() {
        let cell = (grade.at.run, grade.at.answer_n, grade.judge_n, grade.judge);
        let of_probe = probes.entry(grade.at.probe).or_default();
        of_probe.insert(cell, grade);
    }
    probes
}

/// Whether at least half of the answers to a probe have a fact in their context, or, if the context cannot be read, in
/// the answer itself.
fn is_mostly_held(side: &VariantRef<'_>, probe: usize, fact: usize) -> Option<bool> {
    let answers = side.answers_to(probe).iter();
    let facts = answers.filter_map(|measured| measured.facts.get(fact));
    let held = facts.map(|fact| f64::from(u8::from(fact.is_present().unwrap_or(fact.answered))));
    stats::mean_of(held).map(|share| share >= 0.5)
}

/// A probe's score, for display: the mean over its dimensions that are compared of the mean over runs.
fn score(side: &VariantRef<'_>, probe: usize, excluded: &BTreeSet<Dimension>) -> Option<f64> {
    let compared = Dimension::ALL
        .into_iter()
        .filter(|dimension| !excluded.contains(dimension));
    let means = compared.filter_map(|dimension| {
        let by_run = side.set.scores.by_run(side.place, probe, dimension);
        stats::mean_of(by_run.iter().flatten().copied())
    });
    stats::mean_of(means)
}

/// The fall of a fixture's score that is a collapse, in points.
const FALL: f64 = 2.0;
/// The share of its answers that fell.
const FALLEN: f64 = 0.75;
/// The mean of the other fixtures fell by less.
const OTHERS: f64 = 1.0;

/// A fixture in which a method broke down.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Collapse {
    /// The method.
    pub method: String,
    /// The fixture.
    pub fixture: String,
    /// How its score changed, in points.
    pub difference: f64,
    /// How many of its probes have a lower score, of those that both sides answered.
    pub fallen: usize,
    /// How many both sides answered.
    pub of: usize,
}

/// The collapsed fixtures of a method; `changes` are the differences of its score by fixture.
pub(super) fn collapses(matched: &ComparedVariants<'_>, changes: &[(&str, f64)]) -> Vec<Collapse> {
    let (low, others): (Vec<_>, Vec<_>) = changes
        .iter()
        .partition(|(_, difference)| *difference <= -FALL);
    let others = stats::mean_of(others.iter().map(|(_, difference)| *difference));
    if others.is_none_or(|others| others <= -OTHERS) {
        return Vec::new();
    }
    let found = low.into_iter().filter_map(|(fixture, difference)| {
        let (fallen, of) = matched.fallen_probes(fixture);
        (fallen as f64 >= FALLEN * of as f64).then(|| Collapse {
            method: matched.judged.variant.key.clone(),
            fixture: fixture.to_owned(),
            difference,
            fallen,
            of,
        })
    });
    found.collect()
}

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
    let known = matched.judged.set.probes.get(probe);
    let Some((known, at)) = known.zip(matched.judged.set.probe_place(probe)) else {
        return Vec::new();
    };
    let is_qualified = !matched.excluded.contains(&Dimension::Completeness);
    let judged = chains(&matched.judged, probe, is_qualified);
    let baseline = chains(&matched.baseline, other, is_qualified);
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
fn chains(side: &VariantRef<'_>, probe: usize, is_qualified: bool) -> Vec<JudgedChain> {
    let answers = side.answers_to(probe);
    let mut chains: BTreeMap<Option<ActionKey>, JudgedChain> = BTreeMap::new();
    for measured in answers.iter().filter(|measured| measured.is_constraint) {
        let grades = equal_range(side.grades(), |grade| grade.at.cell(), measured.at.cell());
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
            .filter(|grade| grade.at == measured.at && is_by_model(side.set, grade))
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
