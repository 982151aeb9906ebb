//! A result set in memory: its design, and of each row what statistics need.

use std::borrow::Borrow;
use std::collections::BTreeMap;

use super::design::Design;
use super::folder::{FolderError, ResultsFolder};
use super::manifest::Manifest;
use super::row::Row;
use super::rows_file::RowError;
use crate::action::{ActionKey, Digest, StageName};
use crate::judge::{Dimension, Score};
use crate::measure::FactClass;
use crate::probe::ProbeType;

/// Scores by dimension, in the order of [`Dimension::ALL`]; `None` where nothing was measured.
pub(super) type ByDimension = [Option<f64>; Dimension::ALL.len()];

/// A method with one of its answerers: what a table has a line for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arm {
    /// The method's name; with several answerers `METHOD/ANSWERER`.
    pub key: String,
    /// Place in [`Design::methods`].
    pub method: usize,
    /// The answerer's name.
    pub reader: String,
}

/// A probe where it was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeAt {
    /// Place in [`Design::fixtures`].
    pub fixture: usize,
    /// The compression point, from 1.
    pub point: u32,
    /// The probe's id.
    pub id: String,
    /// What it tests.
    pub kind: ProbeType,
    /// Of the probe and the place at which it is asked.
    pub digest: Digest,
    /// Its expected facts, as rows name them.
    pub facts: Vec<String>,
}

/// Where an answer stands: arm, probe, run, number of the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct AnswerAt {
    pub arm: usize,
    pub probe: usize,
    pub run: u32,
    pub answer_n: u32,
}

/// One grade of one answer by one judge.
#[derive(Clone, Debug)]
pub(super) struct Grade {
    pub at: AnswerAt,
    pub judge_n: u32,
    pub judge: usize,
    pub dimensions: ByDimension,
    /// Place of each criterion in the rubric, and its points.
    pub points: Vec<(u16, u8)>,
    pub keys: Digest,
}

/// What was measured of one answer without a judge.
#[derive(Clone, Debug)]
pub(super) struct Measured {
    pub facts: Vec<(bool, Option<FactClass>)>,
    pub survival: Option<f64>,
    pub context_tokens: Option<u64>,
    pub replaced_tokens: Option<u64>,
    pub ratio: Option<f64>,
    pub refetch: Option<u64>,
    pub fabricated: Option<bool>,
    pub stale: u64,
    pub invented: u64,
}

/// A result set: the order of its rows is forgotten.
#[derive(Clone, Debug)]
pub struct ResultSet {
    /// The manifest; times and keys in it are not looked at.
    pub manifest: Manifest,
    pub(super) arms: Vec<Arm>,
    pub(super) probes: Vec<ProbeAt>,
    /// Sorted by place.
    pub(super) grades: Vec<Grade>,
    pub(super) answers: BTreeMap<AnswerAt, Measured>,
    /// What each distinct action of an arm cost, by arm, stage and key.
    pub(super) costs: BTreeMap<(usize, StageName, ActionKey), Option<f64>>,
}

/// Why rows make no result set.
#[derive(Debug, thiserror::Error)]
pub enum SetError {
    /// The folder.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// A row cannot be read.
    #[error(transparent)]
    Row(#[from] RowError),
    /// A row of something that the manifest does not know.
    #[error("a row of `{label}` speaks of {what} `{name}`, which its manifest does not know; run the label again")]
    Stranger {
        /// The label.
        label: String,
        /// Method, probe, judge.
        what: &'static str,
        /// Its name.
        name: String,
    },
}

impl From<crate::files::FileError> for SetError {
    fn from(error: crate::files::FileError) -> SetError {
        SetError::Folder(error.into())
    }
}

impl ResultSet {
    /// Reads a folder.
    ///
    /// # Errors
    /// A file that is not there or cannot be read, rows that do not belong to the manifest.
    pub fn read(folder: &ResultsFolder) -> Result<ResultSet, SetError> {
        let manifest = folder.manifest()?;
        ResultSet::gather(manifest, folder.rows()?.scored().map(|row| row.map_err(SetError::from)))
    }

    /// Gathers rows, in any order.
    ///
    /// # Errors
    /// The first row that is an error, or does not belong to the manifest.
    pub fn gather<T>(
        manifest: Manifest,
        rows: impl IntoIterator<Item = Result<impl Borrow<Row<T>>, SetError>>,
    ) -> Result<ResultSet, SetError> {
        let design = &manifest.design;
        let (arms, mut probes) = (arms(design), probes(design));
        let mut gathered = Gathered { facts: vec![Vec::new(); probes.len()], ..Gathered::default() };
        let index = Index::of(&manifest, &arms, &probes);
        for row in rows {
            gathered.take(&index, row?.borrow())?;
        }
        let Gathered { mut grades, answers, costs, facts } = gathered;
        grades.sort_by_key(|grade| (grade.at, grade.judge_n, grade.judge));
        probes.iter_mut().zip(facts).for_each(|(probe, facts)| probe.facts = facts);
        Ok(ResultSet { manifest, arms, probes, grades, answers, costs })
    }

    /// The manifest alone.
    pub fn into_manifest(self) -> Manifest {
        self.manifest
    }

    /// The design.
    pub fn design(&self) -> &Design {
        &self.manifest.design
    }

    /// The lines of its tables, in the order of the pipeline.
    pub fn arms(&self) -> &[Arm] {
        &self.arms
    }

    /// The probes, in the order of the matrix.
    pub fn probes(&self) -> &[ProbeAt] {
        &self.probes
    }

    /// Judged cells of an arm.
    pub(super) fn judged_cells(&self, arm: usize) -> u64 {
        self.grades.iter().filter(|grade| grade.at.arm == arm).count() as u64
    }
}

/// What rows add up to.
#[derive(Default)]
struct Gathered {
    grades: Vec<Grade>,
    answers: BTreeMap<AnswerAt, Measured>,
    costs: BTreeMap<(usize, StageName, ActionKey), Option<f64>>,
    /// The expected facts of each probe.
    facts: Vec<Vec<String>>,
}

impl Gathered {
    fn take<T>(&mut self, index: &Index<'_>, row: &Row<T>) -> Result<(), SetError> {
        let (at, judge) = index.place(row)?;
        let of = |dimension: Dimension| row.dimensions.get(&dimension).and_then(|x| Score::new(*x)).map(Score::value);
        let points = row.criteria.iter().filter_map(|c| Some((*index.criteria.get(&*c.criterion.0)?, c.points())));
        let keys = Digest::of([row.keys.compress, row.keys.answer, row.keys.judge].map(|key| key.0.0).concat());
        let (dimensions, points) = (Dimension::ALL.map(of), points.collect());
        self.grades.push(Grade { at, judge_n: row.judge_n, judge, dimensions, points, keys });
        for (stage, key, usd) in [
            (StageName::Compress, row.keys.compress, row.usd.compress),
            (StageName::Answer, row.keys.answer, row.usd.answer),
            (StageName::Judge, row.keys.judge, row.usd.judge),
        ] {
            self.costs.insert((at.arm, stage, key), usd);
        }
        self.answers.entry(at).or_insert_with(|| Measured::of(row));
        if let Some(facts) = self.facts.get_mut(at.probe).filter(|facts| facts.is_empty()) {
            *facts = row.facts.iter().map(|fate| fate.fact.clone()).collect();
        }
        Ok(())
    }
}

impl Measured {
    fn of<T>(row: &Row<T>) -> Measured {
        Measured {
            facts: row.facts.iter().map(|fate| (fate.answered, fate.class)).collect(),
            survival: row.fact_survival,
            context_tokens: row.context_tokens,
            replaced_tokens: row.replaced_tokens,
            ratio: row.compression_ratio,
            refetch: row.refetch_tokens,
            fabricated: row.fabricated,
            stale: row.stale_facts.len() as u64,
            invented: row.invented.len() as u64,
        }
    }
}

fn arms(design: &Design) -> Vec<Arm> {
    let several = design.answerers.len() > 1;
    let key = |method: &str, reader: &str| if several { format!("{method}/{reader}") } else { method.to_owned() };
    let of = |(method, info): (usize, &super::design::MethodInfo)| -> Vec<Arm> {
        info.readers.iter().map(|reader| Arm { key: key(&info.name, reader), method, reader: reader.clone() }).collect()
    };
    design.methods.iter().enumerate().flat_map(of).collect()
}

fn probes(design: &Design) -> Vec<ProbeAt> {
    let of = |(fixture, info): (usize, &super::design::FixtureInfo)| -> Vec<ProbeAt> {
        let at = |probe: &super::design::ProbeInfo| ProbeAt {
            fixture,
            point: probe.point,
            id: probe.id.clone(),
            kind: probe.kind,
            digest: probe.digest,
            facts: Vec::new(),
        };
        info.probes.iter().map(at).collect()
    };
    design.fixtures.iter().enumerate().flat_map(of).collect()
}

/// Names to places.
struct Index<'m> {
    label: &'m str,
    arms: BTreeMap<(&'m str, &'m str), usize>,
    probes: BTreeMap<(&'m str, u32, &'m str), usize>,
    judges: BTreeMap<&'m str, usize>,
    criteria: BTreeMap<&'m str, u16>,
}

impl<'m> Index<'m> {
    fn of(manifest: &'m Manifest, arms: &'m [Arm], probes: &'m [ProbeAt]) -> Index<'m> {
        let design = &manifest.design;
        let method = |arm: &Arm| design.methods.get(arm.method).map_or("", |m| m.name.as_str());
        let fixture = |probe: &ProbeAt| design.fixtures.get(probe.fixture).map_or("", |f| f.name.as_str());
        let criteria = design.rubric.criteria.iter().zip(0u16..);
        Index {
            label: &manifest.label,
            arms: arms.iter().enumerate().map(|(ix, arm)| ((method(arm), arm.reader.as_str()), ix)).collect(),
            probes: probes.iter().enumerate().map(|(ix, p)| ((fixture(p), p.point, p.id.as_str()), ix)).collect(),
            judges: design.judges.iter().enumerate().map(|(ix, judge)| (judge.name.as_str(), ix)).collect(),
            criteria: criteria.map(|(criterion, ix)| (&*criterion.id.0, ix)).collect(),
        }
    }

    fn place<T>(&self, row: &Row<T>) -> Result<(AnswerAt, usize), SetError> {
        let stranger = |what, name: String| SetError::Stranger { label: self.label.to_owned(), what, name };
        let arm = self.arms.get(&(row.method.as_str(), row.answerer.as_str()));
        let arm = *arm.ok_or_else(|| stranger("method and answerer", format!("{}/{}", row.method, row.answerer)))?;
        let probe = self.probes.get(&(row.fixture.as_str(), row.point, row.probe.as_str()));
        let name = || format!("{} · {} · {}", row.fixture, row.point, row.probe);
        let probe = *probe.ok_or_else(|| stranger("probe", name()))?;
        let judge = *self.judges.get(row.judge.as_str()).ok_or_else(|| stranger("judge", row.judge.clone()))?;
        Ok((AnswerAt { arm, probe, run: row.run, answer_n: row.answer_n }, judge))
    }
}
