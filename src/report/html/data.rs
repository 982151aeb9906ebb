//! The page's data: one element with what is needed at once, and one for each pack of texts.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use serde::Serialize;

use super::columns::{Columns, Names, Places};
use super::input::{ContextPlace, CostLine, FailureLine, MethodLine, ModelLine, PageContext, PageInput};
use super::pack::safe_json;
use super::texts::{CELLS_IN_PACK, Seeker, pack_cells, pack_contexts};
use crate::judge::{CriterionId, Dimension};
use crate::probe::{Probe, ProbeType};
use crate::report::tables::published;
use crate::results::{ListedRow, RowError, ScoredRow, Summary};
use crate::threads::both;

/// A probe where it was asked: fixture, point, id.
type ProbePlace<'a> = (&'a str, u32, &'a str);

/// What the page needs at once.
#[derive(Serialize)]
struct Head<'a> {
    label: &'a str,
    facts: &'a [(String, String)],
    warnings: &'a [String],
    notes: &'a [String],
    changes: &'a [(String, Vec<String>)],
    models: &'a [ModelLine],
    methods: Vec<MethodLine>,
    costs: &'a [CostLine],
    failures: &'a [FailureLine],
    reference: Vec<Published>,
    dimensions: Vec<(&'static str, &'static str)>,
    types: Vec<&'static str>,
    criteria: Vec<(String, Option<usize>)>,
    fixtures: Vec<&'a str>,
    probes: Vec<ProbeHead<'a>>,
    answerers: &'a [&'a str],
    judges: &'a [&'a str],
    cells_in_pack: usize,
    cells: &'a Columns,
    summary: &'a Summary,
}

/// A probe where it was asked, as lists and cells show it.
#[derive(Serialize)]
struct ProbeHead<'a> {
    fixture: usize,
    point: u32,
    id: &'a str,
    #[serde(rename = "type")]
    kind: ProbeType,
    /// The bank's probe; absent if the bank has it no more.
    #[serde(flatten)]
    probe: Option<ProbeBody<'a>>,
}

#[derive(Serialize)]
struct ProbeBody<'a> {
    question: &'a str,
    expected: Vec<&'a [String]>,
    superseded: Vec<&'a [String]>,
    reference: Option<&'a str>,
    answerable: bool,
    tags: &'a [String],
}

/// A row of figures that others published.
#[derive(Serialize)]
struct Published {
    name: &'static str,
    /// Overall, then the dimensions.
    scores: [f64; 7],
    removed: f64,
}

impl From<(&'static str, [f64; 7], f64)> for Published {
    fn from((name, scores, removed): (&'static str, [f64; 7], f64)) -> Published {
        Published { name, scores, removed }
    }
}

/// Everything that was gathered from the rows.
#[derive(Default)]
struct Gathered<'a> {
    methods: Names<String>,
    fixtures: Names<&'a str>,
    probes: Names<ProbePlace<'a>>,
    kinds: Vec<ProbeType>,
    answerers: Names<&'a str>,
    judges: Names<&'a str>,
    contexts: Names<ContextPlace>,
    /// The probes asked of each context.
    asked: Vec<BTreeSet<usize>>,
    /// The probe of each row.
    of_row: Vec<usize>,
    criteria: Names<CriterionId>,
    columns: Columns,
}

impl<'a> Gathered<'a> {
    fn from_rows(input: &PageInput<'a>) -> Gathered<'a> {
        let mut gathered = Gathered::default();
        for method in &input.methods {
            gathered.methods.place(method.name.clone());
        }
        for ListedRow { row, .. } in input.rows {
            let places = gathered.places(row, summary_name(input.summary, row));
            gathered.columns.push(row, places);
        }
        gathered
    }

    fn places(&mut self, row: &'a ScoredRow, method: String) -> Places {
        self.fixtures.place(&row.fixture);
        let probe = self.probes.place((&row.fixture, row.point, &row.probe));
        if probe == self.kinds.len() {
            self.kinds.push(row.kind);
        }
        let context = self.contexts.place((row.keys.compress, row.method.clone(), row.point));
        if context == self.asked.len() {
            self.asked.push(BTreeSet::new());
        }
        if let Some(asked) = self.asked.get_mut(context) {
            asked.insert(probe);
        }
        self.of_row.push(probe);
        for score in &row.criteria {
            self.criteria.place(score.criterion.clone());
        }
        Places {
            method: self.methods.place(method),
            probe,
            answerer: self.answerers.place(&row.answerer),
            judge: self.judges.place(&row.judge),
            context,
        }
    }

    fn probe_heads(&mut self, bank: &BTreeMap<(&str, &str), &'a Probe>) -> Vec<ProbeHead<'a>> {
        let probes = self.probes.all().to_vec();
        let known = probes.into_iter().zip(self.kinds.clone());
        known
            .map(|((fixture, point, id), kind)| ProbeHead {
                fixture: self.fixtures.place(fixture),
                point,
                id,
                kind,
                probe: bank.get(&(fixture, id)).map(|probe| body(probe)),
            })
            .collect()
    }
}

/// What the summary calls the method of a row: with several answerers it names them too.
fn summary_name(summary: &Summary, row: &ScoredRow) -> String {
    let read_by = format!("{}/{}", row.method, row.answerer);
    if summary.methods.get(&read_by).is_some() { read_by } else { row.method.clone() }
}

fn body(probe: &Probe) -> ProbeBody<'_> {
    ProbeBody {
        question: &probe.question,
        expected: probe.expected_facts.iter().map(|fact| fact.spellings.as_slice()).collect(),
        superseded: probe.superseded_facts.iter().map(|fact| fact.spellings.as_slice()).collect(),
        reference: probe.reference_answer.as_deref(),
        answerable: probe.answerable,
        tags: &probe.tags,
    }
}

/// All data elements of the page.
///
/// # Errors
/// A row that cannot be read whole.
pub(super) fn elements(input: &PageInput<'_>) -> Result<String, RowError> {
    let bank: BTreeMap<(&str, &str), &Probe> = input
        .banks
        .iter()
        .flat_map(|(fixture, probes)| probes.iter().map(move |probe| ((*fixture, &*probe.id.0), probe)))
        .collect();
    let mut gathered = Gathered::from_rows(input);
    let seekers: Vec<Option<Seeker>> = gathered
        .probes
        .all()
        .iter()
        .map(|(fixture, _, id)| bank.get(&(*fixture, *id)).map(|p| Seeker::new(p)))
        .collect();
    let of_rows: Vec<Option<&Seeker>> =
        gathered.of_row.iter().map(|probe| seekers.get(*probe).and_then(Option::as_ref)).collect();
    let contexts = contexts(input, &gathered, &seekers);
    let (rows, shelf, criteria) = ((input.rows, input.whole), input.packs, &gathered.criteria);
    let (cells, contexts) =
        both(|| pack_cells(rows, &of_rows, criteria, shelf), || pack_contexts(&contexts, input.packs));
    let probes = gathered.probe_heads(&bank);
    let head = head(input, &gathered, probes);
    let mut html = format!("<script type=\"application/json\" id=\"report\">{}</script>\n", safe_json(&head));
    let cells = cells?.into_iter().map(Some).collect();
    for (kind, packs) in [("cells", cells), ("contexts", contexts)] {
        for (number, pack) in packs.into_iter().enumerate().filter_map(|(number, pack)| Some((number, pack?))) {
            let _ = writeln!(html, "<script type=\"text/plain\" id=\"{kind}-{number}\">{pack}</script>");
        }
    }
    Ok(html)
}

/// Each context with what is looked for in it.
fn contexts<'a>(
    input: &'a PageInput<'a>,
    gathered: &Gathered<'_>,
    seekers: &'a [Option<Seeker>],
) -> Vec<(Option<&'a PageContext<'a>>, BTreeMap<usize, &'a Seeker>)> {
    let asked = gathered.contexts.all().iter().zip(&gathered.asked);
    asked
        .map(|(key, probes)| {
            let seekers = probes.iter().filter_map(|probe| Some((*probe, seekers.get(*probe)?.as_ref()?)));
            (input.contexts.get(key), seekers.collect())
        })
        .collect()
}

fn head<'a>(input: &'a PageInput<'a>, gathered: &'a Gathered<'a>, probes: Vec<ProbeHead<'a>>) -> Head<'a> {
    Head {
        label: input.label,
        facts: &input.facts,
        warnings: &input.warnings,
        notes: &input.notes,
        changes: &input.changes,
        models: &input.models,
        methods: methods(input, gathered),
        costs: &input.costs,
        failures: &input.failures,
        reference: published().filter(|_| input.reference).map(Published::from).collect(),
        dimensions: Dimension::ALL.iter().map(|d| (d.name(), d.label(input.locale))).collect(),
        types: ProbeType::ALL.iter().map(|kind| kind.name()).collect(),
        criteria: gathered.criteria.all().iter().map(|id| criterion(input, id)).collect(),
        fixtures: gathered.fixtures.all().to_vec(),
        probes,
        answerers: gathered.answerers.all(),
        judges: gathered.judges.all(),
        cells_in_pack: CELLS_IN_PACK,
        cells: &gathered.columns,
        summary: input.summary,
    }
}

/// The methods declared, and after them any that only rows name.
fn methods(input: &PageInput<'_>, gathered: &Gathered<'_>) -> Vec<MethodLine> {
    let known = |name: &String| input.methods.iter().find(|method| method.name == *name).cloned();
    let names = gathered.methods.all().iter();
    names
        .map(|name| known(name).unwrap_or_else(|| MethodLine { name: name.clone(), ..MethodLine::default() }))
        .collect()
}

/// A criterion's name, and the place of its dimension.
fn criterion(input: &PageInput<'_>, id: &CriterionId) -> (String, Option<usize>) {
    match input.rubric.criterion(id) {
        Some(known) => (known.name.clone(), Dimension::ALL.iter().position(|d| *d == known.dimension)),
        None => (id.to_string(), None),
    }
}
