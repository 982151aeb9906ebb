//! A result set in memory: its design, and what statistics need of each row.

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt;
use std::mem::{replace, take};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use self::scores::{AnswerAt, Grade, MeasuredAnswer, Scores, equal_range};
use self::selection::Subset;
use super::files::FolderError;
use super::files::design::{Design, MethodInfo, MethodVariant, ModelInfo};
use super::files::folder::ResultsFolder;
use super::files::manifest::Manifest;
use super::files::row::{ContextRow, PlantedRow, Row};
use crate::action::{ActionKey, Digest, StageName};
use crate::judge::{Criterion, Score};
use crate::probe::ProbeType;

pub(super) mod scores;
pub(super) mod selection;

/// A variant of a set, with its method and answerer in the design.
#[derive(Clone, Copy)]
pub(crate) struct VariantRef<'s> {
    pub set: &'s ResultSet,
    /// Place among the variants of the set.
    pub place: usize,
    pub variant: &'s MethodVariant,
    pub method: &'s MethodInfo,
    /// `None` where nothing is answered.
    pub answerer: Option<&'s ModelInfo>,
}

impl<'s> VariantRef<'s> {
    /// Its grades, sorted by place.
    pub(super) fn grades(&self) -> &'s [Grade] {
        self.set.grades(self.place)
    }

    /// What was measured of its answers to a probe.
    pub(super) fn answers_to(&self, probe: usize) -> &'s [MeasuredAnswer] {
        let answers = self.set.answers(self.place);
        equal_range(answers, |measured| measured.at.probe, probe)
    }

    /// The name of the fixture of a probe.
    pub(super) fn fixture_of(&self, probe: usize) -> Option<&'s str> {
        self.set.fixture_name(self.set.scores.fixture_of(probe)?)
    }

    /// Whether the same model answers from both, with the same settings and prompt; false if one of them is unknown.
    pub(super) fn has_same_answerer(&self, other: &VariantRef<'_>) -> bool {
        let both = self.answerer.zip(other.answerer);
        both.is_some_and(|(own, other)| own.is_same(other))
    }
}

/// A probe where it was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProbeAt {
    /// Place in [`Design::fixtures`].
    pub fixture: usize,
    /// The compression point, from 1.
    pub point: u32,
    /// The probe's id.
    pub id: String,
    /// What it tests.
    pub kind: ProbeType,
    /// Identifies the probe and the point where it is asked.
    pub digest: Digest,
    /// Its expected facts, as rows name them.
    pub facts: Vec<String>,
    /// Whether the transcript has an answer to it.
    pub is_answerable: bool,
}

/// A probe by the names of its fixture and its own: one that occurs in several places of a bank is several.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ProbePlace {
    /// The fixture in whose bank the probe is.
    pub fixture: String,
    /// The point, from 1.
    pub point: u32,
    /// The probe's id in the bank.
    pub probe: String,
}

impl ProbePlace {
    /// The probe of a row.
    pub fn of_row(row: &Row) -> ProbePlace {
        ProbePlace {
            fixture: row.fixture.clone(),
            point: row.point,
            probe: row.probe.clone(),
        }
    }
}

impl fmt::Display for ProbePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (fixture, probe) = (&self.fixture, &self.probe);
        match self.point {
            0 | 1 => write!(f, "{fixture} · {probe}"),
            point => write!(f, "{fixture} · {point} · {probe}"),
        }
    }
}

/// The places of the rows of answers, by fixture and by the key of the answer.
pub type AnswerRows = BTreeMap<String, BTreeMap<ActionKey, Vec<usize>>>;

/// Contexts by method, fixture, point and run.
type ContextPlaces<'s> = HashSet<(&'s str, &'s str, u32, u32)>;

/// The cost of each distinct action of a variant, by stage; sorted by key.
pub(super) type Costs = BTreeMap<StageName, Vec<(ActionKey, Option<f64>)>>;

/// A result set. It does not keep the order of its rows.
#[derive(Clone, Debug)]
pub struct ResultSet {
    /// The manifest; its times and keys are not used.
    pub manifest: Manifest,
    pub(super) variants: Vec<MethodVariant>,
    pub(super) probes: Vec<ProbeAt>,
    pub(super) scores: Scores,
    pub(super) grades: Vec<Grade>,
    /// What was measured of each answer, sorted by place.
    pub(super) answers: Vec<MeasuredAnswer>,
    pub(super) costs: Arc<Vec<Costs>>,
    /// Every compression that replaced something, sorted by place.
    pub(super) contexts: Vec<ContextRow>,
    /// Every compression that replaced something, of a session with a rule in it.
    pub(super) planted: Vec<PlantedRow>,
    /// The same set with the answers with a search, which are not tested. It has no contexts.
    pub(super) open_book: Option<Box<ResultSet>>,
    /// The same set with the contexts in which a method replaced nothing, and the answers from them; `None` if there
    /// are none.
    pub(super) not_compressed: Option<Box<ResultSet>>,
}

impl ResultSet {
    /// Reads a folder.
    ///
    /// # Errors
    /// A file is missing or cannot be read, or rows do not belong to the manifest.
    pub fn read(folder: &ResultsFolder) -> Result<ResultSet, FolderError> {
        ResultSet::read_as(folder, folder.manifest()?)
    }

    /// Reads a folder whose manifest is not yet written as it will be.
    ///
    /// # Errors
    /// As [`ResultSet::read`].
    pub fn read_as(folder: &ResultsFolder, manifest: Manifest) -> Result<ResultSet, FolderError> {
        ResultSet::gather(manifest, folder.rows()?)?.with_compressions(folder)
    }

    /// Adds the compressions of the same folder.
    fn with_compressions(self, folder: &ResultsFolder) -> Result<ResultSet, FolderError> {
        let mut planted = folder.planted()?;
        planted.retain(|row| row.compressed);
        Ok(ResultSet {
            planted,
            ..self.with_contexts(folder.contexts()?)
        })
    }

    /// Adds compressions, sorted, so that sums of the same numbers are equal. Those that replaced nothing, and the
    /// answers from them, go into a set of their own.
    pub(super) fn with_contexts(mut self, mut contexts: Vec<ContextRow>) -> ResultSet {
        contexts.sort_by(|a, b| {
            (&a.fixture, &a.method, a.point, a.run).cmp(&(&b.fixture, &b.method, b.point, b.run))
        });
        self.add_costs_of(&contexts);
        let (contexts, not_compressed): (Vec<_>, Vec<_>) =
            contexts.into_iter().partition(|context| context.compressed);
        let set = ResultSet { contexts, ..self };
        if not_compressed.is_empty() {
            set
        } else {
            set.set_apart(not_compressed)
        }
    }

    /// Adds the costs of compressions from which no cell was graded.
    fn add_costs_of(&mut self, contexts: &[ContextRow]) {
        for variant in 0..self.variants.len() {
            let Some(name) = self.method(variant).map(|method| method.name.clone()) else {
                continue;
            };
            let Some(of_variant) = Arc::make_mut(&mut self.costs).get_mut(variant) else {
                continue;
            };
            let compressions = of_variant.entry(StageName::Compress).or_default();
            let made = contexts.iter().filter(|context| context.method == name);
            compressions.extend(made.map(|context| (context.key, context.usd)));
            compressions.sort_by_key(|(key, _)| *key);
            compressions.dedup_by_key(|(key, _)| *key);
        }
    }

    /// Moves these contexts, which replaced nothing, and the answers from them into a set of their own.
    fn set_apart(mut self, contexts: Vec<ContextRow>) -> ResultSet {
        let places: ContextPlaces<'_> = (contexts.iter())
            .map(|row| (&*row.method, &*row.fixture, row.point, row.run))
            .collect();
        let (mut grades, mut answers) = (take(&mut self.grades), take(&mut self.answers));
        let is_apart = |at: &AnswerAt| {
            self.context_of(at)
                .is_some_and(|context| places.contains(&context))
        };
        let apart: Vec<Grade> = grades.extract_if(.., |grade| is_apart(&grade.at)).collect();
        let apart_answers = answers
            .extract_if(.., |measured| is_apart(&measured.at))
            .collect();
        let open_book = self
            .open_book
            .take()
            .map(|open| Box::new(open.set_apart(contexts.clone())));
        let compressed = replace(&mut self.contexts, contexts);
        // The grades and answers of this set, most of its size, are taken out and not copied.
        let scores = Scores::new(self.design(), &grades);
        self.scores = Scores::new(self.design(), &apart);
        let not_compressed = Some(Box::new(ResultSet {
            grades: apart,
            answers: apart_answers,
            ..self.clone()
        }));
        ResultSet {
            scores,
            grades,
            answers,
            contexts: compressed,
            open_book,
            not_compressed,
            ..self
        }
    }

    /// Method, fixture, point and run of the context that an answer is from.
    fn context_of(&self, at: &AnswerAt) -> Option<(&str, &str, u32, u32)> {
        let (method, probe) = (self.method(at.variant)?, self.probes.get(at.probe)?);
        Some((
            method.name.as_str(),
            self.fixture_name(probe.fixture)?,
            probe.point,
            at.run,
        ))
    }

    /// The probes of a variant that were judged only where nothing was compressed.
    pub(super) fn probes_apart(&self, variant: usize) -> Subset {
        let apart = self
            .not_compressed
            .as_ref()
            .map(|set| set.scores.judged(variant))
            .unwrap_or_default();
        &apart - &self.scores.judged(variant)
    }

    /// Gathers rows, which may come in any order.
    ///
    /// # Errors
    /// The first row that is an error, or that does not belong to the manifest.
    pub fn gather(
        manifest: Manifest,
        rows: impl IntoIterator<Item = Result<impl Borrow<Row>, FolderError>>,
    ) -> Result<ResultSet, FolderError> {
        let design = &manifest.design;
        let (variants, mut probes) = (design.variants(), probes(design));
        let mut gathered = RowTotals::new(variants.len());
        let mut open = RowTotals::new(variants.len());
        let index = DesignIndex::new(&manifest, &variants, &probes);
        for (place, row) in rows.into_iter().enumerate() {
            let row = row?;
            let row = row.borrow();
            let totals = match row.open_book {
                None => &mut gathered,
                Some(_) => &mut open,
            };
            totals.add(&index, place, row)?;
        }
        let gathered = gathered.sorted();
        for measured in &gathered.answers {
            let Some(probe) = probes.get_mut(measured.at.probe) else {
                continue;
            };
            // Only an answer to such a probe can be fabricated.
            probe.is_answerable &= measured.fabricated.is_none();
            if probe.facts.is_empty() {
                let names = measured.facts.iter().map(|fact| fact.fact.clone());
                probe.facts = names.collect();
            }
        }
        let open = Some(open.sorted()).filter(|open| !open.grades.is_empty());
        let open = open
            .map(|open| ResultSet::new(manifest.clone(), variants.clone(), probes.clone(), open));
        let set = ResultSet::new(manifest, variants, probes, gathered);
        Ok(ResultSet {
            open_book: open.map(Box::new),
            ..set
        })
    }

    /// A set without rows, as it is before a run.
    pub(super) fn from_manifest(manifest: Manifest) -> ResultSet {
        let (variants, probes) = (manifest.design.variants(), probes(&manifest.design));
        let totals = RowTotals::new(variants.len());
        ResultSet::new(manifest, variants, probes, totals)
    }

    fn new(
        manifest: Manifest,
        variants: Vec<MethodVariant>,
        probes: Vec<ProbeAt>,
        totals: RowTotals,
    ) -> ResultSet {
        ResultSet {
            scores: Scores::new(&manifest.design, &totals.grades),
            manifest,
            variants,
            probes,
            grades: totals.grades,
            answers: totals.answers,
            costs: Arc::new(totals.costs),
            contexts: Vec::new(),
            planted: Vec::new(),
            open_book: None,
            not_compressed: None,
        }
    }

    /// The design.
    pub fn design(&self) -> &Design {
        &self.manifest.design
    }

    /// All variants, in the order of tables.
    pub(super) fn variant_refs(&self) -> impl Iterator<Item = VariantRef<'_>> {
        self.variants
            .iter()
            .enumerate()
            .filter_map(|(place, variant)| {
                Some(VariantRef {
                    set: self,
                    place,
                    variant,
                    method: self.method(place)?,
                    answerer: self.answerer(place),
                })
            })
    }

    /// The method of a variant.
    pub(super) fn method(&self, variant: usize) -> Option<&MethodInfo> {
        self.design()
            .methods
            .get(self.variants.get(variant)?.method)
    }

    /// The answerer of a variant.
    pub(super) fn answerer(&self, variant: usize) -> Option<&ModelInfo> {
        let name = &self.variants.get(variant)?.answerer;
        self.design()
            .answerers
            .iter()
            .find(|asked| asked.name == *name)
    }

    /// The name of the fixture in this place of the design.
    pub(super) fn fixture_name(&self, place: usize) -> Option<&str> {
        self.design()
            .fixtures
            .get(place)
            .map(|fixture| fixture.name.as_str())
    }

    /// The names of a probe.
    pub(super) fn probe_place(&self, probe: usize) -> Option<ProbePlace> {
        let at = self.probes.get(probe)?;
        Some(ProbePlace {
            fixture: self.fixture_name(at.fixture)?.to_owned(),
            point: at.point,
            probe: at.id.clone(),
        })
    }

    /// Whether the method of a variant is neither ceiling nor floor.
    pub(super) fn is_candidate(&self, variant: usize) -> bool {
        self.method(variant).is_some_and(|info| !info.is_anchor())
    }

    /// Whether the transcript has an answer to a probe.
    pub(super) fn is_answerable(&self, probe: usize) -> bool {
        self.probes
            .get(probe)
            .is_some_and(|probe| probe.is_answerable)
    }

    /// The first variant with this answerer and such a method. Scores of different answerers cannot be compared.
    pub(super) fn variant_of(
        &self,
        answerer: &str,
        is_wanted: impl Fn(&MethodInfo) -> bool,
    ) -> Option<usize> {
        self.variants.iter().position(|variant| {
            variant.answerer == answerer
                && self
                    .design()
                    .methods
                    .get(variant.method)
                    .is_some_and(&is_wanted)
        })
    }

    /// The grades of a variant, sorted by place.
    pub(super) fn grades(&self, variant: usize) -> &[Grade] {
        equal_range(&self.grades, |grade| grade.at.variant, variant)
    }

    /// The rows of the answers that are wanted (by variant and probe), one for each judge.
    pub fn answer_rows(&self, is_wanted: impl Fn(&str, &ProbePlace) -> bool) -> AnswerRows {
        let mut found = AnswerRows::new();
        for grade in self.grades.iter().filter(|grade| grade.judge_n == 1) {
            let variant = self.variants.get(grade.at.variant);
            let Some((variant, place)) = variant.zip(self.probe_place(grade.at.probe)) else {
                continue;
            };
            if is_wanted(&variant.key, &place) {
                let [_, answer, _] = grade.keys;
                let of_fixture = found.entry(place.fixture).or_default();
                of_fixture.entry(answer).or_default().push(grade.row);
            }
        }
        found
    }

    /// The digest of all grades of the variants that are wanted.
    pub fn digest_of_grades(&self, is_wanted: impl Fn(&str) -> bool) -> Digest {
        let wanted = self.grades.iter().filter(|grade| {
            let variant = self.variants.get(grade.at.variant);
            variant.is_some_and(|variant| is_wanted(&variant.key))
        });
        let grades: BTreeSet<_> = wanted.map(|grade| (grade.keys[2], &grade.points)).collect();
        Digest::of_json(&grades)
    }

    /// What was measured of the answers of a variant, sorted by place.
    pub(super) fn answers(&self, variant: usize) -> &[MeasuredAnswer] {
        equal_range(&self.answers, |measured| measured.at.variant, variant)
    }
}

/// What is collected from rows.
struct RowTotals {
    grades: Vec<Grade>,
    answers: Vec<MeasuredAnswer>,
    /// By variant.
    costs: Vec<Costs>,
}

impl RowTotals {
    fn new(variants: usize) -> RowTotals {
        RowTotals {
            grades: Vec::new(),
            answers: Vec::new(),
            costs: vec![Costs::new(); variants],
        }
    }

    fn add(&mut self, index: &DesignIndex<'_>, place: usize, row: &Row) -> Result<(), FolderError> {
        let (at, judge) = index.place(row)?;
        self.grades.push(index.grade(at, judge, place, row));
        // the grades of an answer mostly follow one another, and all of them say the same about it
        if self.answers.last().is_none_or(|last| last.at != at) {
            self.answers.push(MeasuredAnswer::from_row(at, row));
        }
        if let Some(costs) = self.costs.get_mut(at.variant) {
            let steps = row.open_book.iter().flat_map(|open| &open.steps);
            let steps = steps.map(|step| (StageName::Answer, step.key, step.usd));
            let actions = [
                (StageName::Compress, row.keys.compress, row.usd.compress),
                (StageName::Answer, row.keys.answer, row.usd.answer),
                (StageName::Judge, row.keys.judge, row.usd.judge),
            ];
            for (stage, key, usd) in steps.chain(actions) {
                let known = costs.entry(stage).or_default();
                // the rows of one action mostly follow one another, too
                if known.last().is_none_or(|(last, _)| *last != key) {
                    known.push((key, usd));
                }
            }
        }
        Ok(())
    }

    /// Sorts each list, and keeps each answer and each action once.
    fn sorted(mut self) -> RowTotals {
        self.grades
            .sort_unstable_by_key(|grade| (grade.at, grade.judge_n, grade.judge));
        self.answers.sort_unstable_by_key(|measured| measured.at);
        self.answers.dedup_by_key(|measured| measured.at);
        for actions in self.costs.iter_mut().flat_map(BTreeMap::values_mut) {
            actions.sort_by_key(|(key, _)| *key);
            actions.dedup_by_key(|(key, _)| *key);
            actions.shrink_to_fit();
        }
        self
    }
}

fn probes(design: &Design) -> Vec<ProbeAt> {
    let fixtures = design.fixtures.iter().enumerate();
    let probes =
        fixtures.flat_map(|(fixture, info)| info.probes.iter().map(move |probe| (fixture, probe)));
    let probes = probes.map(|(fixture, probe)| ProbeAt {
        fixture,
        point: probe.point,
        id: probe.id.clone(),
        kind: probe.kind,
        digest: probe.digest,
        facts: Vec::new(),
        is_answerable: true,
    });
    probes.collect()
}

/// The places of names in a design.
struct DesignIndex<'m> {
    label: &'m str,
    variants: HashMap<(&'m str, &'m str), usize>,
    probes: HashMap<(&'m str, u32, &'m str), usize>,
    judges: HashMap<&'m str, usize>,
    criteria: &'m [Criterion],
}

impl<'m> DesignIndex<'m> {
    fn new(
        manifest: &'m Manifest,
        variants: &'m [MethodVariant],
        probes: &'m [ProbeAt],
    ) -> DesignIndex<'m> {
        let design = &manifest.design;
        let variants = variants.iter().enumerate().filter_map(|(ix, variant)| {
            Some((
                (
                    design.methods.get(variant.method)?.name.as_str(),
                    variant.answerer.as_str(),
                ),
                ix,
            ))
        });
        let probes = probes.iter().enumerate().filter_map(|(ix, probe)| {
            Some((
                (
                    design.fixtures.get(probe.fixture)?.name.as_str(),
                    probe.point,
                    probe.id.as_str(),
                ),
                ix,
            ))
        });
        DesignIndex {
            label: &manifest.label,
            variants: variants.collect(),
            probes: probes.collect(),
            judges: design
                .judges
                .iter()
                .enumerate()
                .map(|(ix, judge)| (judge.name.as_str(), ix))
                .collect(),
            criteria: &design.rubric.criteria,
        }
    }

    fn place(&self, row: &Row) -> Result<(AnswerAt, usize), FolderError> {
        let (method, answerer) = (row.method.as_str(), row.closed_answerer());
        let Some(&variant) = self.variants.get(&(method, answerer)) else {
            let name = format!("{method}/{}", row.answerer);
            return Err(self.unknown("method and answerer", &name));
        };
        let (fixture, point, probe) = (row.fixture.as_str(), row.point, row.probe.as_str());
        let Some(&probe) = self.probes.get(&(fixture, point, probe)) else {
            return Err(self.unknown("probe", &format!("{fixture} · {point} · {probe}")));
        };
        let Some(&judge) = self.judges.get(row.judge.as_str()) else {
            return Err(self.unknown("judge", &row.judge));
        };
        let at = AnswerAt {
            variant,
            probe,
            run: row.run,
            answer_n: row.answer_n,
        };
        Ok((at, judge))
    }

    fn unknown(&self, what: &str, name: &str) -> FolderError {
        let label = self.label;
        FolderError::Unusable(format!(
            "a row of `{label}` speaks of {what} `{name}`, which its manifest does not know; run the label again"
        ))
    }

    /// The grade in a row, which has this place among all rows.
    fn grade(&self, at: AnswerAt, judge: usize, place: usize, row: &Row) -> Grade {
        Grade {
            at,
            judge_n: row.judge_n,
            judge,
            dimensions: row
                .dimensions
                .iter()
                .filter_map(|(dimension, score)| Some((*dimension, Score::new(*score)?.value())))
                .collect(),
            points: self.points(row),
            keys: [row.keys.compress, row.keys.answer, row.keys.judge],
            row: place,
        }
    }

    /// The points of the criteria, by their places in the rubric. Rows mostly have the order of the rubric, so the
    /// search for each criterion begins after the one before it.
    fn points(&self, row: &Row) -> Vec<(u16, u8)> {
        let mut known = self.criteria.iter().zip(0u16..).cycle();
        let mut points = Vec::with_capacity(row.criteria.len());
        for scored in &row.criteria {
            let found = known
                .by_ref()
                .take(self.criteria.len())
                .find(|(known, _)| known.id == scored.criterion);
            points.extend(found.map(|(_, place)| (place, scored.points())));
        }
        points
    }
}
